"""`tape.health()`: gradients beside weights, dead and saturated units: one table, one plot."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.base.errors import more
from gradtape._src.base.source import Line
from gradtape._src.debug.graph import (
    Recorded,
    Table,
    are_known,
    elements,
    gradients,
    numbers,
    recorded,
    table,
    unseen,
)
from gradtape._src.debug.plots import Plot, plot_health
from gradtape._src.tensors import above
from gradtape._src.tensors.conversion import read

# Outputs this close to an end of the range pass on (almost) no gradient.
_NEAR = 0.01
_ENDS = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "hard_sigmoid": (0.0, 1.0), "relu6": (6.0,)}
_RECTIFIERS = frozenset(("relu", "relu6"))


class Source(NamedTuple):
    """A variable or watched tensor, and its gradient."""

    name: str
    shape: tuple[int, ...]
    gradient: float | None  # the norm; None: there is no gradient
    weight: float
    zeros: float  # share of the gradient's elements that are 0
    not_finite: int  # the number of NaNs and infinities in the gradient
    bad_weights: int  # the same for the weights
    update: float | None = None  # the norm of the optimizer's update; None: no optimizer was given

    @property
    def ratio(self) -> float:
        """The norm of the update, or else of the gradient, divided by the norm of the weights."""
        if self.gradient is None:
            return 0.0
        size = self.gradient if self.update is None else self.update
        return size / self.weight if self.weight else math.inf if size else 0.0

    @property
    def trouble(self) -> str:
        """What is wrong, in a word or two; empty if nothing is."""
        if self.gradient is None:
            return "no gradient: see tape.explain"
        if self.not_finite:
            return "NaN or infinity: see tf.debug.check_numerics"
        if self.bad_weights:
            return "weights are not finite"
        if self.zeros == 1:
            return "all zero"
        if self.ratio < 1e-7:
            return "vanishing"
        if self.gradient > 1e3 and self.ratio > 1e3:
            return "exploding"
        return ""


class Units(NamedTuple):
    """The units of one recorded activation: the last axis is units, all others are examples."""

    op: str
    shape: tuple[int, ...]
    units: int
    dead: int  # zero for the whole batch
    saturated: int  # near an end of the range for the whole batch
    near_end: float  # the share of all elements near an end
    line: Line | None

    @property
    def share(self) -> float:
        """The share of the units that pass on no gradient."""
        return (self.dead + self.saturated) / max(self.units, 1)


class Health:
    """Gradients of the sources and units of the activations, the worst first; a table when printed."""

    def __init__(self, sources: list[Source], units: list[Units]) -> None:
        self.sources = sorted(sources, key=_rank)
        self.units = sorted(units, key=lambda u: (-u.share, -u.near_end))

    @property
    def troubled(self) -> list[Source]:
        """The sources with a problem."""
        return [s for s in self.sources if s.trouble]

    def _tables(self) -> list[Table]:
        steps = any(s.update is not None for s in self.sources)
        head = ["gradient", "weight", *(["update", "update/weight"] if steps else ["ratio"])]
        rows = [["name", "shape", *head, "zeros", "not finite", ""]]
        for s in self.sources:
            shape = "[" + ",".join(map(str, s.shape)) + "]"
            if s.gradient is None:
                rows.append([s.name, shape, "None", f"{s.weight:.3g}", *[""] * (len(head)), s.trouble])
            else:
                update = [f"{s.update:.3g}"] if s.update is not None else []
                norms = [f"{s.gradient:.3g}", f"{s.weight:.3g}", *update, _shown(s.ratio)]
                rows.append([s.name, shape, *norms, f"{s.zeros:.1%}", str(s.not_finite), s.trouble])
        bad = [i for i, s in enumerate(self.sources, 1) if s.trouble]
        tables = [(rows, "ll" + "r" * (len(head) + 2) + "l", bad)]
        if self.units:
            rows = [["activation", "shape", "units", "dead", "saturated", "near an end", ""]]
            for u in self.units:
                shape = "[" + ",".join(map(str, u.shape)) + "]"
                where = u.line.shown if u.line is not None else ""
                rows.append(
                    [u.op, shape, str(u.units), str(u.dead), str(u.saturated), f"{u.near_end:.1%}", where]
                )
            tables.append((rows, "llrrrrl", [i for i, u in enumerate(self.units, 1) if u.share == 1]))
        return tables

    def __str__(self) -> str:
        return "\n\n".join("\n".join(table(rows, right)) for rows, right, _ in self._tables())

    __repr__ = __str__
    _repr_html_ = above.shown

    def plot(self, file: str | Path | None = None) -> Plot | str:
        """A picture of the norms of gradients and weights, and of the share of dead and saturated units.

        Returns:
          The picture, which a notebook shows; or the path of `file`, if it is written there.
        """
        return plot_health(self, file)


def _shown(ratio: float) -> str:
    """The ratio as text: a ratio to weights that are all zero, such as a new bias, means nothing."""
    return f"{ratio:.3g}" if math.isfinite(ratio) else ""


def _rank(s: Source) -> tuple:
    """Non-finite first, then without a gradient, then by the ratio of gradient to weights."""
    return (
        not s.not_finite,
        s.gradient is not None,
        not s.trouble,
        -s.ratio if math.isfinite(s.ratio) else 0.0,
    )


def health(tape: Any, targets: list, sources: Any, optimizer: Any = None) -> Health:
    """The health of `sources` with respect to `targets`; the tape can be used afterwards."""
    flat = nest.flatten(tape.watched_variables() if sources is None else sources)
    ends = [tape._end(s, "source") for s in flat]
    found = gradients(tape, targets, [tape._source(s) for s in ends])
    if not are_known(found):
        raise RuntimeError(
            "health: values are not known while a function is traced. Hint: run it under `with tf.debug.lines():`, where "
            "functions run eagerly." + more("traced-values")
        )
    grads = [None if g is None else elements(g) for g in found]
    names = [_name(i, s) for i, s in enumerate(flat)]
    steps = [None] * len(flat) if optimizer is None else _updates(optimizer, grads, flat)
    rows = [_source(*row) for row in zip(names, ends, grads, steps, strict=True)]
    return Health(rows, [u for u in map(_units, recorded(tape)) if u is not None])


def _updates(optimizer: Any, grads: list, variables: list) -> list:
    """The norm of the change that a step would make to each variable: the step is taken, and undone."""
    pairs = [(g, v) for g, v in zip(grads, variables, strict=True) if g is not None]
    if not pairs:
        return [None] * len(variables)
    with unseen():
        if not optimizer.built:
            optimizer.build(variables)
        saved = [(v, v.numpy()) for v in (*variables, *optimizer.variables)]
        try:
            optimizer.apply_gradients([(ops.cast(g, v.dtype), v) for g, v in pairs])
            after = [elements(v) for v in variables]
        finally:
            for v, value in saved:
                v.assign(value)
    return [
        None if g is None else norm(new - np.asarray(old, new.dtype))
        for g, new, (_, old) in zip(grads, after, saved, strict=False)
    ]


def norm(x: np.ndarray) -> float:
    """The norm, scaled so that squares do not overflow."""
    most = float(np.abs(x).max()) if x.size else 0.0
    if most == 0 or not math.isfinite(most):
        return most
    return most * float(
        np.linalg.norm((x / most).astype(np.complex128 if x.dtype.kind == "c" else np.float64))
    )


def _name(i: int, source: Any) -> str:
    if isinstance(source, _core.Tensor):
        return f"source {i}"
    # Keras: "sequential/dense/kernel", where the name alone is "kernel".
    return str(getattr(source, "path", source.name)).removesuffix(":0")


def _source(name: str, source: Any, gradient: np.ndarray | None, update: float | None) -> Source:
    weights = elements(read(source))
    bad = int(weights.size - np.isfinite(weights).sum())
    shape = tuple(source.shape)
    if gradient is None:
        return Source(name, shape, None, norm(weights), 0.0, 0, bad)
    zeros = float((gradient == 0).mean()) if gradient.size else 0.0
    not_finite = int(gradient.size - np.isfinite(gradient).sum())
    return Source(name, shape, norm(gradient), norm(weights), zeros, not_finite, bad, update)


def _units(r: Recorded) -> Units | None:
    """Dead and saturated units of a record, if it is an activation whose result is kept."""
    if r.what not in _RECTIFIERS and r.what not in _ENDS or not r.results:
        return None
    values = numbers(r.results[0])
    if values is None or values.size == 0:
        return None
    flat = values.reshape(-1, values.shape[-1] if values.ndim else 1)
    dead = int((flat <= 0).all(0).sum()) if r.what in _RECTIFIERS else 0
    near = np.zeros(flat.shape, bool)
    for end in _ENDS.get(r.what, ()):
        near |= np.abs(flat - end) < _NEAR
    return Units(
        r.what, values.shape, flat.shape[1], dead, int(near.all(0).sum()), float(near.mean()), r.line
    )  # fmt: skip
