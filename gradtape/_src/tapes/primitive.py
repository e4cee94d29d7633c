"""`tf.primitive`: a user-defined op, written in Python.

It joins the op table: tapes record it as one call, functions hold it as one node, batching runs it
over new axes, and `gradtape.testing.check_op` checks it like any other op. What it needs besides its
forward function is passed in or derived:

  shape   by `shape=`, by running the forward on symbols, or by running it on example values
  vjp     by `vjp=`, by transposing `jvp=`, or by differentiating a forward that is made of ops
  batch   by `batch=`, or a loop over the new axis
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import as_dtype
from gradtape._src.base.errors import OUT_OF_RESOURCES
from gradtape._src.control.python_op import PythonOp, traced
from gradtape._src.graph.ir import Callback, Value
from gradtape._src.ops.table import PARAM_KINDS, TABLE, WIDE, opaque
from gradtape._src.tapes import registry
from gradtape._src.tapes.tape import GradientTape
from gradtape._src.tensors import conversion
from gradtape._src.tensors.indexed_slices import IndexedSlices

_DERIVED: Any = object()


class NoSamples(list):
    """Placeholder where no samples were given: there is nothing to check the op on."""

    def __bool__(self) -> bool:
        return True


def primitive(
    forward: Callable | None = None,
    *,
    vjp: Any = _DERIVED,
    jvp: Callable | None = None,
    batch: str | Callable | None = None,
    shape: Callable | None = None,
    name: str | None = None,
    args: str | None = None,
    dtypes: Any = WIDE,
    many: bool = False,
    shape_from_values: bool = False,
    numpy: Callable | None = None,
    samples: Any = None,
    gradient_samples: Any = None,
    edges: Sequence[tuple] = (),
    bad: Sequence[tuple] = (),
    tolerance: float = 1.0,
    linear: str = "",
    pattern: str = "",
    simplify: Callable | None = None,
    doc: str | None = None,
) -> Any:
    """An op made of a Python function; usable as a decorator, with and without arguments.

    The function gets tensors, which NumPy takes as arrays, and returns a tensor or an array. It must
    depend on its arguments only: it may run more often, or less often, than it is called.

    >>> import gradtape as tf
    >>> import numpy as np
    >>> from gradtape._src.ops.samples import call
    >>> @tf.primitive(vjp=lambda g, x, out: g * 3.0 * x * x, samples=[call(()), call((2, 3))])
    ... def cube(x):
    ...     "The third power, by NumPy."
    ...     return np.power(x, 3)
    >>> x = tf.constant(2.0)
    >>> with tf.GradientTape() as outer:
    ...     outer.watch(x)
    ...     with tf.GradientTape() as tape:
    ...         tape.watch(x)
    ...         y = cube(x)
    ...     g = tape.gradient(y, x)
    >>> y.numpy(), g.numpy(), outer.gradient(g, x).numpy()
    (np.float32(8.0), np.float32(12.0), np.float32(12.0))
    >>> tf.function(cube)(x).numpy()
    np.float32(8.0)
    >>> tf.testing.check_op(cube)

    Args:
      forward: the function. Its parameters without a default are tensors, the others attributes.
      vjp: `vjp(g, *operands, out, *attributes)` returns the gradient of each operand, a tuple if there
        are several, with None where there is none. Written with ops it can be differentiated again;
        with NumPy it cannot. A string is the name of a function registered by `tf.RegisterGradient`.
        None says that the op has no gradient. If it is left out, it is the transpose of `jvp`, or the
        derivative of a forward that is made of ops.
      jvp: `jvp(t, *operands, out, *attributes)` returns the tangent of the result; `t` is the tangent of
        the operand, a tuple if there are several.
      batch: `batch(size, batched, operands, attributes)` returns the result over a new leading axis, or
        "leading" if the op already treats leading axes as batch axes. Otherwise it is a loop.
      shape: `shape(*operands, *attributes)` returns the shape of the result, or a `tf.TensorSpec`; its
        operands have a `shape` and a `dtype` and no value. If it is left out, the forward is run on
        symbols, or on example values, when a function is traced.
      name: the name in the table; that of the function by default.
      args: the signature in the table's words, such as `"x indices:Index axis:Axis=-1"`; by default
        that of the function.
      dtypes: the types that operands may have in common: `tf.DType`s, or bits of `gradtape._src.ops.table`;
        float32 and float64 by default.
      many: whether the forward returns a list of results; `g` and `out` are tuples then.
      shape_from_values: the shape of the result depends on values; a function that uses it runs eagerly.
      numpy, samples, gradient_samples, edges, bad, tolerance, doc: what `gradtape.testing.check_op`
        works with, as in the rows of the table; the reference is the forward itself by default.
      linear, pattern, simplify: facts about the op, as in the rows of the table (`gradtape/_src/ops/facts.py`):
        the operands it is linear in (`"x"`, `"x y"`, `"x+y"`), which elements depend on which, and a
        rule that simplifies it in a graph. Without them an op counts as nonlinear, unless its forward is
        made of linear ops, and every element of the result as dependent on all elements.

    Returns:
      The op: call it like the function.
    """
    if forward is None:
        given = {k: v for k, v in locals().items() if k != "forward"}
        return lambda function: primitive(function, **given)
    chosen = name or getattr(forward, "__name__", "primitive").strip("<>")
    if chosen in TABLE and not hasattr(TABLE[chosen].op, "primitive"):
        raise ValueError(f"primitive: {chosen!r} is an op of gradtape already. Hint: pass name=.")
    primitive_op = Primitive(
        forward, vjp, jvp, shape, *(_signature(chosen, forward) if args is None else (args, set()))
    )
    TABLE.pop(chosen, None)  # a cell of a notebook may be run again
    op = opaque(
        chosen,
        _bits(dtypes),
        primitive_op.args,
        rule=None if vjp is None else primitive_op.gradients,
        joint=vjp is not None,
        python=primitive_op.run,
        many=many,
        batch=batch,
        shape_from_values=shape_from_values,
        numpy=numpy or primitive_op.reference,
        samples=NoSamples() if samples is None else samples,
        gradient_samples=gradient_samples,
        edges=edges,
        bad=bad,
        tolerance=tolerance,
        linear=linear,
        pattern=pattern,
        simplify=simplify,
        doc=doc or inspect.getdoc(forward) or f"The primitive `{chosen}`.",
    )
    primitive_op.attach(op)
    return op


def _bits(dtypes: Any) -> int:
    if isinstance(dtypes, int):
        return dtypes
    some = dtypes if isinstance(dtypes, (list, tuple, set)) else [dtypes]
    return sum({1 << as_dtype(d)._code for d in some})


# ---- signatures -----------------------------------------------------------------------------


def _signature(name: str, forward: Callable) -> tuple[str, set[str]]:
    """The signature in the table's words, and the parameters that can be passed by name only."""
    words, by_name = [], set()
    for p in inspect.signature(forward).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ValueError(
                f"primitive: {name}: a parameter list of any length is not possible; got {p}. Hint: "
                'args="xs:Operands" takes a list of tensors.'
            )
        if p.kind is p.KEYWORD_ONLY:
            by_name.add(p.name)
        said = str(p.annotation).strip("'\"")
        if p.default is p.empty:
            kind = said if said in PARAM_KINDS else "Object" if p.name in by_name else "Operand"
            words.append(f"{p.name}:{kind}")
        else:
            kind = said if said in PARAM_KINDS else _kind_of(p.default)
            words.append(f"{p.name}:{kind}={_word(name, p)}")
    return " ".join(words), by_name


def _kind_of(default: Any) -> str:
    kinds = {bool: "Bool", int: "Int", float: "Float"}
    return kinds.get(type(default), "Object")


def _word(name: str, p: inspect.Parameter) -> str:
    value = p.default
    text = value if isinstance(value, str) else repr(value)
    plain = (
        value is None
        or isinstance(value, (bool, int, str))
        or (isinstance(value, float) and value - value == 0)
    )
    if not plain or not text or " " in text:
        raise ValueError(
            f"primitive: {name}: the default of {p.name!r} must be None, a bool, a finite number or a word; got {value!r}."
        )
    return text


# ---- the op ---------------------------------------------------------------------------------


class Primitive(PythonOp):
    """A user-defined op: its forward by its signature, and its gradients."""

    def __init__(
        self,
        forward: Callable,
        vjp: Any,
        jvp: Callable | None,
        shape: Callable | None,
        args: str,
        by_name: set[str],
    ) -> None:
        super().__init__(forward, shape)
        self.vjp, self.jvp = vjp, jvp
        self.args = args
        self.by_name = by_name  # parameters that can be passed by name only

    def attach(self, op: Any) -> None:
        super().attach(op)
        op.primitive, op.jvp = self, self.jvp

    def call(self, operands: Sequence[Any], attrs: Sequence[Any]) -> Any:
        """The forward, with its arguments in the order of its signature."""
        variadic = self.row.operands and self.row.operands[0].kind == "Operands"
        left, rest = iter([list(operands)] if variadic else operands), iter(attrs)
        are_operands = {p.name for p in self.row.operands}
        args, kwargs = [], {}
        for p in self.row.params[:-1]:
            value = next(left) if p.name in are_operands else next(rest)
            if p.name in self.by_name:
                kwargs[p.name] = value
            else:
                args.append(value)
        return self.forward(*args, **kwargs)

    def _split(self, values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Operands and attributes of a call by the core."""
        n = len(values) - len(self.row.attributes)
        return values[:n], values[n:]

    def run(self, *values: Any) -> Any:
        """Called by the core: the results for operands that have values."""
        with aside():
            return self.call(*self._split(values))

    def reference(self, *arrays: Any, **attrs: Any) -> Any:
        """The forward on arrays, for the contract."""
        out = self.op(*[conversion.convert(a) for a in arrays], **attrs)
        return [np.asarray(o) for o in out] if self.row.many else np.asarray(out)

    # ---- gradients --------------------------------------------------------------------------

    def gradients(self, g: Any, *values: Any) -> tuple:
        """The rule of the op: one gradient per operand."""
        n = len(values) - len(self.row.attributes) - 1
        operands, out, attrs = values[:n], values[n], values[n + 1 :]
        if self.row.operands[0].kind == "Operands":
            operands = operands[0]
        tensors = [*(g if self.row.many else [g]), *operands, *(out if self.row.many else [out])]
        if any(isinstance(t._symbol, Value) for t in tensors):
            return self._traced(tensors, len(operands), attrs)
        grads = self._checked(self._vjp(g, operands, out, attrs), operands)
        if _core.is_recording() and any(map(_core.is_tracked, tensors)):
            loose = [r for r in grads if isinstance(r, _core.Tensor) and not _core.is_tracked(r)]
            if loose and not self._is_made_of_ops(tensors, len(operands), attrs):
                dense_grads = [_dense(r, x) for r, x in zip(grads, operands, strict=True) if _has_gradient(x)]
                self.record_last(dense_grads, tensors, len(operands), attrs)
                dense = iter(dense_grads)
                grads = [next(dense) if _has_gradient(x) else None for x in operands]
        return tuple(grads)

    def _vjp(self, g: Any, operands: Sequence[Any], out: Any, attrs: Sequence[Any]) -> Any:
        if isinstance(self.vjp, str):
            function = registry.lookup(self.vjp)
            if function is None:
                return [None] * len(operands)
            names = [p.name for p in self.row.attributes]
            call = registry.Operation(
                self.name, operands, out if self.row.many else [out], dict(zip(names, attrs, strict=True))
            )
            return function(call, *(g if self.row.many else [g]))
        if self.vjp is not _DERIVED:
            given = (operands,) if self.row.operands[0].kind == "Operands" else operands
            return self.vjp(g, *given, out, *attrs)
        if self.jvp is not None:
            return self._transposed(g, operands, out, attrs)
        return self._differentiated(g, operands, attrs)

    def _transposed(self, g: Any, operands: Sequence[Any], out: Any, attrs: Sequence[Any]) -> list:
        """A tangent is linear in the tangents of the operands: its gradient with respect to them is the vjp."""
        assert self.jvp is not None
        tangents = [ops.zeros_like(x) if _has_gradient(x) else None for x in operands]
        sources = [t for t in tangents if t is not None]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            pushed = self.jvp(tangents[0] if len(tangents) == 1 else tuple(tangents), *operands, out, *attrs)
        grads = iter(tape.gradient(pushed, sources, output_gradients=g))
        return [None if t is None else next(grads) for t in tangents]

    def _differentiated(self, g: Any, operands: Sequence[Any], attrs: Sequence[Any]) -> list:
        specs = [(x.dtype._code, tuple(x.shape)) for x in operands]
        if self.expand(specs, tuple(attrs)) is None:
            raise LookupError(
                f"{self.name}: it has no gradient, because its forward is not made of ops. Hint: pass vjp= or jvp= to "
                "tf.primitive, or vjp=None to make it a constant."
            )
        xs = [ops.identity(x) for x in operands]
        sources = [x for x in xs if _has_gradient(x)]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            results = self.call(xs, attrs)
        grads = iter(tape.gradient(results, sources, output_gradients=g))
        return [next(grads) if _has_gradient(x) else None for x in xs]

    def _checked(self, grads: Any, operands: Sequence[Any]) -> list:
        """One gradient per operand, as tensors of the operand's type and of a shape that fits."""
        several = isinstance(grads, (tuple, list)) and not isinstance(grads, IndexedSlices)
        if not several and len(operands) == 1:
            grads = [grads]
        if not isinstance(grads, (tuple, list)) or len(grads) != len(operands):
            got = len(grads) if isinstance(grads, (tuple, list)) else 1
            raise ValueError(
                f"{self.name}: the vjp must return one gradient per operand; expected {len(operands)}; got {got}."
            )
        checked = []
        for k, (g, x) in enumerate(zip(grads, operands, strict=True)):
            if g is not None and not isinstance(g, (_core.Tensor, IndexedSlices)):
                g = conversion.convert(g, x.dtype._code)
            if isinstance(g, _core.Tensor) and not _fits(tuple(g.shape), tuple(x.shape)):
                operand = self.row.operands[k].name if k < len(self.row.operands) else f"operand {k}"
                raise ValueError(
                    f"{self.name}: the gradient of {operand!r} does not fit; expected shape {list(x.shape)}; got "
                    f"{g.dtype.name}{list(g.shape)}."
                )
            checked.append(g)
        return checked

    # ---- a vjp that reads values ------------------------------------------------------------

    def _packed(self, tensors: Sequence[Any], n: int) -> tuple[Any, Sequence[Any], Any]:
        """Cotangents, operands and results from the list of them all."""
        m = (len(tensors) - n) // 2
        gs, operands, outs = tensors[:m], tensors[m : m + n], tensors[m + n :]
        return (tuple(gs), operands, tuple(outs)) if self.row.many else (gs[0], operands, outs[0])

    def _traced(self, tensors: list, n: int, attrs: Sequence[Any]) -> tuple:
        """The gradients in a trace: those of a vjp that needs values become a step of the program."""
        g, operands, out = self._packed(tensors, n)
        try:
            return tuple(self._checked(self._vjp(g, operands, out, attrs), operands))
        except (LookupError, *OUT_OF_RESOURCES):
            raise
        except Exception:
            if self._is_made_of_ops(tensors, n, attrs):
                raise
        sources = [k for k, x in enumerate(operands) if _has_gradient(x)]

        def run(*values: Any) -> list:
            with aside():
                g, xs, out = self._packed(values, n)
                grads = self._checked(self._vjp(g, xs, out, attrs), xs)
                return [_dense(grads[k], xs[k]) for k in sources]

        op = _Gradient(self, run, n, attrs)
        results = op(tensors, [(tuple(operands[k].shape), operands[k].dtype._code) for k in sources])
        grad_of = dict(zip(sources, results, strict=True))
        return tuple(grad_of.get(k) for k in range(n))

    def _is_made_of_ops(self, tensors: Sequence[Any], n: int, attrs: Sequence[Any]) -> bool:
        def run(xs: list) -> list:
            g, operands, out = self._packed(xs, n)
            grads = self._checked(self._vjp(g, operands, out, attrs), operands)
            return [_dense(r, x) for r, x in zip(grads, operands, strict=True)]

        return traced(run, [(t.dtype._code, tuple(t.shape)) for t in tensors], True) is not None

    def record_last(self, grads: Sequence[Any], tensors: Sequence[Any], n: int, attrs: Sequence[Any]) -> None:
        """Records gradients that were not computed by ops, so that differentiating them is an error instead of a
        silent None. With respect to the cotangent, in which they are linear, the derivative is the jvp."""
        m = (len(tensors) - n) // 2
        jvp = self.jvp
        if jvp is None or any(map(_core.is_tracked, tensors[m:])):
            _core.record(tuple(grads), tuple(tensors), self._refuse)
            return
        _, operands, out = self._packed(tensors, n)

        def push(*tangents: Any) -> list:
            given = iter(tangents)
            ts = [next(given) if _has_gradient(x) else None for x in operands]
            pushed = jvp(ts[0] if n == 1 else tuple(ts), *operands, out, *attrs)
            return list(pushed) if self.row.many else [pushed]

        _core.record(tuple(grads), tuple(tensors[:m]), push)

    def _refuse(self, *_: Any) -> Any:
        raise LookupError(
            f"{self.name}: its gradient cannot be differentiated again, because the vjp is not made of ops. Hint: write "
            "the vjp with tf functions instead of NumPy."
        )


class _Gradient(Callback):
    """The node for a vjp that reads values: cotangents, operands, results."""

    def __init__(self, owner: Primitive, run: Callable, n: int, attrs: Sequence[Any]) -> None:
        super().__init__(f"gradient of {owner.name}", run)
        self.owner, self.n, self.attrs = owner, n, attrs

    def __call__(self, operands: Sequence[Any], specs: Sequence[tuple]) -> list:
        results = super().__call__(operands, specs)
        if _core.is_recording():
            self.owner.record_last(results, operands, self.n, self.attrs)
        return results


def _has_gradient(x: Any) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex


def _dense(g: Any, x: Any) -> Any:
    return ops.zeros_like(x) if g is None else conversion.densify(g)


def _fits(g: tuple[int, ...], x: tuple[int, ...]) -> bool:
    return len(g) >= len(x) and all(a == b or b == 1 for a, b in zip(g[len(g) - len(x) :], x, strict=True))
