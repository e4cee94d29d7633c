"""Functions with user-defined gradients: custom_gradient, recompute_grad, grad_pass_through."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.base.calls import one_call
from gradtape._src.base.contexts import unrecorded
from gradtape._src.base.errors import more
from gradtape._src.graph.custom import barrier, with_gradient
from gradtape._src.tapes.tape import GradientTape
from gradtape._src.tensors import random
from gradtape._src.tensors.composite import GRADIENTS
from gradtape._src.tensors.indexed_slices import flat_gradients


@contextmanager
def _watching() -> Iterator[list]:
    """Fills a list with the trainable variables that are read in this block."""
    seen: list = []
    tape = _core.Tape()
    tape._configure(False, True, True)
    try:
        with tape:
            yield seen
    finally:
        seen.extend(tape._variables())
        tape._forget()


def _leaf(value: Any) -> Any:
    """An argument as a tape sees it: a tensor or variable unchanged, anything else as a tensor."""
    if isinstance(value, (_core.Tensor, _core.Variable)):
        return value
    try:
        return ops.convert_to_tensor(value)
    except (TypeError, ValueError):
        return ops.zeros([])  # strings and other options: arguments without a gradient


# ---- custom_gradient ------------------------------------------------------------------------


def custom_gradient(f: Callable | None = None) -> Any:
    """Decorator for a function that defines its own gradient.

    The function returns its result and a function `grad(*upstream)`, called with one cotangent per
    (flattened) result, that returns one gradient per (flattened) positional argument; None where
    there is none. Keyword arguments have no gradient. If the function reads trainable variables
    that are not arguments, `grad` must take a keyword `variables` and return a pair: the gradients
    of the arguments, and a list with those of the variables.

    >>> import gradtape as tf
    >>> @tf.custom_gradient
    ... def log1pexp(x):
    ...     e = tf.exp(x)
    ...     def grad(upstream):
    ...         return upstream * (1 - 1 / (1 + e))
    ...     return tf.math.log(1 + e), grad
    >>> x = tf.constant(100.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = log1pexp(x)
    >>> tape.gradient(y, x).numpy()
    np.float32(1.0)

    Raises, when it is differentiated:
      ValueError: if the number of gradients is not that of the arguments, or the shape of one does
        not fit its argument.
    """
    return custom_gradient if f is None else _CustomGradient(f)


class _CustomGradient:
    """A decorated function. As a method, it does not take `self` for an argument to differentiate."""

    def __init__(self, f: Callable) -> None:
        functools.update_wrapper(self, f)
        self._f = f
        self.__original_wrapped__ = f  # as on TensorFlow's decorators: GPflow tests its functions by it

    def __get__(self, instance: Any, owner: type | None = None) -> _CustomGradient:
        return self if instance is None else _CustomGradient(self._f.__get__(instance, owner))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call(self._f, args, kwargs)


@one_call
def _call(f: Callable, args: tuple, kwargs: dict) -> Any:
    with _watching() as seen:
        result, grad_fn = f(*args, **kwargs)
    if isinstance(grad_fn, _core.Tensor) or not callable(grad_fn):
        raise TypeError(
            f"custom_gradient: {_name(f)} must return its result and the function that gives its gradient; got "
            f"{grad_fn!r} as second value, an unsupported callable." + more("custom-gradients")
        )
    sources = nest.flatten(args, GRADIENTS)
    inputs = sources + nest.flatten(list(kwargs.values()))
    variables = [v for v in seen if all(v is not x for x in inputs)]
    if variables and not _takes_variables(grad_fn):
        raise TypeError(
            "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function uses "
            f"variables: {variables}" + more("custom-gradients")
        )
    # New objects: a function that returns its argument must not change the argument's history.
    outputs: list = [ops.identity(ops.convert_to_tensor(y)) for y in nest.flatten(result, GRADIENTS)]
    tracing = _core.current_trace() is not None
    if tracing or _core.is_recording():
        tracked = (*map(_leaf, sources), *variables)
        if not nest.are_plain(nest.flatten(result)):
            grad_fn = _of_composites(grad_fn, nest.flatten(result))
        parts = [len(nest.flatten(a, GRADIENTS)) for a in args]
        rule = _Rule(f, grad_fn, variables, parts, tracked, outputs)
        if tracing:
            outputs = list(with_gradient(outputs, tracked, rule))
        elif _accumulators_are_open():
            outputs = _seen_by_accumulators(outputs, tracked, rule)
        else:
            _core.record(tuple(outputs), tracked, rule)
    return nest.pack_sequence_as(result, outputs, GRADIENTS)


def _of_composites(grad_fn: Callable, results: list) -> Callable:
    """Passes cotangents of composite results (made of several tensors) to a gradient function as composites."""

    @functools.wraps(grad_fn)
    def call(*gs: Any, **kwargs: Any) -> Any:
        return grad_fn(*nest.pack_sequence_as(results, gs, GRADIENTS), **kwargs)

    return call


class ForwardTape(_core.Tape):
    """The tape of a forward accumulator."""


class TransposingTape(_core.Tape):
    """Records the backward pass of a ForwardTape, to transpose it."""


def _accumulators_are_open() -> bool:
    return any(isinstance(t, ForwardTape) for t in _core.recording_tapes())


def _transposing() -> bool:
    return any(isinstance(t, TransposingTape) for t in _core.recording_tapes())


def _seen_by_accumulators(outputs: list, tracked: tuple, rule: Callable) -> list:
    """As in TensorFlow, forward mode differentiates the ops that the function ran."""
    if not any(_core.is_tracked(y) for y in outputs):
        _core.record(tuple(outputs), tracked, rule)
        return outputs
    results = [ops.identity(y) for y in outputs]
    # TensorFlow runs the gradient function here, so its errors surface at once.
    with unrecorded():
        rule(*(None for _ in outputs))

    def either(*gs: Any) -> list:
        if _transposing():
            return [*(None for _ in tracked), *gs]
        return [*rule(*gs), *(None for _ in outputs)]

    _core.record(tuple(results), (*tracked, *outputs), either)
    return results


def _name(f: Callable) -> str:
    return getattr(f, "__qualname__", None) or repr(f)


def _takes_variables(grad_fn: Callable) -> bool:
    try:
        parameters = inspect.signature(grad_fn).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters)


class _Rule:
    """What a tape calls: the user's gradient function, with checks of what it returns.

    It stores the shapes of arguments and results, and none of their values.
    """

    def __init__(
        self,
        f: Callable,
        grad_fn: Callable,
        variables: list,
        parts: list[int],
        tracked: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        self.f, self.grad_fn, self.variables = f, grad_fn, variables
        self.parts = parts  # how many tensors each argument consists of
        self.shapes = [tuple(x.shape) for x in tracked]
        self.specs = [(y.shape, y.dtype) for y in outputs]

    def __call__(self, *upstream: Any) -> list:
        gs = [ops.zeros(*spec) if g is None else g for g, spec in zip(upstream, self.specs, strict=True)]
        of_variables: Any = []
        if self.variables:
            of_inputs, of_variables = self.grad_fn(*gs, variables=self.variables)
            if not isinstance(of_variables, (list, tuple)):
                of_variables = [of_variables]
            if len(of_variables) != len(self.variables):
                raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn.")
        else:
            of_inputs = self.grad_fn(*gs)
        flat = flat_gradients(of_inputs)
        if len(flat) != sum(self.parts):
            raise ValueError(
                f"custom_gradient function expected to return {sum(self.parts)} gradients, but returned "
                f"{len(flat)} instead." + more("custom-gradients")
            )
        grads = [*flat, *of_variables]
        for i, (g, shape) in enumerate(zip(grads, self.shapes, strict=True)):
            if isinstance(g, _core.Tensor) and not _fits(tuple(g.shape), shape):
                raise ValueError(
                    f"custom_gradient: the gradient that {_name(self.f)} gives for {self._source(i)} does not fit; "
                    f"expected shape {list(shape)}; got {g.dtype.name}{list(g.shape)}. Hint: a gradient has the shape "
                    "of what it belongs to; sum over axes that were broadcast."
                )
        return grads

    def _source(self, i: int) -> str:
        """The name of what gradient `i` belongs to."""
        first = 0
        for k, count in enumerate(self.parts):
            if i < first + count:
                part = "" if count == 1 else f" (part {i - first} of {count})"
                return f"its argument {_parameter(self.f, k)}{part}"
            first += count
        return f"the variable {self.variables[i - first].name!r}"


def _fits(g: tuple[int, ...], x: tuple[int, ...]) -> bool:
    """Whether a gradient of shape `g` has the shape `x`, or reduces to it by summing broadcast axes."""
    return len(g) >= len(x) and all(a == b or b == 1 for a, b in zip(g[len(g) - len(x) :], x, strict=True))


def _parameter(f: Callable, k: int) -> str:
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    if k < len(parameters) and parameters[k].kind is not inspect.Parameter.VAR_POSITIONAL:
        return repr(parameters[k].name)
    return f"number {k}"


# ---- recompute_grad -------------------------------------------------------------------------


def recompute_grad(f: Callable) -> Callable:
    """A function like `f` whose only residuals are its arguments: the backward pass runs `f` again.

    Saves the memory of `f`'s intermediate values, at the price of a second forward pass. The second
    run draws the same random numbers as the first, so dropout drops the same elements. Tensors among
    the keyword arguments have gradients too. Derivatives of any order work; those above the first
    store their residuals as usual.

    >>> import gradtape as tf
    >>> block = tf.recompute_grad(lambda x: tf.sin(tf.cos(tf.sin(x))))
    >>> x = tf.ones([3])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = block(x)  # the tape holds x, and neither sine nor cosine
    >>> tape.gradient(y, x).shape
    TensorShape([3])
    """

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _call_recomputed(f, args, kwargs)

    return wrapper


@one_call
def _call_recomputed(f: Callable, args: tuple, kwargs: dict) -> Any:
    again = _Again(f, args, kwargs)
    return _call(again.forward, tuple(again.tensors), {})


class _Again:
    """A call that can be repeated with other tensors as its arguments."""

    def __init__(self, f: Callable, args: tuple, kwargs: dict) -> None:
        self.f, self.structure = f, (args, kwargs)
        self.leaves = nest.flatten(self.structure)
        self.places = [i for i, x in enumerate(self.leaves) if isinstance(x, (_core.Tensor, _core.Variable))]
        self.streams: list = []

    @property
    def tensors(self) -> list:
        return [self.leaves[i] for i in self.places]

    def forward(self, *tensors: Any) -> tuple:
        with unrecorded(), _watching() as read, random.keep_streams() as self.streams:
            result = self._run(tensors)
        for v in read:
            v._touch()
        return result, self.gradients

    def _run(self, tensors: Sequence[Any]) -> Any:
        leaves = list(self.leaves)
        for i, t in zip(self.places, tensors, strict=True):
            leaves[i] = t
        args, kwargs = nest.pack_sequence_as(self.structure, leaves)
        return self.f(*args, **kwargs)

    def gradients(self, *upstream: Any, variables: Sequence[Any] = ()) -> Any:
        xs, gs = self._fresh(upstream)
        with GradientTape() as tape:
            tape.watch([x for x in xs if x.dtype.is_floating or x.dtype.is_complex])
            with random.same_streams(self.streams):
                result = [ops.convert_to_tensor(y) for y in nest.flatten(self._run(xs))]
        grads = tape.gradient(result, [*xs, *variables], output_gradients=gs, unconnected_gradients="zero")
        of_inputs, of_variables = grads[: len(xs)], grads[len(xs) :]
        return (of_inputs, of_variables) if variables else of_inputs

    def _fresh(self, upstream: Sequence[Any]) -> tuple[list, list]:
        """The arguments as new tensors, whose history the new tape does not see, and the cotangents."""
        xs, gs = self.tensors, list(upstream)
        own = [i for i, x in enumerate(xs) if isinstance(x, _core.Tensor)]
        if any(t._symbol is not None for t in (*(xs[i] for i in own), *gs)):
            copies = barrier([*(xs[i] for i in own), *gs])
            gs = copies[len(own) :]
        else:
            copies = [ops.identity(xs[i]) for i in own]
        for i, x in zip(own, copies, strict=False):
            xs[i] = x
        return xs, gs


# ---- grad_pass_through ----------------------------------------------------------------------


def grad_pass_through(f: Callable) -> Callable:
    """A function like `f` whose gradient is that of the identity: `floor`, `round`, quantisation.

    >>> import gradtape as tf
    >>> x = tf.constant(1.7)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = tf.grad_pass_through(tf.floor)(x)
    >>> y.numpy(), tape.gradient(y, x).numpy()
    (np.float32(1.0), np.float32(1.0))
    """

    @custom_gradient
    def inner(*args: Any, **kwargs: Any) -> tuple:
        def grad(*upstream: Any, variables: list | None = None) -> Any:
            of_inputs = upstream[0] if len(upstream) == 1 else upstream
            return (of_inputs, [None] * len(variables)) if variables is not None else of_inputs

        return f(*args, **kwargs), grad

    return functools.wraps(f)(inner) if hasattr(f, "__name__") else inner
