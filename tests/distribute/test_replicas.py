"""How replicas run: in turns, meeting in collectives, with the contexts of the calling thread, without hanging."""

import contextlib
import contextvars
import signal
import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.base import scopes

D = tf.distribute
context = D.get_replica_context


def number():
    return tf.cast(context().replica_id_in_sync_group, tf.float32)


def local(value):
    """The values of all replicas, as Python numbers and lists."""
    parts = value.values if isinstance(value, D.DistributedValues) else (value,)
    return [np.asarray(x).tolist() for x in parts]


# ---- the replica context ----------------------------------------------------------------------------------


def test_each_replica_has_its_number_and_device(three):
    seen = []

    def ask():
        c = context()
        seen.append((c.num_replicas_in_sync, c.devices, c.strategy is three, D.in_cross_replica_context()))
        return c.replica_id_in_sync_group

    ids = three.run(ask)
    assert local(ids) == [0, 1, 2] and all(isinstance(x, tf.Tensor) for x in ids.values)
    assert seen == [(3, (f"/device:CPU:{i}",), True, False) for i in range(3)]
    assert three.num_replicas_in_sync == 3 and three.extended.worker_devices[2] == "/device:CPU:2"


def test_replicas_take_turns_in_their_order(three):
    order = []

    def step():
        r = int(context().replica_id_in_sync_group)
        for phase in range(3):
            order.append((phase, r))
            context().all_reduce("SUM", 1.0)

    three.run(step)
    assert order == [(phase, r) for phase in range(3) for r in range(3)]


def test_arguments_are_taken_apart_and_results_put_together(two):
    parts = two.experimental_distribute_values_from_function(
        lambda c: tf.constant(c.replica_id_in_sync_group + 1.0)
    )
    out = two.run(
        lambda a, b, k: {"sum": a["x"] + b, "k": k, "none": None},
        args=({"x": parts}, 10.0),
        kwargs={"k": "word"},
    )
    assert local(out["sum"]) == [11.0, 12.0] and out["k"] == "word" and out["none"] is None
    assert [d["sum"].numpy() for d in two.experimental_local_results(out)] == [11.0, 12.0]


def test_one_replica_has_no_thread():
    strategy = D.MirroredStrategy(["CPU:0"])
    assert strategy.run(threading.get_ident) == threading.get_ident()


def test_contexts_of_the_caller_hold_in_replicas(two):
    word = contextvars.ContextVar("word", default="none")
    word.set("some")
    made = []

    def creator(make, **kwargs):
        made.append(kwargs["name"])
        return make(**kwargs)

    def look():
        return scopes.current_scope(), word.get(), len(scopes.creators.now()), _core.current_trace() is None

    with tf.name_scope("model"), tf.variable_creator_scope(creator):
        seen = two.run(look)
        two.run(lambda: tf.Variable(1.0, name="v"))
    # Our creator, and that of the strategy.
    assert tuple(seen) == ("model/", "some", 2, True)
    assert made == ["v"]
    with two.scope():
        assert two.run(lambda: context() is not None)


def test_random_numbers_differ_between_replicas_unless_they_are_stateless(two):
    tf.random.set_seed(3)
    a = two.run(lambda: (tf.random.normal([4]), tf.random.stateless_normal([4], seed=[1, 2])))
    tf.random.set_seed(3)
    b = two.run(lambda: (tf.random.normal([4]), tf.random.stateless_normal([4], seed=[1, 2])))
    first, second = local(a[0])
    assert first != second and local(a[1])[0] == local(a[1])[1]
    assert local(b[0]) == [first, second]
    traced = tf.function(lambda: two.run(lambda: tf.random.normal([4])))
    first, second = local(traced())
    assert first != second


# ---- together ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [False, True])
def test_all_reduce_and_all_gather_of_nests(three, traced):
    def step():
        i = number()
        sums = context().all_reduce("SUM", {"a": i, "b": [i * 10.0, tf.stack([i, 1.0])]})
        rows = context().all_gather([tf.fill([int(context()._replica_id) + 1], i)], axis=0)
        return sums, context().all_reduce(D.ReduceOp.MEAN, i), rows

    run = (lambda: three.run(step)) if not traced else tf.function(lambda: three.run(step))
    sums, mean, rows = run()
    assert (
        local(sums["a"]) == [3.0] * 3
        and local(sums["b"][1]) == [[3.0, 3.0]] * 3
        and local(sums["b"][0]) == [30.0] * 3
    )
    assert local(mean) == [1.0] * 3
    assert local(rows[0]) == [[0.0, 1.0, 1.0, 2.0, 2.0, 2.0]] * 3


def gradients(step, strategy, how):
    """What `step` returns in each replica: eagerly, as one graph, as a function of a replica, twice each."""
    function = tf.function(step)
    call = {
        "eager": lambda: strategy.run(step),
        "graph": tf.function(lambda: strategy.run(step)),
        "function": lambda: strategy.run(function),
        "inside": lambda: strategy.run(lambda: function()),
    }[how]
    first, second = call(), call()
    assert local(first) == local(second)
    return local(first)


HOW = ["eager", "graph", "function", "inside"]


@pytest.mark.parametrize("how", HOW)
def test_gradients_of_all_reduce(two, how):
    def step(op="SUM"):
        x = tf.constant([2.0, 3.0]) * (number() + 1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(context().all_reduce(op, x * x)) * (number() + 1.0)
        return tape.gradient(loss, x)

    # The cotangents are 1 and 2: their sum is 3, their mean 1.5.
    assert gradients(step, two, how) == [[12.0, 18.0], [24.0, 36.0]]
    assert gradients(lambda: step("MEAN"), two, how) == [[6.0, 9.0], [12.0, 18.0]]


@pytest.mark.parametrize("how", HOW)
def test_gradients_of_all_gather(two, how):
    weights = tf.constant([1.0, 2.0, 3.0, 4.0])

    def step():
        x = tf.constant([2.0, 3.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(context().all_gather(x * x, axis=0) * weights) * (number() + 1.0)
        return tape.gradient(loss, x)

    # Each replica has its own part of the sum of cotangents, 3 * weights.
    assert gradients(step, two, how) == [[12.0, 36.0], [36.0, 72.0]]


@pytest.mark.parametrize("how", HOW)
def test_second_derivatives(two, how):
    def step():
        x = tf.constant(2.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = context().all_reduce("SUM", x * x * x)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)

    assert gradients(step, two, how) == [24.0, 24.0]


@pytest.mark.parametrize("traced", [False, True])
def test_a_tape_around_the_run_sees_one_program(two, traced):
    w = tf.Variable(3.0)

    def losses():
        parts = two.run(lambda: context().all_reduce("SUM", w * w * (number() + 1.0)))
        return two.reduce("SUM", parts, axis=None)

    losses = tf.function(losses) if traced else losses
    with tf.GradientTape() as tape:
        loss = losses()
    assert loss.numpy() == 54.0 and tape.gradient(loss, w).numpy() == 36.0


def test_sparse_gradients_are_put_together(two):
    table = tf.Variable(tf.zeros([4, 2]))

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, [context().replica_id_in_sync_group, 3]))
        return context().all_reduce("MEAN", tape.gradient(loss, table))

    for call in (lambda: two.run(step), tf.function(lambda: two.run(step))):
        g = two.experimental_local_results(call())[1]
        assert isinstance(g, tf.IndexedSlices)
        assert tf.convert_to_tensor(g).numpy()[:, 0].tolist() == [0.5, 0.5, 0.0, 1.0]


def test_merge_call_is_called_once_between_replicas(two):
    calls = []

    def merge(strategy, x, k=1.0):
        calls.append((strategy is two, D.in_cross_replica_context(), local(x)))
        return strategy.reduce("SUM", x, axis=None) * k, x

    total, own = two.run(lambda: context().merge_call(merge, args=(number(),), kwargs={"k": 2.0}))
    assert calls == [(True, True, [0.0, 1.0])] and total.numpy() == 2.0 and local(own) == [0.0, 1.0]


def test_a_graph_has_step_and_exchange(two):
    @tf.function
    def f(x):
        return two.run(lambda x: context().all_reduce("SUM", x * (number() + 1.0)), args=(x,))

    assert local(f(tf.constant(2.0))) == [6.0, 6.0]
    assert not any(
        "collective" in node.name or "callback" in node.name
        for node in f.get_concrete_function(tf.constant(2.0)).graph.traced.nodes
    )


# ---- functions inside of replicas ---------------------------------------------------------------------------


def test_a_function_of_a_replica_knows_its_number(two):
    f = tf.function(lambda x: x * (number() + 1.0))
    assert local(two.run(lambda: f(tf.constant(5.0)))) == [5.0, 10.0]
    assert f(tf.constant(5.0)).numpy() == 5.0  # outside of replicas
    assert local(two.run(lambda: f(tf.constant(5.0)))) == [5.0, 10.0]


def test_a_function_of_a_replica_meets_the_others_when_it_runs(two):
    with two.scope():
        mean = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
        same = tf.Variable(0.0)

    @tf.function
    def f(x):
        total = context().all_reduce("SUM", x * (number() + 1.0))
        mean.assign_add(number())
        same.assign(total)
        return total

    for step in range(1, 4):
        out = two.run(lambda s=step: (f(tf.constant(1.0 * s)), f(tf.constant(2.0 * s))))
        assert [local(x) for x in out] == [[3.0 * step] * 2, [6.0 * step] * 2]
        assert (mean.numpy(), same.numpy()) == (1.0 * step, 6.0 * step)
    g = tf.function(lambda: same.assign(number()))
    with pytest.raises(ValueError, match=r"assign: replicas give variable 'Variable:0' different values"):
        two.run(lambda: g())


def test_functions_of_unknown_sizes(two):
    with two.scope():
        w, total = tf.Variable([[1.0], [2.0]]), tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((x @ w) ** 2)
        g = context().all_reduce("SUM", tape.gradient(loss, w))
        total.assign(tf.reduce_sum(x))
        positive = tf.boolean_mask(x, x > 0.0)
        return g, tf.reduce_sum(positive) + context().all_reduce("SUM", tf.reduce_sum(positive))

    @tf.function(reduce_retracing=True)
    def f(x):
        return two.run(step, args=(x,))

    for n in (4, 5, 7, 2, 4, 5, 1):
        x = np.arange(2.0 * n, dtype="f").reshape(n, 2) - 3.0
        parts = list(two.experimental_distribute_dataset(tf.data.Dataset.from_tensors(x)))[0]
        g, sums = f(parts)
        want = 2 * x.T @ (x @ [[1.0], [2.0]])
        assert np.allclose(local(g), [want, want]), n
        positive = [np.maximum(p, 0).sum() for p in (x[: -(-n // 2)], x[-(-n // 2) :])]
        assert np.allclose(local(sums), [p + sum(positive) for p in positive]) and np.isclose(
            total.numpy(), x.sum()
        )


# ---- conditions ------------------------------------------------------------------------------------------------


def test_replicas_meet_in_conditions(two):
    """Gradient accumulation, with a step every third time."""
    with two.scope():
        w, count = tf.Variable(1.0), tf.Variable(0)
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
        seen = tf.Variable(
            0.0, aggregation=tf.VariableAggregation.SUM, synchronization=tf.VariableSynchronization.ON_READ
        )
        optimizer = tf.optimizers.SGD(0.1, momentum=0.9)

    def step(x):
        with tf.GradientTape() as tape:
            loss = w * w * x
        total.assign_add(tape.gradient(loss, w))
        count.assign_add(1)
        mean = -x
        if count % 3 == 0:
            optimizer.apply_gradients([(total / 2.0, w)])
            total.assign(0.0)
            if count > 3:
                mean = context().all_reduce("MEAN", x)
        else:
            seen.assign_add(x)
        return mean

    train = tf.function(lambda x: two.run(step, args=(x,)))
    parts = two.experimental_distribute_values_from_function(
        lambda c: tf.constant(1.0 + c.replica_id_in_sync_group)
    )
    means = [local(train(parts)) for _ in range(6)]
    assert means == [[-1.0, -2.0]] * 5 + [[1.5, 1.5]]
    # Gradients are 2w and 4w, three times; then both replicas apply half of it.
    velocity, value = 0.0, 1.0
    for _ in range(2):
        velocity = 0.9 * velocity - 0.1 * 18.0 * value
        value += velocity
    assert w.numpy() == pytest.approx(value) and total.numpy() == 0.0 and seen.numpy() == 12.0


def test_conditions_of_single_replicas(two):
    f = tf.function(
        lambda: two.run(lambda: tf.cond(number() + tf.random.uniform([]) > 1.0, lambda: 1.0, lambda: 0.0))
    )
    assert local(f()) == [0.0, 1.0]
    parts = two.experimental_distribute_values_from_function(
        lambda c: tf.constant(c.replica_id_in_sync_group == 1)
    )
    meet = tf.function(
        lambda c: two.run(
            lambda c: tf.cond(c, lambda: context().all_reduce("SUM", 1.0), lambda: 0.0), args=(c,)
        )
    )
    with pytest.raises(
        ValueError,
        match="cond: replicas take different branches, one with collective operations.*False in replica 0 and True in "
        "replica 1",
    ):
        meet(parts)
    assert local(meet(tf.constant(True))) == [2.0, 2.0] and local(meet(tf.constant(False))) == [0.0, 0.0]
    switch = tf.function(
        lambda i: two.run(
            lambda: tf.switch_case(i, [lambda: context().all_reduce("SUM", number()), lambda: number()])
        )
    )
    assert local(switch(tf.constant(0))) == [1.0, 1.0] and local(switch(tf.constant(1))) == [0.0, 1.0]


def test_where_replicas_cannot_meet(two):
    def loop():
        x = tf.constant(0.0)
        while x < 3.0:
            x += context().all_reduce("SUM", 1.0)
        return x

    def taped(c):
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cond(c, lambda: context().all_reduce("SUM", x * x), lambda: x)
        return tape.gradient(y, x)

    def returns():
        return 0.0 if context()._replica_id else context().all_reduce("SUM", 1.0)

    def fails():
        context().all_reduce("SUM", 1.0)
        raise OSError("in a branch")

    yes = tf.constant(True)
    for f in (lambda c: two.run(loop), lambda c: two.run(taped, args=(c,))):
        with pytest.raises(
            NotImplementedError,
            match="a replica cannot run collective operations in a loop.*tf.cond under a tape",
        ):
            tf.function(f)(yes)
    with pytest.raises(RuntimeError, match="replica 0 waits for cond with 2 ways.*replica 1 has returned"):
        tf.function(lambda c: two.run(lambda: tf.cond(c, returns, lambda: 0.0)))(yes)
    with pytest.raises(OSError, match="in a branch"):
        tf.function(lambda c: two.run(lambda: tf.cond(c, fails, lambda: None)))(yes)


# ---- errors -------------------------------------------------------------------------------------------------


def only(r):
    return int(context().replica_id_in_sync_group) == r


def test_an_error_is_raised_once_and_ends_the_others(two):
    ended = []

    def step():
        if only(1):
            raise KeyError("boom")
        try:
            context().all_reduce("SUM", 1.0)
        finally:
            ended.append(True)

    with pytest.raises(KeyError, match="boom") as caught:
        two.run(step)
    assert ended == [True] and any(entry.name == "step" for entry in caught.traceback)
    with pytest.raises(ZeroDivisionError):
        tf.function(lambda: two.run(lambda: 1 / 0))()
    assert local(two.run(lambda: context().all_reduce("SUM", 1.0))) == [2.0, 2.0]


def test_an_error_of_what_replicas_do_together_shows_who_asked(two):
    def merge(strategy):
        raise OSError("no")

    def asks():
        context().merge_call(merge)

    with pytest.raises(OSError, match="no") as caught:
        two.run(asks)
    assert {"asks", "merge"} <= {entry.name for entry in caught.traceback}


def test_replicas_that_do_different_things_raise_an_error(two):
    with pytest.raises(
        RuntimeError,
        match=r"replica 0 waits for all_reduce SUM of float32\[\] \(.*test_replicas.py:\d+\); replica 1 has returned",
    ):
        two.run(lambda: None if only(1) else context().all_reduce("SUM", 1.0))
    with pytest.raises(
        RuntimeError, match="replica 0 waits for all_reduce SUM.*; replica 1 waits for all_reduce MEAN"
    ):
        two.run(lambda: context().all_reduce("MEAN" if only(1) else "SUM", 1.0))
    with pytest.raises(RuntimeError, match=r"SUM of float32\[1\].*SUM of float32\[2\]"):
        two.run(lambda: context().all_reduce("SUM", tf.zeros([2 if only(1) else 1])))

    def one(s):
        return 1

    def other(s):
        return 2

    with pytest.raises(
        RuntimeError, match="replica 0 waits for merge_call of one.*replica 1 waits for merge_call of other"
    ):
        two.run(lambda: context().merge_call(other if only(1) else one))


def test_results_of_different_structures(two):
    with pytest.raises(
        ValueError,
        match=r"strategy.run: replicas gave results of different structures; expected \{'a': 'Tensor'\}",
    ):
        two.run(lambda: [1] if only(1) else {"a": tf.constant(1)})


def test_runs_inside_of_runs(two):
    other, v = D.OneDeviceStrategy("CPU:0"), tf.Variable(1.0)
    for f in (
        lambda: two.run(lambda: 1),
        lambda: two.reduce("SUM", tf.constant(1.0), axis=None),
        lambda: two.gather(tf.constant([1.0]), axis=0),
        lambda: two.scope(),
        lambda: two.extended.update(v, lambda v: v),
    ):
        with pytest.raises(RuntimeError, match="cross-replica context"):
            two.run(f)
    with pytest.raises(RuntimeError, match="Mixing different tf.distribute.Strategy objects"):
        two.run(lambda: other.run(lambda: 1))


def test_meeting_in_the_wrong_place(two):
    kept = []
    two.run(lambda: kept.append(context()))
    with pytest.raises(
        RuntimeError, match="collective operations run only in the threads of replicas.*after its end"
    ):
        kept[0].all_reduce("SUM", 1.0)

    def in_a_thread():
        mine, said = context(), []

        def ask():
            try:
                mine.all_reduce("SUM", 1.0)
            except RuntimeError as e:
                said.append(str(e))

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        return said[0]

    assert all("this is another thread" in words for words in two.run(in_a_thread).values)

    def generator():
        yield context().all_reduce("SUM", 1.0)

    with pytest.raises(TypeError, match="the function is a generator"):
        two.run(generator)

    def tape():
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = context().all_reduce("SUM", x)
        kept[:] = [tape, y, x]

    two.run(tape)
    with pytest.raises(RuntimeError, match="ask for gradients in the replica whose tape recorded"):
        kept[0].gradient(kept[1], kept[2])


def test_wrong_devices():
    with pytest.raises(
        ValueError, match=r"MirroredStrategy: there is no device 'CPU:7'; expected some of \['/device:CPU:0'"
    ):
        D.MirroredStrategy(["CPU:0", "CPU:7"])
    with pytest.raises(ValueError, match="is given twice"):
        D.MirroredStrategy(["CPU:0", "/cpu:0"])
    with pytest.raises(ValueError, match="there is no device"):
        D.MirroredStrategy([])
    assert D.MirroredStrategy(["/job:localhost/replica:0/task:0/device:CPU:0"]).num_replicas_in_sync == 1


def test_ctrl_c_ends_all_replicas(two):
    ended = []

    def step():
        try:
            if only(0):
                context().all_reduce("SUM", 1.0)
            signal.raise_signal(signal.SIGINT)  # the main thread gets it
            while True:
                pass
        finally:
            ended.append(int(context().replica_id_in_sync_group))

    with pytest.raises(KeyboardInterrupt):
        two.run(step)
    assert sorted(ended) == [0, 1]
    assert local(two.run(lambda: context().all_reduce("SUM", 1.0))) == [2.0, 2.0]


def test_strategies_do_not_disturb_each_other(two, three):
    strategies = [two, three, D.MirroredStrategy(), D.OneDeviceStrategy("CPU:0")]
    made = []
    for s in strategies:
        with s.scope():
            made.append(tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM))
    step = tf.function(
        lambda: [s.run(lambda v=v: v.assign(number() + 1.0)) for s, v in zip(strategies, made, strict=True)]
    )
    for _ in range(2):
        step()
        assert [v.numpy() for v in made] == [3.0, 6.0, 6.0, 1.0]
    assert [s.extended.variable_created_in_scope(made[0]) for s in strategies] == [True, False, False, False]


def test_threads_of_the_program_may_run_a_strategy_at_once(two):
    with two.scope():
        total = tf.Variable(
            0.0, aggregation=tf.VariableAggregation.SUM, synchronization=tf.VariableSynchronization.ON_READ
        )
    results = []

    def work():
        for _ in range(10):
            two.run(lambda: total.assign_add(context().all_reduce("SUM", 1.0)))
        results.append(True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [True] * 4 and total.numpy() == 160.0


def test_the_scope_is_left_whatever_happens(two):
    with contextlib.suppress(ZeroDivisionError), two.scope():
        1 / 0  # noqa: B018
    assert not D.has_strategy() and scopes.creators.now() == ()


def test_a_strategy_that_is_set_for_good(two):
    D.experimental_set_strategy(two)
    try:
        v = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)
        assert D.get_strategy() is two and D.in_cross_replica_context()
        two.run(lambda: v.assign(number() + 1.0))
        assert v.numpy() == 3.0 and two.extended.variable_created_in_scope(v)
    finally:
        D.experimental_set_strategy(None)
    assert not D.has_strategy() and scopes.creators.now() == ()


def test_summaries_and_counters_of_a_thread_hold_in_replicas(two, tmp_path):
    with tf.summary.create_file_writer(str(tmp_path)).as_default(step=7):
        assert local(two.run(lambda: tf.constant(tf.summary.experimental.get_step()))) == [7, 7]
        assert two.run(lambda: tf.summary.scalar("loss", number())) is not None
