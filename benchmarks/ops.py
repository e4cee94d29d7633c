"""Single ops: the parts `large` (forward, by size), `layers` and `linalg` (value and gradient)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cases
import parts
from op_rows import LARGE, LAYERS, LINALG, SIZES, Row


def _names(library: str, module: Any) -> dict[str, Any]:
    """The names that the expressions of a row may use."""
    if library in ("tensorflow", "gradtape"):
        from workloads import tensorflow_api

        def batch_norm(x: Any, scale: Any, shift: Any) -> Any:
            mean, variance = module.nn.moments(x, [0, 1, 2])
            return module.nn.batch_normalization(x, mean, variance, shift, scale, 1e-5)

        def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
            return tensorflow_api.layer_norm(module, x, scale, shift)

        return {"tf": module, "batch_norm": batch_norm, "layer_norm": layer_norm}
    if library == "torch":
        return {"torch": module, "F": module.nn.functional}
    if library == "autograd":
        import autograd.numpy

        return {"np": autograd.numpy}
    return _jax_names(module)


def _jax_names(jax: Any) -> dict[str, Any]:
    from workloads import jax_numpy

    lax, np = jax.lax, jax.numpy

    def conv(x: Any, w: Any, padding: str, stride: int = 1, groups: int = 1) -> Any:
        axes = ("NHWC", "HWIO", "NHWC") if x.ndim == 4 else ("NWC", "WIO", "NWC")
        strides = (stride,) * (x.ndim - 2)
        return lax.conv_general_dilated(
            x, w, strides, padding, dimension_numbers=axes, feature_group_count=groups
        )

    def pool(x: Any, start: float, reducer: Any) -> Any:
        return lax.reduce_window(x, start, reducer, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def patches(x: Any) -> Any:
        return lax.conv_general_dilated_patches(
            x, (3, 3), (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def batch_norm(x: Any, scale: Any, shift: Any) -> Any:
        d = x - x.mean((0, 1, 2))
        return d * lax.rsqrt((d * d).mean((0, 1, 2)) + 1e-5) * scale + shift

    return {
        "jax": jax, "np": np, "conv": conv, "patches": patches, "batch_norm": batch_norm,
        "layer_norm": lambda x, b, c: jax_numpy.layer_norm(jax, x, b, c),
        "max_pool": lambda x: pool(x, -np.inf, lax.max), "avg_pool": lambda x: pool(x, 0.0, lax.add) / 4,
    }  # fmt: skip


def _arrays(row: Row, library: str, size: int | None) -> list[Any]:
    """The operands, equal in all libraries but for PyTorch's order of axes."""
    import numpy as np

    rng = np.random.default_rng(1)
    sides = {"N": size, "n": round((size or 0) ** 0.5)}
    arrays = [
        rng.uniform(0.1, 1, [sides.get(d, d) for d in shape]).astype(np.float32) for shape in row.shapes
    ]
    if row.positive:
        a, n = arrays[0], arrays[0].shape[-1]
        arrays[0] = (a @ a.swapaxes(-1, -2) / n + np.diag(np.linspace(1, 2, n))).astype(np.float32)
    if row.images and library == "torch":
        for k, a in enumerate(arrays):
            first = k == 0  # images have their channels last, kernels (in, out) last
            axes = (
                (0, a.ndim - 1, *range(1, a.ndim - 1))
                if first
                else (a.ndim - 1, a.ndim - 2, *range(a.ndim - 2))
            )
            arrays[k] = np.ascontiguousarray(a.transpose(axes)) if a.ndim > 1 else a
    return arrays


def _tensors(library: str, module: Any, arrays: list[Any], dtype: str) -> list[Any]:
    if library == "autograd":
        return arrays
    if library == "torch":
        return [module.tensor(a).to(getattr(module, dtype)) for a in arrays]
    if library == "jax":
        return [module.numpy.array(a, dtype=dtype) for a in arrays]
    return [module.cast(a, dtype) for a in arrays]


def case(
    library: str, module: Any, name: str, mode: str, table: str, size: int | None = None
) -> dict[str, cases.Case]:
    row = {"large": LARGE, "layers": LAYERS, "linalg": LINALG}[table][name]
    code = getattr(row, {"gradtape": "tf", "tensorflow": "tf"}.get(library, library))
    if not code:
        return {}
    names, operands = (
        _names(library, module),
        _tensors(library, module, _arrays(row, library, size), row.dtype),
    )
    letters = "abc"[: len(operands)]
    if table != "large":
        op = eval(f"lambda {', '.join(letters)}: {code}", names)
        return {"both": _with_gradient(library, module, mode, op, operands)}
    names.update(zip(letters, operands, strict=True))
    if library == "jax":
        code = f"({code}).block_until_ready()"
    once = eval(f"lambda: {code}", names)
    return {"op": cases.Case(cases.loop(code, False, names), check=lambda: [_total(once())])}


def _total(x: Any) -> float:
    """The sum of the magnitudes, in float64."""
    import numpy as np

    if hasattr(x, "detach"):  # NumPy has no bfloat16 for PyTorch
        x = x.detach().double()
    return float(np.abs(np.asarray(x).astype(np.float64)).sum())


def _with_gradient(
    library: str, module: Any, mode: str, op: Callable[..., Any], operands: list[Any]
) -> cases.Case:
    """The value of an op and the gradient of its sum by every operand."""
    if library in ("tensorflow", "gradtape"):

        def both(*operands: Any) -> Any:
            with module.GradientTape() as tape:
                tape.watch(operands)
                out = op(*operands)
            return out, tape.gradient(out, operands)

        if mode != "eager":
            both = module.function(both, jit_compile=True if mode == "xla" else None)
    elif library == "torch":
        forward = module.compile(op) if mode == "compile" else op
        operands = [x.requires_grad_() for x in operands]

        def both(*operands: Any) -> Any:
            out = forward(*operands)
            return out, module.autograd.grad(out, operands, module.ones_like(out))
    elif library == "jax":

        def derive(*operands: Any) -> Any:
            out, pull = module.vjp(op, *operands)
            return out, pull(module.numpy.ones_like(out))

        derive = module.jit(derive) if mode == "jit" else derive

        def both(*operands: Any) -> Any:
            return module.block_until_ready(derive(*operands))
    else:
        import numpy as np

        def both(*operands: Any) -> Any:
            pull, out = module.make_vjp(lambda xs: op(*xs))(operands)
            return out, pull(np.ones_like(out))

    def check() -> list[float]:
        out, gradients = both(*operands)
        return [_total(out), *(_total(g) for g in gradients)]

    return cases.Case(cases.repeat(lambda: both(*operands)), check=check)


def measure_large(options: Any) -> dict[str, Any]:
    todo = {
        f"{name} {size}": {
            label: parts.command(label, "ops", name, table="large", size=size, alone=size > 10_000)
            for label in cases.EAGER[:4]
        }
        for name in parts.some(LARGE, options)
        for size in SIZES
    }
    return parts.measure("large", todo, options)


def measure_layers(options: Any) -> dict[str, Any]:
    labels = [*cases.EAGER[:4], *cases.COMPILED]
    todo = {
        name: {label: parts.command(label, "ops", name, table="layers") for label in labels}
        for name in parts.some(LAYERS, options)
    }
    return parts.measure("layers", todo, options, longer=2)


def measure_linalg(options: Any) -> dict[str, Any]:
    # XLA has no code of its own for most of these, and inductor calls the same routines as eager mode.
    labels = [*cases.EAGER, "gradtape function", "tensorflow function", "jax jit"]
    todo = {
        name: {label: parts.command(label, "ops", name, table="linalg") for label in labels}
        for name in parts.some(LINALG, options)
    }
    return parts.measure("linalg", todo, options)
