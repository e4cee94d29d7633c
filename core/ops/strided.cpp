// The one strided copy behind transpose, slicing, tiling, padding, joining and the rest.
#include "strided.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#include <xmmintrin.h>
#endif

namespace gt {
namespace {

constexpr int64_t kChunk = 1 << 18;  // bytes worth handing to a thread

// The last two loops of a nest: `rows` outer iterations of `n` inner ones.
struct Plane {
  int64_t rows, row_src, row_dst, n, src, dst;
};

template <class W> void copy_rows(W* dst, const W* src, const Plane& p) {
  if (p.n * int64_t(sizeof(W)) >= 64) {
    for (int64_t r = 0; r < p.rows; ++r)
      std::memcpy(dst + r * p.row_dst, src + r * p.row_src, size_t(p.n) * sizeof(W));
    return;
  }
  for (int64_t r = 0; r < p.rows; ++r) {  // short rows: a call of memcpy costs more than the row
    W* d = dst + r * p.row_dst;
    const W* s = src + r * p.row_src;
    for (int64_t i = 0; i < p.n; ++i) d[i] = s[i];
  }
}

// A block of T x T elements: reads T runs of T elements, one a line of the result's columns.
template <class W, int T> inline void transpose_block(W* dst, int64_t row_dst, const W* src, int64_t stride) {
#if defined(__SSE2__)
  if constexpr (sizeof(W) == 4 && T % 4 == 0) {
    for (int i = 0; i < T; i += 4)
      for (int j = 0; j < T; j += 4) {
        const float* s = reinterpret_cast<const float*>(src + j * stride + i);
        float* d = reinterpret_cast<float*>(dst + i * row_dst + j);
        __m128 a = _mm_loadu_ps(s), b = _mm_loadu_ps(s + stride), c = _mm_loadu_ps(s + 2 * stride),
               e = _mm_loadu_ps(s + 3 * stride);
        _MM_TRANSPOSE4_PS(a, b, c, e);
        _mm_storeu_ps(d, a), _mm_storeu_ps(d + row_dst, b), _mm_storeu_ps(d + 2 * row_dst, c),
            _mm_storeu_ps(d + 3 * row_dst, e);
      }
    return;
  }
  if constexpr (sizeof(W) == 8) {
    for (int i = 0; i < T; i += 2)
      for (int j = 0; j < T; j += 2) {
        const double* s = reinterpret_cast<const double*>(src + j * stride + i);
        double* d = reinterpret_cast<double*>(dst + i * row_dst + j);
        __m128d a = _mm_loadu_pd(s), b = _mm_loadu_pd(s + stride);
        _mm_storeu_pd(d, _mm_unpacklo_pd(a, b)), _mm_storeu_pd(d + row_dst, _mm_unpackhi_pd(a, b));
      }
    return;
  }
#endif
  W block[T][T];
  for (int j = 0; j < T; ++j) std::memcpy(block[j], src + j * stride, sizeof(block[j]));
  for (int i = 0; i < T; ++i)
    for (int j = 0; j < T; ++j) dst[i * row_dst + j] = block[j][i];
}

// Rows of the result are columns of the source (row_src is 1).
template <class W> void transpose_rows(W* dst, const W* src, const Plane& p) {
  constexpr int T = sizeof(W) > 8 ? 8 : 16;
  int64_t rows = p.rows / T * T, n = p.n / T * T;
  for (int64_t r = 0; r < rows; r += T) {
    for (int64_t j = 0; j < n; j += T)
      transpose_block<W, T>(dst + r * p.row_dst + j, p.row_dst, src + r + j * p.src, p.src);
    for (int64_t i = r; i < r + T; ++i)
      for (int64_t j = n; j < p.n; ++j) dst[i * p.row_dst + j] = src[i + j * p.src];
  }
  for (int64_t j = 0; j < p.n; ++j)
    for (int64_t i = rows; i < p.rows; ++i) dst[i * p.row_dst + j] = src[i + j * p.src];
}

template <class W> void copy_plane(W* dst, const W* src, const Plane& p) {
  if (p.dst == 1 && p.src == 1) return copy_rows(dst, src, p);
  if (p.dst == 1 && p.row_src == 1 && p.rows >= 4 && p.n >= 4) return transpose_rows(dst, src, p);
  if (p.dst == 1 && p.src == 0) {
    for (int64_t r = 0; r < p.rows; ++r) std::fill_n(dst + r * p.row_dst, p.n, src[r * p.row_src]);
    return;
  }
  for (int64_t r = 0; r < p.rows; ++r) {
    W* d = dst + r * p.row_dst;
    const W* s = src + r * p.row_src;
    for (int64_t i = 0; i < p.n; ++i, d += p.dst, s += p.src) *d = *s;
  }
}

// Fewer and longer loops for the same copy: drops loops of one iteration, orders the rest so that the result
// is written front to back, and merges adjacent axes that are one run in both views.
void coalesce(Nest& t) {
  int k = 0;
  for (int i = 0; i < t.rank; ++i)
    if (t.size[i] != 1) t.size[k] = t.size[i], t.src[k] = t.src[i], t.dst[k] = t.dst[i], ++k;
  t.rank = k;
  for (int i = 1; i < t.rank; ++i)
    for (int j = i; j > 0 && std::abs(t.dst[j]) > std::abs(t.dst[j - 1]); --j) {
      std::swap(t.size[j], t.size[j - 1]);
      std::swap(t.src[j], t.src[j - 1]);
      std::swap(t.dst[j], t.dst[j - 1]);
    }
  k = 0;
  for (int i = 0; i < t.rank; ++i) {
    if (k && t.src[k - 1] == t.src[i] * t.size[i] && t.dst[k - 1] == t.dst[i] * t.size[i])
      t.size[k - 1] *= t.size[i], t.src[k - 1] = t.src[i], t.dst[k - 1] = t.dst[i];
    else
      t.size[k] = t.size[i], t.src[k] = t.src[i], t.dst[k] = t.dst[i], ++k;
  }
  t.rank = k;
}

template <class W> void run_nest(W* dst, const W* src, Nest& t) {
  if (t.rank == 1) {
    each_chunk(t.size[0], kChunk / int64_t(sizeof(W)), [&](int64_t begin, int64_t end) {
      copy_plane(dst + begin * t.dst[0], src + begin * t.src[0],
                 Plane{1, 0, 0, end - begin, t.src[0], t.dst[0]});
    });
    return;
  }
  int last = t.rank - 1;
  if (t.src[last] != 1)  // bring the loop that runs along the source next to the last one
    for (int i = 0; i < last - 1; ++i)
      if (t.src[i] == 1) {
        std::rotate(t.size + i, t.size + i + 1, t.size + last);
        std::rotate(t.src + i, t.src + i + 1, t.src + last);
        std::rotate(t.dst + i, t.dst + i + 1, t.dst + last);
        break;
      }
  Plane p{t.size[last - 1], t.src[last - 1], t.dst[last - 1], t.size[last], t.src[last], t.dst[last]};
  int64_t planes = 1;
  for (int i = 0; i < last - 1; ++i) planes *= t.size[i];
  int64_t grain = std::max<int64_t>(1, kChunk / int64_t(sizeof(W)) / p.n);
  if (p.src != 1 && p.row_src == 1) grain = (grain + 63) / 64 * 64;  // whole blocks of a transpose
  each_chunk(planes * p.rows, grain, [&](int64_t begin, int64_t end) {
    int64_t at[Nest::kMax], plane = begin / p.rows, row = begin % p.rows, s = 0, d = 0;
    for (int i = last - 2; i >= 0; --i) {
      at[i] = plane % t.size[i], plane /= t.size[i];
      s += at[i] * t.src[i], d += at[i] * t.dst[i];
    }
    while (true) {
      Plane part = p;
      part.rows = std::min(p.rows - row, end - begin);
      copy_plane(dst + d + row * p.row_dst, src + s + row * p.row_src, part);
      begin += part.rows, row = 0;
      if (begin == end) return;
      for (int i = last - 2; i >= 0; --i) {
        s += t.src[i], d += t.dst[i];
        if (++at[i] < t.size[i]) break;
        s -= t.size[i] * t.src[i], d -= t.size[i] * t.dst[i], at[i] = 0;
      }
    }
  });
}

}  // namespace

void strided_copy(char* dst, const char* src, int width, Nest t) {
  for (int i = 0; i < t.rank; ++i)
    if (t.size[i] <= 0) return;
  coalesce(t);
  if (t.rank == 0) {
    std::memcpy(dst, src, size_t(width));
    return;
  }
  visit_width(width, [&](auto w) {
    using W = decltype(w);
    run_nest(reinterpret_cast<W*>(dst), reinterpret_cast<const W*>(src), t);
  });
}

void copy_bytes(char* dst, const char* src, int64_t bytes) {
  each_chunk(bytes, kChunk, [&](int64_t b, int64_t e) { std::memcpy(dst + b, src + b, size_t(e - b)); });
}

void zero(char* dst, int64_t bytes) {
  each_chunk(bytes, kChunk, [&](int64_t b, int64_t e) { std::memset(dst + b, 0, size_t(e - b)); });
}

void fill(char* dst, const char* value, int width, int64_t n) {
  visit_width(width, [&](auto w) {
    using W = decltype(w);
    W v;
    std::memcpy(&v, value, sizeof(W));
    each_chunk(n, kChunk / width, [&](int64_t b, int64_t e) {
      std::fill(reinterpret_cast<W*>(dst) + b, reinterpret_cast<W*>(dst) + e, v);
    });
  });
}

}  // namespace gt
