"""`tf.distribute`: replicas of a program on several devices, and in several processes.

`strategy` has the strategies of one process, `workers` that of several processes, `cluster` resolvers and options.
"""

from __future__ import annotations

import sys as _sys
import types as _types
from typing import Any as _Any

from gradtape._src.public import absent as _absent
from gradtape.distribute import cluster as _cluster
from gradtape.distribute import strategy as _strategy
from gradtape.distribute.cluster import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    InputOptions,
    InputReplicationMode,
    NcclAllReduce,
    ParameterServerStrategy,
    ReductionToOneDevice,
    RunOptions,
    Server,
    TPUStrategy,
)
from gradtape.distribute.inputs import DistributedDataset, DistributedIterator
from gradtape.distribute.strategy import (
    InputContext,
    MirroredStrategy,
    OneDeviceStrategy,
    ReduceOp,
    ReplicaContext,
    Strategy,
    StrategyExtended,
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from gradtape.distribute.values import DistributedValues
from gradtape.distribute.workers import MultiWorkerMirroredStrategy


def _namespace(name: str, **names: _Any) -> _types.ModuleType:
    full = f"{__name__}.{name}"
    module = _sys.modules[full] = _types.ModuleType(full, f"TensorFlow's namespace `tf.distribute.{name}`.")
    vars(module).update(names)
    return module


cluster_resolver = _namespace(
    "cluster_resolver",
    ClusterResolver=_cluster.ClusterResolver,
    SimpleClusterResolver=_cluster.SimpleClusterResolver,
    SlurmClusterResolver=_cluster.SlurmClusterResolver,
    TFConfigClusterResolver=_cluster.TFConfigClusterResolver,
    TPUClusterResolver=_cluster.TPUClusterResolver,
)
coordinator = _namespace(
    "coordinator", ClusterCoordinator=_cluster.ClusterCoordinator, RemoteValue=_cluster.RemoteValue
)
experimental = _namespace(
    "experimental",
    CentralStorageStrategy=_strategy.CentralStorageStrategy,
    CollectiveCommunication=_cluster.CommunicationImplementation,
    CollectiveHints=_cluster.CommunicationOptions,
    CommunicationImplementation=_cluster.CommunicationImplementation,
    CommunicationOptions=_cluster.CommunicationOptions,
    MultiWorkerMirroredStrategy=MultiWorkerMirroredStrategy,
    ParameterServerStrategy=ParameterServerStrategy,
    TPUStrategy=TPUStrategy,
    ValueContext=_strategy.ValueContext,
    coordinator=coordinator,
    partitioners=_namespace(
        "experimental.partitioners",
        FixedShardsPartitioner=_cluster.FixedShardsPartitioner,
        MaxSizePartitioner=_cluster.MaxSizePartitioner,
        MinSizePartitioner=_cluster.MinSizePartitioner,
        Partitioner=_cluster.Partitioner,
    ),
)

__getattr__, __dir__ = _absent.of("distribute")
