// sin, cos and tan of double.
//
// x = k pi/2 + r: pi/2 in parts of which k times the first are exact (Cody and Waite 1980), r as a pair. That
// holds for |x| < kFarFromDouble; the loops of larger ones go one by one through far_remainder (Payne and
// Hanek, "Radian reduction for trigonometric functions", 1983).
#pragma once
#include "double_base.h"

namespace gt::math {

constexpr double kFarFromDouble = 0x1p20;
[[gnu::always_inline]] inline bool is_far(double x) { return !(size_of(x) < kFarFromDouble); }
constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiRest = 0x1.1a62633145c07p-54;

// x - k pi/2 for whole |k| < 2^20.
[[gnu::always_inline]] inline Pair trig_remainder(double x, double k) {
#if GT_HAS_FMA
  const Pair p = two_product(k, kHalfPiRest), t = two_sum(__builtin_fma(-k, kHalfPi, x), -p.hi);
  return {t.hi, __builtin_fma(k, 0x1.f1976b7ed8fbcp-110, t.lo - p.lo)};
#else
  const Pair t = two_sum(x - k * 0x1.921fb54400000p+0, -(k * 0x1.0b4611a600000p-34));
  const Pair u = two_sum(t.hi, -(k * 0x1.3198a2e000000p-69));
  return {u.hi, (t.lo + u.lo) - k * 0x1.b839a252049c1p-104};
#endif
}
// sin of a pair within pi/2.
[[gnu::always_inline]] inline double sin_of(Pair r) {
  const double z = r.hi * r.hi;
  const double p = polynomial(z, -0x1.5555555555555p-3, 0x1.11111111110dcp-7, -0x1.a01a01a016ef4p-13,
                              0x1.71de3a53fa65cp-19, -0x1.ae6455b858521p-26, 0x1.6124216ba409bp-33,
                              -0x1.ae670f5ea8a29p-41, 0x1.90269e955595cp-49, -0x1.78009facd3d91p-58);
  return r.hi + fused(r.hi * z, p, r.lo * fused(z, -0.5, 1));
}
[[gnu::always_inline]] inline double negated_if(double x, uint64_t odd) {
  return of_bits(bits_of(x) ^ (odd << 63));
}

// One polynomial does: sin(x) = (-1)^n sin(x - n pi), and cos(x) that of x + pi/2.
[[gnu::always_inline]] inline double near_sin(double x) {
  const double shifted = fused(x, 0x1.45f306dc9c883p-2, kWhole);
  const double out = negated_if(sin_of(trig_remainder(x, 2 * (shifted - kWhole))), bits_of(shifted));
  return size_of(x) < 0x1p-27 ? x : out;
}
[[gnu::always_inline]] inline double near_cos(double x) {
  const double shifted = fused(x, 0x1.45f306dc9c883p-2, -0.5) + kWhole;
  const double out =
      negated_if(sin_of(trig_remainder(x, fused(2, shifted - kWhole, 1))), bits_of(shifted) + 1);
  return size_of(x) < 0x1p-27 ? 1.0 : out;
}
// sin and cos of a pair within pi/4.
struct SinCos {
  double sin, cos;
};
[[gnu::always_inline]] inline SinCos sin_cos_of(Pair r) {
  const double z = r.hi * r.hi;
  const double s = polynomial(z, -0x1.5555555555548p-3, 0x1.111111110f759p-7, -0x1.a01a019bf15fbp-13,
                              0x1.71de355e376c2p-19, -0x1.ae5e53bc727a5p-26, 0x1.5d8dfbf440572p-33);
  const double c = polynomial(z, 0x1.555555555554bp-5, -0x1.6c16c16c15049p-10, 0x1.a01a019c971c5p-16,
                              -0x1.27e4f7f88fc53p-22, 0x1.1ee9e1124b43ep-29, -0x1.8fa96665c8ebbp-37);
  const double half = 0.5 * z, first = 1 - half;
  return {r.hi + fused(r.hi * z, s, r.lo), first + (((1 - first) - half) + fused(z * z, c, -(r.hi * r.lo)))};
}
[[gnu::always_inline]] inline double near_tan(double x) {
  const double shifted = fused(x, 0x1.45f306dc9c883p-1, kWhole);
  const SinCos v = sin_cos_of(trig_remainder(x, shifted - kWhole));
  const bool odd = (bits_of(shifted) & 1) != 0;
  const double out = (odd ? -v.cos : v.sin) / (odd ? v.sin : v.cos);
  return size_of(x) < 0x1p-27 ? x : out;
}

// x - n pi/2 for a finite |x| >= 2^20; gives n modulo 4. x = m 2^e with a whole m; of the bits of 2/pi only
// some 192 count, as those before them give multiples of 4, and those behind less than 2^-130.
inline unsigned far_remainder(double x, Pair& r) {
  static constexpr uint64_t kTwoByPi[] = {
      0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
      0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
      0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
      0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};
  using Wide = unsigned __int128;
  const uint64_t bits = bits_of(x), m = (bits & 0x000fffffffffffff) | 0x0010000000000000;
  const int e = int(bits >> 52 & 0x7ff) - 1075, skip = e > 2 ? e - 2 : 0, word = skip / 64, off = skip % 64;
  uint64_t w[3];
  for (int k = 0; k < 3; ++k)
    w[k] = off ? kTwoByPi[word + k] << off | kTwoByPi[word + k + 1] >> (64 - off) : kTwoByPi[word + k];
  // m times the window, four words from the highest on; then so that the quarter turns are the two highest
  // bits of p[1].
  uint64_t p[4];
  Wide carry = 0;
  for (int k = 2; k >= 0; --k) {
    carry += Wide(m) * w[k];
    p[k + 1] = uint64_t(carry);
    carry >>= 64;
  }
  p[0] = uint64_t(carry);
  const int down = 2 - (e - skip);
  if (down)
    for (int k = 3; k > 0; --k) p[k] = p[k] >> down | p[k - 1] << (64 - down);
  unsigned n = unsigned(p[1] >> 62);
  uint64_t a = p[1] << 2 | p[2] >> 62, b = p[2] << 2 | p[3] >> 62, c = p[3] << 2;
  const bool above = a >> 63;  // more than half a quarter turn: from the next one down
  if (above) ++n, a = ~a, b = ~b, c = ~c;
  int zeros = 0;
  if (a == 0) a = b, b = c, c = 0, zeros = 64;
  const int lead = a ? __builtin_clzll(a) : 0;
  if (lead) a = a << lead | b >> (64 - lead), b = b << lead | c >> (64 - lead);
  zeros += lead;
  const double scale = of_bits(uint64_t(1023 - 53 - zeros) << 52), sign = above != (x < 0) ? -scale : scale;
  const double hi = double(a >> 11) * sign, lo = double((a & 0x7ff) << 42 | b >> 22) * 0x1p-53 * sign;
  const Pair q = two_product(hi, kHalfPi);
  r = {q.hi, q.lo + (hi * kHalfPiRest + lo * kHalfPi)};
  return (x < 0 ? 0 - n : n) & 3;
}
// For any x, one by one.
inline double far_sin(double x) {
  Pair r;
  if (!(size_of(x) < kInfinity)) return x - x;
  const unsigned n = far_remainder(x, r);
  const SinCos v = sin_cos_of(r);
  return negated_if(n & 1 ? v.cos : v.sin, n >> 1);
}
inline double far_cos(double x) {
  Pair r;
  if (!(size_of(x) < kInfinity)) return x - x;
  const unsigned n = far_remainder(x, r);
  const SinCos v = sin_cos_of(r);
  return negated_if(n & 1 ? v.sin : v.cos, (n + 1) >> 1);
}
inline double far_tan(double x) {
  Pair r;
  if (!(size_of(x) < kInfinity)) return x - x;
  const unsigned n = far_remainder(x, r);
  const SinCos v = sin_cos_of(r);
  return n & 1 ? -v.cos / v.sin : v.sin / v.cos;
}
inline double sin(double x) { return is_far(x) ? far_sin(x) : near_sin(x); }
inline double cos(double x) { return is_far(x) ? far_cos(x) : near_cos(x); }
inline double tan(double x) { return is_far(x) ? far_tan(x) : near_tan(x); }

}  // namespace gt::math
