"""Restoring objects that are created later: attributes, lists, dictionaries, in functions; each only once."""

import copy
import pickle

import pytest

import gradtape as tf


class Dense(tf.Module):
    """Makes its variables at the first call, as layers do."""

    def __init__(self, units):
        super().__init__()
        self.units = units
        self.w = None

    def __call__(self, x):
        if self.w is None:
            self.w = tf.Variable(tf.zeros([x.shape[-1], self.units]))
            self.b = tf.Variable(tf.zeros([self.units]))
        return x @ self.w + self.b


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.first = Dense(3)
        self.rest = []

    def __call__(self, x):
        y = self.first(x)
        if not self.rest:
            self.rest.append(Dense(2))
        return self.rest[0](y)


X = tf.ones([1, 4])


@pytest.fixture
def saved(tmp_path):
    net = Net()
    net(X)
    for i, v in enumerate(net.variables):
        v.assign(tf.fill(v.shape, i + 1.0))
    return net, tf.train.Checkpoint(net=net).save(tmp_path / "ck")


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
def test_layers_built_at_their_first_call(saved, traced):
    net, path = saved
    fresh = Net()
    status = tf.train.Checkpoint(net=fresh).restore(path)
    status.assert_existing_objects_matched()
    with pytest.raises(AssertionError):
        status.assert_consumed()
    y = (tf.function(fresh) if traced else fresh)(X)
    assert y.numpy().tolist() == net(X).numpy().tolist()
    status.assert_consumed()
    assert type(fresh) is Net and type(fresh.first) is Dense  # nothing is watched any more


def test_a_value_is_restored_once(saved):
    net, path = saved
    fresh = Dense(3)
    tf.train.Checkpoint(net=fresh).restore(path)  # with many values that wait for variables
    parent = tf.train.Checkpoint(net=Net())
    parent.restore(path)
    layer = parent.net.first
    layer.w = tf.Variable(tf.zeros([4, 3]))
    assert layer.w.numpy()[0, 0] == net.first.w.numpy()[0, 0]
    layer.w.assign(tf.fill([4, 3], 50.0))
    layer.w = layer.w
    assert layer.w.numpy()[0, 0] == 50.0
    layer.w = tf.Variable(tf.zeros([4, 3]))
    assert layer.w.numpy()[0, 0] == 0.0


def test_objects_added_to_the_checkpoint_itself(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=[tf.Variable(2.0)]).save(tmp_path / "ck")
    c = tf.train.Checkpoint()
    status = c.restore(path)
    c.a = tf.Variable(0.0)
    c.b = [tf.Variable(0.0)]
    assert [c.a.numpy(), c.b[0].numpy()] == [1.0, 2.0]
    status.assert_consumed()


def test_root_object(tmp_path):
    source = tf.Module()
    source.v = tf.Variable(3.0)
    path = tf.train.Checkpoint(source).save(tmp_path / "ck")
    late = tf.Module()
    status = tf.train.Checkpoint(late).restore(path)
    late.v = tf.Variable(0.0)
    assert late.v.numpy() == 3.0
    status.assert_consumed()


def test_lists_and_dictionaries(tmp_path):
    source = tf.Module()
    source.items = [tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0)]
    source.table = {"a": tf.Variable(4.0), "b": [tf.Variable(5.0)], "c": tf.Variable(6.0)}
    path = tf.train.Checkpoint(m=source).save(tmp_path / "ck")
    m = tf.Module()
    m.items, m.table = [], {"b": []}
    status = tf.train.Checkpoint(m=m).restore(path)
    m.items.append(tf.Variable(0.0))
    m.items += [tf.Variable(0.0)]
    m.items.extend([tf.Variable(0.0)])
    m.table["a"] = tf.Variable(0.0)
    m.table["b"].append(tf.Variable(0.0))
    m.table.update(c=tf.Variable(0.0))
    assert [v.numpy() for v in m.items] == [1.0, 2.0, 3.0]
    assert [m.table["a"].numpy(), m.table["b"][0].numpy(), m.table["c"].numpy()] == [4.0, 5.0, 6.0]
    status.assert_consumed()
    assert len(m.variables) == 6


def test_a_mismatch_is_reported_when_the_object_is_created(saved):
    _, path = saved
    fresh = Net()
    tf.train.Checkpoint(net=fresh).restore(path)
    with pytest.raises(ValueError, match="the checkpoint has net/first/w: float32"):
        fresh(tf.ones([1, 7]))


def test_the_newer_of_two_checkpoints_wins(tmp_path):
    v = tf.Variable(1.0)
    c = tf.train.Checkpoint(m={"v": v})
    first = c.save(tmp_path / "ck")
    v.assign(2.0)
    second = c.save(tmp_path / "ck")
    m = tf.Module()
    late = tf.train.Checkpoint(m=m)
    late.restore(second)
    late.restore(first)
    m.v = tf.Variable(0.0)
    assert m.v.numpy() == 1.0


def test_copies_and_pickles_wait_for_nothing(saved):
    _, path = saved
    layer = Dense(3)
    c = tf.train.Checkpoint(net={"first": layer})
    c.restore(path).expect_partial()
    assert type(layer) is not Dense and isinstance(layer, Dense) and type(layer).__name__ == "Dense"
    for twin in (copy.deepcopy(layer), copy.copy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(twin) is Dense and twin.units == 3
        twin(X)
        assert twin.w.numpy().max() == 0.0
    layer(X)
    assert layer.w.numpy().max() > 0.0 and type(layer) is Dense


def test_objects_that_cannot_be_watched_are_left_alone(tmp_path):
    class Slim:
        __slots__ = ("a", "_checkpoint")

        def _checkpoint_children(self):
            return {"a": self.a} if hasattr(self, "a") else {}

    source = Slim()
    source.a = tf.Variable(1.0)
    path = tf.train.Checkpoint(s=source).save(tmp_path / "ck")
    slim = Slim()
    status = tf.train.Checkpoint(s=slim).restore(path)
    slim.a = tf.Variable(0.0)
    assert slim.a.numpy() == 0.0
    with pytest.raises(AssertionError):
        status.assert_consumed()


def test_a_list_that_is_held_elsewhere_stays_the_same_list(tmp_path):
    """Layers are often appended to a list by its local name: the attribute has them, too."""
    source = tf.Module()
    source.layers = [tf.Variable(1.0), tf.Variable(2.0)]
    source.table = {"a": tf.Variable(3.0)}
    path = tf.train.Checkpoint(m=source).save(tmp_path / "ck")
    m = tf.Module()
    status = tf.train.Checkpoint(m=m).restore(path)
    m.layers = layers = []
    m.table = table = {}
    layers.append(tf.Variable(0.0))
    layers.append(tf.Variable(0.0))
    table["a"] = tf.Variable(0.0)
    status.assert_consumed()
    assert len(m.layers) == 2 and m.layers == layers and [*m.table] == ["a"]
    assert [x.numpy() for x in layers] == [1.0, 2.0] and table["a"].numpy() == 3.0
    m.layers.append(3)
    assert layers[2] == 3 and layers.pop() == 3 and len(m.layers) == 2
    twin = pickle.loads(pickle.dumps(m.layers[:0])), copy.copy(m.table)
    assert [type(x) for x in twin] == [list, dict]


def test_operations_of_watching_lists_and_dictionaries(tmp_path):
    """They behave as lists and dictionaries in every respect."""
    source = tf.Module()
    source.x, source.d = [tf.Variable(1.0)] * 1, {"a": tf.Variable(1.0)}
    path = tf.train.Checkpoint(m=source).save(tmp_path / "ck")
    m = tf.Module()
    m.x, m.d = [], {}
    tf.train.Checkpoint(m=m).restore(path).expect_partial()
    x, d = m.x, m.d
    assert type(x) is not list and type(d) is not dict
    x.extend([3, 1, 2])
    x.sort()
    assert x == [1, 2, 3] and x[::-1] == [3, 2, 1] and x + [4] == [1, 2, 3, 4] and 2 in x and x.index(3) == 2
    x.insert(0, 9)
    x.reverse()
    assert list(x) == [3, 2, 1, 9] and x.pop() == 9 and [*reversed(x)] == [1, 2, 3] and repr(x) == "[3, 2, 1]"
    del x[0]
    x *= 2
    assert x.count(1) == 2 and sorted(x) == [1, 1, 2, 2] and x.copy() == [2, 1, 2, 1]
    x.clear()
    assert not x and len(x) == 0 and m.x is x
    d.update(k=1)
    d |= {"j": 2}
    assert (
        d == {"k": 1, "j": 2}
        and d.get("k") == 1
        and list(d.items()) == [("k", 1), ("j", 2)]
        and m.d is not None
    )
    assert (
        d.setdefault("i", 3) == 3
        and d.pop("k") == 1
        and {**d} == {"j": 2, "i": 3}
        and repr(d) == "{'j': 2, 'i': 3}"
    )
