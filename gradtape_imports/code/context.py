"""`tensorflow.python.eager.context`: whether code runs eagerly, and the functions of a context."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import gradtape as tf

executing_eagerly = tf.executing_eagerly


class _Context:
    """The one context: it has no settings of its own."""

    executing_eagerly = staticmethod(tf.executing_eagerly)
    device_name = ""

    @property
    def device_spec(self) -> Any:
        """The device of eager ops."""
        return tf.DeviceSpec.from_string(tf.constant(0).device)

    def num_gpus(self) -> int:
        return len(tf.config.list_physical_devices("GPU"))

    def ensure_initialized(self) -> None:
        """Nothing to do."""

    def clear_kernel_cache(self) -> None:
        """Nothing to do: programs go with what they were made for."""


_context = _Context()


def context() -> _Context:
    """The context of this process."""
    return _context


def num_gpus() -> int:
    """How many graphics processors there are."""
    return _context.num_gpus()


@contextlib.contextmanager
def eager_mode() -> Iterator[None]:
    """A block whose calls run at once, inside a function that is traced, too."""
    with tf.init_scope():
        yield


def get_default_context() -> _Context:
    """The context of this process."""
    return _context


def get_config() -> None:
    """Settings of sessions: there are none."""
    return


def get_device_name() -> str:
    """The name of the device of a `tf.device` block: not kept."""
    return ""


def async_wait() -> None:
    """Nothing to wait for: operations are done when they return."""
