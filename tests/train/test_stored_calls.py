"""tf.saved_model of functions whose Python code is not stored: closures, lambdas; their graph is stored."""

import collections
import json
import subprocess
import sys

import numpy as np
import pytest

import gradtape as tf
from gradtape.io.framing import crc32c
from gradtape.train import safetensors

X = tf.constant([[1.0, 2.0], [3.0, -40.0], [5.0, 6.0]])
State = collections.namedtuple("State", ["hidden", "cell"])  # noqa: PYI024


def stored(tmp_path, module, **kwargs):
    tf.saved_model.save(module, tmp_path / "m", **kwargs)
    return tf.saved_model.load(tmp_path / "m")


def module_of(function, *specs, **attributes):
    """A module with an attribute that cannot be stored by name, and a function that is a closure."""
    module = tf.Module()
    module.f = tf.function(function, input_signature=list(specs))
    module.other = object()
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


def same(a, b):
    tf.nest.map_structure(near, a, b)


def near(x, y):
    np.testing.assert_allclose(x, y, rtol=1e-6)


@pytest.mark.parametrize("rows", [3, None])
def test_closures_over_variables_tensors_modules_and_functions(tmp_path, rows):
    class Inner(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")

        def __call__(self, x):
            return tf.nn.relu(x @ self.w)

    inner, bias, count = Inner(), tf.constant([1.0, 2.0]), tf.Variable(0, trainable=False)
    scaled = tf.function(lambda x, k=3.0: x * k)

    def f(x):
        count.assign_add(1)
        y = scaled(inner(x) + bias)
        return {
            "y": y,
            "rows": tf.shape(x)[0],
            "some": y[:, :1],
            "pair": State(tf.cast(y, tf.float64), [bias]),
        }

    module = module_of(f, tf.TensorSpec([rows, 2]), inner=inner, count=count, listed=[inner.w])
    loaded = stored(tmp_path, module)
    want, got = module.f(X), loaded.f(X)
    same(want, got)
    assert got["pair"].hidden.dtype is tf.float64 and int(loaded.count) == 1 and not hasattr(loaded, "other")
    assert loaded.listed[0] is loaded.inner.w and [v.name for v in loaded.inner.variables] == ["w:0"]
    with tf.GradientTape(persistent=True) as tape:
        targets = [tf.reduce_sum(m.f(X)["y"]) for m in (module, loaded)]
    same(tape.gradient(targets[0], inner.w), tape.gradient(targets[1], loaded.inner.w))
    loaded.inner.w.assign(tf.zeros([2, 2]))
    near(loaded.f(X)["y"], [[3.0, 6.0]] * 3)
    assert float(inner.w[0, 0]) == 1.0
    again = stored(tmp_path / "again", loaded)  # a loaded object can be stored again
    near(again.f(X)["y"], [[3.0, 6.0]] * 3)


@pytest.mark.parametrize("rows", [3, None])
def test_branches_loops_arrays_and_functions_of_functions(tmp_path, rows):
    w = tf.Variable(2.0)

    def f(x):
        y = x * w
        if tf.reduce_sum(y) > 0.0:
            y = y + 1.0
        else:
            y = y * tf.constant([10.0, 20.0])
        array = tf.TensorArray(tf.float32, size=3)
        for i in tf.range(3):
            array = array.write(i, tf.reduce_sum(y) * tf.cast(i, tf.float32))
            if i == 1:
                w.assign(w + 1.0)
        doubled = tf.map_fn(lambda row: row * w, y)
        return y, array.stack(), doubled, tf.random.stateless_normal([2], seed=[1, 2])

    module = module_of(f, tf.TensorSpec([rows, 2]), w=w)
    loaded = stored(tmp_path, module)
    for sign in (1.0, -1.0):
        same(module.f(sign * X), loaded.f(sign * X))
        assert float(w) == float(loaded.w)


def test_functions_without_a_signature_have_the_traces_that_were_made(tmp_path):
    module = module_of(lambda x: x, tf.TensorSpec([]))
    module.g = tf.function(lambda x, k=2: x * k)
    module.never = tf.function(lambda x: x)
    module.g(tf.ones([3]))
    module.g(tf.ones([2]), k=5)
    loaded = stored(tmp_path, module)
    near(loaded.g(tf.ones([3])), [2.0] * 3)
    near(loaded.g(tf.ones([2]), 5), [5.0] * 2)
    near(loaded.g(x=tf.ones([2]), k=5), [5.0] * 2)
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.g(tf.ones([4]))
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.g(tf.ones([3]), 5)
    assert not hasattr(loaded, "never")


def test_signatures_and_calls(tmp_path):
    class Called(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.act = tf.Variable(3.0), lambda x: x + 1.0

        @tf.function(input_signature=[tf.TensorSpec([None], name="x")])
        def __call__(self, x):
            return self.act(self.w * x)

    x = tf.constant([1.0, 2.0])
    loaded = stored(tmp_path, Called())
    near(loaded(x), [4.0, 7.0])
    near(loaded.signatures["serving_default"](x=x)["output_0"], [4.0, 7.0])
    w = tf.Variable(2.0)
    f = tf.function(lambda a, b: {"sum": a + w * b}).get_concrete_function(
        tf.TensorSpec([2]), tf.TensorSpec([2])
    )
    loaded = stored(tmp_path / "two", module_of(lambda x: x, tf.TensorSpec([])), signatures={"add": f})
    near(loaded.signatures["add"](a=x, b=x)["sum"], [3.0, 6.0])


def test_a_process_without_the_code_loads_it(tmp_path):
    w = tf.Variable([2.0, 3.0])
    tf.saved_model.save(module_of(lambda x: tf.exp(-x * w), tf.TensorSpec([None, 2]), w=w), tmp_path / "m")
    code = (
        "import gradtape as tf, sys; m = tf.saved_model.load(sys.argv[1]); m.w.assign_add([1.0, 1.0]);"
        "print(m.f(tf.constant([[0.0, 0.5]])).numpy().tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "m")], capture_output=True, text=True)
    near(json.loads(done.stdout), [[1.0, np.exp(-2.0)]])


def test_functions_that_cannot_be_stored(tmp_path):
    def with_tape(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.gradient(y, x)

    def with_python(x):
        return tf.numpy_function(np.sin, [x], tf.float32)

    for f in (with_tape, with_python):
        with pytest.raises(ValueError, match="saved_model.save: f is .*cannot be stored"):
            tf.saved_model.save(module_of(f, tf.TensorSpec([2])), tmp_path / "m")
    assert not tf.saved_model.contains_saved_model(tmp_path / "m")


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "gradtape.io.files:write_file",
        "gradtape._src.base.reading:os",
        "call:eval",
        "row:nothing",
        "io:x",
    ],
)
def test_a_file_names_no_other_functions(tmp_path, name):
    tf.saved_model.save(module_of(lambda x: tf.exp(x), tf.TensorSpec([2])), tmp_path)
    path = tmp_path / "saved_model.json"
    text = path.read_text()
    assert '"row:exp"' in text
    changed = text.replace('"row:exp"', json.dumps(name)).encode()
    path.write_bytes(changed)
    (found,) = (tmp_path / "variables").iterdir()
    archive = safetensors.Archive(str(found))
    safetensors.save(
        str(found), {k: archive.tensor(k) for k in archive}, {"description": f"{crc32c(changed):08x}"}
    )
    with pytest.raises(tf.errors.DataLossError, match="a function calls"):
        tf.saved_model.load(tmp_path)
