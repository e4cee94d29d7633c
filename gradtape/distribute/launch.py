"""`python -m gradtape launch --workers 2 train.py`: several workers of one program, on this machine.

Each process gets a TF_CONFIG with free ports of the loopback address. Lines of output are prefixed by the index of
the worker. When one fails, the others have a moment to report and save, and are then ended; the exit status is that
of the first one that failed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, TextIO

_GRACE = 15.0  # seconds that the others have after one has failed


def free_addresses(n: int) -> list[str]:
    """Addresses of this machine with ports that are free now.

    >>> len(set(free_addresses(3)))
    3
    """
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return addresses


def tf_config(addresses: Sequence[str], index: int) -> str:
    """The TF_CONFIG of one of several workers.

    >>> tf_config(["a:1", "b:1"], 1)
    '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
    """
    return json.dumps({"cluster": {"worker": list(addresses)}, "task": {"type": "worker", "index": index}})


def launch(command: Sequence[str], workers: int, grace: float = _GRACE) -> int:
    """Runs a program in several processes and waits for all of them.

    Args:
      command: the arguments of `python`: a script, or `-m` and a module, and its arguments.
      workers: the number of processes.
      grace: the seconds that the others have after one has failed.

    Returns:
      0 if all succeeded; otherwise the status of the first that failed, 128 plus the signal if a signal ended it.
    """
    addresses = free_addresses(workers)
    running: list[subprocess.Popen] = []
    readers = []
    lock = threading.Lock()
    try:
        for i in range(workers):
            # Unbuffered Python writes whole lines, so that the lines of several workers do not mix.
            env = dict(os.environ, TF_CONFIG=tf_config(addresses, i), PYTHONUNBUFFERED="1")
            process = subprocess.Popen(
                [sys.executable, *command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            running.append(process)
            for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
                reader = threading.Thread(target=_pass_on, args=(i, source, target, lock), daemon=True)
                reader.start()
                readers.append(reader)
        status = _wait(running, grace)
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
    for reader in readers:
        reader.join(5.0)
    return status


def _pass_on(index: int, source: Any, target: TextIO, lock: threading.Lock) -> None:
    for line in source:
        with lock:
            target.write(f"[{index}] {line.rstrip()}\n")
            target.flush()


def _wait(running: Sequence[subprocess.Popen], grace: float) -> int:
    """The status of the first process that fails, or 0 once all have ended."""
    status, end = 0, float("inf")
    while any(p.poll() is None for p in running):
        failed = [(i, p.returncode) for i, p in enumerate(running) if p.returncode]
        if failed and not status:
            index, code = failed[0]
            status, end = (128 - code if code < 0 else code), time.monotonic() + grace
            words = (
                f"was ended by {signal.Signals(-code).name}" if code < 0 else f"has failed with status {code}"
            )
            print(f"launch: worker {index} {words}; the others are ended soon", file=sys.stderr, flush=True)
        if time.monotonic() > end:
            for p in running:
                if p.poll() is None:
                    p.terminate()
            time.sleep(1.0)
            return status
        time.sleep(0.05)
    codes = [p.returncode for p in running if p.returncode]
    return status or (0 if not codes else 128 - codes[0] if codes[0] < 0 else codes[0])
