// The cache of compiled backward passes: bounded in entries and bytes, compared by structure and not only by hash.
#include "compiled.h"

#include <algorithm>
#include <cstdlib>
#include <list>
#include <unordered_map>

namespace gt {

// GRADTAPE_COMPILE=0 turns compilation off; =always compiles what is seen for the first time,
// for tests.
static const std::string setting = std::getenv("GRADTAPE_COMPILE") ? std::getenv("GRADTAPE_COMPILE") : "";
bool compiling = setting != "0";
static const int64_t first_needed = setting == "always" ? 1 : 2;

constexpr size_t kMostStructures = 1024, kMostBytes = size_t(1) << 28;
// What the graph and the program of a pass take for a record: 1.3 to 1.7 KB were measured.
constexpr size_t kBytesPerRecord = 1536;
// To compile a pass takes about as long as to run it a hundred times by its rules. Short ones are compiled on trust,
// because nobody notices the wait; long ones have to come back for every thousand of their records.
constexpr size_t kRecordsPerSighting = 1000;
constexpr int64_t kBreakEven = 100;
constexpr int64_t kPatience = 64;  // programs made for structures that did not come back

// Never destroyed: their Python objects must not outlive the interpreter by a destructor at exit.
static std::list<Compiled>& entries = *new std::list<Compiled>;  // most recently seen first
static auto& by_hash = *new std::unordered_multimap<uint64_t, std::list<Compiled>::iterator>;
static int64_t hits = 0, programs = 0, failures = 0, wasted = 0;
static size_t all_bytes = 0;  // of all entries

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
  all_bytes -= last->bytes;
  entries.pop_back();
}

// Counts what an entry keeps, and lets go of the oldest ones if that is too much. The one in use is the first, and stays.
static void weigh(Compiled& c) {
  all_bytes -= c.bytes;
  c.bytes = c.words.size() * sizeof(uint64_t) + (c.function ? c.records * kBytesPerRecord : 0);
  all_bytes += c.bytes;
  while (entries.size() > 1 && (entries.size() > kMostStructures || all_bytes > kMostBytes)) forget_oldest();
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
  entries.emplace_front();
  entries.front().words = s.words;
  for (PyObject* o : s.objects) entries.front().objects.push_back(Ref<>::borrow(o));
  entries.front().seen = 1;
  entries.front().records = s.records;
  by_hash.emplace(h, entries.begin());
  weigh(entries.front());
  return entries.front();
}

// A structure is compiled when it is seen for the second time, unless it is long. A program that throws away its
// programs (its structures keep changing) has to show each of them more often first.
int64_t sightings_needed(size_t records) {
  if (!compiling) return INT64_MAX;
  int64_t needed = first_needed;
  if (needed > 1) needed = std::clamp(int64_t(records / kRecordsPerSighting), needed, kBreakEven);
  for (int64_t w = wasted; w >= kPatience; w /= 2) needed *= 2;
  return needed;
}

bool worth_compiling(const Compiled& c) { return !c.failed && c.seen >= sightings_needed(c.records); }

void note_compiled(Compiled& c, bool success) {
  if (success) {
    ++programs;
  } else {
    ++failures;
    c.failed = true;
  }
  weigh(c);
}

CompileInfo compile_info() { return {int64_t(entries.size()), programs, hits, failures}; }

void clear_compiled() {
  by_hash.clear();
  entries.clear();
  all_bytes = 0;
  hits = programs = failures = wasted = 0;
}

}  // namespace gt
