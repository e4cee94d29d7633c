"""Steps of optimizers that are compiled as a whole (core/kernels/whole.h): found, and with the bits of their ops."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.engines.native import lower

KERNELS = Path(__file__).parents[2] / "core" / "kernels" / "pairs.cpp"
OPTIMIZERS = {
    "SGD": lambda: tf.optimizers.SGD(0.1, momentum=0.9),
    "Adam": lambda: tf.optimizers.Adam(0.1),
    "AdamW": lambda: tf.optimizers.AdamW(0.1),
    "RMSprop": lambda: tf.optimizers.RMSprop(0.1),
}


def text_of(description):
    """A cluster as core/py/program_type.cpp writes it."""
    _, _, registers, ops, _, _ = description

    def word(r):
        kind, broadcast, _, index = registers[r]
        return f"{'s' if broadcast == 1 else 'IOS'[kind]}{index}"

    return "; ".join(" ".join([name, *map(word, [into, *ins])]) for name, _, _, into, ins in ops)


@pytest.fixture
def texts(monkeypatch):
    """The texts of the clusters that are lowered."""
    seen = []
    cluster_step = lower._cluster_step

    def noted(cluster, leaving):
        step = cluster_step(cluster, leaving)
        if not any(isinstance(op[3], list) for op in step.object[3]):
            seen.append(text_of(step.object))
        return step

    monkeypatch.setattr(lower, "_cluster_step", noted)
    return seen


def known():
    """The compiled clusters."""
    found = re.findall(r'whole_cluster<((?:\s*"[^"]*")+)>', KERNELS.read_text())
    return {"".join(re.findall(r'"([^"]*)"', text)) for text in found}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_found(name, texts):
    v, opt = tf.Variable(np.ones(1000, np.float32)), OPTIMIZERS[name]()
    opt.apply_gradients([(tf.ones(1000), v)])
    assert known() & set(texts)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_steps_of_keras_are_found(name, texts):
    optimizers = pytest.importorskip("keras").optimizers
    v = tf.Variable(np.ones(1000, np.float32))
    getattr(optimizers, name)(0.1, **({"momentum": 0.9} if name == "SGD" else {})).apply([tf.ones(1000)], [v])
    assert known() & set(texts)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [257, 1000, 4099, 300_000])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_their_bits_are_those_of_the_ops(name, size, threads):
    random = np.random.default_rng(size)
    first = random.normal(size=size).astype(np.float32)
    opt, v = OPTIMIZERS[name](), tf.Variable(first)
    opt.build([v])
    value, lr = tf.constant(first), tf.constant(0.1)
    slots = SimpleNamespace(**{n: tf.zeros(size) for n in opt.slots(v)})
    before = tf.config.threading.get_intra_op_parallelism_threads()
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    try:
        for step in range(1, 4):
            g = tf.constant(random.normal(size=size).astype(np.float32))
            opt.apply_gradients([(g, v)])
            if opt.weight_decay is not None:
                value = value - value * opt.weight_decay * lr
            value = opt.update(value, g, slots, lr, tf.constant(float(step)))
            assert np.array_equal(v.numpy(), value.numpy())
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)
