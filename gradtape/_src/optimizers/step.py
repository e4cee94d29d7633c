"""What one step of an optimizer computes, and its native program.

`take` is the step in tensor arithmetic: scaling, accumulation, clipping, decay, the rule, averages,
constraints, the counter. It runs in a trace: that of a user's `tf.function`, or one of its own, from which
`run` makes the program of later steps. If a tape follows assignments, it runs at once, and tapes record it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, errors
from gradtape._src.base.contexts import unrecorded
from gradtape._src.base.source import users_level
from gradtape._src.optimizers.programs import flattened, held
from gradtape._src.tensors.conversion import as_tensor
from gradtape._src.tensors.indexed_slices import IndexedSlices

if TYPE_CHECKING:
    from gradtape._src.optimizers.base import Optimizer


# ---- gradients ----------------------------------------------------------------------------------


def fit(g: Any, v: Any) -> Any:
    """A gradient as a tensor or IndexedSlices of the shape of its variable.

    Raises:
      InvalidArgumentError: if it has another shape.
    """
    shape = tuple(v._value_shape)
    if isinstance(g, IndexedSlices):
        values, indices = as_tensor(g.values), as_tensor(g.indices)
        if tuple(values.shape) != (*indices.shape, *shape[1:]) or len(indices.shape) != 1:
            _refuse(v, f"IndexedSlices with values {list(values.shape)} and indices {list(indices.shape)}")
        if indices._symbol is None:
            _check_rows(v, np.asarray(indices))
        return IndexedSlices(values, indices, shape)
    g = as_tensor(g)
    if g.dtype is dtypes.string:
        raise TypeError(f"apply_gradients: the gradient of variable '{v.name}' is text; got {g!r}.")
    if tuple(g.shape) != shape:
        _refuse(v, f"a gradient of shape {list(g.shape)}")
    return g


def present(grads: Sequence[Any], variables: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The gradients that are not None, checked, as tensors, and their variables. Called before anything is changed.

    Raises:
      ValueError: if there are more or fewer gradients than variables, or none at all.
      TypeError: if something other than a variable is to be changed.
      InvalidArgumentError: if a gradient has another shape than its variable.
    """
    if len(grads) != len(variables):
        raise ValueError(f"apply: got {len(grads)} gradients for {len(variables)} variables.")
    require_variables(map(held, variables))
    pairs = list(zip(grads, variables, strict=True))
    connected = [(fit(g, held(v)), v) for g, v in pairs if g is not None]
    if len(connected) < len(pairs):
        from gradtape._src.debug.explain import missing

        absent = [v for g, v in pairs if g is None]
        why = f"{missing(absent)}{errors.more('none-gradients')}"
        if not connected:
            raise ValueError(f"No gradients provided for any variable. {why}")
        names = [getattr(v, "path", None) or v.name for v in absent]
        warnings.warn(
            f"Gradients do not exist for variables {names} when minimizing the loss. If using "
            f"`model.compile()`, did you forget to provide a `loss` argument? {why}",
            stacklevel=users_level(),
        )
    return [g for g, _ in connected], [v for _, v in connected]


_PAIRS = "apply_gradients takes (gradient, variable) pairs: apply_gradients(zip(gradients, variables))"


def unzip(grads_and_vars: Iterable[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """The gradients and the variables of `apply_gradients`.

    Raises:
      ValueError: if there is no pair; the message begins like TensorFlow's.
      TypeError: if something other than pairs is given, or the variables come first.
    """
    pairs = list(grads_and_vars)
    if not pairs:
        raise ValueError(
            "not enough values to unpack (expected 2, got 0): apply_gradients was given an empty list of pairs. "
            "Hint: a zip or a generator is used up after one pass; pairs = list(zip(gradients, variables)) is not."
        )
    for pair in pairs:
        if not isinstance(pair, Sequence) or len(pair) != 2:
            got = type(pair).__name__ + (f" of {len(pair)}" if isinstance(pair, Sequence) else "")
            raise TypeError(
                f"{_PAIRS}; got a {got} in the place of a pair. Hint: two lists are for "
                "optimizer.apply(gradients, variables)."
            )
    grads, variables = zip(*pairs)  # noqa: B905
    turned = [hasattr(g, "assign") and v is not None and not hasattr(v, "assign") for g, v in pairs]
    if all(turned):
        raise TypeError(f"{_PAIRS}; got variables in the place of gradients. Hint: swap them.")
    return grads, variables


def set_all(variables: Sequence[Any], values: Sequence[Any]) -> None:
    """Sets variables to values: all of them, or none.

    Raises:
      ValueError: if there are more or fewer values than variables, or one has another shape.
    """
    if len(values) != len(variables):
        raise ValueError(
            f"set_weights: expected {len(variables)} values, one for each variable; got {len(values)}."
        )
    for v, value in zip(variables, values, strict=True):
        if tuple(v.shape) != np.shape(value):
            raise ValueError(
                f"Optimizer variable {getattr(v, 'path', None) or v.name} has shape {v.shape} not compatible with "
                f"provided weight shape {np.shape(value)}."
            )
    for v, value in zip(variables, values, strict=True):
        v.assign(value)


def require_variables(things: Iterable[Any]) -> None:
    """Raises a TypeError for anything that is not a variable."""
    for v in things:
        if not isinstance(v, _core.Variable):
            raise TypeError(
                f"optimizer: can only change variables; expected a tf.Variable; got {v!r}. Hint: `v = v - step` makes a "
                "tensor of a variable, v.assign_sub(step) changes it." + errors.more("assigning")
            )
        if getattr(v, "is_proxy", False):
            raise errors.NeedsVariable  # slots belong to one variable


def want_scale(name: str, value: Any) -> None:
    """Raises a ValueError for a loss scale that gradients cannot be divided by; None means no scale."""
    if value is not None and not 0 < float(value) < float("inf"):
        raise ValueError(f"`{name}` must be a number above zero. Received: {name}={value}")


def _refuse(v: Any, got: str) -> None:
    raise errors.InvalidArgumentError(
        None, None,
        f"apply_gradients: Cannot update variable '{v.name}' with shape {list(v._value_shape)} using {got}, "
        "shapes must be equal.",
    )  # fmt: skip


def _check_rows(v: Any, indices: np.ndarray) -> None:
    count = v._value_shape[0]
    wrong = np.flatnonzero((indices < 0) | (indices >= count))
    if len(wrong):
        raise errors.InvalidArgumentError(
            None, None,
            f"apply_gradients: indices[{wrong[0]}] = {indices[wrong[0]]} is not in [0, {count}), the "
            "rows of variable "
            f"'{v.name}'.",
        )  # fmt: skip


def mapped(f: Any, g: Any) -> Any:
    """A gradient with `f` applied to its values; of a sparse gradient, to the values of its rows."""
    return IndexedSlices(f(g.values), g.indices, g._dense_shape) if isinstance(g, IndexedSlices) else f(g)


def clipped(opt: Optimizer, grads: list[Any]) -> list[Any]:
    """The gradients with their norms or values clipped, according to the optimizer's options."""
    if opt.clipnorm:
        return [ops.clip_by_norm(summed_rows(g), opt.clipnorm) for g in grads]
    if opt.clipvalue:
        return [ops.clip_by_value(summed_rows(g), -opt.clipvalue, opt.clipvalue) for g in grads]
    if opt.global_clipnorm:
        return ops.clip_by_global_norm([summed_rows(g) for g in grads], opt.global_clipnorm)[0]
    return grads


def summed_rows(g: Any) -> Any:
    """A sparse gradient in which no row occurs twice; zeros take the place of repeated rows.

    The number of rows stays the same, so that shapes are known: repeated rows are found by sorting and added
    up, and the zero rows in their place belong to a row that is there anyway.
    """
    if not isinstance(g, IndexedSlices) or g.values.shape[0] < 2:
        return g
    order = ops.argsort(g.indices, stable=True)
    rows = ops.gather(g.indices, order)
    new = ops.cast(rows[1:] != rows[:-1], "int32")
    group = ops.concat([[0], ops.cumsum(new)], 0)
    values = ops.unsorted_segment_sum(ops.gather(g.values, order), group, g.values.shape[0])
    first = ops.unsorted_segment_min(rows, group, g.values.shape[0])
    return IndexedSlices(values, ops.minimum(first, rows[-1]), g._dense_shape)


# ---- the step -------------------------------------------------------------------------------------


def take(
    opt: Optimizer, grads: list[Any], variables: Sequence[Any], updating: bool | None = None,
    inline: bool = False,
    constrain: bool = True, clip: bool = True,
) -> None:  # fmt: skip
    """One step, in tensor arithmetic.

    Args:
      grads, variables: the results of `Optimizer._prepare`.
      updating: with accumulation, whether this call updates; None if only the counter knows.
      inline: whether this is part of a user's function.
      constrain: whether to apply the constraints of the variables.
      clip: whether gradients are clipped, unless they are accumulated; replicas clip their own before.
    """
    # For a tape that follows assignments, a step is part of the program.
    with unrecorded() if _core.assign_tracker() is None else nullcontext():
        if opt.loss_scale_factor is not None:
            grads = [mapped(lambda x: x / opt.loss_scale_factor, g) for g in grads]
        lr = _rate(opt, inline)
        if opt.gradient_accumulation_steps:
            _accumulate(opt, grads, variables, lr, updating)
        else:
            _update(opt, grads, variables, lr, clip)
        if opt.use_ema:
            _average(opt)
        if constrain:
            _constrain(variables)
        opt._iterations.assign_add(1)


def _constrain(variables: Sequence[Any]) -> None:
    for v in variables:
        if v.constraint is not None:
            v.assign(v.constraint(v))


def _rate(opt: Optimizer, inline: bool) -> Any:
    rate = opt._learning_rate
    if isinstance(rate, _core.Variable):
        rate = rate._read()
    elif inline or opt._rate_now is None:
        rate = ops.convert_to_tensor(opt._called_rate())
    else:
        rate = opt._rate_now._read()
    if opt._decay:
        rate = rate / (1 + opt._decay * ops.cast(opt._iterations, rate.dtype))
    return rate


def _update(opt: Optimizer, grads: list[Any], variables: Sequence[Any], lr: Any, clip: bool = True) -> None:
    grads = clipped(opt, grads) if clip else grads
    for v in variables:
        if opt.weight_decay is not None and _decays(opt, v):
            value = v._read()
            v.assign(value - value * opt.weight_decay * ops.cast(lr, v.dtype))
    if opt._scalars:
        scalars = SimpleNamespace(**{name: s._read() for name, s in opt._scalars.items()})
        opt.begin(scalars, _number(opt, "float32"))
        for name, s in opt._scalars.items():
            s.assign(getattr(scalars, name))
    for v, g in zip(variables, grads, strict=True):
        opt.update_step(g, v, lr)


def _number(opt: Optimizer, dtype: Any) -> Any:
    """The number of this step: 1, 2, ..."""
    return ops.cast(opt.iterations + 1, dtype)


def _decays(opt: Optimizer, v: Any) -> bool:
    ids, pattern = opt._undecayed
    return id(v) not in ids and not (pattern and pattern.search(v.name))


def update_variable(opt: Optimizer, g: Any, v: Any, lr: Any) -> None:
    """Applies the rule of the optimizer to one variable and its slots."""
    # Half precision is too coarse for the rules (0.999 is 1 in bfloat16), so they compute in float32.
    dtype = "float32" if v.dtype in (dtypes.float16, dtypes.bfloat16) else v.dtype
    lr, number = ops.cast(lr, dtype), _number(opt, dtype)
    g = mapped(lambda x: ops.cast(x, dtype), g)
    state = {n: s for n, s in opt._slots[id(v)].items() if n not in ("average", "gradient_accumulator")}
    rows = None
    if isinstance(g, IndexedSlices):
        if opt.touches_rows_only:
            g = summed_rows(g)
            rows, g = g.indices, g.values
        else:
            g = g._dense()

    def read(x: Any) -> Any:
        return ops.cast(x._read() if rows is None else ops.gather(x._read(), rows), dtype)

    def write(x: Any, new: Any, old: Any) -> None:
        if rows is None:
            x.assign(ops.cast(new, x.dtype))
        else:
            # Assigns by adding the difference, so that the zero rows in place of repeats add nothing.
            x.assign(
                ops.tensor_scatter_add(x._read(), ops.expand_dims(rows, -1), ops.cast(new - old, x.dtype))
            )

    old, value = {n: read(s) for n, s in state.items()}, read(v)
    scalars = {n: ops.cast(s._read(), dtype) for n, s in opt._scalars.items()}
    slots = SimpleNamespace(**scalars, **old)
    new = opt.update(value, g, slots, lr, number)
    for name, s in state.items():
        write(s, getattr(slots, name), old[name])
    write(v, new, value)


def _accumulate(
    opt: Optimizer, grads: list[Any], variables: Sequence[Any], lr: Any, updating: bool | None
) -> None:
    """Adds up gradients; every k-th call applies their mean."""
    k = opt.gradient_accumulation_steps or 1
    sums = [opt._slots[id(v)]["gradient_accumulator"] for v in variables]
    total = [
        s._read() + ops.cast(g._dense() if isinstance(g, IndexedSlices) else g, v.dtype)
        for s, g, v in zip(sums, grads, variables, strict=True)
    ]
    if updating is None:
        updating = ops.equal((opt._iterations + 1) % k, 0)
    if updating is False:
        for s, t in zip(sums, total, strict=True):
            s.assign(t)
        return
    state = [*variables, *opt._scalars.values(), *opt._added]
    state += [
        s
        for v in variables
        for n, s in opt._slots[id(v)].items()
        if n not in ("average", "gradient_accumulator")
    ]
    before = [x._read() for x in state]
    _update(opt, [t / k for t in total], variables, lr)
    for s, t in zip(sums, total, strict=True):
        s.assign(ops.zeros_like(t) if updating is True else ops.select(updating, 0, t))
    if updating is not True:
        for x, old in zip(state, before, strict=True):
            x.assign(ops.select(updating, x._read(), old))


def _average(opt: Optimizer) -> None:
    """Updates the moving averages, and every so often sets the variables to them."""
    count = opt.iterations
    for v in opt._trainable_variables:
        average = opt._slots[id(v)]["average"]
        momentum = ops.select(ops.equal(count, 0), 0.0, opt.ema_momentum)
        momentum = ops.cast(momentum, v.dtype)
        average.assign(momentum * average._read() + (1 - momentum) * v._read())
        if opt.ema_overwrite_frequency:
            due = ops.equal((count + 1) % opt.ema_overwrite_frequency, 0)
            v.assign(ops.select(due, average._read(), v._read()))


# ---- its program ----------------------------------------------------------------------------------


def run(opt: Optimizer, grads: Sequence[Any], variables: Sequence[Any]) -> None:
    """Takes a step with a program. With accumulation there are two: one that updates and one that does not."""
    programs, k = opt._programs, opt.gradient_accumulation_steps
    updating = (int(opt._iterations.numpy()) + 1) % k == 0 if k else None
    flat = flattened(grads)
    update = programs.find(variables, flat, (updating, opt._constrain_after))
    if update is None:
        grads, variables = opt._prepare(grads, variables)
        flat = flattened(grads)
        update = programs.find(variables, flat, (updating, opt._constrain_after))
    if opt._rate_now is not None:
        opt._rate_now.assign(opt._called_rate())
    alone = not k and opt._rate_now is None and len(flat) == len(grads) and not opt._constrain_after
    if update is None or not programs.run(update, flat, alone):
        # A new case, a bad gradient, or a variable whose shape has changed.
        grads, variables = opt._prepare(grads, variables)
        update = _compiled(opt, grads, variables, updating)
        if not programs.run(update, flat, alone and not opt._constrain_after):
            raise RuntimeError("apply_gradients: a gradient changed while its step was prepared.")
    if opt._constrain_after:
        _constrain(variables)


def _compiled(opt: Optimizer, grads: Sequence[Any], variables: Sequence[Any], updating: bool | None) -> Any:
    def traced() -> Any:
        def step(symbols: list[Any]) -> None:
            take(opt, symbols, variables, updating, constrain=not opt._constrain_after)

        return opt._programs.make(step, grads, variables, (updating, opt._constrain_after))

    try:
        return traced()
    except Exception:
        if opt._constrain_after or all(v.constraint is None for v in variables):
            raise
        # A constraint may compute with NumPy: it runs after the program.
        opt._constrain_after = True
        return traced()
