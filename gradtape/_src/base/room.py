"""Checks that there is enough memory before allocating NumPy arrays and lists whose length is given by a user.

The core refuses tensors that do not fit into memory. NumPy allocates what the system grants, which may be more than the
machine has, and raises MemoryError where TensorFlow's users expect ResourceExhaustedError.
"""

from __future__ import annotations

from math import prod

from gradtape import _core


def want_room(*sizes: int, item: int = 8) -> int:
    """The number of elements of an array of these sizes.

    Args:
      item: the number of bytes of an element.

    Raises:
      ResourceExhaustedError: if they do not fit into memory.
    """
    count = prod(map(int, sizes))
    _core.want_room(min(max(count, 0) * item, 2**64 - 1))
    return count
