"""`tf.keras`: how it is imported, tf ops on its symbolic inputs, its functions `K.*`, its utilities."""

import doctest
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf

keras = tf.keras
K = keras.backend
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
X = np.random.default_rng(0).uniform(0.1, 1, size=(5, 4)).astype("float32")


def python(code, **environment):
    env = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"} | environment
    env["PYTHONPATH"] = str(ROOT)
    return subprocess.run([sys.executable, "-c", code], cwd="/", env=env, capture_output=True, text=True)


# ---- imports --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "import gradtape as tf; k = tf.keras",
        "from gradtape import keras as k",
        "import gradtape.keras as k",
        "import gradtape.keras; k = gradtape.keras",
        "from gradtape.keras.layers import Dense; from gradtape.keras import Model; import gradtape.keras as k",
        "import gradtape.keras.backend as K; import gradtape.keras.layers as L; import gradtape.keras as k",
        "import keras_gradtape, keras as k",
    ],
)
def test_ways_to_import(code):
    done = python(code + "; print(k.backend.backend(), k.layers.Dense.__name__)")
    assert done.stdout == "gradtape Dense\n", done.stderr


def test_backend_chosen_by_the_environment():
    """`keras_gradtape.pth` is installed in site-packages, where Python reads it when it starts."""
    start = f"import site; site.addsitedir({str(ROOT)!r}); "
    done = python(start + "import keras; print(keras.backend.backend())", KERAS_BACKEND="gradtape")
    assert done.stdout == "gradtape\n", done.stderr
    done = python(start + "import sys; print('keras_gradtape' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


def test_the_example_of_the_docstring():
    path = ROOT / "gradtape" / "keras.py"
    example = doctest.DocTestParser().get_doctest(path.read_text(), {}, path.name, str(path), 0)
    found = doctest.DocTestRunner().run(example)
    assert found.attempted == 3 and not found.failed


def test_submodules_are_the_same_objects():
    from gradtape.keras.layers import Dense
    from gradtape.keras.optimizers.schedules import ExponentialDecay

    from gradtape.keras import layers

    assert layers is keras.layers and Dense is keras.layers.Dense
    assert ExponentialDecay is keras.optimizers.schedules.ExponentialDecay
    assert tf.losses is keras.losses and tf.metrics is keras.metrics


def test_import_of_gradtape_alone_does_not_import_keras():
    done = python("import gradtape, sys; print('keras' in sys.modules)")
    assert done.stdout == "False\n"


def test_another_backend_is_an_error():
    done = python("import keras, gradtape as tf; tf.keras", KERAS_BACKEND="numpy")
    if "No module named" in done.stderr:
        pytest.skip("Keras' numpy backend needs JAX")
    assert "Keras was imported with the backend 'numpy'" in done.stderr


def test_words_when_keras_is_missing():
    hidden = "import sys; sys.modules['keras'] = None; sys.meta_path.insert(0, type('F', (), {'find_spec': "
    hidden += "staticmethod(lambda n, *a: None)})); import importlib.util as u; f = u.find_spec; "
    hidden += "u.find_spec = lambda n, *a: None if n == 'keras' else f(n, *a); "
    done = python(hidden + "import gradtape as tf; tf.keras")
    assert "pip install 'gradtape[keras]'" in done.stderr


# ---- tf ops on symbolic inputs --------------------------------------------------------------


ONE = {
    "sum": lambda x: tf.reduce_sum(x),
    "mean": lambda x: tf.reduce_mean(x, axis=1, keepdims=True) * 2 + 1,
    "relu": lambda x: tf.nn.relu(x) + tf.sin(x),
    "reshape": lambda x: tf.reshape(x, [-1, 2, 2]),
    "constant first": lambda x: tf.constant([1.0, 2.0, 3.0, 4.0]) + x,
    "variable first": lambda x: tf.Variable([1.0, 2.0, 3.0, 4.0]) * x,
    "cast": lambda x: tf.cast(x, tf.float64),
    "softmax": lambda x: tf.nn.softmax(x),
    "std": lambda x: tf.math.reduce_std(x, axis=1),
    "where": lambda x: tf.where(x > 0.5, x, tf.zeros_like(x)),
    "split": lambda x: tf.split(x, 2, axis=1)[1],
    "norm": lambda x: tf.norm(x, axis=1),
    "shape": lambda x: tf.shape(x),
    "K.mean": lambda x: K.mean(K.square(x), axis=-1),
    "slice": lambda x: tf.square(x)[:, :2],
    "einsum": lambda x: tf.einsum("bi,bj->bij", x, x),
    "gather": lambda x: tf.gather(x, [0, 2], axis=1),
    "one_hot": lambda x: tf.one_hot(tf.argmax(x, 1), 4),
    "quotient": lambda x: x / tf.reduce_max(x),
    "matmul": lambda x: tf.exp(x) @ tf.ones((4, 2)),
    "add_n": lambda x: tf.add_n([x, x]),
    "concat": lambda x: tf.concat([x, tf.math.log(x)], -1),
    "image": lambda x: tf.image.resize(tf.reshape(x, [-1, 2, 2, 1]), (4, 4)),
    "logsumexp": lambda x: tf.reduce_logsumexp(x, 1),
    "convert": lambda x: tf.convert_to_tensor(x),
    "keyword": lambda x: tf.reduce_sum(input_tensor=x, axis=0),
}


@pytest.mark.parametrize("f", ONE.values(), ids=ONE.keys())
def test_tf_ops_on_inputs_of_keras(f):
    x = keras.Input((4,))
    y = f(x)
    assert keras.backend.is_keras_tensor(y)
    model = keras.Model(x, y)
    want = f(tf.constant(X))
    assert np.allclose(model(X), want, atol=1e-6) and model(X).dtype == want.dtype
    assert tuple(d for d in y.shape if d) == tuple(d for d, e in zip(want.shape, y.shape, strict=True) if e)


def test_such_models_train_copy_and_save(tmp_path):
    a, b = keras.Input((4,)), keras.Input((4,))
    h = keras.layers.Dense(3)(tf.nn.relu(tf.concat([a, b], 1)))
    model = keras.Model([a, b], tf.reduce_mean(K.square(h) * tf.constant(2.0), axis=1, keepdims=True))
    want = model([X, X])
    assert [o.name for o in model.operations if o.name.startswith("tf.")]
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    assert np.allclose(copy([X, X]), want)
    model.save(tmp_path / "m.keras")
    assert np.allclose(keras.models.load_model(tmp_path / "m.keras")([X, X]), want)
    model.compile("sgd", "mse")
    model.fit([X, X], np.ones((5, 1)), verbose=0)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model([X, X]))
    assert all(g is not None for g in tape.gradient(loss, model.trainable_variables))


def test_functions_stay_what_they_are():
    assert str(inspect.signature(tf.math.reduce_std)).startswith("(input_tensor, axis=None")
    assert tf.math.reduce_std is tf.reduce_std if hasattr(tf, "reduce_std") else True
    assert "standard deviation" in tf.math.reduce_std.__doc__
    assert np.isclose(tf.math.reduce_std(tf.constant([1.0, 3.0])).numpy(), 1)


def test_inputs_have_no_values():
    x = keras.Input((4,))
    with pytest.raises(TypeError, match="has no value"):
        range(x[0, 0])


# ---- K --------------------------------------------------------------------------------------


def test_functions_of_the_backend():
    """Values from TensorFlow 2.21."""
    x = K.constant([[1.0, 2.0], [3.0, 4.0]])
    assert K.mean(x).numpy() == 2.5 and K.sum(x, axis=0).numpy().tolist() == [4, 6]
    assert np.allclose(K.std(x, axis=1).numpy(), 0.5) and K.max(x).numpy() == 4
    assert K.int_shape(x) == (2, 2) and K.ndim(x) == 2 and K.dtype(x) == "float32"
    assert K.dot(x, x).numpy().tolist() == [[7, 10], [15, 22]]
    assert K.batch_dot(x, x, axes=1).numpy().tolist() == [[5], [25]]
    assert np.allclose(K.hard_sigmoid(x).numpy(), [[0.7, 0.9], [1, 1]])
    assert np.isclose(K.binary_crossentropy(K.constant([1.0]), K.constant([0.5])).numpy(), np.log(2))
    assert K.switch(x > 2, x, -x).numpy().tolist() == [[-1, -2], [3, 4]]
    assert K.concatenate([x, x]).shape == (2, 4) and K.repeat_elements(x, 2, 0).shape == (4, 2)
    assert np.isclose(K.logsumexp(K.constant([0.0, 0.0])).numpy(), np.log(2))
    last, outputs, _ = K.rnn(lambda a, s: (a + s[0], [a + s[0]]), tf.ones((1, 3, 2)), [tf.zeros((1, 2))])
    assert last.numpy().tolist() == [[3, 3]] and outputs.shape == (1, 3, 2)
    assert K.epsilon() == 1e-7 and K.floatx() == "float32"


def test_variables_of_the_backend():
    v = K.variable([1.0, 2.0])
    K.set_value(v, [3.0, 4.0])
    K.update_add(v, [1.0, 1.0])
    assert K.get_value(v).tolist() == [4, 5] and K.eval(v * 2).tolist() == [8, 10]
    dense = keras.layers.Dense(1, use_bias=False)
    dense(np.ones((1, 2), "float32"))
    K.set_value(dense.kernel, np.ones((2, 1)))
    assert K.batch_get_value(dense.weights)[0].tolist() == [[1], [1]]


def test_learning_phase_and_functions_of_models():
    x = keras.Input((4,))
    dense, drop = keras.layers.Dense(3), keras.layers.Dropout(0.5)
    model = keras.Model(x, drop(dense(x)))
    features = K.function([model.input], [dense.output, model.output])
    h, y = features([X])
    assert h.shape == (5, 3) and np.array_equal(h, y)
    assert K.learning_phase() == 0
    K.set_learning_phase(1)
    try:
        assert np.any(features([X])[1] == 0)
        assert K.in_train_phase(1, 2) == 1
    finally:
        K.set_learning_phase(0)
    assert K.in_train_phase(lambda: 1, lambda: 2) == 2


def test_clear_session_and_floatx():
    K.clear_session()
    assert keras.layers.Dense(1)(X).dtype == tf.float32
    K.set_floatx("float64")
    try:
        assert keras.layers.Dense(1)(X).dtype == tf.float64
    finally:
        K.set_floatx("float32")
    assert keras.layers.Dense(1)(X).dtype == tf.float32


# ---- utilities ------------------------------------------------------------------------------


def test_preprocessing_and_utils():
    pre = keras.preprocessing
    assert pre.sequence.pad_sequences([[1], [2, 3]]).tolist() == [[0, 1], [2, 3]]
    assert keras.utils.to_categorical([0, 2]).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert keras.utils.np_utils.to_categorical is keras.utils.to_categorical
    words = pre.text.Tokenizer()
    words.fit_on_texts(["a b a"])
    assert words.texts_to_sequences(["b a"]) == [[2, 1]]
    images = pre.image.ImageDataGenerator(rescale=0.5).flow(np.ones((4, 8, 8, 3)), np.arange(4), batch_size=2)
    assert np.all(next(images)[0] == 0.5)
    series = keras.utils.timeseries_dataset_from_array(np.arange(10.0), np.arange(10), 3, batch_size=4)
    x, y = next(iter(series))
    assert x.numpy()[1].tolist() == [1, 2, 3] and y.numpy().tolist() == [0, 1, 2, 3]


def test_images_from_folders(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name in "ab":
        (tmp_path / name).mkdir()
        for i in range(3):
            image.fromarray(np.full((8, 8, 3), 40 * i, "uint8")).save(tmp_path / name / f"{i}.png")
    data = keras.utils.image_dataset_from_directory(
        str(tmp_path), image_size=(4, 4), batch_size=4, shuffle=False
    )
    found = [(x.shape, y.numpy().tolist()) for x, y in data]
    assert found == [((4, 4, 4, 3), [0, 0, 0, 1]), ((2, 4, 4, 3), [1, 1])]
    loaded = keras.preprocessing.image.load_img(tmp_path / "a" / "1.png", target_size=(4, 4))
    assert keras.preprocessing.image.img_to_array(loaded).max() == 40


def test_normalization_adapts_to_a_dataset():
    layer = keras.layers.experimental.preprocessing.Normalization()
    layer.adapt(tf.data.Dataset.from_tensor_slices(X).batch(2))
    assert np.allclose(layer(X).numpy().mean(0), 0, atol=1e-5)
