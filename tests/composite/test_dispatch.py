"""Public functions whose behaviour programs define for their own classes."""

import typing

import pytest

import gradtape as tf

X = tf.experimental


class Masked(X.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor

    def __add__(self, other):
        return tf.add(self, other)


class Named(X.ExtensionType):
    values: tf.Tensor


def masked():
    return Masked([1.0, -2.0], [True, False])


@pytest.fixture
def register():
    """Registers dispatch targets for the duration of a test."""
    done = []

    def add(decorator, target):
        done.append(decorator(target))

    yield add
    for target in done:
        X.unregister_dispatch_for(target)


@pytest.fixture
def elementwise(register):
    register(X.dispatch_for_unary_elementwise_apis(Masked), lambda f, x: Masked(f(x.values), x.mask))
    register(
        X.dispatch_for_binary_elementwise_apis(Masked, Masked),
        lambda f, x, y: Masked(f(x.values, y.values), x.mask & y.mask),
    )
    register(
        X.dispatch_for_binary_elementwise_apis(Masked, typing.Union[tf.Tensor, float]),  # noqa: UP007
        lambda f, x, y: Masked(f(x.values, y), x.mask),
    )


@pytest.mark.parametrize(
    "call, expected",
    [
        (tf.abs, [1, 2]),
        (lambda x: tf.negative(x=x), [-1, 2]),
        (lambda x: tf.cast(x, tf.int32), [1, -2]),
        (lambda x: tf.clip_by_value(x, 0.0, clip_value_max=0.5), [0.5, 0]),
        (lambda x: tf.ones_like(x, dtype=tf.int64), [1, 1]),
        (lambda x: tf.nn.leaky_relu(x, 0.5), [1, -1]),
        (lambda x: tf.round(x, name="rounded"), [1, -2]),
        (lambda x: tf.add(x, x), [2, -4]),
        (lambda x: tf.multiply(x, 3.0), [3, -6]),
        (lambda x: tf.subtract(x=x, y=tf.constant(1.0)), [0, -3]),
        (lambda x: x + x, [2, -4]),
        (lambda x: tf.math.maximum(x, y=x, name="larger"), [1, -2]),
    ],
)
@pytest.mark.parametrize("make", [lambda f: f, tf.function])
def test_elementwise(elementwise, call, expected, make):
    out = make(call)(masked())
    assert isinstance(out, Masked) and out.values.numpy().tolist() == expected
    assert out.mask.numpy().tolist() == [True, False]


def test_elementwise_of_unknown_size(elementwise):
    spec = Masked.Spec(tf.TensorSpec([None]), tf.TensorSpec([None], tf.bool))
    f = tf.function(lambda x: tf.abs(x + x), input_signature=[spec])
    assert f(masked()).values.numpy().tolist() == [2, 4]
    assert f(Masked([3.0], [True])).values.numpy().tolist() == [6]


def test_calls_on_other_classes_run_as_usual(elementwise):
    assert tf.abs(tf.constant(-1.0)).numpy() == 1
    for call in (
        lambda: tf.add(2.0, masked()),
        lambda: tf.abs(Named([1.0])),
        lambda: tf.reduce_sum(masked()),
    ):
        with pytest.raises(ValueError, match="Attempt to convert a value"):
            call()


def test_one_function(register):
    def total(input_tensor, axis=None, keepdims=False, name=None):
        kept = tf.where(input_tensor.mask, input_tensor.values, 0.0)
        return tf.reduce_sum(kept, axis, keepdims)

    register(X.dispatch_for_api(tf.reduce_sum, {"input_tensor": Masked}), total)
    assert tf.reduce_sum(masked()).numpy() == 1 and tf.reduce_sum(masked(), 0, keepdims=True).shape == [1]
    assert tf.math.reduce_sum(input_tensor=masked()).numpy() == 1


def test_lists_and_unions(register):
    def joined(values, axis):
        return [type(v).__name__ for v in values], axis

    register(X.dispatch_for_api(tf.concat, {"values": list[Masked]}), joined)
    register(
        X.dispatch_for_api(tf.stack, {"values": list[Masked | tf.Tensor]}), lambda values, axis=0: "stacked"
    )
    assert tf.concat([masked(), masked()], 0) == (["Masked", "Masked"], 0)
    assert tf.concat((masked(),), axis=1, name="all") == (["Masked"], 1)
    assert tf.stack([masked(), tf.constant(1.0)]) == "stacked"
    assert tf.stack([tf.constant(1.0)]).shape == [1]
    with pytest.raises(ValueError, match="Attempt to convert a value"):
        tf.concat([masked(), tf.constant([1.0])], 0)


def test_annotations_and_numbers_of_parameters(register):
    def add(x: Named, y: Named, name=None):
        return Named(x.values - y.values)

    register(X.dispatch_for_api(tf.add), add)
    assert tf.add(Named(3.0), Named(1.0)).values.numpy() == 2
    register(X.dispatch_for_api(tf.where, {0: Masked}), lambda condition, x=None, y=None: (x, y))
    assert tf.where(masked(), 1, 2) == (1, 2)
    register(X.dispatch_for_api(tf.image.resize, {0: Masked}), lambda *args, **kwargs: len(args))
    assert tf.image.resize(masked(), [2, 2]) == 2


def test_assertions(register):
    def handler(function, x, y):
        function(tf.boolean_mask(x.values, x.mask), tf.boolean_mask(y.values, y.mask))

    register(X.dispatch_for_binary_elementwise_assert_apis(Masked, Masked), handler)
    tf.debugging.assert_equal(masked(), Masked([1.0, 5.0], [True, False]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Condition x > y did not hold"):
        tf.debugging.assert_greater(masked(), masked())


def test_what_is_registered_twice(register, elementwise):
    for decorator in (
        X.dispatch_for_unary_elementwise_apis(Masked),
        X.dispatch_for_binary_elementwise_apis(Masked, Masked),
    ):
        with pytest.raises(ValueError, match="has already been registered for"):
            decorator(lambda *args: None)
    register(X.dispatch_for_api(tf.abs, {"x": Masked}), lambda x, name=None: x)
    with pytest.raises(
        ValueError, match="Multiple dispatch targets that were registered with tf.dispatch_for"
    ):
        tf.abs(masked())


def test_what_is_taken_back(register):
    target = X.dispatch_for_api(tf.abs, {"x": Masked})(lambda x: "mine")
    assert tf.abs(masked()) == "mine"
    X.unregister_dispatch_for(target)
    with pytest.raises(ValueError, match="Attempt to convert a value"):
        tf.abs(masked())
    with pytest.raises(ValueError, match="was not registered using a `@dispatch_for_"):
        X.unregister_dispatch_for(target)


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: X.dispatch_for_api(tf.add, {"z": Masked}), ValueError, "unknown parameter 'z'"),
        (lambda: X.dispatch_for_api(tf.add, 5), TypeError, "signatures must be dictionaries"),
        (
            lambda: X.dispatch_for_api(tf.add, {"x": dict[str, int]}),
            ValueError,
            "not currently supported by dispatch",
        ),
        (lambda: X.dispatch_for_api(masked, {"x": Masked}), ValueError, "does not support dispatch"),
        (
            lambda: X.dispatch_for_api(tf.abs)(lambda x: x),
            ValueError,
            "must be called with at least one signature",
        ),
        (
            lambda: X.dispatch_for_api(tf.add, {"x": Masked})(lambda a, b: a),
            ValueError,
            "does not match API's signature",
        ),
        (lambda: X.dispatch_for_api(tf.add, {"x": Masked})(5), TypeError, "to be callable"),
    ],
)
def test_what_cannot_be_registered(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_identity_is_that_of_each_tensor():
    assert bool(tf.identity(masked()) == masked())
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        stopped = tf.stop_gradient(Masked(x * x, [True, True]))
    assert isinstance(stopped, Masked) and tape.gradient(stopped.values, x) is None
