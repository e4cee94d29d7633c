"""Restoring a checkpoint into objects that are created later: attributes, lists, dictionaries, tuples, modules in them."""

import collections

import pytest

from .lib import tf

Pair = collections.namedtuple("Pair", "a b")


def v(x=0.0):
    return tf.Variable(float(x))


def restored(tmp_path, build, fill):
    """The values of the variables that `fill` creates after a restore, and whether the checkpoint was used completely."""
    source = tf.Module()
    build(source)
    path = tf.train.Checkpoint(source).save(str(tmp_path / "ck"))
    module = tf.Module()
    status = tf.train.Checkpoint(module).restore(path)
    values = [float(x.numpy()) for x in fill(module)]
    try:
        status.assert_consumed()
    except AssertionError:
        status.expect_partial()
        return values, False
    return values, True


def listed(m):
    m.x = [v(1), v(2), v(3)]


def append(m):
    m.x = []
    for _ in range(3):
        m.x.append(v())
    return m.x


def extend(m):
    m.x = []
    m.x.extend([v(), v(), v()])
    return m.x


def add(m):
    m.x = []
    m.x += [v(), v(), v()]
    return m.x


def partly_there(m):
    m.x = [v()]
    m.x.append(v())
    m.x = m.x
    m.x.append(v())
    return m.x


def under_another_name(m):
    m.x = []
    same = m.x
    same.append(v())
    m.x.append(v())
    same.append(v())
    assert len(m.x) == 3
    return m.x


def placeholders(m):
    m.x = [None, None, None]
    for k in range(3):
        m.x[k] = v()
    return m.x


def values_are_restored_once(m):
    m.x = []
    for _ in range(3):
        m.x.append(v())
    m.x[0].assign(50.0)
    m.x = list(m.x)
    return m.x


@pytest.mark.parametrize(
    "fill, expected",
    [
        (append, [1, 2, 3]),
        (extend, [1, 2, 3]),
        (add, [1, 2, 3]),
        (partly_there, [1, 2, 3]),
        (under_another_name, [1, 2, 3]),
        (placeholders, [1, 2, 3]),
        (values_are_restored_once, [50, 2, 3]),
    ],
)
def test_lists(tmp_path, fill, expected):
    assert restored(tmp_path, listed, fill) == (expected, True)


def test_a_second_list_of_the_name_is_another_one(tmp_path):
    def fill(m):
        m.x = []
        m.x = []
        m.x.append(v())
        return m.x

    assert restored(tmp_path, listed, fill) == ([0], False)


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_dictionaries(tmp_path, kind):
    def build(m):
        m.x = kind(a=v(1), b=v(2), c=v(3))

    def fill(m):
        m.x = kind()
        m.x["a"] = v()
        m.x.update({"b": v()})
        m.x.update(c=v())
        return m.x.values()

    assert restored(tmp_path, build, fill) == ([1, 2, 3], True)


@pytest.mark.parametrize("kind", [lambda *parts: parts, Pair], ids=["tuple", "namedtuple"])
def test_tuples(tmp_path, kind):
    def build(m):
        m.x, m.y = kind(v(1), v(2)), kind([v(3)], {"a": v(4)})

    def fill(m):
        m.x, m.y = kind(v(), v()), kind([], {})
        m.y[0].append(v())
        m.y[1]["a"] = v()
        return [*m.x, m.y[0][0], m.y[1]["a"]]

    assert restored(tmp_path, build, fill) == ([1, 2, 3, 4], True)


def test_lists_in_lists(tmp_path):
    def build(m):
        m.x = [[v(1), {"k": v(2)}], (v(3), [v(4)])]

    def fill(m):
        m.x = []
        m.x.append([])
        m.x[0].append(v())
        m.x[0].append({})
        m.x[0][1]["k"] = v()
        m.x.append((v(), []))
        m.x[1][1].append(v())
        return m.x[0][0], m.x[0][1]["k"], m.x[1][0], m.x[1][1][0]

    assert restored(tmp_path, build, fill) == ([1, 2, 3, 4], True)


@pytest.mark.parametrize("before", [False, True], ids=["put there empty", "put there with its lists"])
def test_modules_in_modules(tmp_path, before):
    def build(m):
        m.part = tf.Module()
        m.part.x, m.part.inner = [v(1)], tf.Module()
        m.part.inner.t = {"q": [v(2), v(3)]}

    def fill(m):
        part = tf.Module()
        if not before:
            m.part = part
        part.x, part.inner = [], tf.Module()
        part.inner.t = {"q": []}
        if before:
            m.part = part
        part.x.append(v())
        part.inner.t["q"].append(v())
        part.inner.t["q"].append(v())
        return [part.x[0], *part.inner.t["q"]]

    assert restored(tmp_path, build, fill) == ([1, 2, 3], True)


def test_modules_in_lists(tmp_path):
    def build(m):
        m.layers = [tf.Module() for _ in range(3)]
        for k, layer in enumerate(m.layers):
            layer.w, layer.parts = v(k + 1), [v(10 + k)]

    def fill(m):
        m.layers = []
        for _ in range(3):
            layer = tf.Module()
            m.layers.append(layer)
            layer.w, layer.parts = v(), []
            layer.parts.append(v())
        return [x.w for x in m.layers] + [x.parts[0] for x in m.layers]

    assert restored(tmp_path, build, fill) == ([1, 2, 3, 10, 11, 12], True)


def shared(m):
    m.a = v(5)
    m.x = [m.a, v(6)]
    m.d = {"z": m.x}


def test_shared_objects_stay_shared(tmp_path):
    def fill(m):
        m.a, m.x, m.d = v(), [], {}
        m.x.append(m.a)
        m.x.append(v())
        m.d["z"] = m.x
        return m.a, m.x[0], m.x[1], m.d["z"][1]

    assert restored(tmp_path, shared, fill) == ([5, 5, 6, 6], True)

    def in_another_order(m):
        m.d = {}
        m.d["z"] = []
        m.d["z"].append(v())
        m.d["z"].append(v())
        m.x = m.d["z"]
        m.a = m.x[0]
        return m.a, m.x[0], m.x[1], m.d["z"][1]

    assert restored(tmp_path, shared, in_another_order) == ([5, 5, 6, 6], True)


def test_of_two_in_the_place_of_one_the_first_is_restored(tmp_path):
    def fill(m):
        m.a, m.x, m.d = v(), [], {"z": []}
        m.x.append(v())
        m.x.append(v())
        m.d["z"].append(v())
        return m.a, m.x[0], m.x[1], m.d["z"][0]

    assert restored(tmp_path, shared, fill) == ([5, 0, 6, 0], False)


def test_attributes_of_the_checkpoint(tmp_path):
    path = tf.train.Checkpoint(listed=[v(1), v(2)], t={"a": v(3)}).save(str(tmp_path / "ck"))
    r = tf.train.Checkpoint()
    status = r.restore(path)
    r.listed, r.t = [], {}
    r.listed.append(v())
    r.listed.append(v())
    r.t["a"] = v()
    status.assert_consumed()
    assert [float(x.numpy()) for x in (*r.listed, r.t["a"])] == [1, 2, 3]


def test_other_things_stay_where_they_are(tmp_path):
    def build(m):
        m.x = [None, v(1), "s", v(2)]

    def fill(m):
        m.x = []
        for part in (None, v(), "s", v()):
            m.x.append(part)
        assert isinstance(m.x, list) and m.x[0] is None and m.x[2] == "s" and len(m.x) == 4
        assert [type(p) for p in m.x][::2] == [type(None), str]
        return m.x[1], m.x[3]

    assert restored(tmp_path, build, fill) == ([1, 2], True)
