"""`MultiWorkerMirroredStrategy`: replicas in several processes, on one machine or many.

Each process has its own variables and runs the program unchanged; gradients and other reduced values are exchanged
through a `groups.Group`. The processes are listed by a cluster resolver, TF_CONFIG, Slurm or mpirun.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from gradtape._src.base.locks import Lock
from gradtape.distribute import groups
from gradtape.distribute.cluster import (
    ClusterResolver,
    CommunicationOptions,
    SimpleClusterResolver,
    SlurmClusterResolver,
    TFConfigClusterResolver,
)
from gradtape.distribute.extended import StrategyExtended
from gradtape.distribute.strategy import Strategy, local_devices
from gradtape.train.cluster import ClusterSpec

_MPI_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
_JOBS = ("chief", "master", "worker", "evaluator")
_OP = "MultiWorkerMirroredStrategy"


def started_by_mpi() -> bool:
    """Whether mpirun, or srun with MPI, has started this process as one of several.

    >>> started_by_mpi()
    False
    """
    return any(os.environ.get(name, "1") not in ("", "0", "1") for name in _MPI_SIZES)


def started_by_slurm() -> bool:
    """Whether srun has started this process as one of several."""
    count = os.environ.get("SLURM_STEP_NUM_TASKS") or "1"
    return "SLURM_PROCID" in os.environ and count not in ("0", "1")


class Place:
    """The place of a process in a cluster: its index among the training processes, and their addresses.

    Raises:
      ValueError: if the resolver gives no or wrong information.
    """

    def __init__(self, resolver: ClusterResolver) -> None:
        spec, self.type, self.index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
        jobs = spec.as_dict()
        unknown = [job for job in jobs if job not in _JOBS]
        if unknown:
            raise ValueError(
                f"{_OP}: the cluster has jobs {unknown}; expected worker, chief, evaluator. Hint: variables are "
                "kept by each worker, there are no parameter servers."
            )
        if len(jobs.get("chief", [])) + len(jobs.get("master", [])) > 1:
            raise ValueError(f"{_OP}: there must be at most one chief in the cluster; got {jobs}.")
        if jobs:
            self._check(spec)
        self.addresses = [a for job in _JOBS[:3] for a in (spec.job_tasks(job) if job in jobs else [])]
        for address in self.addresses:
            host, _, port = str(address).rpartition(":")
            if not host or not port.isdigit() or not 0 < int(port) < 65536:
                raise ValueError(f"{_OP}: an address must be host:port; got {address!r} in cluster {jobs}.")
        if len(set(self.addresses)) < len(self.addresses):
            raise ValueError(f"{_OP}: each worker needs an address of its own; got {self.addresses}.")
        before = _JOBS[: _JOBS.index(self.type)] if self.type in _JOBS else ()
        self.rank = sum(spec.num_tasks(job) for job in before if job in jobs) + (self.index or 0)
        if self.type == "evaluator" or not self.addresses:
            self.rank, self.addresses = 0, []

    def _check(self, spec: ClusterSpec) -> None:
        if self.type is None or self.index is None:
            raise ValueError(
                f"{_OP}: the cluster {spec.as_dict()} is described, but not which of its tasks this process is; expected a "
                'type and an index, as in TF_CONFIG\'s "task": {"type": "worker", "index": 0}.'
            )
        if self.type not in spec.jobs:
            raise ValueError(f"{_OP}: `task_type` {self.type!r} not found in cluster_spec {spec.as_dict()}.")
        if self.index not in spec.task_indices(self.type):
            raise ValueError(
                f"{_OP}: the `task_id` {self.index} exceeds the maximum id of {self.type}: the cluster has "
                f"{spec.num_tasks(self.type)}."
            )


_groups: dict[tuple, groups.Group] = {}  # a process joins a cluster once
_joining = Lock()


def _joined(key: tuple, module: str, timeout: float, *given: Any) -> groups.Group:
    """The group of a cluster; later strategies use the same one."""
    with _joining:
        group = _groups.get(key)
        if group is None:
            if _groups:
                raise ValueError(
                    f"{_OP}: this process belongs to another cluster already: {next(iter(_groups))}."
                )
            # JAX or MPI is imported only here.
            carrier, watch = importlib.import_module(module).connect(*given, timeout)
            group = _groups[key] = groups.Group(carrier, watch, timeout)
        return group


class WorkersExtended(StrategyExtended):
    """The interface of a strategy with several workers for libraries."""

    _strategy: Any
    experimental_between_graph = True

    @property
    def should_checkpoint(self) -> bool:  # type: ignore[override]
        """Whether this worker writes permanent checkpoints: only the chief does."""
        return self._strategy._group.rank == 0

    @property
    def should_save_summary(self) -> bool:  # type: ignore[override]
        """Whether this worker writes summaries: only the chief does."""
        return self._strategy._group.rank == 0


class MultiWorkerMirroredStrategy(Strategy):
    """Replicas in several processes: each has its own copy of the variables, with the same values.

    Every process runs the same program. Initial values of variables are those of worker 0; gradients and metrics
    are summed over all workers, so that the numbers equal those of one process with the global batch. Without a
    cluster it is a strategy of this process alone.

    Args:
      cluster_resolver: lists the processes, and says which of them this is. By default TF_CONFIG, mpirun, or Slurm.
      communication_options: `CommunicationOptions(timeout_seconds=)` sets how long to wait for others.

    Raises:
      ValueError: if the description of the cluster is wrong.
      ImportError: if JAX, or mpi4py under mpirun, is not installed.
      DeadlineExceededError: if a worker does not start in time.
      UnavailableError: if an address is in use, or a worker goes away. Any exchange may raise the last two.

    >>> import gradtape as tf
    >>> tf.distribute.MultiWorkerMirroredStrategy().num_replicas_in_sync
    1
    """

    def __init__(
        self,
        cluster_resolver: ClusterResolver | None = None,
        communication_options: CommunicationOptions | None = None,
        **kwargs: Any,
    ) -> None:
        options = CommunicationOptions() if communication_options is None else communication_options
        timeout = groups.time_limit(options.timeout_seconds)
        devices = local_devices(_OP, None)
        resolver = TFConfigClusterResolver() if cluster_resolver is None else cluster_resolver
        group: groups.Group | None = None
        described = bool(resolver.cluster_spec())
        if cluster_resolver is None and not described and started_by_mpi():
            group = _joined(("mpi",), "gradtape.distribute.groups_mpi", timeout)
            workers = [f"mpi:{r}" for r in range(1, group.size + 1)]
            resolver = SimpleClusterResolver(
                ClusterSpec({"worker": workers}), task_type="worker", task_id=group.rank
            )
        else:
            if cluster_resolver is None and not described and started_by_slurm():
                resolver = SlurmClusterResolver()
            place = Place(resolver)
            if len(place.addresses) > 1:
                key = (place.rank, *place.addresses)
                module = "gradtape.distribute.groups_jax"
                group = _joined(key, module, timeout, place.rank, place.addresses)
        super().__init__(WorkersExtended(self), devices, group)
        self.cluster_resolver = resolver
