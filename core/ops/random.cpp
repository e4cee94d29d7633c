// Uniform and normal numbers, bit for bit those of TensorFlow on a CPU.
//
// Where (seed, seed2) come from; the Python layer does this.
// - tf.random.X(seed=s) in eager mode: both are modulo 2^31 - 1.
//     global seed g, op seed s: (g, s)         global seed only: (g, rng.randint(0, 2^31 - 1)),
//     op seed only: (87654321, s)              rng = random.Random(g), made by set_seed
//     neither: two random numbers;  (0, 0) becomes (0, 2^31 - 1)
//   In TensorFlow a kernel is cached by its attributes and set_seed clears the cache: the second
//   call of an op with the same (seed, seed2, dtype) goes on where the first one stopped, hence
//   `offset`. A call of n numbers advances it by 256 * n for random_uniform, random_normal,
//   truncated_normal, random_uniform_int, random_gamma and random_poisson; categorical by 512 *
//   rows * (num_samples rounded up to 4); random_shuffle_perm by (n + 2) / 4, by 0 for n < 2.
// - In a tf.function without an op seed, seed2 is the number of the random op in the graph (0, 1,
//   ... in the order of tracing) and `offset` lives as long as the function.
// - tf.random.stateless_X(seed=[a, b]): stateless_state([a, b]) below gives (seed, seed2, 0).
// - tf.random.Generator: its state (counter low, counter high, key) is (key, counter high,
//   counter low) as (seed, seed2, offset), advanced by 256 * n.
#include <algorithm>
#include <type_traits>

#include "../kernels/loops.h"
#include "../kernels/philox.h"
#include "philox.h"

namespace gt {
namespace {

// name(; shape, dtype, seed, seed2, offset)
template <DtypeSet types, int operands> void infer_random(const Call& c, Outs& outs) {
  Spec s{dtype_attr(c, 1), shape_attr(c, 0)};
  if (!in(s.dtype, types))
    fail(Code::Argument,
         std::string("random numbers of this kind are not defined for ") + dtype_name(s.dtype));
  want_state(c, operands);
  for (int i = 0; i < operands; ++i) {
    want_scalar(c[i], i ? "maxval" : "minval");
    if (c[i].dtype != s.dtype)
      fail(std::string("minval and maxval must be ") + dtype_name(s.dtype) + ", got " +
           dtype_name(c[i].dtype));
  }
  outs.emplace_back(s);
}

// Fills `out` group by group: make(number of the group, G elements). The last group may be cut.
template <int G, class T, class F> void fill_groups(Tensor& out, double cost, F&& make) {
  T* to = out.as<T>();
  int64_t n = out.numel, groups = (n + G - 1) / G;
  each_chunk(groups, int64_t(20000 / cost), [&](int64_t begin, int64_t end) {
    int64_t whole = std::min(end, n / G);
    for (int64_t g = begin; g < whole; ++g) make(uint64_t(g), to + g * G);
    if (whole < end) {
      T last[G];
      make(uint64_t(whole), last);
      std::copy(last, last + (n - whole * G), to + whole * G);
    }
  });
}

// Floats in [0, 1), many at a time.
void fill_floats(Tensor& out, const Philox& gen) {
  float* to = out.as<float>();
  const int64_t whole = out.numel / 4;
  each_chunk(whole, 8192, [&](int64_t begin, int64_t end) {
    const Philox at = gen.skip(uint64_t(begin));
    kernels().philox->uniform(at.key, at.high, at.low, end - begin, to + 4 * begin);
  });
  const Bits128 last = gen(uint64_t(whole));
  for (int64_t i = 4 * whole; i < out.numel; ++i) to[i] = to_float(last[int(i % 4)]);
}

void run_uniform(const Call& c, Outs& outs) {
  Philox gen = philox_of(c, 2, 0);
  switch (outs[0].dtype) {
    case Dtype::F64:
      return fill_groups<2, double>(outs[0], 12, [&](uint64_t g, double* out) {
        Bits128 b = gen(g);
        out[0] = to_double(b[0], b[1]), out[1] = to_double(b[2], b[3]);
      });
    case Dtype::F32: return fill_floats(outs[0], gen);
    case Dtype::F16:
      return fill_groups<4, half>(outs[0], 20, [&](uint64_t g, half* out) {
        Bits128 b = gen(g);
        for (int i = 0; i < 4; ++i) {
          half h;
          h.bits = uint16_t(0x3c00u | (b[i] & 0x3ffu));
          out[i] = half(float(h) - 1.0f);
        }
      });
    default:
      return fill_groups<4, bfloat>(outs[0], 20, [&](uint64_t g, bfloat* out) {
        Bits128 b = gen(g);
        for (int i = 0; i < 4; ++i) {
          bfloat h;
          h.bits = uint16_t(0x3f80u | (b[i] & 0x7fu));
          out[i] = bfloat(float(h) - 1.0f);
        }
      });
  }
}

template <class T> void fill_normal(Tensor& out, const Philox& gen) {
  constexpr int64_t block = 64;  // groups whose bits are made together
  T* to = out.as<T>();
  const int64_t n = out.numel, groups = (n + 3) / 4;
  each_chunk(groups, 512, [&](int64_t begin, int64_t end) {
    uint32_t bits[4 * block];
    for (int64_t g = begin; g < end; g += block) {
      const Philox at = gen.skip(uint64_t(g));
      kernels().philox->bits(at.key, at.high, at.low, std::min(block, end - g), bits);
      const int64_t count = std::min(4 * std::min(block, end - g), n - 4 * g);
      for (int64_t i = 0; i < count; i += 2) {
        float f[2];
        box_muller(bits[i], bits[i + 1], f);
        to[4 * g + i] = T(f[0]);
        if (i + 1 < count) to[4 * g + i + 1] = T(f[1]);
      }
    }
  });
}
void run_normal(const Call& c, Outs& outs) {
  Philox gen = philox_of(c, 2, 0);
  switch (outs[0].dtype) {
    case Dtype::F64:
      return fill_groups<2, double>(outs[0], 60, [&](uint64_t g, double* out) {
        Bits128 b = gen(g);
        box_muller(b[0], b[1], b[2], b[3], out);
      });
    case Dtype::F32: return fill_normal<float>(outs[0], gen);
    case Dtype::F16: return fill_normal<half>(outs[0], gen);
    default: return fill_normal<bfloat>(outs[0], gen);
  }
}

// Normal numbers between -2 and 2: others are drawn again. Each result of a group of G has 256 random numbers
// to itself.
template <int G, class T, class F> void fill_truncated(Tensor& out, const Philox& gen, F&& draw) {
  fill_groups<G, T>(out, 100, [&](uint64_t g, T* to) {
    PhiloxSequence next{gen.skip(g * G * 64)};
    for (int i = 0; i < G;) {
      decltype(draw(next)) pair = draw(next);
      for (int k = 0; k < 2 && i < G; ++k)
        if (std::abs(pair.x[k]) < 2) to[i++] = T(pair.x[k]);
    }
  });
}
template <class T> struct Pair { T x[2]; };
Pair<float> draw_float(PhiloxSequence& next) {
  Pair<float> p;
  uint32_t x0 = next(), x1 = next();
  box_muller(x0, x1, p.x);
  return p;
}
Pair<double> draw_double(PhiloxSequence& next) {
  Pair<double> p;
  uint32_t x0 = next(), x1 = next(), x2 = next(), x3 = next();
  box_muller(x0, x1, x2, x3, p.x);
  return p;
}
void run_truncated(const Call& c, Outs& outs) {
  Philox gen = philox_of(c, 2, 0);
  switch (outs[0].dtype) {
    case Dtype::F64: return fill_truncated<2, double>(outs[0], gen, draw_double);
    case Dtype::F32: return fill_truncated<4, float>(outs[0], gen, draw_float);
    case Dtype::F16: return fill_truncated<4, half>(outs[0], gen, draw_float);
    default: return fill_truncated<4, bfloat>(outs[0], gen, draw_float);
  }
}

// ---- random_uniform_int(lo, hi; ...), random_bits(; ...) ----
template <class T, class F> void fill_int(Tensor& out, const Philox& gen, F&& from_bits) {
  constexpr int G = sizeof(T) == 4 ? 4 : 2;
  using U = std::make_unsigned_t<T>;
  fill_groups<G, T>(out, 20, [&](uint64_t g, T* to) {
    Bits128 b = gen(g);
    for (int i = 0; i < G; ++i)
      to[i] = T(from_bits(G == 4 ? U(b[i]) : U(b[2 * (i & 1)] | uint64_t(b[2 * (i & 1) + 1]) << 32)));
  });
}
template <class F> void visit_int(Dtype t, F&& f) {
  switch (t) {
    case Dtype::I32: return f(int32_t{});
    case Dtype::U32: return f(uint32_t{});
    case Dtype::I64: return f(int64_t{});
    default: return f(uint64_t{});
  }
}
constexpr DtypeSet kWideInt =
    set_of(Dtype::I32) | set_of(Dtype::U32) | set_of(Dtype::I64) | set_of(Dtype::U64);

void run_uniform_int(const Call& c, Outs& outs) {
  Philox gen = philox_of(c, 2, 2);
  if (outs[0].numel == 0) return;
  visit_int(outs[0].dtype, [&](auto t) {
    using T = decltype(t);
    using U = std::make_unsigned_t<T>;
    T lo = *c[0].as<T>(), hi = *c[1].as<T>();
    if (lo >= hi) fail("Need minval < maxval, got " + std::to_string(lo) + " >= " + std::to_string(hi));
    U range = U(hi) - U(lo);
    fill_int<T>(outs[0], gen, [=](U bits) { return U(U(lo) + bits % range); });
  });
}
void run_bits(const Call& c, Outs& outs) {
  Philox gen = philox_of(c, 2, 0);
  visit_int(outs[0].dtype,
            [&](auto t) { fill_int<decltype(t)>(outs[0], gen, [](auto bits) { return bits; }); });
}

// ---- dropout(x, state; rate): the same numbers as random_uniform of float, without storing them ----
void infer_dropout(const Call& c, Outs& outs) {
  want_dtype(c[0], set_of(Dtype::F32) | set_of(Dtype::F64), "dropout");
  want_state(c, 1);
  if (!(c.number(0) >= 0 && c.number(0) < 1))
    fail("rate must be in [0, 1), got " + std::to_string(c.number(0)));
  outs.emplace_back(c[0].spec());
}
void run_dropout(const Call& c, Outs& outs) {
  const Philox gen = philox_of(c, 1, 1);
  const float rate = float(c.number(0));
  const double scale = 1 / (1 - c.number(0));
  each_chunk((c[0].numel + 3) / 4, 4096, [&](int64_t begin, int64_t end) {
    const Philox at = gen.skip(uint64_t(begin));
    const int64_t first = 4 * begin, count = std::min(4 * end, c[0].numel) - first;
    if (c[0].dtype == Dtype::F32)
      kernels().philox->dropout(at.key, at.high, at.low, count, c[0].as<float>() + first,
                                outs[0].as<float>() + first, rate, scale);
    else
      kernels().philox->dropout_double(at.key, at.high, at.low, count, c[0].as<double>() + first,
                                       outs[0].as<double>() + first, rate, scale);
  });
}

// ---- stateless_state(seed) -> int64[3]: the stream of a stateless op. TensorFlow scrambles
// the two numbers with one step of Philox under a fixed key. ----
void infer_stateless(const Call& c, Outs& outs) {
  if (c[0].numel != 2 || !in(c[0].dtype, set_of(Dtype::I32) | set_of(Dtype::I64)))
    fail("seed must have shape [2], not " + c[0].shape.str());
  int64_t three = 3;
  outs.emplace_back(Spec{Dtype::I64, Shape(&three, 1)});
}
void run_stateless(const Call& c, Outs& outs) {
  bool narrow = c[0].dtype == Dtype::I32;
  uint64_t a = narrow ? uint64_t(int64_t(c[0].as<int32_t>()[0])) : uint64_t(c[0].as<int64_t>()[0]);
  uint64_t b = narrow ? uint64_t(int64_t(c[0].as<int32_t>()[1])) : uint64_t(c[0].as<int64_t>()[1]);
  Bits128 mix = Philox{0x02461e293ec8f720u, b, a}();
  int64_t* out = outs[0].as<int64_t>();
  out[0] = int64_t(mix[0] | uint64_t(mix[1]) << 32), out[1] = int64_t(mix[2] | uint64_t(mix[3]) << 32),
  out[2] = 0;
}

GT_OP("random_uniform", {infer_random<kFloat, 0>, run_uniform, true, 3});
GT_OP("random_normal", {infer_random<kFloat, 0>, run_normal, true, 15});
GT_OP("truncated_normal", {infer_random<kFloat, 0>, run_truncated, true, 25});
GT_OP("random_uniform_int", {infer_random<kWideInt, 2>, run_uniform_int, true, 5});
GT_OP("random_bits", {infer_random<kWideInt, 0>, run_bits, true, 3});
GT_OP("dropout", {infer_dropout, run_dropout, true, 1});
GT_OP("stateless_state", {infer_stateless, run_stateless});

}  // namespace
}  // namespace gt
