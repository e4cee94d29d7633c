"""Methods of Tensor beyond the native core: text, NumPy, copies, helpful errors.

The type itself is native (`core/py/tensor_type.cpp`). Importing this module attaches the methods below to it. There
is no `__getattr__`, which would slow down every attribute access; names that people know from NumPy are descriptors
that raise a helpful AttributeError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._core import Tensor
from gradtape._src.base import dtypes
from gradtape._src.base.errors import more
from gradtape._src.base.shape import TensorShape
from gradtape._src.tensors import above, conversion, stored, text

_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


class Reference:
    """A tensor or variable as a key: hashable, and equal to any other reference to the same object."""

    __slots__ = ("_wrapped", "__weakref__")

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def deref(self) -> Any:
        """The object itself."""
        return self._wrapped

    def __eq__(self, other: Any) -> bool:
        return self._wrapped is _unwrap(other)

    def __ne__(self, other: Any) -> bool:
        return self._wrapped is not _unwrap(other)

    def __lt__(self, other: Any) -> bool:
        return id(self._wrapped) < id(_unwrap(other))

    def __gt__(self, other: Any) -> bool:
        return id(self._wrapped) > id(_unwrap(other))

    def __hash__(self) -> int:
        return id(self._wrapped)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._wrapped!r}>"


def _unwrap(other: Any) -> Any:
    if not isinstance(other, Reference):
        raise TypeError(
            "Cannot compare wrapped object with unwrapped object. Hint: compare x.ref() with y.ref()."
        )
    return other._wrapped


# ---- text -------------------------------------------------------------------------------------


def numpy_text(x: Tensor, is_repr: bool = False) -> str:
    """The elements of a tensor as TensorFlow prints them."""
    value = x.numpy()
    if not is_repr or x.ndim == 0:
        text = str(value)
    else:
        text = repr(value)
        if isinstance(x.dtype._numpy, str):  # without ml_dtypes the array has another type
            text = text.replace(f"dtype={value.dtype.name}", f"dtype={x.dtype.name}")
    return "\n" + text if "\n" in text else text


def _repr(self: Tensor) -> str:
    if self._symbol is not None:
        return f"<tf.Tensor {_symbol_name(self)!r} shape={self.shape} dtype={self.dtype.name}>"
    return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={numpy_text(self, True)}>"


def _str(self: Tensor) -> str:
    if self._symbol is not None:
        return f'Tensor("{_symbol_name(self)}", shape={self.shape}, dtype={self.dtype.name})'
    return f"tf.Tensor({numpy_text(self)}, shape={self.shape}, dtype={self.dtype.name})"


def _symbol_name(x: Tensor) -> str:
    return above.operations.of_tensor(x, "name") if hasattr(x._symbol, "graph") else "symbol"


def _format(self: Tensor, spec: str) -> str:
    return _str(self) if self._symbol is not None else self.numpy().__format__(spec)


# ---- NumPy and DLPack -------------------------------------------------------------------------


def as_array(x: Tensor) -> np.ndarray:
    """The elements as a read-only array that shares the tensor's memory (a copy for bfloat16)."""
    if x._symbol is not None:
        raise NotImplementedError(
            f"Cannot convert a symbolic tf.Tensor ({_symbol_name(x)}) to a numpy array: it has no value "
            "while a function is traced. Hint: use tf ops instead of NumPy inside tf.function, or "
            "tf.numpy_function." + more("traced-values")
        )
    if x.dtype is dtypes.string:
        return text.array_of(x)
    if x.dtype._kind == "s":
        return np.asarray(x.numpy())
    return np.asarray(x.numpy()) if x.dtype is dtypes.bfloat16 else np.asarray(memoryview(x))


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    array = as_array(self)
    if copy:
        return np.array(array, dtype)
    if dtype is None or array.dtype == dtype:
        return array
    if copy is False:
        raise ValueError(
            f"Unable to avoid copy: the tensor is {self.dtype.name}, the array was asked for as "
            f"{np.dtype(dtype)}"
        )
    return array.astype(dtype)


def _dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(
            "__dlpack__: the tensor is in the memory of the CPU; expected dl_device (1, 0); got "
            f"{dl_device!r}."
        )
    if copy:
        return _core.to_dlpack(_rebuild(self.numpy(), self.dtype.name))
    return _core.to_dlpack(self)


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    return 1, 0


# ---- copies -----------------------------------------------------------------------------------


def _rebuild(array: Any, dtype: str) -> Tensor:
    """A tensor from the array that was pickled."""
    return conversion.convert(np.asarray(array), dtypes.as_dtype(dtype)._code)


def _reduce(self: Tensor) -> tuple[Any, ...]:
    # Types of ml_dtypes are pickled as plain NumPy types, so that the reader does not need the package.
    array = as_array(self)
    if self.dtype is dtypes.bfloat16:
        array = array.astype(np.float32)
    elif self.dtype._kind == "s":
        array = stored.values_of(self)
    return _rebuild, (np.array(array), self.dtype.name)


def _itself(self: Tensor, memo: Any = None) -> Tensor:
    """The tensor itself: tensors are immutable, and there is one device."""
    return self


# ---- shape, place, identity -------------------------------------------------------------------


def _get_shape(self: Tensor) -> TensorShape:
    """The same as `shape`."""
    return self.shape


def _set_shape(self: Tensor, shape: Any) -> None:
    """Checks that the tensor has this shape; while a function is traced, refines its shape.

    Raises:
      ValueError: if the shapes differ.
    """
    if not self.shape.is_compatible_with(shape):
        raise ValueError(
            f"Tensor's shape {self.shape} is not compatible with supplied shape {TensorShape(shape)}."
        )
    if self._symbol is not None and not self.shape.is_fully_defined():
        above.static.narrow(self, shape)


def _ref(self: Tensor) -> Reference:
    """A hashable reference to the tensor, which itself is compared by value."""
    return Reference(self)


def _round(self: Tensor, ndigits: int | None = None) -> Any:
    if ndigits is None and self.ndim == 0:
        return round(self.numpy().item())
    scale = 10.0 ** (ndigits or 0)
    return above.ops.PUBLIC["round"](self * scale) / scale if ndigits else above.ops.PUBLIC["round"](self)


def _set_item(self: Tensor, key: Any, value: Any) -> None:
    raise TypeError(
        "'Tensor' object does not support item assignment. Hint: tf.tensor_scatter_nd_update(x, indices, "
        "updates) gives a "
        "changed copy; a tf.Variable can be changed: v[0].assign(value)."
    )


def _delete_item(self: Tensor, key: Any) -> None:
    raise TypeError("'Tensor' object does not support item deletion. Hint: tf.concat the parts to keep.")


def _eval(self: Tensor, feed_dict: Any = None, session: Any = None) -> Any:
    """Raises NotImplementedError, as TensorFlow does in eager mode."""
    raise NotImplementedError(
        "eval is not supported when eager execution is enabled, is .numpy() what you're looking for?"
    )


def _consumers(self: Tensor) -> Any:
    """Raises NotImplementedError, as TensorFlow does in eager mode."""
    raise NotImplementedError("Tensor.consumers is undefined when eager execution is enabled.")


# ---- missing attributes -----------------------------------------------------------------------


class _Absent:
    """An attribute that Tensor does not have; the error says what to write instead."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        raise AttributeError(self.message)


class _OfGraphs:
    """`name`, `op` and other attributes that only tensors of a trace have."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None or instance._symbol is None:
            raise AttributeError(f"Tensor.{self.name} is undefined when eager execution is enabled.")
        return above.operations.of_tensor(instance, self.name)


class _OfSlices:
    """`assign` and other methods that only tensors read from a variable by `v[key]` have."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        origin = None if instance is None else instance._origin
        if origin is None:
            raise AttributeError(
                f"'Tensor' object has no attribute '{self.name}': tensors do not change. Hint: "
                "tf.Variable(x) can be assigned to." + more("assigning")
            )
        return getattr(SliceOfVariable(*origin), self.name)


class SliceOfVariable:
    """A part of a variable, for `v[key].assign(value)`."""

    __slots__ = ("variable", "key")

    def __init__(self, variable: Any, key: Any) -> None:
        self.variable = variable
        self.key = key

    def assign(self, value: Any, use_locking: Any = None, name: Any = None, read_value: bool = True) -> Any:
        """Replaces the part with `value`, which may be broadcast; returns the variable."""
        return self._change(None, value, read_value)

    def assign_add(
        self, delta: Any, use_locking: Any = None, name: Any = None, read_value: bool = True
    ) -> Any:
        """Adds to the part; returns the variable."""
        return self._change(operator.add, delta, read_value)

    def assign_sub(
        self, delta: Any, use_locking: Any = None, name: Any = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the part; returns the variable."""
        return self._change(operator.sub, delta, read_value)

    def _change(self, op: Callable | None, value: Any, read_value: bool) -> Any:
        v = self.variable
        value = v._incoming(value)
        part = v._peek()[self.key]
        if op is not None:
            value = op(part, value)
        if value.shape != part.shape:
            value = above.ops.broadcast_to(value, part.shape)
        del part  # it may share the variable's memory, which would then be copied
        v._put(self.key, value)
        return v if read_value else None


# Attributes that users of other libraries expect, and their replacements.
_NUMPY_NAMES = {
    "T": "tf.transpose(x)", "all": "tf.reduce_all(x, axis)", "any": "tf.reduce_any(x, axis)",
    "argmax": "tf.argmax(x, axis)", "argmin": "tf.argmin(x, axis)", "argsort": "tf.argsort(x)",
    "backward": "a tape computes gradients: `with tf.GradientTape() as tape:` around the forward pass, then "
    "tape.gradient(y, x)",
    "astype": "tf.cast(x, dtype)", "clip": "tf.clip_by_value(x, low, high)", "conj": "tf.math.conj(x)",
    "copy": "tf.identity(x)", "cumprod": "tf.math.cumprod(x, axis)", "cumsum": "tf.cumsum(x, axis)",
    "data": "x.numpy()", "detach": "tf.stop_gradient(x)", "diagonal": "tf.linalg.diag_part(x)",
    "dot": "tf.tensordot(x, y, 1)", "expand": "tf.broadcast_to(x, shape)", "fill": "tf.fill(shape, value)",
    "flatten": "tf.reshape(x, [-1])", "grad": "tape.gradient(y, x)", "imag": "tf.math.imag(x)",
    "item": "x.numpy().item()", "matmul": "tf.matmul(x, y)", "max": "tf.reduce_max(x, axis)",
    "mean": "tf.reduce_mean(x, axis)", "min": "tf.reduce_min(x, axis)", "nbytes": "x.numpy().nbytes",
    "nonzero": "tf.where(x)", "norm": "tf.norm(x)", "permute": "tf.transpose(x, perm)",
    "prod": "tf.reduce_prod(x, axis)", "ravel": "tf.reshape(x, [-1])", "real": "tf.math.real(x)",
    "repeat": "tf.repeat(x, repeats, axis)", "reshape": "tf.reshape(x, shape)", "round": "tf.round(x)",
    "size": "tf.size(x)", "sort": "tf.sort(x)", "squeeze": "tf.squeeze(x, axis)",
    "requires_grad": "tape.watch(x), or a tf.Variable, which is watched by itself",
    "std": "tf.math.reduce_std(x, axis)", "sum": "tf.reduce_sum(x, axis)",
    "swapaxes": "tf.transpose(x, perm)", "take": "tf.gather(x, indices, axis)",
    "tolist": "x.numpy().tolist()", "transpose": "tf.transpose(x, perm)",
    "unsqueeze": "tf.expand_dims(x, axis)", "var": "tf.math.reduce_variance(x, axis)",
    "view": "tf.reshape(x, shape)",
}  # fmt: skip


def _directory(self: Tensor) -> list[str]:
    return sorted(
        n for n in object.__dir__(self) if not isinstance(vars(Tensor).get(n), (_Absent, _OfSlices))
    )


_DOC = """An array of numbers, which does not change: what operations take and return.

    Made by `tf.constant` and `tf.convert_to_tensor`, from numbers, lists and NumPy arrays. Arithmetic,
    comparison, `@` and indexing work as with arrays; a number beside a tensor takes its type.

    >>> import gradtape as tf
    >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> (2.0 * x[0] + 1.0).numpy()
    array([3., 5.], dtype=float32)
    >>> x.shape, x.dtype
    (TensorShape([2, 2]), tf.float32)
    """


def device_of(value: Any) -> str:
    """The name of the device that the value of a tensor or variable is on."""
    (array,) = _core.device_arrays((value,))
    device: Any = getattr(array, "device", None)
    if getattr(device, "platform", "cpu") == "cpu":
        return _DEVICE
    kind = {"cuda": "GPU", "rocm": "GPU"}.get(device.platform, device.platform.upper())
    return f"{_DEVICE.removesuffix('CPU:0')}{kind}:{device.local_hardware_id or 0}"


def _div(self: Tensor, other: Any) -> Any:
    return self // other if self.dtype.is_integer else self / other


def _rdiv(self: Tensor, other: Any) -> Any:
    return other // self if self.dtype.is_integer else other / self


# Operators, which packages copy to classes of their own that behave like tensors.
_OPERATORS = frozenset(
    "__abs__ __add__ __and__ __div__ __eq__ __floordiv__ __ge__ __getitem__ __gt__ __invert__ __le__ __lt__ __matmul__ "
    "__mod__ __mul__ __ne__ __neg__ __or__ __pow__ __radd__ __rand__ __rdiv__ __rfloordiv__ __rmatmul__ __rmod__ "
    "__rmul__ __ror__ __rpow__ __rsub__ __rtruediv__ __rxor__ __sub__ __truediv__ __xor__".split()
)


def attach() -> None:
    """Attaches all of the above to the native type."""
    methods: dict[str, Any] = {
        "__doc__": _DOC, "__repr__": _repr, "__str__": _str, "__format__": _format, "__dir__": _directory,
        "_repr_html_": above.shown,
        "__array__": _array, "__array_priority__": 100,
        "__dlpack__": _dlpack, "__dlpack_device__": _dlpack_device,
        "__copy__": _itself, "__deepcopy__": _itself, "__reduce__": _reduce, "__round__": _round,
        "__setitem__": _set_item, "__delitem__": _delete_item, "__div__": _div, "__rdiv__": _rdiv,
        "__nonzero__": Tensor.__bool__, "OVERLOADABLE_OPERATORS": _OPERATORS,
        "get_shape": _get_shape, "set_shape": _set_shape, "ref": _ref, "experimental_ref": _ref,
        "device": property(device_of, doc="The name of the device that holds the tensor."),
        "backing_device": property(device_of, doc="As `device`."),
        "cpu": _itself, "eval": _eval, "consumers": _consumers,
        **{name: _OfGraphs(name) for name in ("op", "graph", "name", "value_index")},
        **{name: _OfSlices(name) for name in ("assign", "assign_add", "assign_sub")},
    }  # fmt: skip
    for name, hint in _NUMPY_NAMES.items():
        methods[name] = _Absent(f"Tensor object has no attribute '{name}'. Hint: {hint}.")
    for name, value in methods.items():
        setattr(Tensor, name, value)


attach()
