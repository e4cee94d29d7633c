// The driver of element-wise kernels: broadcasting, threads, and types.
#pragma once
#include "../kernels/loops.h"
#include "../op.h"

namespace gt {

// Type and shape of the result; throws when the kernel does not exist for the operands.
Spec infer_elementwise(const Elementwise& kernel, const Tensor* const* in);
// `out` has its shape and memory.
void run_elementwise(const Elementwise& kernel, const Tensor* const* in, Tensor& out);
// `out` has its type, shape and memory.
void run_cast(const Tensor& x, Tensor& out);

}  // namespace gt
