"""The cost of recording one small op: the part `overhead`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import cases
import parts

# Case -> shapes of x and y, and the op in TensorFlow, PyTorch, and NumPy's words for JAX and autograd.
CASES = {
    "add ()": ((), (), "x + y", "x + y", "x + y"),
    "mul ()": ((), (), "x * y", "x * y", "x * y"),
    "x * 2.0 ()": ((), (), "x * 2.0", "x * 2.0", "x * 2.0"),
    "sin ()": ((), (), "tf.sin(x)", "torch.sin(x)", "np.sin(x)"),
    "add [64]": ((64,), (64,), "x + y", "x + y", "x + y"),
    "add [32,64] + [64]": ((32, 64), (64,), "x + y", "x + y", "x + y"),
    "sin [64]": ((64,), (), "tf.sin(x)", "torch.sin(x)", "np.sin(x)"),
    "relu [64]": ((64,), (), "tf.nn.relu(x)", "torch.relu(x)", "np.maximum(x, 0.0)"),
    "matmul [1,4] [4,64]": ((1, 4), (4, 64), "tf.matmul(x, y)", "torch.matmul(x, y)", "np.matmul(x, y)"),
    "x @ y [1,4] [4,64]": ((1, 4), (4, 64), "x @ y", "x @ y", "x @ y"),
    "mean [64]": ((64,), (), "tf.reduce_mean(x)", "torch.mean(x)", "np.mean(x)"),
    "sum [8,8] axis 1": ((8, 8), (), "tf.reduce_sum(x, 1)", "torch.sum(x, 1)", "np.sum(x, 1)"),
    "reshape [64]": ((64,), (), "tf.reshape(x, [8, 8])", "torch.reshape(x, [8, 8])", "np.reshape(x, [8, 8])"),
    "x[0] [64]": ((64,), (), "x[0]", "x[0]", "x[0]"),
}  # fmt: skip
_OPS = 100

_open = ExitStack()  # the tape of the current case


def case(library: str, module: Any, name: str, mode: str) -> dict[str, cases.Case]:
    """100 recorded ops whose results live until the last one is made, freeing included."""
    import numpy as np

    rng = np.random.default_rng(1)
    x_shape, y_shape, tf_code, torch_code, np_code = CASES[name]
    x, y = (rng.uniform(0.1, 1, shape).astype(np.float32) for shape in (x_shape, y_shape))
    if library in ("tensorflow", "gradtape"):
        _open.close()
        tape = _open.enter_context(module.GradientTape())
        x, y = module.constant(x), module.constant(y)
        tape.watch(x)
        run = cases.loop(tf_code, True, {"tf": module, "x": x, "y": y})
    elif library == "torch":
        x, y = module.tensor(x, requires_grad=True), module.tensor(y)
        run = cases.loop(torch_code, True, {"torch": module, "x": x, "y": y})
    elif library == "jax":
        x, y = module.numpy.array(x), module.numpy.array(y)
        run = _in_trace(np_code, {"np": module.numpy, "y": y}, lambda f: module.vjp(f, x))
    else:
        import autograd.numpy

        run = _in_trace(np_code, {"np": autograd.numpy, "y": y}, lambda f: module.make_vjp(f)(x))
    return {"op": cases.Case(run, _OPS)}


def _in_trace(code: str, names: dict[str, Any], record: Any) -> Any:
    """Libraries without a tape record what a function does while they call it; `record` calls it."""
    space: dict[str, Any] = {}
    exec(f"def ops(x, n):\n    return [{code} for _ in range(n)][-1]", names, space)
    ops = space["ops"]
    return lambda n: record(lambda x: ops(x, n))


def measure(options: Any) -> dict[str, Any]:
    todo = {
        name: {label: parts.command(label, "overhead", name, alone=False) for label in cases.EAGER}
        for name in parts.some(CASES, options)
    }
    return parts.measure("overhead", todo, options)
