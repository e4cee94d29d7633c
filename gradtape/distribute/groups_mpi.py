"""The MPI carrier, for programs started by mpirun or srun: mpi4py, over any network that MPI supports."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gradtape._src.base import errors
from gradtape._src.ops import exchange
from gradtape.distribute.groups_watch import Watch, listener

try:
    from mpi4py import MPI  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError as e:
    raise ImportError(
        "MultiWorkerMirroredStrategy: the program was started by mpirun, and mpi4py (or an MPI library) is not installed. "
        'Hint: pip install "gradtape[mpi]"; or set TF_CONFIG, and processes exchange values through JAX.'
    ) from e


def connect(timeout: float) -> tuple[MpiCarrier, Watch | None]:
    """Joins the processes started by mpirun."""
    carrier = MpiCarrier()
    if carrier.size == 1:
        return carrier, None
    # The watch needs an address of process 0 that all others can reach.
    hosts = carrier.world.allgather(MPI.Get_processor_name())
    alone = len(set(hosts)) == 1
    listening = listener("127.0.0.1:0" if alone else ":0") if carrier.rank == 0 else None
    port = carrier.world.bcast(listening.getsockname()[1] if listening is not None else 0)
    host = "127.0.0.1" if alone else hosts[0]
    addresses = [f"{host}:{port}", *(f"{h}, MPI rank {r}" for r, h in enumerate(hosts[1:], 1))]
    return carrier, Watch(carrier.rank, addresses, timeout, listening)


class MpiCarrier:
    """See `groups.Carrier`."""

    ends_all = True

    def __init__(self) -> None:
        if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
            raise errors.FailedPreconditionError(
                None, None,
                "MultiWorkerMirroredStrategy: MPI was started without support for threads. Hint: let mpi4py start it "
                '(mpi4py.rc.thread_level = "multiple", the default).',
            )  # fmt: skip
        self.world = MPI.COMM_WORLD
        self._comm = self.world.Dup()  # keeps our messages apart from those of the user's program
        self.rank, self.size = self._comm.rank, self._comm.size
        self._buffers: dict[tuple, np.ndarray] = {}
        self._row = np.zeros(0, np.uint8)

    def begin_rows(self, row: np.ndarray) -> None:
        self._row = row

    def rows(self) -> np.ndarray:
        return self.gather(self._row)

    def buffer(self, n: int, dtype: Any) -> np.ndarray:
        key = n, np.dtype(dtype)
        buffer = self._buffers.get(key)
        if buffer is None:
            buffer = self._buffers[key] = np.zeros(n, dtype)
        return buffer

    def sum(self, buffer: np.ndarray) -> Any:
        total = np.empty_like(buffer)
        self._comm.Allreduce(buffer, total, op=MPI.SUM)
        return exchange.from_dlpack(total)

    def gather(self, data: np.ndarray) -> np.ndarray:
        out = np.empty((self.size, len(data)), np.uint8)
        self._comm.Allgather(data, out)
        return out

    def broadcast(self, data: np.ndarray, root: int) -> np.ndarray:
        data = data.copy()
        self._comm.Bcast(data, root)
        return data

    def close(self, stuck: bool) -> None:
        """Ends all processes if one of them does not come, because MPI's own shutdown waits for all of them."""
        if stuck:
            sys.stdout.flush()
            sys.stderr.flush()
            self.world.Abort(1)
