// tanh and erf of float without branches, as explog.h has exp and log, to 2 units of the last place for every
// float (tools/ulps.py looks at all of them). The coefficients are those of least largest relative error
// (tools/fit_kernels.py).
#pragma once
#include "explog.h"

namespace gt::math {

// The addition theorem with y = k log(2) / 2 + r: tanh(k log(2) / 2) is a / b for a = 2^k - 1 and b = 2^k +
// 1, so tanh(y) = (t b + a) / (t a + b) for t = tanh(r), a polynomial. Near 1 the roundings of both count
// fully, and it is 1 + 2 (t - 1) / (t a + b), which they hardly change. k comes from a factor below 2 /
// log(2): its steps then lie where the result is just above a power of two, and roundings count least.
inline float tanh(float x) {
  float y = size_of(x);
  y = y > 9.1f ? 9.1f : y;                                                      // 1 from 9.02 on; NaN stays
  const float shifted = fused(y, 2.7307f, 0x1.8p23f), k = shifted - 0x1.8p23f;  // as in exp
  const uint32_t bits = std::bit_cast<uint32_t>(shifted);
  const float r = rounded_once(k, -0.346573591f, y), q = r * r;
  float t = -5.194368213e-02f;
  t = fused(t, q, 1.332757324e-01f);
  t = fused(t, q, -3.333328664e-01f);
  t = rounded_once(t, q * r, r);
  const float half = std::bit_cast<float>((bits << 23) + 0x3f000000u), a = half - 0.5f, b = half + 0.5f;
  // A mask where k > 2. The compiler makes two divisions of a choice by comparison.
  const uint32_t near_1 = uint32_t(int32_t(std::bit_cast<uint32_t>(0x1.8p23f) + 2 - bits) >> 31);
  const float top = std::bit_cast<float>((std::bit_cast<uint32_t>(t - 1) & near_1) |
                                         (std::bit_cast<uint32_t>(rounded_once(t, b, a)) & ~near_1));
  return with_sign_of(x, top / rounded_once(t, a, b) + std::bit_cast<float>(near_1 & 0x3f800000u));
}

// 1 - exp(-m), where m = -log(erfc(y)) is a polynomial; it is y (1 + m / y - 1), the first digits being
// exact.
inline float erf(float x) {
  float y = size_of(x);
  y = y > 4 ? 4 : y;  // 1 from 3.92 on; NaN stays
  float m = -9.255905752e-06f;
  m = fused(m, y, 1.176379083e-04f);
  m = fused(m, y, -6.328242598e-04f);
  m = fused(m, y, 1.667003031e-03f);
  m = fused(m, y, -1.603699056e-04f);
  m = fused(m, y, -1.915307902e-02f);
  m = fused(m, y, 1.027778387e-01f);
  m = fused(m, y, 6.366193891e-01f);
  m = fused(m, y, 1.283791661e-01f);
  m = rounded_once(m, y, y);
  // exp(-m) - 1 = 2^k (p + 1) - 1 with p = exp(r) - 1.
  const float shifted = fused(m, -1.44269504f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  const float r = rounded_once(k, -0.693147182f, -m);
  float p = 1.388250384e-03f;
  p = fused(p, r, 8.366581053e-03f);
  p = fused(p, r, 4.166720062e-02f);
  p = fused(p, r, 1.666654348e-01f);
  p = fused(p, r, 4.999999702e-01f);
  p = fused(p, r * r, r);
  const float power = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + 0x3f800000u);
  return with_sign_of(x, rounded_once(-power, p, 1 - power));
}

// For y = |x|, erfc(y) = exp(-y^2) t Q(t) with t = 1 / (1 + 3/8 y), after Shepherd and Laframboise 1981. The
// steps whose roundings count fully are in double: t, the last of Q, the remainder of y^2, the product.
inline float erfc(float x) {
  float y = size_of(x);
  y = y > 10.5f ? 10.5f : y;  // 0 from 10.06 on; NaN stays
  const double wide = y, d = 0.375 * wide + 1;
  const float t = 1 / float(d);
  const double u = double(t) * (2 - d * double(t));  // a step of Newton's
  float p = 6.142714620e-02f;
  p = fused(p, t, -2.868046463e-01f);
  p = fused(p, t, 4.313449264e-01f);
  p = fused(p, t, -2.282422036e-01f);
  p = fused(p, t, 2.729372978e-01f);
  double ratio = fused(u, double(p), 1.218321621e-01);
  ratio = fused(ratio, u, 2.052315623e-01);
  ratio = fused(ratio, u, 2.106609344e-01);
  ratio = fused(ratio, u, 2.116128206e-01) * u;
  const float shifted = fused(y * y, -1.44269504f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  const float e = expm1_small(float(-(wide * wide) - double(k) * 0.69314718055994531));
  const int32_t power = int32_t(bits_of(shifted) - bits_of(0x1.8p23f)), half = power >> 1;
  const float tail = float(fused(ratio, double(e), ratio)) * power_of_two(half) * power_of_two(power - half);
  return x < 0 ? 2 - tail : tail;
}

}  // namespace gt::math
