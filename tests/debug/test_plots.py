"""Pictures: of profiles and patterns (that of health is in test_health); for a file, or for a notebook."""

import subprocess
import sys

import numpy as np
import pytest

import gradtape as tf

pytest.importorskip("matplotlib")


def step(x):
    for _ in range(20):
        x = tf.reduce_sum(tf.tanh(x) @ x, 1, keepdims=True) + x
    return x


def test_profile(tmp_path):
    profile = tf.function(step).profile(tf.ones([4, 4]))
    plot = profile.plot()
    (axes,) = plot.figure.axes
    assert len(axes.patches) == 16 and axes.get_yticklabels()[-1].get_text().startswith("all others (")
    widths = [p.get_width() for p in axes.patches]
    assert widths[:15] == sorted(widths[:15], reverse=True)
    assert sum(widths) == pytest.approx(profile.seconds * 1e6)
    assert plot._repr_png_().startswith(b"\x89PNG") and "profile of step" in repr(plot)
    assert profile.plot(tmp_path / "a.png") == str(tmp_path / "a.png")


def test_health_for_a_notebook():
    w = tf.Variable([[1.0, -1.0]], name="w")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.relu(w))
    plot = tape.health(loss).plot()
    assert [a.get_title(loc="left") for a in plot.figure.axes] == ["Gradients and weights", "Activations"]


def shown(plot):
    (axes,) = plot.figure.axes
    (image,) = axes.images
    return np.asarray(image.get_array()) > 0


@pytest.mark.parametrize("kind", ["tensor", "variable", "array", "scipy"])
def test_pattern(kind):
    x = tf.range(1.0, 5.0)
    dense = np.array([[-1, 4, 0, 0], [0, -1, 6, 0], [0, 0, -1, 8]], np.float32)
    if kind == "scipy":
        pytest.importorskip("scipy")
    matrix = {
        "tensor": lambda: tf.constant(dense),
        "variable": lambda: tf.Variable(dense),
        "array": lambda: dense,
        "scipy": lambda: tf.autodiff.sparse_jacobian(lambda x: x[1:] ** 2 - x[:-1], x),
    }[kind]()
    plot = tf.debug.plot_sparsity(matrix)
    np.testing.assert_array_equal(shown(plot), dense != 0)
    assert "3 x 4, 6 not zero (50 %)" in repr(plot)


def test_large_pattern_loses_no_element():
    sparse = pytest.importorskip("scipy.sparse")
    at = [0, 123_456, 999_999]
    found = shown(tf.debug.plot_sparsity(sparse.coo_matrix((np.ones(3), (at, at)), (1_000_000, 1_000_000))))
    assert found.shape == (400, 400) and [tuple(p) for p in np.argwhere(found)] == [
        (0, 0),
        (49, 49),
        (399, 399),
    ]


def test_only_matrices_have_patterns():
    for wrong in (tf.ones([3]), tf.ones([2, 2, 2]), tf.zeros([0, 3])):
        with pytest.raises(ValueError, match="expected a matrix"):
            tf.debug.plot_sparsity(wrong)


def test_colours_fit_a_dark_style():
    import matplotlib.style

    unused = tf.Variable(1.0, name="unused")
    with tf.GradientTape() as tape:
        loss = tf.Variable(2.0) ** 2
    for style, ground in (("default", 1.0), ("dark_background", 0.0)):
        with matplotlib.style.context(style):
            plots = (
                tape.health(loss, [unused, *tape.watched_variables()]).plot(),
                tf.debug.plot_sparsity(tf.eye(2)),
            )
        for plot in plots:
            (axes,) = plot.figure.axes
            assert axes.get_facecolor()[:3] == (ground,) * 3
            for text in (axes.title, *axes.get_yticklabels()):
                shade = np.dot(matplotlib.colors.to_rgb(text.get_color()), (0.2126, 0.7152, 0.0722))
                assert abs(shade - ground) > 0.3


def test_no_window_and_no_pyplot():
    code = """if True:
    import sys, gradtape as tf
    tf.debug.plot_sparsity(tf.eye(3))._repr_png_()
    assert "matplotlib.pyplot" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        tf.debug.plot_sparsity(tf.eye(3))
