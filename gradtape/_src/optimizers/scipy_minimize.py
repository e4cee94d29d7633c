"""`scipy_minimize`: SciPy's minimizers, with gradients, Hessians and Hessian products from the tape.

SciPy works on one flat vector of float64 numbers. What it asks for is computed on tensors (or
variables) of any number, shape and type, by functions that are traced once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.autodiff.functions import _takes_nothing
from gradtape._src.base import nest
from gradtape._src.base.progress import Progress
from gradtape._src.functions.function import function
from gradtape._src.tapes.tape import GradientTape
from gradtape._src.tensors import conversion
from gradtape._src.tensors.conversion import as_tensor, leaf_of

# The methods of SciPy that use gradients and Hessians; the others need values only.
_GRADIENT = frozenset(
    ("cg", "bfgs", "newton-cg", "l-bfgs-b", "tnc", "slsqp", "dogleg", "trust-ncg", "trust-krylov", "trust-exact",
     "trust-constr")
)  # fmt: skip
_PRODUCT = frozenset(("newton-cg", "trust-ncg", "trust-krylov", "trust-constr"))
_HESSIAN = frozenset(("dogleg", "trust-exact"))


def scipy_minimize(
    fun: Callable,
    x0: Any,
    method: str | None = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable | None = None,
    options: dict[str, Any] | None = None,
    compiled: bool = True,
) -> Any:
    """Minimizes a function with `scipy.optimize.minimize` and exact derivatives.

    Args:
      fun: the function to minimize, from `x0`'s structure to a tensor of one element. A function
        without parameters reads the variables in `x0` itself.
      x0: where to start: a tensor, array or variable, or a nest of them. Variables hold the result
        afterwards.
      method: any method of SciPy. By default BFGS, L-BFGS-B with bounds, SLSQP with constraints.
      bounds: pairs (low, high), one for each element or one for all; or `scipy.optimize.Bounds`.
      constraints: as in SciPy, with functions of `x0`'s structure to tensors: dictionaries with `type` and
        `fun`, or `NonlinearConstraint`; their derivatives come from the tape. `LinearConstraint` as it is.
      tol: when to stop.
      callback: called after each iteration, with the present `x`.
      options: the options of the method.
      compiled: whether `fun` is traced (see `tf.function`), or runs as Python code each time.

    Returns:
      SciPy's result; its `x` has the structure of `x0`.

    Raises:
      ValueError: if `fun` does not return a number, or is not connected to `x0`.

    >>> import gradtape as tf
    >>> def rosenbrock(x):
    ...     return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    >>> found = tf.optimizers.scipy_minimize(rosenbrock, tf.zeros([3], tf.float64), method="trust-exact")
    >>> found.x.numpy().round(4)
    array([1., 1., 1.])
    """
    import scipy.optimize

    place = _Place(x0)
    target = _Target(fun, place, compiled)
    name = (method or "").lower()
    if not name:
        name = "slsqp" if _is_given(constraints) else "l-bfgs-b" if bounds is not None else "bfgs"
    derivatives: dict[str, Any] = {}
    if name in _GRADIENT:
        derivatives["jac"] = True
    if name in _PRODUCT:
        derivatives["hessp"] = target.product
    if name in _HESSIAN:
        derivatives["hess"] = target.hessian
    if callback is not None:
        told = callback

        def callback(xk: Any, *_: Any) -> Any:
            return told(place.structure(xk))

    if isinstance(bounds, tuple) and len(bounds) == 2 and not nest.is_nested(bounds[0]):
        bounds = [bounds] * place.size
    evaluate: Callable = target.value_and_gradient if "jac" in derivatives else target.value
    with Progress("scipy_minimize", unit="evaluations") as progress:

        def evaluated(x: np.ndarray) -> Any:
            value = evaluate(x)
            progress.step(note=f"{value[0] if 'jac' in derivatives else value:.6g}")
            return value

        result = scipy.optimize.minimize(
            evaluated,
            place.flat(),
            method=name,
            bounds=bounds,
            constraints=_constraints(constraints, place, compiled),
            tol=tol,
            callback=callback,
            options=options,
            **derivatives,
        )
    place.settle(result.x)
    result.x = place.structure(result.x)
    return result


# ---- the unknowns ---------------------------------------------------------------------------------


class _Place:
    """The unknowns: a nest of tensors and variables, and the flat vector that represents them."""

    def __init__(self, x0: Any) -> None:
        self.x0 = x0
        self.leaves = [
            leaf if isinstance(leaf, _core.Variable) else _floating(as_tensor(v))
            for v, leaf in ((v, leaf_of(v)) for v in nest.flatten(x0))
        ]
        if not self.leaves:
            raise ValueError("scipy_minimize: `x0` holds no numbers.")
        self.shapes = [
            tuple(v._value_shape if isinstance(v, _core.Variable) else v.shape) for v in self.leaves
        ]
        self.sizes = [int(np.prod(s)) for s in self.shapes]
        self.size = sum(self.sizes)

    def flat(self) -> np.ndarray:
        parts = [np.asarray(v, np.float64).ravel() for v in self.leaves]
        return np.concatenate(parts)

    def leaves_of(self, flat: np.ndarray) -> list[_core.Tensor]:
        """The parts of a flat vector, each in the shape and type of its leaf."""
        parts = np.split(np.asarray(flat, np.float64), np.cumsum(self.sizes)[:-1])
        return [
            conversion.convert(p.reshape(s), v.dtype._code)
            for p, s, v in zip(parts, self.shapes, self.leaves, strict=True)
        ]

    def settle(self, flat: np.ndarray) -> list[_core.Tensor]:
        """Sets the variables; returns a tensor for each leaf."""
        leaves = self.leaves_of(flat)
        for v, p in zip(self.leaves, leaves, strict=True):
            if isinstance(v, _core.Variable):
                v.assign(p)
        return leaves

    def structure(self, flat: np.ndarray) -> Any:
        return self.packed(self.leaves_of(flat))

    def packed(self, leaves: list[Any]) -> Any:
        return nest.pack_sequence_as(self.x0, leaves) if nest.is_nested(self.x0) else leaves[0]


def _floating(x: Any) -> Any:
    return x if x.dtype.is_floating else ops.cast(x, "float64")


# ---- the function ---------------------------------------------------------------------------------


class _Target:
    """A function of the unknowns and its derivatives, from flat vectors to flat vectors."""

    def __init__(self, fun: Callable, place: _Place, compiled: bool, scalar: bool = True) -> None:
        self.fun = fun
        self.place = place
        self.scalar = scalar
        self.bare = _takes_nothing(fun)
        wrap = function if compiled else (lambda f: f)
        self._value = wrap(self._traced_value)
        self._value_and_gradient = wrap(self._traced_value_and_gradient)
        self._product = wrap(self._traced_product)
        self._hessian = wrap(self._traced_hessian)
        self._jacobian = wrap(self._traced_jacobian)

    # Leaves that are variables are assigned before the call: the function reads them there.

    def _sources(self, leaves: Any) -> list[Any]:
        return [
            v if isinstance(v, _core.Variable) else p for v, p in zip(self.place.leaves, leaves, strict=True)
        ]

    def _call(self, sources: list[Any]) -> Any:
        y = self.fun() if self.bare else self.fun(self.place.packed(sources))
        y = _floating(ops.convert_to_tensor(y))
        if self.scalar and int(np.prod(y.shape)) != 1:
            raise ValueError(
                f"scipy_minimize: the function must return a number; got a tensor of shape {list(y.shape)}. "
                "Hint: tf.reduce_sum, or tf.reduce_mean."
            )
        return ops.reshape(y, []) if self.scalar else ops.reshape(y, [-1])

    def _join(self, parts: list[Any], sources: list[Any], what: str = "gradient") -> Any:
        if all(p is None for p in parts):
            raise ValueError(
                f"scipy_minimize: the {what} does not exist: the function is not connected to `x0`."
            )
        filled = [ops.zeros_like(s) if p is None else p for p, s in zip(parts, sources, strict=True)]
        return ops.concat(
            [ops.cast(ops.reshape(ops.convert_to_tensor(p), [-1]), "float64") for p in filled], 0
        )

    def _watch(self, tape: Any, sources: list[Any]) -> None:
        tape.watch([s for s in sources if isinstance(s, _core.Tensor)])

    def _traced_value(self, *leaves: Any) -> Any:
        return self._call(self._sources(leaves))

    def _traced_value_and_gradient(self, *leaves: Any) -> tuple:
        sources = self._sources(leaves)
        with GradientTape() as tape:
            self._watch(tape, sources)
            y = self._call(sources)
        return y, self._join(tape.gradient(y, sources), sources)

    def _gradient_inside(self, outer: Any, sources: list[Any]) -> Any:
        self._watch(outer, sources)
        with GradientTape() as inner:
            self._watch(inner, sources)
            y = self._call(sources)
        return self._join(inner.gradient(y, sources), sources)

    def _traced_product(self, vector: Any, *leaves: Any) -> Any:
        sources = self._sources(leaves)
        with GradientTape() as outer:
            g = self._gradient_inside(outer, sources)
        parts = outer.gradient(g, sources, output_gradients=vector)
        if all(p is None for p in parts):
            return ops.zeros_like(vector)  # a linear function
        return self._join(parts, sources)

    def _traced_hessian(self, *leaves: Any) -> Any:
        sources = self._sources(leaves)
        with GradientTape() as outer:
            g = self._gradient_inside(outer, sources)
        return self._rows(outer.jacobian(g, sources), sources)

    def _traced_jacobian(self, *leaves: Any) -> Any:
        sources = self._sources(leaves)
        with GradientTape() as tape:
            self._watch(tape, sources)
            y = self._call(sources)
        return self._rows(tape.jacobian(y, sources), sources, y.shape[0])

    def _rows(self, parts: list[Any], sources: list[Any], rows: int | None = None) -> Any:
        rows = self.place.size if rows is None else rows
        return ops.concat(
            [
                ops.zeros([rows, n], "float64")
                if p is None
                else ops.cast(ops.reshape(p, [rows, n]), "float64")
                for p, n in zip(parts, self.place.sizes, strict=True)
            ],
            1,
        )

    # ---- what SciPy calls --------------------------------------------------------------------

    def value(self, x: np.ndarray) -> Any:
        y = np.asarray(self._value(*self.place.settle(x)), np.float64)
        return float(y) if self.scalar else y

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        y, g = self._value_and_gradient(*self.place.settle(x))
        return float(y), np.asarray(g)

    def product(self, x: np.ndarray, vector: np.ndarray, *_: Any) -> np.ndarray:
        v = conversion.convert(np.asarray(vector, np.float64))
        return np.asarray(self._product(v, *self.place.settle(x)))

    def hessian(self, x: np.ndarray, *_: Any) -> np.ndarray:
        return np.asarray(self._hessian(*self.place.settle(x)))

    def jacobian(self, x: np.ndarray, *_: Any) -> np.ndarray:
        return np.asarray(self._jacobian(*self.place.settle(x)))


# ---- constraints ----------------------------------------------------------------------------------


def _is_given(constraints: Any) -> bool:
    return not isinstance(constraints, (list, tuple)) or bool(constraints)


def _constraints(given: Any, place: _Place, compiled: bool) -> Any:
    if isinstance(given, (list, tuple)):
        return [_constraint(c, place, compiled) for c in given]
    return [_constraint(given, place, compiled)]


def _constraint(c: Any, place: _Place, compiled: bool) -> Any:
    if isinstance(c, dict):
        target = _Target(c["fun"], place, compiled, scalar=False)
        return {**c, "fun": target.value, "jac": target.jacobian}
    if type(c).__name__ != "NonlinearConstraint":
        return c
    target = _Target(c.fun, place, compiled, scalar=False)

    def weighted(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The Hessian of the constraints, added up with weights."""

        def total(*args: Any) -> Any:
            y = ops.convert_to_tensor(c.fun(*args))
            return ops.reduce_sum(ops.reshape(y, [-1]) * ops.cast(weights, y.dtype))

        return _Target(total if not target.bare else (lambda: total()), place, False).hessian(x)

    return type(c)(target.value, c.lb, c.ub, jac=target.jacobian, hess=weighted)
