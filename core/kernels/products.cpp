// Products of float, and of float16 as those of float: its elements become float while they are packed.
#include "products.h"

#include "all.h"

#if GT_ISA_LEVEL == 4 && defined(__GNUC__)
#define GT_TILE_TARGET
#include "product_tiles.h"

namespace gt {
namespace {

struct OfFloat : FloatSums {
  static constexpr int kGroup = 1;
  [[gnu::always_inline]] static __m512 multiply(__m512 sum, Units x, Units y) {
    return _mm512_fmadd_ps((__m512)x, (__m512)y, sum);
  }
};

struct Single : OfFloat {
  using Element = float;
  static constexpr bool kConverts = false;
  static constexpr bool kInPlace = true;
  [[gnu::always_inline]] static Units load(const float* x, int64_t n) {
    return (Units)_mm512_maskz_loadu_ps(first_of_16(n), x);
  }
  [[gnu::always_inline]] static Units load_rows(const float* x, int64_t, int64_t, int64_t n) {
    return load(x, n);
  }
  [[gnu::always_inline]] static void store_narrow(char* to, __mmask16 here, __m512 x) { store(to, here, x); }
};

struct Half : OfFloat {
  using Element = uint16_t;
  static constexpr bool kConverts = true;
  static constexpr bool kInPlace = false;
  [[gnu::always_inline]] static Units load(const uint16_t* x, int64_t n) {
    return (Units)_mm512_maskz_cvtph_ps(__mmask16(~0), _mm256_maskz_loadu_epi16(first_of_16(n), x));
  }
  [[gnu::always_inline]] static Units load_rows(const uint16_t* x, int64_t, int64_t, int64_t n) {
    return load(x, n);
  }
  [[gnu::always_inline]] static void store_narrow(char* to, __mmask16 here, __m512 x) {
    _mm256_mask_storeu_epi16(to, here, _mm512_maskz_cvtps_ph(here, x, _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace

const ProductLoops* product_loops() {
  static const ProductLoops all[4]{Products<Single>::kLoops, Products<Half>::kLoops, bfloat_product_loops(),
                                   byte_product_loops()};
  return all;
}

}  // namespace gt

#else

namespace gt {
const ProductLoops* product_loops() { return nullptr; }
}  // namespace gt

#endif
