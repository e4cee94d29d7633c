"""Functions over elements: traced once, random per element, vectorised over rows, eager where necessary."""

import collections
import threading
import time

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.tensors import random

Dataset = tf.data.Dataset
Spec = tf.TensorSpec
InvalidArgument = tf.errors.InvalidArgumentError
Point = collections.namedtuple("Point", "a b")


def values(ds):
    return list(ds.as_numpy_iterator())


def by_element(ds):
    return Dataset.from_generator(lambda: iter(ds), output_signature=ds.element_spec)


# ---- map ----------------------------------------------------------------------------------------


def test_map_traces_once():
    seen = []

    def f(x):
        seen.append(x)
        return x + 1

    ds = Dataset.range(100).map(f)
    assert len(seen) == 1, "at once, as in TensorFlow"
    assert "numpy" not in repr(seen[0])
    assert values(ds) == values(ds) == list(range(1, 101))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("f", "spec"),
    [
        (lambda x: [x, x], (Spec((), tf.int64),) * 2),
        (lambda x: (x, [x, x]), (Spec((), tf.int64), Spec((2,), tf.int64))),
        (lambda x: {"a": x, "b": [x, 2]}, {"a": Spec((), tf.int64), "b": Spec((2,), tf.int64)}),
        (lambda x: (1, 2.5, "s"), (Spec((), tf.int32), Spec((), tf.float32), Spec((), tf.string))),
        (lambda x: np.ones(3), Spec((3,), tf.float64)),
        (lambda x: Point(x, 1.0), Point(Spec((), tf.int64), Spec((), tf.float32))),
    ],
)
def test_results_of_functions(f, spec):
    ds = Dataset.range(4).map(f)
    assert ds.element_spec == spec
    assert len(list(ds)) == len(list(by_element(Dataset.range(4)).map(f))) == 4


def test_arguments_are_the_parts_of_tuples_only():
    pairs = Dataset.zip(Dataset.range(2), Dataset.range(2))
    assert values(pairs.map(lambda a, b: a + b)) == [0, 2]
    assert values(pairs.map(lambda *parts: parts[1])) == [0, 1]
    assert values(pairs.map(Point).map(lambda p: p.a - p.b)) == [0, 0]
    assert values(pairs.map(lambda a, b: {"a": a}).map(lambda d: d["a"])) == [0, 1]
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        pairs.map(lambda x: x)


def test_map_of_batches_keeps_the_open_size():
    ds = Dataset.from_tensor_slices((np.ones((5, 2), np.float32), np.arange(5))).batch(2)
    mapped = ds.map(lambda x, y: (tf.reshape(x, [-1]), tf.one_hot(y, 3), tf.reduce_sum(x)))
    assert mapped.element_spec == (Spec((None,)), Spec((None, 3)), Spec(()))
    assert [tuple(p.shape for p in e) for e in mapped] == [
        ((4,), (2, 3), ()),
        ((4,), (2, 3), ()),
        ((2,), (1, 3), ()),
    ]
    assert ds.unbatch().batch(2, drop_remainder=True).map(lambda x, y: x).element_spec == Spec((2, 2))


def test_control_flow_in_functions():
    def f(x):
        if x % 2 == 0:
            y = x * 10
        else:
            y = -x
        for _ in tf.range(2):
            y += 1
        return y

    expected = [2, 1, 22, -1, 42, -3]
    assert values(Dataset.range(6).map(f)) == expected
    assert np.concatenate(values(Dataset.range(6).map(f).batch(4))).tolist() == expected


def test_variables_are_read_when_elements_are_made():
    v = tf.Variable(2, dtype=tf.int64)
    ds = Dataset.range(4).map(lambda x: x * v)
    assert values(ds) == [0, 2, 4, 6]
    v.assign(5)
    assert values(ds) == [0, 5, 10, 15]
    assert values(ds.batch(4))[0].tolist() == [0, 5, 10, 15]


ROW_FUNCTIONS = [
    lambda x, y: (x * 2 - 1, y),
    lambda x, y: (tf.reduce_sum(x), tf.one_hot(y, 4)),
    lambda x, y: (tf.reshape(x, [2, 3]), 7),
    lambda x, y: tf.matmul(x[None], tf.ones([6, 2])),
    lambda x, y: {
        "mean": tf.reduce_mean(x),
        "top": x[-2:],
        "both": tf.concat([x, [tf.cast(y, tf.float32)]], 0),
    },
    lambda x, y: tf.where(y > 3, x, tf.zeros_like(x)),
    lambda x, y: tf.cast(tf.argmax(x), tf.int32) + tf.cast(y, tf.int32),
]


@pytest.mark.parametrize("f", ROW_FUNCTIONS)
def test_maps_of_rows_are_maps_of_elements(f):
    """Vectorised over a batch, and called row by row: the same results, also for a short last batch."""
    x = np.random.default_rng(0).normal(size=(37, 6)).astype(np.float32)
    ds = Dataset.from_tensor_slices((x, np.arange(37)))
    for pipeline in (
        lambda d: d.map(f).batch(16),
        lambda d: d.map(f),
        lambda d: d.map(f).shuffle(10, seed=1).batch(9),
        lambda d: d.filter(lambda x, y: y % 3 == 0).map(f).batch(2),
    ):
        for a, b in zip(pipeline(ds), pipeline(by_element(ds)), strict=True):
            tf.nest.map_structure(
                lambda u, v: np.testing.assert_allclose(u.numpy(), v.numpy(), 1e-6, 1e-6), a, b
            )


def test_rows_are_vectorised():
    assert Dataset.range(9).map(lambda x: x + 1)._table() is not None
    assert Dataset.range(9).map(lambda x: x + tf.random.uniform([], 0, 9, tf.int64))._table() is None
    assert Dataset.range(9).map(lambda x: tf.py_function(lambda v: v, [x], tf.int64))._table() is None


def test_random_numbers_differ_per_element(unseeded):
    ds = Dataset.range(50).map(lambda x: tf.random.uniform([]))
    assert len(set(values(ds))) == 50
    assert set(values(ds)).isdisjoint(values(ds))


def rounded(ds):
    return [[round(float(part), 4) for part in tf.nest.flatten(x)] for x in ds]


def test_random_numbers_with_a_global_seed_are_those_of_tensorflow():
    """The random ops of a function are numbered, and each continues from element to element of an iteration."""
    tf.random.set_seed(1)
    uniform = [0.8127, 0.5273, 0.8489, 0.8929]
    ds = Dataset.range(4).map(lambda x: tf.random.uniform([]))
    assert rounded(ds) == rounded(ds) == [[x] for x in uniform]
    two = Dataset.range(3).map(lambda x: (tf.random.uniform([]), tf.random.uniform([])))
    first = [[0.8127, 0.0555], [0.5273, 0.8388], [0.8489, 0.5773]]
    assert rounded(two) == first
    assert rounded(two.repeat(2)) == [*first, [0.8929, 0.5702], [0.3781, 0.9248], [0.9844, 0.5266]]
    seeded = Dataset.range(2).map(lambda x: (tf.random.uniform([], seed=5), tf.random.uniform([])))
    assert rounded(seeded) == rounded(seeded) == [[0.1956, 0.8127], [0.9395, 0.5273]]
    parallel = Dataset.range(3).map(lambda x: tf.random.uniform([]), num_parallel_calls=2)
    assert sorted(rounded(parallel)) == sorted([x] for x in uniform[:3])
    assert rounded(Dataset.range(6).filter(lambda x: tf.random.uniform([]) > 0.5)) == [
        [0],
        [1],
        [2],
        [3],
        [5],
    ]
    assert rounded(Dataset.range(3).scan(0.0, lambda s, x: (s, tf.random.uniform([])))) == [
        [x] for x in uniform[:3]
    ]
    total = Dataset.range(3).reduce(0.0, lambda s, x: s + tf.random.uniform([]))
    np.testing.assert_allclose(total, 2.1889281, rtol=1e-6)
    places = Dataset.range(3).map(lambda x: tf.random.shuffle(tf.range(5))[0])
    assert rounded(places) == [[2], [2], [2]]
    # The program's own sequence is unchanged.
    np.testing.assert_allclose(tf.random.uniform([]), 0.16513085, rtol=1e-6)


def test_random_numbers_of_datasets_made_per_element_are_those_of_tensorflow():
    tf.random.set_seed(1)
    ds = Dataset.range(2).flat_map(lambda x: Dataset.range(2).map(lambda y: tf.random.uniform([])))
    assert rounded(ds) == [[0.8127], [0.5273], [0.8489], [0.8929]]
    ds = Dataset.range(2).flat_map(lambda x: Dataset.range(4).shuffle(4))
    assert values(ds) == values(ds) == [1, 2, 3, 0, 1, 2, 3, 0]
    ds = Dataset.range(2).flat_map(lambda x: Dataset.range(4).shuffle(4, seed=2))
    assert values(ds) == [0, 3, 2, 1, 0, 3, 2, 1]


def test_op_seeds_without_a_global_one(monkeypatch):
    monkeypatch.setattr(random._seeds, "given", None)
    ds = Dataset.range(3).map(lambda x: tf.random.uniform([], seed=5))
    assert values(ds) == values(ds), "a new iteration starts again"


def test_random_numbers_with_seeds():
    """The numbers with an op seed are TensorFlow's; a new iteration starts again, `repeat` continues."""
    before = random._seeds.given
    try:
        tf.random.set_seed(1)
        ds = Dataset.range(4).map(lambda x: tf.random.uniform([], seed=3))
        expected = [0.7788, 0.0979, 0.2421, 0.1918]
        np.testing.assert_allclose(values(ds), expected, atol=1e-4)
        np.testing.assert_allclose(values(ds), expected, atol=1e-4)
        two = Dataset.range(4).map(lambda x: tf.random.uniform([])).repeat(2)
        assert values(two) == values(two)
        assert len(set(values(two))) == 8
        a = tf.random.uniform([])
        tf.random.set_seed(1)
        it = iter(Dataset.range(4).map(lambda x: tf.random.uniform([])))
        next(it)
        assert a.numpy() == tf.random.uniform([]).numpy(), "datasets leave the program's random numbers alone"
    finally:
        random._seeds.given = before


def test_functions_of_strings():
    ds = Dataset.from_tensor_slices((["a", "bb"], [1, 2]))
    joined = ds.map(lambda s, n: (s + "!", n * 2))
    assert joined.element_spec == (Spec((), tf.string), Spec((), tf.int32))
    assert values(joined) == [(b"a!", 2), (b"bb!", 4)]
    assert values(ds.filter(lambda s, n: tf.equal(s, "bb"))) == [(b"bb", 2)]
    first, second = ds.map(lambda s, n: tf.stack([s, "z"])).batch(2).unbatch()
    assert first.numpy().tolist() == [b"a", b"z"] and isinstance(second, tf.Tensor)
    assert ds.reduce(tf.constant(""), lambda all, x: all + x[0]).numpy() == b"abb"

    @tf.function
    def concatenated(ds):
        found = tf.constant("")
        for s, _ in ds:
            found = found + s
        return found

    assert concatenated(ds).numpy() == b"abb"
    padded = ds.map(lambda s, n: tf.fill([n], s)).padded_batch(2, padding_values="-")
    assert values(padded)[0].tolist() == [[b"a", b"-"], [b"bb", b"bb"]]
    assert values(ds.map(lambda s, n: s).repeat(2).unique()) == [b"a", b"bb"]


def test_python_code_over_strings():
    lengths = Dataset.from_tensor_slices(["a", "bb"]).map(
        lambda s: tf.py_function(lambda s: len(s.numpy()), [s], tf.int32)
    )
    assert values(lengths) == [1, 2]


def test_functions_without_shapes_run_eagerly():
    ds = Dataset.range(1, 4).map(lambda n: tf.ones([n]))
    assert [x.shape[0] for x in ds] == [1, 2, 3]
    assert ds.element_spec == Spec((None,))
    assert [x.shape[0] for x in Dataset.range(1, 4).map(tf.range)] == [1, 2, 3]
    masked = Dataset.from_tensor_slices([[1.0, -1.0]]).map(lambda x: tf.boolean_mask(x, x > 0))
    assert [x.tolist() for x in values(masked)] == [[1.0]]


def test_python_functions():
    ds = Dataset.range(3).map(lambda x: tf.py_function(lambda v: v.numpy() * 2, [x], tf.int64))
    assert values(ds) == [0, 2, 4]
    ds = Dataset.range(3).map(lambda x: tf.numpy_function(lambda v: v + 1, [x], tf.int64))
    assert values(ds) == [1, 2, 3]


def test_common_mistakes():
    with pytest.raises(AttributeError, match="no attribute 'numpy'"):
        Dataset.range(3).map(lambda x: x.numpy())
    with pytest.raises(InvalidArgument, match="returned None"):
        Dataset.range(3).map(lambda x: None)
    with pytest.raises(ValueError, match="must be a callable"):
        Dataset.range(3).map(5)
    with pytest.raises(TypeError, match="Unsupported return value"):
        Dataset.range(3).map(lambda x: object())
    with pytest.raises(ValueError, match="singleton tf.Variables"):
        Dataset.range(3).map(lambda x: tf.Variable(1.0))
    for wrong in (0, -5):
        with pytest.raises(InvalidArgument, match="num_parallel_calls must be greater than zero"):
            Dataset.range(3).map(lambda x: x, num_parallel_calls=wrong)


def test_errors_point_at_the_function():
    def divide(x):
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        Dataset.range(3).map(divide)


def test_debug_mode():
    from gradtape.data.functions import set_debug

    seen = []
    tf.data.experimental.enable_debug_mode()
    try:
        assert values(Dataset.range(3).map(lambda x: seen.append(int(x)) or x)) == [0, 1, 2]
    finally:
        set_debug(False)
    assert seen == [0, 1, 2]


def test_parallel_calls_run_beside_each_other():
    four = threading.Barrier(4, timeout=60)

    def met(x):
        if x < 8:
            time.sleep(0.001)  # long enough to use a pool
        else:
            four.wait()  # four calls must run at once
        return x

    ds = Dataset.range(20).map(lambda x: tf.py_function(met, [x], tf.int64), num_parallel_calls=4)
    assert values(ds) == list(range(20))


def test_parallel_errors_come_in_their_turn():
    def slow(x):
        time.sleep(0.001)
        if x == 7:
            raise ValueError("seven")
        return x

    it = iter(Dataset.range(20).map(lambda x: tf.py_function(slow, [x], tf.int64), num_parallel_calls=4))
    assert [int(next(it)) for _ in range(7)] == list(range(7))
    with pytest.raises(ValueError, match="seven"):
        next(it)


# ---- filter and its kin ------------------------------------------------------------------------


def test_filter():
    for ds in (Dataset.range(10), by_element(Dataset.range(10))):
        assert values(ds.filter(lambda x: x % 3 == 0)) == [0, 3, 6, 9]
        assert values(ds.filter(lambda x: True)) == list(range(10))
        assert values(ds.take_while(lambda x: x < 3)) == [0, 1, 2]
    pairs = Dataset.from_tensor_slices(([1, 2, 3], ["a", "b", "c"]))
    assert values(pairs.filter(lambda n, s: n > 1)) == [(2, b"b"), (3, b"c")]


def test_predicates_are_boolean_scalars():
    for wrong in (lambda x: x, lambda x: [x > 1, x > 2], lambda x: (x > 1)[None]):
        with pytest.raises(ValueError, match="must return a `tf.bool` scalar tensor"):
            Dataset.range(4).filter(wrong)
        with pytest.raises(ValueError, match="must return a `tf.bool` scalar tensor"):
            list(by_element(Dataset.range(4)).filter(wrong))


def test_reduce():
    ds = Dataset.range(5)
    assert ds.reduce(np.int64(0), lambda s, x: s + x).numpy() == 10
    total, scale = ds.reduce((np.int64(0), 1.0), lambda s, x: (s[0] + x, s[1] * 2))
    assert (total.numpy(), scale.numpy()) == (10, 32.0)
    assert Dataset.range(0).reduce(3, lambda s, x: s).numpy() == 3
    with pytest.raises(TypeError, match="must match the initial state"):
        ds.reduce(np.int64(0), lambda s, x: 1.5)


def test_scan():
    ds = Dataset.range(4).scan(np.int64(1), lambda s, x: (s * 2, s + x))
    assert values(ds) == [1, 3, 6, 11]
    assert ds.element_spec == Spec((), tf.int64)
    with pytest.raises(TypeError, match="should return a pair"):
        Dataset.range(4).scan(np.int64(1), lambda s, x: s)
    with pytest.raises(TypeError, match="must match the initial state"):
        list(Dataset.range(4).scan(np.int64(1), lambda s, x: (1.5, s)))


def test_flat_map():
    ds = Dataset.range(4).flat_map(lambda n: Dataset.range(n))
    assert values(ds) == [0, 0, 1, 0, 1, 2]
    assert ds.element_spec == Spec((), tf.int64)
    rows = Dataset.from_tensor_slices(np.arange(6).reshape(3, 2))
    assert values(rows.flat_map(Dataset.from_tensor_slices)) == list(range(6))
    with pytest.raises(TypeError, match="must return a `Dataset` object"):
        list(Dataset.range(3).flat_map(lambda x: x))


@pytest.mark.parametrize(
    ("cycle", "block", "expected"),
    [
        (2, 1, [1, 2, 2, 3, 3, 4, 3, 4, 4, 5, 4, 5, 5, 5, 5]),
        (2, 2, [1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 4, 4, 5, 5, 5]),
        (1, 1, [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5]),
        (9, 3, [1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 4, 5, 5]),
    ],
)
def test_interleave(cycle, block, expected):
    ds = Dataset.range(1, 6).interleave(lambda n: Dataset.from_tensors(n).repeat(n), cycle, block)
    assert values(ds) == expected


def test_wrong_interleave():
    with pytest.raises(InvalidArgument, match="cycle_length must be greater than zero"):
        Dataset.range(3).interleave(Dataset.from_tensors, cycle_length=0)
    with pytest.raises(InvalidArgument, match="block_length must be greater than zero"):
        Dataset.range(3).interleave(Dataset.from_tensors, block_length=0)


def test_ignore_errors():
    def check(x):
        return tf.py_function(lambda v: 1 // int(v), [x], tf.int64)

    ds = Dataset.from_tensor_slices(np.array([1, 0, -1])).map(check)
    assert values(ds.ignore_errors()) == [1, -1]
    with pytest.raises(ZeroDivisionError):
        list(ds)


def test_a_row_that_fails_fails_in_its_turn():
    """Rows are computed together, but an error in an element that is never requested must not be raised."""
    places = tf.constant(list(range(20)) + [99] + list(range(21, 40)))
    ds = Dataset.range(40).map(lambda x: tf.gather(tf.range(40), tf.gather(places, x)))
    it = iter(ds)
    assert [int(next(it)) for _ in range(20)] == list(range(20))
    with pytest.raises(InvalidArgument):
        next(it)
    assert len(values(ds.ignore_errors())) == 39
    assert len(values(ds.map(lambda x: x + 1).ignore_errors())) == 39
    kept = Dataset.range(40).filter(lambda x: tf.gather(tf.range(40), tf.gather(places, x)) >= 0).take(20)
    assert values(kept) == list(range(20))
    with pytest.raises(InvalidArgument):
        list(ds.batch(40))


def test_apply():
    assert values(Dataset.range(5).apply(lambda d: d.take(1))) == [0]
    with pytest.raises(TypeError, match="must return a `tf.data.Dataset` object"):
        Dataset.range(5).apply(lambda d: 3)
    experimental = tf.data.experimental
    assert [
        b.tolist() for b in values(Dataset.range(5).apply(experimental.map_and_batch(lambda x: x * 2, 3)))
    ] == [
        [0, 2, 4],
        [6, 8],
    ]
    assert values(Dataset.range(4).batch(2).apply(experimental.unbatch())) == [0, 1, 2, 3]
    assert sorted(values(Dataset.range(3).apply(experimental.shuffle_and_repeat(3, 2)))) == [0, 0, 1, 1, 2, 2]


def test_rejection_resample():
    tf.random.set_seed(7)
    ds = Dataset.from_tensor_slices(np.array([0] * 900 + [1] * 100)).shuffle(1000, seed=1)
    found = [
        int(x)
        for _, x in ds.rejection_resample(lambda x: tf.cast(x, tf.int32), [0.5, 0.5], [0.9, 0.1], seed=2)
    ]
    assert 0.4 < np.mean(found) < 0.6
    # The order of TensorFlow: elements taken as they are alternate with those kept because of their class.
    first = [0, 0, 1, 0, 0, 0, 1, 0, 0, 1]
    assert found[:10] == first and (len(found), sum(found)) == (215, 113)


def test_rejection_resample_counts_classes_by_itself():
    tf.random.set_seed(7)
    ds = Dataset.range(30).rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.2, 0.8], seed=3)
    assert ds.element_spec == (tf.TensorSpec((), tf.int32), tf.TensorSpec((), tf.int64))
    assert [int(x) for _, x in ds] == [
        1,
        0,
        3,
        5,
        7,
        9,
        11,
        13,
        15,
        17,
        1,
        2,
        3,
        19,
        4,
        5,
        6,
        21,
        23,
        25,
        27,
        29,
    ]
    same = Dataset.range(4).rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.5, 0.5], [0.5, 0.5])
    assert [int(x) for _, x in same] == [0, 1, 2, 3]


def test_a_function_cannot_end_an_iteration():
    def stop(x):
        if x == 1:
            raise StopIteration
        return x

    it = iter(Dataset.range(3).map(lambda x: tf.py_function(stop, [x], tf.int64)))
    assert int(next(it)) == 0
    with pytest.raises(InvalidArgument, match="StopIteration"):
        next(it)
    assert int(next(it)) == 2


def test_fingerprints_tell_pipelines_apart():
    def make(n, k):
        return Dataset.range(n).map(lambda x: x + 1).batch(k).fingerprint()

    assert make(3, 2).dtype is tf.uint64
    assert int(make(3, 2)) == int(make(3, 2))
    assert len({int(make(3, 2)), int(make(4, 2)), int(make(3, 1)), int(Dataset.range(3).fingerprint())}) == 4
