"""Graphs as programs inspect them: operations, names, tensors by name. Control flow of version 1."""

import pytest

from tests.semantics.lib import ON_TENSORFLOW, assert_close, tf

spec = tf.TensorSpec
v1 = tf.compat.v1


@pytest.mark.parametrize("size", [2, None])
def test_operations_of_a_function(size):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    f = tf.function(lambda x, y: tf.nn.relu(tf.matmul(x, v)) + y)
    c = f.get_concrete_function(spec([size, 2]), spec([], name="bias"))
    graph = c.graph
    types = [op.type for op in graph.get_operations()]
    assert [t for t in types if t in ("MatMul", "Relu", "AddV2")] == ["MatMul", "Relu", "AddV2"]
    assert types == [node.op for node in graph.as_graph_def().node]
    assert [op.name for op in graph.get_operations()] == [node.name for node in graph.as_graph_def().node]
    assert [t.name for t in c.inputs[:2]] == ["x:0", "bias:0"]
    assert graph.get_tensor_by_name("x:0").shape.as_list() == [size, 2]
    product = graph.get_operation_by_name("MatMul")
    assert (
        product.type == "MatMul"
        and product.inputs[0].name == "x:0"
        and product.outputs[0].op.type == "MatMul"
    )
    assert len(graph.inputs) == 3 and len(graph.outputs) == 1 and graph.building_function
    assert len(graph.variables) == len(graph.trainable_variables) == 1
    for wrong in (
        lambda: graph.get_operation_by_name("nothing"),
        lambda: graph.get_tensor_by_name("nothing:0"),
    ):
        with pytest.raises(KeyError, match="nothing"):
            wrong()


def test_names_of_symbols():
    seen = []

    @tf.function
    def f(x, pair, *rest, key):
        seen.extend([x, *pair, *rest, key, x * 2.0, x + 1.0, x + 2.0, tf.split(x, 2)[1]])
        return x

    f(tf.ones([2]), [tf.ones([]), tf.ones([])], tf.ones([]), key=tf.ones([]))
    names = [t.name for t in seen]
    assert names[:3] == ["x:0", "pair:0", "pair_1:0"] and names[4] == "key:0"
    assert names[5:8] == ["mul:0", "add:0", "add_1:0"]
    assert names[8].endswith(":1") and seen[8].value_index == 1
    assert repr(seen[0]) == "<tf.Tensor 'x:0' shape=(2,) dtype=float32>"
    assert str(seen[5]) == ('Tensor("mul:0", shape=(2,), dtype=float32)')
    assert seen[0].op.type == "Placeholder" and seen[0].graph is not None


def test_tensors_with_values_have_no_names():
    for name in ("name", "op", "graph"):
        with pytest.raises(AttributeError, match="is undefined when eager execution is enabled"):
            getattr(tf.constant(1.0), name)


def test_python_code_of_the_main_branch_runs_first():
    order = []

    def f(x):
        if x > 0:
            order.append("main")
            y = x
        else:
            order.append("else")
            y = -x
        return y + tf.cond(x > 1, lambda: order.append("true") or x, lambda: order.append("false") or -x)

    assert_close(tf.function(f)(tf.constant(-2.0)), 4.0)
    assert_close(tf.function(f, input_signature=[spec(None)])(tf.constant(-2.0)), 4.0)
    assert order[:4] == order[4:8] == ["main", "else", "true", "false"]


# ---- version 1 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [False, True])
def test_a_loop_of_one_variable(traced):
    def run(f):
        return (tf.function(f) if traced else f)()

    zero = tf.constant(0)
    assert int(run(lambda: v1.while_loop(lambda i: i < 3, lambda i: i + 1, [zero]))) == 3
    kept = run(lambda: v1.while_loop(lambda i: i < 3, lambda i: [i + 1], [zero], return_same_structure=True))
    assert isinstance(kept, list) and int(kept[0]) == 3
    two = run(lambda: v1.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1, j * 2), [zero, tf.constant(1)]))
    assert [int(x) for x in two] == [3, 8]


def test_conditions_of_version_1():
    assert v1.cond(tf.constant(True), fn1=lambda: 1, fn2=lambda: 2) == 1
    assert v1.cond(tf.constant(False), lambda: [1], lambda: [2]) == 2
    assert v1.cond(tf.constant(False), lambda: [1], lambda: [2], strict=True) == [2]
    with pytest.raises(TypeError, match="may not be set simultaneously"):
        v1.cond(True, lambda: 1, lambda: 2, fn1=lambda: 3)
    with pytest.raises(TypeError, match="'false_fn' argument required"):
        v1.cond(True, lambda: 1)


def test_other_functions_of_version_1():
    assert v1.control_flow_v2_enabled() and bool(v1.is_variable_initialized(tf.Variable(1.0)))
    assert_close(v1.py_func(lambda x: 2 * x, [tf.constant(1.5)], tf.float32), 3.0)
    wrapped = v1.wrap_function(lambda x: x * 2, [spec([])])
    assert_close(wrapped(tf.constant(2.0)), 4.0)
    assert ON_TENSORFLOW or isinstance(wrapped, tf.types.experimental.ConcreteFunction)
