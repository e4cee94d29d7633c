"""`import tensorflow` means gradtape: the import hooks, the modules they provide, and errors. Each in a new process."""

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOOR = "import gradtape; gradtape.install_as_tensorflow()\n"


NAMESPACES = """
from tensorflow.config.experimental import set_memory_growth
from tensorflow.types.experimental import TensorLike
from tensorflow.random.experimental import Generator
from tensorflow.autograph.experimental import do_not_convert
from tensorflow.distribute.experimental import ParameterServerStrategy
from tensorflow.io.gfile import GFile
from tensorflow.linalg import LinearOperatorDiag
from tensorflow.compat.v1 import ConfigProto
from tensorflow.python.ops import math_ops, array_ops
from tensorflow.python.ops.numpy_ops import np_config
from tensorflow.compiler.tf2xla.python.xla import dynamic_update_slice
import numpy as np, tensorflow as tf
assert math_ops.reduce_sum is tf.reduce_sum and array_ops.gather is tf.gather
corner = dynamic_update_slice(tf.zeros([3, 3]), tf.ones([2, 2]), [2, 1])
np.testing.assert_array_equal(corner, np.pad(np.ones([2, 2]), ((1, 0), (1, 0))))
print("found")
"""


def test_namespaces_of_all_kinds(python):
    assert python(code=DOOR + NAMESPACES) == "found"


SAME = """
import gradtape, pickle
import tensorflow as tf
import tensorflow.experimental.numpy as tnp
import tensorflow.compat.v2 as v2
from tensorflow import errors, math, nn, linalg, random
from tensorflow.errors import InvalidArgumentError
from tensorflow.math import reduce_sum
from tensorflow.python.framework import ops
from tensorflow.python.framework.tensor_util import constant_value
assert tf is gradtape and tnp is gradtape.experimental.numpy and v2.constant is tf.constant
assert errors is gradtape.errors and math is gradtape.math and reduce_sum is tf.reduce_sum
assert ops.Tensor is tf.Tensor and constant_value is tf.get_static_value
try:
    tf.reshape(tf.ones([2]), [3])
except InvalidArgumentError:
    pass
assert isinstance(pickle.loads(pickle.dumps(tf.constant(1.0))), gradtape.Tensor)
assert gradtape.__name__ == gradtape.__spec__.name == "gradtape" and gradtape.math.__name__ == "gradtape.math"
print("same")
"""


def test_modules_are_the_same_objects_under_both_names(python):
    assert python(code=DOOR + SAME) == "same"


def test_the_environment_opens_the_door(python):
    start = "import gradtape_imports.start as s; s.start()\n"  # what gradtape.pth says
    assert python(code=start + SAME, GRADTAPE_AS_TENSORFLOW="1") == "same"
    assert "No module named 'tensorflow'" in python(
        code=start + "import tensorflow", status=1, GRADTAPE_AS_TENSORFLOW="0"
    )


def test_files_of_the_start_say_the_same():
    """`gradtape.start` is read by Python 3.15 and later, `gradtape.pth` by those before."""
    module, function = (ROOT / "gradtape.start").read_text().strip().split(":")
    assert (ROOT / "gradtape.pth").read_text().strip() == f"import {module}; {module}.{function}()"


def test_start_imports_next_to_nothing(python):
    code = (
        "import os, sys; before = set(sys.modules); import gradtape_imports.start as s; s.start();"
        "print(*sorted(set(sys.modules) - before))"
    )
    assert python("-S", code=code).split() == ["gradtape_imports", "gradtape_imports.start"]


def test_importing_tensorflow_imports_gradtape_alone(python):
    code = (
        "import gradtape, gradtape_imports.tensorflow_finder, gradtape_imports.metadata, sys\n"
        "before = set(sys.modules); gradtape.install_as_tensorflow(); import tensorflow\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    assert python(code=code) == "tensorflow"


def test_libraries_that_ask_what_is_imported_find_it(python):
    """einops does: `import tensorflow` is not needed."""
    assert python(code=DOOR + "import sys; print(sys.modules['tensorflow'] is gradtape)") == "True"


def test_metadata_knows_the_version(python):
    code = DOOR + (
        "import importlib.metadata as m, importlib.util as u, tensorflow as tf;"
        "print(m.version('tensorflow'), tf.__version__.split('+')[0], u.find_spec('tensorflow') is not None)"
    )
    assert python(code=code) == "2.21.0 2.21.0 True"


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("tensorflow.python.grappler", "internal to TensorFlow"),
        ("tensorflow.estimator", "taken out of TensorFlow itself"),
        ("tensorflow._src", "no such module"),
        ("tensorflow.nonsense", "no such module"),
        ("tensorflow.math.reduce_sum", "no such module"),
    ],
)
def test_a_missing_module(python, module, words):
    said = python(code=DOOR + f"import {module}", status=1).splitlines()[-1]
    assert said.startswith(f"ModuleNotFoundError: No module named {module!r}") and words in said


def test_a_name_that_an_internal_module_lacks_is_an_import_error(python):
    code = DOOR + "from tensorflow.python.framework.ops import add_to_collections_of_nothing"
    assert "cannot import name 'add_to_collections_of_nothing'" in python(code=code, status=1)


def test_twice_and_undone(python):
    code = DOOR + (
        "gradtape.install_as_tensorflow()\nimport tensorflow.python.framework.ops, sys\n"
        "gradtape.uninstall_as_tensorflow(); gradtape.uninstall_as_tensorflow()\n"
        "assert not [m for m in sys.modules if m.split('.')[0] == 'tensorflow'] and not hasattr(gradtape, 'python')\n"
        "try:\n    import tensorflow\nexcept ModuleNotFoundError as e:\n    print(e)\n"
        "gradtape.install_as_tensorflow()\nimport tensorflow\nprint(tensorflow is gradtape)"
    )
    assert python(code=code).splitlines() == ["No module named 'tensorflow'", "True"]


def test_undone_while_in_use(python, tmp_path):
    (tmp_path / "package.py").write_text("import tensorflow as tf\n")
    code = DOOR + (
        f"import sys; sys.path.append({str(tmp_path)!r})\nimport package\n"
        "try:\n    gradtape.uninstall_as_tensorflow()\nexcept RuntimeError as e:\n    print(e)\n"
        "import tensorflow\n"
        "gradtape.uninstall_as_tensorflow(force=True)\nprint(package.tf is gradtape, 'tensorflow' in sys.modules)"
    )
    said = python(code=code).splitlines()
    assert "1 modules were imported" in said[0] and "package" in said[0] and said[1] == "True False"


def test_the_real_one_was_imported_already(python, tmp_path):
    (tmp_path / "tensorflow.py").write_text("")
    code = (
        f"import sys; sys.path.append({str(tmp_path)!r})\nimport tensorflow, gradtape\n"
        "try:\n    gradtape.install_as_tensorflow()\nexcept ImportError as e:\n    print(e)\n"
        "print(sys.modules['tensorflow'] is tensorflow, tensorflow is gradtape)"
    )
    said = python(code=code).splitlines()
    assert "TensorFlow itself was imported already" in said[0] and said[1] == "True False"


def test_the_alias_comes_before_an_installed_tensorflow(python, tmp_path):
    (tmp_path / "tensorflow.py").write_text("")
    code = (
        f"import sys; sys.path.append({str(tmp_path)!r})\n"
        + DOOR
        + "import tensorflow; print(tensorflow is gradtape)"
    )
    assert python(code=code) == "True"


def test_gradtape_that_cannot_be_imported_is_named(python, tmp_path):
    code = (
        "import sys; from gradtape_imports import tensorflow_finder as f; f.install(); sys.modules['gradtape'] = None\n"
        "import tensorflow"
    )
    assert "`tensorflow` is gradtape here, which could not be imported" in python(code=code, status=1)


def test_namespaces_of_gradtape_without_the_alias(python):
    code = (
        "import gradtape as tf, gradtape.experimental.numpy as tnp, gradtape.linalg.experimental\n"
        "from gradtape.math import reduce_sum\n"
        "assert tnp is tf.experimental.numpy and reduce_sum is tf.reduce_sum\n"
        "try:\n    import gradtape.experimental.nonsense\nexcept ModuleNotFoundError as e:\n    print(e)"
    )
    assert python(code=code) == "No module named 'gradtape.experimental.nonsense'"


# ---- python -m gradtape run ---------------------------------------------------------------------


def test_run_a_script(python, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import os, subprocess, sys\nimport beside, tensorflow as tf\n"
        "print(__name__, __file__ == sys.argv[0], sys.argv[1:], tf.constant(2.0).numpy(), beside.x)\n"
        "assert sys.modules['__main__'].__dict__ is globals() and os.environ['GRADTAPE_AS_TENSORFLOW'] == '1'\n"
        "sys.exit(3)\n"
    )
    (tmp_path / "beside.py").write_text("x = 5\n")
    said = python("-m", "gradtape", "run", str(script), "--epochs", "3", status=3)
    assert said == "__main__ True ['--epochs', '3'] 2.0 5"


def test_run_a_module(python, tmp_path):
    (tmp_path / "trainer.py").write_text(
        "import sys, tensorflow as tf\nprint(__name__, sys.argv[1:], tf.ones([1]).shape)\n"
    )
    said = python("-m", "gradtape", "run", "-m", "trainer", "a", PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}")
    assert said == "__main__ ['a'] (1,)"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def f(:\n    pass\n", "SyntaxError"),
        ("import tensorflow as tf\ntf.reshape(tf.ones([2]), [3])\n", "InvalidArgumentError"),
        ("open('/nowhere/at/all')\n", "FileNotFoundError"),
    ],
)
def test_run_shows_errors_with_their_place(python, tmp_path, source, words):
    script = tmp_path / "broken.py"
    script.write_text(source)
    said = python("-m", "gradtape", "run", str(script), status=1)
    assert words in said and "broken.py" in said and "gradtape_imports" not in said and "runpy" not in said


def test_run_names_missing_modules(python):
    assert "there is no file nowhere.py" in python("-m", "gradtape", "run", "nowhere.py", status=2)
    assert "expected a script" in python("-m", "gradtape", "run", status=2)
    assert "No module named nowhere" in python("-m", "gradtape", "run", "-m", "nowhere", status=1)


KERAS2 = """
import tensorflow as tf
import tensorflow.keras.layers
from tensorflow.keras.layers import Dense
print(tf.keras.__name__, Dense, tf.compat.v1.layers.what, tensorflow.keras.layers is tf.keras.layers)
"""


def test_keras_2_is_tf_keras_where_the_environment_says_so(python, tmp_path):
    for path, text in {
        "tf_keras/__init__.py": "",
        "tf_keras/api/_v2/keras/__init__.py": "from tf_keras.api._v2.keras import layers",
        "tf_keras/api/_v2/keras/layers.py": "Dense = 'the layer of Keras 2'",
        "tf_keras/api/_v1/keras/__internal__/legacy/layers.py": "what = 'of TensorFlow 1'",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    search = os.pathsep.join((str(ROOT), str(tmp_path)))
    said = python(code=DOOR + KERAS2, TF_USE_LEGACY_KERAS="1", PYTHONPATH=search)
    assert said == "tf_keras.api._v2.keras the layer of Keras 2 of TensorFlow 1 True"


@pytest.mark.skipif(importlib.util.find_spec("tf_keras") is not None, reason="tf_keras is installed")
def test_keras_2_that_is_not_installed_is_named(python):
    code = DOOR + "import tensorflow as tf; tf.keras"
    assert "pip install --no-deps tf_keras" in python(code=code, status=1, TF_USE_LEGACY_KERAS="True")
