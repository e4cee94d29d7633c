"""`tf.train.ClusterSpec`, which describes a cluster, and `tf.train.Coordinator`, which stops threads."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from gradtape._src.base.errors import OutOfRangeError
from gradtape._src.base.locks import Lock


class ClusterSpec:
    """Names of jobs, each with the addresses of its tasks. Nothing connects to them.

    Args:
      cluster: a dictionary from the name of a job to a list of addresses, or to a dictionary from
        the number of a task to its address; or another ClusterSpec.

    >>> import gradtape as tf
    >>> cluster = tf.train.ClusterSpec({"worker": ["a:2222", "b:2222"]})
    >>> cluster.num_tasks("worker"), cluster.task_address("worker", 1)
    (2, 'b:2222')
    """

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            cluster = cluster.as_dict()
        if not isinstance(cluster, dict):
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, "
                f"or a `ClusterSpec`; got {type(cluster).__name__}."
            )
        self._jobs: dict[str, dict[int, str]] = {}
        for job, tasks in cluster.items():
            if isinstance(tasks, str):
                raise TypeError(f"The tasks of job {job!r} must be a list or a dictionary; got {tasks!r}.")
            numbered = tasks.items() if isinstance(tasks, dict) else enumerate(tasks)
            self._jobs[job] = {int(i): address for i, address in numbered}

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def _job(self, name: str) -> dict[int, str]:
        if name not in self._jobs:
            raise ValueError(f"No such job in cluster: {name!r}")
        return self._jobs[name]

    def num_tasks(self, job_name: str) -> int:
        """The number of tasks of a job."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of the tasks of a job."""
        return sorted(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task."""
        if task_index not in self._job(job_name):
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return self._job(job_name)[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job by number; None for numbers without a task."""
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def as_dict(self) -> dict[str, Any]:
        """The dictionary that it was created from."""
        return {
            job: [tasks[i] for i in sorted(tasks)]
            if sorted(tasks) == list(range(len(tasks)))
            else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __ne__(self, other: Any) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ClusterSpec({', '.join(f'{k!r}: {v!r}' for k, v in sorted(self.as_dict().items()))})"


class Coordinator:
    """Stops several threads together: one requests a stop, and an exception in one reaches the others.

    >>> import gradtape as tf
    >>> coordinator = tf.train.Coordinator()
    >>> coordinator.should_stop(), coordinator.request_stop(), coordinator.should_stop()
    (False, None, True)
    """

    def __init__(self, clean_stop_exception_types: tuple[type[BaseException], ...] | None = None) -> None:
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (OutOfRangeError,)
        self._clean = tuple(clean_stop_exception_types)
        self._lock = Lock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._threads: set[threading.Thread] = set()
        self._joined = False

    @property
    def joined(self) -> bool:
        """Whether `join` has ended."""
        return self._joined

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stop.is_set()

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop; an exception is raised again by `join`."""
        with self._lock:
            if isinstance(ex, tuple):
                ex = ex[1]
            if ex is not None and not isinstance(ex, self._clean) and not self._stop.is_set():
                self._error = ex
            self._stop.set()

    def clear_stop(self) -> None:
        """Clears the request, and an exception."""
        with self._lock:
            self._joined, self._error = False, None
            self._stop.clear()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until a stop is requested; returns whether it was."""
        return self._stop.wait(timeout)

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context in which an exception requests a stop."""
        try:
            yield
        except BaseException:
            self.request_stop(sys.exc_info()[1])

    def register_thread(self, thread: threading.Thread) -> None:
        """Registers a thread for `join`."""
        with self._lock:
            self._threads.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits for threads to end; raises the exception that stopped them.

        Raises:
          RuntimeError: if threads are still alive some time after a stop was requested.
        """
        waiting = list(self._threads.union(threads or ()))
        while any(t.is_alive() for t in waiting) and not self._stop.wait(0.05):
            pass
        end = time.monotonic() + stop_grace_period_secs
        while any(t.is_alive() for t in waiting) and time.monotonic() < end:
            time.sleep(0.01)
        alive = [t.name for t in waiting if t.is_alive()]
        with self._lock:
            self._joined, self._threads = True, set()
        self.raise_requested_exception()
        if alive and not ignore_live_threads:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(alive)}")

    def raise_requested_exception(self) -> None:
        """Raises the exception that a stop was requested with."""
        with self._lock:
            if self._error is not None:
                raise self._error
