// Prefix beam search: the most likely label sequences under connectionist temporal classification.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <vector>

#include "indices.h"

namespace gt {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNever ? a : a + std::log1p(std::exp(b - a));
}

// A sequence of labels: that of its parent and one more. Probabilities are of paths that end in a blank, and
// of those that end in its label.
struct Prefix {
  int64_t parent, label;
  double blank = kNever, own = kNever;            // up to this step
  double next_blank = kNever, next_own = kNever;  // with the next one
  bool held = false;                              // among the sequences kept
  double total() const { return log_add(blank, own); }
  double next_total() const { return log_add(next_blank, next_own); }
};

struct Search {
  int64_t classes, width;
  std::vector<Prefix> all{{-1, -1}};
  std::vector<int64_t> kept{0};
  std::unordered_map<uint64_t, int64_t> children;

  Search(int64_t c, int64_t w) : classes(c), width(w) {
    all[0].blank = 0;
    all[0].held = true;
  }
  int64_t child(int64_t parent, int64_t label) {
    auto [at, made] =
        children.try_emplace(uint64_t(parent) * uint64_t(classes) + uint64_t(label), int64_t(all.size()));
    if (made) all.push_back({parent, label});
    return at->second;
  }
  // What a step that emits `label` adds to a sequence that ends with it: after the same label only from a
  // blank.
  double from(const Prefix& p, int64_t label) const { return p.label == label ? p.blank : p.total(); }

  void step(const double* log_p) {
    const int64_t blank = classes - 1;
    for (int64_t i : kept) {
      Prefix& p = all[size_t(i)];
      p.next_blank = p.total() + log_p[blank];
      p.next_own = kNever;
      if (p.parent < 0) continue;
      p.next_own = p.own + log_p[p.label];
      const Prefix& parent = all[size_t(p.parent)];
      if (parent.held) p.next_own = log_add(p.next_own, from(parent, p.label) + log_p[p.label]);
    }
    std::vector<int64_t> open = kept;
    const size_t before = kept.size();
    for (size_t k = 0; k < before; ++k)
      for (int64_t c = 0; c < blank; ++c) {
        const int64_t j = child(kept[k], c);
        if (all[size_t(j)].held) continue;
        const double value = from(all[size_t(kept[k])], c) + log_p[c];
        if (value == kNever) continue;
        all[size_t(j)].next_own = value, all[size_t(j)].next_blank = kNever;
        open.push_back(j);
      }
    // Of equally likely ones the older, as in TensorFlow.
    auto better = [&](int64_t a, int64_t b) {
      const double x = all[size_t(a)].next_total(), y = all[size_t(b)].next_total();
      return x != y ? x > y : a < b;
    };
    if (int64_t(open.size()) > width) {
      std::nth_element(open.begin(), open.begin() + width, open.end(), better);
      open.resize(size_t(width));
    }
    std::sort(open.begin(), open.end(), better);
    for (int64_t i : kept) all[size_t(i)].held = false, all[size_t(i)].blank = all[size_t(i)].own = kNever;
    for (int64_t i : open) {
      Prefix& p = all[size_t(i)];
      p.held = true, p.blank = p.next_blank, p.own = p.next_own;
    }
    kept = open;
  }
};

// ctc_beam_search(inputs, sequence_length; beam_width, top_paths) -> labels [paths, batch, time] (-1 past
// the end), log_probability [batch, paths]
void infer_search(const Call& c, Outs& outs) {
  want_dtype(c[0], set_of(Dtype::F32) | set_of(Dtype::F64), "ctc_beam_search_decoder");
  if (c[0].shape.rank != 3)
    fail("inputs must have the shape [time, batch, classes], got " + c[0].shape.str());
  want_indices(c[1], "sequence_length");
  const int64_t time = c[0].shape[0], batch = c[0].shape[1], paths = c.integer(1);
  if (c[1].shape.rank != 1 || c[1].numel != batch)
    fail("sequence_length must be a vector as long as the batch of " + std::to_string(batch) + ", got " +
         c[1].shape.str());
  if (c.integer(0) < 1 || paths < 1 || paths > c.integer(0))
    fail("requested more paths than the beam width, or none: " + std::to_string(paths) + " and " +
         std::to_string(c.integer(0)));
  const int64_t labels[3] = {paths, batch, time}, scores[2] = {batch, paths};
  outs.emplace_back(Spec{Dtype::I64, Shape(labels, 3)});
  outs.emplace_back(Spec{c[0].dtype, Shape(scores, 2)});
}
void run_search(const Call& c, Outs& outs) {
  const int64_t time = c[0].shape[0], batch = c[0].shape[1], classes = c[0].shape[2], width = c.integer(0),
                paths = c.integer(1);
  std::vector<int64_t> lengths(static_cast<size_t>(batch));
  for (int64_t b = 0; b < batch; ++b) {
    visit_indices(c[1], [&](auto* p) { lengths[size_t(b)] = p[b]; });
    if (lengths[size_t(b)] < 0 || lengths[size_t(b)] > time)
      fail("sequence_length[" + std::to_string(b) + "] = " + std::to_string(lengths[size_t(b)]) +
           " is not in [0, " + std::to_string(time) + "]");
  }
  int64_t* labels = outs[0].as<int64_t>();
  std::fill_n(labels, outs[0].numel, -1);
  auto run = [&](auto t) {
    using T = decltype(t);
    each_chunk(batch, 1, [&](int64_t begin, int64_t end) {
      std::vector<double> row(static_cast<size_t>(classes));
      for (int64_t b = begin; b < end; ++b) {
        Search search(classes, width);
        for (int64_t s = 0; s < lengths[size_t(b)]; ++s) {
          const T* x = c[0].as<T>() + (s * batch + b) * classes;
          double most = kNever, sum = 0;
          for (int64_t k = 0; k < classes; ++k) most = std::max(most, double(x[k]));
          for (int64_t k = 0; k < classes; ++k) sum += std::exp(double(x[k]) - most);
          for (int64_t k = 0; k < classes; ++k) row[size_t(k)] = double(x[k]) - most - std::log(sum);
          search.step(row.data());
        }
        std::sort(search.kept.begin(), search.kept.end(), [&](int64_t i, int64_t j) {
          return search.all[size_t(i)].total() > search.all[size_t(j)].total();
        });
        for (int64_t p = 0; p < paths; ++p) {
          const bool there = p < int64_t(search.kept.size());
          outs[1].as<T>()[b * paths + p] =
              there ? T(search.all[size_t(search.kept[size_t(p)])].total()) : T(kNever);
          std::vector<int64_t> backwards;
          for (int64_t i = there ? search.kept[size_t(p)] : 0; i > 0; i = search.all[size_t(i)].parent)
            backwards.push_back(search.all[size_t(i)].label);
          std::copy(backwards.rbegin(), backwards.rend(), labels + (p * batch + b) * time);
        }
      }
    });
  };
  c[0].dtype == Dtype::F32 ? run(0.0f) : run(0.0);
}

GT_OP("ctc_beam_search", {infer_search, run_search, true, 1000});

}  // namespace
}  // namespace gt
