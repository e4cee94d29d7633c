"""tf.random: seeds and generators; the samplers come from the op table."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from gradtape._src.ops.generator import (
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)
from gradtape._src.public import absent as _absent
from gradtape._src.tensors.random import Algorithm, set_seed

if _TYPE_CHECKING:
    from gradtape._typing.random import *  # noqa: F403

__all__ = [
    "Algorithm",
    "Generator",
    "create_rng_state",
    "get_global_generator",
    "set_global_generator",
    "set_seed",
]

__getattr__, __dir__ = _absent.of("random")
