"""Sessions of a service, one after the other: which policy decides, and what follows a failure."""

from __future__ import annotations

import gc
import logging
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Final

from foresail.control.loop import Controller
from foresail.explain.compiling import CompilerApart
from foresail.live.cluster_contact import FirstContact
from foresail.live.daemon import Daemon
from foresail.model.cluster import Cluster
from foresail.model.errors import ForesailError
from foresail.record.log_text import forget_shared
from foresail.service import configuration as settings
from foresail.service import metrics, session
from foresail.service.parts import Condition, ServiceParts
from foresail.service.store.protocol import StoreUnavailable

_LOG: Final = logging.getLogger("foresail.service")
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


class Sessions:
    """Sessions of one service, by the policy of its configuration, or the one that fell to it.

    ``path`` is the file that the configuration came from, which a reload reads anew; ``parts`` are
    set before anything but a reload is asked of it.
    """

    def __init__(self, configuration: settings.ServiceConfiguration, path: Path | None) -> None:
        settings.require_usable(configuration)
        self._cluster = FirstContact(configuration.cluster)
        self.capabilities = self._cluster.capabilities
        is_observed = self.capabilities.decides_itself
        self._fallback = settings.FALLBACK_OBSERVING if is_observed else settings.FALLBACK_POLICY
        self.configuration = self._fitted(configuration)
        session.require_engine(self.configuration)
        self._path = path
        self.parts: ServiceParts
        self._next: settings.ServiceConfiguration | None = None
        self._remarks: tuple[str, ...] = ()
        self._last_pass = self._last_tidy = self._last_tidy_of_all = time.monotonic()
        self._last_library = self._last_pass
        self._problem: str | None = None
        self._unavailable = ""
        self._latest: Daemon | None = None
        self.compilations = metrics.CompileWatch()
        self.compiler = CompilerApart()
        self._has_passed = threading.Event()

    def work(self) -> None:
        """Have one daemon work after the other, as long as there is something to go over to."""
        old: settings.ServiceConfiguration | None = None
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                self.parts.inbox.begin_again()
                if self._next is not None:
                    old, self.configuration, self._next = self.configuration, self._next, None
                    _LOG.info("policy: %s", self.configuration.policy)
                daemon = self._daemon()
            except (StoreUnavailable, ConnectionError) as error:
                pause = self._wait_for(error, pause)
                continue
            except ForesailError as error:
                if old is None:
                    raise
                self._remarks = (f"the policy {self.configuration.policy} was refused: {error}",)
                _LOG.error("%s; the one before goes on", self._remarks[0])
                self.configuration, old = old, None
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
                if self.configuration.policy == self._fallback:
                    raise
                _LOG.exception("the policy %s has failed", self.configuration.policy)
                self._fall_back(f"has failed: {type(error).__name__}: {error}")
            else:
                if self._next is None:
                    return
            if daemon.was_interrupted:  # while it was ending for another reason
                return
            self.parts.snapshots.seen_monotonic = None

    def _daemon(self) -> Daemon:
        self._cycles = metrics.CycleWatch(
            self.parts.metrics, self.configuration.decision_seconds, self._too_slow
        )
        try:
            daemon = session.daemon_of(self.configuration, self.parts, self._cluster, self._cycles)
            self._latest = daemon
            self._has_passed.clear()
            given = self.configuration, daemon.controller.cluster
            threading.Thread(target=self._rehearse, args=given, daemon=True).start()
            return daemon
        finally:
            forget_shared()
            metrics.give_back_free_memory()  # that reading the log took
            metrics.let_go_of_libraries()
            gc.freeze()  # of what was recovered, little is garbage
            gc.enable()

    def _rehearse(self, configuration: settings.ServiceConfiguration, cluster: Cluster) -> None:
        """Have compiled what the policy needs, before jobs do and beside everything else.

        A first pass that needs nothing compiled has the interpreter to itself.
        """
        self._has_passed.wait(_FIRST_PASS_SECONDS)
        self.compilations.goes_on = True
        try:
            session.rehearse_session(configuration, cluster)
        except Exception:  # where jobs are decided on, all hear of it
            _LOG.exception("the policy %s has failed in a rehearsal", configuration.policy)
        finally:
            self.compilations.goes_on = False
            metrics.give_back_free_memory()  # that compiling took
            metrics.let_go_of_libraries()
        self.compiler.compile()

    def _wait_for(self, error: Exception, pause: float) -> float:
        """Wait a while; what runs runs on. Returns how long to wait the next time."""
        self._problem = str(error)
        _LOG.error("%s; tried again in %.1f s", error, pause)
        time.sleep(pause)
        return min(_LONGEST_PAUSE_SECONDS, 2.0 * pause)

    def _too_slow(self, seconds: float) -> None:
        if self.configuration.policy == self._fallback:
            return
        budget = self.configuration.decision_seconds
        self._fall_back(f"has taken {seconds:.1f} s to decide, which may take {budget:g} s")
        self.parts.inbox.leave()

    def _fall_back(self, why: str) -> None:
        """Let EASY decide from the next session on."""
        remark = f"the policy {self.configuration.policy} {why}; {self._fallback} decides"
        _LOG.error("%s", remark)
        self._remarks = (remark,)
        self._next = self.configuration.model_copy(update={"policy": self._fallback})

    def reload(self, policy: str | None) -> str:
        """Go over to a policy, or to that of the file; returns it.

        Raises ``ForesailError`` if it cannot be used; all stays as it is.
        """
        if policy is None:
            policy = self._fitted(settings.read_configuration(self._path)).policy
        changed = self.configuration.model_copy(update={"policy": policy})
        settings.require_usable(changed)
        changed = self._fitted(changed)
        session.require_engine(changed)
        self._next = changed
        self._remarks = ()
        self.parts.inbox.leave()
        return policy

    def _fitted(
        self, configuration: settings.ServiceConfiguration
    ) -> settings.ServiceConfiguration:
        return settings.fitted(configuration, decides_itself=self.capabilities.decides_itself)

    def hang_up(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Read the configuration anew, at SIGHUP."""
        try:
            self.reload(None)
        except ForesailError as error:
            self._remarks = (f"the configuration was refused: {error}",)
            _LOG.error("%s; all stays as it was", self._remarks[0])

    def passed(self, controller: Controller) -> float:
        """Tidy up, let there be a pass now and then while jobs wait; how long one may rest."""
        self._has_passed.set()
        self._unavailable = controller.state.unavailable
        now = time.monotonic()
        if now - self._last_tidy >= _TIDY_SECONDS:
            self._last_tidy = now
            self.parts.store.database.keep_room()
            self.parts.numbers.look_ahead()
            self.parts.retention.forget(controller.forget_ended)
            if len(controller.state.ended) >= self.configuration.remembered_jobs + _AT_ONCE:
                controller.forget_ended(self.configuration.remembered_jobs)
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
        if now - self._last_pass >= self.configuration.cycle_seconds:
            self._last_pass = now
            if controller.state.startable:
                self.parts.inbox.ask_for_pass()
        return min(_LONGEST_REST_SECONDS, _REST * self._cycles.worked_seconds())

    def now(self) -> float:
        """Return the time, by the clock of all times of jobs."""
        return time.time() if self._latest is None else self._latest.clock.now()

    def condition(self) -> Condition:
        """Return the present condition of the service."""
        of_clock = None if self._latest is None else self._latest.clock.remark()
        away = f"the cluster cannot be reached ({self._unavailable}): nothing is started"
        of_cluster = away if self._unavailable else None
        now = filter(None, (of_clock, of_cluster, self.compilations.remark))
        remarks = (*self._remarks, *now, *self.parts.served.remarks)
        if away := self.parts.store.database.away:
            return Condition((away,), remarks)
        if self._problem is not None:
            return Condition((self._problem,), remarks)
        seen = self.parts.snapshots.seen_monotonic
        if seen is None:
            return Condition(("the run is being recovered",), remarks)
        silent = time.monotonic() - seen
        if silent > 2 * self.configuration.cycle_seconds + 10.0:
            return Condition((f"no cycle has ended for {silent:.0f} s",), remarks)
        return Condition((), remarks)
