"""What is measured, written once for each way of writing it: TensorFlow's (also ours) and PyTorch's.

Imported by every peer's process, so it needs nothing but the standard library and NumPy.
"""

import importlib
from contextlib import ExitStack

# Recording one op while a tape is active: case -> (shapes of x and y, TensorFlow, PyTorch).
OVERHEAD = {
    "add ()": ((), (), "x + y", "x + y"),
    "mul ()": ((), (), "x * y", "x * y"),
    "x * 2.0 ()": ((), (), "x * 2.0", "x * 2.0"),
    "sin ()": ((), (), "tf.sin(x)", "torch.sin(x)"),
    "add [64]": ((64,), (64,), "x + y", "x + y"),
    "mul [64]": ((64,), (64,), "x * y", "x * y"),
    "add [32,64]+[64]": ((32, 64), (64,), "x + y", "x + y"),
    "sin [64]": ((64,), (), "tf.sin(x)", "torch.sin(x)"),
    "relu [64]": ((64,), (), "tf.nn.relu(x)", "torch.relu(x)"),
    "matmul 1x4@4x64": ((1, 4), (4, 64), "tf.matmul(x, y)", "torch.matmul(x, y)"),
    "x @ y 1x4@4x64": ((1, 4), (4, 64), "x @ y", "x @ y"),
    "reduce_mean [64]": ((64,), (), "tf.reduce_mean(x)", "torch.mean(x)"),
    "reduce_sum [8,8] axis 1": ((8, 8), (), "tf.reduce_sum(x, 1)", "torch.sum(x, 1)"),
    "reshape [64]": ((64,), (), "tf.reshape(x, [8, 8])", "torch.reshape(x, [8, 8])"),
    "x[0] [64]": ((64,), (), "x[0]", "x[0]"),
}

# Large float32 ops: case -> (whether x is a matrix of 1000 columns, TensorFlow, PyTorch).
ELEMENTWISE = {
    "add": (False, "x + y", "x + y"),
    "mul": (False, "x * y", "x * y"),
    "exp": (False, "tf.exp(x)", "torch.exp(x)"),
    "tanh": (False, "tf.tanh(x)", "torch.tanh(x)"),
    "sigmoid": (False, "tf.sigmoid(x)", "torch.sigmoid(x)"),
    "relu": (False, "tf.nn.relu(x)", "torch.relu(x)"),
    "sum": (False, "tf.reduce_sum(x)", "torch.sum(x)"),
    "mean": (False, "tf.reduce_mean(x)", "torch.mean(x)"),
    "max": (False, "tf.reduce_max(x)", "torch.amax(x)"),
    "sum axis 0": (True, "tf.reduce_sum(x, 0)", "torch.sum(x, 0)"),
    "sum axis 1": (True, "tf.reduce_sum(x, 1)", "torch.sum(x, 1)"),
    "softmax": (True, "tf.nn.softmax(x)", "torch.softmax(x, -1)"),
}
SIZES = (10_000, 100_000, 1_000_000, 4_000_000)

# Workloads, and the ways each library runs them. --full adds the second tuple.
WORKLOADS = ("W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8a", "W8b", "W9", "W10", "W11", "W12")
ONE_THREAD = ("W1", "W2", "W9")  # too small for a second thread in any library's eager mode
MODES = {
    "gradtape": (("eager", "function"), ()),
    "tensorflow": (("eager", "function"), ("xla",)),
    "torch": (("eager",), ("compile",)),
    "jax": (("jit",), ()),
    "autograd": ((), ("numpy",)),
}

_open = ExitStack()  # the tape of the case at hand


class Case:
    """Something to time: `run(n)` does it n times. `count` fixes n; `missing` says why there is none."""

    def __init__(self, run=None, count=None, check=None, missing=None):
        self.run, self.count, self.check, self.missing = run, count, check, missing


def load(library):
    tf = importlib.import_module(library)
    if library == "torch":
        import os

        tf.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    return tf


def leave():
    """Closes the tape of the last case."""
    _open.close()


def _loop(expression, keep, **names):
    """A function of n that evaluates `expression` n times, without a Python call around it."""
    body = f"[{expression} for _ in range(n)]" if keep else f"for _ in range(n): {expression}"
    exec(f"def run(n):\n    {body}", names)
    return names["run"]


def _values(shape, seed):
    import numpy as np

    return np.random.default_rng(seed).uniform(0.1, 1, shape).astype(np.float32)


def overhead(library, tf, name, size):
    """100 recorded ops whose results live until the last one is made, freeing included."""
    x, y, tf_code, torch_code = OVERHEAD[name]
    x, y = _values(x, 1), _values(y, 2)
    if library == "torch":
        x, y = tf.tensor(x, requires_grad=True), tf.tensor(y)
        return {"op": Case(_loop(torch_code, True, torch=tf, x=x, y=y), 100)}
    x, y = tf.constant(x), tf.constant(y)
    leave()
    tape = _open.enter_context(tf.GradientTape())
    tape.watch(x)
    return {"op": Case(_loop(tf_code, True, tf=tf, x=x, y=y), 100)}


def elementwise(library, tf, name, size):
    """One large op; its result dies before the next one is made."""
    matrix, tf_code, torch_code = ELEMENTWISE[name]
    shape = (size // 1000, 1000) if matrix else (size,)
    x, y = _values(shape, 1), _values(shape, 2)
    make = tf.tensor if library == "torch" else tf.constant
    code = torch_code if library == "torch" else tf_code
    names = {"tf": tf, "torch": tf, "x": make(x), "y": make(y)}
    value = eval(code, dict(names))
    value = value.numpy().astype("float64").sum()
    return {"op": Case(_loop(code, False, **names), check=[float(value)])}


def workload(bench, name, mode):
    """The step of a shared workload, and its forward and gradient alone where that is offered."""
    try:
        case = bench.build(name, mode)
    except (AttributeError, ImportError, NotImplementedError) as e:
        # No optimizer yet: the variant that makes none until the step can still give the gradient.
        if mode != "eager" or bench.__name__ != "bench_tf" or name not in bench.ADAM:
            raise
        case = bench.build(name, "eager-rawadam")
        del case.metrics["step"]
        made = {"step": Case(missing=f"{type(e).__name__}: {e}")}
    else:
        made = {}
    # Whatever is missing shows at the first call. The gradient goes first: its loss, from the same
    # parameters in all libraries, is the check.
    for metric, call in sorted(case.metrics.items()):
        value = call()
        check = [float(value)] if metric == "grad" and getattr(value, "shape", None) == () else None

        def run(n, call=call):
            for _ in range(n):
                call()

        made[metric] = Case(run, check=check)
    if "step" in made and not made["step"].missing and "grad" not in made:
        made["step"].check = [float(v) for v in case.check()]
    return made
