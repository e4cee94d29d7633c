"""DLPack both ways, and the buffer protocol."""

import gc

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.ops import exchange

to_dlpack, from_dlpack = tf.experimental.dlpack.to_dlpack, tf.experimental.dlpack.from_dlpack


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "int32", "float16", "float32", "float64", "complex64"]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_round_trip(dtype, shape):
    x = tf.constant(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype))
    y = from_dlpack(to_dlpack(x))
    assert y.dtype == dtype and y.shape == shape and np.array_equal(x.numpy(), y.numpy())


def test_bfloat16_round_trip():
    x = tf.cast([1.0, 2.5], tf.bfloat16)
    y = from_dlpack(to_dlpack(x))
    assert y.dtype == tf.bfloat16 and tf.cast(y, tf.float32).numpy().tolist() == [1.0, 2.5]


def test_numpy_shares_memory():
    a = np.arange(4, dtype=np.float32)
    x = from_dlpack(a)
    assert np.shares_memory(np.asarray(x), a)
    del a
    gc.collect()
    assert x.numpy().tolist() == [0, 1, 2, 3]
    b = np.from_dlpack(x)
    assert np.shares_memory(b, np.asarray(x)) and not b.flags.writeable


def test_the_memory_outlives_the_tensor():
    a = np.from_dlpack(tf.constant([1.0, 2.0]) * 2.0)
    gc.collect()
    tf.zeros([2]) + 7.0  # would reuse the block
    assert a.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.arange(6.0)[::2],
        np.arange(6.0)[::-1],
        np.frombuffer(np.arange(3.0).tobytes()),
        np.broadcast_to(np.float32(1), (2, 2)),
    ],
    ids=["transposed", "strided", "reversed", "read-only", "broadcast"],
)
def test_arrays_that_cannot_be_shared_are_copied(array):
    assert np.array_equal(from_dlpack(array).numpy(), array)


def test_misaligned_memory_is_copied():
    raw = np.zeros(33, np.uint8)
    array = raw[1:].view(np.float64)
    array[:] = [1, 2, 3, 4]
    assert from_dlpack(array).numpy().tolist() == [1, 2, 3, 4]
    assert tf.constant(array).numpy().tolist() == [1, 2, 3, 4]


def test_capsules_are_used_once():
    capsule = to_dlpack(tf.ones([2]))
    from_dlpack(capsule)
    with pytest.raises(ValueError):
        from_dlpack(capsule)


def test_unused_capsules_free_their_memory(counted_memory):
    before = _core.memory_info()["live_tensors"]
    for _ in range(5):
        to_dlpack(tf.ones([100]))
    gc.collect()
    assert _core.memory_info()["live_tensors"] == before


@pytest.mark.parametrize("wrong", [1.0, None, [1.0], "a", object()])
def test_other_objects_are_refused(wrong):
    with pytest.raises(TypeError, match="DLPack"):
        from_dlpack(wrong)


def test_types_without_counterpart_are_refused():
    with pytest.raises(ValueError, match="float128|longdouble"):
        exchange.from_dlpack(np.zeros(2, np.longdouble))


def test_protocol():
    x = tf.constant([1.0, 2.0])
    assert x.__dlpack_device__() == (1, 0)
    copied = from_dlpack(x.__dlpack__(copy=True))
    assert not np.shares_memory(np.asarray(copied), np.asarray(x))
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
    assert from_dlpack(x) is x


def test_variables_can_be_exported():
    v = tf.Variable([1.0, 2.0])
    a = np.from_dlpack(from_dlpack(to_dlpack(v)))
    v.assign_add([1.0, 1.0])
    assert a.tolist() == [1.0, 2.0]


def test_buffers_are_read_only():
    x = tf.constant([[1, 2], [3, 4]])
    view = memoryview(x)
    assert view.readonly and view.shape == (2, 2) and view.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(TypeError):
        view[0, 0] = 1
    with pytest.raises(BufferError):
        memoryview(tf.cast([1.0], tf.bfloat16))
