"""Rules of suites, which raise when a plug-in breaks them; and small worlds by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from foresail.distributions.basic import Point
from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import Placement
from foresail.model.distribution import Distribution
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.model.registry import Entry
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.model.words import count
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

Make = Callable[[], Any]
"""Builds a fresh instance of the plug-in under test."""

Rule = Callable[[Make], None]

NOTHING: Final = {
    "empty": b"",
    "blank": b"\n\n\n",
    "binary": bytes(range(256)) * 8,
    "prose": b"Once upon a time there was a cluster.\nNobody wrote anything down.\n",
    "cut off gzip": b"\x1f\x8b\x08\x00\x00\x00",
}
"""Contents of files that no reader of any layout may take for its own, by kind."""


class BrokenRuleError(AssertionError):
    """One thing that a plug-in of its family must do and this one does not."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a plug-in breaks: its sentence, and what was seen."""

    rule: str
    seen: str


class NonconformityError(AssertionError):
    """A plug-in breaks rules of its family; the message lists all of them."""

    def __init__(self, plugin: str, breaches: tuple[Breach, ...]) -> None:
        self.plugin = plugin
        self.breaches = breaches
        lines = [f"  {breach.rule}: {breach.seen}" for breach in breaches]
        super().__init__("\n".join([f"{plugin} breaks {count(len(breaches), 'rule')}", *lines]))


def bound(rule: Callable[..., None], *arguments: Any) -> Rule:
    """The rule with its arguments bound, its docstring kept."""
    found = partial(rule, *arguments)
    found.__doc__ = rule.__doc__
    return found


def demand(holds: object, seen: str) -> None:
    """Raise ``BrokenRuleError`` with what was seen unless it holds."""
    if not holds:
        raise BrokenRuleError(seen)


def breaches(make: Make, rules: Iterable[Rule]) -> tuple[Breach, ...]:
    """The rules that the plug-in breaks; an exception of its own breaks a rule too."""
    found = []
    for rule in rules:
        try:
            rule(make)
        except BrokenRuleError as error:
            found.append(Breach(rule_sentence(rule), str(error)))
        except Exception as error:
            seen = f"raised {type(error).__name__}: {error}"
            found.append(Breach(rule_sentence(rule), seen))
    return tuple(found)


def require_conformity(plugin: str, make: Make, rules: Iterable[Rule]) -> None:
    """Apply all rules.

    Raises ``NonconformityError`` if any is broken; it lists every one.
    """
    found = breaches(make, rules)
    if found:
        raise NonconformityError(plugin, found)


def require_of_entry(entry: Entry, parameters: Any, rules: Iterable[Rule]) -> None:
    """Apply rules to a registered plug-in, with its default parameters if none are given.

    Raises ``NonconformityError`` if it breaks a rule; the message lists every broken one.
    """
    record = entry.parameters() if parameters is None else parameters
    require_conformity(f"{entry.family} {entry.name!r}", lambda: entry.build(record), rules)


def rule_sentence(rule: Rule) -> str:
    """A rule in words: the first line of its docstring, without its full stop."""
    return (rule.__doc__ or rule.__name__).strip().partition("\n")[0].rstrip(".")


def tiny_pending(
    job_id: str,
    cpus: int,
    seconds: float,
    *,
    arrival: int = 0,
    submit_seconds: float = 0.0,
    prediction: Distribution | None = None,
) -> PendingJob:
    """A waiting gang of ``cpus`` single-cpu tasks, expected to run (and limited to) ``seconds``."""
    job = Job.gang(job_id, submit_seconds, cpus, requested_seconds=seconds, user="ann")
    return PendingJob(job, arrival, prediction or Point(seconds), seconds)


def tiny_running(
    job_id: str,
    cpus: int,
    expected_end_seconds: float,
    *,
    start_seconds: float = 0.0,
    start_order: int = 0,
) -> RunningJob:
    """A running gang of ``cpus`` single-cpu tasks on partition ``all``."""
    seconds = expected_end_seconds - start_seconds
    job = Job.gang(job_id, start_seconds, cpus, requested_seconds=seconds, user="bob")
    return RunningJob(
        job=job,
        start_seconds=start_seconds,
        start_order=start_order,
        placement=Placement.whole("all", cpus),
        prediction=Point(seconds),
        expected_end_seconds=expected_end_seconds,
    )


def tiny_view(
    pending: Iterable[PendingJob] = (),
    running: Iterable[RunningJob] = (),
    *,
    processors: int = 4,
    now: float = 0.0,
) -> ClusterView:
    """A snapshot of a cluster of ``processors`` cpus in one partition ``all``."""
    running = tuple(running)
    held = sum(job.job.cpus for job in running)
    return ClusterView(
        now=now,
        cluster=Cluster.of_processors(processors),
        free={"all": Resources(cpus=processors - held)},
        pending=tuple(pending),
        running=running,
    )


def tiny_workload(
    jobs: Sequence[tuple[float, int, float, float | None]], processors: int = 4
) -> Workload:
    """A workload from (submit seconds, cpus, runtime seconds, requested seconds) per job.

    Jobs are named ``1``, ``2``, ... in the order given, and all belong to one user.
    """
    table = jobs_table(
        {
            "job_id": [str(number) for number in range(1, len(jobs) + 1)],
            "submit_seconds": [float(submit) for submit, _, _, _ in jobs],
            "tasks": [cpus for _, cpus, _, _ in jobs],
            "runtime_seconds": [float(runtime) for _, _, runtime, _ in jobs],
            "requested_seconds": [requested for _, _, _, requested in jobs],
            "user": ["ann"] * len(jobs),
        }
    )
    return Workload(table, WorkloadMeta("tiny", "hand", processors))


class RequestedRuntime(Predictor):
    """Predictor that believes the limit."""

    def predict(self, job: Job, now: float) -> Distribution:
        """Return a point at what its user asked for."""
        del now
        return Point(job.requested_seconds or 0.0)

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Learn nothing."""
        del job, outcome


class DoubledEstimate:
    """Correction to twice what has just proved too short."""

    def correct(
        self, job: Job, prediction: Distribution, initial: float, current: float, count: int
    ) -> float:
        """Return twice the current estimate, of at least a second."""
        del job, prediction, initial, count
        return 2.0 * max(current, 1.0)
