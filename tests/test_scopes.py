"""`gradtape._src.base.scopes`: name scopes, context managers that do nothing here, names of devices."""

import copy
import pickle
import threading
from contextlib import ExitStack

import pytest

from gradtape import config
from gradtape._src.base import scopes
from gradtape._src.base.scopes import current_scope, name_scope
from gradtape._src.engines import placement


@pytest.mark.parametrize(
    ("names", "prefixes"),
    [
        (["a"], ["a/"]),
        (["a", "b"], ["a/", "a/b/"]),
        (["a", "x/"], ["a/", "x/"]),
        (["a", ""], ["a/", ""]),
        (["a b"], ["a b/"]),
        (["a/b", "c"], ["a/b/", "a/b/c/"]),
    ],
)
def test_prefix(names, prefixes):
    with ExitStack() as stack:
        assert [stack.enter_context(name_scope(n)) for n in names] == prefixes
        assert current_scope() == prefixes[-1]
    assert current_scope() == ""


@pytest.mark.parametrize("name", [None, 3, b"a"])
def test_name_must_be_a_string(name):
    with pytest.raises(ValueError, match="must be a string"):
        name_scope(name)


def test_scope_can_be_entered_again():
    scope = name_scope("a")
    assert scope.name == "a"
    with scope, scope as inner:
        assert inner == "a/a/"
    with scope as again:
        assert again == "a/"


def test_scope_closes_after_an_error():
    with pytest.raises(KeyError), name_scope("a"):
        raise KeyError
    assert current_scope() == ""


def test_decorator():
    @name_scope("f")
    def prefix(x):
        """Its docstring."""
        return current_scope() + x

    assert prefix("y") == "f/y" and prefix.__doc__ == "Its docstring."
    assert current_scope() == ""


def test_threads_have_their_own():
    seen = []
    with name_scope("main"):
        thread = threading.Thread(target=lambda: seen.append(current_scope()))
        thread.start()
        thread.join()
    assert seen == [""]


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "/GPU:9",
        "CPU:0",
        "/cpu:0",
        "gpu",
        "/device:GPU:1",
        "/device:TPU:*",
        "/job:localhost/replica:0/task:0/device:CPU:0",
        config.list_physical_devices()[0],
        config.list_logical_devices()[0],
    ],
)
def test_device(name):
    with placement.device(name):
        pass


@pytest.mark.parametrize(
    ("name", "error"),
    [("foo", ValueError), ("/GPU:x", ValueError), (3, ValueError), (lambda op: op, RuntimeError)],
)
def test_device_refuses(name, error):
    with pytest.raises(error, match="device"), placement.device(name):
        pass


def test_control_dependencies():
    called = []
    with scopes.control_dependencies([1, None]):
        pass
    with scopes.control_dependencies(lambda: called.append(1)):
        pass
    with scopes.control_dependencies(None):
        pass
    assert called == [1]


def test_init_scope_keeps_the_name_scope():
    with name_scope("kept"), scopes.init_scope():
        assert current_scope() == "kept/"


def test_a_name_scope_can_be_copied():
    for scope in (
        copy.copy(name_scope("a")),
        copy.deepcopy(name_scope("a")),
        pickle.loads(pickle.dumps(name_scope("a"))),
    ):
        with scope as prefix, scope as twice:
            assert (scope.name, prefix, twice) == ("a", "a/", "a/a/")
    assert current_scope() == ""


def test_variable_creators():
    def rename(next_creator, **kwargs):
        return next_creator(**{**kwargs, "name": kwargs["name"] + "!"})

    def freeze(next_creator, **kwargs):
        return next_creator(**{**kwargs, "trainable": False, "name": kwargs["name"] + "?"})

    assert scopes.create_variable(dict, name="v") == {"name": "v"}
    with scopes.variable_creator_scope(rename), scopes.variable_creator_scope(freeze):
        made = scopes.create_variable(dict, name="v")
    assert made == {"name": "v?!", "trainable": False}
    assert scopes.create_variable(dict, name="v") == {"name": "v"}


def test_ops_that_do_nothing():
    assert scopes.group(1, [2], name="g") is None
    assert scopes.no_op() is None
