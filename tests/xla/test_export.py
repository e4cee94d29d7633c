"""Functions as StableHLO: what is written runs without gradtape, at all sizes, and gives native results."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gradtape as tf

pytest.importorskip("jax", reason="export is written by JAX, which is not installed")
pytest.importorskip("flatbuffers", reason="JAX writes files with flatbuffers, which is not installed")

SPEC = tf.TensorSpec


def _data(*shape, dtype=np.float32):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


def _exported(function, tmp_path, *specs, **options):
    concrete = function.get_concrete_function(*specs)
    concrete.export(tmp_path / "f", **{"platforms": ["cpu"], **options})
    return tf.export.load(tmp_path / "f")


def _close(got, expected, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(got), expected.numpy(), rtol=tolerance, atol=tolerance)


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(_data(4, 3), name="w")
        self.b = tf.Variable(_data(3), name="b")

    @tf.function(input_signature=[SPEC([None, 4], name="x")])
    def __call__(self, x):
        return {"probabilities": tf.nn.softmax(x @ self.w + self.b), "mean": tf.reduce_mean(x, 0)}

    @tf.function
    def train(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ self.w + self.b - y) ** 2)
        for v, g in zip((self.w, self.b), tape.gradient(loss, (self.w, self.b)), strict=True):
            v.assign_sub(0.1 * g)
        return loss


class Plain(tf.Module):
    @tf.function
    def f(self, x):
        return x


ALONE = """
    import importlib.util, json, sys
    class Nobody:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("gradtape", "keras", "keras_gradtape"):
                raise ImportError(name)
    sys.meta_path.insert(0, Nobody())
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    from load import load
    f = load(sys.argv[1])
    for n in (1, 2, 7):
        out = f(np.arange(4 * n, dtype=np.float32).reshape(n, 4) / 10)
        print(json.dumps([np.asarray(out["probabilities"]).tolist(), np.asarray(out["mean"]).tolist()]))
    assert "gradtape" not in sys.modules
"""


def test_a_process_without_gradtape_runs_it_at_all_sizes(tmp_path):
    net = Net()
    net.__call__.get_concrete_function().export(tmp_path / "net")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ALONE), str(tmp_path / "net")],
        capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env={"PATH": os.environ.get("PATH", ""), "JAX_PLATFORMS": "cpu", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for n, line in zip((1, 2, 7), done.stdout.splitlines(), strict=True):
        expected = net(tf.constant(np.arange(4 * n, dtype=np.float32).reshape(n, 4) / 10))
        probabilities, mean = json.loads(line)
        np.testing.assert_allclose(probabilities, expected["probabilities"].numpy(), rtol=1e-5)
        np.testing.assert_allclose(mean, expected["mean"].numpy(), rtol=1e-5)


def test_one_program_is_for_three_platforms_and_names_its_sizes(tmp_path):
    Net().__call__.get_concrete_function().export(tmp_path / "net")
    loaded = tf.export.load(tmp_path / "net")
    assert loaded.exported.platforms == ("cpu", "cuda", "tpu")
    assert loaded.description["inputs"] == [{"name": "x", "shape": ["x_0", 4], "dtype": "float32"}]
    assert [str(s) for s in loaded.exported.in_avals[0].shape] == ["x_0", "4"]
    assert sorted(os.listdir(tmp_path / "net")) == ["description.json", "function.bin", "load.py"]


def test_a_training_step_has_its_variables_as_inputs_and_results(tmp_path):
    net = Net()
    step = net.train.get_concrete_function(SPEC([None, 4]), SPEC([None, 3]))
    with pytest.raises(ValueError, match=r"assigns the variables \['w:0', 'b:0'\].*variables=\"inputs\""):
        step.export(tmp_path / "frozen", platforms=["cpu"])
    step.export(tmp_path / "step", platforms=["cpu"], variables="inputs")
    loaded = tf.export.load(tmp_path / "step")
    assert list(loaded.variables) == ["w", "b"]
    x, y = _data(6, 4), _data(6, 3)
    for _ in range(4):
        _close(loaded(x, y), net.train(tf.constant(x), tf.constant(y)))
    _close(loaded.variables["w"], net.w)
    _close(loaded.variables["b"], net.b)
    with pytest.raises(ValueError, match="batch|size|dimension"):
        loaded(x, y[:2])  # both have one name: `batch`


def test_sizes_inside_the_graph_are_functions_of_those_of_the_arguments(tmp_path):
    @tf.function
    def f(x):
        b, t = tf.shape(x)[0], tf.shape(x)[1]
        flat = tf.reshape(x, [b * t, 4])
        position = tf.cast(tf.range(t), tf.float32)[:, None]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_mean(x**2) + tf.math.reduce_variance(x)
        return (
            flat, x * position, tape.gradient(y, x), tf.concat([x, x[:, 1:]], 1), tf.transpose(x, [1, 0, 2]),
            tf.cast(b * t, tf.float32) / tf.sqrt(tf.cast(t, tf.float32)), tf.tile(x, [2, 1, 1]), x[:, -1],
        )  # fmt: skip

    loaded = _exported(f, tmp_path, SPEC([None, None, 4]))
    for shape in ((3, 5, 4), (16, 7, 4), (1, 2, 4)):
        x = _data(*shape)
        for got, expected in zip(loaded(x), f(tf.constant(x)), strict=True):
            _close(got, expected)


def test_sizes_are_sums_of_others(tmp_path):
    @tf.function
    def f(x, y):
        both = tf.concat([x, y, y], 0)
        return (
            tf.reduce_mean(both, 0),
            both[: tf.shape(both)[0] // 2 + 1],
            tf.cast(tf.shape(x)[0] + tf.size(y), tf.float32),
        )

    loaded = _exported(f, tmp_path, SPEC([None, 3]), SPEC([None, 3]))
    assert [i["shape"] for i in loaded.description["inputs"]] == [["x_0", 3], ["y_0", 3]]
    for n, m in ((1, 1), (4, 9), (40, 3)):
        x, y = _data(n, 3), _data(m, 3)
        for got, expected in zip(loaded(x, y), f(tf.constant(x), tf.constant(y)), strict=True):
            _close(got, expected)


def test_a_step_of_an_optimizer_goes_on_elsewhere(tmp_path):
    w, optimizer = tf.Variable(_data(5, 3), name="w"), tf.optimizers.Adam(0.1)

    @tf.function
    def step(x, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x @ w))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    loaded = _exported(step, tmp_path, SPEC([None, 5]), SPEC([None], tf.int32), variables="inputs")
    assert len(loaded.variables) > 3  # the moments, the number of steps
    x, labels = _data(8, 5), np.arange(8) % 3
    for _ in range(3):
        _close(loaded(x, labels), step(tf.constant(x), tf.constant(labels, tf.int32)))
    _close(loaded.variables["w"], w)


def test_made_up_values_are_ones_that_native_code_takes(tmp_path):
    f = tf.function(lambda a: tf.linalg.cholesky(a))  # defined for positive definite matrices only
    loaded = _exported(f, tmp_path, SPEC([None, 3, 3]), platforms=["cpu", "cuda", "tpu"])
    a = _data(2, 3, 3)
    a = a @ a.swapaxes(1, 2) + np.eye(3, dtype=np.float32)
    _close(loaded(a), f(tf.constant(a)))


def test_a_mean_is_as_exact_as_natively(tmp_path):
    mean = tf.function(lambda x: tf.reduce_mean(x, 0))
    loaded = _exported(mean, tmp_path, SPEC([None, 2]))
    for n in (2, 3, 50, 1000):
        x = np.full([n, 2], [1.0, 3.0], np.float32)
        np.testing.assert_allclose(np.asarray(loaded(x)), mean(tf.constant(x)).numpy(), rtol=1.2e-7)


def test_masks_and_tables(tmp_path):
    table = tf.Variable(_data(40, 4))

    @tf.function
    def f(x):
        n = tf.shape(x)[0]
        causal = tf.linalg.band_part(tf.ones([n, n]), -1, 0)
        scores = tf.where(causal > 0, x @ tf.transpose(x), -1e9)
        return tf.nn.softmax(scores) @ x + table[:n] + tf.eye(n) @ x + tf.linspace(0.0, 1.0, n)[:, None]

    loaded = _exported(f, tmp_path, SPEC([None, 4]))
    assert loaded.description["most_sizes"] == {"x_0": 40}
    for n in (2, 5, 40):
        _close(loaded(_data(n, 4)), f(tf.constant(_data(n, 4))))


def test_constants_that_grow_do_not_fill_the_memory(tmp_path):
    @tf.function
    def f(x):
        n = tf.shape(x)[0]
        return tf.where(tf.eye(n) > 0, 0.0, x[:, None] - x)

    loaded = _exported(f, tmp_path, SPEC([None]))
    assert 1000 < loaded.description["most_sizes"]["x_0"] < 20_000
    _close(loaded(_data(30)), f(tf.constant(_data(30))))


def test_control_flow_at_all_sizes(tmp_path):
    @tf.function
    def f(x, n):
        for _ in tf.range(n):
            x = x * 0.5 + 1.0
        return tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: -x)

    loaded = _exported(f, tmp_path, SPEC([None]), SPEC([], tf.int32))
    for n in (1, 4, 30):
        x = _data(n) - 3
        _close(loaded(x, n), f(tf.constant(x), tf.constant(n)))


def test_functions_that_differ_between_sizes_are_not_exported(tmp_path):
    @tf.function
    def dataish(x):
        return tf.boolean_mask(x, x > 0)

    @tf.function
    def parity(x):
        n = tf.shape(x)[0]
        return x * tf.cast(tf.math.floormod(n * n, 7), tf.float32)

    for function in (dataish, parity):
        with pytest.raises(tf.errors.UnimplementedError, match="export: "):
            function.get_concrete_function(SPEC([None])).export(tmp_path / "g", platforms=["cpu"])
        assert not os.path.exists(tmp_path / "g")


def test_a_program_is_for_sizes_from_the_least_that_native_code_takes(tmp_path):
    @tf.function
    def f(x):
        return tf.nn.conv1d(x, tf.ones([3, 1, 2]), 1, "VALID")

    loaded = _exported(f, tmp_path, SPEC([2, None, 1]))
    assert loaded.description["least_sizes"] == {"x_1": 2}
    _close(loaded(_data(2, 3, 1)), f(tf.constant(_data(2, 3, 1))))
    assert loaded(_data(2, 2, 1)).shape == (2, 0, 2)
    with pytest.raises(ValueError, match="x_1"):
        loaded(_data(2, 1, 1))


def test_a_program_is_for_sizes_up_to_where_the_function_changes(tmp_path, caplog):
    @tf.function
    def f(x):
        return x[:, :50] * 2.0

    loaded = _exported(f, tmp_path, SPEC([None, None]))
    assert loaded.description["most_sizes"] == {"x_0": 65_536, "x_1": 50}
    assert "x_1 is large: the program is for sizes up to 50" in caplog.text
    _close(loaded(_data(2, 50)), f(tf.constant(_data(2, 50))))
    with pytest.raises(ValueError, match="x_1 is from 1 to 50"):
        loaded(_data(2, 70))
    fixed = _exported(f, tmp_path, SPEC([None, None]), overwrite=True, shapes={"x": "n, 70"})
    assert fixed(_data(2, 70)).shape == (2, 50)


def test_results_keep_their_structure(tmp_path):
    table = tf.Variable(_data(5, 2), name="table")

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, x["ids"]) ** 2)
        return {"slices": tape.gradient(y, table), "list": [y, (y * 2, None)], "scaled": x["scale"] * y}

    loaded = _exported(f, tmp_path, {"ids": SPEC([None], tf.int64), "scale": SPEC([])})
    ids = np.array([0, 3, 3])
    got, expected = (
        loaded({"ids": ids, "scale": 2.0}),
        f({"ids": tf.constant(ids), "scale": tf.constant(2.0)}),
    )
    assert isinstance(got["list"], list) and isinstance(got["list"][1], tuple) and got["list"][1][1] is None
    _close(got["slices"]["values"], expected["slices"].values)
    _close(got["slices"]["indices"], expected["slices"].indices)
    assert got["slices"]["dense_shape"] == [5, 2]
    _close(got["scaled"], expected["scaled"])
    with pytest.raises(ValueError, match="out of range"):
        loaded({"ids": np.array([0, 7]), "scale": 1.0})


def test_random_numbers_come_from_a_seed_of_the_call_or_of_the_export(tmp_path):
    @tf.function
    def f(x):
        return tf.nn.dropout(x, 0.5)

    x = np.ones([64], np.float32)
    loaded = _exported(f, tmp_path, SPEC([None]))
    a, b, c = (np.asarray(loaded(x, seed=s)) for s in (1, 1, 2))
    assert (a == b).all() and (a != c).any() and set(np.unique(a)) == {0.0, 2.0}
    assert any((np.asarray(loaded(x)) != a).any() for _ in range(3))
    fixed = _exported(f, tmp_path, SPEC([None]), seed=1, overwrite=True)
    assert (np.asarray(fixed(x)) == a).all()


def test_types_other_than_float32(tmp_path):
    @tf.function
    def f(x, y, z):
        return tf.reduce_sum(x, 0), y + 2**40, tf.cast(z, tf.bfloat16) * tf.constant(0.5, tf.bfloat16)

    loaded = _exported(f, tmp_path, SPEC([None], tf.float64), SPEC([], tf.int64), SPEC([2], tf.float16))
    x, z = _data(5, dtype=np.float64), _data(2, dtype=np.float16)
    got, expected = loaded(x, z=z, y=5), f(tf.constant(x), tf.constant(5, tf.int64), tf.constant(z))
    _close(got[0], expected[0], 1e-12)
    assert int(got[1]) == 2**40 + 5 and got[2].dtype.name == "bfloat16"
    with pytest.raises(TypeError, match=r"takes \['x', 'y', 'z'\]"):
        loaded(x, 5)


def test_windows_and_means_over_images_of_any_size(tmp_path):
    kernel = tf.constant(_data(3, 3, 2, 4))

    @tf.function
    def f(x):
        y = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, kernel, 2, "VALID")), 2, 2, "VALID")
        return tf.reduce_mean(y, [1, 2])

    loaded = _exported(f, tmp_path, SPEC([None, None, None, 2]))
    for shape in ((3, 19, 24, 2), (1, 40, 33, 2)):
        _close(loaded(_data(*shape)), f(tf.constant(_data(*shape))), 1e-4)


def test_saved_models_have_programs_beside_them(tmp_path):
    net = Net()
    tf.saved_model.save(net, tmp_path / "net", stablehlo={"platforms": ["cpu"]})
    assert os.listdir(tmp_path / "net" / "stablehlo") == ["__call__"]
    x = _data(3, 4)
    loaded = tf.export.load(tmp_path / "net" / "stablehlo" / "__call__")
    _close(loaded(x)["probabilities"], net(tf.constant(x))["probabilities"])
    assert isinstance(tf.saved_model.load(tmp_path / "net"), Net)  # as without exported programs

    signatures = {"train": net.train.get_concrete_function(SPEC([6, 4]), SPEC([6, 3]))}
    options = {"platforms": ["cpu"], "variables": "inputs"}
    tf.saved_model.save(net, tmp_path / "net", signatures, stablehlo=options)  # overwrites the old one
    assert os.listdir(tmp_path / "net" / "stablehlo") == ["train"]


def test_a_module_without_signatures_or_traces_has_no_programs(tmp_path):
    with pytest.raises(ValueError, match="no signatures, and no method"):
        tf.saved_model.save(Plain(), tmp_path / "a", stablehlo=True)
    plain = Plain()
    with pytest.raises(ValueError, match=r"signatures\['f'\]. Only `tf.functions` with an input signature"):
        tf.saved_model.save(plain, tmp_path / "a", {"f": plain.f}, stablehlo=True)
    assert not (tmp_path / "a").exists()


# ---- bad input ------------------------------------------------------------------------------------


def test_errors_name_ops_that_need_python_with_their_line(tmp_path):
    @tf.function
    def f(x):
        tf.print("x is", x)
        return tf.numpy_function(np.sin, [x], tf.TensorSpec([3]))

    with pytest.raises(tf.errors.UnimplementedError) as e:
        f.get_concrete_function(SPEC([3])).export(tmp_path / "f")
    assert "test_export.py" in str(e.value) and "print" in str(e.value) and "no gradtape" in str(e.value)


def test_wrong_arguments(tmp_path):
    concrete = Net().__call__.get_concrete_function()
    with pytest.raises(ValueError, match="platforms must be a list of cpu, cuda, tpu, rocm; got"):
        concrete.export(tmp_path / "a", platforms=["gpu"])
    with pytest.raises(ValueError, match='variables must be "frozen" or "inputs"'):
        concrete.export(tmp_path / "a", variables="none")
    with pytest.raises(ValueError, match="the signature says"):
        concrete.export(tmp_path / "a", shapes={"x": "batch, 5"})
    with pytest.raises(ValueError, match=r"shapes names \['y'\]; the arguments are \['x'\]"):
        concrete.export(tmp_path / "a", shapes={"y": "batch, 5"})
    with pytest.raises(ValueError, match="expected a number, a name"):
        concrete.export(tmp_path / "a", shapes={"x": "batch + 1, 4"})
    (tmp_path / "b").mkdir()
    with pytest.raises(tf.errors.AlreadyExistsError, match="exists already"):
        concrete.export(tmp_path / "b")
    with pytest.raises(tf.errors.NotFoundError, match="no exported function"):
        tf.export.load(tmp_path / "b")

    @tf.function
    def assigns(v, x):
        v.assign(x)

    with pytest.raises(tf.errors.UnimplementedError, match="takes variables as arguments"):
        assigns.get_concrete_function(tf.Variable([1.0, 2.0]), SPEC([2])).export(tmp_path / "a")
    assert os.listdir(tmp_path) == ["b"]


def test_damaged_files_are_refused(tmp_path):
    Net().__call__.get_concrete_function().export(tmp_path / "net", platforms=["cpu"])
    program = tmp_path / "net" / "function.bin"
    whole = program.read_bytes()
    for part in (b"", whole[: len(whole) // 2], whole[:100] + b"x" + whole[101:]):
        program.write_bytes(part)
        with pytest.raises(tf.errors.DataLossError, match="is not what description.json describes"):
            tf.export.load(tmp_path / "net")
    (tmp_path / "net" / "description.json").write_text("{}")
    with pytest.raises(tf.errors.DataLossError, match="damaged"):
        tf.export.load(tmp_path / "net")


def test_without_jax_the_extra_is_named(tmp_path, monkeypatch):
    from gradtape._src import engines

    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "gradtape\[xla\]"'):
        Net().__call__.get_concrete_function().export(tmp_path / "a")
    with pytest.raises(ImportError, match=r'pip install "gradtape\[xla\]"'):
        tf.export.load(tmp_path)
