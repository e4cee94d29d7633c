// exp(x) - 1, log(1 + x), the hyperbolic functions and their inverses of float without branches, to 2 units
// of the last place for every float (tools/ulps.py). The coefficients are those of least largest relative
// error (tools/fit_kernels.py). The hyperbolic tangent is in tanherf.h.
#pragma once
#include "explog.h"

namespace gt::math {

// 2^k (exp(r) - 1) + 2^k - 1, where r is a float and what it lacks. All is halved on the way, so that 2^k is
// a float.
inline float expm1(float x) {
  float y = x < -18.0f ? -18.0f : x;  // -1 from -17.4 on
  y = y > 89.0f ? 89.0f : y;          // NaN stays
  const float shifted = fused(y, 1.44269504f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  const float first = fused(k, -0.693359375f, y), r = rounded_once(k, 2.12194440e-4f, first);
  const float lacks = rounded_once(k, 2.12194440e-4f, first - r);
  const float half = from_bits((bits_of(shifted) << 23) + (126u << 23));
  const float rest = fused(expm1_rest(r) * r, r, lacks);
  const float out = 2 * fused(half, rest, fused(half, r, half - 0.5f));
  return size_of(x) < 0x1p-25f ? x : out;
}

// log(u + lacks) + more log(2), where u is a normal number and `lacks` less than its last place.
inline float log_of_pair(float u, float lacks, float more) {
  const uint32_t off = bits_of(u) - 0x3f3504f3u;  // sqrt(1/2)
  const int32_t e = int32_t(off) >> 23;
  const float scale = from_bits(0x3f800000u - (uint32_t(e) << 23));  // 2^-e
  const float m = from_bits((off & 0x7fffffu) + 0x3f3504f3u) - 1, low = lacks * scale;
  const float f = m + low, rest_of_f = (m - f) + low, s = f * f;
  const float k = float(e) + more;
  const float y = fused(k, -2.12194440e-4f, fused(log_rest(f) * f, s, -0.5f * s)) + rest_of_f;
  return fused(k, 0.693359375f, f + y);
}
// Knuth's sum of two: 1 + x is u and what rounding lost.
inline float log1p(float x) {
  const float y = x > 0x1p100f ? 0x1p100f : x, u = 1 + y, b = u - y, lost = (y - (u - b)) + (1 - b);
  const float large = from_bits(0x7f7fffffu);
  const float out = y == 0x1p100f ? log(x < large ? x : large) : log_of_pair(u, lost, 0);
  const float other = x == -1 ? -__builtin_inff() : x < -1 ? __builtin_nanf("") : x;
  return size_of(x) >= 0x1p-25f && x > -1 && x < __builtin_inff() ? out : other;
}

// sinh(r) - r and cosh(r) - 1, for |r| < 0.46.
inline float sinh_rest(float r, float q) {
  float p = 1.995334605e-4f;
  p = fused(p, q, 8.333195932e-3f);
  p = fused(p, q, 1.666666716e-1f);
  return p * q * r;
}
inline float coshm1(float q) {
  float p = 1.397053828e-3f;
  p = fused(p, q, 4.166603088e-2f);
  return fused(p * q, q, 0.5f * q);
}
// The addition theorem with |x| = k log(2) + r: a = sinh(k log(2)) / 2 and b = cosh(k log(2)) / 2 are sums of
// powers of two, halved so that they are floats.
struct Halves {
  float r, lacks, up, down, a, b;
};
inline Halves hyperbolic_parts(float y) {
  const float shifted = fused(y, 1.30f, 0x1.8p23f), whole = shifted - 0x1.8p23f;
  // Far from 0 the factor 1.3 would leave too large an r.
  const float closer = fused(y, 1.44269504f, 0x1.8p23f);
  const float used = whole < 2 ? shifted : closer, k = used - 0x1.8p23f;
  const float first = fused(k, -0.693359375f, y), r = rounded_once(k, 2.12194440e-4f, first);
  const float up = from_bits((bits_of(used) << 23) + (125u << 23));  // 2^k / 4
  const float down = k > 60 ? 0 : from_bits((125u << 23) - (bits_of(used) << 23));
  return {r, rounded_once(k, 2.12194440e-4f, first - r), up, down, up - down, up + down};
}
inline float sinh(float x) {
  float y = size_of(x);
  y = y > 89.45f ? 89.45f : y;  // NaN stays
  const Halves h = hyperbolic_parts(y);
  const float q = h.r * h.r, rest = fused(h.b, sinh_rest(h.r, q) + h.lacks, h.a * coshm1(q));
  const float out = 2 * (fused(h.b, h.r, h.a) + rest);
  return y < 0x1p-12f ? x : with_sign_of(x, out);
}
inline float cosh(float x) {
  float y = size_of(x);
  y = y > 89.45f ? 89.45f : y;
  const Halves h = hyperbolic_parts(y);
  const float q = h.r * h.r, rest = fused(h.a, sinh_rest(h.r, q) + h.lacks, h.b * coshm1(q));
  return 2 * (fused(h.a, h.r, h.up) + (rest + h.down));  // b may have a bit too many
}

// log(y + sqrt(y^2 + 1)) = log(1 + w) with w = y + y^2 / (1 + sqrt(1 + y^2)); for large y, log(2 y).
inline float asinh(float x) {
  const float y = size_of(x);
  const bool large = y > 0x1p13f;
  const float z = large ? 0 : y, s = __builtin_sqrtf(fused(z, z, 1)), d = z * z / (1 + s);
  const float w = z + d, w_lost = (z - w) + d, u = 1 + w, b = u - w,
              lost = ((w - (u - b)) + (1 - b)) + w_lost;
  const float out = log_of_pair(large ? y * 0x1p-20f : u, large ? 0 : lost, large ? 21.0f : 0.0f);
  return y < 0x1p-12f || !(y < __builtin_inff()) ? x : with_sign_of(x, out);
}
// log(x + sqrt(x^2 - 1)) = log(1 + w) with t = x - 1, w = t + sqrt(t (t + 2)).
inline float acosh(float x) {
  const bool large = x > 0x1p13f;
  const float t = (large ? 1 : x) - 1, s = __builtin_sqrtf(fused(t, t, 2 * t));
  const float w = s + t, w_lost = t - (w - s), u = 1 + w, b = u - w,
              lost = ((w - (u - b)) + (1 - b)) + w_lost;
  const float out = log_of_pair(large ? x * 0x1p-20f : u, large ? 0 : lost, large ? 21.0f : 0.0f);
  return x < 1 ? __builtin_nanf("") : x < __builtin_inff() ? out : x;
}
// With 2^e near (1 + y) / (1 - y), atanh(y) = e log(2) / 2 + atanh(s), where (1 + s) / (1 - s) is what is
// left of that: s is y itself, exactly, where e is 0. Close to 1, where 1 + 2^e does not fit into a float, 1
// - y is exact.
inline float atanh(float x) {
  const float y = size_of(x), sum = 1 + y, difference = 1 - y;
  const int32_t e = int32_t(bits_of(sum) - bits_of(difference) + 0x400000u) >> 23;
  const float k = float(e), two = power_of_two(e), scaled_difference = two * difference;
  const bool close = e > 20;
  const float top = close ? sum - scaled_difference : rounded_once(y, 1 + two, 1 - two);
  const float bottom = close ? sum + scaled_difference : rounded_once(y, 1 - two, 1 + two);
  const float s = top / bottom, q = s * s;
  float p = 1.208063811e-1f;
  p = fused(p, q, 1.425142586e-1f);
  p = fused(p, q, 2.000047415e-1f);
  p = fused(p, q, 3.333333135e-1f);
  const float out = fused(k, 0.3466796875f, s + fused(p * q, s, k * -1.06097220e-4f));
  const float known = y < 1 ? out : y == 1 ? __builtin_inff() : __builtin_nanf("");
  return with_sign_of(x, known);
}

}  // namespace gt::math
