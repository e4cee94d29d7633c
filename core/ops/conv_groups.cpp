// Small groups: a few of them side by side are one group, with a filter that is zero between them. The
// products with these zeros are free: a small group would leave those lanes of a vector empty.
#include <algorithm>

#include "conv.h"

namespace gt {

Geometry joined_groups(const Geometry& f, int64_t results, int64_t lanes) {
  int64_t many = 1;
  for (int64_t m = 2; m * results <= lanes; ++m)
    if (f.groups % m == 0) many = m;
  Geometry j = f;
  j.groups /= many, j.c *= many, j.o *= many;
  return j;
}

namespace {

// Calls f(row of the joined filter, of the filter, first column) for each run of `f.o` columns that is not
// zero.
template <class F> void each_run(const Geometry& f, const Geometry& joined, F&& run) {
  const int64_t many = f.groups / joined.groups;
  each_chunk(f.taps(), grain_rows(f.c * f.groups * f.o), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t g = 0; g < f.groups; ++g)
        for (int64_t c = 0; c < f.c; ++c) run(t * joined.c + g % many * f.c + c, t * f.c + c, g * f.o);
  });
}

}  // namespace

template <class T> Scratch<T> join_filter(const Geometry& f, const Geometry& joined, const T* w) {
  const int64_t columns = f.groups * f.o, size = f.taps() * joined.c * columns;
  Scratch<T> room(size);
  zero(reinterpret_cast<char*>(room.at), size * int64_t(sizeof(T)));
  each_run(f, joined, [&](int64_t to, int64_t from, int64_t column) {
    std::copy_n(w + from * columns + column, f.o, room.at + to * columns + column);
  });
  return room;
}

template <class T> void part_filter(const Geometry& f, const Geometry& joined, const T* from, T* w) {
  const int64_t columns = f.groups * f.o;
  each_run(f, joined, [&](int64_t row, int64_t to, int64_t column) {
    std::copy_n(from + row * columns + column, f.o, w + to * columns + column);
  });
}

template Scratch<float> join_filter<float>(const Geometry&, const Geometry&, const float*);
template Scratch<double> join_filter<double>(const Geometry&, const Geometry&, const double*);
template Scratch<bfloat> join_filter<bfloat>(const Geometry&, const Geometry&, const bfloat*);
template void part_filter<float>(const Geometry&, const Geometry&, const float*, float*);
template void part_filter<double>(const Geometry&, const Geometry&, const double*, double*);
template void part_filter<bfloat>(const Geometry&, const Geometry&, const bfloat*, bfloat*);

}  // namespace gt
