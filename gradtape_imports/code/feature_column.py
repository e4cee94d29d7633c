"""`tf.__internal__.feature_column`, of which gradtape has nothing: bases of classes that Keras 2 defines, and no objects."""

from __future__ import annotations

from typing import Any


class _None:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}: gradtape has no feature columns. Hint: layers of preprocessing."
        )


class FeatureColumn(_None):
    """A column of features."""


class DenseColumn(FeatureColumn):
    """A column that returns a dense tensor."""


class SequenceDenseColumn(FeatureColumn):
    """A column that returns a sequence of dense tensors."""


class StateManager(_None):
    """Holds the variables of columns."""


class FeatureTransformationCache(_None):
    """Holds the tensors of columns."""
