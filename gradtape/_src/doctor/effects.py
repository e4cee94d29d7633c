"""Names of TensorFlow that gradtape has without TensorFlow's effect: accepted, or refused with a word.

Whether a name is there can be asked of gradtape itself; this can only be said by a reader. The doctor
tells it, and docs/coverage.md.
"""

from __future__ import annotations

# Accepted, so that programs run, without TensorFlow's effect.
STUBS = {
    "tf.device": "checks the name; everything runs on the CPU",
    "tf.config.experimental_connect_to_cluster": "does nothing",
    "tf.config.set_soft_device_placement": "remembered; operations run on the CPU",
    "tf.config.optimizer.set_jit": "remembered; programs are compiled natively in any case",
    "tf.debugging.set_log_device_placement": "remembered; there is one device",
    "tf.distribute.MirroredStrategy": "one replica",
    "tf.distribute.OneDeviceStrategy": "one replica",
    "tf.distribute.MultiWorkerMirroredStrategy": "one replica; refused if TF_CONFIG describes several machines",
    "tf.distribute.experimental.CentralStorageStrategy": "one replica",
    "tf.distribute.Strategy": "one replica",
    "tf.distribute.DistributedDataset": "a name for annotations: datasets stay what they are",
    "tf.distribute.HierarchicalCopyAllReduce": "without effect on one replica",
    "tf.distribute.ReductionToOneDevice": "without effect on one replica",
    "tf.distribute.experimental.CollectiveCommunication": "without effect on one replica",
    "tf.distribute.experimental.CommunicationOptions": "without effect on one replica",
    "tf.profiler.experimental.start": "profiles nothing, and the log says so",
    "tf.profiler.experimental.stop": "nothing to stop",
    "tf.profiler.experimental.ProfilerOptions": "kept",
    "tf.profiler.experimental.Trace": "without effect",
    "tf.saved_model.LoadOptions": "kept",
    "tf.saved_model.SaveOptions": "kept",
    "tf.summary.graph": "writes nothing, and the log says so",
    "tf.summary.trace_export": "writes nothing, and the log says so",
    "tf.summary.trace_on": "traces nothing, and the log says so",
    "tf.experimental.numpy.experimental_enable_numpy_behavior": "methods of tensors, but operators convert no types",
    "tf.compat.v1.ConfigProto": "kept",
    "tf.compat.v1.InteractiveSession": "can be made; `run` refuses",
    "tf.compat.v1.Session": "can be made; `run` refuses",
    "tf.compat.v1.enable_eager_execution": "there is nothing else",
    "tf.compat.v1.enable_v2_behavior": "there is nothing else",
    "tf.compat.v1.get_collection": "empty, as in eager mode there",
    "tf.compat.v1.trainable_variables": "empty, as in eager mode there",
    "tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES": "a name; collections are empty, as in eager mode there",
    "tf.compat.v1.GraphKeys.UPDATE_OPS": "a name; collections are empty, as in eager mode there",
    "tf.compat.v1.global_variables_initializer": "variables have their values from the start",
    "tf.compat.v1.variables_initializer": "variables have their values from the start",
}

# There, but only to say what is wrong or what to use instead.
REFUSALS = {
    "tf.tpu.experimental.initialize_tpu_system": "ValueError, as there without a TPU",
    "tf.distribute.cluster_resolver.TPUClusterResolver": "ValueError, as there without a TPU",
    "tf.distribute.TPUStrategy": "ValueError, as there without a TPU",
    "tf.distribute.experimental.TPUStrategy": "ValueError, as there without a TPU",
    "tf.distribute.ParameterServerStrategy": "one process",
    "tf.distribute.Server": "one process",
    "tf.distribute.coordinator.ClusterCoordinator": "one process",
    "tf.compat.v1.placeholder": "RuntimeError, as in eager mode there",
    "tf.compat.v1.get_default_graph": "no graphs of TensorFlow 1",
    "tf.compat.v1.data.make_initializable_iterator": "RuntimeError, as in eager mode there",
}
