// Sine, cosine, tangent and their inverses of float without branches, to 2 units of the last place for every
// float (tools/ulps.py). The coefficients are those of least largest relative error (tools/fit_kernels.py).
#pragma once
#include "fused.h"

namespace gt::math {

// ---- sine, cosine, tangent -----------------------------------------------------------------

// Beyond this, the multiple of pi to subtract has too many digits for `remainder`: far_sin and the others
// follow.
constexpr float kFarFrom = 1e5f;
inline bool is_far(float x) { return size_of(x) > kFarFrom; }

// x - k pi, where pi is the sum of three floats (Cody and Waite 1980, chapter 8). The first product is
// subtracted exactly, since k is near x / pi; the others are rounded once.
#if GT_HAS_FMA
inline float less_multiple_of_pi(float x, float k) {
  const float r = fused(k, -0x1.921fb6p+1f, x);
  return fused(k, 0x1.ee59dap-49f, fused(k, 0x1.777a5cp-24f, r));
}
inline float less_multiple_of_half_pi(float x, float k, float& lost) {
  const float first = fused(k, -0x1.921fb6p+0f, x), second = k * 0x1.777a5cp-25f;
  const float r = first + second, b = r - first;  // Knuth's sum of two
  lost = ((first - (r - b)) + (second - b)) + fused(k, 0x1.ee59dap-50f, fused(k, 0x1.777a5cp-25f, -second));
  return r;
}
#else
inline float less_multiple_of_pi(float x, float k) {  // k has 17 bits, the first constant 34
  return float((double(x) - double(k) * 0x1.921fb544p+1) - double(k) * 0x1.0b4611a626331p-33);
}
inline float less_multiple_of_half_pi(float x, float k, float& lost) {
  const double exact = (double(x) - double(k) * 0x1.921fb544p+0) - double(k) * 0x1.0b4611a626331p-34;
  lost = float(exact - double(float(exact)));
  return float(exact);
}
#endif
// sin(r) for |r| <= pi / 2.
inline float sin_reduced(float r) {
  const float q = r * r, q_lost = rounded_once(r, r, -q);
  float p = 2.605182090e-06f;
  p = fused(p, q, -1.980934612e-04f);
  p = fused(p, q, 8.333062753e-03f);
  p = rounded_once(p, q, -1.666665971e-01f);
  return rounded_once(rounded_once(p, q, p * q_lost), r, r);
}
// Of |x| <= kFarFrom: (-1)^k sin(x - k pi), where adding 1.5 * 2^23 rounds to a whole k and leaves it in the
// low bits.
inline float near_sin(float x) {
  const float shifted = fused(x, 0.318309886f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  const float s = sin_reduced(less_multiple_of_pi(x, k));
  const float out = from_bits(bits_of(s) ^ (bits_of(shifted) << 31));
  return x == 0 ? x : out;
}
// The same with k + 1/2: cos(x) = sin(x + pi / 2).
inline float near_cos(float x) {
  const float shifted = fused(size_of(x), 0.318309886f, 0.5f) + 0x1.8p23f, k = (shifted - 0x1.8p23f) - 0.5f;
  const float s = sin_reduced(less_multiple_of_pi(size_of(x), k));
  return from_bits(bits_of(s) ^ (bits_of(shifted) << 31));
}
// sin / cos, or -cos / sin, of r + lost for |r| <= pi / 4. What the quotient changes by for `lost` and for
// what the cosine lost goes to the sine.
inline float tan_reduced(float r, float lost, uint32_t k) {
  const float q = r * r, q_lost = rounded_once(r, r, -q);
  float s = -1.951201994e-04f;
  s = fused(s, q, 8.332137018e-03f);
  s = fused(s, q, -1.666665375e-01f);
  float c = 2.442942969e-05f;
  c = fused(c, q, -1.388728386e-03f);
  c = fused(c, q, 4.166664556e-02f);
  const float less = fused(c * q, q, -0.5f * q);
  c = 1 + less;
  const float c_lost = fused(-0.5f, q_lost, less - (c - 1));
  const float change = fused(lost, 0.67f * q, lost) - c_lost * fused(r * 0.44f, q, r);
  s = r + fused(s * q, r, change);
  const uint32_t odd = 0u - (k & 1);
  return chosen(odd, c, s) / from_bits(bits_of(chosen(odd, s, c)) ^ (odd & 0x80000000u));
}
inline float near_tan(float x) {
  const float shifted = fused(x, 0.636619772f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  float lost;
  const float r = less_multiple_of_half_pi(x, k, lost), out = tan_reduced(r, lost, bits_of(shifted));
  return x == 0 ? x : out;
}

// x less the nearest multiple k of pi / 2 for any finite x (Payne and Hanek 1983): x is a whole number of 24
// bits times 2^e, and of 2 / pi only the 96 bits matter that neither make a multiple of 4 nor vanish beside
// the result.
inline double far_remainder(float x, uint32_t& k) {
  constexpr uint32_t two_over_pi[] = {0,           0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                      0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
  const uint32_t bits = bits_of(x), whole = (bits & 0x7fffffu) | 0x800000u;
  const int e = int(bits >> 23 & 255) - 150 + 62;  // x = whole * 2^(e - 62)
  const int word = e >> 5, shift = e & 31;
  const uint32_t* w = two_over_pi + word;
  auto part = [&](int j) { return uint32_t((uint64_t(w[j]) << 32 | w[j + 1]) >> (32 - shift)); };
  const uint64_t low = uint64_t(whole) * part(2), middle = uint64_t(whole) * part(1);
  const uint64_t high = uint64_t(whole) * part(0);
  // The sum, in units of 2^-62 of pi / 2, modulo 4.
  const uint64_t sum = (high << 32) + middle + (low >> 32);
  k = uint32_t((sum + (uint64_t(1) << 61)) >> 62);
  const double r = double(int64_t(sum - (uint64_t(k) << 62))) * (0x1p-62 * 1.57079632679489661923);
  if (bits >> 31) k = 0u - k;
  return bits >> 31 ? -r : r;
}
inline float not_finite(float x) { return x - x; }
inline float far_sin(float x) {
  if (!(size_of(x) < __builtin_inff())) return not_finite(x);
  uint32_t k;
  double r = far_remainder(x, k);
  if (k & 1) r = r > 0 ? r - 1.57079632679489661923 : r + 1.57079632679489661923, k += r > 0 ? 3 : 1;
  const float s = sin_reduced(float(r));
  return k & 2 ? -s : s;
}
inline float far_cos(float x) {
  if (!(size_of(x) < __builtin_inff())) return not_finite(x);
  uint32_t k;
  double r = far_remainder(size_of(x), k);
  k += 1;
  if (k & 1) r = r > 0 ? r - 1.57079632679489661923 : r + 1.57079632679489661923, k += r > 0 ? 3 : 1;
  const float s = sin_reduced(float(r));
  return k & 2 ? -s : s;
}
inline float far_tan(float x) {
  if (!(size_of(x) < __builtin_inff())) return not_finite(x);
  uint32_t k;
  const double r = far_remainder(x, k);
  return tan_reduced(float(r), float(r - double(float(r))), k);
}
inline float sin(float x) { return is_far(x) ? far_sin(x) : near_sin(x); }
inline float cos(float x) { return is_far(x) ? far_cos(x) : near_cos(x); }
inline float tan(float x) { return is_far(x) ? far_tan(x) : near_tan(x); }

// ---- their inverses ------------------------------------------------------------------------

// (asin(s) - s) / s for z = s^2 <= 1/4.
inline float asin_rest(float z) {
  float p = 4.216629639e-02f;
  p = fused(p, z, 2.417952195e-02f);
  p = fused(p, z, 4.547037557e-02f);
  p = fused(p, z, 7.495297492e-02f);
  p = fused(p, z, 1.666675210e-01f);
  return p * z;
}
// Above 1/2: asin(y) = pi / 2 - 2 asin(sqrt((1 - y) / 2)). The square root of what is negative makes NaN
// beyond 1.
inline float asin(float x) {
  const float y = size_of(x), z_outer = fused(y, -0.5f, 0.5f);
  const bool inner = y < 0.5f;
  const float z = inner ? y * y : z_outer, s = inner ? y : __builtin_sqrtf(z_outer);
  const float rest = asin_rest(z);
  const float low = fused(rest, s, s);
  const float high = fused(s, -2, 0x1.921fb6p+0f) + fused(rest * s, -2, -0x1.777a5cp-25f);
  const float out = with_sign_of(x, inner ? low : high);
  return y <= 1 ? out : __builtin_nanf("");
}
inline float acos(float x) {
  const float y = size_of(x), z_outer = fused(y, -0.5f, 0.5f);
  const bool inner = y < 0.5f;
  const float z = inner ? y * y : z_outer, s = inner ? x : __builtin_sqrtf(z_outer);
  const float rest = asin_rest(z);
  const float middle = (0x1.921fb6p+0f - s) - fused(rest, s, 0x1.777a5cp-25f);
  const float twice = 2 * fused(rest, s, s);
  const float low = fused(s, -2, 0x1.921fb6p+1f) - fused(rest * s, 2, 0x1.777a5cp-24f);
  const float out = inner ? middle : x < 0 ? low : twice;
  return y <= 1 ? out : __builtin_nanf("");
}

// (atan(r) - r) / r for q = r^2 <= 1.
inline float atan_rest(float q) {
  float p = 2.920691855e-03f;
  p = fused(p, q, -1.636792719e-02f);
  p = fused(p, q, 4.321185872e-02f);
  p = fused(p, q, -7.552213967e-02f);
  p = fused(p, q, 1.066600457e-01f);
  p = fused(p, q, -1.421105564e-01f);
  p = fused(p, q, 1.999377310e-01f);
  p = fused(p, q, -3.333315253e-01f);
  return p * q;
}
// Above 1: pi / 2 - atan(1 / x).
inline float atan(float x) {
  const float y = size_of(x);
  const bool outer = y > 1;
  const float r = outer ? -1 / y : y;
  const float rest = atan_rest(r * r) * r;
  const float out = outer ? (0x1.921fb6p+0f + r) + (rest - 0x1.777a5cp-25f) : r + rest;
  return with_sign_of(x, out);
}
// The angle's size is a + b r', with r the smaller of |x| and |y| over the larger. As C99 has it, zeros and
// infinities have directions too.
inline float atan2(float y, float x) {
  const float ax = size_of(x), ay = size_of(y);
  const bool steep = ay > ax, left = bits_of(x) >> 31;
  const float top = steep ? ax : ay, bottom = steep ? ay : ax;
  float r = top / bottom;
  r = bottom == 0 ? 0 : r;
  r = top == __builtin_inff() ? 1 : r;
  const float rest = atan_rest(r * r) * r;
  // Steep: pi / 2 -+ atan(r); else to the left pi - atan(r), to the right atan(r).
  const float base = steep ? 0x1.921fb6p+0f : left ? 0x1.921fb6p+1f : 0.0f;
  const float base_low = steep ? -0x1.777a5cp-25f : left ? -0x1.777a5cp-24f : 0.0f;
  const uint32_t flip = (steep != left) ? 0x80000000u : 0u;
  const float part = from_bits(bits_of(r) ^ flip), part_rest = from_bits(bits_of(rest) ^ flip);
  const float out = (base + part) + (part_rest + base_low);
  return ax != ax || ay != ay ? __builtin_nanf("") : with_sign_of(y, size_of(out));
}

}  // namespace gt::math
