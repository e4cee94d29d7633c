"""What a notebook shows for tensors, variables, functions, tapes, and the results of `gradtape.debug`.

Classes have `_repr_html_ = above.shown`, which imports this module when a notebook first needs it. Elsewhere the
same values print as text.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src.base.shape import TensorSpec
from gradtape._src.debug import draw_html
from gradtape._src.debug.draw import Drawing, picture_of
from gradtape._src.debug.explanation import Explanation
from gradtape._src.debug.graph import elements, recorded, unseen
from gradtape._src.debug.health import Health
from gradtape._src.debug.markup import heading, paragraph, plain, shell, table
from gradtape._src.debug.memory import Memory, size
from gradtape._src.debug.programs import Profile
from gradtape._src.functions import kinds
from gradtape._src.functions.around import Eager
from gradtape._src.functions.concrete import ConcreteFunction
from gradtape._src.functions.function import Function
from gradtape._src.state.variable import Variable
from gradtape._src.state.variable_spec import VariableSpec
from gradtape._src.tapes.tape import GradientTape
from gradtape._src.tensors.tensor import numpy_text

_MOST_DRAWN = 60  # limit on the records of a tape that is drawn
_MOST_ROWS = 20  # limit for tables of variables, traces and steps of a profile
_CHUNK = 1 << 16  # elements that fit into a cache: several passes over them read memory once
_WIDE = 110  # characters in a line of elements
_MOST_TEXT = 20_000  # characters of a tensor's elements: strings may be long
_FEW = 8  # up to this many elements are shown without minimum, mean and maximum


@functools.singledispatch
def html(value: Any) -> str | None:
    """The HTML for a value; None if there is none."""
    return None


# ---- values -----------------------------------------------------------------------------------------


class Statistics(NamedTuple):
    """Statistics of the finite elements, and the number of others."""

    least: float
    mean: float
    most: float
    nans: int
    infinities: int

    def __str__(self) -> str:
        return f"min {self.least:.4g}, mean {self.mean:.4g}, max {self.most:.4g}"

    @property
    def trouble(self) -> str:
        """The numbers of elements that are not finite, in words."""
        return ", ".join(
            f"{n:,} {what}" for n, what in ((self.nans, "NaN"), (self.infinities, "infinite")) if n
        )


def statistics(values: np.ndarray) -> Statistics | None:
    """Minimum, mean and maximum of real numbers, in one pass over memory; None if there are none."""
    flat = values.reshape(-1)
    mean, count, nans, infinities = 0.0, 0, 0, 0
    least, most = np.inf, -np.inf
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        with np.errstate(over="ignore", invalid="ignore"):
            added = part.sum(dtype=np.float64)
        if np.isfinite(added):
            average = added / part.size
        else:
            is_nan = np.isnan(part)
            fine = np.isfinite(part)
            nans += int(is_nan.sum())
            infinities += int(part.size - fine.sum() - is_nan.sum())
            part = part[fine]
            average = (part / np.float64(max(part.size, 1))).sum()  # a sum of huge elements would overflow
        if part.size:
            count += part.size
            share = part.size / count
            mean = mean * (1 - share) + float(average) * share
            least, most = min(least, part.min()), max(most, part.max())
    if not flat.size:
        return None
    return Statistics(float(least), mean if count else np.nan, float(most), nans, infinities)


def _value(title: str, x: Any, *facts: str) -> str:
    """A tensor with its elements, abbreviated as by NumPy."""
    # With the usual three at each end, batches of images would fill pages.
    ends = 3 if x.ndim < 4 else 1
    with unseen(), np.printoptions(linewidth=_WIDE, edgeitems=ends):
        text = numpy_text(x).strip("\n")
        real = x.dtype.is_floating or x.dtype.is_integer
        stats = statistics(elements(x)) if real and x._numel > 1 else None
    if len(text) > _MOST_TEXT:
        text = f"{text[:_MOST_TEXT]}... ({len(text) - _MOST_TEXT:,} more characters)"
    said = ""
    if stats is not None and x._numel > _FEW and stats.least <= stats.most:
        said = str(stats)
    trouble = paragraph(stats.trouble, bad=True) if stats is not None and stats.trouble else ""
    return shell(heading(title, *facts, _kind(x), said), trouble, plain(text))


def _kind(x: Any) -> str:
    """Type and shape, as in `float32[3, None]`."""
    shape = x.shape
    inside = "..." if shape.rank is None else ", ".join(map(str, shape))
    return f"{x.dtype.name}[{inside}]"


@html.register
def _(x: _core.Tensor) -> str:
    return shell(heading("symbolic tensor", _kind(x))) if x._symbol is not None else _value("Tensor", x)


@html.register
def _(v: Variable) -> str:
    facts = (v.name.removesuffix(":0"), "" if v.trainable else "not trainable")
    if v.is_proxy or _core.current_trace() is not None:
        return shell(heading("Variable", *facts, _kind(v)))
    with unseen():
        value = v._read()
    return _value("Variable", value, *facts)


# ---- functions --------------------------------------------------------------------------------------


def _text(annotation: Any) -> str:
    return _kind(annotation) if isinstance(annotation, (TensorSpec, VariableSpec)) else kinds.text(annotation)


def _takes(trace: ConcreteFunction) -> str:
    return ", ".join(f"{p.name}: {_text(p.annotation)}" for p in trace.function_type.parameters)


def _gives(trace: ConcreteFunction) -> str:
    return ", ".join(map(_kind, trace.outputs)) or "None"


def _programs(trace: Any) -> list:
    """The compiled programs of a trace: itself, or one for each size that it was called with."""
    return [trace] if hasattr(trace, "graph_function") else list(trace.programs)


def _steps(trace: Any) -> str:
    return ", ".join(str(len(p.graph_function.graph.nodes)) for p in _programs(trace))


@html.register
def _(f: Function) -> str:
    traces = f._concrete
    traced = [t for t in traces if isinstance(t, ConcreteFunction)]
    options = [name for name in ("jit_compile", "reduce_retracing") if getattr(f, name)]
    count = f"{len(traced)} trace{'s' * (len(traced) != 1)}"
    parts = [heading("tf.function", f"{f.name}{f.parameters.signature}", count, *options)]
    if traced:
        rows = [["arguments", "result", "operations", "variables"]]
        for t in traced[:_MOST_ROWS]:
            rows.append([_takes(t), _gives(t), _steps(t), str(len(t.variables))])
        parts.append(table(rows, "llrr"))
    if len(traced) > _MOST_ROWS:
        parts.append(paragraph(f"and {len(traced) - _MOST_ROWS} more"))
    parts += [paragraph(f"Runs eagerly: {t.why}", bad=True) for t in traces if isinstance(t, Eager)]
    return shell(*parts)


@html.register
def _(f: ConcreteFunction) -> str:
    rows = [["", "name", "type"]]
    rows += [["argument", p.name, _text(p.annotation)] for p in f.function_type.parameters]
    rows += [["result", "", _kind(x)] for x in f.outputs]
    rows += [["variable", v.name.removesuffix(":0"), _kind(v)] for v in f.variables[:_MOST_ROWS]]
    if len(f.variables) > _MOST_ROWS:
        rows.append(["", f"and {len(f.variables) - _MOST_ROWS} more variables", ""])
    others = len(f.captured_inputs) - len(f.variables)
    if others:
        rows.append(["constant", f"{others} tensor{'s' * (others > 1)} from outside", ""])
    steps = _steps(f)
    return shell(
        heading("concrete function", f.name, f"{steps} operations" if steps else ""), table(rows, "lll")
    )


# ---- tapes ------------------------------------------------------------------------------------------


@html.register
def _(tape: GradientTape) -> str:
    records = recorded(tape)
    state = (
        "recording" if tape._recording else {"new": "not opened yet", "used": "used up"}.get(tape._stage, "")
    )
    memory = Memory(records)
    parts = [
        heading(
            "GradientTape",
            state,
            "persistent" if tape._persistent else "",
            f"{memory.records:,} operation{'s' * (memory.records != 1)}, keeps {size(memory.total)}",
        )
    ]
    variables = tape._variables()
    if variables:
        rows = [["watched", "type"]]
        rows += [[v.name.removesuffix(":0"), _kind(v)] for v in variables[:_MOST_ROWS]]
        if len(variables) > _MOST_ROWS:
            rows.append([f"and {len(variables) - _MOST_ROWS} more", ""])
        parts.append(table(rows, "ll"))
    if not records:
        return shell(*parts)
    if len(records) <= _MOST_DRAWN:
        return shell(*parts) + draw_html.cell(Drawing.of(picture_of(tape, None)))
    return shell(*parts, _tables(memory), paragraph("tape.draw(target) draws what a target depends on."))


@html.register
def _(drawing: Drawing) -> str:
    return draw_html.cell(drawing)


# ---- diagnostics ------------------------------------------------------------------------------------


def _tables(result: Health | Memory | Profile, *limit: int) -> str:
    return "".join(table(rows, right, bad) for rows, right, bad in result._tables(*limit))


@html.register
def _(e: Explanation) -> str:
    parts = [heading("Connected" if e.connected else "No gradient", "" if e.connected else e.cause)]
    parts.append(paragraph(e.text, bad=not e.connected))
    if e.line is not None:
        parts += (
            [paragraph(f"At {e.line}:"), plain(e.line.text)] if e.line.text else [paragraph(f"At {e.line}")]
        )
    if e.fix:
        parts.append(paragraph(f"Fix: {e.fix}"))
    return shell(*parts)


@html.register
def _(health: Health) -> str:
    troubled = len(health.troubled)
    said = f"{troubled} of {len(health.sources)} sources in trouble" if troubled else "nothing conspicuous"
    return shell(heading("Health of the gradients", said), _tables(health))


@html.register
def _(memory: Memory) -> str:
    return shell(heading("Memory"), paragraph(memory._head()), _tables(memory), paragraph(memory._hint()))


@html.register
def _(profile: Profile) -> str:
    count = f"{profile.seconds * 1e6:,.1f} us in {len(profile.steps)} steps"
    return shell(heading("Profile", profile.name, count), _tables(profile, _MOST_ROWS))
