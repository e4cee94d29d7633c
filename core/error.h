// The one exception type of the core. The Python layer turns it into the class of tf.errors
// (or the built-in class) that a TensorFlow user would catch.
#pragma once
#include <string>

namespace gt {

enum class Code : uint8_t {
  InvalidArgument,
  ResourceExhausted,
  Unimplemented,
  Type,
  Value,
  Index,
  Runtime,
  Lookup,
  Untraceable,
  Argument  // of a type or kind that an op does not take, whatever its values
};

struct Error {
  Code code;
  std::string text;
};

[[noreturn]] inline void fail(Code code, std::string text) { throw Error{code, std::move(text)}; }
[[noreturn]] inline void fail(std::string text) { throw Error{Code::InvalidArgument, std::move(text)}; }

}  // namespace gt
