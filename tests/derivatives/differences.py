"""Jacobians by central differences, and ways to make the library compute one in a given mode."""

import contextlib

import numpy as np

import gradtape as tf
from gradtape import _core
from gradtape._src.batching import jacobian as implementation
from gradtape._src.batching.linear import is_linear

STEP = 1e-5


def columns(f, xs, which, places, step=STEP):
    """Columns of the Jacobians of `f(*xs)`, a list of arrays, by some elements of `xs[which]`.

    Returns for each result an array `[*shape, len(places)]`. By complex numbers a real result has
    the derivative d/d(re) + i d/d(im), as TensorFlow has it.
    """

    def slopes(i, direction):
        moved = []
        for sign in (1, -1):
            x = np.array(xs[which])
            x.reshape(-1)[i] += sign * step * direction
            moved.append(f(*xs[:which], x, *xs[which + 1 :]))
        return [(np.asarray(a) - np.asarray(b)) / (2 * step) for a, b in zip(*moved, strict=True)]

    found = [slopes(i, 1) for i in places]
    if xs[which].dtype.kind == "c":
        imaginary = [slopes(i, 1j) for i in places]
        found = [
            [a + 1j * b for a, b in zip(re, im, strict=True)] for re, im in zip(found, imaginary, strict=True)
        ]
    return [np.stack(column, -1) for column in zip(*found, strict=True)]


def differences(f, x, step=STEP):
    """The Jacobian of `f`, a function of one array that gives one, at `x`: `[*f(x).shape, *x.shape]`."""
    x = np.asarray(x)
    (j,) = columns(lambda x: [f(x)], [x], 0, range(x.size), step)
    return j.reshape(*j.shape[:-1], *x.shape)


@contextlib.contextmanager
def mode(name):
    """Computes Jacobians in the given mode, even if the other is cheaper; "cheapest" changes nothing."""
    before = implementation._forward_is_cheaper

    def forced(pull, y, sources):
        reached = [s for s, f in zip(sources, pull.places, strict=True) if f is not None]
        real = not any(x.dtype.is_complex for x in (y, *reached))
        possible = real and bool(reached) and all(0 not in s.shape for s in reached)
        return name == "forward" and possible and is_linear(pull.function)

    if name != "cheapest":
        implementation._forward_is_cheaper = forced
    try:
        yield
    finally:
        implementation._forward_is_cheaper = before


@contextlib.contextmanager
def memory(size):
    """Limits the memory of Jacobians to so many bytes at a time."""
    before = tf.config.jacobian_memory
    tf.config.jacobian_memory = size
    try:
        yield
    finally:
        tf.config.jacobian_memory = before


@contextlib.contextmanager
def compiling(setting):
    """Compiles backward passes when they are repeated (True), or never (False)."""
    before = _core.is_compiling()
    _core.set_compile(setting)
    _core.clear_compiled()
    try:
        yield
    finally:
        _core.set_compile(before)
