"""Elements made ahead of time: on one thread for `prefetch`, on several for parallel maps.

Handing something from thread to thread costs about as much as making a small batch. So the first elements
are made where they are asked for, with a watch beside it; only what takes longer goes to threads.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from time import perf_counter
from typing import Any

from gradtape.data.base import AUTOTUNE, Run, invalid, number
from gradtape.data.dataset import Unary
from gradtape.data.rows import Table

_WORTH = 60e-6  # seconds an element must take to be made ahead
_WORTH_A_POOL = 200e-6  # seconds a call must take to run beside others
_AHEAD = 4  # elements made ahead where the number is left to us
_MOST_THREADS = 64
_END, _VALUE, _ERROR = range(3)


class _PrefetchDataset(Unary):
    """Elements made ahead."""

    def __init__(self, source: Any, buffer_size: Any) -> None:
        super().__init__(source)
        self._room = AUTOTUNE if buffer_size is None else number(buffer_size, "prefetch", "buffer_size")
        if self._room < AUTOTUNE:
            raise invalid(
                "Dataset.prefetch: buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning; "
                f"got {self._room}."
            )

    def _table(self) -> Table | None:
        table = self._input._table()
        return None if table is None or table.is_computed else table

    def _chunks(self, run: Run) -> Iterator[Any]:
        return self._input._chunks(run)

    def _elements(self, run: Run) -> Iterator[Any]:
        source = self._input._iterate(run)
        return source if self._room == 0 else _Ahead(source, _AHEAD if self._room == AUTOTUNE else self._room)


# ---- one thread ---------------------------------------------------------------------------------


def _work(source: Any, full: SimpleQueue, free: SimpleQueue, stopped: threading.Event) -> None:
    """Fills places that are free, until there is nothing more or nobody wants it."""
    while True:
        free.get()
        if stopped.is_set():
            return
        try:
            full.put((_VALUE, next(source)))
        except StopIteration:
            full.put((_END, None))
            return
        except BaseException as e:  # the consumer raises it, with the traceback it has
            full.put((_ERROR, e))
            del e


class _Worker:
    """A thread that makes elements, and the queues between it and the consumer."""

    def __init__(self, source: Any, room: int) -> None:
        self.full: SimpleQueue = SimpleQueue()
        self.free: SimpleQueue = SimpleQueue()
        self._stopped = threading.Event()
        for _ in range(room):
            self.free.put(None)
        self.thread = threading.Thread(
            target=_work,
            args=(source, self.full, self.free, self._stopped),
            name="gradtape.data",
            daemon=True,
        )
        _workers.add(self)
        self.thread.start()

    def stop(self) -> None:
        """Makes the thread end when the element at hand is done."""
        self._stopped.set()
        self.free.put(None)


_workers: weakref.WeakSet[_Worker] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Python must not go away under threads that are making elements."""
    running = list(_workers)
    for worker in running:
        worker.stop()
    for worker in running:
        worker.thread.join(1)


class _Ahead:
    """An iterator that makes its elements ahead, once it has seen that this pays."""

    def __init__(self, source: Iterator[Any], room: int) -> None:
        self._source: Any = source
        self._room = room
        self._seen = self._slow = 0
        self._worker: _Worker | None = None
        self._ended = False

    def __iter__(self) -> _Ahead:
        return self

    def __next__(self) -> Any:
        worker = self._worker
        if worker is None:
            start = perf_counter()
            element = next(self._source)
            # The first element pays for what is done once: filling buffers, tracing.
            self._seen += 1
            if self._seen > 1:
                self._slow = self._slow + 1 if perf_counter() - start > _WORTH else 0
                if self._slow == 2:
                    self._worker = _Worker(self._source, self._room)
                    self._source = None
            return element
        if self._ended:
            raise StopIteration
        kind, value = worker.full.get()
        if kind == _VALUE:
            worker.free.put(None)
            return value
        if kind == _ERROR:
            worker.free.put(None)
            try:
                raise value
            finally:
                del value
        self._ended = True
        raise StopIteration

    def __del__(self) -> None:
        if self._worker is not None:
            self._worker.stop()


# ---- several threads ----------------------------------------------------------------------------


def threads_for(num_parallel_calls: Any) -> int:
    """How many calls may run beside each other; 1 for None."""
    if num_parallel_calls is None:
        return 1
    count = number(num_parallel_calls, "map", "num_parallel_calls")
    if count < 1 and count != AUTOTUNE:
        raise invalid(f"num_parallel_calls must be greater than zero; got {count}.")
    return min(count if count > 0 else (os.cpu_count() or 1), _MOST_THREADS)


class ParallelMap:
    """`map(call, source)` with calls that run beside each other, if they take long enough; results in order."""

    def __init__(self, call: Callable[[Any], Any], source: Iterator[Any], threads: int) -> None:
        self._call, self._source, self._threads = call, source, threads
        self._seen = self._slow = 0
        self._pool: Any = None
        self._waiting: deque[Any] = deque()  # futures
        self._ended = False

    def __iter__(self) -> ParallelMap:
        return self

    def __next__(self) -> Any:
        if self._pool is None:
            return self._alone()
        self._fill(self._pool)
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft().result()

    def _alone(self) -> Any:
        element = next(self._source)
        start = perf_counter()
        out = self._call(element)
        self._seen += 1
        if self._seen > 1:
            self._slow = self._slow + 1 if perf_counter() - start > _WORTH_A_POOL else 0
            if self._slow == 2:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="gradtape.data")
        return out

    def _fill(self, pool: Any) -> None:
        while not self._ended and len(self._waiting) < 2 * self._threads:
            try:
                element = next(self._source)
            except StopIteration:
                self._ended = True
            except Exception as e:  # raised in its turn
                from concurrent.futures import Future

                failed: Any = Future()
                failed.set_exception(e)
                self._waiting.append(failed)
            else:
                self._waiting.append(pool.submit(self._call, element))

    def __del__(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
