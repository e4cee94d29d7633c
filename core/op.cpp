// The registry of native operations, and the shape rule most of them share.
#include "op.h"

#include <map>

namespace gt {

void no_elements(Dtype t) {
  fail(Code::Argument, std::string("values of type ") + dtype_name(t) +
                           " are no numbers: the operation is not "
                           "defined for them");
}

static std::map<std::string, Impl, std::less<>>& impls() {
  static std::map<std::string, Impl, std::less<>> table;  // created on first use, by a static registrar
  return table;
}

const Impl* find_impl(std::string_view name) {
  auto it = impls().find(name);
  return it == impls().end() ? nullptr : &it->second;
}

void add_impl(const char* name, const Impl& impl) { impls().emplace(name, impl); }

std::vector<std::string> impl_names() {
  std::vector<std::string> names;
  for (auto& [name, _] : impls()) names.push_back(name);
  return names;
}

Shape broadcast(const Shape& x, const Shape& y) {
  Shape out;
  out.rank = std::max(x.rank, y.rank);
  for (int i = 0; i < out.rank; ++i) {
    int64_t a = i < out.rank - x.rank ? 1 : x[i - (out.rank - x.rank)];
    int64_t b = i < out.rank - y.rank ? 1 : y[i - (out.rank - y.rank)];
    if (a != b && a != 1 && b != 1) fail("Incompatible shapes: " + x.str() + " vs. " + y.str());
    out[i] = a == 1 ? b : a;
  }
  return out;
}

}  // namespace gt
