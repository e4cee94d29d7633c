"""TensorFlow names that gradtape has without TensorFlow's effect: accepted without effect, or refused with a message.

Whether a name exists can be looked up in gradtape itself; this list is written by hand. It is used by the doctor
and docs/coverage.md.
"""

from __future__ import annotations

# Accepted without TensorFlow's effect, so that programs run.
STUBS = {
    "tf.device": "functions run on that device (XLA), other operations on the CPU",
    "tf.config.experimental_connect_to_cluster": "does nothing",
    "tf.config.set_soft_device_placement": "stored; functions run on their device, other operations on the CPU",
    "tf.config.optimizer.set_jit": "stored; programs are compiled natively in any case",
    "tf.distribute.HierarchicalCopyAllReduce": "no effect: replicas of a process share their memory",
    "tf.distribute.ReductionToOneDevice": "no effect: replicas of a process share their memory",
    "tf.distribute.experimental.CollectiveCommunication": "no effect: JAX or MPI chooses",
    "tf.profiler.experimental.start": "profiles nothing, and the log says so",
    "tf.profiler.experimental.stop": "does nothing",
    "tf.profiler.experimental.ProfilerOptions": "accepted and ignored",
    "tf.profiler.experimental.Trace": "no effect",
    "tf.saved_model.LoadOptions": "accepted and ignored",
    "tf.saved_model.SaveOptions": "accepted and ignored",
    "tf.summary.graph": "writes nothing, and the log says so",
    "tf.summary.trace_export": "writes nothing, and the log says so",
    "tf.summary.trace_on": "traces nothing, and the log says so",
    "tf.compat.v1.ConfigProto": "accepted and ignored",
    "tf.compat.v1.InteractiveSession": "can be created; `run` raises an error",
    "tf.compat.v1.Session": "can be created; `run` raises an error",
    "tf.compat.v1.enable_eager_execution": "does nothing: this is the only behaviour",
    "tf.compat.v1.enable_v2_behavior": "does nothing: this is the only behaviour",
    "tf.compat.v1.get_collection": "empty, as in TensorFlow's eager mode",
    "tf.compat.v1.trainable_variables": "empty, as in TensorFlow's eager mode",
    "tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES": "a key; collections are empty, as in TensorFlow's eager mode",
    "tf.compat.v1.GraphKeys.UPDATE_OPS": "a key; collections are empty, as in TensorFlow's eager mode",
    "tf.compat.v1.global_variables_initializer": "does nothing: variables are initialised when they are created",
    "tf.compat.v1.variables_initializer": "does nothing: variables are initialised when they are created",
}

# Present only to raise an error that says what to use instead.
REFUSALS = {
    "tf.distribute.ParameterServerStrategy": "there are no parameter servers",
    "tf.distribute.Server": "there are no parameter servers",
    "tf.distribute.coordinator.ClusterCoordinator": "there are no parameter servers",
    "tf.compat.v1.placeholder": "raises RuntimeError, as in TensorFlow's eager mode",
    "tf.compat.v1.get_default_graph": "returns an object that knows names only: there are no graphs of TensorFlow 1",
    "tf.compat.v1.data.make_initializable_iterator": "raises RuntimeError, as in TensorFlow's eager mode",
}
