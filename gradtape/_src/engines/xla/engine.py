"""The XLA engine on one JAX device, or on several."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from gradtape import _core
from gradtape._src.base import log, settings
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import HELD
from gradtape._src.engines import NATIVE, Engine
from gradtape._src.engines.xla.names import is_started
from gradtape._src.engines.xla.ops.collective import REPLICA
from gradtape._src.engines.xla.program import XlaProgram
from gradtape._src.engines.xla.translate import runs_on_host
from gradtape._src.graph.ir import Graph, Value, symbolic
from gradtape._src.graph.simplify import simplify
from gradtape._src.tensors.indexed_slices import IndexedSlices

# JAX's names of platforms, and TensorFlow's.
KINDS = {"cpu": "CPU", "gpu": "GPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU"}


def device_name(device: Any) -> str:
    """The full name of a device, as `tensor.device` gives it."""
    kind = KINDS.get(device.platform, device.platform.upper())
    return (
        f"/job:localhost/replica:0/task:{device.process_index}/device:{kind}:{device.local_hardware_id or 0}"
    )


class Xla(Engine):
    """Programs that run on one device, or on several at once: then each has all inputs and outputs.

    Attributes:
      mesh: the devices, along the axis "replica".
    """

    name = "xla"

    def __init__(self, devices: tuple[Any, ...]) -> None:
        self.device = device_name(devices[0])
        self.mesh = Mesh(np.array(devices), (REPLICA,))
        self._place: Any = SingleDeviceSharding(devices[0])
        if len(devices) > 1:
            self._place = NamedSharding(self.mesh, PartitionSpec())

    def program(self, graph: Graph, updates: list[int] | None = None, checked: bool = False) -> Any:
        """The same as `Engine.program`; a graph with strings or types that are only stored runs natively."""
        ends = (*graph.inputs, *graph.outputs)  # constants that a function returns have no node
        if any(v.dtype in HELD for v in ends) or any(node.is_held for node in graph.nodes):
            return NATIVE.program(graph, updates, checked)
        if self.mesh.size > 1 and not self.runs(graph):
            # Devices that wait for each other must not wait for the host.
            log.warning("Replicas share one device, because a part of their program runs on the host.")
            return XlaProgram(_on_one_device(graph), updates, SingleDeviceSharding(self.mesh.devices.flat[0]))
        return XlaProgram(graph, updates, self._place)

    def runs(self, graph: Graph) -> bool:
        """The same as `Engine.runs`."""
        return not runs_on_host(simplify(graph, final=True))

    def over(self, numbers: Sequence[int]) -> Xla | None:
        """The same as `Engine.over`."""
        devices = jax.local_devices(backend=self.mesh.devices.flat[0].platform)
        if len(numbers) < 2 or max(numbers) >= len(devices):
            return None
        return _engine(tuple(devices[k] for k in numbers))

    def step(
        self, graph: Graph, updates: list[int], variables: tuple, externals: tuple, assigned: tuple, rows: tuple
    ) -> XlaStep:  # fmt: skip
        """The same as `Engine.step`."""
        return XlaStep(self.program(graph, updates), variables, externals, assigned)

    def __repr__(self) -> str:
        return f"<the XLA engine on {self.device}>"


def _on_one_device(graph: Graph) -> Graph:
    """A graph in which the replicas of a part are written out, side by side."""
    new = Graph()
    values: dict[Value, Any] = {v: symbolic(new.input(v.shape, v.dtype)) for v in graph.inputs}

    def tensor(v: Value) -> Any:
        return values[v] if v.constant is None else v.constant

    with aside(new):
        for node in graph.nodes:
            operands = [tensor(v) for v in node.operands]
            if isinstance(node.op, _core.Op):
                results = _core.apply(node.op, operands, node.attrs)
            elif getattr(node.op, "is_replicated", False):
                results = node.op.run(*operands)
            else:
                results = node.op(operands, [(v.shape, v.dtype) for v in node.results])
            values.update(zip(node.results, results, strict=True))
        new.outputs = [new.value_of(tensor(v)) for v in graph.outputs]
    return new


@cache
def _engine(devices: tuple[Any, ...]) -> Xla:
    return Xla(devices)


def local_devices() -> list[Any]:
    """All devices of this process that JAX sees.

    JAX has as many CPUs as `tf.config.set_logical_device_configuration` set, if that was called before JAX's first use.
    """
    if settings.logical_cpus > 1 and not is_started():
        jax.config.update("jax_num_cpu_devices", settings.logical_cpus)
    return jax.local_devices()


def engine_on(device: Any = None) -> Xla:
    """The engine on a device, or on "cpu"; by default on JAX's first device."""
    first = local_devices()[0]
    if device == "cpu":
        device = jax.local_devices(backend="cpu")[0]
    return _engine((first if device is None else device,))


class XlaStep:
    """The step of an optimizer; `_core.Update` is its native counterpart."""

    def __init__(self, program: XlaProgram, variables: tuple, externals: tuple, assigned: tuple) -> None:
        self._program, self._variables = program, variables
        self._externals, self._assigned = externals, assigned

    def run(self, flat: Sequence[Any]) -> bool:
        """Takes a step with these gradients; False if something does not have the shape that the program is for."""
        inputs = [*flat, *self._externals]
        if not self._program.fits(inputs):
            return False
        self._program.update(inputs, self._assigned)
        return True

    def step(self, pairs: Sequence[tuple]) -> bool:
        """The same for pairs of a dense gradient and its variable; False if the pairs are others."""
        if _core.current_trace() is not None or _core.assign_tracker() is not None:
            return False
        if len(pairs) != len(self._variables) or any(
            v is not w or isinstance(g, IndexedSlices) or not isinstance(g, _core.Tensor)
            for (g, v), w in zip(pairs, self._variables, strict=True)
        ):
            return False
        return self.run([g for g, _ in pairs])
