"""Runs a program of the corpus in one mode, on gradtape or TensorFlow.

Modes:
  * eager: op by op.
  * function: the tape is inside a `tf.function`.
  * outside: the tape is outside, what it records is a `tf.function`.
  * around: there is a tape inside the function and, for objectives, another one around it.

Objectives are differentiated twice: the gradient g of the loss, and the gradient of |g|². In
the mode `around` their parameters are tensors, elsewhere variables.
"""

import importlib
from pathlib import Path

import numpy as np

from .corpus import CORPUS

MODES = ("eager", "function", "outside", "around")

for _file in sorted(Path(__file__).parent.glob("*.py")):
    if _file.stem not in ("__init__", "corpus", "runner", "referee") and not _file.stem.startswith("test_"):
        importlib.import_module(f".{_file.stem}", __package__)


def run(tf, name, mode, times=1, function=None):
    """The results of a program, once per time it ran: each a list of arrays, with None for no gradient."""
    entry = CORPUS[name]
    function = function or tf.function
    runs = _objective(tf, entry, mode, function) if entry.objective else _program(tf, entry, mode, function)
    return [next(runs) for _ in range(times)]


def _program(tf, entry, mode, function):
    def plain(f):
        return f

    step = function if mode in ("function", "around") else plain
    forward = function if mode in ("outside", "around") else plain
    while True:  # variables change in a run, so each one starts anew
        yield arrays(tf, entry.build(tf, step, forward))


def _objective(tf, entry, mode, function):
    loss_of, params, data = entry.build(tf)
    data = [tf.constant(a) for a in data]
    params = [tf.constant(p) if mode == "around" else tf.Variable(p) for p in params]

    def first(*inputs):
        """The loss and its gradient."""
        with tf.GradientTape() as tape:
            if mode == "around":
                tape.watch(inputs[: len(params)])
            loss = forward(*inputs)
        return loss, tape.gradient(loss, inputs[: len(params)] if mode == "around" else params)

    def second(*inputs):
        """The gradient of the squared norm of the gradient."""
        with tf.GradientTape() as tape:
            if mode == "around":
                tape.watch(inputs[: len(params)])
            _, grads = inner(*inputs)
            total = tf.add_n([tf.reduce_sum(tf.convert_to_tensor(g) ** 2) for g in grads if g is not None])
        return tape.gradient(total, inputs[: len(params)] if mode == "around" else params)

    if mode == "around":
        forward, inputs = loss_of, [*params, *data]
        first = inner = function(first)
    else:
        forward, inputs = (lambda *data: loss_of(*params, *data)), data
        if mode == "outside":
            forward = function(forward)
        inner = first
        if mode == "function":
            first, second = function(first), function(second)
    while True:
        loss, grads = first(*inputs)
        yield arrays(tf, [loss, list(grads), list(second(*inputs)) if entry.order > 1 else []])


def arrays(tf, nest):
    """The leaves of a nest as arrays; sparse gradients as dense ones."""
    flat = []

    def visit(item):
        if isinstance(item, dict):
            for key in sorted(item):
                visit(item[key])
        elif isinstance(item, (list, tuple)):
            for part in item:
                visit(part)
        else:
            flat.append(None if item is None else np.asarray(tf.convert_to_tensor(item)))

    visit(nest)
    return flat


def summary(results):
    """Two numbers for each array: its norm, and a weighted sum, which depends on the order of elements."""
    out = []
    for a in results:
        if a is None:
            out.append(None)
            continue
        flat = np.asarray(a).astype(np.complex128).reshape(-1)
        weighted = np.sum(flat * np.cos(np.arange(flat.size) + 0.5))
        out.append([float(np.linalg.norm(flat)), float(weighted.real), float(weighted.imag)])
    return out


LIMITS = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 3e-5,
    "complex64": 3e-5,
    "float16": 4e-3,
    "bfloat16": 3e-2,
}


def difference(actual, expected, factor=1.0, none_is_zero=False):
    """The difference of results, in a line; None when they agree.

    Args:
      none_is_zero: accept zeros where nothing is expected. A tape outside a function does not see
        that a source is not connected inside, nor does TensorFlow's.
    """
    if len(actual) != len(expected):
        return f"{len(actual)} results, expected {len(expected)}"
    for k, (a, e) in enumerate(zip(actual, expected, strict=True)):
        if none_is_zero and e is None and a is not None and not a.any():
            continue
        if (a is None) != (e is None):
            return (
                f"result {k}: expected {'None' if e is None else 'a value'}, got {'None' if a is None else a}"
            )
        if a is None:
            continue
        if a.shape != e.shape or a.dtype != e.dtype:
            return f"result {k} is {a.dtype}{list(a.shape)}, expected {e.dtype}{list(e.shape)}"
        if a.size == 0:
            continue
        limit = factor * LIMITS.get(a.dtype.name, 0.0)
        error = float(np.max(np.abs(a - e))) if a.dtype.kind != "b" else float(np.any(a != e))
        scale = max(1.0, float(np.max(np.abs(e))))
        if not error <= limit * scale:
            return f"result {k} ({a.dtype}{list(a.shape)}) is off by {error / scale:.2g}, allowed {limit:.2g}"
    return None


def summary_difference(found, expected, results, factor=1.0):
    """How the summary of results differs, in a line; None if it agrees."""
    if len(found) != len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    for k, (f, e, a) in enumerate(zip(found, expected, results, strict=True)):
        if (f is None) != (e is None):
            return (
                f"result {k}: expected {'None' if e is None else 'a value'}, got {'None' if f is None else a}"
            )
        if f is None:
            continue
        # Kernels of another library round differently: a wider tolerance than between modes.
        limit = 5 * factor * LIMITS.get(a.dtype.name, 1e-12) * max(1.0, e[0])
        error = max(abs(x - y) for x, y in zip(f, e, strict=True))
        if not error <= limit:
            return f"result {k} ({a.dtype}{list(a.shape)}): {f}, expected {e}"
    return None
