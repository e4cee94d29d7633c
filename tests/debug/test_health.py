"""tape.health(): one table of gradients, one of activations, one plot."""

import numpy as np
import pytest

import gradtape as tf


def rows(health):
    return {s.name: s for s in health.sources}


def test_norms_and_ratios():
    w, b = tf.Variable([[3.0, 4.0]], name="w"), tf.Variable(2.0, name="b")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w) + b
    health = tape.health(loss, [w, b])
    found = rows(health)
    assert found["w"].gradient == pytest.approx(10.0)
    assert found["w"].weight == pytest.approx(5.0)
    assert found["w"].ratio == pytest.approx(2.0)
    assert found["b"].gradient == 1.0
    assert found["b"].ratio == 0.5
    assert [s.name for s in health.sources] == ["w", "b"]  # by ratio
    assert health.troubled == []
    np.testing.assert_array_equal(tape.gradient(loss, w), [[6.0, 8.0]])  # the tape is not used up


def test_watched_variables_by_default_and_structures():
    w, b = tf.Variable(1.0, name="w"), tf.Variable(2.0, name="b")
    with tf.GradientTape() as tape:
        loss = w * b
    assert {s.name for s in tape.health(loss).sources} == {"w", "b"}
    assert rows(tape.health(loss, {"it": (b,)}))["b"].gradient == 1.0


def test_troubles_come_first_and_say_what_to_do():
    fine, unused = tf.Variable([1.0, 2.0], name="fine"), tf.Variable(1.0, name="unused")
    zero, bad = tf.Variable([1.0, 1.0], name="zero"), tf.Variable([0.0, 4.0], name="bad")
    small = tf.Variable(1e3, name="small")
    with tf.GradientTape() as tape:
        loss = (
            tf.reduce_sum(fine * 2.0) + tf.reduce_sum(zero * 0.0) + tf.reduce_sum(tf.sqrt(bad)) + small * 1e-9
        )
    health = tape.health(loss, [fine, zero, unused, bad, small])
    troubles = {s.name: s.trouble.split(":")[0] for s in health.sources}
    assert troubles == {
        "bad": "NaN or infinity", "unused": "no gradient", "zero": "all zero", "small": "vanishing", "fine": "",
    }  # fmt: skip
    assert [s.name for s in health.sources][:2] == ["bad", "unused"]
    assert health.sources[-1].name == "fine"
    assert rows(health)["bad"].not_finite == 1
    assert rows(health)["zero"].zeros == 1.0
    text = str(health)
    assert "tape.explain" in text and "check_numerics" in text


def test_dead_and_saturated_units():
    x = tf.constant([[1.0, -1.0, 2.0], [2.0, -3.0, -1.0]])
    w = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        h = tf.nn.relu(x * w)
        s = tf.sigmoid(h * 100.0 - 50.0)
        t = tf.tanh(x * w)
        loss = tf.reduce_sum(h) + tf.reduce_sum(s) + tf.reduce_sum(t)
    units = {u.op: u for u in tape.health(loss).units}
    assert (units["relu"].units, units["relu"].dead) == (3, 1)
    assert units["sigmoid"].saturated == 3
    assert units["sigmoid"].near_end == 1.0
    assert units["tanh"].saturated == 0
    assert units["tanh"].near_end == pytest.approx(1 / 6)


def test_lines_of_activations():
    w = tf.Variable([[-1.0]])
    with tf.debug.lines():
        with tf.GradientTape() as tape:
            y = tf.nn.relu(w)  # dead here
        health = tape.health(y)
    assert health.units[0].line.text.endswith("# dead here")
    assert "# dead here" in str(health)


def test_sparse_and_complex_gradients():
    table, z = tf.Variable(tf.ones([10, 2], tf.float64), name="table"), tf.Variable([3.0 + 4.0j], name="z")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [1, 1, 2])) + tf.reduce_sum(tf.math.real(z * tf.math.conj(z)))
    found = rows(tape.health(loss))
    assert found["table"].zeros == pytest.approx(0.8)
    assert found["table"].gradient == pytest.approx(np.sqrt(10.0))
    assert found["z"].weight == pytest.approx(5.0)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float64])
def test_types(dtype):
    w = tf.Variable(tf.cast([1.0, -2.0], dtype), name="w")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.relu(w))
    health = tape.health(loss)
    assert health.sources[0].gradient == 1.0
    assert health.units[0].dead == 1


def test_within_the_context_nothing_is_recorded():
    w = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        loss = w * w
        before = tape._size
        tape.health(loss)
        tape.draw(loss)
        assert tape._size == before
    assert tape.gradient(loss, w).numpy() == 4.0


def test_used_tape():
    w = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = w * w
    tape.gradient(loss, w)
    with pytest.raises(RuntimeError, match="one set of gradients"):
        tape.health(loss)


def test_plot(tmp_path):
    pytest.importorskip("matplotlib")
    w, v = tf.Variable([1.0, -2.0], name="w"), tf.Variable(np.inf, name="v")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.relu(w)) * 1e3
        v * 1.0
    file = tape.health(loss).plot(tmp_path / "health.png")
    assert (tmp_path / "health.png").read_bytes().startswith(b"\x89PNG")
    assert file == str(tmp_path / "health.png")


@pytest.mark.parametrize("made", [lambda: tf.optimizers.Adam(0.1), lambda: tf.keras.optimizers.Adam(0.1)])
def test_updates_of_an_optimizer_beside_the_weights(made):
    """The step is tried, and undone."""
    w, unused = tf.Variable([3.0, 4.0], name="w"), tf.Variable(1.0, name="unused")
    optimizer = made()
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * w) + 0.0 * unused.numpy()
        health = tape.health(loss, [w, unused], optimizer)
        before = [v.numpy() for v in optimizer.variables]
        found = rows(health)
        old = w.numpy()
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        np.testing.assert_allclose(found["w"].update, np.linalg.norm(w.numpy() - old), rtol=1e-5)
        np.testing.assert_allclose(found["w"].ratio, found["w"].update / np.linalg.norm(old), rtol=1e-5)
        assert found["unused"].update is None and "update/weight" in str(health)
    assert int(before[0]) == 1  # the second health saw one step
