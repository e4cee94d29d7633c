// Runs of rows that move together: take_runs and its transpose. Rows of ragged tensors are such runs.
#include <cstring>

#include "indices.h"

namespace gt {
namespace {

// ---- take_runs(x, starts, lengths, places; size): zeros of `size` rows with x[start:start + length] at each
// place. The places do not overlap; starts may. add_runs is the transpose: starts do not overlap, and rows at
// the same place are added up. ----
void infer_runs(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  const int64_t size = c.integer(0);
  constexpr const char* names[] = {"starts", "lengths", "places"};
  for (int k : {1, 2, 3}) {
    want_indices(c[k], names[k - 1]);
    if (c[k].shape.rank != 1 || !(c[k].shape == c[1].shape))
      fail("starts, lengths and places must be vectors of one length, got " + c[1].shape.str() + ", " +
           c[2].shape.str() + " and " + c[3].shape.str());
  }
  if (x.shape.rank < 1) fail("x must have at least one dimension");
  if (size < 0) fail("size must be non-negative, got " + std::to_string(size));
  Spec s{x.dtype, x.shape};
  s.shape[0] = size;
  outs.emplace_back(s);
}

struct Runs {
  const int64_t *starts, *lengths, *places;
  int64_t count, size;  // of the result, in rows
  int64_t bytes;        // of a row
  Tensor wide[3];       // operands that came as int32, converted

  explicit Runs(const Call& c, int64_t size)
      : count(c[1].numel),
        size(size),
        bytes(dtype_size(c[0].dtype) * product(c[0].shape, 1, c[0].shape.rank)) {
    const int64_t* p[3];
    for (int k = 0; k < 3; ++k) {
      wide[k] = c[k + 1];
      if (wide[k].dtype == Dtype::I32) {
        wide[k] = empty(Dtype::I64, c[k + 1].shape);
        std::copy_n(c[k + 1].as<int32_t>(), count, wide[k].as<int64_t>());
      }
      p[k] = wide[k].as<int64_t>();
    }
    starts = p[0], lengths = p[1], places = p[2];
    const int64_t rows = c[0].shape[0];
    bool bad = false;  // no branch: this loop runs over every run
    for (int64_t r = 0; r < count; ++r) {
      bad |= !fits(starts[r], lengths[r], rows);
      bad |= !fits(places[r], lengths[r], size);
    }
    if (!bad) return;
    for (int64_t r = 0; r < count; ++r) {
      want_inside("starts", starts, r, rows);
      want_inside("places", places, r, size);
    }
  }
  // Whether runs that begin at `at` are in order and do not overlap; `where`: the first that does.
  bool apart(const int64_t* at, int64_t* where) const {
    bool overlap = false;
    for (int64_t r = 1; r < count; ++r) overlap |= at[r] < at[r - 1] + lengths[r - 1];
    if (overlap && where)
      for (*where = 1; at[*where] >= at[*where - 1] + lengths[*where - 1];) ++*where;
    return !overlap;
  }
  void want_apart(const char* what, const int64_t* at) const {
    int64_t r;
    if (!apart(at, &r))
      fail(std::string(what) + "[" + std::to_string(r) + "] = " + std::to_string(at[r]) +
           " is before the end of the run before it, " + std::to_string(at[r - 1] + lengths[r - 1]));
  }

 private:
  static bool fits(int64_t at, int64_t length, int64_t limit) {
    return (uint64_t(length) <= uint64_t(limit)) & (uint64_t(at) <= uint64_t(limit) - uint64_t(length));
  }
  void want_inside(const char* what, const int64_t* at, int64_t r, int64_t limit) const {
    if (!fits(at[r], lengths[r], limit))
      fail("a run of " + std::to_string(lengths[r]) + " rows at " + what + "[" + std::to_string(r) +
           "] = " + std::to_string(at[r]) + " is not inside of " + std::to_string(limit) + " rows");
  }
};

// The number of runs in a chunk, by their work in elements.
int64_t grain(const Runs& v, int64_t elements) {
  return grain_rows(elements / std::max<int64_t>(v.count, 1) + 8, 1 << 16);
}

// For places that do not overlap: each chunk also writes the zeros before its runs.
void copy_runs(const Runs& v, const Tensor& x, Tensor& out) {
  char* to = out.data;
  if (v.count == 0) return zero(to, out.nbytes());
  auto end_of = [&](int64_t r) { return r < 0 ? int64_t(0) : v.places[r] + v.lengths[r]; };
  each_chunk(v.count, grain(v, out.numel), [&](int64_t begin, int64_t end) {
    int64_t at = end_of(begin - 1);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t place = v.places[r], length = v.lengths[r];
      if (place > at) std::memset(to + at * v.bytes, 0, size_t((place - at) * v.bytes));
      if (length) std::memcpy(to + place * v.bytes, x.data + v.starts[r] * v.bytes, size_t(length * v.bytes));
      at = place + length;
    }
  });
  const int64_t at = end_of(v.count - 1);
  if (v.size > at) zero(to + at * v.bytes, (v.size - at) * v.bytes);
}

void run_take_runs(const Call& c, Outs& outs) {
  const Runs v(c, outs[0].shape[0]);
  v.want_apart("places", v.places);
  if (outs[0].numel) copy_runs(v, c[0], outs[0]);
}

void run_add_runs(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  const Runs v(c, out.shape[0]);
  v.want_apart("starts", v.starts);
  if (out.numel == 0) return;
  if (v.apart(v.places, nullptr)) return copy_runs(v, x, out);
  zero(out.data, out.nbytes());
  RowLoop add(x.dtype, Combine::Add);
  const int64_t w = dtype_size(x.dtype), inner = v.bytes / w;
  auto add_all = [&](char* to, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      add(to + v.places[r] * v.bytes, x.data + v.starts[r] * v.bytes, v.lengths[r] * inner);
  };
  // Few sums of many rows: chunks have their own sums, which are added up in order.
  const int64_t runs = grain(v, x.numel), parts = (v.count + runs - 1) / runs;
  if (parts == 1 || parts * out.numel > x.numel / 4) return add_all(out.data, 0, v.count);
  const int64_t all[2] = {parts, out.numel};
  Tensor sums = empty(x.dtype, Shape(all, 2));
  zero(sums.data, sums.nbytes());
  each_chunk(v.count, runs, [&](int64_t begin, int64_t end) {
    add_all(sums.data + begin / runs * out.nbytes(), begin, end);
  });
  for (int64_t k = 0; k < parts; ++k) add(out.data, sums.data + k * out.nbytes(), out.numel);
}

void infer_add_runs(const Call& c, Outs& outs) {
  want_dtype(c[0], kNumber, "add_runs");
  infer_runs(c, outs);
}

GT_OP("take_runs", {infer_runs, run_take_runs, true, 1});
GT_OP("add_runs", {infer_add_runs, run_add_runs, true, 1});

}  // namespace
}  // namespace gt
