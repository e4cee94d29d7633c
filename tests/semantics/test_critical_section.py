"""tf.CriticalSection: functions one at a time; and functions that programs of TensorFlow 1 use: names, ops, sizes."""

import threading
import time

import pytest

import gradtape as tf


def test_one_function_at_a_time():
    section, inside, most = tf.CriticalSection(name="s"), [], []

    def fn():
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.002)
        inside.pop()
        return len(most)

    threads = [threading.Thread(target=lambda: [section.execute(fn) for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 20 and section.name == "s"


def test_results_are_tensors_and_failures_release_the_lock():
    section, v = tf.CriticalSection(), tf.Variable(1)
    out = section.execute(lambda: {"a": 1, "b": (v.assign_add(2), None)})
    assert out["a"].numpy() == 1 and out["b"][0].numpy() == 3 and out["b"][1] is None
    with pytest.raises(ZeroDivisionError):
        section.execute(lambda: 1 / 0)
    assert tf.function(lambda: section.execute(lambda: v.assign_add(1)))().numpy() == 4


def test_a_section_within_itself_is_refused():
    section, other = tf.CriticalSection(), tf.CriticalSection()
    with pytest.raises(ValueError, match="in which we are already running"):
        section.execute(lambda: section.execute(lambda: 1))
    assert section.execute(lambda: other.execute(lambda: 1)).numpy() == 1
    with pytest.raises(ValueError, match="in which we are already running"):
        tf.function(lambda: section.execute(lambda: section.execute(lambda: 1)))()


def test_names_are_given_once():
    tf.compat.v1.reset_default_graph()
    graph = tf.compat.v1.get_default_graph()
    assert [graph.unique_name(n) for n in ("a", "a", "A", "a/b")] == ["a", "a_1", "A_2", "a/b"]
    assert graph.unique_name("a", mark_as_used=False) == graph.unique_name("a") == "a_3"
    with tf.name_scope("s"):
        assert [graph.unique_name("a"), graph.unique_name("a")] == ["s/a", "s/a_1"]
    tf.compat.v1.reset_default_graph()
    assert graph.unique_name("a") == "a"


def test_names_of_version_1():
    x = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    labels = tf.constant([[0.0, 1.0], [1.0, 0.0]])
    v1 = tf.compat.v1.nn.softmax_cross_entropy_with_logits_v2
    for given in ({}, {"axis": 0}, {"dim": 0}):
        expected = tf.nn.softmax_cross_entropy_with_logits(labels, x, axis=0 if given else -1)
        assert tf.reduce_all(v1(labels=labels, logits=x, **given) == expected)


def test_sizes_as_objects_are_numbers():
    size = tf.compat.v1.Dimension(5)
    assert tf.convert_to_tensor([size, size]).numpy().tolist() == [5, 5]

    @tf.function(input_signature=[tf.TensorSpec([None, 5])])
    def f(x):
        return tf.reshape(x, tf.concat([tf.shape(x)[:1], [size], [1]], 0))

    assert f(tf.zeros([2, 5])).shape == [2, 5, 1]
    with pytest.raises(ValueError, match="convert"):
        tf.convert_to_tensor(tf.compat.v1.Dimension(None))


def test_the_result_of_an_assignment_has_an_op_in_functions_only():
    v = tf.Variable(1.0)
    with pytest.raises(AttributeError, match="undefined when eager"):
        v.assign(2.0).op  # noqa: B018

    @tf.function
    def f(x):
        with tf.control_dependencies([v.assign_add(x).op]):
            return tf.identity(v)

    assert f(1.0).numpy() == 3.0


def test_scattering_of_version_1_gives_a_variable_whose_op_is_none():
    v = tf.Variable([1.0, 2.0])
    u = tf.compat.v1.scatter_update(v, [0], [5.0])
    assert u.op is None and isinstance(u, tf.Variable) and u.shape == [2] and u.dtype is tf.float32
    assert (u + 1.0).numpy().tolist() == [6.0, 3.0] and tf.reduce_sum(u).numpy() == 7.0
    u.assign([7.0, 7.0])
    assert v.numpy().tolist() == [7.0, 7.0] == u.numpy().tolist()
    tf.group(tf.compat.v1.scatter_nd_add(v, [[1]], [1.0]).op)
    assert v.numpy().tolist() == [7.0, 8.0]
