"""`tf.DeviceSpec`: the parts of a device's name."""

from __future__ import annotations

from typing import Any

_NUMBERS = ("replica", "task")
_FIELDS = ("job", "replica", "task", "device_type", "device_index")
_KINDS = ("CPU", "GPU", "TPU", "TPU_SYSTEM", "XLA_CPU", "XLA_GPU", "COPROCESSOR")


class DeviceSpec:
    """The parts of a device's name; parts that are left open are None. Immutable.

    >>> import gradtape as tf
    >>> spec = tf.DeviceSpec.from_string("/job:worker/task:3/device:GPU:*")
    >>> spec.job, spec.task, spec.device_type, spec.device_index
    ('worker', 3, 'GPU', None)
    >>> tf.DeviceSpec(device_type="GPU", device_index=0).make_merged_spec(spec).to_string()
    '/job:worker/task:3/device:GPU:0'

    Args:
      job: the name of the job.
      replica, task: numbers.
      device_type: "CPU", "GPU", ...
      device_index: which of the devices of that type.
    """

    __slots__ = ("_parts",)

    def __init__(
        self,
        job: Any = None,
        replica: Any = None,
        task: Any = None,
        device_type: Any = None,
        device_index: Any = None,
    ) -> None:
        self._parts = (
            None if job is None else str(job),
            None if replica is None else int(replica),
            None if task is None else int(task),
            None if device_type is None else _kind(str(device_type)),
            None if device_index is None else int(device_index),
        )

    job = property(lambda self: self._parts[0], doc="The name of the job.")
    replica = property(lambda self: self._parts[1], doc="The number of the replica.")
    task = property(lambda self: self._parts[2], doc="The number of the task.")
    device_type = property(lambda self: self._parts[3], doc='"CPU", "GPU", ...')
    device_index = property(lambda self: self._parts[4], doc="Which of the devices of that type.")

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """The parts of a name such as "/job:worker/replica:0/task:1/device:CPU:0".

        Raises:
          ValueError: if it cannot be the name of a device.
        """
        return cls(**_parsed(spec))

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """The same as `from_string`."""
        return self.from_string(spec)

    def to_string(self) -> str:
        """The name, from the parts that are known."""
        job, replica, task, kind, index = self._parts
        parts = {"job": job, "replica": replica, "task": task}
        name = "".join(f"/{k}:{v}" for k, v in parts.items() if v is not None)
        return name if kind is None else f"{name}/device:{kind}:{'*' if index is None else index}"

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """A spec with some parts replaced."""
        return type(self)(**{**self._as_dict(), **kwargs})

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """A spec with the parts of `dev`; where `dev` has None, the parts of this one."""
        theirs = {k: v for k, v in dev._as_dict().items() if v is not None}
        return type(self)(**{**self._as_dict(), **theirs})

    def _as_dict(self) -> dict[str, Any]:
        return dict(zip(_FIELDS, self._parts, strict=True))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, DeviceSpec) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self._as_dict().items() if v is not None)
        return f"DeviceSpec({given})"


def _kind(name: str) -> str:
    return name.upper() if name.lower() in ("cpu", "gpu") else name


def _parsed(spec: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for part in filter(None, spec.split("/")):
        words = part.split(":")
        if words[0] == "device" and len(words) in (2, 3):
            words = words[1:]
        elif words[0] in ("job", *_NUMBERS) and len(words) == 2:
            if words[0] == "job":
                fields["job"] = words[1]
            elif words[1] != "*":
                fields[words[0]] = int(words[1])
            continue
        elif words[0].upper() not in _KINDS:
            raise ValueError(
                f"Unknown attribute '{words[0]}' is encountered while parsing the device spec: '{spec}'."
            )
        if "device_type" in fields:
            raise ValueError(f"Multiple device types are not allowed while parsing the device spec: {spec}.")
        fields["device_type"] = words[0].upper() if words[0].upper() in _KINDS else words[0]
        if len(words) > 1 and words[1] != "*":
            fields["device_index"] = int(words[1])
    return fields
