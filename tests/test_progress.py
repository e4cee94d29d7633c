"""Progress bars of long work: where they are shown, and that nothing is written elsewhere."""

import io
import subprocess
import sys
import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.base import progress, settings
from gradtape._src.base.progress import Progress
from gradtape.train import safetensors

tqdm = pytest.importorskip("tqdm")


@pytest.fixture
def bars(monkeypatch, capsys):
    """Shows bars at once, not only after a second; returns a function that gives the text they write."""
    written = []
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_INTERVAL", 0.0)
    monkeypatch.setattr(settings, "progress", True)
    monkeypatch.delenv("GRADTAPE_PROGRESS", raising=False)

    def text():
        written.append(capsys.readouterr().err)
        return "".join(written)

    return text


def test_a_bar_counts_and_is_removed(bars):
    with Progress("work", 4, "rows") as work:
        for _ in range(3):
            work.step(note="so far")
        assert work.is_shown and work.done == 3
        assert "work" in bars() and "so far" in bars() and "rows" in bars()
    assert not work.is_shown and progress._shown is None
    assert bars().endswith("\r")  # nothing is left behind


def test_no_bar_within_the_first_second(bars, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 1000.0)
    with Progress("work", 4) as work:
        work.step()
        assert not work.is_shown
    assert bars() == ""


def test_one_bar_at_a_time(bars):
    with Progress("outer", 2) as outer:
        outer.step()
        with Progress("inner", 2) as inner:
            inner.step()
            assert not inner.is_shown
        assert outer.is_shown
    assert "inner" not in bars()


def test_a_bar_of_failing_work_is_removed(bars):
    def fails(x):
        if x > 2:
            raise ValueError("fails")
        return x

    with pytest.raises(ValueError, match="fails"):
        tf.map_fn(fails, tf.range(5.0))
    assert progress._shown is None and "map_fn" in bars()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    "asked, environment, terminal, shown",
    [
        (None, None, False, False), (None, None, True, True), (None, "1", False, True), (None, "0", True, False),
        (True, "0", False, True), (False, "1", True, False),
    ],
)  # fmt: skip
def test_where_bars_are_shown(monkeypatch, asked, environment, terminal, shown):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    monkeypatch.delenv("GRADTAPE_PROGRESS", raising=False)
    if environment is not None:
        monkeypatch.setenv("GRADTAPE_PROGRESS", environment)
    tf.config.show_progress(asked)
    try:
        with Progress("work", 2) as work:
            work.step()
            assert work.is_shown == shown
    finally:
        tf.config.show_progress()


def test_without_tqdm_nothing_is_shown(bars, monkeypatch):
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)
    with Progress("work", 2) as work:
        work.step()
        assert not work.is_shown
    assert bars() == ""


@pytest.mark.parametrize("how", ["none", "closed", "broken", "closed later"])
def test_work_goes_on_where_no_bar_can_be_drawn(bars, monkeypatch, how):
    class Broken(io.StringIO):
        def write(self, text):
            raise OSError("broken pipe")

    stream = None if how == "none" else Broken() if how == "broken" else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    if how == "closed":
        stream.close()
    with Progress("work", 3) as work:
        work.step()
        assert work.is_shown == (how == "closed later")
        if how == "closed later":
            stream.close()
        work.step()
        work.step()
    assert work.done == 3 and progress._shown is None


def test_an_interrupt_removes_the_bar(bars):
    def stops(x):
        if x > 2:
            raise KeyboardInterrupt
        return x

    with pytest.raises(KeyboardInterrupt):
        tf.map_fn(stops, tf.range(5.0))
    assert progress._shown is None and bars().endswith("\r")


def test_no_thread_is_started(bars):
    before = threading.active_count()
    with Progress("work", 2) as work:
        work.step()
        assert threading.active_count() == before


def test_nothing_is_imported_for_it():
    code = """if True:
    import sys, gradtape as tf
    assert "gradtape._src.base.progress" not in sys.modules
    tf.map_fn(lambda x: x, tf.range(3.0))
    assert "tqdm" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- work with bars -------------------------------------------------------------------------------------


def test_jacobians_in_chunks(bars, monkeypatch):
    monkeypatch.setattr(settings, "jacobian_memory", 1)
    x = tf.Variable(tf.range(6.0))
    with tf.GradientTape() as tape:
        y = tf.tanh(x) * x
    tape.jacobian(y, x)
    assert "Jacobian: 100%" in bars() and "6/6" in bars()


def test_jacobian_row_by_row(bars):
    @tf.custom_gradient
    def f(x):
        return x * x, lambda g: tf.constant(g.numpy() * 2.0) * x

    x = tf.Variable(tf.range(3.0))
    with tf.GradientTape(persistent=True) as tape:
        y = f(x)
    np.testing.assert_array_equal(tape.jacobian(y, x), np.diag([0.0, 2.0, 4.0]))
    assert "3/3" in bars()


def test_map_fn(bars):
    np.testing.assert_array_equal(tf.map_fn(lambda x: x * 2, tf.range(4.0)), [0.0, 2.0, 4.0, 6.0])
    assert "map_fn: 100%" in bars()


def test_scipy_minimize_tells_the_value(bars):
    pytest.importorskip("scipy")
    for method in ("bfgs", "nelder-mead"):
        tf.optimizers.scipy_minimize(lambda x: tf.reduce_sum(x * x) + 3.0, tf.ones([2]), method=method)
    assert "scipy_minimize" in bars() and "evaluations" in bars() and ", 3]" in bars()


def test_checkpoints(bars, tmp_path, monkeypatch):
    monkeypatch.setattr(safetensors, "_PART", 1000)
    v = tf.Variable(tf.range(1000.0))
    path = tf.train.Checkpoint(v=v).write(tmp_path / "a")
    assert "writing a.safetensors: 100%" in bars()
    w = tf.Variable(tf.zeros([1000]))
    tf.train.Checkpoint(v=w).read(path).assert_consumed()
    np.testing.assert_array_equal(w, v)


def test_a_notebook_shows_bars(monkeypatch):
    class Shell:
        kernel = object()

    monkeypatch.setitem(sys.modules, "IPython", type("IPython", (), {"get_ipython": staticmethod(Shell)}))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.delenv("GRADTAPE_PROGRESS", raising=False)
    assert progress._is_wanted()
    monkeypatch.setitem(
        sys.modules, "IPython", type("IPython", (), {"get_ipython": staticmethod(lambda: None)})
    )
    assert not progress._is_wanted()
