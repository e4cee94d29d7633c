// The cache of compiled backward passes: bounded in entries and bytes. Keys are compared in full, not only by
// hash.
#include "compiled.h"

#include <algorithm>
#include <cstdlib>

namespace gt {

// GRADTAPE_COMPILE=0 turns compilation off; =always, for tests, compiles a structure when it is first seen.
static const std::string setting = std::getenv("GRADTAPE_COMPILE") ? std::getenv("GRADTAPE_COMPILE") : "";
Shared<bool> compiling = setting != "0";
static const int64_t first_needed = setting == "always" ? 1 : 2;

constexpr size_t kMostStructures = 1024, kMostBytes = size_t(1) << 28;
// Memory per record of the graph and program of a pass: measured 1.3 to 1.7 KB.
constexpr size_t kBytesPerRecord = 1536;
// Compiling a pass takes about as long as running its rules a hundred times. A short pass is compiled when it
// is first repeated, since nobody notices the wait; a long one must be seen once per thousand of its records.
constexpr size_t kRecordsPerSighting = 1000;
constexpr int64_t kBreakEven = 100;
constexpr int64_t kPatience = 64;  // programs compiled for structures that were never repeated

// Never destroyed: a destructor at exit would release Python objects after the interpreter has ended.
static auto& cache = *new KeyedCache<std::shared_ptr<Compiled>>;
static int64_t hits = 0, programs = 0, failures = 0;
static Shared<int64_t> wasted = 0;
static size_t all_bytes = 0;  // of all entries

// One thread at a time uses the cache; a Section, because comparing keys runs Python code.
PyObject* compiled_lock = nullptr;

// Updates the size of an entry, and evicts the oldest ones if the total is too large.
static void weigh(Compiled& c) {
  if (!c.remembered) return;
  all_bytes -= c.bytes;
  c.bytes = c.key_bytes + (c.plan ? c.records * kBytesPerRecord : 0);
  all_bytes += c.bytes;
  while (cache.size() > 1 && (cache.size() > kMostStructures || all_bytes > kMostBytes)) {
    const auto entry = cache.pop_oldest();
    const std::shared_ptr<Compiled>& oldest = entry->value;
    oldest->remembered = false;
    all_bytes -= oldest->bytes;
    if (oldest->plan && oldest->used < 2) ++wasted;
  }
}

Lookup remember(const Structure& s) {
  Section here(compiled_lock);
  if (auto entry = cache.find(s.query)) {
    std::shared_ptr<Compiled> c = entry->value;
    ++c->seen;
    if (c->plan) {
      ++hits;
      ++c->used;
    }
    return {c, c->plan};
  }
  auto c = std::make_shared<Compiled>();
  c->seen = 1;
  c->records = s.records;
  c->key_bytes = s.query.words.size() * sizeof(uint64_t);
  for (auto& dead : cache.add(s.query, c)) {
    dead->value->remembered = false;
    all_bytes -= dead->value->bytes;
  }
  weigh(*c);
  return {c, nullptr};
}

// A structure is compiled when it is seen for the second time, unless it is long. When compiled programs keep
// being evicted unused (the structures keep changing), more repetitions are required.
int64_t sightings_needed(size_t records) {
  if (!compiles()) return INT64_MAX;
  int64_t needed = first_needed;
  if (needed > 1) needed = std::clamp(int64_t(records / kRecordsPerSighting), needed, kBreakEven);
  for (int64_t w = wasted; w >= kPatience; w /= 2) needed *= 2;
  return needed;
}

bool worth_compiling(const Compiled& c) {
  Section here(compiled_lock);
  return !c.failed && c.seen >= sightings_needed(c.records);
}

std::shared_ptr<const Plan> plan_of(const Compiled& c) {
  Section here(compiled_lock);
  return c.plan;
}

void give_plan(Compiled& c, std::shared_ptr<const Plan> plan) {
  Section here(compiled_lock);
  if (!c.plan) c.plan = std::move(plan);
}

void note_compiled(Compiled& c, bool success) {
  Section here(compiled_lock);
  if (success) {
    ++programs;
  } else {
    ++failures;
    c.failed = true;
  }
  weigh(c);
}

CompileInfo compile_info() {
  Section here(compiled_lock);
  return {int64_t(cache.size()), programs, hits, failures};
}

void clear_compiled() {
  Section here(compiled_lock);
  auto all = cache.take_all();  // freed last, since that may run any code
  for (auto& e : all) e->value->remembered = false;
  all_bytes = 0;
  hits = programs = failures = 0;
  wasted = 0;
}

}  // namespace gt
