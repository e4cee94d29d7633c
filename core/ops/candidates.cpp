// Candidate samplers: classes drawn for a loss over a sample of them, and the expected count of each class in
// the sample. The numbers are TensorFlow's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <vector>

#include "indices.h"
#include "philox.h"

namespace gt {
namespace {

enum Kind { kUniform, kLogUniform, kWeights, kCounts };
constexpr double kLargest = std::numeric_limits<float>::max();
constexpr int64_t kTries = int64_t(1) << 32;  // classes of almost no weight may never be drawn

// One number after the other from a stream.
struct Numbers {
  PhiloxSequence next;
  uint32_t bits32() { return next(); }
  uint64_t bits64() {
    const uint64_t low = next();
    return low | uint64_t(next()) << 32;
  }
  double unit() {
    const uint32_t high = next();
    return to_double(high, next());
  }
  // Below n, all equally likely: a draw that would favour the first ones is repeated.
  template <class U, class F> static U below(U n, F draw) {
    if ((n & (n - 1)) == 0) return draw() & (n - 1);
    const U few = U(U(~U(0)) % n + 1);
    U x;
    do x = draw();
    while (x < few);
    return x % n;
  }
};

// Walker's alias method: a class of each column and the one it shares the column with.
struct Alias {
  std::vector<double> share;
  std::vector<int64_t> other;
  Alias(const double* weights, int64_t n) : share(size_t(n)), other(size_t(n)) {
    double total = 0;
    for (int64_t i = 0; i < n; ++i) total += double(float(weights[i]));
    std::vector<int64_t> small, large;
    for (int64_t i = 0; i < n; ++i) {
      share[size_t(i)] = double(float(weights[i]) * float(n)) / total;
      other[size_t(i)] = i;
      (share[size_t(i)] < 1 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
      const int64_t s = small.back(), l = large.back();
      small.pop_back(), large.pop_back();
      other[size_t(s)] = l;
      share[size_t(l)] -= 1 - share[size_t(s)];
      (share[size_t(l)] < 1 ? small : large).push_back(l);
    }
    for (auto* rest : {&small, &large})
      for (int64_t i : *rest) share[size_t(i)] = 1;
  }
  int64_t pick(Numbers& numbers) const {
    const float height = to_float(numbers.bits32());
    const size_t column = Numbers::below<uint32_t>(uint32_t(share.size()), [&] { return numbers.bits32(); });
    return height < float(share[column]) ? int64_t(column) : other[column];
  }
};

// candidate_sampler(true_classes, weights, state; kind, num_sampled, unique, range_max) -> classes, the
// expected counts of the true classes and of the classes drawn
void infer_sampler(const Call& c, Outs& outs) {
  want_indices(c[0], "true_classes");
  if (c[0].shape.rank != 2) fail("true_classes must be a matrix, got shape " + c[0].shape.str());
  want_dtype(c[1], set_of(Dtype::F64), "the weights of a sampler");
  want_state(c, 2);
  const int64_t kind = c.integer(0), sampled = c.integer(1), range = c.integer(3);
  if (kind < kUniform || kind > kCounts) fail("kind must be from 0 to 3, got " + std::to_string(kind));
  if (sampled < 0) fail("num_sampled must be non-negative, got " + std::to_string(sampled));
  if (range <= 0) fail("range_max must be positive, got " + std::to_string(range));
  if (c.integer(2) && sampled > range) fail("Sampler's range is too small.");
  if (kind >= kWeights && c[1].numel != range)
    fail("range is " + std::to_string(range) + " must be equal to weights size " +
         std::to_string(c[1].numel));
  outs.emplace_back(Spec{Dtype::I64, Shape(&sampled, 1)});
  outs.emplace_back(Spec{Dtype::F32, c[0].shape});
  outs.emplace_back(Spec{Dtype::F32, Shape(&sampled, 1)});
}
void run_sampler(const Call& c, Outs& outs) {
  const int kind = int(c.integer(0));
  const int64_t sampled = c.integer(1), range = c.integer(3);
  const bool unique = c.integer(2);
  const double* weights = c[1].as<double>();
  Numbers numbers{{philox_of(c, 4, 2)}};
  std::vector<double> sums;
  double total = 0;
  for (int64_t i = 0; kind >= kWeights && i < range; ++i) sums.push_back(total += weights[i]);
  if (kind >= kWeights) {
    if (!std::all_of(weights, weights + range, [](double w) { return w >= 0 && w <= kLargest; }))
      fail("weights must be finite and not negative");
    if (kind == kCounts && !(total >= 1 && total <= 0xFFFFFFFF))
      fail("counts must add up to a number from 1 to 2**32 - 1, got " + std::to_string(total));
    const int64_t possible = std::count_if(weights, weights + range, [](double w) { return w > 0; });
    if (unique ? possible < sampled : possible == 0 && sampled)
      fail("there are not enough classes of positive weight to draw " + std::to_string(sampled));
  }
  const Alias alias(weights, kind == kWeights ? range : 0);
  const double log_range = std::log1p(double(range));
  auto draw = [&]() -> int64_t {
    switch (kind) {
      case kUniform:
        return int64_t(Numbers::below<uint64_t>(uint64_t(range), [&] { return numbers.bits64(); }));
      case kLogUniform: return (int64_t(std::exp(numbers.unit() * log_range)) - 1) % range;
      case kWeights: return alias.pick(numbers);
      default:
        return std::upper_bound(
                   sums.begin(), sums.end(),
                   double(Numbers::below<uint32_t>(uint32_t(total), [&] { return numbers.bits32(); }))) -
               sums.begin();
    }
  };
  auto probability = [&](int64_t k) -> float {
    switch (kind) {
      case kUniform: return float(1.0 / double(range));
      case kLogUniform: return float(std::log((double(k) + 2) / (double(k) + 1)) / log_range);
      default: return float(weights[k]) / float(total);
    }
  };
  int64_t tries = 0, *out = outs[0].as<int64_t>();
  std::unordered_set<int64_t> seen;
  for (int64_t n = 0; n < sampled;) {
    const int64_t k = draw();
    if (++tries > kTries)
      fail("drew " + std::to_string(kTries) + " classes and found " + std::to_string(n) +
           " different ones, expected " + std::to_string(sampled));
    if (!unique || seen.insert(k).second) out[n++] = k;
  }
  // The probability to be among the classes, if it always took that many tries.
  auto expected = [&](int64_t k) {
    const float p = probability(k);
    return tries == sampled ? p * float(sampled) : -std::expm1(float(tries) * std::log1p(-p));
  };
  visit_indices(c[0], [&](auto* classes) {
    for (int64_t i = 0; i < c[0].numel; ++i) {
      if (classes[i] < 0 || classes[i] >= range)
        fail("`true_candidate` out of range [0, " + std::to_string(range) + "), received " +
             std::to_string(classes[i]));
      outs[1].as<float>()[i] = expected(classes[i]);
    }
  });
  for (int64_t i = 0; i < sampled; ++i) outs[2].as<float>()[i] = expected(out[i]);
}

GT_OP("candidate_sampler", {infer_sampler, run_sampler, true, 50});

}  // namespace
}  // namespace gt
