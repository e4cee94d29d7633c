"""Sentences of 200 different lengths through one training step of a small transformer, from a cold start.

    python benchmarks/lengths.py                    # gradtape and the peers, a process each, in turns
    python benchmarks/lengths.py gradtape tensorflow --rounds 3

Every library sees the same weights and sentences. The time is that of all steps together, compilation included, in
a new process, after the library was imported; the least of the rounds counts. JAX compiles each length; "jax
padded" pads sentences to the next power of two, as its users do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

LIBRARIES = ("gradtape", "tensorflow", "torch", "jax", "jax padded")
LAYERS, WIDTH, HEADS, HIDDEN, WORDS, BATCH = 2, 64, 4, 128, 500, 4
RATE = 0.05


def sentences() -> list[Any]:
    """Batches of words, no two of the same length, from 16 to 256."""
    import numpy as np

    rng = np.random.default_rng(3)
    lengths = rng.permutation(np.arange(16, 257))[:200]
    return [rng.integers(0, WORDS, (BATCH, n)).astype(np.int32) for n in lengths]


def weights() -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(5)
    shapes = {"words": (WORDS, WIDTH), "out": (WIDTH, WORDS)}
    for k in range(LAYERS):
        shapes |= {f"qkv{k}": (WIDTH, 3 * WIDTH), f"o{k}": (WIDTH, WIDTH)}
        shapes |= {f"up{k}": (WIDTH, HIDDEN), f"down{k}": (HIDDEN, WIDTH)}
    return {n: (rng.standard_normal(s) / s[0] ** 0.5).astype(np.float32) for n, s in shapes.items()}


# ---- the step in each library -----------------------------------------------------------------------


def _tensorflow(tf: Any) -> Callable[[Any], float]:
    w = {n: tf.Variable(v) for n, v in weights().items()}

    def heads(x: Any, length: Any) -> Any:
        return tf.transpose(tf.reshape(x, [BATCH, length, HEADS, WIDTH // HEADS]), [0, 2, 1, 3])

    def normal(x: Any) -> Any:
        x = x - tf.reduce_mean(x, -1, keepdims=True)
        return x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-5)

    def loss(text: Any) -> Any:
        length = tf.shape(text)[1] - 1
        x = tf.gather(w["words"], text[:, :-1])
        hidden = 1e9 * (1.0 - tf.linalg.band_part(tf.ones([length, length]), -1, 0))
        for k in range(LAYERS):
            q, key, v = (heads(t, length) for t in tf.split(normal(x) @ w[f"qkv{k}"], 3, axis=-1))
            score = tf.matmul(q, key, transpose_b=True) / (WIDTH // HEADS) ** 0.5 - hidden
            mixed = tf.transpose(tf.nn.softmax(score) @ v, [0, 2, 1, 3])
            x = x + tf.reshape(mixed, [BATCH, length, WIDTH]) @ w[f"o{k}"]
            x = x + tf.nn.relu(normal(x) @ w[f"up{k}"]) @ w[f"down{k}"]
        logits = normal(x) @ w["out"]
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=text[:, 1:], logits=logits)
        )

    @tf.function(input_signature=[tf.TensorSpec([BATCH, None], tf.int32)])
    def step(text: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(text)
        names = list(w)
        for n, g in zip(names, tape.gradient(value, [w[n] for n in names]), strict=True):
            w[n].assign_sub(RATE * tf.convert_to_tensor(g))
        return value

    return lambda text: float(step(tf.constant(text)))


def _torch() -> Callable[[Any], float]:
    import torch
    import torch.nn.functional as F  # noqa: N812

    w = {n: torch.tensor(v, requires_grad=True) for n, v in weights().items()}

    def heads(x: Any) -> Any:
        return x.reshape(BATCH, -1, HEADS, WIDTH // HEADS).transpose(1, 2)

    def normal(x: Any) -> Any:
        x = x - x.mean(-1, keepdim=True)
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)

    def loss(text: Any) -> Any:
        x = w["words"][text[:, :-1]]
        length = x.shape[1]
        hidden = 1e9 * (1.0 - torch.tril(torch.ones(length, length)))
        for k in range(LAYERS):
            q, key, v = (heads(t) for t in (normal(x) @ w[f"qkv{k}"]).split(WIDTH, -1))
            score = q @ key.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5 - hidden
            mixed = (torch.softmax(score, -1) @ v).transpose(1, 2).reshape(BATCH, length, WIDTH)
            x = x + mixed @ w[f"o{k}"]
            x = x + torch.relu(normal(x) @ w[f"up{k}"]) @ w[f"down{k}"]
        return F.cross_entropy((normal(x) @ w["out"]).reshape(-1, WORDS), text[:, 1:].reshape(-1).long())

    compiled = torch.compile(loss, dynamic=True)

    def step(text: Any) -> float:
        value = compiled(torch.tensor(text))
        value.backward()
        with torch.no_grad():
            for v in w.values():
                v -= RATE * v.grad
                v.grad = None
        return float(value)

    return step


def _jax(padded: bool) -> Callable[[Any], float]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    w = {n: jnp.asarray(v) for n, v in weights().items()}

    def heads(x: Any) -> Any:
        return x.reshape(BATCH, -1, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    def normal(x: Any) -> Any:
        x = x - x.mean(-1, keepdims=True)
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def loss(w: Any, text: Any, length: Any) -> Any:
        x = w["words"][text[:, :-1]]
        n = x.shape[1]
        hidden = 1e9 * (1.0 - jnp.tril(jnp.ones((n, n))))
        for k in range(LAYERS):
            q, key, v = (heads(t) for t in jnp.split(normal(x) @ w[f"qkv{k}"], 3, -1))
            score = q @ key.swapaxes(-1, -2) / (WIDTH // HEADS) ** 0.5 - hidden
            mixed = (jax.nn.softmax(score) @ v).transpose(0, 2, 1, 3).reshape(BATCH, n, WIDTH)
            x = x + mixed @ w[f"o{k}"]
            x = x + jax.nn.relu(normal(x) @ w[f"up{k}"]) @ w[f"down{k}"]
        chances = jax.nn.log_softmax(normal(x) @ w["out"])
        of_words = -jnp.take_along_axis(chances, text[:, 1:, None], -1)[..., 0]
        valid = jnp.arange(n) < length
        return (of_words * valid).sum() / (BATCH * length)

    @jax.jit
    def step(w: Any, text: Any, length: Any) -> Any:
        value, g = jax.value_and_grad(loss)(w, text, length)
        return value, jax.tree.map(lambda a, b: a - RATE * b, w, g)

    def call(text: Any) -> float:
        nonlocal w
        length = text.shape[1] - 1
        if padded:
            size = 1 << (length - 1).bit_length()
            text = np.pad(text, [(0, 0), (0, size + 1 - text.shape[1])])
        value, w = step(w, text, jnp.float32(length))
        return float(value)

    return call


def worker(library: str) -> dict[str, Any]:
    """All steps in this process: seconds, and the losses of the first and the last."""
    if library == "gradtape":
        import gradtape as tf

        step = _tensorflow(tf)
    elif library == "tensorflow":
        import tensorflow as tf  # type: ignore[no-redef]

        step = _tensorflow(tf)
    else:
        step = _torch() if library == "torch" else _jax("padded" in library)
    texts = sentences()
    start = time.perf_counter()
    losses = [step(t) for t in texts]
    return {"seconds": time.perf_counter() - start, "losses": [losses[0], losses[-1]]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("libraries", nargs="*", default=LIBRARIES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(" ".join(options.libraries))))
        return
    import peers

    best: dict[str, float] = {}
    for _ in range(options.rounds):
        for library in options.libraries:
            name = library.split()[0]
            command = [peers.python_of(name), __file__, "--worker", *library.split()]
            done = subprocess.run(command, env=peers.environment(name), capture_output=True, text=True)
            if done.returncode:
                print(f"{library}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                continue
            result = json.loads(done.stdout.splitlines()[-1])
            best[library] = min(best.get(library, float("inf")), result["seconds"])
            print(f"{library:12} {result['seconds']:8.2f} s   losses {result['losses']}", flush=True)
    for library, seconds in best.items():
        print(f"{library:12} {seconds:8.2f} s   {seconds / best.get('gradtape', seconds):6.2f}x gradtape")


if __name__ == "__main__":
    main()
