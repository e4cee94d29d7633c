"""`tf.random.Generator`: random numbers from a state that the generator keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.locks import Lock
from gradtape._src.ops import random as draw
from gradtape._src.ops.creation import zeros_like
from gradtape._src.ops.join import stack
from gradtape._src.ops.table import composite
from gradtape._src.tensors.random import Algorithm, drawn_stream, signed, stream, unseeded, want_philox

__all__: list[str] = []

_RESERVED = 256  # counter steps per number, as in TensorFlow


def _integers(value: Any) -> list[int]:
    """The integers of a tensor, an array or nested lists, as one list."""
    if isinstance(value, (_core.Tensor, _core.Variable)):
        value = (value if isinstance(value, _core.Tensor) else value._read()).numpy()
    return [int(v) for v in np.asarray(value, dtype=object).reshape(-1)]


def _state_from_seed(seed: Any) -> list[int]:
    if isinstance(seed, int):  # 64-bit words of a long integer, lowest first
        return [signed(seed >> 64 * i) for i in range(3)]
    words = [signed(word) for word in _integers(seed)[:3]]
    return [0] * (3 - len(words)) + words  # short seeds fill the key, which comes last


def create_rng_state(seed: Any, alg: Any) -> Any:
    """The state of a `Generator` made from a seed."""
    want_philox(alg)
    return stream(*_state_from_seed(seed))


class Generator:
    """A random number generator that keeps its state.

    Each call draws new numbers and advances the state; the same seed gives the same sequence.

    >>> import gradtape as tf
    >>> g = tf.random.Generator.from_seed(1)
    >>> g.normal([2]).numpy()
    array([ 0.43842274, -0.53439844], dtype=float32)

    Args:
      copy_from: a generator to copy.
      state: the counter (low and high word) and the key.
      alg: "philox", the only algorithm.
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if copy_from is not None:
            if state is not None or alg is not None:
                raise ValueError("Generator: when `copy_from` is given, `state` and `alg` must be None.")
            self._state: list[int] = list(copy_from._state)
            return
        if state is None or alg is None:
            raise ValueError(
                "Generator: needs both `state` and `alg`. Hint: tf.random.Generator.from_seed(seed)."
            )
        want_philox(alg)
        self.reset(state)

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """Creates a generator with this state."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Creates a generator from a seed: an integer, or up to three of them."""
        return cls(state=_state_from_seed(seed), alg=Algorithm.PHILOX if alg is None else alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Creates a generator with a random seed from the system."""
        state = [signed(unseeded.getrandbits(64)) for _ in range(3)]
        return cls(state=state, alg=Algorithm.PHILOX if alg is None else alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """Creates a generator from a key and a counter (two words, low first)."""
        return cls(state=_key_counter(key, counter), alg=alg)

    def reset(self, state: Any) -> None:
        """Sets the state: the counter (low and high word) and the key."""
        words = [signed(word) for word in _integers(state)]
        if len(words) != 3:
            raise ValueError(f"Generator: the state must be three integers; got {len(words)}.")
        self._state = words

    def reset_from_seed(self, seed: Any) -> None:
        """Sets the state as `from_seed` does."""
        self._state = _state_from_seed(seed)

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Sets the state as `from_key_counter` does."""
        self.reset(_key_counter(key, counter))

    @property
    def state(self) -> Any:
        """The counter (low and high word) and the key, as an int64 tensor."""
        return stream(*self._state)

    @property
    def key(self) -> Any:
        """The key, as an int64 tensor."""
        return self.state[2]

    @property
    def algorithm(self) -> int:
        """The number of the algorithm."""
        return int(Algorithm.PHILOX)

    def skip(self, delta: int) -> Any:
        """Advances the state as if `delta` numbers had been drawn; returns the previous state."""
        before = self.state
        low, high, key = self._state
        counter = ((high & 2**64 - 1) << 64) + (low & 2**64 - 1) + int(delta) * _RESERVED
        self._state = [signed(counter), signed(counter >> 64), key]
        return before

    def _stream(self, count: int) -> Any:
        return drawn_stream(lambda: self._next_stream(count))

    def _next_stream(self, count: int) -> Any:
        low, high, key = self._state
        self.skip(count)
        return stream(key, high, low)

    # ---- numbers ----------------------------------------------------------------------------

    @one_call
    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: Any = None
    ) -> Any:
        """Samples from a normal distribution."""
        return draw.normal_of(self._stream, shape, mean, stddev, dtype)

    @one_call
    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: Any = None
    ) -> Any:
        """Samples from a normal distribution, limited to two standard deviations from the mean."""
        return draw.truncated_normal_of(self._stream, shape, mean, stddev, dtype)

    @one_call
    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, name: Any = None
    ) -> Any:
        """Samples from a uniform distribution over [minval, maxval). Integers need both bounds, or None for both."""
        return draw.uniform_of(self._stream, shape, minval, maxval, dtype)

    @one_call
    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64, name: Any = None) -> Any:
        """Uniform integers from the whole range of `dtype`."""
        return draw.bits_of(self._stream, shape, dtype)

    @one_call
    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = dtypes.int32, name: Any = None
    ) -> Any:
        """Samples from a binomial distribution; `shape` ends with the common shape of `counts` and `probs`."""

        def stream(samples: int, parameters: int) -> Any:
            return self._stream(parameters * 200 * (samples + 3) // 4)  # as far as TensorFlow moves on

        return draw.binomial_of(stream, shape, counts, probs, dtype)

    @one_call
    def make_seeds(self, count: int = 1) -> Any:
        """Seeds for stateless ops, one per column of an int64 tensor [2, count]."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return stack([keys, zeros_like(keys)])

    def split(self, count: int = 1) -> list[Generator]:
        """Creates `count` generators, independent of one another and of this one."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return [Generator(state=[0, 0, int(key)], alg=Algorithm.PHILOX) for key in keys.numpy()]


def _key_counter(key: Any, counter: Any) -> list[int]:
    low, high = (_integers(counter) + [0])[:2]
    return [low, high, *_integers(key)[:1]]


_global_generator: Generator | None = None
_global_lock = Lock()


def get_global_generator() -> Generator:
    """The global generator; created with a random seed when first used."""
    global _global_generator
    with _global_lock:
        if _global_generator is None:
            _global_generator = Generator.from_non_deterministic_state()
        return _global_generator


def set_global_generator(generator: Generator) -> None:
    """Replaces the global generator."""
    global _global_generator
    _global_generator = generator


for _value in (Generator, Algorithm, create_rng_state, get_global_generator, set_global_generator):
    composite(f"random.experimental.{_value.__name__}")(_value)
