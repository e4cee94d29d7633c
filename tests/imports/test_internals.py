"""Names of TensorFlow's internal modules that packages use: nests, trackables, specs, operators, dispatchers."""

from __future__ import annotations

import copy
import inspect
import pickle
import types
from collections import namedtuple

import numpy as np
import pytest

import gradtape as tf
from gradtape_imports import internals
from gradtape_imports.code import (
    bounded_spec,
    data_adapter,
    data_nest,
    dispatch,
    func_graph,
    monitoring,
    nest,
    operator_addition,
    operators,
    smart_cond,
    tf_export,
    tf_inspect,
    tracking,
    type_specs,
    weights,
)

Pair = namedtuple("Pair", "a b")


def test_every_row_of_the_table_is_a_module():
    for path in internals.MODULES:
        assert internals.module(path.split(".")) is not None, path


def test_structures_are_walked_as_far_as_another_one_reaches():
    shallow, deep = {"a": None, "b": (None, None)}, {"b": ([1, 2], 3), "a": {"x": 4}}
    assert nest.flatten_up_to(shallow, deep) == [{"x": 4}, [1, 2], 3]
    assert nest.map_structure_up_to(shallow, lambda x: type(x), deep) == {"a": dict, "b": (list, int)}
    paths = nest.flatten_with_tuple_paths_up_to(shallow, deep)
    assert [path for path, _ in paths] == [("a",), ("b", 0), ("b", 1)]
    assert nest.map_structure_with_tuple_paths(lambda p, x: (p, x), [1, {"k": 2}]) == [
        ((0,), 1),
        {"k": ((1, "k"), 2)},
    ]
    assert nest.flatten_with_joined_string_paths({"a": [1, 2]}) == [("a/0", 1), ("a/1", 2)]
    assert nest.get_traverse_shallow_structure(lambda s: not isinstance(s, dict), [1, (2, {"a": 3})]) == [
        True,
        (True, False),
    ]
    assert nest.list_to_tuple([1, {"a": [2]}]) == (1, {"a": (2,)})


def test_structures_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="input must also be a sequence"):
        nest.flatten_up_to([1, 2], 3)
    with pytest.raises(TypeError, match="don't have the same sequence type"):
        nest.flatten_up_to([1, 2], (1, 2))
    assert nest.flatten_up_to([1, 2], (3, 4), check_types=False) == [3, 4]
    with pytest.raises(ValueError, match="don't have the same sequence length"):
        nest.flatten_up_to([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="keys are not a subset"):
        nest.flatten_up_to({"a": 1}, {"b": 1})
    assert nest.flatten_up_to(Pair(1, 2), namedtuple("Pair", "a b")(3, 4)) == [3, 4]


def test_modules_and_variables_are_trackable():
    tracking = internals.module(["__internal__", "tracking"])
    assert issubclass(tf.Module, tracking.AutoTrackable)
    assert isinstance(tf.Variable(1.0), tracking.Trackable)
    assert tf.Module()._no_dependency(3) == 3


def test_signatures_of_ops_are_tensorflows():
    assert str(inspect.signature(tf.add)) == "(x, y, name=None)"
    assert tf_inspect.getfullargspec(tf.shape).args == ["input", "out_type", "name"]
    assert tf_inspect.getfullargspec(tf.sets.difference).annotations == {}


def test_operators_are_made_of_tensors():
    operator = tf.linalg.LinearOperatorDiag([1.0, 2.0], is_positive_definite=True)
    spec = operator._type_spec
    assert type(spec).__name__ == "LinearOperatorDiagSpec" and not tf.is_tensor(operator)
    (diag,) = tf.nest.flatten(operator, expand_composites=True)
    assert diag.numpy().tolist() == [1.0, 2.0]
    again = tf.nest.pack_sequence_as(operator, [diag + 1.0], expand_composites=True)
    assert again.is_positive_definite and again.diag.numpy().tolist() == [2.0, 3.0]
    traces = []

    @tf.function
    def determinant(operator):
        traces.append(operator)
        return operator.determinant()

    assert determinant(operator) == 2.0 and determinant(again) == 6.0 and len(traces) == 1
    for other in (
        tf.linalg.LinearOperatorIdentity(2),
        tf.linalg.LinearOperatorFullMatrix(np.eye(2)),
        tf.linalg.LinearOperatorLowerTriangular(np.eye(2)),
        tf.linalg.LinearOperatorScaledIdentity(2, 3.0),
        tf.linalg.LinearOperatorBlockDiag([operator, operator]),
        tf.linalg.LinearOperatorComposition([operator, operator]),
        tf.linalg.LinearOperatorLowRankUpdate(operator, np.ones((2, 1), np.float32)),
        tf.linalg.LinearOperatorCirculant(np.ones(2, np.complex64)),
    ):
        tensors = tf.nest.flatten(other, expand_composites=True)
        same = tf.nest.pack_sequence_as(other, tensors, expand_composites=True)
        assert type(same) is type(other)
        np.testing.assert_array_equal(same.to_dense(), other.to_dense())


def test_sums_of_operators():
    a, b = tf.linalg.LinearOperatorDiag([1.0, 2.0]), tf.linalg.LinearOperatorIdentity(2)
    (total,) = operator_addition.add_operators([a, b])
    assert isinstance(total, tf.linalg.LinearOperatorDiag) and total.diag_part().numpy().tolist() == [
        2.0,
        3.0,
    ]
    (total,) = operator_addition.add_operators(
        [a, tf.linalg.LinearOperatorFullMatrix([[0.0, 1.0], [1.0, 0.0]])]
    )
    assert total.to_dense().numpy().tolist() == [[1.0, 1.0], [1.0, 2.0]]


def test_specs_have_names():
    @type_specs.register("tests.internals.Spec")
    class Spec(tf.TypeSpec):
        pass

    assert type_specs.lookup("tests.internals.Spec") is Spec and type_specs.get_name(Spec).endswith(".Spec")
    with pytest.raises(ValueError, match="already been registered"):
        type_specs.register("tests.internals.Spec")(type("Other", (tf.TypeSpec,), {}))
    with pytest.raises(ValueError, match="must have the form"):
        type_specs.register("Spec")


def test_conditions_that_are_known_are_decided_at_once():
    assert smart_cond.smart_cond(tf.constant(True), lambda: 1, lambda: 2) == 1
    assert smart_cond.smart_cond(0, lambda: 1, lambda: 2) == 2
    with pytest.raises(TypeError, match="must be a Tensor, or a Python bool"):
        smart_cond.smart_cond("yes", lambda: 1, lambda: 2)


def test_weights_are_broadcast():
    assert weights.broadcast_weights([[1.0], [2.0]], tf.zeros([2, 2])).numpy().tolist() == [[1, 1], [2, 2]]
    with pytest.raises(ValueError, match="can not be broadcast"):
        weights.broadcast_weights([1.0, 2.0], tf.zeros([2, 2]))


def test_a_function_asks_for_values_of_other_classes():
    class Length:
        def __init__(self, metres):
            self.metres = metres

    @dispatch.add_dispatch_support
    def double(x):
        return tf.convert_to_tensor(x) * 2

    @dispatch.dispatch_for_types(double, Length)
    def double_of_length(x):
        return Length(2 * x.metres)

    assert double(Length(3)).metres == 6 and double(3) == 6
    with pytest.raises((TypeError, ValueError)):
        double(object())


class Symbol:
    """Symbolic tensors of Keras 2 models, under the same module path."""

    def __init__(self, dtype=tf.float32):
        self.dtype = dtype


keras_tensor = types.SimpleNamespace(KerasTensor=Symbol)


def test_functions_and_operators_ask_the_dispatcher_of_keras_2():
    class Dispatcher(dispatch.GlobalOpDispatcher):
        def handle(self, op, args, kwargs):
            if any(isinstance(a, Symbol) for a in (*args, *kwargs.values())):
                name = tf_export.get_canonical_name_for_symbol(op)
                assert tf_export.get_symbol_from_name(name) is op
                return name
            return self.NOT_SUPPORTED

    Dispatcher().register()
    x, bits, truth = Symbol(), Symbol(tf.int32), Symbol(tf.bool)
    found = [
        tf.nn.relu(x),
        tf.reduce_sum(input_tensor=x),
        tf.image.flip_up_down(x),
        tf.debugging.check_numerics(x, ""),
    ]
    assert found == ["nn.relu", "math.reduce_sum", "image.flip_up_down", "debugging.check_numerics"]
    assert [x + 1, 1 + x, x[0], tf.ones(2) * x] == ["__operators__.add"] * 2 + [
        "__operators__.getitem",
        "math.multiply",
    ]
    assert [-x, x < 1, x == 1, x.__eq__(None), x.__ne__(None)] == [
        "math.negative",
        "math.less",
        "math.equal",
        False,
        True,
    ]
    assert [bits & 1, truth & True, ~bits, ~truth] == [
        "bitwise.bitwise_and", "math.logical_and", "bitwise.invert", "math.logical_not",
    ]  # fmt: skip
    assert float(tf.reduce_sum([1.0, 2.0])) == 3


def test_batches_of_keras_are_taken_apart():
    x, y = tf.zeros([2]), tf.zeros([2, 3])
    assert [t.shape.rank for t in data_adapter.expand_1d((x, y))] == [2, 2]
    assert data_adapter.unpack_x_y_sample_weight(([1], 2)) == ([1], 2, None)
    assert data_adapter.unpack_x_y_sample_weight([1, 2]) == ([1, 2], None, None)
    with pytest.raises(ValueError, match="Data is expected to be in format"):
        data_adapter.unpack_x_y_sample_weight((1, 2, 3, 4))


def test_operators_under_their_names():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert operators.add(x, 1.0)[0, 0] == 2 and operators.getitem(x, [slice(None), 1])[1] == 4
    assert tf_export.get_canonical_name_for_symbol(test_operators_under_their_names) is None


def test_keras_finds_what_it_shows_by_name():
    def thing():
        return 1

    assert tf_export.keras_export("keras.somewhere.thing", v1=["keras.thing"])(thing) is thing
    assert tf_export.get_symbol_from_name("keras.somewhere.thing") is thing
    assert tf_export.get_symbol_from_name("compat.v1.keras.thing") is thing
    assert tf_export.get_symbol_from_name("keras.thing") is None
    assert tf_export.get_canonical_name_for_symbol(thing, api_name="keras") == "keras.somewhere.thing"
    assert tf_export.get_canonical_name_for_symbol(int, api_name="keras") is None


def test_lists_of_variables_and_modules_are_looked_into():
    v, w = tf.Variable(1.0), tf.Variable(2.0, trainable=False)
    wrapped = tracking.wrap({"a": [v, 3], "b": (w, [])})
    assert isinstance(wrapped["a"], list) and isinstance(wrapped["b"], tuple)
    assert wrapped.trainable_weights == [v] and wrapped.non_trainable_variables == [w]
    wrapped["a"].append(w)
    assert wrapped.weights == [v, w, w] and type(copy.deepcopy(wrapped)) is type(wrapped)
    assert tracking.wrap("text") == "text" and type(tracking.wrap((1, 2))) is tuple


def test_methods_that_set_attributes_unnoticed():
    class Noting:
        noted = ()

        def __setattr__(self, name, value):
            if not name.startswith("_self") and getattr(self, "_self_setattr_tracking", True):
                object.__setattr__(self, "noted", (*self.noted, name))
            object.__setattr__(self, name, value)

        @tracking.no_automatic_dependency_tracking
        def quietly(self):
            self.a = 1

    x = Noting()
    x.quietly()
    x.b = 2
    assert x.noted == ("b",) and x.a == 1


def test_a_graph_that_is_written_for_shapes():
    graph = func_graph.FuncGraph("scratch")
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 3])
        y = tf.matmul(x, tf.ones([3, 2]))
        assert not tf.executing_eagerly() and y.shape.as_list() == [None, 2]
    assert tf.executing_eagerly()
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        tf.compat.v1.placeholder(tf.float32, [None, 3])


def test_a_tuple_that_is_an_attribute_has_the_structure_of_one():
    wrapped = tracking.wrap((tf.Variable(1.0), [2]))
    assert type(wrapped) is not tuple and type(tracking.wrap(((1, 2), 3))) is tuple
    tf.nest.assert_same_structure(wrapped, (1, [2]))
    tf.nest.assert_same_structure((1, [2]), wrapped)
    with pytest.raises(TypeError):
        tf.nest.assert_same_structure(wrapped, [1, [2]])


def test_specs_with_bounds():
    spec = bounded_spec.BoundedTensorSpec([2], tf.int32, 0, [3, 4], "x")
    assert isinstance(spec, tf.TensorSpec) and spec.minimum == 0 and spec.maximum.tolist() == [3, 4]
    assert spec == pickle.loads(pickle.dumps(spec)) and spec != tf.TensorSpec([2], tf.int32, "x")
    assert spec != bounded_spec.BoundedTensorSpec([2], tf.int32, 0, 3, "x")
    whole = bounded_spec.BoundedTensorSpec.from_spec(tf.TensorSpec([1], tf.int8))
    assert (whole.minimum, whole.maximum) == (-128, 127)
    with pytest.raises(ValueError, match="read-only"):
        spec.maximum[0] = 1
    for bad in (None, [1, 2, 3]):
        with pytest.raises(ValueError, match="`minimum`"):
            bounded_spec.BoundedTensorSpec([2], tf.float32, bad, 1)


def test_structures_of_datasets_take_lists_for_values():
    assert data_nest.flatten({"b": [1, 2], "a": (3, Pair([4], 5))}) == [3, [4], 5, [1, 2]]
    assert data_nest.is_nested((1,)) and not data_nest.is_nested([1])


def test_arguments_of_a_call():
    def f(a, b=2, *rest, c, d=4, **more):
        pass

    assert tf_inspect.getcallargs(f, 1, c=3, other=5) == {"a": 1, "b": 2, "c": 3, "d": 4, "other": 5}
    assert tf_inspect.getargspec(f) == (["a", "b"], "rest", "more", (2,))

    class C:
        def method(self, x):
            pass

    c = C()
    assert tf_inspect.getcallargs(c.method, 1) == {"self": c, "x": 1}


def test_numbers_that_nothing_collects():
    gauge = monitoring.BoolGauge("/a", "what", "label")
    assert gauge.get_cell("x").value() is False
    gauge.get_cell("x").set(True)
    assert gauge.get_cell("x").value() is True and gauge.get_cell("y").value() is False
    counter = monitoring.Counter("/b", "what")
    counter.get_cell().increase_by(2)
    assert counter.get_cell().value() == 2
