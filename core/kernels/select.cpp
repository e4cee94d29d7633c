// Functions of three operands, and copying.
#include "all.h"
#include "arith.h"
#include "map.h"

namespace gt {

namespace {

// Selecting and copying know the size of an element only.
struct Wide {
  uint64_t x, y;
};
template <int size> struct BitsOf;
template <> struct BitsOf<1> { using Type = uint8_t; };
template <> struct BitsOf<2> { using Type = uint16_t; };
template <> struct BitsOf<4> { using Type = uint32_t; };
template <> struct BitsOf<8> { using Type = uint64_t; };
template <> struct BitsOf<16> { using Type = Wide; };

// A mask of bits where the compiler makes branches of a choice between wide elements.
struct Choose {
  template <class B> B operator()(uint8_t c, B x, B y) const {
    if constexpr (sizeof(B) == 8) {
      const B mask = B(0) - B(c != 0);
      return (x & mask) | (y & ~mask);
    } else {
      return c ? x : y;
    }
  }
};
constexpr auto same_bits = [](auto x) { return x; };

constexpr Elementwise select_row() {
  Elementwise r{"select", 3, {}, {}, 0.2};
  each_type<kAny>([&]<class T>() {
    using B = typename BitsOf<sizeof(T)>::Type;
    const Dtype t = DtypeOf<T>::value;
    r.loop[int(t)] = map3<Choose, B, uint8_t, B, B>;
    r.out[int(t)] = t;
  });
  return r;
}
constexpr Elementwise copy_row(const char* name) {
  Elementwise r{name, 1, {}, {}, 0.1};
  each_type<kAny>([&]<class T>() {
    using B = typename BitsOf<sizeof(T)>::Type;
    const Dtype t = DtypeOf<T>::value;
    r.loop[int(t)] = map1<decltype(same_bits), B, B, Way::Cheap>;
    r.out[int(t)] = t;
  });
  return r;
}

constexpr Elementwise table[] = {
    select_row(),
    copy_row("copy"),
    copy_row("identity"),
    // Comparisons with NaN are false, so NaN passes. Of bounds that cross, the lower one holds.
    ternary<kReal>("clip", 0.1,
                   [](auto x, auto lo, auto hi) {
                     auto y = x > hi ? hi : x;
                     return y < lo ? lo : y;
                   }),
    ternary<kFloat>("leaky_relu_grad", 0.2, [](auto x, auto alpha, auto g) { return x > 0 ? g : alpha * g; }),
    signed_too(ternary<kNumberBits>("fma", 0.1, [](auto x, auto y, auto z) { return add(mul(x, y), z); })),
};

}  // namespace

Rows<Elementwise> select_rows() { return rows_of(table); }

}  // namespace gt
