"""Optimizers and schedules that must give Keras' numbers, and the script that asks Keras for them.

`python tests/optimizer_cases.py` in an environment with TensorFlow writes optimizer_reference.json.
"""

import json
from pathlib import Path

import numpy as np

REFERENCE = Path(__file__).with_name("optimizer_reference.json")
STEPS = 36

# Constructors, as text so that gradtape and Keras read the same line.
OPTIMIZERS = [
    "SGD(0.05)",
    "SGD(0.05, momentum=0.9)",
    "SGD(0.05, momentum=0.9, nesterov=True)",
    "SGD(0.05, momentum=0.9, weight_decay=0.02)",
    "SGD(0.05, clipnorm=0.7)",
    "SGD(0.05, clipvalue=0.4)",
    "SGD(0.05, global_clipnorm=0.9)",
    "SGD(0.05, loss_scale_factor=8.0)",
    "SGD(0.05, momentum=0.5, gradient_accumulation_steps=3)",
    "SGD(0.05, use_ema=True, ema_momentum=0.8)",
    "SGD(0.05, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=5)",
    "Adam(0.05)",
    "Adam(0.05, beta_1=0.8, beta_2=0.95, epsilon=1e-4)",
    "Adam(0.05, amsgrad=True)",
    "Adam(0.05, global_clipnorm=0.5, weight_decay=0.01, use_ema=True, ema_momentum=0.9)",
    "Adam(0.05, gradient_accumulation_steps=4)",
    "Adam(0.05, gradient_accumulation_steps=4, clipnorm=0.3, use_ema=True, ema_overwrite_frequency=2)",
    "AdamW(0.05)",
    "AdamW(0.05, weight_decay=0.1, amsgrad=True)",
    "RMSprop(0.05)",
    "RMSprop(0.05, rho=0.8, momentum=0.9)",
    "RMSprop(0.05, centered=True)",
    "RMSprop(0.05, momentum=0.5, centered=True, epsilon=1e-3)",
    "Adagrad(0.05)",
    "Adagrad(0.05, initial_accumulator_value=0.5, epsilon=1e-3)",
    "Adadelta(0.5)",
    "Adadelta(0.5, rho=0.8, epsilon=1e-4)",
    "Adamax(0.05)",
    "Adamax(0.05, beta_1=0.7, beta_2=0.9)",
    "Nadam(0.05)",
    "Nadam(0.05, beta_1=0.8, beta_2=0.95)",
    "Nadam(0.05, gradient_accumulation_steps=3)",
    "Ftrl(0.05)",
    "Ftrl(0.05, learning_rate_power=-0.3, l1_regularization_strength=0.01, l2_regularization_strength=0.02, "
    "l2_shrinkage_regularization_strength=0.03, beta=0.1)",
    "Lion(0.05)",
    "Lion(0.05, beta_1=0.7, beta_2=0.8, weight_decay=0.1)",
    "Lamb(0.05)",
    "Lamb(0.05, beta_1=0.8, beta_2=0.9, epsilon=1e-3)",
    "Adafactor(0.05)",
    "Adafactor(0.05, beta_2_decay=-0.5, epsilon_2=0.1, clip_threshold=0.5)",
    "SGD(schedules.ExponentialDecay(0.1, 10, 0.5))",
    "Adam(schedules.CosineDecay(0.01, 20, alpha=0.1, warmup_target=0.1, warmup_steps=8))",
    "Adam(schedules.PiecewiseConstantDecay([4, 17], [0.1, 0.05, 0.01]), weight_decay=0.1)",
]

SCHEDULES = [
    "ExponentialDecay(0.1, 10, 0.5)",
    "ExponentialDecay(0.1, 10, 0.5, staircase=True)",
    "InverseTimeDecay(0.1, 7, 0.5)",
    "InverseTimeDecay(0.1, 7, 0.5, staircase=True)",
    "PiecewiseConstantDecay([3, 7, 20], [1.0, 0.5, 0.25, 0.125])",
    "PiecewiseConstantDecay([5], [0.1, 0.01])",
    "PolynomialDecay(0.1, 13)",
    "PolynomialDecay(0.1, 13, end_learning_rate=0.02, power=2.0)",
    "PolynomialDecay(0.1, 13, end_learning_rate=0.02, power=0.5, cycle=True)",
    "CosineDecay(0.1, 20)",
    "CosineDecay(0.1, 20, alpha=0.2)",
    "CosineDecay(0.0, 15, alpha=0.1, warmup_target=0.1, warmup_steps=6)",
    "CosineDecayRestarts(0.1, 5)",
    "CosineDecayRestarts(0.1, 5, t_mul=1.0, m_mul=0.9)",
    "CosineDecayRestarts(0.1, 5, t_mul=1.5, m_mul=0.8, alpha=0.1)",
]


def start():
    """The first values of the variables: a matrix and a vector."""
    random = np.random.RandomState(7)
    return [random.randn(2, 3).astype("float32"), random.randn(3).astype("float32")]


def gradients():
    """The gradients of every step, a trend with noise."""
    random = np.random.RandomState(11)
    return [[(0.3 + random.randn(*v.shape)).astype("float32") for v in start()] for _ in range(STEPS)]


def _read(module, text):
    return eval(text, {name: getattr(module, name) for name in dir(module)})


def train(tf, text):
    """The variables after all steps, and after `finalize_variable_values`."""
    optimizer = _read(tf.optimizers, text)
    variables = [tf.Variable(v) for v in start()]
    for grads in gradients():
        optimizer.apply_gradients(zip([tf.constant(g) for g in grads], variables, strict=True))
    plain = np.concatenate([v.numpy().ravel() for v in variables])
    optimizer.finalize_variable_values(variables)
    return np.concatenate([plain, *(v.numpy().ravel() for v in variables)])


def rates(tf, text):
    schedule = _read(tf.optimizers.schedules, text)
    return np.array([np.float32(schedule(step)) for step in range(32)])


if __name__ == "__main__":
    import tensorflow as tf

    found = {text: [float(x) for x in train(tf, text)] for text in OPTIMIZERS}
    found.update({text: [float(x) for x in rates(tf, text)] for text in SCHEDULES})
    lines = [f"{json.dumps(k)}: [{', '.join(f'{x:.8g}' for x in v)}]" for k, v in found.items()]
    REFERENCE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
