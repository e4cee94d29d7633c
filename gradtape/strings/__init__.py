"""`tf.strings`: functions of tensors of strings.

In reading order: `op` (how a function of bytes becomes an op), `basic`, `numbers`, `regex` (with `patterns`),
`splitting`, `unicode` (with `coding` and `scripts`), `hashing`.
"""

from __future__ import annotations

from gradtape._src.public import absent as _absent
from gradtape.strings.basic import (
    format,
    join,
    length,
    lower,
    reduce_join,
    strip,
    substr,
    unsorted_segment_join,
    upper,
)
from gradtape.strings.hashing import to_hash_bucket, to_hash_bucket_fast, to_hash_bucket_strong
from gradtape.strings.numbers import as_string, to_number
from gradtape.strings.regex import regex_full_match, regex_replace
from gradtape.strings.splitting import bytes_split, ngrams, split
from gradtape.strings.unicode import (
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_script,
    unicode_split,
    unicode_split_with_offsets,
    unicode_transcode,
)

__all__ = [
    "as_string", "bytes_split", "format", "join", "length", "lower", "ngrams", "reduce_join", "regex_full_match",
    "regex_replace", "split", "strip", "substr", "to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong",
    "to_number", "unicode_decode", "unicode_decode_with_offsets", "unicode_encode", "unicode_script", "unicode_split",
    "unicode_split_with_offsets", "unicode_transcode", "unsorted_segment_join", "upper",
]  # fmt: skip

__getattr__, __dir__ = _absent.of("strings")
