"""After an error in one element, the next one can be requested. The expected values are TensorFlow 2.21's."""

import pytest

import gradtape as tf
from gradtape.data.vectorized import MappedTable

Dataset = tf.data.Dataset
E = "error"


def traced(n=7):
    """0, 1, an error, 3, ... from a function that runs over many rows at once."""

    def check(x):
        return tf.debugging.check_numerics(tf.cast(x, tf.float32) / tf.cast(x != 2, tf.float32), "bad")

    return Dataset.range(n).map(check)


def vectorized(n=7):
    """The same from rows in memory; a division by zero is an error for integers."""
    return Dataset.range(n).map(lambda x: tf.cast(x + 0 * (12 // (x - 2)), tf.float32))


def in_python(n=7):
    """The same from Python code."""

    def check(x):
        if x == 2:
            raise ValueError("two")
        return x

    return Dataset.range(n).map(lambda x: tf.cast(tf.py_function(check, [x], tf.int64), tf.float32))


def outcome(ds):
    found, it = [], iter(ds)
    while len(found) < 30:
        try:
            parts = [part.numpy().tolist() for part in tf.nest.flatten(next(it))]
            found.append(parts[0] if len(parts) == 1 else parts)
        except StopIteration:
            break
        except Exception:
            found.append(E)
    return found


STEPS = {
    "nothing": (lambda d: d, [0, 1, E, 3, 4, 5, 6]),
    "map": (lambda d: d.map(lambda x: x + 1), [1, 2, E, 4, 5, 6, 7]),
    "parallel map": (lambda d: d.map(lambda x: x + 1, num_parallel_calls=2), [1, 2, E, 4, 5, 6, 7]),
    "filter": (lambda d: d.filter(lambda x: x > 1), [E, 3, 4, 5, 6]),
    "filter, batch": (lambda d: d.filter(lambda x: x > -1).batch(2), [[0, 1], E, [3, 4], [5, 6]]),
    "prefetch, batch": (lambda d: d.prefetch(1).batch(3, True), [E, [3, 4, 5]]),
    "take": (lambda d: d.prefetch(1).take(4), [0, 1, E, 3, 4]),
    "skip": (lambda d: d.skip(1), [1, E, 3, 4, 5, 6]),
    "shuffle, batch": (lambda d: d.shuffle(1, seed=1).batch(2), [[0, 1], E, [3, 4], [5, 6]]),
    "repeat": (lambda d: d.repeat(2), [0, 1, E, 3, 4, 5, 6] * 2),
    "scan": (lambda d: d.scan(0.0, lambda s, x: (s + x, s + x)), [0, 1, E, 4, 8, 13, 19]),
    "flat_map": (lambda d: d.flat_map(Dataset.from_tensors), [0, 1, E, 3, 4, 5, 6]),
    "cache": (lambda d: d.cache(), [0, 1, E, 3, 4, 5, 6]),
    "zip": (lambda d: Dataset.zip((d, Dataset.range(4))), [[0, 0], [1, 1], E, [3, 3]]),
    "enumerate": (lambda d: d.enumerate().take(3), [[0, 0], [1, 1], E, [3, 3]]),
    "concatenate": (lambda d: d.concatenate(d), [0, 1, E, 3, 4, 5, 6] * 2),
    "unbatch": (lambda d: d.batch(1).unbatch(), [0, 1, E, 3, 4, 5, 6]),
    "window": (lambda d: d.window(2).flat_map(lambda w: w.batch(2)), [[0, 1], E, [4, 5], [6]]),
    "prefetch": (lambda d: d.prefetch(2), [0, 1, E, 3, 4, 5, 6]),
    "take_while": (lambda d: d.take_while(lambda x: x < 5), [0, 1, E, 3, 4]),
    "rebatch": (lambda d: d.batch(1).rebatch(3), [E, [3, 4, 5], [6]]),
    "ignore_errors": (lambda d: d.ignore_errors(), [0, 1, 3, 4, 5, 6]),
    "prefetch, batch, ignore_errors": (
        lambda d: d.prefetch(1).batch(2).ignore_errors(),
        [[0, 1], [3, 4], [5, 6]],
    ),
}


@pytest.mark.parametrize("source", [traced, vectorized, in_python])
@pytest.mark.parametrize("step", STEPS)
def test_the_next_element_comes_after_an_error(step, source):
    make, expected = STEPS[step]
    assert outcome(make(source())) == expected


def test_a_shuffle_loses_nothing():
    for room in (3, 30):
        assert sorted(map(str, outcome(traced().shuffle(room, seed=1)))) == sorted(
            ["0.0", "1.0", E, "3.0", "4.0", "5.0", "6.0"]
        )


def test_interrupts_lose_nothing_behind_them():
    def check(x):
        if x == 2:
            raise KeyboardInterrupt
        return x

    ds = Dataset.range(6).map(lambda x: tf.py_function(check, [x], tf.int64))
    it = iter(ds.shuffle(1).repeat(1).batch(1).unbatch().take(9))
    assert [int(next(it)), int(next(it))] == [0, 1]
    with pytest.raises(KeyboardInterrupt):
        next(it)
    assert [int(x) for x in it] == [3, 4, 5]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(
    "step, expected",
    [
        (lambda ds: ds, [0, 2, 4, 6, 8]),
        (lambda ds: ds.batch(2), [[0, 2], [4, 6], [8]]),
        (lambda ds: ds.filter(lambda x: x > 2).batch(2), [[4, 6], [8]]),
    ],
)
def test_an_interrupt_while_rows_are_made_comes_out(monkeypatch, step, expected, kind):
    make, left = MappedTable.rows, [kind]

    def rows(self, at):
        if left:
            raise left.pop()
        return make(self, at)

    monkeypatch.setattr(MappedTable, "rows", rows)
    it = iter(step(Dataset.range(5).map(lambda x: x * 2)))
    with pytest.raises(kind):
        next(it)
    found = [x.numpy().tolist() for x in it]
    assert found in (expected, []), "nothing is lost, or it is over"
    assert not left


@pytest.mark.parametrize(
    "step, expected",
    [
        (lambda ds: ds.window(2), [[0, 1], [3, 4], [5]]),
        (lambda ds: ds.window(1, shift=3), [[0], [4]]),
        (lambda ds: ds.window(2, shift=1, stride=2, drop_remainder=True), [[0, 3], [1, 4], [3, 5]]),
    ],
)
def test_windows_keep_no_interrupt_back(step, expected):
    def check(x):
        if x == 2:
            raise KeyboardInterrupt
        return x

    it = iter(step(Dataset.range(6).map(lambda x: tf.py_function(check, [x], tf.int64))))
    found, interrupts = [], 0
    while True:
        try:
            found.append([int(x) for x in next(it)])
        except KeyboardInterrupt:
            interrupts += 1
        except StopIteration:
            break
    assert (found, interrupts) == (expected, 1)


def test_side_by_side_an_interrupt_comes_before_a_failure():
    def fails(x):
        raise ValueError("failed")

    def interrupts(x):
        raise KeyboardInterrupt

    parts = [
        Dataset.range(3).map(lambda x, f=f: tf.py_function(f, [x], tf.int64)) for f in (fails, interrupts)
    ]
    with pytest.raises(KeyboardInterrupt):
        next(iter(Dataset.zip(tuple(parts))))
