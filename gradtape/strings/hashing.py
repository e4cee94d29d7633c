"""Hashes strings into buckets: `tf.strings.to_hash_bucket` and variants, with the functions of `base/hashes.py`."""

from __future__ import annotations

from typing import Any

from gradtape._src.base.calls import one_call
from gradtape._src.base.dtypes import int64
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.hashes import fingerprint, keyed, murmur
from gradtape._src.control.text_ops import each, strings_of


def _count(num_buckets: Any, op: str) -> int:
    count = int(num_buckets)
    if count < 1:
        raise InvalidArgumentError(
            f"Value for attr 'num_buckets' of {count} must be at least minimum 1 [Op:{op}]"
        )
    return count


@one_call
def to_hash_bucket(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """The hash of each string modulo the number of buckets.

    >>> import gradtape as tf
    >>> tf.strings.to_hash_bucket(["Hello", "TensorFlow", "2.x"], 3).numpy()
    array([2, 0, 1])
    """
    count = _count(num_buckets, "StringToHashBucket")
    return each("to_hash_bucket", lambda s: murmur(s) % count, strings_of(input), int64)


@one_call
def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """The fingerprint of each string (FarmHash) modulo the number of buckets.

    >>> import gradtape as tf
    >>> tf.strings.to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3).numpy()
    array([0, 2, 2])
    """
    count = _count(num_buckets, "StringToHashBucketFast")
    return each("to_hash_bucket_fast", lambda s: fingerprint(s) % count, strings_of(input), int64)


@one_call
def to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Any:
    """The keyed hash of each string (SipHash), modulo the number of buckets.

    Args:
      key: two 64-bit integers, which should be secret.

    >>> import gradtape as tf
    >>> tf.strings.to_hash_bucket_strong(["Hello", "TF"], 3, [1, 2]).numpy()
    array([2, 0])
    """
    if not isinstance(key, (list, tuple)):
        raise TypeError(f"Expected list for 'key' argument to 'string_to_hash_bucket_strong' Op, not {key}.")
    count, words = _count(num_buckets, "StringToHashBucketStrong"), [int(k) for k in key]
    if len(words) != 2:
        raise InvalidArgumentError(
            f"Key must have 2 elements; got {len(words)}. [Op:StringToHashBucketStrong]"
        )
    both = (words[0], words[1])
    return each("to_hash_bucket_strong", lambda s: keyed(s, both) % count, strings_of(input), int64)
