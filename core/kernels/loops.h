// The inner loops: what a kernel is to the rest of the core. Each file of this folder is
// compiled once for every instruction set (x86-64-v2, v3, v4) and the best one is chosen when
// the module is loaded.
#pragma once
#include <string_view>

#include "../dtype.h"

#define GT_INLINE inline __attribute__((always_inline))

// Has the compiler make vector code of a loop, whose elements do not depend on each other. clang unrolls a
// loop of a known, small number of elements before it looks for vectors in it, and finds none, unless it is
// told not to.
#if defined(__clang__)
#define GT_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#define GT_TWO_AT_ONCE _Pragma("clang loop unroll_count(2)")
#else
#define GT_VECTOR_LOOP _Pragma("omp simd")
#define GT_TWO_AT_ONCE  // blocks are larger there
#endif

namespace gt {

// out[i] = f(in[0][i * step[0]], in[1][i * step[1]], ...) for i < n. A step is 1 (an array) or
// 0 (one element, repeated). out may be one of the arrays, if its elements are not larger than
// that array's. Eager ops and fused programs run the same loops, and an element's result does
// not depend on its place in the array.
using Loop = void (*)(void* out, const void* const* in, const uint8_t* step, int64_t n);

struct Elementwise {
  const char* name;
  int arity;
  Loop loop[kDtypes];  // by the type of the (last) operand; nullptr: not defined for it
  Dtype out[kDtypes];  // type of the result, same index
  double cost;         // nanoseconds an element, roughly
};
const Elementwise* find_elementwise(std::string_view name);

// out[dst] = in[src], converted.
using CastLoop = void (*)(void* out, const void* in, int64_t n);
CastLoop find_cast(Dtype from, Dtype to);

// A reduction over the middle of [outer, size, inner]: the caller gives one outer block.
// `out` has `inner` elements and is written, not added to. Results of 16-bit floats are float.
using ReduceLoop = void (*)(void* out, const void* in, int64_t size, int64_t inner);
struct Reduction {
  const char* name;
  ReduceLoop loop[kDtypes];
  Dtype out[kDtypes];
};
const Reduction* find_reduction(std::string_view name);

// What one file of this folder contributes.
template <class Row> struct Rows {
  const Row* first;
  int count;
};

struct ConvLoops;  // conv.h
struct PoolLoops;
struct NormLoops;        // norms.h
struct AllSoftmaxLoops;  // softmax.h
struct CtcLoops;         // ctc.h
struct PhiloxLoops;      // philox.h
struct ProductLoops;     // products.h
struct FftLoops;         // fft.h
struct ResampleLoops;    // resample.h
struct SparseLoops;      // sparse.h

// The kernels of one instruction set. Plain pointers: each copy of the kernels has types of its
// own (see CMakeLists.txt), equal in layout to those above.
struct KernelSet {
  static constexpr int kFiles = 32;
  Rows<Elementwise> elementwise[kFiles];
  Rows<Reduction> reductions[kFiles];
  CastLoop cast[kDtypes][kDtypes];
  const ConvLoops* conv;   // of float, of double, of bfloat16 (empty: none)
  const PoolLoops* pool;   // by type; without the 16-bit floats
  const NormLoops* norms;  // of float, of double
  const AllSoftmaxLoops* softmax;
  const CtcLoops* ctc;  // of float, of double
  const PhiloxLoops* philox;
  const ProductLoops* products;   // of float, float16, bfloat16, int8; nullptr: none
  const FftLoops* fft;            // of float, of double
  const ResampleLoops* resample;  // of float, of double
  const SparseLoops* sparse;      // by type; without bool and the 16-bit floats
};
const KernelSet& kernels();  // the one in use

}  // namespace gt
