// Products of pairs of bfloat16, added to float: AVX512_BF16. Included by files that are compiled for
// x86-64-v4.
#pragma once
#include <immintrin.h>

namespace gt {
namespace {

[[gnu::always_inline]] __attribute__((target("avx512bf16"))) inline __m512 add_pairs(__m512 sum, __m512i x,
                                                                                     __m512i y) {
#if defined(__clang__) && __clang_major__ < 19
  asm("" : "+v"(x));  // clang 16 crashes where it knows that all pairs are the same; 19 does not
#endif
  return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y);
}

}  // namespace
}  // namespace gt
