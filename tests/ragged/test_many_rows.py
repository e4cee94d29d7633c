"""Ragged tensors with so many rows that several threads move them: values and gradients are those of NumPy, row by row."""

import numpy as np
import pytest

import gradtape as tf

COUNT = 20_000


def rows_of(inner=(), dtype=np.float32, seed=0):
    """A list of arrays, and the ragged tensor of them; every fifth row is empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 21, COUNT)
    lengths[::5] = 0
    splits = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.integers(-50, 50, (splits[-1], *inner)).astype(
        dtype
    )  # integers, so that sums do not depend on the order
    return np.split(values, splits[1:-1]), tf.RaggedTensor.from_row_splits(values, splits)


def padded(rows, width, default):
    inner = rows[0].shape[1:]
    out = np.full((len(rows), width, *inner), default, rows[0].dtype)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row[:width]
    return out


CALLS = {
    "to_tensor": (lambda x: x.to_tensor(), lambda r: padded(r, 20, 0)),
    "default": (lambda x: x.to_tensor(1), lambda r: padded(r, 20, 1)),
    "wider": (lambda x: x.to_tensor(shape=[None, 25, *x.shape[2:]]), lambda r: padded(r, 25, 0)),
    "cut": (lambda x: x.to_tensor(1, shape=[COUNT - 3, 5, *x.shape[2:]]), lambda r: padded(r[:-3], 5, 1)),
    "slice": (lambda x: x[:, 1:-2], lambda r: [a[1:-2] for a in r]),
    "steps": (lambda x: x[:, ::-2], lambda r: [a[::-2] for a in r]),
    "rows": (lambda x: x[::-3], lambda r: r[::-3]),
    "concat": (lambda x: tf.concat([x, x[:, :3]], 1), lambda r: [np.concatenate([a, a[:3]]) for a in r]),
    "gather": (lambda x: tf.gather(x, [5, 1, 5, 19_999]), lambda r: [r[5], r[1], r[5], r[-1]]),
    "tile": (lambda x: tf.tile(x, [1, 2, *[1] * (x.shape.rank - 2)]), lambda r: [np.concatenate([a, a]) for a in r]),
    "sum of columns": (lambda x: tf.reduce_sum(x, 0), lambda r: padded(r, 20, 0).sum(0, dtype=r[0].dtype)),
    "there and back": (
        lambda x: tf.RaggedTensor.from_tensor(x.to_tensor(), lengths=x.row_lengths()), lambda r: r,
    ),
}  # fmt: skip


@pytest.mark.parametrize("inner, dtype", [((), np.float32), ((2,), np.int64), ((), np.int8)], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_values(name, inner, dtype):
    function, expected = CALLS[name]
    listed, rt = rows_of(inner, dtype)
    actual, expected = function(rt), expected(listed)
    if isinstance(actual, tf.RaggedTensor):
        np.testing.assert_array_equal(actual.row_lengths(), [len(row) for row in expected])
        actual, expected = actual.flat_values, np.concatenate(expected)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", CALLS)
def test_gradients(name):
    """The calls are linear: the product of a result and weights has the weights as its gradient."""
    function, _ = CALLS[name]
    listed, rt = rows_of()
    flat, splits = rt.values, rt.row_splits
    rng = np.random.default_rng(1)

    with tf.GradientTape() as tape:
        tape.watch(flat)
        out = function(tf.RaggedTensor.from_row_splits(flat, splits))
        out = out.flat_values if isinstance(out, tf.RaggedTensor) else out
        weights = rng.integers(-5, 5, out.shape).astype(np.float32)
        total = tf.reduce_sum(out * weights)
    gradient = np.asarray(tf.convert_to_tensor(tape.gradient(total, flat)))

    if name == "sum of columns":
        places = np.concatenate([np.arange(len(row)) for row in listed])
        np.testing.assert_array_equal(gradient, weights[places])
        return
    # Where each element of the result comes from: the call itself, of the numbers of the values. 0 and 1 are defaults.
    numbers = np.arange(2, len(flat) + 2)
    source = function(tf.RaggedTensor.from_row_splits(numbers, splits))
    source = np.asarray(source.flat_values if isinstance(source, tf.RaggedTensor) else source).reshape(-1)
    moved = source > 1
    wanted = np.zeros(len(flat), np.float32)
    np.add.at(wanted, source[moved] - 2, weights.reshape(-1)[moved])
    np.testing.assert_array_equal(gradient, wanted)


def test_strings():
    rt = tf.ragged.constant([["a", "b"], [], ["c", "d", "e"]])
    assert rt.to_tensor().numpy().tolist() == [[b"a", b"b", b""], [b""] * 3, [b"c", b"d", b"e"]]
    assert rt.to_tensor("-").numpy().tolist() == [[b"a", b"b", b"-"], [b"-"] * 3, [b"c", b"d", b"e"]]
    assert tf.concat([rt, rt[:, 1:]], 1).to_list() == [[b"a", b"b", b"b"], [], [b"c", b"d", b"e", b"d", b"e"]]


def test_rows_of_rows():
    nested = [[[1, 2], [], [3]], [], [[4], [5, 6, 7]]]
    rt = tf.ragged.constant(nested)
    assert tf.gather(rt, [2, 0, 2]).to_list() == [nested[2], nested[0], nested[2]]
    assert rt[:, 1:].to_list() == [[[], [3]], [], [[5, 6, 7]]]
    assert rt[:, :, 1:].to_list() == [[[2], [], []], [], [[], [6, 7]]]
    assert tf.concat([rt, rt], 1).to_list() == [row + row for row in nested]
    assert rt.to_tensor(0, shape=[2, 2, 3]).numpy().tolist() == [
        [[1, 2, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 0]],
    ]
    assert rt.to_tensor(9).numpy()[2].tolist() == [[4, 9, 9], [5, 6, 7], [9, 9, 9]]


def test_sizes_below_zero():
    for shape in ([-5, 3], [-2, -2]):
        with pytest.raises(ValueError, match="must be >= 0"):
            tf.ragged.constant([[1], [2, 3]]).to_tensor(shape=shape)
