// Element types: the enum every other file switches on, the two 16-bit floats, and sets of types.
#pragma once
#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>

namespace gt {

// The order is part of the interface with gradtape/_src/base/dtypes.py.
enum class Dtype : uint8_t { Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, C64, C128 };
constexpr int kDtypes = 15;

constexpr int dtype_size(Dtype t) {
  constexpr int sizes[kDtypes] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return sizes[int(t)];
}
constexpr const char* dtype_name(Dtype t) {
  constexpr const char* names[kDtypes] = {"bool",   "int8",    "int16",    "int32",   "int64",   "uint8",     "uint16",    "uint32",
                                          "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};
  return names[int(t)];
}

// A set of element types, one bit each.
using DtypeSet = uint32_t;
constexpr DtypeSet set_of(Dtype t) { return 1u << int(t); }
constexpr DtypeSet kBool = 1, kSigned = 0x1e, kUnsigned = 0x1e0, kInt = kSigned | kUnsigned;
constexpr DtypeSet kHalf = set_of(Dtype::F16) | set_of(Dtype::BF16);
constexpr DtypeSet kFloat = kHalf | set_of(Dtype::F32) | set_of(Dtype::F64);
constexpr DtypeSet kComplex = set_of(Dtype::C64) | set_of(Dtype::C128);
constexpr DtypeSet kNumber = kInt | kFloat | kComplex, kReal = kInt | kFloat, kAny = kNumber | kBool;
constexpr bool in(Dtype t, DtypeSet s) { return (s >> int(t)) & 1; }
constexpr bool is_float(Dtype t) { return in(t, kFloat); }
constexpr bool is_complex(Dtype t) { return in(t, kComplex); }
constexpr bool is_int(Dtype t) { return in(t, kInt); }
// Types a gradient can flow through.
constexpr bool is_differentiable(Dtype t) { return in(t, kFloat | kComplex); }

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

// The C++ type of an element type, and back.
template <Dtype> struct ElementOf;
template <class T> struct DtypeOf;
#define GT_DTYPE(tag, type)                                            \
  template <> struct ElementOf<Dtype::tag> { using Type = type; };     \
  template <> struct DtypeOf<type> { static constexpr Dtype value = Dtype::tag; };
GT_DTYPE(Bool, bool)
GT_DTYPE(I8, int8_t) GT_DTYPE(I16, int16_t) GT_DTYPE(I32, int32_t) GT_DTYPE(I64, int64_t)
GT_DTYPE(U8, uint8_t) GT_DTYPE(U16, uint16_t) GT_DTYPE(U32, uint32_t) GT_DTYPE(U64, uint64_t)
GT_DTYPE(F16, half) GT_DTYPE(BF16, bfloat) GT_DTYPE(F32, float) GT_DTYPE(F64, double)
GT_DTYPE(C64, c64) GT_DTYPE(C128, c128)
#undef GT_DTYPE

// visit(t, f): calls f(T{}) with the C++ type of t.
template <class F> decltype(auto) visit(Dtype t, F&& f) {
  switch (t) {
    case Dtype::Bool: return f(bool{});
    case Dtype::I8: return f(int8_t{});
    case Dtype::I16: return f(int16_t{});
    case Dtype::I32: return f(int32_t{});
    case Dtype::I64: return f(int64_t{});
    case Dtype::U8: return f(uint8_t{});
    case Dtype::U16: return f(uint16_t{});
    case Dtype::U32: return f(uint32_t{});
    case Dtype::U64: return f(uint64_t{});
    case Dtype::F16: return f(half{});
    case Dtype::BF16: return f(bfloat{});
    case Dtype::F32: return f(float{});
    case Dtype::F64: return f(double{});
    case Dtype::C64: return f(c64{});
    default: return f(c128{});
  }
}

}  // namespace gt
