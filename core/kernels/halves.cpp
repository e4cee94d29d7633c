// The 16-bit floats. They have no kernels of their own: a few hundred elements at a time are
// widened to float, go through the loop of float, and are rounded back.
#include "halves.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace gt {

void widen(float* out, const bfloat* x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = float(x[i]);
}

#if defined(__AVX512BW__)
// Rounded in the upper halves; a NaN keeps its own and becomes a quiet one. (The instruction for this, of
// AVX512_BF16, makes zeros of numbers below 2^-126.)
static inline __m512i round_to_upper(const float* x) {
  const __m512i u = _mm512_loadu_si512(x), bit = _mm512_set1_epi32(0x10000);
  const __mmask16 odd = _mm512_test_epi32_mask(u, bit),
                  nan = _mm512_cmp_ps_mask(_mm512_castsi512_ps(u), _mm512_castsi512_ps(u), _CMP_UNORD_Q);
  __m512i r = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
  r = _mm512_mask_add_epi32(r, odd, u, _mm512_set1_epi32(0x8000));
  return _mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x400000));
}
#endif

void narrow(bfloat* out, const float* x, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512BW__)
  alignas(64) static constexpr uint16_t kUpper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                      23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                      45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  const __m512i upper = _mm512_load_si512(kUpper);
  for (; i + 32 <= n; i += 32)
    _mm512_storeu_si512(out + i,
                        _mm512_permutex2var_epi16(round_to_upper(x + i), upper, round_to_upper(x + i + 16)));
#endif
#pragma omp simd
  for (int64_t j = i; j < n; ++j) {
    const uint32_t u = std::bit_cast<uint32_t>(x[j]);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    out[j].bits = uint16_t((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : rounded);
  }
}

void widen(float* out, const half* x, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#endif
  for (; i < n; ++i) out[i] = float(x[i]);
}

void narrow(half* out, const float* x, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
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
