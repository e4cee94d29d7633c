"""dm-sonnet: an MLP, a convolution with batch normalisation and an unrolled LSTM, trained to TensorFlow's losses."""

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

RNG = np.random.RandomState(0)
FLAT, IMAGES, SEQUENCES = (
    RNG.randn(*shape).astype(np.float32) for shape in ((32, 6), (8, 6, 6, 2), (5, 8, 3))
)


class Net(snt.Module):
    """A convolution with batch normalisation."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = snt.Conv2D(4, 3), snt.BatchNorm(True, True)
        self.out = snt.Linear(1)

    def __call__(self, x):
        return self.out(snt.Flatten()(tf.nn.relu(self.norm(self.conv(x), is_training=True))))


class Recurrent(snt.Module):
    """An LSTM over sequences, and a layer on its last output."""

    def __init__(self):
        super().__init__()
        self.core, self.out = snt.LSTM(4), snt.Linear(1)

    def __call__(self, x):
        outputs, _ = snt.dynamic_unroll(self.core, x, self.core.initial_state(x.shape[1]))
        return self.out(outputs[-1])


MODELS = {
    "mlp": (lambda: snt.nets.MLP([8, 1]), FLAT, FLAT.sum(1, keepdims=True)),
    "conv": (Net, IMAGES, IMAGES.sum((1, 2, 3))[:, None]),
    "lstm": (Recurrent, SEQUENCES, SEQUENCES.sum((0, 2))[:, None]),
}
OPTIMIZERS = {"mlp": snt.optimizers.Adam, "conv": snt.optimizers.Momentum, "lstm": snt.optimizers.RMSProp}
OPTIONS = {
    "mlp": {"learning_rate": 0.05},
    "conv": {"learning_rate": 0.001, "momentum": 0.9},
    "lstm": {"learning_rate": 0.01},
}
# Measured with TensorFlow 2.21.
LOSSES = {
    "mlp": [9.0492964, 7.9080620, 6.7412338], "conv": [101.224197, 96.535286, 89.388199],
    "lstm": [7.9470291, 7.7921319, 7.6696339],
}  # fmt: skip


def trained(name, wrap):
    make, x, y = MODELS[name]
    model, optimizer = make(), OPTIMIZERS[name](**OPTIONS[name])
    x, y = tf.constant(x), tf.constant(y)
    model(x)
    rng = np.random.RandomState(1)
    for v in model.trainable_variables:
        v.assign(0.3 * rng.randn(*v.shape))

    @wrap
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return [float(step(x, y)) for _ in range(3)]


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
@pytest.mark.parametrize("name", MODELS)
def test_training(name, wrap):
    np.testing.assert_allclose(trained(name, wrap), LOSSES[name], rtol=1e-4)


def test_modules_have_names_variables_and_checkpoints(tmp_path):
    model = snt.nets.MLP([4, 2], name="net")
    y = model(tf.ones([1, 3]))
    assert [v.name for v in model.variables] == [f"net/linear_{i}/{n}:0" for i in (0, 1) for n in "bw"]
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "ckpt"))
    other = snt.nets.MLP([4, 2])
    tf.train.Checkpoint(model=other).restore(path)
    np.testing.assert_allclose(other(tf.ones([1, 3])), y, rtol=1e-6)


def test_variables_are_made_once_in_functions_of_any_size():
    model = snt.Sequential([snt.Linear(3), tf.nn.relu, snt.Linear(2)])
    f = tf.function(model, input_signature=[tf.TensorSpec([None, 4])])
    assert f(tf.ones([2, 4])).shape == [2, 2] and f(tf.ones([5, 4])).shape == [5, 2]
    assert len(model.trainable_variables) == 4


def test_replicas():
    replicator = snt.distribute.Replicator(["CPU:0"])
    with replicator.scope():
        model = snt.Linear(2)
    outputs = replicator.run(lambda: model(tf.ones([3, 4])))
    assert replicator.experimental_local_results(outputs)[0].shape == [3, 2]
