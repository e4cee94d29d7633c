// Reads the description of a cluster.
#include "../kernels/norms.h"
#include "../ops/elementwise.h"
#include "reading.h"

namespace gt::reading {
namespace {

// The loop of a reduction that computes in the type of its operand.
ReduceLoop reduction_of(const std::string& name, Dtype t) {
  const Reduction* r = find_reduction(name);
  if (!r || !r->loop[int(t)] || r->out[int(t)] != t) fail(Code::Value, "program: there is no such reduction");
  return r->loop[int(t)];
}
template <class F>
void read_row_reduction(ClusterOp& op, const std::string& name, Dtype t, PyObject* outs, F&& register_of) {
  const NormLoops* loops = t == Dtype::F32   ? kernels().norms
                           : t == Dtype::F64 ? kernels().norms + 1
                                             : nullptr;
  if (loops && name == "moments") {
    op.moments = loops->row_moments;
    op.second = register_of(item(outs, 1));
  } else if (loops && name == "mul.sum") {
    op.product = loops->row_product;
  } else {
    op.reduce = reduction_of(name, t);
  }
  if (op.arity != (op.product ? 2 : 1) || size(outs) != (op.moments ? 2 : 1))
    fail(Code::Value, "program: a reduction has another number of results");
}

// Looks up a kernel for the whole cluster by the text of its operations, in the format of kernels/whole.h.
void find_whole(Cluster& c, const std::string& text) {
  const Elementwise* known = find_elementwise(text);
  if (!known || known->arity >= 0) return;
  c.whole = known->loop[int(Dtype::F32)];
  c.cost = known->cost;
  // The text names each register, so there are as many as the loop expects.
  auto enter = [&](std::vector<uint16_t>& some, Register::Kind kind, uint16_t r) {
    const Register& reg = c.registers[r];
    if (reg.kind != kind) return;
    if (some.size() <= reg.index) some.resize(reg.index + 1);
    some[reg.index] = r;
  };
  for (const ClusterOp& op : c.ops) {
    enter(c.whole_out, Register::Kind::Output, op.out);
    for (int k = 0; k < op.arity; ++k) enter(c.whole_in, Register::Kind::Input, op.in[k]);
  }
}

}  // namespace

// (outer, inner, registers, ops, epilogues, scratch)
//   registers: (kind, broadcast, width, index); ops: (kernel or "cast", dtype, dtype out, out, ins), or
//   (reduction of each row, dtype, dtype, [out, ...], ins); epilogues: (reduction, dtype, over, in, out)
Cluster read_cluster(PyObject* d) {
  Cluster c;
  c.outer = number<int64_t>(item(d, 0), INT64_MAX, "size");
  c.inner = number<int64_t>(item(d, 1), INT64_MAX, "size");
  int64_t elements;
  if (__builtin_mul_overflow(c.outer, c.inner, &elements))
    fail(Code::Value, "program: a cluster is too large");
  auto register_of = [&](PyObject* o) { return number<uint16_t>(o, c.registers.size(), "register"); };
  each(item(d, 2), [&](PyObject* r) {
    Register reg{number<Register::Kind>(item(r, 0), 3, "kind of register"),
                 number<Broadcast>(item(r, 1), 4, "broadcast"), number<uint8_t>(item(r, 2), 17, "width"),
                 number<uint32_t>(item(r, 3), UINT32_MAX, "operand")};
    c.widest = std::max(c.widest, reg.width);
    c.registers.push_back(reg);
  });
  if (c.registers.size() > UINT16_MAX + size_t(1))
    fail(Code::Runtime, "program: a cluster has too many registers");
  double cost = 0;
  // The operations as text. No such kernel has reductions, or types other than float.
  std::string words;
  auto add_word = [&](uint16_t r) {
    const Register& reg = c.registers[r];
    const bool one = reg.kind == Register::Kind::Input && reg.broadcast == Broadcast::Scalar;
    const bool plain = one || reg.broadcast == Broadcast::Full;
    words += plain ? std::string(" ") + (one ? 's' : "IOS"[int(reg.kind)]) + std::to_string(reg.index) : " ?";
  };
  each(item(d, 3), [&](PyObject* o) {
    ClusterOp op;
    std::string name = text(item(o, 0));
    Dtype t = dtype_of(item(o, 1));
    const bool reduces = PyList_Check(item(o, 3));
    op.out = register_of(reduces ? item(item(o, 3), 0) : item(o, 3));
    const bool column = c.registers[op.out].broadcast == Broadcast::Column;
    if (column && !reduces) op.over = ClusterOp::Over::Column;
    each(item(o, 4), [&](PyObject* r) {
      if (op.arity == std::size(op.in)) fail(Code::Value, "program: an operation has too many operands");
      op.in[op.arity] = register_of(r);
      const Register& reg = c.registers[op.in[op.arity]];
      bool repeats = reg.kind == Register::Kind::Input && reg.broadcast == Broadcast::Scalar;
      op.step[op.arity++] = !repeats;
    });
    double each_element = 0.3;
    if (reduces) {
      read_row_reduction(op, name, t, item(o, 3), register_of);
    } else if (name == "cast") {
      op.cast = find_cast(t, dtype_of(item(o, 2)));
      if (!op.cast || op.arity != 1) fail(Code::Value, "program: there is no such cast");
    } else {
      const Elementwise* k = find_elementwise(name);
      if (!k || !k->loop[int(t)] || k->arity != op.arity)
        fail(Code::Value, "program: there is no kernel " + name + " of " + std::to_string(op.arity) +
                              " operands for " + dtype_name(t));
      op.loop = k->loop[int(t)];
      each_element = k->cost;
    }
    words += (words.empty() ? "" : "; ") + (t == Dtype::F32 ? name : "?");
    add_word(op.out);
    for (int k = 0; k < op.arity; ++k) add_word(op.in[k]);
    cost += column && !reduces ? each_element / double(std::max<int64_t>(c.inner, 1)) : each_element;
    c.ops.push_back(op);
  });
  each(item(d, 4), [&](PyObject* o) {
    Dtype t = dtype_of(item(o, 1));
    c.epilogues.push_back({number<Epilogue::Over>(item(o, 2), 2, "way to reduce"),
                           reduction_of(text(item(o, 0)), t), register_of(item(o, 3)),
                           number<uint32_t>(item(o, 4), UINT32_MAX, "result"), uint8_t(dtype_size(t))});
    cost += 0.2;
  });
  c.scratch = number<uint32_t>(item(d, 5), 1 << 16, "number of buffers");
  c.cost = cost;
  if (c.epilogues.empty()) find_whole(c, words);
  return c;
}

}  // namespace gt::reading
