"""`tf.test.TestCase`: unittest with TensorFlow's assertions about arrays."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import tempfile
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import errors, nest
from gradtape._src.tensors.indexed_slices import IndexedSlices


def _array(value: Any) -> np.ndarray:
    if isinstance(value, IndexedSlices):
        value = value._dense()
    return np.asarray(value)


class TestCase(unittest.TestCase):
    """A test case with assertions about tensors, arrays and nests of them."""

    __test__ = False  # this class itself holds no tests

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__test__ = True

    def evaluate(self, tensors: Any) -> Any:
        """Tensors and variables of a nest as arrays; the rest as it is."""
        return nest.map_structure(
            lambda t: t.numpy() if isinstance(t, (_core.Tensor, _core.Variable)) else t, tensors
        )

    def get_temp_dir(self) -> str:
        """A folder of this test's own, removed after it."""
        folder = getattr(self, "_folder", None)
        if folder is None:
            folder = self._folder = tempfile.mkdtemp(prefix="gradtape-test-")
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    @contextlib.contextmanager
    def session(self, *args: Any, **kwargs: Any) -> Iterator[TestCase]:
        """Does nothing: ops run at once."""
        yield self

    cached_session = session

    # ---- values -------------------------------------------------------------------------------

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None) -> None:
        """Equal shapes, and `|a - b| <= atol + rtol * |b|` everywhere; for nests of one structure."""
        self._each(a, b, msg, lambda x, y, m: self._close(x, y, rtol, atol, m))

    def _close(self, a: Any, b: Any, rtol: float, atol: float, msg: Any) -> None:
        a, b = _array(a), _array(b)
        self.assertEqual(
            a.shape, b.shape, self._formatMessage(msg, f"Shape mismatch: {a.shape} vs. {b.shape}")
        )
        np.testing.assert_allclose(a, b, rtol, atol, err_msg="" if msg is None else str(msg))

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Equal shapes and elements; NaN equals NaN."""
        if isinstance(a, dict) or isinstance(b, dict):
            return self._each(a, b, msg, self.assertAllEqual)
        a, b = _array(a), _array(b)
        self.assertEqual(
            a.shape, b.shape, self._formatMessage(msg, f"Shape mismatch: {a.shape} vs. {b.shape}")
        )
        np.testing.assert_array_equal(a, b, err_msg="" if msg is None else str(msg))
        return None

    def _each(self, a: Any, b: Any, msg: Any, check: Callable) -> None:
        """Checks leaf by leaf; lists of numbers are arrays, not structures."""
        if isinstance(a, dict) or isinstance(b, dict):
            self.assertIsInstance(a, dict, msg)
            self.assertIsInstance(b, dict, msg)
            self.assertEqual(sorted(a), sorted(b), msg)
            for key in a:
                self._each(a[key], b[key], msg, check)
            return
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and self._is_ragged(a):
            self.assertEqual(len(a), len(b), msg)
            for x, y in zip(a, b, strict=True):
                self._each(x, y, msg, check)
            return
        check(a, b, msg)

    @staticmethod
    def _is_ragged(value: Any) -> bool:
        try:
            return (
                any(isinstance(v, dict) for v in value)
                or np.asarray([_array(v) for v in value]).dtype == object
            )
        except ValueError:
            return True

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
        """As `assertAllClose`, with tolerances for the less precise of the two types."""
        kinds = {_dtype_name(a), _dtype_name(b)}
        if kinds & {"float32", "complex64"}:
            rtol, atol = max(rtol, float_rtol), max(atol, float_atol)
        if "float16" in kinds:
            rtol, atol = max(rtol, half_rtol), max(atol, half_atol)
        if "bfloat16" in kinds:
            rtol, atol = max(rtol, bfloat16_rtol), max(atol, bfloat16_atol)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        """Fails where `assertAllClose` would not."""
        try:
            self.assertAllClose(a, b, rtol, atol, msg)
        except AssertionError:
            return
        raise self.failureException(self._formatMessage(msg, "The two values are close at all elements."))

    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Fails where `assertAllEqual` would not."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise self.failureException(self._formatMessage(msg, "The two values are equal at all elements."))

    def assertNear(self, f1: Any, f2: Any, err: float, msg: Any = None) -> None:
        """`|f1 - f2| <= err` for two numbers."""
        near = f1 == f2 or math.fabs(f1 - f2) <= err
        self.assertTrue(near, self._formatMessage(msg, f"{f1!r} != {f2!r} +/- {err!r}"))

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: Any = None) -> None:
        """`assertNear` for each pair."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg)

    def _all(self, fine: np.ndarray, what: str) -> None:
        if not np.all(fine):
            raise self.failureException(
                f"{what} does not hold at {np.argwhere(~np.atleast_1d(fine))[:8].tolist()}"
            )

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """All elements are greater."""
        self._all(_array(a) > comparison_target, f"x > {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """All elements are greater or equal."""
        self._all(_array(a) >= comparison_target, f"x >= {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """All elements are less."""
        self._all(_array(a) < comparison_target, f"x < {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """All elements are less or equal."""
        self._all(_array(a) <= comparison_target, f"x <= {comparison_target}")

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """All elements lie between the bounds, which belong to the range unless it is open."""
        x = _array(target)
        low = x > lower_bound if open_lower_bound else x >= lower_bound
        high = x < upper_bound if open_upper_bound else x <= upper_bound
        self._all(low & high, f"{lower_bound} to {upper_bound}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """All elements are members."""
        self._all(np.isin(_array(target), list(expected_set)), f"x in {expected_set}")

    # ---- types, shapes, errors ----------------------------------------------------------------

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: Any = None) -> None:
        """Two tensors or arrays have one shape."""
        self.assertEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """All tensors of a nest have this type."""
        for t in nest.flatten(target):
            self.assertEqual(getattr(t, "dtype", None), expected_dtype)

    def assertEmpty(self, container: Any, msg: Any = None) -> None:
        """Its length is 0."""
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Any, msg: Any = None) -> None:
        """Its length is not 0."""
        self.assertNotEqual(len(container), 0, msg)

    def assertLen(self, container: Any, expected_len: int, msg: Any = None) -> None:
        """Its length is this."""
        self.assertEqual(len(container), expected_len, msg)

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """The block raises an error whose text matches, or which a function approves of."""
        try:
            yield
        except exception_type as e:
            wanted = expected_err_re_or_predicate
            fine = wanted(e) if callable(wanted) else re.search(wanted, str(e))
            if not fine:
                raise self.failureException(
                    f"Exception of type {type(e)}: {e} does not match {wanted!r}"
                ) from e
        else:
            raise self.failureException(f"{exception_type} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """The block raises one of `tf.errors` whose text matches."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)


def _dtype_name(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    return getattr(dtype, "name", None) or np.asarray(value).dtype.name
