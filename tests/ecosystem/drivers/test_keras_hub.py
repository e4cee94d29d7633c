"""keras-hub as its users write: small models, by the checks that it ships for its own tests; layers, samplers, metrics.

Tokenizers inside of graphs need tensorflow-text, which is compiled for TensorFlow: they are left out.
"""

import keras
import keras_hub
import keras_nlp
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from keras_hub.src.tests import test_case

IDS = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]], "int32")
MASK = (IDS > 0).astype("int32")
TOKENS = {"token_ids": IDS, "padding_mask": MASK}
SEGMENTS = {**TOKENS, "segment_ids": np.zeros_like(IDS)}
PAIR = {
    "encoder_token_ids": IDS, "encoder_padding_mask": MASK, "decoder_token_ids": IDS, "decoder_padding_mask": MASK,
}  # fmt: skip
IMAGES = np.random.default_rng(0).uniform(size=(2, 32, 32, 3)).astype("float32")
PLAIN = {"vocabulary_size": 10, "num_layers": 2, "num_heads": 2, "hidden_dim": 4, "intermediate_dim": 8}
GROUPED = {
    "vocabulary_size": 10, "num_layers": 2, "num_query_heads": 4, "num_key_value_heads": 2, "hidden_dim": 8,
    "intermediate_dim": 16,
}  # fmt: skip
LONG = {**PLAIN, "max_sequence_length": 8}

TEXT = {
    "AlbertBackbone": ({**LONG, "embedding_dim": 4, "num_groups": 1, "num_inner_repetitions": 1}, SEGMENTS),
    "BartBackbone": (LONG, PAIR),
    "BertBackbone": (LONG, SEGMENTS),
    "BloomBackbone": (PLAIN, TOKENS),
    "DebertaV3Backbone": ({**LONG, "bucket_size": 2}, TOKENS),
    "DistilBertBackbone": (LONG, TOKENS),
    "ElectraBackbone": ({**LONG, "embedding_dim": 4, "vocab_size": 10}, SEGMENTS),
    "FNetBackbone": (
        {k: v for k, v in LONG.items() if k != "num_heads"}, {"token_ids": IDS, "segment_ids": np.zeros_like(IDS)}
    ),
    "FalconBackbone": (
        {"vocabulary_size": 10, "num_layers": 2, "num_attention_heads": 4, "hidden_dim": 8, "intermediate_dim": 16}, TOKENS
    ),
    "GPT2Backbone": (LONG, TOKENS),
    "GPTNeoXBackbone": (LONG, TOKENS),
    "GemmaBackbone": ({**GROUPED, "head_dim": 4}, TOKENS),
    "LlamaBackbone": (GROUPED, TOKENS),
    "Llama3Backbone": (GROUPED, TOKENS),
    "MistralBackbone": ({**GROUPED, "sliding_window": 2}, TOKENS),
    "MixtralBackbone": ({**GROUPED, "num_experts": 2, "top_k": 1}, TOKENS),
    "OPTBackbone": (LONG, TOKENS),
    "Phi3Backbone": (GROUPED, TOKENS),
    "QwenBackbone": (GROUPED, TOKENS),
    "RobertaBackbone": (LONG, TOKENS),
    "T5Backbone": (PLAIN, PAIR),
    "XLNetBackbone": ({**PLAIN, "dropout": 0.0}, SEGMENTS),
}  # fmt: skip
VISION = {
    "DenseNetBackbone": {"stackwise_num_repeats": [1, 1, 1], "image_shape": (32, 32, 3)},
    "MobileNetBackbone": {
        "stackwise_expansion": [[8], [8]], "stackwise_num_blocks": [1, 1], "stackwise_num_filters": [[8], [8]],
        "stackwise_kernel_size": [[3], [3]], "stackwise_num_strides": [[2], [1]],
        "stackwise_se_ratio": [[0.25], [None]], "stackwise_activation": [["relu"], ["hard_swish"]],
        "stackwise_padding": [[1], [1]], "output_num_filters": 8, "input_num_filters": 4, "input_activation": "hard_swish",
        "output_activation": "hard_swish", "depthwise_filters": 4, "depthwise_stride": 2, "depthwise_residual": False,
        "squeeze_and_excite": None, "last_layer_filter": 8, "image_shape": (32, 32, 3),
    },
    "ResNetBackbone": {
        "input_conv_filters": [64], "input_conv_kernel_sizes": [7], "stackwise_num_filters": [64, 64],
        "stackwise_num_blocks": [1, 1], "stackwise_num_strides": [1, 2], "block_type": "basic_block",
        "image_shape": (None, None, 3),
    },
    "VGGBackbone": {"stackwise_num_repeats": [1, 1], "stackwise_num_filters": [4, 8], "image_shape": (32, 32, 3)},
    "ViTBackbone": {
        "image_shape": (32, 32, 3), "patch_size": 16, "num_layers": 1, "num_heads": 2, "hidden_dim": 8, "mlp_dim": 8,
    },
    "XceptionBackbone": {
        "stackwise_conv_filters": [[4, 4], [8, 8]], "stackwise_pooling": [True, False], "image_shape": (None, None, 3),
    },
}  # fmt: skip

# The first elements that TensorFlow 2.21 computes from the same seed.
NUMBERS = {
    "AlbertBackbone": [-0.0581744, -0.0094401, 0.0164971, -0.0113511],
    "BartBackbone": [-1.4013766, 1.3273728, -0.3314043, 0.4054081],
    "BertBackbone": [0.0003646, -0.0261527, 0.0132007, -0.0573483],
    "BloomBackbone": [0.4136197, -1.1802959, 1.4181936, -0.6515173],
    "DebertaV3Backbone": [-1.5759122, 1.146952, -0.0189692, 0.4479293],
    "DistilBertBackbone": [0.9679253, 0.0162776, 0.6433561, -1.6275591],
    "ElectraBackbone": [0.0003646, -0.0261527, 0.0132007, -0.0573483],
    "FNetBackbone": [0.035386, 0.0280946, 0.0834833, -0.0493751],
    "FalconBackbone": [-0.9876496, -0.7139387, 1.4849249, 0.1012704],
    "GPT2Backbone": [0.1410885, 0.2897911, -1.2175701, 0.7866901],
    "GPTNeoXBackbone": [0.6280187, -0.1809036, 0.7401994, -1.1873144],
    "GemmaBackbone": [-0.7786984, -0.2935947, 0.5768924, -1.7589043],
    "LlamaBackbone": [-1.4274355, -0.8634788, 0.9808289, 0.3527841],
    "Llama3Backbone": [-1.4274355, -0.8634788, 0.9808289, 0.3527841],
    "MistralBackbone": [-1.4274355, -0.8634788, 0.9808289, 0.3527841],
    "MixtralBackbone": [-0.3391341, -1.1606612, 0.4920993, -0.7478863],
    "OPTBackbone": [0.9539512, -0.101395, 0.726069, -1.5786253],
    "Phi3Backbone": [-1.4274355, -0.8634788, 0.9808289, 0.3527841],
    "QwenBackbone": [-1.4274355, -0.8634788, 0.9808289, 0.3527841],
    "RobertaBackbone": [0.9679202, 0.0162772, 0.6433533, -1.6275508],
    "T5Backbone": [0.1582807, 1.1190482, 1.6499884, -0.0146813],
    "XLNetBackbone": [-0.9845288, -0.9494897, 1.3268417, 0.6071767],
    "DenseNetBackbone": [0.0916162, 0.0, 0.0, 0.0],
    "MobileNetBackbone": [0.0009197, 0.0014071, 0.0004265, 0.0013386],
    "ResNetBackbone": [0.0, 0.0, 0.0566311, 0.0749435],
    "VGGBackbone": [0.7451398, 0.3168224, 0.53191, 0.3253106],
    "ViTBackbone": [0.5649686, -0.4355296, -0.2977918, 0.5646695],
    "XceptionBackbone": [0.01781, 0.0, 0.0191495, 0.0],
    "lm": [2.3036079, 2.2909558, 2.2748497],
    "classifier": [1.0987196, 1.0982283],
}


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(5)


@pytest.fixture
def case():
    made = test_case.TestCase()
    made.setUp()
    yield made
    made.tearDown()


def first(x):
    return np.ravel(ops.convert_to_numpy(tf.nest.flatten(x)[0]))[:4]


def model(name):
    options, inputs = TEXT[name] if name in TEXT else (VISION[name], IMAGES)
    return getattr(keras_hub.models, name)(**options), inputs


@pytest.mark.parametrize("name", [*TEXT, *VISION])
def test_model_gives_the_numbers_of_tensorflow(name):
    backbone, inputs = model(name)
    eager = backbone(inputs)
    np.testing.assert_allclose(first(eager), NUMBERS[name], rtol=1e-3, atol=1e-5)
    predicted = backbone.predict(inputs, verbose=0)
    np.testing.assert_allclose(first(predicted), first(eager), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["BertBackbone", "GPT2Backbone", "BartBackbone", "LlamaBackbone"])
def test_checks_of_the_package_for_text(name, case):
    """Serialization, lengths that vary, datasets, mixed precision, quantization."""
    options, inputs = TEXT[name]
    width = options["hidden_dim"]
    shape = (2, 5, width)
    if name == "BertBackbone":
        shape = {"sequence_output": shape, "pooled_output": (2, width)}
    if name == "BartBackbone":
        shape = {"encoder_sequence_output": shape, "decoder_sequence_output": shape}
    case.run_backbone_test(getattr(keras_hub.models, name), options, inputs, shape)


@pytest.mark.parametrize("name", ["BertBackbone", "ResNetBackbone"])
def test_a_stored_model(name, case):
    options, inputs = TEXT[name] if name in TEXT else (VISION[name], IMAGES)
    case.run_model_saving_test(getattr(keras_hub.models, name), options, inputs)


# ---- layers ----------------------------------------------------------------------------------------


SEQUENCE = np.random.default_rng(1).normal(size=(2, 4, 6)).astype("float32")
LAYERS = {
    "FNetEncoder": ({"intermediate_dim": 4}, SEQUENCE, (2, 4, 6), 8),
    "TransformerEncoder": ({"intermediate_dim": 4, "num_heads": 2}, SEQUENCE, (2, 4, 6), 16),
    "SinePositionEncoding": ({}, SEQUENCE, (2, 4, 6), 0),
    "PositionEmbedding": ({"sequence_length": 7}, SEQUENCE, (2, 4, 6), 1),
    "TokenAndPositionEmbedding": (
        {"vocabulary_size": 9, "sequence_length": 5, "embedding_dim": 3}, IDS, (2, 5, 3), 2
    ),
    "RotaryEmbedding": ({}, SEQUENCE, (2, 4, 6), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_checks_of_the_package_for_layers(name, case):
    """Serialization, shapes, a training step, mixed precision."""
    options, inputs, shape, weights = LAYERS[name]
    case.run_layer_test(
        getattr(keras_hub.layers, name), options, ops.convert_to_tensor(inputs), shape,
        expected_num_trainable_weights=weights,
        run_training_check=name != "TokenAndPositionEmbedding",
    )  # fmt: skip


def test_decoder_with_a_cache():
    layer = keras_hub.layers.TransformerDecoder(intermediate_dim=4, num_heads=2)
    x = SEQUENCE
    whole = layer(x)
    cache, out = ops.zeros((2, 2, 4, 2, 3)), ops.zeros_like(x)
    for i in range(4):
        step, cache = layer(x[:, i : i + 1], self_attention_cache=cache, self_attention_cache_update_index=i)
        out = ops.slice_update(out, [0, i, 0], step)
    np.testing.assert_allclose(out, whole, atol=1e-5)


# ---- text that is generated ------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["greedy", "top_k", "top_p", "random", "beam", "contrastive"])
def test_samplers(sampler):
    words = "abcdefgh"
    made = {
        "greedy": keras_hub.samplers.GreedySampler, "random": keras_hub.samplers.RandomSampler,
        "top_k": lambda: keras_hub.samplers.TopKSampler(k=2, seed=1),
        "top_p": lambda: keras_hub.samplers.TopPSampler(p=0.1, seed=1),
        "beam": lambda: keras_hub.samplers.BeamSampler(num_beams=2),
        "contrastive": lambda: keras_hub.samplers.ContrastiveSampler(k=2, alpha=0.2),
    }[sampler]()  # fmt: skip
    # The model knows the alphabet.
    table = ops.convert_to_tensor(30 * np.roll(np.eye(8, dtype="float32"), 1, 1))

    def next_token(prompt, cache, index):
        logits = ops.take(table, prompt[:, index - 1], 0)
        hidden = ops.ones([ops.shape(prompt)[0], 5])
        return logits, hidden, cache

    prompt = np.zeros([2, 6], "int32")
    mask = np.zeros([2, 6], bool)
    mask[:, 0] = True
    options = {"hidden_states": ops.ones([2, 6, 5])} if sampler == "contrastive" else {}
    out = tf.function(lambda p: made(next=next_token, prompt=p, cache=(), index=1, mask=mask, **options))(
        prompt
    )
    assert ["".join(words[i] for i in row) for row in ops.convert_to_numpy(out)] == ["abcdef"] * 2


def test_causal_lm_trains_and_generates():
    backbone, _ = model("GPT2Backbone")
    lm = keras_hub.models.GPT2CausalLM(backbone=backbone, preprocessor=None)
    lm.compile(
        keras.optimizers.Adam(1e-2),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        sampler="greedy",
    )
    history = lm.fit(TOKENS, np.roll(IDS, -1, 1), epochs=3, verbose=0).history["loss"]
    np.testing.assert_allclose(history, NUMBERS["lm"], rtol=1e-3)
    out = lm.generate({"token_ids": IDS, "padding_mask": MASK}, stop_token_ids=None)
    assert out["token_ids"].shape == IDS.shape
    np.testing.assert_array_equal(np.asarray(out["token_ids"])[:, :3], IDS[:, :3])


def test_classifier_trains():
    backbone, inputs = model("BertBackbone")
    classifier = keras_hub.models.BertTextClassifier(
        backbone=backbone, num_classes=3, preprocessor=None, dropout=0.0
    )
    history = classifier.fit(inputs, np.array([0, 2]), epochs=2, verbose=0).history["loss"]
    np.testing.assert_allclose(history, NUMBERS["classifier"], rtol=1e-3)
    backbone, images = model("ResNetBackbone")
    classifier = keras_hub.models.ImageClassifier(backbone=backbone, num_classes=3, preprocessor=None)
    assert np.isfinite(classifier.fit(images, np.array([0, 2]), epochs=1, verbose=0).history["loss"]).all()


# ---- metrics and preprocessing -----------------------------------------------------------------------


def test_metrics():
    perplexity = keras_hub.metrics.Perplexity(from_logits=True, mask_token_id=0)
    logits = np.random.default_rng(2).normal(size=(2, 5, 10)).astype("float32")
    shifted = logits - logits.max(-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    picked = np.take_along_axis(logs, IDS[..., None], -1)[..., 0]
    np.testing.assert_allclose(
        perplexity(IDS, logits), np.exp(-(picked * MASK).sum() / MASK.sum()), rtol=1e-5
    )
    distance = keras_hub.metrics.EditDistance(normalize=False)
    assert float(distance(tf.strings.split(["the cat was"]), tf.strings.split(["the cat was found"]))) == 1.0
    bleu = keras_hub.metrics.Bleu(tokenizer=tf.strings.split, max_order=2)
    score = bleu(["a b c d"], ["a b x d"])
    np.testing.assert_allclose(score, np.sqrt(3 / 4 * 1 / 3), rtol=1e-5)


def test_images_and_words():
    converter = keras_hub.layers.ImageConverter(image_size=(8, 8), scale=1 / 255.0, offset=[0.1, 0.2, 0.3])
    out = converter(255 * np.ones((2, 16, 16, 3), "float32"))
    assert out.shape == (2, 8, 8, 3)
    np.testing.assert_allclose(out[0, 0, 0], [1.1, 1.2, 1.3], rtol=1e-5)
    data = tf.data.Dataset.from_tensor_slices(IMAGES).batch(2).map(converter)
    assert next(iter(data)).shape == (2, 8, 8, 3)
    boxes = keras_hub.layers.AnchorGenerator("yxyx", 3, 4, 1, [0.5, 1.0, 2.0], 4.0)(IMAGES)
    assert {k: v.shape[-1] for k, v in boxes.items()} == {"P3": 4, "P4": 4}


def test_tokenizers_and_packers():
    words = ["[UNK]", "the", "qu", "##ick", "br", "##own", "fox", "."]
    pieces = keras_hub.tokenizers.WordPieceTokenizer(vocabulary=words, lowercase=True)
    assert list(pieces("The quick brown fox.")) == [1, 2, 3, 4, 5, 6, 7]
    assert pieces.detokenize([1, 2, 3]) == "the quick"
    assert np.array_equal(
        keras_hub.tokenizers.ByteTokenizer(sequence_length=4)(["hello", "a"]),
        [[104, 101, 108, 108], [97, 0, 0, 0]],
    )
    assert list(keras_hub.tokenizers.UnicodeCodepointTokenizer()("ünö")) == [252, 110, 246]
    packer = keras_hub.layers.StartEndPacker(sequence_length=5, start_value=1, end_value=2)
    assert np.array_equal(packer([[5, 6], [7]]), [[1, 5, 6, 2, 0], [1, 7, 2, 0, 0]])
    data = tf.data.Dataset.from_tensor_slices(np.array([[5, 6], [7, 8]])).map(packer)
    assert np.array_equal(list(data.as_numpy_iterator()), [[1, 5, 6, 2, 0], [1, 7, 8, 2, 0]])
    ids, segments = keras_hub.layers.MultiSegmentPacker(sequence_length=6, start_value=1, end_value=2)(
        (np.array([5, 6]), np.array([7]))
    )
    assert np.array_equal(ids, [1, 5, 6, 2, 7, 2]) and np.array_equal(segments, [0, 0, 0, 0, 1, 1])
    masked = keras_hub.layers.MaskedLMMaskGenerator(10, 1.0, mask_token_id=0, mask_selection_length=4)(IDS)
    assert masked["mask_positions"].shape == (2, 4) and np.isfinite(masked["mask_weights"]).all()


def test_keras_nlp_is_keras_hub():
    assert keras_nlp.models.BertBackbone is keras_hub.models.BertBackbone
    assert keras.backend.backend() == "tensorflow"
