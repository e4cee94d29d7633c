"""The rules: what each optimizer does with one gradient.

A rule reads like its paper. `update(v, g, slots, lr, step)` is given the value of a variable, its
gradient (of the same type), the tensors that are kept for the variable from step to step, the
learning rate, and the number of this step (1, 2, ...). It returns the new value, and sets new
slots as attributes. `slots(v)` names the slots with their first values. Everything else
(clipping, decay, averages, sparse gradients, ...) is in `base` and `step`.
"""

from __future__ import annotations

from typing import Any

from gradtape.ops import (
    abs_ as abs,
    clip,
    expand_dims,
    maximum,
    minimum,
    pow_ as pow,
    reduce_mean,
    reduce_sum,
    select,
    sign,
    sqrt,
    square,
    zeros,
)
from gradtape.optimizers.base import Optimizer, scalar
