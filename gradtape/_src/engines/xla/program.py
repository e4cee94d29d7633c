"""Programs of the XLA engine, the counterpart of `_core.Program`.

A program is compiled when it first runs. Its results stay on the device: tensors and variables hold the arrays, and
elements are copied to the host when they are needed (`core/py/device.h`). The arrays of variables are donated to
their new values if nothing else holds them.

Two things end a run without results and without effect: something that native code would refuse (the run is
repeated natively, which raises the error), and a loop under a tape with more iterations than there is room for its
residuals (the program is compiled again with twice the room).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import starmap
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import errors
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import int64
from gradtape._src.base.interrupts import Postponed
from gradtape._src.base.locks import Lock
from gradtape._src.engines import NATIVE
from gradtape._src.engines.xla.host import HostRun, array_of, tensor_of
from gradtape._src.engines.xla.lowering import spec_of
from gradtape._src.engines.xla.names import JaxRuntimeError, direct_call, enable_x64
from gradtape._src.engines.xla.residuals import REFUSED, TOKENS, Residuals
from gradtape._src.engines.xla.translate import Translation, runs_on_host
from gradtape._src.graph.callable import extract
from gradtape._src.graph.ir import Callback, Graph
from gradtape._src.tensors.conversion import read

_FIRST_ROOM = 64  # iterations of a loop that there is room for at first
_TOKEN = ((), int64._code)
_SEEN = np.empty(0)  # the array of a tensor that was an input before, but is not on the device


class _Compiled:
    """A program for one amount of room for residuals."""

    __slots__ = ("call", "room", "has_status", "structures", "donated", "is_plain", "met")

    def __init__(self, call: Any, room: int, has_status: bool, structures: list[Any]) -> None:
        self.call = call
        self.room = room
        self.has_status = has_status
        self.structures = structures  # for each output: None, or the structure of the residuals of a token
        # Variables whose arrays are donated: the input, its index among the arrays passed in, and the index of the
        # new value among the arrays returned.
        self.donated: list[tuple[int, int, int]] = []
        self.is_plain = False  # whether a run is just the call
        self.met: set[Any] = set()  # kinds of arguments of earlier calls


class XlaProgram:
    """Computes the outputs of a graph from its inputs.

    Args:
      place: where inputs and outputs are, as a JAX sharding: one device, or copies on several.
    """

    def __init__(self, graph: Graph, updates: Sequence[int] | None, place: Any) -> None:
        self.translation = Translation(graph)
        self.graph = self.translation.graph
        self._place = place
        devices = place.device_set
        self._on_one_cpu = len(devices) == 1 and next(iter(devices)).platform == "cpu"
        self._updates = list(updates or ())
        # Code on the host may fail, or read variables, so they keep their values until the end of the run.
        self._hosted = runs_on_host(self.graph)
        self._donated = () if self._hosted else tuple(sorted({i for i in self._updates if i >= 0}))
        self._draws = [node.op.make for node in self.translation.draws]
        self._kinds = [(v.shape, v.dtype) for v in self.graph.outputs]
        # Inputs that may be the residuals of a loop: see residuals.py.
        self._numbers = [k for k, v in enumerate(self.graph.inputs) if (v.shape, v.dtype) == _TOKEN]
        self._room = _FIRST_ROOM
        self._compiled: dict[Any, _Compiled] = {}
        self._lock = Lock()
        self._native: Any = None

    # ---- runs -----------------------------------------------------------------------------------

    def run(self, inputs: Sequence[Any]) -> list:
        """The outputs for these tensors and variables."""
        # The program may have been compiled to overwrite variables, which are not to change here.
        return self._update(inputs, ()) if self._donated else self.update(inputs, ())

    def update(self, inputs: Sequence[Any], variables: tuple) -> list:
        """The outputs without the last ones, which are the new values of the variables."""
        return self._update(inputs, variables)

    def _update(self, inputs: Sequence[Any], variables: tuple) -> list:
        outputs = self._outputs(inputs, variables)
        return self._tensors(outputs[: len(outputs) - len(variables)], self._kinds)

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether tensors and variables have the shapes and types that the program is for."""
        return len(inputs) == len(self.graph.inputs) and all(
            tuple(x._value_shape if isinstance(x, _core.Variable) else x._dims) == v.shape
            and x.dtype._code == v.dtype
            for x, v in zip(inputs, self.graph.inputs, strict=True)
        )

    def profile(self, inputs: Sequence[Any], repeats: int) -> list:
        """Not supported: XLA does not report the time of its steps."""
        raise errors.UnimplementedError(
            None, None, "profile: XLA does not tell how long the steps of a program take. Hint: jax.profiler.trace."
        )  # fmt: skip

    @staticmethod
    def _tensors(arrays: Sequence[Any], kinds: Sequence[tuple]) -> list:
        make = _core.from_device
        return [make(a, shape, dtype) for a, (shape, dtype) in zip(arrays, kinds, strict=False)]

    def _outputs(self, inputs: Sequence[Any], variables: tuple) -> list[Any]:
        """The arrays of the outputs. The last ones become the new values of the variables."""
        if len(inputs) != len(self.graph.inputs):
            raise ValueError("program: wrong number of inputs")
        streams = [array_of(make()) for make in self._draws]
        if not self._hosted:
            return self._attempts(inputs, variables, streams, None)
        with HostRun() as host:
            return self._attempts(inputs, variables, streams, host)

    def _attempts(
        self, inputs: Sequence[Any], variables: tuple, streams: list[Any], host: HostRun | None
    ) -> list[Any]:
        more = streams if host is None else [*streams, host.number]
        while True:
            arrays = _core.device_arrays(inputs)
            wide = self._complete(inputs, arrays) or bool(streams)
            tokens = {k: arrays[k] for k in self._numbers if type(arrays[k]) is Residuals}
            compiled = self._for(tokens)
            if tokens:
                arrays = [x for a in arrays for x in (a.arrays if type(a) is Residuals else (a,))]
            arrays += more
            given = tuple((inputs[i], at, k) for i, at, k in compiled.donated) if variables else ()
            for _, at, _ in () if variables else compiled.donated:
                arrays[at] = arrays[at].copy()
            # For a new kind of arguments JAX runs Python code after the arrays of variables were donated.
            kind = (wide, *map(type, arrays))
            postponed = nullcontext() if kind in compiled.met else Postponed()
            run = starmap(_core.call_on_device, ((compiled.call, arrays, given),))
            del arrays  # arrays that are still referenced would be copied
            outcome: list[Any] = []
            try:
                # In one step, so that no interrupt comes between a run and its results.
                if host is not None:
                    outcome += host.serve(partial(_to_the_end, run))
                else:
                    with postponed, enable_x64(True) if wide else nullcontext():
                        outcome += run
                if outcome[0] is NotImplemented:
                    continue  # another thread has changed a variable
                status, outputs = self._finished(outcome[0], compiled, variables)
                compiled.met.add(kind)
                if compiled.is_plain and not wide and np.ndarray not in kind:
                    # From now on a run is one native call, unless a value must be put on the device first.
                    quick = _core.DeviceCall(compiled.call, self._update, self._donated, self._kinds)
                    self.update = quick.update  # type: ignore[method-assign, assignment]
            except JaxRuntimeError as e:
                self._raise(e, host)
            except BaseException:
                if outcome and outcome[0] is not NotImplemented:
                    self._finished(outcome[0], compiled, variables)
                raise
            if not status:
                return outputs
            if status & REFUSED:
                outputs = self._repeated_natively(inputs, compiled, streams, host)
                _core.set_on_device(variables, outputs[len(outputs) - len(variables) :])
                return outputs
            self._room = max(self._room, 2 * compiled.room)
            if host is not None:
                host.repeat()

    def _finished(self, outcome: list[Any], compiled: _Compiled, variables: tuple) -> tuple[int, list[Any]]:
        """The status and outputs of a run. If it did not fail, all variables have their new values.

        Variables whose arrays were donated have them already; after a run that failed, these equal the old ones.
        """
        status, arrays = (int(outcome[-1]), outcome[:-1]) if compiled.has_status else (0, outcome)
        outputs = self._behind_tokens(arrays, compiled) if any(compiled.structures) else arrays
        if variables and not status:
            n = len(outputs) - len(variables)
            late = [k for k in range(len(variables)) if self._updates[n + k] not in self._donated]
            _core.set_on_device(tuple(variables[k] for k in late), [outputs[n + k] for k in late])
        return status, outputs

    def _complete(self, inputs: Sequence[Any], arrays: list[Any]) -> bool:
        """Puts missing arrays on the device; returns whether some are 64 bits wide and still on the host."""
        wide = False
        for k, array in enumerate(arrays):
            if array is None or array is _SEEN:
                x = inputs[k]
                # A tensor that is used once is read from the host's memory. If it is used again, it is put on the device.
                if array is None and self._on_one_cpu and not isinstance(x, _core.Variable):
                    arrays[k] = value = array_of(x)
                    wide |= value.dtype.itemsize >= 8
                    _core.put_on_device(x, _SEEN)
                else:
                    # The array may share the tensor's memory; it must not refer to the tensor, which will refer to it.
                    value = array_of(read(x) if isinstance(x, _core.Variable) else _alias(x))
                    with enable_x64(True):
                        arrays[k] = jax.device_put(value, self._place)
                    _core.put_on_device(x, arrays[k])
            elif not isinstance(array, Residuals) and array.sharding != self._place:
                arrays[k] = jax.device_put(array, self._place)
                if isinstance(inputs[k], _core.Variable):
                    _core.put_on_device(inputs[k], arrays[k])
        return wide

    @staticmethod
    def _raise(e: Exception, host: HostRun | None) -> NoReturn:
        """Raises the error of a run as one of TensorFlow's."""
        if host is not None and host.raised is not None:
            raise host.raised from None
        text = str(e)
        exhausted = "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower()
        raise (errors.ResourceExhaustedError if exhausted else errors.InternalError)(None, None, text) from e

    def _repeated_natively(
        self, inputs: Sequence[Any], compiled: _Compiled, streams: list[Any], host: HostRun | None
    ) -> list[Any]:
        """Raises native code's error for these inputs; or returns its results, if only rounding made the difference.

        Random streams are not drawn again, and side effects do not happen again, unless they are in a loop or branch.
        """
        if self._native is None:
            effects = [
                n for n in self.graph.nodes if isinstance(n.op, Callback) and n.op.effect and not n.op.draws
            ]
            if any(node.op.xla for node in effects):
                effects = []
            over = {*self.translation.draws, *effects}
            given = [v for node in (*self.translation.draws, *effects) for v in node.results]
            nodes = [n for n in self.graph.nodes if n not in over]
            part = extract(nodes, [*self.graph.inputs, *given], self.graph.outputs)
            self._native = NATIVE.program(part), bool(effects)
        program, has_effects = self._native
        done = [x for results in host.results for x in results] if host is not None and has_effects else []
        outputs = program.run([*map(read, inputs), *map(tensor_of, (*streams, *done))])
        if any(compiled.structures):
            raise errors.InternalError(
                None, None, "an XLA program found something that native code would refuse, and native code did not."
            )  # fmt: skip
        with enable_x64(True):
            return [jax.device_put(array_of(x), self._place) for x in outputs]

    # ---- compiling ------------------------------------------------------------------------------

    def _for(self, tokens: dict[int, Residuals]) -> _Compiled:
        room = self._room
        key = (room, *((k, r.kind) for k, r in tokens.items()))
        compiled = self._compiled.get(key)
        if compiled is None:
            with self._lock:
                compiled = self._compiled.get(key)
                if compiled is None:
                    compiled = self._compiled[key] = self._compile(tokens, room)
        return compiled

    def _compile(self, tokens: dict[int, Residuals], room: int) -> _Compiled:
        structures: list[Any] = []
        facts: dict[str, bool] = {}
        # The arrays of residuals take the place of their token.
        specs: list[Any] = []
        starts: list[int] = []
        for k, v in enumerate(self.graph.inputs):
            starts.append(len(specs))
            specs += tokens[k].specs if k in tokens else [spec_of(v)]
        n = len(specs)
        specs += [spec_of(v) for node in self.translation.draws for v in node.results]
        end = len(specs)
        specs += [jax.ShapeDtypeStruct((), np.int32)] if self._hosted else []

        def compute(*flat: Any) -> list[Any]:
            given: list[Any] = [
                tokens[k].unflatten(flat[at : at + tokens[k].size]) if k in tokens else flat[at]
                for k, at in enumerate(starts)
            ]
            number = flat[end] if self._hosted else 0
            outputs, status = self.translation.run(given, flat[n:end], room, number)
            facts["status"] = status is not None
            if status is not None:
                for k, i in enumerate(self._updates):
                    if i >= 0:
                        outputs[k] = jnp.where(status == 0, outputs[k], given[i])
            arrays: list[Any] = []
            structures.clear()
            for out in outputs:
                leaves, structure = jax.tree.flatten(out)
                arrays += leaves
                structures.append(structure if isinstance(out, TOKENS) else None)
            return arrays if status is None else [*arrays, status]

        donated = [starts[i] for i in self._donated]
        with enable_x64(True):
            jitted = jax.jit(
                compute,
                donate_argnums=donated,
                in_shardings=self._taken(tokens),
                out_shardings=self._given(),
                keep_unused=True,
            )
            call = direct_call(jitted.lower(*specs).compile())
        compiled = _Compiled(call, room, facts["status"], list(structures))
        sizes = [1 if structure is None else structure.num_leaves for structure in structures]
        places = {i: sum(sizes[:k]) for k, i in enumerate(self._updates)}
        compiled.donated = [(i, starts[i], places[i]) for i in self._donated]
        plain = not (tokens or self._draws or self.translation.on_host or compiled.has_status)
        compiled.is_plain = plain and not any(structures) and jax.local_device_count() == 1
        return compiled

    def _taken(self, tokens: dict[int, Residuals]) -> Any:
        """The shardings of the inputs, for `jax.jit`."""
        return self._place

    def _given(self) -> Any:
        """The shardings of the outputs; None leaves them to XLA."""
        return self._place

    @staticmethod
    def _behind_tokens(arrays: list[Any], compiled: _Compiled) -> list[Any]:
        left = iter(arrays)
        return [
            next(left) if structure is None else Residuals.take(left, structure)
            for structure in compiled.structures
        ]


def _to_the_end(run: Iterable[Any]) -> list[Any]:
    """The results of a run, when all its work on the host is done."""
    with enable_x64(True):
        results = list(run)
        jax.block_until_ready(results)
        jax.effects_barrier()
    return results


def _alias(tensor: Any) -> Any:
    """Another tensor with the same elements, in the same memory."""
    with aside():
        return ops.reshape(tensor, tensor._dims)
