"""Derivatives of a function at a point: jvp, vjp, hvp, jacobian, hessian, laplacian, and gradients
of each example of a batch."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.autodiff.forward import ForwardAccumulator
from gradtape._src.base import nest
from gradtape._src.base.calls import one_call
from gradtape._src.functions.control_flow import vectorized_map
from gradtape._src.tapes.tape import GradientTape
from gradtape._src.tensors.conversion import leaf_of


def _place(x: Any) -> Any:
    """The arguments as tensors and Variables: numbers and arrays become tensors."""
    return nest.map_structure(lambda v: v if leaf_of(v) is not None else ops.convert_to_tensor(v), x)


def _call(f: Callable, x: Any) -> Any:
    if _takes_nothing(f):
        for v in nest.flatten(x):
            if not isinstance(leaf_of(v), _core.Variable):
                raise TypeError(
                    f"autodiff: {getattr(f, '__name__', 'the function')} takes no argument, so that it can only be "
                    f"differentiated with respect to Variables; got {type(v).__name__!r}."
                )
        return f()
    return f(*x) if isinstance(x, tuple) and not hasattr(x, "_fields") else f(x)


def _takes_nothing(f: Callable) -> bool:
    try:
        return not inspect.signature(f).parameters
    except (TypeError, ValueError):
        return False


@contextlib.contextmanager
def _watching(x: Any, persistent: bool = False) -> Iterator[GradientTape]:
    with GradientTape(persistent=persistent, watch_accessed_variables=False) as tape:
        tape.watch(x)
        yield tape


@one_call
def jvp(f: Callable, x: Any, tangents: Any) -> tuple[Any, Any]:
    """`f(x)` and its derivative in the direction `tangents`, in one forward pass.

    >>> import gradtape as tf
    >>> y, dy = tf.autodiff.jvp(lambda x: x ** 2, tf.constant([1.0, 2.0]), tf.constant([1.0, 0.5]))
    >>> dy.numpy()
    array([2., 2.], dtype=float32)
    """
    x = _place(x)
    with ForwardAccumulator(x, tangents) as acc:
        y = _call(f, x)
    return y, acc.jvp(y, unconnected_gradients="zero")


@one_call
def vjp(f: Callable, x: Any) -> tuple[Any, Callable[[Any], Any]]:
    """`f(x)` and the function that maps cotangents of the result to gradients with respect to `x`.

    >>> import gradtape as tf
    >>> y, pull = tf.autodiff.vjp(tf.sin, tf.constant([0.0, 1.0]))
    >>> pull(tf.constant([2.0, 0.0])).numpy()
    array([2., 0.], dtype=float32)
    """
    x = _place(x)
    with _watching(x, persistent=True) as tape:
        y = _call(f, x)

    def pull(cotangents: Any) -> Any:
        nest.assert_same_structure(y, cotangents)
        return tape.gradient(y, x, output_gradients=cotangents, unconnected_gradients="zero")

    return y, pull


@one_call
def hvp(f: Callable, x: Any, v: Any) -> Any:
    """The Hessian of a scalar function times `v`, without forming the Hessian: two backward passes.

    >>> import gradtape as tf
    >>> tf.autodiff.hvp(lambda x: tf.reduce_sum(x ** 3), tf.constant([1.0, 2.0]), tf.constant([1.0, 1.0])).numpy()
    array([ 6., 12.], dtype=float32)
    """
    x = _place(x)
    nest.assert_same_structure(x, v)
    with _watching(x) as outer:
        g = _gradient(f, x, "hvp")
    return outer.gradient(g, x, output_gradients=v, unconnected_gradients="zero")


def _gradient(f: Callable, x: Any, what: str) -> Any:
    with _watching(x) as inner:
        y = _call(f, x)
    _want_scalar(y, what)
    return inner.gradient(y, x, unconnected_gradients="zero")


def _want_scalar(y: Any, what: str) -> None:
    if not isinstance(y, _core.Tensor) or y.ndim != 0:
        got = f"shape {tuple(y.shape)}" if hasattr(y, "shape") else type(y).__name__
        raise ValueError(
            f"autodiff.{what}: the function must return one number; got {got}. Hint: tf.reduce_sum, or "
            "autodiff.jacobian for functions with several results."
        )


@one_call
def jacobian(f: Callable, x: Any) -> Any:
    """The Jacobian of `f` at `x`: a tensor of shape `f(x).shape + x.shape` for each part of `x`.

    >>> import gradtape as tf
    >>> tf.autodiff.jacobian(lambda x: x * tf.reduce_sum(x), tf.constant([1.0, 2.0])).numpy()
    array([[4., 1.],
           [2., 5.]], dtype=float32)
    """
    x = _place(x)
    with _watching(x, persistent=True) as tape:
        y = _call(f, x)
    return nest.map_structure(lambda part: tape.jacobian(part, x, unconnected_gradients="zero"), y)


@one_call
def hessian(f: Callable, x: Any) -> Any:
    """The second derivatives of a scalar function: shape `x.shape + x.shape`; for several parts a nest
    of nests, `h[part][other]`.

    >>> import gradtape as tf
    >>> tf.autodiff.hessian(lambda x: x[0] ** 2 * x[1], tf.constant([1.0, 2.0])).numpy()
    array([[4., 2.],
           [2., 0.]], dtype=float32)
    """
    x = _place(x)
    with _watching(x, persistent=True) as outer:
        g = _gradient(f, x, "hessian")
    return nest.map_structure(lambda part: outer.jacobian(part, x, unconnected_gradients="zero"), g)


@one_call
def laplacian(f: Callable, x: Any) -> Any:
    """The sum of the unmixed second derivatives of `f` with respect to the last axis of `x`.

    With `x` of shape `[n]` and a scalar function the trace of the Hessian. With a batch `[batch, n]`
    and one or several numbers per example, `[batch, ...]`, the Laplacian of each.

    >>> import gradtape as tf
    >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> tf.autodiff.laplacian(lambda x: tf.reduce_sum(x ** 3, axis=1), x).numpy()
    array([18., 42.], dtype=float32)
    """
    x = _place(x)
    if not isinstance(leaf_of(x), (_core.Tensor, _core.Variable)) or x.shape.rank not in (1, 2):
        raise ValueError("autodiff.laplacian: expected x to be one tensor of shape [n] or [batch, n].")
    with _watching(x) as outer:
        with _watching(x) as inner:
            y = _call(f, x)
            flat = ops.reshape(y, [-1] if x.shape.rank == 1 or y.ndim == 0 else [y.shape[0], -1])
        if x.shape.rank == 1:
            first = inner.jacobian(flat, x, unconnected_gradients="zero")
        elif y.ndim == 0 or y.shape[0] != x.shape[0]:
            raise ValueError(
                f"autodiff.laplacian: with a batch of {x.shape[0]} examples the function must return as many results; "
                f"got shape {tuple(y.shape)}."
            )
        elif flat.shape[1] == 1:
            first = inner.gradient(flat, x, unconnected_gradients="zero")
        else:
            first = ops.reshape(inner.batch_jacobian(flat, x), [x.shape[0], -1])
    if x.shape.rank == 1:
        return ops.reshape(_trace(outer.jacobian(first, x, unconnected_gradients="zero")), y.shape)
    batch, n = x.shape
    second = ops.reshape(outer.batch_jacobian(first, x), [batch, -1, n, n])
    return ops.reshape(_trace(second), y.shape)


def _trace(h: Any) -> Any:
    return ops.reduce_sum(ops.matrix_diag_part(h, 0), -1)


@one_call
def per_example_gradient(loss: Callable, sources: Any, *examples: Any) -> Any:
    """The gradient of `loss(*example)` with respect to `sources` for each example of a batch, in one vectorised pass.

    The same as `tape.gradient` in a loop over the batch: each gradient has a new first axis.

    >>> import gradtape as tf
    >>> w = tf.Variable([1.0, 2.0])
    >>> x, y = tf.constant([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), tf.constant([0.0, 0.0, 1.0])
    >>> tf.autodiff.per_example_gradient(lambda x, y: (tf.reduce_sum(w * x) - y) ** 2, w, x, y).numpy()
    array([[2., 0.],
           [0., 4.],
           [4., 4.]], dtype=float32)

    Args:
      loss: a function of one example that returns a scalar.
      sources: Variables, or tensors that `loss` reads, in any structure.
      examples: tensors, or nests of them, whose first axis is the batch.
    """
    if not examples:
        raise ValueError("autodiff.per_example_gradient: expected at least one batch of examples.")

    def one(example: tuple) -> Any:
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            value = loss(*example)
        _want_scalar(value, "per_example_gradient")
        grads = tape.gradient(value, sources, unconnected_gradients="zero")
        return nest.map_structure(ops.convert_to_tensor, grads)

    return vectorized_map(one, tuple(_place(e) for e in examples))
