"""tf.train.Checkpoint: names of saved values, restoring, and error messages."""

import logging
import weakref

import numpy as np
import pytest

import gradtape as tf

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64", "complex64", "complex128",
]  # fmt: skip


class Block(tf.Module):
    def __init__(self, value):
        super().__init__()
        self.w = tf.Variable([value, 2.0 * value])


class Net(tf.Module):
    def __init__(self, value=0.0):
        super().__init__()
        self.blocks = [Block(value + 1), {"inner": Block(value + 2)}]
        self.pair = (tf.Variable(value),)
        self.units = 3
        self._hidden = tf.Variable(int(value))


def names(path):
    return [n.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE") for n, _ in tf.train.list_variables(path)]


def values(net):
    return [v.numpy().tolist() for v in net.variables]


def test_d3_names_of_files_and_variables(tmp_path):
    c = tf.train.Checkpoint(net=Net(), step=tf.Variable(7))
    path = c.save(tmp_path / "ck")
    assert path == str(tmp_path / "ck-1")
    assert {p.name for p in tmp_path.iterdir()} == {"checkpoint", "ck-1.safetensors", "ck-1.index"}
    assert names(path) == [
        "net/_hidden", "net/blocks/0/w", "net/blocks/1/inner/w", "net/pair/0", "save_counter", "step",
    ]  # fmt: skip
    assert tf.train.list_variables(path)[1] == ("net/blocks/0/w/.ATTRIBUTES/VARIABLE_VALUE", [2])
    assert tf.train.load_variable(path, "step/.ATTRIBUTES/VARIABLE_VALUE") == 7
    assert tf.train.load_variable(str(tmp_path), "step") == 7
    assert (tmp_path / "checkpoint").read_text() == (
        'model_checkpoint_path: "ck-1"\nall_model_checkpoint_paths: "ck-1"\n'
    )


def test_d3_round_trip(tmp_path):
    path = tf.train.Checkpoint(net=Net(5.0)).save(tmp_path / "ck")
    net = Net()
    status = tf.train.Checkpoint(net=net).restore(path)
    assert status.assert_consumed() is status
    assert values(net) == values(Net(5.0))
    assert net._hidden.numpy() == 5


def test_d3_save_counter_counts_and_is_restored(tmp_path):
    v = tf.Variable(1.0)
    c = tf.train.Checkpoint(v=v)
    assert c.save_counter.numpy() == 0 and c.save_counter.dtype == tf.int64
    assert [c.save(tmp_path / "a"), c.save(tmp_path / "a")] == [str(tmp_path / "a-1"), str(tmp_path / "a-2")]
    again = tf.train.Checkpoint(v=v)
    again.restore(tf.train.latest_checkpoint(tmp_path))
    assert again.save_counter.numpy() == 2
    assert again.save(tmp_path / "a") == str(tmp_path / "a-3")


def test_d3_write_and_read_do_not_count(tmp_path):
    v = tf.Variable([1.0, 2.0])
    c = tf.train.Checkpoint(v=v)
    assert c.write(tmp_path / "new" / "raw") == str(tmp_path / "new" / "raw")
    assert names(tmp_path / "new" / "raw") == ["v"]
    assert tf.train.latest_checkpoint(tmp_path / "new") is None
    v.assign([0.0, 0.0])
    c.read(tmp_path / "new" / "raw").assert_consumed()
    assert v.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_and_shape(tmp_path, dtype):
    made = [tf.cast(tf.reshape(tf.range(6), [2, 3]), dtype), tf.cast(1, dtype), tf.zeros([0, 2], dtype)]
    saved = [tf.Variable(t) for t in made]
    path = tf.train.Checkpoint(v=saved).save(tmp_path / "ck")
    fresh = [tf.Variable(tf.zeros_like(t)) for t in made]
    tf.train.Checkpoint(v=fresh).restore(path).assert_consumed()
    for a, b in zip(saved, fresh, strict=True):
        assert b.dtype == a.dtype and np.array_equal(a.numpy(), b.numpy())
    reader = tf.train.load_checkpoint(path)
    assert reader.get_variable_to_dtype_map()["v/0/.ATTRIBUTES/VARIABLE_VALUE"] == dtype
    assert reader.get_variable_to_shape_map()["v/0/.ATTRIBUTES/VARIABLE_VALUE"] == [2, 3]


# ---- what does not fit --------------------------------------------------------------------------


def test_shape_mismatch_names_the_key_and_both_shapes_and_changes_nothing(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable([1.0, 2.0]), c=tf.Variable(3.0)).save(
        tmp_path / "ck"
    )
    a, b, c = tf.Variable(0.0), tf.Variable([0.0, 0.0, 0.0]), tf.Variable(0.0)
    with pytest.raises(ValueError, match=r"incompatible tensor with shape \(2,\) .* shape \(3,\)") as e:
        tf.train.Checkpoint(a=a, b=b, c=c).restore(path)
    assert "the checkpoint has b: float32[2], the program float32[3]" in str(e.value)
    assert [v.numpy().tolist() for v in (a, b, c)] == [0.0, [0.0, 0.0, 0.0], 0.0]


def test_type_mismatch(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1), b=tf.Variable(1)).save(tmp_path / "ck")
    a, b = tf.Variable(0), tf.Variable(0.0)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="expected dtype float32 .* original dtype int32"
    ):
        tf.train.Checkpoint(a=a, b=b).restore(path)
    assert a.numpy() == 0


def test_a_variable_of_unknown_shape_takes_any_that_fits(tmp_path):
    path = tf.train.Checkpoint(v=tf.Variable(tf.ones([4, 3]))).save(tmp_path / "ck")
    v = tf.Variable(tf.zeros([1, 3]), shape=[None, 3])
    tf.train.Checkpoint(v=v).restore(path).assert_consumed()
    assert v.numpy().shape == (4, 3)
    with pytest.raises(ValueError, match="incompatible"):
        tf.train.Checkpoint(v=tf.Variable(tf.zeros([1, 2]), shape=[None, 2])).restore(path)


def test_missing_files(tmp_path):
    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    with pytest.raises(tf.errors.NotFoundError, match=r"missing the checkpoint suffix \(e.g. the '-1'"):
        c.restore(tmp_path / "none")
    with pytest.raises(tf.errors.NotFoundError, match="Failed to find any matching files"):
        c.read(tmp_path / "none")
    with pytest.raises(tf.errors.NotFoundError, match="Could not find checkpoint"):
        c.restore(tmp_path)
    with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file"):
        tf.train.load_checkpoint(tmp_path)
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.list_variables(tmp_path / "none")
    path = c.save(tmp_path / "ck")
    with pytest.raises(tf.errors.NotFoundError, match="Key w not found in checkpoint"):
        tf.train.load_variable(path, "w")
    assert not tf.train.load_checkpoint(path).has_tensor("w")


def test_a_folder_means_its_newest(tmp_path):
    v = tf.Variable(1.0)
    c = tf.train.Checkpoint(v=v)
    c.save(tmp_path / "ck")
    v.assign(2.0)
    c.save(tmp_path / "ck")
    v.assign(0.0)
    c.restore(tmp_path)
    assert v.numpy() == 2.0


def test_d3_restoring_nothing():
    status = tf.train.Checkpoint(v=tf.Variable(1.0)).restore(None)
    assert status.expect_partial() is status
    for check in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match=r"No checkpoint specified \(save_path=None\)"):
            check()


def test_assertions_of_the_status(tmp_path):
    path = tf.train.Checkpoint(net=Net(), step=tf.Variable(1)).save(tmp_path / "ck")
    status = tf.train.Checkpoint(net=Net()).restore(path)
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root\).step"):
        status.assert_consumed()
    assert status.assert_existing_objects_matched() is status
    assert status.assert_nontrivial_match() is status
    more = tf.train.Checkpoint(net=Net(), step=tf.Variable(1), extra=tf.Variable(1.0)).restore(path)
    with pytest.raises(AssertionError, match="Found 1 Python objects that were not bound"):
        more.assert_existing_objects_matched()
    raw = tf.train.Checkpoint(net=Net()).write(tmp_path / "raw")
    with pytest.raises(AssertionError, match="Nothing except the root"):
        tf.train.Checkpoint(other=tf.Variable(1.0)).read(raw).expect_partial().assert_nontrivial_match()


def test_unused_values_give_a_warning_unless_expected(tmp_path, caplog):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).save(tmp_path / "ck")

    def restore(then):
        then(tf.train.Checkpoint(a=tf.Variable(0.0)).restore(path))
        __import__("gc").collect()

    with caplog.at_level(logging.WARNING, "gradtape"):
        restore(lambda status: status.expect_partial())
        assert not caplog.records
        restore(lambda status: None)
    assert "were not used by any object: b." in caplog.text


@pytest.mark.parametrize("bad", [3, "text", None, lambda x: x, np.zeros(3), tf.Module])
def test_objects_without_state_are_rejected(bad):
    with pytest.raises(ValueError, match="expecting thing to be a trackable object"):
        tf.train.Checkpoint(thing=bad)


def test_one_name_for_two_objects():
    with pytest.raises(ValueError, match="'w' is given twice"):
        tf.train.Checkpoint(Block(1.0), w=tf.Variable(1.0))


# ---- kinds of objects -----------------------------------------------------------------------------


def test_root_object(tmp_path):
    block = Block(1.0)
    path = tf.train.Checkpoint(block, step=tf.Variable(3)).write(tmp_path / "ck")
    assert names(path) == ["step", "w"]
    other = Block(9.0)
    tf.train.Checkpoint(root=other).read(path).expect_partial().assert_existing_objects_matched()
    assert other.w.numpy().tolist() == [1.0, 2.0]


def test_shared_objects_are_saved_once_and_found_by_either_name(tmp_path):
    net = Block(1.0)
    path = tf.train.Checkpoint(a=net, b=[net], me=net).save(tmp_path / "ck")
    assert names(path) == ["a/w", "save_counter"]
    other = Block(7.0)
    tf.train.Checkpoint(b=[other]).restore(path).assert_consumed()
    assert other.w.numpy().tolist() == [1.0, 2.0]


def test_cycles(tmp_path):
    net = Block(1.0)
    net.parent = net
    path = tf.train.Checkpoint(net=net).save(tmp_path / "ck")
    other = Block(5.0)
    other.parent = other
    tf.train.Checkpoint(net=other).restore(path).assert_consumed()
    assert other.w.numpy().tolist() == [1.0, 2.0]


def test_a_class_of_ones_own(tmp_path):
    class Agent:
        def __init__(self, value):
            self.policy = Block(value)
            self.count = tf.Variable(int(value))
            self.name = "agent"

    path = tf.train.Checkpoint(agent=Agent(4.0)).save(tmp_path / "ck")
    agent = Agent(0.0)
    tf.train.Checkpoint(agent=agent).restore(path).assert_consumed()
    assert agent.count.numpy() == 4 and agent.policy.w.numpy().tolist() == [4.0, 8.0]


def test_dictionary_keys(tmp_path):
    path = tf.train.Checkpoint(d={"a/b.c": tf.Variable(1), 3: tf.Variable(2), "x": 5}).save(tmp_path / "ck")
    assert names(path) == ["d/3", "d/a.Sb..c", "save_counter"]
    fresh = {"a/b.c": tf.Variable(0), 3: tf.Variable(0)}
    tf.train.Checkpoint(d=fresh).restore(path).assert_consumed()
    assert [v.numpy() for v in fresh.values()] == [1, 2]
    with pytest.raises(ValueError, match="expected text or integers"):
        tf.train.Checkpoint(d={(1, 2): tf.Variable(1)}).save(tmp_path / "bad")


def test_checkpoint_in_a_checkpoint(tmp_path):
    inner = tf.train.Checkpoint(v=tf.Variable(3.0))
    path = tf.train.Checkpoint(inner=inner).save(tmp_path / "ck")
    inner.v.assign(0.0)
    tf.train.Checkpoint(inner=inner).restore(path)
    assert inner.v.numpy() == 3.0


def test_random_generator(tmp_path):
    g = tf.random.Generator.from_seed(1)
    g.normal([3])
    c = tf.train.Checkpoint(g=g)
    path = c.save(tmp_path / "ck")
    expected = g.normal([2]).numpy()
    c.restore(path).assert_consumed()
    assert np.array_equal(g.normal([2]).numpy(), expected)


def test_python_state(tmp_path):
    class Words(tf.train.experimental.PythonState):
        def __init__(self, words):
            self.words = words

        def serialize(self):
            return "\n".join(self.words)

        def deserialize(self, string_value):
            self.words = string_value.split("\n")

    path = tf.train.Checkpoint(words=Words(["a", "ü"])).save(tmp_path / "ck")
    words = Words([])
    tf.train.Checkpoint(words=words).restore(path).assert_consumed()
    assert words.words == ["a", "ü"]


def test_inside_a_tape_and_with_compiled_steps(tmp_path):
    v = tf.Variable(2.0)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            y = v * v
        v.assign_sub(0.25 * tape.gradient(y, v))
        return v.value()

    c = tf.train.Checkpoint(v=v)
    path = c.save(tmp_path / "ck")
    assert [step().numpy(), step().numpy()] == [1.0, 0.5]
    with tf.GradientTape() as tape:
        c.restore(path)
        y = v * 3.0
    assert tape.gradient(y, v).numpy() == 3.0
    assert step().numpy() == 1.0


# ---- optimizers -----------------------------------------------------------------------------------


def train(net, optimizer, steps):
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum((v - 1.0) ** 2) for v in net.trainable_variables])
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


class Two(tf.Module):
    def __init__(self):
        super().__init__()
        self.a = tf.Variable([3.0, -2.0])
        self.b = tf.Variable([[5.0], [4.0]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.optimizers.Adam(0.1),
        lambda: tf.optimizers.SGD(0.1, momentum=0.9),
        lambda: tf.optimizers.Nadam(0.1),
    ],
    ids=["adam", "sgd", "nadam"],
)
@pytest.mark.parametrize("built", [False, True], ids=["late", "built"])
def test_training_continues_as_if_it_had_not_stopped(tmp_path, make, built):
    net, optimizer = Two(), make()
    train(net, optimizer, 3)
    path = tf.train.Checkpoint(net=net, optimizer=optimizer).save(tmp_path / "ck")
    train(net, optimizer, 3)
    again, other = Two(), make()
    if built:
        other.build(again.trainable_variables)
    status = tf.train.Checkpoint(net=again, optimizer=other).restore(path)
    train(again, other, 3)
    status.assert_consumed()
    assert values(again) == values(net)
    assert other.iterations.numpy() == 6
    assert type(other) is type(optimizer)


def test_slots_are_named_after_their_variables(tmp_path):
    net, optimizer = Two(), tf.optimizers.Adam(0.1)
    train(net, optimizer, 1)
    path = tf.train.Checkpoint(net=net, optimizer=optimizer).save(tmp_path / "ck")
    assert "optimizer/slots/net/a/momentum" in names(path)
    # In another order, and only one of them: the slot still belongs to its variable.
    again, other = Two(), tf.optimizers.Adam(0.1)
    other.build([again.b])
    tf.train.Checkpoint(net=again, optimizer=other).restore(path).expect_partial()
    assert np.array_equal(other.get_slot(again.b, "m").numpy(), optimizer.get_slot(net.b, "m").numpy())
    other.build([again.a])
    assert np.array_equal(other.get_slot(again.a, "v").numpy(), optimizer.get_slot(net.a, "v").numpy())


def test_an_optimizer_alone(tmp_path):
    net, optimizer = Two(), tf.optimizers.Adam(0.1)
    train(net, optimizer, 2)
    path = tf.train.Checkpoint(optimizer).save(tmp_path / "ck")
    other = tf.optimizers.Adam(0.5)
    tf.train.Checkpoint(other).restore(path)
    assert other.learning_rate.numpy() == np.float32(0.1)
    other.build(net.trainable_variables)
    assert [v.numpy().tolist() for v in other.variables] == [v.numpy().tolist() for v in optimizer.variables]


def test_a_step_inside_a_function(tmp_path):
    net, optimizer = Two(), tf.optimizers.Adam(0.1)
    train(net, optimizer, 2)
    path = tf.train.Checkpoint(net=net, optimizer=optimizer).save(tmp_path / "ck")
    train(net, optimizer, 2)
    again, other = Two(), tf.optimizers.Adam(0.1)
    tf.train.Checkpoint(net=again, optimizer=other).restore(path)
    step = tf.function(lambda: train(again, other, 1))
    step()
    step()
    np.testing.assert_allclose(again.a.numpy(), net.a.numpy(), rtol=1e-6)


def test_options(tmp_path):
    seen = []
    options = tf.train.CheckpointOptions(
        enable_async=True,
        experimental_write_callbacks=[seen.append, lambda: seen.append("done")],
        experimental_skip_slot_variables=True,
    )
    net, optimizer = Two(), tf.optimizers.Adam(0.1)
    train(net, optimizer, 1)
    path = tf.train.Checkpoint(net=net, optimizer=optimizer).save(tmp_path / "ck", options)
    assert seen == [path, "done"] and not [n for n in names(path) if "slots" in n]


def test_an_iterator_of_a_dataset_continues_where_it_was(tmp_path):
    def state():
        dataset = tf.data.Dataset.range(20).shuffle(20, seed=3).batch(2)
        return tf.train.Checkpoint(step=tf.Variable(0), iterator=iter(dataset))

    first = state()
    seen = [next(first.iterator).numpy().tolist() for _ in range(3)]
    path = first.save(tmp_path / "ck")
    rest = [x.numpy().tolist() for x in first.iterator]
    again = state()
    again.restore(path).assert_consumed()
    assert [x.numpy().tolist() for x in again.iterator] == rest
    assert sorted(sum(seen + rest, [])) == list(range(20))


# ---- layers of another library ----------------------------------------------------------------------


class ForeignVariable:
    """A variable that is not a tf.Variable, such as Keras' own."""

    trainable = True

    def __init__(self, value):
        self._value = np.array(value, np.float32)

    dtype = property(lambda self: "float32")
    shape = property(lambda self: self._value.shape)

    def numpy(self):
        return self._value

    def assign(self, value):
        self._value = np.array(value)


class Layer:
    """Refers to its variables twice, creates them late, and overrides attribute access."""

    def __init__(self):
        self._weights = []

    def __setattr__(self, name, value):
        if isinstance(value, ForeignVariable):
            self._weights.append(value)
        object.__setattr__(self, name, value)

    variables = trainable_variables = property(lambda self: list(self._weights))

    def build(self, value):
        self.kernel = ForeignVariable([value])


class ForeignOptimizer:
    def __init__(self):
        self._variables = [ForeignVariable(0.0)]
        self.model_variables = []

    variables = property(lambda self: list(self._variables))

    def build(self, variables):
        self.model_variables = list(variables)
        self._variables += [ForeignVariable(np.zeros(v.shape)) for v in variables]

    def apply_gradients(self, pairs):
        self._variables[0].assign(self._variables[0].numpy() + 1)
        for slot, (g, _) in zip(self._variables[1:], pairs, strict=True):
            slot.assign(slot.numpy() + g)


@pytest.mark.parametrize("late", [False, True])
def test_objects_of_another_library(tmp_path, late):
    layer, optimizer = Layer(), ForeignOptimizer()
    layer.build(3.0)
    optimizer.build(layer.variables)
    optimizer.apply_gradients([(2.0, layer.kernel)])
    path = tf.train.Checkpoint(model={"layer": layer}, optimizer=optimizer).save(tmp_path / "ck")
    assert names(path) == [
        "model/layer/kernel",
        "optimizer/_variables/0",
        "optimizer/_variables/1",
        "save_counter",
    ]
    fresh, other = Layer(), ForeignOptimizer()
    if not late:
        fresh.build(0.0)
        other.build(fresh.variables)
    status = tf.train.Checkpoint(model={"layer": fresh}, optimizer=other).restore(path)
    if late:
        fresh.build(0.0)
        other.build(fresh.variables)
    status.assert_consumed()
    assert fresh.kernel.numpy() == 3.0 and [v.numpy().item() for v in other.variables] == [1.0, 2.0]
    assert type(fresh) is Layer and type(other) is ForeignOptimizer


def test_the_root_may_be_a_weak_reference(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(root=weakref.ref(module))
    path = checkpoint.write(str(tmp_path / "ckpt"))
    module.v.assign(2.0)
    checkpoint.read(path).assert_consumed()
    assert module.v == 1.0
    other = Root()
    with pytest.raises(ValueError, match="expecting root to be a trackable"):
        tf.train.Checkpoint(root=weakref.ref(other))


class Root:
    """An object that a checkpoint does not accept."""
