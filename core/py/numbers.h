// A hash table of indices, with which a backward pass numbers tensors and nodes.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace gt {

struct Node;

// Indices into a list that is kept elsewhere, found by hash. The caller compares the elements with equal
// hashes.
class Numbers {
 public:
  static constexpr uint32_t kNone = ~0u;
  explicit Numbers(size_t expected = 0) : slots_(std::bit_ceil(std::max<size_t>(2 * expected, 64))) {}
  // The index with this hash for which `same(index)` is true, or kNone.
  template <class Same> uint32_t find(uint32_t hash, Same&& same) const {
    return slots_[probe(hash, same)].number;
  }
  // The same; if there is none, adds the index `fresh`.
  template <class Same> uint32_t add(uint32_t hash, uint32_t fresh, Same&& same) {
    if (2 * size_ >= slots_.size()) grow();
    Slot& s = slots_[probe(hash, same)];
    if (s.number != kNone) return s.number;
    s = {hash, fresh};
    ++size_;
    return fresh;
  }

 private:
  struct Slot {
    uint32_t hash = 0, number = kNone;
  };
  template <class Same> size_t probe(uint32_t hash, Same&& same) const {
    size_t mask = slots_.size() - 1, i = hash & mask;
    while (slots_[i].number != kNone && !(slots_[i].hash == hash && same(slots_[i].number)))
      i = (i + 1) & mask;
    return i;
  }
  void grow() {
    std::vector<Slot> before(2 * slots_.size());
    before.swap(slots_);
    for (Slot& s : before)
      if (s.number != kNone) slots_[probe(s.hash, [](uint32_t) { return false; })] = s;
  }
  std::vector<Slot> slots_;
  size_t size_ = 0;
};

// The hash of a value: its elements, and which result of which record it is.
inline uint32_t hash_of(const void* data, const Node* node, uint32_t output) {
  uint64_t h = reinterpret_cast<uintptr_t>(data) * 0x9e3779b97f4a7c15ull;
  h = (h ^ h >> 32 ^ reinterpret_cast<uintptr_t>(node) ^ output) * 0xff51afd7ed558ccdull;
  return uint32_t(h >> 32);
}

}  // namespace gt
