"""Workers that die, stop, sleep, leave or never start: the others name it, and exit with an ordinary status."""

import socket
import subprocess
import sys

import pytest

from gradtape.distribute.launch import free_addresses

from . import processes

# Long enough for a busy machine; no test waits for this limit.
PATIENT = {"GRADTAPE_COLLECTIVE_TIMEOUT": 60}
SHORT = {"GRADTAPE_COLLECTIVE_TIMEOUT": 4}


@pytest.fixture(autouse=True)
def _jax():
    processes.need("jax")


def survivors(mode, who, n=3, **more):
    """The errors of the others when one of them misbehaves, and that one's index."""
    addresses = free_addresses(n)
    started = processes.start("failing.py", n, mode, who, addresses=addresses, **more)
    others = [p for i, p in enumerate(started) if i != who]
    try:
        workers = processes.finish(others)
        for w in workers:
            assert w.status == 1, f"status {w.status}\n{w.out}\n{w.err}"  # not SIGABRT, and it was not killed
            assert f"worker {who} ({addresses[who]})" in w.result["said"]
            assert w.result["saved"] == w.result["saved"]  # variables can be read, and saved
        return workers
    finally:
        if started[who].poll() is None:
            started[who].kill()
        started[who].communicate()


@pytest.mark.parametrize("who", [0, 1])
def test_a_worker_that_is_killed(who):
    for w in survivors("dies", who, **PATIENT):
        assert w.result["kind"] == "UnavailableError"
        assert "is gone" in w.result["said"]


@pytest.mark.parametrize("who", [0, 1])
def test_a_worker_that_is_killed_while_all_meet(who):
    """JAX itself would abort the others if worker 0 exits while they connect."""
    addresses = free_addresses(3)
    workers = processes.finish(processes.start("meeting.py", 3, who, addresses=addresses, **PATIENT))
    assert [w.status for w in workers] == [-9 if r == who else 1 for r in range(3)], [w.err for w in workers]
    for r, w in enumerate(workers):
        if r != who:
            assert w.result["kind"] == "UnavailableError"
            assert f"worker {who} ({addresses[who]}) is gone" in w.result["said"]


@pytest.mark.parametrize("who", [0, 1])
def test_a_worker_that_stops(who):
    """The process exists, its connections are open, but it sends nothing.

    Reports and exchanges have the same timeout: on a busy machine the exchange may notice it first.
    """
    noticed = ("has not reported", "does not answer", "has not joined")
    for w in survivors("stops", who, n=2, **SHORT):
        assert w.result["kind"] in ("UnavailableError", "DeadlineExceededError")
        assert any(text in w.result["said"] for text in noticed)


def test_a_worker_that_does_something_else_for_too_long():
    for w in survivors("sleeps", 1, **SHORT):
        assert w.result["kind"] == "DeadlineExceededError"
        assert "after 4 s worker 1" in w.result["said"] and "has not joined" in w.result["said"]


@pytest.mark.parametrize("mode", ["leaves", "fails"])
def test_a_worker_that_ends_before_the_others(mode):
    for w in survivors(mode, 1, n=2, **PATIENT):
        assert w.result["kind"] == "UnavailableError"
        assert "has finished its program" in w.result["said"]


def test_workers_that_exchange_different_things():
    workers = processes.finish(processes.start("failing.py", 2, "differs", 1, **PATIENT))
    for w in workers:
        assert w.status == 1, w.err
        assert w.result["kind"] == "InvalidArgumentError"
        assert "worker 0: all_reduce float32[40,50]" in w.result["said"]
        assert "worker 1: all_reduce float32[3] (" in w.result["said"]


def test_an_interrupted_exchange_and_connections_of_other_programs():
    first, _ = processes.run("interrupted.py", 2, **PATIENT)
    assert first["first"][0] == "KeyboardInterrupt"
    assert first["second"][0] == "AbortedError" and "start all workers again" in first["second"][1]


@pytest.mark.parametrize("missing", [0, 1])
def test_a_worker_that_never_starts(missing):
    addresses = free_addresses(2)
    (w,) = processes.finish(
        processes.start("failing.py", 2, "none", 0, addresses=addresses, only=[1 - missing], **SHORT)
    )
    assert w.status == 1
    assert (
        f"DeadlineExceededError: MultiWorkerMirroredStrategy: worker {missing} ({addresses[missing]})"
        in w.err
    )
    assert "within 4 s" in w.err


def test_a_port_that_is_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        addresses = [f"127.0.0.1:{taken.getsockname()[1]}", *free_addresses(1)]
        (w,) = processes.finish(
            processes.start("failing.py", 2, "none", 0, addresses=addresses, only=[0], **SHORT)
        )
    assert w.status == 1
    assert f"worker 0 cannot listen at {addresses[0]}: Address already in use" in w.err


def test_two_workers_with_one_index():
    addresses = free_addresses(3)
    started = processes.start("failing.py", 3, "dies", 2, addresses=addresses, only=[0, 1, 1], **SHORT)
    workers = processes.finish(started)
    assert [w.status for w in workers] == [1, 1, 1]
    refused = [w for w in workers if "there are two workers with index 1" in w.err]
    assert len(refused) == 1
    assert f"worker 2 ({addresses[2]}) has not connected" in workers[0].err


def test_a_loop_continues_from_its_last_checkpoint_with_the_same_losses(tmp_path):
    whole = losses(processes.start("resumed_loop.py", 2, tmp_path / "whole", **PATIENT), [0, 0])
    assert sorted(whole) == list(range(18))
    first = losses(processes.start("resumed_loop.py", 2, tmp_path / "cut", 0, 10, **PATIENT), [-9, 1])
    second = losses(processes.start("resumed_loop.py", 2, tmp_path / "cut", **PATIENT), [0, 0])
    assert sorted(first) == list(range(10)) and sorted(second) == list(range(9, 18))
    assert {**first, **second} == whole


def test_fit_continues_from_its_backup_and_the_chief_writes_the_files(tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    whole = losses(processes.start("resumed_keras.py", 2, tmp_path / "whole", **PATIENT), [0, 0])
    assert sorted(whole) == list(range(5))
    first = losses(processes.start("resumed_keras.py", 2, tmp_path / "cut", 1, 3, **PATIENT), [1, -9])
    second = losses(processes.start("resumed_keras.py", 2, tmp_path / "cut", **PATIENT), [0, 0])
    assert sorted(first) == [0, 1, 2] and sorted(second) == [3, 4]
    assert {**first, **second} == whole
    written = sorted(
        str(p.relative_to(tmp_path / "cut")) for p in (tmp_path / "cut").rglob("*") if p.is_file()
    )
    backup = ["worker0/backup/latest.weights.h5", "worker0/backup/training_metadata.json"]
    assert written == ["log0.csv", *backup, "worker0/best.keras"]


def losses(started, statuses):
    """The losses that all workers have printed, which must be the same."""
    workers = processes.finish(started)
    assert [w.status for w in workers] == statuses, [w.err[-2000:] for w in workers]
    found = {}
    for w in workers:
        for line in w.out.splitlines():
            if line.startswith("LOSS"):
                _, at, loss = line.split()
                assert found.setdefault(int(at), loss) == loss
    return found


def test_the_launcher_passes_on_output_and_the_status_of_the_first_that_fails(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import json, os, sys; i = json.loads(os.environ['TF_CONFIG'])['task']['index']\n"
                      "print('hello', *sys.argv[1:]); sys.exit(3 if i == 1 and len(sys.argv) > 2 else 0)\n")  # fmt: skip

    def launched(*arguments):
        command = [sys.executable, "-m", "gradtape", "launch", "--workers", "2", str(script), *arguments]
        return subprocess.run(
            command, env=processes.environment(), capture_output=True, text=True, timeout=120
        )

    done = launched("a")
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == ["[0] hello a", "[1] hello a"]
    done = launched("a", "b")
    assert done.returncode == 3
