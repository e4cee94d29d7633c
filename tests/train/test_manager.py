"""tf.train.CheckpointManager: kept checkpoints, a second manager, intervals."""

import pytest

import gradtape as tf
from gradtape.train import manager as manager_module


def names(manager):
    return [p.rpartition("/")[2] for p in manager.checkpoints]


def files(folder):
    return sorted(p.stem for p in folder.glob("*.safetensors"))


@pytest.fixture
def checkpoint():
    return tf.train.Checkpoint(step=tf.Variable(0))


def test_d3_keeps_the_last(tmp_path, checkpoint):
    manager = tf.train.CheckpointManager(checkpoint, tmp_path / "new", max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.checkpoints == []
    paths = [manager.save() for _ in range(4)]
    assert paths[0] == str(tmp_path / "new" / "ckpt-1")
    assert names(manager) == files(tmp_path / "new") == ["ckpt-3", "ckpt-4"]
    assert sorted(p.suffix for p in (tmp_path / "new").iterdir()) == [""] + 2 * [".index"] + 2 * [
        ".safetensors"
    ]
    assert manager.latest_checkpoint == paths[-1] == tf.train.latest_checkpoint(tmp_path / "new")
    assert manager.directory == str(tmp_path / "new") and manager.checkpoint is checkpoint


def test_d3_all_kept_and_other_names(tmp_path, checkpoint):
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), None, checkpoint_name="model")
    for _ in range(4):
        manager.save()
    assert names(manager) == ["model-1", "model-2", "model-3", "model-4"]
    assert manager.save(checkpoint_number=50).endswith("model-50")
    assert checkpoint.save_counter.numpy() == 4


def test_d3_a_second_manager_continues(tmp_path, checkpoint):
    first = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    first.save()
    first.save()
    again = tf.train.Checkpoint(step=tf.Variable(0))
    second = tf.train.CheckpointManager(again, tmp_path, max_to_keep=2)
    assert second.latest_checkpoint == first.latest_checkpoint and names(second) == ["ckpt-1", "ckpt-2"]
    assert second.restore_or_initialize() == first.latest_checkpoint
    assert second.save().endswith("ckpt-3")
    assert names(second) == files(tmp_path) == ["ckpt-2", "ckpt-3"]


def test_d3_restore_or_initialize(tmp_path, checkpoint):
    called = []
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, 3, init_fn=lambda: called.append(1))
    assert manager.restore_or_initialize() is None and called == [1]
    checkpoint.step.assign(5)
    path = manager.save()
    checkpoint.step.assign(0)
    assert manager.restore_or_initialize() == path and called == [1]
    assert checkpoint.step.numpy() == 5


def test_intervals(tmp_path, checkpoint):
    manager = tf.train.CheckpointManager(
        checkpoint, tmp_path, max_to_keep=5, step_counter=checkpoint.step, checkpoint_interval=3
    )
    assert manager.checkpoint_interval == 3
    saved = []
    for step in range(8):
        checkpoint.step.assign(step)
        saved.append(manager.save() is not None)
    assert saved == [True, False, False, True, False, False, True, False]
    assert manager.save(check_interval=False) is not None
    with pytest.raises(ValueError, match="`step_counter` should be passed"):
        tf.train.CheckpointManager(checkpoint, tmp_path, 1, checkpoint_interval=3)


def test_one_every_so_many_hours_stays(tmp_path, checkpoint, monkeypatch):
    now = [1000.0 * 3600]
    monkeypatch.setattr(manager_module.time, "time", lambda: now[0])
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=2)
    for _ in range(8):
        now[0] += 3600
        manager.save()
    assert names(manager) == ["ckpt-8"]
    assert files(tmp_path) == ["ckpt-2", "ckpt-4", "ckpt-6", "ckpt-8"]
    # A second manager knows which one was the last to stay.
    again = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=2)
    now[0] += 3600
    again.save()
    assert files(tmp_path) == ["ckpt-2", "ckpt-4", "ckpt-6", "ckpt-8", "ckpt-9"]


@pytest.mark.parametrize("bad", [0, -1])
def test_max_to_keep(tmp_path, checkpoint, bad):
    with pytest.raises(ValueError, match="Expected a positive integer or `None` for `max_to_keep`"):
        tf.train.CheckpointManager(checkpoint, tmp_path, bad)


def test_files_that_are_gone_are_no_error(tmp_path, checkpoint):
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=1)
    manager.save()
    for p in tmp_path.glob("ckpt-1*"):
        p.unlink()
    manager.save()
    assert files(tmp_path) == ["ckpt-2"]
