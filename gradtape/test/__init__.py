"""`tf.test`: a comparison of derivatives with differences, and what TensorFlow's tests ask about the build.

`TestCase` is in `gradtape.test.case` and is imported on first use: `unittest` is slow to import.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.public import absent as _absent
from gradtape._src.tapes.tape import GradientTape
from gradtape._src.tensors import conversion, hooks
from gradtape._src.tensors.indexed_slices import IndexedSlices

_DELTA = 1.0 / 1024


def compute_gradient(f: Callable, x: Any, delta: float | None = None) -> tuple[tuple, tuple]:
    """The Jacobians of `f`, by the tape and by central differences.

    Args:
      f: a function of tensors that returns one tensor.
      x: the arguments, a list or tuple of values that can be tensors.
      delta: the step of the differences, 1/1024 by default.

    Returns:
      (by tape, by differences): for each argument an array `[size of f(x), size of the
      argument]`. A complex number counts as two real ones.

    Raises:
      ValueError: if `x` is not a list or tuple.

    >>> import gradtape as tf
    >>> theoretical, numeric = tf.test.compute_gradient(tf.square, [[1.0, 2.0]])
    >>> theoretical[0].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError(
            "`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`), not a "
            f"{type(x)}"
        )
    xs = [
        v
        if isinstance(v, _core.Tensor)
        else conversion.densify(v)
        if not isinstance(v, _core.Variable)
        else v._peek()
        for v in x
    ]
    for i, v in enumerate(xs):
        if not (v.dtype.is_floating or v.dtype.is_complex):
            raise AssertionError(
                f"Cannot compute gradient for unsupported type {v.dtype.name} of argument {i}"
            )
    step = _DELTA if delta is None else delta
    count = range(len(xs))
    return tuple(_by_tape(f, xs, i) for i in count), tuple(_by_differences(f, xs, i, step) for i in count)


def max_error(grad1: Any, grad2: Any) -> float:
    """The largest difference between the Jacobians of two lists."""
    return max((float(np.abs(a - b).max()) for a, b in zip(grad1, grad2, strict=True) if a.size), default=0.0)


def _reals(array: np.ndarray) -> np.ndarray:
    """The elements in a row, complex ones as pairs."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype)


def _numpy(value: Any) -> np.ndarray:
    return np.array(conversion.densify(value) if isinstance(value, IndexedSlices) else value)


def _by_tape(f: Callable, xs: list, which: int) -> np.ndarray:
    x = xs[which]
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = conversion.densify(f(*xs))
    x_size = _reals(_numpy(x)).size
    weights = np.zeros(tuple(y.shape), _numpy(y).dtype)
    y_size = _reals(weights).size
    jacobian = np.zeros((y_size, x_size), _reals(_numpy(x)).dtype)
    for row in range(y_size):
        unit = np.zeros(y_size, _reals(weights).dtype)
        unit[row] = 1
        g = tape.gradient(
            y, x, conversion.convert(unit.view(weights.dtype).reshape(weights.shape), y.dtype._code)
        )
        if g is not None:
            jacobian[row] = _reals(_numpy(g))
    return jacobian


def _by_differences(f: Callable, xs: list, which: int, delta: float) -> np.ndarray:
    x = _numpy(xs[which])
    code = xs[which].dtype._code
    # Steps are taken in the type of x: 1/1024 is exact in all of them.
    flat = _reals(x).copy()

    def at(column: int, offset: float) -> np.ndarray:
        moved = flat.copy()
        moved[column] += flat.dtype.type(offset)
        args = list(xs)
        args[which] = conversion.convert(moved.view(x.dtype).reshape(x.shape), code)
        return _reals(_numpy(f(*args)))

    columns = [(at(c, delta) - at(c, -delta)) / (2 * delta) for c in range(flat.size)]
    if columns:
        return np.stack(columns, 1).astype(flat.dtype, copy=False)
    return np.zeros((_reals(_numpy(f(*xs))).size, 0), flat.dtype)


# ---- about the build --------------------------------------------------------------------------


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """False: the core runs on the CPU; GPUs are reached through `gradtape.xla`."""
    return False


def is_built_with_cuda() -> bool:
    """False."""
    return False


def is_built_with_rocm() -> bool:
    """False."""
    return False


def is_built_with_gpu_support() -> bool:
    """False."""
    return False


def is_built_with_xla() -> bool:
    """False: XLA comes with JAX, as an extra."""
    return False


def gpu_device_name() -> str:
    """The empty string: there is no GPU."""
    return ""


def is_cpu_target_available(target: str) -> bool:
    """Whether code for a kind of processor can be compiled; nothing is, so only this one."""
    import platform

    return target in (platform.machine(), "any")


def disable_with_predicate(pred: Callable[[], bool], skip_message: str) -> Callable:
    """Decorates a test that is skipped if `pred()` holds."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def test(self: Any, *args: Any, **kwargs: Any) -> Any:
            if pred():
                self.skipTest(skip_message)
            return function(self, *args, **kwargs)

        return test

    return decorate


def with_eager_op_as_function(cls: Any = None, only_as_function: bool = False) -> Any:
    """Decorates a class of tests; nothing is changed."""
    return (lambda c: c) if cls is None else cls


def create_local_cluster(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError: there are no servers."""
    raise NotImplementedError(
        "create_local_cluster: gradtape has no servers. Hint: `python -m gradtape launch` starts workers on one machine."
    )


def assert_equal_graph_def(expected: Any, actual: Any) -> None:
    """Raises TypeError: gradtape has no GraphDefs that could be equal."""
    raise TypeError(
        f"Expected tf.GraphDef for actual, got {type(actual).__name__}. Hint: gradtape has no graphs of TensorFlow 1."
    )


class experimental:
    """`tf.test.experimental`."""

    @staticmethod
    def sync_devices() -> None:
        """Nothing to wait for: an op is done when it returns."""


class Benchmark:
    """Measures and reports; a runner calls its methods named `benchmark...`."""

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: dict | None = None,
        name: str | None = None,
        metrics: list | None = None,
    ) -> None:
        """Prints the measurements."""
        given = {
            "name": name or type(self).__name__, "iters": iters, "cpu_time": cpu_time, "wall_time": wall_time,
            "throughput": throughput, "extras": extras, "metrics": metrics,
        }  # fmt: skip
        print("Benchmark", {k: v for k, v in given.items() if v is not None})

    def run_op_benchmark(self, sess: Any, op_or_tensor: Any, **kwargs: Any) -> Any:
        """Raises NotImplementedError: there are no sessions."""
        raise NotImplementedError(
            "Benchmark.run_op_benchmark: gradtape has no sessions. Hint: time the call itself with timeit."
        )


def get_temp_dir() -> str:
    """A folder for files that tests write; it is not deleted."""
    import tempfile

    return tempfile.mkdtemp(prefix="gradtape-test-")


def main(argv: Any = None) -> None:
    """Runs all tests of the calling file."""
    import unittest

    unittest.main(argv=argv)


def __getattr__(name: str) -> Any:
    if name == "TestCase":
        from gradtape.test.case import TestCase

        return TestCase
    return _absent.lookup_in("test", name)


def __dir__() -> list[str]:
    return ["TestCase", *_absent.names_in("test")]
