"""What an element may be made of: attrs classes, dataclasses with TensorFlow's protocol, datasets."""

import dataclasses

import attr
import pytest

import gradtape as tf

Dataset = tf.data.Dataset
Spec = tf.TensorSpec


@dataclasses.dataclass
class Masked:
    mask: bool
    value: object

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(metadata[0], components[0])


@attr.s
class Pair:
    x = attr.ib()
    y = attr.ib()


def test_attrs_classes_are_structure():
    ds = Dataset.from_tensor_slices(Pair([1, 2, 3], [3.0, 4.0, 5.0]))
    assert ds.element_spec == Pair(Spec((), tf.int32), Spec((), tf.float32))
    doubled = ds.map(lambda p: Pair(p.x * 2, p.y)).batch(2)
    first, last = doubled.as_numpy_iterator()
    assert type(first) is Pair and first.x.tolist() == [2, 4] and last.y.tolist() == [5.0]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda ds: ds, [1, 2, 3]),
        (lambda ds: ds.map(lambda m: Masked(m.mask, m.value * 2)), [2, 4, 6]),
        (lambda ds: ds.filter(lambda m: m.value > 1), [2, 3]),
        (lambda ds: ds.batch(2), [[1, 2], [3]]),
        (lambda ds: ds.batch(3).unbatch(), [1, 2, 3]),
        (lambda ds: ds.cache().repeat(2).take(4).prefetch(1), [1, 2, 3, 1]),
        (lambda ds: ds.interleave(lambda m: Dataset.from_tensors(m).repeat(2), 3), [1, 2, 3, 1, 2, 3]),
        (lambda ds: ds.scan(Masked(True, 0), lambda s, m: (Masked(True, s.value + m.value), s)), [0, 1, 3]),
    ],
)
def test_classes_that_take_themselves_apart_are_structure(make, expected):
    ds = make(Dataset.from_tensor_slices(Masked(True, tf.constant([1, 2, 3]))))
    found = list(ds)
    assert all(type(m) is Masked and m.mask is True for m in found)
    assert [m.value.numpy().tolist() for m in found] == expected


def test_the_spec_of_such_a_class_is_one_of_them():
    ds = Dataset.from_tensors(Masked(True, tf.constant([1, 2])))
    assert ds.element_spec == Masked(True, Spec((2,), tf.int32))
    total = Dataset.range(3).reduce(
        Masked(True, tf.constant(0, tf.int64)), lambda s, x: Masked(True, s.value + x)
    )
    assert int(total.value) == 3


def test_numpy_iterators_give_arrays_that_stay_as_they_are():
    array = next(Dataset.from_tensors([1, 2]).as_numpy_iterator())
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5
    with pytest.raises(TypeError, match="not supported for datasets that produce values of type"):
        Dataset.range(4).window(2).as_numpy_iterator()
