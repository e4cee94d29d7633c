// Fourier transforms: what the loops of fft.cpp are told. Several lines are transformed side by side:
// element i of line k is at i * lanes + k of two arrays, one for real and one for imaginary parts.
#pragma once
#include <cstdint>

namespace gt {

// One step of a transform of length n: joins `radix` transforms of length `length` to one.
struct FftStage {
  int radix;
  int64_t length, count;  // radix * length * count = n
  const void* twiddles;   // e^(-2 pi i j q / (radix * length)) for j < length and 0 < q < radix: pairs
};

struct FftPlan {
  static constexpr int kMostStages = 40;
  int64_t n = 1;
  int stages = 0;
  FftStage stage[kMostStages];
};

// Where lines are in an array of complex numbers: element i of line k is at[k] + i * step.
struct FftLines {
  const int64_t* at;
  int64_t step, n;
  int count;
};

struct FftLoops {
  int lanes;
  // Forward, without scaling. The result is in `to` if it returns true, else in `from`.
  bool (*run)(const FftPlan&, void* const from[2], void* const to[2]);
  bool (*run_one)(const FftPlan&, void* const from[2], void* const to[2]);  // a single line, without others
  void (*load)(void* const to[2], const void* x, const FftLines&, int lanes);
  void (*store)(void* x, const void* const from[2], const FftLines&, int lanes, double scale);
  // Between the halves of a long transform: rows of `lanes` elements times factors, to and from a
  // matrix of separate real and imaginary parts.
  void (*store_rows)(void* const to[2], const void* const from[2], const void* const factors[2], int64_t rows,
                     int64_t width, int count);
  void (*load_columns)(void* const to[2], const void* const from[2], int64_t rows, int64_t width, int count);
  // Of 2 h real numbers taken for h complex ones: from their transform z to the first h + 1 elements of
  // the real transform, and back (without the factor 1 / 2). roots: e^(-pi i k / h) for k <= h.
  void (*unpack)(void* out, const void* z, const void* roots, int64_t h, double scale);
  void (*pack)(void* z, const void* x, const void* roots, int64_t h);
};

}  // namespace gt
