"""MultiWorkerMirroredStrategy in 2 and 4 processes, with one replica each or two: the numbers are those of one process."""

import json
import subprocess
import sys

import numpy as np
import pytest

from . import processes


@pytest.fixture(scope="module")
def alone():
    """The result of one process with the whole batch: the reference."""
    command = [sys.executable, str(processes.PROGRAMS / "everything.py")]
    done = subprocess.run(command, env=processes.environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.split("RESULT")[1])


@pytest.fixture(
    scope="module",
    params=[("jax", 2, 1), ("jax", 2, 2), ("jax", 4, 1), ("mpi", 2, 1)],
    ids=lambda p: f"{p[0]}-{p[1]}x{p[2]}",
)
def workers(request):
    """The results of all workers."""
    carrier, n, each = request.param
    processes.need(carrier)
    start = processes.run if carrier == "jax" else processes.run_by_mpi
    results = start("everything.py", n, each)
    assert [r["rank"] for r in results] == list(range(n))
    return results


def of_replicas(workers, key):
    return [x for w in workers for x in w[key]]


def test_ranks_and_tasks(workers):
    n = len(of_replicas(workers, "numbers"))
    assert of_replicas(workers, "numbers") == list(range(n))
    for w in workers:
        assert w["replicas"] == n and w["task"] == "worker"
        assert w["chief"] is (w["rank"] == 0)


def test_variables(workers):
    n = workers[0]["replicas"]
    for w in workers:
        assert w["first"] == [0.5, 0.5]
        assert w["assigned"] == [(n - 1) / 2, 2.0, n * (n + 1)]


@pytest.mark.parametrize("key", ["together", "together, traced"])
def test_collectives_of_replicas(workers, key):
    n = workers[0]["replicas"]
    xs = np.arange(1.0, n + 1)
    for w in workers:
        squares, total, mean, rows, gradients = w[key]
        own = np.array(w["numbers"]) + 1
        assert squares == [np.sum(xs**2)] * len(own) and total == [np.sum(xs)] * len(own)
        assert mean == [np.mean(xs)] * len(own)
        assert rows == [[[x, x] for x in xs]] * len(own)
        # y_r = x_r · sum of squares, and the losses of all replicas are added up.
        np.testing.assert_allclose(gradients, np.sum(xs**2) + 2 * own * np.sum(xs))


def test_parts_of_different_sizes(workers):
    n = workers[0]["replicas"]
    values = [float(r) for r in range(n) for _ in range(r + 1)]
    for w in workers:
        assert w["gather"] == values
        np.testing.assert_allclose(w["reduce"], [np.sum(values), np.mean(values)], rtol=1e-6)
    rows = np.transpose([column for w in workers for column in np.transpose(w["rows"])])
    each = 8 // n
    assert rows.tolist() == [[each] * n] * 2 + [
        [max(0, min(-(-6 // n), 6 - -(-6 // n) * r)) for r in range(n)]
    ]


def test_random_numbers_differ_between_replicas_and_stateless_ones_do_not(workers):
    drawn = of_replicas(workers, "random")
    assert len(set(drawn)) == len(drawn)
    assert len(set(of_replicas(workers, "random, stateless"))) == 1


KEYS = [
    "losses",
    "w",
    "losses of a table",
    "table",
    "weights",
    "evaluate",
    "fit",
    "fit of arrays",
    "shuffled",
]


@pytest.mark.parametrize("key", KEYS)
def test_training_has_the_numbers_of_one_process(workers, alone, key):
    for w in workers:
        assert json.dumps(w[key]) == json.dumps(workers[0][key])  # equal in all workers
        if isinstance(alone[key], dict):
            assert sorted(w[key]) == sorted(alone[key])
            for name, values in alone[key].items():
                np.testing.assert_allclose(w[key][name], values, rtol=2e-5, err_msg=name)
        else:
            np.testing.assert_allclose(w[key], alone[key], rtol=2e-5, atol=1e-6)
