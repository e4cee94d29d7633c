"""tf.function: traces, signatures, variables, results, and tapes around and inside (G1-G10, G14)."""

import copy
import logging
import pickle

import numpy as np
import pytest

import gradtape as tf


def counting(f):
    """`f` with a list that grows by one each time its Python code runs."""
    runs = []

    def g(*args, **kwargs):
        runs.append(args)
        return f(*args, **kwargs)

    return g, runs


# ---- G1: forms ----------------------------------------------------------------------------------


def test_G1_bare_called_and_method():
    @tf.function
    def bare(x):
        return x + 1.0

    @tf.function(autograph=False, jit_compile=True, reduce_retracing=True)
    def called(x):
        return x + 2.0

    class Thing:
        def __init__(self, k):
            self.k = k

        @tf.function
        def method(self, x, y=1.0):
            return x * self.k + y

    x = tf.constant(3.0)
    assert bare(x).numpy() == 4.0 and called(x).numpy() == 5.0
    a, b = Thing(2.0), Thing(10.0)
    assert a.method(x).numpy() == 7.0 and b.method(x).numpy() == 31.0 and a.method(x, y=0.0).numpy() == 6.0
    assert bare.__name__ == "bare" and bare.python_function(x).numpy() == 4.0


def test_G1_attributes():
    f = tf.function(lambda x: x * 2.0)
    f(tf.constant(1.0))
    f(tf.constant(2.0))
    f(tf.constant([1.0, 2.0]))
    assert f.experimental_get_tracing_count() == 2
    assert "float32" in f.pretty_printed_concrete_signatures()
    assert f.input_signature is None


# ---- G2: tapes ----------------------------------------------------------------------------------


def cube(x):
    return tf.reduce_sum(x * x * x)


@pytest.fixture
def x():
    return tf.constant([1.0, 2.0, -3.0])


def test_G2_tape_inside(x):
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = cube(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(f(x).numpy(), 3 * x.numpy() ** 2)


def test_G2_tape_outside(x):
    f = tf.function(cube)
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), 3 * x.numpy() ** 2)


def test_G2_tape_around_and_inside(x):
    @tf.function
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = cube(x)
        return tape.gradient(y, x)

    with tf.GradientTape() as outer:
        outer.watch(x)
        s = tf.reduce_sum(slope(x))
    np.testing.assert_allclose(outer.gradient(s, x).numpy(), 6 * x.numpy())


def test_G2_second_order_outside(x):
    f = tf.function(cube)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    np.testing.assert_allclose(outer.gradient(g, x).numpy(), 6 * x.numpy())


def test_G2_third_order_outside():
    x = tf.constant(2.0)
    f = tf.function(lambda x: x**4)
    with tf.GradientTape() as t3:
        t3.watch(x)
        with tf.GradientTape() as t2:
            t2.watch(x)
            with tf.GradientTape() as t1:
                t1.watch(x)
                y = f(x)
            d1 = t1.gradient(y, x)
        d2 = t2.gradient(d1, x)
    assert t3.gradient(d2, x).numpy() == pytest.approx(48.0)


def test_G2_variables_are_seen_by_a_tape_outside():
    v, w = tf.Variable(2.0), tf.Variable(5.0, trainable=False)
    f = tf.function(lambda x: v * v * x + w)
    with tf.GradientTape() as tape:
        y = f(tf.constant(3.0))
    assert tape.watched_variables() == (v,)
    gv, gw = tape.gradient(y, [v, w])
    assert gv.numpy() == 12.0 and gw is None


def test_G2_none_and_slices_can_be_returned():
    table, other = tf.Variable(tf.ones([4, 2])), tf.Variable(1.0)

    @tf.function
    def f(ids):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, ids))
        return tape.gradient(y, [table, other])

    slices, nothing = f(tf.constant([1, 1, 3]))
    assert nothing is None and isinstance(slices, tf.IndexedSlices)
    assert slices.indices.numpy().tolist() == [1, 1, 3]


def test_G2_tape_made_outside_and_entered_inside(x):
    tape = tf.GradientTape()

    @tf.function
    def f(x):
        with tape:
            tape.watch(x)
            y = cube(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(f(x).numpy(), 3 * x.numpy() ** 2)


def test_G2_captured_tensor_is_followed(x):
    f = tf.function(lambda: cube(x))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f()
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 3 * x.numpy() ** 2)


# ---- G3, G4, G5: traces -------------------------------------------------------------------------


def test_G3_traces_by_shape_dtype_and_python_value():
    g, runs = counting(lambda x, k=1: x * 1 if k else x)
    f = tf.function(g)
    for args in [
        (tf.constant([1.0]),),
        (tf.constant([2.0]),),  # same
        (tf.constant([1.0, 2.0]),),  # shape
        (tf.constant([1]),),  # dtype
        (np.array([1.0], "f"),),  # arrays are tensors: same as the first
        (tf.constant([1.0]), 2),  # value
        (tf.constant([1.0]), 2),  # same
    ]:
        f(*args)
    assert len(runs) == 4


def test_G3_python_numbers_compare_by_equality():
    g, runs = counting(lambda k: tf.constant(1.0))
    f = tf.function(g)
    f(1)
    f(1.0)
    f(True)
    f(2)
    assert len(runs) == 2


def test_G3_lists_and_tuples_differ():
    g, runs = counting(lambda xs: xs[0] + xs[1])
    f = tf.function(g)
    a = tf.constant(1.0)
    f([a, a])
    f([a, a])
    f((a, a))
    assert len(runs) == 2


def test_G4_side_effects_happen_while_tracing():
    log = []

    @tf.function
    def f(x):
        log.append("run")
        return x * k

    k = 2.0
    assert f(tf.constant(1.0)).numpy() == 2.0
    k = 5.0
    assert f(tf.constant(1.0)).numpy() == 2.0
    assert log == ["run"]


def test_G5_retracing_says_what_changed(caplog):
    f = tf.function(lambda x: x + 1.0)
    with caplog.at_level(logging.INFO, "gradtape"):
        f(tf.ones([32, 10]))
        f(tf.ones([17, 10]))
    assert "argument 0: float32[32, 10] before, float32[17, 10] now" in caplog.text
    with caplog.at_level(logging.WARNING, "gradtape"):
        for n in range(1, 8):
            f(tf.ones([n]))
    assert "retracing" in caplog.text


# ---- G6: input_signature ------------------------------------------------------------------------


def test_G6_input_signature_converts_and_checks():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        return tf.reduce_sum(x)

    assert f([1.0, 2.0]).numpy() == 3.0
    assert f(np.ones(4, "f")).numpy() == 4.0
    with pytest.raises(TypeError, match="Can not cast"):
        f(tf.ones([2, 2]))
    with pytest.raises(TypeError):
        f(tf.constant([1]))


def test_G6_get_concrete_function():
    f = tf.function(lambda x: x * 2.0)
    concrete = f.get_concrete_function(tf.TensorSpec([3], tf.float32))
    np.testing.assert_allclose(concrete(tf.ones([3])).numpy(), [2.0, 2.0, 2.0])
    f(tf.ones([3]))
    assert f.experimental_get_tracing_count() == 1


def test_G6_no_concrete_function_where_python_needs_a_value():
    def f(x):
        return x * float(x)

    function = tf.function(f, autograph=False)
    for size in ([], [None]):
        with pytest.raises(TypeError, match=r"f cannot be traced.*test_function\.py:\d+: .*Python float"):
            function.get_concrete_function(tf.TensorSpec(size))
    assert function(tf.constant(3.0)).numpy() == 9.0


def test_G6_a_general_trace_and_traces_of_its_own_have_one_class():
    f = tf.function(lambda x: x * 2.0)
    for size in (3, None):
        assert isinstance(
            f.get_concrete_function(tf.TensorSpec([size])), tf.types.experimental.ConcreteFunction
        )


def test_G6_one_trace_is_not_called_with_one_variable_for_two():
    def f(a, b):
        a.assign_add(1.0)
        return a - b

    v, w = tf.Variable(1.0), tf.Variable(2.0)
    concrete = tf.function(f).get_concrete_function(v, w)
    assert concrete(w, v).numpy() == 2.0
    with pytest.raises(TypeError, match="given for two"):
        concrete(v, v)


def test_G1_what_cannot_be_pickled_says_so():
    with pytest.raises(pickle.PicklingError, match="<lambda> cannot be pickled.*top of a module"):
        pickle.dumps(tf.function(lambda x: x))


# ---- G7, G8: variables --------------------------------------------------------------------------


def test_G7_variables_are_made_on_the_first_call():
    class Layer:
        w = None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones([x.shape[-1], 2]))
            return x @ self.w

    layer = Layer()
    assert layer(tf.ones([1, 3])).numpy().tolist() == [[3.0, 3.0]]
    layer.w.assign(2 * layer.w)
    assert layer(tf.ones([1, 3])).numpy().tolist() == [[6.0, 6.0]]


def test_G7_a_variable_a_call_is_an_error():
    @tf.function
    def f():
        return tf.Variable(1.0) + 1.0

    with pytest.raises(ValueError, match="singleton"):
        f()


def test_G8_reads_and_assigns_keep_their_order():
    v = tf.Variable(1.0)

    @tf.function
    def f():
        a = v + 0.0
        v.assign(10.0)
        b = v + 0.0
        v.assign_add(5.0)
        return a, b, v.read_value()

    assert [t.numpy() for t in f()] == [1.0, 10.0, 15.0]
    assert v.numpy() == 15.0
    assert [t.numpy() for t in f()] == [15.0, 10.0, 15.0]


def test_G8_assignment_is_not_differentiated():
    v = tf.Variable(0.0)

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            v.assign(x * 3.0)
            y = v * 2.0
        return tape.gradient(y, [x, v])

    gx, gv = f(tf.constant(1.0))
    assert gx is None and gv.numpy() == 2.0 and v.numpy() == 3.0


def test_training_step_as_one_function():
    rng = np.random.default_rng(0)
    x, true = tf.constant(rng.normal(size=(64, 3)).astype("f")), np.array([[1.0], [-2.0], [0.5]], "f")
    y = tf.constant(x.numpy() @ true)
    w = tf.Variable(tf.zeros([3, 1]))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ w - y))
        w.assign_sub(0.2 * tape.gradient(loss, w))
        return loss

    for _ in range(100):
        loss = step()
    assert loss.numpy() < 1e-6
    np.testing.assert_allclose(w.numpy(), true, atol=1e-3)


# ---- G9, G10: results ---------------------------------------------------------------------------


def test_G9_results_of_any_structure():
    @tf.function
    def f(x):
        return {"a": x, "b": (x + 1.0, [x * 2.0, None]), "c": 3, "d": 2.5, "e": True}

    r = f(tf.constant(1.0))
    assert r["b"][1][1] is None and isinstance(r["b"], tuple)
    assert (r["c"].dtype, r["d"].dtype, r["e"].dtype) == (tf.int32, tf.float32, tf.bool)
    assert r["b"][0].numpy() == 2.0


def test_G9_input_returned_as_it_is():
    f = tf.function(lambda x: (x, x))
    a, b = f(tf.constant([1.0, 2.0]))
    np.testing.assert_allclose(a.numpy(), b.numpy())


def test_G10_symbols_have_no_value():
    @tf.function
    def f(x):
        return x.numpy()

    with pytest.raises(AttributeError, match="numpy"):
        f(tf.constant(1.0))


def test_G10_a_leaked_symbol_is_out_of_scope():
    leaked = []

    @tf.function
    def f(x):
        leaked.append(x)
        return x

    f(tf.constant(1.0))
    with pytest.raises((TypeError, RuntimeError)):
        (leaked[0] + 1.0).numpy()


def test_G10_run_functions_eagerly():
    seen = []

    @tf.function
    def f(x):
        seen.append(float(x))
        return x

    tf.config.run_functions_eagerly(True)
    try:
        f(tf.constant(1.0))
        f(tf.constant(2.0))
    finally:
        tf.config.run_functions_eagerly(False)
    assert seen == [1.0, 2.0]


def test_random_ops_draw_anew_each_call():
    f = tf.function(lambda: tf.random.normal([4]))
    assert not np.allclose(f().numpy(), f().numpy())


def test_prints_and_assertions_run_each_call(capfd):
    @tf.function
    def f(x):
        tf.print("value", x)
        tf.debugging.assert_positive(x)
        return x

    f(tf.constant(1.0))
    f(tf.constant(2.0))
    assert capfd.readouterr().err.splitlines() == ["value 1", "value 2"]
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.constant(-1.0))


def test_functions_call_functions():
    inner = tf.function(lambda x: x * x)
    outer = tf.function(lambda x: inner(x) + inner(x + 1.0))
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = outer(x)
    assert y.numpy() == 13.0
    assert tape.gradient(y, x).numpy() == 10.0


def test_shapes_that_depend_on_values_are_part_of_a_trace(caplog):
    f = tf.function(lambda x: tf.boolean_mask(x, x > 0.0) * 2.0)
    assert f(tf.constant([1.0, -1.0, 3.0])).numpy().tolist() == [2.0, 6.0]
    assert f(tf.constant([1.0, -1.0, -3.0])).numpy().tolist() == [2.0]
    assert "eagerly" not in caplog.text


def test_errors_of_ops_travel_out_of_programs():
    f = tf.function(lambda t, i: tf.gather(t, i))
    table = tf.ones([3, 2])
    assert f(table, tf.constant([2])).shape == (1, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
        f(table, tf.constant([7]))
    assert f(table, tf.constant([0])).shape == (1, 2)


class Counter(tf.Module):
    def __init__(self):
        super().__init__()
        self.n = tf.Variable(0.0)

    @tf.function
    def add(self, x):
        self.n.assign_add(x)
        return self.n.read_value()


def test_objects_with_functions_can_be_copied_and_pickled():
    a = Counter()
    a.add(tf.constant(1.0))
    b, c = copy.deepcopy(a), pickle.loads(pickle.dumps(a))
    assert b.add(tf.constant(1.0)).numpy() == 2.0 and c.add(tf.constant(2.0)).numpy() == 3.0
    assert a.n.numpy() == 1.0
    assert a.trainable_variables == (a.n,)


def test_check_passes_on_right_programs_and_names_the_op_that_differs(monkeypatch):
    w = tf.Variable(tf.ones([3, 2]))

    def f(x):
        return tf.reduce_mean(tf.tanh(x @ w) + tf.exp(-x[:, :2]))

    x = tf.constant(np.linspace(-1, 1, 12).reshape(4, 3).astype("f"))
    np.testing.assert_allclose(tf.function(f, check=True)(x).numpy(), f(x).numpy(), rtol=1e-6)

    from gradtape._src.engines.native import lower

    right = lower._cluster_step

    def wrong(cluster, leaving):
        step = right(cluster, leaving)
        outer, inner, registers, ops, epilogues, scratch = step.object
        ops = [("sigmoid", *op[1:]) if op[0] == "tanh" else op for op in ops]
        step.object = (outer, inner, registers, ops, epilogues, scratch)
        return step

    monkeypatch.setattr(lower, "_cluster_step", wrong)
    with pytest.raises(tf.errors.InternalError, match="tanh: the program differs"):
        tf.function(f, check=True)(x)


def test_a_function_that_checks_itself_knows_that_errors_go_on():
    """A mean of float32 may be summed in another order; as complex128 it is no more precise than it was."""
    x = tf.constant([[-1.03, -0.03, 0.06], [1.27, -0.3, -0.3]])
    f = tf.function(lambda x: tf.cast(tf.reduce_mean(x) * tf.ones([3]), tf.complex128), check=True)
    np.testing.assert_allclose(f(x), [-0.055] * 3, rtol=1e-5)


def test_slices_with_traced_bounds_run_eagerly():
    f = tf.function(lambda x, n: x[:n] * 2.0)
    x = tf.constant([1.0, 2.0, 3.0])
    assert f(x, tf.constant(1)).numpy().tolist() == [2.0]
    assert f(x, tf.constant(2)).numpy().tolist() == [2.0, 4.0]


def test_a_function_that_no_trial_fits_is_traced_for_each_size(caplog):
    runs = []
    v = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None] * 4)])
    def f(x):
        runs.append(None)
        shape = tf.stack([tf.shape(x)[0], 8, 8, 8])
        return tf.nn.conv2d_transpose(x, tf.ones([3, 3, 8, 5]), shape, 2) * v

    for n in (2, 3, 2, 3):
        x = tf.ones([n, 4, 4, 5])
        want = tf.nn.conv2d_transpose(x, tf.ones([3, 3, 8, 5]), [n, 8, 8, 8], 2) * 2.0
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        np.testing.assert_array_equal(y, want)
        assert tape.gradient(y, v).shape == ()
    if "traced again for each size" in caplog.text:  # or a trial has learned to fit it
        assert len(runs) == 3 and f.get_concrete_function()(x).shape == (3, 8, 8, 8)
    else:
        assert len(runs) == 1


def test_sizes_that_never_fit_are_an_error():
    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def f(x):
        return x @ tf.ones([5, 5])

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[None,4\]"):
        f(tf.ones([2, 4]))


def test_what_tf_gradients_cannot_do_raises_an_error():
    def cubes(x):
        return tf.reduce_sum(tf.boolean_mask(x, x > 0.0) ** 3)

    with pytest.raises(tf.errors.UnimplementedError, match="not one graph. Hint: tf.GradientTape"):
        tf.function(lambda x: tf.gradients(cubes(x), [x]))(tf.ones([2]))
    with pytest.raises(tf.errors.UnimplementedError, match="with respect to a number computed in"):
        tf.function(lambda x: tf.gradients(cubes(x), [x, tf.constant(1.0)]))(tf.ones([2]))


def test_made_up_sizes_do_not_show_in_errors_of_tapes():
    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.gradient(y, x, output_gradients=tf.ones([5]))

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[5\] vs. \[None,None\]"):
        f(tf.ones([2, 3]))


def test_arrays_are_tensors_in_a_function_that_a_function_calls():
    seen = []

    @tf.function
    def inner(x, extra=None):
        seen.append((tf.is_tensor(x), [tf.is_tensor(v) for v in (extra or {}).values()]))
        return x * 2.0

    @tf.function
    def outer():
        return inner(np.ones(3, np.float32), extra={"a": np.ones(2), "b": 2}) + inner(np.float32(1.0))

    assert outer().numpy().tolist() == [4.0] * 3
    assert seen == [(True, [True, False]), (True, [])]


def test_gradients_of_an_array_beside_partitions_that_are_known():
    parts, x = tf.constant([0, 1, 0, 1]), np.array([1.0, 2.0, 3.0], np.float32)
    v, w = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(2.0)

    @tf.function
    def inner(x):
        return tf.reduce_sum(tf.gradients(tf.sin(x) * v, x)[0] ** 2)

    @tf.function
    def loss(flat):
        w.assign(tf.reduce_sum(tf.dynamic_partition(flat, parts, 2)[0]))
        with tf.GradientTape() as tape:
            y = inner(x) * w
        return tape.gradient(y, [v, w])

    for _ in range(2):
        gv, gw = loss(tf.constant([1.0, 2.0, 3.0, 4.0]))
        np.testing.assert_allclose(gv, 8 * np.cos(x) ** 2 * v.numpy(), rtol=1e-5)
        np.testing.assert_allclose(gw, np.sum((np.cos(x) * v.numpy()) ** 2), rtol=1e-5)


def test_predicates_on_a_tensor_of_another_function():
    kept = []

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def keeps(x):
        kept.append(x * 2.0)
        return x

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def asks(x):
        return x * (2.0 if tf.is_tensor(kept[0]) and tf.is_symbolic_tensor(kept[0]) else 1.0)

    keeps(tf.ones([3]))
    np.testing.assert_array_equal(asks(tf.ones([2])), [2.0, 2.0])
