"""The op table: what a row is, and the kinds of ops a row can be.

An op is declared once, by a call of one of the functions below, in one of the files of this
folder. The call creates the native op, checks that the row is complete, and adds it to `TABLE`. Whatever needs
"all ops" (the public namespaces, the contract test, the documentation, batching and lowering) reads the table.

A rule handles one operand and the plain case. The engine (`core/py/backward.cpp`) does what all rules have in common:
summing over broadcast axes, conjugation, zero cotangents, accumulation, and saving as residuals exactly those values
that a rule reads.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src.base.calls import one_call
from gradtape._src.base.dtypes import BY_CODE, as_dtype
from gradtape._src.base.dtypes import WIDE as _WIDE
from gradtape._src.ops.facts import Facts, facts_of
from gradtape._src.ops.late import Names


def _bits(kinds: str) -> int:
    """The element types of some kinds (NumPy's letters), as a bit set by their codes."""
    return sum(1 << d._code for d in BY_CODE if d._kind in kinds)


BOOL = _bits("b")
INT = _bits("iu")
FLOAT = _bits("f")
COMPLEX = _bits("c")
REAL = INT | FLOAT
NUMBER = REAL | COMPLEX
ANY = NUMBER | BOOL
TEXT = _bits("O")  # strings, which native code moves and compares as numbers: tensors/text.py
STORED = _bits("s")  # types that are only stored and cast: tensors/stored.py
ALL = ANY | TEXT | STORED
WIDE = sum(1 << code for code in _WIDE)  # float32 and float64

PARAM_KINDS: dict[str, tuple[int, bool, bool]] = _core.param_kinds()
"""The kinds of parameters, by name: code, whether it is an operand, whether it is an attribute."""
_OPERAND_KINDS = frozenset(kind for kind, (_, operand, _) in PARAM_KINDS.items() if operand)
_ATTRIBUTE_KINDS = frozenset(kind for kind, (_, _, attribute) in PARAM_KINDS.items() if attribute)
_CONSTANTS = {"None": None, "True": True, "False": False}

# How a rule computes the gradient of an operand.
_RULES: dict[str, int] = _core.rule_kinds()
NO_RULE, DERIVATIVE, VJP = _RULES["None"], _RULES["Derivative"], _RULES["Vjp"]
_NUMBERS = {0: _RULES["Zero"], 1: _RULES["One"], -1: _RULES["MinusOne"]}

TABLE: Names[Row] = Names("rows")
"""All rows, by name."""

PUBLIC: Names[Any] = Names("public")
"""The op or composite of every public name ("math.tanh", "reduce_sum")."""


class Param(NamedTuple):
    """One parameter of an op's signature. `default` is `...` when there is none."""

    name: str
    kind: str
    default: Any


class Row:
    """One op: its signature, its rules, its reference and its samples."""

    __slots__ = (
        "name", "kind", "op", "params", "dtypes", "rules", "joint", "numpy", "samples", "edges", "bad",
        "names", "doc", "transpose", "differentiable", "gradient_samples", "tolerance", "many", "native",
        "shape_from_values", "batch", "checked", "_declared", *Facts._fields,
    )  # fmt: skip

    op: Any
    params: list[Param]
    dtypes: int
    rules: list[tuple[int, Callable | None]]
    joint: bool
    numpy: Any
    samples: Any
    edges: Any
    bad: Any
    names: tuple[str, ...]
    doc: str
    transpose: Any
    differentiable: bool | None
    gradient_samples: Any
    tolerance: float
    many: bool
    native: str
    shape_from_values: bool | Callable
    batch: str | Callable | None
    checked: str  # the op that checks the second operand, an integer, in programs
    linear: tuple[tuple[int, ...], ...]  # from here on: see Facts
    pattern: str
    simplify: Callable | None
    fuses: bool
    epilogue: str
    each_row: str
    first: str
    second: tuple[str, ...]
    in_place: tuple[int, ...]
    alias: bool
    by_rows: Callable | None
    xla: str

    def __init__(
        self, name: str, kind: str, params: list[Param], facts: dict[str, Any], **fields: Any
    ) -> None:
        self.name = name
        self.kind = kind
        self.params = params
        self._declared = facts
        for field, value in fields.items():
            setattr(self, field, value)

    def __getattr__(self, name: str) -> Any:
        # Facts are computed on first access: most programs need those of few ops.
        if name not in Facts._fields:
            raise AttributeError(f"a row has no {name!r}")
        self.compute_facts()
        return getattr(self, name)

    def compute_facts(self) -> None:
        """Computes the facts.

        Raises:
          TypeError, ValueError: if the row declares something invalid.
        """
        try:
            computed = facts_of(self.kind, [p.name for p in self.operands], **self._declared)
        except (TypeError, ValueError) as e:
            raise type(e)(f"{self.name}: {e}") from None
        for field, value in computed._asdict().items():
            setattr(self, field, value)

    @property
    def operands(self) -> list[Param]:
        return [p for p in self.params if p.kind in _OPERAND_KINDS]

    @property
    def attributes(self) -> list[Param]:
        return [p for p in self.params if p.kind in _ATTRIBUTE_KINDS]

    def __repr__(self) -> str:
        return f"<row {self.name}: {self.kind}({', '.join(p.name for p in self.params)})>"


def parse_params(text: str) -> list[Param]:
    """Parses a signature like `"x axis:Axes=None keepdims:Bool=False"`."""
    params = []
    for word in text.split():
        head, _, default = word.partition("=")
        name, _, kind = head.partition(":")
        value: Any = ...
        if default:
            if default in _CONSTANTS:
                value = _CONSTANTS[default]
            elif default[0] in "-.0123456789":
                value = float(default) if "." in default or "e" in default else int(default)
            elif kind == "Dtype":
                value = as_dtype(default)
            else:
                value = default
        params.append(Param(name, kind or "Operand", value))
    params.append(Param("name", "Ignored", None))
    return params


def _signature(op: Any) -> inspect.Signature:
    """The signature that `inspect.signature` shows for an op."""
    return inspect.Signature(
        [
            inspect.Parameter(
                p.name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if p.default is ... else p.default,
            )
            for p in op.row.params
        ]
    )  # fmt: skip


def _shown(op: Any) -> str:
    """The repr of an op, which `help` and interpreters show."""
    return f"<gradtape op {op.__name__}{_signature(op)}>"


_core.Op.__signature__ = property(_signature)  # type: ignore[method-assign, assignment]
setattr(_core.Op, "__repr__", _shown)  # noqa: B010  it is a native type


def _check(row: Row) -> None:
    """Raises an error for an incomplete row."""
    # An interrupted import of a late family is repeated; tools/late_ops.py finds duplicate names in those.
    if row.name in dict.keys(TABLE) and not TABLE.is_late(row.name):
        raise ValueError(f"{row.name}: there are two rows of this name")
    if not row.doc:
        raise ValueError(f"{row.name}: a row needs a docstring")
    if not row.samples:
        raise ValueError(f"{row.name}: a row needs samples")
    if row.numpy is None:
        raise ValueError(f"{row.name}: a row needs a NumPy reference")
    if row.differentiable is None:
        raise ValueError(f"{row.name}: a row with float operands needs a rule, or `rule=None` written out")


def _enter(row: Row, native: str, flags: set[str], fallback: Callable | None, python: Callable | None) -> Any:
    _check(row)
    if python is not None:  # may be the user's op, whose mistakes should raise here
        row.compute_facts()
    row.native = native
    if row.differentiable:
        flags.add("differentiable")
    params = [(p.name, PARAM_KINDS[p.kind][0], p.default) for p in row.params]
    row.op = _core.Op(row.name, native, params, row.dtypes, row.rules, flags, python, fallback, row)
    TABLE[row.name] = row
    row.op.__doc__ = row.doc
    public = [name.rpartition(".")[2] for name in row.names]
    row.op.__name__ = row.op.__qualname__ = row.name if row.name in public or not public else public[0]
    for name in row.names:
        PUBLIC[name] = row.op
    return row.op


def _rule(rule: Any, kind: int) -> tuple[int, Callable | None]:
    if rule is None:
        return NO_RULE, None
    if callable(rule):
        return kind, rule
    if rule in _NUMBERS:
        return _NUMBERS[rule], None
    raise ValueError(f"a rule is a function, 1, -1, 0 or None, got {rule!r}")


def _true_flags(**flags: bool) -> set[str]:
    return {name for name, said in flags.items() if said}


_NO_RULE_STATED: Any = object()


def elementwise(
    name: str,
    dtypes: int,
    args: str = "x",
    *,
    deriv: Any = _NO_RULE_STATED,
    vjp: Any = _NO_RULE_STATED,
    numpy: Callable | None = None,
    samples: Any = (),
    edges: Sequence[tuple] = (),
    bad: Sequence[tuple] = (),
    names: str = "",
    doc: str = "",
    native: str = "",
    no_nan: bool = False,
    no_zero: bool = False,
    no_negative: bool = False,
    true_division: bool = False,
    fallback: Callable | None = None,
    **facts: Any,
) -> Any:
    """An op that computes each element of the result from one element of each operand.

    Args:
      deriv: the derivative with respect to each operand: a function of `(*operands, out)`, or 1, -1, 0
        (connected, but zero everywhere) or None (not connected). One derivative needs no tuple.
      vjp: instead of `deriv`, functions of `(g, *operands, out)`, where a product with the derivative would
        be slower or unstable.
      no_nan: a zero cotangent gives a zero gradient even where the derivative is infinite.
      no_zero, no_negative: a zero, or a negative integer, as the second operand is an error.
      true_division: integers are divided as floats.
      facts: what the kind does not imply, like `linear="x"`; see `ops/facts.py`.
    """
    kind, rules = (DERIVATIVE, deriv) if deriv is not _NO_RULE_STATED else (VJP, vjp)
    params = parse_params(args)
    count = sum(p.kind in _OPERAND_KINDS for p in params)
    if not isinstance(rules, tuple):
        rules = (rules,) * (1 if rules is not None and rules is not _NO_RULE_STATED else count)
    has_rules = rules[0] is not _NO_RULE_STATED
    if has_rules and len(rules) != count:
        raise ValueError(f"{name}: {count} operands need {count} rules, got {len(rules)}")
    row = Row(
        name, "elementwise", params, facts, dtypes=dtypes, joint=False, numpy=numpy, samples=samples,
        edges=edges, bad=bad, names=tuple(names.split()), doc=doc, transpose=None, gradient_samples=None,
        rules=[_rule(r, kind) for r in rules] if has_rules else [],
        differentiable=any(r is not None for r in rules) if has_rules else None if dtypes & (FLOAT | COMPLEX) else False,
        tolerance=1.0, many=False, shape_from_values=False, batch="aligned",
        checked="divisor" if no_zero else "exponent" if no_negative else "",
    )  # fmt: skip
    flags = {"elementwise"} | _true_flags(
        no_nan=no_nan, no_zero=no_zero, no_negative=no_negative, true_division=true_division
    )
    return _enter(row, native or name, flags, fallback, None)


def _general(
    kind: str,
    name: str,
    dtypes: int,
    args: str,
    *,
    rule: Any = _NO_RULE_STATED,
    numpy: Callable | None = None,
    samples: Any = (),
    gradient_samples: Any = None,
    edges: Sequence[tuple] = (),
    bad: Sequence[tuple] = (),
    names: str = "",
    doc: str = "",
    native: str = "",
    many: bool = False,
    joint: bool = False,
    gaps: bool = False,
    one_is_all: bool = False,
    fallback: Callable | None = None,
    python: Callable | None = None,
    transpose: Any = None,
    tolerance: float = 1.0,
    shape_from_values: bool | Callable = False,
    batch: str | Callable | None = None,
    **facts: Any,
) -> Any:
    # tolerance: a factor on the tolerances of the contract test, for ops that inherently lose precision
    # shape_from_values: the shape of the result depends on values (boolean_mask), so only the inferred rank
    #   and type are right
    # one_is_all: a tensor passed for a list of operands is its only element, not the list of its rows
    # batch: the batching rule (see batching/batch.py): "leading" if leading axes are batch axes already, or a
    #   function; None means a loop
    # facts: what the kind does not imply, like `linear="x"`; see ops/facts.py
    params = parse_params(args)
    operands = [p for p in params if p.kind in _OPERAND_KINDS]
    variadic = bool(operands) and operands[0].kind == "Operands"
    rules = rule if isinstance(rule, tuple) else (rule,)
    has_rules = rules[0] is not _NO_RULE_STATED
    joint = joint or variadic
    if has_rules and not joint and operands and len(rules) != len(operands):
        if rules == (None,):
            rules = (None,) * len(operands)
        else:
            raise ValueError(f"{name}: {len(operands)} operands need {len(operands)} rules, got {len(rules)}")
    row = Row(
        name, kind, params, facts, dtypes=dtypes, joint=joint, numpy=numpy, samples=samples, edges=edges,
        bad=bad, names=tuple(names.split()), doc=doc, transpose=transpose, gradient_samples=gradient_samples,
        rules=[_rule(r, VJP) for r in rules] if has_rules else [],
        differentiable=any(r is not None for r in rules) if has_rules else None if operands else False,
        tolerance=tolerance, many=many, shape_from_values=shape_from_values,
        batch=batch or _shifts(kind, params), checked="",
    )  # fmt: skip
    flags = _true_flags(many=many, joint=joint, gaps=gaps, one_is_all=one_is_all)
    return _enter(row, "" if python else native or name, flags, fallback, python)


_SHIFTED_KINDS = frozenset(
    ("Operand", "Free", "Axes", "Axis", "NewAxis", "Perm", "Shape", "Reshape", "Bool", "Dtype")
)


def _shifts(kind: str, params: list[Param]) -> str | None:
    """Reductions and movements run over a new leading axis when all their attributes can be shifted."""
    plain = all(p.kind in _SHIFTED_KINDS or not any(PARAM_KINDS[p.kind][1:]) for p in params)
    return "leading" if kind in ("reduction", "movement") and plain else None


def reduction(
    name: str, dtypes: int, args: str = "input_tensor axis:Axes=None keepdims:Bool=False", **row: Any
) -> Any:
    """An op that reduces axes. `rule(g, x, out, axes, keepdims)` computes its gradient."""
    return _general("reduction", name, dtypes, args, **row)


def movement(name: str, dtypes: int, args: str, *, transpose: Any, **row: Any) -> Any:
    """A linear op that only moves elements of its first operand.

    `transpose(g, x, out, *attributes)` carries a cotangent back; it reads only the shapes of `x` and `out`.
    The tangent of a movement is the same movement of the tangent.
    """
    return _general("movement", name, dtypes, args, rule=transpose, transpose=transpose, **row)


def contraction(name: str, dtypes: int, args: str, *, transposes: tuple, **row: Any) -> Any:
    """An op that is linear in each operand: one transpose per operand,
    `transpose(g, x, y, out, *attributes)`."""
    return _general("contraction", name, dtypes, args, rule=transposes, transpose=transposes, **row)


def indexed(name: str, dtypes: int, args: str, **row: Any) -> Any:
    """An op that reads or writes elements at positions given by an index operand."""
    return _general("indexed", name, dtypes, args, **row)


def opaque(name: str, dtypes: int, args: str, **row: Any) -> Any:
    """Any other op. `rule` is one function of `(g, *operands, out, *attributes)` per operand, or
    with `joint=True` a single one that returns the gradients of all operands. With `gaps=True` (and
    several results) `g` holds None, not zeros, for results that have no cotangent."""
    return _general("opaque", name, dtypes, args, **row)


def composite(names: str, noted: bool = True) -> Callable:
    """Registers a Python function made of other ops under its public names. It needs no rule.

    Recordings record its calls; a function that only inspects an object need not be recorded (`noted=False`).

    Example:
      >>> @composite("math.cube")
      ... def cube(x, name=None):
      ...     return x * x * x
    """

    def enter(function: Callable) -> Callable:
        public = [name.rpartition(".")[2] for name in names.split()]
        if (
            isinstance(function, FunctionType) and function.__name__ not in public
        ):  # as `range_`, for messages
            function.__name__ = function.__qualname__ = public[0]
        composite = one_call(function) if noted and isinstance(function, FunctionType) else function
        for name in names.split():
            PUBLIC[name] = composite
        return composite

    return enter


def _op_named(name: str) -> Any:
    return TABLE[name].op


def _reduce(op: Any) -> tuple[Any, ...]:
    """Ops are pickled by name: modules and variables hold them, as activations and constraints."""
    return _op_named, (op.row.name,)


setattr(_core.Op, "__reduce__", _reduce)  # noqa: B010  it is a native type
