// What the Python tests of the ops cannot see: results that must not depend on the number of
// threads, the random stream against TensorFlow's, shared buffers, shapes without values.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "blas.h"
#include "op.h"
#include "ops/philox.h"
#include "threads.h"

using namespace gt;

static int failures = 0;
#define CHECK(...)                                                                          \
  do {                                                                                      \
    if (!(__VA_ARGS__)) ++failures, std::printf("%d: wrong: %s\n", __LINE__, #__VA_ARGS__); \
  } while (0)

using List = std::vector<int64_t>;
static Attr attr(int64_t i) {
  Attr a;
  a.kind = Attr::Kind::Int, a.i = i;
  return a;
}
static Attr attr(const List& v) {
  Attr a;
  a.kind = Attr::Kind::Ints, a.ints = v;
  return a;
}

static Outs call(const char* name, const std::vector<Tensor>& operands, const std::vector<Attr>& values) {
  const Impl* impl = find_impl(name);
  if (!impl) fail(std::string("no op ") + name);
  std::vector<const Tensor*> in;
  std::vector<Tensor> specs;
  for (const Tensor& x : operands) in.push_back(&x), specs.emplace_back(x.spec());
  Attrs attrs{values};
  Call c{in.data(), int(in.size()), attrs};
  Outs outs, again;
  impl->infer(c, outs);
  // The same question about operands without values has the same answer.
  std::vector<const Tensor*> without;
  for (const Tensor& x : specs) without.push_back(&x);
  impl->infer(Call{without.data(), int(without.size()), attrs}, again);
  CHECK(outs.size() == again.size());
  for (size_t i = 0; i < outs.size(); ++i)
    CHECK(outs[i].dtype == again[i].dtype && outs[i].shape == again[i].shape);
  if (impl->allocates)
    for (Tensor& o : outs) o.allocate();
  impl->run(c, outs);
  return outs;
}

static Tensor floats(const List& dims, uint64_t seed) {
  Tensor x = empty(Dtype::F32, Shape(dims.data(), int64_t(dims.size())));
  for (int64_t i = 0; i < x.numel; ++i) x.as<float>()[i] = to_float(Philox{seed, 0, uint64_t(i)}()[0]) - 0.5f;
  return x;
}
static Tensor indices(int64_t n, int64_t limit) {
  Tensor x = empty(Dtype::I64, Shape(&n, 1));
  for (int64_t i = 0; i < n; ++i)
    x.as<int64_t>()[i] = int64_t(Philox{9, 9, uint64_t(i)}()[0] % uint64_t(limit));
  return x;
}
static bool equal(const Outs& x, const Outs& y) {
  for (size_t i = 0; i < x.size(); ++i)
    if (!(x[i].shape == y[i].shape) || std::memcmp(x[i].data, y[i].data, size_t(x[i].nbytes()))) return false;
  return x.size() == y.size();
}

static void same_on_any_number_of_threads() {
  Tensor a = floats({700, 900}, 1), b = floats({900, 300}, 2), tall = floats({60000, 20}, 3),
         flat = floats({1500000}, 4);
  Tensor rows = indices(60000, 100);
  struct Case {
    const char* name;
    std::vector<Tensor> operands;
    std::vector<Attr> attrs;
  };
  const std::vector<Case> cases = {
      {"matmul", {a, b}, {attr(0), attr(0)}},
      {"matmul", {tall, tall}, {attr(1), attr(0)}},
      {"sum", {flat}, {attr(List{0}), attr(0)}},
      {"sum", {a}, {attr(List{0}), attr(0)}},
      {"sum", {a}, {attr(List{1}), attr(0)}},
      {"mean", {floats({40, 50, 60, 7}, 5)}, {attr(List{0, 2}), attr(1)}},
      {"sum_to", {tall}, {attr(List{20})}},
      {"logsumexp", {a}, {attr(List{0, 1}), attr(0)}},
      {"softmax", {a}, {}},
      {"scatter_rows_add", {tall, rows}, {attr(List{100, 20})}},
      {"cumsum", {a}, {attr(0), attr(0), attr(0)}},
      {"transpose", {a}, {attr(List{1, 0})}},
      {"random_normal", {}, {attr(List{100001}), attr(int64_t(Dtype::F32)), attr(1), attr(2), attr(0)}},
  };
  for (const Case& k : cases) {
    set_num_threads(1);
    Outs one = call(k.name, k.operands, k.attrs);
    for (int n : {2, 5}) {
      set_num_threads(n);
      if (!equal(one, call(k.name, k.operands, k.attrs)))
        ++failures, std::printf("%s depends on the number of threads\n", k.name);
    }
  }
  set_num_threads(0);
}

// Values of TensorFlow 2.21: set_seed(42), then normal([2]) twice; uniform(seed=1) after
// set_seed(42); stateless_normal([2], [1, 2]); Generator.from_seed(1).normal([2]).
static void tensorflows_random_numbers() {
  auto check = [](const Outs& out, float x, float y) {
    CHECK(out[0].as<float>()[0] == x && out[0].as<float>()[1] == y);
  };
  const std::vector<Attr> none = {attr(List{2}), attr(int64_t(Dtype::F32)), attr(0), attr(0), attr(0)};
  auto seeded = [](int64_t seed, int64_t seed2, int64_t offset) {
    return std::vector<Attr>{attr(List{2}), attr(int64_t(Dtype::F32)), attr(seed), attr(seed2), attr(offset)};
  };
  // 478163327 and 107420369: the first draws of Python's random.Random(42).randint(0, 2**31 - 1).
  check(call("random_normal", {}, seeded(42, 478163327, 0)), 0.3274685f, -0.8426258f);
  check(call("random_normal", {}, seeded(42, 107420369, 0)), 0.08422458f, -0.86090374f);
  check(call("random_uniform", {}, seeded(42, 1, 0)), 0.15012848f, 0.63992536f);
  Tensor seed = empty(Dtype::I32, Shape(List{2}.data(), 1));
  seed.as<int32_t>()[0] = 1, seed.as<int32_t>()[1] = 2;
  Tensor state = call("stateless_state", {seed}, {})[0];
  check(call("random_normal", {state}, none), 0.5441101f, 0.20738031f);
  check(call("random_uniform", {state}, none), 0.8440604f, 0.19204533f);
  check(call("random_normal", {}, seeded(0, 0, 1)), 0.43842274f, -0.53439844f);
}

static void buffers_are_shared() {
  Tensor x = floats({6, 4}, 1);
  CHECK(call("reshape", {x}, {attr(List{24})})[0].data == x.data);
  CHECK(call("transpose", {call("reshape", {x}, {attr(List{6, 1, 4})})[0]}, {attr(List{1, 0, 2})})[0].data ==
        x.data);
  CHECK(
      call("index", {x}, {attr(List{2, 0}), attr(List{1, 1}), attr(List{3, 4}), attr(List{3, 4})})[0].data ==
      x.data + 2 * 4 * 4);
  Outs parts = call("split", {x}, {attr(0), attr(List{1, 5})});
  CHECK(parts[0].data == x.data && parts[1].data == x.data + 16);
  CHECK(call("sum_to", {x}, {attr(List{6, 4})})[0].data == x.data);
}

static void errors_say_why() {
  auto text = [](const char* name, const std::vector<Tensor>& in, const std::vector<Attr>& attrs) {
    try {
      call(name, in, attrs);
    } catch (const Error& e) {
      return e.text;
    }
    return std::string();
  };
  Tensor x = floats({2, 3}, 1), five = empty(Dtype::I64, Shape(List{1}.data(), 1));
  five.as<int64_t>()[0] = 5;
  CHECK(text("gather", {x, five}, {attr(0), attr(0)}) == "indices[0] = 5 is not in [0, 2)");
  CHECK(text("matmul", {x, x}, {attr(0), attr(0)}) == "Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3]");
  CHECK(text("reshape", {x}, {attr(List{5})}) ==
        "Input to reshape is a tensor with 6 values, but the requested shape has 5");
  CHECK(text("index", {x}, {attr(List{5, 0}), attr(List{1, 1}), attr(List{1, 3}), attr(List{3})}) ==
        "slice index 5 of dimension 0 out of bounds.");
}

int main(int argc, char** argv) {
  if (argc > 1) set_blas_path(argv[1]);
  try {
    same_on_any_number_of_threads();
    tensorflows_random_numbers();
    buffers_are_shared();
    errors_say_why();
  } catch (const Error& e) {
    std::printf("error: %s\n", e.text.c_str());
    return 1;
  }
  std::printf(failures ? "%d failures\n" : "ops ok\n", failures);
  return failures != 0;
}
