"""Keras models whose batch and sequence sizes are not known, with and without masks: losses are TensorFlow's.

The expected losses come from TensorFlow's Keras, which can referee them:
`GRADTAPE_TEST_LIB=tensorflow pytest tests/keras/test_unknown_sizes.py`.
"""

import numpy as np
import pytest

from tests.semantics.lib import logged_warnings, tf

keras = tf.keras
layers = keras.layers
Input = keras.Input
LENGTHS = (4, 6, 4, 9, 6, 4, 5)


@pytest.fixture(autouse=True)
def _nothing_runs_eagerly():
    with logged_warnings() as messages:
        yield
    assert not [m for m in messages if "eagerly" in m]


def set_weights(model):
    for k, w in enumerate(model.trainable_variables):
        w.assign(np.sin(np.arange(np.prod(w.shape)) * 1.7 + k).reshape(w.shape) * 0.5)
    return model


def sentences(labels_per_word=False):
    """Batches of word numbers, each of another length, padded with 0; the last batch is smaller."""
    random = np.random.RandomState(5)
    for k, n in enumerate(LENGTHS):
        rows = 2 if k + 1 == len(LENGTHS) else 3
        x = random.randint(1, 12, (rows, n)).astype("int32")
        x[0, n // 2 :] = 0
        yield x, random.randint(0, 3, (rows, n) if labels_per_word else (rows,)).astype("int32")


def of_words(*others, mask=True):
    made = [Input([None], dtype="int32"), layers.Embedding(12, 6, mask_zero=mask), *others]
    return set_weights(keras.Sequential([*made, layers.Dense(3, "softmax")]))


def attention():
    words = Input([None], dtype="int32")
    x = layers.Embedding(12, 6, mask_zero=True)(words)
    x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(2, 3)(x, x)]))
    return set_weights(keras.Model(words, layers.Dense(3, "softmax")(layers.GlobalAveragePooling1D()(x))))


def sgd():
    return keras.optimizers.SGD(0.1, momentum=0.9)


class MaskedStep(keras.Model):
    """A model with a custom training step, whose loss ignores padding."""

    def train_step(self, data):
        x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            told, on = self(x, training=True), tf.not_equal(x, 0)
            of_words = keras.losses.sparse_categorical_crossentropy(
                tf.boolean_mask(y, on), tf.boolean_mask(told, on)
            )
            loss = tf.reduce_mean(of_words)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=True))
        return {"loss": loss}


def masked_step():
    words = Input([None], dtype="int32")
    x = layers.GRU(4, return_sequences=True)(layers.Embedding(12, 6)(words))
    return set_weights(MaskedStep(words, layers.Dense(3, "softmax")(x)))


# ---- batches of all lengths -----------------------------------------------------------------------

MODELS = {
    "LSTM": (lambda: of_words(layers.LSTM(4)), False),
    "GRU": (lambda: of_words(layers.GRU(4, return_sequences=True)), True),
    "Bidirectional": (lambda: of_words(layers.Bidirectional(layers.SimpleRNN(4))), False),
    "Conv1D": (lambda: of_words(layers.Conv1D(5, 3, padding="causal"), mask=False), True),
    "MultiHeadAttention": (attention, False),
    "boolean_mask in train_step": (masked_step, True),
}
LOSSES: dict = {
    ("train_on_batches", "LSTM"): [1.274725, 1.129447, 1.143439, 1.267895, 1.060093, 1.096641, 1.077314],
    ("train_on_batches", "GRU"): [1.154949, 1.049438, 1.098893, 1.228337, 1.124969, 0.975403, 1.141490],
    ("train_on_batches", "Bidirectional"): [
        0.878976,
        1.310573,
        1.242379,
        0.975446,
        1.126916,
        1.179097,
        1.168693,
    ],
    ("train_on_batches", "Conv1D"): [1.506665, 1.176257, 1.396008, 1.306030, 1.092176, 1.171692, 1.075025],
    ("train_on_batches", "MultiHeadAttention"): [
        1.005362,
        1.113383,
        1.142231,
        1.105226,
        1.247305,
        1.238381,
        0.957823,
    ],
    ("train_on_batches", "boolean_mask in train_step"): [
        1.154949,
        1.049438,
        1.098893,
        1.228337,
        1.124969,
        0.975403,
        1.141490,
    ],
    ("fit_a_generator", "LSTM"): [1.153568, 1.015858],
    ("fit_a_generator", "GRU"): [1.108947, 1.086138],
    ("fit_a_generator", "Bidirectional"): [1.123877, 0.899552],
    ("fit_a_generator", "Conv1D"): [1.254827, 1.076587],
    ("fit_a_generator", "MultiHeadAttention"): [1.123565, 1.056821],
    ("fit_a_generator", "boolean_mask in train_step"): [0.000000, 0.000000],
    ("loop_with_a_signature", "LSTM"): [1.274725, 1.130965, 1.145732, 1.287495, 1.066631, 1.095298, 1.163257],
    ("loop_with_a_signature", "GRU"): [1.154949, 1.049438, 1.098893, 1.228337, 1.124969, 0.975403, 1.140847],
    ("loop_with_a_signature", "Bidirectional"): [
        0.878976,
        1.296559,
        1.235057,
        0.945494,
        1.164737,
        1.244580,
        0.756753,
    ],
    ("loop_with_a_signature", "Conv1D"): [
        1.506665,
        1.202878,
        1.433498,
        1.359628,
        1.175882,
        1.269650,
        1.065874,
    ],
    ("loop_with_a_signature", "MultiHeadAttention"): [
        1.005362,
        1.112248,
        1.102199,
        1.118410,
        1.214893,
        1.275900,
        0.879784,
    ],
    ("loop_with_a_signature", "boolean_mask in train_step"): [
        1.149784,
        1.031382,
        1.166766,
        1.219305,
        1.088346,
        1.048208,
        1.164952,
    ],
    ("fitted", "rows"): [0.780749, 0.619783, 0.600057, 0.377710],
    ("fitted", "normalised"): [0.888366, 0.729598, 0.754162, 0.251767],
    ("fitted", "weighted"): [0.797126, 0.906151, 0.947813, 0.303457],
    ("fitted", "sequences"): [1.182074, 1.037082, 1.051430, 0.190366],
    ("fitted", "masked"): [0.782836, 0.697755, 0.659338, 0.139678],
    ("fitted", "masked series"): [1.199853, 1.054476, 1.022026, 0.180832],
}


def train_on_batches(name):
    build, labels_per_word = MODELS[name]
    model = build()
    model.compile(sgd(), "sparse_categorical_crossentropy")
    return [float(model.train_on_batch(x, y)) for x, y in sentences(labels_per_word)]


def fit_a_generator(name):
    build, labels_per_word = MODELS[name]
    model = build()
    model.compile(sgd(), "sparse_categorical_crossentropy")
    labels = tf.TensorSpec([None, None] if labels_per_word else [None], tf.int32)
    dataset = tf.data.Dataset.from_generator(
        lambda: sentences(labels_per_word), output_signature=(tf.TensorSpec([None, None], tf.int32), labels)
    )
    return model.fit(dataset, epochs=2, verbose=0).history["loss"]


def loop_with_a_signature(name):
    build, labels_per_word = MODELS[name]
    model, optimizer, mean = build(), sgd(), keras.metrics.Mean()
    loss_of = keras.losses.SparseCategoricalCrossentropy()
    labels = tf.TensorSpec([None, None] if labels_per_word else [None], tf.int32)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32), labels])
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        grads, _ = tf.clip_by_global_norm(tape.gradient(loss, model.trainable_variables), 0.5)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        mean.update_state(loss)
        return loss

    losses = [float(step(tf.constant(x), tf.constant(y))) for x, y in sentences(labels_per_word)]
    np.testing.assert_allclose(mean.result(), np.mean(losses), rtol=1e-5)
    return losses


@pytest.mark.parametrize("train", [train_on_batches, fit_a_generator, loop_with_a_signature])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_sentences_of_all_lengths(name, train):
    np.testing.assert_allclose(train(name), LOSSES[train.__name__, name], rtol=2e-4)


# ---- sizes that are not known, a last batch that is smaller ---------------------------------------

RANDOM = np.random.RandomState(0)
ROWS, PLAIN = RANDOM.randn(10, 7, 8).astype("float32"), RANDOM.randn(10, 5).astype("float32")
PADDED = np.where(np.arange(7)[:, None] < 4, ROWS, 0).astype("float32")
TARGETS, SERIES = RANDOM.randn(10, 2).astype("float32"), RANDOM.randn(10, 7, 2).astype("float32")
WEIGHTS = np.linspace(0, 2, 10).astype("float32")

FITTED = {
    "rows": (lambda: [Input([5]), layers.Dense(4, "tanh")], PLAIN, TARGETS, {}),
    "normalised": (
        lambda: [Input([5]), layers.Dense(4), layers.BatchNormalization(), layers.ReLU()], PLAIN, TARGETS, {},
    ),
    "weighted": (
        lambda: [Input([5]), layers.Dense(4, "tanh")], PLAIN, TARGETS, {"sample_weight": WEIGHTS},
    ),
    "sequences": (lambda: [Input([None, 8]), layers.GRU(4, return_sequences=True)], ROWS, SERIES, {}),
    "masked": (lambda: [Input([None, 8]), layers.Masking(), layers.LSTM(4)], PADDED, TARGETS, {}),
    "masked series": (
        lambda: [Input([None, 8]), layers.Masking(), layers.GRU(4, return_sequences=True)],
        PADDED, SERIES, {},
    ),
}  # fmt: skip


def fitted(name):
    build, x, y, options = FITTED[name]
    model = set_weights(keras.Sequential([*build(), layers.Dense(2)]))
    model.compile(sgd(), "mse")
    losses = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0, **options).history["loss"]
    told = model.predict(x, batch_size=4, verbose=0)
    return [*losses, model.evaluate(x, y, batch_size=4, verbose=0), float(np.abs(told).mean())]


@pytest.mark.parametrize("name", FITTED)
def test_a_last_batch_that_is_smaller(name):
    np.testing.assert_allclose(fitted(name), LOSSES["fitted", name], rtol=2e-4)
