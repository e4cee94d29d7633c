// Clusters that come so often that they are compiled as a whole. A cluster is written as text, as
// core/py/program_type.cpp writes it ("mul.sub O0 s2 I3 S0": the operation, where its result goes, its
// operands; I: inputs, s: those of one element, O: results, S: buffers of a tile), and what it computes is
// read from that text by the compiler. Nothing but inputs and results goes through memory.
#pragma once
#include <cstring>
#include <utility>

#include "conv_vector.h"
#include "loops.h"

namespace gt::whole {

constexpr int kMost = 16;  // operations of a text; places of a kind

struct Place {
  char kind = 0;
  int index = 0;
};
struct Operation {
  char first = 0, second = 0;  // '+', '-', '*', '/', 'r' (the root); of pairs two
  bool turned = false;         // the second one has the first one's result as its second operand
  Place out, in[3];
};
struct Parsed {
  Operation ops[kMost];
  int count = 0, inputs = 0, results = 0;
};

template <size_t n> struct Text {
  char at[n];
  constexpr Text(const char (&text)[n]) {
    for (size_t k = 0; k < n; ++k) at[k] = text[k];
  }
};

class Reader {
 public:
  explicit constexpr Reader(const char* text) : at_(text) {}
  constexpr Parsed read() {
    Parsed p;
    while (*at_) {
      Operation& op = p.ops[p.count++];
      bool turned = false;
      op.first = function(turned);
      if (*at_ == '.') ++at_, op.second = function(op.turned);
      op.out = place(p);
      for (int k = 0; *at_ == ' '; ++k) op.in[k] = place(p);
      if (*at_ == ';') at_ += 2;
    }
    return p;
  }

 private:
  constexpr char function(bool& turned) {
    constexpr const char* names[] = {"add", "sub", "from", "mul", "div", "under", "sqrt"};
    for (int k = 0;; ++k) {
      int n = 0;
      while (names[k][n] && names[k][n] == at_[n]) ++n;
      if (names[k][n]) continue;
      at_ += n;
      turned = k == 2 || k == 5;
      return "+--*//r"[k];
    }
  }
  constexpr Place place(Parsed& p) {
    Place place{at_[1], 0};
    for (at_ += 2; *at_ >= '0' && *at_ <= '9'; ++at_) place.index = 10 * place.index + (*at_ - '0');
    int& most = place.kind == 'O' ? p.results : p.inputs;
    if (place.kind != 'S' && place.index >= most) most = place.index + 1;
    return place;
  }
  const char* at_;
};
template <Text text> constexpr Parsed kParsed = Reader(text.at).read();

using Floats = V<float>;

inline Floats root(Floats x_) {
  alignas(kVectorBytes) float x[kLanes<float>];
  std::memcpy(x, &x_, sizeof x);
  GT_VECTOR_LOOP
  for (int j = 0; j < kLanes<float>; ++j) x[j] = __builtin_sqrtf(x[j]);
  return load<float>(x);
}
template <char f> inline Floats apply(Floats x, [[maybe_unused]] Floats y) {
  if constexpr (f == '+') return x + y;
  if constexpr (f == '-') return x - y;
  if constexpr (f == '*') return x * y;
  if constexpr (f == '/') return x / y;
  if constexpr (f == 'r') return root(x);
}

struct Block {
  Floats in[kMost], out[kMost], buffer[kMost];
  Floats& operator[](Place p) {
    return p.kind == 'O' ? out[p.index] : p.kind == 'S' ? buffer[p.index] : in[p.index];
  }
};

template <Operation op> [[gnu::always_inline]] inline void compute(Block& b) {
  Floats x = apply<op.first>(b[op.in[0]], op.in[1].kind ? b[op.in[1]] : Floats{});
  if constexpr (op.second && op.turned) x = apply<op.second>(b[op.in[2]], x);
  if constexpr (op.second && !op.turned) x = apply<op.second>(x, b[op.in[2]]);
  b[op.out] = x;
}

// Whether an input is one element.
constexpr bool is_one(const Parsed& p, int input) {
  for (const Operation& op : p.ops)
    for (Place x : op.in)
      if (x.kind == 's' && x.index == input) return true;
  return false;
}

template <int n> using UpTo = std::make_integer_sequence<int, n>;

template <const Parsed& p, int... i, int... o, int... k>
inline void run(std::integer_sequence<int, i...>, std::integer_sequence<int, o...>,
                std::integer_sequence<int, k...>, char* const* results, const void* const* inputs,
                int64_t n) {
  constexpr int W = kLanes<float>;
  const float* in[] = {static_cast<const float*>(inputs[i])...};
  float* out[] = {reinterpret_cast<float*>(results[o])...};
  Block b;
  ((is_one(p, i) ? void(b.in[i] = in[i][0] - Floats{}) : void()), ...);
  int64_t e = 0;
  for (; e + W <= n; e += W) {
    ((is_one(p, i) ? void() : void(b.in[i] = load(in[i] + e))), ...);
    (compute<p.ops[k]>(b), ...);
    (store(out[o] + e, b.out[o]), ...);
  }
  if (e == n) return;
  const size_t rest = size_t(n - e) * sizeof(float);
  ((is_one(p, i) ? void() : void((b.in[i] = Floats{}, std::memcpy(&b.in[i], in[i] + e, rest)))), ...);
  (compute<p.ops[k]>(b), ...);
  (std::memcpy(out[o] + e, &b.out[o], rest), ...);
}
template <const Parsed& p> void loop(void* out, const void* const* in, const uint8_t*, int64_t n) {
  run<p>(UpTo<p.inputs>{}, UpTo<p.results>{}, UpTo<p.count>{}, static_cast<char* const*>(out), in, n);
}

template <Text text> constexpr Text kText = text;

}  // namespace gt::whole

namespace gt {

// A row that is found by the text. Its loop has an array of places of results for `out`, which may be those
// of inputs; no operation of a program has as many operands as this row.
template <whole::Text text> constexpr Elementwise whole_cluster(double cost) {
  Elementwise row{whole::kText<text>.at, -1, {}, {}, cost};
  row.loop[int(Dtype::F32)] = whole::loop<whole::kParsed<text>>;
  row.out[int(Dtype::F32)] = Dtype::F32;
  return row;
}

}  // namespace gt
