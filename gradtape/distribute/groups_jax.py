"""The JAX carrier: all-reduce and all-gather as XLA programs over the processes' CPU devices, through gloo.

A program is compiled ahead of time for each size. Its input is a permanent buffer: JAX reads the memory that the
tensors are packed into, and its result becomes a tensor, both without a copy.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape._src.base import errors
from gradtape._src.ops import exchange
from gradtape.distribute.groups import ROW, Courier
from gradtape.distribute.groups_relay import relay
from gradtape.distribute.groups_watch import Watch, host_and_port, listener

try:
    import jax  # type: ignore[import-not-found, unused-ignore]
except ImportError as e:
    raise ImportError(
        "MultiWorkerMirroredStrategy: several processes exchange values through JAX, which is not installed. Hint: "
        'pip install "gradtape[xla]", or start the program with mpirun and pip install "gradtape[mpi]".'
    ) from e

from jax.sharding import Mesh, NamedSharding, PartitionSpec  # type: ignore[import-not-found, unused-ignore]

from gradtape.distribute import groups_jax_names as names

_ALIGNED = 64
_LEAST = 2048  # least elements of a sum: smaller programs run in the calling thread in XLA
_MOST = 64  # limit on cached programs


def connect(rank: int, addresses: list[str], timeout: float) -> tuple[JaxCarrier, Watch]:
    """Meets the other workers, and connects this process to them through JAX.

    Raises:
      DeadlineExceededError, UnavailableError: if workers are missing, or go away in the meantime.
      FailedPreconditionError: if JAX is already in use.
    """
    if names.is_started():
        raise errors.FailedPreconditionError(
            None, None,
            "MultiWorkerMirroredStrategy: JAX (the XLA engine) has been used in this process before, and cannot be told of "
            "other workers any more. Hint: make the strategy at the beginning of the program.",
        )  # fmt: skip
    host, _ = host_and_port(addresses[0])
    service = None
    if rank == 0:
        listening = listener(addresses[0])
        bound = listening.getsockname()[0]
        own, service = _serve(bound, len(addresses), timeout)
        watch = Watch(0, addresses, timeout, listening, {"coordinator": int(own.rpartition(":")[2])})
    else:
        watch = Watch(rank, addresses, timeout)
        own = relay(host, watch.welcome["coordinator"])

    def join() -> JaxCarrier:
        names.join(own, rank, len(addresses), service, timeout)
        return JaxCarrier(rank, len(addresses))

    def give_up() -> None:
        if watch.is_broken(0):
            raise watch.error(0)

    try:
        return Courier().run(join, give_up), watch
    except errors.OpError:
        _silence.is_over = True
        _silence.end()  # the connection is abandoned, and will not end by itself
        raise
    except Exception as e:
        watch.wait_for_news(0, 2.0)
        raise watch.error(0, cause=str(e).strip().split("\n")[0]) from e


def _serve(host: str, size: int, timeout: float) -> tuple[str, Any]:
    """Starts JAX's coordination service at a free port of worker 0's address."""
    for attempt in range(5):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
            s.bind((host, 0))
            port = s.getsockname()[1]
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            return address, names.serve(address, size, timeout)
        except Exception:
            if attempt == 4:
                raise
    raise AssertionError


class JaxCarrier:
    """See `groups.Carrier`."""

    ends_all = False

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        before = _sockets()
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        first: dict[int, Any] = {}
        for device in jax.devices("cpu"):
            first.setdefault(device.process_index, device)
        self._device = first[rank]
        mesh = Mesh(np.array([first[r] for r in range(size)]), ("worker",))
        self._mesh, self._parts = mesh, NamedSharding(mesh, PartitionSpec("worker"))
        self._programs: dict[tuple, tuple[np.ndarray, Any, Any]] = {}
        self._under_way: Any = None
        # The processes connect to each other when the first program runs.
        with _silence:
            self.begin_rows(np.zeros(ROW, np.uint8))
            self.rows()
        self._connections = _sockets() - before
        if jax.default_backend() == "cpu":
            names.leave()

    def _program(self, kind: str, n: int, dtype: Any) -> tuple[np.ndarray, Any, Any]:
        """A buffer, the JAX array that reads it, and the program that takes the array."""
        key = (kind, n, np.dtype(dtype))
        program = self._programs.get(key)
        if program is None:
            if len(self._programs) >= _MOST:
                del self._programs[next(iter(self._programs))]
            program = self._programs[key] = self._make(_KINDS[kind], n, np.dtype(dtype))
        return program

    def _make(self, f: Callable, n: int, dtype: np.dtype) -> tuple[np.ndarray, Any, Any]:
        buffer = _aligned(n, dtype)
        with jax.enable_x64(True):
            local = jax.device_put(jax.dlpack.from_dlpack(buffer), self._device)
            if local.unsafe_buffer_pointer() != buffer.ctypes.data:
                raise RuntimeError("JAX has copied a buffer that it should read")
            whole = jax.make_array_from_single_device_arrays((n * self.size,), self._parts, [local])
            spec = PartitionSpec("worker")
            mapped = jax.shard_map(f, mesh=self._mesh, in_specs=spec, out_specs=spec, check_vma=False)
            kind = jax.ShapeDtypeStruct((n * self.size,), dtype, sharding=self._parts)
            return buffer, whole, jax.jit(mapped).lower(kind).compile()

    def _run(self, whole: Any, program: Any) -> Any:
        result = program(whole).addressable_data(0)
        result.block_until_ready()
        return result

    def begin_rows(self, row: np.ndarray) -> None:
        buffer, whole, program = self._program("rows", ROW, np.uint8)
        buffer[:] = row
        self._under_way = program(whole)

    def rows(self) -> np.ndarray:
        arrays, self._under_way = self._under_way, None
        return np.asarray(arrays[0].addressable_data(0)).reshape(self.size, ROW)

    def buffer(self, n: int, dtype: Any) -> np.ndarray:
        return self._program("sum", max(n, _LEAST), dtype)[0]

    def sum(self, buffer: np.ndarray) -> Any:
        _, whole, program = self._program("sum", len(buffer), buffer.dtype)
        return exchange.from_dlpack(self._run(whole, program))

    def gather(self, data: np.ndarray) -> np.ndarray:
        # Only a few sizes, so that few programs are compiled.
        n = max(ROW, 1 << (len(data) - 1).bit_length())
        buffer, whole, program = self._program("gather", n, np.uint8)
        buffer[: len(data)] = data
        return np.asarray(self._run(whole, program)).reshape(self.size, n)[:, : len(data)]

    def broadcast(self, data: np.ndarray, root: int) -> np.ndarray:
        n = max(_LEAST, 1 << (len(data) - 1).bit_length())
        buffer, whole, program = self._program("sum", n, np.uint8)
        buffer[: len(data)] = data if self.rank == root else 0
        return np.asarray(self._run(whole, program))[: len(data)]

    def close(self, stuck: bool) -> None:
        """Closes the connections if a program waits for a process that does not come: it would wait at exit, too."""
        if stuck:
            for inode in self._connections:
                _shut(inode)


def _sum(x: Any) -> Any:
    return jax.lax.psum(x, "worker")


def _gather(x: Any) -> Any:
    return jax.lax.all_gather(x, "worker", axis=0, tiled=True)


def _rows(x: Any) -> tuple[Any, Any]:
    # XLA runs programs of few operations in the calling thread. The second result makes it use another thread and
    # return, so that buffers are packed while rows are sent.
    work = jax.numpy.outer(x, jax.numpy.arange(64)).astype("float32")
    return _gather(x), jax.numpy.sum(work * work, axis=1)


_KINDS: dict[str, Callable] = {"sum": _sum, "gather": _gather, "rows": _rows}


class _Silence:
    """Hides gloo's message on standard output that it has connected, since programs write their results there."""

    def __init__(self) -> None:
        self._kept = -1
        self.is_over = False

    def __enter__(self) -> None:
        sys.stdout.flush()
        with contextlib.suppress(OSError):  # there is no standard output
            if self.is_over:
                return
            self._kept = os.dup(1)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)

    def __exit__(self, *exc_info: Any) -> None:
        self.end()

    def end(self) -> None:
        """Restores standard output."""
        saved, self._kept = self._kept, -1
        if saved >= 0:
            os.dup2(saved, 1)
            os.close(saved)


_silence = _Silence()


def _aligned(n: int, dtype: np.dtype) -> np.ndarray:
    raw = np.zeros(n * dtype.itemsize + _ALIGNED, np.uint8)
    start = -raw.ctypes.data % _ALIGNED
    return raw[start : start + n * dtype.itemsize].view(dtype)


def _open_sockets() -> dict[str, int]:
    """The sockets of this process and their file descriptors, if the system lists them (Linux)."""
    sockets = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/self/fd/{name}")
                if target.startswith("socket:"):
                    sockets[target] = int(name)
    return sockets


def _sockets() -> set[str]:
    return set(_open_sockets())


def _shut(inode: str) -> None:
    fd = _open_sockets().get(inode)
    if fd is not None:
        with contextlib.suppress(OSError):
            duplicate = socket.socket(fileno=os.dup(fd))
            try:
                duplicate.getpeername()  # fails for the listening socket, which gloo does not expect to close
                duplicate.shutdown(socket.SHUT_RDWR)
            finally:
                duplicate.close()
