"""Comparisons on XLA that jax.numpy has no name for."""

from __future__ import annotations

from typing import Any


def positive(x: Any) -> Any:
    """1 where `x > 0`, else 0."""
    return x > 0
