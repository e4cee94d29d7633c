"""ForwardAccumulator: derivatives along a direction, Jacobian times vector.

A backward pass is linear in its cotangent. Its own derivative with respect to the cotangent is the forward
pass, so an accumulator is a tape, and the one rule of each op gives its forward derivative too. In a compiled
function this reduces to plain forward mode; in eager code the accumulator keeps the same residuals as a tape.
"""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import log, nest
from gradtape._src.tapes.custom_gradient import ForwardTape, TransposingTape
from gradtape._src.tapes.tape import GradientTape, UnconnectedGradients, _differentiable, _unconnected
from gradtape._src.tensors import conversion
from gradtape._src.tensors.conversion import leaf_of


def _tangent(value: Any, primal: Any) -> Any:
    """A direction as a tensor of the primal's type and shape; a scalar is broadcast."""
    t = conversion.densify(GradientTape._cotangent(value, primal))
    shape = tuple(primal.shape)
    if t.dtype is not primal.dtype:
        raise ValueError(
            f"ForwardAccumulator: a tangent is not of its primal's type; expected {primal.dtype.name}; got "
            f"{t.dtype.name}{list(t.shape)}. Hint: tf.cast(tangent, primal.dtype)."
        )
    if tuple(t.shape) == shape:
        return t
    if t.ndim <= len(shape) and all(
        a in (1, b) for a, b in zip(reversed(t.shape), reversed(shape), strict=False)
    ):
        return ops.broadcast_to(t, shape)
    raise ValueError(
        f"ForwardAccumulator: a tangent does not fit its primal; expected shape {list(shape)}; got "
        f"{t.dtype.name}{list(t.shape)}."
    )


class ForwardAccumulator:
    """Computes Jacobian-vector products of the ops that run in its context.

    >>> import gradtape as tf
    >>> x = tf.constant([2.0, 3.0])
    >>> with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as acc:
    ...     y = tf.reduce_prod(x) * x
    >>> acc.jvp(y).numpy()
    array([12.,  9.], dtype=float32)

    Accumulators nest, with each other and with tapes. Forward over reverse is a Hessian-vector
    product:

    >>> with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as acc:
    ...     with tf.GradientTape() as tape:
    ...         tape.watch(x)
    ...         y = tf.reduce_sum(x ** 3)
    ...     g = tape.gradient(y, x)
    >>> acc.jvp(g).numpy()
    array([12.,  0.], dtype=float32)

    Args:
      primals: tensors or Variables in any structure.
      tangents: the direction, in the same structure and shapes.
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        trace = _core.current_trace()
        if getattr(trace, "records", False):
            trace.take_over(self, (primals, tangents), {})
            return
        nest.assert_same_structure(primals, tangents)
        self._primals: list = []
        self._tangents: list = []
        seen: set[int] = set()
        for p, t in zip(nest.flatten(primals), nest.flatten(tangents), strict=True):
            leaf = leaf_of(p)
            if leaf is None:
                raise ValueError(
                    f"ForwardAccumulator: a primal is not a tensor or Variable; got {type(p).__name__!r}."
                )
            if not _differentiable(leaf):
                log.warning(
                    "The dtype of the watched primal must be floating (e.g. tf.float32), got %r", leaf.dtype
                )
                continue
            if id(leaf) in seen:
                raise ValueError(
                    f"Tensor {leaf} was specified as a primal multiple times. This may indicate an error. If it "
                    "was intended, please sum the corresponding tangents."
                )
            seen.add(id(leaf))
            self._primals.append(leaf)
            self._tangents.append(_tangent(t, leaf))
        self._tape = ForwardTape()
        self._tape._configure(True, False)
        # Tapes that were recording when this accumulator was opened: they record its products.
        self._outer: tuple = ()

    def __enter__(self) -> ForwardAccumulator:
        if self._tape._recording:
            raise ValueError("Accumulator is already recording.")
        self._outer = tuple(_core.recording_tapes())
        for p in self._primals:
            self._tape._watch(p)
        self._tape._start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._tape._stop()

    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """The Jacobian of `primals` times the tangents, in the structure of `primals`.

        May be called inside the context and after it, any number of times.

        Returns:
          A tensor for each, or None where it does not depend on the primals (zeros with
          `unconnected_gradients="zero"`).
        """
        zero = _unconnected(unconnected_gradients) is UnconnectedGradients.ZERO
        tangents = [self._pushed(p) for p in nest.flatten(primals)]
        leaves = nest.flatten(primals)
        return nest.pack_sequence_as(
            primals,
            [ops.zeros_like(p) if t is None and zero else t for p, t in zip(leaves, tangents, strict=True)],
        )

    def _pushed(self, y: Any) -> Any:
        leaf = GradientTape._end(y, "target")
        for p, t in zip(self._primals, self._tangents, strict=True):
            if p is leaf:
                return t
        if not _differentiable(leaf) or not self._tape._tracks(leaf):
            return None
        # TensorFlow computes products along with the ops, so outer tapes record them even if `jvp` is called later.
        seen = [t for t in self._outer if t._stage != "used"]
        seen += [t for t in _core.recording_tapes() if t is not self._tape and t not in seen]
        with _core.Scope(recording=False, tapes=tuple(seen)):
            return self._transposed(leaf)

    def _transposed(self, y: Any) -> Any:
        cotangent = ops.zeros(y.shape, y.dtype)
        over = TransposingTape()
        over._configure(True, False)
        with over:
            over._watch(cotangent)
            grads = self._tape._backward([y], [cotangent], list(self._primals))
            pairs = [
                (conversion.densify(g), t)
                for g, t in zip(grads, self._tangents, strict=True)
                if g is not None
            ]
        if not pairs:
            return None
        (tangent,) = over._backward([g for g, _ in pairs], [t for _, t in pairs], [cotangent])
        # Gradients that do not depend on the cotangent are zeros.
        return ops.zeros(y.shape, y.dtype) if tangent is None else conversion.densify(tangent)
