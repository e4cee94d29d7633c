// Element types: their enum, the two 16-bit floats, and the properties of each type from dtypes.def.
#pragma once
#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>

namespace gt {

enum class Dtype : uint8_t {
#define GT_DTYPE(tag, ...) tag,
#define GT_HELD(tag, ...) tag,
#include "dtypes.def"
};

// IEEE half precision, stored as bits; arithmetic happens in float.
struct half {
  uint16_t bits;
  half() = default;
  half(float f) {  // round to nearest even
    uint32_t x = std::bit_cast<uint32_t>(f), sign = (x >> 16) & 0x8000u;
    x &= 0x7fffffffu;
    if (x >= 0x7f800000u) {
      bits = uint16_t(sign | 0x7c00u | (x > 0x7f800000u ? 0x200u : 0u));
    } else if (x >= 0x477ff000u) {
      bits = uint16_t(sign | 0x7c00u);
    } else if (x < 0x38800000u) {  // subnormal: let the float adder do the rounding
      float r = std::bit_cast<float>(x) + 0.5f;
      bits = uint16_t(sign | (std::bit_cast<uint32_t>(r) - 0x3f000000u));
    } else {
      bits = uint16_t(sign | ((x + 0xfffu + ((x >> 13) & 1u) - 0x38000000u) >> 13));
    }
  }
  operator float() const {
    uint32_t sign = uint32_t(bits & 0x8000u) << 16, mag = uint32_t(bits & 0x7fffu) << 13;
    if (mag >= 0x0f800000u) return std::bit_cast<float>(sign | (mag + 0x70000000u));
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(mag) * 0x1p112f));
  }
};

// The upper half of a float.
struct bfloat {
  uint16_t bits;
  bfloat() = default;
  bfloat(float f) {
    uint32_t x = std::bit_cast<uint32_t>(f);
    if ((x & 0x7fffffffu) > 0x7f800000u)
      bits = uint16_t((x >> 16) | 0x40u);
    else
      bits = uint16_t((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

using c64 = std::complex<float>;
using c128 = std::complex<double>;

// ---- facts ------------------------------------------------------------------------------------

struct DtypeFacts {
  const char* name;
  char kind;
  int size, number;
  const char* format;
  Dtype real;
};
inline constexpr DtypeFacts kDtypeFacts[] = {
#define GT_DTYPE(tag, type, name, kind, number, format, real) \
  {name, kind, sizeof(type), number, format, Dtype::real},
#define GT_HELD(tag, name, kind, number) {name, kind, 0, number, "", Dtype::tag},
#include "dtypes.def"
};
constexpr int kDtypes = sizeof kDtypeFacts / sizeof *kDtypeFacts;
constexpr const DtypeFacts& facts_of(Dtype t) { return kDtypeFacts[int(t)]; }
constexpr int dtype_size(Dtype t) { return facts_of(t).size; }
constexpr const char* dtype_name(Dtype t) { return facts_of(t).name; }
constexpr Dtype real_of(Dtype t) { return facts_of(t).real; }

// A set of element types, one bit each.
using DtypeSet = uint32_t;
constexpr DtypeSet set_of(Dtype t) { return 1u << int(t); }
constexpr DtypeSet set_of_kind(char kind) {
  DtypeSet s = 0;
  for (int t = 0; t < kDtypes; ++t)
    if (kDtypeFacts[t].kind == kind) s |= set_of(Dtype(t));
  return s;
}
constexpr DtypeSet kBool = set_of_kind('b'), kSigned = set_of_kind('i'), kUnsigned = set_of_kind('u');
constexpr DtypeSet kFloat = set_of_kind('f'), kComplex = set_of_kind('c');
constexpr DtypeSet kHalf = set_of(Dtype::F16) | set_of(Dtype::BF16);
constexpr DtypeSet kInt = kSigned | kUnsigned, kReal = kInt | kFloat, kNumber = kReal | kComplex,
                   kAny = kNumber | kBool;
constexpr bool in(Dtype t, DtypeSet s) { return (s >> int(t)) & 1; }
constexpr bool is_float(Dtype t) { return in(t, kFloat); }
constexpr bool is_complex(Dtype t) { return in(t, kComplex); }
constexpr bool is_int(Dtype t) { return in(t, kInt); }
// Types whose values Python holds: a tensor of such a type has no elements that could be read here.
constexpr bool is_held(Dtype t) { return dtype_size(t) == 0; }
// Types a gradient can flow through.
constexpr bool is_differentiable(Dtype t) { return in(t, kFloat | kComplex); }

// The C++ type of an element type, and back.
template <Dtype> struct ElementOf;
template <class T> struct DtypeOf;
#define GT_DTYPE(tag, type, ...)                                   \
  template <> struct ElementOf<Dtype::tag> { using Type = type; }; \
  template <> struct DtypeOf<type> { static constexpr Dtype value = Dtype::tag; };
#include "dtypes.def"

// Throws: a kernel was called with a type whose values Python holds.
[[noreturn]] void no_elements(Dtype t);

// visit(t, f): calls f(T{}) with the C++ type of t.
// clang-format off
template <class F> decltype(auto) visit(Dtype t, F&& f) {
  switch (t) {
#define GT_DTYPE(tag, type, ...) \
  case Dtype::tag: return f(type{});
#define GT_HELD(tag, ...) \
  case Dtype::tag: break;
#include "dtypes.def"
  }
  no_elements(t);
}
// clang-format on

}  // namespace gt
