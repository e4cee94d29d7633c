"""Functions over elements: map, filter, take_while, scan, reduce, flat_map, interleave."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

from gradtape import _core
from gradtape._src.base import dtypes, errors, nest
from gradtape._src.base.contexts import aside
from gradtape._src.base.shape import TensorSpec
from gradtape._src.tensors import random as _random
from gradtape.data.base import AUTOTUNE, UNKNOWN, DatasetBase, Run, invalid, number
from gradtape.data.dataset import Unary
from gradtape.data.failures import Failure, Guarded, Raising, flattened
from gradtape.data.functions import DataFunction, arguments, spec_of_result
from gradtape.data.in_graph import fold
from gradtape.data.prefetch import Ahead, Mingled, threads_for
from gradtape.data.rows import Table
from gradtape.data.structure import common, normalise, same_form, spec_of
from gradtape.data.vectorized import MappedTable, RowFunction, filtered

_log = logging.getLogger("gradtape")
_END: Any = object()


class Functional(Unary):
    """A dataset with a user function over the elements of another."""

    _function: DataFunction
    _on_rows: Any = ()  # not computed yet

    def _begin(self) -> Any:
        """Traces the function on likely elements, so that its errors are raised now. Returns the spec of its
        result, if it is known."""
        likely = self._input._likely()
        return None if likely is None else self._function.result(arguments(likely))

    def _of_rows(self) -> RowFunction | None:
        """The function over many rows at once, if it can run that way."""
        if self._on_rows == ():
            self._on_rows = RowFunction.of(self._function, self._input._likely())
        return self._on_rows

    def _caller(self, run: Run) -> Callable[[Any], Any]:
        """The function of an element, with random numbers independent of the program's."""
        function = self._function.with_seeds(run.seeds(self, self._function.function))

        def call(element: Any) -> Any:
            return function(*element) if type(element) is tuple else function(element)

        return call

    def _observable(self) -> bool:
        return not self._function.pure or super()._observable()


class _MapDataset(Functional):
    """A function of every element."""

    def __init__(
        self, source: Any, map_func: Callable, num_parallel_calls: Any, deterministic: bool | None
    ) -> None:
        super().__init__(source)
        self._function = DataFunction(map_func, "map")
        self._ordered = deterministic
        self._made: tuple[Table, Table] | None = None
        self._parallel = None if num_parallel_calls is None else threads_for(num_parallel_calls)
        self._begin()

    def _spec(self, look: bool = False) -> Any:
        spec = self._input._spec(look)
        of_result = None if spec is None else self._function.result_of(arguments(spec))
        if of_result is None and look:
            of_result = spec_of_result(self._function, arguments(self._input._first()))
        return of_result

    def _likely(self) -> Any:
        likely = self._input._likely()
        return None if likely is None else self._function.result(arguments(likely))

    def _kinds(self) -> list | None:
        kinds = self._input._kinds()
        results = None if kinds is None else [self._function.result(arguments(k)) for k in kinds]
        return None if results is None or None in results else results

    def _table(self) -> Table | None:
        table = self._input._table()
        function = None if table is None else self._of_rows()
        if table is None or function is None:
            return None
        if self._made is None or self._made[0] is not table:
            self._made = (table, MappedTable(table, function, self._likely()))
        return self._made[1]

    def _chunks(self, run: Run) -> Iterator[Any]:
        return self._input._chunks(run)

    def _elements(self, run: Run) -> Iterator[Any]:
        call, source = self._caller(run), self._input._iterate(run)
        if self._parallel is None:
            return map(call, source)
        ordered = run.ordered if self._ordered is None else self._ordered
        at_once = not self._function.pure
        return Ahead(source, call, self._parallel, self._parallel, ordered, at_once)

    def _at(self, index: int) -> Any:
        with _random.isolated(_random.isolated_seeds()):
            return self._function(*arguments(self._input._at(index)))


# ---- predicates ---------------------------------------------------------------------------------


def _truth(result: Any) -> Any:
    """The result of a predicate, which must be a bool."""
    truth = normalise(result)
    if not isinstance(truth, _core.Tensor) or truth.dtype is not dtypes.bool or truth.ndim:
        raise ValueError(
            "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return type is "
            f"{spec_of(truth)}."
        )
    return truth


class _FilterDataset(Functional):
    """The elements for which a function is true."""

    def __init__(self, source: Any, predicate: Callable) -> None:
        super().__init__(source)
        self._function = DataFunction(predicate, "filter", _truth)
        self._begin()

    def _size(self) -> int:
        return UNKNOWN

    def _test(self, run: Run) -> Callable[[Any], bool]:
        call = self._caller(run)
        return lambda element: bool(call(element))

    def _table(self) -> Table | None:
        table = self._input._table()
        function = None if table is None else self._of_rows()
        # Many rows are tested at a time, but a variable must be read when each row is requested.
        return None if function is None or not function.pure else table

    def _chunks(self, run: Run) -> Iterator[Any]:
        return filtered(self._input._table(), self._input._chunks(run), self._of_rows())  # type: ignore[arg-type]

    def _elements(self, run: Run) -> Iterator[Any]:
        return filter(self._test(run), self._input._iterate(run))


class _TakeWhileDataset(_FilterDataset):
    """The elements before the first one for which a function is false."""

    def _table(self) -> Table | None:
        return None

    def _elements(self, run: Run) -> Iterator[Any]:
        return takewhile(self._test(run), self._input._iterate(run))


# ---- states -------------------------------------------------------------------------------------


def _check_state(before: Any, after: Any, what: str) -> None:
    """Checks that a new state has the type of the first one."""
    a, b = spec_of(before), spec_of(after)
    if same_form(a, b):
        return
    try:
        nest.assert_same_structure(a, b)
    except (TypeError, ValueError) as e:
        raise TypeError(
            f"{what}The element classes for the new state must match the initial state. Expected {a}, got {b}."
        ) from e
    wrong = zip(nest.flatten(a), nest.flatten(b), strict=True)
    x, y = next((x, y) for x, y in wrong if x.dtype is not y.dtype)
    raise TypeError(
        f"{what}The element types for the new state must match the initial state. Expected {x.dtype}, got {y.dtype}."
    )


def reduce(dataset: Any, initial_state: Any, reduce_func: Callable) -> Any:
    """`Dataset.reduce`."""
    state = normalise(initial_state)
    function = DataFunction(reduce_func, "reduce")
    if _core.current_trace() is not None:
        return fold(dataset, state, reduce_func)
    first = True
    call = function.with_seeds(_random.isolated_seeds())
    with aside():
        for element in dataset._begin_pass():
            after = call(state, element)
            if first:
                _check_state(state, after, "")
                first = False
            state = after
    return state


class _ScanDataset(Functional):
    """Outputs of a function that also carries a state."""

    def __init__(self, source: Any, initial_state: Any, scan_func: Callable) -> None:
        super().__init__(source)
        self._state = normalise(initial_state)
        self._function = DataFunction(scan_func, "scan")
        likely = source._likely()
        result = None if likely is None else self._function.result((spec_of(self._state), likely))
        if result is not None:
            self._pair(result)

    def _pair(self, result: Any) -> tuple:
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(
                "Invalid `scan_func`. `scan_func` should return a pair consisting of new state and the output value "
                f"but its return type is {result if isinstance(result, TensorSpec) else spec_of(result)}."
            )
        return result

    def _spec(self, look: bool = False) -> Any:
        spec, state = self._input._spec(look), spec_of(self._state)
        pair = None if spec is None else self._function.result_of((state, spec))
        while pair is not None and same_form(state, pair[0]) and common(state, pair[0]) != state:
            # Sizes of the state that change are unknown; with them unknown, others may change.
            state = common(state, pair[0])
            pair = self._function.result_of((state, spec))
        if pair is None and look:
            pair = spec_of_result(self._function, (self._state, self._input._first()))
        return None if pair is None else pair[1]

    def _likely(self) -> Any:
        likely = self._input._likely()
        pair = None if likely is None else self._function.result((spec_of(self._state), likely))
        return None if pair is None else pair[1]

    def _kinds(self) -> list | None:
        kinds = self._input._kinds()
        return None if kinds is None or len(kinds) > 1 or self._likely() is None else [self._likely()]

    def _elements(self, run: Run) -> Iterator[Any]:
        seeds = run.seeds(self, self._function.function)
        return self._scanned(self._input._iterate(run), self._function.with_seeds(seeds))

    def _scanned(self, source: Iterator[Any], call: Callable) -> Iterator[Any]:
        state = self._state

        def advance(element: Any) -> Any:
            nonlocal state
            after, out = self._pair(call(state, element))
            _check_state(state, after, "Invalid `scan_func`. ")
            state = after
            return out

        return map(advance, source)


# ---- functions that make datasets ---------------------------------------------------------------


class _FlatMapDataset(Functional):
    """The elements of the datasets that a function returns."""

    _op = "flat_map"

    def __init__(self, source: Any, map_func: Callable) -> None:
        super().__init__(source)
        self._function = DataFunction(map_func, self._op, self._as_dataset, eager=True)
        spec = source._spec()
        example_result = None if spec is None else self._function.sketch(arguments(spec))
        self._known = None if example_result is None else example_result._spec()

    def _as_dataset(self, result: Any) -> Any:
        if not isinstance(result, DatasetBase):
            raise TypeError(
                f"The `map_func` argument of Dataset.{self._op} must return a `Dataset` object. Got {type(result)}."
            )
        return result

    def _spec(self, look: bool = False) -> Any:
        if self._known is None and look:
            with aside():
                self._known = self._function(*arguments(self._input._example()))._spec(True)
        return self._known

    def _likely(self) -> Any:
        return None

    def _kinds(self) -> list | None:
        return None

    def _size(self) -> int:
        return UNKNOWN

    def _datasets(self, run: Run) -> Iterator[Any]:
        return map(self._caller(run), self._input._iterate(run))

    def _elements(self, run: Run) -> Iterator[Any]:
        return flattened(self._datasets(run), lambda d: d._iterate(run.inner()))


class _InterleaveDataset(_FlatMapDataset):
    """Elements of several datasets at a time, in turns."""

    _op = "interleave"

    def __init__(
        self,
        source: Any,
        map_func: Callable,
        cycle_length: Any,
        block_length: Any,
        num_parallel_calls: Any,
        deterministic: bool | None,
    ) -> None:
        super().__init__(source, map_func)
        self._parallel = 0 if num_parallel_calls is None else threads_for(num_parallel_calls)
        self._ordered = deterministic
        self._cycle = AUTOTUNE if cycle_length is None else number(cycle_length, "interleave", "cycle_length")
        self._block = 1 if block_length is None else number(block_length, "interleave", "block_length")
        if self._cycle == AUTOTUNE:
            self._cycle = os.cpu_count() or 1
        if self._cycle < 1:
            raise invalid(f"Dataset.interleave: cycle_length must be greater than zero; got {self._cycle}.")
        if self._block < 1:
            raise invalid(f"Dataset.interleave: block_length must be greater than zero; got {self._block}.")
        given = None if num_parallel_calls is None else number(num_parallel_calls, "interleave", "")
        if given is not None and cycle_length not in (None, AUTOTUNE) and given > self._cycle:
            raise invalid(
                "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be either `tf.data.AUTOTUNE` or a "
                f"value less than or equal to `cycle_length`. However, `num_parallel_calls` is {given} and "
                f"`cycle_length` is {self._cycle}"
            )

    def _elements(self, run: Run) -> Iterator[Any]:
        ordered = run.ordered if self._ordered is None else self._ordered
        datasets = self._datasets(run)
        if self._parallel and not ordered:
            return Mingled(datasets, lambda d: d._iterate(run.inner()), self._cycle, self._block)
        return Raising(self._turns(Guarded(datasets), run))

    def _turns(self, datasets: Iterator[Any], run: Run) -> Iterator[Any]:
        slots: list = [None] * self._cycle
        at = taken = running = 0
        more = True
        while more or running:
            if slots[at] is not None:
                element = next(slots[at], _END)
                if element is not _END:
                    yield element
                    if type(element) is Failure:
                        continue
                    taken += 1
                    if taken < self._block:
                        continue
                else:
                    slots[at] = None
                    running -= 1
            elif more:
                dataset = next(datasets, _END)
                if dataset is _END:
                    more = False
                elif type(dataset) is Failure:
                    yield dataset
                else:
                    begun = dataset._iterate(run.inner())
                    if at < self._parallel and dataset._observable():
                        begun = Ahead(begun, room=self._block)
                    slots[at] = Guarded(begun)
                    running += 1
                continue
            taken = 0
            at = (at + 1) % self._cycle


class _IgnoreErrorsDataset(Unary):
    """The elements without those that raise errors."""

    def __init__(self, source: Any, log_warning: bool) -> None:
        super().__init__(source)
        self._log = log_warning

    def _size(self) -> int:
        return UNKNOWN

    def _elements(self, run: Run) -> Iterator[Any]:
        run.by_element = True
        source = iter(self._input._iterate(run))
        while True:
            try:
                element = next(source)
            except StopIteration:
                return
            except (errors.OpError, ArithmeticError, ValueError, OSError) as e:
                if self._log:
                    _log.warning("Error raised with error message %s", e)
                continue
            yield element
