"""Native code that runs on the host in the middle of an XLA program.

XLA calls it from its own threads, but it runs in the thread that called the program, where settings, datasets and
interrupts are known: that thread serves calls, while another one waits for XLA. Such programs have one more input,
the number of the run, which tells to which run a call belongs. The results of a run are kept until it ends: if it
is repeated, because a loop had no room for its residuals, side effects do not happen twice, and random streams are
not drawn again.

In threads without `enable_x64`, JAX cuts 64-bit numbers down to 32 bits, so they are passed as pairs.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gradtape import _core
from gradtape._src import engines
from gradtape._src.base.contexts import aside
from gradtape._src.base.locks import Numbers
from gradtape._src.tensors import conversion

_numbers = Numbers()
_runs: dict[int, HostRun] = {}


def _is_news(record: logging.LogRecord) -> bool:
    """Filters JAX's log of errors in callbacks: an error that the run will raise itself need not be logged."""
    raised = record.exc_info[1] if record.exc_info else None
    return raised is None or not any(run.raised is raised for run in list(_runs.values()))


logging.getLogger("jax._src.callback").addFilter(_is_news)


class Job:
    """A computation that one thread does for another."""

    __slots__ = ("then", "_compute", "_done", "_result", "_error")

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.then: Callable[[Job], Any] | None = None  # called at the end
        self._compute = compute
        self._done = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Computes the result."""
        try:
            self._result = self._compute()
        except BaseException as e:
            self._error = e
        self._end()

    def fail(self, error: BaseException) -> None:
        """Ends the job with an error."""
        self._error = error
        self._end()

    def _end(self) -> None:
        self._done.set()
        if self.then is not None:
            self.then(self)

    def result(self) -> Any:
        """Waits for the result, or raises the error."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result


class HostRun:
    """The host's side of one run of a program. Use it in a `with` block.

    Attributes:
      number: the number passed to the program.
      raised: the first exception, which causes all others.
      results: of calls with side effects, in order.
    """

    __slots__ = ("number", "raised", "results", "_at", "_jobs")

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.number = np.int32(next(_numbers) & 0x7FFFFFFF)
        self.raised: BaseException | None = None
        self.results: list[list[np.ndarray]] = []
        self._at = 0

    def __enter__(self) -> HostRun:
        _runs[int(self.number)] = self
        return self

    def __exit__(self, *_: Any) -> None:
        _runs.pop(int(self.number), None)

    def serve(self, work: Callable[[], Any]) -> Any:
        """Runs `work` in another thread and returns its result; calls that it asks for run in this thread."""
        whole = Job(work)
        whole.then = self._jobs.put
        thread = threading.Thread(target=whole.run, name="XLA", daemon=True)
        thread.start()
        while True:
            job: list[Job] = []
            try:
                job += starmap(self._jobs.get, ((),))  # in one step, so that an interrupt loses no call
                if job[0] is not whole:
                    job[0].run() if self.raised is None else job[0].fail(self.raised)
            except KeyboardInterrupt as e:
                # XLA ends at this call or the next, or by itself.
                self.raised = self.raised or e
                if job and job[0] is not whole:
                    job[0].fail(e)
            if job and job[0] is whole:
                break
        thread.join()
        if isinstance(self.raised, KeyboardInterrupt):
            raise self.raised
        return whole.result()

    def ask(self, compute: Callable[[], Any]) -> Any:
        """The result of `compute`, run in the serving thread; called by XLA's threads."""
        job = Job(compute)
        self._jobs.put(job)
        return job.result()

    def repeat(self) -> None:
        """Called before the program runs again from its beginning."""
        self._at = 0

    def effect(self, compute: Callable[[], list[np.ndarray]]) -> list[np.ndarray]:
        """The results of a computation with a side effect, which happens once."""
        if self._at == len(self.results):
            self.results.append(compute())
        self._at += 1
        return self.results[self._at - 1]


def call(
    way: Callable[..., Any], run: Callable[..., Sequence[Any]], operands: Sequence[Any], results: Sequence[Any],
    number: Any, effect: bool,
) -> list[Any]:  # fmt: skip
    """The results of `run` on the host, where functions run natively.

    Args:
      way: JAX's callback function, which takes a function, the specs of its results, and operands.
      run: takes and returns tensors.
      operands, results: arrays of the program, and specs.
      number: the number of the run.
      effect: whether `run` has a side effect.
    """
    operands = [jnp.asarray(x) for x in operands]
    dtypes = [x.dtype for x in operands]

    def compute(arrays: Sequence[Any]) -> list[np.ndarray]:
        given = [_joined(np.asarray(a), dtype) for a, dtype in zip(arrays, dtypes, strict=True)]
        with aside(), engines.on_host():
            outputs = run(*map(tensor_of, given))
            # Without results it may return None.
            return [_parted(array_of(t)) for t, _ in zip(outputs, results, strict=False)]

    def called(number: Any, *arrays: Any) -> list[np.ndarray]:
        host_run = _runs.get(int(number))
        try:
            if host_run is None:
                return compute(arrays)
            if not effect:
                return host_run.ask(lambda: compute(arrays))
            return host_run.effect(lambda: host_run.ask(lambda: compute(arrays)))
        except BaseException as e:
            if host_run is not None and host_run.raised is None:
                host_run.raised = e
            raise

    outputs = way(called, [_parted_spec(s) for s in results], number, *map(_bits, operands))
    return [_from_bits(x, spec.dtype) for x, spec in zip(outputs, results, strict=True)]


def _is_wide(dtype: Any) -> bool:
    return np.dtype(dtype).itemsize >= 8 and dtype != np.complex64


def _bits(x: Any) -> Any:
    """64-bit numbers as pairs of 32-bit ones, along new last axes."""
    if not _is_wide(x.dtype):
        return x
    if jnp.iscomplexobj(x):
        x = jnp.stack([x.real, x.imag], -1)
    return lax.bitcast_convert_type(x, jnp.uint32)


def _from_bits(x: Any, dtype: Any) -> Any:
    if not _is_wide(dtype):
        return x
    if dtype != np.complex128:
        return lax.bitcast_convert_type(x, dtype)
    parts = lax.bitcast_convert_type(x, jnp.float64)
    return lax.complex(parts[..., 0], parts[..., 1])


def _parts(dtype: Any) -> tuple[int, ...]:
    """The axes that a 64-bit number becomes."""
    return () if not _is_wide(dtype) else (2, 2) if dtype == np.complex128 else (2,)


def _parted_spec(spec: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(
        (*spec.shape, *_parts(spec.dtype)), np.uint32 if _is_wide(spec.dtype) else spec.dtype
    )


def _parted(array: np.ndarray) -> np.ndarray:
    if not _is_wide(array.dtype):
        return array
    return np.ascontiguousarray(array).reshape(-1).view(np.uint32).reshape(*array.shape, *_parts(array.dtype))


def _joined(array: np.ndarray, dtype: Any) -> np.ndarray:
    if not _is_wide(dtype):
        return array
    shape = array.shape[: array.ndim - len(_parts(dtype))]
    return np.ascontiguousarray(array).reshape(-1).view(dtype).reshape(shape)


def array_of(tensor: Any) -> np.ndarray:
    """A tensor as a NumPy array, without a copy where possible."""
    return np.asarray(tensor.numpy() if tensor.dtype.name == "bfloat16" else memoryview(tensor))


def tensor_of(array: Any) -> _core.Tensor:
    """An array as a tensor."""
    return conversion.convert(np.asarray(array))
