"""Selection and order of elements: shuffle, repeat, take, skip, shard, unique.

Each of them works on row numbers if its input is rows of a table, otherwise on elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradtape._src.base import dtypes, errors, nest
from gradtape._src.base.shape import TensorSpec
from gradtape.data import rows
from gradtape.data.base import INFINITE, UNKNOWN, Run, invalid, number
from gradtape.data.dataset import Unary
from gradtape.data.failures import Failure, Guarded, Raising, resumable, sliced
from gradtape.data.options import Options
from gradtape.data.rows import Table
from gradtape.data.seeds import Draws, SeedGenerator

_END: Any = object()
_MOST_EMPTY = 10_000  # consecutive passes without an element before an endless repetition gives up


class _ShuffleDataset(Unary):
    """Elements drawn from a buffer."""

    def __init__(self, source: Any, buffer_size: Any, seed: Any, reshuffle: Any) -> None:
        super().__init__(source)
        self._room = number(buffer_size, "shuffle", "buffer_size")
        if self._room < 1 and self._room != UNKNOWN:
            raise invalid(
                "Dataset.shuffle: buffer_size must be greater than zero or UNKNOWN_CARDINALITY; "
                f"got {self._room}."
            )
        self._seeds = SeedGenerator(seed, True if reshuffle is None else bool(reshuffle), "shuffle")

        self._places: list[int] | None = None

    def _at(self, index: int) -> Any:
        if self._places is None:
            self._places = _random_places(self._size(), self._seeds.for_access())
        return self._input._at(self._places[index])

    def _table(self) -> Table | None:
        return self._input._table()

    def _chunks(self, run: Run) -> Iterator[Any]:
        chunks = self._input._chunks(run)
        size, room = self._input._size(), self._room
        if room == UNKNOWN and size < 0:
            if size == INFINITE:
                raise invalid("Dataset.shuffle: a dataset without an end needs a buffer_size.")
            all_chunks = list(chunks)
            chunks, size = iter(all_chunks), sum(map(len, all_chunks))
        # A buffer that holds all elements need not be larger; the order is the same.
        room = max(1, size) if size >= 0 and (room == UNKNOWN or room > size) else room
        return rows.shuffle(chunks, room, run.draw(self, self._seeds))

    def _elements(self, run: Run) -> Iterator[Any]:
        return _shuffled(self._input._iterate(run), self._room, Draws(run.draw(self, self._seeds)))


@resumable
def _shuffled(source: Iterator[Any], room: int, draw: Draws) -> Iterator[Any]:
    """Elements in the order of `rows.shuffle`, one by one."""
    buffer: list = []  # a ring buffer; positions from `start` to `end` are in use
    start = end = 0
    more = True
    while more or start < end:
        while more and (room == UNKNOWN or end - start < room):
            element = next(source, _END)
            if element is _END:
                more = False
            elif type(element) is Failure:
                yield element
            else:
                if len(buffer) == room:
                    buffer[end % room] = element
                else:
                    buffer.append(element)
                end += 1
        if start < end:
            at = (start + draw() % (end - start)) % len(buffer)
            out, buffer[at] = buffer[at], buffer[start % len(buffer)]
            start += 1
            yield out


def _random_places(count: int, seeds: tuple[int, int]) -> list[int]:
    """The indices below `count` in the order of `tf.data.experimental.at` for a shuffled dataset.

    It differs from the order of an iteration, because it does not use the buffer.
    """
    draw, places = Draws(seeds), list(range(count))
    for i in range(count):
        j = i + draw() % (count - i)
        places[i], places[j] = places[j], places[i]
    return places


class _RepeatDataset(Unary):
    """The elements several times."""

    def __init__(self, source: Any, count: Any) -> None:
        super().__init__(source)
        self._count = -1 if count is None else max(-1, number(count, "repeat", "count"))

    def _size(self) -> int:
        n = self._input._size()
        if n == 0 or self._count == 0:
            return 0
        if self._count < 0:
            return INFINITE
        return n if n < 0 else n * self._count

    def _table(self) -> Table | None:
        return self._input._table()

    def _chunks(self, run: Run) -> Iterator[Any]:
        return self._again(self._input._chunks, run)

    def _elements(self, run: Run) -> Iterator[Any]:
        return self._again(self._input._iterate, run)

    def _again(self, begin: Callable[[Run], Iterator[Any]], run: Run) -> Iterator[Any]:
        return iter(()) if self._count == 0 else Raising(self._passes(begin(run), begin, run))

    def _passes(
        self, source: Iterator[Any], begin: Callable[[Run], Iterator[Any]], run: Run
    ) -> Iterator[Any]:
        # As in TensorFlow: without a count, an empty pass is the last; but after a shuffle (which is fused with
        # repeat there) only if it is the first. With a count, the last pass ends only when another one has been
        # started in vain.
        shuffled = isinstance(self._input, _ShuffleDataset)
        empty, left = 0, self._count
        while left:
            empty += 1
            for item in Guarded(source):
                empty = 0
                yield item
            if empty and left < 0 and (left == -1 or not shuffled):
                return
            if empty == _MOST_EMPTY and left < 0:
                raise errors.OutOfRangeError(
                    None, None, f"repeat: the dataset has had no element in {empty} passes in a row."
                )
            left -= 1
            if left or not shuffled:
                source = begin(run)

    def _at(self, index: int) -> Any:
        return self._input._at(index % self._input._size())


class _TakeDataset(Unary):
    """The first elements."""

    def __init__(self, source: Any, count: Any) -> None:
        super().__init__(source)
        self._count = number(count, "take", "count")

    def _size(self) -> int:
        n = self._input._size()
        if self._count < 0:
            return n
        return self._count if n == INFINITE else n if n < 0 else min(n, self._count)

    def _table(self) -> Table | None:
        return self._input._table()

    def _chunks(self, run: Run) -> Iterator[Any]:
        chunks = self._input._chunks(run)
        return chunks if self._count < 0 else rows.take(chunks, self._count)

    def _at(self, index: int) -> Any:
        return self._input._at(index)

    def _elements(self, run: Run) -> Iterator[Any]:
        elements = self._input._iterate(run)
        return elements if self._count < 0 else sliced(elements, 0, self._count)


class _SkipDataset(Unary):
    """All but the first elements."""

    def __init__(self, source: Any, count: Any) -> None:
        super().__init__(source)
        self._count = number(count, "skip", "count")

    def _size(self) -> int:
        n = self._input._size()
        if self._count < 0:
            return 0
        return n if n < 0 else max(0, n - self._count)

    def _table(self) -> Table | None:
        return self._input._table()

    def _chunks(self, run: Run) -> Iterator[Any]:
        return iter(()) if self._count < 0 else rows.skip(self._input._chunks(run), self._count)

    def _at(self, index: int) -> Any:
        return self._input._at(index + self._count)

    def _elements(self, run: Run) -> Iterator[Any]:
        return iter(()) if self._count < 0 else sliced(self._input._iterate(run), self._count, None)


class _ShardDataset(Unary):
    """Every n-th element."""

    def __init__(self, source: Any, num_shards: Any, index: Any) -> None:
        super().__init__(source)
        self._shards, self._index = number(num_shards, "shard", "num_shards"), number(index, "shard", "index")
        if self._shards < 1:
            raise invalid(
                f"Number of shards must be greater than zero (currently num_shards = {self._shards})."
            )
        if not 0 <= self._index < self._shards:
            raise invalid(
                f"Index must be between 0 and {self._shards - 1} (currently index = {self._index})."
            )

    def _size(self) -> int:
        n = self._input._size()
        return n if n < 0 else len(range(self._index, n, self._shards))

    def _table(self) -> Table | None:
        return self._input._table()

    def _chunks(self, run: Run) -> Iterator[Any]:
        return rows.shard(self._input._chunks(run), self._shards, self._index)

    def _at(self, index: int) -> Any:
        return self._input._at(index * self._shards + self._index)

    def _elements(self, run: Run) -> Iterator[Any]:
        return sliced(self._input._iterate(run), self._index, None, self._shards)


class _UniqueDataset(Unary):
    """Each element once."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        specs = nest.flatten(self.element_spec)
        if len(specs) != 1:
            raise invalid(
                f"UniqueDataset only supports inputs with a single component; got elements of {len(specs)}. Hint: map "
                "them to the part that tells them apart, or to one tensor of all parts."
            )
        for s in specs:
            kind = s.dtype if isinstance(s, TensorSpec) else s
            if kind not in (dtypes.int32, dtypes.int64, dtypes.string):
                raise TypeError(
                    f"`tf.data.Dataset.unique` does not support type {kind} -- only `tf.int32`, `tf.int64`, and "
                    "`tf.string` are supported."
                )

    def _size(self) -> int:
        return UNKNOWN

    def _elements(self, run: Run) -> Iterator[Any]:
        return _unique(self._input._iterate(run))


@resumable
def _unique(source: Guarded) -> Iterator[Any]:
    seen = set()
    for element in source:
        if type(element) is Failure:
            yield element
            continue
        values = [leaf.numpy() for leaf in nest.flatten(element)]
        key = tuple([v.tobytes() if hasattr(v, "dtype") and v.dtype != object else _text(v) for v in values])
        if key not in seen:
            seen.add(key)
            yield element


def _text(value: Any) -> str:
    return repr(value.tolist() if hasattr(value, "tolist") else value)


class _OptionsDataset(Unary):
    """The same elements, with options."""

    def __init__(self, source: Any, options: Any) -> None:
        super().__init__(source)
        if not isinstance(options, Options):
            raise TypeError(f"Dataset.with_options: expected tf.data.Options; got {options!r}.")
        self._options = Options().merge(options)

    def _table(self) -> Table | None:
        return self._input._table()

    def _chunks(self, run: Run) -> Iterator[Any]:
        return self._input._chunks(run)

    def _at(self, index: int) -> Any:
        return self._input._at(index)

    def _elements(self, run: Run) -> Iterator[Any]:
        return self._input._iterate(run)


class AssertCardinality(Unary):
    """The same elements; an error if there are not as many as were promised."""

    def __init__(self, source: Any, expected: Any) -> None:
        super().__init__(source)
        self._expected = number(expected, "assert_cardinality", "expected_cardinality")

    def _size(self) -> int:
        return self._expected

    def _at(self, index: int) -> Any:
        return self._input._at(index)

    def _elements(self, run: Run) -> Iterator[Any]:
        return _counted(self._input._iterate(run), self._expected)


@resumable
def _counted(source: Guarded, expected: int) -> Iterator[Any]:
    count = 0
    for element in source:
        if type(element) is not Failure:
            count += 1
        if 0 <= expected < count:
            break
        yield element
    words = "an infinite number of" if expected == INFINITE else expected
    more = " at least" if count > expected >= 0 else ""
    while count != expected and expected != UNKNOWN:
        yield Failure(
            errors.FailedPreconditionError(
                None,
                None,
                f"Input dataset was expected to contain {words} elements but contained{more} {count}.",
            )
        )
