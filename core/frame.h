// What one run of a program needs, prepared once and reused by later runs.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "program.h"

namespace gt {

// A call of a loop over elements, with its operands resolved.
struct Prepared {
  Loop loop;
  CastLoop cast;
  char* out;
  const void* in[4];
  uint8_t step[4];
  int32_t n;
  void operator()() const {
    if (cast)
      cast(out, in[0], n);
    else
      loop(out, in, step, n);
  }
};

struct Frame {
  std::vector<Tensor> inputs;                     // Input, Constant and Joined values
  std::vector<std::pair<Tensor*, size_t>> given;  // the Input ones, and which input each is
  std::vector<Outs> outs;                         // results of each step
  std::vector<Tensor*> value;                     // by value number; points into the two above
  std::vector<std::vector<const Tensor*>> in;
  std::vector<std::pair<Tensor*, int64_t>> arena;  // values in the arena and their offsets
  std::vector<std::pair<Tensor*, const Tensor*>> aliases;
  std::vector<std::vector<std::pair<Tensor*, const Tensor*>>> aliases_of;  // those of loose results, by step
  std::vector<Tensor*> fresh, loose;  // results; values that steps may allocate themselves
  std::vector<bool> is_loose;         // the same by value number
  std::vector<bool> taken;            // results with which this run overwrites an input
  Buffer* memory = nullptr;
  std::vector<Tensor> alias_values;
  std::vector<const char*> pointers_in;
  std::vector<char*> pointers_out;
  // The same for clusters that run together: pointers by step, and where those of each step begin.
  std::vector<const Cluster*> together;
  std::vector<const char* const*> begins_in;
  std::vector<char* const*> begins_out;
  // Consecutive short steps run as a line: a list of prepared calls. For each step: the number of steps from
  // it on that make one line (0: none), its first call, and whether an operand gets its memory while the
  // program runs.
  std::vector<uint32_t> line, first;
  std::vector<bool> moves;
  std::vector<Prepared> calls;
  std::vector<char*> registers;     // of the cluster that is being prepared
  std::unique_ptr<char[]> buffers;  // of all short clusters: they run one after the other
  char* buffer = nullptr;           // where these begin
  std::unique_ptr<Frame> next;      // the next idle frame
  ~Frame() { unref(memory); }

  void claim(int64_t arena_bytes) {
    if (!arena_bytes || memory) return;
    memory = allocate(size_t(arena_bytes));
    place();
  }
  void place() {
    for (auto& [t, offset] : arena) t->data = memory ? memory->data + offset : nullptr;
  }
};

// Points `to` at elements that are owned elsewhere, until they are taken back (from: nullptr).
inline void lend(Tensor& to, const Tensor* from) {
  to.buffer = from ? from->buffer : nullptr;
  to.data = from ? from->data : nullptr;
}

}  // namespace gt
