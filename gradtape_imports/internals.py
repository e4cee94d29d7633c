"""What there is of TensorFlow's internal modules: `tensorflow.python`, `tensorflow.compiler`, `tf.__internal__`.

Packages reach into them, and so does Keras. Only what they were seen to use is here, and nearly all of it is a public
name under another one: a row says where a module looks (`in`: namespaces of gradtape, one after the other) and which
of its names are called otherwise there (`name=path`). What has to be written is in `code/`, a file a module. A module
or name that is not listed is missing, and says so.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

# module: where its names are. `in a,b` looks into tf.a and tf.b, `tf` is the package itself; `x=a.b` is tf.a.b;
# `code` is the file of that name in `gradtape_imports/code`.
MODULES = {
    "__internal__": "EagerTensor=Tensor",
    "__internal__.nest": "in nest",
    "__internal__.tf2": "code tf2",
    "compiler.tf2xla.python.xla": "code xla",
    "python.client.device_lib": "code device_lib",
    "python.data.ops.dataset_ops": "in data; DatasetV2=data.Dataset",
    "python.data.ops.iterator_ops": "OwnedIterator=data.Iterator IteratorBase=data.Iterator",
    "python.distribute.distribute_lib": "in distribute",
    "python.eager.backprop": "in tf",
    "python.eager.context": "code context",
    "python.eager.def_function": "in tf",
    "python.eager.forwardprop": "in autodiff",
    "python.framework.config": "in config,config.experimental",
    "python.framework.constant_op": "in tf",
    "python.framework.dtypes": "in dtypes,tf",
    "python.framework.errors": "in errors",
    "python.framework.errors_impl": "in errors",
    "python.framework.indexed_slices": "in tf",
    "python.framework.ops": "in tf,compat.v1; EagerTensor=Tensor",
    "python.framework.random_seed": "in random; set_seed=random.set_seed set_random_seed=random.set_seed",
    "python.framework.sparse_tensor": "in tf,sparse",
    "python.framework.tensor": "in tf",
    "python.framework.tensor_shape": "in tf,compat.v1; dimension_value=compat.dimension_value",
    "python.framework.tensor_spec": "in tf",
    "python.framework.tensor_util": "in tf; constant_value=get_static_value is_tf_type=is_tensor",
    "python.framework.type_spec": "in tf",
    "python.keras": "in keras",
    "python.keras.backend": "in keras.backend",
    "python.keras.callbacks": "in keras.callbacks",
    "python.keras.layers": "in keras.layers",
    "python.keras.models": "in keras.models",
    "python.keras.optimizers": "in keras.optimizers",
    "python.keras.utils": "in keras.utils",
    "python.keras.utils.np_utils": "in keras.utils",
    "python.lib.io.tf_record": "in io; tf_record_iterator=compat.v1.io.tf_record_iterator",
    "python.module.module": "in tf",
    "python.ops.array_ops": "in tf; array_ops_stack=stack",
    "python.ops.check_ops": "in debugging",
    "python.ops.clip_ops": "in tf",
    "python.ops.control_flow_ops": "in tf,compat.v1",
    "python.ops.custom_gradient": "in tf",
    "python.ops.gradients": "in tf; gradients_v2=gradients",
    "python.ops.gradients_impl": "in tf",
    "python.ops.image_ops": "in image",
    "python.ops.init_ops": "in compat.v1,tf",
    "python.ops.init_ops_v2": "in initializers,tf",
    "python.ops.linalg.linear_operator": "in linalg",
    "python.ops.linalg_ops": "in linalg,tf",
    "python.ops.logging_ops": "in tf",
    "python.ops.lookup_ops": "in lookup",
    "python.ops.math_ops": "in tf,math",
    "python.ops.nn": "in nn",
    "python.ops.nn_ops": "in nn",
    "python.ops.numpy_ops.np_config": (
        "enable_numpy_behavior=experimental.numpy.experimental_enable_numpy_behavior"
    ),
    "python.ops.parallel_for": "in tf",
    "python.ops.random_ops": "in random; random_uniform=random.uniform random_normal=random.normal",
    "python.ops.resource_variable_ops": "BaseResourceVariable=Variable ResourceVariable=Variable",
    "python.ops.script_ops": "in tf",
    "python.ops.sparse_ops": "in sparse",
    "python.ops.special_math_ops": "in math,tf",
    "python.ops.state_ops": "in compat.v1",
    "python.ops.stateless_random_ops": "in random",
    "python.ops.string_ops": "in strings",
    "python.ops.tensor_array_ops": "in tf",
    "python.ops.variable_scope": "in compat.v1",
    "python.ops.variables": "in tf; VariableV1=Variable",
    "python.ops.while_loop": "in tf",
    "python.platform.gfile": "in io.gfile",
    "python.platform.test": "in test",
    "python.platform.tf_logging": "in compat.v1.logging",
    "python.saved_model": "in saved_model",
    "python.summary": "in summary",
    "python.training.moving_averages": "in train",
    "python.training.tracking": "in train",
    "python.types.core": "in types.experimental; Tensor=types.experimental.TensorLike",
    "python.util.deprecation": "code deprecation",
    "python.util.nest": "in nest",
    "python.util.object_identity": "code object_identity",
    "python.util.tf_decorator": "code tf_decorator",
    "python.util.tf_export": "code tf_export",
    "python.util.tf_inspect": "code tf_inspect",
}  # fmt: skip

_made: dict[str, ModuleType] = {}
_PACKAGES = {name[:i] for name in MODULES for i in range(len(name)) if name[i] == "."}


def module(parts: list[str]) -> ModuleType:
    """`tensorflow.<parts>`, made when it is first asked for.

    Raises:
      AttributeError: if there is none of that name.
    """
    path = ".".join(parts)
    if path in _made:
        return _made[path]
    row = MODULES.get(path)
    if row is None and path not in _PACKAGES:
        raise AttributeError(path)
    if row is not None and row.startswith("code "):
        return importlib.import_module(f"gradtape_imports.code.{row[5:]}")
    full = f"tensorflow.{path}"
    made = _made[path] = ModuleType(full, f"What there is of {full}: see `gradtape_imports/internals.py`.")
    made.__path__ = []
    vars(made)["__getattr__"] = _Lookup(path, row or "")
    return made


def has(path: str) -> bool:
    """Whether there is a module, or a name of one: `python.util.nest.flatten`."""
    parts = path.split(".")
    try:
        found: Any = module(parts[:1])
        for part in parts[1:]:
            found = getattr(found, part)
    except AttributeError:
        return False
    return True


class _Lookup:
    """`__getattr__` of a module: finds a name where the row says, and keeps it."""

    def __init__(self, path: str, row: str) -> None:
        self._path = path
        self._spaces: list[str] = []
        self._other: dict[str, str] = {}
        for part in filter(None, row.split("; ")):
            if part.startswith("in "):
                self._spaces = ["" if space == "tf" else space for space in part[3:].split(",")]
            else:
                self._other = dict(pair.split("=") for pair in part.split())

    def __call__(self, name: str) -> Any:
        if not name.startswith("__"):
            if f"{self._path}.{name}" in MODULES or f"{self._path}.{name}" in _PACKAGES:
                return module([*self._path.split("."), name])
            tried = (
                [self._other[name]]
                if name in self._other
                else [f"{s}.{name}".lstrip(".") for s in self._spaces]
            )
            for path in tried:
                try:
                    return _at(path)
                except AttributeError:
                    pass
        raise AttributeError(
            f"tensorflow.{self._path} has no {name!r} where `tensorflow` is gradtape: the module is internal to TensorFlow, "
            "and gradtape has the names of it that were seen in use. Hint: look for a public name of the same meaning."
        )


def _at(path: str) -> Any:
    found: Any = importlib.import_module("gradtape")
    for part in path.split("."):
        found = getattr(found, part)
    return found
