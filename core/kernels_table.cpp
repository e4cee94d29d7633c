// Finds kernels by name, in the copy that was compiled for this processor.
#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "cpu.h"
#include "kernels/loops.h"

// The copies this build has, lowest first. A sanitizer build has one (CMakeLists.txt, GRADTAPE_ISA_LEVELS).
#if !defined(GT_ISA_COPIES)
#if defined(__x86_64__) || defined(_M_X64)
#define GT_ISA_COPIES GT_COPY(2) GT_COPY(3) GT_COPY(4)
#else
#define GT_ISA_COPIES GT_COPY(1)
#endif
#endif

// Defined in kernels/all.cpp, once for each instruction set; fills a KernelSet.
#define GT_COPY(level) extern "C" void gradtape_kernels_v##level(void* set);
GT_ISA_COPIES
#undef GT_COPY

namespace gt {

int isa_level() {
  static const int level = [] {
    int best = 0;
#define GT_COPY(level) \
  if (level <= cpu_level()) best = level;
    GT_ISA_COPIES
#undef GT_COPY
    return best;
  }();
  return level;
}

static constexpr const char* kNames[] = {"none", "generic", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
const char* isa_name() { return kNames[isa_level()]; }

std::string no_copy_text() {
  std::string built;
#define GT_COPY(level) built += (built.empty() ? "" : ", ") + std::string(kNames[level]);
  GT_ISA_COPIES
#undef GT_COPY
  std::string text = "this processor cannot run gradtape's kernels: the build has them for " + built +
                     ", the processor is of level " + std::to_string(cpu_level()) + ".";
  text +=
      std::getenv("GRADTAPE_ISA")
          ? " Hint: GRADTAPE_ISA asks for less than there is; unset it."
          : " Hint: run it on a newer one, of about 2009 or later, or where a virtual machine shows SSE4.2.";
  return text;
}

namespace {

struct Tables {
  KernelSet set{};
  std::unordered_map<std::string_view, const Elementwise*> elementwise;
  std::unordered_map<std::string_view, const Reduction*> reductions;

  Tables() {
    void (*fill)(void*) = [](void*) {};
#define GT_COPY(level) \
  if (level == isa_level()) fill = gradtape_kernels_v##level;
    GT_ISA_COPIES
#undef GT_COPY
    fill(&set);
    elementwise.reserve(256);
    for (const auto& rows : set.elementwise)
      for (int k = 0; k < rows.count; ++k) elementwise[rows.first[k].name] = &rows.first[k];
    for (const auto& rows : set.reductions)
      for (int k = 0; k < rows.count; ++k) reductions[rows.first[k].name] = &rows.first[k];
  }
};

// Built on first use, which may be in another file's static initialiser.
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
