"""`gradtape.nest`: structures taken apart and rebuilt as TensorFlow 2.21 does."""

import collections
import dataclasses
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtape._src.base import nest
from gradtape._src.base.shape import TensorShape
from gradtape._src.tensors.indexed_slices import IndexedSlices

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Record:
    """A leaf: TensorFlow does not flatten dataclasses."""

    a: int


class FakeAttrs:
    """Like a class made by the attrs package."""

    __attrs_attrs__ = (types.SimpleNamespace(name="b"), types.SimpleNamespace(name="a"))

    def __init__(self, b, a):
        self.b, self.a = b, a


class Custom:
    """A container with TensorFlow's protocol for user classes."""

    def __init__(self, label, parts):
        self.label, self.parts = label, parts

    def __tf_flatten__(self):
        return (self.label,), tuple(self.parts)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(metadata[0], list(components))


@pytest.mark.parametrize(
    ("structure", "leaves"),
    [
        ({"b": 1, "a": [2, (3, None)]}, [2, 3, None, 1]),
        (Point(1, [2]), [1, 2]),
        (3, [3]),
        (None, [None]),
        ("ab", ["ab"]),
        (b"ab", [b"ab"]),
        ([], []),
        ([[], {}], []),
        ({1, 2}, [{1, 2}]),
        (TensorShape([1, 2]), [TensorShape([1, 2])]),
        (range(3), [0, 1, 2]),
        ({"a": 1}.values(), [1]),
        ({"a": 1}.keys(), ["a"]),
        (collections.deque([1]), [1]),
        (collections.OrderedDict([("b", 1), ("a", 2)]), [2, 1]),
        (collections.UserDict({"b": 1, "a": 2}), [2, 1]),
        (types.MappingProxyType({"b": 1, "a": 2}), [2, 1]),
        (Record(1), [Record(1)]),
        ([1, "a", None, 2.0], [1, "a", None, 2.0]),
        ((1, 2), [1, 2]),
    ],
)
def test_flatten(structure, leaves):
    for _ in range(2):  # the second time with the types cached
        assert nest.flatten(structure) == leaves


def test_arrays_are_leaves():
    array = np.ones(2)
    assert nest.flatten([array, [array]])[1] is array
    assert nest.flatten(array)[0] is array


def test_flatten_gives_a_new_list():
    structure = [1, 2]
    nest.flatten(structure)
    assert nest.flatten(structure) is not structure


@pytest.mark.parametrize(
    ("value", "nested"),
    [
        ([1], True),
        ({}, True),
        (range(2), True),
        ({}.values(), True),
        (collections.UserDict(), True),
        ("a", False),
        (b"a", False),
        (TensorShape([1]), False),
        ({1}, False),
        (np.ones(1), False),
        (Record(1), False),
        (None, False),
    ],
)
def test_is_nested(value, nested):
    assert nest.is_nested(value) is nest.is_sequence(value) is nested


def test_unsortable_keys():
    with pytest.raises(TypeError, match="sortable"):
        nest.flatten({"a": 1, 3: 2})


def test_map_structure_keeps_types_and_order():
    def bump(x):
        return x + 1

    result = nest.map_structure(bump, {"b": 1, "a": (2, [3])})
    assert result == {"b": 2, "a": (3, [4])} and list(result) == ["b", "a"]
    assert nest.map_structure(bump, Point(1, [2])) == Point(2, [3])
    assert nest.map_structure(bump, collections.deque([1])) == collections.deque([2])
    ordered = nest.map_structure(bump, collections.OrderedDict([("b", 1), ("a", 2)]))
    assert type(ordered) is collections.OrderedDict and list(ordered.items()) == [("b", 2), ("a", 3)]
    default = nest.map_structure(bump, collections.defaultdict(list, {"b": 1}))
    assert default.default_factory is list and default == {"b": 2}
    assert nest.map_structure(bump, collections.UserDict(b=1)) == collections.UserDict(b=2)
    assert nest.map_structure(bump, range(2)) == [1, 2]
    assert nest.map_structure(bump, {"a": 1}.values()) == [2]
    proxy = nest.map_structure(bump, types.MappingProxyType({"a": 1}).copy())
    assert proxy == {"a": 2}
    assert nest.map_structure(bump, 1) == 2
    assert nest.map_structure(bump, []) == []


def test_map_structure_over_several():
    result = nest.map_structure(lambda x, y: x - y, {"b": 1, "a": (2,)}, {"a": (20,), "b": 10})
    assert result == {"b": -9, "a": (-18,)}
    assert nest.map_structure(lambda x, y: (x, y), [1, 2], (3, 4), check_types=False) == [
        (1, 3),
        (2, 4),
    ]


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "text"),
    [
        ((3, [1]), {}, TypeError, "func must be callable"),
        ((len,), {}, ValueError, "at least one structure"),
        ((len, [1]), {"foo": 3}, ValueError, "not: `foo`"),
        ((max, [1, 2], [1]), {}, ValueError, "same nested structure"),
        ((max, [1, 2], (1, 2)), {}, TypeError, "same nested structure"),
        ((max, {"a": 1}, {"b": 1}), {}, ValueError, "keys are"),
    ],
)
def test_map_structure_refuses(args, kwargs, error, text):
    with pytest.raises(error, match=text):
        nest.map_structure(*args, **kwargs)


def test_attrs_and_custom_containers():
    value = FakeAttrs(1, [2])
    assert nest.flatten(value) == [1, 2]
    packed = nest.pack_sequence_as(value, [3, 4])
    assert (packed.b, packed.a) == (3, [4])
    custom = nest.map_structure(lambda x: -x, Custom("l", [1, 2]))
    assert (custom.label, custom.parts) == ("l", [-1, -2])


@pytest.mark.parametrize(
    ("structure", "flat", "packed"),
    [
        ({"b": 0, "a": 0}, [1, 2], {"b": 2, "a": 1}),
        ([0, (1, 2)], (1, 2, 3), [1, (2, 3)]),
        (3, [1], 1),
        ("ab", (1,), 1),
        ([], [], []),
        ({"a": []}, [], {"a": []}),
        ((0, 0), [[1], 2], ([1], 2)),
    ],
)
def test_pack(structure, flat, packed):
    result = nest.pack_sequence_as(structure, flat)
    assert result == packed and type(result) is type(packed)


@pytest.mark.parametrize(
    ("structure", "flat", "error"),
    [
        ([0, (1, 2)], [1, 2], ValueError),
        ([0, (1, 2)], [1, 2, 3, 4], ValueError),
        ([0, 1], [1], ValueError),
        (3, [1, 2], ValueError),
        (3, [], ValueError),
        ([1], 3, TypeError),
        ([1, 2], "ab", TypeError),
        ([1, 2], np.array([3, 4]), TypeError),
        ([1], {0: 2}, TypeError),
    ],
)
def test_pack_refuses(structure, flat, error):
    with pytest.raises(error, match="pack_sequence_as"):
        nest.pack_sequence_as(structure, flat)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1, {"a": 2}], [3, {"a": 4}]),
        ({"a": 1}, collections.OrderedDict(a=1)),
        (Point(1, 2), collections.namedtuple("Point", "x y")(3, 4)),
        ([], []),
        (1, "leaf"),
    ],
)
def test_same_structure(a, b):
    nest.assert_same_structure(a, b)


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [
        ([1], [1, 2], ValueError),
        (1, [1], ValueError),
        ("ab", [1], ValueError),
        ([1], (1,), TypeError),
        ({"a": [1]}, {"a": (1,)}, TypeError),
        ({"a": 1}, {"b": 1}, ValueError),
        ([[1], 2], [2, [1]], ValueError),
        (Point(1, 2), (1, 2), TypeError),
        (Point(1, 2), collections.namedtuple("Other", "x y")(1, 2), TypeError),
        ([1], collections.deque([1]), TypeError),
    ],
)
def test_different_structure(a, b, error):
    with pytest.raises(error, match="don't have the same nested structure"):
        nest.assert_same_structure(a, b)


def test_message_says_where():
    with pytest.raises(TypeError, match=r"expected \{'a': \[\., \[\.\]\]\}.*At structure\['a'\]\[1\]"):
        nest.assert_same_structure({"a": [1, [2]]}, {"a": [1, (2,)]})


def test_same_structure_without_types():
    nest.assert_same_structure([1, (2,)], [1, [2]], check_types=False)
    nest.assert_same_structure({"a": 1}, {"b": 1}, check_types=False)
    nest.assert_same_structure({"a": 1}, [1], check_types=False)
    with pytest.raises(ValueError, match="numbers of elements"):
        nest.assert_same_structure({"a": 1}, [1, 2], check_types=False)


def test_structure_that_contains_itself():
    loop = [1]
    loop.append({"again": loop})
    attempts = (
        nest.flatten,
        nest.flatten_with_path,
        lambda s: nest.map_structure(abs, s),
        lambda s: nest.pack_sequence_as(s, list(range(100_000))),
        lambda s: nest.assert_same_structure(s, s),
    )
    for attempt in attempts:
        with pytest.raises(ValueError, match="contains itself"):
            attempt(loop)


def test_structure_too_deep():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="too deep"):
        nest.flatten(deep)
    while deep:  # unnested here: freeing it would recurse as deeply
        deep = deep.pop()


def test_shared_parts_are_no_loop():
    part = [1, 2]
    assert nest.flatten([part, part, (part,)]) == [1, 2] * 3


def test_composites():
    values, indices = np.ones([1, 2], "float32"), np.array([0])
    slices = IndexedSlices(values, indices)
    assert nest.flatten([slices]) == [slices]
    first, second = nest.flatten([slices], expand_composites=True)
    assert first is values and second is indices
    (mapped,) = nest.map_structure(lambda x: x + 1, [slices], expand_composites=True)
    assert mapped.values.tolist() == [[2, 2]] and mapped.indices.tolist() == [1]
    with pytest.raises(ValueError, match="same nested structure"):
        nest.assert_same_structure([slices], [1], expand_composites=True)


def test_paths():
    pairs = nest.flatten_with_path({"b": 1, "a": [2, Point(3, 4)]})
    assert pairs == [(("a", 0), 2), (("a", 1, "x"), 3), (("a", 1, "y"), 4), (("b",), 1)]
    assert nest.flatten_with_path(1) == [((), 1)]


def test_up_to():
    assert nest.flatten_up_to([0, 0], [[1, 2], 3]) == [[1, 2], 3]
    assert nest.flatten_up_to({"a": 0}, {"a": (1, 2), "b": 3}) == [(1, 2)]
    assert nest.flatten_up_to(0, [1]) == [[1]]
    assert nest.map_structure_up_to((0, 0), len, ([1, 2], [3])) == (2, 1)
    for shallow, deep in (([0], [1, 2]), ([0], 1), ({"a": 0}, [1]), ({"a": 0}, {"b": 1})):
        with pytest.raises(ValueError, match="does not begin like"):
            nest.flatten_up_to(shallow, deep)


def test_many_classes_do_not_fill_the_table():
    for i in range(nest._MAX_TYPES + 10):
        assert nest.flatten([type(f"C{i}", (), {})()])
    assert len(nest._KINDS) <= nest._MAX_TYPES
    assert nest.flatten([1, [2]]) == [1, 2]


STRUCTURES = st.recursive(
    st.integers(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
        st.builds(Point, inner, inner),
    ),
    max_leaves=12,
)


@given(STRUCTURES)
def test_pack_is_the_inverse_of_flatten(structure):
    flat = nest.flatten(structure)
    assert nest.pack_sequence_as(structure, flat) == structure
    nest.assert_same_structure(structure, nest.map_structure(lambda x: -x, structure))
    assert [leaf for _, leaf in nest.flatten_with_path(structure)] == flat
