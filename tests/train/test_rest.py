"""tf.train without checkpoints: examples, moving averages, clusters, coordinators."""

import pickle
import threading

import numpy as np
import pytest

import gradtape as tf

T = tf.train


def example():
    return T.Example(
        features=T.Features(
            feature={
                "label": T.Feature(int64_list=T.Int64List(value=[3, -1, 1 << 40])),
                "image": T.Feature(bytes_list=T.BytesList(value=[b"\x00\xffabc"])),
                "x": T.Feature(float_list=T.FloatList(value=[0.5, 1.25])),
                "none": T.Feature(int64_list=T.Int64List(value=[])),
            }
        )
    )


def test_example_as_bytes():
    """The bytes are those of TensorFlow's message with one feature."""
    one = T.Example(
        features=T.Features(feature={"a": T.Feature(int64_list=T.Int64List(value=[3, -1, 1 << 40]))})
    )
    assert one.SerializeToString().hex() == (
        "0a1c0a1a0a01611215" + "1a130a1103ffffffffffffffffff01808080808020"
    )
    floats = T.Feature(float_list=T.FloatList(value=[0.5]))
    assert floats.SerializeToString().hex() == "12060a040000003f"
    assert T.BytesList(value=[b"ab", b""]).SerializeToString().hex() == "0a0261620a00"


def test_example_round_trip():
    made = example()
    data = made.SerializeToString()
    for again in (T.Example.FromString(data), pickle.loads(pickle.dumps(made))):
        assert again == made and again.SerializeToString() == data
    feature = T.Example.FromString(data).features.feature
    assert feature["label"].int64_list.value == [3, -1, 1 << 40]
    assert feature["image"].bytes_list.value[0] == b"\x00\xffabc"
    assert feature["x"].float_list.value == [0.5, 1.25]
    assert feature["x"].WhichOneof("kind") == "float_list" and feature["none"].HasField("int64_list")
    assert made.ByteSize() == len(data)


def test_example_piece_by_piece():
    made = T.Example()
    made.features.feature["n"].int64_list.value.extend([1, 2])
    made.features.feature["n"].int64_list.value.append(3)
    assert T.Example.FromString(made.SerializeToString()).features.feature["n"].int64_list.value == [1, 2, 3]
    copied = T.Example()
    copied.CopyFrom(made)
    assert copied == made and copied != example()
    assert str(made) == (
        'features {\n  feature {\n    key: "n"\n    value {\n      int64_list {\n        value: 1\n'
        "        value: 2\n        value: 3\n      }\n    }\n  }\n}\n"
    )


def test_values_that_are_not_packed():
    """Older writers put each number into a field of its own."""
    assert T.Int64List.FromString(bytes.fromhex("08010802")).value == [1, 2]
    assert T.FloatList.FromString(bytes.fromhex("0d0000003f0d0000803f")).value == [0.5, 1.0]


def test_numpy_values_and_wrong_ones():
    assert T.Int64List(value=np.arange(3)).value == [0, 1, 2]
    assert T.FloatList(value=np.ones(2, np.float64)).value == [1.0, 1.0]
    assert T.Int64List(value=[tf.constant(4)]).value == [4]
    for bad in (
        lambda: T.Int64List(value=[1.5]),
        lambda: T.BytesList(value=["text"]),
        lambda: T.FloatList(value=["1"]),
    ):
        with pytest.raises(TypeError, match="but expected one of"):
            bad()
    with pytest.raises(TypeError, match="must be a tf.train.Int64List"):
        T.Feature(int64_list=[1])
    with pytest.raises(ValueError, match=r"not a tf.train.Example"):
        T.Example.FromString(b"\x0a\xff")


def test_sequence_example():
    frames = [T.Feature(int64_list=T.Int64List(value=[i])) for i in range(3)]
    made = T.SequenceExample(
        context=T.Features(feature={"id": T.Feature(bytes_list=T.BytesList(value=[b"v"]))}),
        feature_lists=T.FeatureLists(feature_list={"frames": T.FeatureList(feature=frames)}),
    )
    again = T.SequenceExample.FromString(made.SerializeToString())
    assert again == made and again.context.feature["id"].bytes_list.value == [b"v"]
    assert [f.int64_list.value[0] for f in again.feature_lists.feature_list["frames"].feature] == [0, 1, 2]
    assert "feature_lists {" in str(again)


# ---- moving averages ------------------------------------------------------------------------------


def test_moving_average():
    v = tf.Variable([1.0, 2.0], name="v")
    ema = T.ExponentialMovingAverage(0.9)
    ema.apply([v])
    assert ema.average(v).numpy().tolist() == [1.0, 2.0] and not ema.average(v).trainable
    v.assign([2.0, 4.0])
    ema.apply([v])
    np.testing.assert_allclose(ema.average(v).numpy(), [1.1, 2.2], rtol=1e-6)
    assert ema.average_name(v) == "v/ExponentialMovingAverage" and ema.average(tf.Variable(1.0)) is None
    assert ema.variables_to_restore() == {"v/ExponentialMovingAverage": v}


def test_moving_average_with_a_count_and_in_a_function(tmp_path):
    v, n = tf.Variable(0.0), tf.Variable(0)
    ema = T.ExponentialMovingAverage(0.99, num_updates=n)
    step = tf.function(lambda: ema.apply([v]))
    step()
    v.assign(10.0)
    step()
    np.testing.assert_allclose(ema.average(v).numpy(), 9.0, rtol=1e-6)  # decay (1 + 0) / (10 + 0)
    path = T.Checkpoint(ema=ema).save(tmp_path / "ck")
    ema.average(v).assign(0.0)
    T.Checkpoint(ema=ema).restore(path).assert_consumed()
    np.testing.assert_allclose(ema.average(v).numpy(), 9.0, rtol=1e-6)


def test_moving_average_of_wrong_things():
    with pytest.raises(TypeError, match="must be half, float, or double"):
        T.ExponentialMovingAverage(0.9).apply([tf.Variable(1)])
    with pytest.raises(ValueError, match="var_list"):
        T.ExponentialMovingAverage(0.9).apply()


# ---- clusters and threads -------------------------------------------------------------------------


def test_cluster_spec():
    spec = T.ClusterSpec({"worker": ["a:1", "b:2"], "ps": {3: "c:1"}})
    assert spec.jobs == ["worker", "ps"] and spec.num_tasks("ps") == 1 and spec.task_indices("ps") == [3]
    assert spec.task_address("worker", 0) == "a:1" and spec.job_tasks("ps") == [None, None, None, "c:1"]
    assert spec.as_dict() == {"worker": ["a:1", "b:2"], "ps": {3: "c:1"}} and spec and not T.ClusterSpec({})
    assert T.ClusterSpec(spec) == spec and T.ClusterSpec({}) != spec
    with pytest.raises(ValueError, match="No such job in cluster: 'x'"):
        spec.num_tasks("x")
    with pytest.raises(ValueError, match="No task with index 7"):
        spec.task_address("worker", 7)
    with pytest.raises(TypeError, match="must be a dictionary"):
        T.ClusterSpec(["a"])


def test_coordinator():
    c, seen = T.Coordinator(), []

    def work(i):
        with c.stop_on_exception():
            while not c.should_stop():
                seen.append(i)
                if len(seen) > 10:
                    raise ValueError("enough")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    with pytest.raises(ValueError, match="enough"):
        c.join(threads)
    assert c.joined and c.wait_for_stop()
    c.clear_stop()
    assert not c.should_stop()
    c.request_stop(tf.errors.OutOfRangeError(None, None, "the end"))
    c.join([])  # the end of the data is a clean end


def test_missing_names_suggest_others():
    with pytest.raises(
        AttributeError, match="module 'gradtape.train' has no attribute 'MomentumOptimizer': .*SGD"
    ):
        T.MomentumOptimizer  # noqa: B018
