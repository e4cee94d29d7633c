"""The base of `Dataset`: what each kind of dataset defines, and what follows from it.

A kind defines the spec of its elements (`_spec`, `_likely`, `_kinds`), their number (`_size`), and the elements
themselves (`_elements`), or the numbers of rows of a table in memory (`_table`, `_chunks`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, errors, nest
from gradtape._src.base.contexts import aside
from gradtape._src.base.errors import Untraceable
from gradtape._src.tensors import random as _random
from gradtape.data import kinds, rows
from gradtape.data.failures import Raising
from gradtape.data.iterator import NumpyIterator, OwnedIterator
from gradtape.data.options import Options
from gradtape.data.rows import Table
from gradtape.data.structure import DatasetSpec, is_defined

AUTOTUNE = -1
INFINITE_CARDINALITY = INFINITE = -1
UNKNOWN_CARDINALITY = UNKNOWN = -2


class Run:
    """One iteration over a pipeline: the state that its stages keep from epoch to epoch of a `repeat`.

    Args:
      ordered: whether stages on several threads keep the order by default.
      outer: the iteration that creates the dataset of this one, as in `flat_map`.
      dataset: the dataset that is iterated over; the seeds of its stages are recorded.
      seeds: the seeds recorded in an iteration that this one repeats.
    """

    by_element = False  # whether functions are called element by element, so that an error affects only one

    def __init__(
        self, ordered: bool = True, outer: Run | None = None, dataset: Any = None, seeds: dict | None = None
    ) -> None:
        self.ordered = ordered
        self._stages = _stages(dataset) if outer is None and dataset is not None else {}
        self.drawn: dict[str, list] = {} if outer is None else outer.drawn
        self._to_draw = {stage: list(noted) for stage, noted in (seeds or {}).items()}
        self._kept: dict[int, tuple[Any, Any]] = {} if outer is None else outer._kept
        self._is_inner = outer is not None

    def keep(self, owner: Any, make: Callable[[], Any]) -> Any:
        """The state of `owner`; created on first use."""
        entry = self._kept.get(id(owner))
        if entry is None:
            entry = self._kept[id(owner)] = (owner, make())
        return entry[1]

    def draw(self, stage: Any, generator: Any) -> tuple[int, int]:
        """The seeds of a pass over a stage: new ones, or those of the iteration that is repeated."""
        number = self._stages.get(id(stage))
        if number is None:
            return generator.next()
        if self._to_draw.get(number):
            origin, count, pair = self._to_draw[number].pop(0)
            generator.restore(tuple(origin), count)
        else:
            pair = generator.next()
        self.drawn.setdefault(number, []).append([*generator.state, list(pair)])
        return pair[0], pair[1]

    def seeds(self, stage: Any, function: Any) -> _random.Seeds:
        """The state of the random numbers of a stage's function; a new iteration starts it anew.

        Datasets created per element continue the state of others with the same code.
        """
        owner = getattr(function, "__code__", stage) if self._is_inner else stage
        return self.keep(owner, _random.isolated_seeds)

    def inner(self) -> Run:
        """An iteration over a dataset that was created in this one."""
        return Run(self.ordered, self)


def _stages(dataset: Any) -> dict[int, str]:
    """The stages of a pipeline, numbered in an order that is the same in another process."""
    numbers: dict[int, str] = {}
    waiting = [dataset]
    while waiting:
        stage = waiting.pop()
        if id(stage) not in numbers:
            numbers[id(stage)] = str(len(numbers))
            waiting.extend(stage._inputs)
    return numbers


def number(value: Any, op: str, what: str) -> int:
    """An integer argument, given as a number or a tensor.

    Raises:
      TypeError: if it is not an integer.
    """
    if isinstance(value, _core.Tensor) and value._symbol is not None:
        raise Untraceable(f"Dataset.{op}: {what} is a tensor of the traced function")
    try:
        converted = ops.convert_to_tensor(value, dtypes.int64) if not hasattr(value, "dtype") else value
        return int(converted)
    except (TypeError, ValueError):
        raise TypeError(f"Dataset.{op}: {what} must be an integer; got {value!r}.") from None


def invalid(message: str) -> errors.InvalidArgumentError:
    """The error for a wrong argument, in TensorFlow's class."""
    return errors.InvalidArgumentError(None, None, message)


class DatasetBase:
    """The base of `Dataset`, under its public methods."""

    _is_dataset = True
    _options: Options | None = None
    _cached_spec: Any = None
    _cached_key: tuple | None = None

    def __init__(self, *inputs: Any) -> None:
        self._inputs = inputs

    # ---- what subclasses define----------------------------------------------------------------------

    def _spec(self, look: bool = False) -> Any:
        """The spec of the elements. None if it can only be found from an element, unless one may be made (`look`)."""
        raise NotImplementedError

    def _likely(self) -> Any:
        """The fully known spec that most elements will have; None if unknown."""
        spec = self._spec()
        return spec if spec is not None and is_defined(spec) else None

    def _kinds(self) -> list | None:
        """Fully known specs, one of which fits each element; None if not all are known."""
        likely = self._likely()
        return None if likely is None else [likely]

    def _size(self) -> int:
        """The number of elements, INFINITE, or UNKNOWN."""
        return UNKNOWN

    def _observable(self) -> bool:
        """Whether making an element can be observed: user code, files, variables."""
        return not self._inputs or any(d._observable() for d in self._inputs)

    def _at(self, index: int) -> Any:
        """The element with index 0 to `_size() - 1`."""
        raise errors.UnimplementedError(
            None, None, f"Random access is not implemented for dataset {type(self).__name__.strip('_')}."
        )

    def _table(self) -> Table | None:
        """The table whose rows are the elements, if there is one."""
        return None

    def _chunks(self, run: Run) -> Iterator[Any]:
        """The row numbers of one iteration, if there is a table: see `rows`."""
        raise NotImplementedError

    def _elements(self, run: Run) -> Iterator[Any]:
        """The elements of one iteration, if there is no table."""
        raise NotImplementedError

    def _texts(self, run: Run) -> Iterator[bytes] | None:
        """The elements as bytes, for readers that combine them, if they are strings read one by one."""
        return None

    def _iterate(self, run: Run) -> Iterator[Any]:
        """The elements of one iteration."""
        table = self._table()
        if table is None or (run.by_element and table.is_computed):
            return self._elements(run)
        elements = rows.elements(table, self._chunks(run))
        return Raising(elements) if table.is_computed else elements

    # ---- what follows from it -----------------------------------------------------------------------

    @property
    def element_spec(self) -> Any:
        """The spec of the elements: TensorSpecs in their structure.

        >>> import gradtape as tf
        >>> tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]).batch(2).element_spec
        TensorSpec(shape=(None, 2), dtype=tf.int32, name=None)
        """
        if self._cached_spec is None:
            self._cached_spec = self._spec(look=True)
        return self._cached_spec

    def _begin_pass(self) -> Iterator[Any]:
        """The elements of a new iteration."""
        return self._iterate(self._run())

    def _run(self, seeds: dict | None = None) -> Run:
        """A new iteration, or one that repeats another, given its recorded seeds."""
        return Run(self._deterministic() is not False, None, self, seeds)

    def _deterministic(self) -> bool | None:
        """The option for the order in which threads return elements."""
        inherited = None
        for source in self._inputs:
            option = source._deterministic()
            inherited = inherited if option is None else option
        own = None if self._options is None else self._options.deterministic
        return inherited if own is None else own

    def _first(self) -> Any:
        """The first element, for stages that need one to know their spec."""
        with aside():
            for element in self._begin_pass():
                return element
        raise ValueError(
            "element_spec: what comes out of this pipeline is only known from an element, and it has none."
        )

    def _example(self) -> Any:
        """The first element; if there is none, a possible one: zeros, and datasets without elements."""
        try:
            return self._first()
        except ValueError:
            spec = self._spec(True)
            return nest.map_structure(kinds.example, spec)

    def cardinality(self) -> Any:
        """The number of elements, an int64 tensor; INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return ops.constant(self._size(), dtypes.int64)

    def __len__(self) -> int:
        size = self._size()
        if size == INFINITE:
            raise TypeError("The dataset is infinite.")
        if size == UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return size

    def __bool__(self) -> bool:
        return True

    __nonzero__ = __bool__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} element_spec={self.element_spec!r}>"

    def __copy__(self) -> Any:
        return self  # immutable

    def __deepcopy__(self, memo: dict) -> Any:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            "a tf.data.Dataset cannot be pickled: it holds functions and iterators. Hint: pickle what it is made of, or "
            "a function that makes it."
        )

    def __iter__(self) -> Any:
        return OwnedIterator(self)

    def _for_in_graph(self, *statement: Any) -> None:
        """A `for` over it in a traced function; see `autograph.operators.for_stmt`."""
        kinds.for_elements(self, *statement)

    def _argument_key(self) -> tuple:
        """The key of traces of functions with this dataset as argument, equal for all datasets that the trace accepts."""
        if self._cached_key is None:
            kinds = self._kinds()
            self._cached_key = ("dataset", self._size(), None if kinds is None else tuple(map(repr, kinds)))
        return self._cached_key

    @property
    def _type_spec(self) -> Any:
        return DatasetSpec(self.element_spec)

    def _placeholder(self) -> Any:
        """The placeholder of the dataset while such a function is traced."""
        return kinds.DatasetArgument(self)

    def as_numpy_iterator(self) -> Any:
        """An iterator over the elements as NumPy arrays, scalars and bytes.

        >>> import gradtape as tf
        >>> list(tf.data.Dataset.range(3).as_numpy_iterator())
        [np.int64(0), np.int64(1), np.int64(2)]
        """
        if _core.current_trace() is not None:
            raise RuntimeError("`tf.data.Dataset.as_numpy_iterator()` is only supported in eager mode.")
        for spec in nest.flatten(self._spec()):
            if isinstance(spec, DatasetSpec):
                raise TypeError(
                    "`tf.data.Dataset.as_numpy_iterator()` is not supported for datasets that produce values of type "
                    f"{spec.value_type}"
                )
        return NumpyIterator(self)

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element.

        Raises:
          InvalidArgumentError: if there is no element, or more than one.
        """
        elements = iter(self)  # type: ignore[call-overload]
        pairs = list(zip(elements, range(2), strict=False))
        if len(pairs) != 1:
            raise invalid("Dataset was empty." if not pairs else "Dataset had more than one element.")
        return pairs[0][0]

    def options(self) -> Options:
        """The options of the dataset, including those of its inputs."""
        merged = Options()
        for source in self._inputs:
            merged = merged.merge(source.options())
        return (merged if self._options is None else merged.merge(self._options))._frozen()

    def fingerprint(self) -> Any:
        """A number that identifies a pipeline by its stages, settings and functions: the same in every program."""
        digest = hashlib.sha256(self._description().encode()).digest()
        return ops.constant(int.from_bytes(digest[:8], "little"), dtypes.uint64)

    def _description(self) -> str:
        """The stages and their arguments, in words."""
        settings = {name: value for name, value in vars(self).items() if isinstance(value, (bool, int, str))}
        function = getattr(getattr(self, "_function", None), "function", None)
        code = getattr(function, "__code__", None)
        inside = [] if code is None else [code.co_code.hex(), repr(code.co_names), code.co_filename]
        inputs = [source._description() for source in self._inputs]
        return repr([type(self).__name__, sorted(settings.items()), repr(self._spec()), inside, inputs])
