// float16 and bfloat16 to float and back, many at a time.
#pragma once
#include <cstdint>

#include "../dtype.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace gt {

inline void widen(float* out, const bfloat* x, int n) {
#pragma omp simd
  for (int i = 0; i < n; ++i) out[i] = float(x[i]);
}
inline void narrow(bfloat* out, const float* x, int n) {
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    const uint32_t u = std::bit_cast<uint32_t>(x[i]);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    out[i].bits = uint16_t((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : rounded);
  }
}

inline void widen(float* out, const half* x, int n) {
  int i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#endif
  for (; i < n; ++i) out[i] = float(x[i]);
}
inline void narrow(half* out, const float* x, int n) {
  int i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) out[i] = half(x[i]);
}

}  // namespace gt
