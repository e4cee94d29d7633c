// Rows in vector registers: vectors of any real element type as numbers to compute with, the part of a vector
// that is left at the end of a row, and what a register holds, folded to one number.
#pragma once
#include "conv_vector.h"
#include "map.h"

namespace gt {

// How much of a vector belongs to a row. The 16-bit floats are computed in float.
struct Whole {
  template <class S> [[gnu::always_inline]] V<Wider<S>> load(const S* x, Wider<S>) const {
    if constexpr (kIsHalf<S>) {
      alignas(64) float room[kLanes<float>];
      widen_block<kLanes<float>>(room, x);
      return gt::load(room);
    } else {
      return gt::load(x);
    }
  }
  template <class S> [[gnu::always_inline]] void store(S* out, V<Wider<S>> y) const {
    if constexpr (kIsHalf<S>) {
      alignas(64) float room[kLanes<float>];
      gt::store(room, y);
      narrow_block<kLanes<float>>(out, room);
    } else {
      gt::store(out, y);
    }
  }
};
// A single element, as a number: for rows so short that most of a vector would be left empty.
struct One {
  template <class S> [[gnu::always_inline]] Wider<S> load(const S* x, Wider<S>) const { return number(*x); }
  template <class S> [[gnu::always_inline]] void store(S* out, Wider<S> y) const { *out = S(y); }
};
struct Part {
  int n;  // elements, less than a vector of them
#if GT_ISA_LEVEL == 3
  __m256i mask() const {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
#elif GT_ISA_LEVEL == 4
  __mmask16 mask() const { return __mmask16((1u << n) - 1); }
#endif

  // The others are `rest`.
  template <class S> [[gnu::always_inline]] V<Wider<S>> load(const S* x, Wider<S> rest) const {
#if GT_ISA_LEVEL == 4
    if constexpr (kIsHalf<S>) {
      alignas(64) S block[16];
      _mm256_store_si256(reinterpret_cast<__m256i*>(block), _mm256_maskz_loadu_epi16(mask(), x));
      return _mm512_mask_mov_ps(_mm512_set1_ps(rest), mask(), Whole{}.load(block, rest));
    } else if constexpr (sizeof(S) == 4) {
      return _mm512_mask_loadu_ps(_mm512_set1_ps(rest), mask(), x);
    } else {
      return _mm512_mask_loadu_pd(_mm512_set1_pd(rest), __mmask8(mask()), x);
    }
#else
#if GT_ISA_LEVEL == 3
    if constexpr (std::is_same_v<S, float>)
      return _mm256_blendv_ps(_mm256_set1_ps(rest), _mm256_maskload_ps(x, mask()),
                              _mm256_castsi256_ps(mask()));
#endif
    alignas(64) Wider<S> room[kLanes<Wider<S>>];
    for (auto& y : room) y = rest;
    for (int j = 0; j < n; ++j) {
      GT_SHORT_LOOP;
      room[j] = number(x[j]);
    }
    return gt::load(room);
#endif
  }
  template <class S> [[gnu::always_inline]] void store(S* out, V<Wider<S>> y) const {
    if constexpr (kIsHalf<S>) {
      typedef uint16_t Bits __attribute__((vector_size(2 * kLanes<float>)));
      alignas(64) S block[kLanes<float>];
      Whole{}.store(block, y);
      store_first(reinterpret_cast<uint16_t*>(out), *reinterpret_cast<const Bits*>(block), n);
    } else {
      store_first(out, y, n);
    }
  }

 private:
  // The first n numbers of a vector, by halves. A load of what comes behind them would wait for a store under
  // a mask.
  template <class S, class A> [[gnu::always_inline]] static void store_first(S* out, A x, int n) {
    constexpr int half = int(sizeof(A) / sizeof(S) / 2);
    if constexpr (half == 1) {
      if (n & 1) *out = x[0];
    } else {
      [&]<int... k>(std::integer_sequence<int, k...>) {
        auto first = __builtin_shufflevector(x, x, k...);
        if (n & half) {
          __builtin_memcpy(out, &first, sizeof first);
          out += half;
          first = __builtin_shufflevector(x, x, (k + half)...);
        }
        store_first(out, first, n);
      }
      (std::make_integer_sequence<int, half>{});
    }
  }
};

// As in arith.h: a NaN on either side wins. Where one is NaN the instruction gives its second operand; a
// first one that is NaN is kept.
template <class X>
requires(!std::is_arithmetic_v<X>) [[gnu::always_inline]] inline X larger(X x, X y) {
#if GT_ISA_LEVEL == 4
  if constexpr (sizeof(X) == 64 && sizeof(x[0]) == 4)
    return _mm512_mask_max_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, y);
#endif
  const X z = x > y ? x : y;
  return x == x ? z : x;
}
template <class X>
requires(!std::is_arithmetic_v<X>) [[gnu::always_inline]] inline X smaller(X x, X y) {
#if GT_ISA_LEVEL == 4
  if constexpr (sizeof(X) == 64 && sizeof(x[0]) == 4)
    return _mm512_mask_min_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, y);
#endif
  const X z = x < y ? x : y;
  return x == x ? z : x;
}

// combine(x[0], x[1], ...), by halves.
template <class T, class A, class F> [[gnu::always_inline]] inline T folded(A x, F combine) {
  constexpr int half = int(sizeof(A) / sizeof(T) / 2);
  auto halves = [&]<int... k>(std::integer_sequence<int, k...>) {
    return combine(__builtin_shufflevector(x, x, k...), __builtin_shufflevector(x, x, (k + half)...));
  };
  if constexpr (half == 1)
    return combine(x[0], x[1]);
  else
    return folded<T>(halves(std::make_integer_sequence<int, half>{}), combine);
}

}  // namespace gt
