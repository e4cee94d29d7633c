"""`tf.distribute`: strategies that run a program as it is, in one replica.

`strategy` has those that work, `cluster` what belongs to several machines: descriptions, options
without effect, and refusals.
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
    MultiWorkerMirroredStrategy,
    NcclAllReduce,
    ParameterServerStrategy,
    ReductionToOneDevice,
    RunOptions,
    Server,
    TPUStrategy,
)
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


class DistributedValues:
    """Values of several replicas; with one replica values are what they are, and nothing is one of these."""


class DistributedDataset:
    """A dataset for several replicas; with one replica a dataset stays what it is."""


class DistributedIterator:
    """An iterator for several replicas; with one replica an iterator stays what it is."""


def _namespace(name: str, **names: _Any) -> _types.ModuleType:
    full = f"{__name__}.{name}"
    module = _sys.modules[full] = _types.ModuleType(full, f"TensorFlow's namespace `tf.distribute.{name}`.")
    vars(module).update(names)
    return module


cluster_resolver = _namespace(
    "cluster_resolver",
    ClusterResolver=_cluster.ClusterResolver,
    SimpleClusterResolver=_cluster.SimpleClusterResolver,
    TFConfigClusterResolver=_cluster.TFConfigClusterResolver,
    TPUClusterResolver=_cluster.TPUClusterResolver,
)
coordinator = _namespace("coordinator", ClusterCoordinator=_cluster.ClusterCoordinator)
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


def __getattr__(name: str) -> _Any:
    return _absent.lookup_in("distribute", name)
