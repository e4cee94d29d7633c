"""Every test of Keras starts from the same random numbers: initial weights, shuffles, augmentations."""

import pytest

import gradtape as tf


@pytest.fixture(autouse=True)
def seeded():
    tf.keras.utils.set_random_seed(1)
