// A hash table of numbers: which of the things that a backward pass has met before this one is.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace gt {

struct Node;

// Numbers of things that are kept elsewhere, found by their hashes. Equal hashes of different things are told
// apart by whoever knows the things.
class Numbers {
 public:
  static constexpr uint32_t kNone = ~0u;
  explicit Numbers(size_t expected = 0) : slots_(std::bit_ceil(std::max<size_t>(2 * expected, 64))) {}
  // The number of the thing of this hash for which `same(number)` is true, or kNone.
  template <class Same> uint32_t find(uint32_t hash, Same&& same) const {
    return slots_[probe(hash, same)].number;
  }
  // The same; a thing that is unknown gets the number `fresh`.
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

// Of elements, and the result of a record they are.
inline uint32_t hash_of(const void* data, const Node* node, uint32_t output) {
  uint64_t h = reinterpret_cast<uintptr_t>(data) * 0x9e3779b97f4a7c15ull;
  h = (h ^ h >> 32 ^ reinterpret_cast<uintptr_t>(node) ^ output) * 0xff51afd7ed558ccdull;
  return uint32_t(h >> 32);
}

}  // namespace gt
