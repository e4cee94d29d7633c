"""Tables that do not change: StaticHashTable, StaticVocabularyTable."""

from __future__ import annotations

from typing import Any

from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import FailedPreconditionError, NotFoundError
from gradtape._src.control.text_ops import elements, is_ragged, is_sparse, run, tensor
from gradtape._src.tensors import conversion
from gradtape.lookup.initializers import default_of
from gradtape.strings import as_string, to_hash_bucket_fast

_KEYS = (dtypes.string, dtypes.int32, dtypes.int64)


def check_kinds(key_dtype: dtypes.DType, value_dtype: dtypes.DType, op: str) -> None:
    """Raises for types that TensorFlow's tables do not support."""
    if key_dtype not in _KEYS:
        raise NotFoundError(
            f"Could not find device for node: {{{{node {op}}}}} = {op}[key_dtype={key_dtype.name}, "
            f"value_dtype={value_dtype.name}]. Hint: keys are strings or integers."
        )


def map_values(function: Any, keys: Any) -> Any:
    """Applies a function to a tensor, or to the values of a ragged or sparse one."""
    if is_ragged(keys):
        return keys.with_flat_values(function(keys.flat_values))
    if is_sparse(keys):
        return type(keys)(keys.indices, function(keys.values), keys.dense_shape)
    return function(keys)


class _Table:
    """A table from keys to single values."""

    _name: str | None
    _key_dtype: dtypes.DType
    _value_dtype: dtypes.DType

    @property
    def name(self) -> str | None:
        """The name of the table."""
        return self._name

    @property
    def key_dtype(self) -> dtypes.DType:
        """The type of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> dtypes.DType:
        """The type of the values."""
        return self._value_dtype

    @property
    def resource_handle(self) -> Any:
        """The table itself: there are no handles."""
        return self

    lookup: Any

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)


class StaticHashTable(_Table):
    """A table that is filled once.

    Args:
      initializer: its contents, such as a `tf.lookup.KeyValueTensorInitializer`.
      default_value: the value of missing keys.

    Raises:
      FailedPreconditionError: if a key has two different values.

    >>> import gradtape as tf
    >>> init = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([7, 8]))
    >>> table = tf.lookup.StaticHashTable(init, default_value=-1)
    >>> table[tf.constant(["a", "c"])].numpy()
    array([ 7, -1], dtype=int32)
    """

    def __init__(
        self,
        initializer: Any,
        default_value: Any,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        self._initializer, self._name = initializer, name
        self._key_dtype, self._value_dtype = initializer.key_dtype, initializer.value_dtype
        check_kinds(self._key_dtype, self._value_dtype, "HashTableV2")
        self._default_value = default_of(default_value, self._value_dtype)
        if self._default_value._dims:
            raise ValueError(f"Shapes {self._default_value._dims} and () are not compatible")
        (self._default,) = elements(self._default_value)
        self._items: dict[Any, Any] = {}
        initializer.initialize(self)

    def _fill(self, keys: list, values: list) -> None:
        for key, value in zip(keys, values, strict=True):
            if self._items.setdefault(key, value) != value:
                raise FailedPreconditionError(
                    f"HashTable has different value for same key. Key {_word(key)} has {_word(self._items[key])} and "
                    f"trying to add value {_word(value)}"
                )

    @property
    def default_value(self) -> Any:
        """The value of missing keys."""
        return self._default_value

    def size(self, name: str | None = None) -> Any:
        """The number of keys."""
        return conversion.convert(len(self._items), dtypes.int64._code)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys: a tensor, or a ragged or sparse one.

        Raises:
          TypeError: if their type is not the table's key type.
        """
        return _find(self, keys)

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """All keys and their values, in order of insertion."""
        count = [len(self._items)]
        return (
            tensor(self._items, count, self._key_dtype),
            tensor(self._items.values(), count, self._value_dtype),
        )


def _word(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def check_keys(keys: Any, dtype: dtypes.DType) -> None:
    """Raises for keys of another type, as TensorFlow does."""
    if keys.dtype != dtype:
        raise TypeError(f"Dtype of argument `keys` must be {dtype!r}, received: {keys.dtype!r}")


@one_call
def _find(table: StaticHashTable, keys: Any) -> Any:
    if not hasattr(keys, "dtype"):
        keys = conversion.convert(keys, table._key_dtype._code)
    check_keys(keys, table._key_dtype)

    def found(x: Any) -> list:
        items, default = table._items, table._default
        return [tensor([items.get(k, default) for k in elements(x)], x._dims, table._value_dtype)]

    def find(x: Any) -> Any:
        x = conversion.as_tensor(x)
        return run("lookup_table_find", found, [x], [(x._dims, table._value_dtype)])[0]

    return map_values(find, keys)


class StaticVocabularyTable(_Table):
    """A table from words to integer ids, in which unknown words are hashed to buckets, whose ids follow the others.

    Args:
      initializer: words and their ids, int64 from 0 on; None for buckets only.
      num_oov_buckets: the number of buckets for unknown words.
      lookup_key_dtype: the type of the keys that are looked up, if it differs from the initializer's.

    >>> import gradtape as tf
    >>> init = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
    >>> table = tf.lookup.StaticVocabularyTable(init, num_oov_buckets=3)
    >>> table.lookup(tf.constant(["b", "x"])).numpy()
    array([1, 4])
    """

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError("`num_oov_buckets` must be > 0; use StaticHashTable.")
        self._name, self._num_oov_buckets = name, num_oov_buckets
        self._table: StaticHashTable | None = None
        if initializer is None:
            own = dtypes.string
        else:
            own = initializer.key_dtype
            if own not in (dtypes.int64, dtypes.string):
                raise TypeError(
                    f"Invalid `key_dtype`, expected one of (tf.int64, tf.string), but got {own!r}."
                )
            if initializer.value_dtype is not dtypes.int64:
                raise TypeError(
                    f"Invalid `value_dtype`, expected {dtypes.int64!r} but got {initializer.value_dtype!r}."
                )
            self._table = StaticHashTable(initializer, -1)
        self._key_dtype = own if lookup_key_dtype is None else dtypes.as_dtype(lookup_key_dtype)
        self._value_dtype = dtypes.int64
        if own.is_integer != self._key_dtype.is_integer and initializer is not None:
            raise TypeError(f"Invalid `key_dtype`, expected {own!r} but got {self._key_dtype!r}.")

    @property
    def initializer(self) -> Any:
        """The contents of the table."""
        return None if self._table is None else self._table._initializer

    def size(self, name: str | None = None) -> Any:
        """The number of ids, including those of buckets."""
        return conversion.convert(self._known() + self._num_oov_buckets, dtypes.int64._code)

    def _known(self) -> int:
        return 0 if self._table is None else len(self._table._items)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The ids of keys: a tensor, or a ragged or sparse one.

        Raises:
          TypeError: if their type is not the table's key type.
        """
        check_keys(keys, self._key_dtype)
        return map_values(self._numbers, keys)

    def _numbers(self, keys: Any) -> Any:
        words = keys if keys.dtype is dtypes.string else as_string(keys)
        buckets = ops.add(to_hash_bucket_fast(words, self._num_oov_buckets), self._known())
        if self._table is None:
            return buckets
        own = keys if keys.dtype is self._table.key_dtype else ops.cast(keys, self._table.key_dtype)
        ids = self._table.lookup(own)
        return ops.where(ops.equal(ids, -1), buckets, ids)
