"""What notebooks show: well-formed HTML with the same content as the text; nothing is imported before it is needed."""

import copy
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.debug.notebook import Statistics, statistics


class Shown(HTMLParser):
    """The text of a piece of HTML, its table cells, and whether every element is closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.text, self.cells, self.bad = [], "", [], ""
        self.feed(html)
        self.close()
        assert self.open == [], "an element is not closed"

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            return
        self.open.append((tag, dict(attrs).get("class", "")))
        if tag == "tr":
            self.cells.append([])
        elif tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag = self.open[-1][0]
        if tag in ("style", "script"):
            return
        self.text += data
        if tag in ("td", "th"):
            self.cells[-1][-1] += data
        if any(name == "bad" for _, name in self.open):
            self.bad += data


def shown(value):
    return Shown(value._repr_html_())


# ---- tensors and variables ----------------------------------------------------------------------------


def test_tensor():
    html = shown(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    assert html.text == "Tensor float32[2, 2][[1. 2.]\n [3. 4.]]"
    assert shown(tf.constant(3)).text == "Tensor int32[]3"
    assert shown(tf.zeros([0, 3])).text.startswith("Tensor float32[0, 3]")
    assert "[b'a' b'<b>']" in shown(tf.constant(["a", "<b>"])).text


def test_large_tensor_is_cut_and_summed_up():
    html = shown(tf.reshape(tf.range(100_000.0), [1000, 100]))
    assert "min 0, mean 5e+04, max 1e+05" in html.text
    assert "..." in html.text and len(html.text) < 2000


def test_nan_and_infinities_are_counted():
    html = shown(tf.constant([1.0, np.nan, np.inf, -np.inf]))
    assert html.bad == "1 NaN, 2 infinite"
    assert shown(tf.constant([1.0, 2.0])).bad == ""


@pytest.mark.parametrize(
    "dtype", "bfloat16 float16 float32 float64 int8 uint64 bool complex64 string float8_e5m2 int4".split()
)
def test_every_type_is_shown(dtype):
    if dtype == "string":
        x = tf.constant(["a", "b"] * 10)
    else:
        x = tf.cast(tf.constant([1.0, 2.0] * 10), dtype)
    html = shown(x)
    assert html.text.startswith(f"Tensor {dtype}[20]") and html.bad == ""


def test_statistics_take_one_pass_in_parts():
    x = np.random.default_rng(0).normal(size=200_001).astype(np.float32)
    x[7], x[150_000], x[199_999] = np.nan, np.inf, -np.inf
    fine = x[np.isfinite(x)].astype(np.float64)
    found = statistics(x.reshape(-1, 3))
    assert found == Statistics(fine.min(), pytest.approx(fine.mean()), fine.max(), 1, 2)
    assert statistics(np.zeros([0])) is None
    assert statistics(np.full(3, np.nan)).trouble == "3 NaN"
    assert statistics(np.array([3e38, 3e38], np.float32)).most == np.float32(
        3e38
    )  # a sum in float32 would not be finite


def test_statistics_of_what_cannot_be_added_up():
    assert "min" not in shown(tf.fill([20], np.nan)).text  # nothing is finite
    html = shown(tf.constant([1.7e308, 1.5e308] * 10, tf.float64))
    assert "min 1.5e+308, mean 1.6e+308, max 1.7e+308" in html.text


def test_many_dimensions_and_long_strings_take_little_room():
    assert shown(tf.zeros([32, 30, 30, 3])).text.count("\n") < 30
    assert len(shown(tf.zeros([2] * 12)).text) < 21_000
    assert "(80,003 more characters)" in shown(tf.constant("x" * 100_000)).text


def test_what_cannot_be_shown_is_text(monkeypatch):
    def fails(*_):
        raise ValueError("fails")

    monkeypatch.setattr("gradtape._src.debug.notebook.numpy_text", fails)
    assert tf.constant(1.0)._repr_html_() is None


def test_variable():
    v = tf.Variable([1.0, 2.0], name="kernel", trainable=False)
    assert shown(v).text == "Variable kernel not trainable float32[2][1. 2.]"


def test_showing_is_not_recorded_and_tells_no_watcher():
    v = tf.Variable([1.0, 2.0])
    with tf.debug.lines(), tf.GradientTape() as tape:
        y = tf.reduce_sum(v * v)
        before = len(tape._records())
        for value in (v, y, tape):
            shown(value)
        assert len(tape._records()) == before
    assert tape.gradient(y, v) is not None


def test_symbols():
    seen = []

    @tf.function
    def f(x):
        seen.extend(shown(value).text for value in (x, v))
        return x * v

    v = tf.Variable(2.0, name="v")
    f(tf.ones([3]))
    assert seen == ["symbolic tensor float32[3]", "Variable v float32[]"]


def test_tapes_of_symbols():
    texts = []

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.tanh(x)
        texts.append(repr(tape.draw(y)))
        texts.append(shown(tape.explain(y, x)).text)
        shown(tape), shown(tape.memory())
        with pytest.raises(RuntimeError, match="health: values are not known while a function is traced"):
            tape.health(y, x)
        return tape.gradient(y, x)

    f(tf.ones([3]))
    assert texts[0].startswith("<drawing of 1 operation, 1 source;") and texts[1].startswith("Connected")


# ---- functions ------------------------------------------------------------------------------------------


def test_function_and_its_traces():
    w = tf.Variable(tf.ones([3, 2]), name="w")

    @tf.function
    def scaled(x, k=2):
        return x @ w * k

    assert shown(scaled).text == "tf.function scaled(x, k=2) 0 traces"
    scaled(tf.ones([4, 3]))
    scaled(tf.ones([4, 3]), 3)
    html = shown(scaled)
    assert html.cells[1:] == [
        ["x: float32[4, 3], k: Literal[2]", "float32[4, 2]", "2", "1"],
        ["x: float32[4, 3], k: Literal[3]", "float32[4, 2]", "2", "1"],
    ]


def test_function_that_runs_eagerly_says_why():
    f = tf.function(lambda x: x * float(x[0]), autograph=False)
    f(tf.ones([3]))
    assert "Runs eagerly" in shown(f).bad


def test_concrete_function():
    w = tf.Variable(tf.ones([3, 2]), name="w")
    f = tf.function(lambda x: {"y": x @ w}).get_concrete_function(tf.TensorSpec([None, 3]))
    assert shown(f).cells == [
        ["", "name", "type"],
        ["argument", "x", "float32[None, 3]"],
        ["result", "", "float32[None, 2]"],
        ["variable", "w", "float32[3, 2]"],
    ]
    assert "0x" not in str(f)


# ---- tapes and reports about them -------------------------------------------------------------------------


def recorded(steps=1):
    w = tf.Variable([1.0, -2.0], name="<w>")
    with tf.GradientTape() as tape:
        y = w * 1.0
        for _ in range(steps):
            y = tf.nn.relu(y + 1.0)
        loss = tf.reduce_sum(y)
    return tape, loss, w


def test_tape():
    tape, loss, w = recorded()
    html = shown(tape)
    assert "GradientTape 4 operations, keeps 128 B" in html.text
    assert html.cells == [["watched", "type"], ["<w>", "float32[2]"]]
    assert tape._repr_html_().count("<img") == 1
    tape.gradient(loss, w)
    assert "used up" in shown(tape).text and "<img" not in tape._repr_html_()
    assert "not opened yet" in shown(tf.GradientTape()).text
    with tf.GradientTape(persistent=True) as tape:
        assert "recording persistent" in shown(tape).text


def test_long_tape_is_a_table():
    tape, _loss, _ = recorded(100)  # without the loss nothing is recorded
    html = tape._repr_html_()
    assert "<img" not in html and "100" in str(Shown(html).cells)


def test_drawing_is_text_and_a_picture():
    tape, loss, _ = recorded()
    drawing = tape.draw(loss)
    assert drawing.startswith("<svg") and isinstance(drawing, str)
    assert repr(drawing).startswith("<drawing of 4 operations, 1 source;")
    html = drawing._repr_html_()
    Shown(html)
    assert not re.search("https?://|<link|@import|url\\(", html)  # it loads nothing from elsewhere
    assert 'id="' not in html  # a notebook has many drawings
    for same in (copy.copy(drawing), pickle.loads(pickle.dumps(drawing))):
        assert same == drawing and repr(same) == repr(drawing)


def test_explanation():
    tape, loss, _ = recorded()
    html = shown(tape.explain(loss, tf.Variable(1.0, name="other")))
    assert html.text.startswith("No gradient never read") and "'other:0'" in html.bad and "Fix:" in html.text
    tape, loss, w = recorded()
    assert shown(tape.explain(loss, w)).text.startswith("Connected")


def words(text):
    return re.sub(r"\s+", "", text)


def test_tables_have_the_content_of_the_text():
    tape, loss, w = recorded()
    unused = tf.Variable(1.0, name="unused")
    f = tf.function(lambda x: tf.tanh(x) * 2.0 + 1.0)
    for value in (tape.memory(), tape.health(loss, [w, unused]), f.profile(tf.ones([3]))):
        html, text = shown(value), words(str(value))
        for row in html.cells:
            for cell in row:
                assert words(cell) in text
        assert repr(value) == str(value)
    assert "unused" in shown(tape.health(loss, [w, unused])).bad


def test_short_steps_of_a_profile_share_a_row():
    def chain(x):
        for _ in range(30):
            x = x @ x
        return x

    profile = tf.function(chain).profile(tf.eye(3))
    rows = [row for row in shown(profile).cells if len(row) == 4]
    assert len(rows) == 22 and rows[-1][2] == f"{len(profile.steps) - 20} others"
    assert len(str(profile).splitlines()) > len(profile.steps)


def test_shares_have_bars():
    tape, _loss, _ = recorded()
    html = tape.memory()._repr_html_()
    assert re.search(r'<td class="r" style="background:linear-gradient\(90deg,#4a73b866 \d+\.\d%', html)


# ---- cost -------------------------------------------------------------------------------------------------


def test_nothing_is_imported_before_a_notebook_asks():
    code = """if True:
    import sys, gradtape as tf
    x = tf.constant(1.0)
    tf.Variable(1.0), repr(x)
    assert not any(name.startswith("gradtape._src.debug") for name in sys.modules)
    x._repr_html_()
    assert "gradtape._src.debug.notebook" in sys.modules and "matplotlib" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ipython_finds_it():
    formatter = pytest.importorskip("IPython.core.formatters").HTMLFormatter()
    for value in (tf.constant(1.0), tf.Variable(1.0), tf.function(lambda x: x), tf.GradientTape()):
        assert formatter(value).startswith('<div class="gradtape">')
    assert formatter(tf.Variable) is None and formatter(tf.Tensor) is None
