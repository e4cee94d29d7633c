// Which copy of the kernels this processor runs.
#pragma once

namespace gt {

// The x86-64 level (2, 3 or 4) of the kernels in use; 1 on other processors. The environment
// variable GRADTAPE_ISA lowers it, for tests.
int isa_level();
const char* isa_name();

}  // namespace gt
