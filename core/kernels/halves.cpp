// Arrays of 16-bit floats to float and back. Functions that only exist one by one have no loops for them: a
// few hundred elements at a time are widened to float, go through the loop of float, and are rounded back.
#include "halves.h"

namespace gt {

void widen(float* out, const bfloat* x, int64_t n) {
  GT_VECTOR_LOOP
  for (int64_t i = 0; i < n; ++i) out[i] = float(x[i]);
}

void widen(float* out, const half* x, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) widen_block<16>(out + i, x + i);
  for (; i < n; ++i) out[i] = float(x[i]);
}
void narrow(bfloat* out, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) narrow_block<32>(out + i, x + i);
  for (; i < n; ++i) out[i] = bfloat(x[i]);
}
void narrow(half* out, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) narrow_block<16>(out + i, x + i);
  for (; i < n; ++i) out[i] = half(x[i]);
}

namespace {

template <class H>
void run(Loop loop, int arity, Result result, void* out, const void* const* in, const uint8_t* step,
         int64_t n) {
  constexpr int kTile = 256;
  alignas(64) float x[3][kTile], r[kTile];
  const void* p[3] = {x[0], x[1], x[2]};
  for (int k = 0; k < arity; ++k)
    if (!step[k]) x[k][0] = float(*static_cast<const H*>(in[k]));
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = n - i < kTile ? n - i : kTile;
    for (int k = 0; k < arity; ++k)
      if (step[k]) widen(x[k], static_cast<const H*>(in[k]) + i, m);
    if (result == Result::Float) {
      loop(r, p, step, m);
      narrow(static_cast<H*>(out) + i, r, m);
    } else {
      loop(static_cast<bool*>(out) + i, p, step, m);
    }
  }
}

}  // namespace

void run_in_float(Loop loop, int arity, Dtype type, Result result, void* out, const void* const* in,
                  const uint8_t* step, int64_t n) {
  (type == Dtype::F16 ? run<half> : run<bfloat>)(loop, arity, result, out, in, step, n);
}

}  // namespace gt
