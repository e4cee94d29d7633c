// Runs programs. What a run needs is prepared once and kept in a frame; concurrent runs take
// different frames.
#include "program.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>

#include "fork.h"
#include "frame.h"
#include "ops/elementwise.h"
#include "step_error.h"

namespace gt {

// More than the tiles of all threads take.
constexpr size_t kMargin = 1 << 20;
// Up to this size a frame's memory is kept between runs: small programs run often.
constexpr int64_t kKeptArena = 64 * 1024;

Program::Program() = default;
Program::~Program() {
  for (Idle& at : idle_) delete at.frame.load(std::memory_order_acquire);
  while (more_idle_) more_idle_ = std::move(more_idle_->next);  // not by recursion
}

// ---- lines of short steps --------------------------------------------------------------------

static size_t bytes_of_buffer(const Cluster& c) {
  return size_t(c.outer * c.inner * c.widest + 63) / 64 * 64;
}

static bool is_short(const Program& p, const Step& step) {
  if (step.kind == Step::Kind::Cluster) return p.clusters[size_t(step.cluster)].is_short();
  if (step.kind != Step::Kind::Elementwise) return false;
  const int64_t n = p.values[step.out[0]].form.numel;
  for (uint32_t v : step.in)
    if (p.values[v].form.numel != n && p.values[v].form.numel != 1) return false;
  return n > 0 && n <= kShortElements;
}

// Creates the calls of all short steps, without their pointers.
static void find_lines(const Program& p, Frame& f) {
  const size_t n = p.steps.size();
  f.line.resize(n, 0);
  f.first.resize(n + 1, 0);
  f.moves.resize(n, false);
  size_t registers = 0, bytes = 0, together = 0;
  auto band = p.bands.begin();
  for (size_t s = 0; s < n; ++s) {
    const Step& step = p.steps[s];
    f.first[s] = uint32_t(f.calls.size());
    together = std::max(together, s + p.alike[s]);
    if (band != p.bands.end() && band->first == s) together = std::max(together, band++->end());
    if (s < together || !is_short(p, step)) continue;
    f.line[s] = 1;
    for (const auto* some : {&step.in, &step.out})
      for (uint32_t v : *some) f.moves[s] = f.moves[s] || f.is_loose[p.origin(v)];
    if (step.kind == Step::Kind::Elementwise) {
      const int64_t size = p.values[step.out[0]].form.numel;
      Prepared call{step.kernel->loop[int(p.values[step.in.back()].form.dtype)],
                    nullptr,
                    nullptr,
                    {},
                    {},
                    int32_t(size)};
      for (size_t k = 0; k < step.in.size(); ++k) call.step[k] = p.values[step.in[k]].form.numel == size;
      f.calls.push_back(call);
      continue;
    }
    const Cluster& c = p.clusters[size_t(step.cluster)];
    registers = std::max(registers, c.registers.size());
    bytes = std::max(bytes, bytes_of_buffer(c) * c.scratch);
    for (const ClusterOp& op : c.ops) {
      Prepared call{op.loop, op.cast, nullptr, {}, {}, int32_t(c.outer * c.inner)};
      std::copy_n(op.step, op.arity, call.step);
      f.calls.push_back(call);
    }
  }
  f.first[n] = uint32_t(f.calls.size());
  for (size_t s = n; s-- > 1;)
    if (f.line[s] && f.line[s - 1] && !f.moves[s] && !f.moves[s - 1]) f.line[s - 1] += f.line[s];
  f.registers.resize(registers);
  f.buffers.reset(new char[bytes + 64]);
  f.buffer = f.buffers.get() + (64 - reinterpret_cast<uintptr_t>(f.buffers.get()) % 64);
}

// Gives the calls of a short step their pointers.
static void prepare(const Program& p, Frame& f, size_t s) {
  const Step& step = p.steps[s];
  const std::vector<const Tensor*>& in = f.in[s];
  Prepared* call = f.calls.data() + f.first[s];
  if (step.kind == Step::Kind::Elementwise) {
    call->out = f.outs[s][0].data;
    for (size_t k = 0; k < in.size(); ++k) call->in[k] = in[k]->data;
    return;
  }
  const Cluster& c = p.clusters[size_t(step.cluster)];
  const size_t stride = bytes_of_buffer(c);
  char** at = f.registers.data();
  for (size_t i = 0; i < c.registers.size(); ++i) {
    const Register& r = c.registers[i];
    at[i] = r.kind == Register::Kind::Input    ? in[r.index]->data
            : r.kind == Register::Kind::Output ? f.outs[s][r.index].data
                                               : f.buffer + stride * r.index;
  }
  for (const ClusterOp& op : c.ops) {
    call->out = at[op.out];
    for (int k = 0; k < op.arity; ++k) call->in[k] = at[op.in[k]];
    ++call;
  }
}

static std::unique_ptr<Frame> make_frame(const Program& p) {
  auto f = std::make_unique<Frame>();
  f->inputs.resize(p.values.size());
  f->alias_values.reserve(p.values.size());
  f->value.resize(p.values.size(), nullptr);
  f->outs.resize(p.steps.size());
  f->in.resize(p.steps.size());
  f->aliases_of.resize(p.steps.size());
  std::vector<size_t> maker(p.values.size(), p.steps.size());  // the step that allocates a value
  f->is_loose.resize(p.values.size(), false);
  f->taken.resize(p.in_place.size(), false);
  for (size_t v = 0; v < p.values.size(); ++v) {
    const Value& value = p.values[v];
    if (value.place == Place::Input || value.place == Place::Constant) {
      f->inputs[v] = value.form;
      f->value[v] = &f->inputs[v];
      if (value.place == Place::Input) f->given.emplace_back(f->value[v], size_t(value.at));
    } else if (value.place == Place::Joined) {
      f->inputs[v] = value.form;
      f->value[v] = &f->inputs[v];
      f->arena.emplace_back(f->value[v], value.at);
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
      if (step.may_share()) {
        f->loose.push_back(t);
        f->is_loose[v] = true;
        maker[v] = s;
      }
    }
  }
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].place == Place::Alias) {
      f->alias_values.push_back(p.values[v].form);
      f->value[v] = &f->alias_values.back();
    }
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].place == Place::Alias) {
      const std::pair<Tensor*, const Tensor*> alias{f->value[v], f->value[p.origin(v)]};
      f->aliases.push_back(alias);
      if (size_t s = maker[p.origin(v)]; s < p.steps.size()) f->aliases_of[s].push_back(alias);
    }
  size_t most_in = 0, most_out = 0;
  for (size_t s = 0; s < p.steps.size(); ++s) {
    for (uint32_t v : p.steps[s].in) f->in[s].push_back(f->value[v]);
    most_in = std::max(most_in, p.steps[s].in.size());
    most_out = std::max(most_out, p.steps[s].out.size());
  }
  for (size_t s = 0; s < p.alike.size(); ++s)
    if (p.alike[s] > 1) {
      size_t in = 0, out = 0;
      for (size_t k = s; k < s + p.alike[s]; ++k) in += p.steps[k].in.size(), out += p.steps[k].out.size();
      most_in = std::max(most_in, in);
      most_out = std::max(most_out, out);
    }
  f->pointers_in.resize(most_in);
  f->pointers_out.resize(most_out);
  find_lines(p, *f);
  return f;
}

// ---- clusters that run together -------------------------------------------------------------

static bool same_scalars(const Program& p, const Step& a, const Step& b) {
  const Cluster& c = p.clusters[size_t(a.cluster)];
  for (const Register& r : c.registers) {
    if (r.kind != Register::Kind::Input || r.broadcast != Broadcast::Scalar || a.in[r.index] == b.in[r.index])
      continue;
    const Value &x = p.values[a.in[r.index]], &y = p.values[b.in[r.index]];
    if (x.place != Place::Constant || y.place != Place::Constant || x.form.dtype != y.form.dtype)
      return false;
    if (std::memcmp(x.form.data, y.form.data, size_t(dtype_size(x.form.dtype))) != 0) return false;
  }
  return true;
}

// Whether the results of these clusters are in memory of their own, so that they overlap with nothing, and
// none reads the result of another: `made` has, for each value, the first step of the clusters that it is a
// result of.
static bool joins(const Program& p, size_t first, size_t last, const std::vector<size_t>& made) {
  const Step &a = p.steps[first], &b = p.steps[last];
  if (b.kind != Step::Kind::Cluster) return false;
  for (uint32_t v : b.out)
    if (p.values[v].place != Place::Fresh) return false;
  if (first == last) return true;
  if (!alike(p.clusters[size_t(a.cluster)], p.clusters[size_t(b.cluster)]) || !same_scalars(p, a, b))
    return false;
  for (uint32_t v : b.in)
    if (made[p.origin(v)] == first) return false;
  return true;
}

// Longer programs release the interpreter's lock; see run_over.
constexpr double kShortNanoseconds = 50000;
// Programs that read and write more check the clock, and for interrupts, between their steps.
constexpr int64_t kLongElements = 1 << 17;

void Program::finish() {
  check();
  for (Band& band : bands) band.finish(*this);
  for (Cluster& c : clusters) c.choose_tiles();
  band_at_.assign(steps.size(), nullptr);
  for (const Band& band : bands) band_at_[band.first] = &band;
  alike.assign(steps.size(), 0);
  std::vector<size_t> made(values.size(), steps.size());
  for (size_t s = 0; s < steps.size();) {
    if (band_at_[s]) {
      s = band_at_[s]->end();
      continue;
    }
    size_t end = s;
    while (end < steps.size() && end - s < 512 && !band_at_[end] && joins(*this, s, end, made)) {
      for (uint32_t v : steps[end].out) made[v] = s;
      ++end;
    }
    if (end - s > 1) alike[s] = uint32_t(end - s);
    s = std::max(end, s + 1);
  }
  double cost = 0;
  over_ = !results.empty() && in_place.size() == results.size();
  std::vector<bool> returned(values.size(), false);
  for (size_t k = 0; over_ && k < results.size(); ++k) {
    over_ = in_place[k] >= 0 && values[results[k]].place == Place::Fresh && !returned[results[k]];
    returned[results[k]] = true;
  }
  for (const Step& step : steps) {
    over_ = over_ && (step.kind == Step::Kind::Cluster || step.kind == Step::Kind::Elementwise);
    if (step.kind == Step::Kind::Cluster) {
      const Cluster& c = clusters[size_t(step.cluster)];
      cost += double(c.outer * c.inner) * c.cost;
    } else if (step.kind == Step::Kind::Elementwise) {
      cost += double(values[step.out[0]].form.numel) * step.kernel->cost;
    }
  }
  over_ = over_ && cost < kShortNanoseconds;
  int64_t elements = 0;
  for (const Step& step : steps)
    for (const auto* some : {&step.in, &step.out})
      for (uint32_t v : *some) elements += values[v].form.numel;
  long_ = elements > kLongElements;
  for (const Step& step : steps) calls_ |= step.kind == Step::Kind::Call;
}

static void run_together(const Program& p, Frame& f, size_t first, size_t count) {
  f.together.clear(), f.begins_in.clear(), f.begins_out.clear();
  size_t in = 0, out = 0;
  for (size_t s = first; s < first + count; ++s) {
    f.together.push_back(&p.clusters[size_t(p.steps[s].cluster)]);
    f.begins_in.push_back(f.pointers_in.data() + in);
    f.begins_out.push_back(f.pointers_out.data() + out);
    for (const Tensor* x : f.in[s]) f.pointers_in[in++] = x->data;
    for (const Tensor& y : f.outs[s]) f.pointers_out[out++] = y.data;
  }
  run_alike(f.together.data(), count, f.begins_in.data(), f.begins_out.data());
}

static Lock& frames_lock = *new Lock;  // of the further idle frames of all programs; never destroyed

static size_t number_of_thread() {
  static std::atomic<size_t> threads{0};
  static thread_local const size_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return number;
}

std::unique_ptr<Frame> Program::take_frame() {
  const size_t mine = number_of_thread();
  for (size_t k = 0; k < std::size(idle_); ++k) {
    std::atomic<Frame*>& at = idle_[(mine + k) % std::size(idle_)].frame;
    if (!at.load(std::memory_order_relaxed)) continue;
    if (Frame* f = at.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Frame>(f);
  }
  if (has_more_.load(std::memory_order_relaxed)) {
    std::lock_guard hold(frames_lock);
    if (more_idle_) {
      auto f = std::move(more_idle_);
      more_idle_ = std::move(f->next);
      has_more_.store(more_idle_ != nullptr, std::memory_order_relaxed);
      return f;
    }
  }
  return make_frame(*this);
}

void Program::give_back(std::unique_ptr<Frame> f) noexcept {
  if (arena_bytes > kKeptArena) {
    unref(f->memory);
    f->memory = nullptr;
  }
  f->place();
  const size_t mine = number_of_thread();
  for (size_t k = 0; k < std::size(idle_); ++k) {
    Frame* nothing = nullptr;
    if (!idle_[(mine + k) % std::size(idle_)].frame.compare_exchange_strong(nothing, f.get(),
                                                                            std::memory_order_release))
      continue;
    f.release();
    return;
  }
  std::lock_guard hold(frames_lock);
  f->next = std::move(more_idle_);
  more_idle_ = std::move(f);
  has_more_.store(true, std::memory_order_relaxed);
}

void (*check_interrupt)() = [] {};

void Patience::look() {
  using namespace std::chrono_literals;
  const Clock::time_point now = Clock::now();
  if (now - looked_ > 1ms)
    between_ = 1;
  else
    between_ = std::min(2 * between_, most_);
  looked_ = now;
  left_ = between_;
  if (now - asked_ < 100ms) return;
  asked_ = now;
  check_interrupt();
}

void Program::run_step(const Step& step, const Tensor* const* in, Outs& outs) const {
  static const Attrs none;
  const Call call{in, int(step.in.size()), step.attrs ? *step.attrs : none};
  try {
    if (step.kind == Step::Kind::Elementwise)
      run_elementwise(*step.kernel, in, outs[0]);
    else
      step.impl->run(call, outs);
  } catch (const Error& e) {
    std::vector<Spec> given;
    for (int i = 0; i < call.n; ++i) given.push_back(call[i].spec());
    throw StepError{e, step.op, step.where, std::move(given)};
  }
}

void Program::execute(Frame& f, double* times, bool interruptible, bool moved) {
  using Clock = std::chrono::steady_clock;
  static const Attrs none;
  // Aliases get the elements of their origin as soon as those exist; values with a fixed place have them
  // before the first step.
  if (moved)
    for (auto& [alias, of] : f.aliases) alias->data = of->data;
  std::optional<Patience> patience;
  if (interruptible && long_) patience.emplace();
  for (size_t s = 0; s < steps.size(); ++s) {
    if (patience) patience->step();
    if (band_at_[s] && !times) {
      band_at_[s]->run(*this, f);
      s = band_at_[s]->end() - 1;
      continue;
    }
    Step& step = steps[s];
    Outs& outs = f.outs[s];
    Clock::time_point begin;
    if (times) begin = Clock::now();
    if (f.line[s]) {
      const size_t last = times ? s : s + f.line[s] - 1;
      if (moved || f.moves[s])
        for (size_t k = s; k <= last; ++k) prepare(*this, f, k);
      const Prepared* end = f.calls.data() + f.first[last + 1];
      for (const Prepared* call = f.calls.data() + f.first[s]; call != end; ++call) (*call)();
      if (times) times[s] += std::chrono::duration<double>(Clock::now() - begin).count();
      s = last;
      continue;
    }
    switch (step.kind) {
      case Step::Kind::Elementwise:
      case Step::Kind::Op: run_step(step, f.in[s].data(), outs); break;
      case Step::Kind::Cluster: {
        if (alike[s] > 1) {
          run_together(*this, f, s, alike[s]);
          s += alike[s] - 1;
          break;
        }
        for (size_t i = 0; i < f.in[s].size(); ++i) f.pointers_in[i] = f.in[s][i]->data;
        for (size_t i = 0; i < outs.size(); ++i) f.pointers_out[i] = outs[i].data;
        clusters[size_t(step.cluster)].run(f.pointers_in.data(), f.pointers_out.data());
        break;
      }
      case Step::Kind::Call: {
        Call call{f.in[s].data(), int(f.in[s].size()), none};
        callback(context, step, call, outs);
      }
    }
    for (auto& [alias, of] : f.aliases_of[s]) alias->data = of->data;
    if (times) times[s] += std::chrono::duration<double>(Clock::now() - begin).count();
  }
}

// Whether there is memory left for what a few steps may need.
static bool has_margin() {
  void* volatile some = std::malloc(kMargin);  // a compiler may remove what nothing reads
  const bool found = some;
  std::free(some);
  return found;
}

Program::Run::Run(Program& program, const Tensor* const* inputs, bool take)
    : program_(program), frame_(program.take_frame()) {
  Frame& f = *frame_;
  // A run that overwrites inputs cannot be undone: if memory is so short that a tile might get none, the
  // results get memory of their own, or the run fails with nothing changed.
  take = take && !program.in_place.empty() && has_margin();
  // Before the frame holds the inputs too: one reference is the variable's own.
  for (size_t k = 0; take && k < program.in_place.size(); ++k) {
    if (program.in_place[k] < 0) continue;
    const Tensor& x = *inputs[program.in_place[k]];
    if (!x.is_sole()) continue;
    f.value[program.results[k]]->share(x);
    f.taken[k] = true;
    interruptible_ = false;
  }
  for (auto& [t, input] : f.given) t->share(*inputs[input]);
}

Program::Run::~Run() {
  Frame& f = *frame_;
  for (auto& [t, input] : f.given) t->forget();
  for (Tensor* t : f.fresh) t->forget();
  for (Tensor* t : f.loose) t->forget();
  f.taken.assign(f.taken.size(), false);
  program_.give_back(std::move(frame_));
}

bool Program::Run::takes(size_t result) const { return !interruptible_ && frame_->taken[result]; }

void Program::Run::compute(std::vector<Tensor>& outs, double* times) {
  Frame& f = *frame_;
  f.claim(program_.arena_bytes);
  for (Tensor* t : f.fresh)
    if (!t->buffer && !is_held(t->dtype)) t->allocate();
  // A run that overwrites inputs cannot be undone, so the memory of the results is claimed before the first
  // step, also for those that may turn out to be part of the arena, which later steps write to.
  const std::vector<uint32_t>& results = program_.results;
  outs.clear();
  outs.reserve(results.size());
  for (uint32_t r : results) {
    outs.emplace_back(f.value[r]->spec());
    if (!interruptible_ && f.is_loose[program_.origin(r)] && !is_held(outs.back().dtype))
      outs.back().allocate();
  }
  program_.execute(f, times, interruptible_);
  for (size_t k = 0; k < results.size(); ++k) {
    const Tensor& t = *f.value[results[k]];
    Buffer* buffer = f.value[program_.origin(results[k])]->buffer;
    if (!buffer) {
      if (!outs[k].has_value()) outs[k].allocate();
      std::memcpy(outs[k].data, t.data, size_t(t.nbytes()));
    } else {
      outs[k].forget();
      ref(buffer);
      outs[k].buffer = buffer;
      outs[k].data = t.data;
    }
  }
}

bool Program::run_over(const Tensor* const* inputs) {
  if (!over_) return false;
  for (int32_t i : in_place)
    if (!inputs[i]->is_sole()) return false;
  auto frame = take_frame();
  Frame& f = *frame;
  struct Return {
    Program* p;
    std::unique_ptr<Frame>& frame;
    ~Return() {
      for (auto& [t, input] : frame->given) lend(*t, nullptr);
      for (Tensor* t : frame->fresh) lend(*t, nullptr);
      p->give_back(std::move(frame));
    }
  } giving{this, frame};
  for (auto& [t, input] : f.given) lend(*t, inputs[input]);
  for (size_t k = 0; k < results.size(); ++k) lend(*f.value[results[k]], inputs[in_place[k]]);
  f.claim(arena_bytes);
  execute(f, nullptr, false);
  return true;
}

}  // namespace gt
