// A block of a loop: a constant number of elements, which the compiler turns into straight vector code, the
// 16-bit floats converted in registers on the way in and out.
#pragma once
#include <type_traits>

#include "conv_vector.h"
#include "halves.h"
#include "loops.h"

namespace gt {

template <class T> constexpr bool kIsHalf = std::is_same_v<T, half> || std::is_same_v<T, bfloat>;
// What functions of T compute in.
template <class T> using Wider = std::conditional_t<kIsHalf<T>, float, T>;
template <class T> inline Wider<T> number(T x) { return Wider<T>(x); }

// Elements of a block. clang makes straight code of one vector, and a loop of several.
#if defined(__clang__)
template <class T> constexpr int kBlock = sizeof(T) >= 16 ? 4 : kLanes<Wider<T>>;
#else
template <class T> constexpr int kBlock = sizeof(T) >= 16 ? 4 : 64 / int(sizeof(T));
#endif

// N elements as numbers one can compute with: x itself, or a converted copy that stays in registers.
template <int N, class T>
[[gnu::always_inline]] inline const Wider<T>* load_block(const T* x, [[maybe_unused]] Wider<T>* room) {
  if constexpr (kIsHalf<T>) {
    widen_block<N>(room, x);
    return room;
  } else {
    return x;
  }
}
#if defined(__clang__)
// A local copy of N elements, which cannot overlap with the result: for arrays clang checks that in every
// block. It is kept in registers.
template <class T, int N> struct Copy {
  T at[N];
  [[gnu::always_inline]] explicit Copy(const T* x) { __builtin_memcpy(at, x, sizeof at); }
};
// Where unrolling gives better vectors than the loop: for blocks of two elements, and where clang would keep
// a loop that goes through memory, for bytes in several vectors (clang 16: for 16 elements or more).
template <class R, int N>
constexpr bool kUnrolled = N <= 2 || (sizeof(R) == 1 && N > kLanes<R>) || (__clang_major__ <= 16 && N >= 16);
template <int N, class R, class F, class... X>
[[gnu::always_inline]] inline void each_of(R* out, F f, const Copy<X, N>&... x) {
  R y[N];
  if constexpr (kUnrolled<R, N>) {
    _Pragma("clang loop unroll(full)") for (int j = 0; j < N; ++j) y[j] = R(f(x.at[j]...));
  } else {
    GT_VECTOR_LOOP
    for (int j = 0; j < N; ++j) y[j] = R(f(x.at[j]...));
  }
  __builtin_memcpy(out, y, sizeof y);
}
template <class R, class... X>
constexpr bool kCopied = ((sizeof(R) == sizeof(X) && std::is_arithmetic_v<R> &&
                           std::is_arithmetic_v<X>)&&...);
// clang vectorises straight code on the real and imaginary parts of complex numbers, but not loops over them.
template <class R, class... X>
constexpr bool kStraight = ((std::is_same_v<R, X> && (std::is_same_v<R, c64> || std::is_same_v<R, c128>)) &&
                            ...);
template <class T> [[gnu::always_inline]] inline T of_parts(const T* x) {
  const auto* p = reinterpret_cast<const typename T::value_type*>(x);
  return T(p[0], p[1]);
}
template <int N, class R, class F, class... X>
[[gnu::always_inline]] inline void straight(R* out, F f, const X*... x) {
  using T = typename R::value_type;
  T y[2 * N];
  _Pragma("clang loop unroll(full)") for (int j = 0; j < N; ++j) {
    const R z = R(f(of_parts(x + j)...));
    y[2 * j] = z.real(), y[2 * j + 1] = z.imag();
  }
  T* o = reinterpret_cast<T*>(out);
  _Pragma("clang loop unroll(full)") for (int j = 0; j < 2 * N; ++j) o[j] = y[j];
}
#endif
// out[j] = f(x[j]...) for j < N, rounded where R is one of the 16-bit floats.
template <int N, class R, class F, class... X>
[[gnu::always_inline]] inline void store_block(R* out, F f, const X*... x) {
  if constexpr (kIsHalf<R>) {
    alignas(64) float room[N];
    store_block<N>(room, f, x...);
    narrow_block<N>(out, room);
#if defined(__clang__)
  } else if constexpr (kCopied<R, X...>) {
    each_of<N>(out, f, Copy<X, N>(x)...);
  } else if constexpr (kStraight<R, X...>) {
    straight<N>(out, f, x...);
#endif
  } else {
    GT_VECTOR_LOOP
    for (int j = 0; j < N; ++j) out[j] = R(f(x[j]...));
  }
}

}  // namespace gt
