"""Tables that programs write to: their contents, in functions, in checkpoints; TensorFlow's values."""

import threading

import pytest

import gradtape as tf

Mutable, Dense = tf.lookup.experimental.MutableHashTable, tf.lookup.experimental.DenseHashTable


def strings():
    return Mutable(tf.string, tf.int64, -1)


def test_contents():
    t = strings()
    t.insert(["a", "b"], [1, 2])
    assert t.lookup(tf.constant(["a", "c"])).numpy().tolist() == [1, -1]
    t.insert(["a"], [7])
    assert t.lookup(["a"]).numpy().tolist() == [7] and int(t.size()) == 2
    t.remove(tf.constant(["a", "nobody"]))
    keys, values = t.export()
    assert (keys.numpy().tolist(), values.numpy().tolist()) == ([b"b"], [2])
    assert t.lookup(tf.constant(["z", "b"]), tf.constant([7, 8], tf.int64)).numpy().tolist() == [7, 2]


def test_vectors():
    t = Mutable(tf.int64, tf.float32, [0.0, 0.0])
    t.insert([1, 2], [[1.0, 2.0], [3.0, 4.0]])
    assert t.lookup(tf.constant([[2, 9]], tf.int64)).numpy().tolist() == [[[3.0, 4.0], [0.0, 0.0]]]
    defaults = tf.constant([[9.0, 9.0], [8.0, 8.0]])
    assert t.lookup(tf.constant([1, 7], tf.int64), defaults).numpy().tolist() == [[1.0, 2.0], [8.0, 8.0]]
    assert t.export()[1].shape == (2, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected shape \[1, 2\] for value, got \[1\]"):
        t.insert([1], [1.0])


def test_refused():
    t = strings()
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape"):
        t.insert(["a"], [1, 2])
    with pytest.raises(ValueError, match="requested dtype int64"):
        t.insert(tf.constant(["a"]), tf.constant([5]))
    with pytest.raises(ValueError, match="requested dtype string"):
        t.lookup(tf.constant([1]))
    with pytest.raises(TypeError, match="keys"):
        t.remove(tf.constant([1]))
    assert int(t.size()) == 0


def test_in_functions():
    t = strings()

    @tf.function
    def f(keys, values):
        before = t.size()
        t.insert(keys, values)
        return before, t.lookup(keys), t.size()

    out = f(tf.constant(["x"]), tf.constant([5], tf.int64))
    assert [int(x) for x in (out[0], out[1][0], out[2])] == [0, 5, 1]
    out = f(tf.constant(["y", "x"]), tf.constant([6, 7], tf.int64))
    assert [x.numpy().tolist() for x in out] == [1, [6, 7], 2]
    keys, values = tf.function(t.export)()
    assert (keys.numpy().tolist(), values.numpy().tolist()) == ([b"x", b"y"], [7, 6])


def test_written_with_unknown_sizes():
    t = strings()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def count(words):
        found, _, counts = tf.unique_with_counts(words, tf.int64)
        t.insert(found, t.lookup(found, tf.zeros_like(counts)) + counts)

    for words in (["a", "b", "a"], ["a"]):
        count(tf.constant(words))
    assert t.lookup(tf.constant(["a", "b"])).numpy().tolist() == [3, 1]


def test_dense_tables():
    t = Dense(tf.string, tf.int64, -1, "", "#")
    t.insert(["a", "b"], [1, 2])
    t.insert_or_assign(["c"], [3])
    t.erase(tf.constant(["a"]))
    assert int(t.size()) == 2 and t.lookup(tf.constant(["a", "c"])).numpy().tolist() == [-1, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Using the empty_key"):
        t.insert(["x", ""], [1, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Using the deleted_key"):
        t.lookup(tf.constant(["#"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be equal"):
        Dense(tf.int64, tf.int64, -1, 0, 0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="power of 2, got: 7"):
        Dense(tf.int64, tf.int64, -1, 0, -1, initial_num_buckets=7)


def test_checkpoints(tmp_path):
    class Holder(tf.Module):
        def __init__(self):
            self.words = strings()
            self.vectors = Dense(tf.int64, tf.float32, [0.0, 0.0], -1, -2)

    holder = Holder()
    holder.words.insert(["k", ""], [4, 5])
    holder.vectors.insert([5], [[6.0, 7.0]])
    path = tf.train.Checkpoint(holder=holder).save(str(tmp_path / "c"))
    holder.words.insert(["z"], [9])
    for target in (holder, Holder()):
        tf.train.Checkpoint(holder=target).restore(path).assert_consumed()
        assert target.words.lookup(tf.constant(["k", "", "z"])).numpy().tolist() == [4, 5, -1]
        assert target.vectors.lookup(tf.constant([5], tf.int64)).numpy().tolist() == [[6.0, 7.0]]
        assert int(target.words.size()) == 2


def test_threads():
    t = Mutable(tf.int64, tf.int64, -1)

    def write(k):
        for i in range(100):
            t.insert([k * 100 + i], [i])

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(t.size()) == 400
