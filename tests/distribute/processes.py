"""Starts programs in several processes on the loopback address, by TF_CONFIG or mpirun, and collects what they print."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from gradtape.distribute.launch import free_addresses, tf_config

PROGRAMS = Path(__file__).parent / "programs"
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]


class Worker(NamedTuple):
    """The outcome of a process."""

    status: int
    out: str
    err: str

    @property
    def result(self):
        """The JSON that it printed after the word RESULT."""
        lines = [line[6:] for line in self.out.splitlines() if line.startswith("RESULT")]
        assert lines, f"status {self.status}\n{self.out}\n{self.err}"
        return json.loads(lines[-1])


def need(carrier):
    """Skips a test if the library that carries values between processes is not installed."""
    if carrier == "jax":
        pytest.importorskip("jax", reason='pip install "gradtape[xla]"')
    else:
        pytest.importorskip("mpi4py", reason='pip install "gradtape[mpi]"')
        if not shutil.which("mpirun"):
            pytest.skip("there is no mpirun: apt install openmpi-bin")


def environment(**more):
    """The environment of this process, without a description of a cluster, and with one thread."""
    gone = ("TF_CONFIG", "SLURM_", "OMPI_", "PMI_", "GRADTAPE_COLLECTIVE")
    env = {k: v for k, v in os.environ.items() if not k.startswith(gone)}
    return env | {"GRADTAPE_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"} | {k: str(v) for k, v in more.items()}


def start(program, n, *arguments, addresses=None, only=None, **more):
    """Processes that run a program with TF_CONFIG; `only` some of them."""
    addresses = addresses or free_addresses(n)
    command = [sys.executable, str(PROGRAMS / program), *map(str, arguments)]
    return [
        subprocess.Popen(
            command,
            env=environment(TF_CONFIG=tf_config(addresses, i), **more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in (range(n) if only is None else only)
    ]


def finish(processes, timeout=240):
    """The outcomes of processes; those that hang are killed, and the test fails."""
    end, workers = time.monotonic() + timeout, []
    try:
        for p in processes:
            out, err = p.communicate(timeout=max(1.0, end - time.monotonic()))
            workers.append(Worker(p.returncode, out, err))
    except subprocess.TimeoutExpired:
        for p in processes:
            p.kill()
        said = [p.communicate() for p in processes]
        pytest.fail(f"a process hangs: {said}")
    return workers


def run(program, n, *arguments, **more):
    """Runs a program in n processes; all of them must end well."""
    workers = finish(start(program, n, *arguments, **more))
    for i, w in enumerate(workers):
        assert w.status == 0, f"worker {i}: status {w.status}\n{w.out}\n{w.err}"
    return [w.result for w in workers]


def run_by_mpi(program, n, *arguments, **more):
    """The same with mpirun. Each process writes to a file, because mpirun may mix their lines."""
    python = [sys.executable, str(PROGRAMS / program), *map(str, arguments)]
    to_file = ["sh", "-c", 'exec "$@" > "$OUTPUTS/$OMPI_COMM_WORLD_RANK"', "sh"]
    with tempfile.TemporaryDirectory() as folder:
        started = subprocess.Popen(
            [*MPIRUN, str(n), *to_file, *python],
            env=environment(OUTPUTS=folder, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        (done,) = finish([started])
        assert done.status == 0, f"{done.out}\n{done.err}"
        outs = [(Path(folder) / str(rank)).read_text() for rank in range(n)]
    return [Worker(0, out, done.err).result for out in outs]


def stop(process):
    """A process that hangs: it neither answers nor ends."""
    process.send_signal(signal.SIGSTOP)
