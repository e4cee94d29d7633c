// Backward passes that were seen before run as programs. This is where they are recognised.
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
  size_t records = 0;                              // how many it has
  bool followed = false;                           // an active tape wants to follow the pass
};

// Where among the results of the program the gradient of one source is.
struct GradientPlace {
  static constexpr int kNone = -1, kZero = -2;
  int tensor = kNone;
  int indices = -1;  // >= 0: an IndexedSlices with these indices
  Ref<> dense_shape;
};

// What a structure was compiled to. Threads share it, so it does not change.
struct Plan {
  Ref<> function;  // a GraphFunction
  Ref<> program;   // its ProgramObject, if it was lowered
  std::vector<GradientPlace> places;
};

extern PyObject* compiled_lock;  // the object whose section whoever reads or changes entries is in

struct Compiled {
  std::shared_ptr<const Plan> plan;  // once compiled
  int64_t seen = 0, used = 0;
  size_t records = 0, key_bytes = 0;
  Shared<bool> failed = false;
  size_t bytes = 0;        // what it keeps in memory, roughly
  bool remembered = true;  // it is still in the cache
};

// The entry of a structure, made when it is new, and what it was compiled to, if it was. Whoever holds it may
// run any code while the cache forgets it.
struct Found {
  std::shared_ptr<Compiled> entry;
  std::shared_ptr<const Plan> plan;
};
Found remember(const Structure& s);
// Whether an entry that has no program should get one now.
bool worth_compiling(const Compiled& c);
// How often a structure of this many records must be seen before it is compiled.
int64_t sightings_needed(size_t records);
// A pass over more records is made in parts of at most this many, each compiled on its own: memory and time
// of the compiler do not grow with the length of a tape, and parts that are alike share a program.
constexpr size_t kMostRecords = 4096;
// What it was compiled to, if it was.
std::shared_ptr<const Plan> plan_of(const Compiled& c);
// Gives it a program, unless another thread was faster.
void give_plan(Compiled& c, std::shared_ptr<const Plan> plan);
// Call when an entry was given a program or a function, or could not be.
void note_compiled(Compiled& c, bool success);

}  // namespace gt
