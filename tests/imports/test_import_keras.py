"""`import keras` together with gradtape: before or after it, for any backend. Each in a new process."""

import pytest

pytest.importorskip("keras")

START = "import gradtape_imports.start as s; s.start()\n"  # what gradtape.pth says
SAY = "\nprint(keras.backend.backend(), keras.config.backend(), type(keras.ops.ones([1])).__module__)"
ASKED = "import os; os.environ['KERAS_BACKEND'] = {!r}\n"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (START + "import keras", "gradtape"),
        (START + "import keras, gradtape", "gradtape"),
        ("import gradtape, keras", "gradtape"),
        (ASKED.format("gradtape") + START + "import keras", "gradtape"),
        (START + ASKED.format("gradtape") + "import keras", "gradtape"),
        (ASKED.format("tensorflow") + "import gradtape, keras", "tensorflow"),
        ("import gradtape; gradtape.install_as_tensorflow()\nimport keras", "tensorflow"),
        ("import gradtape; gradtape.install_as_tensorflow()\n" + ASKED.format("tensorflow") + "import keras", "tensorflow"),
        ("import gradtape; gradtape.install_as_tensorflow()\n" + ASKED.format("gradtape") + "import keras", "gradtape"),
        (ASKED.format("tensorflow") + "from gradtape import keras", "tensorflow"),
    ],
)  # fmt: skip
def test_keras_is_ours(python, code, name, tmp_path):
    assert python(code=code + SAY, KERAS_HOME=str(tmp_path)) == f"{name} {name} gradtape"


def test_another_backend_stays(python, tmp_path):
    pytest.importorskip("jax", reason="Keras' NumPy backend imports JAX")
    said = python(
        code=START + ASKED.format("numpy") + "import keras, gradtape\nprint(keras.backend.backend())"
    )
    assert said == "numpy"
    (tmp_path / "keras.json").write_text('{"backend": "numpy"}')
    said = python(
        code=START + "import keras, gradtape\nprint(keras.backend.backend())", KERAS_HOME=str(tmp_path)
    )
    assert said == "numpy"


def test_the_program_finds_the_environment_as_it_left_it(python, tmp_path):
    code = "import gradtape, keras, os\nprint(os.environ.get('KERAS_BACKEND'), keras.backend.backend())"
    assert python(code=code, KERAS_HOME=str(tmp_path)) == "None gradtape"
    assert python(code=ASKED.format("tensorflow") + code, KERAS_HOME=str(tmp_path)) == "tensorflow tensorflow"


@pytest.mark.parametrize("asked", [None, "tensorflow"])
def test_an_import_that_fails_leaves_the_environment_as_it_was(python, asked, tmp_path):
    """Keras that is not installed, or fails before or after it has chosen a backend."""
    package = tmp_path / "keras" / "src" / "backend"
    begin = (
        (ASKED.format(asked) if asked else "")
        + START
        + f"import os, sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    )
    fail = "try:\n    import keras\nexcept {} as e:\n    print(os.environ.get('KERAS_BACKEND'), 'gradtape' in str(e))"
    nowhere = "sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
    assert python(code=begin + nowhere + fail.format("ModuleNotFoundError")) == f"{asked} False"
    package.mkdir(parents=True)
    for place in (package, package.parent, package.parent.parent):
        (place / "__init__.py").write_text("")
    seen = "import os; raise ValueError(os.environ['KERAS_BACKEND'])"
    (package.parent.parent / "__init__.py").write_text(seen)
    assert python(code=begin + fail.format("ValueError")) == f"{asked} True"
    (package / "config.py").write_text("import os; _BACKEND = os.environ['KERAS_BACKEND']")
    (package.parent / "version.py").write_text("__version__ = '3.9.2'")
    (package.parent.parent / "__init__.py").write_text("import keras.src.backend.config")
    assert python(code=begin + fail.format("ImportError")) == f"{asked} True"


def test_a_keras_that_is_too_old(python, tmp_path):
    code = (
        "import gradtape, sys, types\nfrom gradtape_imports import keras_hook as h\n"
        "sys.modules['keras.src.version'] = types.SimpleNamespace(__version__='3.9.2')\n"
        "try:\n    h._check_version()\nexcept ImportError as e:\n    print(e)"
    )
    assert "Keras 3.9.2 cannot run on gradtape" in python(code=code)


def test_preprocessing_layers_in_functions_and_datasets(python, tmp_path):
    code = (
        "import gradtape; gradtape.install_as_tensorflow()\n"
        "import tensorflow as tf\nfrom tensorflow.keras import layers\n"
        "x = tf.random.uniform([4, 8, 8, 3])\n"
        "for layer in (layers.Rescaling(0.5), layers.Resizing(4, 4), layers.RandomFlip(), layers.RandomRotation(0.1)):\n"
        "    a = tf.function(layer)(x)\n"
        "    b = next(iter(tf.data.Dataset.from_tensor_slices(x).batch(2).map(layer)))\n"
        "    print(a.shape[0], b.shape[0], isinstance(b, gradtape.Tensor))"
    )
    assert python(code=code, KERAS_HOME=str(tmp_path)).splitlines() == ["4 2 True"] * 4


@pytest.mark.parametrize("line", ["import gradtape.keras.layers", "from gradtape.keras.layers import Dense"])
def test_parts_of_keras_are_modules_of_gradtape(python, line, tmp_path):
    code = f"{line}\nimport gradtape as tf\nprint(tf.keras.layers.Dense.__name__)"
    assert python(code=code, KERAS_HOME=str(tmp_path)) == "Dense"
