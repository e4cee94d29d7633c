"""Functions with gradients of their own: custom_gradient, recompute_grad, grad_pass_through."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gradtape import _core, nest


@contextmanager
def _suspended() -> Iterator[None]:
    """Nothing in this block is recorded by the tapes that are open now."""
    token = _core.suspend()
    try:
        yield
    finally:
        _core.resume(token)


@contextmanager
def _watching() -> Iterator[list]:
    """Fills a list with the trainable variables that are read in this block."""
    seen: list = []
    tape = _core.Tape()
    tape._configure(False, True)
    tape._start()
    try:
        yield seen
    finally:
        tape._stop()
        seen.extend(tape._variables())
        tape._forget()


def _leaf(value: Any) -> Any:
    """What a tape knows an argument by: a tensor or variable as it is, anything else as a tensor."""
    from gradtape import ops

    if isinstance(value, (_core.Tensor, _core.Variable)):
        return value
    try:
        return ops.convert_to_tensor(value)
    except (TypeError, ValueError):
        return ops.zeros([])  # text and other options: they count as arguments, without a gradient


def custom_gradient(f: Callable | None = None) -> Any:
    """Decorator of a function that says itself what its gradient is.

    The function returns its result and a function `grad(*upstream)`, called with one cotangent per
    (flattened) result, that returns one gradient per argument. If the function reads variables
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
    """
    return custom_gradient if f is None else _CustomGradient(f)


class _CustomGradient:
    """A decorated function. As a method, it does not take `self` for an argument to differentiate."""

    def __init__(self, f: Callable) -> None:
        functools.update_wrapper(self, f)
        self._f = f

    def __get__(self, instance: Any, owner: type | None = None) -> _CustomGradient:
        return self if instance is None else _CustomGradient(self._f.__get__(instance, owner))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call(self._f, args, kwargs)


def _call(f: Callable, args: tuple, kwargs: dict) -> Any:
    from gradtape import ops

    with _watching() as seen:
        result, grad_fn = f(*args, **kwargs)
    inputs = nest.flatten(args) + nest.flatten(list(kwargs.values()))
    variables = [v for v in seen if all(v is not x for x in inputs)]
    if variables and not _takes_variables(grad_fn):
        raise TypeError(
            "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function uses "
            f"variables: {variables}"
        )
    # New objects: a function that returns its argument must not give the argument another history.
    outputs: list = [ops.identity(ops.convert_to_tensor(y)) for y in nest.flatten(result)]
    tracing = _core.current_trace() is not None
    if tracing or _core.is_recording():
        sources = nest.flatten(args)
        specs = [(y.shape, y.dtype) for y in outputs]
        closure = functools.partial(_gradients, grad_fn, variables, len(sources), specs)
        tracked = (*map(_leaf, sources), *variables)
        if tracing:
            from gradtape.graph.custom import with_gradient

            outputs = list(with_gradient(outputs, tracked, closure))
        else:
            _core.record(tuple(outputs), tracked, closure)
    return nest.pack_sequence_as(result, outputs)


def _takes_variables(grad_fn: Callable) -> bool:
    try:
        parameters = inspect.signature(grad_fn).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters)


def _gradients(grad_fn: Callable, variables: list, count: int, specs: list, *upstream: Any) -> list:
    """Calls `grad_fn`, and checks that it returned one gradient for each input."""
    from gradtape import ops

    gs = [ops.zeros(*spec) if g is None else g for g, spec in zip(upstream, specs, strict=True)]
    if variables:
        of_inputs, of_variables = grad_fn(*gs, variables=variables)
        of_variables = (
            nest.flatten(of_variables) if isinstance(of_variables, (list, tuple)) else [of_variables]
        )
        if len(of_variables) != len(variables):
            raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn.")
    else:
        of_inputs, of_variables = grad_fn(*gs), []
    flat = nest.flatten(of_inputs)
    if len(flat) != count:
        raise ValueError(
            f"custom_gradient function expected to return {count} gradients, but returned {len(flat)} "
            "instead."
        )
    return [*flat, *of_variables]


def recompute_grad(f: Callable) -> Callable:
    """A function like `f` that keeps nothing for its gradient and computes `f` again instead.

    Saves the memory of what `f` computes on its way, at the price of a second forward pass. Only
    the first derivative can be asked for.
    """

    @custom_gradient
    def inner(*args: Any, **kwargs: Any) -> tuple:
        with _suspended(), _watching() as variables:
            result = f(*args, **kwargs)
        for v in variables:
            v._touch()

        def grad(*upstream: Any, variables: list | None = None) -> Any:
            return _recompute(f, args, kwargs, upstream, variables)

        return result, grad

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    return wrapper


def _recompute(f: Callable, args: tuple, kwargs: dict, upstream: tuple, variables: list | None) -> Any:
    from gradtape.tape import GradientTape

    sources = [_leaf(x) for x in nest.flatten(args)]
    # Copies, so that the new tape sees what happens inside and nothing of where they came from.
    copies = [x._read()._detach() if isinstance(x, _core.Variable) else x._detach() for x in sources]
    packed = [x if isinstance(x, _core.Variable) else copy for x, copy in zip(sources, copies, strict=True)]
    with _suspended():
        with GradientTape() as tape:
            tape.watch([x for x in packed if x.dtype.is_floating or x.dtype.is_complex])
            result = f(*nest.pack_sequence_as(args, packed), **kwargs)
        read = variables or []
        grads = tape.gradient(nest.flatten(result), [*packed, *read], output_gradients=list(upstream))
    of_inputs, of_variables = grads[: len(packed)], grads[len(packed) :]
    _refuse_second_order(f, [g for g in grads if isinstance(g, _core.Tensor)], [*sources, *read, *upstream])
    return (of_inputs, of_variables) if variables else of_inputs


def _refuse_second_order(f: Callable, grads: list, inputs: list) -> None:
    """Makes the gradient of the gradients an error, rather than a None that nobody expects."""
    if not _core.is_recording():
        return

    def refuse(*_: Any) -> Any:
        raise NotImplementedError(
            f"recompute_grad tried to transpose grad of {getattr(f, '__name__', f)}. Consider not using "
            "recompute_grad in forward mode autodiff, or for derivatives of higher order."
        )

    _core.record(tuple(grads), tuple(inputs), refuse)


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
