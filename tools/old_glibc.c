// What gcc's own library asks of a newer glibc than 2.28, for tools/old_glibc.py to link with it.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// glibc 2.32 says here whether counts need no atomic instruction. They are taken to need one.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

// glibc 2.36. std::random_device asks for it.
__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {}
  return number;
}

// glibc 2.38: the headers give these names to the functions of C23, which know "0b1" too.
#define READS(type, name)                                                                              \
  __attribute__((visibility("hidden"))) type __isoc23_##name(const char* text, char** end, int base) { \
    return name(text, end, base);                                                                      \
  }
READS(long, strtol)
READS(long long, strtoll)
READS(unsigned long, strtoul)
READS(unsigned long long, strtoull)
