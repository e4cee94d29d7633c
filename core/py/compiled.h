// The cache of compiled backward passes: a pass of a structure that was seen before runs as a program.
#pragma once
#include "key.h"
#include "program_type.h"

namespace gt {

extern Shared<bool> compiling;  // off: every backward pass runs the Python rules
inline bool compiles() { return compiling && !thread_state().watching; }

struct CompileInfo {
  int64_t structures, programs, hits, failures;
};
CompileInfo compile_info();
void clear_compiled();

// What a backward pass computes, without the values: equal structures have equal programs.
struct Structure {
  Query query;
  std::vector<const Tensor*> inputs;               // the residuals and the cotangents, each once
  std::vector<std::pair<Node*, uint32_t>> owners;  // where the inputs came from, for outer tapes
  size_t records = 0;                              // their number
  bool followed = false;                           // an active tape records the pass
};

// Which results of the program make up the gradient of one source.
struct GradientPlace {
  static constexpr int kNone = -1, kZero = -2;
  int tensor = kNone;
  int indices = -1;  // >= 0: an IndexedSlices with these indices
  Ref<> dense_shape;
};

// What a structure was compiled to. Shared by threads, so immutable.
struct Plan {
  Ref<> function;  // a GraphFunction
  Ref<> program;   // its ProgramObject, if it was lowered
  std::vector<GradientPlace> places;
};

extern PyObject* compiled_lock;  // entries are read and changed in the Section of this object

struct Compiled {
  std::shared_ptr<const Plan> plan;  // once compiled
  int64_t seen = 0, used = 0;
  size_t records = 0, key_bytes = 0;
  Shared<bool> failed = false;
  size_t bytes = 0;        // estimate of its memory
  bool remembered = true;  // it is still in the cache
};

// The entry of a structure (a new one if there was none) and its plan, if it has been compiled. Shared
// pointers, so that they outlive an eviction from the cache.
struct Lookup {
  std::shared_ptr<Compiled> entry;
  std::shared_ptr<const Plan> plan;
};
Lookup remember(const Structure& s);
// Whether to compile an entry that has no program now.
bool worth_compiling(const Compiled& c);
// How often a structure of this many records must be seen before it is compiled.
int64_t sightings_needed(size_t records);
// A pass over more records than this is cut into parts, each compiled on its own: memory and time of the
// compiler do not grow with the length of a tape, and parts of equal structure share a program.
constexpr size_t kMostRecords = 4096;
// Null if it was not compiled yet.
std::shared_ptr<const Plan> plan_of(const Compiled& c);
// Sets the plan, unless another thread has done so.
void give_plan(Compiled& c, std::shared_ptr<const Plan> plan);
// To be called after an attempt to compile an entry.
void note_compiled(Compiled& c, bool success);

}  // namespace gt
