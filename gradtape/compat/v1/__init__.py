"""`tf.compat.v1`: names of TensorFlow 1 that programs in eager mode still use.

Names that are not defined here are those of gradtape. gradtape has no graphs or sessions: functions that need one raise.
`losses` and `train` are modules of their own.
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
import types as _types
from collections.abc import Iterator as _Iterator
from contextlib import contextmanager as _contextmanager
from typing import Any as _Any

import gradtape as _tf
from gradtape import _core
from gradtape._src.base.dimension import Dimension as Dimension
from gradtape._src.ops import PUBLIC as _PUBLIC
from gradtape._src.public import absent as _absent
from gradtape.compat import dimension_at_index as dimension_at_index
from gradtape.compat import dimension_value as dimension_value
from gradtape.compat.v1 import losses as losses
from gradtape.compat.v1 import v1_logging as logging
from gradtape.compat.v1 import v1_train as train
from gradtape.compat.v1.v1_control import (
    cond,
    control_flow_v2_enabled,
    is_variable_initialized,
    py_func,
    while_loop,
    wrap_function,
)
from gradtape.compat.v1.v1_variables import (
    Variable,
    VariableScope,
    assign,
    assign_add,
    assign_sub,
    batch_scatter_update,
    count_up_to,
    get_variable,
    get_variable_scope,
    scatter_add,
    scatter_div,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_nd_add,
    scatter_nd_sub,
    scatter_nd_update,
    scatter_sub,
    scatter_update,
    variable_scope,
)

_sys.modules[f"{__name__}.logging"] = logging
_sys.modules[f"{__name__}.train"] = train

__version__ = _tf.__version__

_NO_GRAPHS = (
    "gradtape has no graphs and sessions of TensorFlow 1: operations run as they are called, or under "
    "tf.function. Hint: https://www.tensorflow.org/guide/migrate shows how such programs are rewritten."
)


# ---- behaviour -------- --------------------------------------------------------------------------


def enable_eager_execution(
    config: _Any = None, device_policy: _Any = None, execution_mode: _Any = None
) -> None:
    """Nothing to do: operations run as they are called."""


def enable_v2_behavior() -> None:
    """Nothing to do: there is no other behaviour."""


enable_resource_variables = enable_v2_tensorshape = enable_tensor_equality = enable_control_flow_v2 = (
    enable_v2_behavior
)


def disable_eager_execution() -> None:
    """Raises NotImplementedError: there is only eager execution."""
    raise NotImplementedError(f"disable_eager_execution: {_NO_GRAPHS}")


def disable_v2_behavior() -> None:
    """Raises NotImplementedError: there is only the behaviour of version 2."""
    raise NotImplementedError(f"disable_v2_behavior: {_NO_GRAPHS}")


def executing_eagerly_outside_functions() -> bool:
    """True."""
    return True


# ---- sessions -------------------------------------------------------------------------------------


class _Settings:
    """Session settings, which are stored and have no effect; nested settings are created on access."""

    def __init__(self, **kwargs: _Any) -> None:
        self.__dict__.update(kwargs)

    def __getattr__(self, name: str) -> _Any:
        if name.startswith("_"):
            raise AttributeError(name)
        settings = self.__dict__[name] = _Settings()
        return settings


class ConfigProto(_Settings):
    """Settings of a session: stored, without effect."""


class GPUOptions(_Settings):
    """Settings of GPUs: stored, without effect."""


class Session:
    """A session that runs nothing: programs create one to set GPU options."""

    def __init__(self, target: str = "", graph: _Any = None, config: _Any = None) -> None:
        self.graph = graph

    def run(self, *args: _Any, **kwargs: _Any) -> _Any:
        """Raises NotImplementedError."""
        raise NotImplementedError(f"Session.run: {_NO_GRAPHS}")

    def close(self) -> None:
        """Nothing to do."""

    def as_default(self) -> Session:
        """The session itself, for `with`."""
        return self

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc_info: _Any) -> None:
        pass


class InteractiveSession(Session):
    """The same as `Session`."""


def placeholder(dtype: _Any, shape: _Any = None, name: str | None = None) -> _Any:
    """Raises RuntimeError, as TensorFlow does in eager mode; an argument of the graph that Keras 2 writes for shapes."""
    trace: _Any = _core.current_trace()
    if getattr(trace, "takes_placeholders", False):
        static = _tf.TensorShape(shape)
        return trace.argument(None if static.rank is None else tuple(static), _tf.as_dtype(dtype)._code)
    raise RuntimeError(f"tf.placeholder() is not compatible with eager execution: {_NO_GRAPHS}")


def placeholder_with_default(input: _Any, shape: _Any, name: str | None = None) -> _Any:
    """The value itself, as in TensorFlow's eager mode."""
    return _tf.identity(input)


@_contextmanager
def colocate_with(op: _Any, ignore_existing: bool = False) -> _Iterator[None]:
    """A block that changes nothing: there is one device."""
    yield


class _DefaultGraph:
    """The few attributes of a graph that libraries use. Any other raises AttributeError."""

    building_function = property(lambda self: not _tf.executing_eagerly())

    def __init__(self) -> None:
        self._names: dict[str, int] = {}

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """The name in the current name scope, with a number if it was requested before."""
        scope = _tf.get_current_name_scope()
        name = f"{scope}/{name}" if scope else name
        key = name.lower()  # names that differ in capitals only count as the same, as in TensorFlow
        count = self._names.get(key, 0)
        if mark_as_used:
            self._names[key] = count + 1
        if count == 0:
            return name
        while f"{key}_{count}" in self._names:
            count += 1
        if mark_as_used:
            self._names[f"{key}_{count}"] = 1
        return f"{name}_{count}"

    def get_name_scope(self) -> str:
        """The current name scope."""
        return _tf.get_current_name_scope()

    @_contextmanager
    def as_default(self) -> _Iterator[_Any]:
        """A block that changes nothing: it is the default."""
        yield self

    def get_operations(self) -> list:
        """One operation, which stands for all so far: they run in order, so control dependencies have no effect."""
        return [None]

    def _get_control_flow_context(self) -> None:
        """None: branches and loops have no contexts of TensorFlow 1."""

    def __getattr__(self, name: str) -> _Any:
        raise AttributeError(f"get_default_graph().{name}: {_NO_GRAPHS}")


_default_graph = _DefaultGraph()


def get_default_graph() -> _Any:
    """An object with the current name scope. Operations cannot be added to it."""
    return _default_graph


def reset_default_graph() -> None:
    """Forgets the names in use; there is no graph to reset."""
    _default_graph._names.clear()


class GraphKeys:
    """Names of the collections of graphs; they are all empty in eager mode."""

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    SUMMARIES = "summaries"
    UPDATE_OPS = "update_ops"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    GLOBAL_STEP = "global_step"


def get_collection(key: str, scope: str | None = None) -> list:
    """Nothing: collections belong to graphs, as in TensorFlow's eager mode."""
    return []


def add_to_collection(name: str, value: _Any) -> None:
    """Nothing is collected, as in TensorFlow's eager mode."""


def trainable_variables(scope: str | None = None) -> list:
    """Nothing, as in TensorFlow's eager mode: variables belong to the objects that hold them."""
    return []


global_variables = local_variables = model_variables = trainable_variables


def global_variables_initializer() -> None:
    """Does nothing: variables are initialised when they are created."""


local_variables_initializer = tables_initializer = initialize_all_variables = global_variables_initializer


def variables_initializer(var_list: _Any, name: str = "init") -> None:
    """Does nothing: variables are initialised when they are created."""


# ---- variables ------------------------------------------------------------------------------------


AUTO_REUSE = None


# ---- other names ----------------------------------------------------------------------------------


def set_random_seed(seed: int) -> None:
    """`tf.random.set_seed`."""
    _tf.random.set_seed(seed)


def to_float(x: _Any, name: str = "ToFloat") -> _Any:
    """`x` as float32."""
    return _tf.cast(x, _tf.float32)


def to_double(x: _Any, name: str = "ToDouble") -> _Any:
    """`x` as float64."""
    return _tf.cast(x, _tf.float64)


def to_int32(x: _Any, name: str = "ToInt32") -> _Any:
    """`x` as int32."""
    return _tf.cast(x, _tf.int32)


def to_int64(x: _Any, name: str = "ToInt64") -> _Any:
    """`x` as int64."""
    return _tf.cast(x, _tf.int64)


def div(x: _Any, y: _Any, name: str | None = None) -> _Any:
    """Division as in Python 2: integers are divided with floor division."""
    x = _tf.convert_to_tensor(x)
    return _tf.math.floordiv(x, y) if x.dtype.is_integer else _tf.divide(x, y)


def where(condition: _Any, x: _Any = None, y: _Any = None, name: str | None = None) -> _Any:
    """Elements of `x` and `y`, which have the same shape; a condition that is a vector selects rows."""
    if x is None or y is None:
        return _tf.where(condition, x, y)
    condition, x = _tf.convert_to_tensor(condition), _tf.convert_to_tensor(x)
    if condition.shape.rank == 1 and x.shape.rank > 1:
        condition = _tf.reshape(condition, [-1] + [1] * (x.shape.rank - 1))
    return _tf.where(condition, x, y)


# Names of version 1 that version 2 moved, with the same arguments.
_MOVED = {
    name: target
    for target, names in {
        "math.log": "log", "math.log1p": "log1p", "math.ceil": "ceil", "math.is_nan": "is_nan",
        "math.is_inf": "is_inf", "math.is_finite": "is_finite", "math.reciprocal": "reciprocal",
        "math.rsqrt": "rsqrt", "math.erf": "erf", "math.lgamma": "lgamma", "math.digamma": "digamma",
        "math.floordiv": "floordiv floor_div", "math.floormod": "floormod mod",
        "math.squared_difference": "squared_difference",
        "math.cumprod": "cumprod", "math.real": "real", "math.imag": "imag", "math.conj": "conj",
        "math.angle": "angle", "math.unsorted_segment_sum": "unsorted_segment_sum", "math.segment_sum": "segment_sum",
        "math.logical_xor": "logical_xor", "math.invert_permutation": "invert_permutation",
        "random.normal": "random_normal", "random.uniform": "random_uniform",
        "random.truncated_normal": "truncated_normal", "random.shuffle": "random_shuffle",
        "random.gamma": "random_gamma", "random.poisson": "random_poisson",
        "linalg.inv": "matrix_inverse", "linalg.det": "matrix_determinant", "linalg.solve": "matrix_solve",
        "linalg.diag": "matrix_diag", "linalg.diag_part": "matrix_diag_part", "linalg.set_diag": "matrix_set_diag",
        "linalg.band_part": "matrix_band_part", "linalg.cholesky": "cholesky", "linalg.qr": "qr", "linalg.svd": "svd",
        "linalg.trace": "trace", "linalg.cross": "cross", "linalg.tensor_diag": "diag",
        "linalg.tensor_diag_part": "diag_part", "linalg.triangular_solve": "matrix_triangular_solve",
        "io.gfile": "gfile", "io.read_file": "read_file", "io.write_file": "write_file",
        "io.matching_files": "matching_files", "io.decode_raw": "decode_raw", "io.decode_csv": "decode_csv",
        "io.decode_base64": "decode_base64", "io.encode_base64": "encode_base64",
        "io.decode_compressed": "decode_compressed", "io.decode_json_example": "decode_json_example",
        "io.parse_example": "parse_example", "io.parse_single_example": "parse_single_example",
        "io.parse_single_sequence_example": "parse_single_sequence_example", "io.parse_tensor": "parse_tensor",
        "io.serialize_tensor": "serialize_tensor", "io.FixedLenFeature": "FixedLenFeature",
        "io.VarLenFeature": "VarLenFeature", "io.FixedLenSequenceFeature": "FixedLenSequenceFeature",
        "io.SparseFeature": "SparseFeature", "strings.join": "string_join", "strings.strip": "string_strip",
        "strings.to_hash_bucket_fast": "string_to_hash_bucket_fast", "strings.regex_replace": "regex_replace",
        "strings.to_hash_bucket_strong": "string_to_hash_bucket_strong",
        "compat.v1.strings.string_split": "string_split", "compat.v1.strings.to_number": "string_to_number",
        "compat.v1.strings.to_hash_bucket": "string_to_hash_bucket", "compat.v1.strings.substr": "substr",
        "compat.v1.strings.reduce_join": "reduce_join",
        "debugging.check_numerics": "check_numerics", "debugging.assert_near": "assert_near",
        "debugging.assert_positive": "assert_positive", "debugging.assert_scalar": "assert_scalar",
        "debugging.assert_non_negative": "assert_non_negative", "debugging.assert_integer": "assert_integer",
        "debugging.assert_type": "assert_type", "debugging.assert_rank_at_least": "assert_rank_at_least",
        "debugging.assert_less_equal": "assert_less_equal", "debugging.assert_greater_equal": "assert_greater_equal",
        "sparse.tensor.SparseTensorValue": "SparseTensorValue", "sparse.to_dense": "sparse_tensor_to_dense",
        "sparse.sparse_dense_matmul": "sparse_tensor_dense_matmul",
        **{f"sparse.{name}": f"sparse_{name}" for name in (
            "fill_empty_rows mask maximum minimum reorder reset_shape reshape retain segment_mean segment_sqrt_n "
            "segment_sum slice softmax to_indicator transpose").split()},
        "zeros_initializer": "zeros_initializer", "ones_initializer": "ones_initializer",
        "initializers.GlorotUniform": "glorot_uniform_initializer",
        "initializers.GlorotNormal": "glorot_normal_initializer",
        "initializers.VarianceScaling": "variance_scaling_initializer",
        "initializers.Orthogonal": "orthogonal_initializer",
        "initializers.TruncatedNormal": "truncated_normal_initializer",
    }.items()
    for name in names.split()
}  # fmt: skip


def _space(name: str, **names: _Any) -> _types.ModuleType:
    """A namespace of version 2, with the additional names of version 1."""
    module = _types.ModuleType(f"{__name__}.{name}", f"TensorFlow's namespace `tf.compat.v1.{name}`.")
    vars(module).update(
        names,
        __getattr__=lambda attribute: getattr(getattr(_tf, name), attribute),
        __dir__=lambda: sorted({n for n in vars(module) if n[0] != "_"} | {*dir(getattr(_tf, name))}),
    )
    _sys.modules[module.__name__] = globals()[name] = module
    return module


# Ops that only version 1 has are rows of the op table like the others.
for _full, _op in _PUBLIC.items():
    if _full.startswith("compat.v1."):
        *_path, _last = _full.split(".")[2:]
        if _path:
            setattr(globals().get(_path[0]) or _space(_path[0]), _last, _op)
        else:
            globals()[_last] = _op


def _softmax_cross_entropy_with_logits_v2(
    labels: _Any, logits: _Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> _Any:
    """Like `tf.nn.softmax_cross_entropy_with_logits`, with `dim` for `axis`."""
    axis = dim if axis is None else axis
    return _tf.nn.softmax_cross_entropy_with_logits(labels, logits, -1 if axis is None else axis)


globals()["nn"].softmax_cross_entropy_with_logits_v2 = _softmax_cross_entropy_with_logits_v2


def _make_initializable_iterator(dataset: _Any, shared_name: str | None = None) -> _Any:
    """Raises RuntimeError, as TensorFlow does in eager mode."""
    raise RuntimeError(
        "dataset.make_initializable_iterator is not supported when eager execution is enabled. Use `for element in "
        "dataset` instead."
    )


def _make_one_shot_iterator(dataset: _Any) -> _Any:
    """`iter(dataset)`."""
    return iter(dataset)


def _output(what: str) -> _Any:
    def get(dataset_or_iterator: _Any) -> _Any:
        return getattr(iter(dataset_or_iterator), f"output_{what}")

    get.__name__, get.__doc__ = f"get_output_{what}", f"The {what} of the parts of an element of a dataset."
    return get


_space(
    "data",
    make_one_shot_iterator=_make_one_shot_iterator,
    make_initializable_iterator=_make_initializable_iterator,
    **{f"get_output_{what}": _output(what) for what in ("types", "shapes", "classes")},
)


def __getattr__(name: str) -> _Any:
    if name == "strings":  # imported on first use
        return _importlib.import_module(f"{__name__}.strings")
    if name in _MOVED:
        value: _Any = _tf
        for part in _MOVED[name].split("."):
            value = getattr(value, part)
        return value
    if name == "__all__":
        raise AttributeError(name)  # `import *` takes this file's names only
    if _absent.is_known("compat.v1", name):
        return _absent.lookup_in("compat.v1", name)
    return getattr(_tf, name)


def __dir__() -> list[str]:
    names = {n for n in globals() if n != "annotations" and not n.startswith("v1_")} | {*_MOVED, *dir(_tf)}
    return sorted(n for n in names if not _absent.has_words(f"compat.v1.{n}"))
