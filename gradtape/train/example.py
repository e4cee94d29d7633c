"""`tf.train.Example` and its parts: the records that TFRecord files usually hold.

Messages with TensorFlow's fields, written and read in the format of protocol buffers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gradtape._src.base.reading import reading
from gradtape.io import wire


class _Message:
    """The common base of messages: bytes, text, comparison."""

    def _encode(self) -> bytes:
        raise NotImplementedError

    def _decode(self, data: bytes) -> None:
        raise NotImplementedError

    def _lines(self) -> list[str]:
        raise NotImplementedError

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """The message as bytes."""
        return self._encode()

    def ParseFromString(self, serialized: bytes) -> int:
        """Sets the message from bytes; returns their number.

        Raises:
          ValueError: if they are not such a message.
        """
        data = bytes(serialized)
        self._clear()
        with reading(f"Error parsing message: not a tf.train.{type(self).__name__}: ", ValueError):
            self._decode(data)
        return len(data)

    MergeFromString = ParseFromString

    @classmethod
    def FromString(cls, s: bytes) -> Any:
        """A message from bytes."""
        message = cls()
        message.ParseFromString(s)
        return message

    def CopyFrom(self, other_msg: Any) -> None:
        """Copies the fields of another message."""
        self.ParseFromString(other_msg._encode())

    def ByteSize(self) -> int:
        """The length of the message as bytes."""
        return len(self._encode())

    def Clear(self) -> None:
        """Clears all fields."""
        self._clear()

    def _clear(self) -> None:
        self.__init__()  # type: ignore[misc]

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self._encode() == other._encode()

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "".join(line + "\n" for line in self._lines())

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).FromString, (self._encode(),)


def _block(name: str, lines: list[str]) -> list[str]:
    return [f"{name} {{", *("  " + line for line in lines), "}"]


# ---- lists of values ------------------------------------------------------------------------------


class _List(_Message):
    """A message with one repeated field, `value`."""

    def __init__(self, value: Iterable[Any] = ()) -> None:
        self.value: list[Any] = [self._checked(v) for v in value]

    @staticmethod
    def _checked(v: Any) -> Any:
        return v

    def _lines(self) -> list[str]:
        return [f"value: {self._shown(v)}" for v in self.value]

    @staticmethod
    def _shown(v: Any) -> str:
        return str(v)


class BytesList(_List):
    """A list of byte strings."""

    @staticmethod
    def _checked(v: Any) -> bytes:
        if isinstance(v, (bytes, bytearray, memoryview, np.bytes_)):
            return bytes(v)
        raise TypeError(f"{v!r} has type {type(v).__name__}, but expected one of: bytes")

    def _encode(self) -> bytes:
        return b"".join(wire.message(1, self._checked(v)) for v in self.value)

    def _decode(self, data: bytes) -> None:
        self.value += [v for f, kind, v in wire.fields(data) if f == 1 and kind == 2]

    @staticmethod
    def _shown(v: bytes) -> str:
        inside = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03o}" for b in v)
        return f'"{inside}"'


class FloatList(_List):
    """A list of float32 numbers."""

    @staticmethod
    def _checked(v: Any) -> float:
        if isinstance(v, (str, bytes)):
            raise TypeError(f"{v!r} has type {type(v).__name__}, but expected one of: int, float")
        return float(np.float32(v))

    def _encode(self) -> bytes:
        return wire.message(1, np.asarray(self.value, "<f4").tobytes()) if self.value else b""

    def _decode(self, data: bytes) -> None:
        # Packed or not, the bytes of the numbers are the same.
        pieces = b"".join(v for f, kind, v in wire.fields(data) if f == 1 and kind in (2, 5))
        self.value += np.frombuffer(pieces, "<f4").tolist()


class Int64List(_List):
    """A list of integers."""

    @staticmethod
    def _checked(v: Any) -> int:
        if isinstance(v, (int, np.integer, np.bool_)):
            return int(v)
        if hasattr(v, "__index__"):
            return v.__index__()
        raise TypeError(f"{v!r} has type {type(v).__name__}, but expected one of: int")

    def _encode(self) -> bytes:
        return wire.packed(1, self.value) if self.value else b""

    def _decode(self, data: bytes) -> None:
        for field, kind, v in wire.fields(data):
            if field == 1 and kind in (0, 2):
                self.value += map(wire.signed, wire.numbers(v) if kind == 2 else [v])


# ---- features -------------------------------------------------------------------------------------


class Feature(_Message):
    """One list of values: of bytes, floats or integers."""

    _KINDS = (("bytes_list", BytesList), ("float_list", FloatList), ("int64_list", Int64List))

    def __init__(
        self,
        bytes_list: BytesList | None = None,
        float_list: FloatList | None = None,
        int64_list: Int64List | None = None,
    ) -> None:
        given = {"bytes_list": bytes_list, "float_list": float_list, "int64_list": int64_list}
        self._set: str | None = None
        for name, cls in self._KINDS:
            value = given[name]
            if value is not None and not isinstance(value, cls):
                raise TypeError(f"Feature: {name} must be a tf.train.{cls.__name__}; got {value!r}.")
            setattr(self, name, cls() if value is None else value)
            if value is not None:
                self._set = name

    def WhichOneof(self, oneof_group: str = "kind") -> str | None:
        """The name of the list that it has."""
        for name, _ in self._KINDS:
            if getattr(self, name).value:
                return name
        return self._set

    def HasField(self, field_name: str) -> bool:
        """Whether it has this list."""
        return self.WhichOneof() == field_name

    def _encode(self) -> bytes:
        name = self.WhichOneof()
        if name is None:
            return b""
        number = next(i for i, (n, _) in enumerate(self._KINDS, 1) if n == name)
        return wire.message(number, getattr(self, name)._encode())

    def _decode(self, data: bytes) -> None:
        for field, kind, v in wire.fields(data):
            if 1 <= field <= 3 and kind == 2:
                self._set = self._KINDS[field - 1][0]
                getattr(self, self._set)._decode(v)

    def _lines(self) -> list[str]:
        name = self.WhichOneof()
        return [] if name is None else _block(name, getattr(self, name)._lines())


class _Map(dict):
    """A field that maps names to messages; a new name creates a message."""

    def __init__(self, cls: type, items: Any = ()) -> None:
        super().__init__(items)
        self._cls = cls

    def __missing__(self, key: str) -> Any:
        self[key] = message = self._cls()
        return message


class _Named(_Message):
    """A message with one field that maps names to messages."""

    _FIELD = ""
    _OF: type = Feature

    def _map(self) -> _Map:
        return getattr(self, self._FIELD)

    def _encode(self) -> bytes:
        return b"".join(
            wire.message(1, wire.text(1, name) + wire.message(2, part._encode()))
            for name, part in self._map().items()
        )

    def _decode(self, data: bytes) -> None:
        for field, kind, entry in wire.fields(data):
            if field == 1 and kind == 2:
                parts = {f: v for f, kind_on_wire, v in wire.fields(entry) if kind_on_wire == 2}
                self._map()[parts.get(1, b"").decode()] = self._OF.FromString(parts.get(2, b""))  # type: ignore[attr-defined]

    def _lines(self) -> list[str]:
        out: list[str] = []
        for name, part in sorted(self._map().items()):
            out += _block(self._FIELD, [f'key: "{name}"', *_block("value", part._lines())])
        return out


class Features(_Named):
    """Features by name."""

    _FIELD = "feature"

    def __init__(self, feature: dict[str, Feature] | None = None) -> None:
        self.feature = _Map(Feature, feature or {})


class FeatureList(_Message):
    """A list of features: one for each step of a sequence."""

    def __init__(self, feature: Iterable[Feature] = ()) -> None:
        self.feature: list[Feature] = list(feature)

    def _encode(self) -> bytes:
        return b"".join(wire.message(1, f._encode()) for f in self.feature)

    def _decode(self, data: bytes) -> None:
        self.feature += [Feature.FromString(v) for f, kind, v in wire.fields(data) if f == 1 and kind == 2]

    def _lines(self) -> list[str]:
        return [line for f in self.feature for line in _block("feature", f._lines())]


class FeatureLists(_Named):
    """Lists of features by name."""

    _FIELD = "feature_list"
    _OF = FeatureList

    def __init__(self, feature_list: dict[str, FeatureList] | None = None) -> None:
        self.feature_list = _Map(FeatureList, feature_list or {})


class Example(_Message):
    """One example of a data set: features by name.

    >>> import gradtape as tf
    >>> label = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"label": label}))
    >>> data = example.SerializeToString()
    >>> tf.train.Example.FromString(data).features.feature["label"].int64_list.value
    [3]
    """

    def __init__(self, features: Features | None = None) -> None:
        self.features = Features() if features is None else features

    def _encode(self) -> bytes:
        return wire.message(1, self.features._encode()) if self.features.feature else b""

    def _decode(self, data: bytes) -> None:
        for field, kind, v in wire.fields(data):
            if field == 1 and kind == 2:
                self.features._decode(v)

    def _lines(self) -> list[str]:
        return _block("features", self.features._lines()) if self.features.feature else []


class SequenceExample(_Message):
    """An example with features of the whole sequence, and lists of features of its steps."""

    def __init__(self, context: Features | None = None, feature_lists: FeatureLists | None = None) -> None:
        self.context = Features() if context is None else context
        self.feature_lists = FeatureLists() if feature_lists is None else feature_lists

    def _encode(self) -> bytes:
        out = wire.message(1, self.context._encode()) if self.context.feature else b""
        lists = self.feature_lists
        return out + (wire.message(2, lists._encode()) if lists.feature_list else b"")

    def _decode(self, data: bytes) -> None:
        for field, kind, v in wire.fields(data):
            if kind == 2 and field in (1, 2):
                (self.context if field == 1 else self.feature_lists)._decode(v)

    def _lines(self) -> list[str]:
        context, lists = self.context._lines(), self.feature_lists._lines()
        return (_block("context", context) if context else []) + (
            _block("feature_lists", lists) if lists else []
        )
