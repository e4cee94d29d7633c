// Checks that a program is consistent: places exist, values are computed before they are read, and operands
// and results of steps have the declared shapes. A program that passes accesses only its own memory; a run
// checks only its inputs.
#include "ops/elementwise.h"
#include "program.h"

namespace gt {

namespace {

[[noreturn]] void wrong(const std::string& what) { fail(Code::Value, "program: " + what); }

bool same(const Tensor& a, const Tensor& b) { return a.dtype == b.dtype && a.shape == b.shape; }

class Checker {
 public:
  explicit Checker(const Program& p) : p_(p), there_(p.values.size(), false) {}

  void run() {
    if (p_.arena_bytes < 0) wrong("the size of its memory is negative");
    for (size_t v = 0; v < p_.values.size(); ++v) check_place(v);
    for (const Step& step : p_.steps) {
      for (uint32_t v : step.in)
        if (!known(v)) wrong("a step reads a value that no step before it has made");
      for (uint32_t v : step.out) make(v);
      check_step(step);
    }
    for (uint32_t r : p_.results)
      if (!known(r)) wrong("a result is made by no step");
    if (!p_.in_place.empty() && p_.in_place.size() != p_.results.size())
      wrong("results and places differ in number");
    size_t end = 0;
    for (const Band& band : p_.bands) {
      if (band.first < end) wrong("its bands overlap");
      band.check(p_);
      end = band.end();
    }
    for (size_t k = 0; k < p_.in_place.size(); ++k) check_in_place(p_.in_place[k], p_.values[p_.results[k]]);
  }

 private:
  void check_place(size_t v) {
    const Value& x = p_.values[v];
    switch (x.place) {
      case Place::Input:
        if (x.at < 0 || x.at >= p_.n_inputs) wrong("there is no input " + std::to_string(x.at));
        there_[v] = true;
        return;
      case Place::Constant:
        if (!x.form.has_value()) wrong("a constant has no value");
        there_[v] = true;
        return;
      case Place::Joined: there_[v] = true; [[fallthrough]];
      case Place::Arena:
        if (x.at < 0 || x.at > p_.arena_bytes || x.form.nbytes() > p_.arena_bytes - x.at)
          wrong("a value lies outside of its memory");
        return;
      case Place::Alias:
        if (x.at < 0 || size_t(x.at) >= p_.values.size() || p_.values[size_t(x.at)].place == Place::Alias)
          wrong("an alias stands for no value");
        if (p_.values[size_t(x.at)].form.nbytes() != x.form.nbytes())
          wrong("an alias has another size than its value");
        return;
      case Place::Fresh: return;
    }
    wrong("there is no such place");
  }

  bool known(uint32_t v) const {
    if (v >= p_.values.size()) wrong("there is no value " + std::to_string(v));
    return there_[p_.origin(v)];
  }

  void make(uint32_t v) {
    const bool exists = v < p_.values.size();
    const Place place = exists ? p_.values[v].place : Place::Input;
    if ((place != Place::Fresh && place != Place::Arena) || there_[v])
      wrong("a step cannot make value " + std::to_string(v));
    there_[v] = true;
  }

  void check_step(const Step& step) {
    static const Attrs none;
    std::vector<const Tensor*> in;
    for (uint32_t v : step.in) in.push_back(&p_.values[v].form);
    Outs outs;
    switch (step.kind) {
      case Step::Kind::Call: return;
      case Step::Kind::Cluster: return check_cluster(p_.clusters[size_t(step.cluster)], step);
      case Step::Kind::Elementwise:
        if (int(in.size()) != step.kernel->arity)
          wrong(std::string(step.name) + " has another number of operands");
        outs.emplace_back(infer_elementwise(*step.kernel, in.data()));
        break;
      case Step::Kind::Op:
        step.impl->infer({in.data(), int(in.size()), step.attrs ? *step.attrs : none}, outs);
    }
    bool fits = outs.size() == step.out.size();
    for (size_t k = 0; fits && k < outs.size(); ++k) fits = same(outs[k], p_.values[step.out[k]].form);
    if (!fits) wrong(std::string(step.name) + " gives other results than are written down");
  }

  void check_cluster(const Cluster& c, const Step& step) {
    auto spans = [&](Broadcast s) {
      return s == Broadcast::Full     ? c.outer * c.inner
             : s == Broadcast::Row    ? c.inner
             : s == Broadcast::Column ? c.outer
                                      : 1;
    };
    for (const Register& r : c.registers) {
      if (r.kind == Register::Kind::Scratch) {
        if (r.index >= c.scratch) wrong("a cluster has no such buffer");
        continue;
      }
      const auto& values = r.kind == Register::Kind::Input ? step.in : step.out;
      if (r.index >= values.size()) wrong("a cluster has no such operand");
      const Tensor& x = p_.values[values[r.index]].form;
      if (x.numel != spans(r.broadcast) || dtype_size(x.dtype) != r.width)
        wrong("an operand of a cluster has another size");
    }
    for (const ClusterOp& op : c.ops) check_operation(c, op);
    for (const Epilogue& t : c.epilogues) {
      if (t.out >= step.out.size()) wrong("a cluster has no such result");
      const Tensor& y = p_.values[step.out[t.out]].form;
      const int64_t n = t.over == Epilogue::Over::All ? 1 : c.inner;
      const Register& x = c.registers[t.in];
      if (y.numel != n || dtype_size(y.dtype) != t.width || x.width != t.width)
        wrong("a reduction of a cluster has another size");
      if (x.broadcast != Broadcast::Full && c.outer * c.inner != 1)
        wrong("a cluster reduces what is not a tile");
    }
  }

  // Whole tiles may be computed from anything, elements of columns from columns and single elements only.
  void check_operation(const Cluster& c, const ClusterOp& op) {
    auto kind = [&](uint16_t r) { return c.registers[r].broadcast; };
    const bool column = op.reduces() || op.over == ClusterOp::Over::Column;
    const uint16_t second = op.moments ? op.second : op.out;
    if (kind(op.out) != (column ? Broadcast::Column : Broadcast::Full) || kind(second) != kind(op.out) ||
        c.registers[op.out].kind == Register::Kind::Input ||
        c.registers[second].kind == Register::Kind::Input)
      wrong("a cluster writes to no tile and no column");
    for (int k = 0; k < op.arity; ++k) {
      const Broadcast x = kind(op.in[k]);
      const bool fits = op.reduces() ? x == Broadcast::Full || (op.product && x == Broadcast::Row)
                        : op.cast    ? x == kind(op.out) || c.outer * c.inner == 1
                        : column     ? x == Broadcast::Column || x == Broadcast::Scalar
                                     : true;
      if (!fits) wrong("an operation of a cluster reads another shape");
    }
  }

  void check_in_place(int32_t input, const Value& result) {
    if (input < 0) return;
    if (result.place != Place::Fresh) wrong("only a result of its own can be written over an input");
    for (const Value& v : p_.values)
      if (v.place == Place::Input && v.at == input && same(v.form, result.form)) return;
    wrong("a result does not fit the input it is written over");
  }

  const Program& p_;
  std::vector<bool> there_;
};

}  // namespace

void Program::check() const { Checker(*this).run(); }

void Program::check_inputs(const Tensor* const* inputs) const {
  for (uint32_t i = 0; i < n_inputs; ++i)
    if (is_held(inputs[i]->dtype) ? !inputs[i]->buffer : !inputs[i]->data)
      fail(Code::Runtime, "program: an input has no value");
  for (const Value& v : values)
    if (v.place == Place::Input && !same(*inputs[v.at], v.form))
      wrong("it was made for " + v.form.spec().str() + " but got " + inputs[v.at]->spec().str());
}

}  // namespace gt
