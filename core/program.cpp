// Runs programs. What a run needs is prepared once and kept in a frame; concurrent runs take
// different frames.
#include "program.h"

#include <chrono>

#include "ops/elementwise.h"

namespace gt {

// Up to this size the memory of a frame is kept between runs: small programs run often.
constexpr int64_t kKeptArena = 64 * 1024;

struct Frame {
  std::vector<Tensor> inputs;               // Input and Constant values
  std::vector<Outs> outs;                   // results of each step
  std::vector<Tensor*> value;               // by number of the value; points into the two above
  std::vector<std::vector<const Tensor*>> in;
  std::vector<std::pair<Tensor*, int64_t>> arena;   // values in the arena and their offsets
  std::vector<std::pair<Tensor*, const Tensor*>> aliases;
  std::vector<Tensor*> fresh, loose;        // results; values that steps may give memory of their own
  Buffer* memory = nullptr;
  std::vector<Tensor> alias_values;
  std::vector<const char*> pointers_in;
  std::vector<char*> pointers_out;
  ~Frame() { unref(memory); }
};

Program::Program() = default;
Program::~Program() = default;

static std::unique_ptr<Frame> make_frame(const Program& p) {
  auto f = std::make_unique<Frame>();
  f->inputs.resize(p.values.size());
  f->alias_values.reserve(p.values.size());
  f->value.resize(p.values.size(), nullptr);
  f->outs.resize(p.steps.size());
  f->in.resize(p.steps.size());
  for (size_t v = 0; v < p.values.size(); ++v) {
    const Value& value = p.values[v];
    if (value.place == Place::Input || value.place == Place::Constant) {
      f->inputs[v] = value.form;
      f->value[v] = &f->inputs[v];
    }
  }
  for (size_t s = 0; s < p.steps.size(); ++s) {
    const Step& step = p.steps[s];
    f->outs[s].reserve(step.out.size());
    for (uint32_t v : step.out) {
      const Value& value = p.values[v];
      f->outs[s].push_back(value.form);
      Tensor* t = &f->outs[s].back();
      f->value[v] = t;
      if (value.place == Place::Arena) f->arena.emplace_back(t, value.at);
      if (value.place == Place::Fresh) f->fresh.push_back(t);
      bool may_share = step.kind == Step::Kind::Call || (step.kind == Step::Kind::Op && !step.impl->allocates);
      if (may_share) f->loose.push_back(t);
    }
  }
  // An alias comes after what it stands for, so one pass in order is enough.
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].place == Place::Alias) {
      f->alias_values.push_back(p.values[v].form);
      f->value[v] = &f->alias_values.back();
    }
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].place == Place::Alias) f->aliases.emplace_back(f->value[v], f->value[size_t(p.values[v].at)]);
  size_t most_in = 0, most_out = 0;
  for (size_t s = 0; s < p.steps.size(); ++s) {
    for (uint32_t v : p.steps[s].in) f->in[s].push_back(f->value[v]);
    most_in = std::max(most_in, p.steps[s].in.size());
    most_out = std::max(most_out, p.steps[s].out.size());
  }
  f->pointers_in.resize(most_in);
  f->pointers_out.resize(most_out);
  return f;
}

std::unique_ptr<Frame> Program::take_frame() {
  {
    std::lock_guard lock(mutex_);
    if (!frames_.empty()) {
      auto f = std::move(frames_.back());
      frames_.pop_back();
      return f;
    }
  }
  return make_frame(*this);
}

void Program::execute(Frame& f, double* times) {
  using Clock = std::chrono::steady_clock;
  static const Attrs none;
  // Aliases see the elements of the value they stand for as soon as that exists; values with a
  // fixed place have it before the first step.
  for (auto& [alias, of] : f.aliases) alias->data = of->data;
  for (size_t s = 0; s < steps.size(); ++s) {
    Step& step = steps[s];
    Outs& outs = f.outs[s];
    Clock::time_point begin;
    if (times) begin = Clock::now();
    switch (step.kind) {
      case Step::Kind::Elementwise: run_elementwise(*step.kernel, f.in[s].data(), outs[0]); break;
      case Step::Kind::Cluster: {
        for (size_t i = 0; i < f.in[s].size(); ++i) f.pointers_in[i] = f.in[s][i]->data;
        for (size_t i = 0; i < outs.size(); ++i) f.pointers_out[i] = outs[i].data;
        clusters[size_t(step.cluster)].run(f.pointers_in.data(), f.pointers_out.data());
        break;
      }
      case Step::Kind::Op: {
        Call call{f.in[s].data(), int(f.in[s].size()), step.attrs ? *step.attrs : none};
        step.impl->run(call, outs);
        break;
      }
      case Step::Kind::Call: {
        Call call{f.in[s].data(), int(f.in[s].size()), none};
        callback(context, step.call, call, outs);
      }
    }
    if (step.kind == Step::Kind::Call || (step.kind == Step::Kind::Op && !step.impl->allocates))
      for (auto& [alias, of] : f.aliases) alias->data = of->data;
    if (times) times[s] += std::chrono::duration<double>(Clock::now() - begin).count();
  }
}

void Program::run(const Tensor* const* inputs, std::vector<Tensor>& outs, double* times, bool take) {
  auto frame = take_frame();
  Frame& f = *frame;
  struct Cleanup {
    Program* p;
    std::unique_ptr<Frame>& frame;
    ~Cleanup() {
      for (size_t v = 0; v < p->values.size(); ++v)
        if (p->values[v].place == Place::Input) frame->inputs[v].forget();
      for (Tensor* t : frame->fresh) t->forget();
      for (Tensor* t : frame->loose) t->forget();
      if (p->arena_bytes > kKeptArena) {
        unref(frame->memory);
        frame->memory = nullptr;
      }
      for (auto& [t, offset] : frame->arena) t->data = frame->memory ? frame->memory->data + offset : nullptr;
      std::lock_guard lock(p->mutex_);
      p->frames_.push_back(std::move(frame));
    }
  } cleanup{this, frame};
  // Before the frame holds the inputs too: one reference is the variable's own.
  for (size_t k = 0; take && k < in_place.size(); ++k) {
    if (in_place[k] < 0) continue;
    const Tensor& x = *inputs[in_place[k]];
    if (x.buffer->refs.load() == 1 && !x.buffer->release) f.value[results[k]]->share(x);
  }
  for (size_t v = 0; v < values.size(); ++v)
    if (values[v].place == Place::Input) f.inputs[v].share(*inputs[values[v].at]);
  if (arena_bytes && !f.memory) {
    f.memory = allocate(size_t(arena_bytes));
    for (auto& [t, offset] : f.arena) t->data = f.memory->data + offset;
  }
  for (Tensor* t : f.fresh)
    if (!t->buffer) t->allocate();
  execute(f, times);
  outs.reserve(results.size());
  for (uint32_t r : results) {
    const Tensor& t = *f.value[r];
    const Tensor* owner = &t;
    for (const Value* v = &values[r]; v->place == Place::Alias; v = &values[size_t(v->at)]) owner = f.value[size_t(v->at)];
    if (owner->buffer && owner->buffer != f.memory) {
      Tensor out(t.spec());
      ref(owner->buffer);
      out.buffer = owner->buffer;
      out.data = t.data;
      outs.push_back(std::move(out));
    } else {  // the elements are in the arena, which others will write to
      Tensor out = empty(t.dtype, t.shape);
      std::memcpy(out.data, t.data, size_t(t.nbytes()));
      outs.push_back(std::move(out));
    }
  }
}

}  // namespace gt
