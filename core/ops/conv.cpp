// The convolution and its transposes as ops: checks of the operands, and the choice of the engine.
#include "conv.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "elementwise.h"
#include "strided.h"

namespace gt {

Side forward_side(const Geometry& f, int a) {
  return {f.out[a], 0, 1, f.in[a], f.stride[a], f.k[a], -f.pad[a], f.dilation[a], 0, 1};
}

Side input_side(const Geometry& f, int a, int64_t phase) {
  // Place i = phase + j * stride of x is used by place j + (phase + pad - t * dilation) / stride of g, for
  // the taps t where the division has no remainder. The last of them reaches back furthest.
  const int64_t s = f.stride[a], d = f.dilation[a], every = s / std::gcd(s, d);
  Side side{(f.in[a] - phase + s - 1) / s, phase, s, f.out[a], 1, 0, 0, d / std::gcd(s, d), 0, -every};
  int64_t first = 0;
  const int64_t most = std::min(every, f.k[a]);
  while (first < most && (phase + f.pad[a] - first * d) % s != 0) ++first;
  if (first == most) return side;
  side.taps = (f.k[a] - 1 - first) / every + 1;
  side.tap = first + (side.taps - 1) * every;
  side.at = (phase + f.pad[a] - side.tap * d) / s;
  return side;
}

namespace {

std::string text(int64_t n) { return std::to_string(n); }

// The attributes that all three ops have: strides, dilations and paddings from attribute `first` on.
Geometry read_window(const Call& c, int first, int& dims) {
  Geometry f;
  const auto &strides = c.ints(first), &dilations = c.ints(first + 1), &pads = c.ints(first + 2);
  dims = int(strides.size());
  if (dims < 1 || dims > 3)
    fail("a convolution has 1, 2 or 3 spatial dimensions, got " + text(dims) + " strides");
  if (int(dilations.size()) != dims)
    fail("expected " + text(dims) + " dilations, got " + text(int64_t(dilations.size())));
  want_paddings(pads, strides.size());
  for (int i = 0, a = 3 - dims; i < dims; ++i, ++a) {
    f.stride[a] = strides[size_t(i)], f.dilation[a] = dilations[size_t(i)];
    if (f.stride[a] <= 0) fail("Stride must be > 0, but got " + text(f.stride[a]));
    if (f.dilation[a] <= 0) fail("Dilated rates should be larger than 0, got " + text(f.dilation[a]));
  }
  return f;
}

void want_rank(const Shape& s, int rank, const char* what) {
  if (s.rank != rank) fail(std::string(what) + " must be " + text(rank) + "-dimensional: " + s.str());
}

// Sizes of x (`in`, with all channels) and of the filter (`k`, with channels in and out), and the sizes that
// follow.
Geometry fit(Geometry f, int dims, const std::vector<int64_t>& pads, const int64_t* in, int64_t channels,
             const int64_t* k, int64_t c, int64_t o) {
  if (c <= 0 || o <= 0 || std::any_of(k, k + dims, [](int64_t n) { return n <= 0; }))
    fail("filter must not have zero elements (i.e. all dimensions must be non-zero)");
  if (channels % c != 0)
    fail("input depth must be evenly divisible by filter depth: " + text(channels) + " vs " + text(c));
  f.groups = std::max<int64_t>(1, channels / c);
  if (o % f.groups != 0)
    fail("output depth must be evenly divisible by number of groups: " + text(o) + " vs " + text(f.groups));
  f.c = c, f.o = o / f.groups;
  for (int i = 0, a = 3 - dims; i < dims; ++i, ++a) {
    f.in[a] = in[i], f.k[a] = k[i];
    const int64_t span = checked_add(checked_mul(f.k[a] - 1, f.dilation[a]), 1);
    const auto [low, high] = padding_of(pads, i, f.in[a], span, f.stride[a]);
    const int64_t whole = checked_add(checked_add(f.in[a], low), high);
    f.pad[a] = low;
    f.out[a] = (whole - span + f.stride[a]) / f.stride[a];
    if (f.out[a] < 0)
      fail("Computed output size would be negative: " + text(f.out[a]) + " [input_size: " + text(whole) +
           ", effective_filter_size: " + text(span) + ", stride: " + text(f.stride[a]) + "]");
  }
  return f;
}

Spec spec(Dtype t, int64_t n, const int64_t* sizes, int dims, int64_t channels) {
  Spec s{t, {}};
  s.shape.push(n);
  for (int i = 0; i < dims; ++i) s.shape.push(sizes[i]);
  s.shape.push(channels);
  return s;
}

// ---- conv(x, filters; strides, dilations, paddings) ----
Geometry conv_geometry(const Call& c, int& dims) {
  Geometry f = read_window(c, 0, dims);
  const Shape &x = c[0].shape, &w = c[1].shape;
  want_rank(x, dims + 2, "input");
  want_rank(w, dims + 2, "filter");
  f.n = x[0];
  return fit(f, dims, c.ints(2), x.dims + 1, x[dims + 1], w.dims, w[dims], w[dims + 1]);
}
void want_floats(const Call& c) {
  want_dtype(c[0], kFloat, "a convolution");
  want_same_dtype(c[0], c[1]);
}
void infer_conv(const Call& c, Outs& outs) {
  want_floats(c);
  int dims;
  Geometry f = conv_geometry(c, dims);
  outs.emplace_back(spec(c[0].dtype, f.n, f.out + 3 - dims, dims, f.groups * f.o));
}

// ---- conv_input(g, filters; sizes, strides, dilations, paddings): sizes are those of x without its batch
// ----
void want_out(const Geometry& f, int dims, const Shape& g) {
  for (int i = 0, a = 3 - dims; i < dims; ++i, ++a)
    if (g[i + 1] != f.out[a])
      fail("Size of out_backprop doesn't match computed: actual = " + text(g[i + 1]) +
           ", computed = " + text(f.out[a]) + " spatial_dim: " + text(i + 1) + " input: " + text(f.in[a]) +
           " filter: " + text(f.k[a]) + " stride: " + text(f.stride[a]) +
           " dilation: " + text(f.dilation[a]));
}
Geometry input_geometry(const Call& c, int& dims) {
  Geometry f = read_window(c, 1, dims);
  const Shape &g = c[0].shape, &w = c[1].shape;
  const auto& sizes = c.ints(0);
  want_rank(g, dims + 2, "out_backprop");
  want_rank(w, dims + 2, "filter");
  if (int(sizes.size()) != dims + 1)
    fail("expected " + text(dims + 1) + " sizes, got " + text(int64_t(sizes.size())));
  for (int64_t s : sizes)
    if (s < 0) fail("a dimension must be non-negative, got " + text(s));
  f.n = g[0];
  f = fit(f, dims, c.ints(3), sizes.data(), sizes[size_t(dims)], w.dims, w[dims], w[dims + 1]);
  if (g[dims + 1] != f.groups * f.o)
    fail("filter and out_backprop must have the same out_depth: " + text(f.groups * f.o) + " vs " +
         text(g[dims + 1]));
  want_out(f, dims, g);
  return f;
}
void infer_input(const Call& c, Outs& outs) {
  want_floats(c);
  int dims;
  Geometry f = input_geometry(c, dims);
  outs.emplace_back(spec(c[0].dtype, f.n, f.in + 3 - dims, dims, f.groups * f.c));
}

// ---- conv_filter(x, g; sizes, strides, dilations, paddings): sizes are those of the filter without its last
// ----
Geometry filter_geometry(const Call& c, int& dims) {
  Geometry f = read_window(c, 1, dims);
  const Shape &x = c[0].shape, &g = c[1].shape;
  const auto& sizes = c.ints(0);
  want_rank(x, dims + 2, "input");
  want_rank(g, dims + 2, "out_backprop");
  if (int(sizes.size()) != dims + 1)
    fail("expected " + text(dims + 1) + " sizes, got " + text(int64_t(sizes.size())));
  if (x[0] != g[0])
    fail("input and out_backprop must have the same batch size. Input batch: " + text(x[0]) +
         ", outbackprop batch: " + text(g[0]));
  f.n = x[0];
  f = fit(f, dims, c.ints(3), x.dims + 1, x[dims + 1], sizes.data(), sizes[size_t(dims)], g[dims + 1]);
  want_out(f, dims, g);
  return f;
}
void infer_filter(const Call& c, Outs& outs) {
  want_floats(c);
  int dims;
  Geometry f = filter_geometry(c, dims);
  Spec s{c[0].dtype, {}};
  for (int a = 3 - dims; a < 3; ++a) s.shape.push(f.k[a]);
  s.shape.push(f.c);
  s.shape.push(f.groups * f.o);
  outs.emplace_back(s);
}

// ---- running them ----
enum class Which { Forward, Input, Filter };

template <class T> void run_engine(Which which, const Geometry& f, const T* x, const T* y, T* out) {
  using Engine = void (*)(const Geometry&, const T*, const T*, T*);
  constexpr Engine dense[] = {conv_forward<T>, conv_by_input<T>, conv_by_filter<T>};
  if constexpr (std::is_same_v<T, float>)
    if (winograd_is_faster(f)) {
      constexpr Engine fast[] = {winograd_forward, winograd_by_input, winograd_by_filter};
      return fast[int(which)](f, x, y, out);
    }
  if constexpr (!std::is_same_v<T, bfloat>)
    if (f.depthwise()) {
      constexpr Engine single[] = {depthwise_forward<T>, depthwise_by_input<T>, depthwise_by_filter<T>};
      return single[int(which)](f, x, y, out);
    }
  dense[int(which)](f, x, y, out);
}

template <class T>
void run_typed(Which which, const Geometry& f, const Tensor& x, const Tensor& y, Tensor& out) {
  if (f.groups > 1 && !f.depthwise()) {
    const Geometry joined = joined_groups(f, which == Which::Input ? f.c : f.o, conv_loops_of<T>().lanes);
    if (joined.groups < f.groups && which == Which::Filter) {
      const Scratch<T> whole(f.taps() * joined.c * f.groups * f.o);
      run_engine(which, joined, x.as<T>(), y.as<T>(), whole.at);
      return part_filter<T>(f, joined, whole.at, out.as<T>());
    }
    if (joined.groups < f.groups) {
      const Scratch<T> whole = join_filter<T>(f, joined, y.as<T>());
      return run_engine<T>(which, joined, x.as<T>(), whole.at, out.as<T>());
    }
  }
  run_engine(which, f, x.as<T>(), y.as<T>(), out.as<T>());
}

Tensor as_float(const Tensor& x) {
  Tensor y = empty(Dtype::F32, x.shape);
  run_cast(x, y);
  return y;
}

// Whether bfloat16 has its own kernels for this. Winograd's convolution saves about as much as they do, in
// products of float.
bool multiplies_bfloat(Which which, const Geometry& f) {
  if (!conv_loops_of<bfloat>().tile || f.depthwise()) return false;
  return which == Which::Filter ||
         !narrow_is_faster<float>(f, which == Which::Input ? f.c : f.o, which == Which::Input ? f.o : f.c);
}

void run(Which which, const Geometry& f, const Call& c, Outs& outs) {
  Tensor& out = outs[0];
  if (out.numel == 0) return;
  if (c[0].numel == 0 || c[1].numel == 0) return zero(out.data, out.nbytes());
  if (out.dtype == Dtype::BF16 && multiplies_bfloat(which, f))
    return run_typed<bfloat>(which, f, c[0], c[1], out);
  if (in(out.dtype, kHalf)) {  // summed in float
    Tensor wide = empty(Dtype::F32, out.shape);
    run_typed<float>(which, f, as_float(c[0]), as_float(c[1]), wide);
    return run_cast(wide, out);
  }
  out.dtype == Dtype::F32 ? run_typed<float>(which, f, c[0], c[1], out)
                          : run_typed<double>(which, f, c[0], c[1], out);
}

template <Which which, Geometry (*geometry)(const Call&, int&)> void run_op(const Call& c, Outs& outs) {
  int dims;
  run(which, geometry(c, dims), c, outs);
}

GT_OP("conv", {infer_conv, run_op<Which::Forward, conv_geometry>, true, 4.0});
GT_OP("conv_input", {infer_input, run_op<Which::Input, input_geometry>, true, 4.0});
GT_OP("conv_filter", {infer_filter, run_op<Which::Filter, filter_geometry>, true, 4.0});

}  // namespace
}  // namespace gt
