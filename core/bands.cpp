// Checks and runs bands.
#include "bands.h"

#include <algorithm>
#include <cstring>

#include "frame.h"
#include "ops/elementwise.h"
#include "threads.h"

namespace gt {
namespace {

[[noreturn]] void wrong(const std::string& what) { fail(Code::Value, "program: a band " + what); }

// The shape of a block of `x`: its rows are divided by `blocks`.
Tensor block_of(const Tensor& x, uint32_t blocks) {
  Tensor part(Spec{x.dtype, x.shape});
  part.shape.dims[0] /= blocks;
  part.numel /= blocks;
  return part;
}

// Whether the first axis can be cut.
bool has_blocks(const Tensor& x, uint32_t blocks) { return x.shape.rank && x.shape[0] % blocks == 0; }

// Memory that the steps of a band read or write.
struct Use {
  int64_t begin, end;
  bool whole;    // a block reads all of it
  bool written;  // blocks write their parts
};

// Checks that blocks do not disturb each other. Parts of values that share memory are the same bytes if the
// values are equally long and each block uses only its own part. A value that a block reads as a whole must
// not be written.
void check_memory(std::vector<Use>& uses) {
  std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  for (size_t i = 0; i < uses.size();) {
    const Use& u = uses[i];
    bool whole = false, written = false, differs = false;
    int64_t end = u.end;
    for (; i < uses.size() && uses[i].begin < end; ++i) {
      differs |= uses[i].begin != u.begin || uses[i].end != u.end;
      whole |= uses[i].whole, written |= uses[i].written;
      end = std::max(end, uses[i].end);
    }
    if (written && (whole || differs)) wrong("has blocks that would write what others read");
  }
}

}  // namespace

void Band::check(const Program& p) const {
  if (blocks < 2) wrong("has no blocks");
  if (end() > p.steps.size()) wrong("has steps that do not exist");
  std::vector<Use> arena, inputs, fresh;
  auto use = [&](uint32_t v, bool whole, bool written) {
    const size_t origin = p.origin(v);
    const Value& x = p.values[origin];
    if (x.place == Place::Arena || x.place == Place::Joined)
      arena.push_back({x.at, x.at + x.form.nbytes(), whole, written});
    if (x.place == Place::Input) inputs.push_back({x.at, x.at + 1, whole, written});
    if (x.place != Place::Fresh) return;
    fresh.push_back({int64_t(origin), int64_t(origin) + 1, whole, written});
    for (size_t k = 0; k < p.in_place.size(); ++k)
      if (p.results[k] == v && p.in_place[k] >= 0)
        inputs.push_back({p.in_place[k], p.in_place[k] + 1, whole, written});
  };
  for (size_t s = first; s < end(); ++s) {
    const Step& step = p.steps[s];
    const std::vector<bool>& parts = cut[s - first];
    if (parts.size() != step.in.size()) wrong("does not say what each operand is");
    if (step.kind == Step::Kind::Call) wrong("has a call");
    for (size_t k = 0; k < step.in.size(); ++k)
      if (p.values[step.in[k]].form.numel) use(step.in[k], !parts[k], false);
    for (uint32_t v : step.out)
      if (p.values[v].form.numel) use(v, false, true);
    if (step.kind == Step::Kind::Cluster) {
      const Cluster& c = p.clusters[size_t(step.cluster)];
      if ((c.outer > 1 ? c.outer : c.inner) % blocks || !c.epilogues.empty())
        wrong("has a cluster without blocks");
      for (const Register& r : c.registers) {
        if (r.kind == Register::Kind::Scratch) continue;
        const bool part = r.kind == Register::Kind::Output || parts[r.index];
        const bool by_rows =
            r.broadcast == Broadcast::Full || (r.broadcast == Broadcast::Column && c.outer > 1);
        if (part != by_rows || (r.broadcast == Broadcast::Row && c.outer == 1))
          wrong("has a cluster that reads other rows");
      }
      continue;
    }
    // An op that treats rows independently makes a block of its results from blocks of its operands.
    std::vector<Tensor> in;
    std::vector<const Tensor*> at;
    for (size_t k = 0; k < step.in.size(); ++k) {
      const Tensor& x = p.values[step.in[k]].form;
      if (parts[k] && !has_blocks(x, blocks)) wrong("has an operand without blocks");
      in.push_back(parts[k] ? block_of(x, blocks) : Tensor(x.spec()));
    }
    for (const Tensor& x : in) at.push_back(&x);
    Outs outs;
    static const Attrs none;
    if (step.kind == Step::Kind::Elementwise)
      outs.emplace_back(infer_elementwise(*step.kernel, at.data()));
    else
      step.impl->infer({at.data(), int(at.size()), step.attrs ? *step.attrs : none}, outs);
    for (size_t k = 0; k < step.out.size(); ++k) {
      const Tensor& y = p.values[step.out[k]].form;
      if (!has_blocks(y, blocks) || !(outs[k].shape == block_of(y, blocks).shape))
        wrong("has a step that does not make blocks of its results");
    }
  }
  for (auto* uses : {&arena, &inputs, &fresh}) check_memory(*uses);
}

void Band::finish(const Program& p) {
  for (size_t s = first; s < end(); ++s) {
    if (p.steps[s].kind != Step::Kind::Cluster) continue;
    Cluster c = p.clusters[size_t(p.steps[s].cluster)];
    (c.outer > 1 ? c.outer : c.inner) /= blocks;
    c.choose_tiles();
    clusters.push_back(std::move(c));
  }
}

namespace {

// A thread's work on one block.
class BlockRunner {
 public:
  BlockRunner(const Program& p, const Frame& f, const Band& band, int64_t block)
      : p_(p), f_(f), band_(band), block_(block) {}

  void run() {
    const Cluster* cluster = band_.clusters.data();
    for (size_t s = band_.first; s < band_.end(); ++s) {
      const Step& step = p_.steps[s];
      const std::vector<const Tensor*>& in = f_.in[s];
      const std::vector<bool>& cut = band_.cut[s - band_.first];
      const Outs& outs = f_.outs[s];
      if (step.kind == Step::Kind::Cluster) {
        pointers_in_.resize(in.size()), pointers_out_.resize(outs.size());
        for (size_t k = 0; k < in.size(); ++k) pointers_in_[k] = cut[k] ? place(*in[k]) : in[k]->data;
        for (size_t k = 0; k < outs.size(); ++k) pointers_out_[k] = place(outs[k]);
        cluster++->run(pointers_in_.data(), pointers_out_.data());
        continue;
      }
      in_.clear(), outs_.clear(), at_.clear();
      for (size_t k = 0; k < in.size(); ++k) in_.push_back(cut[k] ? part(*in[k]) : lent(*in[k]));
      for (const Tensor& y : outs) outs_.push_back(part(y));
      for (const Tensor& x : in_) at_.push_back(&x);
      p_.run_step(step, at_.data(), outs_);
      for (size_t k = 0; k < outs.size(); ++k)
        if (char* to = place(outs[k]); outs_[k].data != to)  // the op returned elements of an operand
          std::memcpy(to, outs_[k].data, size_t(outs_[k].nbytes()));
    }
  }

 private:
  char* place(const Tensor& x) const { return x.data + x.nbytes() / band_.blocks * block_; }
  // Elements that are owned elsewhere.
  Tensor part(const Tensor& x) const {
    Tensor y = block_of(x, band_.blocks);
    y.data = place(x);
    return y;
  }
  static Tensor lent(const Tensor& x) {
    Tensor y(Spec{x.dtype, x.shape});
    y.data = x.data;
    return y;
  }

  const Program& p_;
  const Frame& f_;
  const Band& band_;
  const int64_t block_;
  std::vector<const char*> pointers_in_;
  std::vector<char*> pointers_out_;
  std::vector<Tensor> in_;
  std::vector<const Tensor*> at_;
  Outs outs_;
};

}  // namespace

void Band::run(const Program& p, Frame& f) const {
  for (size_t s = first; s < end(); ++s) {
    if (!p.steps[s].may_share()) continue;
    for (Tensor& y : f.outs[s]) y.claim();
    for (auto& [alias, of] : f.aliases_of[s]) alias->data = of->data;
  }
  parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) BlockRunner(p, f, *this, block).run();
  });
}

}  // namespace gt
