// The instruction set of the processor, and which copy of the kernels runs on it.
#pragma once
#include <string>

namespace gt {

// The x86-64 level (1 to 4) of the processor; 1 on others. The environment variable GRADTAPE_ISA lowers it,
// for tests.
int cpu_level();

// The level of the kernels in use: the highest in this build that the processor can run (kernels_table.cpp).
// 0: there is none, and only `no_copy_text`, the error message, may be called.
int isa_level();
const char* isa_name();
std::string no_copy_text();

}  // namespace gt
