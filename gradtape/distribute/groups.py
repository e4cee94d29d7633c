"""Groups of processes: the logic of their exchanges, independent of the engine that carries the bytes.

A *carrier* moves buffers: JAX's collectives (`groups_jax`) or MPI (`groups_mpi`). A *watch* knows which processes
are alive (`groups_watch`). A `Group` combines both: it packs the tensors of an exchange into one flat buffer per
element type, checks that all processes are doing the same exchange, and gives up if a process is gone or late.

Before each exchange every process sends a row of 128 bytes to all others, with a hash of what it is about to do.
Rows have one size, so this works even if the exchanges do not match, in which case the engines below would crash.
Values that fit into the row are sent with it. So is a checksum of values that processes have set without an
exchange, but that must be equal in all of them (`vouch`).
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import errors
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import bfloat16, float16, float32
from gradtape._src.base.source import user_line
from gradtape._src.tensors.conversion import convert, densify, read
from gradtape.distribute.groups_watch import Watch

ROW = 128  # bytes that every process sends to all others before an exchange
_HEAD = 24  # of these identify the exchange
_ALIGNED = 64  # tensors begin at multiples of this in a buffer
_DEFAULT_TIMEOUT = 60.0
_NOTHING = np.zeros(0, np.uint8)


class Carrier(Protocol):
    """The engine of a group. Methods are called by one thread, always the same, and may block."""

    rank: int
    size: int
    ends_all: bool  # whether a process that ends early ends all others

    def begin_rows(self, row: np.ndarray) -> None:
        """Starts to send `ROW` bytes to every process; may return before they arrive."""

    def rows(self) -> np.ndarray:
        """The bytes sent by every process, as uint8[size, ROW]."""

    def buffer(self, n: int, dtype: Any) -> np.ndarray:
        """A buffer of `n` elements for `sum`, initially zero; the same buffer for the same arguments."""

    def sum(self, buffer: np.ndarray) -> Any:
        """A tensor of the sums of all processes' buffers."""

    def gather(self, data: np.ndarray) -> np.ndarray:
        """The bytes of every process, as uint8[size, n]; `n` is the same for all."""

    def broadcast(self, data: np.ndarray, root: int) -> np.ndarray:
        """The bytes of one process; `n` is the same for all."""

    def close(self, stuck: bool) -> None:
        """Called at the end; `stuck`: a call for an abandoned exchange has not returned."""


def time_limit(given: float | None) -> float:
    """The seconds to wait for other processes: an argument, GRADTAPE_COLLECTIVE_TIMEOUT, or 60.

    Raises:
      ValueError: if it is not a positive number.
    """
    text = os.environ.get("GRADTAPE_COLLECTIVE_TIMEOUT") if given is None else given
    if text is None or text == "":
        return _DEFAULT_TIMEOUT
    try:
        seconds = float(text)
    except (TypeError, ValueError):
        seconds = float("nan")
    if not seconds > 0:
        raise ValueError(
            f"timeout_seconds (or GRADTAPE_COLLECTIVE_TIMEOUT): expected a positive number of seconds; got {text!r}."
        )
    return seconds


_couriers: list[Courier] = []


def _at_the_end() -> None:
    """Ends the process at once if a thread is inside an engine call that does not return, and would block the exit."""
    if all(courier.comes_back(5.0) for courier in _couriers):
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(1)


atexit.register(_at_the_end)  # before groups exist, so that it runs after they are closed


class Courier:
    """A thread that makes the blocking calls of a carrier, so that the caller can stop waiting."""

    def __init__(self) -> None:
        self._job: Callable[[], Any] | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        self._busy = False
        self._go, self._done = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._done.acquire()
        _couriers.append(self)
        threading.Thread(target=self._run, name="gradtape exchange", daemon=True).start()

    @property
    def is_busy(self) -> bool:
        """Whether a call has not returned yet."""
        return self._busy

    def comes_back(self, seconds: float) -> bool:
        """Waits for the current call; returns whether it has returned."""
        end = time.monotonic() + seconds
        while self._busy and time.monotonic() < end:
            time.sleep(0.01)
        return not self._busy

    def _run(self) -> None:
        while True:
            self._go.acquire()
            job, self._job = self._job, None
            try:
                self._result, self._error = job() if job is not None else None, None
            except BaseException as e:
                self._result, self._error = None, e
            self._busy = False
            self._done.release()

    def run(self, job: Callable[[], Any], give_up: Callable[[], None]) -> Any:
        """The result of `job`. `give_up` is called now and then, and raises when it is time to stop."""
        self._job, self._busy = job, True
        self._go.release()
        while not self._done.acquire(timeout=0.05):
            give_up()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        result, self._result = self._result, None
        return result


class Group:
    """Processes that exchange tensors.

    Args:
      carrier: the engine that moves the bytes.
      watch: knows which processes are alive; None for a single process.
      timeout: the seconds to wait for others.
    """

    def __init__(self, carrier: Carrier, watch: Watch | None, timeout: float) -> None:
        self._carrier, self._watch, self.timeout = carrier, watch, timeout
        self.rank, self.size = carrier.rank, carrier.size
        self._courier = Courier()
        self._lock = threading.RLock()
        self._count = 0
        self._failure: Exception | None = None
        self._vouched_for: list[str]
        self._closed = False
        self._plans: dict[tuple, _Plan] = {}
        self._vouched, self._vouched_for = 0, []
        atexit.register(self.close)

    # ---- exchanges ------------------------------------------------------------------------------------

    def all_reduce(self, tensors: Sequence[Any]) -> list:
        """For each tensor, the sum over all processes: one exchange for all tensors.

        Raises:
          UnavailableError: if a process is gone.
          DeadlineExceededError: if one does not take part within the time limit.
          InvalidArgumentError: if processes exchange different things.
        """
        values = [densify(read(x)) for x in tensors]
        if not values:
            return []
        plan = self._plan("all_reduce", values)
        if plan.words_of_bool:
            raise errors.InvalidArgumentError(
                None, None,
                f"all_reduce: bool tensors have no sum; got {plan.words_of_bool}. Hint: tf.cast(x, tf.int32).",
            )  # fmt: skip
        with aside():
            wide = [ops.cast(x, float32) if w else x for x, w in zip(values, plan.widened, strict=True)]
            if self.size == 1:
                sums = wide
            elif plan.is_small:
                sums = self._sum_of_rows(plan, wide)
            else:
                sums = self._sum_of_buffers(plan, wide)
            return [
                ops.cast(s, x.dtype) if w else s for s, x, w in zip(sums, values, plan.widened, strict=True)
            ]

    def all_gather(self, tensors: Sequence[Any]) -> list[list]:
        """For each tensor, the tensors of all processes, in the order of their ranks; shapes may differ."""
        values = [densify(read(x)) for x in tensors]
        if self.size == 1 or not values:
            return [[x] for x in values]
        arrays = [_array(x) for x in values]
        described = np.array([n for a in arrays for n in (a.ndim, *a.shape)], np.int64)
        plan = self._plan(
            "all_gather", [], tuple(x.dtype.name for x in values), tuple(a.ndim for a in arrays)
        )
        data = np.concatenate([a.reshape(-1).view(np.uint8) for a in (described, *arrays)])

        def job() -> list[np.ndarray]:
            own = np.array([len(data)], np.int64).view(np.uint8)
            self._begin(plan, np.concatenate([own, data]) if len(data) <= plan.room - 8 else own)
            rows = self._met()
            lengths = [int(row[:8].view(np.int64)[0]) for row in rows]
            if max(lengths) <= plan.room - 8:
                return [row[8 : 8 + n] for row, n in zip(rows, lengths, strict=True)]
            padded = np.zeros(max(lengths), np.uint8)
            padded[: len(data)] = data
            return [row[:n] for row, n in zip(self._carrier.gather(padded), lengths, strict=True)]

        parts = [_unpacked(row, described.nbytes, arrays) for row in self._run(plan, job)]
        with aside():
            return [
                [_tensor(a, x) for a in column]
                for x, column in zip(values, zip(*parts, strict=True), strict=True)
            ]

    def broadcast(self, tensors: Sequence[Any], root: int = 0) -> list:
        """The tensors of one process."""
        values = [densify(read(x)) for x in tensors]
        if self.size == 1 or not values:
            return values
        plan = self._plan("broadcast", values, root)
        arrays = [_array(x) for x in values]
        data = np.concatenate([a.reshape(-1).view(np.uint8) for a in arrays])

        def job() -> np.ndarray:
            self._begin(plan, _NOTHING)
            self._met()
            return self._carrier.broadcast(data, root)

        got = self._run(plan, job)
        out, at = [], 0
        with aside():
            for x, a in zip(values, arrays, strict=True):
                out.append(_tensor(got[at : at + a.nbytes].view(a.dtype).reshape(a.shape), x))
                at += a.nbytes
        return out

    def barrier(self) -> None:
        """Waits until all processes have called it."""
        if self.size > 1:
            plan = self._plan("barrier", [])
            self._run(plan, lambda: self._rows(plan, _NOTHING))

    def vouch(self, value: Any, what: str) -> None:
        """Registers a value that must be the same in all processes, which is checked by their next exchange.

        Args:
          value: a tensor.
          what: the error message if it is not.
        """
        if self.size > 1:
            data = _array(densify(read(value)))
            self._vouched = _core.crc32c(data.tobytes() + self._vouched.to_bytes(4, "little"))
            self._vouched_for = [*self._vouched_for[-2:], what]

    def settle(self) -> None:
        """Checks that all values registered by `vouch` are the same in all processes.

        Raises:
          ValueError: if it is not.
        """
        if self._vouched_for:
            self.barrier()

    def close(self) -> None:
        """Leaves the group. The others learn that this process has finished."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        stuck = self._courier.is_busy
        if self._watch is not None:
            if stuck and self.rank and self._carrier.ends_all:
                self._watch.wait_for_end(0, self.timeout)  # it may be saving its state
            self._watch.close()
        self._carrier.close(stuck)

    # ---- implementation --------------------------------------------------------------------------------

    def _plan(self, kind: str, values: list, *more: Any) -> _Plan:
        key = (kind, tuple((x.dtype._code, tuple(x.shape)) for x in values), more)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _Plan(kind, values, more)
        return plan

    def _sum_of_rows(self, plan: _Plan, values: list) -> list:
        data = np.zeros(plan.small_bytes, np.uint8)
        for x, (at, n, dtype) in zip(values, plan.small, strict=True):
            data[at : at + n] = _array(x).astype(dtype, copy=False).reshape(-1).view(np.uint8)
        rows = self._run(plan, lambda: self._rows(plan, data))
        out = []
        for x, (at, n, dtype) in zip(values, plan.small, strict=True):
            parts = np.ascontiguousarray(rows[:, at : at + n]).view(dtype)
            out.append(_tensor(np.add.reduce(parts, 0, dtype=dtype).reshape(tuple(x.shape)), x))
        return out

    def _sum_of_buffers(self, plan: _Plan, values: list) -> list:
        def job() -> list:
            self._begin(plan, _NOTHING)
            flats = []
            for dtype, n, slots in plan.buffers:
                flats.append(self._carrier.buffer(n, dtype))
                for k, at, size in slots:
                    flats[-1][at : at + size] = _array(values[k]).reshape(-1)
            self._met()
            return [self._carrier.sum(flat) for flat in flats]

        out: list = [None] * len(values)
        for flat, (_, _, slots) in zip(self._run(plan, job), plan.buffers, strict=True):
            for k, at, size in slots:
                out[k] = ops.reshape(flat[at : at + size], values[k].shape)
        return out

    def _begin(self, plan: _Plan, data: np.ndarray) -> None:
        """Tells the others what this process is about to do."""
        row = np.zeros(ROW, np.uint8)
        row[:8].view(np.int64)[0] = self._count
        row[8:16] = plan.digest
        row[16:20].view(np.uint32)[0] = self._vouched
        row[_HEAD : _HEAD + len(data)] = data
        self._carrier.begin_rows(row)

    def _met(self) -> np.ndarray:
        """The contents of the others' rows, after checking that all are about to do the same as this process."""
        rows = self._carrier.rows()
        heads = rows[:, :_HEAD]
        if (heads != heads[0]).any():
            raise _Drifted if (heads[:, :16] == heads[0, :16]).all() else _Different
        self._vouched_for = []
        return rows[:, _HEAD:]

    def _rows(self, plan: _Plan, data: np.ndarray) -> np.ndarray:
        self._begin(plan, data)
        return self._met()

    def _others(self, words: str) -> str:
        """What each process is about to do, in words: called by all of them, since all have seen a difference."""
        said = words.encode()[:ROW]
        row = np.zeros(ROW, np.uint8)
        row[: len(said)] = np.frombuffer(said, np.uint8)
        self._carrier.begin_rows(row)
        words_of = [bytes(r).rstrip(b"\0").decode(errors="replace") for r in self._carrier.rows()]
        return "; ".join(f"worker {r}: {w}" for r, w in enumerate(words_of))

    def _run(self, plan: _Plan, job: Callable[[], Any]) -> Any:
        """Runs an exchange in the courier's thread, and gives up if it cannot finish."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._closed:
                raise errors.FailedPreconditionError(
                    None, None, f"{plan.kind}: the group of processes is closed."
                )
            self._count += 1
            at, end = self._count, time.monotonic() + self.timeout
            watch = self._watch
            if watch is not None:
                watch.entered = at

            def give_up() -> None:
                if watch is not None and watch.is_broken(at):
                    raise watch.error(at, plan.kind)
                if time.monotonic() > end or (watch is not None and watch.has_verdict(at)):
                    if watch is None:
                        raise errors.DeadlineExceededError(
                            None,
                            None,
                            f"{plan.kind}: other processes have not joined within {self.timeout:g} s.",
                        )
                    raise watch.late(at, plan.kind)

            try:
                return self._courier.run(job, give_up)
            except _Different:
                words = f"{plan.words} ({user_line()})"
                said = self._courier.run(lambda: self._others(words), give_up)
                self._failure = errors.InvalidArgumentError(
                    None, None,
                    f"{plan.kind}: workers exchange different things: their programs or the branches taken differ; got "
                    f"{said}. Hint: every worker must run the same steps, the same number of times.",
                )  # fmt: skip
            except _Drifted:
                said = "; or ".join(self._vouched_for) or "workers have set different values"
                self._failure = ValueError(f"{said}: workers would drift apart.")
            except errors.OpError as e:
                self._failure = e
            except Exception as e:
                # The engine noticed first. Who has gone is known a moment later.
                cause = str(e).strip().split("\n")[0]
                if watch is not None:
                    watch.wait_for_news(at, min(5.0, self.timeout))
                    self._failure = watch.error(at, plan.kind, cause)
                else:
                    self._failure = errors.UnavailableError(None, None, f"{plan.kind}: {cause}")
            except BaseException:
                self._failure = errors.AbortedError(
                    None, None,
                    f"{plan.kind}: an exchange was interrupted, and others may have ended it. Hint: start all workers again",
                )  # fmt: skip
                raise
            raise self._failure


class _Different(Exception):  # noqa: N818
    """Processes are about to do different exchanges."""


class _Drifted(Exception):  # noqa: N818
    """Processes have set different values that should be equal."""


class _Plan:
    """The layout of an exchange, from its kind and the kinds of its tensors."""

    room = ROW - _HEAD

    def __init__(self, kind: str, values: list, more: tuple) -> None:
        self.kind = kind
        kinds = [(x.dtype, tuple(x.shape)) for x in values]
        listed = ", ".join(f"{d.name}[{','.join(map(str, s))}]" for d, s in kinds[:3])
        count = f"{len(kinds)} tensors: " if len(kinds) > 3 else ""
        extra = " ".join(map(str, more))
        self.words = " ".join(
            w for w in (kind, count + listed + (", ..." if len(kinds) > 3 else ""), extra) if w
        )
        full = repr((kind, [(d.name, s) for d, s in kinds], more)).encode()
        self.digest = np.frombuffer(hashlib.blake2b(full, digest_size=8).digest(), np.uint8)
        self.widened = [d in (float16, bfloat16) for d, _ in kinds]  # summed in float32, rounded once
        self.words_of_bool = next((f"bool{list(s)}" for d, s in kinds if d.name == "bool"), "")
        # Small sums are computed from rows, by each process in the same order.
        self.small: list[tuple[int, int, Any]] = []
        at = 0
        sizes = [int(np.prod(s, dtype=np.int64)) for _, s in kinds]
        dtypes = [np.dtype((float32 if w else d).as_numpy_dtype) if kind == "all_reduce" else None
                  for (d, _), w in zip(kinds, self.widened, strict=True)]  # fmt: skip
        self.small_bytes, self.is_small = 0, False
        self.buffers: list[tuple[Any, int, list[tuple[int, int, int]]]] = []
        if kind != "all_reduce" or self.words_of_bool:
            return
        for n, dtype in zip(sizes, dtypes, strict=True):
            assert dtype is not None
            at = -(-at // dtype.itemsize) * dtype.itemsize
            self.small.append((at, n * dtype.itemsize, dtype))
            at += n * dtype.itemsize
        self.small_bytes, self.is_small = at, at <= self.room
        # Large tensors are sent in one flat buffer per element type, at aligned offsets.
        for dtype in dict.fromkeys(dtypes):
            assert dtype is not None
            each = _ALIGNED // dtype.itemsize
            slots, at = [], 0
            for k, n in enumerate(sizes):
                if dtypes[k] == dtype:
                    slots.append((k, at, n))
                    at += -(-n // each) * each
            self.buffers.append((dtype, at, slots))


def _array(x: Any) -> np.ndarray:
    return np.asarray(x, order="C")


def _tensor(array: np.ndarray, like: Any) -> Any:
    return convert(np.ascontiguousarray(array).reshape(array.shape), like.dtype._code)


def _unpacked(row: np.ndarray, head: int, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The tensors of one process from its bytes, which start with their shapes."""
    numbers = np.ascontiguousarray(row[:head]).view(np.int64).tolist()
    out, at, place = [], head, 0
    for a in arrays:
        rank = numbers[place]
        shape = tuple(numbers[place + 1 : place + 1 + rank])
        place += 1 + rank
        n = int(np.prod(shape, dtype=np.int64)) * a.itemsize
        out.append(np.ascontiguousarray(row[at : at + n]).view(a.dtype).reshape(shape))
        at += n
    return out
