// Connectionist temporal classification: what the loops of ctc.cpp are told.
#pragma once
#include <cstdint>

namespace gt {

// One sequence: `steps` rows of `classes` logits, `stride` elements apart, and `length` labels.
struct CtcSequence {
  const void* logits;
  void* back;  // the derivative of the loss by the logits, laid out alike
  int64_t steps, classes, stride;
  const int32_t* labels;
  int64_t length;
  int32_t blank;
  void* room;  // ctc_room(steps, length) elements
};
// The paths go through 2 length + 1 states: the labels with blanks around them. They are filled up to whole
// vectors with states that cannot be reached, and there is room for two more on either side.
inline int64_t ctc_states(int64_t length) { return (2 * length + 1 + 15) / 16 * 16; }
inline int64_t ctc_line(int64_t length) { return ctc_states(length) + 4; }
inline int64_t ctc_room(int64_t steps, int64_t length) { return (steps + 4) * ctc_line(length) + steps; }

struct CtcLoops {
  double (*loss)(const CtcSequence&);  // and writes `back`
};

}  // namespace gt
