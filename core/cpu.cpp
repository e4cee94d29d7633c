// Detects, once, which instruction set the processor has.
#include "cpu.h"

#include <cstdlib>

namespace gt {

namespace {

int detect() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  int best = 1;
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt"))
    best = 2;
  if (best == 2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
    best = 3;
  if (best == 3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd"))
    best = 4;
  // Not above the level of the processor, which would end in an illegal instruction.
  if (const char* asked = std::getenv("GRADTAPE_ISA")) {
    int level = std::atoi(asked);
    if (level >= 1 && level < best) best = level;
  }
  return best;
#else
  return 1;
#endif
}

}  // namespace

int cpu_level() {
  static const int level = detect();
  return level;
}

}  // namespace gt
