"""`tf.data.experimental.at`: elements by number. All expected values are TensorFlow 2.21's."""

import pytest

import gradtape as tf

Dataset = tf.data.Dataset
SPEC = tf.TensorSpec((), tf.int64)

# The orders are those of a program without a global seed.
pytestmark = pytest.mark.usefixtures("unseeded")


def at_all(ds, n):
    return [tf.data.experimental.at(ds, i).numpy().tolist() for i in range(n)]


def test_a_shuffle_has_one_order_for_random_access():
    ds = Dataset.range(5).shuffle(100, seed=3)
    assert at_all(ds, 5) == at_all(ds, 5) == [2, 4, 3, 0, 1]
    assert [int(x) for x in ds] == [4, 3, 2, 1, 0], "which is not that of an iteration"
    assert at_all(ds, 5) == [2, 4, 3, 0, 1]
    assert at_all(Dataset.range(5).shuffle(2, seed=3), 5) == [2, 4, 3, 0, 1]


@pytest.mark.parametrize("seed", [0, 1, 9])
def test_a_shuffle_that_keeps_its_order(seed):
    ds = Dataset.range(7).shuffle(100, seed=seed, reshuffle_each_iteration=False)
    assert at_all(ds, 7) == [3, 1, 0, 2, 5, 4, 6]
    tf.random.set_seed(5)
    ds = Dataset.range(7).shuffle(100, seed=seed, reshuffle_each_iteration=False)
    assert at_all(ds, 7) == [3, 6, 0, 1, 4, 2, 5]


def test_a_shuffle_without_a_seed_gives_every_element_once():
    ds = Dataset.range(50).shuffle(10)
    assert sorted(at_all(ds, 50)) == list(range(50))
    cached = ds.cache()
    first = at_all(cached, 50)
    list(cached)
    assert at_all(cached, 50) == first


def test_steps_behind_a_shuffle():
    ds = Dataset.range(5).shuffle(100, seed=3)
    assert at_all(ds.map(lambda x: x * 2), 5) == [4, 8, 6, 0, 2]
    assert at_all(ds.batch(2), 3) == [[2, 4], [3, 0], [1]]
    assert at_all(ds.batch(2, drop_remainder=True), 2) == [[2, 4], [3, 0]]
    assert at_all(ds.take(3), 3) == [2, 4, 3]
    assert at_all(ds.skip(1).prefetch(2), 4) == [4, 3, 0, 1]
    assert at_all(ds.shuffle(5, seed=4, reshuffle_each_iteration=False), 5) == [2, 4, 1, 0, 3]
    assert at_all(Dataset.range(2).shuffle(5, seed=1).concatenate(Dataset.range(3)), 5) == [1, 0, 0, 1, 2]
    both = Dataset.zip((Dataset.range(5).shuffle(5, seed=1), Dataset.range(5)))
    assert [int(tf.data.experimental.at(both, i)[0]) for i in range(5)] == [2, 4, 0, 3, 1]


def test_datasets_in_a_fixed_order():
    assert at_all(Dataset.range(10).shard(3, 1), 3) == [1, 4, 7]
    assert at_all(Dataset.range(3).repeat(2), 6) == [0, 1, 2, 0, 1, 2]
    assert at_all(Dataset.from_tensors(3), 1) == [3]
    assert at_all(tf.data.experimental.from_list([1, 2, 3]), 3) == [1, 2, 3]
    assert at_all(Dataset.range(4).with_options(tf.data.Options()), 4) == [0, 1, 2, 3]
    assert at_all(Dataset.range(4).apply(tf.data.experimental.assert_cardinality(4)), 4) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "step",
    [
        lambda ds: ds.filter(lambda x: x > 0),
        lambda ds: ds.flat_map(lambda x: Dataset.range(3)),
        lambda ds: ds.interleave(lambda x: Dataset.range(3)),
        lambda ds: ds.scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s)),
        lambda ds: ds.window(2),
        lambda ds: ds.unique(),
        lambda ds: Dataset.from_generator(lambda: iter(range(3)), output_signature=SPEC),
        lambda ds: Dataset.random(seed=1),
        lambda ds: ds.filter(lambda x: x > 0).shuffle(3),
    ],
)
def test_streams_have_no_random_access(step):
    with pytest.raises((tf.errors.UnimplementedError, tf.errors.FailedPreconditionError)):
        tf.data.experimental.at(step(Dataset.range(5)), 1)


@pytest.mark.parametrize("index", [3, -1, 2**40])
@pytest.mark.parametrize(
    "step", [lambda ds: ds, lambda ds: ds.shuffle(3), lambda ds: ds.map(lambda x: x + 1)]
)
def test_numbers_out_of_range(step, index):
    with pytest.raises(tf.errors.OutOfRangeError, match="Index out of range"):
        tf.data.experimental.at(step(Dataset.range(3)), index)
