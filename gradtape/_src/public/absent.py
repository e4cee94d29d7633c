"""Looking up names that a namespace does not have yet: ops, late imports, and errors for names that do not exist."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

from gradtape._src.public import spaces

# Parts of the package that are imported when they are first used.
LAZY = frozenset(
    (
        "audio", "autodiff", "autograph", "compat", "config", "data", "debug", "debugging", "distribute", "dtypes", "errors",
        "export", "image", "initializers", "io", "keras", "lite", "lookup", "nest", "optimizers", "profiler", "ragged",
        "random", "raw_ops", "saved_model", "sets", "signal", "sparse", "strings", "summary", "sysconfig", "test", "testing",
        "tpu", "train", "types", "xla",
    )
)  # fmt: skip

# Names that live in a module of another name: a module, or `module:name`.
_ELSEWHERE = {
    "install_as_tensorflow": "gradtape_imports.tensorflow_finder:install",
    "uninstall_as_tensorflow": "gradtape_imports.tensorflow_finder:uninstall",
    "CriticalSection": "gradtape._src.control.critical_section:CriticalSection",
    "DeviceSpec": "gradtape._src.base.device_spec:DeviceSpec",
    "SparseTensor": "gradtape.sparse:SparseTensor",
    "SparseTensorSpec": "gradtape.sparse.tensor:SparseTensorSpec",
    "edit_distance": "gradtape.sparse.sequences:edit_distance",
    "nn.ctc_beam_search_decoder": "gradtape.sparse.sequences:ctc_beam_search_decoder",
    "nn.ctc_greedy_decoder": "gradtape.sparse.sequences:ctc_greedy_decoder",
    "nn.embedding_lookup_sparse": "gradtape.sparse.embedding:embedding_lookup_sparse",
    "nn.safe_embedding_lookup_sparse": "gradtape.sparse.embedding:safe_embedding_lookup_sparse",
    "experimental.BatchableExtensionType": "gradtape.extension_type:BatchableExtensionType",
    "OptionalSpec": "gradtape.data.iterator:OptionalSpec",
    "experimental.Optional": "gradtape.data.iterator:Optional",
    "experimental.ExtensionType": "gradtape.extension_type:ExtensionType",
    "experimental.ExtensionTypeBatchEncoder": "gradtape.extension_type.specs:ExtensionTypeBatchEncoder",
    "experimental.ExtensionTypeSpec": "gradtape.extension_type.specs:ExtensionTypeSpec",
    "experimental.extension_type": "gradtape.extension_type",
    "as_string": "gradtape.strings:as_string",
    "experimental.numpy": "gradtape.tnp",
    "RaggedTensor": "gradtape.ragged.tensor:RaggedTensor",
    "RaggedTensorSpec": "gradtape.ragged.spec:RaggedTensorSpec",
    "experimental.DynamicRaggedShape": "gradtape.ragged.shapes:DynamicRaggedShape",
    "experimental.RowPartition": "gradtape.ragged.partitions:RowPartition",
    "get_logger": "gradtape._src.control.printing:get_logger",
    "losses": "gradtape.keras.losses",
    "metrics": "gradtape.keras.metrics",
    "linalg.experimental": "gradtape.linear_operator.experimental",
    "make_ndarray": "gradtape.io.tensor_proto:make_ndarray",
    "make_tensor_proto": "gradtape.io.tensor_proto:make_tensor_proto",
}

# Names of the engine that few programs use, by the module that they are imported from on first use.
_LATE = {
    "gradtape._src.control.assertions": "Assert assert_equal assert_greater assert_less assert_rank",
    "gradtape._src.control.printing": "print_",
    "gradtape._src.control.tensor_array": "TensorArray TensorArraySpec",
    "gradtape._src.engines.placement": "device",
    "gradtape._src.functions.control_flow": (
        "case cond foldl foldr map_fn numpy_function py_function scan switch_case vectorized_map while_loop"
    ),
    "gradtape._src.functions.function": "function",
    "gradtape._src.graph.static": "get_static_value",
    "gradtape._src.state.initializers": (
        "constant_initializer ones_initializer random_normal_initializer random_uniform_initializer zeros_initializer"
    ),
    "gradtape._src.tapes.custom_gradient": "custom_gradient grad_pass_through recompute_grad",
    "gradtape._src.tapes.primitive": "primitive",
    "gradtape._src.tapes.registry": "RegisterGradient no_gradient",
    "gradtape._src.tapes.symbolic": "gradients hessians",
}
_ELSEWHERE |= {
    name.removesuffix("_"): f"{module}:{name}" for module, names in _LATE.items() for name in names.split()
}

_DISPATCH = (
    "dispatch_for_api dispatch_for_binary_elementwise_apis dispatch_for_binary_elementwise_assert_apis "
    "dispatch_for_unary_elementwise_apis unregister_dispatch_for"
).split()
_ELSEWHERE |= {f"experimental.{k}": f"gradtape.extension_type.dispatch:{k}" for k in _DISPATCH}

_V1_SPARSE = {
    "add": "sparse_add", "concat": "sparse_concat", "split": "sparse_split", "reduce_sum": "sparse_reduce_sum",
    "reduce_max": "sparse_reduce_max", "reduce_sum_sparse": "sparse_reduce_sum_sparse",
    "reduce_max_sparse": "sparse_reduce_max_sparse", "merge": "sparse_merge", "placeholder": "sparse_placeholder",
    "to_dense_at": "sparse_to_dense", "matmul": "sparse_matmul",
    "convert_to_tensor_or_sparse_tensor": "convert_to_tensor_or_sparse_tensor",
}  # fmt: skip
_ELSEWHERE |= {f"compat.v1.{name}": f"gradtape.compat.v1.v1_sparse:{at}" for at, name in _V1_SPARSE.items()}
_ELSEWHERE["compat.v1.sparse"] = "gradtape.compat.v1.v1_sparse"

_OPERATORS = (
    " Adjoint BlockDiag BlockLowerTriangular Circulant Circulant2D Circulant3D Composition Diag FullMatrix Householder "
    "Identity Inversion Kronecker LowRankUpdate LowerTriangular Permutation ScaledIdentity Toeplitz Tridiag Zeros"
).split(" ")
_ELSEWHERE |= {f"linalg.LinearOperator{k}": f"gradtape.linear_operator:LinearOperator{k}" for k in _OPERATORS}

_NO_ESTIMATORS = (
    "estimators were taken out of TensorFlow itself (2.16). Hint: a training loop with tf.GradientTape."
)
_V1_ONLY = "is a name of TensorFlow 1. Hint: {}."

# Namespaces that are empty except for names that packages use while they are imported.
_UNDER_THE_ALIAS = {
    "__git_version__": "gradtape.version:GIT_VERSION",
    "__compiler_version__": "gradtape.version:COMPILER_VERSION",
    "experimental.dtensor": "gradtape_imports.code.dtensor",
    "Operation": "gradtape._src.graph.operations:Operation",
    "Graph": "gradtape._src.graph.operations:FuncGraph",
}

# Names of TensorFlow 1 that Keras 2 has, where that is tf.keras.
_WITH_KERAS2 = {"compat.v1.layers": "tf_keras.api._v1.keras.__internal__.legacy.layers"}

_WORDS = {
    "string_to_hash_bucket": _V1_ONLY.format("tf.strings.to_hash_bucket"),
    "feature_column": (
        "feature columns were replaced by preprocessing layers in TensorFlow itself. Hint: NumPy or pandas, then "
        "tf.one_hot and tf.gather."
    ),
    "queue": "gradtape has no queues. Hint: queue.Queue of Python, or tf.data.",
    "estimator": _NO_ESTIMATORS,
    "experimental.dtensor": "gradtape has no DTensor. Hint: keras.distribution shards models, tf.distribute shards batches.",
    "Session": "gradtape has no sessions: operations run as they are called, or under tf.function.",
    "placeholder": "gradtape has no placeholders. Hint: arguments of a tf.function take their place.",
    "Graph": "gradtape has no explicit graphs. Hint: @tf.function makes one of a Python function.",
    "Operation": "gradtape has no graph operations. Hint: @tf.function makes a graph of a Python function.",
    "enable_eager_execution": _V1_ONLY.format(
        "leave it out: operations run as they are called; or use tf.compat.v1"
    ),
    "enable_v2_behavior": _V1_ONLY.format("leave it out: this is the only behaviour; or use tf.compat.v1"),
    "to_float": _V1_ONLY.format("tf.cast(x, tf.float32)"),
    "to_int32": _V1_ONLY.format("tf.cast(x, tf.int32)"),
    "to_int64": _V1_ONLY.format("tf.cast(x, tf.int64)"),
    "random_uniform": _V1_ONLY.format("tf.random.uniform"),
    "random_normal": _V1_ONLY.format("tf.random.normal"),
    "random_shuffle": _V1_ONLY.format("tf.random.shuffle"),
    "set_random_seed": _V1_ONLY.format("tf.random.set_seed"),
    "batch_gather": _V1_ONLY.format("tf.gather(x, indices, batch_dims=...)"),
    "log": _V1_ONLY.format("tf.math.log"),
    "ceil": _V1_ONLY.format("tf.math.ceil"),
    "is_nan": _V1_ONLY.format("tf.math.is_nan"),
    "div": _V1_ONLY.format("tf.divide, or tf.math.floordiv"),
    "mod": _V1_ONLY.format("tf.math.mod"),
    "matrix_inverse": _V1_ONLY.format("tf.linalg.inv"),
    "get_variable": _V1_ONLY.format("tf.Variable"),
    "variable_scope": _V1_ONLY.format("tf.name_scope"),
    "global_variables_initializer": _V1_ONLY.format("variables are initialised when they are created"),
    "app": _V1_ONLY.format("absl.app, or plain Python"),
    "flags": _V1_ONLY.format("argparse, or absl.flags"),
    "gfile": _V1_ONLY.format("tf.io.gfile"),
    "logging": _V1_ONLY.format("tf.get_logger(), or tf.compat.v1.logging"),
    "layers": _V1_ONLY.format("tf.Variable and tf.matmul, or layers of Keras"),
    "compiler": "this is an internal module of TensorFlow.",
    "contrib": "contrib was taken out of TensorFlow itself (2.0).",
    "train.MomentumOptimizer": _V1_ONLY.format("tf.optimizers.SGD(momentum=...); tf.compat.v1.train has it"),
    "train.AdamOptimizer": _V1_ONLY.format("tf.optimizers.Adam; tf.compat.v1.train has it"),
    "train.GradientDescentOptimizer": _V1_ONLY.format("tf.optimizers.SGD; tf.compat.v1.train has it"),
    "train.RMSPropOptimizer": _V1_ONLY.format("tf.optimizers.RMSprop; tf.compat.v1.train has it"),
    "train.AdagradOptimizer": _V1_ONLY.format("tf.optimizers.Adagrad; tf.compat.v1.train has it"),
    "train.get_or_create_global_step": _V1_ONLY.format("tf.Variable(0); tf.compat.v1.train has it"),
    "train.get_global_step": _V1_ONLY.format("tf.Variable(0); tf.compat.v1.train has it"),
    "train.Saver": _V1_ONLY.format("tf.train.Checkpoint"),
    "train.lastest_checkpoint": "did you mean latest_checkpoint?",
    "train.CheckpointView": "this is not part of gradtape. Hint: tf.train.list_variables, tf.train.load_checkpoint.",
    "train.TrackableView": "this is not part of gradtape. Hint: tf.Module.submodules, tf.Module.variables.",
    "train.ClusterDef": "gradtape has no protocol buffers of clusters. Hint: tf.train.ClusterSpec.",
    "train.ServerDef": "gradtape has no servers.",
    "train.JobDef": "gradtape has no protocol buffers of clusters. Hint: tf.train.ClusterSpec.",
    "saved_model.Asset": "files are not copied into stored modules. Hint: store the path as an attribute.",
    "compat.v1.estimator": _NO_ESTIMATORS,
    "compat.v1.feature_column": "feature columns were replaced by preprocessing layers. Hint: NumPy or pandas.",
    "compat.v1.layers": "layers of TensorFlow 1 need its variable store. Hint: tf.Variable, or layers of Keras.",
    "compat.v1.summary": "summaries of TensorFlow 1 belong to graphs. Hint: tf.summary.",
    "compat.v1.metrics": "metrics of TensorFlow 1 belong to graphs.",
    "compat.v1.image": "resizing in TensorFlow 1 has other pixel centres. Hint: tf.image.",
    "compat.v1.app": "this is a module of absl. Hint: absl.app, or plain Python.",
    "compat.v1.flags": "these are flags of absl. Hint: absl.flags, or argparse.",
    "compat.v1.Graph": "gradtape has no explicit graphs. Hint: @tf.function makes one of a Python function.",
    "compat.v1.train.Saver": "it stores the variables of a graph. Hint: tf.train.Checkpoint.",
    "compat.v1.train.Scaffold": "it belongs to sessions, which gradtape does not have.",
    "compat.v1.train.SessionRunHook": "it belongs to sessions, which gradtape does not have.",
    "compat.v1.train.MonitoredTrainingSession": "gradtape has no sessions. Hint: a loop, and tf.train.Checkpoint.",
}


def lookup(name: str) -> Any:
    """`tf.<name>`, imported on first use; an AttributeError with a hint if there is no such name."""
    if name in LAZY:
        return importlib.import_module(f"gradtape.{name}")
    if name in ("__internal__", "__operators__"):
        return importlib.import_module("gradtape_imports.internals").module([name])
    if name == "__all__":  # from gradtape import *
        return [n for n in names() if n[0] != "_" and n not in LAZY]
    return lookup_in("", name)


def names() -> list[str]:
    """The names of the package, including those that are imported on first use."""
    late = (name for name in _ELSEWHERE if "." not in name)
    all_names = {*LAZY, *late, *spaces.names(""), *spaces.inner(""), "version"}
    # Without files that are not namespaces (gradtape.backend, gradtape.tnp), which importing adds.
    attributes = (n for n, v in vars(sys.modules["gradtape"]).items() if not isinstance(v, types.ModuleType))
    return sorted(all_names.union(attributes))


def lookup_in(space: str, name: str) -> Any:
    """`tf.<space>.<name>`, like `lookup` (`space` is `math`, `train`, `compat.v1`, ...)."""
    full = f"{space}.{name}" if space else name
    if name == "__all__" and (names := spaces.names(space)):
        return names
    if spaces.has(full):
        return spaces.put(space, name, of)
    if full in _ELSEWHERE:
        value = _at(_ELSEWHERE[full])
        if not space and _ELSEWHERE[full].startswith(
            "gradtape._src."
        ):  # it never changes, so later lookups find it
            setattr(sys.modules["gradtape"], name, value)
        return value
    if full in _UNDER_THE_ALIAS and "tensorflow" in sys.modules:
        return _at(_UNDER_THE_ALIAS[full])
    if full in _WITH_KERAS2 and _at("gradtape_imports.tensorflow_finder:wants_keras2")():
        return _at(_WITH_KERAS2[full])
    raise missing(space, name)


def missing(space: str, name: str, words: str = "") -> AttributeError:
    """The error for a name that does not exist: what to use instead, or similar names."""
    full = f"{space}.{name}" if space else name
    words = words or _WORDS.get(full) or _WORDS.get(space) or ""
    where = f"gradtape.{space}" if space else "gradtape"
    text = f"module {where!r} has no attribute {name!r}"
    if words or name.startswith("__"):
        return AttributeError(f"{text}: {words}" if words else text)
    return _at("gradtape._src.public.close:MissingName")(text, functools.partial(_near, space, name))


def _near(space: str, name: str) -> list[str]:
    in_space = names_in(space) if space else names()
    everywhere = (*spaces.PUBLIC.names(), *_ELSEWHERE)
    return _at("gradtape._src.public.close:near")(space, name, in_space, everywhere)


def of(space: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for the module of the namespace `space`."""
    return functools.partial(lookup_in, space), functools.partial(names_in, space)


# Modules in namespaces that are namespaces themselves; other modules are where code is written.
_INNER = frozenset(
    (
        "experimental", "cluster_resolver", "coordinator", "gfile", "numpy", "partitioners", "random", "schedules",
        "special",
    )
)  # fmt: skip


def names_in(space: str) -> list[str]:
    """`dir` of a namespace: public names, not what its file imports."""
    module = sys.modules.get(f"gradtape.{space}") or _at(_ELSEWHERE.get(space, f"gradtape.{space}"))
    attributes = vars(module)
    public = {*spaces.names(space), *spaces.inner(space)} | {
        full.rpartition(".")[2] for full in _ELSEWHERE if full.rpartition(".")[0] == space
    }
    public |= {n for n in _INNER if isinstance(attributes.get(n), (types.ModuleType, types.SimpleNamespace))}
    if "__all__" in attributes:
        return sorted(public.union(attributes["__all__"]))
    return sorted(
        public.union(n for n, v in attributes.items() if n[0] != "_" and _is_own(module.__name__, n, v))
    )


def names_beside(attributes: dict[str, Any], space: str = "") -> list[str]:
    """`dir` of a module of `tf.compat.v1`: its own names, and those of the namespace that it extends."""
    libraries = ("gradtape.", "collections", "functools", "typing")
    own = set()
    for name, value in attributes.items():
        home = getattr(value, "__module__", None) or ""
        imported = home != attributes["__name__"] and home.startswith(libraries)
        if not (name[0] == "_" or name == "annotations" or isinstance(value, types.ModuleType) or imported):
            own.add(name)
    return sorted({*own, *(names_in(space) if space else ())})


def _is_own(module: str, name: str, value: Any) -> bool:
    """Whether `value` is defined in the module, or in a file of the package, and not imported."""
    if isinstance(value, types.ModuleType) or name == "annotations":
        return False
    home = getattr(value, "__module__", None) or module
    return f"{home}.".startswith((f"{module}.", f"gradtape.{module.rpartition('.')[2]}."))


def _at(place: str) -> Any:
    """Imports `module`, or the attribute of `module:name`."""
    module, _, attribute = place.partition(":")
    value = importlib.import_module(module)
    return getattr(value, attribute) if attribute else value


def has_words(full: str) -> bool:
    """Whether there is a message about a name that does not exist."""
    return full in _WORDS


def is_known(space: str, name: str) -> bool:
    """Whether a missing name is in another module, or has a message about it."""
    return f"{space}.{name}" in _ELSEWHERE or f"{space}.{name}" in _WORDS
