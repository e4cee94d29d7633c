// Writing out operands that repeat: a row for every row of a block, or each element of a column along its
// row. Elements are copied by width.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace gt {

// Copies what is already there, doubling it each time: few calls, however short the row.
inline void repeat_row(char* out, const char* row, int64_t bytes, int64_t times) {
  const int64_t all = bytes * times;
  std::memcpy(out, row, size_t(bytes));
  for (int64_t done = bytes; done < all; done *= 2)
    std::memcpy(out + done, out, size_t(std::min(done, all - done)));
}

template <class T> void repeat_each(T* out, const T* column, int64_t rows, int64_t inner) {
  for (int64_t i = 0; i < rows; ++i) std::fill(out + i * inner, out + (i + 1) * inner, column[i]);
}

inline void repeat_column(char* out, const char* column, int width, int64_t rows, int64_t inner) {
  struct alignas(8) Wide {
    char bytes[16];
  };
  switch (width) {
    case 1:
      return repeat_each(reinterpret_cast<uint8_t*>(out), reinterpret_cast<const uint8_t*>(column), rows,
                         inner);
    case 2:
      return repeat_each(reinterpret_cast<uint16_t*>(out), reinterpret_cast<const uint16_t*>(column), rows,
                         inner);
    case 4:
      return repeat_each(reinterpret_cast<uint32_t*>(out), reinterpret_cast<const uint32_t*>(column), rows,
                         inner);
    case 8:
      return repeat_each(reinterpret_cast<uint64_t*>(out), reinterpret_cast<const uint64_t*>(column), rows,
                         inner);
    default:
      return repeat_each(reinterpret_cast<Wide*>(out), reinterpret_cast<const Wide*>(column), rows, inner);
  }
}

}  // namespace gt
