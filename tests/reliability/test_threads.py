"""Threads: results are the same bit for bit on any number of them, the core's own or the user's."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core
from tests.reliability.programs import PROGRAMS, hashed, numbers

_THREADS = 8
_ROOT = Path(__file__).resolve().parents[2]


def at_once(work, threads=_THREADS):
    """The results of `work(k)` on threads that start at the same time."""
    start, results, errors = threading.Barrier(threads), [None] * threads, []

    def run(k):
        start.wait()
        try:
            results[k] = work(k)
        except BaseException as e:
            errors.append(e)

    workers = [threading.Thread(target=run, args=(k,)) for k in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    if errors:
        raise errors[0]
    return results


@pytest.fixture(autouse=True)
def nothing_is_compiled():
    """After tests that compile many passes for nothing, a pass would have to be seen more often than here."""
    _core.clear_compiled()


def settled(program):
    """The results of a program once its passes are compiled."""
    for _ in range(3):
        program()
    return hashed(program())


@pytest.mark.parametrize("name", PROGRAMS)
def test_own_tapes(name):
    alone = settled(PROGRAMS[name])
    assert set(at_once(lambda k: hashed(PROGRAMS[name]()))) == {alone}


def test_different_programs_at_once():
    names = list(PROGRAMS)
    alone = {name: settled(PROGRAMS[name]) for name in names}

    def work(k):
        mine = names[k:] + names[:k]
        return {name: hashed(PROGRAMS[name]()) for name in mine}

    assert all(found == alone for found in at_once(work))


_RACE = """
import sys
sys.path.insert(0, {root!r})
from tests.reliability.programs import PROGRAMS, hashed
from tests.reliability.test_threads import at_once
for name, program in PROGRAMS.items():
    raced = set(at_once(lambda k: hashed(program())))
    assert raced == {{hashed(program())}}, name
print("same")
"""


@pytest.mark.parametrize("compiled", ["always", "0"])
def test_first_compilation_raced(compiled):
    """No pass is in the cache and no function is traced when the threads start."""
    env = os.environ | {"GRADTAPE_COMPILE": compiled}
    code = _RACE.format(root=str(_ROOT))
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=600)
    assert done.stdout == "same\n", done.stderr[-3000:]


def test_first_trace_raced():
    traces = []

    @tf.function
    def f(x):
        traces.append(1)
        return tf.reduce_sum(tf.sin(x) * 2.0)

    x = numbers(33, 5)
    assert len({float(y) for y in at_once(lambda k: f(x))}) == 1
    assert len({float(y) for y in at_once(lambda k: f(x[: k + 1]))}) == _THREADS
    assert len(traces) <= 2 * _THREADS


def test_assignments_to_one_variable_are_whole():
    """Readers see a value that was assigned, never parts of two."""
    v = tf.Variable(tf.zeros([50_000]))

    def work(k):
        for i in range(50):
            if k % 2:
                v.assign(tf.fill([50_000], float(8 * i + k)))
            else:
                x = v.numpy()
                assert x.min() == x.max()

    at_once(work)


def test_a_tape_records_its_own_thread():
    x = tf.Variable(2.0)

    def work(k):
        with tf.GradientTape() as tape:
            y = x * float(k)
            for _ in range(100):
                y = y + x
        return float(tape.gradient(y, x))

    assert at_once(work) == [100.0 + k for k in range(_THREADS)]


_COUNTS = ("1", "3", "8")


def test_results_do_not_depend_on_the_number_of_threads():
    def lines(count):
        env = os.environ | {"GRADTAPE_NUM_THREADS": count, "PYTHONPATH": str(_ROOT)}
        done = subprocess.run(
            [sys.executable, str(_ROOT / "tests/reliability/programs.py")],
            env=env, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()

    first, *others = [lines(count) for count in _COUNTS]
    assert len(first) > 2 * len(PROGRAMS) + 100
    for count, other in zip(_COUNTS[1:], others, strict=True):
        assert [a for a, b in zip(first, other, strict=True) if a != b] == [], f"{count} threads"


def test_the_number_of_threads_may_change_while_others_compute():
    x = numbers(300, 300)
    expected = tf.matmul(x, x).numpy()
    before = tf.config.threading.get_intra_op_parallelism_threads()

    def work(k):
        for i in range(20):
            if k == 0:
                tf.config.threading.set_intra_op_parallelism_threads(1 + i % 4)
            assert np.array_equal(tf.matmul(x, x), expected)

    try:
        at_once(work, 4)
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)
