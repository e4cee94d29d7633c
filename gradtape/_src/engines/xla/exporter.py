"""The program of a function for all sizes: made from traces at some sizes, and compared with native code at others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from gradtape import _core
from gradtape._src.base import errors, log
from gradtape._src.base.shape import TensorSpec
from gradtape._src.engines import NATIVE
from gradtape._src.engines.xla import load as loader
from gradtape._src.engines.xla.any_size import AnySize, Sizes, refused
from gradtape._src.engines.xla.at_sizes import At, at_sizes
from gradtape._src.engines.xla.host import array_of
from gradtape._src.engines.xla.lowering import DTYPES
from gradtape._src.engines.xla.names import enable_x64
from gradtape._src.engines.xla.translate import Translation
from gradtape._src.graph.ir import Graph
from gradtape._src.ops.rewriting import FOLDED
from gradtape._src.tensors.conversion import convert, read

_TRIED = (9, 14, 11, 20, 17, 12, 23)  # sizes for traces: even, odd, prime
_OTHERS = ((13, 22), (16, 10))  # sizes for comparisons: the first for every other name
_LEAST = (1, 2, 3, 5, 9)  # small sizes for comparisons: the program starts at the first that agrees
_ANY = 1 << 62
_MOST_BYTES = 1 << 29  # of a constant, while a function is tried at large sizes
_SEED = 20  # of the values that are compared


class Frozen(ValueError):
    """A variable that would have to be a constant is assigned."""


class Axis(NamedTuple):
    """An unknown size of an argument: `factor * name`."""

    factor: int
    name: str

    def __str__(self) -> str:
        return self.name if self.factor == 1 else f"{self.factor}*{self.name}"


Shape = tuple[Any, ...]  # of an argument: numbers, and an Axis for each unknown size


class Exporter:
    """Makes the program of a function, and compares it with native code.

    Args:
      shapes: the shapes of the arguments.
      names: the names of their unknown sizes.
    """

    def __init__(
        self,
        concrete: Any,
        shapes: Sequence[Shape],
        platforms: Sequence[str],
        frozen: bool,
        seed: int | None,
        room: int,
        max_size: int,
    ) -> None:
        self.concrete, self.shapes, self.platforms = concrete, shapes, list(platforms)
        self.names = list(dict.fromkeys(d.name for s in shapes for d in s if isinstance(d, Axis)))
        self.frozen, self.seed, self.room = frozen, seed, room
        # The ranges of the unknown sizes.
        self.least, self.most = dict.fromkeys(self.names, 1), dict.fromkeys(self.names, max(_TRIED))
        self.has_status = False
        # Each name takes every size, in an order of its own, so that no two names are alike.
        self.points = [
            {name: _TRIED[(k * (i % 6 + 1) + i) % 7] for i, name in enumerate(self.names)} for k in range(7)
        ]
        self.points = self.points if self.names else [{}]
        self.found: list[At] = []
        for point in self.points:
            self.found.append(self.at(point))
        if frozen and self.first.assigned:
            names = [self.first.inputs[k].name for k in self.first.assigned]
            raise Frozen(
                f"export: {concrete.name} assigns the variables {names}, which would be frozen. Hint: "
                'export(..., variables="inputs") makes inputs and results of variables.'
            )

        if self.names:
            self._join(scope_of([]))  # raises an error that says what differs
        for name in self.names:
            self._find_most(name, max_size)

    def at(self, point: dict[str, int]) -> At:
        """The function at given sizes."""
        with FOLDED.to(_ANY):  # simplification must not depend on the size of a constant
            trace = at_sizes(self.concrete, [_sized(s, point) for s in self.shapes])
        if self.found:
            first = self.first
            outside = zip(trace.inputs, first.inputs, strict=False)
            if (
                trace[2:] != first[2:]
                or len(trace.inputs) != len(first.inputs)
                or any(
                    a is not b
                    and (isinstance(a, _core.Variable) or not np.array_equal(array_of(a), array_of(b)))
                    for a, b in outside
                )
            ):
                raise refused(None, f"{self.concrete.name} uses or gives other things at other sizes.")
        return trace

    def _join(self, scope: Any, more: Sequence[tuple[dict[str, int], At]] = ()) -> AnySize:
        """One graph for all sizes, from the traces made so far."""
        symbols = [jax.export.symbolic_shape(n, scope=scope)[0] for n in self.names]
        points = [*self.points, *(p for p, _ in more)]
        graphs = [f.graph for f in (*self.found, *(f for _, f in more))]
        return AnySize(graphs, Sizes(self.names, points, symbols))

    def _find_most(self, name: str, max_size: int) -> None:
        """Finds the largest size at which the graph is as at small sizes: a window or a table may end, for example."""
        good, bad, last = self.most[name], max_size + 1, None
        while good < bad - 1:
            # In steps at first: constants that grow with sizes must not fill the memory.
            size = min(4 * good, max_size) if bad > max_size else (good + bad) // 2
            if last is not None and _largest_constant(last[1].graph) * (size / good) ** 2 > _MOST_BYTES:
                break
            point = self.points[0] | {name: size}
            try:
                trace = self.at(point)
                self._join(scope_of([]), [(point, trace)])
            except Exception:
                bad = size
            else:
                good, last = size, (point, trace)
        if last is not None:
            self.points.append(last[0])
            self.found.append(last[1])
            self.most[name] = good
        if good < max_size:
            log.warning(
                "export: %s does other things, or needs more memory than there is, when %s is large: the program is for "
                "sizes up to %d. Hint: max_size, or numbers in shapes.", self.concrete.name, name, self.most[name],
            )  # fmt: skip

    @property
    def first(self) -> At:
        """The function at the first of the sizes."""
        return self.found[0]

    @property
    def variables(self) -> list[int]:
        """The indices of captures that are variables and inputs of the program."""
        return [
            k for k, x in enumerate(self.first.inputs) if isinstance(x, _core.Variable) and not self.frozen
        ]

    def exported(self) -> Any:
        """The program, as JAX exports it."""
        with enable_x64(True):
            scope = scope_of([
                *(f"{n} >= {k}" for n, k in self.least.items() if k > 1), *(f"{n} <= {k}" for n, k in self.most.items())
            ])  # fmt: skip
            shapes = [jax.export.symbolic_shape(_words(s), scope=scope) for s in self.shapes]
            graph = self.first.graph
            n = len(shapes)
            translation = self._join(scope) if self.names else Translation(graph, hoists=False)
            specs = [
                jax.ShapeDtypeStruct(s, DTYPES[v.dtype])
                for s, v in zip(shapes, graph.inputs[:n], strict=True)
            ]
            variables = self.variables
            specs += [
                jax.ShapeDtypeStruct(v.shape, DTYPES[v.dtype])
                for v in (graph.inputs[n + k] for k in variables)
            ]
            fixed = {k: array_of(read(x)) for k, x in enumerate(self.first.inputs) if k not in variables}
            count = self.first.streams
            if count and self.seed is None:
                specs.append(jax.ShapeDtypeStruct((count, 3), jnp.int64))

            def compute(*arrays: Any) -> list[Any]:
                given, rest = list(arrays[:n]), list(arrays[n:])
                outside = [fixed[k] if k in fixed else rest.pop(0) for k in range(len(self.first.inputs))]
                streams: Any = []
                if count:
                    streams = rest[0] if rest else loader._streams(count, self.seed)
                outputs, status = translation.run([*given, *outside, *streams], (), self.room)
                self.has_status = status is not None
                return [*outputs, status] if self.has_status else outputs

            jitted = jax.jit(compute, keep_unused=True)
            try:
                return jax.export.export(jitted, platforms=self.platforms)(*specs)
            except errors.OpError:
                raise
            except Exception as e:
                words = " ".join(str(e).split())[:500]
                raise refused(
                    None, f"JAX cannot write {self.concrete.name} for {self.platforms}: {words}"
                ) from e

    def checked(self) -> Any:
        """The program, after it has agreed with native code at sizes that it was not made from."""
        middle = dict.fromkeys(self.names, _TRIED[0])
        self.least = {n: self._least_of(n, middle) for n in self.names}
        while True:
            try:
                exported = self.exported()
                self._compare(exported, self.least)
                break
            except Exception:
                if not self._raise_least():
                    raise
        for pair in _OTHERS if self.names else ():
            self._compare(exported, {n: min(pair[i % 2] + i, self.most[n]) for i, n in enumerate(self.names)})
        return exported

    def _least_of(self, name: str, middle: dict[str, int]) -> int:
        """The smallest size that native code accepts."""
        for size in _LEAST:
            try:
                self.at(middle | {name: size})
                return size
            except Exception:
                continue
        return _LEAST[-1]

    def _raise_least(self) -> bool:
        """Raises the smallest sizes: of names that have a minimum natively, otherwise of all; False if none are left."""
        some = [n for n, size in self.least.items() if 1 < size < _LEAST[-1]]
        some = some or [n for n, size in self.least.items() if size < _LEAST[-1]]
        self.least |= {n: _LEAST[_LEAST.index(self.least[n]) + 1] for n in some}
        return bool(some)

    def _compare(self, exported: Any, point: dict[str, int]) -> None:
        trace = self.at(point)
        rng = np.random.default_rng(_SEED)
        n = len(self.shapes)
        outside = [read(x) for x in trace.inputs]
        seed = _SEED if self.seed is None else self.seed
        streams = loader._streams(trace.streams, seed)
        program = NATIVE.program(trace.graph)
        for make in SAMPLES:
            given = [sample(make, rng, v) for v in trace.graph.inputs[:n]]
            try:
                expected = program.run([*map(convert, given), *outside, *map(convert, streams)])
                break
            except errors.OpError:  # native code refuses such values
                if make is SAMPLES[-1]:
                    raise
        arrays = [*given, *(array_of(outside[k]) for k in self.variables)]
        if trace.streams and self.seed is None:
            arrays.append(streams)
        with enable_x64(True):
            got = list(exported.call(*arrays))
        if self.has_status and int(got.pop()):
            raise refused(None, f"{self.concrete.name} gave a status at the sizes {point}.")
        for k, (a, b) in enumerate(zip(got, map(array_of, expected), strict=True)):
            if not _alike(np.asarray(a), b):
                raise refused(
                    None, f"the program differs from native code at the sizes {point}, in result {k}: nothing was "
                    "written. Hint: export with known sizes.",
                )  # fmt: skip

    def description(self) -> dict[str, Any]:
        """The contents of description.json, which `load.py` reads."""
        names = [n for n, kind in self.concrete.function_type.inputs if isinstance(kind, TensorSpec)]
        n, first = len(self.shapes), self.first
        results = len(first.graph.outputs) - len(first.assigned)
        places = {k: results + i for i, k in enumerate(first.assigned)}
        return {
            "format": "gradtape.export", "version": 1, "name": self.concrete.name, "platforms": self.platforms,
            "inputs": [
                {"name": name, "shape": [d if type(d) is int else str(d) for d in s], "dtype": DTYPES[v.dtype].name}
                for name, s, v in zip(names, self.shapes, first.graph.inputs[:n], strict=True)
            ],
            "least_sizes": self.least, "most_sizes": self.most, "outputs": first.structure,
            "variables": [
                {"name": name, "dtype": DTYPES[first.graph.inputs[n + k].dtype].name, "output": places.get(k)}
                for k, name in zip(self.variables, self._variable_names(), strict=True)
            ],
            "streams": first.streams if self.seed is None else 0, "status": self.has_status, "iterations": self.room,
        }  # fmt: skip

    def _variable_names(self) -> list[str]:
        """The names of the variables, made unique."""
        names: list[str] = []
        for k in self.variables:
            name = first = self.first.inputs[k].name.removesuffix(":0")
            while name in names:
                name = f"{first}_{names.count(name) + sum(n.startswith(first + '_') for n in names)}"
            names.append(name)
        return names

    def values(self) -> dict[str, np.ndarray]:
        """The values of the variables that are inputs."""
        arrays = [array_of(read(self.first.inputs[k])) for k in self.variables]
        return dict(zip(self._variable_names(), arrays, strict=True))


def _largest_constant(graph: Graph) -> int:
    """The largest constant of a graph, in bytes."""
    values = {v for node in graph.nodes for v in node.operands if v.constant is not None}
    return max((v.size * DTYPES[v.dtype].itemsize for v in values), default=0)


def scope_of(constraints: Sequence[str]) -> Any:
    """JAX's scope for the names of sizes."""
    return jax.export.SymbolicScope(constraints)


def _sized(shape: Shape, point: dict[str, int]) -> tuple[int, ...]:
    return tuple(d.factor * point[d.name] if isinstance(d, Axis) else d for d in shape)


def _words(shape: Shape) -> str:
    return "(" + "".join(f"{d}," for d in shape) + ")"


def _matrices(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Positive definite matrices if they are square, otherwise positive numbers."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return rng.uniform(0.1, 0.9, shape)
    half = rng.normal(size=shape)
    return half @ half.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])


# Values for comparisons: the first kind that native code does not refuse.
SAMPLES: list[Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = [
    lambda rng, shape: rng.normal(size=shape),
    _matrices,
    lambda rng, shape: np.zeros(shape),
    lambda rng, shape: np.ones(shape),
]


def sample(make: Callable, rng: np.random.Generator, v: Any) -> np.ndarray:
    """Made-up elements for an input."""
    dtype = DTYPES[v.dtype]
    array = make(rng, v.shape)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        array = array + 1j * rng.normal(size=v.shape) * (make is SAMPLES[0])
    elif not jnp.issubdtype(dtype, jnp.floating):
        array = array > 0  # small integers, since they may be indices
    return np.asarray(array).astype(dtype)


def _alike(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if b.dtype.kind in "biu":
        return bool(np.array_equal(a, b))
    wide = np.complex128 if b.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    finite = np.abs(b[np.isfinite(b)])
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-3 * scale, equal_nan=True))
