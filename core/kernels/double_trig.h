// sin, cos and tan of double.
//
// x = k pi/2 + r, with pi/2 split into parts whose products with k are exact (Cody and Waite 1980). The first
// subtraction is exact too, so that r has little more than one rounding error. That holds for |x| <
// kFarFromDouble; larger arguments are reduced one by one by far_remainder (Payne and Hanek, "Radian
// reduction for trigonometric functions", 1983).
#pragma once
#include "double_base.h"

namespace gt::math {

constexpr double kFarFromDouble = 0x1p20;
constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiRest = 0x1.1a62633145c07p-54;

// x - k pi/2 for integers |k| < 2^20.
template <int N> GT_INLINE Doubles<N> less_quarters(Doubles<N> x, Doubles<N> k) {
#if GT_HAS_FMA
  return fused(k, -kHalfPiRest, fused(k, -kHalfPi, x));
#else
  // Multiples of 2^-53, as x is where k is not 0: only the third subtraction rounds. (The fourth changes
  // small remainders.)
  const Doubles<N> t = (x - k * 0x1.921fb544p+0) - k * 0x1.0b46p-34;
  return (t - k * 0x1.1a626330p-54) - k * 0x1.45c06e0e68948p-86;
#endif
}
// sin(r) for |r| <= pi/2.
template <int N> GT_INLINE Doubles<N> sin_of(Doubles<N> r) {
  const Doubles<N> z = r * r;
  const Doubles<N> p = polynomial(z, 0x1.11111111110c9p-7, -0x1.a01a01a014eb2p-13, 0x1.71de3a52aa7cfp-19,
                                  -0x1.ae6454d935f59p-26, 0x1.6123ce42ecba4p-33, -0x1.ae43d805d3dd6p-41,
                                  0x1.883b8b30830f5p-49);
  return fused(r * z, fused(p, z, -0x1.5555555555555p-3), r);
}
// Both need the same polynomial: sin(x) = (-1)^n sin(x - n pi) and cos(x) = sin(x + pi/2), computed of |x|.
template <int N> GT_INLINE Doubles<N> near_sin(Doubles<N> x) {
  const Doubles<N> y = size_of(x), shifted = fused(y, 0x1.45f306dc9c883p-2, kWhole), n = shifted - kWhole;
  return negated_if(of_bits(bits_of(sin_of(less_quarters(y, n + n))) ^ sign_bit(x)), bits_of(shifted));
}
template <int N> GT_INLINE Doubles<N> near_cos(Doubles<N> x) {
  const Doubles<N> y = size_of(x), shifted = fused(y, 0x1.45f306dc9c883p-2, -0.5) + kWhole;
  const Doubles<N> n = shifted - kWhole;
  return negated_if(sin_of(less_quarters(y, n + n + 1)), bits_of(shifted) + 1);
}
// sin and cos of a pair, |r + rest| <= pi/4.
template <int N> struct SinCos { Doubles<N> sin, cos; };
template <int N> GT_INLINE SinCos<N> sin_cos_of(Doubles<N> r, Doubles<N> rest) {
  const Doubles<N> z = r * r;
  const Doubles<N> s = polynomial(z, -0x1.5555555555548p-3, 0x1.111111110f759p-7, -0x1.a01a019bf15fbp-13,
                                  0x1.71de355e376c2p-19, -0x1.ae5e53bc727a5p-26, 0x1.5d8dfbf440572p-33);
  const Doubles<N> c = polynomial(z, 0x1.555555555554bp-5, -0x1.6c16c16c15049p-10, 0x1.a01a019c971c5p-16,
                                  -0x1.27e4f7f88fc53p-22, 0x1.1ee9e1124b43ep-29, -0x1.8fa96665c8ebbp-37);
  const Doubles<N> half = 0.5 * z, first = 1 - half;
  return {r + fused(r * z, s, rest), first + (((1 - first) - half) + fused(z * z, c, -(r * rest)))};
}
// A quotient of polynomials; for odd k its negative reciprocal.
template <int N> GT_INLINE Doubles<N> near_tan(Doubles<N> x) {
  const Doubles<N> y = size_of(x), shifted = fused(y, 0x1.45f306dc9c883p-1, kWhole);
  const Doubles<N> r = less_quarters(y, shifted - kWhole), z = r * r;
  const Doubles<N> n = polynomial(z, -0x1.112b1e343b48fp-3, 0x1.c0e6383e4cb3fp-9, -0x1.2ba7456382f09p-16);
  const Doubles<N> d = polynomial(z, -0x1.ddeae46f72f9dp-2, 0x1.a47900d1a6436p-6, -0x1.46f3aff4959d3p-12,
                                  0x1.0b70e32a14c1cp-21);
  const Doubles<N> top = fused(r * z, n, r), bottom = fused(d, z, 1.0);
  const Bits<N> turned = bits_of(shifted) << 63;
  const Mask<N> odd = signed_of(turned) < 0;
  const Doubles<N> out = pick(odd, bottom, top) / pick(odd, top, bottom);
  return of_bits(bits_of(out) ^ turned ^ sign_bit(x));
}

// x - n pi/2 for a finite |x| >= 2^20; returns n modulo 4. x = m 2^e with an integer m. Only 192 bits of 2/pi
// matter: those before them contribute multiples of 4, and those after them less than 2^-130.
inline unsigned far_remainder(double x, double& hi_part, double& lo_part) {
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
  // m times these bits, four words, the highest first; then shifted so that n is in the two highest bits of
  // p[1].
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
  const bool above = a >> 63;  // the remainder is negative: n is one more
  if (above) ++n, a = ~a, b = ~b, c = ~c;
  int zeros = 0;
  if (a == 0) a = b, b = c, c = 0, zeros = 64;
  const int lead = a ? __builtin_clzll(a) : 0;
  if (lead) a = a << lead | b >> (64 - lead), b = b << lead | c >> (64 - lead);
  zeros += lead;
  const double scale = of_bits(uint64_t(1023 - 53 - zeros) << 52), sign = above != (x < 0) ? -scale : scale;
  const double hi = double(a >> 11) * sign, lo = double((a & 0x7ff) << 42 | b >> 22) * 0x1p-53 * sign;
  const Pair<1> q = two_product(Doubles<1>(hi), Doubles<1>(kHalfPi));
  hi_part = q.hi[0], lo_part = q.lo[0] + (hi * kHalfPiRest + lo * kHalfPi);
  return (x < 0 ? 0 - n : n) & 3;
}
// sin, cos and tan of any x, one by one.
enum class Trig { Sin, Cos, Tan };
template <Trig which> inline double far_trig(double x) {
  if (!(size_of(x) < kInfinity)) return x - x;
  double r, rest;
  const unsigned n = far_remainder(x, r, rest) + (which == Trig::Cos);
  const SinCos<1> v = sin_cos_of(Doubles<1>(r), Doubles<1>(rest));
  const double s = v.sin[0], c = v.cos[0];
  if (which == Trig::Tan) return n & 1 ? -c / s : s / c;
  const double out = n & 1 ? c : s;
  return n & 2 ? -out : out;
}
template <Trig which, int N> GT_INLINE Doubles<N> near_trig(Doubles<N> x) {
  return which == Trig::Sin ? near_sin(x) : which == Trig::Cos ? near_cos(x) : near_tan(x);
}
template <Trig which, int N> GT_RARE Doubles<N> trig_anywhere(Doubles<N> x) {
  const Mask<N> far = !(size_of(x) <= kFarFromDouble);
  Doubles<N> out = near_trig<which>(pick(far, 0.0, x));
  for (int j = 0; j < N * kLanes<double>; ++j)
    if (far[j]) out.set(j, far_trig<which>(x[j]));
  return out;
}
template <Trig which, int N> GT_INLINE Doubles<N> trig(Doubles<N> x) {
  if (any_beyond(x, kFarFromDouble)) [[unlikely]]
    return trig_anywhere<which>(x);
  return near_trig<which>(x);
}
template <int N> GT_INLINE Doubles<N> sin(Doubles<N> x) { return trig<Trig::Sin>(x); }
template <int N> GT_INLINE Doubles<N> cos(Doubles<N> x) { return trig<Trig::Cos>(x); }
template <int N> GT_INLINE Doubles<N> tan(Doubles<N> x) { return trig<Trig::Tan>(x); }

}  // namespace gt::math
