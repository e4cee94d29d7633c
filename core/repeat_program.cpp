// Runs a program repeatedly. All runs use one frame, values stay where they are, and an iteration allocates
// nothing, unless something outside refers to one of its results.
#include <cstring>

#include "frame.h"

namespace gt {

// Values of up to this many bytes are copied from result to input: prepared pointers stay valid.
constexpr int64_t kCopiedBytes = 128;

static bool is_small(const Tensor& x) { return !is_held(x.dtype) && x.nbytes() <= kCopiedBytes; }

static void own_memory(Tensor& x) {
  if (!x.is_sole()) x.allocate();
}

Program::Repeat::Repeat(Program& program, std::vector<Tensor> inputs, const std::vector<int32_t>& next)
    : program_(program), frame_(program.take_frame()), inputs_(std::move(inputs)) {
  Frame& f = *frame_;
  f.claim(program.arena_bytes);
  std::vector<int32_t> slot_of(program.values.size(), -1);
  for (const Step& step : program.steps)
    for (uint32_t v : step.out) {
      if (program.values[v].place != Place::Fresh) continue;
      if (f.is_loose[v]) {
        loose_.push_back(f.value[v]);
        continue;
      }
      slot_of[v] = int32_t(slots_.size());
      slots_.push_back({f.value[v], Tensor(program.values[v].form.spec())});
    }
  for (size_t k = 0; k < next.size(); ++k) {
    if (next[k] < 0) continue;
    const uint32_t v = program.results[k];
    const Value& origin = program.values[program.origin(v)];
    if (origin.place == Place::Input && origin.at == next[k]) continue;  // it is that input already
    const size_t input = size_t(next[k]);
    const Tensor& form = program.values[v].form;
    int32_t& slot = slot_of[v];
    next_.push_back({k, input, slot, is_small(form), Tensor(form.spec())});
    if (slot >= 0 && !program.in_place.empty() && program.in_place[k] == next[k])
      slots_[size_t(slot)].over = next[k];
    slot = -1;  // a result that is an input twice is swapped once
    if (is_small(form)) {
      Tensor own = empty(form.dtype, form.shape);
      std::memcpy(own.data, inputs_[input].data, size_t(own.nbytes()));
      inputs_[input] = std::move(own);
    }
  }
}

Program::Repeat::~Repeat() {
  Frame& f = *frame_;
  for (auto& [t, input] : f.given) lend(*t, nullptr);
  for (Slot& slot : slots_) lend(*slot.at, nullptr);
  for (Tensor* t : f.loose) t->forget();
  program_.give_back(std::move(frame_));
}

void Program::Repeat::run() {
  Frame& f = *frame_;
  if (steady_) {
    if (f.line[0] < program_.steps.size()) return program_.execute(f, nullptr, true, false);
    for (const Prepared& call : f.calls) call();
    return;
  }
  for (Slot& slot : slots_) {
    slot.taken = slot.over >= 0 && inputs_[size_t(slot.over)].is_sole();
    if (!slot.taken) own_memory(slot.own);
    const Tensor& memory = slot.taken ? inputs_[size_t(slot.over)] : slot.own;
    if (slot.at->data == memory.data && slot.at->buffer == memory.buffer) continue;
    lend(*slot.at, &memory);
    moved_ = true;
  }
  for (Tensor* t : loose_)
    if (!t->buffer && !is_held(t->dtype)) t->allocate();
  if (moved_)
    for (auto& [t, input] : f.given) lend(*t, &inputs_[input]);
  const bool moved = moved_;
  moved_ = false;
  // If an iteration fails, nobody reads what it has overwritten.
  program_.execute(f, nullptr, true, moved);
}

const char* Program::Repeat::elements(size_t k) const { return frame_->value[program_.results[k]]->data; }

Tensor Program::Repeat::result(size_t k) {
  shared_ = true;
  steady_ = false;
  const Tensor& t = *frame_->value[program_.results[k]];
  Tensor out(t.spec());
  if (Buffer* buffer = frame_->value[program_.origin(program_.results[k])]->buffer) {
    ref(buffer);
    out.buffer = buffer;
    out.data = t.data;
  } else {
    out.allocate();
    std::memcpy(out.data, t.data, size_t(t.nbytes()));
  }
  return out;
}

void Program::Repeat::advance() {
  if (steady_) {
    for (const Copy& c : copies_) std::memcpy(c.to, c.from, c.bytes);
    return;
  }
  for (Next& n : next_) {
    if (n.slot >= 0) continue;
    if (n.small) {
      own_memory(n.own);
      std::memcpy(n.own.data, elements(n.result), size_t(n.own.nbytes()));
    } else {
      n.own = result(n.result);
    }
  }
  for (Next& n : next_) {
    Slot* slot = n.slot >= 0 ? &slots_[size_t(n.slot)] : nullptr;
    if (slot && slot->taken) continue;
    Tensor &in = inputs_[n.input], &out = slot ? slot->own : n.own;
    if (n.small && in.is_sole()) {
      std::memcpy(in.data, out.data, size_t(in.nbytes()));
      continue;
    }
    std::swap(in.buffer, out.buffer);
    std::swap(in.data, out.data);
    moved_ = true;
    if (!slot && !n.small) out.forget();
  }
  Frame& f = *frame_;
  for (Tensor* t : f.loose) t->forget();
  if (!f.loose.empty())
    f.place();
  else if (!moved_ && !shared_)
    rest();
  shared_ = false;
}

// Records what `advance` has just done.
void Program::Repeat::rest() {
  steady_ = !program_.steps.empty();
  copies_.clear();
  for (Next& n : next_)
    if (n.slot < 0) copies_.push_back({n.own.data, elements(n.result), size_t(n.own.nbytes())});
  for (Next& n : next_) {
    if (n.slot >= 0 && slots_[size_t(n.slot)].taken) continue;
    const Tensor &in = inputs_[n.input], &out = n.slot >= 0 ? slots_[size_t(n.slot)].own : n.own;
    copies_.push_back({in.data, out.data, size_t(in.nbytes())});
  }
}

void Program::Repeat::give(size_t input, const Tensor& x) {
  inputs_[input] = x;
  moved_ = true;
  steady_ = false;
}

}  // namespace gt
