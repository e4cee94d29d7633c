"""`tf.data.Options` and its parts. They are stored; gradtape's pipelines need no tuning."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any


class AutotuneAlgorithm(enum.Enum):
    """How TensorFlow tunes; accepted."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class AutoShardPolicy(enum.IntEnum):
    """How a dataset is divided between workers; accepted."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.Enum):
    """What happens to external state when a dataset is serialized; accepted."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class _Options:
    """A group of settings: their names, types and defaults are in `_FIELDS`."""

    _FIELDS: dict[str, tuple[Any, Callable[[], Any] | None]] = {}
    _is_frozen = False

    def __init__(self) -> None:
        values = {name: None if default is None else default() for name, (_, default) in self._FIELDS.items()}
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> Any:
        name = _RENAMED.get(name, name)
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        name = _RENAMED.get(name, name)
        if self._is_frozen:
            raise ValueError(
                "Mutating `tf.data.Options()` returned by `tf.data.Dataset.options()` has no effect. Use "
                "`tf.data.Dataset.with_options(options)` to set or update dataset options."
            )
        if name not in self._FIELDS:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        kind = self._FIELDS[name][0]
        if value is not None and not isinstance(value, kind):
            raise TypeError(f'Property "{name}" must be of type {kind}, got: {value!r} (type: {type(value)})')
        self._values[name] = value

    def _merged(self, other: Any) -> Any:
        """These settings, updated with those set in `other`."""
        new = type(self)()
        for name in self._FIELDS:
            own, theirs = self._values[name], other._values[name]
            if isinstance(own, _Options):
                new._values[name] = own._merged(theirs)
            else:
                new._values[name] = own if theirs is None else theirs
        return new

    def _frozen(self) -> Any:
        """These settings as a read-only object."""
        for value in self._values.values():
            if isinstance(value, _Options):
                value._frozen()
        object.__setattr__(self, "_is_frozen", True)
        return self

    def merge(self, options: Any) -> Any:
        """These settings, updated with those set in `options`."""
        return self._merged(options)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._FIELDS]

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]


_RENAMED = {"experimental_deterministic": "deterministic", "experimental_threading": "threading"}


class AutotuneOptions(_Options):
    """Settings of TensorFlow's tuning."""

    _FIELDS = {
        "autotune_algorithm": (AutotuneAlgorithm, None), "cpu_budget": (int, None), "enabled": (bool, None),
        "initial_parallelism": (int, None), "min_parallelism": (int, None), "ram_budget": (int, None),
    }  # fmt: skip


class DistributeOptions(_Options):
    """Settings of distribution."""

    _FIELDS = {
        "auto_shard_policy": (AutoShardPolicy, lambda: AutoShardPolicy.AUTO),
        "num_devices": (int, None),
    }


class OptimizationOptions(_Options):
    """Settings of TensorFlow's rewrites."""

    _FIELDS = dict.fromkeys(
        (
            "apply_default_optimizations", "filter_fusion", "filter_parallelization", "inject_prefetch",
            "map_and_batch_fusion", "map_and_filter_fusion", "map_fusion", "map_parallelization",
            "noop_elimination", "parallel_batch", "seq_interleave_prefetch", "shuffle_and_repeat_fusion",
        ),
        (bool, None),
    )  # fmt: skip


class ThreadingOptions(_Options):
    """Settings of threads."""

    _FIELDS = {"max_intra_op_parallelism": (int, None), "private_threadpool_size": (int, None)}


class ServiceOptions(_Options):
    """Settings of TensorFlow's data service, which gradtape does not have."""

    _FIELDS = {"pinned": (bool, None)}


class Options(_Options):
    """Options of a dataset.

    >>> import gradtape as tf
    >>> options = tf.data.Options()
    >>> options.deterministic = True
    >>> tf.data.Dataset.range(3).with_options(options).options().deterministic
    True
    """

    _FIELDS = {
        "autotune": (AutotuneOptions, AutotuneOptions), "dataset_name": (str, None), "deterministic": (bool, None),
        "experimental_distribute": (DistributeOptions, DistributeOptions),
        "experimental_external_state_policy": (ExternalStatePolicy, None),
        "experimental_optimization": (OptimizationOptions, OptimizationOptions),
        "experimental_service": (ServiceOptions, ServiceOptions), "experimental_slack": (bool, None),
        "experimental_symbolic_checkpoint": (bool, None), "experimental_warm_start": (bool, None),
        "framework_type": (list, None), "threading": (ThreadingOptions, ThreadingOptions),
    }  # fmt: skip
