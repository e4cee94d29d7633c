"""A crash at any moment of a save leaves the last good checkpoint, whole and named."""

import builtins
import os
import warnings

import pytest

import gradtape as tf
from gradtape.train import files

LIMIT = 100


class Stop(BaseException):
    """The simulated crash, not caught by `except Exception`."""


class Steps:
    """Counts every step of writing, and ends the program at one of them."""

    def __init__(self, monkeypatch, at, end):
        self.left = at
        self.end = end
        for name in ("fsync", "replace", "unlink"):
            monkeypatch.setattr(files.os, name, self.counted(getattr(os, name)))
        monkeypatch.setattr(files, "open", self.open, raising=False)

    def step(self):
        self.left -= 1
        if self.left == 0:
            self.end()

    def counted(self, function):
        def call(*args):
            self.step()
            return function(*args)

        return call

    def open(self, path, mode="r", **kwargs):
        if "w" not in mode:
            return builtins.open(path, mode, **kwargs)
        builtins.open(path, mode, **kwargs).close()
        self.step()
        return Writing(builtins.open(path, mode, **kwargs), self)


class Writing:
    """A file that is written chunk by chunk, half a chunk before each possible end."""

    def __init__(self, file, steps):
        self.file, self.steps = file, steps

    def write(self, chunk):
        half = len(chunk) // 2
        self.file.write(bytes(memoryview(chunk)[:half]))
        self.file.flush()
        self.steps.step()
        self.file.write(bytes(memoryview(chunk)[half:]))

    def flush(self):
        self.file.flush()

    def fileno(self):
        return self.file.fileno()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.file.close()


def raise_stop():
    raise Stop


def state():
    v, w = tf.Variable([1.0, 2.0]), tf.Variable(7)
    return v, tf.train.Checkpoint(v=v, w=w)


def check(folder, after):
    """The checkpoint on disk is one of the two states, complete, and a later run continues from it."""
    v, checkpoint = state()
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1)
    newest = tf.train.latest_checkpoint(folder)
    assert newest is not None and manager.latest_checkpoint == newest
    checkpoint.restore(newest).assert_consumed()
    now = v.numpy().tolist()
    assert now in ([1.0, 2.0], [3.0, 4.0]), now
    if after:
        assert now == [3.0, 4.0]
    v.assign([5.0, 6.0])
    manager.save()
    v.assign([0.0, 0.0])
    checkpoint.restore(tf.train.latest_checkpoint(folder)).assert_consumed()
    assert v.numpy().tolist() == [5.0, 6.0]
    assert not [p.name for p in folder.iterdir() if p.name.endswith(".part") and "ckpt-1" not in p.name]
    return now


def save_twice(folder, prepare):
    v, checkpoint = state()
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1)
    manager.save()
    v.assign([3.0, 4.0])
    prepare()
    manager.save()


def test_raising_at_every_step(tmp_path, monkeypatch):
    seen = []
    for at in range(1, LIMIT):
        folder = tmp_path / str(at)
        with monkeypatch.context() as patch:
            try:
                save_twice(folder, lambda at=at, patch=patch: Steps(patch, at, raise_stop))
                done = True
            except Stop:
                done = False
        seen.append(check(folder, done))
        if done:
            break
    assert done and at > 15, "every step was tried"
    # Until the new one is named, the old one is the latest; from then on the new one.
    assert seen == sorted(seen)
    assert seen[0] == [1.0, 2.0] and seen[-1] == [3.0, 4.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")
def test_being_killed_at_every_step(tmp_path, monkeypatch):
    for at in range(1, LIMIT):
        folder = tmp_path / str(at)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about forking with threads: the child only saves
            child = os.fork()
        if child == 0:
            save_twice(folder, lambda at=at: Steps(monkeypatch, at, lambda: os._exit(9)))
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 9)
        check(folder, code == 0)
        if code == 0:
            break
    assert code == 0 and at > 15


def test_a_failed_save_is_not_counted(tmp_path, monkeypatch):
    v, checkpoint = state()
    checkpoint.save(tmp_path / "ck")
    with monkeypatch.context() as patch:
        Steps(patch, 3, raise_stop)
        with pytest.raises(Stop):
            checkpoint.save(tmp_path / "ck")
    assert checkpoint.save_counter.numpy() == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint", "ck-1.index", "ck-1.safetensors"]


def test_a_full_disk(tmp_path, monkeypatch):
    def full():
        raise OSError(28, "No space left on device")

    v, checkpoint = state()
    first = checkpoint.save(tmp_path / "ck")
    Steps(monkeypatch, 4, full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(tmp_path / "ck")
    assert tf.train.latest_checkpoint(tmp_path) == first
