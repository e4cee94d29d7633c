"""Devices: which ones exist, the names that `tf.device` accepts, and the engine that runs on each.

The CPU belongs to the native engine. GPUs and TPUs are those that JAX sees; `/XLA_CPU:0` is XLA's own CPU client,
which runs everything that would run on them. JAX is loaded only if it is installed with support for accelerators,
or if XLA_CPU is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src import engines
from gradtape._src.base import errors, settings
from gradtape._src.base.device_spec import DeviceSpec
from gradtape._src.graph.trace import Trace

# "GPU:0", "/cpu:0", "/job:worker/replica:0/task:1/device:TPU:*": the names that TensorFlow parses.
_PART = r"(job:\w+|(replica|task):(\d+|\*)|(device:)?[A-Za-z_]+(:(\d+|\*))?)\Z"
_TYPES = ("cpu", "gpu", "tpu", "xla_cpu", "xla_gpu", "tpu_system", "coprocessor", "device")
# Packages that add accelerators to JAX.
_PLUGINS = ("jax_plugins", "jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm60_plugin", "libtpu")


class Accelerator(NamedTuple):
    """A JAX device other than the CPU."""

    kind: str  # "GPU" or "TPU"
    number: int
    jax_device: Any

    @property
    def name(self) -> str:
        """The name in programs, "/device:GPU:0"."""
        return f"/device:{self.kind}:{self.number}"


def accelerators() -> list[Accelerator]:
    """The GPUs and TPUs of this process."""
    if find_spec("jax") is None or not any(map(find_spec, _PLUGINS)):
        return []
    xla = engines.module_of("xla.engine")
    devices: list[Accelerator] = []
    for device in xla.local_devices():
        kind = xla.KINDS.get(device.platform, device.platform.upper())
        if kind != "CPU":
            devices.append(Accelerator(kind, sum(a.kind == kind for a in devices), device))
    return devices


def parsed(device_name: Any) -> tuple[str, int] | None:
    """The kind and number in a device's name, `("GPU", 0)`; None if it has neither.

    Raises:
      ValueError: if it cannot be the name of a device.
    """
    name = (
        device_name.to_string()
        if isinstance(device_name, DeviceSpec)
        else getattr(device_name, "name", device_name)
    )
    if callable(name):
        raise RuntimeError("device: tf.device does not support functions.")
    if name is not None and not isinstance(name, str):
        raise ValueError(
            "device: Expecting a string device name.; expected such as '/CPU:0'; got "
            f"{name!r} of type {type(name).__name__}."
        )
    device = None
    for part in filter(None, (name or "").split("/")):
        words = part.removeprefix("physical_").split(":")
        kind = words[0].lower()
        if kind not in (*_TYPES, "job", "replica", "task") or not re.match(
            _PART, part.removeprefix("physical_")
        ):
            raise ValueError(
                f"device: Unknown attribute '{part}' is encountered while parsing the device "
                f"spec; expected such as '/CPU:0' or '/device:GPU:1'; got {name!r}."
            )
        if kind in ("physical_device", "device"):
            words = words[1:]
        if kind not in ("job", "replica", "task") and words:
            number = words[1] if len(words) > 1 and words[1] != "*" else "0"
            device = words[0].upper(), int(number)
    return device


def engine_of(device_name: Any) -> engines.Engine | None:
    """The engine of the named device; None if the name is empty, or there is no such device.

    Raises:
      InvalidArgumentError: if there is no such device, and `tf.config.set_soft_device_placement(False)` was called.
    """
    named = parsed(device_name)
    if named is None:
        return None
    kind, number = named
    if kind == "CPU":
        # XLA may be the engine of the CPU, too.
        default = engines.default()
        return default if default.device.endswith(f"CPU:{number}") else engines.NATIVE
    if kind == "XLA_CPU":
        return engines.xla_on("cpu")
    kind = kind.removeprefix("XLA_")
    for accelerator in accelerators():
        if (accelerator.kind, accelerator.number) == (kind, number):
            return engines.xla_on(accelerator.jax_device)
    if not settings.soft_device_placement:
        names = ", ".join(["/device:CPU:0", *(a.name for a in accelerators())])
        raise errors.InvalidArgumentError(
            None, None, f"Could not satisfy device specification '/device:{kind}:{number}'. All available devices [{names}]."
        )  # fmt: skip
    return None


@contextmanager
def device(device_name: Any = None) -> Iterator[None]:
    """Functions called in this block run on a device; their results stay there until their values are needed.

    Eager ops run on the CPU in any case. Inside a function, `tf.device` places the whole function. The CPU replaces
    a device that does not exist, unless `tf.config.set_soft_device_placement(False)` was called.

    Args:
      device_name: a name such as "/GPU:0", a device of `tf.config`, or None.

    Raises:
      ValueError: if it cannot be the name of a device.

    >>> import gradtape as tf
    >>> with tf.device("/GPU:0"):
    ...     y = tf.function(lambda x: x + 1.0)(tf.constant(1.0))
    >>> y.numpy()
    np.float32(2.0)
    """
    engine = engine_of(device_name)
    if engine is None:
        yield
        return
    trace = _core.current_trace()
    if isinstance(trace, Trace) and engine is not engines.NATIVE:
        trace.run_on(engine)
    with engines.placed(engine):
        yield
