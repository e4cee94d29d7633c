// Reductions over any set of axes, for the ops of this folder.
#pragma once
#include "../kernels/loops.h"
#include "../op.h"

namespace gt {

// The shape of a reduction over the axes in `mask` (a bit each).
Shape reduced_shape(const Shape& x, uint32_t mask, bool keepdims);
// The axes of attribute `k` as a mask; throws on a wrong or repeated axis.
uint32_t axes_mask(const Call& c, int k, const Shape& x);

// What to compute: `first` of the elements, then `again` of partial results.
struct ReduceOp {
  const Reduction *first, *again;
  bool mean = false;
};
// `out` has its memory and as many elements as the reduction of x over `mask`.
void run_reduce(const ReduceOp& op, const Tensor& x, uint32_t mask, Tensor& out);

}  // namespace gt
