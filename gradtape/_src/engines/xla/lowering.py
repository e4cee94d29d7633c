"""Translates a node of the op table to a computation of JAX.

A row names its lowering by `xla=`: a JAX function (`"jnp.tanh"`, `"lax.erf"`, `"jax.nn.silu"`, `"jnp.linalg.det"`),
or one of ours (`"pooling.max_pool"` is in `engines/xla/ops/pooling.py`). It is called with the operands, a list of
tensors being one argument, and then the attributes as they are in the node; for a reduction, the attributes are
`axis=` and `keepdims=`. Results are cast to the types that the op infers.

A function may request more by keyword-only parameters:

    results   shapes and types of the results, `jax.ShapeDtypeStruct`
    check     `check(condition)`: where an element of the condition is False, native code would raise. XLA cannot: the
              run is repeated natively, which says what is wrong

Element-wise ops and reductions of half floats are computed in float32, as natively.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gradtape._src.base.dtypes import BY_CODE, HELD
from gradtape._src.graph.ir import Node, Value

_FROM_JAX = {"jnp": jnp, "lax": lax, "jax": jax}
_HALVES = (jnp.float16, jnp.bfloat16)
DTYPES = [jnp.dtype("bfloat16" if d.name == "bfloat16" else d.name) for d in BY_CODE if d._code not in HELD]
"""JAX's types by the codes of the core."""


@cache
def named(name: str) -> Any:
    """The function that a row or a callback names."""
    first, *rest = name.split(".")
    target: Any = _FROM_JAX.get(first)
    if target is None:
        target = importlib.import_module(f"gradtape._src.engines.xla.ops.{first}")
    for part in rest:
        if not hasattr(target, part):  # a JAX module that is not imported yet
            importlib.import_module(f"{target.__name__}.{part}")
        target = getattr(target, part)
    return target


@cache
def _asks_for(function: Any) -> frozenset[str]:
    """The keyword-only parameters of a function of ours."""
    if not getattr(function, "__module__", "").startswith("gradtape."):
        return frozenset()
    parameters = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def spec_of(value: Value) -> jax.ShapeDtypeStruct:
    """The shape and type of a value."""
    return jax.ShapeDtypeStruct(value.shape, DTYPES[value.dtype])


def lower(node: Node, operands: Sequence[Any], check: Callable[[Any], None]) -> list[Any]:
    """The results of a node whose row has a lowering."""
    row = node.op.row
    function = named(row.xla)
    results = [spec_of(v) for v in node.results]
    given = [jnp.asarray(x) for x in operands]
    if row.kind in ("elementwise", "reduction"):
        given = [x.astype(jnp.float32) if x.dtype in _HALVES else x for x in given]
    if row.kind == "elementwise" and row.xla.startswith("lax."):
        given = list(jnp.broadcast_arrays(*given))
    arguments = _arguments(row, given)
    asked = {"results": results, "check": check}
    keywords = {name: asked[name] for name in _asks_for(function)}
    if row.kind == "reduction" and row.attributes[-1].name == "keepdims":
        axes, keepdims = node.attrs
        keywords |= {"axis": None if axes is None else tuple(axes), "keepdims": keepdims}
    else:
        arguments += node.attrs
    outputs = function(*arguments, **keywords)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    return [_fitted(x, spec, node) for x, spec in zip(outputs, results, strict=True)]


def _arguments(row: Any, given: list[Any]) -> list[Any]:
    """The operands, with those of a list combined."""
    kinds = [p.kind for p in row.operands]
    if "Operands" not in kinds:
        return given
    first, after = kinds.index("Operands"), len(kinds) - kinds.index("Operands") - 1
    end = len(given) - after
    return [*given[:first], given[first:end], *given[end:]]


def _fitted(x: Any, spec: jax.ShapeDtypeStruct, node: Node) -> Any:
    x = jnp.asarray(x)
    if x.shape != spec.shape:
        raise AssertionError(f"{node.name}: its lowering gives {x.shape}; expected {spec.shape}")
    if x.dtype == spec.dtype:
        return x
    if jnp.issubdtype(x.dtype, jnp.complexfloating) and not jnp.issubdtype(spec.dtype, jnp.complexfloating):
        x = jnp.real(x)
    return x.astype(spec.dtype)
