"""Assertions about anything but arrays: sequences, texts, exceptions; temporary files, threads, captured output.

The base class of `TestCase`. TensorFlow's inherits these methods from absl.
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
import pathlib
import re
import shutil
import tempfile
import threading
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradtape._src.base import errors


class CapturedWrites:
    """The captured output of a stream."""

    def __init__(self, path: str) -> None:
        self._path = path

    def contents(self) -> str:
        """The text so far."""
        return pathlib.Path(self._path).read_text()


class TemporaryPath(os.PathLike):
    """A file or folder that is deleted after the test."""

    def __init__(self, path: str) -> None:
        self.full_path = path

    def __fspath__(self) -> str:
        return self.full_path


class CheckedThread:
    """A thread of a test: its exception fails the test when the thread is joined."""

    def __init__(
        self, case: unittest.TestCase, target: Callable, args: Any = None, kwargs: Any = None
    ) -> None:
        self._case, self._target, self._args, self._kwargs = case, target, args or (), kwargs or {}
        self._exception: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self._target(*self._args, **self._kwargs)
        except Exception as e:
            self._exception = e

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def join(self) -> None:
        """Waits for its end; AssertionError if it raised."""
        self._thread.join()
        if self._exception is not None:
            self._case.fail(f"Error in checkedThread: {self._exception}")

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()


class GeneralAssertions(unittest.TestCase):
    """See the top of this file."""

    # ---- sequences and texts ------------------------------------------------------------------

    def assertEmpty(self, container: Any, msg: Any = None) -> None:
        """Its length is 0."""
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Any, msg: Any = None) -> None:
        """Its length is not 0."""
        self.assertNotEqual(len(container), 0, msg)

    def assertLen(self, container: Any, expected_len: int, msg: Any = None) -> None:
        """Its length is `expected_len`."""
        self.assertEqual(len(container), expected_len, msg)

    def assertBetween(self, value: Any, minv: Any, maxv: Any, msg: Any = None) -> None:
        """`minv <= value <= maxv`."""
        msg = self._formatMessage(msg, f'"{value!r}" unexpectedly not between "{minv!r}" and "{maxv!r}"')
        self.assertLessEqual(minv, value, msg)
        self.assertGreaterEqual(maxv, value, msg)

    def assertItemsEqual(self, expected_seq: Any, actual_seq: Any, msg: Any = None) -> None:
        """The same as `assertCountEqual`."""
        self.assertCountEqual(expected_seq, actual_seq, msg)

    def assertSameElements(self, expected_seq: Any, actual_seq: Any, msg: Any = None) -> None:
        """The same elements, in any number and order."""
        missing = [x for x in expected_seq if x not in actual_seq]
        unexpected = [x for x in actual_seq if x not in expected_seq]
        if missing or unexpected:
            self.fail(self._formatMessage(msg, f"Missing: {missing!r}; unexpected: {unexpected!r}"))

    def assertContainsSubset(self, expected_subset: Any, actual_set: Any, msg: Any = None) -> None:
        """All elements of the first are in the second."""
        missing = [x for x in expected_subset if x not in actual_set]
        if missing:
            self.fail(self._formatMessage(msg, f"Missing elements {missing!r} in {actual_set!r}"))

    def assertNoCommonElements(self, expected_seq: Any, actual_seq: Any, msg: Any = None) -> None:
        """No element is in both."""
        common = [x for x in expected_seq if x in actual_seq]
        if common:
            self.fail(self._formatMessage(msg, f"Common elements {common!r}"))

    def assertContainsSubsequence(self, container: Any, subsequence: Any, msg: Any = None) -> None:
        """The elements of the second are in the first, in this order, possibly with others between."""
        left = iter(container)
        for x in subsequence:
            if x not in left:
                self.fail(self._formatMessage(msg, f"{subsequence!r} not a subsequence of {container!r}"))

    def assertContainsInOrder(self, strings: Any, target: str, msg: Any = None) -> None:
        """A text contains these strings, one after the other."""
        at = 0
        for string in (strings,) if isinstance(strings, str) else strings:
            position = target.find(string, at)
            if position < 0:
                self.fail(self._formatMessage(msg, f"Did not find {string!r} in {target[at:]!r}"))
            at = position + len(string)

    def assertStartsWith(self, actual: str, expected_start: str, msg: Any = None) -> None:
        """A text starts with another one."""
        if not actual.startswith(expected_start):
            self.fail(self._formatMessage(msg, f"{actual!r} does not start with {expected_start!r}"))

    def assertEndsWith(self, actual: str, expected_end: str, msg: Any = None) -> None:
        """A text ends with another one."""
        if not actual.endswith(expected_end):
            self.fail(self._formatMessage(msg, f"{actual!r} does not end with {expected_end!r}"))

    def assertRegexMatch(self, actual_str: str, regexes: Any, message: Any = None) -> None:
        """A text contains a match of one of the expressions."""
        if not any(re.search(r, actual_str) for r in regexes):
            self.fail(self._formatMessage(message, f"No match of {regexes!r} in {actual_str!r}"))

    def assertSequenceAlmostEqual(
        self,
        expected_seq: Any,
        actual_seq: Any,
        places: int | None = None,
        msg: Any = None,
        delta: float | None = None,
    ) -> None:
        """`assertAlmostEqual` for each pair."""
        self.assertEqual(len(expected_seq), len(actual_seq), msg)
        for x, y in zip(expected_seq, actual_seq, strict=True):
            self.assertAlmostEqual(x, y, places, msg, delta)  # type: ignore[arg-type]

    def assertTotallyOrdered(self, *groups: Any, msg: Any = None) -> None:
        """Elements of a group are equal, those of later groups larger."""
        for i, group in enumerate(groups):
            for x, y in itertools.product(group, group):
                self.assertEqual(x, y, msg)
            for x, y in itertools.product(group, itertools.chain(*groups[i + 1 :])):
                self.assertLess(x, y, msg)
                self.assertGreater(y, x, msg)

    def assertSameStructure(
        self, a: Any, b: Any, aname: str = "a", bname: str = "b", msg: Any = None
    ) -> None:
        """Nested mappings and sequences are equal, part by part."""
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            self.assertCountEqual(a, b, msg)
            for k in a:
                self.assertSameStructure(a[k], b[k], f"{aname}[{k!r}]", f"{bname}[{k!r}]", msg)
        elif isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, (str, bytes)):
            self.assertEqual(len(a), len(b), self._formatMessage(msg, f"{aname} and {bname}"))
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                self.assertSameStructure(x, y, f"{aname}[{i}]", f"{bname}[{i}]", msg)
        else:
            self.assertEqual(a, b, self._formatMessage(msg, f"{aname} and {bname}"))

    # ---- exceptions ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """The block raises an error whose text matches a regex, or for which a predicate is true."""
        try:
            yield
        except exception_type as e:
            expected = expected_err_re_or_predicate
            fine = expected(e) if callable(expected) else re.search(expected, str(e))
            if not fine:
                raise self.failureException(
                    f"Exception of type {type(e)}: {e} does not match {expected!r}"
                ) from e
        else:
            raise self.failureException(f"{exception_type} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """The block raises one of `tf.errors` whose text matches."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)

    def assertRaisesIncompatibleShapesError(self, exception_type: Any = errors.InvalidArgumentError) -> Any:
        """The block raises an error about incompatible shapes."""
        return self.assertRaisesWithPredicateMatch(
            exception_type, "Incompatible shapes|Dimensions must be equal|required broadcastable shapes"
        )

    def assertRaisesWithLiteralMatch(
        self, expected_exception: Any, expected_exception_message: str, *args: Any, **kwargs: Any
    ) -> Any:
        """The block, or a call of `args[0]` with the rest, raises an error with exactly this text."""

        def check(e: BaseException) -> bool:
            if str(e) != expected_exception_message:
                lines = difflib.ndiff(expected_exception_message.splitlines(True), str(e).splitlines(True))
                self.fail(
                    f"Exception message does not match.\nExpected: {expected_exception_message!r}\n"
                    f"Actual: {str(e)!r}:\n{''.join(lines)}"
                )
            return True

        block = self.assertRaisesWithPredicateMatch(expected_exception, check)
        if not args:
            return block
        with block:
            args[0](*args[1:], **kwargs)
        return None

    # ---- surroundings -------------------------------------------------------------------------

    def get_temp_dir(self) -> str:
        """A folder of this test, deleted after it."""
        folder = getattr(self, "_folder", None)
        if folder is None:
            folder = self._folder = tempfile.mkdtemp(prefix="gradtape-test-")
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def create_tempdir(self, name: str | None = None, cleanup: Any = None) -> TemporaryPath:
        """A new folder in `get_temp_dir()`."""
        if name is None:
            return TemporaryPath(tempfile.mkdtemp(dir=self.get_temp_dir()))
        path = os.path.join(self.get_temp_dir(), name)
        os.makedirs(path, exist_ok=True)
        return TemporaryPath(path)

    def create_tempfile(
        self, file_path: str | None = None, content: str | bytes | None = None, mode: str = "w", **kwargs: Any
    ) -> TemporaryPath:
        """A new file in `get_temp_dir()`."""
        path = os.path.join(self.get_temp_dir() if file_path else self.create_tempdir(), file_path or "file")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = content.encode() if isinstance(content, str) else content or b""
        pathlib.Path(path).write_bytes(data)
        return TemporaryPath(path)

    def enter_context(self, manager: Any) -> Any:
        """Enters a context manager, which is exited after the test."""
        return self.enterContext(manager)

    @contextlib.contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[CapturedWrites]:
        """Captures what the block writes to a stream, also from C code: `captured.contents()`.

        Args:
          stream: one with a file descriptor, such as `sys.stderr`.
        """
        stream.flush()
        number = stream.fileno()
        file, path = tempfile.mkstemp(dir=self.get_temp_dir())
        before = os.dup(number)
        os.dup2(file, number)
        try:
            yield CapturedWrites(path)
        finally:
            stream.flush()
            os.dup2(before, number)
            os.close(before)
            os.close(file)

    def checkedThread(self, target: Callable, args: Any = None, kwargs: Any = None) -> CheckedThread:
        """A thread whose exceptions fail the test."""
        return CheckedThread(self, target, args, kwargs)
