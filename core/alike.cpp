// Clusters that are alike, such as the updates of the variables of an optimizer: short ones run together.
// A hundred variables of a few elements each cost as much as one with all their elements, and two
// copies. An element's result does not depend on its place in a tile, so results stay the same bit by bit.
#include <algorithm>
#include <cstring>
#include <memory>

#include "cluster.h"

namespace gt {

char* scratch_memory(size_t bytes);

constexpr int64_t kTogetherBytes = 64 * 1024;  // as in cluster.cpp: what a tile reads and writes
constexpr int64_t kLongest = 2048, kShortest = 256;

static bool flat(const Cluster& c) {
  if (c.outer != 1 || !c.tile_columns || !c.tails.empty() || c.inner < 1) return false;
  for (const Register& r : c.registers)
    if (r.kind != Register::Kind::Scratch && r.spread != Spread::Full && r.spread != Spread::Scalar) return false;
  return true;
}

bool alike(const Cluster& a, const Cluster& b) {
  if (!flat(a) || !flat(b) || a.scratch != b.scratch || a.registers.size() != b.registers.size() || a.ops.size() != b.ops.size()) return false;
  for (size_t i = 0; i < a.registers.size(); ++i) {
    const Register &r = a.registers[i], &q = b.registers[i];
    if (r.kind != q.kind || r.spread != q.spread || r.width != q.width || r.index != q.index) return false;
  }
  for (size_t i = 0; i < a.ops.size(); ++i) {
    const ClusterOp &o = a.ops[i], &q = b.ops[i];
    if (o.loop != q.loop || o.cast != q.cast || o.out != q.out || o.arity != q.arity) return false;
    for (int k = 0; k < o.arity; ++k)
      if (o.in[k] != q.in[k] || o.step[k] != q.step[k]) return false;
  }
  return true;
}

namespace {

// Buffers that hold the elements of several clusters, side by side.
class Together {
 public:
  explicit Together(const Cluster& c) : c_(c), at_(c.registers.size()) {
    int64_t arrays = c.scratch;
    for (const Register& r : c.registers) arrays += is_array(r);
    length_ = kTogetherBytes / (std::max<int64_t>(arrays, 1) * c.widest);
    length_ = std::clamp<int64_t>(length_ / 64 * 64, kShortest, kLongest);
    int64_t stride = length_ * c.widest;
    char* memory = scratch_memory(size_t(stride * std::max<int64_t>(arrays, 1)));
    int64_t next = c.scratch;
    for (size_t i = 0; i < at_.size(); ++i) {
      const Register& r = c.registers[i];
      if (r.kind == Register::Kind::Scratch) at_[i] = memory + stride * r.index;
      if (is_array(r)) at_[i] = memory + stride * next++;
    }
  }

  bool is_short(int64_t n) const { return n <= length_ / 2; }

  void add(int64_t n, const char* const* in, char* const* out) {
    if (used_ + n > length_) flush();
    if (!used_)  // one element for all: the same in each cluster
      for (size_t i = 0; i < at_.size(); ++i) {
        const Register& r = c_.registers[i];
        if (r.kind == Register::Kind::Input && r.spread == Spread::Scalar) at_[i] = const_cast<char*>(in[r.index]);
      }
    for (size_t i = 0; i < at_.size(); ++i) {
      const Register& r = c_.registers[i];
      if (r.kind == Register::Kind::Input && r.spread == Spread::Full) std::memcpy(at_[i] + used_ * r.width, in[r.index], size_t(n * r.width));
    }
    waiting_.push_back({n, out});
    used_ += n;
  }

  void flush() {
    for (const ClusterOp& op : c_.ops) {
      if (op.cast) {
        op.cast(at_[op.out], at_[op.in[0]], used_);
        continue;
      }
      const void* in[4];
      for (int k = 0; k < op.arity; ++k) in[k] = at_[op.in[k]];
      op.loop(at_[op.out], in, op.step, used_);
    }
    for (size_t i = 0; i < at_.size(); ++i) {
      const Register& r = c_.registers[i];
      if (r.kind != Register::Kind::Output) continue;
      const char* from = at_[i];
      for (const Waiting& w : waiting_) {
        std::memcpy(w.out[r.index], from, size_t(w.n * r.width));
        from += w.n * r.width;
      }
    }
    waiting_.clear();
    used_ = 0;
  }

 private:
  struct Waiting {
    int64_t n;
    char* const* out;
  };
  static bool is_array(const Register& r) {
    return r.kind == Register::Kind::Output || (r.kind == Register::Kind::Input && r.spread == Spread::Full);
  }
  const Cluster& c_;
  std::vector<char*> at_;
  std::vector<Waiting> waiting_;
  int64_t length_, used_ = 0;
};

}  // namespace

void run_alike(const Cluster* const* clusters, size_t count, const char* const* const* in, char* const* const* out) {
  Together together(*clusters[0]);
  for (size_t m = 0; m < count; ++m)
    if (together.is_short(clusters[m]->inner)) together.add(clusters[m]->inner, in[m], out[m]);
  together.flush();
  // The others have tiles of their own, in the same memory.
  for (size_t m = 0; m < count; ++m)
    if (!together.is_short(clusters[m]->inner)) clusters[m]->run(in[m], out[m]);
}

}  // namespace gt
