// float16 and bfloat16 to float and back, and the loop that takes them through float.
#pragma once
#include <cstdint>

#include "loops.h"

namespace gt {

void widen(float* out, const half* x, int64_t n);
void widen(float* out, const bfloat* x, int64_t n);
void narrow(half* out, const float* x, int64_t n);
void narrow(bfloat* out, const float* x, int64_t n);

// Runs `loop`, which is one of float, on operands of a 16-bit type. Its results are floats, to
// be narrowed, or truth values.
enum class Result { Float, Bool };
void run_in_float(Loop loop, int arity, Dtype type, Result result, void* out, const void* const* in,
                  const uint8_t* step, int64_t n);

}  // namespace gt
