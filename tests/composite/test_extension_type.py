"""`tf.experimental.ExtensionType`: fields, constructors, specs, and where the values can be used."""

import copy
import pickle
import sys
import typing

import pytest

import gradtape as tf

ExtensionType = tf.experimental.ExtensionType


class Masked(ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor


class Toy(ExtensionType):
    name: str
    price: tf.Tensor
    features: typing.Mapping[str, tf.Tensor]


class Store(ExtensionType):
    name: str
    toys: tuple[Toy, ...]


class Options(ExtensionType):
    x: int | tf.Tensor
    shape_: tf.TensorShape = (2, 3)
    dtype_: tf.DType = tf.int32
    extra: tf.Tensor | None = None


class Pair(ExtensionType):
    x: tuple[int, str]
    m: typing.Mapping[str, int] = {}


class Node(ExtensionType):
    value: tf.Tensor
    children: tuple["Node", ...] = ()


class Batch(tf.experimental.BatchableExtensionType):
    x: tf.Tensor
    size: tf.TensorShape


def masked(n=2):
    return Masked(tf.range(float(n)), [True] * n)


def car(price=3.0):
    return Toy("car", price, {"b": [1, 2], "a": [3.0]})


# ---- fields -------------------------------------------------------------------------------------------


def test_values_are_converted():
    toy = Store("s", [car(), car(4)]).toys[1]
    assert toy.price.dtype is tf.int32 and toy.features["b"].numpy().tolist() == [1, 2]
    options = Options([1, 2], [4, None], "float32", 1.5)
    assert (options.shape_, options.dtype_) == (tf.TensorShape([4, None]), tf.float32)
    assert options.x.shape == [2] and options.extra.numpy() == 1.5
    assert Options(3).x == 3 and Options(3).extra is None and Options(3).shape_ == (2, 3)


def test_values_cannot_be_changed():
    value = masked()
    for change in (
        lambda: setattr(value, "values", 1),
        lambda: setattr(value, "other", 1),
        lambda: delattr(value, "mask"),
    ):
        with pytest.raises(AttributeError, match="Cannot mutate attribute"):
            change()
    with pytest.raises(TypeError):
        car().features["c"] = 1
    with pytest.raises(AttributeError, match="Cannot mutate attribute"):
        value._type_spec.values = 3


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: Pair((1, 2)), TypeError, r"x\[1\]: expected 'str', got 'int'"),
        (lambda: Pair((1,)), TypeError, "x: expected tuple with length 2"),
        (lambda: Pair(5), TypeError, "x: expected tuple, got 'int'"),
        (lambda: Pair((1, "a"), 5), TypeError, "m: expected mapping, got 'int'"),
        (lambda: Pair((1, "a"), {"x": "y"}), TypeError, r"m\['x'\]: expected 'int', got 'str'"),
        (lambda: Pair((1, "a"), {3: 4}), TypeError, r"m\[<key>\]: expected 'str', got 'int'"),
        (lambda: Options(1, "abc"), TypeError, "shape_: expected 'tf.TensorShape', got 'str'"),
        (lambda: Options(1, 3, "nope"), TypeError, "dtype_: expected 'tf.DType', got 'str'"),
        (lambda: Options(object()), TypeError, "x: expected .*, got 'object'"),
        (lambda: Store("a", [masked()]), TypeError, r"toys\[0\]: expected 'Toy', got 'Masked'"),
        (lambda: Masked(object(), 1), TypeError, "values: expected a Tensor, got 'object'"),
        (lambda: Masked(1), TypeError, "missing a required argument: 'mask'"),
        (lambda: Masked(1, 2, 3), TypeError, "too many positional arguments"),
        (lambda: Masked.Spec(1, 2), TypeError, "values: expected a TensorSpec, got 'int'"),
        (
            lambda: Store.Spec("a", (tf.TensorSpec([]),)),
            TypeError,
            "expected a TypeSpec for 'Toy', got 'TensorSpec'",
        ),
        (ExtensionType, AssertionError, "abstract base class"),
    ],
)
def test_values_that_do_not_fit(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    "body, error, words",
    [
        ({"__annotations__": {"x": list}}, TypeError, "In field 'x': Unsupported type annotation 'list'"),
        ({"__annotations__": {"x": typing.List[int]}}, TypeError, "Unsupported type annotation typing.List"),  # noqa: UP006
        ({"__annotations__": {"x": tf.Variable}}, TypeError, "Unsupported type annotation 'Variable'"),
        ({"__annotations__": {"x": typing.Mapping[tf.Tensor, int]}}, TypeError, "Mapping had a key 'Tensor'"),
        (
            {"__annotations__": {"x": int}, "x": "a"},
            TypeError,
            "default value for x: expected 'int', got 'str'",
        ),
        ({"__annotations__": {"_type_spec": int}}, ValueError, "Field '_type_spec' is reserved"),
        ({"__annotations__": {"_tf_extension_type_x": int}}, ValueError, "is reserved"),
        ({"Spec": 3}, ValueError, "Bad.Spec must be a nested class; got 3"),
        ({"Spec": tf.TensorSpec}, ValueError, "must be directly subclassed from tf.TypeSpec"),
        ({"y": 3}, ValueError, "Field y is missing a type annotation"),
        ({"__batch_encoder__": 1}, ValueError, "should only be defined for BatchableExtensionType"),
    ],
)
def test_classes_that_are_refused(body, error, words):
    with pytest.raises(error, match=words):
        type("Bad", (ExtensionType,), body)


def test_fields_without_defaults_after_those_with_are_given_by_name():
    class Late(ExtensionType):
        a: int = 3
        b: int

    assert (Late(b=2).a, Late(b=2).b) == (3, 2)
    with pytest.raises(TypeError):
        Late(1, 2)


def test_classes_may_name_themselves():
    tree = Node(1.0, [Node(2.0), Node(3.0, [Node(4.0)])])
    assert [float(x) for x in tf.nest.flatten(tree, expand_composites=True)] == [1, 2, 3, 4]


def test_constructors_of_the_users():
    class Made(ExtensionType):
        a: tf.Tensor
        b: tf.Tensor

        def __init__(self, x, fields="ab"):
            for name in fields:
                setattr(self, name, x)

        def __validate__(self):
            self.a.shape.assert_has_rank(0)

    assert Made(3).b.numpy() == 3
    with pytest.raises(ValueError, match="Missing required fields: {'b'}"):
        Made(3, "a")
    with pytest.raises(AttributeError, match="Cannot mutate attribute `c`"):
        Made(3, "abc")
    with pytest.raises(ValueError, match="must have rank 0"):
        Made([1])
    # It is not called when values are rebuilt from their components.
    assert tf.function(lambda m: m)(Made(3)).a.numpy() == 3


def test_specs_with_methods():
    class Image(ExtensionType):
        pixels: tf.Tensor

        class Spec:
            def __init__(self, size):
                self.pixels = tf.TensorSpec([size, size])

            @property
            def size(self):
                return self.pixels.shape[0]

    assert Image.Spec(4).size == 4 and Image(tf.ones([2, 2]))._type_spec.size == 2
    assert Image.Spec(4).is_compatible_with(Image(tf.ones([4, 4])))

    with pytest.raises(ValueError, match="shadows a field"):

        class Bad(ExtensionType):
            x: int

            class Spec:
                x = 3


def test_inheritance():
    class More(Masked):
        k: int = 4

    assert More([1], [True]).k == 4 and isinstance(More([1], [True]), Masked)
    assert (More([1], [True]) == Masked([1], [True])) is False


# ---- comparison, copies, text ----------------------------------------------------------------------------


def test_equality():
    assert bool(masked() == masked()) and not bool(masked() != masked())
    assert bool(masked() != Masked([5.0, 6.0], [True, True]))
    assert (masked() == masked(3)) is False and (masked() == 3) is False
    with pytest.raises(TypeError, match="unhashable"):
        hash(masked())


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_and_pickles(again):
    store = Store("s", [car()])
    assert bool(again(store) == store) and again(store._type_spec) == store._type_spec
    assert again(store).toys[0].features["a"].numpy() == [3]


def test_words():
    assert repr(Pair((1, "a"), {"k": 2})).endswith("Pair(x=(1, 'a'), m=ImmutableDict({'k': 2}))")
    assert repr(Batch([1], [1])._type_spec) == (
        "Batch.Spec(x=TensorSpec(shape=(1,), dtype=tf.int32, name=None), size=TensorShape([1]))"
    )
    assert tf.experimental.extension_type.as_dict(Pair((1, "a"))) == {"x": (1, "a"), "m": {}}


# ---- specs ------------------------------------------------------------------------------------------------


def test_specs():
    wide = Masked.Spec(tf.TensorSpec([None]), tf.TensorSpec([None], tf.bool))
    assert masked(2)._type_spec.most_specific_common_supertype([masked(3)._type_spec]) == wide
    assert masked()._type_spec.is_subtype_of(wide) and not wide.is_subtype_of(masked()._type_spec)
    assert car()._type_spec.most_specific_common_supertype([Toy("x", 1.0, {})._type_spec]) is None
    assert hash(car(1.0)._type_spec) == hash(car(2.0)._type_spec)
    with pytest.raises(ValueError, match="more components are provided"):
        wide._from_components(tf.unstack(tf.ones([3])))


def test_batches():
    one = Batch([1, 2], [2])._type_spec
    assert (
        one._batch(3) == Batch.Spec(tf.TensorSpec([3, 2], tf.int32), [3, 2])
        and one._batch(3)._unbatch() == one
    )
    tensors = one._to_tensor_list(Batch([1, 2], [2]))
    assert len(tensors) == 1 and one._from_tensor_list(tensors).x.numpy().tolist() == [1, 2]


def test_an_encoder_of_ones_own():
    class Doubled(tf.experimental.ExtensionTypeBatchEncoder):
        def encode(self, spec, value, minimum_rank=0):
            return value.x * 2, value.x

        def encoding_specs(self, spec):
            return spec.x, spec.x

        def decode(self, spec, encoded_value):
            return Odd(encoded_value[0] - encoded_value[1])

    class Odd(tf.experimental.BatchableExtensionType):
        x: tf.Tensor
        __batch_encoder__ = Doubled()

    class Outer(tf.experimental.BatchableExtensionType):
        odd: Odd
        y: tf.Tensor

    value = Outer(Odd([1.0]), [2.0])
    tensors = value._type_spec._to_tensor_list(value)
    assert [t.numpy().tolist() for t in tensors] == [[2], [1], [2]]
    assert value._type_spec._from_tensor_list(tensors).odd.x.numpy().tolist() == [1]


# ---- where they can be used ---------------------------------------------------------------------------------


def test_functions_are_traced_by_fields_that_are_no_tensors():
    traced = []

    @tf.function
    def f(toy):
        traced.append(toy.name)
        return toy.price + toy.features["a"]

    for name in ("car", "car", "ship"):
        assert f(Toy(name, 1.0, {"a": [2.0]})).numpy() == [3]
    assert traced == ["car", "ship"]


def test_branches_and_loops():
    @tf.function
    def f(n, m):
        _, m = tf.while_loop(lambda i, m: i < n, lambda i, m: (i + 1, Masked(m.values * 2.0, m.mask)), (0, m))
        return tf.cond(n > 2, lambda: m, lambda: Masked(-m.values, m.mask))

    assert f(tf.constant(3), masked()).values.numpy().tolist() == [0, 8]
    assert f(tf.constant(2), masked()).values.numpy().tolist() == [0, -4]


@pytest.mark.parametrize("make", [lambda f: f, tf.function])
def test_map_fn(make):
    batch = Batch([[1, 2], [3, 4], [5, 6]], [3, 2])

    def more(b):
        assert b.size == [2]
        return Batch(b.x + 1, b.size)

    out = make(lambda: tf.map_fn(more, batch))()
    assert out.x.numpy().tolist() == [[2, 3], [4, 5], [6, 7]] and out.size == (3, 2)
    sums = make(lambda: tf.map_fn(lambda b: tf.reduce_sum(b.x), batch, fn_output_signature=tf.int32))()
    assert sums.numpy().tolist() == [3, 7, 11]
    spec = Batch.Spec(tf.TensorSpec([2], tf.int32), [2])
    out = make(lambda: tf.map_fn(lambda i: Batch([i, i], [2]), tf.range(3), fn_output_signature=spec))()
    assert out.x.numpy().tolist() == [[0, 0], [1, 1], [2, 2]] and out.size == (3, 2)
    with pytest.raises(ValueError, match="Expected `fn` to return a"):
        tf.map_fn(lambda i: Batch([i], [1]), tf.range(3), fn_output_signature=spec)
    with pytest.raises(AttributeError, match="_unbatch"):
        tf.map_fn(lambda m: m, masked())


@pytest.mark.parametrize("make", [lambda f: f, tf.function])
def test_vectorized_map(make):
    batch = Batch([[1, 2], [3, 4], [5, 6]], [3, 2])
    out = make(
        lambda: tf.vectorized_map(lambda b: {"b": Batch(b.x * 2, b.size), "s": tf.reduce_sum(b.x)}, batch)
    )()
    assert out["b"].x.numpy().tolist() == [[2, 4], [6, 8], [10, 12]] and out["b"].size == (3, 2)
    assert out["s"].numpy().tolist() == [3, 7, 11]
    out = make(lambda: tf.vectorized_map(lambda i: Batch([i, i], [2]), tf.range(2)))()
    assert out.x.numpy().tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("make", [lambda f: f, tf.function])
def test_py_function(make):
    def double(m, k):
        assert m.values.numpy() is not None
        return Masked(m.values * float(k), m.mask)

    spec = masked()._type_spec
    out = make(lambda m: tf.py_function(double, [m, 3], spec))(masked())
    assert isinstance(out, Masked) and out.values.numpy().tolist() == [0, 3]
    total, out = make(lambda m: tf.py_function(lambda m: (m.values[1], m), [m], [tf.TensorSpec([]), spec]))(
        masked()
    )
    assert total.numpy() == 1 and out.mask.numpy().tolist() == [True, True]


def test_printing_in_a_function(capsys):
    @tf.function
    def f(m):
        tf.print(m, output_stream=sys.stdout)
        return m.values

    f(masked())
    assert "array([0., 1.], dtype=float32)" in capsys.readouterr().out


class Scale(tf.Module):
    def __init__(self):
        super().__init__()
        self.v = tf.Variable(2.0)

    @tf.function(input_signature=[Masked.Spec(tf.TensorSpec([None]), tf.TensorSpec([None], tf.bool))])
    def apply(self, m):
        return Masked(m.values * self.v, m.mask)


def test_stored_modules(tmp_path):
    tf.saved_model.save(Scale(), str(tmp_path / "scale"))
    again = tf.saved_model.load(str(tmp_path / "scale"))
    assert again.apply(masked()).values.numpy().tolist() == [0, 2]


def test_they_are_no_tensors():
    assert not tf.is_tensor(masked())
    with pytest.raises((TypeError, ValueError), match="Attempt to convert a value"):
        tf.convert_to_tensor(masked())


def test_objects_that_say_they_are_like_tensors():
    """Like the transformed variables of TensorFlow Probability and the parameters of GPflow."""

    class Like:
        is_tensor_like = True

    assert tf.is_tensor(Like()) and not tf.is_tensor(object()) and not tf.is_tensor([1.0])
