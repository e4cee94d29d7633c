"""`tf.autograph.experimental.set_loop_options`: what a loop over tensors is told by a statement of its body.

The statement is read where the loop begins (`transform.py`): it speaks of the variables as they are then. Where it stands
it does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Options of the loop over tensors that this is a statement of. To other loops they mean nothing.

    Args:
      maximum_iterations: the most iterations of a `while`, or of a `for` over a tensor.
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
        """The shapes of a loop's variables, None where nothing is said; None if nothing is said at all."""
        found = [next((shape for v, shape in self._pairs if v is value), None) for value in variables]
        return None if all(shape is None for shape in found) else found
