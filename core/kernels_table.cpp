// Finds kernels by name, in the copy that was compiled for this processor.
#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "cpu.h"
#include "kernels/loops.h"

// Defined in kernels/all.cpp, once for each instruction set; fills a KernelSet.
extern "C" {
#if defined(__x86_64__) || defined(_M_X64)
void gradtape_kernels_v2(void* set);
void gradtape_kernels_v3(void* set);
void gradtape_kernels_v4(void* set);
#else
void gradtape_kernels_v1(void* set);
#endif
}

namespace gt {

namespace {

struct Tables {
  KernelSet set{};
  std::unordered_map<std::string_view, const Elementwise*> elementwise;
  std::unordered_map<std::string_view, const Reduction*> reductions;

  Tables() {
#if defined(__x86_64__) || defined(_M_X64)
    switch (isa_level()) {
      case 4: gradtape_kernels_v4(&set); break;
      case 3: gradtape_kernels_v3(&set); break;
      default: gradtape_kernels_v2(&set);
    }
#else
    gradtape_kernels_v1(&set);
#endif
    elementwise.reserve(256);
    for (const auto& rows : set.elementwise)
      for (int k = 0; k < rows.count; ++k) elementwise[rows.first[k].name] = &rows.first[k];
    for (const auto& rows : set.reductions)
      for (int k = 0; k < rows.count; ++k) reductions[rows.first[k].name] = &rows.first[k];
  }
};

// Made at the first question, which may come from another file's static initialiser.
const Tables& tables() {
  static const Tables* t = new Tables;
  return *t;
}

template <class Map> auto find_in(const Map& map, std::string_view name) {
  auto at = map.find(name);
  return at == map.end() ? nullptr : at->second;
}

}  // namespace

const Elementwise* find_elementwise(std::string_view name) { return find_in(tables().elementwise, name); }
const Reduction* find_reduction(std::string_view name) { return find_in(tables().reductions, name); }
const KernelSet& kernels() { return tables().set; }
CastLoop find_cast(Dtype from, Dtype to) { return tables().set.cast[int(from)][int(to)]; }

}  // namespace gt
