"""tf.debugging and tf.print: what passes, what raises, and the messages."""

import io
import logging

import numpy as np
import pytest

import gradtape as tf

D = tf.debugging
X = tf.constant([1.0, 2.0, 3.0])
Invalid = tf.errors.InvalidArgumentError


@pytest.mark.parametrize(
    ("check", "good", "bad", "sign"),
    [
        (D.assert_equal, (X, X), ([1, 2], [1, 3]), "=="),
        (D.assert_none_equal, ([1], [2]), ([1], [1]), "!="),
        (D.assert_less, ([1], [2]), ([2], [2]), "<"), (D.assert_less_equal, ([2], [2]), ([3], [2]), "<="),
        (D.assert_greater, ([3], [2]), ([2], [2]), ">"),
        (D.assert_greater_equal, ([2], [2]), ([1], [2]), ">="),
    ],
)  # fmt: skip
def test_comparisons(check, good, bad, sign):
    assert check(*good) is None
    with pytest.raises(Invalid, match=f"hint\nCondition x {sign} y did not hold."):
        check(*bad, message="hint")


def test_d6_message():
    with pytest.raises(Invalid) as e:
        D.assert_equal(tf.range(20), tf.range(1, 21), summarize=2, message="m")
    assert e.value.message == (
        "m\nCondition x == y did not hold.\nIndices of first 2 different values:\n[[0]\n [1]]\n"
        "Corresponding x values:\n[0 1]\nCorresponding y values:\n[1 2]\n"
        "First 2 elements of x:\n[0 1]\nFirst 2 elements of y:\n[1 2]"
    )
    with pytest.raises(Invalid, match="Incompatible shapes"):
        D.assert_equal([1, 2], [1, 2, 3])


def test_signs():
    for check, good, bad in (
        (D.assert_positive, [1.0], [0.0]),
        (D.assert_negative, [-1.0], [0.0]),
        (D.assert_non_negative, [0.0], [-1.0]),
        (D.assert_non_positive, [0.0], [1.0]),
    ):
        check(good)
        with pytest.raises(Invalid, match="did not hold element-wise"):
            check(bad)


def test_near():
    D.assert_near([1.0, 2.0], [1.0, 2.0000001])
    D.assert_near([1.0], [1.5], atol=0.6)
    with pytest.raises(Invalid, match="m.  x and y not equal to tolerance"):
        D.assert_near([1.0, 2.0], [1.0, 2.1], message="m")
    with pytest.raises(ValueError, match="expected floats"):
        D.assert_near([1], [1])


def test_ranks():
    D.assert_rank(X, 1)
    D.assert_rank_at_least(X, 1)
    D.assert_rank_in(X, (0, 1))
    D.assert_scalar(3.0)
    for call in (
        lambda: D.assert_rank(X, 2, message="m"),
        lambda: D.assert_rank_at_least(X, 2, message="m"),
        lambda: D.assert_rank_in(X, (2, 3), message="m"),
    ):
        with pytest.raises(ValueError, match=r"m.  Tensor must have rank .*  Received rank 1, shape \(3,\)"):
            call()
    with pytest.raises(ValueError, match=r"Expected scalar shape, saw shape: \(3,\)."):
        D.assert_scalar(X)


def test_shapes():
    D.assert_shapes(
        [(X, ("N",)), (tf.zeros([2, 3]), ("D", "N")), (tf.zeros([2]), ("D",)), (X, (3,)), (X, (None,))]
    )
    D.assert_shapes([(tf.zeros([2, 3, 4]), ("...", "M")), (tf.zeros([4, 1]), ("M", "..."))])
    with pytest.raises(
        ValueError, match=r"Specified by tensor shape=\(3,\) .* must have size 3.  Received size 2"
    ):
        D.assert_shapes([(X, ("N",)), (tf.zeros([2]), ("N",))])
    with pytest.raises(ValueError, match="Specified explicitly.*must have size 4"):
        D.assert_shapes([(X, (4,))])
    with pytest.raises(ValueError, match="must have rank 2"):
        D.assert_shapes([(X, ("N", "Q"))])


def test_types():
    D.assert_type(X, tf.float32)
    D.assert_integer(tf.constant(1))
    with pytest.raises(TypeError, match="tensor must be of type tf.int32; got tf.float32"):
        D.assert_type(X, tf.int32)
    with pytest.raises(TypeError, match="integer type"):
        D.assert_integer(X)
    assert (
        D.is_numeric_tensor(X) and not D.is_numeric_tensor(tf.constant(True)) and not D.is_numeric_tensor(3)
    )
    assert D.assert_same_float_dtype([X, X]) is tf.float32
    assert D.assert_same_float_dtype() is tf.float32
    with pytest.raises(ValueError, match="must be of the same type"):
        D.assert_same_float_dtype([X, tf.constant(1)])
    D.assert_proper_iterable([1])
    for value in (X, np.ones(2), "a", 3):
        with pytest.raises(TypeError, match='Expected argument "values"'):
            D.assert_proper_iterable(value)


def test_assert():
    tf.Assert(True, [X])
    with pytest.raises(Invalid, match="Expected 'False' to be true. Summarized data: 1.0, 2.0, ..."):
        tf.Assert(False, [X], summarize=2)
    assert tf.assert_equal is D.assert_equal and tf.assert_rank is D.assert_rank


def test_check_numerics():
    for values, words in (([np.nan], "NaN"), ([np.inf], "Inf"), ([np.inf, np.nan], "Inf and NaN")):
        with pytest.raises(Invalid, match=f"^msg : Tensor had {words} values"):
            D.check_numerics(values, "msg")
    np.testing.assert_array_equal(D.assert_all_finite(X, "msg"), X)
    x = tf.constant(0.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        good = D.check_numerics(x, "msg") * 3
        bad = tf.sqrt(D.check_numerics(x, "msg"))
    assert tape.gradient(good, x).numpy() == 3.0
    with pytest.raises(Invalid, match="detected in gradient"):
        tape.gradient(bad, x)


def test_check_numerics_in_a_function():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sqrt(D.check_numerics(x, "in f"))
        return y, tape.gradient(y, x)

    assert [t.numpy() for t in f(tf.constant(4.0))] == [2.0, 0.25]
    with pytest.raises(Invalid, match="in f : Tensor had NaN values"):
        f(tf.constant(np.nan, tf.float32))
    with pytest.raises(Invalid, match="detected in gradient"):
        f(tf.constant(0.0))


@pytest.fixture
def checking():
    D.enable_check_numerics()
    yield
    D.disable_check_numerics()


def test_enable_check_numerics(checking):
    with pytest.raises(Invalid) as e:
        tf.math.log(tf.constant([-1.0, 0.0, 1.0]))
    lines = e.value.message.splitlines()
    assert lines[0] == (
        '!!! Detected Infinity or NaN in output 0 of eagerly-executing op "log" (# of outputs: 1) !!!'
    )
    assert lines[1:5] == [
        "  dtype: <dtype: 'float32'>", "  shape: (3,)", "  # of -Inf elements: 1", "  # of NaN elements: 1",
    ]  # fmt: skip
    assert "Input tensor: tf.Tensor([-1.  0.  1.], shape=(3,), dtype=float32)" in e.value.message
    assert (
        "test_debugging.py" in e.value.message
        and "tf.math.log(tf.constant([-1.0, 0.0, 1.0]))" in e.value.message
    )
    with pytest.raises(Invalid, match=r"(?s)Input tensors \(2\):.*1: tf.Tensor\(0.0"):
        tf.constant(1.0) / tf.constant(0.0)


def test_check_numerics_sees_functions_and_gradients(checking):
    f = tf.function(lambda x: tf.math.log(x) + 1.0)
    assert f(tf.constant(1.0)).numpy() == 1.0
    with pytest.raises(Invalid, match='op "log"'):
        f(tf.constant(0.0))
    x = tf.Variable(0.0)
    for _ in range(3):  # also when the tape would have a program for it
        with tf.GradientTape() as tape:
            y = tf.sqrt(x)
        with pytest.raises(Invalid, match="Detected Infinity"):
            tape.gradient(y, x)


def test_check_numerics_lets_values_pass_and_ends(checking):
    bad = tf.constant([np.nan, 1.0])  # made on purpose
    assert np.isnan(tf.reshape(tf.identity(bad), [2, 1]).numpy()[0, 0])
    assert tf.where(tf.math.is_nan(bad), 0.0, bad).numpy().tolist() == [0.0, 1.0]
    D.disable_check_numerics()
    D.disable_check_numerics()
    assert np.isinf(tf.math.log(tf.constant(0.0)).numpy())
    assert not tf.config.functions_run_eagerly()


def test_details_of_assertions():
    D.assert_near(tf.constant(1 + 1j), tf.constant(1 + 1j))
    with pytest.raises(Invalid, match="x and y not equal to tolerance"):
        D.assert_near(tf.constant(1 + 1j), tf.constant(1 + 2j))
    with pytest.raises(ValueError, match="Rank must be a scalar"):
        D.assert_rank(X, [1])
    with pytest.raises(TypeError, match="must be of type tf.int32"):
        D.assert_rank(X, 1.0)
    with pytest.raises(TypeError, match="values must be a sequence"):
        D.Assert(False, X)
    assert not D.is_numeric_tensor(tf.Variable(1.0))
    with pytest.raises(NotImplementedError, match="enable_check_numerics"):
        D.experimental.enable_dump_debug_info("folder")
    D.experimental.disable_dump_debug_info()


# ---- tf.print -----------------------------------------------------------------------------------


def printed(*values, **kwargs):
    stream = io.StringIO()
    tf.print(*values, output_stream=stream, **kwargs)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (X, "[1 2 3]"), (tf.constant([[1, 2], [3, 4]]), "[[1 2]\n [3 4]]"), (tf.constant(1.5), "1.5"),
        (tf.range(20), "[0 1 2 ... 17 18 19]"), (tf.constant([True, False]), "[1 0]"), (tf.zeros([0]), "[]"),
        (tf.zeros([2, 2, 2]), "[[[0 0]\n  [0 0]]\n\n [[0 0]\n  [0 0]]]"), (tf.Variable([1.0, 2.0]), "[1 2]"),
        (tf.constant([1e-10, 1e10, 1 / 3]), "[1e-10 1e+10 0.333333343]"),
        (tf.constant([np.nan, np.inf, -0.0]), "[nan inf -0]"),
        (tf.constant([1 / 3], tf.float64), "[0.33333333333333331]"),
        (tf.constant([1.0000001, 123456.789, 1e-5]), "[1.00000012 123456.789 1e-05]"),
        ({"b": 1, "a": X}, "{'a': [1 2 3], 'b': 1}"), ([1, 2, X], "[1, 2, [1 2 3]]"), ((1, "s"), "(1, 's')"),
        (None, "None"), ("text\nmore", "text\nmore"), (2.5, "2.5"),
    ],
)  # fmt: skip
def test_print(value, text):
    assert printed(value) == text + "\n"


def test_print_options(tmp_path, capsys, caplog):
    assert printed("a", X, 3, True) == "a [1 2 3] 3 True\n"
    assert printed(1, 2, sep=",", end="|") == "1,2|"
    assert printed(tf.range(20), summarize=2) == "[0 1 ... 18 19]\n"
    assert printed(tf.range(20), summarize=-1) == f"[{' '.join(map(str, range(20)))}]\n"
    tf.print("to stderr")
    assert capsys.readouterr().err == "to stderr\n"
    for _ in range(2):
        tf.print(X, output_stream=f"file://{tmp_path}/log.txt")
    assert (tmp_path / "log.txt").read_text() == "[1 2 3]\n[1 2 3]\n"
    with caplog.at_level(logging.WARNING, "gradtape"):
        tf.print("hello", output_stream="logging.warning")
        tf.print("by Python's number", output_stream=logging.WARNING)
        tf.print("by absl's number", output_stream=-1)
        tf.print("not told", output_stream=0)  # absl's INFO
    assert [r.message for r in caplog.records] == ["hello", "by Python's number", "by absl's number"]
    with pytest.raises(ValueError, match="Unrecognized keyword"):
        tf.print("x", foo=1)
    with pytest.raises(ValueError, match="Unsupported output stream"):
        tf.print("x", output_stream="nowhere")
