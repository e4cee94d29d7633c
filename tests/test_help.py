"""Pages of help: messages lead to them, they exist, and the command line shows them."""

import logging
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf
from gradtape.__main__ import main
from gradtape._src import help as pages
from gradtape._src.base.errors import more

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "gradtape" / "_src" / "help"
SOURCES = [*(ROOT / "gradtape").rglob("*.py"), *(ROOT / "core").rglob("*.cpp")]
_IN_SOURCE = re.compile(r'\b(?:more|GT_MORE)\(\s*"([^"]+)"')

# No message leads to these: they answer questions that are asked without an error.
GENERAL = {
    "input-gradients", "vector-targets", "hessians", "gradient-accumulation", "speed", "random-seeds", "threads",
    "scipy",
}  # fmt: skip


def topics_of_messages():
    found = {topic for path in SOURCES for topic in _IN_SOURCE.findall(path.read_text())}
    return found - {"topic"}


def test_topics_are_the_files():
    assert sorted(pages.TOPICS) == sorted(p.stem for p in FOLDER.glob("*.md"))


def test_messages_lead_to_pages():
    assert topics_of_messages() <= set(pages.TOPICS)


def test_every_page_is_led_to_or_general():
    assert set(pages.TOPICS) - topics_of_messages() == GENERAL


@pytest.mark.parametrize("topic", pages.TOPICS)
def test_page_has_a_question_code_and_no_dead_ends(topic):
    text = pages.page(topic)
    assert text.startswith("# ") and text.endswith("\n") and "```python\n" in text
    # Short: what is asked here is asked in a hurry.
    assert text.count("\n") <= 120
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    # In a wheel the pages have no other files beside them.
    assert {link.removesuffix(".md") for link in re.findall(r"\]\(([^)#]*)", prose)} <= set(pages.TOPICS)


# ---- messages ---------------------------------------------------------------------------------


def used_twice():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    tape.gradient(y, x)


def unconnected():
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x, unconnected_gradients="raise")


def unconnected_jacobian():
    x = tf.constant([1.0])
    with tf.GradientTape() as tape:
        y = x * x
    tape.jacobian(y, x, unconnected_gradients="raise")


def integer_target():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = tf.cast(x, tf.int32)
    tape.gradient(y, x, unconnected_gradients="raise")


def python_target():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = float(x * x)
    tape.gradient(y, x)


def no_gradients():
    tf.optimizers.SGD().apply_gradients([(None, tf.Variable(1.0))])


def step_with_none():
    tf.Variable(1.0).assign_sub(None)


def product_with_none():
    tf.constant(0.1) * None


def replaced_variable():
    v = tf.Variable(1.0)
    v = v - 0.1
    tf.optimizers.SGD().apply_gradients([(tf.constant(1.0), v)])


def assign_to_a_tensor():
    tf.constant(1.0).assign_sub(0.5)


def different_types():
    tf.constant([1.0]) * tf.constant([1.0], tf.float64)


def different_types_divided():
    tf.constant([1.0]) / tf.constant([1.0], tf.float64)


def variable_in_function():
    tf.function(lambda x: tf.Variable(1.0) * x)(tf.constant(1.0))


def numpy_in_function():
    tf.function(lambda x: np.sin(x))(tf.constant(1.0))


def numpy_method_in_function():
    tf.function(lambda x: x.numpy())(tf.constant(1.0))


def bool_in_function():
    tf.function(lambda x: 1.0 if x > 0 else 2.0, autograph=False)(tf.constant(1.0))


def leaked_symbol():
    kept = []
    tf.function(lambda x: kept.append(x * 2.0))(tf.constant(1.0))
    kept[0] + 1.0


def one_branch():
    @tf.function
    def f(x):
        if x > 0:
            y = x
        return y

    f(tf.constant(1.0))


def not_a_number():
    with tf.debug.check_numerics():
        tf.math.log(tf.constant([0.0]))


def too_large():
    tf.zeros([1 << 20, 1 << 20])


def complex_target():
    tf.function(lambda z: tf.gradients(z * z, z))(tf.constant(1.0 + 2.0j))


def gradients_too_many():
    f = tf.custom_gradient(lambda x: (x * 2.0, lambda g: (g, g)))
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = f(x)
    tape.gradient(y, x)


ERRORS = [
    (used_twice, RuntimeError, "several-gradients"),
    (unconnected, ValueError, "none-gradients"),
    (unconnected_jacobian, ValueError, "none-gradients"),
    (integer_target, ValueError, "none-gradients"),
    (python_target, AttributeError, "none-gradients"),
    (no_gradients, ValueError, "none-gradients"),
    (step_with_none, ValueError, "none-gradients"),
    (product_with_none, ValueError, "none-gradients"),
    (replaced_variable, TypeError, "assigning"),
    (assign_to_a_tensor, AttributeError, "assigning"),
    (different_types, tf.errors.InvalidArgumentError, "types-and-shapes"),
    (different_types_divided, TypeError, "types-and-shapes"),
    (variable_in_function, ValueError, "variables-in-functions"),
    (numpy_in_function, NotImplementedError, "traced-values"),
    (numpy_method_in_function, AttributeError, "traced-values"),
    (bool_in_function, tf.errors.OperatorNotAllowedInGraphError, "traced-values"),
    (leaked_symbol, TypeError, "traced-values"),
    (one_branch, ValueError, "traced-values"),
    (not_a_number, tf.debug.NumericsError, "nan-gradients"),
    (too_large, tf.errors.ResourceExhaustedError, "memory"),
    (complex_target, TypeError, "complex-losses"),
    (gradients_too_many, ValueError, "custom-gradients"),
]


@pytest.mark.parametrize(("program", "error", "topic"), ERRORS, ids=[p.__name__ for p, _, _ in ERRORS])
def test_error_ends_with_its_page(program, error, topic):
    with pytest.raises(error) as caught:
        program()
    assert str(caught.value).endswith(more(topic))
    assert str(caught.value).count("More:") == 1


def test_checkpoint_that_does_not_fit_leads_to_its_page(tmp_path):
    path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).save(str(tmp_path / "ckpt"))
    with pytest.raises(ValueError, match="help checkpoints$"):
        tf.train.Checkpoint(v=tf.Variable([1.0])).restore(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="help checkpoints$"):
        tf.train.Checkpoint(v=tf.Variable([1.0, 2.0], dtype=tf.float64)).restore(path)
    with pytest.raises(AssertionError, match="help checkpoints$"):
        tf.train.Checkpoint(w=tf.Variable([1.0])).restore(path).assert_consumed()


def test_warning_about_missing_gradients_leads_to_its_page():
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    with pytest.warns(UserWarning, match="help none-gradients$"):
        tf.optimizers.SGD().apply_gradients([(tf.constant(1.0), v), (None, w)])


def test_warning_about_integers_leads_to_its_page(caplog, monkeypatch):
    monkeypatch.setattr("gradtape._src.tapes.tape._warned", {})
    with caplog.at_level(logging.WARNING, "gradtape"), tf.GradientTape() as tape:
        tape.watch(tf.constant(1))
    assert caplog.messages[-1].endswith(more("integers"))


def test_warning_about_retracing_names_the_argument_and_its_page(caplog):
    f = tf.function(lambda x: x)
    with caplog.at_level(logging.WARNING, "gradtape"):
        for i in range(6):
            f(i)
    assert "argument 0: 4 before, 5 now" in caplog.messages[-1]
    assert caplog.messages[-1].endswith(more("retracing"))


def test_function_that_runs_eagerly_leads_to_its_page(caplog):
    with caplog.at_level(logging.WARNING, "gradtape"):
        tf.function(lambda x: x * math.exp(x[0]))(tf.constant([1.0, -1.0]))
    assert caplog.messages[-1].endswith(more("traced-values"))


# ---- the command line ---------------------------------------------------------------------------


def test_help_lists_the_topics(capsys):
    assert main(["help"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[: len(pages.TOPICS)]] == list(pages.TOPICS)
    assert "Why is my gradient None?" in out


@pytest.mark.parametrize("words", [["none-gradients"], ["None", "gradients"], ["none_gradient"], ["none"]])
def test_help_shows_a_page(words, capsys):
    assert main(["help", *words]) == 0
    assert capsys.readouterr().out == pages.page("none-gradients")


def test_help_suggests_similar_names(capsys):
    assert main(["help", "gradients"]) == 2
    err = capsys.readouterr().err
    assert "none-gradients" in err and "Why is my gradient None?" in err


@pytest.mark.parametrize(
    ("words", "topic"),
    [("hesian", "hessians"), ("seed", "random-seeds"), ("dtype", "types-and-shapes"), ("L-BFGS", "scipy"),
     ("fork", "threads"), ("saliency", "input-gradients"), ("nan", "nan-gradients")],
)  # fmt: skip
def test_words_find_their_topic(words, topic):
    assert topic in pages.near(words)


def test_help_without_a_clue_shows_the_list(capsys):
    assert main(["help", "zzyzx"]) == 2
    assert "none-gradients" in capsys.readouterr().err


def test_import_does_not_read_pages():
    code = "import sys, gradtape; print('gradtape._src.help' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_page_of_questions_answers_every_topic():
    page = (ROOT / "docs" / "questions.md").read_text()
    for topic in pages.TOPICS:
        assert page.count(f"(../gradtape/_src/help/{topic}.md)") == 1, topic
