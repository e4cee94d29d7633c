"""Optimizers that need no Keras: `tf.optimizers.Adam` and the like, and `tf.optimizers.schedules`.

In reading order: `rules` (one short method each), `base` (options and state), `step` (what a step
computes, as one native program), `schedules`; then `loss_scale` (for float16) and `scipy_minimize`.
"""

from __future__ import annotations

import sys

from gradtape._src.optimizers.base import Optimizer
from gradtape._src.optimizers.loss_scale import LossScaleOptimizer
from gradtape._src.optimizers.rules import (
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Ftrl,
    Lamb,
    Lion,
    Nadam,
    RMSprop,
)
from gradtape._src.optimizers.scipy_minimize import scipy_minimize
from gradtape._src.optimizers.serialization import deserialize, get, serialize
from gradtape._src.public import absent as _absent
from gradtape.optimizers import schedules as schedules

__all__ = [
    "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lamb", "Lion",
    "LossScaleOptimizer",
    "Nadam", "Optimizer", "RMSprop", "deserialize", "get", "schedules", "scipy_minimize", "serialize",
]  # fmt: skip

# Keras 2 had its older classes there; the names are the same.
legacy = experimental = sys.modules[__name__]

__getattr__, __dir__ = _absent.of("optimizers")
