"""`gradtape._src.state.module`: which variables and submodules a Module finds, and in which order."""

import copy
import pickle

import pytest

from gradtape._src.base.scopes import current_scope, name_scope
from gradtape._src.state.module import Module


class FakeVariable:
    """The attributes of a variable that Module uses; as a variable, it cannot be compared or hashed."""

    dtype = None
    trainable = True
    __hash__ = None

    def __init__(self, name, trainable=True):
        self.name, self.trainable = name, trainable

    def assign(self, value):
        """Never called."""

    def __eq__(self, other):
        raise AssertionError("a Module must not compare variables")


class FakeLayer:
    """A layer of another library, such as Keras."""

    def __init__(self, *variables):
        self._variables = list(variables)

    @property
    def variables(self):
        return self._variables

    @property
    def trainable_variables(self):
        return [v for v in self._variables if v.trainable]

    @property
    def non_trainable_variables(self):
        return [v for v in self._variables if not v.trainable]


def names(variables):
    assert type(variables) is tuple
    return [v.name for v in variables]


def tree():
    """A tree of modules; the expected results are those of TensorFlow 2.21."""
    m = Module(name="m")
    m.z = FakeVariable("z")
    m.a = [FakeVariable("l0"), {"k": FakeVariable("k")}]
    m.sub = Module(name="sub")
    m.sub.q = FakeVariable("q")
    m.sub.up = m
    m.m2 = Module(name="m2")
    m.m2.sub = m.sub
    m.m2.r = FakeVariable("r", trainable=False)
    return m


def test_own_variables_first_then_submodules():
    m = tree()
    assert names(m.variables) == ["l0", "k", "z", "r", "q"]
    assert names(m.trainable_variables) == ["l0", "k", "z", "q"]
    assert names(m.non_trainable_variables) == ["r"]
    assert names(m.submodules) == ["m2", "sub"]


def test_paths_list_every_way_to_a_leaf():
    paths = [
        ".".join(map(str, path))
        for path, _ in tree()._flatten(with_path=True, predicate=lambda leaf: isinstance(leaf, FakeVariable))
    ]
    assert paths == [
        "a.0",
        "a.1.k",
        "z",
        "m2.r",
        "m2.sub.q",
        "m2.sub.up.a.0",
        "m2.sub.up.a.1.k",
        "m2.sub.up.z",
        "sub.q",
        "sub.up.a.0",
        "sub.up.a.1.k",
        "sub.up.z",
    ]


def test_flatten_options():
    m = tree()
    found = m._flatten(recursive=False, predicate=lambda leaf: isinstance(leaf, FakeVariable))
    assert [v.name for v in found] == ["l0", "k", "z"]
    backwards = m._flatten(
        recursive=False,
        predicate=lambda leaf: isinstance(leaf, FakeVariable),
        attribute_traversal_key=lambda key: -ord(key[0]),
    )
    assert [v.name for v in backwards] == ["z", "l0", "k"]


def test_shared_variable_is_listed_once():
    m = Module()
    m.b = m.a = FakeVariable("shared")
    m.c = (m.a, {"x": m.a})
    assert names(m.variables) == ["shared"]


def test_foreign_layers_are_walked_into():
    m = Module()
    m.layers = [FakeLayer(FakeVariable("kernel"), FakeVariable("moving_mean", trainable=False))]
    m.own = FakeVariable("own")
    assert names(m.variables) == ["own", "kernel", "moving_mean"]
    assert names(m.trainable_variables) == ["own", "kernel"]
    assert names(m.non_trainable_variables) == ["moving_mean"]
    assert m.submodules == (m.layers[0],)


def test_foreign_layer_with_variables_method():
    class Old(FakeLayer):
        def variables(self):
            return self._variables

    m = Module()
    m.layer = Old(FakeVariable("w"))
    assert names(m.variables) == ["w"]


def test_classes_and_functions_in_attributes_are_nothing():
    m = Module()
    m.cls, m.function, m.none = FakeLayer, len, None
    assert m.variables == () and m.submodules == ()


def test_ignored_properties():
    class Careful(Module):
        _TF_MODULE_IGNORED_PROPERTIES = frozenset(["cache"])

    m = Careful()
    m.cache, m.v = FakeVariable("cache"), FakeVariable("v")
    assert names(m.variables) == ["v"]


def test_without_super_init():
    class Forgetful(Module):
        def __init__(self):
            self.v = FakeVariable("v")

    m = Forgetful()
    assert names(m.variables) == ["v"]
    assert m.name == "forgetful" and m.name_scope.name == "forgetful/"


@pytest.mark.parametrize(
    ("cls", "name"),
    [("MyModule", "my_module"), ("HTTPServer", "http_server"), ("HTTPServer2D", "http_server2_d")],
)
def test_default_name(cls, name):
    assert type(cls, (Module,), {})().name == name


def test_name():
    assert Module(name="SomeName").name == "SomeName"
    for bad in ("a b", "1a", "", "a/b", 3):
        with pytest.raises(ValueError, match="not a valid module name"):
            Module(name=bad)


def test_name_scope():
    with name_scope("outer"):
        m = Module(name="m")
    assert m.name_scope.name == "outer/m/"
    with name_scope("elsewhere"), m.name_scope as scope:
        assert scope == "outer/m/"


def test_with_name_scope():
    class Block(Module):
        @Module.with_name_scope
        def __call__(self, x):
            """Doc."""
            return current_scope() + x

    assert Block(name="b")("x") == "b/x"
    assert Block.__call__.__doc__ == "Doc."


def test_deepcopy_and_pickle():
    m = Module(name="m")
    m.inner = Module(name="inner")
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert twin.inner is not m.inner
        assert (twin.inner.name, twin.inner.name_scope.name) == ("inner", "inner/")


def test_error_names_the_attribute():
    m = Module()
    m.table = {"a": 1, 2: 3}
    with pytest.raises(ValueError, match="Error processing property 'table'"):
        _ = m.variables
