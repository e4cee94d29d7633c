// Products of int8, summed in int32, with AVX512_VNNI: its elements become pairs of int16 while they are
// packed, which the instruction multiplies and adds up. (That for bytes wants one side without signs.)
#include "all.h"
#include "products.h"

#if GT_ISA_LEVEL == 4 && defined(__GNUC__)
#define GT_TILE_TARGET __attribute__((target("avx512vnni")))
#include "product_tiles.h"

namespace gt {
namespace {

struct Bytes {
  using Element = int8_t;
  using Sum = __m512i;
  static constexpr int kGroup = 2;
  static constexpr bool kConverts = true;
  static constexpr bool kInPlace = false;
  using Wide = short __attribute__((vector_size(64)));
  using Narrow = int8_t __attribute__((vector_size(32)));
  GT_TILE_INLINE static Units load(const int8_t* x, int64_t n) {
    return (Units) __builtin_convertvector((Narrow)_mm256_maskz_loadu_epi8(first_of_32(n), x), Wide);
  }
  // Elements of two rows, in turn.
  GT_TILE_INLINE static Units load_rows(const int8_t* x, int64_t ld, int64_t rows, int64_t n) {
    const __mmask16 here = first_of_16(n);
    const __m128i even = _mm_maskz_loadu_epi8(here, x),
                  odd = _mm_maskz_loadu_epi8(rows > 1 ? here : __mmask16(0), x + (rows > 1 ? ld : 0));
    const __m256i both = _mm256_set_m128i(_mm_unpackhi_epi8(even, odd), _mm_unpacklo_epi8(even, odd));
    return (Units) __builtin_convertvector((Narrow)both, Wide);
  }
  GT_TILE_INLINE static __m512i multiply(__m512i sum, Units x, Units y) {
    return _mm512_dpwssd_epi32(sum, (__m512i)x, (__m512i)y);
  }
  GT_TILE_INLINE static __m512i finish(__m512i sum, float) { return sum; }
  GT_TILE_INLINE static __m512i add(__m512i sum, const char* from, __mmask16 here) {
    return _mm512_add_epi32(sum, _mm512_maskz_loadu_epi32(here, from));
  }
  GT_TILE_INLINE static void store(char* to, __mmask16 here, __m512i x) {
    _mm512_mask_storeu_epi32(to, here, x);
  }
  GT_TILE_INLINE static void store_narrow(char* to, __mmask16 here, __m512i x) {
    _mm512_mask_cvtepi32_storeu_epi8(to, here, x);
  }
};

}  // namespace

ProductLoops byte_product_loops() {
  return __builtin_cpu_supports("avx512vnni") ? Products<Bytes>::kLoops : ProductLoops{};
}

}  // namespace gt

#else

namespace gt {
ProductLoops byte_product_loops() { return {}; }
}  // namespace gt

#endif
