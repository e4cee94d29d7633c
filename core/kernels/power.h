// Powers and the hypotenuse of float without branches, to 2 units of the last place.
#pragma once
#include "fused.h"

namespace gt::math {

// |x|^y = 2^(y log2|x|): the logarithm and its product with y, whose error counts up to 128 times, in double;
// 2^r of the rest in float.
inline float pow(float x, float y) {
  const float inf = __builtin_inff(), size = size_of(x);
  const bool tiny = size < 0x1p-126f;
  const uint32_t off = bits_of(tiny ? size * 0x1p23f : size) - 0x3f3504f3u;  // sqrt(1/2)
  const float e = float(int32_t(off) >> 23) - (tiny ? 23.0f : 0.0f);
  const float f = from_bits((off & 0x7fffffu) + 0x3f3504f3u) - 1;
  // log2(1 + f) = 2 atanh(s) / log(2) with s = f / (2 + f).
  const double s = double(f) / (2 + double(f)), q = s * s;
  double p = 0.340210406833225787;
  p = fused(p, q, 0.411706806751642285);
  p = fused(p, q, 0.577082843873383156);
  p = fused(p, q, 0.961796679234215746);
  p = fused(p, q, 2.88539008177792681);
  const double log = fused(p, s, double(e));
  const double known = size == 0 ? -double(inf) : size < inf ? log : double(size);
  double t = double(y) * known;
  t = t < -160 ? -160 : t;
  t = t > 130 ? 130 : t;  // NaN stays
  const double k = (t + 0x1.8p52) - 0x1.8p52;
  const float r = float(t - k);
  float g = 1.535334159e-04f;
  g = fused(g, r, 1.339890063e-03f);
  g = fused(g, r, 9.618437849e-03f);
  g = fused(g, r, 5.550332367e-02f);
  g = fused(g, r, 2.402264774e-01f);
  g = fused(g, r, 6.931471825e-01f);
  const int32_t power = int32_t(float(k)), half = power >> 1;
  const float first = power_of_two(half);
  float out = fused(g * r, first, first) * power_of_two(power - half);
  // C99, F.9.4.4.
  const bool whole = __builtin_rintf(y) == y, odd = whole && __builtin_rintf(0.5f * y) != 0.5f * y;
  out = y == 0 || (size == 1 && size_of(y) == inf) ? 1 : out;
  out = x < 0 && !whole && size < inf ? __builtin_nanf("") : out;
  out = from_bits(bits_of(out) ^ (odd ? bits_of(x) & 0x80000000u : 0u));
  return x == 1 ? 1 : out;
}

// Squares of what is scaled near 1 neither overflow nor vanish.
inline float hypot(float x, float y) {
  const float inf = __builtin_inff(), a = size_of(x), b = size_of(y), most = a > b ? a : b,
              least = a > b ? b : a;
  const float scale = most > 0x1p60f ? 0x1p-66f : most < 0x1p-40f ? 0x1p86f : 1.0f;
  const float back = most > 0x1p60f ? 0x1p66f : most < 0x1p-40f ? 0x1p-86f : 1.0f;
  const float u = most * scale, v = least * scale, out = __builtin_sqrtf(fused(u, u, v * v)) * back;
  return a == inf || b == inf ? inf : a != a ? a : out;
}

}  // namespace gt::math
