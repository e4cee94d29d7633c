"""Whole models on every backend of Keras, one `train_on_batch` at a time: the part `keras_models`.

And three steps that people write with tapes: DQN, PPO and a PINN, on gradtape and TensorFlow by the same code, on
PyTorch and JAX in their own APIs (workloads/by_hand.py). Every model of every library has its own process, for its
peak memory. Inputs are small, so that a step takes milliseconds to a second.

Imported by every peer's process, so it needs nothing but the standard library, NumPy and, for a model, Keras.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

import cases
import parts
import report

Made = tuple[Any, Any, Any, Any]  # model, loss, x, y
_BACKENDS = ("gradtape Keras", "tensorflow Keras", "jax Keras", "torch Keras")
_TAPES = ("gradtape eager", "tensorflow eager", "torch eager", "jax jit")
_FUNCTIONS = ("gradtape function", "tensorflow function")
LIBRARIES = {"gradtape ": "gradtape", "tensorflow ": "TensorFlow", "torch ": "PyTorch", "jax ": "JAX"}


# ---- models ---------------------------------------------------------------------------------------
# Each is a function of Keras, a source of random numbers, and whether it must be small: for tests and quick runs.


def _dense(
    keras: Any, rng: Any, tiny: bool, widths: tuple[int, ...], batch: int, block: Callable[..., Any]
) -> Made:
    layers = [layer for width in widths[1:] for layer in block(keras.layers, 8 if tiny else width)]
    model = keras.Sequential([keras.Input((widths[0],)), *layers, keras.layers.Dense(1)])
    batch = 2 if tiny else batch
    return model, "mse", rng.standard_normal((batch, widths[0])), rng.standard_normal((batch, 1))


def _mlp(keras: Any, rng: Any, tiny: bool) -> Made:
    return _dense(keras, rng, tiny, (20, 64, 64), 32, lambda layers, n: [layers.Dense(n, activation="tanh")])


def _tabular(keras: Any, rng: Any, tiny: bool) -> Made:
    def block(layers: Any, n: int) -> list[Any]:
        return [layers.Dense(n), layers.BatchNormalization(), layers.ReLU(), layers.Dropout(0.2)]

    return _dense(keras, rng, tiny, (100, 512, 256, 128), 256, block)


def _recurrent(kind: str) -> Callable[..., Made]:
    def make(keras: Any, rng: Any, tiny: bool) -> Made:
        layer, (batch, length, units) = getattr(keras.layers, kind), (2, 5, 8) if tiny else (64, 100, 128)
        body = [layer(units, return_sequences=True), layer(units), keras.layers.Dense(1)]
        model = keras.Sequential([keras.Input((length, 32)), *body])
        return model, "mse", rng.standard_normal((batch, length, 32)), rng.standard_normal((batch, 1))

    return make


def _application(name: str, size: int, batch: int) -> Callable[..., Made]:
    def make(keras: Any, rng: Any, tiny: bool) -> Made:
        side, count, classes = (32, 2, 10) if tiny else (size, batch, 100)
        model = getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3), classes=classes)
        loss = "sparse_categorical_crossentropy"
        return model, loss, rng.random((count, side, side, 3)), rng.integers(0, classes, count)

    return make


def _unet(keras: Any, rng: Any, tiny: bool) -> Made:
    layers, (side, batch, widths) = keras.layers, (16, 1, (4, 8)) if tiny else (96, 4, (32, 64, 128))
    x = h = keras.Input((side, side, 3))
    skips = []
    for n in widths:
        h = layers.BatchNormalization()(layers.Conv2D(n, 3, padding="same", activation="relu")(h))
        skips.append(h)
        h = layers.MaxPooling2D()(h)
    h = layers.Conv2D(2 * widths[-1], 3, padding="same", activation="relu")(h)
    for n, skip in zip(widths[::-1], skips[::-1], strict=True):
        h = layers.Conv2DTranspose(n, 3, strides=2, padding="same", activation="relu")(h)
        h = layers.Conv2D(n, 3, padding="same", activation="relu")(layers.Concatenate()([h, skip]))
    model = keras.Model(x, layers.Conv2D(1, 1)(h))
    return model, "mse", rng.random((batch, side, side, 3)), rng.random((batch, side, side, 1))


def _autoencoder(keras: Any, rng: Any, tiny: bool) -> Made:
    layers, (batch, widths) = keras.layers, (2, (4, 8)) if tiny else (64, (32, 64))
    more = {"strides": 2, "padding": "same", "activation": "relu"}
    body = [layers.Conv2D(n, 3, **more) for n in widths] + [
        layers.Conv2DTranspose(n, 3, **more) for n in widths[::-1]
    ]
    end = layers.Conv2D(1, 3, padding="same", activation="sigmoid")
    x = rng.random((batch, 28, 28, 1))
    return keras.Sequential([keras.Input((28, 28, 1)), *body, end]), "binary_crossentropy", x, x


def _text(keras: Any, rng: Any, tiny: bool, causal: bool) -> Made:
    """Blocks of attention: GPT normalises before each block and masks later words; BERT normalises after it."""
    layers = keras.layers
    width, depth, heads, length, batch, words = (16, 1, 2, 8, 2, 50) if tiny else (256, 4, 4, 128, 8, 2000)
    x = keras.Input((length,), dtype="int32")
    h = layers.Embedding(words, width)(x)
    if not causal:
        positions = layers.Embedding(length, width)(keras.ops.arange(length))
        h = layers.Dropout(0.1)(layers.LayerNormalization()(h + positions))
    for _ in range(depth):
        a = layers.LayerNormalization()(h) if causal else h
        a = layers.MultiHeadAttention(heads, width // heads)(a, a, use_causal_mask=causal)
        h = h + a if causal else layers.LayerNormalization()(h + layers.Dropout(0.1)(a))
        a = layers.LayerNormalization()(h) if causal else h
        a = layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(a))
        h = h + a if causal else layers.LayerNormalization()(h + layers.Dropout(0.1)(a))
    model = keras.Model(x, layers.Dense(words)(layers.LayerNormalization()(h)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return model, loss, *(rng.integers(0, words, (batch, length)) for _ in "xy")


def _mixed(make: Callable[..., Made]) -> Callable[..., Made]:
    """The model with layers that compute in bfloat16, on weights of float32."""

    def mixed(keras: Any, rng: Any, tiny: bool) -> Made:
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy("mixed_bfloat16")
        try:
            return make(keras, rng, tiny)
        finally:
            keras.config.set_dtype_policy(before)

    return mixed


def _gpt(*about: Any) -> Made:
    return _text(*about, causal=True)


MODELS: dict[str, Callable[..., Made]] = {
    "MLP": _mlp,
    "tabular": _tabular,
    "U-Net": _unet,
    "ResNet50": _application("ResNet50", 96, 8),
    "MobileNetV2": _application("MobileNetV2", 96, 16),
    "EfficientNetB0": _application("EfficientNetB0", 96, 8),
    "VGG16": _application("VGG16", 64, 8),
    "DenseNet121": _application("DenseNet121", 64, 8),
    "GPT": _gpt,
    "GPT, mixed_bfloat16": _mixed(_gpt),
    "BERT": lambda *about: _text(*about, causal=False),
    "LSTM": _recurrent("LSTM"),
    "GRU": _recurrent("GRU"),
    "autoencoder": _autoencoder,
}
WORDS = {
    "MLP": "MLP 20-64-64-1, batch 32",
    "tabular": "Dense, BatchNormalization, ReLU, Dropout of 512, 256, 128; batch 256",
    "U-Net": "U-Net of 32, 64, 128, 256 channels, 96x96, batch 4",
    "ResNet50": "ResNet50, 96x96, batch 8",
    "MobileNetV2": "MobileNetV2, 96x96, batch 16",
    "EfficientNetB0": "EfficientNetB0, 96x96, batch 8",
    "VGG16": "VGG16, 64x64, batch 8",
    "DenseNet121": "DenseNet121, 64x64, batch 8",
    "GPT": "GPT, 4 blocks, width 256, 128 tokens, batch 8",
    "GPT, mixed_bfloat16": "the same GPT, mixed_bfloat16",
    "BERT": "BERT-like encoder, 4 blocks, width 256, 128 tokens, batch 8",
    "LSTM": "two LSTM of 128, 100 steps, batch 64",
    "GRU": "two GRU of 128, 100 steps, batch 64",
    "autoencoder": "autoencoder with Conv2DTranspose, 28x28, batch 64",
    "DQN": "DQN: an action and a step of Q-learning, eager; batch 32",
    "PPO": "PPO: a clipped step of actor and critic, eager; batch 64",
    "PINN": "PINN: Burgers' equation by nested tapes, 512 points",
}
_RANDOM = ("tabular", "MobileNetV2", "EfficientNetB0", "BERT")  # dropout draws other numbers in each backend
# Inputs that differ in their last bit change the second loss by 3 % on one and the same backend: Adam takes steps of
# one length, whatever the size of a gradient, and fifty normalised layers pass them on. The first loss is compared.
_ROUNDED = ("ResNet50",)
_SMALL = ("MLP", "DQN", "PPO")  # for one thread, and quick enough for many samples
_QUICK = ("MLP", "tabular", "LSTM", "autoencoder", "DQN", "PINN")


# ---- cases, in the process of a library -----------------------------------------------------------


def case(
    library: str, module: Any, name: str, mode: str, tiny: bool = False, fresh: bool = False
) -> dict[str, cases.Case]:
    """One step of a model; its first call is the one that compiles. `fresh`: this process is for nothing else."""
    if fresh:
        alone_with_keras(library)
    if name in MODELS:
        step = _train_on_batch(library, name, tiny)
    else:
        from workloads import by_hand

        step = by_hand.build(library, module, name, mode, tiny)
    losses: list[float] = []

    def run(n: int) -> None:
        for _ in range(n):
            value = step()
            if not losses:
                losses.append(value)

    def check() -> list[float]:
        return losses if name in _ROUNDED else [*losses, step()]

    return {"step": cases.Case(run, check=None if name in _RANDOM else check)}


def alone_with_keras(library: str) -> None:
    """Hides other libraries from Keras, which uses JAX and pandas if they are installed. The environments of peers do
    not have them; gradtape runs in the environment of this benchmark, with everything that tools and tests need."""
    os.environ["KERAS_BACKEND"] = library
    if library == "gradtape":
        for other in ("jax", "torch", "tensorflow", "pandas"):
            sys.modules.setdefault(other, None)  # type: ignore[arg-type]


def _train_on_batch(library: str, name: str, tiny: bool) -> Callable[[], float]:
    import keras
    import numpy as np

    if keras.backend.backend() != library:
        raise RuntimeError(f"Keras has the backend {keras.backend.backend()}")
    rng = np.random.default_rng(0)
    model, loss, x, y = MODELS[name](keras, rng, tiny)
    x, y = (a.astype("float32" if a.dtype.kind == "f" else "int32") for a in (x, y))
    for weight in model.trainable_weights:
        shape = tuple(weight.shape)
        if len(shape) > 1:  # the others are initialised with zeros or ones in every backend
            weight.assign((rng.standard_normal(shape) / math.sqrt(math.prod(shape[:-1]))).astype("float32"))
    model.compile(keras.optimizers.Adam(1e-3), loss)
    return lambda: float(model.train_on_batch(x, y))


# ---- the part of the benchmark --------------------------------------------------------------------


def labels(name: str) -> tuple[str, ...]:
    """The ways in which a model is measured."""
    return _BACKENDS if name in MODELS else (*_TAPES, *_FUNCTIONS) if name == "PINN" else _TAPES


def measure(options: Any) -> dict[str, Any]:
    """Every model, in turns; small ones in a quick run."""
    versions: dict[str, str] = {}
    result = {}
    for name in [n for n in WORDS if n in (options.workloads or (_QUICK if options.quick else WORDS))]:
        small = name in _SMALL
        todo = {
            label: parts.command(label, "keras_models", name, alone=not small, tiny=options.quick, fresh=True)
            for label in labels(name)
        }
        rounds = options.rounds if small else min(options.rounds, 3)
        result[name], of_model = parts.measure_fresh("keras_models", name, todo, rounds, options.seconds)
        versions |= of_model
    with contextlib.suppress(metadata.PackageNotFoundError):
        versions["keras"] = metadata.version("keras")
    return {"versions": versions, "cases": result}


# ---- tables ---------------------------------------------------------------------------------------


def quickest(part: dict[str, Any], what: str) -> dict[str, Any]:
    """A part with one figure of each library's quickest way: milliseconds of a `step` or of the `first`, or MB of
    memory (`peak`)."""
    out: dict[str, Any] = {}
    for name, cells in part["cases"].items():
        out[name] = {}
        for start in LIBRARIES:
            best = report.best(cells, "step", start)
            if not best:
                out[name] |= {label: cell for label, cell in cells.items() if label.startswith(start)}
                continue
            label, step = best
            value = {
                "step": step["min"] / 1e3,
                "first": step["first_ms"],
                "peak": cells[label].get("peak", {}).get("mb"),
            }[what]
            quiet = step["quiet"] if what == "step" else True
            out[name][label] = {"step": {"min": value, "quiet": quiet} if value else {"missing": ""}}
    return {"cases": out}


def table(part: dict[str, Any]) -> str:
    """Step, first step and memory of each model."""
    heads = {
        "step": "One step, in milliseconds:",
        "first": "The first step, compilation included, in milliseconds:",
        "peak": "The most memory that the process held, in MB:",
    }
    lines = []
    for what, head in heads.items():
        named = {WORDS[name]: cells for name, cells in quickest(part, what)["cases"].items()}
        lines += [head, report.ways({"cases": named}, LIBRARIES)]
    return "\n\n".join(lines)


def summary(part: dict[str, Any]) -> str:
    """A line for each model: the step, and how first step and memory compare."""
    steps, firsts, peaks = (quickest(part, what)["cases"] for what in ("step", "first", "peak"))
    rows = []
    for name, cells in steps.items():
        ours = report.best(cells, "step", "gradtape")
        peer = report.best(cells, "step", *report.peers_of(cells))
        if ours and peer:
            ratios = [report.times(report.against_all(c[name], "step")) for c in (steps, firsts, peaks)]
            theirs = f"{report._us(peer[1])} ({report.title(peer[0])})"
            rows.append([name, report._us(ours[1]), theirs, *ratios])
    head = [
        "training step",
        "gradtape, ms",
        "best other, ms",
        "best other / ours",
        "of the first step",
        "of the memory",
    ]
    return report._table(head, rows)
