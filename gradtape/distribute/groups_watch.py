"""Monitors the workers of a cluster: which have started, which are late, and which are gone.

No computed values are sent over these connections. Worker 0 listens at its address; every worker keeps one
connection to it and reports a few times a second that it is alive and how many exchanges it has entered. A
connection that closes identifies a dead worker at once; a silent one, after the time limit. Worker 0 tells the
others. So an exchange that cannot finish raises an error that says who is missing, instead of hanging.

Messages are lines of JSON with one key that gives their kind; see `_Hub._handle` and `Watch._handle`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import selectors
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

from gradtape._src.base import errors

_LONGEST = 1 << 20  # limit on the bytes of a message
_TICK = 0.25  # seconds between reports


def host_and_port(address: str) -> tuple[str, int]:
    """`"host:1234"` as host and port, without brackets around an IPv6 address."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def listener(address: str, patience: float = 3.0) -> socket.socket:
    """A socket that listens at an address; at all addresses of this machine if that one is only known outside.

    Raises:
      UnavailableError: if another program listens there.
    """
    host, port = host_and_port(address)
    end = time.monotonic() + patience
    while True:
        try:
            return _listen(host, port)
        except OSError as e:
            if e.errno in (errno.EADDRNOTAVAIL, errno.EINVAL) or isinstance(e, socket.gaierror):
                host = ""  # the name or address is that of a gateway, as for containers
                continue
            if e.errno != errno.EADDRINUSE or time.monotonic() > end:
                raise errors.UnavailableError(
                    None, None,
                    f"MultiWorkerMirroredStrategy: worker 0 cannot listen at {address}: {e.strerror or e}. Hint: another "
                    "program, or an earlier run, has the port; choose another one in TF_CONFIG.",
                ) from e  # fmt: skip
            time.sleep(0.1)  # an earlier run may still be ending


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM)
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((host, port))
        s.listen(1024)
    except BaseException:
        s.close()
        raise
    return s


class _Line:
    """A connection that carries lines of JSON."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(True)
        self._received = b""
        self._sending = threading.Lock()

    def send(self, **message: Any) -> None:
        with self._sending, contextlib.suppress(OSError):  # `receive` notices a closed connection
            self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> list[dict] | None:
        """The messages received, once there is something to read; None if the other side has closed."""
        try:
            data = self.socket.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            return None
        *lines, self._received = (self._received + data).split(b"\n")
        if len(self._received) > _LONGEST:
            return None
        try:
            messages = [json.loads(line) for line in lines]
        except ValueError:
            return None  # not a worker
        return [m for m in messages if isinstance(m, dict)]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class _Member:
    """A worker, as known to worker 0."""

    def __init__(self, line: _Line, rank: int) -> None:
        self.line, self.rank = line, rank
        self.heard = time.monotonic()
        self.entered = 0
        self.gone = False


class _Hub:
    """The side of worker 0: a thread that listens to all workers and informs the others."""

    def __init__(self, listening: socket.socket, size: int, timeout: float, welcome: dict) -> None:
        self._listening, self._size, self._timeout, self._welcome = listening, size, timeout, welcome
        self._members: dict[int, _Member] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ, None)
        self._began = time.monotonic()
        self._told_missing = False
        threading.Thread(target=self._run, name="gradtape watch (worker 0)", daemon=True).start()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select(_TICK):
                if key.fileobj is self._listening:
                    with contextlib.suppress(OSError):
                        connection, _ = self._listening.accept()
                        self._selector.register(connection, selectors.EVENT_READ, [_Line(connection), None])
                    continue
                line, member = key.data
                messages = line.receive()
                try:
                    for message in messages or ():
                        key.data[1] = member = self._handle(line, member, message)
                except (KeyError, TypeError, ValueError):
                    messages = None  # not a worker
                if messages is None:
                    self._selector.unregister(line.socket)
                    line.close()
                    if member is not None and not member.gone:
                        self._lose(member, gone=member.rank)
            time_now = time.monotonic()
            for member in list(self._members.values()):
                if not member.gone and time_now - member.heard > self._timeout:
                    self._lose(member, silent=member.rank)
            if (
                len(self._members) < self._size
                and time_now - self._began > self._timeout
                and not self._told_missing
            ):
                self._told_missing = True
                self._tell(missing=[r for r in range(self._size) if r not in self._members])

    def _lose(self, member: _Member, **message: Any) -> None:
        member.gone = True
        self._tell(**message)

    def _tell(self, **message: Any) -> None:
        """Informs worker 0 last, whose process this is: it may end on the news before the others hear them."""
        for _, member in sorted(self._members.items(), reverse=True):
            if not member.gone:
                member.line.send(**message)

    def _handle(self, line: _Line, member: _Member | None, message: dict) -> _Member | None:
        if "hello" in message and member is None:
            return self._join(line, int(message["hello"]), message)
        if member is None:
            raise ValueError
        member.heard = time.monotonic()
        if "beat" in message:
            member.entered = int(message["beat"])
        elif "bye" in message:
            self._lose(member, left=member.rank, at=int(message["bye"]))
        elif "who" in message:
            at = int(message["who"])
            late = [m.rank for m in self._members.values() if not m.gone and m.entered < at]
            self._tell(
                late=sorted(late), at=at
            )  # to all, because the one that asked may end before the others ask
        return member

    def _join(self, line: _Line, rank: int, message: dict) -> _Member | None:
        wrong = None
        if not 0 <= rank < self._size:
            raise ValueError
        if rank in self._members:
            wrong = f"there are two workers with index {rank}: each process needs an index of its own"
        elif message.get("cluster") != self._welcome["cluster"]:
            wrong = (
                f"worker {rank} describes another cluster than worker 0: {message.get('cluster')} is not "
                f"{self._welcome['cluster']}"
            )
        if wrong is not None:
            line.send(refused=wrong)
            return None
        member = self._members[rank] = _Member(line, rank)
        if len(self._members) == self._size:
            self._tell(**self._welcome)
        return member


class Watch:
    """The side of one worker: its reports, and what it has heard about the others.

    Args:
      rank: the index of this worker.
      addresses: the addresses of all workers; worker 0 listens at its own, the others are for messages.
      timeout: the seconds to wait for the others.
      listening: worker 0's socket.
      welcome: what worker 0 sends to all once they have come.
    """

    def __init__(
        self,
        rank: int,
        addresses: Sequence[str],
        timeout: float,
        listening: socket.socket | None = None,
        welcome: dict | None = None,
    ) -> None:
        self.rank, self.addresses, self.timeout = rank, list(addresses), timeout
        self.entered = 0  # the number of exchanges entered
        self.lost: dict[int, tuple[str, int]] = {}  # by rank: how it was lost, and after which exchange
        self.welcome: dict = {}
        self._refused = ""
        self._missing: list[int] | None = None
        self._late: dict[int, list[int]] = {}
        self._changed = threading.Condition()
        self._closed = False
        if listening is not None:
            _Hub(listening, len(self.addresses), timeout, {**(welcome or {}), "cluster": self.addresses})
        self._line = self._connect()
        threading.Thread(target=self._run, name=f"gradtape watch of worker {rank}", daemon=True).start()
        self._line.send(hello=rank, cluster=self.addresses)
        self._roll_call()

    # ---- joining ----------------------------------------------------------------------------------

    def _connect(self) -> _Line:
        end = time.monotonic() + self.timeout
        while True:
            try:
                return _Line(socket.create_connection(host_and_port(self.addresses[0]), timeout=2.0))
            except OSError as e:
                if time.monotonic() > end:
                    raise errors.DeadlineExceededError(
                        None, None,
                        f"MultiWorkerMirroredStrategy: {self.name(0)} has not started within {self.timeout:g} s: nobody "
                        f"listens there ({e}).{self._hint}",
                    ) from e  # fmt: skip
                time.sleep(0.05)

    def _roll_call(self) -> None:
        end = time.monotonic() + self.timeout + 2.0  # worker 0 reports missing workers before that
        with self._changed:
            while not (self.welcome or self._refused or self._missing or self.lost):
                if not self._changed.wait(max(0.0, end - time.monotonic())):
                    break
        if self.welcome:
            return
        self._closed = True
        if self._refused:
            raise errors.InvalidArgumentError(
                None, None,
                f"MultiWorkerMirroredStrategy: {self._refused}. Hint: every process needs the same cluster in TF_CONFIG, "
                "and a task of its own.",
            )  # fmt: skip
        if self.lost and not self._missing:  # worker 0 has reported missing workers, and is then gone, too
            raise self.error(0)
        missing = self._missing or [0]
        raise errors.DeadlineExceededError(
            None, None,
            f"MultiWorkerMirroredStrategy: {self.names(missing)} {'has' if len(missing) == 1 else 'have'} not connected "
            f"within {self.timeout:g} s; {len(self.addresses)} workers are expected.{self._hint}",
        )  # fmt: skip

    _hint = " Hint: CommunicationOptions(timeout_seconds=) or GRADTAPE_COLLECTIVE_TIMEOUT sets the time."

    # ---- the connection ---------------------------------------------------------------------------

    def _run(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self._line.socket, selectors.EVENT_READ)
        tick = min(_TICK, self.timeout / 8)
        while not self._closed:
            ready = selector.select(tick)
            self._line.send(beat=self.entered)
            if not ready:
                continue
            messages = self._line.receive()
            with self._changed:
                for message in messages or ():
                    self._handle(message)
                if messages is None:
                    # Worker 0 leaves when it hears that another worker is gone; that is not the cause.
                    explained = any(how != "left" for how, _ in self.lost.values())
                    if not self._closed and not self._refused and not explained:
                        self.lost.setdefault(0, ("gone", 0))
                    self._closed = True
                self._changed.notify_all()

    def _handle(self, message: dict) -> None:
        if "gone" in message:
            self.lost.setdefault(message["gone"], ("gone", 0))
        elif "silent" in message:
            self.lost.setdefault(message["silent"], ("silent", 0))
        elif "left" in message:
            self.lost.setdefault(message["left"], ("left", message["at"]))
        elif "late" in message:
            self._late[message["at"]] = message["late"]
        elif "refused" in message:
            self._refused = message["refused"]
        elif "missing" in message:
            self._missing = message["missing"]
        elif "cluster" in message:
            self.welcome = message

    def close(self) -> None:
        """Reports that this worker ends normally: others must not wait for it, but nothing is wrong with it."""
        if not self._closed:
            self._closed = True
            self._line.send(bye=self.entered)

    # ---- for exchanges ------------------------------------------------------------------------------

    def name(self, rank: int) -> str:
        """A worker in words, with its address."""
        return f"worker {rank} ({self.addresses[rank]})"

    def names(self, ranks: Sequence[int]) -> str:
        """Workers in words."""
        *most, last = [self.name(r) for r in sorted(ranks)]
        return f"{', '.join(most)} and {last}" if most else last

    def is_broken(self, at: int) -> bool:
        """Whether exchange number `at` cannot finish, because a worker that has not entered it is gone."""
        return bool(self.lost) and any(how != "left" or last < at for how, last in self.lost.values())

    def has_verdict(self, at: int) -> bool:
        """Whether a worker has waited too long in exchange number `at`, and the missing workers are known."""
        return at in self._late

    def wait_for_news(self, at: int, seconds: float) -> bool:
        """Waits until a worker is known to be gone; returns whether one is."""
        end = time.monotonic() + seconds
        with self._changed:
            while not self.is_broken(at) and time.monotonic() < end:
                self._changed.wait(max(0.0, end - time.monotonic()))
        return self.is_broken(at)

    def wait_for_end(self, rank: int, seconds: float) -> None:
        """Waits until a worker has ended, normally or not."""
        end = time.monotonic() + seconds
        with self._changed:
            while rank not in self.lost and time.monotonic() < end:
                self._changed.wait(max(0.0, end - time.monotonic()))

    def error(self, at: int, what: str = "", cause: str = "") -> errors.OpError:
        """An UnavailableError that names the workers that are gone."""
        words = {
            "gone": "is gone: its process has ended or its machine cannot be reached",
            "silent": f"has not reported for {self.timeout:g} s",
            "left": "has finished its program, and does not take part",
        }
        ranks_by_how: dict[str, list[int]] = {}
        for rank, (how, last) in self.lost.items():
            if how != "left" or last < at:
                ranks_by_how.setdefault(how, []).append(rank)
        if len(ranks_by_how) > 1:
            ranks_by_how.pop("left", None)  # they have heard of the failure earlier, and ended
        reasons = "; ".join(f"{self.names(ranks)} {words[how]}" for how, ranks in ranks_by_how.items())
        text = f"{what or 'MultiWorkerMirroredStrategy'}: {reasons or 'a worker is gone'}"
        if cause:
            text += f" ({cause})"
        return errors.UnavailableError(
            None,
            None,
            f"{text}. Hint: save what is needed; restarted workers continue from the last checkpoint.",
        )

    def late(self, at: int, what: str) -> errors.OpError:
        """A DeadlineExceededError that names the workers that have not entered exchange number `at`."""
        if at not in self._late:
            self._line.send(who=at)
        end = time.monotonic() + 2.0
        with self._changed:
            while at not in self._late and not self.is_broken(at) and time.monotonic() < end:
                self._changed.wait(max(0.0, end - time.monotonic()))
        if self.is_broken(at):
            return self.error(at, what)
        ranks = self._late.get(at)
        if ranks is None:
            reason = f"{self.name(0)} does not answer"
        elif ranks:
            reason = f"{self.names(ranks)} {'has' if len(ranks) == 1 else 'have'} not joined it"
        else:
            reason = "all workers have joined, but the exchange does not end: the network may be the cause"
        return errors.DeadlineExceededError(
            None, None, f"{what}: after {self.timeout:g} s {reason}.{self._hint}"
        )
