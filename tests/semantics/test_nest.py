"""tf.nest: lists, tuples, dicts and namedtuples of tensors."""

import collections

import pytest

from .lib import tf

Pair = collections.namedtuple("Pair", "first second")


@pytest.mark.parametrize(
    "structure, flat",
    [
        (3, [3]),
        (None, [None]),
        ([], []),
        ([1, (2, [3])], [1, 2, 3]),
        ({"b": 1, "a": 2}, [2, 1]),
        (collections.OrderedDict([("b", 1), ("a", 2)]), [2, 1]),
        (Pair(1, {"k": 2}), [1, 2]),
        ("text", ["text"]),
    ],
    ids=["leaf", "None", "empty", "nested", "dict", "OrderedDict", "namedtuple", "str"],
)
def test_D7_flatten(structure, flat):
    assert tf.nest.flatten(structure) == flat


def test_D7_flatten_leaves_tensors_whole():
    x = tf.constant([1.0, 2.0])
    v = tf.Variable([1.0, 2.0])
    flat = tf.nest.flatten([x, v])
    assert flat[0] is x and flat[1] is v


def test_D7_is_nested():
    assert tf.nest.is_nested([1]) and tf.nest.is_nested({"a": 1}) and tf.nest.is_nested((1,))
    assert not tf.nest.is_nested(1) and not tf.nest.is_nested("text")
    assert not tf.nest.is_nested(tf.constant([1.0]))


def test_D7_map_structure():
    result = tf.nest.map_structure(lambda n: n + 1, {"b": [1, 2], "a": Pair(3, (4,))})
    assert result == {"b": [2, 3], "a": Pair(4, (5,))}
    assert isinstance(result["a"], Pair)


def test_D7_map_structure_of_two_structures():
    assert tf.nest.map_structure(lambda a, b: a * b, [1, {"k": 2}], [3, {"k": 4}]) == [3, {"k": 8}]


def test_D7_map_structure_with_different_types_is_an_error():
    with pytest.raises(TypeError):
        tf.nest.map_structure(lambda a, b: a, [1, 2], (1, 2))


def test_D7_map_structure_with_different_lengths_is_an_error():
    with pytest.raises(ValueError):
        tf.nest.map_structure(lambda a, b: a, [1, 2], [1, 2, 3])


def test_D7_map_structure_with_something_not_callable_is_an_error():
    with pytest.raises(TypeError):
        tf.nest.map_structure(3, [1, 2])


def test_D7_map_structure_without_a_structure_is_an_error():
    with pytest.raises(ValueError):
        tf.nest.map_structure(lambda: 1)


def test_D7_pack_sequence_as_is_the_inverse_of_flatten():
    structure = {"b": [1, 2], "a": Pair(3, (4,))}
    packed = tf.nest.pack_sequence_as(structure, tf.nest.flatten(structure))
    assert packed == structure
    assert isinstance(packed["a"], Pair)


def test_D7_pack_sequence_as_keeps_the_order_of_keys():
    packed = tf.nest.pack_sequence_as({"b": 0, "a": 0}, [1, 2])
    assert list(packed.items()) == [("b", 2), ("a", 1)]


def test_D7_pack_sequence_as_with_wrong_length_is_an_error():
    with pytest.raises(ValueError):
        tf.nest.pack_sequence_as([0, 0], [1, 2, 3])


def test_D7_assert_same_structure():
    tf.nest.assert_same_structure([1, {"k": 2}], [tf.constant(1.0), {"k": None}])


@pytest.mark.parametrize(
    "a, b, error",
    [
        ([1, 2], [1, 2, 3], ValueError),
        ([1, 2], (1, 2), TypeError),
        ({"a": 1}, {"b": 1}, ValueError),
        ([1], 1, ValueError),
    ],
    ids=["length", "type", "keys", "depth"],
)
def test_D7_assert_same_structure_of_different_ones_is_an_error(a, b, error):
    with pytest.raises(error):
        tf.nest.assert_same_structure(a, b)


def test_D7_assert_same_structure_may_ignore_types():
    tf.nest.assert_same_structure([1, 2], (1, 2), check_types=False)


def test_D7_expand_composites():
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2]))
    assert tf.nest.flatten([slices]) == [slices]
    parts = tf.nest.flatten([slices], expand_composites=True)
    assert [list(p.shape) for p in parts] == [[1, 2], [1], [2]]
