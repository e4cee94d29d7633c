// A cluster: element-wise operations and reductions that run as one loop over tiles, so that what one of them
// computes is still in the cache when the next one reads it.
#pragma once
#include <vector>

#include "kernels/loops.h"
#include "tensor.h"

namespace gt {

// The iteration space of a cluster is [outer, inner]. An operand has that shape, or is broadcast to it.
enum class Broadcast : uint8_t {
  Full,    // outer * inner elements
  Scalar,  // one element
  Row,     // inner elements, the same for every row
  Column,  // outer elements, each repeated along its row; where operations write it: one element a row
};

// A place operations read from or write to while they work on a tile.
struct Register {
  enum class Kind : uint8_t { Input, Output, Scratch } kind;
  Broadcast broadcast = Broadcast::Full;
  uint8_t width;       // bytes an element
  uint32_t index = 0;  // Input, Output: which operand or result; Scratch: which tile buffer
};

// Mean and sum of squared distances from it.
using MomentsLoop = void (*)(const void* x, int64_t n, double* mean, double* squares);

// The sum of x * y.
using ProductLoop = void (*)(const void* x, const void* y, int64_t n, double* sum);

struct ClusterOp {
  // What a call of the loop covers. Where a tile has several rows, operands with one element a row are
  // written out first (Spread), or the loop is called for each row if rows are long enough (EachRow).
  enum class Over : uint8_t { Tile, EachRow, Column, Spread } over = Over::Tile;
  Loop loop = nullptr;            // either an element-wise loop
  CastLoop cast = nullptr;        // or a conversion
  ReduceLoop reduce = nullptr;    // or a reduction of each row to an element of a column
  ProductLoop product = nullptr;  // or of the product of two
  MomentsLoop moments = nullptr;  // or to elements of two columns
  uint16_t out = 0, second = 0;   // second: of moments
  uint16_t in[4] = {};
  uint8_t step[4] = {};
  uint8_t arity = 0;
  bool reduces() const { return reduce || product || moments; }
};

// A reduction of a register over all elements, or over rows; its result is known when all tiles are done.
struct Epilogue {
  enum class Over : uint8_t { All, Rows } over;  // Rows: -> [inner]
  ReduceLoop loop;                               // of the register, and of results
  uint16_t in;
  uint32_t out;   // which result
  uint8_t width;  // bytes an element
};

struct Cluster {
  int64_t outer = 1, inner = 1;
  std::vector<Register> registers;
  std::vector<ClusterOp> ops;
  std::vector<Epilogue> epilogues;
  uint32_t scratch = 0;  // number of tile buffers
  uint8_t widest = 4;    // bytes of the widest element in a tile buffer
  double cost = 1;       // nanoseconds an element, roughly, of all operations together
  // All operations as one loop, if there is one: it covers whole arrays, as a tile or part of one.
  Loop whole = nullptr;
  std::vector<uint16_t> whole_in, whole_out;  // registers of its inputs and results

  // How the space is cut; depends on the shape only.
  int64_t tile_rows = 1;     // rows in a tile, when a tile holds whole rows
  int64_t tile_columns = 0;  // elements in a tile, when a tile is a chunk of a row (or of the flat space)
  int64_t piece = 0;         // elements of a long row that go through several operations at once
  void choose_tiles();       // call once, when everything above is set and checked
  int64_t tiles() const;

  void run(const char* const* inputs, char* const* outputs) const;
  // Whether it is one tile of few elements, read and written in place: running it is one call per operation.
  bool is_short() const;

 private:
  void spread_columns();
  void write_out_columns();
};

constexpr int64_t kShortElements = 256;  // with more, the cost of a call is negligible

// ---- what cluster.cpp and alike.cpp share -------------------------------------------------------

constexpr double kChunkNanoseconds = 20000;  // of work in a chunk
int64_t tile_length(int64_t arrays,
                    int64_t widest);  // elements in a tile that reads and writes `arrays` arrays
char* scratch_memory(size_t bytes);   // this thread's tile buffers; grows to what the largest cluster needs

// Arrays of more bytes than this are read from memory. The operations of a cluster read one array after the
// other, too little of each at a time for the processor's prefetcher: so the next tile is prefetched between
// them. Measured with Adam over 4M elements and two threads: 2.1 ms, 3.2 without.
constexpr int64_t kFetchedBytes = 1 << 23;
inline void fetch(const char* at, int64_t begin, int64_t end) {
#if defined(__GNUC__)
  for (int64_t i = begin; i < end; i += 64) __builtin_prefetch(at + i, 0, 2);
  asm volatile("");  // gcc drops calls of a function that only prefetches: it sees no side effect
#endif
}

// An element-wise operation over `n` elements of each register; `at` points to the registers.
inline void run_operation(const ClusterOp& op, char* const* at, int64_t n) {
  if (op.cast) return op.cast(at[op.out], at[op.in[0]], n);
  const void* in[4];
  for (int k = 0; k < op.arity; ++k) in[k] = at[op.in[k]];
  op.loop(at[op.out], in, op.step, n);
}

// All operations of a cluster that is compiled as a whole (kernels/whole.h), over `n` elements.
inline void run_whole(const Cluster& c, char* const* at, int64_t n) {
  const void* in[32];
  char* out[32];
  for (size_t k = 0; k < c.whole_in.size(); ++k) in[k] = at[c.whole_in[k]];
  for (size_t k = 0; k < c.whole_out.size(); ++k) out[k] = at[c.whole_out[k]];
  c.whole(out, in, nullptr, n);
}

// Whether two clusters have the same operations, on arrays of perhaps different lengths, and are
// element-wise: they read and write whole arrays and single elements, and reduce nothing.
bool alike(const Cluster& a, const Cluster& b);

// Runs clusters that are alike as one loop where they are short: the elements of many go through the
// operations together. `pointers_in[m]` and `pointers_out[m]` are those of cluster `m`.
void run_alike(const Cluster* const* clusters, size_t count, const char* const* const* pointers_in,
               char* const* const* pointers_out);

}  // namespace gt
