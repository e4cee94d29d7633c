// The checksum of TensorFlow's record files.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gt {

// The CRC-32C (Castagnoli) of n bytes.
uint32_t crc32c(const void* data, size_t n);

}  // namespace gt
