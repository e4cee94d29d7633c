"""The file formats that gradtape reads: for each a valid file, how it is loaded, and the allowed outcomes of damage.

`fuzz files` mutates these files. A format with checksums gives its values or an error, never other values; where
`sign` is given, a mutated file gets new checksums, as an attacker would write them: then only errors count.
"""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as tf
from gradtape.io import framing, png, wire

_DATA = Path(__file__).resolve().parents[2] / "tests/train/data"


@dataclass(frozen=True)
class Format:
    """One format: `write(folder)` writes valid files, `load(folder)` returns their values."""

    name: str
    file: str  # the one that is mutated
    write: Callable[[Path], Any]
    load: Callable[[Path], Any]
    checked: bool = False  # whether checksums protect the values
    open_end: bool = False  # whether a file that is cut off between two values is valid, with fewer values
    sign: Callable[[bytes], bytes] | None = None
    also: tuple[type[Exception], ...] = ()  # allowed errors besides those of files
    share: float = 1.0  # how often, for formats that are slow to load
    files: dict[str, bytes] = field(default_factory=dict)


FORMATS: list[Format] = []


def _format(name: str, file: str, write: Callable, load: Callable, **more: Any) -> None:
    FORMATS.append(Format(name, file, write, load, **more))


def _bytes(data: bytes, file: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / file).write_bytes(data)


# ---- checkpoints ----------------------------------------------------------------------------------


class Stored(tf.Module):
    """The objects that are saved and restored."""

    def __init__(self) -> None:
        super().__init__(name="stored")
        self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        self.parts = [tf.Variable(5), {"a": tf.Variable(1 + 2j)}]
        self.rate, self.words, self.sizes = 0.5, ("a", None, True), tf.TensorShape([None, 3])
        self.table, self.kind = np.arange(3), tf.bfloat16
        self.run = tf.function(self.call, input_signature=[tf.TensorSpec([None, 2])])

    def call(self, x: Any) -> Any:
        return tf.nn.relu(x @ self.w)


def _restored(folder: Path) -> Any:
    fresh = Stored()
    for v in fresh.variables:
        v.assign(tf.zeros_like(v))
    tf.train.Checkpoint(m=fresh).read(folder / "ck").expect_partial()
    return [v.numpy() for v in fresh.variables]


def _sign_safetensors(data: bytes) -> bytes:
    """A file as other libraries write it, without a checksum."""
    return data.replace(b'"format":"gradtape"', b'"format":"another1"').replace(b'"crc32":', b'"crc33":')


def _checkpoint(folder: Path) -> None:
    tf.train.Checkpoint(m=Stored()).write(folder / "ck")


_format("safetensors", "ck.safetensors", _checkpoint, _restored, checked=True)
_format(
    "safetensors, signed",
    "ck.safetensors",
    _checkpoint,
    _restored,
    sign=_sign_safetensors,
    also=(ValueError,),
)


def _tensorflow_checkpoint(folder: Path) -> None:
    for part in _DATA.iterdir():
        (folder / part.name).write_bytes(part.read_bytes())


def _variables(folder: Path) -> Any:
    reader = tf.train.load_checkpoint(folder / "from_tensorflow")
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def _sign_index(data: bytes) -> bytes:
    """The table with correct checksums of all blocks that its footer leads to."""
    out = bytearray(data)
    try:
        at = len(data) - 48
        for _ in range(2):
            _, at = wire.number_at(data, at)
            _, at = wire.number_at(data, at)
        offset, at = wire.number_at(data, len(data) - 48)
        first, _ = wire.number_at(data, at)
        # One block of entries in front of the others: it ends where the metaindex block begins.
        for begin, size in ((0, offset - 5), (offset, first)):
            out[begin + size + 1 : begin + size + 5] = framing.masked(bytes(out[begin : begin + size + 1]))
    except (ValueError, IndexError):
        pass
    return bytes(out)


_INDEX, _SHARD = "from_tensorflow.index", "from_tensorflow.data-00000-of-00001"
_format("TensorFlow checkpoint, index", _INDEX, _tensorflow_checkpoint, _variables, checked=True)
_format("TensorFlow checkpoint, index, signed", _INDEX, _tensorflow_checkpoint, _variables, sign=_sign_index,
        also=(tf.errors.UnimplementedError,))  # fmt: skip
_format("TensorFlow checkpoint, data", _SHARD, _tensorflow_checkpoint, _variables, checked=True)


def _state(folder: Path) -> Any:
    state = tf.train.get_checkpoint_state(folder)
    tf.train.latest_checkpoint(folder)
    return str(state)


def _managed(folder: Path) -> None:
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), folder, 2)
    manager.save()
    manager.save()


_format("checkpoint state", "checkpoint", _managed, _state)

# ---- saved_model ----------------------------------------------------------------------------------


def _parts(module: Any) -> Any:
    attributes = {k: v for k, v in vars(module).items() if k not in ("w", "parts", "run", "signatures")}
    return (
        [v.numpy() for v in module.variables],
        repr(sorted(attributes.items())),
        module.run(tf.ones([1, 2])).numpy(),
    )


def _loaded(folder: Path) -> Any:
    return _parts(tf.saved_model.load(folder))


def _loaded_signed(folder: Path) -> Any:
    """Loads with the checksum of the description as it is now."""
    from gradtape.train import safetensors

    path, values = folder / "saved_model.json", folder / "variables/variables.safetensors"
    archive = safetensors.Archive(str(values))
    tensors = {key: archive.tensor(key) for key in archive}
    safetensors.save(str(values), tensors, {"description": f"{framing.crc32c(path.read_bytes()):08x}"})
    tf.saved_model.load(folder)


def _save_module(folder: Path) -> None:
    module = Stored()
    tf.saved_model.save(module, folder, signatures=module.run)


_format("saved_model", "saved_model.json", _save_module, _loaded, checked=True)
_format("saved_model, values", "variables/variables.safetensors", _save_module, _loaded, checked=True)
_format("saved_model, signed", "saved_model.json", _save_module, _loaded_signed, also=(ImportError,))

# ---- records --------------------------------------------------------------------------------------

_feature = tf.train.Feature
_EXAMPLE = tf.train.Example(
    features=tf.train.Features(
        feature={
            "x": _feature(float_list=tf.train.FloatList(value=[1.0, 2.5])),
            "n": _feature(int64_list=tf.train.Int64List(value=[3, -(1 << 40)])),
            "s": _feature(bytes_list=tf.train.BytesList(value=[b"abc", b""])),
        }
    )
).SerializeToString()
_STEPS = tf.train.FeatureList(feature=[_feature(int64_list=tf.train.Int64List(value=[k])) for k in range(3)])
_SEQUENCE = tf.train.SequenceExample(
    context=tf.train.Example.FromString(_EXAMPLE).features,
    feature_lists=tf.train.FeatureLists(feature_list={"l": _STEPS}),
).SerializeToString()
_RECORDS = b"".join(map(framing.framed, (_EXAMPLE, b"", _SEQUENCE, b"x" * 300)))


def _records_of(compression: str) -> Callable[[Path], Any]:
    return lambda folder: [r.numpy() for r in tf.data.TFRecordDataset(str(folder / "r"), compression)]


_format("TFRecord", "r", _bytes(_RECORDS, "r"), _records_of(""), checked=True, open_end=True)
_format(
    "TFRecord, GZIP",
    "r",
    _bytes(gzip.compress(_RECORDS, mtime=0), "r"),
    _records_of("GZIP"),
    checked=True,
    open_end=True,
)
_format(
    "TFRecord, ZLIB",
    "r",
    _bytes(zlib.compress(_RECORDS), "r"),
    _records_of("ZLIB"),
    checked=True,
    open_end=True,
)
_format("text lines, GZIP", "r", _bytes(gzip.compress(b"some\nlines\r\n\n" * 50, mtime=0), "r"),
        lambda f: [r.numpy() for r in tf.data.TextLineDataset(str(f / "r"), "GZIP")],
        checked=True, open_end=True)  # fmt: skip
_format("fixed-length records", "r", _bytes(bytes(range(60)), "r"),
        lambda folder: [r.numpy() for r in tf.data.FixedLengthRecordDataset(str(folder / "r"), 7, 2, 2)])  # fmt: skip

_FEATURES = {
    "x": tf.io.FixedLenFeature([2], tf.float32),
    "n": tf.io.VarLenFeature(tf.int64),
    "rows": tf.io.RaggedFeature(tf.int64, value_key="n"),
    "s": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True),
}


def _read(folder: Path) -> bytes:
    return tf.io.read_file(str(folder / "r")).numpy()


def _numpy(structure: Any) -> Any:
    return [x.numpy() for x in tf.nest.flatten(structure, expand_composites=True)]


_format(
    "Example", "r", _bytes(_EXAMPLE, "r"), lambda f: _numpy(tf.io.parse_single_example(_read(f), _FEATURES))
)
_format(
    "Examples", "r", _bytes(_EXAMPLE, "r"), lambda f: _numpy(tf.io.parse_example([_read(f)] * 2, _FEATURES))
)
_format("SequenceExample", "r", _bytes(_SEQUENCE, "r"),
        lambda f: _numpy(tf.io.parse_sequence_example([_read(f)], _FEATURES,
                                                      {"l": tf.io.FixedLenSequenceFeature([], tf.int64)})))  # fmt: skip
for _cls, _data in (
    (tf.train.Example, _EXAMPLE),
    (tf.train.SequenceExample, _SEQUENCE),
):
    _format(f"{_cls.__name__} in Python", "r", _bytes(_data, "r"),
            lambda f, cls=_cls: str(cls.FromString(_read(f))), also=(ValueError,))  # fmt: skip
_JSON = {
    "features": {
        "feature": {"x": {"floatList": {"value": [1, 2.5]}}, "s": {"bytesList": {"value": ["YWJj"]}}}
    }
}
_format("Example in JSON", "r", _bytes(json.dumps(_JSON).encode(), "r"),
        lambda f: tf.io.decode_json_example(_read(f)).numpy())  # fmt: skip

# ---- tensors --------------------------------------------------------------------------------------

_TENSOR = tf.io.serialize_tensor(tf.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
_LISTED = wire.varint(1, 3) + wire.message(2, wire.message(2, wire.varint(1, 4))) + wire.packed(7, [1, 2])
_WORDS = tf.io.serialize_tensor(np.array([b"ab", b"c"], object)).numpy()
for _name, _data, _type in (("TensorProto", _TENSOR, tf.float32), ("TensorProto, listed", _LISTED, tf.int32),
                            ("TensorProto, strings", _WORDS, tf.string)):  # fmt: skip
    _format(_name, "r", _bytes(_data, "r"), lambda f, t=_type: tf.io.parse_tensor(_read(f), t).numpy())
    _format(_name + " in Python", "r", _bytes(_data, "r"), also=(ValueError, TypeError),
            load=lambda f: tf.make_ndarray(_tensor_proto().FromString(_read(f))))  # fmt: skip


def _tensor_proto() -> Any:
    return type(tf.make_tensor_proto(1))


_format("raw numbers", "r", _bytes(bytes(24), "r"), lambda f: tf.io.decode_raw(_read(f), tf.float64).numpy())
_format("base64", "r", _bytes(b"YWJjZGVmZ2hpamts", "r"), lambda f: tf.io.decode_base64(_read(f)).numpy())
# Two such files concatenated are a valid file of both: not damage.
_format("GZIP in memory", "r", _bytes(gzip.compress(b"abc" * 99, mtime=0), "r"),
        load=lambda f: tf.io.decode_compressed(_read(f), "GZIP").numpy())  # fmt: skip

# ---- tables ---------------------------------------------------------------------------------------

_CSV = b'n,x,s\n1,2.5,a\n2,,"b, ""c"""\n-3,1e3,\xc3\xa4\n'


def _csv_rows(folder: Path) -> Any:
    defaults = [tf.int32, [0.0], tf.string]
    dataset = tf.data.experimental.CsvDataset(str(folder / "t.csv"), defaults, header=True)
    return [_numpy(row) for row in dataset]


def _csv_batches(folder: Path) -> Any:
    make = tf.data.experimental.make_csv_dataset
    return [_numpy(b) for b in make(str(folder / "t.csv"), 2, num_epochs=1, shuffle=False)]


_format("CSV", "t.csv", _bytes(_CSV, "t.csv"), _csv_rows)
_format("CSV, batches", "t.csv", _bytes(_CSV, "t.csv"), _csv_batches, also=(ValueError,))
_format("CSV lines", "r", _bytes(b'1,2.5,"a, b"', "r"),
        lambda f: _numpy(tf.io.decode_csv([_read(f)], [tf.int32, [0.0], [""]])))  # fmt: skip


def _database(folder: Path) -> None:
    with sqlite3.connect(folder / "d.sqlite") as connection:
        connection.execute("create table t (n integer, x real, s text)")
        connection.executemany("insert into t values (?, ?, ?)", [(1, 2.5, "a"), (2, None, "b")])
    connection.close()


def _rows(folder: Path) -> Any:
    types = (tf.int32, tf.float64, tf.string)
    dataset = tf.data.experimental.SqlDataset(
        "sqlite", str(folder / "d.sqlite"), "select n, x, s from t", types
    )
    return [_numpy(row) for row in dataset]


_format("SQLite", "d.sqlite", _database, _rows, share=0.2)


def _vocabulary(folder: Path) -> Any:
    draw = tf.random.fixed_unigram_candidate_sampler
    return _numpy(draw([[1]], 1, 2, True, 3, vocab_file=str(folder / "v"), seed=1)[1:])


_format("vocabulary", "v", _bytes(b"a,1\nb,2.5\nc,3\n", "v"), _vocabulary)

# ---- datasets -------------------------------------------------------------------------------------


def _dataset() -> Any:
    parts = {"x": tf.reshape(tf.range(6.0), [3, 2]), "s": np.array([b"a", b"", b"xyz"], object)}
    return tf.data.Dataset.from_tensor_slices((parts, tf.cast(tf.range(3), tf.bfloat16)))


def _elements(dataset: Any) -> Any:
    return [_numpy(x) for x in dataset]


def _sign_elements(data: bytes) -> bytes:
    """Records with correct checksums, as far as they can be separated."""
    out, at = [], 0
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 8], "little")
        size = size if size <= len(data) - at - 12 else max(len(data) - at - 16, 0)
        out.append(framing.framed(data[at + 12 : at + 12 + size]))
        at += 16 + size
    return b"".join(out)


_saved: Any = lambda folder: _dataset().save(str(folder))  # noqa: E731
_load: Any = lambda folder: _elements(tf.data.Dataset.load(str(folder)))  # noqa: E731
_format("dataset", "elements", _saved, _load, checked=True)
_format("dataset, signed", "elements", _saved, _load, sign=_sign_elements)
_format(
    "dataset, GZIP", "elements", lambda f: _dataset().save(str(f), compression="GZIP"), _load, checked=True
)
_format("cache", "c.elements", lambda f: _elements(_dataset().cache(str(f / "c"))), checked=True,
        load=lambda f: _elements(_dataset().cache(str(f / "c"))))  # fmt: skip
_format("snapshot", "s/snapshot.elements", lambda f: _elements(_dataset().snapshot(str(f / "s"))), checked=True,
        load=lambda f: _elements(_dataset().snapshot(str(f / "s"))))  # fmt: skip

# ---- images ---------------------------------------------------------------------------------------

_PIXELS = np.random.default_rng(0).integers(0, 256, [9, 7, 3]).astype(np.uint8)


def _image(kind: str, **options: Any) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(_PIXELS).save(file, kind, **options)
    return file.getvalue()


def _animation() -> bytes:
    from PIL import Image

    file = io.BytesIO()
    frames = [Image.fromarray(_PIXELS), Image.fromarray(_PIXELS[::-1].copy())]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return file.getvalue()


def _bmp_32() -> bytes:
    head = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + 4 * 6, 0, 0, 54, 40, 3, 2, 1, 32, 0, 24, 0, 0, 0, 0)
    return head + bytes(range(24))


_format("PNG", "r", _bytes(png.encode(_PIXELS), "r"), lambda f: tf.io.decode_png(_read(f)).numpy())
_format("PNG, 16 bits", "r", _bytes(png.encode(_PIXELS.astype(np.uint16) * 200), "r"),
        lambda f: tf.io.decode_png(_read(f), dtype=tf.uint16).numpy(), checked=True)  # fmt: skip
_format("JPEG", "r", _bytes(_image("JPEG"), "r"), lambda f: tf.io.decode_jpeg(_read(f)).numpy())
_format("JPEG, recovered", "r", _bytes(_image("JPEG"), "r"),
        lambda f: tf.io.decode_jpeg(_read(f), try_recover_truncated=True).numpy())  # fmt: skip
_format("GIF", "r", _bytes(_animation(), "r"), lambda f: tf.io.decode_gif(_read(f)).numpy())
_format("WebP", "r", _bytes(_image("WEBP"), "r"), lambda f: tf.io.decode_webp(_read(f)).numpy())
_format("BMP", "r", _bytes(_image("BMP"), "r"), lambda f: tf.io.decode_bmp(_read(f)).numpy())
_format("BMP, 32 bits", "r", _bytes(_bmp_32(), "r"), lambda f: tf.io.decode_bmp(_read(f)).numpy())
_format("any image", "r", _bytes(_image("PNG"), "r"), lambda f: tf.io.decode_image(_read(f)).numpy())
_format(
    "shape of a JPEG", "r", _bytes(_image("JPEG"), "r"), lambda f: tf.io.extract_jpeg_shape(_read(f)).numpy()
)

# ---- models of Keras -------------------------------------------------------------------------------


def _model() -> Any:
    keras = tf.keras
    model = keras.Sequential(
        [keras.Input([2]), keras.layers.Dense(3, name="a"), keras.layers.Dense(1, name="b")]
    )
    for v in model.weights:
        v.assign(tf.ones(v.shape))
    return model


def _weights(model: Any) -> Any:
    return [np.asarray(w) for w in model.get_weights()]


# An unreadable file raises an OSError, and one that does not fit a ValueError or Keras' own TypeError. Files in plain
# HDF5 are not mutated: the library may read a damaged one endlessly, and has no limit to set.
_format("Keras", "m.keras", lambda f: _model().save(str(f / "m.keras")), also=(OSError, ValueError, TypeError),
        load=lambda f: _weights(tf.keras.models.load_model(str(f / "m.keras"))), checked=True, share=0.1)  # fmt: skip
