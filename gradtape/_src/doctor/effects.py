"""TensorFlow names that gradtape has without TensorFlow's effect: accepted without effect, or refused with a message.

Whether a name exists can be looked up in gradtape itself; this list is written by hand. It is used by the doctor
and docs/coverage.md.
"""

from __future__ import annotations

# Accepted without TensorFlow's effect, so that programs run.
STUBS = {
    "tf.device": "functions run on that device (XLA), other operations on the CPU",
    "tf.config.experimental_connect_to_cluster": "does nothing",
    "tf.config.set_soft_device_placement": "remembered; functions run on their device, other operations on the CPU",
    "tf.config.optimizer.set_jit": "remembered; programs are compiled natively in any case",
    "tf.distribute.HierarchicalCopyAllReduce": "without effect: replicas of a process share their memory",
    "tf.distribute.ReductionToOneDevice": "without effect: replicas of a process share their memory",
    "tf.distribute.experimental.CollectiveCommunication": "without effect: JAX or MPI chooses",
    "tf.profiler.experimental.start": "profiles nothing, and the log says so",
    "tf.profiler.experimental.stop": "nothing to stop",
    "tf.profiler.experimental.ProfilerOptions": "kept",
    "tf.profiler.experimental.Trace": "without effect",
    "tf.saved_model.LoadOptions": "kept",
    "tf.saved_model.SaveOptions": "kept",
    "tf.summary.graph": "writes nothing, and the log says so",
    "tf.summary.trace_export": "writes nothing, and the log says so",
    "tf.summary.trace_on": "traces nothing, and the log says so",
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

# Present only to raise an error that says what to use instead.
REFUSALS = {
    "tf.distribute.ParameterServerStrategy": "there are no parameter servers",
    "tf.distribute.Server": "there are no parameter servers",
    "tf.distribute.coordinator.ClusterCoordinator": "there are no parameter servers",
    "tf.compat.v1.placeholder": "RuntimeError, as in eager mode there",
    "tf.compat.v1.get_default_graph": "no graphs of TensorFlow 1",
    "tf.compat.v1.data.make_initializable_iterator": "RuntimeError, as in eager mode there",
}
