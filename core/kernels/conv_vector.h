// A vector register as a type: what the compiler's own vectors are called in the convolutions.
#pragma once

namespace gt {

#if GT_ISA_LEVEL == 4
constexpr int kVectorBytes = 64;
#elif GT_ISA_LEVEL == 3
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T> struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};
template <class T> using V = typename VectorOf<T>::Type;
template <class T> constexpr int kLanes = kVectorBytes / int(sizeof(T));

template <class T> inline V<T> load(const T* p) { return *reinterpret_cast<const V<T>*>(p); }
template <class T> inline void store(T* p, V<T> x) { *reinterpret_cast<V<T>*>(p) = x; }

// Loops over registers are unrolled by hand: an index that is known at run time only would put them
// into memory.
#define GT_EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); ++i)

}  // namespace gt
