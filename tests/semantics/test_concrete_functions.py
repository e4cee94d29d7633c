"""tf.function objects and their traces: their properties, how they are called and copied."""

import collections
import copy
import pickle
import re

import numpy as np
import pytest

from tests.semantics.lib import counted, differs_on_tensorflow, tf

spec = tf.TensorSpec
Pair = collections.namedtuple("Pair", "a b")


def shapes(tensors):
    return [None if t.shape.rank is None else t.shape.as_list() for t in tensors]


# ---- properties of a trace ----------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, None])
def test_inputs_and_outputs(size):
    def f(x, k):
        return {"double": 2.0 * x, "rest": [k, (x[:1], None, 3)]}

    c = tf.function(f).get_concrete_function(spec([size, 2]), spec(None, tf.int32))
    assert shapes(c.inputs) == [[size, 2], None]
    assert [t.dtype for t in c.inputs] == [tf.float32, tf.int32]
    assert [t.dtype for t in c.outputs] == [tf.float32, tf.int32, tf.float32, tf.int32]
    assert c.output_shapes["double"].as_list() == [size, 2]
    assert c.output_shapes["rest"][0].rank is None and c.output_shapes["rest"][1][2].as_list() == []
    assert c.output_dtypes == {"double": tf.float32, "rest": [tf.int32, (tf.float32, None, tf.int32)]}
    assert c.structured_outputs["rest"][1][1] is None
    assert c.structured_outputs["double"].shape.as_list() == [size, 2]
    assert c.captured_inputs == [] and c.variables == () and c.graph is not None


@pytest.mark.parametrize("size", [2, None])
def test_captured_variables_and_tensors(size):
    v, w, k = tf.Variable([1.0, 2.0]), tf.Variable(2.0, trainable=False), tf.constant(4.0)
    c = tf.function(lambda x: v * x + w + k).get_concrete_function(spec([size]))
    assert [x is y for x, y in zip(c.variables, (v, w), strict=True)] == [True, True]
    assert len(c.trainable_variables) == 1 and c.trainable_variables[0] is v
    assert len(c.captured_inputs) == 3 and len(c.inputs) == 4
    assert c(tf.ones([2])).numpy().tolist() == [7.0, 8.0]
    v.assign([0.0, 0.0])
    assert c(tf.ones([2])).numpy().tolist() == [6.0, 6.0]


def test_nothing_is_returned():
    c = tf.function(lambda x: None).get_concrete_function(spec([]))
    assert c.outputs == [] and c.structured_outputs is None and c(tf.constant(1.0)) is None


def test_structured_input_signature():
    def f(x, n, *, y, z="z"):
        return x["p"] + x["q"][0] + y

    c = tf.function(f).get_concrete_function(
        {"p": spec([None]), "q": [spec([], name="own")]}, 3, y=spec(None)
    )
    args, kwargs = c.structured_input_signature
    assert args == ({"p": spec([None], name="x_p"), "q": [spec([], name="own")]}, 3)
    assert kwargs == {"y": spec(None, name="y"), "z": "z"}


def test_structured_input_signature_of_star_arguments_and_named_tuples():
    def f(t, *rest, **named):
        return t.a + t.b + rest[0] + named["k"]

    c = tf.function(f).get_concrete_function(Pair(spec([]), spec([])), spec([]), 5, k=spec([]))
    args, kwargs = c.structured_input_signature
    assert args == (Pair(spec([], name="t_a"), spec([], name="t_b")), spec([], name="rest_0"), 5)
    assert kwargs == {"k": spec([], name="k")}


def test_text():
    def f(x, y=3, *, z):
        return {"a": x, "b": [x, None]}

    c = tf.function(f).get_concrete_function(spec([None]), z=spec(None, tf.int32))
    x = "TensorSpec(shape=(None,), dtype=tf.float32, name=None)"
    z = "TensorSpec(shape=<unknown>, dtype=tf.int32, name=None)"
    out = f"Dict[['a', {x}], ['b', List[{x}, Literal[None]]]]"
    line = f"(x: {x}, y: Literal[3], *, z: {z}) -> {out}"
    assert c.pretty_printed_signature(verbose=False) == line
    assert re.fullmatch(re.escape(f"<ConcreteFunction {line} at 0x") + "[0-9A-F]+>", repr(c))
    lines = [
        "Input Parameters:",
        f"  x (POSITIONAL_OR_KEYWORD): {x}",
        "  y (POSITIONAL_OR_KEYWORD): Literal[3]",
        f"  z (KEYWORD_ONLY): {z}",
        "Output Type:",
        f"  {out}",
        "Captures:",
        "  None",
    ]
    assert c.pretty_printed_signature() == "\n".join(lines)
    assert str(c) == "ConcreteFunction " + "\n".join(lines)


def test_text_of_star_arguments_named_tuples_and_variables():
    def f(d, v, *a, **k):
        return Pair(d["p"], (v,))

    c = tf.function(f).get_concrete_function(
        {"p": spec([])}, tf.Variable([1.0]), spec([1]), "x", kk=spec([2])
    )

    def shown(n):
        return f"TensorSpec(shape={n}, dtype=tf.float32, name=None)"

    assert c.pretty_printed_signature(verbose=False) == (
        f"(d: Dict[['p', {shown('()')}]], v: VariableSpec(shape=(1,), dtype=tf.float32, trainable=True, alias_id=0), "
        f"a_0: {shown('(1,)')}, a_1: Literal['x'], /, *, kk: {shown('(2,)')}) -> "
        f"Pair[['a', {shown('()')}], ['b', Tuple[{shown('(1,)')}]]]"
    )


def test_signatures_of_a_function():
    f = tf.function(lambda x, n=1: x)
    f(tf.constant([1.0]))
    f(tf.constant(2), 3)
    lines = f.pretty_printed_concrete_signatures(verbose=False).splitlines()
    assert [re.findall(r"shape=(\S+), .*Literal\[(\d)\]", line)[0] for line in lines] == [
        ("(1,)", "1"),
        ("()", "3"),
    ]
    assert f.pretty_printed_concrete_signatures().count("Input Parameters:") == 2
    assert str(f.function_type).startswith("(x, n=")


# ---- calling a trace ----------------------------------------------------------------------------


@pytest.fixture(params=[2, None])
def difference(request):
    def difference(x, y):
        return x - y

    return tf.function(difference).get_concrete_function(spec([request.param]), spec([request.param]))


one, two = np.ones(2, "f"), 2 * np.ones(2, "f")


def test_by_position_and_by_name(difference):
    x, y = tf.constant(one), tf.constant(two)
    for result in (difference(x, y), difference(x, y=y), difference(y=y, x=x), difference(one, [2.0, 2.0])):
        assert result.numpy().tolist() == [-1.0, -1.0]
    assert difference(tf.Variable(one), y).numpy().tolist() == [-1.0, -1.0]


@pytest.mark.parametrize(
    "args, kwargs, words",
    [
        ((one,), {}, "missing a required argument: 'y'"),
        ((), {"y": one}, "missing a required argument: 'x'"),
        ((one, one, one), {}, "too many positional arguments"),
        ((one, one), {"z": one}, "got an unexpected keyword argument 'z'"),
        ((one, one), {"x": one}, "multiple values for argument 'x'"),
    ],
)
def test_arguments_that_do_not_fit(difference, args, kwargs, words):
    args, kwargs = tf.nest.map_structure(tf.constant, (args, kwargs))
    with pytest.raises(TypeError, match=re.escape(words)):
        difference(*args, **kwargs)


def test_another_element_type(difference):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input #1.*int32"):
        difference(tf.constant(one), tf.constant([1, 2]))


def test_no_tensor_at_all(difference):
    with pytest.raises(TypeError, match="Binding inputs"):
        difference(tf.constant(one), object())


def test_another_shape_inside_a_function():
    c = tf.function(lambda x: x).get_concrete_function(spec([3]))
    with pytest.raises(
        TypeError, match=r"Can not cast TensorSpec\(shape=\(2,\).* to TensorSpec\(shape=\(3,\)"
    ):
        tf.function(lambda x: c(x))(tf.ones([2]))


@differs_on_tensorflow("its kernels take any shape", raises=pytest.fail.Exception)
def test_another_shape():
    for size in (3, None):
        c = tf.function(lambda x: x).get_concrete_function(spec([size]))
        with pytest.raises(TypeError, match="Can not cast"):
            c(tf.ones([2, 2]))


def test_python_values_are_those_of_the_trace():
    def f(x, n, m=None):
        return x * n

    c = tf.function(f).get_concrete_function(spec([]), 3)
    x = tf.constant(2.0)
    assert [float(r) for r in (c(x), c(x, 3, None), c(x, n=3, m=None), c(x=x))] == [6.0] * 4
    with pytest.raises(TypeError, match=r"Can not cast 4 to Literal\[3\]"):
        c(x, 4, None)
    with pytest.raises(TypeError, match=r"to Literal\[None\]"):
        c(x, 3, x)


def test_nests_as_they_were_and_one_by_one():
    def f(d, pair):
        return d["p"] + pair[0] - pair[1]

    c = tf.function(f).get_concrete_function({"p": spec([])}, [spec([]), spec([])])
    a, b, k = map(tf.constant, (1.0, 2.0, 4.0))
    assert float(c({"p": a}, [b, k])) == float(c(a, b, k)) == -1.0
    for wrong in (({"p": a}, (b, k)), ({"q": a}, [b, k]), ({"p": a}, [b]), (a, [b, k])):
        with pytest.raises(TypeError):
            c(*wrong)


def test_names_of_specs():
    c = tf.function(lambda x, y: x - y).get_concrete_function(spec([], name="first"), spec([]))
    a, b = tf.constant(1.0), tf.constant(3.0)
    assert float(c(first=a, y=b)) == float(c(x=a, y=b)) == -2.0


def test_one_trace_for_every_size():
    f, runs = counted(lambda x: tf.reduce_sum(x * x))
    c = f.get_concrete_function(spec([None]))
    for n in (0, 1, 5, 5, 5, 9):
        x = tf.ones([n])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = c(x)
        assert float(y) == n and tape.gradient(y, x).numpy().tolist() == [2.0] * n
    assert len(runs) == 1


@pytest.mark.parametrize("inner", [2, None])
@pytest.mark.parametrize("outer", [2, None])
def test_a_trace_inside_a_function(inner, outer):
    v = tf.Variable(0.0)

    def f(x):
        v.assign_add(1.0)
        return tf.reduce_sum(x * x) + v

    c = tf.function(f).get_concrete_function(spec([inner]))
    g = tf.function(lambda x: c(x + 1.0) + c(x=x), input_signature=[spec([outer])])
    for k in range(3):
        x = tf.ones([2])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = g(x)
        assert float(y) == 8.0 + 2.0 + 4 * k + 3 and float(v) == 2 * k + 2
        assert tape.gradient(y, x).numpy().tolist() == [6.0, 6.0]


def test_traces_can_neither_be_pickled_nor_copied():
    c = tf.function(lambda x: x).get_concrete_function(spec([]))
    for attempt in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            attempt(c)


# ---- getting a trace ----------------------------------------------------------------------------


def test_a_general_trace_serves_special_arguments():
    f, runs = counted(lambda x: x)
    general = f.get_concrete_function(spec([None]))
    assert f.get_concrete_function(spec([None])) is general and f.get_concrete_function(spec([3])) is general
    f(tf.ones([2]))
    f(np.ones(7, "f"))
    assert len(runs) == f.experimental_get_tracing_count() == 1
    f(tf.ones([2, 2]))
    assert len(runs) == 2


def test_a_special_trace_is_preferred():
    f, runs = counted(lambda x: tf.constant(-1 if x.shape[0] is None else x.shape[0]))
    f(tf.ones([2]))
    f.get_concrete_function(spec([None]))
    assert [int(f(tf.ones([n]))) for n in (2, 5, 6)] == [2, -1, -1] and len(runs) == 2


def test_arguments_of_get_concrete_function():
    f = tf.function(lambda x, y: x)
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        f.get_concrete_function(spec([]))
    with pytest.raises(TypeError, match="too many positional arguments"):
        f.get_concrete_function(spec([]), spec([]), spec([]))
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        f.get_concrete_function(spec([]), spec([]), z=1)


def test_get_concrete_function_with_a_signature():
    f = tf.function(lambda x: x, input_signature=[spec([None], name="q")])
    c = f.get_concrete_function()
    assert c.structured_input_signature == ((spec([None], name="q"),), {})
    for wrong in (spec([2, 2], name="q"), spec([2], tf.int32, name="q")):
        with pytest.raises(TypeError, match="Can not cast"):
            f.get_concrete_function(wrong)
    f(tf.ones([2]))
    assert f.experimental_get_tracing_count() == 1


def test_python_conditions_on_tensors_cannot_be_traced():
    def f(x):
        if x > 0:
            return x
        return -x

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(f, autograph=False).get_concrete_function(spec([]))
    with pytest.raises(AttributeError, match="numpy"):
        tf.function(lambda x: x.numpy()).get_concrete_function(spec([None]))


# ---- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["foo", "name", "signature", "experimental_foo"])
def test_unknown_options_are_refused(option):
    with pytest.raises(TypeError, match=option):
        tf.function(lambda x: x, **{option: None})
    with pytest.raises(TypeError, match=option):
        tf.function(**{option: None})


@pytest.mark.parametrize(
    "option",
    [
        "input_signature", "autograph", "jit_compile", "reduce_retracing", "experimental_implements",
        "experimental_autograph_options", "experimental_attributes", "experimental_relax_shapes",
        "experimental_compile", "experimental_follow_type_hints",
    ],
)  # fmt: skip
def test_known_options(option):
    assert int(tf.function(func=lambda x: x, **{option: None})(tf.constant(1))) == 1


def test_attributes_have_known_names():
    with pytest.raises(ValueError, match="foo"):
        tf.function(lambda x: x, experimental_attributes={"foo": 1})
    with pytest.raises(TypeError, match="not a callable"):
        tf.function(3)


def only_x(x):
    return x


@pytest.mark.parametrize(
    "function, signature, words",
    [
        (only_x, 3, "either a tuple or a list"),
        (only_x, [3], "sequence of TensorSpec objects"),
        (only_x, [None], "sequence of TensorSpec objects"),
        (only_x, spec([]), "either a tuple or a list"),
        (only_x, [spec([]), spec([])], "1 extra type constraints"),
        (only_x, [], "missing type constraint for x"),
        (lambda x, y: x, [spec([])], "missing type constraint for y"),
        (lambda x, *, k: x, [spec([])], "keyword-only parameter `k` must have a default value"),
    ],
)
def test_signatures_that_do_not_fit_the_function(function, signature, words):
    with pytest.raises(TypeError, match=words):
        tf.function(function, input_signature=signature)


# ---- calls with a signature -----------------------------------------------------------------------


def test_too_few_and_too_many_arguments():
    f = tf.function(lambda x, y: x + y, input_signature=[spec([]), spec([])])
    assert float(f(1.0, y=2)) == float(f(y=2.0, x=1.0)) == 3.0
    for args, kwargs, words in [
        ((1.0,), {}, "missing a required argument: 'y'"),
        ((1.0, 1.0, 1.0), {}, "too many positional arguments"),
        ((1.0,), {"z": 1.0}, "missing a required argument: 'y'"),
        ((1.0, 1.0), {"z": 1.0}, "unexpected keyword argument 'z'"),
    ]:
        with pytest.raises(TypeError, match=f"Binding inputs to tf.function failed due to `.*{words}"):
            f(*args, **kwargs)


def test_the_same_without_a_signature():
    f = tf.function(lambda x, y: x)
    for args, kwargs, words in [
        ((1,), {}, "missing a required argument: 'y'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1, 2), {"z": 3}, "got an unexpected keyword argument 'z'"),
        ((1, 2), {"x": 2}, "multiple values for argument 'x'"),
    ]:
        with pytest.raises(TypeError, match=f"Binding inputs to tf.function failed due to `{words}"):
            f(*args, **kwargs)


def test_defaults_beside_a_signature():
    f = tf.function(lambda x, y=2.0, *, z=3: x + y, input_signature=[spec([])])
    assert float(f(1.0)) == float(f(1.0, 2.0)) == float(f(1.0, z=3)) == 3.0
    with pytest.raises(TypeError, match=r"Can not cast 3.0 to Literal\[2.0\]"):
        f(1.0, 3.0)
    with pytest.raises(TypeError, match=r"Can not cast 4 to Literal\[3\]"):
        f(1.0, z=4)


def test_nests_in_a_signature():
    signature = [{"a": spec([None]), "b": [spec([]), spec([])]}, Pair(spec([]), spec([]))]
    f, runs = counted(lambda d, p: d["a"] + d["b"][0] - d["b"][1] + p.a * p.b, input_signature=signature)
    assert f({"a": [1.0, 2.0], "b": [1.0, 2.0]}, Pair(2.0, 3.0)).numpy().tolist() == [6.0, 7.0]
    assert f({"b": [1.0, 2.0], "a": [1.0]}, Pair(2.0, 3.0)).numpy().tolist() == [6.0]
    assert len(runs) == 1
    pair = Pair(2.0, 3.0)
    for args, words in [
        (({"a": [1.0], "b": (1.0, 2.0)}, pair), "to list type"),
        (({"a": [1.0]}, pair), "different keys"),
        (({"a": [1.0], "b": [1.0, 2.0], "c": 1.0}, pair), "different keys"),
        ((3.0, pair), "to a Dict type"),
        (({"a": [1.0], "b": [1.0, 2.0]}, (2.0, 3.0)), "Cannot cast"),
    ]:
        with pytest.raises(TypeError, match=words):
            f(*args)


def test_signatures_of_methods_and_of_star_arguments():
    class Thing:
        @tf.function(input_signature=[spec([None])])
        def double(self, x):
            return 2.0 * x

    thing = Thing()
    assert thing.double(x=tf.ones([3])).numpy().tolist() == [2.0] * 3
    for args in [(), (tf.ones([1]), tf.ones([1])), (tf.ones([1, 1]),), (tf.constant([1]),), ("a",), (None,)]:
        with pytest.raises(TypeError, match="Binding inputs"):
            thing.double(*args)
    f = tf.function(lambda *a: a[0] + a[1], input_signature=[spec([]), spec([])])
    assert float(f(1.0, 2.0)) == 3.0
    for args in [(1.0,), (1.0, 2.0, 3.0)]:
        with pytest.raises(TypeError, match="Binding inputs"):
            f(*args)


# ---- copies and pickles ---------------------------------------------------------------------------


def doubled(x):
    return 2.0 * x


class Scale(tf.Module):
    def __init__(self):
        super().__init__()
        self.k = tf.Variable(2.0)

    @tf.function
    def __call__(self, x):
        return self.k * x


@tf.function
def tripled(x):
    return 3.0 * x


def test_pickled_with_its_options():
    f = tf.function(doubled, input_signature=[spec([None])], autograph=False, reduce_retracing=True)
    g = pickle.loads(pickle.dumps(f))
    assert g is not f and g.python_function is doubled and g.input_signature == f.input_signature
    assert g(tf.ones([2])).numpy().tolist() == [2.0, 2.0] and g.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError):
        g(tf.ones([2, 2]))


@differs_on_tensorflow("it cannot pickle or copy functions that have traces")
def test_pickles_and_copies_leave_traces_out():
    f = tf.function(doubled)
    f(tf.ones([2]))
    for g in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        assert g.experimental_get_tracing_count() == 0 and g(tf.ones([2])).numpy().tolist() == [2.0, 2.0]
    tripled(tf.ones([2]))
    assert pickle.loads(pickle.dumps(tripled)) is tripled
    scale = Scale()
    scale(tf.ones([1]))
    method = pickle.loads(pickle.dumps(Scale.__call__.__get__(scale)))
    assert method(tf.ones([1])).numpy().tolist() == [2.0]


def test_copies():
    f = tf.function(doubled)
    for g in (copy.copy(f), copy.deepcopy(f)):
        assert g is not f and g.python_function is doubled and g(tf.ones([2])).numpy().tolist() == [2.0, 2.0]


def test_a_copy_of_a_module_has_its_own_variables():
    a = Scale()
    a(tf.ones([1]))
    b = copy.deepcopy(a)
    b.k.assign(5.0)
    assert a(tf.ones([1])).numpy().tolist() == [2.0] and b(tf.ones([1])).numpy().tolist() == [5.0]


def test_a_lambda_cannot_be_pickled():
    with pytest.raises((pickle.PicklingError, AttributeError), match="pickle"):
        pickle.dumps(tf.function(lambda x: x))


def test_a_signature_of_a_dataset():
    @tf.function(input_signature=[tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))])
    def total(numbers):
        out = tf.constant(0, tf.int64)
        for x in numbers:
            out += x
        return out

    assert int(total(tf.data.Dataset.range(3))) == 3
    assert int(total(tf.data.Dataset.range(5))) == 10
    concrete = total.get_concrete_function()
    assert int(concrete(tf.data.Dataset.range(4))) == 6


@differs_on_tensorflow("a dataset of other elements is taken for one of the signature's")
def test_a_signature_of_a_dataset_is_checked():
    f = tf.function(lambda d: 1, input_signature=[tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))])
    with pytest.raises(TypeError):
        f(tf.data.Dataset.from_tensors(1.0))


def test_a_signature_of_an_iterator():
    @tf.function(input_signature=[tf.data.IteratorSpec(tf.TensorSpec([], tf.int64))])
    def following(iterator):
        return next(iterator)

    iterator = iter(tf.data.Dataset.range(5))
    assert [int(following(iterator)) for _ in range(3)] == [0, 1, 2]


class Kind(tf.types.experimental.TraceType):
    """A trace for a number is used for larger ones too."""

    def __init__(self, number):
        self.number = number

    def is_subtype_of(self, other):
        return isinstance(other, Kind) and self.number >= other.number

    def most_specific_common_supertype(self, others):
        return None

    def placeholder_value(self, placeholder_context=None):
        return Numbered(self.number)

    def cast(self, value, context):
        return value

    def to_tensors(self, value):
        return []

    def flatten(self):
        return []

    def __eq__(self, other):
        return isinstance(other, Kind) and self.number == other.number

    def __hash__(self):
        return hash(self.number)


class Numbered(tf.types.experimental.SupportsTracingProtocol):
    def __init__(self, number):
        self.number = number

    def __tf_tracing_type__(self, context):
        return Kind(self.number)


def test_tracing_types_of_objects():
    traced = []

    @tf.function
    def f(x, y):
        traced.append(x.number)
        return y * x.number

    one = tf.constant(1)
    assert [int(f(Numbered(n), one)) for n in (3, 3, 5, 1, 2, 3)] == [3, 3, 3, 1, 1, 3]
    assert traced == [3, 1]
    assert f.experimental_get_tracing_count() == 2


def test_counts_of_traces_inside_others():
    @tf.function
    def inner(x, k=1):
        return x * k

    @tf.function
    def outer(x):
        return inner(x) + inner(x) + inner(x, 2)

    outer(tf.constant(1.0))
    assert inner.experimental_get_tracing_count() == 2
    inner(tf.constant(2.0))
    assert inner.experimental_get_tracing_count() == 2
    inner(tf.constant([2.0]))
    assert inner.experimental_get_tracing_count() == 3


def test_captures_of_a_graph():
    v, k = tf.Variable(1.0), tf.constant(2.0)
    graph = tf.function(lambda x: x * v + k).get_concrete_function(tf.constant(1.0)).graph
    assert len(list(graph.captures)) == len(graph.external_captures) == len(graph.internal_captures) == 2
