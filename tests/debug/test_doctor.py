"""python -m gradtape doctor: what it reports in a project, and what it does not."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gradtape.__main__ import main
from gradtape._src import doctor
from gradtape._src.doctor import packages

ROOT = Path(__file__).resolve().parents[2]
HEAD = "import tensorflow as tf\nimport numpy as np\n"

needs_keras = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="asks Keras for its names")


def findings(tmp_path, program, head=HEAD):
    file = tmp_path / "program.py"
    file.write_text(head + program)
    lines = head.count("\n")
    return [(f.line - lines, f.code, f.text) for f in doctor.check(file).findings]


def one(tmp_path, program, line, code, *words):
    found = findings(tmp_path, program)
    assert [(n, c) for n, c, _ in found] == [(line, code)], found
    for word in words:
        assert word in found[0][2]


# ---- names ----------------------------------------------------------------------------------------


def test_missing_name_with_its_words(tmp_path):
    one(tmp_path, "x = 1\ny = tf.queue.FIFOQueue('a')\n", 2, "missing", "tf.queue.FIFOQueue", "no queues")


def test_missing_name_without_words(tmp_path):
    one(tmp_path, "tf.math.no_such_thing(1.0)\n", 1, "missing", "gradtape has no tf.math.no_such_thing.")


def test_names_that_exist(tmp_path):
    program = """
x = tf.Variable(1.0, dtype=tf.float32)
print(tf.math.log(x), tf.nn.relu(x), tf.float32.name, tf.linalg.matmul, tf.data.Dataset.from_tensor_slices, tf.__version__)
"""
    assert findings(tmp_path, program) == []


@pytest.mark.parametrize(
    "head, program",
    [
        ("import tensorflow.compat.v1 as tf1\n", "tf1.layers.dense(1)\n"),
        ("from tensorflow import queue\n", ""),
        ("import tensorflow as T\n", "T.queue.FIFOQueue(1, [T.int32])\n"),
        ("from tensorflow.python.grappler import item\n", ""),
        ("import tensorflow as tf, tensorflow_text\n", ""),
        ("from tensorflow import queue as waiting\n", ""),
    ],
)
def test_every_kind_of_import(tmp_path, head, program):
    found = findings(tmp_path, program, head)
    assert found and all(code == "missing" for _, code, _ in found)


@needs_keras
def test_other_names_of_the_same_spelling(tmp_path):
    head = "import tensorflow as tf\nfrom tensorflow.keras import layers\n"
    program = """
def f(layers):
    layers.append(1)
def g():
    layers = []
    return layers.pop()
"""
    assert findings(tmp_path, program, head) == []


def test_programs_that_are_prepared(tmp_path):
    program = """
try:
    upper = tf.queue.FIFOQueue
except AttributeError:
    upper = str.upper
if hasattr(tf, "queue"):
    tf.queue.FIFOQueue(1, [tf.int32])
"""
    assert findings(tmp_path, program) == []


@needs_keras
def test_keras_2_spellings_are_notes(tmp_path):
    program = """
opt = tf.keras.optimizers.legacy.Adam(1e-3)
sgd = tf.keras.optimizers.SGD(lr=0.1)
model.fit_generator(data)
"""
    found = findings(tmp_path, program)
    assert [code for _, code, _ in found] == ["note"] * 3
    assert all("works" in text for _, _, text in found)
    assert main(["doctor", str(tmp_path)]) == 0


def test_a_line_that_is_allowed(tmp_path):
    assert findings(tmp_path, "tf.queue.FIFOQueue('a')  # gradtape: ok\n") == []


def test_files_without_tensorflow(tmp_path):
    assert findings(tmp_path, "tf.queue.FIFOQueue('a')\n", head="import torch as tf\n") == []


# ---- None -----------------------------------------------------------------------------------------


def test_numpy_in_a_context(tmp_path):
    program = """x = tf.Variable(2.0)
with tf.GradientTape() as tape:
    y = tf.constant(np.square(x.numpy()))
    print(y.numpy(), f"{y.numpy()}")
tape.gradient(y, x)
"""
    one(tmp_path, program, 3, "none", ".numpy()")


def test_source_never_watched(tmp_path):
    program = """x, = 1,
a = tf.constant([1.0, 2.0])
b = tf.random.normal([2])
with tf.GradientTape() as tape:
    tape.watch(b)
    y = a * b
tape.gradient(y, [a, b])
"""
    one(tmp_path, program, 7, "none", "tape.watch(a)")


def test_sources_watched_in_a_loop(tmp_path):
    program = """a = tf.constant(1.0)
with tf.GradientTape() as tape:
    for t in [a]:
        tape.watch(t)
    y = a * a
tape.gradient(y, a)
"""
    assert findings(tmp_path, program) == []


def test_gradient_twice(tmp_path):
    program = """x = tf.Variable(2.0)
with tf.GradientTape() as tape:
    y = x * x
    z = y * y
a = tape.gradient(y, x)
b = tape.gradient(z, x)
"""
    one(tmp_path, program, 6, "none", "persistent=True")
    assert findings(tmp_path, program.replace("Tape()", "Tape(persistent=True)")) == []


def test_gradient_in_a_loop(tmp_path):
    program = """x = tf.Variable(2.0)
with tf.GradientTape() as tape:
    y = x * x
for i in range(3):
    g = tape.gradient(y, x)
"""
    one(tmp_path, program, 5, "none", "used up")


def test_gradient_in_one_of_two_branches(tmp_path):
    program = """
def step(x, clip):
    with tf.GradientTape() as tape:
        y = x * x
    if clip == 1:
        return tape.gradient(y, x)
    if clip:
        g = tape.gradient(y, x)
    else:
        g = tape.gradient(y * 1, x)
    return g
for i in range(3):
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
"""
    assert findings(tmp_path, program) == []


@pytest.mark.parametrize(
    "made", ["tf.Variable(3)", "tf.Variable([1, -2])", "tf.Variable(3.0, dtype=tf.int32)"]
)
def test_integer_source(tmp_path, made):
    program = f"x = {made}\nwith tf.GradientTape() as tape:\n    y = x * x\ntape.gradient(y, x)\n"
    one(tmp_path, program, 1, "none", "integers")


def test_integer_variables_that_are_no_sources(tmp_path):
    assert findings(tmp_path, "step = tf.Variable(0, trainable=False)\nstep.assign_add(1)\n") == []


def test_assignment_in_a_context(tmp_path):
    program = """v, x = tf.Variable(1.0), tf.Variable(2.0)
with tf.GradientTape() as tape:
    step.assign_add(1)
    v.assign(x * 3.0)
    y = v * 2.0
tape.gradient(y, x)
"""
    one(tmp_path, program, 4, "none", "assign")
    assert findings(tmp_path, program.replace("Tape()", "Tape(track_assign=True)")) == []


def test_variable_that_becomes_a_tensor(tmp_path):
    program = """x = tf.Variable(2.0)
for i in range(2):
    with tf.GradientTape() as tape:
        y = x + 1
    g = tape.gradient(y, x)
    x = x - 0.1 * g
"""
    one(tmp_path, program, 6, "none", "x.assign")


def test_target_computed_behind_the_context(tmp_path):
    program = """x = tf.Variable(2.0)
with tf.GradientTape() as tape:
    y = x * x
loss = tf.reduce_sum(y)
tape.gradient(loss, x)
"""
    one(tmp_path, program, 4, "none", "move it inside")


# ---- NaN ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        "y = tf.where(x > 0, tf.sqrt(x), 0.0)",
        "y = tf.where(x > 0, tf.math.log(x), tf.zeros_like(x))",
        "y = tf.where(x > 0, 1.0 / x, 0.0)",
        "r = tf.sqrt(x); y = tf.where(x > 0, r, 0.0)",
        "y = tf.where(x > 0, x=tf.math.divide(1.0, x), y=0.0)",
        "y = tf.math.log(tf.nn.softmax(x))",
        "p = tf.sigmoid(x); y = tf.math.log(p)",
    ],
)
def test_nan(tmp_path, program):
    one(tmp_path, program + "\n", 1, "nan")


@pytest.mark.parametrize(
    "program",
    [
        "safe = tf.where(x > 0, x, 1.0); y = tf.where(x > 0, tf.sqrt(safe), 0.0)",
        "y = tf.where(x > 0, tf.math.log(tf.maximum(x, 1e-12)), 0.0)",
        "y = tf.where(x > 0, x / 2.0, x)",
        "y = tf.where(x > 0, x / (n + eps), x)",
        "y = tf.where(mask, a, b)",
        "i = tf.where(mask)",
        "y = tf.math.log(x + 1e-8)",
    ],
)
def test_no_nan(tmp_path, program):
    assert findings(tmp_path, program + "\n") == []


# ---- files and the command ------------------------------------------------------------------------


def test_notebook(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# tf.queue"]},
        {
            "cell_type": "code",
            "source": ["!pip install x\n", "%matplotlib inline\n", "import tensorflow as tf"],
        },
        {"cell_type": "code", "source": "%%bash\nls tf"},
        {"cell_type": "code", "source": ["x = 1\n", "tf.queue.FIFOQueue('a')\n"]},
    ]
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": cells}))
    report = doctor.check(tmp_path)
    assert [f.code for f in report.findings] == ["missing"]
    assert report.findings[0].place.endswith("book.ipynb:cell 4:2")


def test_folder_summary_and_status(tmp_path, capsys):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "skipped.py").write_text("import tensorflow as tf\ntf.queue\n")
    (tmp_path / "fine.py").write_text("import tensorflow as tf\nprint(tf.ones([2]))\n")
    assert main(["doctor", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("1 file, 1 with TensorFlow: 1 use of 1 name, 0 names missing")
    (tmp_path / "old.py").write_text("print 'Python 2'\n")
    (tmp_path / "text.py").write_text("import tensorflow as tf\ntf.queue.FIFOQueue('a')\n")
    assert main(["doctor", str(tmp_path)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert "old.py:1: unread" in out[0] and "text.py:2: missing" in out[1]
    assert out[-2].endswith(
        "1 name missing in 1 place, 0 likely mistakes, 0 notes, 1 file could not be read."
    )


def test_deep_expressions(tmp_path):
    found = findings(tmp_path, "y = " + " + ".join(["x"] * 3000) + "\n")
    assert [code for _, code, _ in found] in ([], ["unread"])


def test_no_such_path(tmp_path, capsys):
    assert main(["doctor", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_own_examples_are_healthy():
    report = doctor.check(ROOT / "examples")
    assert report.with_tensorflow > 5
    assert report.problems == []


def test_info():
    done = subprocess.run(
        [sys.executable, "-m", "gradtape", "info"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    words = done.stdout
    for word in ("gradtape", "kernels", "x86-64-v", "threads", "OpenBLAS", "memory"):
        assert word in words


def test_values_that_do_not_come_back(tmp_path):
    """Sampled actions, stored numbers, moving averages: nobody requests their gradients."""
    program = """
ema = tf.Variable(0.0, trainable=False)
def run(env, policy, x, losses):
    with tf.GradientTape() as tape:
        probs = policy(x)
        action = np.random.choice(2, p=probs.numpy()[0])
        best = float(probs.numpy().max())
        i = np.argmax(probs[0].numpy())
        ema.assign(0.9 * ema + 0.1 * probs[0, 0])
        loss = -tf.math.log(probs[0, action] + 1e-8) - probs[0, i]
        x, reward = env.step(action)
    return tape.gradient(loss, policy.trainable_variables), best
"""
    assert findings(tmp_path, program) == []


def test_values_that_come_back(tmp_path):
    program = """
w = tf.Variable(1.0)
with tf.GradientTape() as tape:
    y = ((w * 2.0).numpy() ** 2).sum()
tape.gradient(y, w)
"""
    one(tmp_path, program, 4, "none", ".numpy()")


def test_the_inner_gradient_outside_of_the_outer_tape(tmp_path):
    program = """
def second(x):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x ** 3
    dy = inner.gradient(y, x)
    return outer.gradient(dy, x)
"""
    one(tmp_path, program, 6, "none", "after the context of 'outer'")


def test_a_target_of_steps(tmp_path):
    program = """
def f(model, x, labels):
    with tf.GradientTape() as tape:
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(model(x), 1), labels), tf.float32))
    return tape.gradient(right, model.trainable_variables)
"""
    one(tmp_path, program, 4, "none", "equal, which has no gradient")
    assert findings(tmp_path, program.replace("tf.equal(", "tf.subtract(")) == []


def test_names_without_effect_and_names_that_refuse(tmp_path):
    text = "strategy = tf.distribute.ParameterServerStrategy(r)\nwith tf.device('/GPU:0'):\n    pass\n"
    assert [(line, code) for line, code, _ in findings(tmp_path, text)] == [(1, "missing"), (2, "note")]
    guarded = "try:\n    tf.distribute.ParameterServerStrategy(r)\nexcept ValueError:\n    pass\n"
    assert findings(tmp_path, guarded) == []


def test_json(tmp_path, capsys):
    (tmp_path / "program.py").write_text(HEAD + "tf.queue.FIFOQueue('a')\ntf.device('cpu')\n")
    assert main(["doctor", "--json", "--quiet", str(tmp_path)]) == 1
    said = json.loads(capsys.readouterr().out)
    assert [(f["code"], f["line"], f["name"]) for f in said["findings"]] == [
        ("missing", 3, "tf.queue.FIFOQueue")
    ]
    assert "1 name missing" in said["summary"]


# ---- packages, and the door ---------------------------------------------------------------------


def doors(tmp_path, program, **files):
    (tmp_path / "program.py").write_text(program)
    for name, text in files.items():
        (tmp_path / name.replace("__", ".")).write_text(text)
    return doctor.check(tmp_path)


@pytest.mark.parametrize(
    "program, words",
    [
        ("import tensorflow as tf\ntf.ones([2])\n", "`import gradtape as tf` instead"),
        ("import keras\n", "change nothing"),
        ("from keras import layers\n", "change nothing"),
        ("import sonnet as snt\n", "python -m gradtape run"),
        ("import tensorflow as tf\nfrom tensorflow.python.util import nest\n", "python -m gradtape run"),
        ("import numpy\n", ""),
    ],
)
def test_the_door(tmp_path, program, words):
    door = doors(tmp_path, program).door
    assert words in door and bool(door) == bool(words)


def test_packages_that_are_imported(tmp_path):
    report = doors(
        tmp_path, "import tensorflow_probability as tfp\nfrom tensorflow_text import normalize_utf8\n"
    )
    assert [(f.line, f.code) for f in report.findings] == [(1, "note"), (2, "missing")]
    assert "under the alias" in report.findings[0].text and "compiled code" in report.findings[1].text


def test_internal_modules_that_exist(tmp_path):
    program = (
        "from tensorflow.python.util import nest\nfrom tensorflow.python.framework.ops import convert_to_tensor\n"
        "from tensorflow.python.framework.ops import no_such_name\nimport tensorflow.python.grappler.item\n"
    )
    report = doors(tmp_path, program)
    assert [(f.line, f.code) for f in report.findings] == [
        (1, "note"),
        (2, "note"),
        (3, "missing"),
        (4, "missing"),
    ]


def test_requirements(tmp_path):
    report = doors(
        tmp_path, "x = 1\n",
        requirements__txt="# what we need\nnumpy>=1.26\ntensorflow==2.15\ndm-sonnet\ntensorflow_text>=2\n",
        pyproject__toml='[project]\ndependencies = [\n  "gpflow>=2.9",\n]\n',
    )  # fmt: skip
    found = [(Path(f.place).name, f.code, f.name) for f in report.findings]
    assert found == [
        ("requirements.txt:3", "note", "tensorflow"), ("requirements.txt:4", "note", "dm-sonnet"),
        ("requirements.txt:5", "missing", "tensorflow-text"), ("pyproject.toml:3", "note", "gpflow"),
    ]  # fmt: skip
    assert "python -m gradtape run" in report.door


def test_requirements_that_cannot_be_read(tmp_path):
    report = doors(
        tmp_path, "x = 1\n", pyproject__toml="[project\n", requirements__txt="\x00 -r other.txt\n==\n"
    )
    assert report.findings == [] and report.door == ""


def test_the_table_agrees_with_what_was_tried():
    """Packages that `make ecosystem` runs work; those it reports as failing do not."""
    for path in (ROOT / "tests" / "ecosystem" / "packages").glob("*.json"):
        tried = json.loads(path.read_text())
        name = tried["name"].lower().replace("_", "-")
        assert packages.NAMES[name].runs == ("status" not in tried), name
