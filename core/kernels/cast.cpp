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
    constexpr To least = std::is_signed_v<To> ? To(Wrap<To>(1) << (8 * sizeof(To) - 1)) : To(0),
                 most = To(~least);
    const From y = x > From(least) ? (x < From(most) ? x : From(0)) : From(0);  // NaN: 0
    return x >= From(most) ? most : x <= From(least) ? least : To(y);
  } else {
    return To(x);
  }
}
template <class To, class From> inline To convert(From x) {
  if constexpr (kIsComplex<From>) {
    if constexpr (kIsComplex<To>)
      return To(typename To::value_type(x.real()), typename To::value_type(x.imag()));
    else if constexpr (std::is_same_v<To, bool>)
      return x.real() != 0 || x.imag() != 0;
    else
      return from_real<To>(x.real());
  } else if constexpr (kIsComplex<To>) {
    return To(typename To::value_type(x), 0);
  } else {
    return from_real<To>(x);
  }
}

template <class To, class From> void cast(void* out_, const void* in_, int64_t n) {
  To* out = static_cast<To*>(out_);
  const From* in = static_cast<const From*>(in_);
  constexpr int W = kBlock<std::conditional_t<(sizeof(To) > sizeof(From)), To, From>>;
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    To* o = out + i;
    const From* x = in + i;
    GT_VECTOR_LOOP
    for (int j = 0; j < W; ++j) o[j] = convert<To>(x[j]);
  }
  for (; i < n; ++i) {
    GT_SHORT_LOOP;
    out[i] = convert<To>(in[i]);
  }
}

template <int size> void copy(void* out, const void* in, int64_t n) {
  __builtin_memmove(out, in, size_t(n) * size);
}

// Converts in two steps, a tile of Middle at a time: rare pairs of types have no loop of their own.
template <class Middle>
void through(CastLoop first, CastLoop second, int from, int to, void* out, const void* in, int64_t n) {
  constexpr int kTile = 256;
  alignas(64) Middle tile[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = n - i < kTile ? n - i : kTile;
    first(tile, static_cast<const char*>(in) + i * from, m);
    second(static_cast<char*>(out) + i * to, tile, m);
  }
}
// The type between From and To, or To where one step is enough: float for the 16-bit floats, the type of the
// real part for complex numbers.
template <class To, class From> constexpr auto middle_of() {
  if constexpr (kIsHalf<From> || (kIsHalf<To> && !std::is_same_v<From, float>))
    return float();
  else if constexpr (kIsComplex<From> && !kIsComplex<To> && !std::is_same_v<To, bool>)
    return typename From::value_type();
  else if constexpr (kIsComplex<To> && !kIsComplex<From>)
    return std::conditional_t<std::is_same_v<From, typename To::value_type>, To, typename To::value_type>();
  else
    return To();
}

// Which loop converts From to To. Integers only differ in size when the result is no wider.
template <class To, class From> constexpr CastLoop loop_of() {
  using Middle = decltype(middle_of<To, From>());
  if constexpr (std::is_same_v<To, From> || (kIsInt<To> && kIsInt<From> && sizeof(To) == sizeof(From))) {
    return copy<sizeof(To)>;
  } else if constexpr (!std::is_same_v<Middle, To>) {
    return [](void* out, const void* in, int64_t n) {
      through<Middle>(loop_of<Middle, From>(), loop_of<To, Middle>(), sizeof(From), sizeof(To), out, in, n);
    };
  } else if constexpr (kIsHalf<From>) {
    return [](void* out, const void* in, int64_t n) {
      widen(static_cast<float*>(out), static_cast<const From*>(in), n);
    };
  } else if constexpr (kIsHalf<To>) {
    return [](void* out, const void* in, int64_t n) {
      narrow(static_cast<To*>(out), static_cast<const float*>(in), n);
    };
  } else if constexpr (kIsInt<To> && std::is_signed_v<To> && kIsInt<From>) {
    return loop_of<std::make_unsigned_t<To>, From>();
  } else if constexpr (kIsInt<To> && kIsInt<From> && std::is_signed_v<From> && sizeof(To) < sizeof(From)) {
    return loop_of<To, std::make_unsigned_t<From>>();
  } else {
    return cast<To, From>;
  }
}

constexpr auto table = [] {
  struct {
    CastLoop loop[kDtypes][kDtypes];
  } t{};
  each_type<kAny>([&]<class From>() {
    each_type<kAny>([&]<class To>() {
      t.loop[int(DtypeOf<From>::value)][int(DtypeOf<To>::value)] = loop_of<To, From>();
    });
  });
  return t;
}();

}  // namespace

void fill_casts(CastLoop (&out)[kDtypes][kDtypes]) { __builtin_memcpy(out, table.loop, sizeof out); }

}  // namespace gt
