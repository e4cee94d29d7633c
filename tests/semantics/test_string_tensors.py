"""Tensors of strings: made from Python strings, moved, compared, joined; as variables, in functions; errors."""

import numpy as np
import pytest

from .lib import tf

A, B = b"a", b"b"

VALUES = [
    (lambda: tf.constant("é"), b"\xc3\xa9"),
    (lambda: tf.constant(b"a\0b\0"), b"a\0b\0"),
    (lambda: tf.constant([b"a\0b\0"]), [b"a\0b\0"]),
    (lambda: tf.constant(np.array(["a", "bc"])), [A, b"bc"]),
    (lambda: tf.constant(np.array(["a", b"bc"], object)), [A, b"bc"]),
    (lambda: tf.constant("x", shape=[1, 2]), [[b"x", b"x"]]),
    (lambda: tf.constant([], tf.string), []),
    (lambda: tf.convert_to_tensor([tf.constant("a"), "b"]), [A, B]),
    (lambda: tf.constant("a") == "a", True),
    (lambda: tf.constant(["a", "b"]) == ["a", "c"], [True, False]),
    (lambda: tf.constant("a") != b"b", True),
    (lambda: tf.equal(["a", "b"], ["a"]), [True, False]),
    (lambda: tf.constant("a") + "b", b"ab"),
    (lambda: "x" + tf.constant(["a", "b"]), [b"xa", b"xb"]),
    (lambda: tf.add([["a"], ["b"]], ["c", "d"]), [[b"ac", b"ad"], [b"bc", b"bd"]]),
    (lambda: tf.zeros([2], tf.string), [b"", b""]),
    (lambda: tf.zeros_like(tf.constant(["a", "b"])), [b"", b""]),
    (lambda: tf.fill([2], "x"), [b"x", b"x"]),
    (lambda: tf.concat([["a"], ["b"]], 0), [A, B]),
    (lambda: tf.stack(["a", "b"]), [A, B]),
    (lambda: tf.gather(["a", "b", "c"], [2, 0]), [b"c", A]),
    (lambda: tf.gather_nd([["a", "b"]], [[0, 1]]), [B]),
    (lambda: tf.where([True, False], ["a", "b"], ["c", "d"]), [A, b"d"]),
    (lambda: tf.where([True, False], "a", "b"), [A, B]),
    (lambda: tf.reverse(["a", "b"], [0]), [B, A]),
    (lambda: tf.transpose([["a", "b"]]), [[A], [B]]),
    (lambda: tf.reshape(["a", "b"], [2, 1]), [[A], [B]]),
    (lambda: tf.pad(["a"], [[1, 1]]), [b"", A, b""]),
    (lambda: tf.pad(["a"], [[1, 1]], constant_values="z"), [b"z", A, b"z"]),
    (lambda: tf.tile(["a"], [3]), [A, A, A]),
    (lambda: tf.repeat(["a", "b"], 2), [A, A, B, B]),
    (lambda: tf.roll(["a", "b"], 1, 0), [B, A]),
    (lambda: tf.expand_dims("a", 0), [A]),
    (lambda: tf.squeeze(["a"]), A),
    (lambda: tf.broadcast_to("a", [2]), [A, A]),
    (lambda: tf.identity("a"), A),
    (lambda: tf.boolean_mask(["a", "b"], [True, False]), [A]),
    (lambda: tf.one_hot([0, 1], 2, on_value="y", off_value="n"), [[b"y", b"n"], [b"n", b"y"]]),
    (lambda: tf.tensor_scatter_nd_update(["a", "b"], [[0]], ["z"]), [b"z", B]),
    (lambda: tf.scatter_nd([[0], [0]], ["y", "z"], [2]), [b"yz", b""]),
    (lambda: tf.constant(["a", "b"])[0], A),
    (lambda: tf.constant([["a", "b"]])[:, ::-1], [[B, A]]),
    (lambda: tf.slice(["a", "b"], [1], [1]), [B]),
    (lambda: tf.size(["a", "b"]), 2),
    (lambda: tf.shape([["a", "b"]]), [1, 2]),
    (lambda: tf.rank("a"), 0),
    (lambda: tf.math.count_nonzero(["a", ""]), 1),
    (lambda: tf.dynamic_stitch([[1], [0]], [["a"], ["b"]]), [B, A]),
    (lambda: tf.reverse_sequence([["a", "b"]], [2], seq_axis=1), [[B, A]]),
    (lambda: tf.ensure_shape("a", []), A),
    (lambda: tf.cast("a", tf.string), A),
    (lambda: tf.unique(["a", "b", "a"]).y, [A, B]),
    (lambda: tf.unique(["a", "b", "a"]).idx, [0, 1, 0]),
    (lambda: tf.split(["a", "b"], 2)[1], [B]),
    (lambda: tf.unstack(["a", "b"])[1], B),
    (lambda: tf.dynamic_partition(["a", "b"], [0, 1], 2)[1], [B]),
]


def plain(tensor):
    value = tensor.numpy()
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


@pytest.mark.parametrize(("program", "expected"), VALUES)
@pytest.mark.parametrize("how", ["eager", "function"])
def test_values(program, expected, how):
    assert plain(program() if how == "eager" else tf.function(program)()) == expected


REFUSED = [
    (lambda: tf.constant("a", tf.float32), TypeError, "Cannot convert 'a' to EagerTensor of dtype float"),
    (lambda: tf.constant(1, tf.string), TypeError, "Cannot convert 1 to EagerTensor of dtype string"),
    (lambda: tf.constant(["a", 1]), ValueError, "mixed types"),
    (lambda: tf.constant([1, "a"]), ValueError, "mixed types"),
    (lambda: tf.constant(["a", None]), ValueError, "mixed types"),
    (lambda: tf.constant(np.array(["a", 1], object)), ValueError, "Unsupported object type int"),
    (lambda: tf.constant([["a", "b"], ["c"]]), ValueError, "non-rectangular"),
    (lambda: tf.constant("a") * "b", tf.errors.InvalidArgumentError, "string"),
    (lambda: tf.constant("a") < "b", tf.errors.InvalidArgumentError, "string"),
    (lambda: tf.abs("a"), tf.errors.InvalidArgumentError, "string"),
    (lambda: tf.reduce_max(["a"]), tf.errors.InvalidArgumentError, "string"),
    (lambda: tf.matmul([["a"]], [["a"]]), tf.errors.InvalidArgumentError, "string"),
    (lambda: tf.sort(["b", "a"]), tf.errors.InvalidArgumentError, "string"),
    (lambda: tf.constant(["a"]) == tf.constant(1), tf.errors.InvalidArgumentError, "string"),
    (lambda: tf.add(tf.constant(1), tf.constant("a")), tf.errors.InvalidArgumentError, "string tensor"),
    (lambda: tf.concat([tf.constant(["a"]), [1]], 0), TypeError, "Cannot convert .* string"),
    (lambda: tf.cast("1", tf.int32), tf.errors.UnimplementedError, "Cast string to int32"),
    (lambda: tf.cast(1, tf.string), tf.errors.UnimplementedError, "Cast int32 to string"),
    (lambda: tf.constant(["a", "b"]) + ["a", "b", "c"], tf.errors.InvalidArgumentError, "ncompatible shapes"),
]


@pytest.mark.parametrize(("program", "error", "words"), REFUSED)
def test_refused(program, error, words):
    with pytest.raises(error, match=words):
        program()


def test_python():
    s = tf.constant(["a", ""])
    assert s.dtype is tf.string and len(s) == 2 and [t.numpy() for t in s] == [A, b""]
    assert bool(s[0]) and not bool(s[1]) and int(tf.constant("3")) == 3
    assert repr(s) == "<tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a', b''], dtype=object)>"
    assert str(s[0]) == "tf.Tensor(b'a', shape=(), dtype=string)" and f"{s[0]}" == "b'a'"
    assert np.array(s).tolist() == [A, b""] and np.array(s).dtype == object
    array = s.numpy()
    array[0] = b"changed"
    assert s.numpy()[0] == A


def test_variables():
    v = tf.Variable(["a", "b"])
    assert v.dtype is tf.string and plain(v) == [A, B]
    v.assign(["c", "d"])
    v[0].assign("e")
    assert plain(v) == [b"e", b"d"]
    assert plain(v)[1] == b"d"
    w = tf.Variable("hello", dtype=tf.string)
    w.assign(w + "!")
    assert plain(w) == b"hello!"


def test_functions():
    v = tf.Variable("start")

    @tf.function
    def f(x, n):
        if n > 1:
            x = x + "?"
        for _ in tf.range(n):
            x = x + "!"
        v.assign(x[0])
        return x, tf.shape(x), x == "a!", v + "."

    x, shape, same, last = f(tf.constant(["a", "b"]), tf.constant(1))
    assert plain(x) == [b"a!", b"b!"] and plain(shape) == [2] and plain(same) == [True, False]
    assert plain(v) == b"a!" and plain(last) == b"a!."
    assert plain(f(tf.constant(["a", "b"]), tf.constant(2))[0]) == [b"a?!!", b"b?!!"]


def test_functions_of_any_size():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def f(x):
        return tf.concat([x, ["z"]], 0), tf.boolean_mask(x, x != "a")

    assert [plain(y) for y in f(tf.constant(["a", "b"]))] == [[A, B, b"z"], [B]]
    assert [plain(y) for y in f(tf.constant(["c"]))] == [[b"c", b"z"], [b"c"]]


def test_beside_gradients():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        names = tf.constant(["a", "b"])
        y = tf.reduce_sum(tf.where(names == "a", x * x, x))
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 1.0]


def test_map_fn_and_arrays():
    assert plain(tf.map_fn(lambda s: s + "!", tf.constant(["a", "b"]))) == [b"a!", b"b!"]
    array = tf.TensorArray(tf.string, size=2).write(0, "a").write(1, "b")
    assert plain(array.stack()) == [A, B]


def test_ops_that_make_no_strings():
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError, ValueError)):
        tf.eye(2, dtype=tf.string)
