"""`gradtape._src.base.shape`: TensorShape, TensorSpec and static broadcasting as in TensorFlow."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape import dtypes
from gradtape._src.base.dimension import Dimension
from gradtape._src.base.shape import (
    TensorShape,
    TensorSpec,
    broadcast_static_shape,
    dimension_value,
    unknown_shape,
)

UNKNOWN = TensorShape(None)


class FakeTensor:
    """Has the attributes of a tensor that TensorSpec uses."""

    def __init__(self, shape, dtype=dtypes.float32):
        self.shape, self.dtype = TensorShape(shape), dtype


@pytest.mark.parametrize(
    ("given_dims", "shown"),
    [
        ([1, 2], "TensorShape([1, 2])"),
        (None, "TensorShape(None)"),
        (3, "TensorShape([3])"),
        ((None, 2), "TensorShape([None, 2])"),
        ([], "TensorShape([])"),
        (TensorShape([1]), "TensorShape([1])"),
        ((np.int64(2), np.int32(3)), "TensorShape([2, 3])"),
        (np.array([1, 2]), "TensorShape([1, 2])"),
        (np.array(4), "TensorShape([4])"),
        (range(3), "TensorShape([0, 1, 2])"),
        ((i for i in (1, 2)), "TensorShape([1, 2])"),
    ],
)
def test_construct(given_dims, shown):
    assert repr(TensorShape(given_dims)) == shown


@pytest.mark.parametrize(
    ("dims", "error", "text"),
    [
        ([-1, 2], ValueError, "Dimension -1 must be >= 0"),
        (-1, ValueError, "Dimension -1 must be >= 0"),
        ([1.5], TypeError, "must be integer or None"),
        (["a"], TypeError, "must be integer or None"),
        ("abc", TypeError, "must be integer or None"),
        (1.5, TypeError, "must be integer or None"),
        (np.array([1.5]), TypeError, "must be integer or None"),
        (np.array([[1]]), TypeError, "must be integer or None"),
    ],
)
def test_construct_refuses(dims, error, text):
    with pytest.raises(error, match=text):
        TensorShape(dims)


def test_sizes_are_python_ints():
    assert type(TensorShape(np.array([2]))[0]) is int


@pytest.mark.parametrize(
    ("dims", "text"),
    [([1, 2], "(1, 2)"), ([3], "(3,)"), (None, "<unknown>"), ([], "()"), ([None], "(None,)")],
)
def test_str(dims, text):
    assert str(TensorShape(dims)) == f"{TensorShape(dims)}" == text


def test_equality_and_hash():
    shape = TensorShape([1, 2])
    assert shape == (1, 2) and (1, 2) == shape  # noqa: SIM300
    assert shape == [1, 2] and [1, 2] == shape  # noqa: SIM300
    assert shape == np.array([1, 2])
    assert TensorShape([None, 2]) == (None, 2)
    assert TensorShape([1]) == 1
    assert TensorShape(None) == UNKNOWN and UNKNOWN == None  # noqa: E711
    assert shape != (1, 3) and shape != "ab" and shape != (1, 2, 3) and shape != UNKNOWN
    assert hash(shape) == hash((1, 2))  # noqa: SIM300
    assert {shape: "x"}[(1, 2)] == "x"


def test_as_sequence():
    shape = TensorShape([1, 2, 3])
    assert len(shape) == 3 and list(shape) == [1, 2, 3] and 2 in shape
    assert shape[-1] == 3 and shape[1:] == (2, 3) and type(shape[1:]) is TensorShape
    assert list(reversed(shape)) == [3, 2, 1]
    first, *rest = shape
    assert (first, rest) == (1, [2, 3])
    assert np.zeros(shape).shape == (1, 2, 3)
    assert int(np.prod(shape)) == 6
    with pytest.raises(IndexError, match="out of range"):
        _ = shape[3]


def test_add():
    shape = TensorShape([1, 2])
    for result in (shape + (3,), shape + [3], shape + 3, shape.concatenate([3])):
        assert result == (1, 2, 3) and type(result) is TensorShape
    assert (3,) + shape == (3, 1, 2) and [3] + shape == (3, 1, 2)
    assert shape + UNKNOWN == UNKNOWN


def test_unknown_rank():
    assert UNKNOWN.rank is None and UNKNOWN.ndims is None and UNKNOWN.dims is None
    assert UNKNOWN[0] is None
    assert UNKNOWN[1:] == UNKNOWN[:-1] == UNKNOWN
    assert UNKNOWN[1:3] == UNKNOWN[:2] == (None, None)
    assert not UNKNOWN and TensorShape([]) and TensorShape([0])
    for attempt in (len, list, TensorShape.as_list):
        with pytest.raises(ValueError, match="unknown"):
            attempt(UNKNOWN)
    assert unknown_shape(2) == (None, None) and unknown_shape() == UNKNOWN


def test_counts():
    assert TensorShape([2, 3]).num_elements() == 6
    assert TensorShape([]).num_elements() == 1
    assert TensorShape([None, 2]).num_elements() is None and UNKNOWN.num_elements() is None
    assert TensorShape([1]).is_fully_defined()
    assert not TensorShape([1, None]).is_fully_defined() and not UNKNOWN.is_fully_defined()
    assert TensorShape([1, None]).as_list() == [d.value for d in TensorShape([1, None]).dims] == [1, None]


def test_compatibility():
    shape = TensorShape([1, None])
    assert shape.is_compatible_with([1, 2]) and shape.is_compatible_with(None)
    assert not shape.is_compatible_with([1]) and not shape.is_compatible_with([2, 2])
    assert shape.merge_with([None, 2]) == (1, 2)
    assert shape.merge_with(None) == shape and UNKNOWN.merge_with([1]) == (1,)
    assert TensorShape([1, 2]).most_specific_compatible_shape([1, 3]) == (1, None)
    assert TensorShape([1, 2]).most_specific_compatible_shape([1]) == UNKNOWN
    assert TensorShape([1, 2]).is_subtype_of(TensorShape([None, 2]))
    assert not TensorShape([None]).is_subtype_of(TensorShape([1]))
    assert TensorShape([1]).is_subtype_of(UNKNOWN) and not UNKNOWN.is_subtype_of(TensorShape([1]))
    assert TensorShape([1, 2]).most_specific_common_supertype([TensorShape([3, 2])]) == (None, 2)


@pytest.mark.parametrize(
    ("attempt", "text"),
    [
        (lambda: TensorShape([1, 3]).merge_with([1, 2]), r"Shapes \(1, 3\) and \(1, 2\) are not"),
        (lambda: TensorShape([1]).assert_is_compatible_with([2]), "are incompatible"),
        (lambda: TensorShape([1]).assert_has_rank(2), r"Shape \(1,\) must have rank 2"),
        (lambda: TensorShape([1]).with_rank(2), "must have rank 2"),
        (lambda: TensorShape([1]).with_rank_at_least(2), "must have rank at least 2"),
        (lambda: TensorShape([1, 2]).with_rank_at_most(1), "must have rank at most 1"),
        (lambda: TensorShape([1]).assert_same_rank([1, 2]), "must have the same rank"),
        (lambda: TensorShape([None]).assert_is_fully_defined(), "is not fully defined"),
    ],
)
def test_assertions(attempt, text):
    with pytest.raises(ValueError, match=text):
        attempt()


def test_assertions_that_hold():
    assert UNKNOWN.with_rank(2) == (None, None)
    assert TensorShape([1]).with_rank_at_least(1) == TensorShape([1]).with_rank_at_most(1) == (1,)
    UNKNOWN.assert_same_rank([1])
    TensorShape([1]).assert_is_compatible_with(None)


def test_copies():
    for shape in (UNKNOWN, TensorShape([None, 2])):
        assert pickle.loads(pickle.dumps(shape)) == shape == copy.deepcopy(shape)


def test_from_dims_is_the_core_entry():
    assert TensorShape._from_dims((2, 3)) == TensorShape([2, 3])


def test_dimension_value():
    assert dimension_value(3) == 3 and dimension_value(None) is None


@given(
    st.lists(st.sampled_from([1, 2, 3]), max_size=4),
    st.lists(st.sampled_from([1, 2, 3]), max_size=4),
)
def test_broadcast_agrees_with_numpy(x, y):
    try:
        expected = np.broadcast_shapes(tuple(x), tuple(y))
    except ValueError:
        with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
            broadcast_static_shape(x, y)
    else:
        assert broadcast_static_shape(TensorShape(x), TensorShape(y)) == expected


def test_broadcast_with_unknown_sizes():
    assert broadcast_static_shape([None], [3]) == broadcast_static_shape([3], [None]) == (3,)
    assert broadcast_static_shape([None], [1]) == broadcast_static_shape([1], [None]) == (None,)
    assert broadcast_static_shape([None], [None]) == (None,)
    assert broadcast_static_shape(None, [1]) == UNKNOWN


def test_spec():
    spec = TensorSpec([None, 2], "float32", "x")
    assert repr(spec) == "TensorSpec(shape=(None, 2), dtype=tf.float32, name='x')"
    assert (spec.shape, spec.dtype, spec.name) == ((None, 2), dtypes.float32, "x")
    assert TensorSpec(3).shape == (3,) and TensorSpec(None).dtype is dtypes.float32
    assert TensorSpec([2]) == TensorSpec([2]) != TensorSpec([2], name="a")
    assert TensorSpec([2]) != TensorSpec([2], "int32") and TensorSpec([2]) != (2,)
    assert hash(TensorSpec([2])) == hash(TensorSpec([2], name="a"))
    assert pickle.loads(pickle.dumps(spec)) == spec == copy.deepcopy(spec)


def test_spec_from():
    assert TensorSpec.from_tensor(FakeTensor([2]), "n") == TensorSpec([2], name="n")
    assert TensorSpec.from_spec(TensorSpec([1]), "k") == TensorSpec([1], name="k")
    for value in (3, np.ones(2)):
        with pytest.raises(ValueError, match="should be a tf.Tensor"):
            TensorSpec.from_tensor(value)


def test_spec_compatibility():
    spec = TensorSpec([None])
    assert spec.is_compatible_with(FakeTensor([2])) and spec.is_compatible_with(TensorSpec([2]))
    for other in (FakeTensor([2, 2]), FakeTensor([2], dtypes.int32), np.ones(2, "f4"), [1.0]):
        assert not spec.is_compatible_with(other)
    assert TensorSpec([2]).is_subtype_of(spec)
    assert not TensorSpec([2], name="a").is_subtype_of(spec)
    assert TensorSpec([2]).most_specific_common_supertype([TensorSpec([3])]) == spec
    assert TensorSpec([2]).most_specific_common_supertype([TensorSpec([3], "int32")]) is None
    assert TensorSpec([2], name="a").most_specific_common_supertype([TensorSpec([2])]) is None
    assert TensorSpec([2]).most_specific_compatible_type(TensorSpec([3])) == spec
    with pytest.raises(ValueError, match="No TypeSpec is compatible with both"):
        TensorSpec([2]).most_specific_compatible_type(TensorSpec([3], "int32"))


def test_dimensions():
    known, unknown = Dimension(12), Dimension(None)
    assert [str(known), str(unknown), repr(unknown), int(known), range(20)[known]] == [
        "12",
        "?",
        "Dimension(None)",
        12,
        12,
    ]
    results = [
        known + 3,
        3 + known,
        known - 2,
        20 - known,
        known * 2,
        2 * known,
        known // 5,
        25 // known,
        known % 5,
        25 % known,
    ]
    assert [d.value for d in results] == [15, 15, 10, 8, 24, 24, 2, 2, 2, 1]
    assert all(
        (d).value is None
        for d in (unknown + 1, 1 + unknown, known - unknown, unknown * 2, unknown // 2, 5 % unknown)
    )
    assert (known < 13, known >= 12, known == 12, known != 12) == (True, True, True, False)
    assert (unknown == 12) is None and (known == unknown) is None and (unknown != unknown) is None
    assert known.is_compatible_with(None) and not known.is_compatible_with(11)
    assert unknown.merge_with(3).value == known.merge_with(None).value - 9 == 3
    assert TensorShape([known, unknown]) == [12, None] and TensorShape([1]).concatenate(known) == [1, 12]
    assert TensorShape([None, 3]).dims[1].value == 3 and TensorShape(None).dims is None
    assert tf.zeros([Dimension(2)]).shape == [2]
    assert pickle.loads(pickle.dumps(known)).value == 12
    assert tf.compat.dimension_value(known) == 12 and tf.compat.dimension_value(5) == 5
    assert tf.compat.dimension_at_index(TensorShape([1, 2]), 1).value == 2
    assert tf.compat.v1.dimension_at_index(TensorShape(None), 1).value is None


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda: Dimension(-1), ValueError, "Dimension -1 must be >= 0"),
        (lambda: Dimension("a"), TypeError, "must be integer or None"),
        (lambda: 4 - Dimension(12), ValueError, "Dimension -8 must be >= 0"),
        (lambda: Dimension(3) / 2, TypeError, "please use // instead"),
        (lambda: 3 / Dimension(3), TypeError, "please use // instead"),
        (lambda: Dimension(3) + "a", TypeError, "unsupported operand"),
        (lambda: Dimension(3).merge_with(4), ValueError, "Dimensions 3 and 4 are not compatible"),
        (lambda: hash(Dimension(3)), TypeError, "unhashable"),
    ],
)
def test_dimensions_refuse(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong()


@pytest.mark.parametrize("dims", [[1, None], [], None, [0, 5]])
def test_messages_of_shapes(dims):
    proto = TensorShape(dims).as_proto()
    back = TensorShape(proto)
    assert (
        back.rank == TensorShape(dims).rank
        and repr(back) == repr(TensorShape(dims))
        and back.as_proto() == proto
    )


def test_the_text_of_a_message():
    assert str(TensorShape([1, None]).as_proto()) == "dim {\n  size: 1\n}\ndim {\n  size: -1\n}\n"
    assert str(TensorShape(None).as_proto()) == "unknown_rank: true\n"


def test_shapes_as_tensors():
    assert tf.convert_to_tensor(TensorShape([1, 2])).dtype is tf.int32
    large = tf.convert_to_tensor(TensorShape([2**31, 2]))
    assert large.dtype is tf.int64 and large.numpy().tolist() == [2**31, 2]
    assert (
        tf.convert_to_tensor(TensorShape([])).dtype is tf.int32
        and tf.convert_to_tensor(Dimension(3)).numpy() == 3
    )
    with pytest.raises(TypeError, match="Allowed dtypes are tf.int32 and tf.int64"):
        tf.convert_to_tensor(TensorShape([1]), dtype=tf.float32)
    with pytest.raises(ValueError, match="Cannot convert a partially known TensorShape"):
        tf.convert_to_tensor(TensorShape([1, None]))
