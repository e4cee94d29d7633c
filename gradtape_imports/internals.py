"""The supported part of TensorFlow's internal modules: `tensorflow.python`, `tensorflow.compiler`, `tf.__internal__`.

Packages use them, and so does Keras. Only names that are known to be used are here, and nearly all of them are
public names under another name: a row says where a module looks names up (`in`: namespaces of gradtape, in order),
and which of its names are called differently there (`name=path`). Code that had to be written is in `code/`, one
file per module. A module or name that is not listed is missing, and the error says so.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

# module: where its names are. `in a,b` looks into tf.a and tf.b, `tf` is the package itself; `x=a.b` is tf.a.b;
# `code a` looks into the file of that name in `gradtape_imports/code`; if there is nothing else, the file is the module.
MODULES = {
    "__internal__": "code keras_deps; EagerTensor=Tensor SymbolicTensor=Tensor get_name_scope=get_current_name_scope "
    "CompositeTensor=_src.tensors.composite.CompositeTensor",
    "__internal__.autograph": "code conversion",
    "__internal__.decorator": "code tf_decorator",
    "__internal__.dispatch": "code dispatch",
    "__internal__.distribute": "code merging; in distribute",
    "__internal__.distribute.interim": "code merging",
    "__internal__.eager_context": "code context",
    "__internal__.feature_column": "code feature_column",
    "__internal__.function": "Function=_src.functions.function.Function",
    "__internal__.mixed_precision": "code keras_deps",
    "__internal__.nest": "code nest",
    "__internal__.ops": "code weights",
    "__internal__.saved_model.load": "code revived_types",
    "__internal__.smart_cond": "code smart_cond",
    "__internal__.tf2": "code tf2",
    "__internal__.tracking": "code tracking",
    "__internal__.train": "code mixed_precision",
    "__internal__.types": "code core_types",
    "__operators__": "code operators; ragged_getitem=RaggedTensor.__getitem__",
    "compiler.tf2xla.python.xla": "code xla",
    "core.framework.attr_value_pb2": "",
    "core.protobuf.cluster_pb2": "in train",
    "core.protobuf.config_pb2": "in compat.v1",
    "core.protobuf.struct_pb2": "",
    "python.autograph.converters.break_statements": "",
    "python.autograph.converters.continue_statements": "",
    "python.autograph.converters.return_statements": "",
    "python.autograph.core.converter": "",
    "python.autograph.pyct.anno": "",
    "python.autograph.pyct.common_transformers.anf": "",
    "python.autograph.pyct.inspect_utils": "",
    "python.autograph.pyct.loader": "",
    "python.autograph.pyct.naming": "",
    "python.autograph.pyct.parser": "",
    "python.autograph.pyct.qual_names": "",
    "python.autograph.pyct.static_analysis.activity": "",
    "python.autograph.pyct.templates": "",
    "python.autograph.pyct.transformer": "code pyct",
    "python.client.device_lib": "code device_lib",
    "python.data.ops.dataset_ops": "in data; DatasetV2=data.Dataset",
    "python.data.ops.from_generator_op": "_GeneratorDataset=data.generators._GeneratorDataset",
    "python.data.ops.from_sparse_tensor_slices_op": "_SparseTensorSliceDataset=data.sources._TensorSliceDataset",
    "python.data.ops.from_tensor_slices_op": "_TensorSliceDataset=data.sources._TensorSliceDataset",
    "python.data.ops.from_tensors_op": "_TensorDataset=data.sources._TensorDataset",
    "python.data.ops.iterator_ops": "OwnedIterator=data.Iterator IteratorBase=data.Iterator",
    "python.data.ops.range_op": "_RangeDataset=data.sources._RangeDataset",
    "python.data.util.nest": "code data_nest",
    "python.data.util.structure": "in _src.base.type_spec",
    "python.distribute.distribute_lib": "in distribute",
    "python.distribute.distribute_utils": "code merging",
    "python.distribute.input_lib": "in distribute",
    "python.distribute.input_ops": "",
    "python.eager.backprop": "in tf",
    "python.eager.context": "code context",
    "python.eager.def_function": "in tf; Function=types.experimental.GenericFunction",
    "python.eager.forwardprop": "in autodiff",
    "python.eager.monitoring": "code monitoring",
    "python.framework.composite_tensor": "in _src.tensors.composite",
    "python.framework.config": "in config,config.experimental",
    "python.framework.constant_op": "in tf",
    "python.framework.dtypes": "in dtypes,tf",
    "python.framework.errors": "in errors",
    "python.framework.errors_impl": "in errors",
    "python.framework.indexed_slices": "in tf",
    "python.framework.ops": "in tf,compat.v1; EagerTensor=Tensor name_scope_v1=name_scope",
    "python.framework.random_seed": "in random; set_seed=random.set_seed set_random_seed=random.set_seed",
    "python.framework.sparse_tensor": "in tf,sparse",
    "python.framework.tensor": "in tf",
    "python.framework.tensor_shape": "code tensor_util; in tf,compat.v1; dimension_value=compat.dimension_value",
    "python.framework.tensor_spec": "code bounded_spec; in tf,_src.base.shape",
    "python.framework.tensor_util": "code tensor_util; in tf; constant_value=get_static_value is_tf_type=is_tensor",
    "python.framework.test_util": "code test_util; in test; TensorFlowTestCase=test.TestCase",
    "python.framework.type_spec": "in tf,_src.base.type_spec",
    "python.framework.type_spec_registry": "code type_specs",
    "python.keras": "in keras",
    "python.keras.backend": "in keras.backend",
    "python.keras.callbacks": "in keras.callbacks",
    "python.keras.engine.data_adapter": "code data_adapter",
    "python.keras.layers": "in keras.layers",
    "python.keras.models": "in keras.models",
    "python.keras.optimizers": "in keras.optimizers",
    "python.keras.utils": "in keras.utils",
    "python.keras.utils.np_utils": "in keras.utils",
    "python.layers.utils": "code smart_cond",
    "python.lib.io.tf_record": "in io; tf_record_iterator=compat.v1.io.tf_record_iterator",
    "python.module.module": "in tf",
    "python.ops.array_ops": "code random_ops; in tf; array_ops_stack=stack",
    "python.ops.check_ops": "in debugging",
    "python.ops.clip_ops": "in tf",
    "python.ops.control_flow_case": "code control_flow; in tf",
    "python.ops.control_flow_ops": "in tf,compat.v1; code control_flow",
    "python.ops.control_flow_util": "code control_flow",
    "python.ops.custom_gradient": "in tf",
    "python.ops.distributions.util": "",
    "python.ops.gen_resource_variable_ops": "",
    "python.ops.gradients": "in tf; gradients_v2=gradients",
    "python.ops.gradients_impl": "in tf",
    "python.ops.image_ops": "in image",
    "python.ops.init_ops": "in compat.v1,initializers,tf",
    "python.ops.init_ops_v2": "in initializers,tf",
    "python.ops.linalg.linear_operator": "in linalg,linear_operator.spec",
    "python.ops.linalg.linear_operator_addition": "code operator_addition",
    "python.ops.linalg_ops": "in linalg,tf",
    "python.ops.list_ops": "",
    "python.ops.logging_ops": "in tf",
    "python.ops.lookup_ops": "in lookup; LookupInterface=lookup.static._Table",
    "python.ops.math_ops": "in tf,math",
    "python.ops.nn": "in nn",
    "python.ops.nn_ops": "in nn",
    "python.ops.numpy_ops.np_config": (
        "enable_numpy_behavior=experimental.numpy.experimental_enable_numpy_behavior"
    ),
    "python.ops.parallel_for": "in tf",
    "python.ops.parallel_for.control_flow_ops": "in tf; code control_flow",
    "python.ops.ragged.ragged_map_ops": "in tf",
    "python.ops.ragged.ragged_util": "",
    "python.ops.random_ops": "code random_ops; in random; random_uniform=random.uniform random_normal=random.normal",
    "python.ops.resource_variable_ops": "in _src.state.variable_spec,_src.state.variable; "
    "BaseResourceVariable=_src.state.variable.ResourceVariable",
    "python.ops.script_ops": "in tf",
    "python.ops.sparse_ops": "in sparse",
    "python.ops.special_math_ops": "in math,tf",
    "python.ops.state_ops": "in compat.v1",
    "python.ops.stateless_random_ops": "in random",
    "python.ops.string_ops": "in strings",
    "python.ops.tensor_array_ops": "in tf",
    "python.ops.tensor_getitem_override": "_slice_helper_var=Variable.__getitem__",
    "python.ops.variable_scope": "in compat.v1",
    "python.ops.variables": "in tf; VariableV1=Variable",
    "python.ops.while_loop": "in tf",
    "python.platform.gfile": "in io.gfile",
    "python.platform.test": "in test",
    "python.platform.tf_logging": "in compat.v1.logging",
    "python.pywrap_tfe": "code pywrap_tfe",
    "python.saved_model": "in saved_model",
    "python.saved_model.model_utils.mode_keys": "code mode_keys",
    "python.saved_model.nested_structure_coder": "",
    "python.summary": "in summary",
    "python.tf2": "code tf2",
    "python.trackable.base": "code tracking",
    "python.trackable.data_structures": "code tracking",
    "python.trackable.resource": "code tracking",
    "python.training.moving_averages": "in train",
    "python.training.tracking": "in train",
    "python.types.core": "code core_types; in types.experimental",
    "python.util.compat": "in compat",
    "python.util.deprecation": "code deprecation",
    "python.util.dispatch": "code dispatch",
    "python.util.nest": "code nest",
    "python.util.object_identity": "code object_identity",
    "python.util.tf_contextlib": "code tf_contextlib",
    "python.util.tf_decorator": "code tf_decorator",
    "python.util.tf_export": "code tf_export",
    "python.util.tf_inspect": "code tf_inspect",
    "python.util.variable_utils": "code variable_utils",
    "tools.docs.doc_controls": "code doc_controls",
}  # fmt: skip

_made: dict[str, ModuleType] = {}
_PACKAGES = {name[:i] for name in MODULES for i in range(len(name)) if name[i] == "."}


def module(parts: list[str]) -> ModuleType:
    """`tensorflow.<parts>`, created on first use.

    Raises:
      AttributeError: if there is none of that name.
    """
    path = ".".join(parts)
    if path in _made:
        return _made[path]
    row = MODULES.get(path)
    if row is None and path not in _PACKAGES:
        raise AttributeError(path)
    if row is not None and row.startswith("code ") and ";" not in row:
        return _code(row)
    full = f"tensorflow.{path}"
    new = _made[path] = ModuleType(full, f"What there is of {full}: see `gradtape_imports/internals.py`.")
    new.__path__ = []
    vars(new)["__getattr__"] = _Lookup(path, row or "", vars(new))
    return new


def has(path: str) -> bool:
    """Whether there is a module, or a name of one: `python.util.nest.flatten`."""
    parts = path.split(".")
    try:
        value: Any = module(parts[:1])
        for part in parts[1:]:
            value = getattr(value, part)
    except AttributeError:
        return False
    return True


class _Lookup:
    """The `__getattr__` of a module: finds a name according to the row, and stores it."""

    def __init__(self, path: str, row: str, names: dict[str, Any]) -> None:
        self._path = path
        self._names = names
        self._spaces: list[str] = []
        self._other: dict[str, str] = {}
        self._code = ""
        for part in filter(None, row.split("; ")):
            if part.startswith("code "):
                self._code = part
            elif part.startswith("in "):
                self._spaces = ["" if space == "tf" else space for space in part[3:].split(",")]
            else:
                self._other = dict(pair.split("=") for pair in part.split())

    def __call__(self, name: str) -> Any:
        value = None if name.startswith("__") else self._lookup(name)
        if value is not None:
            self._names[name] = value
            return value
        raise AttributeError(
            f"tensorflow.{self._path} has no {name!r} where `tensorflow` is gradtape: the module is internal to TensorFlow, "
            "and gradtape has the names of it that were seen in use. Hint: look for a public name of the same meaning."
        )

    def _lookup(self, name: str) -> Any:
        """The object with this name, or None."""
        if f"{self._path}.{name}" in MODULES or f"{self._path}.{name}" in _PACKAGES:
            return module([*self._path.split("."), name])
        if self._code and hasattr(_code(self._code), name):
            return getattr(_code(self._code), name)
        tried = (
            [self._other[name]] if name in self._other else [f"{s}.{name}".lstrip(".") for s in self._spaces]
        )
        for path in tried:
            try:
                return _at(path)
            except AttributeError:
                pass
        return None


def _code(part: str) -> ModuleType:
    return importlib.import_module(f"gradtape_imports.code.{part.removeprefix('code ')}")


def _at(path: str) -> Any:
    value: Any = importlib.import_module("gradtape")
    for part in path.split("."):
        if isinstance(value, ModuleType) and not hasattr(value, part):
            try:
                value = importlib.import_module(f"{value.__name__}.{part}")
                continue
            except ModuleNotFoundError:
                pass
        value = getattr(value, part)
    return value
