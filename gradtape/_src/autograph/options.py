"""`tf.autograph.experimental.set_loop_options`: options for a loop over tensors, set by a statement in its body.

`transform.py` moves the statement to where the loop begins, so it refers to the values that variables have
there. Called directly it does nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Sets options of the loop over tensors whose body this statement is in. Other loops ignore it.

    Args:
      maximum_iterations: the largest number of iterations of a `while`, or of a `for` over a tensor.
      shape_invariants: pairs of a variable of the loop and the shape that it has in every iteration, with None for
        sizes that vary; for a variable that is a nest, a nest of shapes.
      parallel_iterations, swap_memory: accepted; they change nothing.
    """


class LoopOptions:
    """The arguments of `set_loop_options`."""

    def __init__(
        self,
        parallel_iterations: Any = None,
        swap_memory: Any = None,
        maximum_iterations: Any = None,
        shape_invariants: Any = None,
    ) -> None:
        self.most = maximum_iterations
        self._pairs = list(shape_invariants or ())

    def invariants(self, variables: Sequence[Any]) -> list | None:
        """The shape declared for each of a loop's variables, or None; None if no shape is declared at all."""
        shapes = [next((shape for v, shape in self._pairs if v is value), None) for value in variables]
        return None if all(shape is None for shape in shapes) else shapes
