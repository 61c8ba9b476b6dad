"""Jobs that wait in a Slurm cluster: their starts; limits at a risk, shapes, what cannot run."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from foresail.distributions.basic import Point
from foresail.explain.forecast import SCENARIOS, WaitingForecast
from foresail.explain.outlook import Outlook, external_outlook
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause
from foresail.model.job import Job
from foresail.model.view import PendingJob
from foresail.model.words import duration, percent
from foresail.record.job_life import JobHistory
from foresail_slurm.commands import read_accounting, read_nodes, read_queue
from foresail_slurm.state import SlurmState, history_of, state_of

_MOST_RUNS: Final = 1_000
"""The latest runs of an application say how long the next takes."""

_HISTORY_SECONDS: Final = 14 * 86_400.0
_MINUTE_SECONDS: Final = 60.0
_WEEK_SECONDS: Final = 7 * 86_400.0
_STEPS: Final = 50
"""Jobs go ahead by so many different amounts: few change from one call to the next."""

_WORTH: Final = 0.8
"""A limit or a wait is advised if it is at most so much of the one that there is."""

_SHARES: Final = (2, 4)
"""Shapes that are tried have such a part of the tasks, and limits so many times as long."""

_SCENARIOS: Final = 200
_STUCK: Final = {
    "DependencyNeverSatisfied": "waits for what can no longer happen; cancel it",
    "PartitionTimeLimit": "asks for more time than its partition allows",
    "PartitionNodeLimit": "asks for more nodes than its partition allows",
    "BadConstraints": "asks for what no node has",
    "ReqNodeNotAvail.*": "asks for nodes that are not in use",
    "Partition(Down|Inactive)": "its partition starts nothing now",
    "JobHeldUser": "is held; scontrol release lets it go",
    "JobHeldAdmin": "is held by an administrator",
    "Invalid.*|.*NotAllowed": "may not run there with its account or QOS",
    ".*PerJob.*": "asks for more than a job of its account or QOS may have",
}
"""Reasons of Slurm for which jobs do not run as long as nobody changes something."""


@dataclass(frozen=True)
class TriedChange:
    """A job with fewer tasks or another limit (minutes), and its median start (Unix seconds)."""

    tasks: int
    limit_minutes: int
    start: float


@dataclass(frozen=True)
class JobAdvice:
    """Advice on a job that waits, in sentences, and what they are made from.

    cannot_run
        The reason why it runs at no time as it is; None if there is none.
    limit_minutes, risk_now
        A limit that is long enough at the risk, and the chance that the present one ends it too
        soon; None if too few of its like have ended.
    start, changes
        Its median start (Unix seconds) as it is, and changes that were tried; None and none if
        nothing was.
    """

    cannot_run: str | None
    limit_minutes: int | None
    risk_now: float | None
    start: float | None
    changes: tuple[TriedChange, ...]
    sentences: tuple[str, ...]


def read_slurm() -> tuple[SlurmState, StartForecaster, JobHistory, str]:
    """Return how a Slurm cluster stands, what was learned of which past, and a remark.

    Raises ``InputError`` if Slurm does not answer.
    """
    rows = read_queue(), read_nodes()
    state = state_of(*rows, time.time())
    return state, *learn(state.now)


def learn(now: float) -> tuple[StartForecaster, JobHistory, str]:
    """Return what accounting teaches, the past that it knows, and a remark where it is away."""
    forecaster, past = StartForecaster(), JobHistory()
    try:
        past = history_of(read_accounting(now - _HISTORY_SECONDS))
        forecaster.catch_up(past)
    except InputError as error:
        return forecaster, past, f"nothing was learned: {error}"
    return forecaster, past, ""


def foreseen_starts(state: SlurmState, forecaster: StartForecaster) -> dict[str, WaitingForecast]:
    """Return what is foreseen of jobs that wait by id, where enough is known."""
    starts: dict[str, WaitingForecast] = {}
    for account, line in state.waiting.items():
        outlook = _outlook(state, account, line)
        futures = max(30, min(SCENARIOS, 1_000 * SCENARIOS // len(line)))
        found = forecaster.forecast(outlook, scenarios=futures)
        unknown = forecaster.unknown(outlook, found)
        starts |= {each: found[each] for each in found if each not in unknown}
    return starts


class Adviser:
    """Advises on jobs at a moment; ``risk`` is the chance that a limit ends one too soon.

    A limit is the k-th shortest of n runs of an application, with k = (1 - risk) (n + 1) rounded
    up, so that one more of them is longer with that risk at most, whatever they are distributed
    like (split conformal prediction: Vovk et al., Algorithmic Learning in a Random World, 2005).
    Runs that a limit ended count as longer than any.
    """

    def __init__(self, past: JobHistory, starts: StartForecaster, now: float, risk: float) -> None:
        self._starts = starts
        self._now = now
        self._risk = risk
        self._runs: dict[Hashable, list[float]] = {}
        for each in past.past:
            job, outcome = each.job, each.outcome
            if outcome.ended_because in (EndedBecause.COMPLETED, EndedBecause.LIMIT):
                ended = outcome.ended_because is EndedBecause.COMPLETED
                for kind in _kinds(job):
                    runs = self._runs.setdefault(kind, [])
                    runs.append(outcome.runtime_seconds if ended else math.inf)

    def advice(self, state: SlurmState, job_id: str, *, with_starts: bool) -> JobAdvice:
        """Return advice on a job that waits; with starts, changes are tried in the queue."""
        job = state.jobs[job_id]
        account = next((each for each in state.room if job.partition in each.split(",")), None)
        why = _why_stuck(state, job_id, account)
        sentences = [] if why is None else [f"cannot run now: {why} ({state.reasons[job_id]})"]
        limit, runs = self.limit_seconds(job), self._alike(job)
        if limit is None:
            sentences.append("too few of its like have ended to advise a limit at that risk")
            return JobAdvice(why, None, None, None, (), tuple(sentences))
        asked = math.inf if job.requested_seconds is None else job.requested_seconds
        too_soon = sum(each > asked for each in runs) / len(runs)
        candidates = []
        enough = f"--time={_minutes(limit)} is enough in {percent(1.0 - self._risk)} of cases"
        if too_soon > self._risk:
            cut = f"ends it too soon in {percent(too_soon)} of cases"
            sentences.append(f"its limit of {duration(asked)} {cut}, {enough}")
        elif limit <= _WORTH * asked:
            sentences.append(enough)
            candidates.append(replace(job, requested_seconds=limit))
        else:
            sentences.append("its limit is well chosen")
        start, changes = None, tuple[TriedChange, ...]()
        if with_starts and account is not None and why is None and job_id not in state.aside:
            candidates += _narrower(job, min(limit, asked))
            start, changes = self._try(state, account, job_id, candidates)
            sentences += self._sooner(job, start, changes)
        return JobAdvice(why, _minutes(limit), too_soon, start, changes, tuple(sentences))

    def _try(
        self, state: SlurmState, account: str, job_id: str, candidates: Sequence[Job]
    ) -> tuple[float, tuple[TriedChange, ...]]:
        """Return the median start of a job as it is, and each candidate in its place."""
        line = [*state.waiting[account]]
        place = [each.job.job_id for each in line].index(job_id)

        def start() -> float:
            drawn = self._starts.forecast(_outlook(state, account, line), scenarios=_SCENARIOS)
            return drawn[job_id].start.median

        now, tried = start(), []
        for job in candidates:
            planned = job.requested_seconds or 0.0
            line[place] = PendingJob(job, place, Point(planned), planned)
            tried.append(TriedChange(job.tasks, _minutes(planned), start()))
        return now, tuple(tried)

    def _sooner(self, job: Job, start: float, changes: Iterable[TriedChange]) -> Iterator[str]:
        """Yield a sentence for each change that starts the job much sooner."""
        waits = start - self._now
        for each in changes:
            then = each.start - self._now
            if then <= _WORTH * waits and waits - then >= _MINUTE_SECONDS:
                shape = f"-n {each.tasks} " if each.tasks != job.tasks else ""
                said = f"in {duration(then)} rather than {duration(waits)}"
                yield f"with {shape}--time={each.limit_minutes} it starts {said}, most likely"

    def limit_seconds(self, job: Job) -> float | None:
        """Return the shortest limit (whole minutes) that ends a job with that risk at most.

        None if too few of its like have completed.
        """
        runs = sorted(self._alike(job))
        at = math.ceil((1.0 - self._risk) * (len(runs) + 1)) - 1
        if at >= len(runs) or math.isinf(runs[at]):
            return None
        return _MINUTE_SECONDS * max(1, math.ceil(runs[at] / _MINUTE_SECONDS))

    def expected_seconds(self, job: Job) -> float:
        """Return the median of its like, at most its limit; a week where neither is known."""
        runs, limit = sorted(self._alike(job)), job.requested_seconds or _WEEK_SECONDS
        return min(runs[len(runs) // 2] if runs else limit, limit)

    def site_factor(self, job: Job, most: int) -> int:
        """Return by how much of ``most`` a job goes ahead: all of it if it takes no time.

        It falls with each doubling of the median of its like (at most its limit), to 0 for a week.
        """
        expected = min(self.expected_seconds(job), _WEEK_SECONDS)
        share = math.log1p(expected / _MINUTE_SECONDS) / math.log1p(_WEEK_SECONDS / _MINUTE_SECONDS)
        return round(_STEPS * (1.0 - share)) * most // _STEPS

    def lua_table(self, jobs: Iterable[Job]) -> str:
        """Return a table in Lua: minutes that are enough by user and name of a job (``ann/fit``).

        Names are without their numbers, so that those of parameter sweeps are one.
        """
        limits = {f"{job.user or ''}/{_name(job)}": self.limit_seconds(job) for job in jobs}
        lines = [
            f'  ["{re.sub(rb"[^a-zA-Z0-9_/.+-]", _escaped, key.encode()).decode()}"] = '
            f"{_minutes(limit)},"
            for key, limit in sorted(limits.items())
            if limit is not None
        ]
        return "\n".join(["return {", *lines, "}", ""])

    def _alike(self, job: Job) -> list[float]:
        """Return the latest runs of its application, of as many cpus where there are enough."""
        of_size, of_all = (self._runs.get(kind, [])[-_MOST_RUNS:] for kind in _kinds(job))
        return of_size if len(of_size) + 1 >= 1.0 / self._risk else of_all


def _why_stuck(state: SlurmState, job_id: str, account: str | None) -> str | None:
    """Return why a job does not run as long as nobody changes something; None if it may."""
    job, reason = state.jobs[job_id], state.reasons[job_id]
    if account is not None and job.cpus > state.room[account].cpus:
        return f"asks for {job.cpus:g} cpus, and nodes in use have {state.room[account].cpus:g}"
    return next((why for form, why in _STUCK.items() if re.fullmatch(form, reason)), None)


def _outlook(state: SlurmState, account: str, line: Sequence[PendingJob]) -> Outlook:
    runs, room = state.running.get(account, ()), state.room[account]
    return external_outlook(state.now, account, room, runs, line)


def _kinds(job: Job) -> tuple[Hashable, Hashable]:
    """Return user, name without numbers and cpus of a job, by which others are like it, or two."""
    name = _name(job)
    return (job.user, name, job.cpus), (job.user, name)


def _name(job: Job) -> str:
    return re.sub("[0-9]+", "", job.name or "").replace('"', "`")  # as accounting has it


def _minutes(seconds: float) -> int:
    return round(seconds / _MINUTE_SECONDS)


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\%03d" % found[0][0]


def _narrower(job: Job, limit: float) -> list[Job]:
    """Return the job with fewer tasks, and a limit as many times as long."""
    (stage,) = job.stages
    return [
        replace(
            job,
            stages=(replace(stage, tasks=stage.tasks // share),),
            requested_seconds=limit * share,
        )
        for share in _SHARES
        if stage.tasks % share == 0
    ]
