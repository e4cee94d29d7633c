"""Composite tensors as arguments and results of functions, and in branches and loops."""

import pytest

import gradtape as tf
from tests.composite.test_type_spec import Pair, PairSpec


def pair(n=2, color="red"):
    return Pair(tf.range(n), tf.ones([n], tf.bool), color)


def test_argument_and_result():
    @tf.function
    def double(p, k):
        assert isinstance(p, Pair) and p.color == "red"
        return {"p": Pair(p.x * k, p.y, "blue")}

    out = double(pair(), 3)["p"]
    assert isinstance(out, Pair) and out.color == "blue" and out.x.numpy().tolist() == [0, 3]


def test_traces_are_found_by_spec():
    traced = []

    @tf.function
    def f(p):
        traced.append(p.color)
        return p.x + 1

    for n, color in ((2, "red"), (2, "red"), (2, "blue"), (3, "red"), (3, "blue"), (2, "blue")):
        assert f(pair(n, color)).shape == [n]
    assert traced == ["red", "blue", "red", "blue"]


def test_reduce_retracing_leaves_sizes_open():
    f = tf.function(lambda p: p.x * 2, reduce_retracing=True)
    for n in range(2, 7):
        assert f(pair(n)).numpy().tolist() == [2 * i for i in range(n)]
    assert f.experimental_get_tracing_count() == 2


def test_input_signature():
    spec = PairSpec([None], tf.int32, [None], tf.bool)
    f = tf.function(lambda p: Pair(p.x * 2, p.y), input_signature=[spec])
    for n in (2, 3):
        assert f(pair(n)).x.shape == [n]
    assert f.experimental_get_tracing_count() == 1
    concrete = f.get_concrete_function()
    assert concrete.structured_input_signature == ((spec,), {})
    assert [t.dtype for t in concrete.inputs] == [tf.int32, tf.bool]
    assert len(concrete.outputs) == 2 and isinstance(concrete.structured_outputs, Pair)
    assert concrete(pair(4)).x.numpy().tolist() == [0, 2, 4, 6]
    for wrong in (pair(color="blue"), tf.range(2), Pair(tf.ones([2]), tf.ones([2], tf.bool))):
        with pytest.raises(TypeError):
            f(wrong)


def test_concrete_functions_of_specs():
    f = tf.function(lambda p, q: (p.x + q, p))
    concrete = f.get_concrete_function(PairSpec([None], tf.int32, [3], tf.bool), tf.TensorSpec([], tf.int32))
    assert "PairSpec(TensorShape([None]), tf.int32, TensorShape([3]), tf.bool, 'red')" in str(concrete)
    total, same = concrete(pair(3), tf.constant(5))
    assert total.numpy().tolist() == [5, 6, 7] and same.x.numpy().tolist() == [0, 1, 2]
    assert concrete.output_shapes == ([None], ([None], [3]))
    assert concrete.output_dtypes == (tf.int32, (tf.int32, tf.bool))


def test_indexed_slices_in_and_out():
    @tf.function
    def f(s):
        return tf.IndexedSlices(s.values * 2.0, s.indices, s.dense_shape)

    out = f(tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4]), tf.constant([5, 3])))
    assert isinstance(out, tf.IndexedSlices) and out.shape == (5, 3)
    assert tf.convert_to_tensor(out).numpy().sum() == 12
    out = f(tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4])))
    assert out.dense_shape is None


def test_functions_of_unknown_sizes_give_composites():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def f(x):
        kept = tf.boolean_mask(x, x > 1)
        return Pair(kept, tf.ones_like(x, tf.bool)), [Pair(x[:1], x > 0, "blue")]

    first, (second,) = f(tf.constant([1, 2, 3]))
    assert first.x.numpy().tolist() == [2, 3] and second.color == "blue" and second.x.numpy().tolist() == [1]
    assert f(tf.constant([1, 2, 3, 4]))[0].x.numpy().tolist() == [2, 3, 4]


def test_specs_are_arguments_of_calls_as_they_are(capsys):
    """A function of unknown sizes keeps its calls with their arguments."""
    wanted = tf.RaggedTensorSpec([None], tf.int32)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def f(n):
        tf.print(wanted)
        return tf.map_fn(tf.range, n, fn_output_signature=wanted)

    assert f(tf.constant([1, 3, 2])).to_list() == [[0], [0, 1, 2], [0, 1]]
    assert capsys.readouterr().err == f"{wanted}\n"


@pytest.mark.parametrize("make", [lambda f: f, tf.function])
def test_printing(make, capsys):
    numbers = tf.ragged.constant([[1, 2, 3, 4, 5, 6, 7, 8, 9], [3], []])
    words = tf.ragged.constant([["a", "it's"], ["c"]])
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [1.5, 2.0], [3, 2])

    def f(r, w, s):
        tf.print(r, w)
        tf.print([tf.cast(r, tf.float32) * 0.5], summarize=1)
        tf.print(s)

    make(f)(numbers, words, sparse)
    assert capsys.readouterr().err.splitlines() == [
        r"[[1, 2, 3, ..., 7, 8, 9], [3], []] [['a', 'it\'s'], ['c']]",
        "[[[0.500000, ..., 4.500000], ..., []]]",
        "'SparseTensor(indices=[[0 1]",
        " [2 0]], values=[1.5 2], shape=[3 2])'",
    ]


# ---- branches -------------------------------------------------------------------------------------------


def test_cond():
    @tf.function
    def f(c, p):
        q = tf.cond(c, lambda: Pair(p.x + 1, p.y), lambda: p)
        return tf.switch_case(tf.cast(c, tf.int32), [lambda: q, lambda: Pair(q.x * 10, q.y)])

    assert f(tf.constant(True), pair()).x.numpy().tolist() == [10, 20]
    assert f(tf.constant(False), pair()).x.numpy().tolist() == [0, 1]


def test_branches_of_other_sizes_give_a_spec_that_covers_both():
    seen = []

    @tf.function
    def f(c):
        p = tf.cond(c, lambda: pair(2), lambda: pair(3))
        seen.append(p._type_spec)
        return p

    assert f(tf.constant(True)).x.shape == [2] and f(tf.constant(False)).x.shape == [3]
    assert seen[-1] == PairSpec([None], tf.int32, [None], tf.bool)


def test_branches_that_do_not_fit_are_refused():
    @tf.function
    def f(c, other):
        return tf.cond(c, pair, lambda: other)

    with pytest.raises(TypeError):
        f(tf.constant(True), pair(color="blue"))
    with pytest.raises(TypeError):
        f(tf.constant(True), tf.range(2))


def test_sparse_gradients_stay_sparse_in_branches_that_agree():
    slices = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4]), tf.constant([5, 3]))

    @tf.function
    def both(c):
        return tf.cond(c, lambda: slices, lambda: -slices)

    assert isinstance(both(tf.constant(True)), tf.IndexedSlices)
    assert both(tf.constant(False)).values.numpy().sum() == -6

    @tf.function
    def one(c):
        return tf.cond(c, lambda: slices, lambda: tf.zeros([5, 3]))

    assert one(tf.constant(True)).numpy().sum() == 6


def test_autograph_branches():
    @tf.function
    def f(x):
        p = Pair(x, x > 0)
        if tf.reduce_sum(x) > 3:
            p = Pair(p.x * 2, p.y)
        return p

    assert f(tf.constant([1, 2])).x.numpy().tolist() == [1, 2]
    assert f(tf.constant([3, 2])).x.numpy().tolist() == [6, 4]


# ---- loops ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda f: f, tf.function])
def test_while_loop(make):
    def f(p):
        _, out = tf.while_loop(
            lambda i, q: i < 3, lambda i, q: [i + 1, Pair(q.x + i, q.y)], [tf.constant(0), p]
        )
        return out

    assert make(f)(pair()).x.numpy().tolist() == [3, 4]


@pytest.mark.parametrize("make", [lambda f: f, tf.function])
def test_while_loop_of_varying_sizes(make):
    def f(p):
        spec = PairSpec([None], tf.int32, [None], tf.bool)
        _, out = tf.while_loop(
            lambda i, q: i < 3,
            lambda i, q: [i + 1, Pair(tf.concat([q.x, [i]], 0), q.y)],
            [tf.constant(0), p],
            shape_invariants=[tf.TensorShape([]), spec],
        )
        return out

    assert make(f)(pair()).x.numpy().tolist() == [0, 1, 0, 1, 2]


def test_loops_refuse_another_spec():
    @tf.function
    def f(p, q):
        return tf.while_loop(lambda p: True, lambda p: [q], [p], maximum_iterations=2)

    with pytest.raises((TypeError, ValueError)):
        f(pair(), pair(color="blue"))


@pytest.mark.parametrize(
    "invariant, words",
    [
        (PairSpec([3], tf.int32, [None], tf.bool), "not compatible"),
        (tf.TensorShape([None]), "To describe or constrain a Pair, use a PairSpec"),
    ],
)
def test_an_invariant_must_fit(invariant, words):
    @tf.function
    def f(p):
        return tf.while_loop(
            lambda p: True, lambda p: [p], [p], shape_invariants=[invariant], maximum_iterations=2
        )

    with pytest.raises(TypeError, match=words):
        f(pair())


def test_autograph_loops():
    @tf.function
    def f(n):
        p = Pair(tf.constant([1, 2]), tf.constant([True, False]))
        for _ in tf.range(n):
            p = Pair(p.x * 2, tf.logical_not(p.y))
            q = p
        return p, q

    p, q = f(tf.constant(3))
    assert p.x.numpy().tolist() == [8, 16] and q.y.numpy().tolist() == [False, True]
