"""Features around a training program: strategies, versions, tf.compat, tf.saved_model, stubs that say so."""

import json
import logging
import sys
import textwrap

import numpy as np
import pytest

import gradtape as tf

D = tf.distribute
v1 = tf.compat.v1


# ---- tf.distribute --------------------------------------------------------------------------------


def test_d5_a_strategy_has_one_replica():
    strategy = D.MirroredStrategy()
    assert strategy.num_replicas_in_sync == 1 and not D.has_strategy()
    assert D.get_replica_context().num_replicas_in_sync == 1 and not D.in_cross_replica_context()
    with strategy.scope() as inside:
        assert inside is strategy is D.get_strategy() and D.has_strategy()
        assert D.get_replica_context() is None and D.in_cross_replica_context()
        with strategy.scope():
            pass
        with pytest.raises(RuntimeError, match="Mixing different tf.distribute.Strategy"):
            D.OneDeviceStrategy("/cpu:0").scope()
    assert D.get_strategy().num_replicas_in_sync == 1 and not D.has_strategy()


def test_d5_run_and_reduce():
    strategy = D.MirroredStrategy()
    seen = []

    def step(x, factor=1.0):
        context = D.get_replica_context()
        seen.append(
            (
                context.strategy is strategy,
                int(context.replica_id_in_sync_group),
                D.in_cross_replica_context(),
            )
        )
        total = context.all_reduce(D.ReduceOp.SUM, x)
        both = context.all_reduce("mean", [x, x])
        merged = context.merge_call(lambda s, y: (s is strategy) * y, args=(x,))
        return factor * (total + both[1] + merged + context.all_gather(x, axis=0))

    x = tf.constant([1.0, 2.0])
    assert strategy.run(step, args=(x,), kwargs={"factor": 2.0}).numpy().tolist() == [8.0, 16.0]
    assert seen == [(True, 0, False)]
    assert strategy.reduce(D.ReduceOp.SUM, x, axis=None).numpy().tolist() == [1.0, 2.0]
    assert strategy.reduce("SUM", x, axis=0).numpy() == 3.0
    assert strategy.reduce(D.ReduceOp.MEAN, {"a": x}, axis=0)["a"].numpy() == 1.5
    assert strategy.experimental_local_results(x) == (x,) and strategy.gather(x, axis=0) is x
    with pytest.raises(ValueError, match="'FOO' is not a valid ReduceOp"):
        strategy.reduce("foo", x, axis=None)


def test_d5_training_in_a_strategy():
    strategy = D.MirroredStrategy()
    with strategy.scope():
        v, optimizer = tf.Variable(4.0), tf.optimizers.SGD(0.25)

    @tf.function
    def train(x):
        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((v * x) ** 2)
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])
            return loss

        return strategy.reduce(D.ReduceOp.SUM, strategy.run(step, args=(x,)), axis=None)

    assert [train(tf.constant([1.0])).numpy() for _ in range(3)] == [16.0, 4.0, 1.0]
    assert strategy.extended.update(v, lambda var, d: var.assign_add(d), args=(1.0,)) is v


def test_d5_datasets_are_returned_unchanged():
    strategy = D.MirroredStrategy()
    rows = [1, 2]
    assert strategy.experimental_distribute_dataset(rows) is rows
    made = strategy.distribute_datasets_from_function(lambda c: c.get_per_replica_batch_size(8))
    assert made == 8
    assert strategy.experimental_distribute_values_from_function(lambda c: c.num_replicas_in_sync) == 1
    with pytest.raises(ValueError, match="not divisible by `num_replicas_in_sync` 4"):
        D.InputContext(2, 1, 4).get_per_replica_batch_size(7)


def test_parameter_servers_are_refused_and_workers_without_a_cluster_are_not(monkeypatch):
    assert D.MultiWorkerMirroredStrategy().num_replicas_in_sync == 1
    assert D.experimental.CentralStorageStrategy().num_replicas_in_sync == 1
    monkeypatch.setenv(
        "TF_CONFIG",
        json.dumps({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}),
    )
    resolver = D.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == ("worker", 1) and resolver.cluster_spec().num_tasks(
        "worker"
    ) == 2
    for make in (
        lambda: D.ParameterServerStrategy(resolver), D.Server.create_local_server,
        lambda: D.coordinator.ClusterCoordinator(None),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match="not kept on servers.*MultiWorkerMirroredStrategy"):
            make()


def test_there_is_no_tpu():
    """A ValueError, for which programs fall back to another strategy."""
    for make in (
        D.cluster_resolver.TPUClusterResolver, lambda: D.cluster_resolver.TPUClusterResolver(tpu=""), D.TPUStrategy,
        D.experimental.TPUStrategy, tf.tpu.experimental.initialize_tpu_system,
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Please provide a TPU Name to connect to"):
            make()


def test_options_of_strategies():
    D.MirroredStrategy(["/cpu:0"], cross_device_ops=D.HierarchicalCopyAllReduce(num_packs=2))
    D.MirroredStrategy(cross_device_ops=D.ReductionToOneDevice())
    E = D.experimental
    assert (
        E.CommunicationOptions(implementation=E.CollectiveCommunication.RING).implementation.value == "RING"
    )
    shape = tf.TensorShape([4, 3])
    assert E.partitioners.MinSizePartitioner(4, max_shards=2)(shape, tf.float32) == [2, 1]
    assert E.partitioners.FixedShardsPartitioner(2)(shape, tf.float32) == [2, 1]
    assert E.partitioners.MaxSizePartitioner(16)(tf.TensorShape([10, 3]), tf.float32) == [10, 1]
    D.experimental_set_strategy(D.OneDeviceStrategy("/cpu:0"))
    assert D.has_strategy()
    D.experimental_set_strategy(None)
    assert not D.has_strategy()


# ---- versions and other questions -------------------------------------------------------------------


def test_versions():
    """What programs do with `tf.__version__`."""
    v = tf.__version__
    assert v.startswith("2.") and v >= "2.0" and int(v.split(".")[0]) == 2 and v[0] == "2"
    assert tuple(map(int, v.split("+")[0].split("."))) >= (2, 0, 0)
    assert tf.version.VERSION == "2.21.0" and tf.compat.v2.__version__ == v == v1.__version__
    assert "gradtape" in v


def test_logger_and_build(caplog):
    assert tf.get_logger().name == "gradtape"
    assert tf.sysconfig.get_build_info()["is_cuda_build"] is False
    with pytest.raises(NotImplementedError, match="no C\\+\\+ interface"):
        tf.sysconfig.get_include()
    assert not tf.test.is_gpu_available() and tf.test.gpu_device_name() == ""
    tf.test.experimental.sync_devices()
    assert isinstance(tf.TensorSpec([1]), tf.types.experimental.TraceType)


def test_profiler_says_that_it_does_nothing(caplog):
    P = tf.profiler.experimental
    with caplog.at_level(logging.WARNING, "gradtape"):
        P.start("logs", options=P.ProfilerOptions(host_tracer_level=3))
        with P.Trace("train", step_num=1):
            pass
        P.stop()
        with P.Profile("logs"):
            pass
    assert [r.message[:50] for r in caplog.records] == [
        "tf.profiler.experimental.start profiles nothing: g"
    ] * 2


def test_autograph_code():
    def f(x):
        if x > 0:
            x = x * 2
        return x

    for entity in (f, tf.function(f)):
        code = tf.autograph.to_code(entity)
        assert code.startswith("def tf__f(x):") and "ag__.if_stmt(x > 0" in code
    assert tf.function(tf.autograph.to_graph(f), autograph=False)(tf.constant(2.0)).numpy() == 4.0
    with pytest.raises(ValueError, match="expected a Python function"):
        tf.autograph.to_code(3)
    assert tf.autograph.experimental.Feature.ALL


def test_errors_for_missing_names_have_hints():
    for name, words in {
        "Session": "no sessions", "estimator": "GradientTape", "random_uniform": "tf.random.uniform",
        "to_float": "tf.cast", "contrib": "2.0", "no_such_name": "has no attribute 'no_such_name'",
    }.items():  # fmt: skip
        with pytest.raises(AttributeError, match=words):
            getattr(tf, name)
    with pytest.raises(AttributeError, match="did you mean latest_checkpoint"):
        tf.train.lastest_checkpoint  # noqa: B018
    with pytest.raises(AttributeError, match="module 'gradtape.math' has no attribute 'nothing'"):
        tf.math.nothing  # noqa: B018


def test_test_helpers(capsys):
    class Case(tf.test.TestCase):
        @tf.test.disable_with_predicate(lambda: True, "not now")
        def test_it(self):
            raise AssertionError

    result = Case("test_it").run()
    assert len(result.skipped) == 1 and result.wasSuccessful()
    tf.test.Benchmark().report_benchmark(iters=3, wall_time=0.5)
    assert "'wall_time': 0.5" in capsys.readouterr().out
    assert tf.test.with_eager_op_as_function(Case) is Case


# ---- tf.compat --------------------------------------------------------------------------------------


def test_d9_version_2():
    import gradtape.compat.v2 as tf2

    assert tf2.Variable is tf.Variable and tf2.constant(1.0).numpy() == 1.0 and "matmul" in dir(tf2)
    tf2.enable_v2_behavior()
    with pytest.raises(AttributeError, match="no_such_name"):
        tf2.no_such_name  # noqa: B018


def test_d9_version_1_in_eager_mode(monkeypatch):
    v1.enable_eager_execution()
    v1.enable_v2_behavior()
    v1.enable_resource_variables()
    seeds = []
    monkeypatch.setattr(tf.random, "set_seed", seeds.append)
    v1.set_random_seed(3)
    assert seeds == [3]
    assert v1.executing_eagerly() and v1.executing_eagerly_outside_functions()
    assert (
        issubclass(v1.Variable, tf.Variable)
        and v1.matrix_inverse is tf.linalg.inv
        and v1.random_uniform is tf.random.uniform
    )
    assert (
        v1.to_float(3).dtype == tf.float32 and v1.div(7, 2).numpy() == 3 and v1.div(7.0, 2.0).numpy() == 3.5
    )
    assert v1.trainable_variables() == v1.get_collection(v1.GraphKeys.UPDATE_OPS) == []
    assert v1.global_variables_initializer() is None and v1.variables_initializer([]) is None
    v = v1.get_variable("w", [2, 3])
    assert v.shape == (2, 3) and v.name == "w:0" and v1.get_variable("w", [2, 3]) is not v
    assert v1.assign(v, tf.ones([2, 3])) is v and v1.assign_add(v, tf.ones([2, 3])).numpy().max() == 2.0
    with v1.variable_scope("a"):
        assert v1.get_variable("b", initializer=tf.zeros([1])).name == "a/b:0"
    assert v1.compat is tf.compat or v1.nest is tf.nest


def test_d9_graphs_and_sessions_are_refused():
    for call in (v1.disable_eager_execution, v1.disable_v2_behavior):
        with pytest.raises(NotImplementedError, match="no graphs and sessions of TensorFlow 1"):
            call()
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        v1.placeholder(tf.float32)
    config = v1.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    assert config.gpu_options.allow_growth and config.allow_soft_placement
    with v1.Session(config=config) as session, pytest.raises(NotImplementedError, match="Session.run"):
        session.run(None)
    v1.InteractiveSession(config=config).close()
    for name in ("estimator", "layers", "summary", "flags"):
        with pytest.raises(AttributeError, match="Hint"):
            getattr(v1, name)


def test_d9_logging(caplog):
    before = v1.logging.get_verbosity()
    v1.logging.set_verbosity(v1.logging.ERROR)
    try:
        v1.logging.info("not told")
        v1.logging.error("told")
    finally:
        tf.get_logger().setLevel(logging.NOTSET)
    assert [r.message for r in caplog.records] == ["told"] and before >= 0
    for _ in range(3):
        v1.logging.log_first_n(v1.logging.ERROR, "twice", 2)
    assert sum(r.message == "twice" for r in caplog.records) == 2


# What TensorFlow 2.21 computes for gradients [0.5, -1] * (1, 2, 3), from [1, 2] on.
OPTIMIZERS = {
    "AdamOptimizer(0.1)": [0.7076827, 2.2923172],
    "AdagradOptimizer(0.1)": [0.7503613, 2.2638013],
    "MomentumOptimizer(0.1, 0.9)": [0.5244999, 2.9510000],
    "MomentumOptimizer(0.1, 0.9, use_nesterov=True)": [0.2720500, 3.4559000],
    "RMSPropOptimizer(0.1)": [0.6990547, 2.4839261],
    "RMSPropOptimizer(0.1, momentum=0.5, centered=True)": [0.6006891, 2.6743836],
    "AdadeltaOptimizer(0.1)": [0.9998300, 2.0001700],
    "GradientDescentOptimizer(0.1)": [0.6999999, 2.5999999],
    "FtrlOptimizer(0.1)": [0.2158389, 1.6607784],
}


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_d9_optimizers(make):
    optimizer = eval(f"v1.train.{make}")
    v, step = tf.Variable([1.0, 2.0]), tf.Variable(0)
    for i in (1.0, 2.0, 3.0):
        optimizer.apply_gradients([(tf.constant([0.5, -1.0]) * i, v)], global_step=step)
    np.testing.assert_allclose(v.numpy(), OPTIMIZERS[make], rtol=3e-6)
    assert step.numpy() == 3 and isinstance(optimizer, v1.train.Optimizer)


def test_d9_minimize_and_decays():
    step = v1.train.get_or_create_global_step()
    assert v1.train.get_global_step() is step and step.dtype == tf.int64
    step.assign(0)
    v = tf.Variable(2.0)
    v1.train.GradientDescentOptimizer(0.25).minimize(lambda: v * v, global_step=step)
    assert v.numpy() == 1.0 and step.numpy() == 1
    with pytest.raises(RuntimeError, match="should be a function when eager execution"):
        v1.train.GradientDescentOptimizer(0.25).minimize(v * v)
    at = tf.Variable(7.0)
    T = v1.train
    for decay, expected in (
        (T.exponential_decay(0.1, at, 10, 0.5), 0.06155722), (T.natural_exp_decay(0.1, at, 10, 0.5), 0.07046881),
        (T.inverse_time_decay(0.1, at, 10, 0.5), 0.07407407), (T.cosine_decay(0.1, at, 10), 0.02061074),
        (T.polynomial_decay(0.1, at, 10), 0.03007), (T.piecewise_constant(at, [5.0, 10.0], [1.0, 0.5, 0.1]), 0.5),
    ):  # fmt: skip
        np.testing.assert_allclose(decay().numpy(), expected, rtol=1e-6)


def test_d9_losses():
    """The numbers are TensorFlow's."""
    L = v1.losses
    y = tf.constant([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    p = tf.constant([[0.2, 0.5, 0.9], [0.3, 0.6, -1.0]])
    w = tf.constant([[1.0], [0.0]])
    for loss, plain, weighted, total in (
        (L.mean_squared_error, 0.49166667, 0.56666666, 2.95), (L.absolute_difference, 0.65, 0.7333333, 3.9),
        (L.sigmoid_cross_entropy, 0.73641247, 0.9377899, 4.4184747), (L.huber_loss, 0.24583334, 0.28333333, 1.475),
        (L.hinge_loss, 0.98333335, 1.4, 5.9),
    ):  # fmt: skip
        np.testing.assert_allclose(loss(y, p).numpy(), plain, rtol=1e-6)
        np.testing.assert_allclose(loss(y, p, weights=w).numpy(), weighted, rtol=1e-6)
        np.testing.assert_allclose(loss(y, p, reduction=L.Reduction.SUM).numpy(), total, rtol=1e-6)
        np.testing.assert_allclose(loss(y, p, 2.0, reduction=L.Reduction.MEAN).numpy(), plain, rtol=1e-6)
        assert loss(y, p, reduction=L.Reduction.NONE).shape == (2, 3)
    np.testing.assert_allclose(
        L.softmax_cross_entropy(y, p, label_smoothing=0.1).numpy(), 1.0836931, rtol=1e-6
    )
    np.testing.assert_allclose(L.softmax_cross_entropy(y, p, weights=[1.0, 0.0]).numpy(), 1.4733, rtol=1e-6)
    np.testing.assert_allclose(L.sparse_softmax_cross_entropy([0, 1], p).numpy(), 1.0686932, rtol=1e-6)
    np.testing.assert_allclose(
        L.sigmoid_cross_entropy(y, p, label_smoothing=0.1).numpy(), 0.7372458, rtol=1e-6
    )
    np.testing.assert_allclose(L.log_loss(y, tf.sigmoid(p)).numpy(), 0.7364122, rtol=1e-6)
    unit = tf.nn.l2_normalize(p, 1)
    np.testing.assert_allclose(L.cosine_distance(y, unit, axis=1).numpy(), 0.6555173, rtol=1e-6)
    with pytest.raises(ValueError, match=r"Shapes \(1, 3\) and \(2, 3\) are incompatible"):
        L.mean_squared_error(y, p[:1])
    with pytest.raises(ValueError, match="`labels` must not be None"):
        L.mean_squared_error(None, p)
    with pytest.raises(ValueError, match="Invalid Reduction Key"):
        L.mean_squared_error(y, p, reduction="all")
    with pytest.raises(ValueError, match="weights can not be broadcast"):
        L.mean_squared_error(y, p, weights=tf.ones([3]))


def test_compat_conversions():
    C = tf.compat
    assert (
        C.as_bytes("ü") == "ü".encode() and C.as_text(b"a") == C.as_str("a") == "a" and C.as_str_any(3) == "3"
    )
    assert C.dimension_value(3) == 3 and C.dimension_at_index(tf.TensorShape([1, 2]), 1) == 2
    assert isinstance(1.5, C.real_types) and not C.forward_compatible(2030, 1, 1)
    with pytest.raises(TypeError, match="Expected binary or unicode string"):
        C.as_bytes(3)


# ---- tf.saved_model -----------------------------------------------------------------------------------

MODULE = """
import numpy as np
import gradtape as tf

def scale(x):
    return 2.0 * x

class Dense(tf.Module):
    def __init__(self, units, activation=None):
        super().__init__(name="dense")
        self.units, self.activation = units, activation
        self.w = tf.Variable(tf.random.normal([3, units]), name="w")
        self.b = tf.Variable(tf.zeros([units], tf.float64), trainable=False)

    def __call__(self, x):
        y = x @ self.w
        return self.activation(y) if self.activation else y

class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Dense(4, tf.nn.relu), Dense(4, scale)]
        self.shared = self.layers[0]
        self.table = {"mean": tf.constant([1.0]), "t": (1, 2.5, None, "x", True)}
        self.numbers = {3: np.arange(2)}
        self.dtype, self.shape, self.rate = tf.bfloat16, tf.TensorShape([None, 3]), np.float32(0.5)
        self.predict = tf.function(self.call, input_signature=[tf.TensorSpec([None, 3])])

    def call(self, x):
        return self.layers[0](x) + self.layers[1](x)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
    def serve(self, x):
        return {"y": self.call(x)}
"""


@pytest.fixture
def nets(tmp_path, monkeypatch):
    (tmp_path / "stored_nets.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("stored_nets")
    sys.modules.pop("stored_nets", None)


def test_saved_model(tmp_path, nets):
    net, x = nets.Net(), tf.ones([2, 3])
    tf.saved_model.save(net, tmp_path / "m", signatures={"serving_default": net.serve, "plain": net.predict})
    assert tf.saved_model.contains_saved_model(tmp_path / "m") and not tf.saved_model.contains_saved_model(
        tmp_path
    )
    again = tf.saved_model.load(tmp_path / "m")
    assert type(again) is nets.Net and again is not net
    np.testing.assert_array_equal(again.call(x).numpy(), net.call(x).numpy())
    np.testing.assert_array_equal(again.predict(x).numpy(), net.predict(x).numpy())
    np.testing.assert_array_equal(again.signatures["serving_default"](x=x)["y"].numpy(), net.call(x).numpy())
    np.testing.assert_array_equal(again.signatures["plain"](x)["output_0"].numpy(), net.call(x).numpy())
    assert again.shared is again.layers[0] and again.layers[0].activation is tf.nn.relu
    assert [v.name for v in again.variables] == [v.name for v in net.variables]
    assert len(again.trainable_variables) == 2 and again.layers[0].b.dtype == tf.float64
    assert again.table["t"] == (1, 2.5, None, "x", True) and again.numbers[3].tolist() == [0, 1]
    assert again.table["mean"].numpy() == 1.0 and again.dtype is tf.bfloat16 and again.rate == 0.5
    assert again.shape.as_list() == [None, 3] and again.name == "net"
    again.layers[0].w.assign(tf.zeros([3, 4]))
    assert net.layers[0].w.numpy().any()


def test_errors_name_attributes_that_cannot_be_stored(tmp_path, nets):
    with pytest.raises(ValueError, match=r"saved_model.save: activation is <function .*cannot be stored"):
        tf.saved_model.save(nets.Dense(2, lambda x: x), tmp_path / "m")

    class Local(tf.Module):
        pass

    with pytest.raises(ValueError, match="the class of the module is"):
        tf.saved_model.save(Local(), tmp_path / "m")
    with pytest.raises(ValueError, match="Expected an object of type `Trackable`"):
        tf.saved_model.save(3, tmp_path / "m")
    with pytest.raises(ValueError, match="Only `tf.functions` with an input signature"):
        tf.saved_model.save(nets.Dense(1), tmp_path / "m", signatures=nets.scale)
    assert not tf.saved_model.contains_saved_model(tmp_path / "m")


def test_loading_a_missing_file(tmp_path, nets):
    for error in (tf.errors.NotFoundError, OSError):
        with pytest.raises(error, match="SavedModel file does not exist at"):
            tf.saved_model.load(tmp_path / "none")
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(NotImplementedError, match="written by TensorFlow; .*load_checkpoint"):
        tf.saved_model.load(tmp_path)
    tf.saved_model.save(nets.Dense(1), tmp_path / "m")
    content = (tmp_path / "m" / "saved_model.json").read_text()
    (tmp_path / "m" / "saved_model.json").write_text(content.replace("stored_nets:Dense", "stored_nets:Gone"))
    with pytest.raises(tf.errors.DataLossError, match="is damaged: its checksum"):
        tf.saved_model.load(tmp_path / "m")
    (tmp_path / "m" / "saved_model.json").write_text("{")
    with pytest.raises(tf.errors.DataLossError, match="is damaged"):
        tf.saved_model.load(tmp_path / "m")
