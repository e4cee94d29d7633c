"""The format of the corpus' programs, and their registration.

There are two kinds, both written as people write TensorFlow code and given the library as `tf`:

  * an `objective` returns `(loss, params, data)`: a scalar function of parameters and data, and
    arrays to start from. The runner differentiates it, once and twice, in every form.
  * a `program` runs by itself and returns a nest of tensors. It decorates functions that contain a
    tape with `step` and functions that run under a tape with `forward`; either may be `tf.function`.

Numbers come from fixed seeds, so that two libraries compute with the same ones.
"""

from typing import Any, NamedTuple

import numpy as np

CORPUS: dict[str, "Entry"] = {}


class Entry(NamedTuple):
    """One program."""

    name: str
    build: Any
    objective: bool
    order: int  # up to which order it is differentiated
    tolerance: float  # in multiples of the tolerance of its element type
    without: dict  # mode -> why the program cannot run in it yet


def _enter(build, objective, order=2, tolerance=1.0, without=()):
    name = build.__name__
    assert name not in CORPUS, f"there are two programs named {name}"
    assert build.__doc__, f"{name}: say what the program is"
    CORPUS[name] = Entry(name, build, objective, order, tolerance, dict(without))
    return build


def objective(build=None, **options):
    """Enters `build(tf) -> (loss, params, data)`."""
    return _enter(build, True) if build else lambda b: _enter(b, True, **options)


def program(build=None, **options):
    """Enters `build(tf, step, forward) -> nest of tensors`."""
    return _enter(build, False) if build else lambda b: _enter(b, False, **options)


# ---- numbers ----------------------------------------------------------------------------------


def normal(seed, *shape, scale=1.0, dtype=np.float32):
    """Normally distributed numbers."""
    return np.asarray(scale * np.random.default_rng(seed).normal(size=shape), dtype)


def uniform(seed, lo, hi, *shape, dtype=np.float32):
    """Uniformly distributed numbers."""
    return np.asarray(np.random.default_rng(seed).uniform(lo, hi, shape), dtype)


def integers(seed, below, *shape, dtype=np.int32):
    """Integers in [0, below)."""
    return np.asarray(np.random.default_rng(seed).integers(0, below, shape), dtype)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def dense(seed, *sizes, dtype=np.float32):
    """Weights and biases of layers of these sizes, one after the other."""
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False)):
        layers += [
            normal(seed + i, a, b, scale=a**-0.5, dtype=dtype),
            normal(seed + 50 + i, b, scale=0.1, dtype=dtype),
        ]
    return layers
