"""What the service counts and measures of itself, for Prometheus; steps and what is compiled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from numba.core import event
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from foresail.model.cluster import Resources
from foresail.model.decision import Start
from foresail.model.event import Ended, Submitted
from foresail.model.outcome import GOES_BACK
from foresail.record.job_life import JobHistory
from foresail.record.records import EventTaken, Instructed, Record
from foresail.service.picture import Picture
from foresail.service.store.protocol import Judged

_STEPS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_WAITS: Final = (1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 604800.0)


class ServiceMetrics:
    """The metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.cycle_seconds = self._histogram(
            "foresail_cycle_seconds", "Time to decide a step.", _STEPS
        )
        self.commit_seconds = self._histogram(
            "foresail_commit_seconds", "Time to write a step down.", _STEPS
        )
        self.wait_seconds = self._histogram(
            "foresail_wait_seconds", "Waits of jobs that started, from when they might.", _WAITS
        )
        self.request_seconds = Histogram(
            "foresail_request_seconds",
            "Time to answer a request.",
            ("method", "status"),
            buckets=_STEPS,
            registry=self._registry,
        )
        self._submitted = Counter(
            "foresail_jobs_submitted", "Jobs submitted.", registry=self._registry
        )
        self._ended = Counter(
            "foresail_jobs_ended", "Jobs ended.", ("because",), registry=self._registry
        )
        self._missed = Counter(
            "foresail_deadlines_missed",
            "Jobs that did not complete by their deadline.",
            registry=self._registry,
        )
        self._met = Counter(
            "foresail_deadlines_met", "Jobs that completed by it.", registry=self._registry
        )
        self._jobs = self._gauge("foresail_jobs", "Jobs by state.", "state")
        self._waiting = self._gauge("foresail_jobs_waiting", "Jobs by why they wait.", "reason")
        self._cpus = self._gauge("foresail_cpus", "Cpus by use.", "use")
        self._memory = self._gauge(
            "foresail_memory_bytes", "Memory by use: held by jobs that asked for it.", "use"
        )
        self._gpus = self._gauge("foresail_gpus", "Gpus by use.", "use")
        self._covered = self._gauge(
            "foresail_range_coverage", "Share within the ranges of 80 % that were told.", "of"
        )

    def _histogram(self, name: str, says: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, says, buckets=buckets, registry=self._registry)

    def _gauge(self, name: str, says: str, label: str) -> Gauge:
        return Gauge(name, says, (label,), registry=self._registry)

    def take(self, record: Record, jobs: JobHistory) -> None:
        """Count what a record tells, which the fold has taken already."""
        match record:
            case EventTaken(event=Submitted()):
                self._submitted.inc()
            case EventTaken(event=Ended(outcome=outcome)):
                because = outcome.ended_because
                self._ended.labels(str(because)).inc()
                deadline = jobs.submitted[outcome.job_id].deadline_seconds
                if deadline is not None and because not in GOES_BACK:
                    met = str(because) == "completed" and outcome.end_seconds <= deadline
                    (self._met if met else self._missed).inc()
            case Instructed(time=now, instruction=Start(job_id=job_id)):
                self.wait_seconds.observe(max(0.0, now - jobs.submitted[job_id].eligible_seconds))
            case _:
                pass

    def text(
        self, picture: Picture | None, waiting: Mapping[str, int], runtimes: Judged, starts: Judged
    ) -> bytes:
        """All of them as Prometheus reads them, as things stand; ``waiting`` jobs by reason."""
        for name, judged in (("runtimes", runtimes), ("starts", starts)):
            if judged.told:
                self._covered.labels(name).set(judged.within / judged.told)
        if picture is not None:
            self._waiting.clear()
            for reason, count in waiting.items():
                self._waiting.labels(reason).set(count)
            self._jobs.labels("running").set(len(picture.running))
            self._jobs.labels("pending").set(picture.pending)
            held = sum((each.held.total for each in picture.running), Resources())
            for use, amount in (("held", held), ("total", picture.cluster.total)):
                self._cpus.labels(use).set(amount.cpus)
                self._memory.labels(use).set(amount.memory_bytes)
                self._gpus.labels(use).set(amount.gpus)
        return generate_latest(self._registry)


_LOG: Final = logging.getLogger("foresail.service")
_WORDS: Final = "something is being compiled, once on this machine: some answers take a while"
_WORDS_FOR_JOBS: Final = (
    "what the policy needs is being compiled, once on this machine: jobs start when that is done"
)


class CompileWatch(event.Listener):
    """Notes whether something is compiled, from when it listens on."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_told = False
        self.goes_on = False
        """Whether what jobs need is looked for, of which more is to be compiled if any was."""

    def listen(self) -> None:
        """Begin to take note."""
        event.register("numba:compile", self)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Take no more note."""
        event.unregister("numba:compile", self)  # type: ignore[no-untyped-call]

    @property
    def remark(self) -> str:
        """What people should know now; empty if nothing is compiled."""
        if self.goes_on:
            return _WORDS_FOR_JOBS if self._is_told else ""
        return _WORDS if self._depth else ""

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - the signature is Numba's
        """Something is compiled, for itself or as part of what is."""
        self._depth += 1
        if not self._is_told:
            self._is_told = True
            _LOG.info("%s", self.remark)

    def on_end(self, event: Any) -> None:  # noqa: ARG002 - the signature is Numba's
        """What was begun last is compiled."""
        self._depth = max(0, self._depth - 1)


TOO_OFTEN: Final = 3
"""So many steps in a row beyond the budget, and another policy decides."""


class CycleWatch:
    """Watches steps.

    ``exhausted`` is called when several in a row have taken longer to decide than they may, with
    how long the last has taken.
    """

    def __init__(
        self, metrics: ServiceMetrics, budget_seconds: float, exhausted: Callable[[float], None]
    ) -> None:
        self._metrics = metrics
        self._budget_seconds = budget_seconds
        self._exhausted = exhausted
        self._beyond = 0
        self._worked_seconds = 0.0

    def take(self, record: Record, jobs: JobHistory) -> None:
        """A record has been made, and the fold has taken it."""
        self._metrics.take(record, jobs)

    def step(self, deciding_seconds: float, writing_seconds: float) -> None:
        """A step has been decided and written down."""
        self._metrics.cycle_seconds.observe(deciding_seconds)
        self._metrics.commit_seconds.observe(writing_seconds)
        self._worked_seconds += deciding_seconds + writing_seconds
        self._beyond = self._beyond + 1 if deciding_seconds > self._budget_seconds else 0
        if self._beyond >= TOO_OFTEN:
            self._beyond = 0
            self._exhausted(deciding_seconds)

    def worked_seconds(self) -> float:
        """How long steps have taken since this was asked."""
        worked, self._worked_seconds = self._worked_seconds, 0.0
        return worked
