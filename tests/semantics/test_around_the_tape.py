"""Features around a tape: checkpoints (D3), strategies and devices (D5), debugging (D6), versions (D9)."""

import os

import numpy as np
import pytest

from .lib import differs_on_tensorflow, tf

CT = tf.train.Checkpoint
SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


class Net(tf.Module):
    def __init__(self, value=0.0):
        super().__init__()
        self.w = tf.Variable([value, value])
        self.parts = [tf.Variable(int(value)), {"a": tf.Variable(value)}]
        self._hidden = tf.Variable(value)
        self.number = 3


def names(path):
    every = [n for n, _ in tf.train.list_variables(path) if n != "_CHECKPOINTABLE_OBJECT_GRAPH"]
    assert all(n.endswith(SUFFIX) for n in every)
    return [n.removesuffix(SUFFIX) for n in every]


# ---- D3 ---------------------------------------------------------------------------------------------


def test_D3_save_numbers_and_names(tmp_path):
    checkpoint = CT(net=Net(), step=tf.Variable(7))
    path = checkpoint.save(str(tmp_path / "ck"))
    assert path == str(tmp_path / "ck-1")
    assert checkpoint.save_counter.numpy() == 1 and checkpoint.step.numpy() == 7
    assert names(path) == ["net/_hidden", "net/parts/0", "net/parts/1/a", "net/w", "save_counter", "step"]
    assert os.path.exists(path + ".index") and os.path.exists(tmp_path / "checkpoint")
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    assert tf.train.latest_checkpoint(str(tmp_path / "none")) is None


def test_D3_restore(tmp_path):
    path = CT(net=Net(5.0)).save(str(tmp_path / "ck"))
    net = Net()
    status = CT(net=net).restore(path)
    status.assert_consumed()
    assert net.w.numpy().tolist() == [5.0, 5.0] and net.parts[1]["a"].numpy() == 5.0


def test_D3_write_and_read(tmp_path):
    net = Net(2.0)
    path = CT(net).write(str(tmp_path / "raw"))
    assert path == str(tmp_path / "raw") and not os.path.exists(tmp_path / "checkpoint")
    assert names(path) == ["_hidden", "parts/0", "parts/1/a", "w"]
    net.w.assign([0.0, 0.0])
    CT(net).read(path).assert_consumed()
    assert net.w.numpy().tolist() == [2.0, 2.0]


def test_D3_load_variable(tmp_path):
    path = CT(v=tf.Variable([1.0, 2.0])).save(str(tmp_path / "ck"))
    assert tf.train.load_variable(path, "v" + SUFFIX).tolist() == [1.0, 2.0]
    assert tf.train.load_variable(str(tmp_path), "v" + SUFFIX).tolist() == [1.0, 2.0]
    reader = tf.train.load_checkpoint(path)
    assert reader.has_tensor("v" + SUFFIX) and not reader.has_tensor("w")
    assert reader.get_variable_to_shape_map()["v" + SUFFIX] == [2]
    assert reader.get_variable_to_dtype_map()["v" + SUFFIX] == tf.float32
    with pytest.raises(tf.errors.NotFoundError, match="not found in checkpoint"):
        tf.train.load_variable(path, "w")


def test_D3_missing_files(tmp_path):
    checkpoint = CT(v=tf.Variable(1.0))
    for call in (checkpoint.restore, checkpoint.read, tf.train.list_variables, tf.train.load_checkpoint):
        with pytest.raises(tf.errors.NotFoundError, match="Failed to find any matching files"):
            call(str(tmp_path / "none"))
    with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file"):
        tf.train.load_checkpoint(str(tmp_path))


def test_D3_status(tmp_path):
    path = CT(net=Net(), step=tf.Variable(1)).save(str(tmp_path / "ck"))
    status = CT(net=Net()).restore(path)
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root\).step"):
        status.assert_consumed()
    status.assert_existing_objects_matched()
    more = CT(net=Net(), step=tf.Variable(1), extra=tf.Variable(1.0)).restore(path).expect_partial()
    with pytest.raises(AssertionError, match="Found 1 Python objects that were not bound"):
        more.assert_existing_objects_matched()


def test_D3_restore_of_nothing():
    status = CT(v=tf.Variable(1.0)).restore(None)
    assert status.expect_partial() is status
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        status.assert_consumed()


def test_D3_what_does_not_fit(tmp_path):
    path = CT(v=tf.Variable(1)).save(str(tmp_path / "ck"))
    with pytest.raises(ValueError, match=r"incompatible tensor with shape \(\) .* shape \(2,\)"):
        CT(v=tf.Variable([1, 2])).restore(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not equal original dtype int32"):
        CT(v=tf.Variable(1.0)).restore(path)


@differs_on_tensorflow("variables before the one that does not fit are restored already")
def test_D3_nothing_is_restored_if_one_does_not_fit(tmp_path):
    path = CT(a=tf.Variable(1.0), b=tf.Variable(1.0)).save(str(tmp_path / "ck"))
    a = tf.Variable(0.0)
    with pytest.raises(ValueError, match="incompatible"):
        CT(a=a, b=tf.Variable([1.0, 2.0])).restore(path)
    assert a.numpy() == 0.0


@pytest.mark.parametrize("bad", [3, "text", np.zeros(2)])
def test_D3_what_cannot_be_saved(bad):
    with pytest.raises(ValueError, match="expecting v to be a trackable object"):
        CT(v=bad)


def test_D3_later_objects(tmp_path):
    path = CT(net=Net(5.0)).save(str(tmp_path / "ck"))
    late = tf.Module()
    late.parts = []
    CT(net=late).restore(path).expect_partial()
    late.w = tf.Variable([0.0, 0.0])
    late.parts.append(tf.Variable(0))
    assert late.w.numpy().tolist() == [5.0, 5.0] and late.parts[0].numpy() == 5


def test_D3_manager(tmp_path):
    step = tf.Variable(0)
    manager = tf.train.CheckpointManager(CT(step=step), str(tmp_path), max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.checkpoints == []
    assert manager.restore_or_initialize() is None
    paths = []
    for i in range(3):
        step.assign(i)
        paths.append(manager.save())
    assert paths[0] == str(tmp_path / "ckpt-1")
    assert manager.checkpoints == paths[1:] and manager.latest_checkpoint == paths[2]
    assert not os.path.exists(paths[0] + ".index")
    step.assign(9)
    again = tf.train.CheckpointManager(CT(step=step), str(tmp_path), max_to_keep=2)
    assert again.checkpoints == paths[1:] and again.restore_or_initialize() == paths[2]
    assert step.numpy() == 2 and again.save() == str(tmp_path / "ckpt-4")
    with pytest.raises(ValueError, match="Expected a positive integer or `None` for `max_to_keep`"):
        tf.train.CheckpointManager(CT(step=step), str(tmp_path), max_to_keep=0)


def test_D3_examples():
    T = tf.train
    made = T.Example(features=T.Features(feature={"a": T.Feature(int64_list=T.Int64List(value=[3, -1]))}))
    data = made.SerializeToString()
    assert data.hex() == "0a160a140a0161120f1a0d0a0b03ffffffffffffffffff01"
    assert list(T.Example.FromString(data).features.feature["a"].int64_list.value) == [3, -1]


# ---- D5 ---------------------------------------------------------------------------------------------


def test_D5_one_replica():
    D = tf.distribute
    strategy = D.OneDeviceStrategy("/cpu:0")
    assert strategy.num_replicas_in_sync == 1 and not D.has_strategy()
    with strategy.scope():
        v = tf.Variable(2.0)
        assert (
            D.get_strategy() is strategy and D.get_replica_context() is None and D.in_cross_replica_context()
        )

    def step(x):
        context = D.get_replica_context()
        assert context.num_replicas_in_sync == 1 and int(context.replica_id_in_sync_group) == 0
        return context.all_reduce(D.ReduceOp.SUM, v * x)

    out = strategy.run(step, args=(tf.constant([1.0, 3.0]),))
    assert strategy.reduce(D.ReduceOp.SUM, out, axis=None).numpy().tolist() == [2.0, 6.0]
    assert strategy.reduce("mean", out, axis=0).numpy() == 4.0
    assert len(strategy.experimental_local_results(out)) == 1
    with pytest.raises(ValueError, match="Please provide a TPU Name"):
        D.cluster_resolver.TPUClusterResolver()


def test_D5_devices():
    assert tf.config.list_physical_devices("CPU")[0].device_type == "CPU"
    with tf.device("/CPU:0"):
        assert (tf.constant(1.0) + 1.0).numpy() == 2.0
    with pytest.raises(ValueError, match="Unknown attribute"):
        tf.device("nonsense").__enter__()


# ---- D6 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "x", "y", "sign"),
    [
        ("assert_equal", [1, 2], [1, 3], "=="),
        ("assert_less", [1, 2], [2, 2], "<"),
        ("assert_greater", [1], [1], ">"),
    ],
)
def test_D6_comparisons(check, x, y, sign):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"^m\nCondition x {sign} y did not hold.") as e:
        getattr(tf.debugging, check)(x, y, message="m")
    assert f"First {len(x)} elements of x:\n{np.array(x)}" in e.value.message


def test_D6_check_numerics():
    with pytest.raises(tf.errors.InvalidArgumentError, match="msg : Tensor had NaN values"):
        tf.debugging.check_numerics(tf.constant([1.0, float("nan")]), "msg")
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="Detected Infinity or NaN in output 0 of eager"
        ):
            tf.math.log(tf.constant(0.0))
    finally:
        tf.debugging.disable_check_numerics()
    assert np.isinf(tf.math.log(tf.constant(0.0)).numpy())


# ---- D9 ---------------------------------------------------------------------------------------------


def test_D9_versions():
    assert tf.__version__ >= "2.0" and tf.__version__.startswith("2.") and tf.version.VERSION.startswith("2.")
    assert tf.compat.v2.constant(1.0).numpy() == 1.0 and tf.compat.v1.executing_eagerly()


def test_D9_optimizer_of_version_1():
    v, step = tf.Variable(2.0), tf.compat.v1.train.get_or_create_global_step()
    before = step.numpy()
    tf.compat.v1.train.MomentumOptimizer(0.25, 0.5).minimize(lambda: v * v, global_step=step)
    assert v.numpy() == 1.0 and step.numpy() == before + 1
