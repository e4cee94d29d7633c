"""`tf.random`: seeds, the streams of random numbers, and `Generator`.

Every random number is a function of a stream `(key, high, low)` of the counter-based generator
Philox, so the same stream gives the same numbers, bit for bit those of TensorFlow, on any
number of threads. This module decides which stream a call gets; the ops that draw from it are
rows in `gradtape/_src/ops/random.py`, which also adds `normal`, `uniform`, ... to this namespace.
"""

from __future__ import annotations

import array
import contextlib
import enum
import os
import random as _python
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError

_LARGEST_SEED = 2**31 - 1
_DEFAULT_SEED = 87654321  # the global seed when only an op seed is given
_RESERVED = 256  # steps of the counter that belong to one number, as in TensorFlow
_INT64 = dtypes.int64._code

_fresh = _python.Random()  # seeded by the system; for calls without any seed
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _fresh.seed())


class Seeds:
    """What `set_seed` sets: one for the process, as in TensorFlow."""

    def __init__(self, given: int | None = None) -> None:
        self.given = given
        self.sequence = _python.Random(given)
        self.used: dict[tuple, int] = {}  # how far the streams of ops that go on have been used
        self._lock = threading.Lock()

    def go_on(self, op: str, dtype: Any, seeds: tuple[int, int], steps: int) -> Any:
        """The stream of an op behind what its calls have used before."""
        which = op, dtype, *seeds
        with self._lock:
            low = self.used.get(which, 0)
            self.used[which] = low + steps
        return stream(*seeds, low)


_seeds = Seeds()


class _Call:
    """A call inside `isolated`: the seeds that take the place of the process's."""

    __slots__ = ("ops", "seeds")

    def __init__(self, seeds: Seeds | None) -> None:
        self.seeds = seeds
        self.ops = 0  # random ops without a seed of their own, in this call


_inside = _core.Setting(_Call(None))


def isolated_seeds() -> Seeds:
    """Seeds for `isolated` that start from the global seed."""
    return Seeds(_seeds.given)


def isolated(seeds: Seeds) -> _core.Scope:
    """One call of a function whose random ops leave the random numbers of the program as they are.

    For the functions of datasets: how far a thread has read ahead must not change the program's numbers.
    As in a graph of TensorFlow's, the ops of the function are numbered, and each goes on from call to call.
    """
    return _inside.to(_Call(seeds))


def set_seed(seed: int) -> None:
    """Sets the global seed: the random ops after it give the same numbers every time.

    Without it (and without op seeds) numbers differ from run to run. Setting it again starts the
    sequence again:

    >>> import gradtape as tf
    >>> tf.random.set_seed(42)
    >>> a = tf.random.normal([2])
    >>> tf.random.set_seed(42)
    >>> bool(tf.reduce_all(a == tf.random.normal([2])))
    True
    """
    try:
        seed = int(seed)
    except (TypeError, ValueError):
        raise TypeError(f"set_seed: the seed must be an integer; got {seed!r}.") from None
    _seeds.given = seed
    _seeds.sequence = _python.Random(seed)
    _seeds.used = {}


def next_seeds(op_seed: int | None = None) -> tuple[int, int]:
    """The two seeds of the next random op, by TensorFlow's rules; random ones if nothing is set."""
    call = _inside.now()
    state = call.seeds or _seeds
    if state.given is None:
        if op_seed is None:
            return _fresh.getrandbits(62), _fresh.getrandbits(62)
        seeds = _DEFAULT_SEED, int(op_seed)
    else:
        seeds = state.given, _number(call) if op_seed is None else int(op_seed)
    first, second = seeds[0] % _LARGEST_SEED, seeds[1] % _LARGEST_SEED
    return (first, second) if first or second else (0, _LARGEST_SEED)


def _number(call: _Call) -> int:
    """The seed of an op that has none."""
    if call.seeds is None:
        return _seeds.sequence.randint(0, _LARGEST_SEED)
    call.ops += 1
    return call.ops - 1


def signed(number: int) -> int:
    """The int64 with the low 64 bits of `number`."""
    number &= 2**64 - 1
    return number - 2**64 if number >> 63 else number


def stream(key: int, high: int, low: int) -> Any:
    """A stream as the tensor int64[3] that random ops take."""
    return _core.from_buffer(array.array("q", (key, high, low)), _INT64)


def op_stream(op: str, dtype: Any, op_seed: int | None, steps: int) -> Any:
    """The stream of a call that uses `steps` steps of the counter.

    With an op seed, calls of the same op go on where the one before stopped. In a traced function
    each run of the graph takes a new stream.
    """

    def make_in(graph: Any) -> Callable[[], Any]:
        if _seeds.given is None and op_seed is None:
            return make
        number = graph.random_ops
        if op_seed is None:
            graph.random_ops += 1
        return _InGraph(op, dtype, number if op_seed is None else op_seed, steps)

    def make() -> Any:
        return _op_stream(op, dtype, op_seed, steps)

    return _drawn(make, make_in)


def _op_stream(op: str, dtype: Any, op_seed: int | None, steps: int) -> Any:
    seeds = next_seeds(op_seed)
    inside = _inside.now().seeds
    if op_seed is None and (inside is None or inside.given is None):
        return stream(*seeds, 0)
    return (inside or _seeds).go_on(op, dtype, seeds, steps)


class _InGraph:
    """The streams of one random op of a graph, by TensorFlow's rules.

    A graph numbers its random ops itself and keeps the seed that was set when it was traced; each op goes
    on from run to run, and starts again with `set_seed`.
    """

    def __init__(self, op: str, dtype: Any, op_seed: int, steps: int) -> None:
        self.op, self.dtype, self.seeds, self.steps = op, dtype, next_seeds(op_seed), steps
        self.low, self.since = 0, _seeds.sequence

    def __call__(self) -> Any:
        inside = _inside.now().seeds
        if inside is not None:
            return inside.go_on(self.op, self.dtype, self.seeds, self.steps)
        if self.since is not _seeds.sequence:
            self.low, self.since = 0, _seeds.sequence
        low = self.low
        self.low += self.steps
        return stream(*self.seeds, low)


class _Kept(NamedTuple):
    """Streams that are written down, or taken from what was written down."""

    into: tuple[list, ...] = ()
    given: Iterator | None = None


_kept = _core.Setting(_Kept())


def _drawn(make: Callable[[], Any], make_in: Callable[[Any], Callable[[], Any]] | None = None) -> Any:
    """A new stream; in a traced function one for each run of the graph, by `make_in(graph)` if given."""
    kept = _kept.now()
    drawn = None if kept.given is None else next(kept.given, None)
    if drawn is None or not _usable(drawn):
        graph = _core.current_trace()
        if graph is None:
            drawn = make()
        else:
            from gradtape._src.graph.effects import fresh

            drawn = fresh("random stream", make_in(graph) if make_in else make, (3,), _INT64)
    for streams in kept.into:
        streams.append(drawn)
    return drawn


def _usable(drawn: Any) -> bool:
    """Streams drawn in the body of a loop or branch stay there."""
    symbol, now = drawn._symbol, _core.current_trace()
    if symbol is None or symbol.graph is now:
        return True
    encloses = getattr(now, "_encloses", None)
    return encloses is not None and encloses(symbol.graph)


@contextlib.contextmanager
def keep_streams() -> Iterator[list]:
    """Fills a list with the streams that are drawn in this block."""
    streams: list = []
    kept = _kept.now()
    with _kept.to(_Kept((*kept.into, streams), kept.given)):
        yield streams


def same_streams(streams: list) -> _core.Scope:
    """Random ops in this block draw from these streams: they give the same numbers again."""
    return _kept.to(_Kept(given=iter(streams)))


class Algorithm(enum.IntEnum):
    """The generators of random bits; gradtape has Philox."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def want_philox(alg: Any) -> None:
    """Refuses other generators of random bits than Philox."""
    if isinstance(alg, str) and alg.lower() in ("philox", "auto_select"):
        return
    if alg is None or (not isinstance(alg, str) and int(alg) in (Algorithm.PHILOX, Algorithm.AUTO_SELECT)):
        return
    known = str(alg).lower() == "threefry" or alg == Algorithm.THREEFRY
    words = f"random: only the algorithm 'philox' is available; got {alg!r}."
    raise InvalidArgumentError(words) if known else ValueError(words)


def _integers(value: Any) -> list[int]:
    """A tensor, array or nest of lists of integers, flat."""
    import numpy as np

    if isinstance(value, (_core.Tensor, _core.Variable)):
        value = (value if isinstance(value, _core.Tensor) else value._read()).numpy()
    return [int(v) for v in np.asarray(value, dtype=object).reshape(-1)]


def _state_from_seed(seed: Any) -> list[int]:
    if isinstance(seed, int):  # the words of a long integer, lowest first
        return [signed(seed >> 64 * i) for i in range(3)]
    words = [signed(word) for word in _integers(seed)[:3]]
    return [0] * (3 - len(words)) + words  # short seeds belong to the key, which comes last


def create_rng_state(seed: Any, alg: Any) -> Any:
    """The state of a `Generator` made from a seed."""
    want_philox(alg)
    return stream(*_state_from_seed(seed))


class Generator:
    """A random number generator with a state of its own.

    Each call draws new numbers and moves the state on; the same seed gives the same sequence.

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
        """A generator with this state."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator from a seed: an integer, or up to three of them."""
        return cls(state=_state_from_seed(seed), alg=Algorithm.PHILOX if alg is None else alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator whose numbers differ from run to run."""
        state = [signed(_fresh.getrandbits(64)) for _ in range(3)]
        return cls(state=state, alg=Algorithm.PHILOX if alg is None else alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """A generator from a key and a counter (two words, low first)."""
        return cls(state=_key_counter(key, counter), alg=alg)

    def reset(self, state: Any) -> None:
        """Sets the state."""
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
        """Moves on as if `delta` numbers had been drawn; returns the state before."""
        before = self.state
        low, high, key = self._state
        counter = ((high & 2**64 - 1) << 64) + (low & 2**64 - 1) + int(delta) * _RESERVED
        self._state = [signed(counter), signed(counter >> 64), key]
        return before

    def _stream(self, count: int) -> Any:
        return _drawn(lambda: self._next_stream(count))

    def _next_stream(self, count: int) -> Any:
        low, high, key = self._state
        self.skip(count)
        return stream(key, high, low)

    # ---- numbers ----------------------------------------------------------------------------

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: Any = None
    ) -> Any:
        """Normal numbers of this mean and standard deviation."""
        from gradtape._src.ops import random as draw

        return draw.normal_of(self._stream, shape, mean, stddev, dtype)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: Any = None
    ) -> Any:
        """Normal numbers; those more than two standard deviations from the mean are drawn again."""
        from gradtape._src.ops import random as draw

        return draw.truncated_normal_of(self._stream, shape, mean, stddev, dtype)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, name: Any = None
    ) -> Any:
        """Uniform numbers in [minval, maxval); integers need both bounds, or None for both."""
        from gradtape._src.ops import random as draw

        return draw.uniform_of(self._stream, shape, minval, maxval, dtype)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64, name: Any = None) -> Any:
        """Integers from the whole range of their type."""
        from gradtape._src.ops import random as draw

        return draw.bits_of(self._stream, shape, dtype)

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = dtypes.int32, name: Any = None
    ) -> Any:
        """How many of `counts` trials with the probability `probs` succeed; `shape` ends with their shape."""
        from gradtape._src.ops import random as draw

        def stream(samples: int, parameters: int) -> Any:
            return self._stream(parameters * 200 * (samples + 3) // 4)  # as far as TensorFlow moves on

        return draw.binomial_of(stream, shape, counts, probs, dtype)

    def make_seeds(self, count: int = 1) -> Any:
        """Seeds for stateless ops, one per column of an int64 tensor [2, count]."""
        from gradtape._src import ops

        keys = self.uniform_full_int([count], dtypes.int64)
        return ops.stack([keys, ops.zeros_like(keys)])

    def split(self, count: int = 1) -> list[Generator]:
        """Generators with numbers independent of each other and of this one's."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return [Generator(state=[0, 0, int(key)], alg=Algorithm.PHILOX) for key in keys.numpy()]


def _key_counter(key: Any, counter: Any) -> list[int]:
    low, high = (_integers(counter) + [0])[:2]
    return [low, high, *_integers(key)[:1]]


_global_generator: Generator | None = None


def get_global_generator() -> Generator:
    """The generator of the process; made from the system's randomness when first asked for."""
    global _global_generator
    if _global_generator is None:
        _global_generator = Generator.from_non_deterministic_state()
    return _global_generator


def set_global_generator(generator: Generator) -> None:
    """Replaces the generator of the process."""
    global _global_generator
    _global_generator = generator
