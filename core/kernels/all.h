// The files of this folder, each as the rows it contributes.
#pragma once
#include "loops.h"

namespace gt {

Rows<Elementwise> arithmetic_rows();
Rows<Elementwise> rounding_rows();
Rows<Elementwise> exponential_rows();
Rows<Elementwise> trigonometric_rows();
Rows<Elementwise> special_rows();
Rows<Elementwise> gamma_rows();
Rows<Elementwise> activation_rows();
Rows<Elementwise> complex_rows();
Rows<Elementwise> binary_arithmetic_rows();
Rows<Elementwise> integer_rows();
Rows<Elementwise> comparison_rows();
Rows<Elementwise> binary_math_rows();
Rows<Elementwise> select_rows();
Rows<Elementwise> pair_rows();
Rows<Reduction> sum_rows();
Rows<Reduction> extremum_rows();
Rows<Reduction> arg_rows();
const ConvLoops* conv_loops();
const PoolLoops* pool_loops();
const NormLoops* norm_loops();
const AllSoftmaxLoops* softmax_loops();
const CtcLoops* ctc_loops();
const PhiloxLoops* philox_loops();
const ProductLoops* product_loops();
ProductLoops bfloat_product_loops();
ProductLoops byte_product_loops();
const FftLoops* fft_loops();
void fill_casts(CastLoop (&table)[kDtypes][kDtypes]);
const ResampleLoops* resample_loops();
const SparseLoops* sparse_loops();

}  // namespace gt
