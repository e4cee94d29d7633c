"""Quantisation for training: values rounded to a few levels, with straight-through gradients."""

from __future__ import annotations

import numpy as np

from gradtape._src.base import dtypes, errors
from gradtape._src.ops.arithmetic import maximum, minimum
from gradtape._src.ops.comparison import select
from gradtape._src.ops.exponential import floor, round_
from gradtape._src.ops.movement import reshape, stop_gradient
from gradtape._src.ops.reduction import reduce_max, reduce_min, reduce_sum
from gradtape._src.ops.static import array_of
from gradtape._src.ops.table import composite
from gradtape._src.tensors.conversion import as_tensor

__all__: list[str] = []


def _stopped(x):
    return stop_gradient(x)


def _straight(x):
    """Zero, with the gradient of `x`."""
    return x - _stopped(x)


def _nudged(low, high, num_bits, narrow_range):
    """The bounds, moved so that 0 is one of the levels, and the distance between levels."""
    first, last = (1.0 if narrow_range else 0.0), 2.0**num_bits - 1
    scale = (high - low) / (last - first)
    zero = minimum(maximum(floor(first - low / scale + 0.5), first), last)
    return (first - zero) * scale, (last - zero) * scale, scale


def _check_bits(op, num_bits):
    if not 2 <= num_bits <= 16:
        raise errors.InvalidArgumentError(
            f"{op}: num_bits must be between 2 and 16, inclusive; got {num_bits}."
        )


def _fake(op, inputs, low, high, num_bits, narrow_range):
    x = _float32(inputs)
    _check_bits(op, num_bits)
    lo, hi, scale = (_stopped(t) for t in _nudged(low, high, num_bits, narrow_range))
    clamped = minimum(maximum(x, lo), hi)
    levels = _stopped(floor((clamped - lo) * (1 / scale) + 0.5) * scale + lo)
    below, above = x < lo, x > hi
    return levels + select(below, _straight(low), select(above, _straight(high), _straight(x)))


def _float32(value):
    """`x` as a tensor, which must be float32, as in TensorFlow."""
    x = as_tensor(value) if hasattr(value, "dtype") else as_tensor(value, as_tensor(0.0))
    if x.dtype is not dtypes.float32:
        raise errors.ArgumentError(
            f"fake_quant: Tensor conversion requested dtype float32 for Tensor with dtype {x.dtype.name}"
        )
    return x


def _bounds(op, inputs, min, max, per_channel):
    """The bounds as tensors: one number each, or one for each channel."""
    low, high = _float32(min), _float32(max)
    shape = tuple(as_tensor(inputs).shape)[-1:] if per_channel else ()
    for name, t in (("min", low), ("max", high)):
        if tuple(t.shape) != shape:
            raise errors.InvalidArgumentError(
                f"{op}: `{name}` must have shape {list(shape)}; got {list(t.shape)}."
            )
    return low, high


@composite("quantization.fake_quant_with_min_max_args")
def fake_quant_with_min_max_args(inputs, min=-6, max=6, num_bits=8, narrow_range=False, name=None):
    """`inputs` clipped to [min, max] and rounded to 2^num_bits levels. The gradient is 1 inside, 0 outside."""
    if min >= max:
        raise errors.InvalidArgumentError(
            f"fake_quant_with_min_max_args: min has to be smaller than max, was: {min} >= {max}"
        )
    return _fake(
        "fake_quant_with_min_max_args",
        inputs,
        as_tensor(float(min)),
        as_tensor(float(max)),
        num_bits,
        narrow_range,
    )


@composite("quantization.fake_quant_with_min_max_vars")
def fake_quant_with_min_max_vars(inputs, min, max, num_bits=8, narrow_range=False, name=None):
    """As `fake_quant_with_min_max_args`, also differentiable with respect to the bounds, by the elements outside of them."""
    op = "fake_quant_with_min_max_vars"
    return _fake(op, inputs, *_bounds(op, inputs, min, max, False), num_bits, narrow_range)


@composite("quantization.fake_quant_with_min_max_vars_per_channel")
def fake_quant_with_min_max_vars_per_channel(inputs, min, max, num_bits=8, narrow_range=False, name=None):
    """As `fake_quant_with_min_max_vars`, with one `min` and one `max` per channel (last axis)."""
    op = "fake_quant_with_min_max_vars_per_channel"
    return _fake(op, inputs, *_bounds(op, inputs, min, max, True), num_bits, narrow_range)


@composite("quantization.fake_quant_with_min_max_args_gradient")
def fake_quant_with_min_max_args_gradient(
    gradients, inputs, min=-6, max=6, num_bits=8, narrow_range=False, name=None
):
    """The gradient of `fake_quant_with_min_max_args`: `gradients` where `inputs` are inside the range."""
    x = _float32(inputs)
    lo, hi, _ = _nudged(as_tensor(float(min)), as_tensor(float(max)), num_bits, narrow_range)
    return select((x >= lo) & (x <= hi), gradients, 0)


@composite("quantization.fake_quant_with_min_max_vars_gradient")
def fake_quant_with_min_max_vars_gradient(
    gradients, inputs, min, max, num_bits=8, narrow_range=False, name=None
):
    """The gradients of `fake_quant_with_min_max_vars` with respect to its inputs, `min` and `max`."""
    g, x, low, high = (_float32(t) for t in (gradients, inputs, min, max))
    lo, hi, _ = _nudged(low, high, num_bits, narrow_range)
    over = list(range(x.ndim - low.ndim))
    return (
        select((x >= lo) & (x <= hi), g, 0),
        reduce_sum(select(x < lo, g, 0), over),
        reduce_sum(select(x > hi, g, 0), over),
    )


composite("quantization.fake_quant_with_min_max_vars_per_channel_gradient")(
    fake_quant_with_min_max_vars_gradient
)


def _levels(x, low, high, signed_input, num_bits, round_mode, narrow_range, clamp):
    """`x` rounded to the levels of a range that contains 0."""
    lowest = -(1 << (num_bits - 1)) + (1 if narrow_range else 0) if signed_input else 0
    highest = (1 << (num_bits - 1)) - 1 if signed_input else (1 << num_bits) - 1
    most = float(dtypes.float32.max)
    by_low = select(lowest * low > 0, lowest / select(low == 0, 1, low), most)
    by_high = select(highest * high > 0, highest / select(high == 0, 1, high), most)
    scale = minimum(by_low, by_high)
    low = select(by_low < by_high, low, lowest / scale)
    high = select(by_low < by_high, highest / scale, high)
    scaled = (minimum(maximum(x, low), high) if clamp else x) * scale
    if round_mode == "HALF_UP":
        rounded = floor(scaled + 0.5)
    elif round_mode == "HALF_TO_EVEN":
        rounded = round_(scaled)
    else:
        raise errors.InvalidArgumentError(f"quantize_and_dequantize: unknown round_mode {round_mode!r}.")
    return rounded / scale


def _along(t, x, axis):
    return (
        t
        if axis is None or t.ndim == 0
        else reshape(t, [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    )


def _quantized(
    input, input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range, axis
):
    x = as_tensor(input)
    if range_given:
        low, high = (_along(as_tensor(t, x), x, axis) for t in (input_min, input_max))
        if low._symbol is None and high._symbol is None and np.any(array_of(low) > array_of(high)):
            raise errors.InvalidArgumentError("quantize_and_dequantize: Invalid range: input_min > input_max")
    else:
        over = None if axis is None else [i for i in range(x.ndim) if i != axis % x.ndim]
        low, high = reduce_min(x, over, True), reduce_max(x, over, True)
    inner = _stopped(x), _stopped(low), _stopped(high)
    return x, low, high, _levels(*inner, signed_input, num_bits, round_mode, narrow_range, range_given)


@composite("quantization.quantize_and_dequantize")
def quantize_and_dequantize(
    input, input_min, input_max, signed_input=True, num_bits=8, range_given=False, round_mode="HALF_TO_EVEN", name=None,
    narrow_range=False, axis=None,
):  # fmt: skip
    """`input` rounded to 2^num_bits levels of its range, or of a given one. The gradient is that of the identity."""
    x, _, _, levels = _quantized(
        input, input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range, axis
    )
    return _stopped(levels) + _straight(x)


@composite("quantization.quantize_and_dequantize_v2")
def quantize_and_dequantize_v2(
    input, input_min, input_max, signed_input=True, num_bits=8, range_given=False, round_mode="HALF_TO_EVEN", name=None,
    narrow_range=False, axis=None,
):  # fmt: skip
    """As `quantize_and_dequantize`; the gradient is 0 outside of the range."""
    x, low, high, levels = _quantized(
        input, input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range, axis
    )
    in_range = (x >= _stopped(low)) & (x <= _stopped(high))
    return _stopped(levels) + select(in_range, _straight(x), 0)
