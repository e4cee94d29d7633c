// Two operations in one loop, for clusters: (x then y) then z. What the first one computes stays in a
// register of the processor instead of going through a tile buffer.
//
// Compiled without contraction to fused multiply-adds (CMakeLists.txt): a pair gives the bits of its
// two operations.
#include "all.h"
#include "map.h"

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
    pair("add.add", 0.12, plus, plus),   pair("add.sub", 0.12, plus, minus),
    pair("add.from", 0.12, plus, from),  pair("add.mul", 0.12, plus, times),
    pair("add.div", 0.22, plus, over),   pair("add.under", 0.22, plus, under),
    pair("sub.add", 0.12, minus, plus),  pair("sub.sub", 0.12, minus, minus),
    pair("sub.from", 0.12, minus, from), pair("sub.mul", 0.12, minus, times),
    pair("sub.div", 0.22, minus, over),  pair("sub.under", 0.22, minus, under),
    pair("mul.add", 0.12, times, plus),  pair("mul.sub", 0.12, times, minus),
    pair("mul.from", 0.12, times, from), pair("mul.mul", 0.12, times, times),
    pair("mul.div", 0.22, times, over),  pair("mul.under", 0.22, times, under),
};

}  // namespace

Rows<Elementwise> pair_rows() { return rows_of(table); }

}  // namespace gt
