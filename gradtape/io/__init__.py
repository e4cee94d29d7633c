"""`tf.io`: files, images, records and examples.

In reading order: `contents` (bytes and paths as arguments), `files`, `gfile`, `images` and `encoding` (with `png`),
`raw` (numbers, tensors), `csv_lines`, `records` (TFRecord files), `features` and `parsing` (parsing examples from
records).
"""

from __future__ import annotations

from gradtape._src.public import absent as _absent
from gradtape.io import gfile as gfile
from gradtape.io.csv_lines import decode_csv
from gradtape.io.encoding import encode_jpeg, encode_png
from gradtape.io.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    decode_proto,
    encode_proto,
    write_graph,
)
from gradtape.io.files import match_filenames_once, matching_files, read_file, write_file
from gradtape.io.images import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_jxl,
    decode_png,
    decode_webp,
    extract_jpeg_shape,
    is_jpeg,
)
from gradtape.io.parsing import (
    decode_json_example,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)
from gradtape.io.raw import (
    decode_base64,
    decode_compressed,
    decode_raw,
    encode_base64,
    parse_tensor,
    serialize_tensor,
)
from gradtape.io.records import TFRecordOptions, TFRecordWriter, tf_record_iterator
from gradtape.io.sparse_strings import deserialize_many_sparse, serialize_many_sparse, serialize_sparse

__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "RaggedFeature", "SparseFeature", "TFRecordOptions",
    "TFRecordWriter", "VarLenFeature", "decode_and_crop_jpeg", "decode_base64", "decode_bmp", "decode_compressed",
    "decode_csv", "decode_gif", "decode_image", "decode_jpeg", "decode_json_example", "decode_jxl", "decode_png",
    "decode_proto", "decode_raw", "decode_webp", "deserialize_many_sparse", "encode_base64", "encode_jpeg",
    "encode_png", "encode_proto", "extract_jpeg_shape", "gfile", "is_jpeg", "match_filenames_once",
    "matching_files", "parse_example", "parse_sequence_example", "parse_single_example",
    "parse_single_sequence_example", "parse_tensor", "read_file", "serialize_many_sparse", "serialize_sparse",
    "serialize_tensor", "tf_record_iterator", "write_file", "write_graph",
]  # fmt: skip

__getattr__, __dir__ = _absent.of("io")
