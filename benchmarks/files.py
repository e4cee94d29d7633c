"""Files and images, against TensorFlow only: records written and read, images decoded, boxes chosen. The part `files`.

Imported by the processes of both libraries, so it needs nothing but the standard library and NumPy. Files are in a
temporary folder of the process, in the disk cache.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import cases
import parts

_LABELS = ("gradtape eager", "tensorflow eager")
_SMALL, _LARGE = (10_000, 100), (500, 20_000)  # records, and bytes of each
_SIDE = 224  # pixels


@functools.cache
def _folder() -> str:
    path = tempfile.mkdtemp(prefix="gradtape-files-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def _records(count: int, size: int) -> list[bytes]:
    import numpy as np

    rows = np.random.default_rng(0).integers(0, 256, (count, size), np.uint8)
    return [row.tobytes() for row in rows]


def _write(tf: Any, count: int, size: int) -> str:
    path = os.path.join(_folder(), f"{count}.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for record in _records(count, size):
            writer.write(record)
    return path


def _read(tf: Any, count: int, size: int, batch: int = 0) -> Callable[[], list[Any]]:
    ds = tf.data.TFRecordDataset(_write(tf, count, size))
    ds = ds.batch(batch) if batch else ds
    return lambda: list(ds)


def _picture() -> Any:
    """Colours that change slowly, and a little noise: packed like a photograph."""
    import numpy as np

    y, x = np.mgrid[:_SIDE, :_SIDE] / _SIDE
    waves = np.stack([np.sin(9 * x + 5 * y), np.cos(7 * x * y), np.sin(3 * y)], -1)
    noise = np.random.default_rng(0).normal(0, 4, waves.shape)
    return np.clip(127 + 100 * waves + noise, 0, 255).astype(np.uint8)


def _boxes() -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    corners, sizes = rng.random((1000, 2)), rng.random((1000, 2)) * 0.2
    return np.concatenate([corners, corners + sizes], 1).astype(np.float32), rng.random(1000).astype(
        np.float32
    )


def _decode(tf: Any, kind: str) -> Callable[[], Any]:
    data = getattr(tf.io, f"encode_{kind}")(_picture())
    decode = getattr(tf.io, f"decode_{kind}")
    return lambda: decode(data)


def _parse(tf: Any) -> Callable[[], Any]:
    import numpy as np

    def example(i: int) -> bytes:
        floats = tf.train.FloatList(value=np.arange(20, dtype=np.float32) + i)
        features = {
            "x": tf.train.Feature(float_list=floats),
            "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
        }
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    serialized = tf.constant([example(i) for i in range(128)])
    kinds = {"x": tf.io.FixedLenFeature([20], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    return lambda: tf.io.parse_example(serialized, kinds)["x"]


def _nms(tf: Any) -> Callable[[], Any]:
    boxes, scores = map(tf.constant, _boxes())
    return lambda: tf.image.non_max_suppression(boxes, scores, 100, 0.5)


# Case -> a factory of the timed function, given the library; and the number of units per call.
CASES: dict[str, tuple[Callable[[Any], Callable[[], Any]], int]] = {
    "write a record of 100 bytes": (lambda tf: lambda: _write(tf, *_SMALL), _SMALL[0]),
    "write a record of 20,000 bytes": (lambda tf: lambda: _write(tf, *_LARGE), _LARGE[0]),
    "read a record of 100 bytes": (lambda tf: _read(tf, *_SMALL), _SMALL[0]),
    "read a record of 100 bytes, batch 128": (lambda tf: _read(tf, *_SMALL, 128), _SMALL[0]),
    "read a record of 20,000 bytes": (lambda tf: _read(tf, *_LARGE), _LARGE[0]),
    "parse 128 examples": (_parse, 1),
    "decode JPEG 224x224": (lambda tf: _decode(tf, "jpeg"), 1),
    "decode PNG 224x224": (lambda tf: _decode(tf, "png"), 1),
    "choose 100 of 1,000 boxes": (_nms, 1),
}


def _sum(result: Any) -> float:
    """A checksum of a result: bytes of a file, of records, or the sum of numbers."""
    import numpy as np

    if isinstance(result, str):
        return os.path.getsize(result)
    if isinstance(result, list):
        return sum(len(record) for part in result for record in np.ravel(part.numpy()))
    if result.dtype == "uint8":  # JPEG decoders round differently
        return result.numpy().size
    return float(np.asarray(result.numpy(), np.float64).sum())


def case(library: str, module: Any, name: str, mode: str) -> dict[str, cases.Case]:
    make, count = CASES[name]
    once = make(module)
    run = (lambda n: once()) if count > 1 else cases.repeat(once)
    return {"call": cases.Case(run, count=count if count > 1 else None, check=lambda: [_sum(once())])}


def measure(options: Any) -> dict[str, Any]:
    todo = {
        name: {label: parts.command(label, "files", name) for label in _LABELS}
        for name in parts.some(CASES, options)
    }
    return parts.measure("files", todo, options)
