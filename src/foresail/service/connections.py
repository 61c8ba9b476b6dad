"""Sockets of a service, and its connections: how many there may be, waiting how long."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import resource
import socket
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from foresail.model.errors import InputError
from foresail.model.whole_files import short_name, well_known_socket
from foresail.service.configuration import Listening


@contextmanager
def network_listener(listen: Listening) -> Iterator[socket.socket]:
    """The socket of an address; raises ``InputError`` if it cannot be had."""
    try:
        listener = socket.create_server(
            (listen.host, listen.port),
            family=socket.AF_INET6 if ":" in listen.host else socket.AF_INET,
        )
    except OSError as error:
        raise InputError(
            f"cannot be listened on: {error.strerror}",
            field="listen",
            value=f"{listen.host}:{listen.port}",
        ) from error
    with listener:  # asyncio leaves delays on where the protocol of a socket is not spelled out
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


@contextmanager
def machine_listeners(
    own: Path, wanted: Path | None, mode: int
) -> Iterator[dict[Path, socket.socket]]:
    """The sockets for accounts of this machine, by path: they are gone afterwards.

    ``own`` is in the service's folder, which is no other service's; ``wanted`` a further one, None
    for the well-known one of this account, where it can be had. ``mode`` says who may connect.
    """
    found: dict[Path, socket.socket] = {}
    with ExitStack() as stack:
        found[own] = stack.enter_context(_bound(own, mode))
        further = wanted or well_known_socket(os.geteuid())
        if further != own:
            try:
                if wanted is None and not further.parent.exists():
                    further.parent.mkdir()
                    further.parent.chmod(0o755)  # whatever this process keeps to itself otherwise
                found[further] = stack.enter_context(_bound(further, mode))
            except (InputError, OSError) as error:
                if wanted is not None:
                    raise
                _LOG.info("%s is not listened on: %s", further, error)
        yield found


@contextmanager
def _bound(path: Path, mode: int) -> Iterator[socket.socket]:
    """A socket at a path, in place of one that nobody listens on."""
    try:
        with short_name(path) as name, socket.socket(socket.AF_UNIX) as listener:
            _make_room(path, name)
            listener.bind(name)
            path.chmod(mode)  # before anybody can connect: it does not listen yet
            try:
                yield listener
            finally:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be listened on: {error.strerror}", field="listen.socket", value=path
        ) from error


def _make_room(path: Path, name: str) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return
        with socket.socket(socket.AF_UNIX) as trial:
            try:
                trial.connect(name)
            except ConnectionRefusedError:
                path.unlink()


_LOG: Final = logging.getLogger("foresail.service")

PEER: Final = "foresail_uid"
"""Key of a request's scope for the uid at the other end, where the kernel says it."""

MOST_HEAD_BYTES: Final = 65_536
_CREDENTIALS: Final = "iII"
_AT_ONCE: Final = 16
"""Connections that are taken before those that are to go have gone."""

_QUEUE: Final = 512
_PAUSE_SECONDS: Final = 1.0

Peer: TypeAlias = int | str
"""Identity of the other end: the uid on a socket of this machine, or an address."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Patience of a connection with its other end, in seconds."""

    head: float = 10.0
    """Time for a request up to its body."""
    body: float = 40.0
    """Time for the body then; the gate, which answers, has less."""
    idle: float = 30.0
    """Time for a further request."""
    unsent: float = 30.0
    """Time until what is sent is taken."""


@dataclass(slots=True, eq=False)
class OpenConnection:
    """A connection that was taken, before and while it is spoken on."""

    socket: socket.socket
    peer: Peer
    due: float
    """Time until which it waits for its other end; infinite while that waits for an answer."""
    transport: asyncio.Transport | None = None
    unsent_since: float = math.inf
    is_ended: bool = False

    def end(self) -> None:
        """Let go of it at once, whatever is still to be sent."""
        self.is_ended = True
        if self.transport is not None:
            self.transport.abort()
        else:
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)


class Connections(ServerState):
    """All connections of a server; of those that only wait, the oldest gives way to a new one.

    There are ``most`` at a time, and half as many of one peer.
    """

    def __init__(self, most: int, patience: Patience) -> None:
        super().__init__()
        self.patience = patience
        self._most = most
        self._most_of_peer = max(1, most // 2)
        self._open: dict[int, OpenConnection] = {}

    def take(self, accepted: socket.socket) -> bool:
        """Count a connection; False if there is no room for it."""
        peer = _peer_of(accepted)
        self._forget_closed()
        living = [each for each in self._open.values() if not each.is_ended]
        of_peer = [each for each in living if each.peer == peer]
        full = of_peer if len(of_peer) >= self._most_of_peer else living
        if (full is of_peer or len(living) >= self._most) and not _end_oldest(full):
            return False
        due = time.monotonic() + self.patience.head
        self._open[accepted.fileno()] = OpenConnection(accepted, peer, due)
        return True

    def connection(self, transport: asyncio.Transport) -> OpenConnection:
        """The connection that a transport is of, which may have been let go before."""
        found = self._open[transport.get_extra_info("socket").fileno()]
        found.transport = transport
        if found.is_ended:
            transport.abort()
        return found

    def end_overdue(self) -> None:
        """Let go of those that have waited too long for their other end."""
        self._forget_closed()
        now = time.monotonic()
        for each in list(self._open.values()):
            if each.transport is None or not each.transport.get_write_buffer_size():
                each.unsent_since = math.inf
            else:
                each.unsent_since = min(each.unsent_since, now)
            if now >= min(each.due, each.unsent_since + self.patience.unsent):
                each.end()

    def _forget_closed(self) -> None:
        self._open = {key: each for key, each in self._open.items() if each.socket.fileno() == key}


def _end_oldest(among: list[OpenConnection]) -> bool:
    """Let go of the one that has waited longest for its other end; False if none does."""
    oldest = min(among, key=lambda each: each.due)
    if oldest.due == math.inf:
        return False
    oldest.end()
    return True


class LimitedProtocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, on a connection that waits no longer than it may."""

    server_state: Connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        self._open = self.server_state.connection(transport)
        self._head_bytes: int | None = 0

    def data_received(self, data: bytes) -> None:
        """Take what has arrived, unless a request's head has no end."""
        super().data_received(data)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._open.end()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._head_bytes = 0
        if isinstance(self._open.peer, int):
            self.scope[PEER] = self._open.peer  # type: ignore[typeddict-unknown-key]
        self._wait(self.server_state.patience.head)

    def on_headers_complete(self) -> None:
        """All but its body has come."""
        self._head_bytes = None
        self._wait(self.server_state.patience.body)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of it has come."""
        super().on_message_complete()
        if not self.cycle.response_complete:
            self._open.due = math.inf

    def on_response_complete(self) -> None:
        """Note that the request is answered."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self._wait(self.server_state.patience.idle)

    def _wait(self, seconds: float) -> None:
        self._open.due = time.monotonic() + seconds


class Server(uvicorn.Server):
    """Uvicorn as it runs in a thread; signals are the daemon's."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        config.http = LimitedProtocol
        config.timeout_keep_alive = math.ceil(connections.patience.idle)
        super().__init__(config)
        self.server_state: Connections = connections
        self.servers = []
        self._speaking: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await self.lifespan.startup()
        for each in sockets or ():
            each.setblocking(False)
            each.listen(_QUEUE)
            self._listen(each)
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen no more, and answer what has been asked."""
        for each in sockets or ():
            asyncio.get_running_loop().remove_reader(each)
        await super().shutdown(sockets)

    def _listen(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:  # it may have been closed in the meantime
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        """Take connections that there is room for, some before those that are to go have gone."""
        loop = asyncio.get_running_loop()
        for _ in range(_AT_ONCE):
            try:
                accepted, _address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:  # there is no descriptor for it
                _LOG.error("no connection can be taken: %s", error)
                loop.remove_reader(listening)
                loop.call_later(_PAUSE_SECONDS, self._listen, listening)
                return
            if self.server_state.take(accepted):
                task = loop.create_task(self._speak(accepted))
                self._speaking.add(task)
                task.add_done_callback(self._speaking.discard)
            else:
                accepted.close()

    async def _speak(self, accepted: socket.socket) -> None:
        """Begin to speak on a connection; TLS on the network alone."""
        tls = self.config.ssl if accepted.family != socket.AF_UNIX else None
        with suppress(OSError):  # it has gone, or speaks no TLS
            accepted.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: LimitedProtocol(self.config, self.server_state, self.lifespan.state),
                accepted,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else self.server_state.patience.head,
            )

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections, ten times a second."""
        self.server_state.end_overdue()
        return await super().on_tick(counter)


def most_connections(wanted: int) -> int:
    """Return how many connections there may be: a quarter of descriptors is for all else.

    As many descriptors are had as the system permits.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    permitted = wanted if soft == resource.RLIM_INFINITY else min(wanted, 3 * soft // 4)
    if permitted < wanted:
        _LOG.warning("%d connections instead of %d: descriptors are few", permitted, wanted)
    return permitted


def _peer_of(accepted: socket.socket) -> Peer:
    if accepted.family == socket.AF_UNIX:
        size = struct.calcsize(_CREDENTIALS)
        said = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        uid: int = struct.unpack(_CREDENTIALS, said)[1]
        return uid
    try:
        address = str(accepted.getpeername()[0])
    except OSError:  # it has gone already
        return ""
    return "loopback" if address.startswith(("127.", "::1", "::ffff:127.")) else address
