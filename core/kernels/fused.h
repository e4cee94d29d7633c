// What the elementary functions are made of: products that are added without being rounded, signs,
// pairs.
//
// Whether a compiler contracts a * b + c depends on its flags, and on the compiler. So that is said by name,
// and the files with these functions are compiled without contraction (CMakeLists.txt): results are the same
// from each.
#pragma once
#include <bit>
#include <cstdint>

#include "loops.h"

namespace gt::math {

// Whether the processor multiplies and adds in one step.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__aarch64__)
#define GT_HAS_FMA 1
#else
#define GT_HAS_FMA 0
#endif

#if GT_HAS_FMA
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float rounded_once(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
inline double fused(double a, double b, double c) { return a * b + c; }
// a * b + c for polynomials, whose last steps alone need a product that is not rounded: those take
// rounded_once. A product of floats is exact in double.
inline float fused(float a, float b, float c) { return a * b + c; }
inline float rounded_once(float a, float b, float c) { return float(double(a) * double(b) + double(c)); }
#endif

inline uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
inline float from_bits(uint32_t x) { return std::bit_cast<float>(x); }
inline float size_of(float x) { return from_bits(bits_of(x) & 0x7fffffffu); }
inline float with_sign_of(float x, float size) {
  return from_bits(bits_of(size) | (bits_of(x) & 0x80000000u));
}
// x where `mask` is all ones, y where it is 0: where a compiler would compute both sides of a choice twice,
// or make a branch of it.
inline float chosen(uint32_t mask, float x, float y) {
  return from_bits((bits_of(x) & mask) | (bits_of(y) & ~mask));
}
inline float power_of_two(int32_t e) { return from_bits(uint32_t(e + 127) << 23); }

}  // namespace gt::math
