"""Files of checkpoints, written so that a crash at any moment leaves the last good one.

A file is written to a temporary name, flushed to disk, and then moved to its place in one step. The file
`checkpoint` of a folder, which names the newest checkpoint, is written the same way, last.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

from gradtape._src.base.errors import NotFoundError

_log = logging.getLogger("gradtape")

DATA = ".safetensors"
# Only a marker: programs look for the index file of TensorFlow's checkpoints to see whether there is a checkpoint.
INDEX = ".index"
_STATE = "checkpoint"
# The fields of the file `checkpoint`.
_KINDS = {
    "model_checkpoint_path": str, "all_model_checkpoint_paths": str,
    "all_model_checkpoint_timestamps": float, "last_preserved_timestamp": float,
}  # fmt: skip
_FIELD = re.compile(r'^\s*(\w+):\s*(?:"((?:[^"\\]|\\.)*)"|(\S+))\s*$')


def write(path: str, chunks: Iterable[Any]) -> None:
    """Writes a file so that it is either complete, or as it was before."""
    part = path + ".part"
    try:
        with open(part, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    _sync_folder(os.path.dirname(path) or ".")


def _sync_folder(folder: str) -> None:
    """Flushes the names in a folder to disk, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def data_of(path: Any) -> str:
    """The file that holds the values of a checkpoint named by its prefix (or by the file itself)."""
    prefix = os.fspath(path)
    return prefix if prefix.endswith(DATA) else prefix + DATA


def exists(path: Any) -> bool:
    """Whether there is a checkpoint with this prefix, of ours or TensorFlow's."""
    return os.path.isfile(data_of(path)) or is_foreign(path)


def is_foreign(path: Any) -> bool:
    """Whether there is a checkpoint with this prefix that TensorFlow wrote."""
    prefix = os.fspath(path)
    return os.path.isfile(prefix + INDEX) and bool(_shards(prefix))


def _shards(prefix: str) -> list[str]:
    """The files that hold the values of a checkpoint of TensorFlow's."""
    return glob.glob(f"{glob.escape(prefix)}.data-?????-of-?????")


def remove(path: str) -> None:
    """Deletes a checkpoint; missing files are ignored."""
    for name in (path + INDEX, data_of(path), *_shards(path)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def is_inside(path: str, folder: str) -> bool:
    """Whether the files of a checkpoint are in a folder, or below it, after resolving links."""
    parent, name = os.path.split(path)
    real, inside = os.path.realpath(folder), os.path.realpath(parent)
    return os.path.commonpath((real, inside)) == real and name not in ("", ".", "..")


# ---- the file `checkpoint` ------------------------------------------------------------------------


class CheckpointState:
    """The checkpoints of a folder, as listed in the file `checkpoint`.

    Attributes:
      model_checkpoint_path: the newest one. all_model_checkpoint_paths: all that exist, oldest first.
      all_model_checkpoint_timestamps: the times when they were written, in seconds since 1970.
      last_preserved_timestamp: the time when the last one that is never deleted was written.
    """

    def __init__(
        self,
        model_checkpoint_path: str = "",
        all_model_checkpoint_paths: Sequence[str] = (),
        all_model_checkpoint_timestamps: Sequence[float] = (),
        last_preserved_timestamp: float = 0.0,
    ) -> None:
        self.model_checkpoint_path = model_checkpoint_path
        self.all_model_checkpoint_paths = list(all_model_checkpoint_paths)
        self.all_model_checkpoint_timestamps = list(all_model_checkpoint_timestamps)
        self.last_preserved_timestamp = last_preserved_timestamp

    def __str__(self) -> str:
        lines = [f"model_checkpoint_path: {_quoted(self.model_checkpoint_path)}"]
        lines += [f"all_model_checkpoint_paths: {_quoted(p)}" for p in self.all_model_checkpoint_paths]
        lines += [f"all_model_checkpoint_timestamps: {t!r}" for t in self.all_model_checkpoint_timestamps]
        if self.last_preserved_timestamp:
            lines.append(f"last_preserved_timestamp: {self.last_preserved_timestamp!r}")
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return str(self)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)


def _unquoted(text: str) -> str:
    """A quoted string as protobuf writes it: bytes beyond ASCII are numbers, `\\303\\244`."""

    def plain(match: re.Match[bytes]) -> bytes:
        word = match[1]
        if word[:1].isdigit() and word[0] < 0x38:
            return bytes([int(word, 8) & 255])
        return bytes([int(word[1:], 16)]) if len(word) > 1 else {b"n": b"\n", b"t": b"\t"}.get(word, word)

    return os.fsdecode(_ESCAPE.sub(plain, os.fsencode(text)))


def update_state(
    folder: str,
    newest: str,
    every: Sequence[str] | None = None,
    timestamps: Sequence[float] = (),
    last_preserved: float = 0.0,
    filename: str | None = None,
) -> None:
    """Writes the file `checkpoint`; paths in the same folder are written relative to it, so that it can be moved."""

    def short(path: str) -> str:
        inside = os.path.relpath(path, folder) if os.path.isabs(path) == os.path.isabs(folder) else path
        return path if inside.startswith("..") else inside

    paths = [newest] if every is None else list(every)
    if newest not in paths:
        paths.append(newest)
    state = CheckpointState(short(newest), [short(p) for p in paths], timestamps, last_preserved)
    write(os.path.join(folder, filename or _STATE), [str(state).encode()])


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> CheckpointState | None:
    """The contents of the file `checkpoint` of a folder; None if there is no such file, or it is damaged."""
    folder = os.fspath(checkpoint_dir)
    path = os.path.join(folder, latest_filename or _STATE)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except OSError as e:
        if not isinstance(e, (FileNotFoundError, NotADirectoryError)):
            _log.warning("%s: cannot be read: %s. Checkpoint ignored", path, e)
        return None
    state = CheckpointState()
    for line in filter(str.strip, text.splitlines()):
        match = _FIELD.match(line)
        name, word, number = match.groups() if match else ("", None, None)
        try:
            given: Any = word if _KINDS[name] is str else number
            value: Any = _whole(folder, _unquoted(given)) if _KINDS[name] is str else float(given)
        except (KeyError, TypeError, ValueError):
            _log.warning("%s: not a line of a checkpoint file: %r. Checkpoint ignored", path, line)
            return None
        if name.startswith("all_"):
            getattr(state, name).append(value)
        else:
            setattr(state, name, value)
    if not state.model_checkpoint_path:
        _log.warning("%s: Invalid checkpoint state loaded from %s", path, folder)
        return None
    return state


def _whole(folder: str, path: str) -> str:
    if "\0" in path:
        raise ValueError("a path has no zeros")
    return path if os.path.isabs(path) else os.path.join(folder, path)


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The prefix of the newest checkpoint in a folder, or None.

    >>> import gradtape as tf
    >>> tf.train.latest_checkpoint("/no/such/folder")
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    if exists(state.model_checkpoint_path):
        return state.model_checkpoint_path
    _log.error("Couldn't match files for checkpoint %s", state.model_checkpoint_path)
    return None


def find(path: Any) -> str:
    """The prefix of the checkpoint given by a prefix, a file, or a folder with a newest one.

    Raises:
      ValueError: if a folder has no checkpoint.
      NotFoundError: if there is no checkpoint with this prefix.
    """
    prefix = os.fspath(path)
    if os.path.isdir(prefix) and not exists(prefix):
        newest = latest_checkpoint(prefix)
        if newest is None:
            raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {prefix}")
        return newest
    if not exists(prefix):
        raise not_found(prefix)
    return prefix


def not_found(prefix: str) -> NotFoundError:
    return NotFoundError(
        None,
        None,
        f"Failed to find any matching files for {prefix}; expected {data_of(prefix)}. Hint: the path is a "
        "prefix such as 'folder/ckpt-1'; tf.train.latest_checkpoint(folder) gives the newest.",
    )


def checkpoints_iterator(
    checkpoint_dir: Any, min_interval_secs: float = 0, timeout: float | None = None, timeout_fn: Any = None
) -> Iterable[str]:
    """Yields the newest checkpoint of a folder, repeatedly as new ones are written.

    Args:
      min_interval_secs: the least time between two of them.
      timeout: the number of seconds to wait for a new one; None waits forever.
      timeout_fn: called after a timeout; the iteration ends when it returns True, or if it is None.
    """
    last = None
    while True:
        newest = _wait_for_new(checkpoint_dir, last, timeout)
        if newest is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        start = time.monotonic()
        last = newest
        yield newest
        time.sleep(max(0.0, start + min_interval_secs - time.monotonic()))


def _wait_for_new(folder: Any, last: str | None, timeout: float | None, pause: float = 1.0) -> str | None:
    stop = None if timeout is None else time.monotonic() + timeout
    while True:
        newest = latest_checkpoint(folder)
        if newest is not None and newest != last:
            return newest
        left = pause if stop is None else stop - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(pause, left))
