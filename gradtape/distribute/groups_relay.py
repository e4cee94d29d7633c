"""A relay for the connection to JAX's coordination service, so that its loss does not end this process.

JAX aborts a process (SIGABRT) when the connection to the coordinator closes, as it does when worker 0 is killed.
Therefore a worker connects to a local socket, from which bytes are passed on to worker 0 and back. When the other
side is gone, nothing is passed on any more, and JAX waits; the watch (`groups_watch`) reports who is gone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading


def relay(host: str, port: int) -> str:
    """The local address at which a thread listens and passes bytes on to `host:port`."""
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(listening, host, port), name="gradtape relay", daemon=True).start()
    return f"127.0.0.1:{listening.getsockname()[1]}"


def _serve(listening: socket.socket, host: str, port: int) -> None:
    while True:
        try:
            near, _ = listening.accept()
        except OSError:
            return
        # Stays open until the process ends, even while Python closes its sockets at exit.
        os.dup(near.fileno())
        try:
            far = socket.create_connection((host, port), timeout=10.0)
        except OSError:
            continue
        far.settimeout(None)
        for s in (near, far):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, target in ((near, far), (far, near)):
            threading.Thread(
                target=_pass_on, args=(source, target, source is near), name="gradtape relay", daemon=True
            ).start()


def _pass_on(source: socket.socket, target: socket.socket, from_here: bool) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    if from_here:  # this process has closed its side; the other side is told
        with contextlib.suppress(OSError):
            target.close()
