// Conversions between all element types.
#include "all.h"
#include "arith.h"
#include "halves.h"
#include "map.h"

namespace gt {

namespace {

template <class To> inline To from_real(auto x) {
  using From = decltype(x);
  if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (kIsInt<To> && kIsReal<From>) {
    // What does not fit becomes the nearest that does; a bare conversion would be undefined.
    constexpr To least = std::is_signed_v<To> ? To(Wrap<To>(1) << (8 * sizeof(To) - 1)) : To(0), most = To(~least);
    const From y = x > From(least) ? (x < From(most) ? x : From(0)) : From(0);  // NaN: 0
    return x >= From(most) ? most : x <= From(least) ? least : To(y);
  } else {
    return To(x);
  }
}
template <class To, class From> inline To convert(From x) {
  if constexpr (kIsComplex<From>) {
    if constexpr (kIsComplex<To>) return To(typename To::value_type(x.real()), typename To::value_type(x.imag()));
    else if constexpr (std::is_same_v<To, bool>) return x.real() != 0 || x.imag() != 0;
    else return from_real<To>(x.real());
  } else if constexpr (kIsComplex<To>) {
    return To(typename To::value_type(x), 0);
  } else {
    return from_real<To>(x);
  }
}

template <class To, class From> void cast(void* out_, const void* in_, int64_t n) {
  To* out = static_cast<To*>(out_);
  const From* in = static_cast<const From*>(in_);
  constexpr int kTile = 256;
  if constexpr (std::is_same_v<To, From>) {
    __builtin_memmove(out_, in_, size_t(n) * sizeof(To));
  } else if constexpr (kIsHalf<From>) {
    for (int64_t i = 0; i < n; i += kTile) {
      alignas(64) float tile[kTile];
      const int m = int(n - i < kTile ? n - i : kTile);
      widen(tile, in + i, m);
      cast<To, float>(out + i, tile, m);
    }
  } else if constexpr (kIsHalf<To> && std::is_same_v<From, float>) {
    for (int64_t i = 0; i < n; i += kTile) narrow(out + i, in + i, int(n - i < kTile ? n - i : kTile));
  } else if constexpr (kIsHalf<To>) {
    for (int64_t i = 0; i < n; i += kTile) {
      alignas(64) float tile[kTile];
      const int m = int(n - i < kTile ? n - i : kTile);
      cast<float, From>(tile, in + i, m);
      narrow(out + i, tile, m);
    }
  } else {
    constexpr int W = kBlock<std::conditional_t<(sizeof(To) > sizeof(From)), To, From>>;
    int64_t i = 0;
    for (; i + W <= n; i += W) {
      To* o = out + i;
      const From* x = in + i;
#pragma omp simd
      for (int j = 0; j < W; ++j) o[j] = convert<To>(x[j]);
    }
    for (; i < n; ++i) {
      GT_SHORT_LOOP;
      out[i] = convert<To>(in[i]);
    }
  }
}

}  // namespace

void fill_casts(CastLoop (&table)[kDtypes][kDtypes]) {
  each_type<kAny>([&]<class From>() {
    each_type<kAny>([&]<class To>() { table[int(DtypeOf<From>::value)][int(DtypeOf<To>::value)] = cast<To, From>; });
  });
}

}  // namespace gt
