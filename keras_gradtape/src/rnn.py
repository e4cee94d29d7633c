"""Recurrent layers: the loop over time, and LSTM and GRU without a Keras cell in it.

Eagerly, a loop is a Python loop, and LSTM and GRU are compiled on their second call. While a function is traced,
short sequences are unrolled; for long ones some steps are traced and become the body of a `tf.while_loop`, which
compiles much faster and runs about as fast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from keras.src import tree

import gradtape as tf
from gradtape.backend import current_trace, one_call, op
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.types import common

_select = op("select")

__all__ = ["bidirectional_gru", "bidirectional_lstm", "cudnn_ok", "gru", "lstm", "rnn", "unstack"]

# The number of steps that are unrolled in a trace; tracing a step of a Keras cell takes long.
_SHORT = 128  # two layers of 128, 100 steps: 0.7 of the time of a loop
_SHORT_OF_CELLS = 12

Step = Callable[[Sequence, list, "list | None"], tuple[list, list]]


def unstack(x: Any, axis: int = 0) -> list:
    return tf.unstack(convert_to_tensor(x), axis=axis)


# ---- the loop -------------------------------------------------------------------------------------------


def _run(
    step: Step,
    sequences: list,
    states: list,
    backwards: bool,
    keep_all: bool,
    unroll: bool,
    time_axis: int,
    short: int = _SHORT,
) -> tuple[list, list, list]:
    """`outputs, states = step(inputs, states, outputs before)` over the first axis of all `sequences`.

    Returns:
      The last outputs; all outputs, or with `keep_all` False the last, along `time_axis`; the last states.
    """
    count = sequences[0].shape[0]
    if unroll or count <= short or current_trace() is None:
        return _unrolled(step, sequences, states, backwards, keep_all, time_axis)
    if backwards:
        sequences = [tf.reverse(s, [0]) for s in sequences]
    # Steps before the loop determine the types and shapes that it carries; the remaining ones are whole blocks.
    block = max(1, short // 4)
    lead = (count - 1) % block + 1
    blocks = (count - lead) // block
    last, first, states = _unrolled(step, [s[:lead] for s in sequences], states, False, keep_all, 0)
    rows = [tf.reshape(s[lead:], (blocks, block, *s.shape[1:])) for s in sequences]
    rows = [tf.TensorArray(s.dtype, blocks, element_shape=s.shape[1:]).unstack(s) for s in rows]
    arrays = []
    if keep_all:
        arrays = [tf.TensorArray(o.dtype, blocks, element_shape=(block, *o.shape)) for o in last]

    def body(t: Any, arrays: list, last: list, states: list) -> tuple:
        last, outputs, states = _unrolled(step, [r.read(t) for r in rows], states, False, keep_all, 0, last)
        return (
            t + 1,
            [k.write(t, o) for k, o in zip(arrays, outputs, strict=True)] if keep_all else [],
            last,
            states,
        )

    _, arrays, last, states = tf.while_loop(
        lambda t, *_: t < blocks, body, (tf.constant(0), arrays, last, states), maximum_iterations=blocks
    )
    if not keep_all:
        return last, [tf.expand_dims(o, time_axis) for o in last], states
    joined = [tf.concat([f, k.concat()], 0) for f, k in zip(first, arrays, strict=True)]
    return last, [_swapped(o) for o in joined] if time_axis else joined, states


def _unrolled(
    step: Step,
    sequences: list,
    states: list,
    backwards: bool,
    keep_all: bool,
    time_axis: int,
    last: list | None = None,
) -> tuple[list, list, list]:
    rows = [tf.unstack(s) for s in sequences]
    if backwards:
        for row in rows:
            row.reverse()
    outputs = []
    for inputs in zip(*rows, strict=True):
        last, states = step(inputs, states, last)
        if keep_all:
            outputs.append(last)
    if last is None:
        raise ValueError(f"rnn: there must be at least one time step; got {tuple(sequences[0].shape)}.")
    if not keep_all:
        return last, [tf.expand_dims(o, time_axis) for o in last], states
    return last, [tf.stack(list(o), time_axis) for o in zip(*outputs, strict=True)], states


def _swapped(x: Any) -> Any:
    """Batch and time exchanged."""
    return tf.transpose(x, [1, 0, *range(2, x.ndim)])


@one_call
def rnn(
    step_function: Callable,
    inputs: Any,
    initial_states: Any,
    go_backwards: bool = False,
    mask: Any = None,
    constants: Any = None,
    unroll: bool = False,
    input_length: Any = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
    return_all_outputs: bool = True,
) -> tuple[Any, Any, Any]:
    """Calls `output, states = step_function(input, states)` for each step of `inputs`.

    Where `mask` is False, states do not change, and the output is the previous one, or zero with
    `zero_output_for_mask`.
    """
    sequences = [convert_to_tensor(x) for x in tree.flatten(inputs)]
    if not time_major:
        sequences = [_swapped(x) for x in sequences]
    count, batch = sequences[0].shape[:2]
    if unroll and not count:
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    if mask is not None:
        mask = convert_to_tensor(mask, "bool")
        mask = mask if time_major else _swapped(mask)
        mask = tf.squeeze(mask, -1) if mask.ndim == 3 and mask.shape[-1] == 1 else mask
    elif isinstance(input_length, (tf.Tensor, tf.Variable)):
        mask = tf.reshape(tf.range(count), [count, 1]) < tf.reshape(
            tf.cast(input_length, "int32"), [1, batch]
        )
    constants = tuple(constants or ())
    shapes: dict[str, Any] = {}

    def step(xs: Sequence, states: list, before: list | None) -> tuple[list, list]:
        xs = list(xs)
        valid = xs.pop() if mask is not None else None
        output, new = step_function(
            tree.pack_sequence_as(inputs, xs) if tree.is_nested(inputs) else xs[0],
            (*tree.pack_sequence_as(tuple(initial_states), states), *constants),
        )
        shapes["output"], shapes["states"] = output, new
        outputs, new = tree.flatten(output), tree.flatten(new)
        if valid is None:
            return outputs, new
        if zero_output_for_mask or before is None:
            before = [tf.zeros_like(o) for o in outputs]
        return _chosen(valid, outputs, before), _chosen(valid, new, states)

    states = [convert_to_tensor(s) for s in tree.flatten(tuple(initial_states))]
    sequences = sequences if mask is None else [*sequences, mask]
    time_axis = 0 if time_major else 1
    last, outputs, states = _run(
        step, sequences, states, go_backwards, return_all_outputs, unroll, time_axis, _SHORT_OF_CELLS
    )
    return (
        tree.pack_sequence_as(shapes["output"], last),
        tree.pack_sequence_as(shapes["output"], outputs),
        tree.pack_sequence_as(shapes["states"], states),
    )


def _chosen(valid: Any, new: list, old: list) -> list:
    """For each example the new value if its step is valid, else the old one."""
    return [
        _select(tf.reshape(valid, (*valid.shape, *[1] * (n.ndim - valid.ndim))), n, o)
        for n, o in zip(new, old, strict=True)
    ]


# ---- LSTM and GRU -----------------------------------------------------------------------------------------
# All inputs are multiplied by their weights at once; only the product with the state remains in the loop.


def cudnn_ok(*args: Any, **kwargs: Any) -> bool:
    return False


_OPS = {"sigmoid": tf.sigmoid, "tanh": tf.tanh, "relu": tf.nn.relu}


def _activation(function: Callable) -> Callable:
    """Keras' activations that are one op, without what Keras adds to it."""
    if getattr(function, "__module__", "") == "keras.src.activations.activations":
        return _OPS.get(function.__name__, function)
    return function


def _projected(inputs: Any, kernel: Any, bias: Any, time_major: bool) -> Any:
    """The inputs of all steps times the weights, `[time, batch, units]`."""
    x = inputs if time_major else _swapped(inputs)
    steps, batch, size = x.shape
    out = tf.matmul(tf.reshape(x, [steps * batch, size]), kernel)
    return tf.reshape(out if bias is None else out + bias, [steps, batch, kernel.shape[-1]])


def _want_no_mask(mask: Any) -> None:
    """With a mask, the result depends on an option of the layer that is not passed here."""
    if mask is not None:
        raise NotImplementedError


@functools.lru_cache(maxsize=64)
def _program(loop: Callable, options: tuple) -> Any:
    return tf.function(lambda *tensors: loop(options, *tensors), autograph=False)


@functools.lru_cache(maxsize=256)
def _times_met(loop: Callable, options: tuple, kinds: tuple) -> list[int]:
    return [0]


def _often(loop: Callable, options: tuple, tensors: list) -> Any:
    """`loop(options, *tensors)`, compiled from the second eager call on."""
    if current_trace() is not None:
        return loop(options, *tensors)
    times = _times_met(loop, options, tuple([(t.shape, t.dtype) for t in tensors]))
    if times[0]:
        return _program(loop, options)(*tensors)
    times[0] = 1
    return loop(options, *tensors)


@one_call
def lstm(
    inputs: Any,
    initial_state_h: Any,
    initial_state_c: Any,
    mask: Any,
    kernel: Any,
    recurrent_kernel: Any,
    bias: Any,
    activation: Callable,
    recurrent_activation: Callable,
    return_sequences: bool = False,
    go_backwards: bool = False,
    unroll: bool = False,
    time_major: bool = False,
) -> tuple[Any, Any, list]:
    _want_no_mask(mask)
    given = [inputs, initial_state_h, initial_state_c, kernel, recurrent_kernel]
    options = (
        _activation(activation), _activation(recurrent_activation), go_backwards, return_sequences, unroll, time_major,
    )  # fmt: skip
    return _often(_lstm, options, common(*given, *([] if bias is None else [bias])))


def _lstm(options: tuple, x: Any, h: Any, c: Any, kernel: Any, recurrent: Any, bias: Any = None) -> tuple:
    act, gate, backwards, keep_all, unroll, time_major = options

    def step(xs: Sequence, states: list, before: list | None) -> tuple[list, list]:
        h, c = states
        i, f, new, o = tf.split(xs[0] + tf.matmul(h, recurrent), 4, -1)
        c = gate(f) * c + gate(i) * act(new)
        h = gate(o) * act(c)
        return [h], [h, c]

    z = _projected(x, kernel, bias, time_major)
    time_axis = 0 if time_major else 1
    (last,), (outputs,), states = _run(step, [z], [h, c], backwards, keep_all, unroll, time_axis)
    return last, outputs, states


@one_call
def gru(
    inputs: Any,
    initial_state: Any,
    mask: Any,
    kernel: Any,
    recurrent_kernel: Any,
    bias: Any,
    activation: Callable,
    recurrent_activation: Callable,
    return_sequences: bool = False,
    go_backwards: bool = False,
    unroll: bool = False,
    time_major: bool = False,
    reset_after: bool = True,
) -> tuple[Any, Any, list]:
    _want_no_mask(mask)
    h = initial_state[0] if tree.is_nested(initial_state) else initial_state
    options = (
        _activation(activation), _activation(recurrent_activation), reset_after, go_backwards, return_sequences,
        unroll, time_major,
    )  # fmt: skip
    given = [inputs, h, kernel, recurrent_kernel]
    return _often(_gru, options, common(*given, *([] if bias is None else [bias])))


def _gru(options: tuple, x: Any, h: Any, kernel: Any, recurrent: Any, bias: Any = None) -> tuple:
    act, gate, reset_after, backwards, keep_all, unroll, time_major = options
    of_state, candidate = None, None
    if reset_after:
        bias, of_state = (None, None) if bias is None else tf.unstack(bias)
    else:
        units = h.shape[-1]
        recurrent, candidate = recurrent[:, : 2 * units], recurrent[:, 2 * units :]

    def step(xs: Sequence, states: list, before: list | None) -> tuple[list, list]:
        (h,) = states
        inner = tf.matmul(h, recurrent)
        xz, xr, xh = tf.split(xs[0], 3, -1)
        if candidate is None:
            hz, hr, hh = tf.split(inner if of_state is None else inner + of_state, 3, -1)
            new = act(xh + gate(xr + hr) * hh)
        else:
            hz, hr = tf.split(inner, 2, -1)
            new = act(xh + tf.matmul(gate(xr + hr) * h, candidate))
        z = gate(xz + hz)
        h = z * h + (1 - z) * new
        return [h], [h]

    z = _projected(x, kernel, bias, time_major)
    (last,), (outputs,), states = _run(step, [z], [h], backwards, keep_all, unroll, 0 if time_major else 1)
    return last, outputs, states


def bidirectional_lstm(*args: Any, **kwargs: Any) -> Any:
    """Two separate layers are as fast: Keras calls them."""
    raise NotImplementedError


def bidirectional_gru(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
