"""How a strategy runs its replicas: each in a separate thread, one at a time.

The thread that calls `Strategy.run` lets each replica run in turn. A replica runs until it needs the others
(`all_reduce`, `merge_call`, an assignment that aggregates), or returns. When all have reached the same point, the
calling thread performs the operation, between replicas, and gives them their turns again. So the order is always
the same, running threads share nothing, and it is known which replica waits for which: a deadlock raises an
error instead of hanging.

The state of the calling thread holds in replicas too: the trace of a function, tapes, name scopes, settings. In a
trace, replicas write into one graph, and their collective operations are part of it.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from gradtape import _core
from gradtape._src.base import replicas as engine
from gradtape._src.base import scopes
from gradtape._src.base.source import Line, user_line
from gradtape._src.control import counters
from gradtape._src.debug import lines
from gradtape._src.tensors import random
from gradtape.summary import writer

# Functions that carry further thread state over to replicas: each is called in the calling thread, and returns a
# function that creates a context for a replica to enter. Keras registers one.
carriers: list[Callable[[], Callable[[], contextlib.AbstractContextManager]]] = []


_PATIENCE = 0.2  # seconds


class _Ended(BaseException):
    """Raised in waiting replicas when the run is over, because another replica failed."""


class Wish:
    """A collective operation that a replica requests.

    Args:
      what: its description; all replicas must request the same.
      value: this replica's value.
      fulfil: called in the calling thread with the values of all replicas; returns a result for each.
      apart: whether it is not part of the current trace, such as creating variables.
    """

    __slots__ = ("what", "value", "fulfil", "apart", "line", "result")

    def __init__(self, what: str, value: Any, fulfil: Callable[[list], list], apart: bool) -> None:
        self.what, self.value, self.fulfil, self.apart = what, value, fulfil, apart
        self.line: Line = user_line()
        self.result: Any = None

    @property
    def words(self) -> str:
        return f"{self.what} ({self.line})" if self.line.number else self.what


class _Replica:
    """One replica: its thread, and its progress."""

    def __init__(self, run: Run, number: int, work: Callable[[], Any]) -> None:
        self.number, self._run, self._work = number, run, work
        self.wish: Wish | None = None
        self.done = False
        self.finished = False  # with its function, or with its current task
        self.task: Callable[[], Any] | None = None  # work to do while it waits: see `Run.together`
        self.result: Any = None  # of its function, or of the task
        self.error: BaseException | None = None
        self.thrown: BaseException | None = None  # the exception to raise when it continues
        self._turn = threading.Lock()
        self._turn.acquire()
        context = contextvars.copy_context()
        name = f"replica {number} of {run.count}"
        self.thread = threading.Thread(target=context.run, args=(self._begin,), name=name, daemon=True)

    def _begin(self) -> None:
        with contextlib.suppress(_Ended):  # may be raised anywhere
            self._main()

    def _main(self) -> None:
        try:
            self._turn.acquire()
            if self.thrown is not None:
                raise self.thrown
            with self._run.carried():
                self.result = self._work()
        except BaseException as e:
            self.error = e
        finally:
            self.done = self.finished = True
            self._stop()

    def _stop(self) -> None:
        with contextlib.suppress(RuntimeError):  # nothing waits for replicas of a run that is over
            self._run.stopped.release()

    def give_turn(self) -> None:
        """Lets it run until it stops; called by the thread that runs all replicas."""
        if self.thread.ident is None:
            self.thread.start()
        self._turn.release()
        # In a loop: a signal delivered to another thread does not wake this one, which has to handle it.
        while not self._run.stopped.acquire(timeout=_PATIENCE):
            pass

    def wait(self, wish: Wish) -> Any:
        """Called in the replica: stops until the others have reached the same point."""
        if self.done or threading.current_thread() is not self.thread:
            raise RuntimeError(
                f"{wish.words}: collective operations run only in the threads of replicas, while strategy.run runs; this is "
                f"{'after its end' if self.done else 'another thread'}. Hint: ask for gradients in the replica whose tape "
                "recorded, and use a replica context where get_replica_context() gave it."
            )
        if self.thrown is not None:
            raise self.thrown
        self.wish = wish
        self._stop()
        self._turn.acquire()
        while self.task is not None and self.thrown is None:
            self._do_task()
        self.wish = None
        if self.thrown is not None:
            raise self.thrown
        return wish.result

    def _do_task(self) -> None:
        task, self.task, self.wish = self.task, None, None
        assert task is not None
        try:
            with _core.Scope(recording=False, trace=self._run.trace):
                self.result = task()
        except BaseException as e:
            if self.thrown is not None:
                raise
            self.error = e
        self.finished = True
        self._stop()
        self._turn.acquire()

    def end(self, error: BaseException, is_running: bool = False) -> None:
        """Raises `error` where the replica waits, or, if it runs, at its next line of Python; and waits for its end."""
        # Even if it does not seem to run: an interrupt may come while the thread starts.
        self.thrown = error
        if is_running and self.thread.ident is not None:
            ident = ctypes.c_ulong(self.thread.ident)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(_Ended))
        with contextlib.suppress(RuntimeError):  # it may already have its turn
            self._turn.release()
        while self.thread.is_alive():
            self.thread.join(_PATIENCE)


class Run:
    """One call of `Strategy.run` with several replicas; strategies know nothing else about how replicas run.

    A strategy names this class (`Strategy._runner`), so that others may replace it. Contexts of replicas use
    `trace` and `tapes`, which are active around the run; `meet`; and `together`, for conditions.

    Args:
      count: the number of replicas.
      switch: called with the index of a replica before its turn, and with None after it.
    """

    def __init__(self, count: int, switch: Callable[[int | None], None] = lambda r: None) -> None:
        self.count, self._switch = count, switch
        self.trace = _core.current_trace()
        self.tapes = tuple(_core.recording_tapes())
        self.stopped = threading.Lock()  # released when a replica has stopped
        self.stopped.acquire()
        self.replicas: list[_Replica] = []
        self._running: _Replica | None = None
        self._entered = _open_scopes(self.trace, self.tapes)

    @contextlib.contextmanager
    def carried(self) -> Iterator[None]:
        """Enters the state of the calling thread in a replica."""
        with contextlib.ExitStack() as stack:
            for make in self._entered:
                stack.enter_context(make())
            yield

    def __call__(self, works: Sequence[Callable[[], Any]]) -> list:
        """The results of all replicas; `works` are their functions."""
        self.replicas = [_Replica(self, r, work) for r, work in enumerate(works)]
        engine.runs += 1
        try:
            return self._finish()
        finally:
            engine.runs -= 1
            self._end()

    def meet(self, number: int, wish: Wish) -> Any:
        """Called in a replica: its result, when all have reached the same point and the operation is done."""
        return self.replicas[number].wait(wish)

    def together(self, tasks: Sequence[Callable[[], Any]]) -> list:
        """The results of tasks that replicas run in their own threads while they wait: the branches of a condition.

        They write into the trace that the calling thread is writing now, and may meet as usual.
        """
        outer, wishes = self.trace, [r.wish for r in self.replicas]
        self.trace = _core.current_trace()
        for r, task in zip(self.replicas, tasks, strict=True):
            r.task = task
        try:
            return self._finish()
        finally:
            self.trace = outer
            for r, wish in zip(self.replicas, wishes, strict=True):
                r.finished, r.wish = r.done, wish

    def _finish(self) -> list:
        """Gives replicas their turns until all have finished; returns their results."""
        while not all(r.finished for r in self.replicas):
            self._take_turns()
            self._meet()
        return [r.result for r in self.replicas]

    def _take_turns(self) -> None:
        for r in self.replicas:
            if r.finished:
                continue
            self._running = r
            self._switch(r.number)
            r.give_turn()
            self._running = None
            self._switch(None)
            if r.error is not None:
                raise r.error

    def _meet(self) -> None:
        """Performs the operation that all replicas wait for."""
        waiting = [r for r in self.replicas if not r.finished]
        if not waiting:
            return
        wishes = [r.wish for r in waiting if r.wish is not None]
        first = wishes[0]
        if len(wishes) < self.count or any(w.what != first.what for w in wishes):
            error: BaseException = RuntimeError(self._disagreement())
        else:
            try:
                with _core.Scope(recording=False, trace=None) if first.apart else contextlib.nullcontext():
                    results = first.fulfil([w.value for w in wishes])
                for w, result in zip(wishes, results, strict=True):
                    w.result = result
                return
            except BaseException as e:
                error = e
        # Raised in a replica, so that the traceback shows the line that requested the operation.
        waiting[0].end(error)
        raise waiting[0].error or error

    def _disagreement(self) -> str:
        said = []
        for r in self.replicas:
            said.append(
                f"replica {r.number} has returned"
                if r.finished
                else f"replica {r.number} waits for {r.wish.words if r.wish else 'nothing'}"
            )
        return (
            f"strategy.run: replicas must run the same collective operations in the same order; {'; '.join(said)}. Hint: do "
            "not let a replica skip an all_reduce, a merge_call, an optimizer's step, or an assignment."
        )

    def _end(self) -> None:
        """Ends the replicas that still run or wait."""
        running = self._running
        for r in sorted(self.replicas, key=lambda r: r is not running):
            r.end(_Ended(), is_running=r is running and r.wish is None)


def _open_scopes(trace: Any, tapes: tuple) -> list[Callable[[], contextlib.AbstractContextManager]]:
    """Functions that create the contexts that this thread has open, for use in another thread."""
    tracker, watcher, prefix = _core.assign_tracker(), _core.op_watcher(), scopes.current_scope()
    changes: list[dict] = [
        *([{"tapes": tapes}] if tapes else []),
        *([{"trace": trace}] if trace is not None else []),
        *([{"tracker": tracker}] if tracker is not None else []),
        *([{"watcher": watcher}] if watcher is not None else []),
    ]
    makes: list[Callable[[], Any]] = [partial(_core.Scope, **change) for change in changes]
    if prefix:
        makes.append(partial(scopes._prefixes.to, prefix))
    for stack in (scopes.creators, counters._counters):
        makes += [partial(stack.to, x) for x in stack.now()]
    for setting in (random._inside, random._numbered, random._replay, lines._record, writer._condition):
        makes.append(partial(setting.to, setting.now()))
    for cell in (writer.default_writer, writer.default_step):
        makes.append(partial(cell.to, cell.get()))
    return makes + [carrier() for carrier in carriers]
