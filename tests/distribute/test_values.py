"""Values and variables of replicas: reducing, gathering, assigning, reading, saving and copying them."""

import contextlib
import copy
import pickle

import numpy as np
import pytest

import gradtape as tf

D = tf.distribute
A, R = tf.VariableAggregation, tf.VariableSynchronization.ON_READ
context = D.get_replica_context


def number():
    return tf.cast(context().replica_id_in_sync_group, tf.float32)


def local(value):
    return [np.asarray(x).tolist() for x in value.values]


def both(strategy, f):
    """Calls `f` in replicas: eagerly, and in a graph."""
    return [lambda: strategy.run(f), tf.function(lambda: strategy.run(f))]


# ---- values -----------------------------------------------------------------------------------------------


def test_values_of_replicas_are_no_tensor(two):
    x = two.run(number)
    assert isinstance(x, D.DistributedValues) and repr(x).startswith("PerReplica:{\n  0: <tf.Tensor")
    with pytest.raises(
        TypeError,
        match="one for each replica, and is not a tensor. Hint: strategy.experimental_local_results",
    ):
        np.asarray(x)
    with pytest.raises((TypeError, ValueError)):
        tf.constant(1.0) + x
    assert tf.nest.flatten([x, 1]) == [x, 1]
    assert len(tf.nest.flatten([x, 1], expand_composites=True)) == 3


def test_reduce(two):
    x = two.run(lambda: {"a": number() + 1.0, "b": tf.stack([number(), 10.0])})
    assert two.reduce("SUM", x, axis=None)["a"].numpy() == 3.0
    assert two.reduce(D.ReduceOp.MEAN, x, axis=None)["b"].numpy().tolist() == [0.5, 10.0]
    assert two.reduce("sum", x["b"], axis=0).numpy() == 21.0
    assert two.reduce("MEAN", x["b"], axis=0).numpy() == 5.25
    uneven = two.experimental_distribute_values_from_function(
        lambda c: tf.ones([c.replica_id_in_sync_group + 1]) * 2.0
    )
    assert two.reduce("MEAN", uneven, axis=0).numpy() == 2.0
    assert two.gather(uneven, axis=0).numpy().tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"expected float32\[1\], as in replica 0; got float32\[2\] in replica 1",
    ):
        two.reduce("SUM", uneven, axis=None)
    with pytest.raises(ValueError, match="A non-DistributedValues value 2.0 cannot be reduced"):
        two.reduce("SUM", 2.0, axis=None)
    assert two.reduce("MEAN", 2.0, axis=None).numpy() == 2.0 and two.reduce("SUM", 0, axis=None).numpy() == 0
    with pytest.raises(ValueError, match="'FOO' is not a valid ReduceOp"):
        two.reduce("FOO", x, axis=None)
    with pytest.raises(ValueError, match="an argument has 2 values; expected one for each of 3 replicas"):
        wide = D.MirroredStrategy.__new__(D.MirroredStrategy)
        D.Strategy.__init__(wide, devices=["CPU:0", "CPU:1", "CPU:2"])
        wide.run(lambda x: x, args=(uneven,))


def test_values_from_a_function(two):
    made = two.experimental_distribute_values_from_function(
        lambda c: {"n": c.num_replicas_in_sync, "i": tf.constant(c.replica_id_in_sync_group)}
    )
    assert made["n"] == 2 and local(made["i"]) == [0, 1]


def test_functions_take_and_give_values_of_replicas(two):
    x = two.run(lambda: number() + 1.0)
    traces = []

    @tf.function
    def f(pair, k):
        traces.append(k)
        doubled = two.run(lambda x: x * k, args=(pair["x"],))
        return {"doubled": doubled, "same": pair["x"], "sum": two.reduce("SUM", doubled, axis=None)}

    for _ in range(2):
        out = f({"x": x}, tf.constant(2.0))
        assert (
            local(out["doubled"]) == [2.0, 4.0]
            and local(out["same"]) == [1.0, 2.0]
            and out["sum"].numpy() == 6.0
        )
    assert len(traces) == 1
    concrete = f.get_concrete_function({"x": x}, tf.constant(2.0))
    assert concrete({"x": x}, tf.constant(3.0))["sum"].numpy() == 9.0
    assert isinstance(concrete.structured_outputs["doubled"], D.DistributedValues)
    assert local(tf.function(lambda x: x)(x)) == [1.0, 2.0]


@pytest.mark.parametrize("unknown", [False, True])
def test_values_of_replicas_in_loops_and_conditions(two, unknown):
    @tf.function(reduce_retracing=True)
    def f(x, steps, data):
        parts = two.run(lambda x: number() + tf.reduce_sum(x), args=(x,))
        for row in data:
            parts = two.run(lambda p, r: p + tf.reduce_sum(r), args=(parts, row))
        i = 0
        while i < steps:
            parts = two.run(lambda p: p * 2.0, args=(parts,))
            i += 1
        if steps > 1:
            both = {"p": parts}
        else:
            both = {"p": two.run(lambda p: -p, args=(parts,))}
        return both

    data = two.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(np.arange(8.0, dtype="f")).batch(4)
    )
    for n in (2, 3, 4) if unknown else (2,):
        x = tf.zeros([n])
        assert local(f(x, tf.constant(2), data)["p"]) == [40.0, 76.0]
        assert local(f(x, tf.constant(0), data)["p"]) == [-10.0, -19.0]


# ---- mirrored variables ------------------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [0, 1])
def test_assignments_are_aggregated(two, traced):
    with two.scope():
        vs = {how: tf.Variable(10.0, aggregation=how) for how in (A.MEAN, A.SUM, A.ONLY_FIRST_REPLICA)}

    def change(method):
        return lambda: [getattr(v, method)(number() + 1.0) for v in vs.values()]

    for method, want in (
        ("assign", [1.5, 3.0, 1.0]), ("assign_add", [3.0, 6.0, 2.0]), ("assign_sub", [1.5, 3.0, 1.0]),
    ):  # fmt: skip
        both(two, change(method))[traced]()
        assert [v.numpy() for v in vs.values()] == want


@pytest.mark.parametrize("traced", [0, 1])
def test_without_aggregation_replicas_must_agree(two, traced):
    with two.scope():
        v, w = tf.Variable([1.0, 2.0], name="kernel"), tf.Variable(0, name="count")
    both(two, lambda: (v.assign(v * 2.0), w.assign_add(1)))[traced]()
    assert v.numpy().tolist() == [2.0, 4.0] and w.numpy() == 1
    for change in (
        lambda: v.assign(v + number()), lambda: v.assign_add(v * number()), lambda: v.assign_sub([number(), 0.0]),
    ):  # fmt: skip
        with pytest.raises(
            ValueError,
            match=r"replicas give variable 'kernel:0' different values.*aggregation=.*in replica 0 and .* in replica 1",
        ):
            both(two, change)[traced]()
        assert v.numpy().tolist() == [2.0, 4.0]


def test_values_equal_by_construction_are_not_compared_in_a_run(two):
    with two.scope():
        v = tf.Variable([1.0, 2.0])
    f = tf.function(lambda: two.run(lambda: v.assign(v * 2.0 - tf.sin(v))))
    f()
    assert not any(node.name == "want_same" for node in f.get_concrete_function().graph.traced.nodes)


def test_reads_of_replicas_after_an_assignment(two):
    with two.scope():
        v = tf.Variable(1.0, aggregation=A.SUM)

    def change():
        before = v + 0.0
        v.assign(number() + 1.0)
        return before, v + 0.0

    for call in both(two, change):
        v.assign(1.0)
        assert [local(x) for x in call()] == [[1.0, 1.0], [3.0, 3.0]]


def test_scatters(two):
    with two.scope():
        v = tf.Variable([0.0, 0.0, 0.0])
        total = tf.Variable([0.0, 0.0, 0.0], aggregation=A.SUM)
        first = tf.Variable([0.0, 0.0, 0.0], aggregation=A.ONLY_FIRST_REPLICA)

    def rows(x):
        return tf.IndexedSlices(tf.reshape(x, [1]), [context().replica_id_in_sync_group], [3])

    two.run(lambda: v.scatter_add(tf.IndexedSlices([1.0, 2.0], [0, 2], [3])))
    two.run(lambda: total.scatter_add(rows(number() + 1.0)))
    two.run(lambda: first.scatter_update(rows(number() + 5.0)))
    two.run(lambda: v.scatter_nd_update([[1]], [7.0]))
    assert [x.numpy().tolist() for x in (v, total, first)] == [
        [1.0, 7.0, 2.0],
        [1.0, 2.0, 0.0],
        [5.0, 0.0, 0.0],
    ]
    with pytest.raises(ValueError, match="scatter_add: replicas give variable"):
        two.run(lambda: v.scatter_add(rows(1.0)))
    with pytest.raises(NotImplementedError, match="scatter_max: the updates of replicas cannot be added up"):
        two.run(lambda: total.scatter_max(rows(1.0)))


def test_variables_of_nobody_are_changed_by_each_replica(two):
    v = tf.Variable(0.0)
    two.run(lambda: v.assign_add(number() + 1.0))
    assert v.numpy() == 3.0


def test_variables_that_are_made_in_replicas(two):
    made = two.run(lambda: tf.Variable(number() + 5.0, aggregation=A.SUM, name="inside"))
    assert (
        isinstance(made, tf.Variable) and made.numpy() == 5.0 and two.extended.variable_created_in_scope(made)
    )
    two.run(lambda: made.assign(number() + 1.0))
    assert made.numpy() == 3.0

    class Lazy(tf.Module):
        v = None

        @tf.function
        def __call__(self):
            return two.run(self.step)

        def step(self):
            if self.v is None:
                self.v = tf.Variable(2.0)
            return self.v * (number() + 1.0)

    lazy = Lazy()
    assert local(lazy()) == [2.0, 4.0] and local(lazy()) == [2.0, 4.0]


def test_variables_are_variables(two, tmp_path):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([1.0, 2.0], name="w")
            self.seen = tf.Variable(0.0, aggregation=A.SUM, synchronization=R, name="seen")

    with two.scope():
        model = Model()
    assert len(model.variables) == 2 and model.trainable_variables == (model.w,)
    assert model.w.name == "w:0" and model.w.distribute_strategy is two
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model.w**2)
    assert tape.gradient(loss, model.w).numpy().tolist() == [2.0, 4.0]
    two.run(lambda: model.seen.assign_add(number() + 1.0))
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "c"))
    model.w.assign([0.0, 0.0])
    model.seen.assign(0.0)
    tf.train.Checkpoint(model=model).restore(path).assert_consumed()
    assert model.w.numpy().tolist() == [1.0, 2.0] and model.seen.numpy() == 3.0
    assert local(two.run(lambda: model.seen + 0.0)) == [1.5, 1.5]
    plain = Model()  # without a strategy
    tf.train.Checkpoint(model=plain).restore(path).assert_consumed()
    assert plain.seen.numpy() == 3.0
    assert pickle.loads(pickle.dumps(model.w)).numpy().tolist() == [1.0, 2.0]
    twin = copy.deepcopy(model)
    two.run(lambda: twin.seen.assign_add(1.0))
    assert twin.seen.numpy() == 5.0 and model.seen.numpy() == 3.0
    two.run(lambda: twin.w.assign([5.0, 5.0]))
    assert model.w.numpy().tolist() == [1.0, 2.0]


def test_update(two):
    with two.scope():
        v = tf.Variable(1.0)
    same = two.run(lambda: context().all_reduce("SUM", number() + 1.0))
    assert two.extended.update(v, lambda v, g: v.assign_sub(g), args=(same,)) is v and v.numpy() == -2.0
    with pytest.raises(
        ValueError, match=r"extended.update of 'Variable:0': replicas have different values; expected one"
    ):
        two.extended.update(v, lambda v, g: v.assign_sub(g), args=(two.run(number),))
    pairs = [(two.run(number), v), (same, v)]
    assert [x.numpy() for x in two.extended.batch_reduce_to("SUM", pairs)] == [1.0, 6.0]
    assert two.extended.reduce_to("MEAN", same, v).numpy() == 3.0
    assert two.extended.broadcast_to(v, None) is v and two.extended.value_container(v) is v
    assert two.extended.parameter_devices == ("/device:CPU:0", "/device:CPU:1")
    assert local(two.extended.call_for_each_replica(number)) == [0.0, 1.0]


# ---- one value in each replica -----------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [0, 1])
def test_on_read(two, traced):
    with two.scope():
        total = tf.Variable(4.0, aggregation=A.SUM, synchronization=R)
        count = tf.Variable(7, aggregation=A.SUM, synchronization=R)
    assert total.trainable is False and total.synchronization is R
    step = both(two, lambda: (total.assign_add(number() + 1.0), count.assign_add(1), total + 0.0)[2])[traced]
    assert local(step()) == [3.0, 4.0] and (total.numpy(), count.numpy()) == (7.0, 8)
    assert local(step()) == [4.0, 6.0] and total.numpy() == 10.0
    total.assign(1.0)
    assert local(step()) == [1.5, 2.5]
    with pytest.raises(
        ValueError, match=r"SyncOnReadVariable does not support `assign_sub` in cross-replica context"
    ):
        total.assign_sub(1.0)
    with pytest.raises(NotImplementedError, match="scatter"):
        total.scatter_nd_update(tf.zeros([1, 0], tf.int32), [1.0])
    cross = tf.function(lambda: (total.assign(6.0), total * 1.0)[1])
    assert cross().numpy() == 6.0 and local(two.run(lambda: total * 1.0)) == [3.0, 3.0]


def test_on_read_variables_that_are_not_touched_do_not_change(three):
    with three.scope():
        v = tf.Variable(1.0, aggregation=A.SUM, synchronization=R)
        w = tf.Variable(1.0, aggregation=A.SUM, synchronization=R)
    f = tf.function(lambda: three.run(lambda: w.assign_add(1.0)))
    f()
    assert v.numpy() == 1.0 and w.numpy() == 4.0
    graph = f.get_concrete_function()
    assert not any(e is v for e in graph.captured_inputs)


def test_on_read_variables_that_are_gone_are_forgotten(two):
    with two.scope():
        v = tf.Variable(1.0, aggregation=A.SUM, synchronization=R)
    del v
    two.run(lambda: 1)
    assert two._on_read == {}


def test_an_error_leaves_values_of_replicas_as_they_are_then(two):
    with two.scope():
        v = tf.Variable(0.0, aggregation=A.SUM, synchronization=R)
        w = tf.Variable(5.0, aggregation=A.SUM, synchronization=R)

    def step():
        v.assign_add(1.0)
        if number() == 1.0:
            raise OSError

    with pytest.raises(OSError):
        two.run(step)
    assert v.numpy() == 2.0 and w.numpy() == 5.0
    assert local(two.run(lambda: v + 0.0)) == [1.0, 1.0]


def test_on_read_variables_that_are_made_in_a_run(two):
    made = []

    def step():
        if not made or len(made) < 2 and number() == 1.0:
            made.append(tf.Variable(0.0, aggregation=A.SUM, synchronization=R))
        made[0].assign_add(number() + 1.0)
        return made[0] + 0.0

    assert local(two.run(step)) == [1.0, 2.0] and made[0] is made[1] and made[0].numpy() == 3.0
    assert local(two.run(step)) == [2.0, 4.0] and made[0].numpy() == 6.0


def test_on_read_variables_that_are_made_between_replicas_in_a_run(two):
    made = []

    def make(strategy):
        made.append(tf.Variable(0.0, aggregation=A.SUM, synchronization=R))

    def step():
        context().merge_call(make)
        made[0].assign_add(number() + 1.0)

    two.run(step)
    assert made[0].numpy() == 3.0 and local(two.run(lambda: made[0] + 0.0)) == [1.0, 2.0]


def test_losses_are_shared_by_replicas(two):
    def losses():
        each = tf.constant([1.0, 3.0, 8.0])
        return (
            tf.nn.compute_average_loss(each),
            tf.nn.compute_average_loss(each, sample_weight=[1.0, 0.0, 2.0]),
            tf.nn.compute_average_loss(each, global_batch_size=12),
            tf.nn.scale_regularization_loss(tf.constant([4.0, 2.0])),
        )

    # As TensorFlow 2.21 has them: 12 of 6 elements, 17 of 6, 12 of 12, half of 6.
    for found in (two.run(losses), tf.function(lambda: two.run(losses))()):
        got = [[float(x) for x in two.experimental_local_results(value)] for value in found]
        np.testing.assert_allclose(got, [[2.0] * 2, [17 / 6] * 2, [1.0] * 2, [3.0] * 2])
    with two.scope(), pytest.raises(RuntimeError, match="expected to be called in replica context"):
        tf.nn.compute_average_loss(tf.ones([2]))


def test_variables_know_those_of_the_replicas(two):
    on_read = {
        "synchronization": tf.VariableSynchronization.ON_READ,
        "aggregation": tf.VariableAggregation.ONLY_FIRST_REPLICA,
    }
    for strategy, n in ((D.MirroredStrategy(["CPU:0"]), 1), (two, 2)):
        with strategy.scope():
            v, w = tf.Variable(1.0), tf.Variable(2.0, **on_read)
        assert len(v.values) == len(w.values) == n and v._values is not None and w._primary is w.values[0]
        assert {x.synchronization for x in w.values} == {tf.VariableSynchronization.ON_READ}
        strategy.run(lambda v=v, w=w: (v.assign(3.0), w.assign_add(1.0)))
        assert [float(x.read_value()) for x in (*v._values, *w._values)] == [3.0] * 2 * n
    with D.OneDeviceStrategy("CPU:0").scope():
        assert not hasattr(tf.Variable(1.0), "values")


def test_a_strategy_may_open_more_in_its_scope():
    def with_mean(next_creator, **kwargs):
        return next_creator(**{**kwargs, "aggregation": tf.VariableAggregation.MEAN})

    class Means(D.MirroredStrategy):
        @contextlib.contextmanager
        def scope(self):
            with super().scope(), tf.variable_creator_scope(with_mean):
                yield

    made = []
    Means(["CPU:0"]).run(lambda: made.append(tf.Variable(1.0)))
    assert made[0].aggregation is tf.VariableAggregation.MEAN
