"""Elements made ahead of time: on one thread for `prefetch`, on several for parallel maps and interleaves.

Passing an element between threads costs about as much as making a small batch. So pipelines that only compute on
values in memory, where nobody can observe when an element is made, start in the consumer's thread and are timed;
threads take over if making elements takes long. Pipelines that run user code or read files run ahead from the first
element on.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from time import monotonic, perf_counter
from typing import Any

from gradtape._src.base import errors
from gradtape.data.base import AUTOTUNE, Run, invalid, number
from gradtape.data.dataset import Unary
from gradtape.data.rows import Table

_WORTH = 60e-6  # seconds that an element must take to be made ahead
_WORTH_A_POOL = 200e-6  # seconds that a call must take to run in parallel
_AHEAD = 4  # elements made ahead with AUTOTUNE
_MOST_THREADS = 64


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

    def _at(self, index: int) -> Any:
        return self._input._at(index)

    def _elements(self, run: Run) -> Iterator[Any]:
        source = self._input._iterate(run)
        if self._room == 0:
            return source
        room = _AHEAD if self._room == AUTOTUNE else self._room
        return Ahead(source, room=room, at_once=self._input._observable())


def threads_for(num_parallel_calls: Any) -> int:
    """The number of parallel calls; 1 for None."""
    if num_parallel_calls is None:
        return 1
    count = number(num_parallel_calls, "map", "num_parallel_calls")
    if count < 1 and count != AUTOTUNE:
        raise invalid(f"num_parallel_calls must be greater than zero; got {count}.")
    return min(count if count > 0 else (os.cpu_count() or 1), _MOST_THREADS)


# ---- threads --------------------------------------------------------------------------------------


class Crew:
    """Threads that make elements ahead, and the state they share with the consumer.

    It holds no reference to the consumer, which stops the crew when it is dropped.

    Args:
      source: yields one element after the other, to one thread at a time.
      call: applied to elements by the threads in parallel; None for nothing.
      threads: the number of threads.
      room: how many elements may be waiting or in progress.
      ordered: whether elements keep the order of the source; otherwise they are returned as they become ready.
      changed: the condition that is notified when an element is ready or taken; it may be shared.
    """

    def __init__(
        self,
        source: Iterator[Any],
        call: Callable[[Any], Any] | None,
        threads: int,
        room: int,
        ordered: bool,
        changed: threading.Condition | None = None,
    ) -> None:
        self._source, self._call, self._threads, self._room = source, call, threads, room
        self._ordered = ordered
        self._changed = threading.Condition() if changed is None else changed
        self._made: dict[int, tuple[bool, Any]] = {}  # by number: whether it failed, and the element or error
        self._asked = self._given = 0  # elements taken from the source, and returned to the consumer
        self._asking = threading.Lock()
        self._ended = self._stopped = False
        self._running: list[threading.Thread] = []
        _crews.add(self)
        self._start()

    def _start(self) -> None:
        self._running = [
            threading.Thread(target=self._work, name="gradtape.data", daemon=True)
            for _ in range(self._threads)
        ]
        for thread in self._running:
            thread.start()

    # ---- on its threads -----------------------------------------------------------------------------

    def _work(self) -> None:
        while (task := self._task()) is not None:
            number, failed, value = task
            del task
            if not failed and self._call is not None:
                failed, value = _attempt(self._call, value)
            with self._changed:
                self._made[number] = failed, value
                self._changed.notify_all()
            del value  # must not live on while this thread waits

    def _task(self) -> tuple[int, bool, Any] | None:
        """The next element of the source with its number; None if there is none, or it is no longer needed."""
        with self._asking:
            with self._changed:
                while not self._stopped and self._asked - self._given >= self._room:
                    self._changed.wait()
                if self._stopped or self._ended:
                    return None
                self._asked += 1
            failed, value = _attempt(next, self._source)
            if not (failed and isinstance(value, StopIteration)):
                return self._asked - 1, failed, value
            with self._changed:
                self._asked -= 1
                self._ended = True
                self._changed.notify_all()
            return None

    # ---- on the consumer's --------------------------------------------------------------------------

    def next(self) -> Any:
        """The next element; waits for it."""
        with self._changed:
            while not self.is_ready():
                self.need_threads()
                self._changed.wait()
            return self.take()

    def is_ready(self) -> bool:
        """Whether `take` can return or raise. `changed` must be held."""
        if self._ended and self._given == self._asked:
            return True
        return self._given in self._made if self._ordered else bool(self._made)

    def take(self) -> Any:
        """The next element, which is ready. `changed` must be held.

        Raises:
          StopIteration: if there is no more.
          BaseException: the error raised while making the element, with its traceback.
        """
        if not self._made:
            raise StopIteration
        number = self._given if self._ordered else next(iter(self._made))  # dicts keep the order of insertion
        failed, value = self._made.pop(number)
        self._given += 1
        self._changed.notify_all()
        if not failed:
            return value
        try:
            raise value
        finally:
            del value

    def stop(self) -> None:
        """Ends the threads when the current elements are done."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    # ---- processes ----------------------------------------------------------------------------------

    def after_fork(self) -> None:
        """Resets the locks: a forked process has only one thread, and locks in the state that others left them."""
        self._changed._at_fork_reinit()  # type: ignore[attr-defined]
        self._asking._at_fork_reinit()  # type: ignore[attr-defined]
        self._running = []

    def need_threads(self) -> None:
        """Starts new threads if a fork has removed the old ones."""
        if self._running:
            return
        if self._asked - self._given > len(self._made):
            raise errors.UnavailableError(
                None,
                None,
                "The process was forked while a thread was making elements of this iterator, which cannot go on. "
                "Hint: `iter(dataset)` in the new process.",
            )
        self._start()


def _attempt(function: Callable[[Any], Any], argument: Any) -> tuple[bool, Any]:
    """Whether a call failed, and its result or its error."""
    try:
        return False, function(argument)
    except BaseException as e:  # the consumer raises it
        return True, e


_crews: weakref.WeakSet[Crew] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Stops all crews when Python exits, and waits briefly for their threads."""
    crews = list(_crews)
    for crew in crews:
        crew.stop()
    latest = monotonic() + 1
    for crew in crews:
        for thread in crew._running:
            thread.join(max(0.0, latest - monotonic()))


def _after_fork() -> None:
    for crew in list(_crews):
        crew.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# ---- iterators ------------------------------------------------------------------------------------


class Ahead:
    """An iterator over `call` of the elements of a source, made ahead by a crew.

    Args:
      at_once: whether the crew starts with the first element; otherwise once it is found to pay. The others are
        those of `Crew`.
    """

    def __init__(
        self,
        source: Iterator[Any],
        call: Callable[[Any], Any] | None = None,
        threads: int = 1,
        room: int = 1,
        ordered: bool = True,
        at_once: bool = True,
    ) -> None:
        self._source, self._call = source, call
        self._crew_of: Any = lambda: Crew(source, call, threads, room, ordered)
        self._worth = _WORTH if call is None else _WORTH_A_POOL
        self._at_once = at_once
        self._seen = self._slow = 0
        self._crew: Crew | None = None

    def __iter__(self) -> Ahead:
        return self

    def __next__(self) -> Any:
        if self._crew is not None:
            return self._crew.next()
        if self._at_once or self._slow == 2:
            self._crew = self._crew_of()
            return self._crew.next()
        start = perf_counter()
        element = next(self._source)
        if self._call is not None:
            start = perf_counter()
            element = self._call(element)
        # The first element includes one-time costs: filling buffers, tracing.
        self._seen += 1
        if self._seen > 1:
            self._slow = self._slow + 1 if perf_counter() - start > self._worth else 0
        return element

    def __del__(self) -> None:
        if self._crew is not None:
            self._crew.stop()


class Mingled:
    """The elements of several iterators at a time, in the order in which they become ready.

    Args:
      sources, begin: the iterators are `begin(x)` for each x of `sources`.
      most: how many of them run in parallel, each on a thread.
      room: how many elements each makes ahead.
    """

    def __init__(
        self, sources: Iterator[Any], begin: Callable[[Any], Iterator[Any]], most: int, room: int
    ) -> None:
        self._sources, self._begin_one = sources, begin
        self._most, self._room = min(most, _MOST_THREADS), room
        self._changed = threading.Condition()
        self._crews: list[Crew] = []
        self._more = True
        self._turn = 0  # the iterator to prefer if several are ready

    def __iter__(self) -> Mingled:
        return self

    def __next__(self) -> Any:
        while True:
            while self._more and len(self._crews) < self._most:
                self._begin()
            if not self._crews:
                raise StopIteration
            self._turn = (self._turn + 1) % len(self._crews)
            line = self._crews[self._turn :] + self._crews[: self._turn]
            with self._changed:
                while (crew := next((c for c in line if c.is_ready()), None)) is None:
                    for waiting in line:
                        waiting.need_threads()
                    self._changed.wait()
                try:
                    return crew.take()
                except StopIteration:
                    self._crews.remove(crew)

    def _begin(self) -> None:
        try:
            source = next(self._sources)
        except StopIteration:
            self._more = False
        else:
            begun = self._begin_one(source)
            self._crews.append(Crew(begun, None, 1, self._room, True, self._changed))

    def __del__(self) -> None:
        for crew in self._crews:
            crew.stop()
