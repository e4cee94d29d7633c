"""`tf.random`: seeds, and the streams of random numbers.

Every random number is a function of a stream `(key, high, low)` of the counter-based generator Philox, so the same
stream gives the same numbers, bit for bit those of TensorFlow, on any number of threads. This module decides which
stream a call uses; the ops that draw from it are rows in `gradtape/_src/ops/random.py`, next to `Generator`.
"""

from __future__ import annotations

import array
import contextlib
import enum
import os
import random as _python
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src.base import dtypes, replicas
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.locks import Lock
from gradtape._src.tensors import above

_LARGEST_SEED = 2**31 - 1
_DEFAULT_SEED = 87654321  # the global seed when only an op seed is given
_INT64 = dtypes.int64._code
_APART = 1640531527  # 2**32 divided by the square of the golden ratio: seeds far apart, for any number of processes

unseeded = _python.Random()  # seeded by the system; for calls without any seed
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: unseeded.seed())


class Seeds:
    """The state that `set_seed` sets; one for the process, as in TensorFlow."""

    def __init__(self, given: int | None = None) -> None:
        self.given = given
        self.sequence = _python.Random(given)
        self.used: dict[tuple, int] = {}  # how much of each op's stream is used
        self._lock = Lock()

    def go_on(self, op: str, dtype: Any, seeds: tuple[int, int], steps: int) -> Any:
        """The stream of an op, advanced past what its earlier calls have used."""
        which = op, dtype, *seeds
        with self._lock:
            low = self.used.get(which, 0)
            self.used[which] = low + steps
        return stream(*seeds, low)


_seeds = Seeds()


class _Call:
    """A call inside `isolated`: its seeds replace those of the process."""

    __slots__ = ("ops", "seeds")

    def __init__(self, seeds: Seeds | None) -> None:
        self.seeds = seeds
        self.ops = 0  # random ops without a seed of their own, in this call


_inside = _core.Setting(_Call(None))


def isolated_seeds() -> Seeds:
    """Seeds for `isolated` that start from the global seed."""
    return Seeds(_seeds.given)


def isolated(seeds: Seeds) -> _core.Scope:
    """One call of a function whose random ops do not affect the random numbers of the program.

    Used for the functions of datasets: how far a thread has read ahead must not change the program's numbers. As in
    a TensorFlow graph, the ops of the function are numbered, and each continues from call to call.
    """
    return _inside.to(_Call(seeds))


def set_seed(seed: int | None) -> None:
    """Sets the global seed: random ops after it give the same numbers in every run.

    Without it (and without op seeds) numbers differ from run to run. Setting it again restarts the sequence; None
    makes it unpredictable again:

    >>> import gradtape as tf
    >>> tf.random.set_seed(42)
    >>> a = tf.random.normal([2])
    >>> tf.random.set_seed(42)
    >>> bool(tf.reduce_all(a == tf.random.normal([2])))
    True
    """
    if seed is not None:
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
            return unseeded.getrandbits(62), unseeded.getrandbits(62)
        seeds = _DEFAULT_SEED, int(op_seed)
    else:
        seeds = state.given, _number(call) if op_seed is None else int(op_seed)
    first, second = (seeds[0] + _of_process()) % _LARGEST_SEED, seeds[1] % _LARGEST_SEED
    return (first, second) if first or second else (0, _LARGEST_SEED)


def _of_process() -> int:
    """An offset for seeds: replicas in other processes draw other numbers, although all have set the same seed."""
    context = replicas.current()
    return 0 if context is None else context.strategy._group.rank * _APART


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
    """A stream as the int64[3] tensor that random ops take."""
    return _core.from_buffer(array.array("q", (key, high, low)), _INT64)


def op_stream(op: str, dtype: Any, op_seed: int | None, steps: int) -> Any:
    """The stream of a call that uses `steps` steps of the counter.

    With an op seed, calls of the same op continue where the previous one stopped. In a traced function each run of
    the graph uses a new stream.
    """

    def make_in(graph: Any) -> Callable[[], Any]:
        if _seeds.given is None and op_seed is None:
            return make
        number = graph.random_ops
        if op_seed is None:
            graph.random_ops += 1
        return _InGraph(op, dtype, number if op_seed is None else op_seed, steps)

    def make() -> Any:
        numbered = _numbered.now()
        if numbered is None or (_seeds.given is None and op_seed is None):
            return _op_stream(op, dtype, op_seed, steps)
        return numbered.next(op, dtype, op_seed, steps)

    return drawn_stream(make, make_in)


def _op_stream(op: str, dtype: Any, op_seed: int | None, steps: int) -> Any:
    seeds = next_seeds(op_seed)
    inside = _inside.now().seeds
    if op_seed is None and (inside is None or inside.given is None):
        return stream(*seeds, 0)
    return (inside or _seeds).go_on(op, dtype, seeds, steps)


class _InGraph:
    """The streams of one random op of a graph, by TensorFlow's rules.

    A graph numbers its random ops itself and keeps the seed that was set when it was traced; each op continues from
    run to run, and restarts after `set_seed`.
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


class Numbered:
    """The random ops of a part of a graph that runs call by call; they draw as if the whole graph ran at once."""

    def __init__(self, first: int) -> None:
        self.first = first  # the number of the first op without a seed
        self.next_number = first  # the number after the part, once it has run
        self.ops: list[_InGraph] = []

    def scope(self) -> _core.Scope:
        """A scope in which the part runs once."""
        return _numbered.to(_Numbering(self))


class _Numbering:
    """One run of `Numbered`."""

    def __init__(self, part: Numbered) -> None:
        self._part, self._number, self._at = part, part.first, 0

    def next(self, op: str, dtype: Any, op_seed: int | None, steps: int) -> Any:
        """The stream of the next op."""
        if self._at == len(self._part.ops):
            self._part.ops.append(_InGraph(op, dtype, self._number if op_seed is None else op_seed, steps))
        self._number += op_seed is None
        self._part.next_number = self._number
        drawn = self._part.ops[self._at]
        self._at += 1
        drawn.steps = steps  # as many as this size needs
        return drawn()


_numbered = _core.Setting(None)


class _Replay(NamedTuple):
    """The list that drawn streams are added to, and the streams to use again instead of new ones."""

    into: tuple[list, ...] = ()
    given: Iterator | None = None


_replay = _core.Setting(_Replay())


def drawn_stream(make: Callable[[], Any], make_in: Callable[[Any], Callable[[], Any]] | None = None) -> Any:
    """A new stream; in a traced function one per run of the graph, by `make_in(graph)` if given."""
    replay = _replay.now()
    drawn = None if replay.given is None else next(replay.given, None)
    if drawn is None or not _usable(drawn):
        graph = _core.current_trace()
        if graph is None:
            drawn = make()
        else:
            drawn = above.effects.fresh("random stream", make_in(graph) if make_in else make, (3,), _INT64)
    for streams in replay.into:
        streams.append(drawn)
    return drawn


def _usable(drawn: Any) -> bool:
    """Whether a stream may be used here: those drawn in the body of a loop or branch stay there."""
    symbol, trace = drawn._symbol, _core.current_trace()
    if symbol is None or symbol.graph is trace:
        return True
    encloses = getattr(trace, "_encloses", None)
    return encloses is not None and encloses(symbol.graph)


@contextlib.contextmanager
def keep_streams() -> Iterator[list]:
    """Fills a list with the streams that are drawn in this block."""
    streams: list = []
    replay = _replay.now()
    with _replay.to(_Replay((*replay.into, streams), replay.given)):
        yield streams


def same_streams(streams: list) -> _core.Scope:
    """Random ops in this block draw from these streams again: they repeat the same numbers."""
    return _replay.to(_Replay(given=iter(streams)))


def fresh_streams() -> _core.Scope:
    """In this block, drawn streams are neither recorded nor replayed."""
    return _replay.to(_Replay())


class Algorithm(enum.IntEnum):
    """The generators of random bits; gradtape has Philox."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def want_philox(alg: Any) -> None:
    """Refuses generators of random bits other than Philox."""
    if isinstance(alg, str) and alg.lower() in ("philox", "auto_select"):
        return
    if alg is None or (not isinstance(alg, str) and int(alg) in (Algorithm.PHILOX, Algorithm.AUTO_SELECT)):
        return
    exists = str(alg).lower() == "threefry" or alg == Algorithm.THREEFRY
    words = f"random: only the algorithm 'philox' is available; got {alg!r}."
    raise InvalidArgumentError(words) if exists else ValueError(words)
