"""Candidate samplers, and the losses built on them: the numbers are those of TensorFlow 2.21."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.tensors import random as state

TRUE = tf.constant([[1, 2], [3, 4]], tf.int64)


@pytest.fixture(autouse=True)
def no_global_seed(monkeypatch):
    monkeypatch.setattr(state, "_seeds", state.Seeds())


def test_uniform():
    sampled, true_expected, expected = tf.random.uniform_candidate_sampler(TRUE, 2, 6, True, 20, seed=3)
    np.testing.assert_array_equal(sampled, [15, 0, 3, 8, 17, 14])
    np.testing.assert_allclose(true_expected, np.full((2, 2), 0.3), rtol=1e-6)
    again, _, expected = tf.random.uniform_candidate_sampler(TRUE, 2, 6, True, 20, seed=3)
    np.testing.assert_array_equal(again, [12, 11, 13, 8, 17, 3])
    np.testing.assert_allclose(expected, np.full(6, 0.30166271), rtol=1e-6)
    repeated, _, _ = tf.random.uniform_candidate_sampler(TRUE, 2, 6, False, 20, seed=3)
    np.testing.assert_array_equal(repeated, [15, 0, 3, 8, 17, 14])


def test_log_uniform_continues_after_the_global_seed():
    tf.random.set_seed(4)
    sampled, true_expected, _ = tf.random.log_uniform_candidate_sampler(TRUE, 2, 6, True, 2000)
    np.testing.assert_array_equal(sampled, [454, 109, 2, 1, 451, 490])
    np.testing.assert_allclose(true_expected, [[0.320045, 0.22707552], [0.17613345, 0.14391153]], rtol=1e-6)


def test_unigrams():
    weights = [1.0, 2, 3, 4, 5, 6]
    sampled, _, _ = tf.random.fixed_unigram_candidate_sampler(TRUE, 2, 4, True, 6, unigrams=weights, seed=3)
    np.testing.assert_array_equal(sampled, [1, 5, 2, 4])
    _, expected, _ = tf.nn.fixed_unigram_candidate_sampler(
        TRUE, 2, 4, False, 6, unigrams=weights, distortion=0.75, seed=3
    )
    np.testing.assert_allclose(expected, [[0.44946432, 0.6092053], [0.75590587, 0.89361453]], rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Must provide either"):
        tf.random.fixed_unigram_candidate_sampler(TRUE, 2, 4, True, 6)


def test_unigrams_of_a_file(tmp_path):
    file = tmp_path / "words.csv"
    file.write_text("the,6\ncat,3\nsat,0\n")
    sampled, _, _ = tf.random.fixed_unigram_candidate_sampler([[0]], 1, 2, True, 3, vocab_file=str(file))
    assert sorted(sampled.numpy()) == [0, 1]  # a class of weight 0 is never drawn


def test_learned_unigrams():
    first = tf.random.learned_unigram_candidate_sampler(TRUE, 2, 4, True, 6, seed=77)
    np.testing.assert_allclose(first[1], np.full((2, 2), 2 / 3), rtol=0.2)
    second = tf.random.learned_unigram_candidate_sampler(TRUE, 2, 4, True, 6, seed=77)
    assert (np.asarray(second[1]) > 0.6).all()  # the classes that were true are more likely now


def test_all_and_accidental_hits():
    sampled, expected, _ = tf.random.all_candidate_sampler(TRUE, 2, 5, True)
    np.testing.assert_array_equal(sampled, np.arange(5))
    np.testing.assert_array_equal(expected, np.ones((2, 2)))
    rows, columns, weights = tf.nn.compute_accidental_hits(TRUE, [4, 7, 1], 2)
    np.testing.assert_array_equal(rows, [0, 1])
    np.testing.assert_array_equal(columns, [2, 0])
    assert (np.asarray(weights) == np.finfo(np.float32).min).all()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((TRUE, 2, 30, True, 20), "too small"),
        ((TRUE, 3, 3, True, 20), "num_true"),
        ((TRUE, 2, 3, True, 4), "received 4"),
    ],
)
def test_wrong_arguments(args, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.random.uniform_candidate_sampler(*args)


def test_functions_draw_anew():
    draw = tf.function(lambda c: tf.random.log_uniform_candidate_sampler(c, 2, 5, True, 1000)[0])
    assert draw(TRUE).numpy().tolist() != draw(TRUE).numpy().tolist()


# ---- losses -------------------------------------------------------------------------------------

RNG = np.random.default_rng(1)
WEIGHTS, BIASES, INPUTS = RNG.normal(size=(20, 5)), RNG.normal(size=20), RNG.normal(size=(3, 5))
LABELS = np.array([[1, 2], [3, 4], [5, 6]])
SAMPLED = np.array([7, 8, 3, 1]), np.full((3, 2), 0.3), np.array([0.2, 0.3, 0.4, 0.5])


def reference_logits(remove):
    true = np.einsum("bd,btd->bt", INPUTS, WEIGHTS[LABELS]) + BIASES[LABELS] - np.log(SAMPLED[1])
    sampled = INPUTS @ WEIGHTS[SAMPLED[0]].T + BIASES[SAMPLED[0]] - np.log(SAMPLED[2])
    if remove:
        sampled[(LABELS[:, :, None] == SAMPLED[0]).any(1)] = -1e30
    return np.concatenate([true, sampled], 1), np.repeat([[0.5, 0.5, 0, 0, 0, 0]], 3, 0)


def values():
    return tuple(tf.constant(v) for v in SAMPLED)


@pytest.mark.parametrize("remove", [False, True])
def test_nce_loss(remove):
    logits, labels = reference_logits(remove)
    expected = (np.logaddexp(0, logits) - labels * logits).sum(1)
    loss = tf.nn.nce_loss(WEIGHTS, BIASES, LABELS, INPUTS, 4, 20, 2, values(), remove_accidental_hits=remove)
    np.testing.assert_allclose(loss, expected, rtol=1e-10)


@pytest.mark.parametrize("remove", [False, True])
def test_sampled_softmax_loss(remove):
    logits, labels = reference_logits(remove)
    expected = np.log(np.exp(logits).sum(1)) - (labels * np.where(labels, logits, 0)).sum(1)
    loss = tf.nn.sampled_softmax_loss(
        WEIGHTS, BIASES, LABELS, INPUTS, 4, 20, 2, values(), remove_accidental_hits=remove
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-10)


def test_gradients_of_the_table_are_sparse():
    table, biases = tf.Variable(WEIGHTS), tf.Variable(BIASES)
    with tf.GradientTape() as tape:
        loss = tf.nn.nce_loss(table, biases, LABELS[:, :1], INPUTS, 4, 20)
    g, _ = tape.gradient(loss, [table, biases])
    assert isinstance(g, tf.IndexedSlices)
    assert g.values.shape == (7, 5)  # three true classes and four sampled ones
