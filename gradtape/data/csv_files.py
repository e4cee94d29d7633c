"""CSV files: `CsvDataset` and `make_csv_dataset`."""

from __future__ import annotations

import csv
import io
import itertools
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, errors
from gradtape._src.base.reading import number_in, open_file, reading
from gradtape._src.base.shape import TensorSpec
from gradtape.data.base import AUTOTUNE, Run, invalid
from gradtape.data.dataset import Dataset
from gradtape.data.paths import strings
from gradtape.data.readers import list_files

_COLUMN_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)


class _Column:
    """One column: its type, and the value of an empty field (None: it must not be empty)."""

    def __init__(self, given: Any) -> None:
        self.default: Any = None
        if isinstance(given, dtypes.DType):
            self.dtype = given
        else:
            if isinstance(given, (_core.Tensor, np.ndarray)):
                given = np.asarray(given).reshape(-1).tolist() if np.asarray(given).size else given
            required = isinstance(given, (list, tuple, np.ndarray, _core.Tensor)) and len(given) == 0
            value = given[0] if isinstance(given, (list, tuple)) and len(given) else given
            tensor = ops.convert_to_tensor(value)
            self.dtype = tensor.dtype
            self.default = None if required else tensor.numpy()
        if self.dtype not in _COLUMN_TYPES:
            raise TypeError(
                f"CsvDataset: columns are int32, int64, float32, float64 or string; got {self.dtype.name}."
            )

    def value(self, field: str, at: int, na_value: str) -> Any:
        """A field as a value."""
        if field == "" or (na_value and field == na_value):
            if self.default is None:
                raise invalid(f"Field {at} is required but missing in record!")
            return self.default
        if self.dtype is dtypes.string:
            return field.encode(errors="surrogateescape")
        value = number_in(field, self.dtype)
        if value is None:
            raise invalid(f"Field {at} in record is not a valid {self.dtype.name}: {field}")
        return value

    def part(self, value: Any) -> Any:
        """A value, or a list of values, as a part of an element."""
        if self.dtype is dtypes.string:
            return ops.convert_to_tensor(value, self.dtype)
        return ops.convert_to_tensor(np.asarray(value, self.dtype.as_numpy_dtype))


def _rows(
    path: str, compression_type: Any, header: bool, delimiter: str, quotes: bool, encoding: str = "utf-8"
) -> Iterator[list[str]]:
    """The rows of a file. Bytes that are invalid in its encoding are preserved."""
    with open_file(path, compression_type) as file:
        lines = csv.reader(
            io.TextIOWrapper(file, encoding, errors="surrogateescape", newline=""),
            delimiter=delimiter,
            quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE,
            strict=True,
        )
        for i in itertools.count():
            with reading(f"{path}: ", invalid):
                row = next(lines, None)
            if row is None:
                return
            if row and not (header and i == 0):
                yield row


class CsvDataset(Dataset):
    """The records of CSV files, a tuple of one value per column.

    Args:
      filenames: a name, a list of names, or a dataset of names.
      record_defaults: for each column, a dtype if its fields must not be empty, or the value of empty ones.
      header: whether to skip the first line of each file.
      field_delim, use_quote_delim, na_value: the format of fields.
      select_cols, exclude_cols: the indices of columns to take, or to leave out.
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: Any = None,
        buffer_size: Any = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Any = None,
        exclude_cols: Any = None,
    ) -> None:
        self._columns = [_Column(d) for d in record_defaults]
        self._names = filenames
        super().__init__(*([filenames] if hasattr(filenames, "_is_dataset") else []))
        if select_cols is not None and exclude_cols is not None:
            raise invalid("CsvDataset: either select_cols or exclude_cols should be empty.")
        if select_cols is not None and len(select_cols) != len(self._columns):
            raise invalid(
                f"CsvDataset: select_cols should match output size; expected {len(self._columns)}; got {len(select_cols)}."
            )
        self._select = None if select_cols is None else [int(c) for c in select_cols]
        self._exclude = frozenset(() if exclude_cols is None else (int(c) for c in exclude_cols))
        self._how = (compression_type, header, field_delim, use_quote_delim)
        self._na = na_value

    def _spec(self, look: bool = False) -> Any:
        return tuple(TensorSpec((), c.dtype) for c in self._columns)

    def _files(self, run: Run) -> Iterator[str]:
        names = self._names._iterate(run) if self._inputs else [self._names]
        return (name for part in names for name in strings(part))

    def _elements(self, run: Run) -> Iterator[Any]:
        for path in self._files(run):
            for row in _rows(path, *self._how):
                yield tuple(c.part(v) for c, v in zip(self._columns, self._values(row), strict=True))

    def _values(self, row: list[str]) -> list:
        if self._select is not None:
            if max(self._select) >= len(row):
                raise invalid(f"Expect {max(self._select) + 1} fields but have {len(row)} in record")
            fields = [row[k] for k in self._select]
        else:
            fields = [f for k, f in enumerate(row) if k not in self._exclude]
        n = len(self._columns)
        if len(fields) != n:
            raise invalid(
                f"Expect {n} fields but have {'more' if len(fields) > n else len(fields)} in record"
            )
        return [c.value(f, k, self._na) for k, (c, f) in enumerate(zip(self._columns, fields, strict=True))]


# ---- make_csv_dataset ---------------------------------------------------------------------------


def _infer(fields: Sequence[str], na_value: str) -> Any:
    """The narrowest type that fits all fields of a column."""
    texts = [f for f in fields if f not in ("", na_value)]
    for dtype in (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64):
        try:
            if dtype.is_integer:
                limits = np.iinfo(dtype.as_numpy_dtype)
                if all(limits.min <= int(f) <= limits.max for f in texts):
                    return dtype
            elif all(np.isfinite(dtype.as_numpy_dtype(float(f))) or not np.isfinite(float(f)) for f in texts):
                return dtype
        except ValueError:
            continue
    return dtypes.string


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Any = None,
    column_defaults: Any = None,
    label_name: Any = None,
    select_columns: Any = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: Any = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    num_parallel_reads: Any = None,
    sloppy: bool = False,
    num_rows_for_inference: int = 100,
    compression_type: Any = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Any:
    """Batches of CSV files as dicts from column names to tensors, with the label beside them if it is named.

    Types are inferred from the first rows unless `column_defaults` gives them.
    """
    try:
        files = list_files(file_pattern, False, None)
    except errors.InvalidArgumentError:
        raise ValueError(f"Found no files at file_pattern {file_pattern}") from None
    names = [f for part in files.as_numpy_iterator() for f in strings(part)]
    how = (compression_type, False, field_delim, use_quote_delim, encoding)
    first = next(_rows(names[0], *how), None)
    if first is None:
        raise ValueError(f"make_csv_dataset: {names[0]} is empty.")
    if column_names is None:
        if not header:
            raise ValueError("`column_names` must be set when `header` is False.")
        column_names = first
    if len(set(column_names)) != len(column_names):
        raise ValueError("Cannot have duplicate column names.")
    chosen = list(range(len(column_names)))
    if select_columns is not None:
        places = {n: i for i, n in enumerate(column_names)}
        missing = [c for c in select_columns if not isinstance(c, int) and c not in places]
        if missing:
            raise ValueError(f"Column {missing[0]} not found in `column_names`.")
        chosen = sorted(c if isinstance(c, int) else places[c] for c in select_columns)
    labels = [column_names[i] for i in chosen]
    if label_name is not None and label_name not in labels:
        raise ValueError(f"`label_name` provided must be one of the columns: {labels}.")
    if column_defaults is None:
        columns = _inferred_columns(names, how, header, chosen, na_value, num_rows_for_inference)
    else:
        columns = [_Column(d) for d in column_defaults]
    dataset: Any = _CsvRows(names, columns, chosen, how, header, na_value)
    if ignore_errors:
        dataset = dataset.ignore_errors()
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    dataset = dataset.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)
    by_name = _Named(dataset, labels, label_name)
    return by_name.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _inferred_columns(
    names: list[str], how: tuple, header: bool, chosen: list[int], na_value: str, limit: Any
) -> list[_Column]:
    fields: list[list[str]] = [[] for _ in chosen]
    rows_read = 0
    for name in names:
        for i, row in enumerate(_rows(name, *how)):
            if header and i == 0:
                continue
            if limit is not None and rows_read == limit:
                break
            rows_read += 1
            for values, k in zip(fields, chosen, strict=True):
                values.append(row[k] if k < len(row) else "")
    kinds = [_infer(values, na_value) for values in fields]
    return [_Column("" if k is dtypes.string else k.as_numpy_dtype(0)) for k in kinds]


class _CsvRows(CsvDataset):
    """Chosen columns of files whose names are known."""

    def __init__(
        self, names: list[str], columns: list[_Column], chosen: list[int], how: tuple, header: bool, na: str
    ) -> None:
        Dataset.__init__(self)
        self._columns, self._names, self._select, self._na = columns, names, chosen, na
        self._exclude = frozenset()
        self._how = (how[0], header, *how[2:])


class _Named(Dataset):
    """Tuples of columns as dicts by name, with a label."""

    def __init__(self, source: Any, names: list[str], label: Any) -> None:
        super().__init__(source)
        self._labels, self._label = names, label

    def _named(self, parts: Any) -> Any:
        features = OrderedDict(zip(self._labels, parts, strict=True))
        if self._label is None:
            return features
        label = features.pop(self._label)
        return features, label

    def _spec(self, look: bool = False) -> Any:
        return self._named(self._inputs[0]._spec(look))

    def _size(self) -> int:
        return self._inputs[0]._size()

    def _elements(self, run: Run) -> Iterator[Any]:
        return map(self._named, self._inputs[0]._iterate(run))
