"""The step of an optimizer, with given gradients: the part `optimizers`.

JAX has no optimizers: its Adam is the one that the workloads write by hand. autograd's would be NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cases
import parts

_SMALL, _LARGE = [(1000,)] * 100, [(1000, 1000)] * 4
# Case -> optimizer and the shapes of the parameters.
CASES = {
    "Adam, 100 tensors of 1,000": ("Adam", _SMALL),
    "Adam, 4 tensors of 1,000,000": ("Adam", _LARGE),
    "SGD momentum, 100 tensors of 1,000": ("SGD", _SMALL),
    "SGD momentum, 4 tensors of 1,000,000": ("SGD", _LARGE),
    "RMSprop, 100 tensors of 1,000": ("RMSprop", _SMALL),
}
_LABELS = (
    "gradtape eager", "tensorflow eager", "torch eager", "torch eager, fused",
    "gradtape function", "tensorflow function", "jax jit",
)  # fmt: skip


def case(library: str, module: Any, name: str, mode: str) -> dict[str, cases.Case]:
    import numpy as np

    kind, shapes = CASES[name]
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    gradients = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    if library == "torch":
        call, first = _torch(module, mode, kind, weights, gradients)
    elif library == "jax":
        call, first = _jax(module, kind, weights, gradients)
    else:
        call, first = _tensorflow(module, mode, kind, weights, gradients)
    if call is None:
        return {}
    return {"step": cases.Case(cases.repeat(call), check=lambda: [float(np.abs(first()).sum())])}


Made = tuple[Callable[[], Any] | None, Callable[[], Any]]


def _tensorflow(tf: Any, mode: str, kind: str, weights: Any, gradients: Any) -> Made:
    more = {"momentum": 0.9} if kind == "SGD" else {}
    optimizer = getattr(tf.optimizers, kind)(learning_rate=1e-3, **more)
    variables, gradients = [tf.Variable(w) for w in weights], [tf.constant(g) for g in gradients]
    optimizer.build(variables)

    def step(gradients: Any) -> None:
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    run = tf.function(step) if mode == "function" else step
    return lambda: run(gradients), lambda: variables[0].numpy()


def _torch(torch: Any, mode: str, kind: str, weights: Any, gradients: Any) -> Made:
    parameters = [torch.tensor(w, requires_grad=True) for w in weights]
    for w, g in zip(parameters, gradients, strict=True):
        w.grad = torch.tensor(g)
    more: dict[str, Any] = {"Adam": {"eps": 1e-7}, "SGD": {"momentum": 0.9}, "RMSprop": {"alpha": 0.9}}[kind]
    if "fused" in mode:
        if kind == "RMSprop":
            return None, list
        more["fused"] = True
    return getattr(torch.optim, kind)(
        parameters, lr=1e-3, **more
    ).step, lambda: parameters[0].detach().numpy()


def _jax(jax: Any, kind: str, weights: Any, gradients: Any) -> Made:
    import numpy as np
    from workloads import jax_numpy

    if kind != "Adam":
        return None, list
    jnp = jax.numpy
    weights, gradients = [jnp.array(w) for w in weights], [jnp.array(g) for g in gradients]
    current = [weights, jax_numpy.adam_state(jnp, weights)]

    def whole(weights: Any, state: Any, gradients: Any) -> Any:
        return jax_numpy.adam(jnp, weights, state, gradients)

    update = jax.jit(whole, donate_argnums=(0, 1))

    def step() -> None:
        current[:] = jax.block_until_ready(update(*current, gradients))

    return step, lambda: np.asarray(current[0][0])


def measure(options: Any) -> dict[str, Any]:
    todo = {
        name: {label: parts.command(label, "optimizers", name) for label in _LABELS}
        for name in parts.some(CASES, options)
    }
    return parts.measure("optimizers", todo, options)
