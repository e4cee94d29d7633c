// A program: a lowered graph. A flat list of steps over values of known shapes, with one block of memory for
// all intermediate values. Runs without Python.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "bands.h"
#include "cluster.h"
#include "op.h"

namespace gt {

// Where the elements of a value are.
enum class Place : uint8_t {
  Input,     // given with each run
  Constant,  // part of the program
  Arena,     // in the program's own memory
  Fresh,     // in a buffer of its own, made for each run: a result
  Alias,     // shares another value's elements
  Joined,    // in the program's own memory, made of values that are in it
};

struct Value {
  Tensor form;  // type and shape; the elements too for a constant
  Place place;
  int64_t at = 0;  // Input: which; Arena, Joined: offset in bytes; Alias: the other value, which is no alias
};

struct Step {
  enum class Kind : uint8_t { Op, Elementwise, Cluster, Call } kind;
  const Impl* impl = nullptr;
  const Elementwise* kernel = nullptr;
  const Attrs* attrs = nullptr;  // owned by the program's maker
  int cluster = -1;
  int call = -1;  // Call: which of the program's callbacks
  std::vector<uint32_t> in, out;
  const char* name = "";
  // Objects of the Python layer, for errors: the op, and the line of the user's program, if known.
  const void* op = nullptr;
  std::shared_ptr<const void> where;
  // Whether results may be where operands are, or in memory that the step brings.
  bool may_share() const { return kind == Kind::Call || (kind == Kind::Op && !impl->allocates); }
};

// Throws if the user has interrupted the process. Set by the Python layer; called between chunks of long
// work.
extern void (*check_interrupt)();

// Calls `check_interrupt` about ten times a second. While steps are fast, the clock is read once in `most`
// steps.
class Patience {
 public:
  explicit Patience(uint32_t most = 1) : most_(most) {}
  void step() {
    if (--left_ == 0) look();
  }

 private:
  using Clock = std::chrono::steady_clock;
  void look();
  const uint32_t most_;
  uint32_t left_ = 1, between_ = 1;
  Clock::time_point looked_ = Clock::now(), asked_ = looked_;
};

struct Frame;

class Program {
 public:
  // One run. It holds the inputs from start to end, so their owners may change meanwhile. It is created, and
  // its results are handed over, under the interpreter's lock; `compute` runs without it.
  class Run {
   public:
    // `inputs` have the shapes and types the program was compiled for (see `check_inputs`). With `take`,
    // results overwrite inputs as `in_place` says, where nothing else refers to those.
    Run(Program& program, const Tensor* const* inputs, bool take = false);
    ~Run();
    Run(const Run&) = delete;
    bool takes(size_t result) const;  // whether the result overwrites the input that `in_place` names
    // With `times` (one per step) the seconds each step took are added there.
    void compute(std::vector<Tensor>& outs, double* times = nullptr);

   private:
    Program& program_;
    std::unique_ptr<Frame> frame_;
    bool interruptible_ = true;  // false if some variables could be left overwritten and others not
  };

  // Runs of one program, one after the other: results of a run are inputs of the next, as in a loop. Never
  // needs the interpreter's lock.
  class Repeat {
   public:
    // The inputs of the first run, and for each result the input it is in the next one, or -1.
    Repeat(Program& program, std::vector<Tensor> inputs, const std::vector<int32_t>& next);
    ~Repeat();
    Repeat(const Repeat&) = delete;
    void run();
    Tensor result(size_t k);                   // of the last run; before `advance`
    const char* elements(size_t k) const;      // of the same
    void advance();                            // results become inputs
    void give(size_t input, const Tensor& x);  // for the next run
    const Tensor& input(size_t i) const { return inputs_[i]; }

   private:
    // A result of a step in memory of its own. Kept from run to run.
    struct Slot {
      Tensor* at;  // in the frame
      Tensor own;
      int32_t over = -1;   // the input it may overwrite
      bool taken = false;  // it is, in this run
    };
    struct Copy {
      char* to;
      const char* from;
      size_t bytes;
    };
    struct Next {
      size_t result, input;
      int32_t slot;  // the one the result fills; -1: none
      bool small;    // copied; others swap places
      Tensor own;    // without a slot
    };
    Program& program_;
    std::unique_ptr<Frame> frame_;
    std::vector<Tensor> inputs_;
    std::vector<Slot> slots_;
    std::vector<Next> next_;
    std::vector<Tensor*> loose_;  // values that steps may allocate themselves; they get memory before a run
    bool moved_ = true;           // something has another address than in the last run
    bool shared_ = false;         // a result of the last run has been handed out
    // Nothing outside refers to a value and nothing moves: only these copies are needed between two runs.
    bool steady_ = false;
    std::vector<Copy> copies_;
    void rest();
  };

  // Code outside the program, such as a Python function. Fills `outs`.
  using Callback = void (*)(void* context, const Step&, const Call&, Outs& outs);

  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<Cluster> clusters;
  std::vector<uint32_t> results;
  std::vector<int32_t> in_place;  // for each result, or none: the input whose memory it may take, -1 for none
  std::vector<uint32_t>
      alike;  // for each step: how many from it on are clusters that run together (0 or 1: none)
  std::vector<Band> bands;  // in the order of their steps
  int64_t arena_bytes = 0;
  uint32_t n_inputs = 0;
  Callback callback = nullptr;
  void* context = nullptr;

  Program();
  ~Program();
  // The value that owns a value's elements: itself, unless it is an alias.
  size_t origin(size_t v) const { return values[v].place == Place::Alias ? size_t(values[v].at) : v; }
  void check_inputs(
      const Tensor* const* inputs) const;  // throws if they are not what the program was compiled for
  // Runs a short program whose results all overwrite inputs. Returns false, with nothing done, if it is not
  // one, or if something else refers to one of those inputs. Nothing may read an input meanwhile: the caller
  // holds the interpreter's lock.
  bool run_over(const Tensor* const* inputs);
  void finish();  // call once, when everything above is set; throws if it does not fit together
  bool calls() const { return calls_; }  // whether a step is code outside the program
  void run_step(const Step& step, const Tensor* const* in, Outs& outs) const;  // an op or element-wise op

 private:
  bool over_ = false;  // whether `run_over` is possible
  bool long_ = false;  // whether a run may take long enough to be interrupted
  bool calls_ = false;
  std::vector<const Band*> band_at_;  // for each step: the band that begins with it
  void check() const;
  std::unique_ptr<Frame> take_frame();
  void give_back(std::unique_ptr<Frame> f) noexcept;
  // `moved`: some address differs from the last use of the frame.
  void execute(Frame& f, double* times, bool interruptible, bool moved = true);
  // Frames that no run uses. A thread looks into its own place first, so that threads which run one program
  // do not wait for each other.
  struct alignas(64) Idle {
    std::atomic<Frame*> frame{nullptr};
  };
  Idle idle_[4];
  std::unique_ptr<Frame> more_idle_;  // under a lock
  std::atomic<bool> has_more_{false};
};

}  // namespace gt
