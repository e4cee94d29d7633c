"""The initial contents of tables: KeyValueTensorInitializer, TextFileInitializer."""

from __future__ import annotations

import os
from typing import Any

from gradtape._src import ops
from gradtape._src.base import dtypes, scopes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.reading import number_in, open_file
from gradtape._src.control.text_ops import elements
from gradtape._src.tensors import conversion


class TextFileIndex:
    """The part of a line that is a key or value, if it is not a column."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TableInitializerBase:
    """Keys and values, and their types."""

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> dtypes.DType:
        """The type of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> dtypes.DType:
        """The type of the values."""
        return self._value_dtype

    def pairs(self) -> tuple[list, list]:
        """The keys and the values."""
        raise NotImplementedError

    def initialize(self, table: Any) -> None:
        """Puts them into a table."""
        table._fill(*self.pairs())


class KeyValueTensorInitializer(TableInitializerBase):
    """Keys and values from two tensors.

    >>> import gradtape as tf
    >>> table = tf.lookup.StaticHashTable(
    ...     tf.lookup.KeyValueTensorInitializer(["a", "b"], [7, 8]), default_value=-1)
    >>> table.lookup(tf.constant(["b", "x"])).numpy()
    array([ 8, -1], dtype=int32)
    """

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        with scopes.init_scope():
            self._keys = ops.convert_to_tensor(keys, key_dtype)
            self._values = ops.convert_to_tensor(values, value_dtype)
        super().__init__(self._keys.dtype, self._values.dtype)

    def pairs(self) -> tuple[list, list]:
        """The keys and the values."""
        if tuple(self._keys.shape) != tuple(self._values.shape):
            raise InvalidArgumentError(
                f"Expected shape {list(self._keys.shape)} for value, got {list(self._values.shape)}"
            )
        if not self._keys._numel:
            raise InvalidArgumentError("keys and values cannot be empty tensors.")
        return elements(self._keys), elements(self._values)


class TextFileInitializer(TableInitializerBase):
    """Keys and values from the lines of a file.

    Args:
      filename: the file.
      key_dtype, value_dtype: their types.
      key_index, value_index: a column, or one of `tf.lookup.TextFileIndex`.
      vocab_size: how many lines are read; all of them by default.
      delimiter: between columns.
      value_index_offset: added to line numbers that are values.

    Raises:
      NotFoundError: if there is no such file.
      InvalidArgumentError: if a line has too few columns, or a column that is not a number.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        is_tensor = hasattr(filename, "numpy")
        if not is_tensor and not filename:
            raise ValueError("`filename` argument required for tf.lookup.TextFileInitializer")
        super().__init__(key_dtype, value_dtype)
        for what, index, dtype in (
            ("key", key_index, self.key_dtype),
            ("value", value_index, self.value_dtype),
        ):
            if index < TextFileIndex.WHOLE_LINE:
                raise ValueError(f"`{what}_index` should be >= -2, received: {index}.")
            if index == TextFileIndex.LINE_NUMBER and dtype is not dtypes.int64:
                between = "if" if what == "key" else "for"
                said = f"`{what}_index` is" if what == "key" else f"`{what}_index`"
                raise ValueError(f"`{what}_dtype` must be int64 {between} {said} -1, received: {dtype!r}")
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"`vocab_size` should be > 0, received: {vocab_size}")
        self._path = os.fsdecode(filename.numpy() if is_tensor else filename)
        self._indices, self._size = (key_index, value_index), vocab_size
        self._delimiter, self._offset = delimiter.encode(), value_index_offset

    def pairs(self) -> tuple[list, list]:
        """The keys and the values."""
        with open_file(self._path) as file:
            lines = file.read().replace(b"\r", b"").split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        if self._size is not None:
            lines = lines[: self._size]
            if len(lines) < self._size:
                raise InvalidArgumentError(
                    f"Invalid vocab_size in {self._path}: expected {self._size} but got {len(lines)}"
                )
        keys = [self._field(i, line, self._indices[0], self.key_dtype) for i, line in enumerate(lines)]
        values = [self._field(i, line, self._indices[1], self.value_dtype) for i, line in enumerate(lines)]
        if self._indices[1] == TextFileIndex.LINE_NUMBER:
            values = [v + self._offset for v in values]
        return keys, values

    def _field(self, number: int, line: bytes, index: int, dtype: dtypes.DType) -> Any:
        if index == TextFileIndex.LINE_NUMBER:
            return number
        if index == TextFileIndex.WHOLE_LINE:
            word = line
        else:
            columns = line.split(self._delimiter)
            least = max(self._indices) + 1
            if len(columns) < least:
                raise InvalidArgumentError(
                    f"Invalid number of columns in {self._path} line {number} ({line.decode(errors='replace')}) : "
                    f"expected at least {least} got {len(columns)}"
                )
            word = columns[index]
        if dtype is dtypes.string:
            return word
        value = number_in(word, dtype)
        if value is None:
            raise InvalidArgumentError(
                f"Field {word.decode(errors='replace')} in line {number} is not a valid {dtype.name}."
            )
        return value


def default_of(value: Any, dtype: dtypes.DType) -> Any:
    """The value of missing keys, as a tensor."""
    with scopes.init_scope():
        return ops.convert_to_tensor(conversion.read(value), dtype)
