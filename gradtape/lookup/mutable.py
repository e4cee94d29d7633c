"""Tables that programs write to: MutableHashTable, DenseHashTable. Checkpoints hold their contents."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.locks import Lock
from gradtape._src.control.text_ops import elements, run, tensor
from gradtape._src.tensors import conversion
from gradtape.io.raw import parsed, serialized
from gradtape.lookup.initializers import default_of
from gradtape.lookup.static import _Table, check_keys, check_kinds, map_values


class MutableHashTable(_Table):
    """A table that programs write to, also within traced functions. Values may be vectors.

    Args:
      default_value: the value of missing keys; its shape is that of all values.
      checkpoint: whether checkpoints save its contents.

    >>> import gradtape as tf
    >>> table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=-1)
    >>> table.insert(["a", "b"], [1, 2])
    >>> table.lookup(tf.constant(["b", "c"])).numpy()
    array([ 2, -1])
    """

    _checkpoint_by_serializing = True
    _op = "MutableHashTable"

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        self._key_dtype, self._value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        check_kinds(self._key_dtype, self._value_dtype, self._op)
        self._name = None if name == type(self).__name__ else name
        self._default_value = default_of(default_value, self._value_dtype)
        self._value_shape = tuple(self._default_value._dims)
        self._default = _rows(self._default_value, 0)[0]
        self._items: dict[Any, Any] = {}
        self._lock = Lock()
        self._checkpoint = checkpoint

    @property
    def default_value(self) -> Any:
        """The value of missing keys."""
        return self._default_value

    # ---- reading ------------------------------------------------------------------------------------

    def size(self, name: str | None = None) -> Any:
        """The number of keys."""
        return _size(self)

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Any:
        """The values of keys: a tensor, or a ragged or sparse one.

        Args:
          dynamic_default_values: a default for each key, in place of the table's.
        """
        return _find(self, keys, dynamic_default_values)

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """All keys and their values, in order of insertion."""
        return _export(self)

    # ---- writing ------------------------------------------------------------------------------------

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Adds keys with their values, or updates the values of existing keys.

        Raises:
          InvalidArgumentError: if the numbers of keys and values differ.
        """
        _insert(self, keys, values)

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Removes keys; missing ones are ignored.

        Raises:
          TypeError: if their type is not the table's key type.
        """
        _remove(self, keys)

    def _check(self, keys: list) -> None:
        """Raises for keys that the table does not allow."""

    # ---- checkpoints --------------------------------------------------------------------------------

    def serialize(self) -> bytes:
        """The contents as bytes."""
        parts = [serialized(x) for x in _contents(self)] if self._checkpoint else []
        return b"".join(len(p).to_bytes(8, "little") + p for p in parts)

    def deserialize(self, data: bytes) -> None:
        """Restores the contents from the result of `serialize`.

        Raises:
          InvalidArgumentError: if the types differ.
        """
        if not data:
            return
        size = int.from_bytes(data[:8], "little")
        keys = parsed(data[8 : 8 + size], self._key_dtype)
        values = parsed(data[16 + size :], self._value_dtype)
        rows = _rows(values, 1)
        with self._lock:
            self._items = dict(zip(elements(keys), rows, strict=True))


class DenseHashTable(MutableHashTable):
    """Like `MutableHashTable`, with two reserved keys.

    Args:
      empty_key, deleted_key: the reserved keys, with which TensorFlow marks slots of the table.
      initial_num_buckets: a power of 2, without effect: the table grows automatically.

    >>> import gradtape as tf
    >>> table = tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, -1, empty_key="", deleted_key="$")
    >>> table.insert(["a", "b"], [1, 2])
    >>> table.size().numpy()
    np.int64(2)
    """

    _op = "MutableDenseHashTable"

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value, name, checkpoint)
        buckets = initial_num_buckets
        if buckets is not None and (buckets < 4 or buckets & (buckets - 1)):
            raise InvalidArgumentError(
                f"Number of buckets must be at least 4 and a power of 2, got: {buckets}"
            )
        (self._empty,) = elements(default_of(empty_key, self._key_dtype))
        (self._deleted,) = elements(default_of(deleted_key, self._key_dtype))
        if self._empty == self._deleted:
            raise InvalidArgumentError("Empty and deleted keys cannot be equal")

    def _check(self, keys: list) -> None:
        for what, key in (("empty", self._empty), ("deleted", self._deleted)):
            if key in keys:
                raise InvalidArgumentError(
                    f"Using the {what}_key as a table key is not allowed (at position {keys.index(key)})"
                )

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> None:
        """The same as `insert`."""
        self.insert(keys, values)

    def erase(self, keys: Any, name: str | None = None) -> None:
        """The same as `remove`."""
        self.remove(keys)


# ---- the ops ----------------------------------------------------------------------------------------


def _rows(values: Any, axes: int) -> list:
    """The values along the first axes: numbers, strings, or arrays."""
    if len(values._dims) == axes:
        return elements(values)
    array = np.asarray(values.numpy())
    return list(array.reshape(-1, *values._dims[axes:]))


def _stacked(rows: list, shape: tuple, table: MutableHashTable) -> Any:
    """Values of a table as a tensor; `shape` is that of the keys."""
    if not table._value_shape:
        return tensor(rows, shape, table._value_dtype)
    flat = [x for row in rows for x in np.ravel(row).tolist()]
    return tensor(flat, (*shape, *table._value_shape), table._value_dtype)


@one_call
def _find(table: MutableHashTable, keys: Any, defaults: Any) -> Any:
    def found(x: Any, *defaults: Any) -> list:
        words = elements(x)
        table._check(words)
        if defaults:
            missing = _rows(defaults[0], len(x._dims))
        else:
            missing = [table._default] * len(words)
        with table._lock:
            rows = [table._items.get(k, d) for k, d in zip(words, missing, strict=True)]
        return [_stacked(rows, x._dims, table)]

    def find(x: Any) -> Any:
        x = ops.convert_to_tensor(x, table._key_dtype)
        operands = [x] if defaults is None else [x, ops.convert_to_tensor(defaults, table._value_dtype)]
        spec = ((*x._dims, *table._value_shape), table._value_dtype)
        return run("lookup_table_find", found, operands, [spec], effect=True)[0]

    return map_values(find, keys)


@one_call
def _insert(table: MutableHashTable, keys: Any, values: Any) -> None:
    x = ops.convert_to_tensor(keys, table._key_dtype)
    y = ops.convert_to_tensor(values, table._value_dtype)
    expected = (*x._dims, *table._value_shape)
    if y._dims != expected:
        raise InvalidArgumentError(f"Expected shape {list(expected)} for value, got {list(y._dims)}")

    def insert(x: Any, y: Any) -> list:
        given = elements(x)
        table._check(given)
        with table._lock:
            table._items.update(zip(given, _rows(y, len(x._dims)), strict=True))
        return []

    run("lookup_table_insert", insert, [x, y], [], effect=True)


@one_call
def _remove(table: MutableHashTable, keys: Any) -> None:
    x = conversion.as_tensor(keys)
    check_keys(x, table._key_dtype)

    def remove(x: Any) -> list:
        given = elements(x)
        table._check(given)
        with table._lock:
            for key in given:
                table._items.pop(key, None)
        return []

    run("lookup_table_remove", remove, [x], [], effect=True)


@one_call
def _size(table: MutableHashTable) -> Any:
    def size() -> list:
        return [tensor([len(table._items)], (), dtypes.int64)]

    return run("lookup_table_size", size, [], [((), dtypes.int64)], effect=True)[0]


def _contents(table: MutableHashTable) -> list:
    with table._lock:
        keys, rows = list(table._items), list(table._items.values())
    return [tensor(keys, [len(keys)], table._key_dtype), _stacked(rows, (len(keys),), table)]


@one_call
def _export(table: MutableHashTable) -> tuple[Any, Any]:
    specs = [((None,), table._key_dtype), ((None, *table._value_shape), table._value_dtype)]
    keys, values = run("lookup_table_export", lambda: _contents(table), [], specs)
    return keys, values
