"""`tf.config`: which devices there are, and our own settings.

There is one CPU, and the GPUs and TPUs that JAX sees (`gradtape[xla]`). Settings of TensorFlow's runtime
are checked, stored where a program can read them back, and otherwise have no effect.
These have an effect: `set_engine`, `set_soft_device_placement`, `threading.set_intra_op_parallelism_threads`,
`run_functions_eagerly`, `set_logical_device_configuration` (replicas of `tf.distribute`), and gradtape's own
`memory_info`, `reset_peak_memory`, `release_cached_memory`, `jacobian_memory`, `show_progress`.
"""

from __future__ import annotations

import os as _os
import sys as _sys
import types as _types
from collections.abc import Iterable
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src import engines as _engines
from gradtape._src.base import settings as _settings
from gradtape._src.engines import placement as _placement
from gradtape._src.public import absent as _absent


class _Config(_types.ModuleType):
    """The type of this module, which makes the setting `jacobian_memory` a property."""

    @property
    def jacobian_memory(self) -> int:
        """Bytes that the intermediate values of a Jacobian may use; a Jacobian that needs more computes its
        rows in chunks. The result itself is not counted."""
        return _settings.jacobian_memory

    @jacobian_memory.setter
    def jacobian_memory(self, size: int) -> None:
        _settings.jacobian_memory = size


_sys.modules[__name__].__class__ = _Config

# --- engines -----------------------------------------------------------------------------------


def set_engine(name: str) -> None:
    """Selects the engine that runs functions and optimizers: "native", or "xla" (through JAX). The environment variable
    GRADTAPE_ENGINE does so for a whole program. Eager ops always run natively.

    Functions that ran before are traced again. On a machine with accelerators, "xla" means the first of them.

    Raises:
      ValueError: for another name.
      ImportError: if JAX is not installed.

    >>> from gradtape import config
    >>> config.set_engine("native")
    >>> config.get_engine()
    'native'
    """
    if name not in ("native", "xla"):
        raise ValueError(f'set_engine: there is no such engine; expected "native" or "xla"; got {name!r}.')
    _engines.set_default(_engines.NATIVE if name == "native" else _engines.xla_on())


def get_engine() -> str:
    """The engine that runs functions: "native" or "xla"."""
    return _engines.default().name


# --- devices -----------------------------------------------------------------------------------


class PhysicalDevice(NamedTuple):
    """A device of the machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device as programs see it; one physical device may be several."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """The options of one logical device, a part of a physical one. Limits are not enforced."""

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")
_visible: list[PhysicalDevice] | None = None  # None: all of them
_logical: dict[PhysicalDevice, list[LogicalDeviceConfiguration]] = {}


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of the machine: one CPU, and the accelerators that JAX sees.

    >>> from gradtape import config
    >>> config.list_physical_devices("GPU")
    []
    >>> config.list_physical_devices("CPU")
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    devices = [_CPU] if device_type in (None, "CPU") else []
    if device_type != "CPU":
        for a in _placement.accelerators():
            if device_type in (None, a.kind):
                devices.append(PhysicalDevice(f"/physical_device:{a.kind}:{a.number}", a.kind))
    return devices


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that programs can name: the visible ones, split as configured."""
    devices: list[LogicalDevice] = []
    for device in get_visible_devices(device_type):
        kind = device.device_type
        first = sum(d.device_type == kind for d in devices)
        count = len(_logical.get(device, ())) or 1
        devices += [LogicalDevice(f"/device:{kind}:{first + i}", kind) for i in range(count)]
    return devices


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices set by `set_visible_devices`; all by default."""
    if _visible is None:
        return list_physical_devices(device_type)
    return [d for d in _visible if device_type in (None, d.device_type)]


def set_visible_devices(
    devices: PhysicalDevice | Iterable[PhysicalDevice], device_type: str | None = None
) -> None:
    """Sets the devices (of one type) that the program can use.

    Raises:
      ValueError: if one is not a device of this machine, or not of `device_type`.
    """
    global _visible
    chosen = [devices] if isinstance(devices, PhysicalDevice) else list(devices)
    for device in chosen:
        _check_device("set_visible_devices", device)
        if device_type is not None and device.device_type != device_type:
            raise ValueError(f"set_visible_devices: expected devices of type {device_type}; got {device}.")
    others = [d for d in get_visible_devices() if device_type is not None and d.device_type != device_type]
    _visible = others + chosen


def get_logical_device_configuration(
    device: PhysicalDevice,
) -> list[LogicalDeviceConfiguration] | None:
    """What was set by `set_logical_device_configuration`, or None."""
    _check_device("get_logical_device_configuration", device)
    return _logical.get(device)


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Iterable[LogicalDeviceConfiguration]
) -> None:
    """Splits a device into several logical ones, as tests of distribution do."""
    _check_device("set_logical_device_configuration", device)
    _logical[device] = list(logical_devices)
    if device == _CPU:
        _settings.logical_cpus = max(1, len(_logical[device]))


def _check_device(op: str, device: Any) -> None:
    if device not in list_physical_devices():
        raise ValueError(
            f"{op}: Unrecognized device: {device}; expected one of {list_physical_devices()}; "
            f"got {device!r}. Hint: take it from tf.config.list_physical_devices()."
        )


def get_soft_device_placement() -> bool:
    """Whether `tf.device` falls back to the CPU for a device that does not exist."""
    return _settings.soft_device_placement


def set_soft_device_placement(enabled: bool) -> None:
    """Whether `tf.device` falls back to the CPU for a device that does not exist, or raises."""
    _settings.soft_device_placement = bool(enabled)


def experimental_connect_to_cluster(*args: Any, **kwargs: Any) -> None:
    """Does nothing: `gradtape.distribute` connects hosts itself."""


def experimental_connect_to_host(*args: Any, **kwargs: Any) -> None:
    """Does nothing; see `experimental_connect_to_cluster`."""


# --- functions ---------------------------------------------------------------------------------


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Makes every `tf.function` run its Python code at each call, for debugging.

    >>> from gradtape import config
    >>> config.run_functions_eagerly(True)
    >>> config.functions_run_eagerly()
    True
    >>> config.run_functions_eagerly(False)
    """
    _settings.run_functions_eagerly = bool(run_eagerly)
    _core.new_generation()


def functions_run_eagerly() -> bool:
    """What `run_functions_eagerly` has set; also True while `enable_check_numerics` is on."""
    return _settings.functions_run_eagerly()


experimental_run_functions_eagerly = run_functions_eagerly
experimental_functions_run_eagerly = functions_run_eagerly


# --- memory: gradtape's own --------------------------------------------------------------------


def memory_info() -> dict[str, int]:
    """Bytes of tensors: `live_bytes`, `live_tensors`, `cached_bytes` and `peak`.

    `cached_bytes` is memory cached for later tensors; `peak` is the largest `live_bytes`
    since the start or since `reset_peak_memory`.
    """
    return dict(_core.memory_info())


def reset_peak_memory() -> None:
    """Resets `peak` to the bytes that are live now."""
    _core.reset_peak_memory()


def release_cached_memory() -> None:
    """Returns cached memory to the system."""
    _core.release_cached_memory()


# --- progress ----------------------------------------------------------------------------------


def show_progress(enabled: bool | None = None) -> None:
    """Whether long work shows a progress bar, where tqdm is installed: Jacobians in chunks, `map_fn`, `scipy_minimize`,
    writing checkpoints. Work that takes less than a second never shows one.

    Args:
      enabled: True: always. False: never. None, the default: in terminals and notebooks, or as the environment
        variable GRADTAPE_PROGRESS says.
    """
    _settings.progress = None if enabled is None else bool(enabled)


# --- tf.config.threading, .optimizer, .experimental ----------------------------------------------


class threading:
    """`tf.config.threading`: how many threads ops may use."""

    _inter_op = 0

    @staticmethod
    def get_intra_op_parallelism_threads() -> int:
        """The number of threads one op may use."""
        return int(_core.num_threads())

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads: int) -> None:
        """Sets the number of threads one op may use; 0 means one per processor.

        Results do not depend on it.
        """
        if num_threads < 0:
            raise ValueError(
                "set_intra_op_parallelism_threads: the number of threads is negative; expected "
                f"0 (one per processor) or more; got {num_threads}."
            )
        _core.set_num_threads(int(num_threads))

    @staticmethod
    def get_inter_op_parallelism_threads() -> int:
        """The number that was set; 0 by default."""
        return threading._inter_op

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads: int) -> None:
        """Stored without effect; ops run one after the other."""
        threading._inter_op = int(num_threads)


class optimizer:
    """`tf.config.optimizer`: settings of TensorFlow's graph optimizer, stored without effect."""

    _jit = ""
    _options: dict[str, Any] = {"disable_model_pruning": False, "disable_meta_optimizer": False}

    @staticmethod
    def get_jit() -> str:
        """What `set_jit` turned on: "autoclustering", or an empty string for nothing."""
        return optimizer._jit

    @staticmethod
    def set_jit(enabled: bool | str) -> None:
        """Stored without effect; use `function(jit_compile=True)` for XLA."""
        optimizer._jit = "autoclustering" if enabled else ""

    @staticmethod
    def get_experimental_options() -> dict[str, Any]:
        """The options set."""
        return dict(optimizer._options)

    @staticmethod
    def set_experimental_options(options: dict[str, Any]) -> None:
        """Stored without effect."""
        optimizer._options.update(options)


class experimental:
    """`tf.config.experimental`: older names, and settings that have no effect in gradtape."""

    VirtualDeviceConfiguration = LogicalDeviceConfiguration

    class ClusterDeviceFilters:
        """Which devices of a cluster a task would see; stored without effect."""

        def __init__(self) -> None:
            self._filters: dict[tuple[str, int], list[str]] = {}

        def set_device_filters(self, job_name: str, task_index: int, device_filters: list[str]) -> None:
            """Stored without effect."""
            self._filters[job_name, task_index] = list(device_filters)

    list_physical_devices = staticmethod(list_physical_devices)
    list_logical_devices = staticmethod(list_logical_devices)
    get_visible_devices = staticmethod(get_visible_devices)
    set_visible_devices = staticmethod(set_visible_devices)
    get_virtual_device_configuration = staticmethod(get_logical_device_configuration)
    set_virtual_device_configuration = staticmethod(set_logical_device_configuration)

    _tensor_float_32 = True
    _synchronous = True
    _policy = "silent"

    @staticmethod
    def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
        """Whether JAX allocates GPU memory as it is needed, or most of it at once. Call it before the GPU is first used.

        Raises:
          ValueError: for the CPU, as in TensorFlow.
        """
        _check_device("set_memory_growth", device)
        if device.device_type == "GPU":
            _os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false" if enable else "true"
            return
        raise ValueError(
            "set_memory_growth: Cannot set memory growth on non-GPU and non-Pluggable devices; "
            f"expected a GPU; got {device}. Hint: loop over list_physical_devices('GPU')."
        )

    @staticmethod
    def get_memory_growth(device: PhysicalDevice) -> bool:
        """The value that was set; True for the CPU, whose memory is allocated as it is needed."""
        _check_device("get_memory_growth", device)
        return device.device_type == "CPU" or _os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE") == "false"

    @staticmethod
    def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
        """An empty dictionary for a CPU, as in TensorFlow."""
        _check_device("get_device_details", device)
        return {}

    @staticmethod
    def get_memory_info(device: str) -> dict[str, int]:
        """Bytes of live tensors as `current` and `peak`."""
        info = memory_info()
        return {"current": info["live_bytes"], "peak": info["peak"]}

    @staticmethod
    def get_memory_usage(device: str) -> int:
        """Bytes of live tensors."""
        return memory_info()["live_bytes"]

    @staticmethod
    def reset_memory_stats(device: str) -> None:
        """The same as `reset_peak_memory`."""
        reset_peak_memory()

    @staticmethod
    def enable_tensor_float_32_execution(enabled: bool) -> None:
        """Stored without effect; matrix products always have full precision."""
        experimental._tensor_float_32 = bool(enabled)

    @staticmethod
    def tensor_float_32_execution_enabled() -> bool:
        """The value that was set."""
        return experimental._tensor_float_32

    @staticmethod
    def get_synchronous_execution() -> bool:
        """The value that was set; ops are always synchronous."""
        return experimental._synchronous

    @staticmethod
    def set_synchronous_execution(enable: bool) -> None:
        """Stored without effect."""
        experimental._synchronous = bool(enable)

    @staticmethod
    def get_device_policy() -> str:
        """The value that was set."""
        return experimental._policy

    @staticmethod
    def set_device_policy(device_policy: str | None) -> None:
        """Stored without effect."""
        experimental._policy = device_policy or "silent"

    @staticmethod
    def enable_op_determinism() -> None:
        """Does nothing: results are always deterministic."""

    @staticmethod
    def enable_mlir_bridge() -> None:
        """Does nothing."""

    @staticmethod
    def disable_mlir_bridge() -> None:
        """Does nothing."""


__getattr__, __dir__ = _absent.of("config")
