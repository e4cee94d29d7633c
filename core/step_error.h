// An error in a step of a program: what the Python layer needs to say which step it was.
#pragma once
#include <memory>
#include <vector>

#include "error.h"
#include "tensor.h"

namespace gt {

struct StepError : Error {
  const void* op;                     // see Step
  std::shared_ptr<const void> where;  // see Step; owned, because the program may be freed before this is read
  std::vector<Spec> given;            // the operands
};

}  // namespace gt
