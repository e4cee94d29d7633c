// Philox4x32-10, the counter-based generator of TensorFlow (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", 2011): any group of 128 random bits is a function of a key and its number, so every part of a
// result can be computed separately, on any thread.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "strided.h"

namespace gt {

struct Bits128 {
  uint32_t x[4];
  uint32_t operator[](int i) const { return x[i]; }
};

// A stream: TensorFlow's PhiloxRandom(seed, seed2) has key = seed, high = seed2, low = 0.
struct Philox {
  uint64_t key, high, low;  // the counter is high * 2^64 + low

  Philox skip(uint64_t groups) const {
    uint64_t sum = low + groups;
    return {key, high + (sum < low), sum};
  }
  Bits128 operator()(uint64_t group = 0) const {  // the group with that number, from here
    Philox at = skip(group);
    uint32_t c0 = uint32_t(at.low), c1 = uint32_t(at.low >> 32), c2 = uint32_t(at.high),
             c3 = uint32_t(at.high >> 32);
    uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
    for (int round = 0; round < 10; ++round) {
      uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
      c0 = uint32_t(p1 >> 32) ^ c1 ^ k0, c1 = uint32_t(p1);
      c2 = uint32_t(p0 >> 32) ^ c3 ^ k1, c3 = uint32_t(p0);
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }
};

// The stream of a call: attributes k, k+1 and k+2 (seed, seed2, offset), or an operand `state`
// of type int64[3] with the same three numbers after the `operands` the op has anyway.
inline Philox philox_of(const Call& c, int k, int operands) {
  if (c.n > operands) {
    const int64_t* s = c[operands].as<int64_t>();
    return Philox{uint64_t(s[0]), uint64_t(s[1]), 0}.skip(uint64_t(s[2]));
  }
  uint64_t offset = c.attrs.size() > size_t(k + 2) ? uint64_t(c.integer(k + 2)) : 0;
  return Philox{uint64_t(c.integer(k)), uint64_t(c.integer(k + 1)), 0}.skip(offset);
}
inline void want_state(const Call& c, int operands) {
  if (c.n > operands && (c[operands].dtype != Dtype::I64 || c[operands].numel != 3))
    fail("the state of a random op must be int64[3], got " + c[operands].spec().str());
}

// One 32-bit number after the other.
struct PhiloxSequence {
  Philox from;
  uint64_t group = 0;
  int used = 4;
  Bits128 bits{};
  uint32_t operator()() {
    if (used == 4) bits = from(group++), used = 0;
    return bits[used++];
  }
};

// Numbers in [0, 1): random bits become the mantissa of a number in [1, 2).
inline float to_float(uint32_t x) { return std::bit_cast<float>(0x3f800000u | (x & 0x7fffffu)) - 1.0f; }
inline double to_double(uint32_t x0, uint32_t x1) {
  return std::bit_cast<double>(uint64_t(1023) << 52 | uint64_t(x0 & 0xfffffu) << 32 | x1) - 1.0;
}

inline void sine_cosine(float x, float* s, float* c) {
#if defined(__linux__)
  ::sincosf(x, s, c);
#else
  *s = std::sin(x), *c = std::cos(x);
#endif
}
inline void sine_cosine(double x, double* s, double* c) {
#if defined(__linux__)
  ::sincos(x, s, c);
#else
  *s = std::sin(x), *c = std::cos(x);
#endif
}
// Two normal numbers (Box-Muller), rounded where TensorFlow rounds.
inline void box_muller(uint32_t x0, uint32_t x1, float* f) {
  float u = to_float(x0);
  if (u < 1.0e-7f) u = 1.0e-7f;
  const float angle = float(2.0 * 3.14159265358979323846 * double(to_float(x1)));
  const float radius = std::sqrt(-2.0f * std::log(u));
  sine_cosine(angle, &f[0], &f[1]);
  f[0] *= radius, f[1] *= radius;
}
inline void box_muller(uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3, double* d) {
  double u = to_double(x0, x1);
  if (u < 1.0e-7) u = 1.0e-7;
  const double angle = 2 * 3.14159265358979323846 * to_double(x2, x3);
  const double radius = std::sqrt(-2.0 * std::log(u));
  sine_cosine(angle, &d[0], &d[1]);
  d[0] *= radius, d[1] *= radius;
}

}  // namespace gt
