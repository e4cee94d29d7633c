// The register tiles of convolutions (conv.cpp) of bfloat16 with AVX512_BF16, which multiplies pairs and adds
// to float: pairs of channels in a sum over taps, pairs of pixels in the gradient with respect to a filter.
// Sums stay in registers until they are done, and are rounded once.
#include "all.h"
#include "conv.h"

#if GT_ISA_LEVEL == 4 && defined(__GNUC__)
#include <immintrin.h>

#include "bfloat_pairs.h"
#include "conv_vector.h"

#define GT_BFLOAT __attribute__((target("avx512bf16")))
#define GT_BFLOAT_INLINE [[gnu::always_inline]] GT_BFLOAT inline

namespace gt {
namespace {

constexpr int kPixels = 14, kLane = 16;

using Units = int __attribute__((vector_size(64)));  // pairs

GT_BFLOAT_INLINE __mmask16 first_lanes(int64_t n) {
  return n >= kLane ? __mmask16(~0) : n > 0 ? __mmask16((1u << n) - 1) : __mmask16(0);
}
GT_BFLOAT_INLINE __m512 multiply(__m512 sum, int x, Units y) {
  return add_pairs(sum, _mm512_set1_epi32(x), (__m512i)y);
}
template <int M, int N> GT_BFLOAT void conv_tile(const ConvTile& t) {
  __m512 sum[M][N];
  GT_EACH(i, M) GT_EACH(j, N) sum[i][j] = __m512{};
  const char* panel = static_cast<const char*>(t.panel);
  const void* const* src = t.src;
  for (int64_t s = 0; s < t.segments; ++s, src += t.stride) {
    const uint16_t* x[M];
    GT_EACH(i, M) x[i] = static_cast<const uint16_t*>(src[i]) + t.src_at;
    for (int64_t k = 0; k + 2 <= t.length; k += 2, panel += N * 64) {
      Units w[N];
      GT_EACH(j, N) __builtin_prefetch(panel + (N * 16 + j) * 64);
      GT_EACH(j, N) w[j] = (Units)_mm512_loadu_si512(panel + 64 * j);
      GT_EACH(i, M) {
        int pair;
        __builtin_memcpy(&pair, x[i] + k, 4);
        GT_EACH(j, N) sum[i][j] = multiply(sum[i][j], pair, w[j]);
      }
    }
    if (t.length % 2) {  // the last one and nothing, as the panel has it
      Units w[N];
      GT_EACH(j, N) w[j] = (Units)_mm512_loadu_si512(panel + 64 * j);
      GT_EACH(i, M) {
        const int last = x[i][t.length - 1];
        GT_EACH(j, N) sum[i][j] = multiply(sum[i][j], last, w[j]);
      }
      panel += N * 64;
    }
  }
  GT_EACH(i, M) {
    uint16_t* out = static_cast<uint16_t*>(t.out[i]) + t.out_at;
    GT_EACH(j, N)
    _mm256_mask_storeu_epi16(out + j * kLane, first_lanes(t.channels - j * kLane),
                             (__m256i)_mm512_cvtneps_pbh(sum[i][j]));
  }
}

// x and g lie in pairs of pixels; the sums are float.
template <int M, int N> GT_BFLOAT void filter_tile(const FilterTile& t) {
  __m512 sum[M][N];
  GT_EACH(i, M) GT_EACH(j, N) sum[i][j] = __m512{};
  for (int64_t r = 0; r < t.n; ++r) {
    const int* x = static_cast<const int*>(t.runs[r].x) + t.x_at;
    const int* g = static_cast<const int*>(t.runs[r].g) + t.g_at;
    if (t.row_at) {
      const int* row[M];
      GT_EACH(i, M) row[i] = x + t.row_at[i];
      for (int64_t p = t.runs[r].count, k = 0; p > 0; --p, k += t.x_step, g += t.g_step) {
        Units w[N];
        GT_EACH(j, N) w[j] = (Units)_mm512_loadu_si512(g + j * kLane);
        GT_EACH(i, M) GT_EACH(j, N) sum[i][j] = multiply(sum[i][j], row[i][k], w[j]);
      }
    } else {
      for (int64_t p = t.runs[r].count; p > 0; --p, x += t.x_step, g += t.g_step) {
        Units w[N];
        GT_EACH(j, N) w[j] = (Units)_mm512_loadu_si512(g + j * kLane);
        GT_EACH(i, M) GT_EACH(j, N) sum[i][j] = multiply(sum[i][j], x[i], w[j]);
      }
    }
  }
  GT_EACH(i, M) {
    float* out = static_cast<float*>(t.out) + i * t.out_step;
    GT_EACH(j, N) {
      const __mmask16 here = first_lanes(t.channels - j * kLane);
      const __m512 more = t.add ? _mm512_maskz_loadu_ps(here, out + j * kLane) : __m512{};
      _mm512_mask_storeu_ps(out + j * kLane, here, more + sum[i][j]);
    }
  }
}

GT_BFLOAT void pair_pixels(const PixelPairs& t) {
  const uint16_t* x = static_cast<const uint16_t*>(t.x);
  int* to = static_cast<int*>(t.to);
  alignas(64) uint16_t turns[32];
  for (int i = 0; i < 32; ++i) turns[i] = uint16_t(i / 2 + i % 2 * 32);
  const __m512i in_turn = _mm512_load_si512(turns);
  for (int64_t p = 0; p < t.count; p += 2, x += 2 * t.step, to += t.to_step) {
    const bool one = p >= t.low && p < t.high, two = p + 1 >= t.low && p + 1 < t.high;
    for (int64_t i = 0; i < t.rows; i += kLane) {
      const __mmask16 here = first_lanes(t.rows - i), none = 0;
      const __m256i even = _mm256_maskz_loadu_epi16(one ? here : none, x + i),
                    odd = _mm256_maskz_loadu_epi16(two ? here : none, x + t.step + i);
      _mm512_storeu_si512(to + i, _mm512_permutex2var_epi16(_mm512_castsi256_si512(even), in_turn,
                                                            _mm512_castsi256_si512(odd)));
    }
  }
}

// The tile of M rows, for an M that is known at run time.
template <int M = kPixels> void run_tile(const ConvTile& t) {
  if constexpr (M > 1)
    if (t.pixels != M) return run_tile<M - 1>(t);
  t.vectors == 2 ? conv_tile<M, 2>(t) : conv_tile<M, 1>(t);
}
template <int M = kPixels> void run_filter(const FilterTile& t) {
  if constexpr (M > 1)
    if (t.rows != M) return run_filter<M - 1>(t);
  t.vectors == 2 ? filter_tile<M, 2>(t) : filter_tile<M, 1>(t);
}

}  // namespace

void add_bfloat_loops(ConvLoops& loops) {
  if (!__builtin_cpu_supports("avx512bf16")) return;
  loops.pixels = kPixels, loops.lanes = kLane, loops.tile = run_tile<>, loops.filter = run_filter<>;
  loops.pairs = pair_pixels;
}

}  // namespace gt

#else

namespace gt {
void add_bfloat_loops(ConvLoops&) {}
}  // namespace gt

#endif
