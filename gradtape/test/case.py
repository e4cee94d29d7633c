"""`tf.test.TestCase`: unittest with TensorFlow's assertions about arrays."""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gradtape import _core
from gradtape import random as tf_random
from gradtape._src.base import dtypes, nest
from gradtape._src.functions.control_flow import numpy_function
from gradtape._src.tensors.indexed_slices import IndexedSlices
from gradtape.io import proto_text
from gradtape.test.general import GeneralAssertions

_SEED = 87654321  # of TensorFlow's tests


def _array(value: Any) -> np.ndarray:
    if isinstance(value, IndexedSlices):
        value = value._dense()
    if _is_ragged(value):
        value = value.to_list()
    if isinstance(value, (list, tuple)):
        value = [_array(v) if isinstance(v, (_core.Tensor, _core.Variable)) else v for v in value]
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        array = np.empty(len(value), object)
        for i, row in enumerate(value):
            array[i] = row
        return array
    # NumPy supports ml_dtypes' types poorly: it can neither find their NaNs nor compare with tolerances.
    return array.astype(np.float32) if array.dtype.kind == "V" and array.dtype.names is None else array


def _is_ragged(value: Any) -> bool:
    return hasattr(type(value), "to_list")


def _lists(value: Any) -> Any:
    """Ragged tensors, tensors and arrays as nested lists, also inside lists; text as bytes."""
    if _is_ragged(value):
        return value.to_list()
    if isinstance(value, (list, tuple)):
        return [_lists(v) for v in value]
    if isinstance(value, str):
        return value.encode()
    return _array(value).tolist()


def _text(array: np.ndarray) -> np.ndarray:
    """Text as bytes, the values of string tensors."""
    return np.vectorize(lambda x: x.encode() if isinstance(x, str) else x, otypes=[object])(array)


def _also_in_functions(assertion: Callable) -> Callable:
    """Makes an assertion about symbolic tensors check their values when the function runs."""

    @functools.wraps(assertion)
    def check(self: Any, *args: Any, **kwargs: Any) -> Any:
        leaves = nest.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if isinstance(x, _core.Tensor) and x._symbol is not None]
        if not places:
            return assertion(self, *args, **kwargs)

        def run(*values: Any) -> None:
            for i, value in zip(places, values, strict=True):
                leaves[i] = value
            given, named = nest.pack_sequence_as((args, kwargs), leaves)
            assertion(self, *given, **named)

        return numpy_function(run, [leaves[i] for i in places], [])

    return check


class _EagerSession:
    """The session of `cached_session()`: ops have already run, `run` returns their values."""

    def __init__(self, case: TestCase) -> None:
        self._case = case

    def run(self, fetches: Any, feed_dict: Any = None, **kwargs: Any) -> Any:
        """The values of `fetches`."""
        if feed_dict:
            raise RuntimeError(
                "session.run: there are no placeholders to feed. Hint: arguments of a function."
            )
        return self._case.evaluate(fetches)


class TestCase(GeneralAssertions):
    """A test case with assertions about tensors, arrays and nests of them.

    Before each test the seeds of `random`, NumPy and `tf.random` are set to those of TensorFlow's tests.
    """

    __test__ = False  # this class itself has no tests

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__test__ = True

    def setUp(self) -> None:
        """Sets the seeds, and forgets the unique names of TensorFlow 1 graphs."""
        super().setUp()
        if version1 := sys.modules.get("gradtape.compat.v1"):
            version1.reset_default_graph()
        random.seed(_SEED)
        np.random.seed(_SEED)
        tf_random.set_seed(_SEED)
        self._want_a_test()

    def _want_a_test(self) -> None:
        # `test_session` is not a test, but is named like one.
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test.")

    def evaluate(self, tensors: Any) -> Any:
        """Tensors and variables of a nest as arrays.

        Raises:
          ValueError: for anything else.
        """
        return None if tensors is None else nest.map_structure(self._value, tensors)

    def _value(self, x: Any) -> Any:
        if x is None or isinstance(x, (np.ndarray, np.generic)):
            return x
        if isinstance(x, (_core.Tensor, _core.Variable)):
            return x.numpy()
        if callable(x):
            return self.evaluate(x())
        if isinstance(x, IndexedSlices):
            return IndexedSlices(x.values.numpy(), x.indices.numpy(), x.dense_shape)
        if callable(getattr(x, "numpy", None)):
            return x.numpy()
        raise ValueError(f"Unsupported type {type(x).__name__!r}.")

    @contextlib.contextmanager
    def session(self, *args: Any, **kwargs: Any) -> Iterator[_EagerSession]:
        """Does nothing: ops run eagerly."""
        yield _EagerSession(self)

    cached_session = session

    def test_session(self, *args: Any, **kwargs: Any) -> Any:
        """The same as `session`."""
        self._want_a_test()
        return self.session()

    # ---- values -------------------------------------------------------------------------------

    @_also_in_functions
    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None) -> None:
        """Equal shapes, and `|a - b| <= atol + rtol * |b|` everywhere; for nests of one structure.

        Raises:
          ValueError: if only one of them is a mapping.
        """
        self._close_nests(a, b, rtol, atol, "" if msg is None else str(msg), "")

    def _close_nests(self, a: Any, b: Any, rtol: float, atol: float, msg: str, path: str) -> None:
        a, b = (x._asdict() if hasattr(x, "_asdict") else x for x in (a, b))
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            raise ValueError(f"Can't compare dict to non-dict, a{path} vs b{path}. {msg}")
        if isinstance(a, Mapping):
            self.assertCountEqual(
                a, b, f"mismatched keys: a{path} has keys {a.keys()}, but b{path} has keys {b.keys()}. {msg}"
            )
            for k in a:
                self._close_nests(a[k], b[k], rtol, atol, msg, f"{path}[{k}]")
            return
        where = f"Mismatched value: a{path} is different from b{path}. {msg}"
        if _is_ragged(a) or _is_ragged(b):
            self._close_rows(_lists(a), _lists(b), rtol, atol, where)
            return
        if not isinstance(a, (list, tuple)):
            self._close(a, b, rtol, atol, where)
            return
        x, y = _array(a), _array(b)
        if x.dtype != object and y.dtype != object:
            self._close(x, y, rtol, atol, where)
            return
        if len(a) != len(b):
            raise ValueError(
                f"Mismatched length: a{path} has {len(a)} items, but b{path} has {len(b)} items. {msg}"
            )
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            self._close_nests(x, y, rtol, atol, msg, f"{path}[{i}]")

    def _close_rows(self, a: Any, b: Any, rtol: float, atol: float, msg: str) -> None:
        """The same for nested lists whose rows may have any lengths."""
        self.assertEqual(isinstance(a, list), isinstance(b, list), msg)
        if not isinstance(a, list):
            np.testing.assert_allclose(a, b, rtol, atol, err_msg=msg)
            return
        self.assertEqual(len(a), len(b), msg)
        for x, y in zip(a, b, strict=True):
            self._close_rows(x, y, rtol, atol, msg)

    def _close(self, a: Any, b: Any, rtol: float, atol: float, msg: str) -> None:
        a, b = _array(a), _array(b)
        self.assertEqual(a.shape, b.shape, f"Shape mismatch: expected {a.shape}, got {b.shape}. {msg}")
        np.testing.assert_allclose(a, b, rtol, atol, err_msg=msg)

    @_also_in_functions
    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Equal shapes and elements; NaN equals NaN."""
        if _is_ragged(a) or _is_ragged(b):
            self.assertEqual(_lists(a), _lists(b), msg)
            return
        a, b = _array(a), _array(b)
        msg = "" if msg is None else str(msg)
        self.assertEqual(a.shape, b.shape, f"Shape mismatch: expected {a.shape}, got {b.shape}. {msg}")
        if a.dtype.kind in "USO" and b.dtype.kind in "USO":
            a, b = _text(a), _text(b)
        np.testing.assert_array_equal(a, b, err_msg=msg)

    @_also_in_functions
    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: Any = None,
    ) -> None:
        """Like `assertAllClose`, with tolerances for the less precise of the two types."""
        kinds = {_dtype_name(a), _dtype_name(b)}
        if kinds & {"float32", "complex64"}:
            rtol, atol = max(rtol, float_rtol), max(atol, float_atol)
        if "float16" in kinds:
            rtol, atol = max(rtol, half_rtol), max(atol, half_atol)
        if "bfloat16" in kinds:
            rtol, atol = max(rtol, bfloat16_rtol), max(atol, bfloat16_atol)
        self.assertAllClose(a, b, rtol, atol, msg)

    @_also_in_functions
    def assertNotAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        """Fails if `assertAllClose` would pass."""
        try:
            self.assertAllClose(a, b, rtol, atol, msg)
        except AssertionError:
            return
        raise self.failureException(self._formatMessage(msg, "The two values are close at all elements."))

    @_also_in_functions
    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Fails if `assertAllEqual` would pass."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise self.failureException(self._formatMessage(msg, "The two values are equal at all elements."))

    @_also_in_functions
    def assertNear(self, f1: Any, f2: Any, err: float, msg: Any = None) -> None:
        """`|f1 - f2| <= err` for two numbers."""
        near = f1 == f2 or math.fabs(f1 - f2) <= err
        self.assertTrue(near, self._formatMessage(msg, f"{f1!r} != {f2!r} +/- {err!r}"))

    @_also_in_functions
    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: Any = None) -> None:
        """`assertNear` for each pair."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg)

    @_also_in_functions
    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: Any = None) -> None:
        """The norm of the difference is less than `err`."""
        far = float(np.linalg.norm(_array(ndarray1) - _array(ndarray2)))
        self.assertTrue(far < err, self._formatMessage(msg, f"The distance is {far}, not below {err}"))

    def assertDictEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Equal keys, and equal values, which may be tensors; floating point values only nearly."""
        try:
            super().assertDictEqual(a, b, msg)
        except Exception:
            self.assertSameElements(a.keys(), b.keys())
            for k in a:
                near = _array(a[k]).dtype.kind == "f"
                (self.assertAllClose if near else self.assertAllEqual)(a[k], b[k], msg=k)

    def _all(self, fine: np.ndarray, what: str) -> None:
        if not np.all(fine):
            raise self.failureException(
                f"{what} does not hold at {np.argwhere(~np.atleast_1d(fine))[:8].tolist()}"
            )

    @_also_in_functions
    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """All elements are greater."""
        self._all(_array(a) > comparison_target, f"x > {comparison_target}")

    @_also_in_functions
    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """All elements are greater or equal."""
        self._all(_array(a) >= comparison_target, f"x >= {comparison_target}")

    @_also_in_functions
    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """All elements are less."""
        self._all(_array(a) < comparison_target, f"x < {comparison_target}")

    @_also_in_functions
    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """All elements are less or equal."""
        self._all(_array(a) <= comparison_target, f"x <= {comparison_target}")

    @_also_in_functions
    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """All elements are between the bounds, which are included unless `open_lower_bound` or `open_upper_bound` is set."""
        x = _array(target)
        if x.dtype.kind not in "iuf":
            raise AssertionError(
                f"The value of {x} does not have an ordered numeric type, instead it has type: {x.dtype}"
            )
        low = x > lower_bound if open_lower_bound else x >= lower_bound
        high = x < upper_bound if open_upper_bound else x <= upper_bound
        self._all(low & high, f"{lower_bound} to {upper_bound}")

    @_also_in_functions
    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """All elements are members."""
        self._all(np.isin(_array(target), list(expected_set)), f"x in {expected_set}")

    # ---- types, shapes, messages ----------------------------------------------------------------

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: Any = None) -> None:
        """Two tensors or arrays have the same shape.

        Raises:
          TypeError: if one of them is something else.
        """
        for name, x in (("input_a", input_a), ("input_b", input_b)):
            if not isinstance(x, (np.ndarray, np.generic, _core.Tensor)):
                raise TypeError(
                    f"{name} must be a Numpy ndarray, Numpy scalar, or a Tensor. Instead received {type(x)}"
                )
        self.assertEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """All tensors of a nest have this type."""
        for t in nest.flatten(target):
            dtype = getattr(t, "dtype", None)
            self.assertEqual(_array(t).dtype if dtype is None else dtype, expected_dtype)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: Any = None) -> None:
        """Two device names, one of which may be abbreviated, mean the same device."""
        one, other = (
            str(d or "").lower().replace("device:", "").rsplit("/", 1)[-1] for d in (device1, device2)
        )
        self.assertEqual(
            one, other, self._formatMessage(msg, f"Devices {device1} and {device2} are not equal.")
        )

    def assertProtoEquals(
        self,
        expected_message_maybe_ascii: Any,
        validate_message: Any,
        msg: Any = None,
        relative_tolerance: Any = None,
    ) -> None:
        """A message equals another one, which may be given as text."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, (str, bytes)) and hasattr(validate_message, "DESCRIPTOR"):
            text_format = importlib.import_module("google.protobuf.text_format")
            expected = text_format.Parse(expected, type(validate_message)())
        if isinstance(expected, (str, bytes)):
            text = expected.decode() if isinstance(expected, bytes) else expected
            self.assertEqual(proto_text.parse(text), proto_text.parse(str(validate_message)), msg)
        else:
            self.assertEqual(expected, validate_message, msg)


def _dtype_name(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    return dtype.name if isinstance(dtype, dtypes.DType) else np.asarray(value).dtype.name
