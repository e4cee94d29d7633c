"""`tf.train.CheckpointManager`: numbered checkpoints in a folder, of which the last few are kept."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any

from gradtape.train import files
from gradtape.train.checkpoint import Checkpoint, CheckpointOptions

_log = logging.getLogger("gradtape")


class CheckpointManager:
    """Saves a `Checkpoint` repeatedly, and deletes old files.

    Args:
      checkpoint: what to save.
      directory: the folder. A manager for the same folder continues where an earlier one stopped.
      max_to_keep: the number of checkpoints to keep; None for all of them.
      keep_checkpoint_every_n_hours: in addition, one checkpoint in this many hours is never deleted.
      checkpoint_name: the prefix of the files.
      step_counter: a variable that counts steps; needed for `checkpoint_interval`.
      checkpoint_interval: `save` does nothing until this many steps have passed since the last time.
      init_fn: called by `restore_or_initialize` if there is no checkpoint.
      last_checkpoint_step: the step of the last checkpoint, for a manager created later.

    >>> import tempfile
    >>> import gradtape as tf
    >>> step = tf.Variable(0)
    >>> manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), tempfile.mkdtemp(), max_to_keep=2)
    >>> for _ in range(3):
    ...     path = manager.save()
    >>> [p.rpartition("/")[2] for p in manager.checkpoints]
    ['ckpt-2', 'ckpt-3']
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._max_to_keep = max_to_keep
        self._keep_hours = keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._init_fn = init_fn
        self._last_step = last_checkpoint_step
        # The checkpoints that may be deleted, oldest first, with the time they were written.
        self._kept: dict[str, float] = {}
        now = time.time()
        # A little earlier, so that a manager recreated right after the first save does not keep its file forever.
        self._last_preserved = now - 1
        self._latest: str | None = None
        state = files.get_checkpoint_state(self._directory)
        if state is not None:
            newest, paths = state.model_checkpoint_path, state.all_model_checkpoint_paths
            # Whatever the file says, paths outside of the folder are neither restored nor deleted.
            outside = [p for p in (newest, *paths) if not files.is_inside(p, self._directory)]
            if outside:
                _log.warning("%s: not in the folder: %s. Left alone", self._directory, outside[:3])
            self._latest = newest if newest not in outside else None
            self._last_preserved = min(state.last_preserved_timestamp, now)
            times = state.all_model_checkpoint_timestamps
            if len(times) != len(paths):
                times = [self._last_preserved] * len(paths)
            for path, written in zip(paths, times, strict=True):
                # Checkpoints up to the last one that is never deleted are not deleted either.
                if min(written, now) > self._last_preserved and path not in outside:
                    self._kept[path] = min(written, now)

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The smallest number of steps between two checkpoints."""
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        """The prefix of the newest checkpoint, or None."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The prefixes of the checkpoints, oldest first; without those that are never deleted."""
        return list(self._kept)

    def save(
        self,
        checkpoint_number: Any = None,
        check_interval: bool = True,
        options: CheckpointOptions | None = None,
    ) -> str | None:
        """Saves a checkpoint and deletes old ones.

        Args:
          checkpoint_number: its number; counted by the checkpoint if None.
          check_interval: whether to respect `checkpoint_interval`.

        Returns:
          The prefix of the checkpoint; None if it is not due yet.
        """
        step = None if self._step_counter is None else int(self._step_counter.numpy())
        if self._interval is not None and check_interval and not self._is_due(step):
            return None
        counter = self._checkpoint.save_counter
        if checkpoint_number is None:
            counter.assign_add(1)
            number = int(counter.numpy())
        else:
            number = int(checkpoint_number)
        path = f"{self._prefix}-{number}"
        try:
            self._checkpoint.write(path, options)
        except BaseException:
            if checkpoint_number is None:
                counter.assign_sub(1)
            raise
        self._last_step = step
        self._latest = path
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        # The newest is recorded before old ones are deleted, so that there is always one.
        self._record()
        if self._sweep():
            self._record()
        return path

    def _is_due(self, step: int | None) -> bool:
        return self._last_step is None or (step or 0) >= self._last_step + (self._interval or 0)

    def _record(self) -> None:
        files.update_state(
            self._directory,
            self._latest or "",
            list(self._kept),
            list(self._kept.values()),
            self._last_preserved,
        )

    def _sweep(self) -> bool:
        """Deletes surplus checkpoints; returns whether there were any."""
        if self._max_to_keep is None:
            return False
        before = len(self._kept)
        while len(self._kept) > self._max_to_keep:
            path, written = next(iter(self._kept.items()))
            del self._kept[path]
            if self._keep_hours is not None and written - 3600 * self._keep_hours >= self._last_preserved:
                self._last_preserved = written
            else:
                files.remove(path)
        return len(self._kept) < before

    def sync(self) -> None:
        """Does nothing: files are written before `save` returns."""

    def restore_or_initialize(self) -> str | None:
        """Restores the newest checkpoint, or calls `init_fn` if there is none.

        Returns:
          The prefix of the checkpoint, or None.
        """
        if self._latest is not None:
            self._checkpoint.restore(self._latest)
            if self._interval is not None:
                self._last_step = int(self._step_counter.numpy())
            return self._latest
        if self._init_fn is not None:
            self._init_fn()
        return None
