"""The XLA engine on a mesh of devices: one program for all of them, on values that are sharded over the mesh.

The graph is that of one device; XLA infers from the layouts of the inputs what each device computes, and the
exchanges that this needs (GSPMD). A program is compiled for the layouts of its inputs. New values of variables are
sharded like the old ones; other results are where XLA puts them.

`keras.distribution` uses this; `tf.distribute` does not: there each replica has a graph for its own part.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gradtape import _core
from gradtape._src.base.locks import Lock
from gradtape._src.engines import Engine, placed
from gradtape._src.engines.xla.engine import XlaStep, device_name
from gradtape._src.engines.xla.host import array_of as host_array
from gradtape._src.engines.xla.names import enable_x64
from gradtape._src.engines.xla.program import XlaProgram
from gradtape._src.engines.xla.residuals import Residuals
from gradtape._src.engines.xla.translate import Translation
from gradtape._src.graph.ir import Callback, Graph
from gradtape._src.graph.trace import Trace
from gradtape._src.tensors.conversion import read


class OnMesh(Engine):
    """The engine: programs over the devices of a JAX mesh."""

    name = "xla"

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.device = device_name(mesh.devices.flat[0])
        self.everywhere = NamedSharding(mesh, PartitionSpec())

    def program(self, graph: Graph, updates: list[int] | None = None, checked: bool = False) -> MeshProgram:
        """The same as `Engine.program`."""
        return MeshProgram(graph, updates, self.everywhere)

    def step(
        self, graph: Graph, updates: list[int], variables: tuple, externals: tuple, assigned: tuple, rows: tuple
    ) -> XlaStep:  # fmt: skip
        """The same as `Engine.step`."""
        program: Any = self.program(graph, updates)
        return XlaStep(program, variables, externals, assigned)

    def __repr__(self) -> str:
        return f"<the XLA engine on a mesh {dict(self.mesh.shape)}>"


@cache
def engine_over(mesh: Mesh) -> OnMesh:
    """The engine of a mesh."""
    return OnMesh(mesh)


def put(value: Any, sharding: Any) -> Any:
    """Puts a tensor, or a variable, on a mesh and returns its array there; raises JAX's error if it cannot be
    sharded so."""
    (array,) = _core.device_arrays([value])
    if array is None or isinstance(array, (np.ndarray, Residuals)):
        # A copy: a JAX array may share the memory that it is made from, which a native step may overwrite.
        array = np.array(host_array(read(value)))
    with enable_x64(True):
        array = jax.device_put(array, simple(sharding))
    _core.put_on_device(value, array)
    return array


def put_everywhere(value: Any, mesh: Mesh) -> Any:
    """Puts a whole copy of a tensor, or a variable, on each device of a mesh."""
    return put(value, engine_over(mesh).everywhere)


def from_parts(part: _core.Tensor, sharding: Any) -> _core.Tensor:
    """The tensor of which each process has a part."""
    with enable_x64(True):
        array = jax.make_array_from_process_local_data(sharding, np.array(part.numpy()))
    return _core.from_device(array, tuple(array.shape), part.dtype._code)


def array_of(value: Any) -> Any:
    """The JAX array of a tensor or variable; None, or a NumPy array, for a value on the host."""
    return _core.device_arrays([value])[0]


def relaid(symbol: _core.Tensor, sharding: Any) -> _core.Tensor:
    """A tensor of a trace in another layout, if the trace is for a mesh."""
    trace = _core.current_trace()
    if not isinstance(trace, Trace) or not isinstance(trace.engine, OnMesh):
        return symbol
    return Relayout(sharding)([symbol], [(tuple(symbol.shape), symbol.dtype._code)])[0]


def on_mesh(mesh: Mesh) -> Any:
    """A scope in which functions run on a mesh."""
    return placed(engine_over(mesh))


@lru_cache(1024)
def simple(sharding: Any) -> Any:
    """The sharding in the form in which XLA returns it: unsharded axes at the end are not named."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    axes = list(sharding.spec)
    while axes and axes[-1] is None:
        axes.pop()
    return NamedSharding(sharding.mesh, PartitionSpec(*axes))


def sharding_of(value: Any) -> Any:
    """How a tensor or variable is sharded over devices; None if it is only on the host."""
    return getattr(array_of(value), "sharding", None)


class MeshProgram:
    """Computes the outputs of a graph from inputs that are anywhere on a mesh."""

    def __init__(self, graph: Graph, updates: Sequence[int] | None, everywhere: NamedSharding) -> None:
        self.graph, self._updates, self._everywhere = graph, updates, everywhere
        self._programs: dict[tuple, _Cut] = {}
        self._lock = Lock()

    def run(self, inputs: Sequence[Any]) -> list:
        """The outputs for these tensors and variables."""
        return self.update(inputs, ())

    def update(self, inputs: Sequence[Any], variables: tuple) -> list:
        """The outputs without the last ones, which are the new values of the variables."""
        return self._for(self._layouts(inputs)).update(inputs, variables)

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether tensors and variables have the shapes and types that the program is for."""
        return self._for(tuple(self._everywhere for _ in inputs)).fits(inputs)

    def profile(self, inputs: Sequence[Any], repeats: int) -> list:
        """Refused, as on one device."""
        return self._for(tuple(self._everywhere for _ in inputs)).profile(inputs, repeats)

    def _layouts(self, inputs: Sequence[Any]) -> tuple:
        """The sharding of each input; inputs that are not on the mesh yet are copied to all devices."""
        layouts: list[Any] = []
        devices = self._everywhere.device_set
        for x, array in zip(inputs, _core.device_arrays(inputs), strict=True):
            if isinstance(array, Residuals):
                layouts.append(self._everywhere)
            elif not isinstance(array, jax.Array) or array.sharding.device_set != devices:
                put(x, self._everywhere)
                layouts.append(self._everywhere)
            else:
                layouts.append(simple(array.sharding))
        return tuple(layouts)

    def _for(self, layouts: tuple) -> _Cut:
        program = self._programs.get(layouts)
        if program is None:
            with self._lock:
                program = self._programs.get(layouts)
                if program is None:
                    program = self._programs[layouts] = _Cut(
                        self.graph, self._updates, self._everywhere, layouts
                    )
        return program


class _Cut(XlaProgram):
    """A program for inputs that are sharded in one way."""

    def __init__(
        self, graph: Graph, updates: Sequence[int] | None, everywhere: NamedSharding, layouts: tuple
    ) -> None:
        super().__init__(graph, updates, everywhere)
        self._layouts = layouts
        self.translation = _Kept(self.translation.graph, self._updates, layouts)

    def _complete(self, inputs: Sequence[Any], arrays: list[Any]) -> bool:
        for k, array in enumerate(arrays):
            if isinstance(array, Residuals):
                continue
            if not isinstance(array, jax.Array):  # another thread has assigned the variable
                array = np.array(host_array(read(inputs[k])))
            if simple(getattr(array, "sharding", None)) != self._layouts[k]:
                with enable_x64(True):
                    arrays[k] = jax.device_put(array, self._layouts[k])
                if isinstance(inputs[k], _core.Variable):  # a run overwrites the variable's array
                    _core.put_on_device(inputs[k], arrays[k])
        return False

    def _taken(self, tokens: dict[int, Residuals]) -> Any:
        layouts: list[Any] = []
        for k, layout in enumerate(self._layouts):
            layouts += [a.sharding for a in tokens[k].arrays] if k in tokens else [layout]
        return (*layouts, *[self._place] * (len(self.translation.draws) + self._hosted))

    def _given(self) -> Any:
        return None


class _Kept(Translation):
    """A translation whose new values of variables are sharded like the old ones."""

    def __init__(self, graph: Graph, updates: Sequence[int], layouts: tuple) -> None:
        super().__init__(graph)
        self._of_outputs = [layouts[i] if i >= 0 else None for i in updates]

    def run(self, *args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        """The same as `Translation.run`."""
        outputs, status = super().run(*args, **kwargs)
        for k, layout in enumerate(self._of_outputs):
            if layout is not None:
                outputs[k] = lax.with_sharding_constraint(outputs[k], layout)
        return outputs, status


class Relayout(Callback):
    """A node whose result is its operand, sharded over a mesh in another way."""

    is_barrier = True
    xla = "layout.constrain"

    def __init__(self, layout: Any) -> None:
        super().__init__("relayout", lambda x: [x._detach()])
        self.layout = layout

    def __call__(self, operands: Sequence[Any], specs: Sequence[tuple]) -> list:
        results = super().__call__(operands, specs)
        for result, operand in zip(results, operands, strict=True):
            _core.record((result,), (operand,), lambda g: [g])
        return results
