"""JAX names that are not public: if a release moves one of them, this is the file to change.

Imported only when a group of processes is created.
"""

from __future__ import annotations

from typing import Any

from jax._src import distributed, xla_bridge  # type: ignore[import-not-found, unused-ignore]
from jax._src.lib import _jax  # type: ignore[import-not-found, unused-ignore]


def is_started() -> bool:
    """Whether JAX has already looked for devices; then it cannot be told about other processes."""
    return xla_bridge.backends_are_initialized() or distributed.global_state.client is not None


# JAX would end processes that miss heartbeats; here the watch decides who is alive.
_NEVER = 10_000_000


def serve(address: str, size: int, timeout: float) -> Any:
    """Starts JAX's coordination service, through which processes find each other."""
    seconds = max(1, round(timeout))
    return _jax.get_distributed_runtime_service(
        address, size, heartbeat_timeout=_NEVER, shutdown_timeout=seconds, cluster_register_timeout=seconds
    )


def join(address: str, rank: int, size: int, service: Any, timeout: float) -> None:
    """Makes this process one of `size` JAX processes."""
    seconds = max(1, round(timeout))
    client = _jax.get_distributed_runtime_client(
        address,
        rank,
        init_timeout=seconds,
        shutdown_timeout=seconds,
        heartbeat_timeout=_NEVER,
        shutdown_on_destruction=False,
        use_compression=False,
    )
    client.connect()
    state = distributed.global_state
    state.client, state.service = client, service
    state.process_id, state.num_processes, state.coordinator_address = rank, size, address


def leave() -> None:
    """Ends the connection to the coordination service; devices and open connections between processes stay.

    JAX aborts processes whose coordinator dies (SIGABRT), and lets ending processes wait for each other. Neither
    happens to a process that has left. It can no longer open new connections, but keeps the existing ones.
    """
    state = distributed.global_state
    if state.client is not None:
        state.client.shutdown()
    if state.service is not None:
        state.service.shutdown()
        state.service = None
