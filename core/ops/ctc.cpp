// The loss of connectionist temporal classification with its derivative, and the derivative of that.
#include "../kernels/ctc.h"

#include <cmath>
#include <limits>
#include <vector>

#include "indices.h"

namespace gt {
namespace {

// ctc(logits, labels, label_length, logit_length; blank): logits [time, batch, classes], labels [batch,
// most].
int64_t batch_of(const Call& c) { return c[0].shape[1]; }

void want_ctc(const Call& c) {
  want_dtype(c[0], set_of(Dtype::F32) | set_of(Dtype::F64), "ctc_loss");
  if (c[0].shape.rank != 3)
    fail("logits must have the shape [time, batch, classes], got " + c[0].shape.str());
  for (int k = 1; k < 4; ++k)
    want_indices(c[k], k == 1 ? "labels" : k == 2 ? "label_length" : "logit_length");
  if (c[1].shape.rank != 2 || c[1].shape[0] != batch_of(c))
    fail("labels must have the shape [batch, length] with a batch of " + std::to_string(batch_of(c)) +
         ", got " + c[1].shape.str());
  for (int k = 2; k < 4; ++k)
    if (c[k].shape.rank != 1 || c[k].numel != batch_of(c))
      fail(std::string(k == 2 ? "label_length" : "logit_length") +
           " must be a vector as long as the batch of " + std::to_string(batch_of(c)) + ", got " +
           c[k].shape.str());
  if (c.integer(0) < 0 || c.integer(0) >= c[0].shape[2])
    fail("blank_index must be in [0, " + std::to_string(c[0].shape[2]) + "), got " +
         std::to_string(c.integer(0)));
}

// Labels and lengths of one example, checked.
struct Example {
  std::vector<int32_t> labels;
  int64_t steps;
};
std::vector<Example> examples(const Call& c) {
  std::vector<Example> out(static_cast<size_t>(batch_of(c)));
  const int64_t most = c[1].shape[1], time = c[0].shape[0], classes = c[0].shape[2];
  for (int64_t b = 0; b < batch_of(c); ++b) {
    int64_t length = 0, steps = 0;
    visit_indices(c[2], [&](auto* p) { length = p[b]; });
    visit_indices(c[3], [&](auto* p) { steps = p[b]; });
    if (length < 0 || length > most)
      fail("label_length[" + std::to_string(b) + "] = " + std::to_string(length) + " is not in [0, " +
           std::to_string(most) + "]");
    if (steps < 0 || steps > time)
      fail("logit_length[" + std::to_string(b) + "] = " + std::to_string(steps) + " is not in [0, " +
           std::to_string(time) + "]");
    Example& e = out[size_t(b)];
    e.steps = steps;
    visit_indices(c[1], [&](auto* p) {
      for (int64_t i = 0; i < length; ++i) {
        const int64_t label = p[b * most + i];
        if (label < 0 || label >= classes)
          fail("labels[" + std::to_string(b) + "," + std::to_string(i) + "] = " + std::to_string(label) +
               " is not in [0, " + std::to_string(classes) + ")");
        e.labels.push_back(int32_t(label));
      }
    });
  }
  return out;
}
// Elements past the end of a sequence have no influence.
template <class T> void clear_rest(T* x, const Call& c, int64_t b, int64_t steps) {
  const int64_t classes = c[0].shape[2], stride = batch_of(c) * classes;
  for (int64_t t = steps; t < c[0].shape[0]; ++t)
    for (int64_t k = 0; k < classes; ++k) x[t * stride + b * classes + k] = 0;
}

// ---- ctc_loss(...) -> loss[batch], back [time, batch, classes] ----
void infer_loss(const Call& c, Outs& outs) {
  want_ctc(c);
  const int64_t batch = batch_of(c);
  outs.emplace_back(Spec{c[0].dtype, Shape(&batch, 1)});
  outs.emplace_back(c[0].spec());
}
void run_loss(const Call& c, Outs& outs) {
  const std::vector<Example> all = examples(c);
  const int64_t classes = c[0].shape[2], stride = batch_of(c) * classes;
  const CtcLoops& loops = kernels().ctc[c[0].dtype == Dtype::F64];
  auto run = [&](auto t) {
    using T = decltype(t);
    each_chunk(batch_of(c), 1, [&](int64_t begin, int64_t end) {
      std::vector<T> room;
      for (int64_t b = begin; b < end; ++b) {
        const Example& e = all[size_t(b)];
        const int64_t length = int64_t(e.labels.size());
        room.resize(size_t(ctc_room(e.steps, length)));
        T* back = outs[1].as<T>() + b * classes;
        outs[0].as<T>()[b] = T(loops.loss({c[0].as<T>() + b * classes, back, e.steps, classes, stride,
                                           e.labels.data(), length, int32_t(c.integer(0)), room.data()}));
        clear_rest(outs[1].as<T>(), c, b, e.steps);
      }
    });
  };
  if (c[0].numel == 0 && batch_of(c) == 0) return;
  c[0].dtype == Dtype::F32 ? run(0.0f) : run(0.0);
}

// ---- ctc_loss_grad(logits, direction, labels, label_length, logit_length; blank): the derivative of `back`
// in a direction, by running the algorithm on numbers that carry their derivative. ----
struct Dual {
  double x, d = 0;
};
constexpr double kNever = -1e300;
Dual add(Dual a, Dual b) { return {a.x + b.x, a.d + b.d}; }
Dual sub(Dual a, Dual b) { return {a.x - b.x, a.d - b.d}; }
Dual log_sum(const Dual* terms, int64_t n) {
  double most = kNever, sum = 0, slope = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, terms[i].x);
  if (most <= kNever / 2) return {kNever};
  for (int64_t i = 0; i < n; ++i) {
    const double e = std::exp(terms[i].x - most);
    sum += e, slope += e * terms[i].d;
  }
  return {most + std::log(sum), slope / sum};
}

template <class T>
void sequence_grad(const T* logits, const T* direction, T* out, const Example& e, int64_t classes,
                   int64_t stride, int32_t blank) {
  const int64_t n = 2 * int64_t(e.labels.size()) + 1, steps = e.steps;
  auto label = [&](int64_t s) { return s % 2 ? e.labels[size_t(s / 2)] : blank; };
  auto jumps = [&](int64_t s) { return s % 2 && s >= 2 && label(s) != label(s - 2); };
  std::vector<Dual> y(static_cast<size_t>(steps * classes)),
      alpha(static_cast<size_t>(steps * n), Dual{kNever}), beta = alpha,
                                                           row(static_cast<size_t>(std::max(classes, n)));
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t k = 0; k < classes; ++k)
      row[size_t(k)] = {double(logits[t * stride + k]), double(direction[t * stride + k])};
    const Dual norm = log_sum(row.data(), classes);
    for (int64_t k = 0; k < classes; ++k) y[size_t(t * classes + k)] = sub(row[size_t(k)], norm);
  }
  auto emit = [&](int64_t t, int64_t s) { return y[size_t(t * classes + label(s))]; };
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t s = 0; s < n; ++s) {
      Dual from[3] = {{kNever}, {kNever}, {kNever}};
      if (t == 0) {
        if (s < 2) from[0] = {0};
      } else {
        const Dual* before = &alpha[size_t((t - 1) * n)];
        from[0] = before[s];
        if (s >= 1) from[1] = before[s - 1];
        if (jumps(s)) from[2] = before[s - 2];
      }
      const Dual sum = log_sum(from, 3);
      alpha[size_t(t * n + s)] = sum.x <= kNever / 2 ? Dual{kNever} : add(sum, emit(t, s));
    }
  for (int64_t t = steps - 1; t >= 0; --t)
    for (int64_t s = 0; s < n; ++s) {
      Dual to[3] = {{kNever}, {kNever}, {kNever}};
      auto ahead = [&](int64_t k) {
        const Dual b = beta[size_t((t + 1) * n + k)];
        return b.x <= kNever / 2 ? Dual{kNever} : add(b, emit(t + 1, k));
      };
      if (t == steps - 1) {
        if (s >= n - 2) to[0] = {0};
      } else {
        to[0] = ahead(s);
        if (s + 1 < n) to[1] = ahead(s + 1);
        if (s + 2 < n && jumps(s + 2)) to[2] = ahead(s + 2);
      }
      beta[size_t(t * n + s)] = log_sum(to, 3);
    }
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t s = 0; s < n; ++s) {
      const Dual a = alpha[size_t(t * n + s)], b = beta[size_t(t * n + s)];
      row[size_t(s)] = a.x <= kNever / 2 || b.x <= kNever / 2 ? Dual{kNever} : add(a, b);
    }
    const Dual total = log_sum(row.data(), n);
    T* o = out + t * stride;
    const bool possible = total.x > kNever / 2;
    for (int64_t k = 0; k < classes; ++k)
      o[k] = possible ? T(std::exp(y[size_t(t * classes + k)].x) * y[size_t(t * classes + k)].d) : T(0);
    if (!possible) continue;
    for (int64_t s = 0; s < n; ++s) {
      if (row[size_t(s)].x <= kNever / 2) continue;
      const Dual p = sub(row[size_t(s)], total);
      o[label(s)] -= T(std::exp(p.x) * p.d);
    }
  }
}

// The same order of operands as ctc_loss, with the direction at the end.
void infer_grad(const Call& c, Outs& outs) {
  want_ctc(c);
  want_same_dtype(c[0], c[4]);
  if (!(c[0].shape == c[4].shape))
    fail("logits and direction must have the same shape, got " + c[0].shape.str() + " and " +
         c[4].shape.str());
  outs.emplace_back(c[0].spec());
}
void run_grad(const Call& c, Outs& outs) {
  const std::vector<Example> all = examples(c);
  const int64_t classes = c[0].shape[2], stride = batch_of(c) * classes;
  auto run = [&](auto t) {
    using T = decltype(t);
    each_chunk(batch_of(c), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        sequence_grad(c[0].as<T>() + b * classes, c[4].as<T>() + b * classes, outs[0].as<T>() + b * classes,
                      all[size_t(b)], classes, stride, int32_t(c.integer(0)));
        clear_rest(outs[0].as<T>(), c, b, all[size_t(b)].steps);
      }
    });
  };
  c[0].dtype == Dtype::F32 ? run(0.0f) : run(0.0);
}

GT_OP("ctc_loss", {infer_loss, run_loss, true, 20});
GT_OP("ctc_loss_grad", {infer_grad, run_grad, true, 100});

}  // namespace
}  // namespace gt
