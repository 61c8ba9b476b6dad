"""A running service: its sessions in the main thread, its HTTP interface in another."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import uvicorn

from foresail.service.api.app import application
from foresail.service.configuration import ServiceConfiguration
from foresail.service.connections import (
    Connections,
    Patience,
    Server,
    machine_listeners,
    most_connections,
    network_listener,
)
from foresail.service.exchange import Acceptance, Inbox
from foresail.service.feed import Feed
from foresail.service.mail import MailHook
from foresail.service.metrics import ServiceMetrics, share_one_heap
from foresail.service.parts import ServiceParts
from foresail.service.slow_answers import JobCounts, Overview, QueueForecaster
from foresail.service.snapshots import SnapshotCache
from foresail.service.state_folder import GivenNumbers, StateFolder, opened_store
from foresail.service.succession import Sessions
from foresail.service.tokens import ServedAccounts, Tokens
from foresail.service.upkeep import Retention

_LOG: Final = logging.getLogger("foresail.service")
_SHUTDOWN_SECONDS: Final = 5
_SWITCH_SECONDS: Final = 0.0005
"""A thread that answers callers waits no longer than this for the one that decides."""


class RunningService:
    """One service, from its beginning until a signal lets it go; what runs runs on.

    ``path`` is the file that the configuration came from, which a reload reads anew; ``say`` is
    given what the one who begins it should see.
    """

    def __init__(
        self, configuration: ServiceConfiguration, path: Path | None, say: Callable[[str], None]
    ) -> None:
        self._sessions = Sessions(configuration, path)
        self._configuration = self._sessions.configuration
        self._say = say
        self._folder = StateFolder(configuration.state.absolute())
        self._served = ServedAccounts(shared_account=configuration.shared_account)

    def work(self) -> None:
        """Serve until SIGINT or SIGTERM."""
        if os.geteuid() == 0:
            os.umask(0o077)
        self._folder.make()
        share_one_heap()
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.set_threshold(20_000, 20, 1_000)
        gc.disable()
        listen = self._configuration.listen
        with (
            self._folder.alone(),
            network_listener(listen) as network,
            machine_listeners(
                self._folder.socket, listen.socket, self._served.socket_mode
            ) as sockets,
        ):
            self._store = opened_store(self._configuration)
            try:
                numbers = GivenNumbers(self._folder, self._store)
                self._store.database.keep_room()
                self._serve(self._parts(numbers), network, sockets)
            finally:
                self._store.close()

    def _parts(self, numbers: GivenNumbers) -> ServiceParts:
        store, configuration, sessions = self._store, self._configuration, self._sessions
        inbox = Inbox(store)
        snapshots = SnapshotCache(
            inbox.wake, _LOG.info, configuration.cycle_seconds, lambda: inbox.taken, sessions.passed
        )
        snapshots.busy_because = lambda: sessions.compilations.remark
        mail = configuration.hooks.mail
        if mail:
            snapshots.mail = MailHook(mail, inbox.commands, store.commands())
        return ServiceParts(
            configuration=configuration,
            folder=self._folder,
            store=store,
            tokens=Tokens(store.database),
            served=self._served,
            numbers=numbers,
            retention=Retention(configuration, self._folder, store),
            inbox=inbox,
            acceptance=Acceptance(store, inbox, numbers.set_aside),
            snapshots=snapshots,
            feed=Feed(store),
            forecaster=QueueForecaster(snapshots, store, sessions.compiler),
            metrics=ServiceMetrics(),
            counts=JobCounts(store),
            overview=Overview(store, snapshots, sessions.now),
            capabilities=sessions.capabilities,
            policy=lambda: sessions.configuration.policy,
            reload=sessions.reload,
            condition=sessions.condition,
            now=sessions.now,
        )

    def _serve(
        self, parts: ServiceParts, network: socket.socket, sockets: Mapping[Path, socket.socket]
    ) -> None:
        sessions, configuration = self._sessions, self._configuration
        sessions.parts = parts
        before = signal.signal(signal.SIGHUP, sessions.hang_up)
        ended = signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # until a daemon takes it
        connections = Connections(most_connections(configuration.limits.connections), Patience())
        server = _server(parts, connections)
        scheme = "http" if configuration.listen.tls_certificate is None else "https"
        host, port = network.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        listeners = [network, *sockets.values()]
        thread = threading.Thread(target=server.run, args=(listeners,), name="http", daemon=True)
        thread.start()
        sessions.compilations.listen()
        self._say(f"listening on {scheme}://{shown}:{port}")
        for path in sockets:
            self._say(f"listening on {path}, without tokens: {self._served.says}")
        parts.retention.begin()
        try:
            sessions.work()
        finally:
            signal.signal(signal.SIGHUP, before)
            signal.signal(signal.SIGTERM, ended)
            sessions.compilations.stop()
            sessions.compiler.stop()
            parts.feed.close()
            server.should_exit = True
            thread.join(2 * _SHUTDOWN_SECONDS)
            parts.acceptance.close()
            parts.retention.close()
            parts.numbers.close()
            parts.inbox.close()


def _server(parts: ServiceParts, connections: Connections) -> Server:
    listen = parts.configuration.listen
    return Server(
        uvicorn.Config(
            application(parts),
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=listen.behind_proxy,
            ssl_certfile=listen.tls_certificate,
            ssl_keyfile=None if listen.tls_key is None else str(listen.tls_key),
            ssl_version=ssl.PROTOCOL_TLS_SERVER,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        ),
        connections,
    )
