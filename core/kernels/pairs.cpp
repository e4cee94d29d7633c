// Several operations in one loop, for clusters: what the first one computes stays in a register of the
// processor instead of going through a tile buffer. Pairs, (x then y) then z, of any cluster, and the whole
// clusters of optimizers' steps.
//
// Compiled without contraction to fused multiply-adds (CMakeLists.txt): these loops give the bits of their
// operations.
#include "all.h"
#include "map.h"
#include "whole.h"

namespace gt {

namespace {

constexpr auto plus = [](auto x, auto y) { return x + y; };
constexpr auto minus = [](auto x, auto y) { return x - y; };
constexpr auto times = [](auto x, auto y) { return x * y; };
constexpr auto over = [](auto x, auto y) { return x / y; };
// The same from the other side: the first operation gives the second operand.
constexpr auto from = [](auto x, auto y) { return y - x; };
constexpr auto under = [](auto x, auto y) { return y / x; };

template <class First, class Second>
constexpr Elementwise pair(const char* name, double cost, First, Second) {
  return ternary<set_of(Dtype::F32) | set_of(Dtype::F64)>(
      name, cost, [](auto x, auto y, auto z) { return Second{}(First{}(x, y), z); });
}

constexpr Elementwise table[] = {
    pair("add.add", 0.12, plus, plus),
    pair("add.sub", 0.12, plus, minus),
    pair("add.from", 0.12, plus, from),
    pair("add.mul", 0.12, plus, times),
    pair("add.div", 0.22, plus, over),
    pair("add.under", 0.22, plus, under),
    pair("sub.add", 0.12, minus, plus),
    pair("sub.sub", 0.12, minus, minus),
    pair("sub.from", 0.12, minus, from),
    pair("sub.mul", 0.12, minus, times),
    pair("sub.div", 0.22, minus, over),
    pair("sub.under", 0.22, minus, under),
    pair("mul.add", 0.12, times, plus),
    pair("mul.sub", 0.12, times, minus),
    pair("mul.from", 0.12, times, from),
    pair("mul.mul", 0.12, times, times),
    pair("mul.div", 0.22, times, over),
    pair("mul.under", 0.22, times, under),

    // With the factors of a product in either order: this library's own optimizers, and Keras'.
    // SGD with momentum.
    whole_cluster<"mul S0 s0 I1; mul.sub O0 s2 I3 S0; add O1 I4 O0">(0.25),
    whole_cluster<"mul S0 I0 s1; mul.sub O0 I2 s3 S0; add O1 I4 O0">(0.25),
    // Adam.
    whole_cluster<"sub.mul S0 I0 I1 s2; add O0 I1 S0; mul.sub S0 I0 I0 I3; mul.add O1 S0 s4 I3; sqrt S0 O1; "
                  "add S0 S0 s5; mul.div S0 s6 O0 S0; sub O2 I7 S0">(0.5),
    whole_cluster<"sub.mul S0 I0 I1 s2; add O0 I1 S0; mul.sub S0 I0 I0 I3; mul.add O1 S0 s4 I3; sqrt S0 O1; "
                  "add S0 S0 s5; mul.div S0 O0 s6 S0; sub O2 I7 S0">(0.5),
    // AdamW.
    whole_cluster<
        "mul.mul S0 I0 s1 s2; sub.mul S1 I3 I4 s5; add O0 I4 S1; mul.sub S1 I3 I3 I6; mul.add O1 S1 s7 I6; "
        "sqrt S1 O1; add S1 S1 s8; mul.div S1 s9 O0 S1; sub.sub O2 I0 S0 S1">(0.5),
    whole_cluster<
        "mul.mul S0 I0 s1 s2; sub.mul S1 I3 I4 s5; add O0 I4 S1; mul.sub S1 I3 I3 I6; mul.add O1 S1 s7 I6; "
        "sqrt S1 O1; add S1 S1 s8; mul.div S1 O0 s9 S1; sub.sub O2 I0 S0 S1">(0.5),
    // RMSprop.
    whole_cluster<"mul.mul S0 I0 I0 s1; mul.add O0 s2 I3 S0; add S0 O0 s4; sqrt S0 S0; mul.div S0 s5 I0 S0; "
                  "sub O1 I6 S0">(0.45),
};

}  // namespace

Rows<Elementwise> pair_rows() { return rows_of(table); }

}  // namespace gt
