"""tape.memory(): bytes a tape keeps alive, by op and by line."""

import gradtape as tf

KB = 1024


def ones(kilobytes):
    return tf.ones([kilobytes * KB // 4])


def test_kept_by_op():
    x = tf.Variable(ones(4))
    with tf.GradientTape() as tape:
        y = tf.exp(x + 1.0)  # keeps its result
        z = tf.reduce_sum(y)
    memory = tape.memory()
    assert memory.total == 4 * KB
    assert memory.by_op["exp"] == (4 * KB, 1, 1)
    assert memory.by_op["add"].bytes == memory.by_op["sum"].bytes == 0
    assert memory.records == 3
    assert next(iter(memory.by_op)) == "exp"  # the largest first
    assert tape.gradient(z, x) is not None  # the tape can still be used
    assert tape.memory().total == 0


def test_total_agrees_with_the_counters(counted_memory):
    x = tf.constant(1.0) * ones(64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sin(tf.exp(x)) * tf.tanh(x))
    del x
    kept = tape.memory().total
    before = tf.config.memory_info()["live_bytes"]
    tape._release()
    assert before - tf.config.memory_info()["live_bytes"] == kept
    assert kept == 3 * 64 * KB  # results of exp, sin and tanh
    del y


def test_each_buffer_counts_once():
    x = ones(4)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(x) + tf.cos(x) + tf.reshape(x, [-1, 2])[:, 0][0] * tf.sin(tf.reshape(x, [-1]))
    assert tape.memory().by_op["sin"].bytes == 4 * KB
    assert tape.memory().by_op["cos"].bytes == 0
    del y


def test_variables_are_counted_apart():
    w = tf.Variable(tf.ones([32, 32]))
    x = tf.Variable(tf.ones([1, 32]))
    with tf.GradientTape() as tape:
        y = x @ w
    memory = tape.memory()
    assert memory.total == 0
    assert memory.variables == 4 * KB + 128
    assert "shares 4.1 KB with variables" in str(memory)
    del y


def test_by_line():
    with tf.debug.lines():
        x = tf.Variable(ones(8))
        with tf.GradientTape() as tape:
            y = tf.exp(x)  # the first
            z = tf.reduce_sum(tf.sqrt(y + 1.0))  # the second
        memory = tape.memory()
    texts = {line.text: kept for line, kept in memory.by_line.items()}
    assert texts["y = tf.exp(x)  # the first"].bytes == 8 * KB
    assert texts["z = tf.reduce_sum(tf.sqrt(y + 1.0))  # the second"] == (8 * KB, 1, 3)
    assert "# the second" in str(memory)
    assert "test_memory.py" in str(memory)
    del z


def test_a_compiled_function_is_one_record():
    @tf.function
    def f(x):
        return tf.reduce_sum(tf.exp(x) * tf.sin(x))

    x = tf.Variable(ones(4))
    with tf.GradientTape() as tape:
        y = f(x)
    memory = tape.memory()
    assert memory.by_op["function"].records == 1
    assert memory.by_op["function"].bytes >= 4 * KB
    assert tape.gradient(y, x) is not None


def test_empty():
    with tf.GradientTape() as tape:
        pass
    assert str(tape.memory()) == "The tape keeps 0 B in 0 records."
    assert tf.GradientTape().memory().total == 0


def test_lines_are_known_after_their_context():
    x = tf.Variable(tf.ones([3]))
    with tf.debug.lines(), tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.tanh(x))  # this line
    assert any("# this line" in line.text for line in tape.memory().by_line if line is not None)
    with tf.debug.lines(), tf.GradientTape() as other:
        tf.tanh(x)
    assert set(tape.memory().by_line) == {None} and None not in other.memory().by_line
    assert tape.gradient(loss, x) is not None
