"""Training with Keras: W2 to W7 written with layers, `fit`, and the step of an optimizer.

The same code on gradtape and on TensorFlow: a custom GradientTape loop, eager and under `function`; `fit` beside
its compiled step; `apply_gradients` for 100 variables beside the time to copy their memory. Imported by every
peer's process, so it needs nothing but the standard library and NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cases
import parts
import peers
import report

LOOPS = ("W2", "W3", "W4", "W5", "W6", "W7")
FITS = ("W2", "W3")
# Elements of each of the 100 variables.
SIZES = (10, 1_000, 10_000)
_LIBRARIES = ("gradtape", "tensorflow")
_BATCHES = 100


# ---- models ---------------------------------------------------------------------------------------


def _mlp(keras: Any, *widths: int, activation: str) -> Any:
    hidden = [keras.layers.Dense(n, activation=activation) for n in widths[1:-1]]
    return keras.Sequential([keras.Input((widths[0],)), *hidden, keras.layers.Dense(widths[-1])])


def _cnn(keras: Any) -> Any:
    layers, body = keras.layers, []
    for n in (32, 64):
        body += [layers.Conv2D(n, 3, padding="same", activation="relu"), layers.MaxPooling2D(padding="same")]
    dense = [layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(10)]
    return keras.Sequential([keras.Input((28, 28, 1)), *body, *dense])


def _transformer(keras: Any, blocks: int = 2, width: int = 256, heads: int = 4, inner: int = 1024) -> Any:
    layers = keras.layers
    inputs = x = keras.Input((128, width))
    for _ in range(blocks):
        h = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(heads, width // heads)(h, h)
        h = layers.Dense(inner, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(width)(h)
    return keras.Model(inputs, x)


def _workload(keras: Any, name: str) -> tuple[Any, Any, Any, Any]:
    """A model with known weights, its loss, and one batch."""
    import numpy as np

    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape).astype("float32")

    mse = keras.losses.MeanSquaredError()
    classes = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if name == "W2":
        model, loss, x, y = _mlp(keras, 4, 64, 64, 2, activation="tanh"), mse, normal(1, 4), normal(1, 2)
    elif name == "W3":
        model, loss, x, y = _mlp(keras, 32, 64, 64, 1, activation="relu"), mse, normal(32, 32), normal(32, 1)
    elif name == "W4":
        model, loss, x = _mlp(keras, 784, 512, 512, 10, activation="relu"), classes, normal(128, 784)
        y = rng.integers(0, 10, 128)
    elif name == "W5":
        model, loss, x, y = _cnn(keras), classes, normal(64, 28, 28, 1), rng.integers(0, 10, 64)
    elif name == "W6":
        model = keras.Sequential([keras.Input((50, 64)), keras.layers.LSTM(128)])
        loss, x, y = mse, normal(32, 50, 64), normal(32, 128)
    else:
        model, loss, x, y = _transformer(keras), mse, normal(8, 128, 256), normal(8, 128, 256)
    # Scaled as initializers of layers do, so that no activation is saturated.
    model.set_weights([normal(*w.shape) / math.sqrt(max(w.shape[:-1], default=1)) for w in model.weights])
    return model, loss, x, y


# ---- cases, in the process of a library -----------------------------------------------------------


def case(library: str, tf: Any, kind: str, name: Any) -> dict[str, cases.Case]:
    """The metrics of one case: `kind` is loop, fit or optimizer."""
    if library == "tensorflow":
        try:
            tf.config.threading.set_intra_op_parallelism_threads(peers.THREADS)
            tf.config.threading.set_inter_op_parallelism_threads(peers.THREADS)
        except RuntimeError:
            pass  # set before, in the first case
    return {"loop": _loop, "fit": _fit, "optimizer": _optimizer}[kind](tf, name)


def _repeated(step: Callable[[], Any]) -> Callable[[int], None]:
    def run(n: int) -> None:
        for _ in range(n):
            step()

    return run


def _loop(tf: Any, name: str) -> dict[str, cases.Case]:
    result = {}
    for way in ("eager", "function"):
        model, loss, x, y = _workload(tf.keras, name)
        step = _step(tf, model, loss, tf.constant(x), tf.constant(y))
        run = tf.function(step) if way == "function" else step
        losses = [float(run()) for _ in range(3)]
        result[way] = cases.Case(_repeated(lambda run=run: run().numpy()), check=losses)
    return result


def _step(tf: Any, model: Any, loss: Any, x: Any, y: Any) -> Callable[[], Any]:
    optimizer = tf.keras.optimizers.Adam(1e-3)

    def step() -> Any:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))  # noqa: B905
        return value

    return step


def _fit(tf: Any, name: str) -> dict[str, cases.Case]:
    """An epoch of `fit`, and only its compiled step on one batch."""
    import numpy as np

    model, loss, x, y = _workload(tf.keras, name)
    model.compile(tf.keras.optimizers.Adam(1e-3), loss)
    many_x, many_y = np.concatenate([x] * _BATCHES), np.concatenate([y] * _BATCHES)
    model.fit(many_x, many_y, batch_size=len(x), verbose=0)
    batch = tf.constant(x), tf.constant(y)
    step = tf.function(lambda x, y: model.train_step((x, y)))

    def epoch(n: int) -> None:
        model.fit(many_x, many_y, batch_size=len(x), verbose=0)

    return {
        "fit": cases.Case(epoch, count=_BATCHES),
        "step": cases.Case(_repeated(lambda: step(*batch))),
    }


def _optimizer(tf: Any, size: int) -> dict[str, cases.Case]:
    """Adam's step for 100 variables, and a copy of as many bytes as it reads and writes."""
    import numpy as np

    optimizers = {"Keras": tf.keras.optimizers.Adam}
    if hasattr(tf, "optimizers") and tf.optimizers.Adam is not tf.keras.optimizers.Adam:
        optimizers["native"] = tf.optimizers.Adam
    result = {}
    for label, adam in optimizers.items():
        variables = [tf.Variable(np.ones(size, np.float32)) for _ in range(100)]
        pairs = [(tf.constant(np.ones(size, np.float32)), v) for v in variables]
        step = adam(1e-3).apply_gradients
        result[label] = cases.Case(_repeated(lambda step=step, pairs=pairs: step(pairs)))
    # Gradient, variable and two slots are read, three of them written: 7 arrays, and a copy moves two.
    source = np.ones(int(size * 100 * 3.5), np.float32)
    target = np.empty_like(source)
    result["memory"] = cases.Case(_repeated(lambda: np.copyto(target, source)))
    return result


# ---- the part of the benchmark --------------------------------------------------------------------


def measure(options: Any) -> dict[str, Any]:
    """Every case, in turns."""
    running = peers.start(list(_LIBRARIES))
    todo = [("loop", n) for n in LOOPS] + [("fit", n) for n in FITS] + [("optimizer", n) for n in SIZES]
    result = {}
    for kind, name in todo:
        parts.progress("keras", f"{kind} {name}")
        heavy = name in LOOPS[2:]
        commands = {
            lib: {"library": lib, "part": "keras", "kind": kind, "name": name, "alone": heavy}
            for lib in running
        }
        rounds = min(options.rounds, 3 if heavy else 6)
        patience = 1 if heavy else 2
        result[f"{kind} {name}"] = parts.in_turns(running, commands, rounds, options.seconds, patience)
    versions = {lib: p.version for lib, p in running.items()}
    parts._close(running)
    return {"versions": versions, "cases": result}


def table(part: dict[str, Any]) -> str:
    """The figures of the part."""
    by_kind: dict[str, list] = {"loop": [], "fit": [], "optimizer": []}
    for label, cells in part["cases"].items():
        kind, name = label.split()
        ours = {m: _us(cells, "gradtape", m) for m in cells.get("gradtape", {})}
        theirs = {m: report._against(cells, "gradtape", "tensorflow", m) for m in ours}
        if kind == "loop":
            row = [ours.get("eager"), theirs.get("eager"), ours.get("function"), theirs.get("function")]
        elif kind == "fit":
            row = [ours.get("fit"), ours.get("step"), _above(cells, "gradtape"), _above(cells, "tensorflow")]
        else:
            row = [ours.get("Keras"), ours.get("native"), ours.get("memory"), theirs.get("Keras")]
        by_kind[kind].append([name, *(r or "-" for r in row)])
    return "\n\n".join([
        report._table(["GradientTape loop", "eager us", "TF / ours", "function us", "TF / ours"], by_kind["loop"]),
        report._table(["fit, us a step", "fit", "its step", "above it", "above it in TF"], by_kind["fit"]),
        report._table(
            ["Adam, 100 variables of", "tf.keras us", "tf.optimizers us", "copy us", "TF / tf.keras"],
            by_kind["optimizer"],
        ),
    ])  # fmt: skip


def _us(cells: dict[str, Any], library: str, metric: str) -> str:
    cell = report._figure(cells, library, metric)
    return report._us(cell) if cell else report._absent(cells, library, metric)


def _above(cells: dict[str, Any], library: str) -> str:
    """The overhead of `fit` over its compiled step."""
    fit, step = (report._figure(cells, library, m) for m in ("fit", "step"))
    return f"{fit['min'] - step['min']:.1f}" if fit and step else "-"
