"""`inspect.signature`, `help` and `dir` of everything public."""

import inspect
import pydoc
import re
import subprocess
import sys
import types

import pytest

import gradtape as tf

# Keras' names are not ours; tf.compat.v1 has the same names and a few more.
_NOT_OURS = ("keras", "losses", "metrics", "compat")
# These raise an error, whatever the arguments.
_NOTHING = (
    "decode_proto",
    "encode_proto",
    "write_graph",
    "generate_bounding_box_proposals",
    "create_local_cluster",
)
_ANYTHING = {"(*args, **kwargs)", "(*args: 'Any', **kwargs: 'Any') -> 'Any'"}


def public(space="tf", module=tf, seen=None):
    """Every public name with its value; each namespace once."""
    seen = set() if seen is None else seen
    for name in dir(module):
        if name[0] == "_" or (module is tf and name in _NOT_OURS):
            continue
        value = getattr(module, name)
        if not isinstance(value, types.ModuleType):
            yield f"{space}.{name}", value
        elif id(value) not in seen:
            seen.add(id(value))
            yield from public(f"{space}.{name}", value, seen)


@pytest.fixture(scope="module")
def names():
    return dict(public())


def test_every_callable_has_a_signature(names):
    callables = {n: v for n, v in names.items() if callable(v) and n.rpartition(".")[2] not in _NOTHING}
    assert len(callables) > 1500
    bad = []
    for name, value in callables.items():
        try:
            if str(inspect.signature(value)) in _ANYTHING:
                bad.append(name)
        except (TypeError, ValueError):
            bad.append(name)
    assert bad == []


def test_every_callable_has_help(names):
    for name, value in names.items():
        if callable(value):
            assert inspect.getdoc(value), name


def _in_one_line(text):
    """Since 3.13 pydoc writes a long signature in several lines, one for each parameter."""
    return re.sub(r"[\s|]+", " ", text).replace("( ", "(")


def test_help_shows_the_signature_and_the_public_name():
    for value, words in (
        (tf.reduce_sum, "reduce_sum(input_tensor, axis=None, keepdims=False, name=None)"),
        (tf.range, "range(start, limit=None, delta=1, dtype=None, name='range')"),
        (tf.Variable, "Variable(initial_value: 'Any' = None, trainable: 'bool | None' = None"),
        (tf.optimizers.SGD, "nesterov: 'bool' = False, *, weight_decay: 'float | None' = None"),
    ):
        assert _in_one_line(words) in _in_one_line(pydoc.plain(pydoc.render_doc(value)))
    assert "multiply(x, y, name=None)" in pydoc.plain(pydoc.render_doc(tf.math))


def test_dir_shows_nothing_that_a_file_imports(names):
    for name, value in names.items():
        home = getattr(value, "__module__", None) or "gradtape"
        assert home.partition(".")[0] in (
            "gradtape",
            "gradtape_imports",
            "builtins",
            "numpy",
            "enum",
            "types",
        ), name
    spaces = {name.rpartition(".")[0] for name in names}
    assert "tf.random" in spaces and not {"os", "threading", "annotations"} & set(
        dir(tf.random) + dir(tf.config.experimental)
    )
    code = "import gradtape.random as r, gradtape.io.gfile as g; print({'os', 'threading', 'np'} & {*dir(r), *dir(g)})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


CLOSE = {
    "redce_sum": "tf.reduce_sum", "sum": "tf.reduce_sum", "arange": "tf.range", "nn.soft_max": "tf.nn.softmax",
    "math.squre": "tf.math.square", "linalg.inverse": "tf.linalg.inv", "data.DataSet": "tf.data.Dataset",
    "optimizers.adam": "tf.optimizers.Adam", "random.randn": "tf.random.normal", "io.read_fil": "tf.io.read_file",
    "image.resise": "tf.image.resize", "strings.spilt": "tf.strings.split", "train.CheckPoint": "tf.train.Checkpoint",
    "config.list_physical_device": "tf.config.list_physical_devices", "signal.sftt": "tf.signal.stft",
    "debugging.asert_equal": "tf.debugging.assert_equal", "sparse.to_dens": "tf.sparse.to_dense",
    "ragged.constnt": "tf.ragged.constant", "nest.flaten": "tf.nest.flatten", "autodiff.hesian": "tf.autodiff.hessian",
    "experimental.dispatch_for_ap": "tf.experimental.dispatch_for_api",
    "data.experimental.snapsot": "tf.data.experimental.snapshot",
}  # fmt: skip


@pytest.mark.parametrize(("name", "meant"), CLOSE.items())
def test_close_names(name, meant):
    *spaces, last = name.split(".")
    module = tf
    for space in spaces:
        module = getattr(module, space)
    with pytest.raises(AttributeError) as caught:
        getattr(module, last)
    assert f"Did you mean {meant}" in str(caught.value)
    assert type(caught.value).__name__ == "AttributeError"


def test_names_that_are_like_nothing_get_no_advice():
    with pytest.raises(AttributeError, match="no attribute 'qqqqqq'$"):
        tf.qqqqqq  # noqa: B018
    assert not hasattr(tf.math, "qqqqqq")


# ---- tf.compat.v1 ---------------------------------------------------------------------------------

V1 = {"logging": "info", "losses": "huber_loss", "sparse": "merge", "strings": "substr", "train": "AdamOptimizer",
      "nn": "softmax", "data": "make_one_shot_iterator"}  # fmt: skip


@pytest.mark.parametrize("space", V1)
def test_namespaces_of_version_1_show_their_names_and_those_of_version_2(space):
    shown = dir(getattr(tf.compat.v1, space))
    assert V1[space] in shown
    beside = getattr(tf, space, None) if space != "losses" else None
    assert {n for n in dir(beside) if n[0] != "_"} <= {*shown} if beside else True
    assert not {"Any", "Callable", "annotations", "np", "ops", "dtypes", "pieces", "functools"} & {*shown}
    for name in shown:
        value = getattr(getattr(tf.compat.v1, space), name)
        assert not isinstance(value, types.ModuleType) or value.__name__.startswith("gradtape."), name
    assert not [n for n in dir(tf.compat.v1) if n.startswith("v1_")]
