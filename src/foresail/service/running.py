"""A running service: the daemon in the main thread, its HTTP interface in another."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn

from foresail.control.loop import Controller
from foresail.explain.compiling import CompilerApart
from foresail.live.cluster_contact import PatientCalls
from foresail.live.cluster_plugin import ClusterPlugin
from foresail.live.daemon import Daemon
from foresail.live.run_clock import RunClock
from foresail.model.adapter import ClusterAdapter
from foresail.model.errors import ForesailError
from foresail.model.short_form import part_of
from foresail.record.log_text import forget_shared
from foresail.scenario.beginning import controller_of, rehearse
from foresail.scenario.engines import engine_of
from foresail.scenario.scenario import Scenario
from foresail.service import configuration as settings
from foresail.service import metrics, session
from foresail.service.api.app import application
from foresail.service.api.callers import Condition, KnownDirectories, LimitsCache, ServiceParts
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
from foresail.service.slow_answers import JobCounts, Overview, QueueForecaster
from foresail.service.snapshots import SnapshotCache
from foresail.service.store.protocol import StoreUnavailable
from foresail.service.tokens import Tokens
from foresail.service.upkeep import Retention

_LOG: Final = logging.getLogger("foresail.service")
_SHUTDOWN_SECONDS: Final = 5
_SWITCH_SECONDS: Final = 0.0005
"""A thread that answers callers waits no longer than this for the one that decides."""

_FIRST_PASS_SECONDS: Final = 2.0
_TIDY_SECONDS: Final = 0.5
_TIDY_ALL_SECONDS: Final = 600.0
"""Looking for garbage among all jobs that are known stops everybody for a moment: that is done
seldom, and among what is new often."""

_LIBRARIES_SECONDS: Final = 10.0
"""Kernels that answers need are loaded at any time."""

_REST: Final = 2.0
_LONGEST_REST_SECONDS: Final = 0.05
"""After a step the daemon leaves interpreter and disk to others for so many times as long as that
took, or so long: what arrives meanwhile shares the next one."""

_AT_ONCE: Final = 1_000
"""Jobs that ended long ago are forgotten at least so many at a time."""

_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 10.0


class RunningService:
    """One service, from its beginning until a signal lets it go; what runs runs on.

    ``path`` is the file that the configuration came from, which a reload reads anew; ``say`` is
    given what the one who begins it should see.
    """

    def __init__(
        self,
        configuration: settings.ServiceConfiguration,
        path: Path | None,
        say: Callable[[str], None],
    ) -> None:
        settings.require_usable(configuration)
        plugin: ClusterPlugin = part_of("cluster", configuration.cluster).build()
        self._capabilities = plugin.capabilities
        is_observed = plugin.capabilities.decides_itself
        self._fallback = settings.FALLBACK_OBSERVING if is_observed else settings.FALLBACK_POLICY
        configuration = self._fitted(configuration)
        engine_of(session.scenario_of_service(configuration))
        self._configuration = configuration
        self._path = path
        self._say = say
        self._folder = session.StateFolder(configuration.state.absolute())
        self._next: settings.ServiceConfiguration | None = None
        self._connecting: PatientCalls[ClusterAdapter] = PatientCalls()
        self._served = session.ServedAccounts(shared_account=configuration.shared_account)
        self._remarks: tuple[str, ...] = ()
        self._last_pass = self._last_tidy = self._last_tidy_of_all = time.monotonic()
        self._last_library = self._last_pass
        self._metrics = metrics.ServiceMetrics()
        self._problem: str | None = None
        self._unavailable = ""
        self._clock: RunClock | None = None
        self._compilations = metrics.CompileWatch()
        self._compiler = CompilerApart()
        self._has_passed = threading.Event()

    def work(self) -> None:
        """Serve until SIGINT or SIGTERM."""
        if os.geteuid() == 0:
            os.umask(0o077)
        self._folder.make()
        metrics.share_one_heap()
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
            self._store = session.opened_store(self._configuration)
            try:
                self._numbers = session.GivenNumbers(self._folder, self._store)
                self._store.database.keep_room()
                self._serve(network, sockets)
            finally:
                self._store.close()

    def _serve(self, network: socket.socket, sockets: Mapping[Path, socket.socket]) -> None:
        store, configuration = self._store, self._configuration
        self._inbox = Inbox(store)
        self._feed = Feed(store)
        self._snapshots = SnapshotCache(
            self._inbox.wake,
            _LOG.info,
            configuration.cycle_seconds,
            lambda: self._inbox.taken,
            self._passed,
        )
        self._snapshots.busy_because = lambda: self._compilations.remark
        mail = configuration.hooks.mail
        if mail:
            self._snapshots.mail = MailHook(mail, self._inbox.commands, store.commands())
        self._retention = Retention(configuration, self._folder, store)
        acceptance = Acceptance(store, self._inbox, self._numbers.set_aside)
        parts = ServiceParts(
            configuration=configuration,
            folder=self._folder,
            store=store,
            tokens=Tokens(store.database),
            served=self._served,
            limits=LimitsCache(),
            directories=KnownDirectories(),
            acceptance=acceptance,
            snapshots=self._snapshots,
            feed=self._feed,
            forecaster=QueueForecaster(self._snapshots, store, self._compiler),
            metrics=self._metrics,
            counts=JobCounts(store),
            overview=Overview(store, self._snapshots, self._now),
            capabilities=self._capabilities,
            policy=lambda: self._configuration.policy,
            reload=self._reload,
            condition=self._condition,
            now=self._now,
        )
        before = signal.signal(signal.SIGHUP, self._hang_up)
        ended = signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # until a daemon takes it
        connections = Connections(most_connections(configuration.limits.connections), Patience())
        server = _server(parts, connections)
        scheme = "http" if configuration.listen.tls_certificate is None else "https"
        host, port = network.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        listeners = [network, *sockets.values()]
        thread = threading.Thread(target=server.run, args=(listeners,), name="http", daemon=True)
        thread.start()
        self._compilations.listen()
        self._say(f"listening on {scheme}://{shown}:{port}")
        for path in sockets:
            self._say(f"listening on {path}, without tokens: {self._served.says}")
        self._retention.begin()
        try:
            self._sessions()
        finally:
            signal.signal(signal.SIGHUP, before)
            signal.signal(signal.SIGTERM, ended)
            self._compilations.stop()
            self._compiler.stop()
            self._feed.close()
            server.should_exit = True
            thread.join(2 * _SHUTDOWN_SECONDS)
            acceptance.close()
            self._retention.close()
            with suppress(StoreUnavailable):  # they stay set aside
                self._numbers.settle(store.next_number() - 1)
            self._inbox.close()

    def _sessions(self) -> None:
        """One daemon after the other, as long as there is something to go over to."""
        old: settings.ServiceConfiguration | None = None
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                self._inbox.begin_again()
                if self._next is not None:
                    old, self._configuration, self._next = self._configuration, self._next, None
                    _LOG.info("policy: %s", self._configuration.policy)
                daemon = self._daemon()
            except (StoreUnavailable, ConnectionError) as error:
                pause = self._wait_for(error, pause)
                continue
            except ForesailError as error:
                if old is None:
                    raise
                self._remarks = (f"the policy {self._configuration.policy} was refused: {error}",)
                _LOG.error("%s; the one before goes on", self._remarks[0])
                self._configuration, old = old, None
                continue
            self._problem = None
            begin = time.monotonic()
            try:
                daemon.work()
            except StoreUnavailable as error:
                if time.monotonic() - begin > _LONGEST_PAUSE_SECONDS:
                    pause = _FIRST_PAUSE_SECONDS
                pause = self._wait_for(error, pause)
            except Exception as error:
                if self._configuration.policy == self._fallback:
                    raise
                _LOG.exception("the policy %s has failed", self._configuration.policy)
                self._fall_back(f"has failed: {type(error).__name__}: {error}")
            else:
                if self._next is None:
                    return
            if daemon.was_interrupted:  # while it was ending for another reason
                return
            self._snapshots.seen_monotonic = None

    def _daemon(self) -> Daemon:
        self._cycles = metrics.CycleWatch(
            self._metrics, self._configuration.decision_seconds, self._too_slow
        )
        try:
            daemon = session.daemon_of(
                self._configuration,
                self._folder,
                self._store,
                self._inbox,
                self._snapshots,
                self._feed,
                self._cycles,
                self._served,
                self._connecting,
            )
            self._clock = daemon.clock
            scenario = replace(
                session.scenario_of_service(self._configuration), place=daemon.controller.cluster
            )
            self._has_passed.clear()
            threading.Thread(target=self._rehearse, args=(scenario,), daemon=True).start()
            return daemon
        finally:
            forget_shared()
            metrics.give_back_free_memory()  # that reading the log took
            metrics.let_go_of_libraries()
            gc.freeze()  # of what was recovered, little is garbage
            gc.enable()

    def _rehearse(self, scenario: Scenario) -> None:
        """Have compiled what the policy needs, before jobs do and beside everything else.

        A first pass that needs nothing compiled has the interpreter to itself.
        """
        self._has_passed.wait(_FIRST_PASS_SECONDS)
        self._compilations.goes_on = True
        try:
            rehearse(controller_of(scenario))
        except Exception:  # where jobs are decided on, all hear of it
            _LOG.exception("the policy %s has failed in a rehearsal", scenario.policy.text)
        finally:
            self._compilations.goes_on = False
            metrics.give_back_free_memory()  # that compiling took
            metrics.let_go_of_libraries()
        self._compiler.compile()

    def _wait_for(self, error: Exception, pause: float) -> float:
        """Wait a while; what runs runs on. Returns how long to wait the next time."""
        self._problem = str(error)
        _LOG.error("%s; tried again in %.1f s", error, pause)
        time.sleep(pause)
        return min(_LONGEST_PAUSE_SECONDS, 2.0 * pause)

    def _too_slow(self, seconds: float) -> None:
        if self._configuration.policy == self._fallback:
            return
        budget = self._configuration.decision_seconds
        self._fall_back(f"has taken {seconds:.1f} s to decide, which may take {budget:g} s")
        self._inbox.leave()

    def _fall_back(self, why: str) -> None:
        """Let EASY decide from the next session on."""
        remark = f"the policy {self._configuration.policy} {why}; {self._fallback} decides"
        _LOG.error("%s", remark)
        self._remarks = (remark,)
        self._next = self._configuration.model_copy(update={"policy": self._fallback})

    def _reload(self, policy: str | None) -> str:
        """Go over to a policy, or to that of the file; returns it.

        Raises ``ForesailError`` if it cannot be used; all stays as it is.
        """
        if policy is None:
            policy = self._fitted(settings.read_configuration(self._path)).policy
        changed = self._configuration.model_copy(update={"policy": policy})
        settings.require_usable(changed)
        changed = self._fitted(changed)
        engine_of(session.scenario_of_service(changed))
        self._next = changed
        self._remarks = ()
        self._inbox.leave()
        return policy

    def _fitted(
        self, configuration: settings.ServiceConfiguration
    ) -> settings.ServiceConfiguration:
        return settings.fitted(configuration, decides_itself=self._capabilities.decides_itself)

    def _hang_up(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        try:
            self._reload(None)
        except ForesailError as error:
            self._remarks = (f"the configuration was refused: {error}",)
            _LOG.error("%s; all stays as it was", self._remarks[0])

    def _passed(self, controller: Controller) -> float:
        """Tidy up, let there be a pass now and then while jobs wait; how long one may rest."""
        self._has_passed.set()
        self._unavailable = controller.state.unavailable
        now = time.monotonic()
        if now - self._last_tidy >= _TIDY_SECONDS:
            self._last_tidy = now
            self._store.database.keep_room()
            self._numbers.look_ahead()
            self._retention.forget(controller.forget_ended)
            if len(controller.state.ended) >= self._configuration.remembered_jobs + _AT_ONCE:
                controller.forget_ended(self._configuration.remembered_jobs)
            is_of_all = now - self._last_tidy_of_all >= _TIDY_ALL_SECONDS
            if is_of_all:
                self._last_tidy_of_all = now
                gc.unfreeze()
            gc.collect()
            gc.freeze()
            if is_of_all:
                metrics.give_back_free_memory()
        if now - self._last_library >= _LIBRARIES_SECONDS:
            self._last_library = now
            metrics.let_go_of_libraries()
        if now - self._last_pass >= self._configuration.cycle_seconds:
            self._last_pass = now
            if controller.state.startable:
                self._inbox.ask_for_pass()
        return min(_LONGEST_REST_SECONDS, _REST * self._cycles.worked_seconds())

    def _now(self) -> float:
        return time.time() if self._clock is None else self._clock.now()

    def _condition(self) -> Condition:
        of_clock = None if self._clock is None else self._clock.remark()
        away = f"the cluster cannot be reached ({self._unavailable}): nothing is started"
        of_cluster = away if self._unavailable else None
        now = filter(None, (of_clock, of_cluster, self._compilations.remark))
        remarks = (*self._remarks, *now, *self._served.remarks)
        if away := self._store.database.away:
            return Condition((away,), remarks)
        if self._problem is not None:
            return Condition((self._problem,), remarks)
        seen = self._snapshots.seen_monotonic
        if seen is None:
            return Condition(("the run is being recovered",), remarks)
        silent = time.monotonic() - seen
        if silent > 2 * self._configuration.cycle_seconds + 10.0:
            return Condition((f"no cycle has ended for {silent:.0f} s",), remarks)
        return Condition((), remarks)


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
