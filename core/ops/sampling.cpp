// Random choices and the distributions that need rejection: shuffling, categorical, gamma, Poisson, binomial.
// Each result has its own stretch of the random stream, as in TensorFlow.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "philox.h"

namespace gt {
namespace {

constexpr uint64_t kReserved = 256;  // groups of random bits that belong to one result

// ---- random_shuffle_perm(; n, seed, seed2, offset) ----
void infer_shuffle(const Call& c, Outs& outs) {
  int64_t n = c.integer(0);
  if (n < 0) fail("n must be non-negative, got " + std::to_string(n));
  want_state(c, 0);
  outs.emplace_back(Spec{Dtype::I64, Shape(&n, 1)});
}
void run_shuffle(const Call& c, Outs& outs) {
  int64_t *p = outs[0].as<int64_t>(), n = outs[0].numel;
  PhiloxSequence next{philox_of(c, 1, 0)};
  std::iota(p, p + n, 0);
  for (int64_t i = 0; i + 1 < n; ++i) {
    uint64_t left = uint64_t(n - i), bits = next();
    if (left >> 32) bits |= uint64_t(next()) << 32;
    std::swap(p[i], p[i + int64_t(bits % left)]);
  }
}

// ---- categorical(logits; num_samples, dtype, seed, seed2, offset) ----
void infer_categorical(const Call& c, Outs& outs) {
  const Shape& x = c[0].shape;
  if (!is_float(c[0].dtype))
    fail(Code::Type, std::string("logits must be floating, got ") + dtype_name(c[0].dtype));
  if (x.rank != 2) fail("logits should be a matrix, got shape " + x.str());
  if (c.integer(0) < 0) fail("num_samples should be nonnegative, got " + std::to_string(c.integer(0)));
  Dtype t = dtype_attr(c, 1);
  if (t != Dtype::I32 && t != Dtype::I64)
    fail(Code::Type, std::string("the result must be int32 or int64, not ") + dtype_name(t));
  int64_t dims[2] = {x[0], c.integer(0)};
  if (dims[0] && dims[1] && x[1] == 0) fail("num_classes should be positive, got 0");
  want_state(c, 1);
  outs.emplace_back(Spec{t, Shape(dims, 2)});
}
void run_categorical(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  if (out.numel == 0) return;
  Philox gen = philox_of(c, 2, 1);
  int64_t rows = x.shape[0], n = x.shape[1], samples = out.shape[1];
  Tensor sums = empty(Dtype::F64, x.shape);
  each_chunk(rows, grain_rows(n * 8 + samples * 16, 1 << 14), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      double* cdf = sums.as<double>() + r * n;
      visit(x.dtype, [&](auto t) {
        using T = decltype(t);
        if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, half> ||
                      std::is_same_v<T, bfloat>)
          for (int64_t i = 0; i < n; ++i) cdf[i] = double(x.as<T>()[r * n + i]);
      });
      double largest = std::numeric_limits<double>::lowest(), total = 0;
      for (int64_t i = 0; i < n; ++i)
        if (std::isfinite(cdf[i])) largest = std::max(largest, cdf[i]);
      for (int64_t i = 0; i < n; ++i) {
        if (std::isfinite(cdf[i])) total += std::exp(cdf[i] - largest);
        cdf[i] = total;
      }
      for (int64_t j = 0; j < samples; ++j) {
        uint64_t draw = uint64_t(r * samples + j);  // two 32-bit numbers each
        Bits128 b = gen(draw / 2);
        double u = to_double(b[2 * (draw & 1)], b[2 * (draw & 1) + 1]) * total;
        int64_t k = std::min<int64_t>(std::upper_bound(cdf, cdf + n, u) - cdf, n - 1);
        if (out.dtype == Dtype::I32)
          out.as<int32_t>()[r * samples + j] = int32_t(k);
        else
          out.as<int64_t>()[r * samples + j] = k;
      }
    }
  });
}

// ---- random_gamma(alpha; shape, seed, seed2, offset), random_poisson(rate; shape, dtype, ...) ----
// The result has shape `shape` + the parameter's shape. The stream counts through the samples
// of one parameter first.
Shape sampled_shape(const Call& c) {
  Shape s = shape_attr(c, 0);
  for (int i = 0; i < c[0].shape.rank; ++i) s.push(c[0].shape[i]);
  return s;
}
// Uniform numbers in double, two a group, the second one first.
struct Uniforms {
  double x[2];
  int left = 0;
  double operator()(const Philox& gen, uint64_t& group) {
    if (!left) {
      Bits128 b = gen(group++);
      x[0] = to_double(b[0], b[1]), x[1] = to_double(b[2], b[3]), left = 2;
    }
    return x[--left];
  }
};
// Calls sample(parameter, stream of the result) for every result.
template <class P, class T, class F>
void fill_samples(const Tensor& parameter, Tensor& out, const Philox& gen, F&& sample) {
  if (out.numel == 0) return;
  int64_t count = parameter.numel, samples = out.numel / count;
  each_chunk(out.numel, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out.as<T>()[i % samples * count + i / samples] =
          T(sample(double(parameter.as<P>()[i / samples]), gen.skip(uint64_t(i) * kReserved)));
  });
}
template <class F> void visit_float(Dtype t, F&& f) {
  switch (t) {
    case Dtype::F16: return f(half{});
    case Dtype::BF16: return f(bfloat{});
    case Dtype::F32: return f(float{});
    default: return f(double{});
  }
}

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000); below 1 the
// sample for alpha + 1 times a power of a uniform number.
double gamma_sample(double alpha, const Philox& gen) {
  uint64_t group = 0;
  Uniforms uniform;
  if (!(alpha > 0) || !std::isfinite(alpha)) return std::numeric_limits<double>::quiet_NaN();
  if (alpha == 1.0) return -std::log1p(-uniform(gen, group));
  const bool below = alpha < 1;
  const double d = alpha + (below ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / std::sqrt(d);
  double normal[2];
  int normals = 0;
  while (true) {
    if (!normals) {
      Bits128 b = gen(group++);
      box_muller(b[0], b[1], b[2], b[3], normal);
      normals = 2;
    }
    const double x = normal[--normals];
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = uniform(gen, group);
    if (u < 1 - 0.0331 * (x * x) * (x * x) || std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      double result = d * v;
      if (below) result *= std::pow(uniform(gen, group), 1 / alpha);
      return result;
    }
  }
}
void infer_gamma(const Call& c, Outs& outs) {
  if (!is_float(c[0].dtype))
    fail(Code::Type, std::string("alpha must be floating, got ") + dtype_name(c[0].dtype));
  want_state(c, 1);
  outs.emplace_back(Spec{c[0].dtype, sampled_shape(c)});
}
void run_gamma(const Call& c, Outs& outs) {
  Philox gen = philox_of(c, 1, 1);
  visit_float(c[0].dtype,
              [&](auto t) { fill_samples<decltype(t), decltype(t)>(c[0], outs[0], gen, gamma_sample); });
}

// Knuth's product of uniform numbers for small rates; for others the transformed rejection PTRS
// of Hormann, "The transformed rejection method for generating Poisson random variables" (1993).
double poisson_sample(double rate, const Philox& gen, double highest) {
  uint64_t group = 0;
  Uniforms uniform;
  if (rate < 0) return 0;  // as in TensorFlow
  if (!std::isfinite(rate)) return std::numeric_limits<double>::quiet_NaN();
  if (rate > highest) return highest;  // few samples or none would fit
  if (rate < 10) {
    const double limit = std::exp(-rate);
    double product = 1, x = 0;
    while (true) {
      product *= uniform(gen, group);
      if (product <= limit && x <= highest) return x;
      x += 1;
    }
  }
  const double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b,
               inv_alpha = 1.1239 + 1.1328 / (b - 3.4);
  while (true) {
    const double u = uniform(gen, group) - 0.5, v = uniform(gen, group), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (k > highest) continue;
    if (us >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v * inv_alpha / (a / (us * us) + b)) <= -rate + k * log_rate - std::lgamma(k + 1)) return k;
  }
}
void infer_poisson(const Call& c, Outs& outs) {
  if (!in(c[0].dtype, kReal))
    fail(Code::Type, std::string("rate must be real, got ") + dtype_name(c[0].dtype));
  Dtype t = dtype_attr(c, 1);
  if (!in(t, kFloat | set_of(Dtype::I32) | set_of(Dtype::I64)))
    fail(Code::Type, std::string("Poisson samples cannot be ") + dtype_name(t));
  if (!is_float(c[0].dtype))
    fail(Code::Type, std::string("rate must be floating, got ") + dtype_name(c[0].dtype));
  want_state(c, 1);
  outs.emplace_back(Spec{t, sampled_shape(c)});
}
void run_poisson(const Call& c, Outs& outs) {
  Philox gen = philox_of(c, 2, 1);
  Tensor& out = outs[0];
  auto from = [&](auto rate) {
    using P = decltype(rate);
    auto fill = [&](auto t, double highest) {
      fill_samples<P, decltype(t)>(c[0], out, gen,
                                   [=](double r, const Philox& g) { return poisson_sample(r, g, highest); });
    };
    if (out.dtype == Dtype::I32) return fill(int32_t{}, 2147483647.0);
    if (out.dtype == Dtype::I64) return fill(int64_t{}, 9223372036854774784.0);
    visit_float(out.dtype, [&](auto t) {
      fill(t, std::is_same_v<decltype(t), half> ? 65504.0 : double(std::numeric_limits<float>::max()));
    });
  };
  visit_float(c[0].dtype, from);
}

// ---- random_binomial(counts, probs, state; shape, dtype): counts and probs have one shape ----
// How many geometric waiting times fit into `count` trials.
double binomial_by_waiting(double count, double p, const Philox& gen) {
  uint64_t group = 0;
  Uniforms uniform;
  double trials = 0;
  for (int successes = 0;; ++successes) {
    trials += std::ceil(std::log(uniform(gen, group)) / std::log1p(-p));
    if (trials > count) return successes;
  }
}
// The error of Stirling's formula for log(k!), to TensorFlow's digits.
double stirling_tail(double k) {
  constexpr double first[] = {
      0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return first[int(k)];
  const double q = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / q) / q) / (k + 1);
}
// Hormann, "The generation of binomial random variates" (1993): transformed rejection, for count p >= 10.
double binomial_by_rejection(double count, double p, const Philox& gen) {
  uint64_t group = 0;
  Uniforms uniform;
  const double spread = std::sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * spread,
               a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * spread, mode = std::floor((count + 1) * p);
  while (true) {
    const double u = uniform(gen, group) - 0.5, v = uniform(gen, group), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + (count * p + 0.5));
    if (us >= 0.07 && v <= 0.92 - 4.2 / b) return k;
    if (k < 0 || k > count) continue;
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_tail(mode) +
                         stirling_tail(count - mode) - stirling_tail(k) - stirling_tail(count - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
  }
}
template <class P> double binomial_sample(P count, P p, const Philox& gen, uint64_t index) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return double(count);
  if (p != p || count != count) return std::numeric_limits<double>::quiet_NaN();
  const bool mirrored = p > P(0.5);
  const P q = mirrored ? P(1) - p : p;
  const bool many = count * q >= P(10);
  const Philox own = gen.skip(index * (many ? kReserved : 42));
  const double k = many ? binomial_by_rejection(double(count), double(q), own)
                        : binomial_by_waiting(double(count), double(q), own);
  return mirrored ? double(count) - k : k;
}
void infer_binomial(const Call& c, Outs& outs) {
  const Dtype t = dtype_attr(c, 1);
  if (!in(t, kFloat | set_of(Dtype::I32) | set_of(Dtype::I64)))
    fail(Code::Type, std::string("binomial samples cannot be ") + dtype_name(t));
  if (c[0].dtype != c[1].dtype || (c[0].dtype != Dtype::F32 && c[0].dtype != Dtype::F64))
    fail(Code::Type, std::string("counts and probs must both be float32 or float64, got ") +
                         dtype_name(c[0].dtype) + " and " + dtype_name(c[1].dtype));
  if (!(c[0].shape == c[1].shape))
    fail("counts and probs must have one shape, got " + c[0].shape.str() + " and " + c[1].shape.str());
  want_state(c, 2);
  outs.emplace_back(Spec{t, sampled_shape(c)});
}
void run_binomial(const Call& c, Outs& outs) {
  Tensor& out = outs[0];
  if (out.numel == 0) return;
  const Philox gen = philox_of(c, 2, 2);
  const int64_t parameters = c[0].numel, samples = out.numel / parameters;
  auto fill = [&](auto p, auto t) {
    using P = decltype(p);
    using T = decltype(t);
    each_chunk(out.numel, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        out.as<T>()[i % samples * parameters + i / samples] =
            T(binomial_sample(c[0].as<P>()[i / samples], c[1].as<P>()[i / samples], gen, uint64_t(i)));
    });
  };
  auto from = [&](auto p) {
    if (out.dtype == Dtype::I32) return fill(p, int32_t{});
    if (out.dtype == Dtype::I64) return fill(p, int64_t{});
    visit_float(out.dtype, [&](auto t) { fill(p, t); });
  };
  c[0].dtype == Dtype::F32 ? from(0.0f) : from(0.0);
}

GT_OP("random_shuffle_perm", {infer_shuffle, run_shuffle, true, 5});
GT_OP("categorical", {infer_categorical, run_categorical, true, 10});
GT_OP("random_gamma", {infer_gamma, run_gamma, true, 100});
GT_OP("random_poisson", {infer_poisson, run_poisson, true, 100});
GT_OP("random_binomial", {infer_binomial, run_binomial, true, 100});

}  // namespace
}  // namespace gt
