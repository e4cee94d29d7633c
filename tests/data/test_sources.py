"""Sources of elements: tensors, rows, ranges, generators; and their specs."""

import collections

import numpy as np
import pytest

import gradtape as tf

Dataset = tf.data.Dataset
Spec = tf.TensorSpec
InvalidArgument = tf.errors.InvalidArgumentError
Point = collections.namedtuple("Point", "a b")


def values(ds):
    return list(ds.as_numpy_iterator())


# ---- tensors ------------------------------------------------------------------------------------


def test_slices_of_a_tuple():
    ds = Dataset.from_tensor_slices((np.arange(6.0).reshape(3, 2), [1, 2, 3]))
    assert ds.element_spec == (Spec((2,), tf.float64), Spec((), tf.int32))
    x, y = next(iter(ds))
    assert isinstance(x, tf.Tensor)
    assert x.dtype is tf.float64
    np.testing.assert_array_equal(x, [0.0, 1.0])
    assert y.numpy() == 1
    assert len(ds) == 3


def test_slices_of_a_nest():
    ds = Dataset.from_tensor_slices({"b": [1, 2], "a": (tf.ones([2, 3]), Point([1.0, 2.0], ["x", "y"]))})
    assert ds.element_spec == {
        "b": Spec((), tf.int32),
        "a": (Spec((3,), tf.float32), Point(Spec((), tf.float32), Spec((), tf.string))),
    }
    element = next(iter(ds))
    assert list(element) == ["b", "a"]
    assert isinstance(element["a"][1], Point)
    assert element["a"][1].b.numpy() == b"x"


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(np.ones(2), "float64"), (np.ones(2, np.int64), "int64"), ([1, 2], "int32"), ([1.0], "float32"),
     (np.ones(2, bool), "bool"), (np.ones(2, np.uint8), "uint8"), (np.ones(2, np.float16), "float16"),
     (np.ones(2, np.complex64), "complex64")],
)  # fmt: skip
def test_types_are_kept(value, dtype):
    ds = Dataset.from_tensor_slices(value)
    assert ds.element_spec.dtype.name == dtype
    assert next(iter(ds)).dtype.name == next(iter(ds.batch(1))).dtype.name == dtype


def test_lists_are_tensors_and_tuples_are_structure():
    assert Dataset.from_tensor_slices([[1, 2], [3, 4]]).element_spec == Spec((2,), tf.int32)
    assert Dataset.from_tensor_slices(([1, 2], [3, 4])).element_spec == (Spec((), tf.int32),) * 2
    assert Dataset.from_tensors([1, 2]).element_spec == Spec((2,), tf.int32)


def test_from_tensors():
    ds = Dataset.from_tensors(([1, 2], "x"))
    assert len(ds) == 1
    x, text = next(iter(ds))
    assert x.numpy().tolist() == [1, 2]
    assert text.numpy() == b"x"


def test_variables_are_read_once():
    v = tf.Variable([1.0, 2.0])
    ds = Dataset.from_tensor_slices(v)
    v.assign([5.0, 6.0])
    assert values(ds) == [1.0, 2.0]


def test_arrays_are_copied():
    x = np.zeros(3)
    ds = Dataset.from_tensor_slices(x)
    x[:] = 7
    assert values(ds) == [0, 0, 0]


def test_none_is_a_part():
    ds = Dataset.from_tensor_slices(([1, 2, 3], None))
    assert [(int(x), n) for x, n in ds] == [(1, None), (2, None), (3, None)]
    assert [n for _, n in ds.batch(2)] == [None, None]
    assert "NoneTensorSpec" in repr(ds)


def test_no_elements():
    ds = Dataset.from_tensor_slices(np.zeros((0, 3)))
    assert len(ds) == 0
    assert list(ds) == list(ds.batch(2)) == list(ds.shuffle(3).repeat().batch(2)) == []


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Dataset.from_tensor_slices(5), ValueError, "only supported for rank >= 1"),
        (lambda: Dataset.from_tensor_slices(([1, 2], [1, 2, 3])), ValueError, "Dimensions 2 and 3 are not compatible"),
        (lambda: Dataset.from_tensor_slices(()), ValueError, "should not be empty"),
        (lambda: Dataset.from_tensor_slices(object()), ValueError, "unsupported type"),
        (lambda: Dataset.from_tensor_slices([[1], [1, 2]]), ValueError, "not rectangular"),
        (lambda: Dataset.from_tensors(()), tf.errors.InvalidArgumentError, "should not be empty"),
        (lambda: Dataset.from_tensors(None), tf.errors.InvalidArgumentError, "should not be empty"),
    ],
)  # fmt: skip
def test_wrong_tensors(make, error, words):
    with pytest.raises(error, match=words):
        make()


# ---- numbers ------------------------------------------------------------------------------------


def test_range():
    assert values(Dataset.range(3)) == [0, 1, 2]
    assert values(Dataset.range(2, 10, 3)) == [2, 5, 8]
    assert values(Dataset.range(5, 1, -2)) == [5, 3]
    assert values(Dataset.range(tf.constant(3, tf.int64))) == [0, 1, 2]
    assert next(iter(Dataset.range(10**12).skip(10**12 - 1))).numpy() == 10**12 - 1
    assert Dataset.range(3).element_spec == Spec((), tf.int64)
    assert values(Dataset.range(2, output_type=tf.float32)) == [0.0, 1.0]
    assert next(iter(Dataset.range(2, output_type=tf.int32))).dtype is tf.int32


def test_wrong_ranges():
    with pytest.raises(ValueError, match="between 1 and 3 but was 0"):
        Dataset.range()
    with pytest.raises(InvalidArgument, match="step must be a non-zero integer"):
        Dataset.range(1, 2, 0)
    with pytest.raises(TypeError, match="must be an integer"):
        Dataset.range(2.5)


def test_counter():
    assert values(Dataset.counter(5, 2).take(3)) == [5, 7, 9]
    assert [b.tolist() for b in values(Dataset.counter(2, 3, tf.int32).take(4).batch(3))] == [[2, 5, 8], [11]]
    assert values(tf.data.experimental.Counter().take(2)) == [0, 1]


# ---- generators ---------------------------------------------------------------------------------


def one_two():
    yield 1
    yield 2


def test_generator_with_signature():
    ds = Dataset.from_generator(one_two, output_signature=Spec((), tf.int32))
    assert values(ds) == values(ds) == [1, 2]
    assert ds.element_spec == Spec((), tf.int32)
    assert int(ds.cardinality()) == tf.data.UNKNOWN_CARDINALITY


def test_generator_with_types():
    ds = Dataset.from_generator(one_two, tf.int64)
    assert ds.element_spec == Spec(None, tf.int64)
    assert next(iter(ds)).dtype is tf.int64
    ds = Dataset.from_generator(lambda: iter([(1, [2.0, 3.0])]), (tf.int32, tf.float32), ((), (None,)))
    assert ds.element_spec == (Spec((), tf.int32), Spec((None,), tf.float32))
    assert values(ds)[0][1].tolist() == [2.0, 3.0]


def test_generator_of_dicts_text_and_tensors():
    signature = {"a": Spec((), tf.string), "b": Spec((None,), tf.float32)}
    ds = Dataset.from_generator(
        lambda: iter([{"a": "x", "b": tf.constant([1.0])}]), output_signature=signature
    )
    element = next(iter(ds))
    assert element["a"].numpy() == b"x"
    assert element["b"].numpy().tolist() == [1.0]


def test_generator_arguments():
    def count(n, name):
        assert isinstance(n, np.int32)
        assert name == b"a"
        return iter(range(n))

    ds = Dataset.from_generator(count, args=(3, "a"), output_signature=Spec((), tf.int32))
    assert values(ds) == [0, 1, 2]


def test_generators_are_lazy():
    made = []

    def endless():
        for i in range(10**9):
            made.append(i)
            yield i

    it = iter(Dataset.from_generator(endless, tf.int32))
    next(it)
    assert made == [0]


@pytest.mark.parametrize(
    ("yielded", "spec", "words"),
    [
        ((1, 2), Spec((), tf.int32), "of shape \\(2,\\) where an element of shape \\(\\) was expected"),
        (1, (Spec((), tf.int32), Spec((), tf.int32)), "did not match the expected structure"),
        ([1, 2], (Spec((), tf.int32), Spec((), tf.int32)), "did not match the expected structure"),
        ({"a": 1}, {"b": Spec((), tf.int32)}, "did not match the expected structure"),
        ([1, 2], Spec((3,), tf.int32), "where an element of shape \\(3,\\) was expected"),
        ("a", Spec((), tf.int32), "could not be converted to the expected type. The expected type was int32"),
        (tf.constant(1.0), Spec((), tf.int32), "could not be converted to the expected type"),
        (1, Spec((), tf.string), "could not be converted to the expected type. The expected type was string"),
    ],
)
def test_generator_that_yields_something_else(yielded, spec, words):
    ds = Dataset.from_generator(lambda: iter([yielded]), output_signature=spec)
    with pytest.raises(InvalidArgument, match=words):
        list(ds)


def test_wrong_generators():
    with pytest.raises(TypeError, match="either the `output_signature` argument or"):
        Dataset.from_generator(one_two)
    with pytest.raises(TypeError, match="can not be used together"):
        Dataset.from_generator(one_two, tf.int32, output_signature=Spec((), tf.int32))
    with pytest.raises(TypeError, match="must be a Python callable"):
        Dataset.from_generator([1, 2], tf.int32)
    with pytest.raises(TypeError, match="subclass of `tf.TypeSpec`"):
        Dataset.from_generator(one_two, output_signature=tf.int32)
    with pytest.raises(InvalidArgument, match="'int' object is not iterable"):
        list(Dataset.from_generator(lambda: 5, tf.int32))


def test_errors_of_generators_are_the_users_own():
    def broken():
        yield 1
        raise RuntimeError("oops")

    it = iter(Dataset.from_generator(broken, tf.int32))
    assert next(it).numpy() == 1
    with pytest.raises(RuntimeError, match="oops") as found:
        next(it)
    assert any(frame.name == "broken" for frame in found.traceback)


# ---- iterators ----------------------------------------------------------------------------------


def test_iterator():
    it = iter(Dataset.range(3))
    assert isinstance(it, tf.data.Iterator)
    assert it.element_spec == Spec((), tf.int64)
    assert next(it).numpy() == 0
    assert it.get_next().numpy() == 1
    assert bool(it.get_next_as_optional().has_value())
    empty = it.get_next_as_optional()
    assert not bool(empty.has_value())
    with pytest.raises(InvalidArgument, match="does not have a value"):
        empty.get_value()
    with pytest.raises(StopIteration):
        next(it)
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        it.get_next()


def test_iterators_are_independent():
    ds = Dataset.range(3)
    a, b = iter(ds), iter(ds)
    assert (int(next(a)), int(next(a)), int(next(b))) == (0, 1, 0)


def test_single_element():
    assert Dataset.range(1).get_single_element().numpy() == 0
    for n, words in ((0, "was empty"), (2, "more than one element")):
        with pytest.raises(InvalidArgument, match=words):
            Dataset.range(n).get_single_element()


def test_tapes_do_not_see_datasets():
    v = tf.Variable(2.0)
    ds = Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x * v)
    with tf.GradientTape() as tape:
        total = v * 0.0
        for x in ds:
            total += x
    assert total.numpy() == 6.0
    assert tape.gradient(total, v).numpy() == 0.0


def test_specs():
    ds = Dataset.range(3)
    assert tf.data.experimental.get_structure(ds) == Spec((), tf.int64)
    assert repr(tf.data.DatasetSpec.from_value(ds)) == (
        "DatasetSpec(TensorSpec(shape=(), dtype=tf.int64, name=None), TensorShape([]))"
    )
    assert (
        repr(ds.batch(2))
        == "<_BatchDataset element_spec=TensorSpec(shape=(None,), dtype=tf.int64, name=None)>"
    )
    assert tf.data.AUTOTUNE == tf.data.experimental.AUTOTUNE == -1
    assert tf.data.experimental.at(ds, 2).numpy() == 2
    with pytest.raises(tf.errors.OutOfRangeError):
        tf.data.experimental.at(ds, 3)


def test_from_list():
    ds = tf.data.experimental.from_list([(1, "a"), (2, "b")])
    assert values(ds) == [(1, b"a"), (2, b"b")]
    with pytest.raises(ValueError, match="different structures"):
        tf.data.experimental.from_list([(1, 2), 3])


def test_generators_continue_after_an_invalid_element():
    it = iter(Dataset.from_generator(lambda: iter([1, "x", 2, [3], 4]), output_signature=Spec((), tf.int64)))
    found = []
    for _ in range(5):
        try:
            found.append(int(next(it)))
        except tf.errors.InvalidArgumentError:
            found.append(None)
    assert found == [1, None, 2, None, 4]
    with pytest.raises(StopIteration):
        next(it)
