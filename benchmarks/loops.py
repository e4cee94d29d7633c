"""One iteration of a loop, in Python and compiled: the part `loops`.

Compiled PyTorch has no counterpart: torch.compile unrolls a Python loop (that is W6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cases
import parts

# Case -> iterations, shape of the state, whether the gradient is taken as well.
CASES = {
    "scalar, 1000 iterations": (1000, (), False),
    "tanh(x @ w) [32,64], 100 iterations": (100, (32, 64), False),
    "tanh(x @ w) [32,64], 100 iterations, gradient": (100, (32, 64), True),
}
_LABELS = (*cases.EAGER, "gradtape function", "tensorflow function", "tensorflow xla", "jax jit")


def case(library: str, module: Any, name: str, mode: str) -> dict[str, cases.Case]:
    import numpy as np

    count, shape, gradient = CASES[name]
    rng = np.random.default_rng(1)
    x = rng.uniform(0.1, 1, shape).astype(np.float32)
    w = (rng.standard_normal(shape[-1:] * 2) * 0.1).astype(np.float32)
    make = {"jax": _jax, "torch": _torch, "autograd": _autograd}.get(library, _tensorflow)
    call = make(module, mode, count, gradient, x, w)
    # One call makes all the iterations; `count` turns its time into that of one.
    return {"iteration": cases.Case(lambda n: call(), count, check=lambda: [float(np.abs(call()).sum())])}


def _tensorflow(tf: Any, mode: str, count: int, gradient: bool, x: Any, w: Any) -> Callable[[], Any]:
    x, w = tf.constant(x), tf.constant(w)

    def body(x: Any, w: Any) -> Any:
        return tf.tanh(tf.matmul(x, w)) if x.shape.rank else x + 0.1 * tf.sin(x)

    def whole(x: Any, w: Any) -> Any:
        if mode == "eager":
            for _ in range(count):
                x = body(x, w)
            return x
        return tf.while_loop(
            lambda k, x: k < count, lambda k, x: (k + 1, body(x, w)), [0, x], maximum_iterations=count
        )[1]

    def slope(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = tf.reduce_sum(whole(x, w))
        return tape.gradient(y, w)

    f = slope if gradient else whole
    if mode != "eager":
        f = tf.function(f, jit_compile=True if mode == "xla" else None)
    return lambda: f(x, w).numpy()


def _torch(torch: Any, mode: str, count: int, gradient: bool, x: Any, w: Any) -> Callable[[], Any]:
    x, w = torch.tensor(x), torch.tensor(w, requires_grad=gradient)

    def whole() -> Any:
        y = x
        for _ in range(count):
            y = torch.tanh(y @ w) if y.dim() else y + 0.1 * torch.sin(y)
        return y

    if gradient:
        return lambda: torch.autograd.grad(whole().sum(), w)[0].numpy()
    return lambda: whole().numpy()


def _jax(jax: Any, mode: str, count: int, gradient: bool, x: Any, w: Any) -> Callable[[], Any]:
    import numpy as np

    jnp = jax.numpy
    x, w = jnp.array(x), jnp.array(w)

    def body(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w) if x.ndim else x + 0.1 * jnp.sin(x)

    def whole(x: Any, w: Any) -> Any:
        if mode == "jit":  # with a number of steps that is known it is a scan, and has a gradient
            return jax.lax.fori_loop(0, count, lambda k, x: body(x, w), x)
        for _ in range(count):
            x = body(x, w)
        return x

    f = jax.grad(lambda w, x: whole(x, w).sum()) if gradient else lambda w, x: whole(x, w)
    f = jax.jit(f) if mode == "jit" else f
    return lambda: np.asarray(f(w, x))


def _autograd(autograd: Any, mode: str, count: int, gradient: bool, x: Any, w: Any) -> Callable[[], Any]:
    import autograd.numpy as anp
    import numpy as np

    def whole(w: Any) -> Any:
        y = x
        for _ in range(count):
            y = anp.tanh(anp.dot(y, w)) if y.ndim else y + np.float32(0.1) * anp.sin(y)
        return y

    f = autograd.grad(lambda w: anp.sum(whole(w))) if gradient else whole
    return lambda: f(w)


def measure(options: Any) -> dict[str, Any]:
    todo = {
        name: {label: parts.command(label, "loops", name, alone=False) for label in _LABELS} for name in CASES
    }
    return parts.measure("loops", todo, options)
