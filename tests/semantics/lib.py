"""What the tests here share: the library under test, and a few assertions.

The tests describe TensorFlow's behaviour, so TensorFlow itself can referee them:
`GRADTAPE_TEST_LIB=tensorflow pytest tests/semantics`. The letter and number in a test's
name (T27, X5, ...) is its line in the description of the behaviour to match.
"""

import contextlib
import importlib
import json
import logging
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

LIBRARY = os.environ.get("GRADTAPE_TEST_LIB", "gradtape")
ON_TENSORFLOW = LIBRARY == "tensorflow"

tf = importlib.import_module(LIBRARY)


def differs_on_tensorflow(reason, raises=None):
    """Marks a test of a deliberate difference from TensorFlow."""
    return pytest.mark.xfail(ON_TENSORFLOW, reason=reason, raises=raises, strict=True)


def assert_close(actual, expected, rtol=1e-5, atol=1e-7):
    """`actual` has the shape of `expected` and its values; NaN equals NaN."""
    assert actual is not None, "expected a value, got None"
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def gradient(f, *args):
    """Gradient of `f(*args)`: one value for one argument, else a list."""
    args = [tf.convert_to_tensor(a) for a in args]
    with tf.GradientTape() as tape:
        tape.watch(args)
        y = f(*args)
    grads = tape.gradient(y, args)
    return grads[0] if len(grads) == 1 else grads


def counted(function, **options):
    """A tf.function of a Python function, and how often that ran."""
    runs = []

    def inner(*args, **kwargs):
        runs.append(None)
        return function(*args, **kwargs)

    return tf.function(inner, **options), runs


@contextlib.contextmanager
def logged_warnings():
    """Collects what the library logs at WARNING or above."""
    messages = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())
    logger = logging.getLogger(LIBRARY)
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)


def warnings_of_fresh_process(code):
    """What `code` logs in a new process, for warnings that are given once per process."""
    script = textwrap.dedent(f"""
        import importlib, json, logging
        tf = importlib.import_module({LIBRARY!r})
        messages = []
        handler = logging.Handler(logging.WARNING)
        handler.emit = lambda record: messages.append(record.getMessage())
        logging.getLogger({LIBRARY!r}).addHandler(handler)
        exec({textwrap.dedent(code)!r})
        print(json.dumps(messages))
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
