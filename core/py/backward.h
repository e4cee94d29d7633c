// The backward pass over the nodes of a tape.
#pragma once
#include "objects.h"

namespace gt {

// targets, sources: Tensors or Variables. cotangents: a Tensor or IndexedSlices per target; None stands for
// ones. Returns a list with a Tensor, an IndexedSlices or None per source. A tape that is not persistent
// drops each record as soon as it has been used.
Ref<> backward(Tape* tape, PyObject* targets, PyObject* cotangents, PyObject* sources, bool bare_zeros);

// The same pass as a graph, not run: (GraphFunction, its inputs without the cotangents, which come last), or
// None if a record has a gradient in plain Python.
Ref<> pullback(Tape* tape, PyObject* targets, PyObject* sources);

// For each source a bit mask of the targets whose cotangents its gradient depends on, even if only by zeros.
Ref<> reached_by(Tape* tape, PyObject* targets, PyObject* sources);

// The record whose rule runs on this thread: its number (0 if there is none) and the name of its op.
std::pair<uint64_t, std::string> stepping();

}  // namespace gt
