"""`tensorflow.python.client.device_lib`: which devices there are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gradtape as tf


def list_local_devices(session_config: Any = None) -> list[SimpleNamespace]:
    """The devices of this machine, with TensorFlow's names of their kinds."""
    return [
        SimpleNamespace(
            name=device.name.replace("physical_device:", "device:"),
            device_type=device.device_type,
            memory_limit=0,
            physical_device_desc="",
        )
        for device in tf.config.list_physical_devices()
    ]
