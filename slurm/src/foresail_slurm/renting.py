"""Rounds of bursting on a real cluster, beliefs for them, and what rented nodes have cost."""

from __future__ import annotations

import os
import pwd
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from foresail.explain.forecast import WaitingForecast
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.errors import InputError
from foresail.record.job_life import JobHistory
from foresail_slurm.advice import Adviser, foreseen_starts, learn
from foresail_slurm.bursting import Belief, Bursting, Journal, Mark, Went, read_burst
from foresail_slurm.commands import framed, moment, number, output, read_nodes, read_queue
from foresail_slurm.orders import RIGHTS, ask
from foresail_slurm.state import SlurmState, state_of

_EVERY_SECONDS: Final = 1.0
_LEARN_SECONDS: Final = 600.0
_REFUSED_SECONDS: Final = 300.0
_AGAIN_SECONDS: Final = 3.0
"""A job that Slurm refuses to move away is tried again after so long; sooner if it comes back, or
is temporarily not to be changed: as in 24.11 for some seconds after it came or was requeued."""

_MEDIAN: Final = 0.5
_ORDERING: Final = frozenset({"Operator", "Administrator"})
_RUN: Final = "JobID,Partition,Start,End,AllocCPUS,NNodes"


class SlurmBeliefs:
    """Beliefs about jobs that wait at a moment, from what was learned of accounting."""

    def __init__(self, state: SlurmState, starts: StartForecaster, past: JobHistory) -> None:
        self._state = state
        self._starts = starts
        self._adviser = Adviser(past, starts, state.now, _MEDIAN)
        self._foreseen: tuple[frozenset[str], Mapping[str, WaitingForecast]] | None = None

    def belief(self, job_id: str, gone: frozenset[str]) -> Belief | None:
        """Return what is believed of a job once others have left the partition.

        Where too little is known, it waits as Slurm expects; where that is not known either, not.
        None if it has just ended.
        """
        state = self._state
        job = state.jobs.get(job_id)
        if job is None:
            return None
        if self._foreseen is None or self._foreseen[0] != gone:
            lines = {
                account: [each for each in line if each.job.job_id not in gone]
                for account, line in state.waiting.items()
            }
            waiting = {account: line for account, line in lines.items() if line}
            found = foreseen_starts(replace(state, waiting=waiting), self._starts)
            self._foreseen = gone, found
        start = None if job_id in state.aside else self._foreseen[1].get(job_id)
        if start is None:
            moments = [state.estimates.get(job_id) or state.now]
        else:
            moments = [start.start.low, start.start.median, start.start.high]
        waits = np.maximum(np.array(moments) - state.now, 0.0)
        return Belief(self._adviser.expected_seconds(job), waits)


class Rounds:
    """Rounds of bursting: a look at Slurm, and the orders that follow, one after the other."""

    def __init__(self, bursting: Bursting, journal: Journal, say: Callable[[str], None]) -> None:
        self._bursting = bursting
        self._journal = journal
        self._say = say
        self._refused: dict[str, float] = {}
        self._learned: tuple[StartForecaster, JobHistory] | None = None
        self._learned_seconds = 0.0

    def round(self, *, is_tried: bool = False) -> None:
        """Do one; nothing is changed if it is only tried.

        Raises ``ConnectionError`` or ``InputError`` if Slurm does not answer or takes no orders.
        """
        now, at = time.time(), self._bursting
        self._refused = {k: v for k, v in self._refused.items() if now < v}
        rows, nodes = read_burst(at.fixed, at.rented, at.tried), read_nodes()
        beliefs: list[SlurmBeliefs] = []

        def belief(job_id: str, gone: frozenset[str]) -> Belief | None:
            if not beliefs:
                starts, past = self._learn(now)
                beliefs.append(SlurmBeliefs(state_of(read_queue(), nodes, now), starts, past))
            return beliefs[0].belief(job_id, gone)

        for step in at.steps(rows, nodes, self._journal.marks, belief, now):
            job_id, mark, words, sentence = step
            if is_tried:
                self._say(f"would: {job_id} {sentence}")
            elif job_id not in self._refused:
                if mark is not None and mark != self._journal.marks.get(job_id):
                    self._journal.note(job_id, mark)
                refusal = ask(words) if words else ""
                if refusal:
                    is_back = mark is None or mark.place == at.fixed or "temporarily" in refusal
                    self._refused[job_id] = now + (_AGAIN_SECONDS if is_back else _REFUSED_SECONDS)
                self._say(f"{job_id} {sentence}" + (f": {refusal}" if refusal else ""))

    def _learn(self, now: float) -> tuple[StartForecaster, JobHistory]:
        if self._learned is None or now - self._learned_seconds > _LEARN_SECONDS:
            forecaster, past, remark = learn(now)
            self._learned, self._learned_seconds = (forecaster, past), now
            if remark:
                self._say(remark)
        return self._learned

    def go_on(self) -> None:
        """Do rounds until the process is ended; says when Slurm is away, and when it is back."""
        is_away = False
        while True:
            try:
                self.round()
            except (ConnectionError, InputError) as error:
                if not is_away:
                    self._say(f"nothing is moved: {error}")
                is_away = True
            else:
                if is_away:
                    self._say("Slurm is back")
                is_away = False
            time.sleep(_EVERY_SECONDS)


def require_operator() -> None:
    """Raise ``InputError`` if the account that asks cannot move jobs of others."""
    name = pwd.getpwuid(os.geteuid()).pw_name
    config = output(["scontrol", "show", "config"])
    if name == "root" or re.search(rf"^SlurmUser\s*= {re.escape(name)}\(", config, re.MULTILINE):
        return
    words = ["sacctmgr", "-n", "-P", "show", "user", name, "format=AdminLevel"]
    if _ORDERING.isdisjoint(output(words).split()):
        raise InputError("may not move jobs", field="account", value=name, expected=RIGHTS)


class BurstRun(NamedTuple):
    """Row of ``sacct``: an attempt in one of the partitions."""

    JobID: str
    Partition: str
    Start: str
    End: str
    AllocCPUS: str
    NNodes: str


def read_runs(since_seconds: float, *partitions: str) -> list[BurstRun]:
    """Return attempts since a Unix time; raises ``InputError`` if Slurm does not answer."""
    mark = f"x{secrets.token_hex(8)}"
    words = ["sacct", "-a", "-D", "-X", "-n", "-p", f"--delimiter={mark}", "-E", "now"]
    words += ["-S", f"uts{since_seconds:.0f}", "-r", ",".join(filter(None, partitions))]
    text = output([*words, "-o", _RUN])
    return [*map(BurstRun._make, framed(text, mark, len(BurstRun._fields)))]


@dataclass(frozen=True, slots=True)
class BurstCost:
    """Cost of all attempts with one decision, beside what was foreseen when it was taken.

    Money is at the price given, for the time that jobs ran; waits are means in seconds, as they
    were and as they were foreseen in the fixed partition.
    """

    went: str
    runs: int
    cpu_hours: float
    cost: float
    cost_foreseen: float
    wait: float
    wait_foreseen: float


def costs_of(
    runs: Sequence[BurstRun],
    decisions: Iterable[tuple[str, Mark]],
    prices: tuple[float, float],
    now: float,
) -> Iterator[BurstCost]:
    """Yield what became of decisions; ``prices`` are those of a cpu and of a node for an hour."""
    marks: dict[tuple[str, str], list[Mark]] = {}
    for job_id, mark in decisions:
        marks.setdefault((job_id, mark.place), []).append(mark)
    found: dict[str, list[tuple[float, ...]]] = {}
    for run in runs:
        begun, ended = moment(run.Start), moment(run.End)
        if begun is None:
            continue
        before = [m for m in marks.get((run.JobID, run.Partition), ()) if m.at < begun + 1.0]
        if not before:
            continue
        mark = before[-1]
        is_away = mark.went in (Went.RENTED, Went.TRIED)
        hours = max(0.0, (now if ended is None else ended) - begun) / 3_600.0
        cpus, nodes = number(run.AllocCPUS), number(run.NNodes)
        rent = cpus * prices[0] + nodes * prices[1] if is_away else 0.0
        believed = min(mark.runs, mark.trial) if mark.went is Went.TRIED else mark.runs
        wait = max(0.0, begun - mark.since)
        row = (hours * cpus, rent * hours, rent * believed / 3_600.0, wait, mark.waits)
        found.setdefault((mark.went if is_away else Went.WAITS).value, []).append(row)
    for name, attempts in sorted(found.items()):
        table = np.array(attempts)
        sums, means = table.sum(axis=0), table.mean(axis=0)
        yield BurstCost(name, len(attempts), *sums[:3].tolist(), *means[3:].tolist())
