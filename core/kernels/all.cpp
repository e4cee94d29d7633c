// The list of what the files of this folder offer, for one instruction set.
#include "all.h"

#include <initializer_list>

#define GT_PASTE2(a, b) a##b
#define GT_PASTE(a, b) GT_PASTE2(a, b)

extern "C" void GT_PASTE(gradtape_kernels_v, GT_ISA_LEVEL)(void* set_) {
  using namespace gt;
  KernelSet& set = *static_cast<KernelSet*>(set_);
  int k = 0;
  for (auto rows : {arithmetic_rows(), rounding_rows(), exponential_rows(), trigonometric_rows(),
                    special_rows(), gamma_rows(), activation_rows(), complex_rows(), binary_arithmetic_rows(),
                    integer_rows(), comparison_rows(), binary_math_rows(), select_rows(), pair_rows()})
    set.elementwise[k++] = rows;
  k = 0;
  for (auto rows : {sum_rows(), extremum_rows(), arg_rows()}) set.reductions[k++] = rows;
  set.norms = norm_loops();
  set.softmax = softmax_loops();
  set.ctc = ctc_loops();
  set.philox = philox_loops();
  set.products = product_loops();
  set.fft = fft_loops();
  fill_casts(set.cast);
  set.conv = conv_loops();
  set.pool = pool_loops();
  set.resample = resample_loops();
  set.sparse = sparse_loops();
}
