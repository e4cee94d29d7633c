// The cache of compiled backward passes: bounded, compared by structure and not only by hash.
#include "compiled.h"

#include <cstdlib>
#include <list>
#include <unordered_map>

namespace gt {

// GRADTAPE_COMPILE=0 turns compilation off; =always compiles what is seen for the first time,
// for tests.
static const std::string setting = std::getenv("GRADTAPE_COMPILE") ? std::getenv("GRADTAPE_COMPILE") : "";
bool compiling = setting != "0";
static const int64_t first_needed = setting == "always" ? 1 : 2;

constexpr size_t kMostStructures = 1024;
constexpr int64_t kPatience = 64;  // programs made for structures that did not come back

// Never destroyed: their Python objects must not outlive the interpreter by a destructor at exit.
static std::list<Compiled>& entries = *new std::list<Compiled>;  // most recently seen first
static auto& by_hash = *new std::unordered_multimap<uint64_t, std::list<Compiled>::iterator>;
static int64_t hits = 0, programs = 0, failures = 0, wasted = 0;

static uint64_t hash_words(const std::vector<uint64_t>& words) {
  uint64_t h = 0x9e3779b97f4a7c15ull ^ words.size();
  for (uint64_t w : words) {
    h = (h ^ w) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  return h;
}

uint64_t Structure::hash() const { return hash_words(words); }

static void forget_oldest() {
  auto last = std::prev(entries.end());
  auto [begin, end] = by_hash.equal_range(hash_words(last->words));
  for (auto it = begin; it != end; ++it)
    if (it->second == last) {
      by_hash.erase(it);
      break;
    }
  if (last->program && last->used < 2) ++wasted;
  entries.pop_back();
}

Compiled& remember(const Structure& s) {
  uint64_t h = s.hash();
  auto [begin, end] = by_hash.equal_range(h);
  for (auto it = begin; it != end; ++it)
    if (it->second->words == s.words) {
      entries.splice(entries.begin(), entries, it->second);
      Compiled& c = *it->second;
      ++c.seen;
      if (c.program) {
        ++hits;
        ++c.used;
      }
      return c;
    }
  if (entries.size() >= kMostStructures) forget_oldest();
  entries.emplace_front();
  entries.front().words = s.words;
  for (PyObject* o : s.objects) entries.front().objects.push_back(Ref<>::borrow(o));
  entries.front().seen = 1;
  by_hash.emplace(h, entries.begin());
  return entries.front();
}

// A structure is compiled when it is seen for the second time. A program that throws away its
// programs (its structures keep changing) has to show each of them more often first.
int64_t sightings_needed() {
  if (!compiling) return INT64_MAX;
  int64_t needed = first_needed;
  for (int64_t w = wasted; w >= kPatience; w /= 2) needed *= 2;
  return needed;
}

bool worth_compiling(const Compiled& c) { return !c.failed && c.seen >= sightings_needed(); }

void note_compiled(Compiled& c, bool success) {
  if (success) {
    ++programs;
  } else {
    ++failures;
    c.failed = true;
  }
}

CompileInfo compile_info() { return {int64_t(entries.size()), programs, hits, failures}; }

void clear_compiled() {
  by_hash.clear();
  entries.clear();
  hits = programs = failures = wasted = 0;
}

}  // namespace gt
