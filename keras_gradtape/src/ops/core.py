"""Variables, conversion, shape inference, control flow, and the ops of `keras.ops.core`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable, global_state, standardize_dtype
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope

import gradtape as tf
from gradtape.backend import (
    BY_CODE,
    CompositeTensor,
    NativeVariable,
    Trace,
    Untraceable,
    aside,
    current_trace,
    one_call,
    read,
    strategy_is_set,
    symbolic,
)
from keras_gradtape.src import distribution_lib
from keras_gradtape.src.ops import float8
from keras_gradtape.src.replicas import in_strategy

# Keras 3.15 reads these names from this module.
IS_THREAD_SAFE = False  # callbacks are called synchronously
SUPPORTS_COMPLEX_DTYPES = True
SUPPORTS_RAGGED_TENSORS = True
SUPPORTS_SPARSE_TENSORS = True

Tensor = tf.Tensor
SparseTensor = tf.SparseTensor


class Variable(KerasVariable):
    """A Keras variable that holds a `tf.Variable`. Tapes look at what it holds."""

    def _initialize(self, value: Any) -> None:
        if isinstance(value, tf.Variable):
            self._value = value
            return
        with aside():  # made while a function is traced, it outlives the trace
            if strategy_is_set():
                self._value = in_strategy(self, value)
                return
            self._value = tf.Variable(value, dtype=self._dtype, trainable=self.trainable, name=self.name)
            self._put_on_mesh()

    def _put_on_mesh(self) -> None:
        """Puts the value where its layout says, if there is one: see distribution_lib.py."""
        distribution = distribution_lib.current()
        if self._layout is None and distribution is not None:
            if self._shape is None:
                self._shape = self._validate_shape(self._value.shape)
            self._layout = distribution.get_variable_layout(self)
        distribution_lib.distribute_variable(self._value, self._layout)

    def _initialize_with_initializer(self, initializer: Callable) -> None:
        with aside():
            self._initialize(convert_to_tensor(initializer(self._shape, dtype=self._dtype), self._dtype))

    def _direct_assign(self, value: Any) -> None:
        self._value.assign(value)
        if self._layout is not None and current_trace() is None:
            distribution_lib.distribute_variable(self._value, self._layout)

    def _convert_to_tensor(self, value: Any, dtype: Any = None) -> Any:
        return convert_to_tensor(value, dtype=dtype)

    @property
    def shape(self) -> Any:
        """As a TensorShape, with `as_list()`, as in Keras on TensorFlow."""
        return tf.TensorShape(self._shape)

    @property
    def value(self) -> Any:
        """The same as Keras' own property, but faster: every op on a variable uses it."""
        value, scopes = self._value, global_state.GLOBAL_STATE_TRACKER.__dict__
        if value is None or scopes.get("stateless_scope") is not None:
            return super().value
        casting = scopes.get("autocast_scope")
        if casting is None or not self._autocast or value.dtype.name == casting.dtype:
            return value
        return casting.maybe_cast(value)

    @property
    def trainable(self) -> bool:
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        if isinstance(getattr(self, "_value", None), tf.Variable):
            self._value._trainable = bool(value)

    def numpy(self) -> np.ndarray:
        return convert_to_numpy(self.value)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(convert_to_numpy(self.value), dtype=dtype)

    def __tf_tensor__(self, dtype: Any = None) -> Any:
        value = read(self.value)
        return value if dtype is None or value.dtype is dtype else tf.cast(value, dtype)


# ---- conversion ---------------------------------------------------------------------------------


def convert_to_tensor(
    x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None
) -> Any:
    if type(x) is not Tensor:
        if is_ragged(x):
            x = x.to_tensor() if ragged is not None and not ragged else x
        else:
            x = _from_anything(x, dtype)
            if sparse is False and isinstance(x, SparseTensor):
                x = tf.sparse.to_dense(tf.sparse.reorder(x))
    if dtype is None or x.dtype.name == dtype:
        return x
    kind = dtype_of(dtype)
    if x.dtype is kind:
        return x
    if kind.name in float8.FORMATS or type(x) is float8.Float8:
        x = x.value if type(x) is float8.Float8 else x
        return float8.Float8(x, kind.name) if kind.name in float8.FORMATS else tf.cast(x, kind)
    return tf.cast(x, kind)


_DTYPES = {d.name: d for d in BY_CODE} | {name: f.dtype for name, f in float8.FORMATS.items()}


def dtype_of(dtype: Any) -> Any:
    """The type that Keras means by a name, a Python or NumPy type, or None, which is `floatx`."""
    if type(dtype) is str:
        cached = _DTYPES.get(dtype)
        if cached is not None:
            return cached
    return dtype if isinstance(dtype, tf.DType) else tf.as_dtype(standardize_dtype(dtype))


def _from_anything(x: Any, dtype: Any) -> Any:
    """Variables, numbers, arrays, lists of them, and lists of tensors, in Keras' types."""
    if x is None:  # NumPy would convert it to NaN
        raise ValueError("None values not supported.")
    if isinstance(x, KerasVariable):
        x = x.value
        if type(x) is Tensor:
            return x
    if isinstance(x, NativeVariable):
        return x._read()
    if type(x) in (bool, int, float):
        kind = dtype_of(result_type(type(x)) if dtype is None else dtype)
        # Left to NumPy: integers from fractions, booleans from numbers, overflow of small types.
        if kind.is_floating or (kind.is_integer and type(x) is int and 0 <= x < 128):
            return tf.convert_to_tensor(x, dtype=kind)
        return tf.convert_to_tensor(np.asarray(x).astype(kind.as_numpy_dtype))
    if isinstance(x, tf.IndexedSlices):
        return tf.convert_to_tensor(x)
    if isinstance(x, tf.TensorShape):
        x = x.as_list()
    if isinstance(x, (SparseTensor, float8.Float8)):
        return x
    if isinstance(x, (list, tuple)) and any(_is_ours(v) for v in tree.flatten(x)):
        return _stacked(x, dtype)
    if not hasattr(x, "dtype"):
        leaves = tree.flatten(x)
        if dtype is None:
            dtype = result_type(*[getattr(v, "dtype", type(v)) for v in leaves])
        x = np.asarray(x, dtype_of(dtype).as_numpy_dtype)
    return tf.convert_to_tensor(np.asarray(x))


def _stacked(x: Any, dtype: Any) -> Any:
    """Nested lists with tensors among their elements."""
    rows = [v if _is_ours(v) or not isinstance(v, (list, tuple)) else _stacked(v, dtype) for v in x]
    if dtype is None:
        dtype = result_type(*[getattr(v, "dtype", type(v)) for v in rows])
    return tf.stack([convert_to_tensor(v, dtype) for v in rows])


def _is_ours(x: Any) -> bool:
    return isinstance(x, (Tensor, NativeVariable, KerasVariable))


def convert_to_numpy(x: Any) -> np.ndarray:
    if isinstance(x, (list, tuple)):
        return np.array([convert_to_numpy(v) for v in x])
    if isinstance(x, KerasVariable):
        x = x.value
    if isinstance(x, tf.IndexedSlices):
        x = tf.convert_to_tensor(x)
    if is_ragged(x):
        x = x.to_tensor()
    if isinstance(x, SparseTensor):
        return x._numpy()
    if isinstance(x, Tensor) and x._symbol is not None:
        raise Untraceable("a layer or metric reads the values of a tensor (keras.ops.convert_to_numpy)")
    if isinstance(x, (Tensor, NativeVariable, float8.Float8)):
        return np.array(x.numpy())
    return np.array(x)


def is_tensor(x: Any) -> bool:
    return isinstance(x, (Tensor, NativeVariable, float8.Float8, SparseTensor)) or is_ragged(x)


def is_ragged(x: Any) -> bool:
    """Whether it is a ragged tensor; they are imported where there are some."""
    return isinstance(x, CompositeTensor) and isinstance(x, tf.RaggedTensor)


def shape(x: Any) -> tuple:
    if type(x) is not Tensor and not hasattr(x, "shape"):
        x = convert_to_tensor(x)
    sizes = tuple(x.shape)
    if type(x) in (Tensor, SparseTensor) and None in sizes:
        # A size that is unknown while a function is traced is a tensor.
        dynamic = tf.shape(x)
        return tuple(dynamic[k] if d is None else d for k, d in enumerate(sizes))
    return sizes


@one_call
def cast(x: Any, dtype: Any) -> Any:
    # Text layers cast the results of their tables for ragged and sparse tensors.
    return tf.cast(x, dtype_of(dtype)) if isinstance(x, CompositeTensor) else convert_to_tensor(x, dtype)


# ---- shapes without values ----------------------------------------------------------------------

_STAND_INS = (83, 89)  # lengths used for None: sizes that differ between them depend on it


def compute_output_spec(fn: Callable, *args: Any, **kwargs: Any) -> Any:
    """The shapes and types of the results of `fn`, found by tracing: nothing is computed.

    If a shape depends on values (such as the largest index), they are assumed to be zeros.
    """
    try:
        return _output_spec(fn, args, kwargs, traced=True)
    except Untraceable:
        return _output_spec(fn, args, kwargs, traced=False)


def _output_spec(fn: Callable, args: tuple, kwargs: dict, traced: bool) -> Any:
    given = tree.flatten((args, kwargs))
    unknown = any(isinstance(x, KerasTensor) and None in x.shape for x in given)
    # Each in its own scope, so that one trace does not see the assignments of the other, such as random seeds.
    with StatelessScope(), SymbolicScope():
        first = _shapes(fn, args, kwargs, traced, _STAND_INS[0])
    if not unknown:
        return first
    with StatelessScope(), SymbolicScope():
        second = _shapes(fn, args, kwargs, traced, _STAND_INS[1])

    def merged(a: Any, b: Any) -> Any:
        if not isinstance(a, KerasTensor):
            return a
        shape = [m if m == n else None for m, n in zip(a.shape, b.shape, strict=True)]
        return KerasTensor(shape, a.dtype, sparse=a.sparse)

    flat = [merged(a, b) for a, b in zip(tree.flatten(first), tree.flatten(second), strict=True)]
    return tree.pack_sequence_as(first, flat)


def _shapes(fn: Callable, args: tuple, kwargs: dict, traced: bool, length: int) -> Any:
    outer = current_trace()
    trace = Trace(outer if isinstance(outer, Trace) else None)

    def enter(x: Any) -> Any:
        if not isinstance(x, KerasTensor):
            return x
        dims = tuple(length if d is None else d for d in x.shape)
        dtype = tf.as_dtype(x.dtype)
        if x.sparse:
            return _sparse(dims, dtype)
        return symbolic(trace.input(dims, dtype._code)) if traced else tf.zeros(dims, dtype)

    def _sparse(dims: tuple, dtype: Any) -> SparseTensor:
        if not traced:
            return SparseTensor(np.zeros([0, len(dims)], np.int64), tf.zeros([0], dtype), dims)
        kinds = (((length, len(dims)), tf.int64), ((length,), dtype), ((len(dims),), tf.int64))
        parts = [symbolic(trace.input(shape, kind._code)) for shape, kind in kinds]
        out = SparseTensor(*parts)
        out.set_shape(dims)
        return out

    def leave(x: Any) -> Any:
        if not is_tensor(x):
            return x
        return KerasTensor(tuple(x.shape), standardize_dtype(x.dtype), sparse=isinstance(x, SparseTensor))

    with aside(trace if traced else None):
        inner_args, inner_kwargs = tree.map_structure(enter, (args, kwargs))
        return tree.map_structure(leave, fn(*inner_args, **inner_kwargs))


# ---- control flow -------------------------------------------------------------------------------


def _tensors(x: Any) -> Any:
    return tree.map_structure(lambda v: None if v is None else convert_to_tensor(v), x)


def cond(pred: Any, true_fn: Callable, false_fn: Callable) -> Any:
    if isinstance(pred, (KerasVariable, NativeVariable)):
        pred = convert_to_tensor(pred)
    if isinstance(pred, Tensor) and pred._symbol is not None:
        return tf.cond(convert_to_tensor(pred, "bool"), true_fn, false_fn)
    return true_fn() if pred else false_fn()


def switch(index: Any, branches: Sequence[Callable], *operands: Any) -> Any:
    place = tf.clip_by_value(convert_to_tensor(index, "int32"), 0, len(branches) - 1)
    return tf.switch_case(place, [lambda f=f: f(*operands) for f in branches])


def while_loop(cond: Callable, body: Callable, loop_vars: Any, maximum_iterations: int | None = None) -> Any:
    many = isinstance(loop_vars, (tuple, list))
    start = tuple(loop_vars) if many else (loop_vars,)

    def step(*values: Any) -> tuple:
        new = body(*values)
        return _tensors(tuple(new) if isinstance(new, (tuple, list)) else (new,))

    done = tf.while_loop(cond, step, _tensors(start), maximum_iterations=maximum_iterations)
    return tuple(done) if many else done[0]


def fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any) -> Any:
    if not any(_is_ours(b) for b in (lower, upper)) and current_trace() is None:
        for i in range(lower, upper):
            init_val = body_fun(i, init_val)
        return init_val
    _, out = while_loop(
        lambda i, value: i < upper,
        lambda i, value: (i + 1, body_fun(i, value)),
        (convert_to_tensor(lower, "int32"), init_val),
    )
    return out


def map(f: Callable, xs: Any) -> Any:
    def step(_: Any, x: Any) -> tuple:
        return (), f(x)

    return scan(step, (), xs)[1]


def scan(
    f: Callable, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: Any = 1
) -> tuple:
    """`carry, y = f(carry, x)` over the rows of `xs`; returns the last carry and all `y`."""
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}")
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    rows = [convert_to_tensor(x) for x in tree.flatten(xs)] if xs is not None else []
    count = int(length) if length is not None else rows[0].shape[0]
    carry = _tensors(init)
    outputs: list = []
    order = range(count - 1, -1, -1) if reverse else range(count)
    split = [tf.unstack(r, axis=0) for r in rows]
    for i in order:
        x = tree.pack_sequence_as(xs, [s[i] for s in split]) if rows else None
        carry, y = f(carry, x)
        outputs.append(y)
    if not outputs:
        return carry, None
    if reverse:
        outputs.reverse()
    if outputs[0] is None:
        return carry, None
    return carry, tree.map_structure(lambda *ys: tf.stack([convert_to_tensor(y) for y in ys]), *outputs)


def associative_scan(f: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The prefixes of an associative function, in a number of steps that is the logarithm of their number."""
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    flat = [convert_to_tensor(e) for e in tree.flatten(elems)]
    count = flat[0].shape[axis]
    if any(e.shape[axis] != count for e in flat):
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. "
            f"(saw: {[tuple(e.shape) for e in flat]})"
        )
    if reverse:
        flat = [tf.reverse(e, [axis]) for e in flat]

    def combine(a: list, b: list) -> list:
        return tree.flatten(f(tree.pack_sequence_as(elems, a), tree.pack_sequence_as(elems, b)))

    def part(x: Any, start: int, stop: int) -> Any:
        begin, size = [0] * x.ndim, list(x.shape)
        begin[axis], size[axis] = start, stop - start
        return tf.slice(x, begin, size)

    step = 1
    while step < count:
        tails = combine([part(e, 0, count - step) for e in flat], [part(e, step, count) for e in flat])
        flat = [tf.concat([part(e, 0, step), t], axis) for e, t in zip(flat, tails, strict=True)]
        step *= 2
    if reverse:
        flat = [tf.reverse(e, [axis]) for e in flat]
    return tree.pack_sequence_as(elems, flat)


def vectorized_map(function: Callable, elements: Any) -> Any:
    return tf.vectorized_map(function, _tensors(elements))


# ---- parts of tensors ---------------------------------------------------------------------------


@one_call
def scatter(indices: Any, values: Any, shape: Any) -> Any:
    values = convert_to_tensor(values)
    return tf.scatter_nd(convert_to_tensor(indices, "int32"), values, tuple(int(d) for d in shape))


@one_call
def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> Any:
    x, at = convert_to_tensor(inputs), convert_to_tensor(indices, "int32")
    values = convert_to_tensor(updates, x.dtype.name)
    if reduction is None:
        return tf.tensor_scatter_nd_update(x, at, values)
    if reduction == "add":
        return tf.tensor_scatter_nd_add(x, at, values)
    if reduction == "max":
        return tf.tensor_scatter_nd_max(x, at, values)
    if reduction == "min":
        return tf.tensor_scatter_nd_min(x, at, values)
    if reduction == "mul":
        # Factors for the same position are multiplied first, in a tensor of ones.
        flat_at = tf.reshape(at, [-1, at.shape[-1]])
        strides = np.cumprod([1, *[int(d) for d in x.shape[: at.shape[-1]][::-1]]])[::-1]
        places = tf.reduce_sum(flat_at * tf.constant(strides[1:].copy(), "int32"), -1)
        rest = tuple(x.shape[at.shape[-1] :])
        factors = tf.math.unsorted_segment_prod(tf.reshape(values, [-1, *rest]), places, int(strides[0]))
        return x * tf.reshape(factors, x.shape)
    raise ValueError(f"Unsupported reduction: {reduction}")


@one_call
def slice(inputs: Any, start_indices: Any, shape: Any) -> Any:
    if len(start_indices) != len(shape):
        raise ValueError(
            "Length of `start_indices` must match length of `shape`. "
            f"Received: start_indices={start_indices}, shape={shape}"
        )
    x = convert_to_tensor(inputs)
    size = [int(n) for n in shape]
    if all(isinstance(s, (int, np.integer)) for s in start_indices):
        return tf.slice(x, [int(s) for s in start_indices], size)
    for axis, (start, n) in enumerate(zip(_numbers(start_indices), size, strict=True)):
        x = tf.gather(x, tf.range(n) + start, axis=axis)
    return x


def _numbers(start: Any) -> list:
    """Start indices as integers or tensors of one integer each, within bounds left to the op."""
    if isinstance(start, (list, tuple)):
        return [s if isinstance(s, int) else convert_to_tensor(s, "int32") for s in start]
    return tf.unstack(convert_to_tensor(start, "int32"))


@one_call
def slice_update(inputs: Any, start_indices: Any, updates: Any) -> Any:
    x, values = convert_to_tensor(inputs), convert_to_tensor(updates)
    values = tf.cast(values, x.dtype)
    if not values.ndim:
        return values
    grids = tf.meshgrid(
        *[tf.range(n) + s for n, s in zip(values.shape, _numbers(start_indices), strict=True)], indexing="ij"
    )
    return tf.tensor_scatter_nd_update(x, tf.stack(grids, -1), values)


@one_call
def unstack(x: Any, num: int | None = None, axis: int = 0) -> list:
    return tf.unstack(convert_to_tensor(x), num=num, axis=axis)


# ---- gradients ----------------------------------------------------------------------------------


def stop_gradient(variable: Any) -> Any:
    return tf.stop_gradient(convert_to_tensor(variable))


def custom_gradient(fun: Callable) -> Callable:
    return tf.custom_gradient(fun)


def remat(f: Callable) -> Callable:
    return tf.recompute_grad(f)


def random_seed_dtype() -> str:
    return "uint32"


@contextlib.contextmanager
def device_scope(device_name: str) -> Iterator[None]:
    with tf.device(device_name):
        yield
