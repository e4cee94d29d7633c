// Activation functions of neural networks, and the derivatives that are worth a pass of their own.
#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

// Phi, the distribution of a standard normal: from its tail, which keeps its digits where 1 + erf loses them.
using math::normal_below;
template <class D> inline D normal_below(D x, D) { return math::normal_below(x); }
// Phi(-|x|) = exp(-x^2 / 2) t Q(t) to 3 eps, after Shepherd and Laframboise 1981; tools/fit_float.py fits
// Q.
template <math::OfFloat X> GT_INLINE X normal_below(X x, X power) {  // power = exp(-x^2 / 2)
  const X y = math::size_of(x), t = 1 / (1 + 0.34375f * y);
  const X q = math::polynomial(t, 0.137118117f, 0.137571268f, 0.116515323f, 0.113610717f, -0.041716089f,
                               0.194658289f, -0.275199171f, 0.145640747f, -0.028199206f);
  const X tail = t * q * power;
  return math::pick(x > 0, 1 - tail, tail);
}
template <math::OfFloat X> GT_INLINE X normal_below(X x) { return normal_below(x, math::exp_half_square(x)); }
// 0.5 (1 + tanh u) = sigmoid(2u).
template <class X> inline X gelu_tanh(X x) {
  using T = math::NumberIn<X>;
  return x * math::sigmoid(x * math::fused(T(0.071354816272600251353) * x, x, T(1.5957691216057307117)));
}

constexpr double kAlpha = 1.6732632423543772848, kScale = 1.0507009873554804934;  // Klambauer et al. 2017

constexpr Elementwise table[] = {
    unary_math<kFloat>("elu", 0.6,
                       [](auto x) { return math::pick(x < 0, math::expm1(math::pick(x < 0, x, 0)), x); }),
    unary_math<kFloat>("selu", 0.6,
                       [](auto x) {
                         using T = math::NumberIn<decltype(x)>;
                         const auto below = T(kScale * kAlpha) * math::expm1(math::pick(x < 0, x, 0));
                         return math::pick(x < 0, below, T(kScale) * x);
                       }),
    unary_math<kFloat>("softplus", 1, [](auto x) { return math::softplus(x); }),
    unary_math<kFloat>("softsign", 0.3, [](auto x) { return x / (1 + math::fabs(x)); }),
    unary_math<kFloat>("silu", 0.5, [](auto x) { return x * math::sigmoid(x); }),
    unary_math<kFloat>("gelu", 1, [](auto x) { return x * normal_below(x); }),
    unary_math<kFloat>("gelu_slope", 1.5,
                       [](auto x) {
                         using T = math::NumberIn<decltype(x)>;
                         const auto power = math::exp_half_square(x);
                         return normal_below(x, power) + x * (power * T(0.39894228040143267794));
                       }),
    unary_math<kFloat>("gelu_tanh", 0.6, [](auto x) { return gelu_tanh(x); }),
    binary<kFloat>("leaky_relu", 0.1, [](auto x, auto alpha) { return x > 0 ? x : alpha * x; }),
    binary<kFloat>("tanh_grad", 0.2, [](auto out, auto g) { return g * (1 - out * out); }),
    binary<kFloat>("sigmoid_grad", 0.2, [](auto out, auto g) { return g * (out * (1 - out)); }),
    // max(x, 0) - x z + log(1 + exp(-|x|)): the loss of logit x at label z, without cancellation.
    binary_math<kFloat>(
        "sigmoid_xent", 1.2,
        [](auto x, auto z) { return math::fused_from(x, z, math::at_least(x, 0)) + math::softplus_rest(x); }),
    binary<kFloat>("relu_grad", 0.2, [](auto out, auto g) { return out > 0 ? g : 0; }),
};

}  // namespace

Rows<Elementwise> activation_rows() { return rows_of(table); }

}  // namespace gt
