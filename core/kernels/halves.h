// float16 and bfloat16 to float and back: arrays, blocks in registers, and the loop that takes tiles through
// float.
#pragma once
#include <bit>
#include <cstdint>

#include "loops.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

// Keeps the compiler from making vector code of a loop known to be short.
#if defined(__GNUC__)
#define GT_SHORT_LOOP asm volatile("")
#else
#define GT_SHORT_LOOP
#endif

namespace gt {

void widen(float* out, const half* x, int64_t n);
void widen(float* out, const bfloat* x, int64_t n);
void narrow(half* out, const float* x, int64_t n);
void narrow(bfloat* out, const float* x, int64_t n);

// Hides from the compiler where x comes from: clang moves comparisons of float16 numbers before their
// conversion to float, where it has no vector code for them.
template <class V> [[gnu::always_inline]] inline V opaque(V x) {
#if defined(__clang__)
  asm("" : "+x"(x));
#endif
  return x;
}
// The same for N elements, without a call: what uses them at once has them in registers.
template <int N> [[gnu::always_inline]] inline void widen_block(float* out, const bfloat* x) {
  int i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= N; i += 16) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    _mm512_storeu_si512(out + i,
                        _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, bits), 16));
  }
#endif
  GT_VECTOR_LOOP
  for (int j = i; j < N; ++j) out[j] = float(x[j]);
}
template <int N> [[gnu::always_inline]] inline void widen_block(float* out, const half* x) {
  int j = 0;
#if defined(__AVX512F__)
  for (; j + 16 <= N; j += 16)
    _mm512_storeu_ps(out + j, opaque(_mm512_maskz_cvtph_ps(
                                  0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + j)))));
#endif
#if defined(__F16C__)
  for (; j + 8 <= N; j += 8)
    _mm256_storeu_ps(out + j,
                     opaque(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + j)))));
#endif
  for (; j < N; ++j) {
    GT_SHORT_LOOP;
    out[j] = float(x[j]);
  }
}

#if defined(__AVX512BW__)
// Rounded in the upper halves; a NaN keeps its own and becomes a quiet one. (The instruction for this, of
// AVX512_BF16, makes zeros of numbers below 2^-126.)
[[gnu::always_inline]] inline __m512i round_to_upper(const float* x) {
  const __m512i u = _mm512_loadu_si512(x), bit = _mm512_set1_epi32(0x10000);
  const __mmask16 odd = _mm512_test_epi32_mask(u, bit),
                  nan = _mm512_cmp_ps_mask(_mm512_castsi512_ps(u), _mm512_castsi512_ps(u), _CMP_UNORD_Q);
  __m512i r = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
  r = _mm512_mask_add_epi32(r, odd, u, _mm512_set1_epi32(0x8000));
  return _mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x400000));
}
#endif
template <int N> [[gnu::always_inline]] inline void narrow_block(bfloat* out, const float* x) {
  int i = 0;
#if defined(__AVX512BW__)
  alignas(64) static constexpr uint16_t kUpper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                      23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                      45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  const __m512i upper = _mm512_load_si512(kUpper);
  for (; i + 32 <= N; i += 32)
    _mm512_storeu_si512(out + i,
                        _mm512_permutex2var_epi16(round_to_upper(x + i), upper, round_to_upper(x + i + 16)));
  for (; i + 16 <= N; i += 16)
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(out + i),
        _mm512_maskz_cvtepi32_epi16(0xffff, _mm512_maskz_srli_epi32(0xffff, round_to_upper(x + i), 16)));
#endif
  GT_VECTOR_LOOP
  for (int j = i; j < N; ++j) {
    const uint32_t u = std::bit_cast<uint32_t>(x[j]);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    out[j].bits = uint16_t((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : rounded);
  }
}
template <int N> [[gnu::always_inline]] inline void narrow_block(half* out, const float* x) {
  int i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= N; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
#if defined(__F16C__)
  for (; i + 8 <= N; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < N; ++i) {
    GT_SHORT_LOOP;
    out[i] = half(x[i]);
  }
}

// Runs `loop`, which is one of float, on operands of a 16-bit type. Its results are floats, to
// be narrowed, or truth values.
enum class Result { Float, Bool };
void run_in_float(Loop loop, int arity, Dtype type, Result result, void* out, const void* const* in,
                  const uint8_t* step, int64_t n);

}  // namespace gt
