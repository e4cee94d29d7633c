"""Jacobians at the edges: sizes, kinds of sources and targets, options, control flow, custom
gradients, memory. TensorFlow's behaviour is tested in `tests/semantics/test_jacobian.py`."""

import itertools

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.batching import jacobian as implementation

from .differences import compiling, differences, memory, mode

MODES = ["reverse", "forward"]


@pytest.fixture(params=MODES)
def each_mode(request):
    with mode(request.param):
        yield request.param


def double(*values):
    return tf.constant(values[0] if len(values) == 1 else values, tf.float64)


def jacobian(f, *xs, **options):
    """The Jacobian of `f(*xs)` with respect to its arguments: one, or a list."""
    with tf.GradientTape() as tape:
        tape.watch([x for x in xs if x.dtype.is_floating or x.dtype.is_complex])
        y = f(*xs)
    return tape.jacobian(y, list(xs) if len(xs) > 1 else xs[0], **options)


def check(f, x, limit=1e-7):
    """The Jacobian of `f` with respect to a tensor, at first sight, compiled and in a function, as differences."""
    expected = differences(lambda a: f(tf.constant(a)).numpy(), x.numpy())
    for name in MODES:
        with mode(name), compiling(True):
            inside = tf.function(lambda x: jacobian(f, x))
            for j in (*(jacobian(f, x) for _ in range(3)), inside(x), inside(x)):
                assert j.dtype == x.dtype
                assert j.shape == expected.shape
                np.testing.assert_allclose(j.numpy(), expected, rtol=limit, atol=limit)


# ---- sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("x_shape", [(), (1,), (0,), (3,), (2, 0), (1, 1, 1)])
@pytest.mark.parametrize("y_shape", [(), (1,), (0,), (4,), (0, 2), (1, 1, 1)])
@pytest.mark.parametrize("times", [1, 3])
def test_sizes(x_shape, y_shape, times, each_mode):
    x = tf.reshape(tf.range(int(np.prod(x_shape)), dtype=tf.float64), x_shape)
    weights = tf.ones([*y_shape], tf.float64)
    with compiling(True):
        for _ in range(times):
            j = jacobian(lambda x: weights * tf.reduce_sum(x * x), x)
            assert j.shape == [*y_shape, *x_shape]
            np.testing.assert_array_equal(j.numpy(), np.broadcast_to(2 * x.numpy(), [*y_shape, *x_shape]))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_sizes_in_a_function(n):
    @tf.function
    def f(x):
        return jacobian(lambda x: tf.concat([x * x, x], 0), x)

    j = f(tf.ones([n]))
    np.testing.assert_array_equal(j.numpy(), np.concatenate([2 * np.eye(n), np.eye(n)]))


def test_a_large_target_of_a_small_source_and_the_other_way_round():
    w = np.random.default_rng(0).normal(size=(200, 3))
    check(lambda x: tf.linalg.matvec(tf.constant(w), x) ** 2, double(1.0, 2.0, 3.0), 1e-6)
    check(lambda x: tf.linalg.matvec(tf.constant(w.T), x) ** 2, tf.constant(w[:, 0]), 1e-6)


def test_the_cheapest_mode_is_taken(monkeypatch):
    taken = []
    for name in ("_pulled", "_pushed"):
        original = getattr(implementation, name)
        monkeypatch.setattr(
            implementation,
            name,
            lambda *args, name=name, original=original: taken.append(name) or original(*args),
        )
    x = tf.ones([3])
    jacobian(lambda x: tf.tile(x, [2]), x)
    jacobian(lambda x: x[:2], x)
    jacobian(lambda x: x * x, x)
    assert taken == ["_pushed", "_pulled", "_pulled"]


# ---- sources and targets ------------------------------------------------------------------------


def test_unconnected_sources_beside_connected_ones(each_mode):
    x, z, w = double(1.0, 2.0), double([[1.0]]), double(3.0)
    for kind, nothing in (("none", None), ("zero", np.zeros([2, 1, 1]))):
        jx, jz, jw = jacobian(lambda x, z, w: x * w, x, z, w, unconnected_gradients=kind)
        np.testing.assert_array_equal(jx, 3 * np.eye(2))
        np.testing.assert_array_equal(jw, [1, 2])
        assert jz is None if nothing is None else np.array_equal(jz, nothing)


def test_no_sources():
    with tf.GradientTape() as tape:
        y = tf.ones([2])
    assert tape.jacobian(y, []) == []


def test_a_target_that_depends_on_nothing(each_mode):
    x = double(1.0, 2.0)
    assert jacobian(lambda x: tf.ones([3], tf.float64), x) is None
    zero = jacobian(lambda x: tf.ones([3], tf.float64), x, unconnected_gradients="zero")
    np.testing.assert_array_equal(zero, np.zeros([3, 2]))


@pytest.mark.parametrize("unconnected", ["none", "zero"])
def test_integers(unconnected):
    x, n = double(1.0, 2.0), tf.constant([3, 4])
    jx, jn = jacobian(lambda x, n: x * tf.cast(n, tf.float64), x, n, unconnected_gradients=unconnected)
    np.testing.assert_array_equal(jx, np.diag([3, 4]))
    if unconnected == "none":
        assert jn is None
    else:
        assert jn.dtype == tf.int32
        np.testing.assert_array_equal(jn, np.zeros([2, 2]))
    j = jacobian(lambda x: tf.cast(x, tf.int32), x, unconnected_gradients=unconnected)
    assert j is None if unconnected == "none" else np.array_equal(j, np.zeros([2, 2]))


def test_the_target_is_the_source(each_mode):
    x = double([[1.0, 2.0]])
    j = jacobian(lambda x: x, x)
    np.testing.assert_array_equal(j, np.eye(2).reshape(1, 2, 1, 2))


def test_a_variable_is_target_and_source(each_mode):
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
    np.testing.assert_array_equal(tape.jacobian(y, v), np.diag([2, 4]))


def test_the_same_source_twice(each_mode):
    x = double(1.0, 2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    for j in tape.jacobian(y, [x, x]):
        np.testing.assert_array_equal(j, np.diag([2, 4]))


def test_sources_that_depend_on_each_other(each_mode):
    x = double(1.0, 2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        z = tf.reduce_sum(y) * x
    jx, jy = tape.jacobian(z, [x, y])
    np.testing.assert_array_equal(jy, [[1, 1], [2, 2]])
    np.testing.assert_array_equal(jx, 5 * np.eye(2) + np.outer([1, 2], [2, 4]))


def test_one_tensor_used_many_times(each_mode):
    check(lambda x: x * x + x * tf.reverse(x, [0]) - tf.reduce_sum(x) * x, double(1.0, 2.0, 3.0))


def test_nests_of_sources_keep_their_structure(each_mode):
    a, b, c = double(1.0, 2.0), tf.Variable([[3.0]], dtype=tf.float64), double(4.0)
    with tf.GradientTape() as tape:
        tape.watch([a, c])
        y = a * b[0, 0] * c
    found = tape.jacobian(y, {"list": [a, (b,)], "one": c})
    assert set(found) == {"list", "one"}
    assert isinstance(found["list"][1], tuple)
    np.testing.assert_array_equal(found["list"][0], 12 * np.eye(2))
    np.testing.assert_array_equal(found["list"][1][0], [[[4.0]], [[8.0]]])
    np.testing.assert_array_equal(found["one"], [3.0, 6.0])


def test_variables_of_a_module(each_mode):
    class Dense(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(np.arange(6.0).reshape(3, 2))
            self.b = tf.Variable(np.zeros(2))

        def __call__(self, x):
            return tf.matmul(x, self.w) + self.b

    model = Dense()
    x = double([[1.0, 2.0, 3.0]])
    with tf.GradientTape() as tape:
        y = model(x)
    jb, jw = tape.jacobian(y, model.trainable_variables)
    np.testing.assert_array_equal(jb[0], np.eye(2))
    np.testing.assert_array_equal(jw[0], np.einsum("c,bd->bcd", x[0], np.eye(2)))


def test_complex_sources_and_targets():
    # As TensorFlow: the conjugate of the derivative.
    z = tf.constant([1 + 2j, 3 - 1j], tf.complex128)
    for name in MODES:
        with mode(name):
            np.testing.assert_allclose(jacobian(lambda z: z * z, z), np.diag(np.conj(2 * z.numpy())))
            np.testing.assert_allclose(
                jacobian(lambda z: tf.abs(z), z), np.diag(z.numpy() / np.abs(z.numpy()))
            )
            x = double(1.0, 2.0)
            j = jacobian(lambda x: tf.complex(x, x * x)[:1] * z[0], x)
            np.testing.assert_allclose(j, [[np.real(np.conj((1 + 2j) * (1 + 2j))), 0]])


def test_complex_between_real_ends(each_mode):
    def f(x):
        z = tf.complex(x, tf.reverse(x, [0]))
        return tf.abs(tf.signal.fft(z) if hasattr(tf, "signal") and hasattr(tf.signal, "fft") else z * z)

    check(f, double(1.0, -2.0, 0.5), 1e-6)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
def test_types(dtype, each_mode):
    x = tf.constant([1.0, 2.0], dtype)
    j = jacobian(lambda x: tf.concat([x * x, x], 0), x)
    assert j.dtype == dtype
    np.testing.assert_array_equal(tf.cast(j, tf.float32), [[2, 0], [0, 4], [1, 0], [0, 1]])


def test_types_on_the_way(each_mode):
    check(lambda x: tf.cast(tf.cast(x, tf.float32) * 2.0, tf.float64) * 3.0, double(1.0, 2.0), 1e-1)


# ---- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 3])
def test_rows_of_tables(times, each_mode):
    table = tf.Variable(np.arange(8.0).reshape(4, 2))
    with compiling(True):
        for _ in range(times):
            with tf.GradientTape() as tape:
                y = tf.nn.embedding_lookup(table, [1, 3, 1]) ** 2
            j = tape.jacobian(y, table)
    expected = np.zeros([3, 2, 4, 2])
    for i, row in enumerate([1, 3, 1]):
        for k in range(2):
            expected[i, k, row, k] = 2 * table.numpy()[row, k]
    np.testing.assert_array_equal(j, expected)


def test_a_table_read_sparsely_and_densely(each_mode):
    table = tf.Variable(np.arange(6.0).reshape(3, 2))
    with tf.GradientTape() as tape:
        y = tf.gather(table, [2, 2]) + table[:2] * tf.reduce_sum(table, 0)
    expected = differences(lambda t: t[[2, 2]] + t[:2] * t.sum(0), table.numpy())
    np.testing.assert_allclose(tape.jacobian(y, table), expected, atol=1e-8)


def test_the_sparse_gradient_as_target():
    # The Hessian of a loss that reads rows of a table.
    table = tf.Variable(np.arange(6.0).reshape(3, 2))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.gather(table, [0, 2, 2]) ** 3)
        g = inner.gradient(y, table)
        assert isinstance(g, tf.IndexedSlices)
        dense = tf.convert_to_tensor(g)
    h = outer.jacobian(dense, table)
    counts = np.array([1, 0, 2])[:, None]
    expected = np.einsum("ij,ik,jl->ijkl", 6 * table.numpy() * counts, np.eye(3), np.eye(2))
    np.testing.assert_allclose(h, expected)


# ---- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_options_change_nothing(persistent, inside):
    def run(x, options):
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = tf.sin(x) * tf.reduce_sum(x)
        return tape.jacobian(y, x, **options)

    x = double(1.0, 2.0, 3.0)
    expected = run(x, {})
    for pfor, parallel in itertools.product([True, False], [None, 1, 10]):
        options = {"experimental_use_pfor": pfor, "parallel_iterations": parallel}
        call = tf.function(run) if inside else run
        np.testing.assert_allclose(call(x, options), expected, rtol=1e-14)


def test_a_non_persistent_tape_is_used_up():
    x = double(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.jacobian(y, x)
    with pytest.raises(
        RuntimeError, match="A non-persistent GradientTape can only be used to compute one set"
    ):
        tape.jacobian(y, x)
    with pytest.raises(
        RuntimeError, match="A non-persistent GradientTape can only be used to compute one set"
    ):
        tape.gradient(y, x)


@pytest.mark.parametrize("setting", [True, False])
def test_a_non_persistent_tape_frees_its_residuals(setting, counted_memory):
    def freed():
        with tf.GradientTape() as tape:
            x = tf.ones([1000])
            tape.watch(x)
            y = tf.reduce_sum(tf.exp(x) ** 2)
        before = tf.config.memory_info()["live_bytes"]
        tape.jacobian(y, x)
        return before - tf.config.memory_info()["live_bytes"]

    with compiling(setting):
        assert [freed() for _ in range(4)][-1] >= 4000  # exp(x)


def test_a_persistent_tape_gives_gradients_after_jacobians():
    x = double(1.0, 2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x**3
        z = tf.reduce_sum(y) * x
    for _ in range(3):
        np.testing.assert_allclose(tape.jacobian(y, x), np.diag([3, 12]))
        np.testing.assert_allclose(tape.gradient(y, x), [3, 12])
        np.testing.assert_allclose(tape.jacobian(z, x), 9 * np.eye(2) + np.outer([1, 2], [3, 12]))
        np.testing.assert_allclose(tape.jacobian(z, y), np.outer([1, 2], [1, 1]))


@pytest.mark.parametrize("target", [None, 3.0, [1.0], np.ones(2)])
def test_wrong_targets(target):
    x = double(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
    with pytest.raises(AttributeError, match="jacobian: expected one Tensor"):
        tape.jacobian(target, x)


def test_wrong_options():
    x = double(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'both'"):
        tape.jacobian(y, x, unconnected_gradients="both")
    np.testing.assert_array_equal(tape.jacobian(y, x), 2.0)  # the failed call has not used up the tape


def test_wrong_sources():
    x = double(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(AttributeError, match="a source is not a tensor"):
        tape.jacobian(y, 3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(TypeError, match="a source is None"):
        tape.jacobian(y, [x, None])


# ---- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 100, 200])
@pytest.mark.parametrize("times", [1, 3])
def test_chunks(size, times, each_mode, monkeypatch):
    """Rows that do not fit run in chunks, with the same result to the last bit."""
    rng = np.random.default_rng(0)
    w, x = tf.constant(rng.normal(size=(7, 5))), tf.constant(rng.normal(size=5))

    def f(x):
        return tf.tanh(tf.linalg.matvec(w, x)) * tf.reduce_sum(x)

    expected = jacobian(f, x)
    runs = []
    original = implementation._run
    monkeypatch.setattr(implementation, "_run", lambda *args: runs.append(args[-1]) or original(*args))
    with memory(size), compiling(True):
        for _ in range(times):
            del runs[:]
            np.testing.assert_allclose(jacobian(f, x), expected, rtol=1e-14, atol=1e-15)
    count = 5 if each_mode == "forward" else 7
    assert max(runs) <= max(1, size // 8)
    assert count <= sum(runs) < count + max(runs)
    if size == 1:
        assert runs == [1] * count


def test_chunks_take_less_memory(counted_memory):
    x = tf.ones([400])

    def f(x):
        return tf.linalg.matvec(tf.ones([400, 400]), tf.exp(x)) * x

    def peak(size):
        with memory(size):
            tf.config.release_cached_memory()
            tf.config.reset_peak_memory()
            before = tf.config.memory_info()["live_bytes"]
            j = jacobian(f, x)
            assert j.shape == [400, 400]
            return tf.config.memory_info()["peak"] - before

    whole, chunks = peak(1 << 30), peak(1 << 15)
    assert chunks < 0.9 * whole


def test_chunks_in_a_function_under_a_tape():
    x = double(1.0, 2.0, 3.0)

    @tf.function
    def f(x):
        return jacobian(lambda x: x**3 * tf.reduce_sum(x), x)

    with memory(1), tf.GradientTape() as tape:
        tape.watch(x)
        j = f(x)
    expected = differences(lambda a: f(tf.constant(a)).numpy(), x.numpy()).sum((0, 1))
    np.testing.assert_allclose(tape.gradient(j, x), expected, rtol=1e-6)
