// Products of bfloat16 with AVX512_BF16, which multiplies pairs of them and adds to float. Numbers below
// 2^-126 count as zero: that is how the instruction is made.
#include "products.h"

#include "all.h"

#if GT_ISA_LEVEL == 4 && defined(__GNUC__)
#define GT_TILE_TARGET __attribute__((target("avx512bf16")))
#include "bfloat_pairs.h"
#include "product_tiles.h"

namespace gt {
namespace {

struct Bfloat : FloatSums {
  using Element = uint16_t;
  static constexpr int kGroup = 2;
  static constexpr bool kConverts = false;
  static constexpr bool kInPlace = false;
  GT_TILE_INLINE static Units load(const uint16_t* x, int64_t n) {
    return (Units)_mm512_maskz_loadu_epi16(first_of_32(n), x);
  }
  // Elements of two rows, in turn.
  GT_TILE_INLINE static Units load_rows(const uint16_t* x, int64_t ld, int64_t rows, int64_t n) {
    const __mmask16 here = first_of_16(n);
    const __m256i even = _mm256_maskz_loadu_epi16(here, x),
                  odd = _mm256_maskz_loadu_epi16(rows > 1 ? here : __mmask16(0), x + (rows > 1 ? ld : 0));
    using Wide = unsigned __attribute__((vector_size(64)));
    using Narrow = uint16_t __attribute__((vector_size(32)));
    return (Units)(__builtin_convertvector((Narrow)even, Wide) |
                   (__builtin_convertvector((Narrow)odd, Wide) << 16));
  }
  GT_TILE_INLINE static __m512 multiply(__m512 sum, Units x, Units y) {
    return add_pairs(sum, (__m512i)x, (__m512i)y);
  }
  GT_TILE_INLINE static void store_narrow(char* to, __mmask16 here, __m512 x) {
    _mm256_mask_storeu_epi16(to, here, (__m256i)_mm512_cvtneps_pbh(x));
  }
};

}  // namespace

ProductLoops bfloat_product_loops() {
  return __builtin_cpu_supports("avx512bf16") ? Products<Bfloat>::kLoops : ProductLoops{};
}

}  // namespace gt

#else

namespace gt {
ProductLoops bfloat_product_loops() { return {}; }
}  // namespace gt

#endif
