"""The libraries we compare with: an environment each, and a process each that takes commands.

A process stays alive while a part of the benchmark runs and measures on command, so that the libraries can take
turns many times: they share the noise of the machine.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ENVIRONMENTS = Path(os.environ.get("PEERS", Path.home() / ".cache" / "gradtape-peers"))
_PATIENCE = 600  # seconds for one answer; the slowest compilation takes a tenth of that
TOO_LONG = "too long"  # the beginning of the reason why a case has no figures
THREADS = 2  # for every library, unless a part says otherwise

# The environment of each library, and what pip puts into it: Keras where it has a backend for that library.
_KERAS = "keras==3.15.1"
PACKAGES = {
    "tf": ("tensorflow-cpu==2.21.0", _KERAS),
    "torch": ("torch==2.13.0", "numpy", _KERAS),
    "jax": ("jax==0.10.2", "jaxlib==0.10.2", _KERAS),
    "autograd": ("autograd==1.9.1", "numpy"),
}
ENVIRONMENT_OF = {"tensorflow": "tf", "torch": "torch", "jax": "jax", "autograd": "autograd"}


class Missing(Exception):
    """A peer that cannot be measured here; the text says why."""


def python_of(library: str) -> str:
    """The interpreter that has `library`, after setting its environment up if there is none."""
    if library == "gradtape":
        return sys.executable
    name = ENVIRONMENT_OF[library]
    folder = ENVIRONMENTS / name
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done, packages = folder / "done", " ".join(PACKAGES[name])
    if not done.exists() or done.read_text() != packages:  # new, or made when the list was another
        print(f"setting up {folder} with {packages} (once)", file=sys.stderr, flush=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES[name]], check=True)
        except (subprocess.CalledProcessError, OSError) as e:
            raise Missing(f"{library}: its environment could not be set up ({e})") from None
        done.write_text(packages)
    return str(python)


def environment(library: str, threads: int = THREADS) -> dict[str, str]:
    """The environment variables of a library's process: equal numbers of threads, and no log output."""
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", JAX_PLATFORMS="cpu")
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # imports are measured as users have them, from compiled files
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GRADTAPE_NUM_THREADS"):
        env[name] = str(threads)
    # The cache of torch.compile from an earlier run would make its first call look fast.
    env["TORCHINDUCTOR_CACHE_DIR"] = _inductor()
    path = env.pop("PYTHONPATH", None)
    if library == "gradtape":
        spec = importlib.util.find_spec("gradtape")
        if path or spec is None or Path(spec.origin or "").is_relative_to(ROOT):
            env["PYTHONPATH"] = str(ROOT)  # not installed, or from this checkout
    return env


@functools.cache
def _inductor() -> str:
    """A folder that lives as long as this process."""
    folder = tempfile.mkdtemp(prefix="gradtape-inductor-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class Peer:
    """A process of one library.

    `patience` is how many seconds it has for one answer, `memory` how many GB of addresses it may have; `waited` is how
    many seconds its answers took so far.
    """

    def __init__(
        self,
        library: str,
        threads: int = THREADS,
        python: str | None = None,
        patience: float = _PATIENCE,
        memory: float = 0,
    ) -> None:
        self.library, self.patience, self.waited = library, patience, 0.0
        env = environment(library, threads)
        if python is not None:
            env.pop("PYTHONPATH", None)  # its environment has gradtape installed
        self._process = subprocess.Popen(
            [python or python_of(library), "-u", str(HERE / "worker.py"), library, str(threads), str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )
        hello = self.ask()
        if "error" in hello:
            raise Missing(f"{library}: {hello['error']}")
        self.version: str = hello["version"]

    def ask(self, **command: Any) -> dict[str, Any]:
        """Sends a command and waits for the answer; without one, only waits."""
        assert self._process.stdin and self._process.stdout
        begin = time.monotonic()
        try:
            if command:
                self._process.stdin.write(json.dumps(command) + "\n")
                self._process.stdin.flush()
            if not self._answers():
                return {"error": f"{TOO_LONG}: no answer in {self.patience:.3g} s"}
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            self.waited += time.monotonic() - begin
        if line:
            return json.loads(line)
        try:
            how = f"exit code {self._process.wait(5)}"
        except subprocess.TimeoutExpired:
            how = "still running"
        return {"error": f"the process of {self.library} ended ({how})"}

    def _answers(self) -> bool:
        """Waits for an answer; kills a process that takes too long."""
        if os.name == "nt":  # no select for pipes
            return True
        if select.select([self._process.stdout], [], [], self.patience)[0]:
            return True
        self._process.kill()
        self._process.wait()
        return False

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.close()
            self._process.wait(10)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def start(libraries: list[str], threads: int = THREADS) -> dict[str, Peer]:
    """A process for each available library; the others are reported and left out."""
    peers = {}
    for library in libraries:
        try:
            peers[library] = Peer(library, threads)
        except Missing as e:
            print(f"left out: {e}", file=sys.stderr)
    return peers
