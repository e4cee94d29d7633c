// CRC-32C: by the processor's own instruction where it has one, else eight bytes at a time by tables.
#include "checksum.h"

#include <array>
#include <cstring>

namespace gt {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // bits in reverse order

// tables[k][byte]: what a byte, followed by k zero bytes, does to the remainder.
using Tables = std::array<std::array<uint32_t, 256>, 8>;
Tables make_tables() {
  Tables t;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t r = byte;
    for (int bit = 0; bit < 8; ++bit) r = r >> 1 ^ (r & 1 ? kPolynomial : 0);
    t[0][byte] = r;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte) t[k][byte] = t[k - 1][byte] >> 8 ^ t[0][t[k - 1][byte] & 255];
  return t;
}

uint32_t by_tables(uint32_t r, const unsigned char* p, size_t n) {
  static const Tables t = make_tables();
  for (; n >= 8; p += 8, n -= 8) {
    r ^= uint32_t(p[0]) | uint32_t(p[1]) << 8 | uint32_t(p[2]) << 16 | uint32_t(p[3]) << 24;
    r = t[7][r & 255] ^ t[6][r >> 8 & 255] ^ t[5][r >> 16 & 255] ^ t[4][r >> 24] ^ t[3][p[4]] ^ t[2][p[5]] ^
        t[1][p[6]] ^ t[0][p[7]];
  }
  for (; n; ++p, --n) r = t[0][(r ^ *p) & 255] ^ r >> 8;
  return r;
}

#if defined(__x86_64__)
[[gnu::target("sse4.2,crc32")]] uint32_t by_instruction(uint32_t r, const unsigned char* p, size_t n) {
  uint64_t wide = r;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  r = uint32_t(wide);
  for (; n; ++p, --n) r = __builtin_ia32_crc32qi(r, *p);
  return r;
}
#endif

}  // namespace

uint32_t crc32c(const void* data, size_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(~0u, p, n);
#endif
  return ~by_tables(~0u, p, n);
}

}  // namespace gt
