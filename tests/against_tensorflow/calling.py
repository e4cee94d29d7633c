"""One call in one library: its operands and its outcome.

A call is a function of a `Maker`, which makes and lists operands of one library; `run` calls it under tapes and
returns its results with the gradients of all operands that have one, or the exception.
Operands are seeded by the text of the call, so that both libraries get the same numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# The type of complex operands in a run with an element type.
_COMPLEX_OF = {"float64": "complex128", "complex128": "complex128"}
_REAL_OF = {"complex64": "float32", "complex128": "float64"}
_LARGEST = 20_000  # elements of a result: second derivatives of more take too long


class Maker:
    """Operands for one call: each method makes a tensor of the library."""

    def __init__(self, lib: Any, words: str, dtype: str) -> None:
        self.lib, self.dtype = lib, dtype
        self._rng = np.random.default_rng(zlib.crc32(words.encode()))
        self.made: list[Any] = []
        self._tapes: list[Any] = []
        self.used_type = False

    def under(self, *tapes: Any) -> None:
        self._tapes = list(tapes)

    def tensor(self, array: Any, dtype: str) -> Any:
        lib = self.lib
        array = np.asarray(array)
        if dtype == "bfloat16":  # NumPy has none
            x = lib.cast(lib.constant(array.astype(np.float32)), lib.bfloat16)
        else:
            with np.errstate(all="ignore"):
                x = lib.constant(array.astype(dtype))
        if x.dtype.is_floating or x.dtype.is_complex:
            for tape in self._tapes:
                tape.watch(x)
            self.made.append(x)
        return x

    # ---- operands ---------------------------------------------------------------------------

    def f(self, *shape: int, lo: float = -2.0, hi: float = 2.0) -> Any:
        """Random numbers of the run's element type, no two of them close to each other."""
        self.used_type = True
        size = int(np.prod(shape))
        part = self._rng.permutation(size) + self._rng.uniform(0.2, 0.8, size)
        x = (lo + (hi - lo) * part / max(size, 1)).reshape(shape)
        if self.dtype.startswith("complex"):
            x = x + 1j * self._rng.uniform(-1, 1, shape)
        return self.tensor(x, self.dtype)

    def v(self, values: Any) -> Any:
        """These values in the run's element type."""
        self.used_type = True
        return self.tensor(values, self.dtype)

    def r(self, *shape: int, lo: float = -2.0, hi: float = 2.0) -> Any:
        """Random real numbers, in a run with complex ones, too."""
        self.used_type = True
        return self.tensor(self._rng.uniform(lo, hi, shape), _REAL_OF.get(self.dtype, self.dtype))

    def c(self, *shape: int) -> Any:
        """Random complex numbers."""
        self.used_type = True
        x = self._rng.uniform(-2, 2, shape) + 1j * self._rng.uniform(-2, 2, shape)
        return self.tensor(x, _COMPLEX_OF.get(self.dtype, "complex64"))

    def m(self, *shape: int) -> Any:
        """Random matrices far from singular ones."""
        self.used_type = True
        x = self._rng.uniform(-1, 1, shape)
        if self.dtype.startswith("complex"):
            x = x + 1j * self._rng.uniform(-1, 1, shape)
        return self.tensor(x + np.eye(*shape[-2:]) * (2 + np.arange(shape[-1])), self.dtype)

    def spd(self, *shape: int) -> Any:
        """Random self-adjoint positive definite matrices."""
        self.used_type = True
        x = self._rng.uniform(-1, 1, shape)
        if self.dtype.startswith("complex"):
            x = x + 1j * self._rng.uniform(-1, 1, shape)
        x = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1]) * (1 + np.arange(shape[-1]))
        return self.tensor(x, self.dtype)

    def i(self, values: Any) -> Any:
        return self.tensor(values, "int32")

    def l(self, values: Any) -> Any:  # noqa: E743
        return self.tensor(values, "int64")

    def b(self, values: Any) -> Any:
        return self.tensor(values, "bool")

    def n(self, lo: int, hi: int, *shape: int, dtype: str = "int32") -> Any:
        """Random integers from `lo` up to `hi`, without it."""
        return self.tensor(self._rng.integers(lo, hi, shape), dtype)

    def t(self, values: Any, dtype: str) -> Any:
        """These values in this element type."""
        return self.tensor(values, dtype)

    def words(self) -> dict[str, Any]:
        """The names that the text of a call may use."""
        own = "f v r c m spd i l b n t".split()
        return {"tf": self.lib, "np": np, "dtype": self.dtype} | {w: getattr(self, w) for w in own}


class Value(NamedTuple):
    """A tensor, array or number as NumPy has it, and its type as the library calls it."""

    array: np.ndarray
    dtype: str
    kind: str


class Outcome(NamedTuple):
    """The outcome of a call."""

    results: Any = None  # nested tuples and dicts of Values
    gradients: Any = None
    second: Any = None
    error: BaseException | None = None
    gradient_error: BaseException | None = None
    used_type: bool = True


def plain(x: Any) -> Any:
    """A result as plain tuples, dicts, Values and Python objects."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)) and type(x).__name__ != "TensorShape":
        return tuple(plain(v) for v in x)
    kind = type(x).__name__
    if kind == "IndexedSlices":
        return {"values": plain(x.values), "indices": plain(x.indices), "kind": "IndexedSlices"}
    if kind == "SparseTensor":
        return {"values": plain(x.values), "indices": plain(x.indices), "shape": plain(x.dense_shape)}
    if kind == "RaggedTensor":
        return {"values": plain(x.flat_values), "splits": plain(tuple(x.nested_row_splits))}
    if kind == "TensorShape":
        return ("shape", tuple(x.as_list()) if x.rank is not None else None)
    if kind == "DType":
        return ("dtype", x.name)
    if hasattr(x, "dtype") and hasattr(x, "numpy"):
        array = np.asarray(x.numpy())
        name = x.dtype.name.removesuffix("_ref")
        if name == "bfloat16":
            array = array.astype(np.float32)
        return Value(array, name, "variable" if "Variable" in kind else "tensor")
    if isinstance(x, np.ndarray):
        return Value(x, x.dtype.name, "array")
    if isinstance(x, np.generic):
        return Value(np.asarray(x), x.dtype.name, "number")
    if x is None or isinstance(x, (bool, int, float, complex, str, bytes)):
        return x
    return kind


def _leaves(x: Any) -> list[Any]:
    """The tensors of a result, in order."""
    if isinstance(x, dict):
        return [leaf for v in x.values() for leaf in _leaves(v)]
    if isinstance(x, (list, tuple)):
        return [leaf for v in x for leaf in _leaves(v)]
    return [x] if hasattr(x, "dtype") and hasattr(x, "shape") and hasattr(x, "numpy") else []


def _differentiable(x: Any) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex


def _cotangents(lib: Any, targets: list[Any], seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    out = []
    for y in targets:
        g = rng.uniform(-1, 1, tuple(y.shape))
        if y.dtype.is_complex:
            g = g + 1j * rng.uniform(-1, 1, tuple(y.shape))
        dtype = y.dtype.name.removesuffix("_ref")
        if dtype == "bfloat16":
            out.append(lib.cast(lib.constant(g.astype(np.float32)), lib.bfloat16))
        else:
            out.append(lib.constant(g.astype(dtype)))
    return out


def _dense(lib: Any, g: Any) -> Any:
    return lib.convert_to_tensor(g) if type(g).__name__ == "IndexedSlices" else g


def _gradient(lib: Any, g: Any) -> Any:
    """A gradient in the form in which it is compared: a sparse one as its sum, since rows may come in any order."""
    if type(g).__name__ == "IndexedSlices":
        return {"IndexedSlices": plain(_dense(lib, g))}
    return plain(g)


def run(
    lib: Any,
    call: Callable[[Maker], Any],
    words: str,
    dtype: str,
    gradients: bool = True,
    second: bool = True,
) -> Outcome:
    """Calls `call` with operands of `lib`. `words` are the seed of their numbers."""
    maker = Maker(lib, words, dtype)
    with lib.GradientTape(persistent=True) as outer:
        with lib.GradientTape() as tape:
            maker.under(tape, outer)
            try:
                out = call(maker)
                results = plain(out)
            except Exception as e:
                return Outcome(error=e, used_type=maker.used_type)
        sources = list(maker.made)
        targets = [y for y in _leaves(out) if _differentiable(y)]
        if not gradients or not sources or not targets:
            return Outcome(results, used_type=maker.used_type)
        try:
            gs = tape.gradient(targets, sources, output_gradients=_cotangents(lib, targets, 1))
        except Exception as e:
            return Outcome(results, gradient_error=e, used_type=maker.used_type)
        firsts = [_dense(lib, g) for g in gs if g is not None]
    first = tuple(_gradient(lib, g) for g in gs)
    size = sum(int(np.prod(x.shape)) for x in [*sources, *targets])
    if not second or not firsts or size > _LARGEST:
        return Outcome(results, first, used_type=maker.used_type)
    try:
        seconds = outer.gradient(firsts, sources, output_gradients=_cotangents(lib, firsts, 2))
        seconds = tuple(None if g is None else plain(_dense(lib, g)) for g in seconds)
    except Exception as e:
        seconds = e
    return Outcome(results, first, seconds, used_type=maker.used_type)
