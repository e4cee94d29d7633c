// Philox4x32-10, sixteen groups at a time.
#include "philox.h"

#include <bit>

#include "all.h"

namespace gt {

namespace {

constexpr int kLanes = 16;

// Groups low, low + 1, ...; the counter is high * 2^64 + low. `Put` makes a result of the bits.
template <class T, class Put>
void generate(uint64_t key, uint64_t high, uint64_t low, int64_t groups, T* out, Put put) {
  for (int64_t g = 0; g < groups; g += kLanes) {
    alignas(64) uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      const uint64_t at = low + uint64_t(g) + uint64_t(j), above = high + (at < low);
      c0[j] = uint32_t(at), c1[j] = uint32_t(at >> 32), c2[j] = uint32_t(above),
      c3[j] = uint32_t(above >> 32);
    }
    uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
    for (int round = 0; round < 10; ++round) {
      GT_VECTOR_LOOP
      for (int j = 0; j < kLanes; ++j) {
        const uint64_t p0 = uint64_t(0xD2511F53u) * c0[j], p1 = uint64_t(0xCD9E8D57u) * c2[j];
        c0[j] = uint32_t(p1 >> 32) ^ c1[j] ^ k0;
        c1[j] = uint32_t(p1);
        c2[j] = uint32_t(p0 >> 32) ^ c3[j] ^ k1;
        c3[j] = uint32_t(p0);
      }
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    alignas(64) T last[4 * kLanes];
    T* to = groups - g >= kLanes ? out + 4 * g : last;
    GT_VECTOR_LOOP
    for (int j = 0; j < kLanes; ++j)
      to[4 * j] = put(c0[j]), to[4 * j + 1] = put(c1[j]), to[4 * j + 2] = put(c2[j]),
             to[4 * j + 3] = put(c3[j]);
    if (to == last)
      for (int64_t j = 0; j < 4 * (groups - g); ++j) out[4 * g + j] = last[j];
  }
}

void bits(uint64_t key, uint64_t high, uint64_t low, int64_t groups, uint32_t* out) {
  generate(key, high, low, groups, out, [](uint32_t x) { return x; });
}
// Random bits as the mantissa of a number in [1, 2).
void uniform(uint64_t key, uint64_t high, uint64_t low, int64_t groups, float* out) {
  generate(key, high, low, groups, out,
           [](uint32_t x) { return std::bit_cast<float>(0x3f800000u | (x & 0x7fffffu)) - 1.0f; });
}

template <class T>
void dropout(uint64_t key, uint64_t high, uint64_t low, int64_t n, const T* x, T* out, float rate,
             double scale) {
  const T factor = T(scale);
  constexpr int64_t block = 1024;
  alignas(64) float u[block];
  for (int64_t i = 0; i < n; i += block) {
    const int64_t count = n - i < block ? n - i : block;
    const uint64_t at = low + uint64_t(i / 4);
    uniform(key, high + (at < low), at, (count + 3) / 4, u);
    GT_VECTOR_LOOP
    for (int64_t j = 0; j < count; ++j) out[i + j] = u[j] >= rate ? x[i + j] * factor : T(0);
  }
}

constexpr PhiloxLoops loops{bits, uniform, dropout<float>, dropout<double>};

}  // namespace

const PhiloxLoops* philox_loops() { return &loops; }

}  // namespace gt
