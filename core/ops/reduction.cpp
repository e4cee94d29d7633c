// Reductions over any set of axes. Neighbouring axes that are both reduced or both kept are
// merged; each run of reduced axes is then the middle of [outer, size, inner]. The work is cut
// into chunks that depend on the sizes only.
#include "reduction.h"

#include <algorithm>
#include <type_traits>

#include "strided.h"

namespace gt {

Shape reduced_shape(const Shape& x, uint32_t mask, bool keepdims) {
  Shape s;
  for (int i = 0; i < x.rank; ++i) {
    if (!(mask >> i & 1))
      s.push(x[i]);
    else if (keepdims)
      s.push(1);
  }
  return s;
}

uint32_t axes_mask(const Call& c, int k, const Shape& x) {
  uint32_t mask = 0;
  for (int64_t a : c.ints(k)) {
    if (a < 0 || a >= x.rank)
      fail("Invalid reduction dimension (" + std::to_string(a) + " for input with " + std::to_string(x.rank) +
           " dimension(s)");
    if (mask >> a & 1)
      fail("Invalid reduction arguments: Axes contains duplicate dimension: " + std::to_string(a));
    mask |= 1u << a;
  }
  return mask;
}

namespace {

constexpr int64_t kChunkElements = 1 << 16;  // worth a thread
constexpr int64_t kScratchBytes = 1 << 16;

// One reduction of the middle of [outer, size, inner].
struct Middle {
  int64_t outer, size, inner;
};

// The loops of 16-bit floats give float. Means of integers are computed in a wider type, to which they are
// converted first.
Dtype computing_type(const ReduceOp& op, Dtype t) {
  if (in(t, kHalf)) return Dtype::F32;
  if (op.mean && is_int(t)) return in(t, kSigned) ? Dtype::I64 : Dtype::U64;
  return t;
}

// Memory while a part is reduced. Not on the stack, which may be small (musl: 128 KB).
struct Room {
  Buffer* buffer;
  explicit Room(int64_t bytes) : buffer(allocate(size_t(bytes))) {}
  ~Room() { unref(buffer); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  char* data() const { return buffer->data; }
};

// A part of the input, [rows, columns] with `stride` elements from row to row, to out[columns].
struct PartReducer {
  ReduceLoop first, again;
  CastLoop cast;  // nullptr when `first` reads the input as it is
  int64_t in_width, width;

  void operator()(char* out, const char* in, int64_t rows, int64_t columns, int64_t stride) const {
    if (!cast && (columns == stride || rows == 1)) return first(out, in, rows, columns);
    const int64_t copied = cast ? width : in_width,
                  most = std::min(rows, std::max<int64_t>(1, kScratchBytes / copied / columns)),
                  copies = (most * columns * copied + 63) / 64 * 64;
    const Room room(copies + 2 * columns * width);
    char *scratch = room.data(), *sums = scratch + copies;
    for (int64_t r = 0; r < rows; r += most) {
      int64_t n = std::min(most, rows - r);
      if (columns == stride)
        cast(scratch, in + r * stride * in_width, n * columns);
      else
        for (int64_t i = 0; i < n; ++i) {
          const char* row = in + (r + i) * stride * in_width;
          char* to = scratch + i * columns * copied;
          if (cast)
            cast(to, row, columns);
          else
            std::memcpy(to, row, size_t(columns * copied));
        }
      first(r ? sums + columns * width : sums, scratch, n, columns);
      if (r) again(sums, sums, 2, columns);
    }
    std::memcpy(out, sums, size_t(columns * width));
  }
};

// Many short rows: a block of them is transposed first, because one call of a loop for each row would cost
// more than the row.
constexpr int64_t kShortRow = 32, kRowBlock = 512;

void reduce_short_rows(const PartReducer& part, char* out, const char* in, int64_t rows, int64_t size) {
  each_chunk((rows + kRowBlock - 1) / kRowBlock, grain_rows(kRowBlock * size, kChunkElements),
             [&](int64_t begin, int64_t end) {
               const Room room(size * kRowBlock * part.in_width);
               char* side = room.data();
               for (int64_t b = begin; b < end; ++b) {
                 int64_t at = b * kRowBlock, n = std::min(kRowBlock, rows - at);
                 Nest t;
                 t.push(size, 1, n);
                 t.push(n, size, 1);
                 strided_copy(side, in + at * size * part.in_width, int(part.in_width), t);
                 part.first(out + at * part.width, side, size, n);
               }
             });
}

void reduce_middle(const PartReducer& part, char* out, const char* in, Dtype t, Middle v) {
  int64_t w = part.width, block = v.size * v.inner;
  if (v.inner == 1 && v.size < kShortRow && v.outer >= 16 && !part.cast)
    return reduce_short_rows(part, out, in, v.outer, v.size);
  bool copies = part.cast != nullptr;
  if (v.inner == 1 && !copies && (v.outer >= 16 || v.size <= 2 * kChunkElements)) {  // whole rows
    each_chunk(v.outer, grain_rows(v.size, kChunkElements), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o)
        part.first(out + o * w, in + o * v.size * part.in_width, v.size, 1);
    });
    return;
  }
  // Blocks of columns: as wide as the scratch allows, or narrow enough to share the work.
  int64_t columns = v.inner;
  if (columns > 2048 && (copies || (v.outer < 16 && block > 2 * kChunkElements))) columns = 2048;
  int64_t across = (v.inner + columns - 1) / columns;
  // Parts of a long reduction; the partial results are reduced once more.
  int64_t rows = v.size;
  if (v.outer * across < 16 && v.size * columns > 2 * kChunkElements)
    rows = std::max<int64_t>({16, kChunkElements / columns / 16 * 16, (v.size + 255) / 256});
  int64_t parts = (v.size + rows - 1) / rows;
  Tensor partial;
  char* to = out;
  if (parts > 1) {
    int64_t n = v.outer * parts * v.inner;
    partial = empty(t, Shape(&n, 1));
    to = partial.data;
  }
  each_chunk(v.outer * parts * across, grain_rows(rows * columns, kChunkElements),
             [&](int64_t begin, int64_t end) {
               for (int64_t i = begin; i < end; ++i) {
                 int64_t c = i % across, p = i / across % parts, o = i / across / parts;
                 int64_t from = o * block + p * rows * v.inner + c * columns;
                 part(to + ((o * parts + p) * v.inner + c * columns) * w, in + from * part.in_width,
                      std::min(rows, v.size - p * rows), std::min(columns, v.inner - c * columns), v.inner);
               }
             });
  if (parts > 1)
    for (int64_t o = 0; o < v.outer; ++o)
      part.again(out + o * v.inner * w, to + o * parts * v.inner * w, parts, v.inner);
}

void divide(char* data, Dtype t, int64_t n, int64_t count) {
  visit(t, [&](auto x) {
    using T = decltype(x);
    T* p = reinterpret_cast<T*>(data);
    if constexpr (std::is_integral_v<T>) {
      for (int64_t i = 0; i < n; ++i) p[i] = count ? T(p[i] / T(count)) : T(0);
    } else if constexpr (std::is_floating_point_v<T>) {
      for (int64_t i = 0; i < n; ++i) p[i] /= T(count);
    } else if constexpr (std::is_same_v<T, c64> || std::is_same_v<T, c128>) {
      for (int64_t i = 0; i < n; ++i) p[i] /= typename T::value_type(count);
    }
  });
}

}  // namespace

void run_reduce(const ReduceOp& op, const Tensor& x, uint32_t mask, Tensor& out) {
  if (out.numel == 0) return;
  Dtype t = computing_type(op, x.dtype);
  // Runs of axes, alternately kept and reduced, without those of size 1.
  int n = 0;
  int64_t size[kMaxRank];
  bool reduced[kMaxRank];
  for (int i = 0; i < x.shape.rank; ++i) {
    bool r = mask >> i & 1;
    if (x.shape[i] == 1) continue;
    if (n && reduced[n - 1] == r)
      size[n - 1] *= x.shape[i];
    else
      size[n] = x.shape[i], reduced[n++] = r;
  }
  int last = n - 1;
  int64_t inner = 1;
  while (last >= 0 && !reduced[last]) inner *= size[last--];

  const bool read = op.first->out[int(x.dtype)] == t;  // as it is
  PartReducer part{op.first->loop[int(read ? x.dtype : t)], op.again->loop[int(t)],
                   read ? nullptr : find_cast(x.dtype, t), dtype_size(x.dtype), dtype_size(t)};
  Tensor wide;  // the result in the computing type
  if (t != out.dtype) wide = empty(t, out.shape);
  char* result = t == out.dtype ? out.data : wide.data;
  if (x.numel == 0) {
    part.first(result, nullptr, 0, out.numel);
  } else if (last < 0) {  // nothing to reduce, but an element may still change (its square)
    reduce_middle(part, result, x.data, t, {1, 1, x.numel});
  } else {
    Tensor held;
    const char* from = x.data;
    for (;; --last) {
      if (!reduced[last]) {
        inner *= size[last];
        continue;
      }
      Middle v{1, size[last], inner};
      bool more = false;
      for (int i = 0; i < last; ++i) v.outer *= size[i], more |= reduced[i];
      if (!more) {
        reduce_middle(part, result, from, t, v);
        break;
      }
      int64_t count = v.outer * v.inner;
      Tensor next = empty(t, Shape(&count, 1));
      reduce_middle(part, next.data, from, t, v);
      held = std::move(next);
      from = held.data;
      part = {part.again, part.again, nullptr, part.width, part.width};
    }
  }
  if (op.mean) divide(result, t, out.numel, x.numel / out.numel);
  if (t != out.dtype) find_cast(t, out.dtype)(out.data, result, out.numel);
}

namespace {

// An op that reduces: name(x; axes, keepdims).
template <const ReduceOp& (*op)()> void infer_reduce(const Call& c, Outs& outs) {
  uint32_t mask = axes_mask(c, 0, c[0].shape);
  if (!op().first->loop[int(c[0].dtype)])
    fail(std::string("reduce is not defined for ") + dtype_name(c[0].dtype));
  outs.emplace_back(Spec{c[0].dtype, reduced_shape(c[0].shape, mask, c.integer(1))});
}
template <const ReduceOp& (*op)()> void run_reduce_op(const Call& c, Outs& outs) {
  run_reduce(op(), c[0], axes_mask(c, 0, c[0].shape), outs[0]);
}
#define GT_REDUCE(name, ...)               \
  static const ReduceOp& op_##name() {     \
    static const ReduceOp op{__VA_ARGS__}; \
    return op;                             \
  }                                        \
  GT_OP(#name, {infer_reduce<op_##name>, run_reduce_op<op_##name>, true, 0.3})

GT_REDUCE(sum, find_reduction("sum"), find_reduction("sum"));
GT_REDUCE(prod, find_reduction("prod"), find_reduction("prod"));
GT_REDUCE(max, find_reduction("max"), find_reduction("max"));
GT_REDUCE(min, find_reduction("min"), find_reduction("min"));
GT_REDUCE(any, find_reduction("any"), find_reduction("any"));
GT_REDUCE(all, find_reduction("all"), find_reduction("all"));
GT_REDUCE(mean, find_reduction("sum"), find_reduction("sum"), true);
GT_REDUCE(sum_squares, find_reduction("sum_squares"), find_reduction("sum"));

// ---- sum_to(x; shape): the transpose of broadcasting ----
uint32_t sum_to_mask(const Shape& x, const Shape& s) {
  if (s.rank > x.rank) return ~0u;
  uint32_t mask = (1u << (x.rank - s.rank)) - 1;
  for (int i = 0, skip = x.rank - s.rank; i < s.rank; ++i) {
    if (s[i] == x[i + skip]) continue;
    if (s[i] != 1) return ~0u;
    mask |= 1u << (i + skip);
  }
  return mask;
}
void infer_sum_to(const Call& c, Outs& outs) {
  want_dtype(c[0], kNumber, "sum_to");
  Spec s{c[0].dtype, shape_attr(c, 0)};
  if (sum_to_mask(c[0].shape, s.shape) == ~0u)
    fail("Incompatible shapes: " + s.shape.str() + " does not broadcast to " + c[0].shape.str());
  outs.emplace_back(s);
}
void run_sum_to(const Call& c, Outs& outs) {
  if (c[0].numel == outs[0].numel) return outs[0].share(c[0]);
  outs[0].claim();
  run_reduce(op_sum(), c[0], sum_to_mask(c[0].shape, outs[0].shape), outs[0]);
}
GT_OP("sum_to", {infer_sum_to, run_sum_to, false, 0.3});

// ---- argmax(x; axis, dtype), argmin ----
void infer_arg(const Call& c, Outs& outs) {
  want_dtype(c[0], kReal | kBool, "argmax and argmin");
  int axis = axis_attr(c, 0, c[0].shape.rank);
  Dtype t = dtype_attr(c, 1);
  if (t != Dtype::I32 && t != Dtype::I64 && t != Dtype::I16 && t != Dtype::U16)
    fail(std::string("output_type must be int32, int64, int16 or uint16, got ") + dtype_name(t));
  Spec s{t, reduced_shape(c[0].shape, 1u << axis, false)};
  if (c[0].shape[axis] == 0 && s.shape.numel() != 0)
    fail("Reduction axis " + std::to_string(axis) + " is empty in shape " + c[0].shape.str());
  outs.emplace_back(s);
}
void run_arg(const Reduction& r, const Call& c, Tensor& out) {
  const Tensor& x = c[0];
  if (out.numel == 0) return;
  ReduceLoop loop = r.loop[int(x.dtype == Dtype::Bool ? Dtype::U8 : x.dtype)];  // Booleans are bytes
  Split v(x.shape, int(c.integer(0)));
  Tensor wide = out.dtype == Dtype::I64 ? out : empty(Dtype::I64, out.shape);
  int64_t w = dtype_size(x.dtype);
  each_chunk(v.outer, grain_rows(v.size * v.inner), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      loop(wide.as<int64_t>() + o * v.inner, x.data + o * v.size * v.inner * w, v.size, v.inner);
  });
  if (out.dtype != Dtype::I64) find_cast(Dtype::I64, out.dtype)(out.data, wide.data, out.numel);
}
GT_OP("argmax",
      {infer_arg, [](const Call& c, Outs& outs) { run_arg(*find_reduction("argmax"), c, outs[0]); }});
GT_OP("argmin",
      {infer_arg, [](const Call& c, Outs& outs) { run_arg(*find_reduction("argmin"), c, outs[0]); }});

}  // namespace
}  // namespace gt
