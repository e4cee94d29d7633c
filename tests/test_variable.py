"""tf.Variable beyond TensorFlow's own description of it (tests/semantics): memory, reads, creators."""

import abc
import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core


def address(v):
    """The address of the elements; the view is released before this returns."""
    return np.asarray(v._peek()).__array_interface__["data"][0]


def test_updates_are_in_place_unless_the_value_is_shared():
    v = tf.Variable(tf.ones([1000]) * 2.0)
    before = address(v)
    v.assign_sub(tf.ones([1000]))
    v.assign_add(tf.ones([1000]))
    v[3:5].assign([7.0, 8.0])
    v.scatter_nd_add([[3]], [1.0])
    assert address(v) == before
    assert v.numpy()[:6].tolist() == [2, 2, 2, 8, 8, 2]


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.assign_add([1.0, 1.0, 1.0]),
        lambda v: v[1].assign(9.0),
        lambda v: v[:].assign([9.0, 9.0, 9.0]),
        lambda v: v.scatter_nd_update([[0]], [5.0]),
        lambda v: v.scatter_add(tf.IndexedSlices(tf.constant([5.0]), tf.constant([0]))),
    ],
)
@pytest.mark.parametrize(
    "hold", [lambda v: v.value(), lambda v: v[0:3], np.asarray, lambda v: np.from_dlpack(v.value())]
)
def test_values_read_before_a_change_stay(change, hold):
    v = tf.Variable([1.0, 2.0, 3.0])
    held = hold(v)
    change(v)
    assert np.asarray(held).tolist() == [1.0, 2.0, 3.0]
    assert v.numpy().tolist() != [1.0, 2.0, 3.0]


def test_an_assigned_tensor_is_shared_and_stays_as_it_is():
    x = tf.constant([1.0, 2.0])
    v = tf.Variable([0.0, 0.0])
    v.assign(x)
    v.assign_add([1.0, 1.0])
    v[0].assign(9.0)
    assert x.numpy().tolist() == [1.0, 2.0]
    assert v.numpy().tolist() == [9.0, 3.0]


def test_a_variable_can_be_added_to_itself():
    v = tf.Variable([1.0, 2.0])
    v.assign_add(v)
    v.assign_sub(v[0] * [1.0, 1.0])
    assert v.numpy().tolist() == [0.0, 2.0]


def test_gradients_with_respect_to_the_result_of_value():
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        a, b = v.value(), v.read_value()
        y = a * a * b
    grads = tape.gradient(y, [v, a, b])
    assert [float(g) for g in grads] == [27.0, 18.0, 9.0]


def test_a_value_read_outside_of_the_tape_is_a_constant():
    v = tf.Variable(3.0)
    reads = [v.value(), v.read_value(), v._read(), tf.convert_to_tensor(v)]
    for before in reads:
        with tf.GradientTape() as tape:
            y = before * v
        assert float(tape.gradient(y, v)) == 3.0


def test_a_read_of_another_tape_is_no_read_of_this_one():
    v = tf.Variable(3.0)
    with tf.GradientTape():
        before = v.value()
    with tf.GradientTape() as tape:
        y = before * v
    assert float(tape.gradient(y, v)) == 3.0


def test_initial_value_is_not_recorded():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        v = tf.Variable(lambda: x * x)
        y = v * 3.0
    gx, gv = tape.gradient(y, [x, v])
    assert gx is None and float(gv) == 3.0


def test_slices_know_their_variable():
    v = tf.Variable(np.zeros([2, 3], np.float32))
    assert v[0].assign([1.0, 2.0, 3.0]) is v
    assert v[:, 1].assign_add(10.0, read_value=False) is None
    v[..., -1].assign_sub([1.0, 1.0])
    v[1, ::2].assign(5.0)
    assert v.numpy().tolist() == [[1, 12, 2], [5, 10, 5]]


def test_only_slices_of_variables_can_be_assigned():
    x = tf.constant([1.0, 2.0])
    assert not hasattr(x, "assign") and not hasattr(x[0], "assign")
    assert not hasattr(tf.Tensor, "assign")
    v = tf.Variable([1.0, 2.0])
    assert hasattr(v[0], "assign") and not hasattr(v[0] + 1.0, "assign")
    with pytest.raises(AttributeError, match="tf.Variable"):
        x.assign([1.0, 2.0])


def test_a_slice_keeps_its_variable_only_as_long_as_it_lives():
    v = tf.Variable([1.0, 2.0])
    gone = weakref.ref(v)
    part = v[0]
    del v
    assert gone() is not None and float(part) == 1.0
    del part
    gc.collect()
    assert gone() is None


def test_slice_assignment_counts_as_access():
    v = tf.Variable([1.0, 2.0])
    part = v[0]
    with tf.GradientTape() as tape:
        part.assign(3.0)
    assert [w.ref() for w in tape.watched_variables()] == [v.ref()]


def test_updates_need_the_same_shape():
    v = tf.Variable([1.0, 2.0])
    for delta in (1.0, [1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="shapes must be equal"):
            v.assign_add(delta)
    assert v.numpy().tolist() == [1.0, 2.0]


def test_assign_arguments_by_name():
    v = tf.Variable(1.0)
    assert v.assign(value=2.0, use_locking=True, name="n", read_value=True) is v
    assert v.assign_add(delta=1.0, read_value=False) is None
    for wrong in ({}, {"valeu": 1.0}):
        with pytest.raises(TypeError):
            v.assign(**wrong)
    with pytest.raises(TypeError, match="multiple values"):
        v.assign(1.0, value=2.0)
    assert float(v) == 3.0


def test_scatter_with_batches():
    v = tf.Variable(np.zeros([2, 3, 2], np.float32))
    v.batch_scatter_update(tf.IndexedSlices(tf.ones([2, 1, 2]), tf.constant([[2], [0]])))
    expected = np.zeros([2, 3, 2])
    expected[0, 2] = expected[1, 0] = 1
    assert v.numpy().tolist() == expected.tolist()


def test_scatter_adds_up_repeated_rows_and_takes_arrays():
    v = tf.Variable([1.0, 1.0])
    v.scatter_add(tf.IndexedSlices(np.array([1.0, 2.0]), np.array([1, 1])))
    v.scatter_sub(tf.IndexedSlices(5.0, [0]))
    assert v.numpy().tolist() == [-4.0, 4.0]
    v.scatter_nd_max([[0]], [0.0])
    v.scatter_nd_min([[1]], [3.0])
    assert v.numpy().tolist() == [0.0, 3.0]


def test_a_failed_scatter_changes_nothing():
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        v.scatter_nd_update([[0], [7]], [9.0, 9.0])
    assert v.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "uint8", "bool", "complex64"])
def test_every_type(dtype):
    v = tf.Variable([1, 0] if dtype != "bool" else [True, False], dtype=dtype)
    assert v.dtype == dtype and "numpy=" in repr(v)
    if dtype != "bool":
        v.assign_add([1, 1] if dtype != "complex64" else [1 + 1j, 1])
    w = pickle.loads(pickle.dumps(v))
    assert w.dtype == dtype and np.array_equal(np.asarray(v), np.asarray(w))
    assert np.array_equal(np.asarray(copy.deepcopy(v)), np.asarray(v))


def test_pickle_keeps_the_rest():
    with tf.name_scope("a"):
        v = tf.Variable([[1.0]], name="w", shape=[None, 1], constraint=abs, trainable=False)
    w = pickle.loads(pickle.dumps(v))
    assert (w.name, w.trainable, w.constraint) == ("a/w:0", False, abs)
    assert w.shape.as_list() == [None, 1]
    w.assign([[1.0], [2.0]])


def test_copies_in_one_structure_stay_one_variable():
    v = tf.Variable(1.0)
    a, b = copy.deepcopy([v, v])
    assert a is b and a is not v
    assert copy.copy(v) is v


def test_shape_that_may_change():
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))
    assert v.shape.rank is None and v.ndim == 1
    v.assign([[1.0]])
    assert v.ndim == 2 and (v * 2.0).shape == (1, 1)
    v.set_shape([None, 1])
    with pytest.raises(ValueError, match="mismatch"):
        v.assign([1.0])
    with pytest.raises(ValueError, match="not compatible"):
        tf.Variable([1.0, 2.0], shape=[3])


def test_creator_scopes_see_every_variable():
    seen = []

    def creator(next_creator, **kwargs):
        seen.append(kwargs["name"])
        kwargs["trainable"] = False
        return next_creator(**kwargs)

    with tf.variable_creator_scope(creator):
        v = tf.Variable([1.0], name="w")
    assert seen == ["w"] and v.trainable is False
    assert tf.Variable(1.0).trainable is True


def test_python_numbers():
    assert float(tf.Variable(1.5)) == 1.5 and int(tf.Variable(2)) == 2 and bool(tf.Variable(0.0)) is False
    assert (
        complex(tf.Variable(1.0)) == 1 + 0j and [1, 2][tf.Variable(1)] == 2 and round(tf.Variable(2.5)) == 2
    )
    assert f"{tf.Variable(1.234):.1f}" == "1.2"
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tf.Variable([1.0, 2.0]))
    with pytest.raises(TypeError):
        float(tf.Variable([1.0, 2.0]))


def test_harmless_attributes():
    v = tf.Variable(1.0, name="w")
    assert v.handle is v and v.initializer is None and "CPU" in v.device
    assert (
        v.synchronization is tf.VariableSynchronization.AUTO and v.aggregation is tf.VariableAggregation.NONE
    )
    assert not hasattr(v, "op") and not hasattr(v, "graph")
    with pytest.raises(RuntimeError):
        _ = v.initial_value
    assert v.experimental_ref() == v.ref() and bool(v.is_initialized())
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v.handle)
        y = v * v
    assert float(tape.gradient(y, v)) == 2.0


def test_item_assignment_is_an_error():
    v = tf.Variable([1.0])
    with pytest.raises(TypeError, match=r"v\[key\]\.assign"):
        v[0] = 1.0


def test_operators_that_rebind():
    v = w = tf.Variable(7.0)
    w //= 2.0
    assert not isinstance(w, tf.Variable) and float(w) == 3.0 and float(v) == 7.0


def test_no_memory_is_lost(counted_memory):
    v = tf.Variable(tf.ones([100]))
    for _ in range(3):
        v.assign_sub(v * 0.5)
        v[0].assign(1.0)
    before = _core.memory_info()["live_tensors"]
    for _ in range(50):
        v.assign_sub(v * 0.5)
        v[0].assign(1.0)
    assert _core.memory_info()["live_tensors"] == before


def test_methods_of_version_1():
    v = tf.compat.v1.Variable(0, True, None, name="n", use_resource=True, expected_shape=[])
    assert [int(v.count_up_to(2)), int(v.count_up_to(2)), int(v)] == [0, 1, 2]
    with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 2"):
        v.count_up_to(2)
    v.load(7)
    assert int(v) == 7 and v.name == "n:0" and type(v) is type(tf.Variable(0))
    assert isinstance(v, tf.compat.v1.Variable) and not isinstance(1, tf.compat.v1.Variable)
    for method in (v.eval, v.to_proto):
        with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
            method()


@pytest.mark.parametrize(
    ("name", "updates", "expected"),
    [
        ("scatter_update", [9.0], [1.0, 9.0]), ("scatter_add", [9.0], [1.0, 11.0]), ("scatter_sub", [9.0], [1.0, -7.0]),
        ("scatter_mul", [9.0], [1.0, 18.0]), ("scatter_div", [4.0], [1.0, 0.5]), ("scatter_min", [1.0], [1.0, 1.0]),
        ("scatter_max", [3.0], [1.0, 3.0]),
    ],
)  # fmt: skip
def test_scatters_as_functions(name, updates, expected):
    v = tf.Variable([1.0, 2.0])
    getattr(tf.compat.v1, name)(v, [1], updates)
    assert v.numpy().tolist() == expected


def test_scatters_at_coordinates_as_functions():
    v = tf.Variable([1.0, 2.0])
    tf.compat.v1.scatter_nd_update(v, [[0]], [5.0])
    tf.compat.v1.scatter_nd_add(v, [[0]], [1.0])
    tf.compat.v1.scatter_nd_sub(v, [[1]], [1.0])
    assert v.numpy().tolist() == [6.0, 1.0]
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    tf.compat.v1.batch_scatter_update(v, [[0], [1]], [[9.0], [8.0]])
    assert v.numpy().tolist() == [[9.0, 2.0], [3.0, 8.0]]


def test_synchronization_and_aggregation():
    reads = tf.VariableSynchronization.ON_READ
    assert tf.Variable(1.0, trainable=True, synchronization=reads).trainable
    assert not tf.Variable(1.0, synchronization=reads).trainable
    assert tf.Variable(1.0, synchronization=2).synchronization is tf.VariableSynchronization.ON_WRITE
    with pytest.raises(ValueError, match="Invalid variable synchronization mode: foo"):
        tf.Variable(1.0, synchronization="foo")
    with pytest.raises(ValueError, match="Invalid variable aggregation mode: foo"):
        tf.Variable(1.0, aggregation="foo")
    with pytest.raises(ValueError, match="mutually exclusive"):
        tf.Variable(1.0, variable_def=3)


def test_a_class_may_be_a_variable_and_an_abstract_class():
    class Named(abc.ABC):
        @abc.abstractmethod
        def label(self): ...

    class Both(type(tf.Variable(0.0)), Named):
        def label(self):
            return "both"

    v = Both(2.0)
    assert isinstance(v, tf.Variable) and isinstance(v, Named) and v.label() == "both" and v + 1.0 == 3.0
    assert not isinstance(tf.constant(1.0), tf.Variable)


class Composed(tf.Variable):
    """A variable without a value of its own, which TensorFlow allows in classes derived from tf.Variable."""

    shape, dtype, trainable, name = tf.TensorShape([2]), tf.float64, True, "composed"

    def __init__(self, part):
        self.part = part  # without the constructor of tf.Variable

    def value(self):
        return 1.0 - self.part


def test_a_subclass_of_variables_has_the_value_it_computes():
    part = tf.Variable([0.25, 0.5], dtype=tf.float64)
    v = Composed(part)
    assert isinstance(v, tf.Variable) and not isinstance(v, type(part))
    x = tf.constant([2.0, 4.0], tf.float64)
    for got, expected in [
        (v + 1, [1.75, 1.5]), (1 - v, [0.25, 0.5]), (x * v, [1.5, 2.0]), (v * x, [1.5, 2.0]), (-v, [-0.75, -0.5]),
        (v[0], 0.75), (v / v, [1, 1]), (v > 0.6, [True, False]), (v == 0.75, [True, False]), (tf.sqrt(v * v), [0.75, 0.5]),
        (tf.add(v, v), [1.5, 1.0]), (tf.stack([v, x]), [[0.75, 0.5], [2, 4]]), (tf.convert_to_tensor(v), [0.75, 0.5]),
        (tf.reduce_sum(v), 1.25), (v.read_value(), [0.75, 0.5]), (v.numpy(), [0.75, 0.5]), (v[None] @ x[:, None], [[3.5]]),
        (tf.convert_to_tensor([v[0], 2.0]), [0.75, 2.0]), (tf.experimental.numpy.asarray(v), [0.75, 0.5]),
    ]:  # fmt: skip
        np.testing.assert_array_equal(got, expected)
    assert tf.add(v, v).dtype is tf.float64 and v.get_shape() == [2] and "composed" in repr(v)
    part.assign([0.0, 1.0])
    np.testing.assert_array_equal(v + 0, [1.0, 0.0])
    with pytest.raises(ValueError, match="float32"):
        tf.convert_to_tensor(v, tf.float32)
    with pytest.raises(TypeError, match="unhashable"):
        hash(v)
    assert v.ref() in {v.ref()}


def test_gradients_reach_the_variables_behind_a_subclass():
    part = tf.Variable([0.25, 0.5], dtype=tf.float64)
    v = Composed(part)

    def square(x):
        return tf.reduce_sum(v * v * x)

    for f in (square, tf.function(square)):
        for _ in range(3):
            with tf.GradientTape() as tape:
                y = f(tf.constant(3.0, tf.float64))
            assert [w is part for w in tape.watched_variables()] == [True]
            np.testing.assert_allclose(tape.gradient(y, part), [-4.5, -3.0])
        part.assign([0.0, 0.0])
        np.testing.assert_allclose(f(tf.constant(1.0, tf.float64)), 2.0)
        part.assign([0.25, 0.5])


def test_a_subclass_of_variables_without_methods_of_its_own_is_abstract():
    class Empty(tf.Variable):
        pass

    with pytest.raises(NotImplementedError, match="Empty has no value of its own"):
        Empty(2.0)
    with pytest.raises(NotImplementedError):
        Empty(name="v")
    made = Empty.__new__(Empty)
    for use in (lambda: made.value(), lambda: made.assign(1.0), lambda: made.shape, lambda: made + 1.0):
        with pytest.raises(NotImplementedError):
            use()


def test_subclasses_of_variables_in_modules_and_creator_scopes():
    class Held(tf.Variable):
        def __init__(self, value, trainable, name):
            self.tensor = tf.convert_to_tensor(value)
            self._trainable, self._name = trainable, name

        shape = property(lambda self: self.tensor.shape)
        dtype = property(lambda self: self.tensor.dtype)
        trainable = property(lambda self: self._trainable)
        name = property(lambda self: self._name)

        def value(self):
            return self.tensor

        def assign(self, value):
            self.tensor = tf.convert_to_tensor(value, self.dtype)

    def make(next_creator, **kwargs):
        return Held(kwargs["initial_value"], kwargs["trainable"] is not False, kwargs["name"])

    module = tf.Module()
    with tf.variable_creator_scope(make):
        module.w = tf.Variable([1.0, 2.0], name="w")
        module.n = tf.Variable(1.0, trainable=False, name="n")
    assert type(module.w) is Held and [v.name for v in module.variables] == ["n", "w"]
    assert [v.name for v in module.trainable_variables] == ["w"]
    module.w.assign([3.0, 4.0])
    np.testing.assert_array_equal(module.w * module.n, [3.0, 4.0])
