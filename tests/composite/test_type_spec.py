"""TypeSpecs by TensorFlow's protocol: a user-defined class, comparison, pickles, nests that expand composites."""

import pickle

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.base.type_spec import BatchableTypeSpec
from gradtape._src.tensors.composite import CompositeTensor


class Pair(CompositeTensor):
    """A value of two tensors and a colour."""

    def __init__(self, x, y, color="red"):
        self.x, self.y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
        self.color = color

    @property
    def _type_spec(self):
        return PairSpec(self.x.shape, self.x.dtype, self.y.shape, self.y.dtype, self.color)


class PairSpec(tf.TypeSpec):
    def __init__(self, x_shape, x_dtype, y_shape, y_dtype, color="red"):
        self.x_shape, self.y_shape = tf.TensorShape(x_shape), tf.TensorShape(y_shape)
        self.x_dtype, self.y_dtype = tf.as_dtype(x_dtype), tf.as_dtype(y_dtype)
        self.color = color

    value_type = property(lambda self: Pair)

    @property
    def _component_specs(self):
        return tf.TensorSpec(self.x_shape, self.x_dtype), tf.TensorSpec(self.y_shape, self.y_dtype)

    def _to_components(self, value):
        return value.x, value.y

    def _from_components(self, components):
        return Pair(*components, self.color)

    def _serialize(self):
        return self.x_shape, self.x_dtype, self.y_shape, self.y_dtype, self.color


def spec(x=(5,), y=(2, None), color="red", dtype=tf.int32):
    return PairSpec(x, dtype, y, tf.bool, color)


def test_equality_and_hash():
    assert spec() == spec((5,), [2, None]) and hash(spec()) == hash(spec())
    others = [
        spec((6,)),
        spec(None),
        spec(color="blue"),
        spec(dtype=tf.float32),
        tf.TensorSpec([5], tf.int32),
        5,
    ]
    for other in others:
        assert spec() != other


@pytest.mark.parametrize(
    "other, expected",
    [
        (spec((5,), (2, 4)), True),
        (spec(None, None), True),
        (spec((6,)), False),
        (spec(color="blue"), False),
        (spec(dtype=tf.float32), False),
        (Pair([1] * 5, [[True], [False]]), True),
        (Pair([1] * 4, [[True], [False]]), False),
        (12, False),
    ],
)
def test_compatibility(other, expected):
    assert spec().is_compatible_with(other) is expected


def test_subtypes():
    assert spec((5,), (2, 4)).is_subtype_of(spec()) and not spec().is_subtype_of(spec((5,), (2, 4)))
    assert not spec().is_subtype_of(spec(color="blue")) and not spec().is_subtype_of(
        tf.TensorSpec([5], tf.int32)
    )


def test_common_supertypes():
    assert spec((5,)).most_specific_common_supertype([spec((6,)), spec((7,))]) == spec((None,))
    assert spec((5,)).most_specific_common_supertype([spec((5, 1))]) == spec(None)
    assert spec().most_specific_common_supertype([spec(color="blue")]) is None
    with pytest.raises(ValueError, match="No TypeSpec is compatible with both"):
        spec().most_specific_compatible_type(spec(color="blue"))


def test_words_and_pickles():
    assert repr(spec()) == "PairSpec(TensorShape([5]), tf.int32, TensorShape([2, None]), tf.bool, 'red')"
    assert pickle.loads(pickle.dumps(spec())) == spec()


def test_ranks_only_and_names():
    assert spec()._with_tensor_ranks_only() == spec((None,), (None, None))
    assert spec()._without_tensor_names() == spec()
    assert tf.TensorSpec([2], name="x")._without_tensor_names() == tf.TensorSpec([2])


def test_a_spec_that_cannot_be_hashed():
    class Odd(tf.TypeSpec):
        def _serialize(self):
            return ({1, 2},)

    with pytest.raises(ValueError, match="unsupported value of type"):
        hash(Odd())


def test_serialisations_may_have_arrays_lists_and_dicts():
    class Any_(tf.TypeSpec):
        def __init__(self, *parts):
            self.parts = parts

        def _serialize(self):
            return self.parts

    def one():
        return Any_({"a": [1, 2], "b": (np.array([1.0, 2.0]),)}, None)

    assert one() == one() and hash(one()) == hash(one()) and one().is_compatible_with(one())
    assert one() != Any_({"a": [1, 2], "b": (np.array([1.0, 3.0]),)}, None)


# ---- nests ------------------------------------------------------------------------------------------


def test_nests_expand_composites_only_on_request():
    pair = Pair([1, 2], [True])
    assert tf.nest.flatten([pair, 3]) == [pair, 3]
    x, y, three = tf.nest.flatten([pair, 3], expand_composites=True)
    assert x is pair.x and y is pair.y and three == 3


def test_nests_put_composites_together():
    pair = Pair([1, 2], [True], "blue")
    made = tf.nest.map_structure(lambda t: tf.concat([t, t], 0), {"a": pair}, expand_composites=True)["a"]
    assert made.color == "blue" and made.x.numpy().tolist() == [1, 2, 1, 2]
    made = tf.nest.pack_sequence_as(pair._type_spec, [pair.x, pair.y], expand_composites=True)
    assert isinstance(made, Pair) and made.x is pair.x


def test_specs_expand_too():
    flat = tf.nest.flatten([spec(), tf.TensorSpec([1])], expand_composites=True)
    assert flat == [tf.TensorSpec([5], tf.int32), tf.TensorSpec([2, None], tf.bool), tf.TensorSpec([1])]


def test_structures_of_composites_are_compared_by_their_specs():
    red, blue = Pair([1], [True]), Pair([1], [True], "blue")
    tf.nest.assert_same_structure(red, blue)
    tf.nest.assert_same_structure(red, Pair([1, 2], [True]), expand_composites=True)
    tf.nest.assert_same_structure(red, red._type_spec, expand_composites=True)
    with pytest.raises(ValueError, match="Incompatible CompositeTensor TypeSpecs"):
        tf.nest.assert_same_structure(red, blue, expand_composites=True)
    with pytest.raises(ValueError, match="structure"):
        tf.nest.assert_same_structure(red, tf.constant(1), expand_composites=True)


# ---- the spec of a value ------------------------------------------------------------------------------


def test_type_spec_from_value():
    assert tf.type_spec_from_value(Pair([1, 2], [True])) == PairSpec([2], tf.int32, [1], tf.bool)
    assert tf.type_spec_from_value(tf.ones([2, 3])) == tf.TensorSpec([2, 3])
    assert tf.type_spec_from_value(np.zeros([2], "float64")) == tf.TensorSpec([2], tf.float64)
    assert tf.type_spec_from_value([tf.ones([3]), tf.ones([3])]) == tf.TensorSpec([2, 3])
    assert repr(tf.type_spec_from_value(tf.Variable(1.0))).startswith(
        "VariableSpec(shape=(), dtype=tf.float32"
    )
    with pytest.raises(TypeError, match="Could not build a TypeSpec for"):
        tf.type_spec_from_value(object())


def test_indexed_slices():
    slices = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4]), tf.constant([5, 3]))
    found = tf.type_spec_from_value(slices)
    assert found == tf.IndexedSlicesSpec([5, 3], tf.float32, tf.int32, tf.int32, [2])
    assert found._component_specs == (
        tf.TensorSpec([2, 3]),
        tf.TensorSpec([2], tf.int32),
        tf.TensorSpec([2], tf.int32),
    )
    again = found._from_tensor_list(found._to_tensor_list(slices))
    assert again.indices is slices.indices and again.values is slices.values
    with pytest.raises(ValueError, match="the TypeSpec expects 3 items"):
        found._from_tensor_list([slices.values])
    with pytest.raises(ValueError, match="item 0 .* is incompatible"):
        found._from_tensor_list([slices.indices, slices.indices, slices.dense_shape])


def test_specs_of_other_values():
    array = tf.TensorArray(tf.int32, 3, dynamic_size=True, element_shape=[2])
    found = tf.type_spec_from_value(array)
    assert found == tf.TensorArraySpec([2], tf.int32, dynamic_size=True) and found.is_compatible_with(array)
    assert found.value_type is tf.TensorArray and pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(TypeError, match="Expected value to be a TensorArray"):
        tf.TensorArraySpec.from_value([1])
    none = tf.type_spec_from_value(None)
    assert none == tf.NoneTensorSpec() and repr(none) == "NoneTensorSpec()" and not none.is_compatible_with(1)
    with pytest.raises(TypeError, match="Can't instantiate abstract class TypeSpec"):
        tf.TypeSpec()


# ---- batches ----------------------------------------------------------------------------------------------


class RowsSpec(BatchableTypeSpec):
    def __init__(self, shape):
        self.shape = tf.TensorShape(shape)

    value_type = property(lambda self: tuple)

    @property
    def _component_specs(self):
        return {"a": tf.TensorSpec(self.shape), "b": tf.TensorSpec(self.shape, tf.int32)}

    def _to_components(self, value):
        return dict(zip("ab", value, strict=True))

    def _from_components(self, components):
        return components["a"], components["b"]

    def _serialize(self):
        return (self.shape,)

    def _batch(self, batch_size):
        return RowsSpec([batch_size, *self.shape])

    def _unbatch(self):
        return RowsSpec(self.shape[1:])


def test_batchable_specs_give_lists_of_tensors_that_stack():
    one = RowsSpec([2])
    values = [(tf.constant([1.0, 2.0]), tf.constant([3, 4])), (tf.constant([5.0, 6.0]), tf.constant([7, 8]))]
    stacked = [tf.stack(ts) for ts in zip(*map(one._to_tensor_list, values), strict=True)]
    batch = one._batch(2)
    a, b = batch._from_tensor_list(stacked)
    assert a.numpy().tolist() == [[1, 2], [5, 6]] and b.numpy().tolist() == [[3, 4], [7, 8]]
    assert batch._flat_tensor_specs == [tf.TensorSpec([2, 2]), tf.TensorSpec([2, 2], tf.int32)]
    assert batch._unbatch() == one
    with pytest.raises(ValueError, match="scalar item which cannot be batched"):
        RowsSpec([])._to_batched_tensor_list((tf.constant(1.0), tf.constant(1)))
    assert tf.TensorSpec([3])._batch(None) == tf.TensorSpec([None, 3]) and tf.TensorSpec(
        [3]
    )._unbatch() == tf.TensorSpec([])
