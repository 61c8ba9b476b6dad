"""The records of a run that its state still follows from, of all that were ever written.

Reasons, expired estimates and their corrections but the last, and passes but the last, leave no
trace in the state, nor do jobs that are forgotten. What is left grows with jobs and nodes alone,
folds to the same state
(``foresail.record.run_fold``) and is read as any log is, by later versions too.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterator
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import Final, TypeAlias

from foresail.model import event as events
from foresail.model.decision import Instruction, Preempt, Start, TickAt, WakeAt, Withdraw
from foresail.model.job import Job
from foresail.record import records as logged
from foresail.record.log_text import record_line
from foresail.record.plans import PlanFold

_LAST_EVENT: Final = "event"
_LAST_PASS: Final = "pass"
_OF_NO_JOB: Final = frozenset(
    {_LAST_EVENT, _LAST_PASS, "history", "nodes", "drain", "node", "occupied", "contact", "clock"}
    | {logged.Manifest, logged.Remembered, logged.PolicyChanged, logged.Drained, logged.Reopened}
)
"""Kinds of lines that are of no job; all others are of a job or a part of one."""

_Place: TypeAlias = tuple[int, int]
_Kind: TypeAlias = str | type | tuple[str, int | None]
"""Kind of a line, of which there is one for each job: with a number where there may be more."""


class Compaction:
    """Takes a run's records in order, each with its line, and keeps the lines that matter.

    A line stands where it was written, behind all that were written before it and matter. Of a log
    whose records can be read by their numbers, those that are about a job are kept as these, which
    takes little room however much there is to say of a job.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._numbers: dict[_Kind, dict[events.Unit, int]] = {}
        self._texts: dict[tuple[_Kind, events.Unit], tuple[_Place, str]] = {}
        self._last = 0
        self._attempts: dict[events.Unit, int] = {}
        self._dependent: dict[str, tuple[logged.EventTaken, Job]] = {}  # submitted after other jobs
        self._recalled = 0
        self._holds = 0
        self._job_changes = 0
        self._changing: dict[str, int] = {}  # jobs whose beliefs are to come
        self._node_changes = 0
        self._plan = PlanFold()
        self._last_pass: logged.Decided | None = None
        self._counted = logged.Counters()
        self._number: int | None = None

    def __len__(self) -> int:
        """Return how many lines are kept."""
        return len(self._texts) + sum(map(len, self._numbers.values()))

    def lines(self) -> Iterator[str]:
        """The lines that are kept, in order; in place of one that can be read, its number."""
        if (_LAST_PASS, "") in self._texts:
            place, _ = self._texts[_LAST_PASS, ""]
            self._texts[_LAST_PASS, ""] = place, record_line(self._whole_plan())
        numbers = sorted(chain.from_iterable(each.values() for each in self._numbers.values()))
        numbered = (((number, 0), f"{number}\n") for number in numbers)
        by_place = itemgetter(0)
        texts = sorted(self._texts.values(), key=by_place)
        yield from map(itemgetter(1), heapq.merge(numbered, texts, key=by_place))
        yield record_line(self._counted)

    def take(self, record: logged.Record, line: str, number: int | None = None) -> None:
        """Take the next record; with its number, if that is where it can be read."""
        self._number, self._last = number, number or self._last
        match record:
            case logged.EventTaken(event=event):
                self._happen(event, line)
                if isinstance(event, events.Submitted) and event.job.after:
                    self._dependent[event.job.job_id] = record, event.job
            case logged.Instructed(instruction=instruction):
                self._obey(instruction, line)
            case logged.Predicted(job_id=job_id):
                kind: _Kind = "belief"
                if job_id in self._changing and self._has("belief", job_id):
                    kind = "belief of a change", self._changing.pop(job_id)
                elif self._has("belief", job_id):
                    kind = "belief again", self._attempts.get(job_id)
                self._put(kind, job_id, line)
            case logged.Corrected():
                unit = events.unit_of(record)
                self._put(("correction", self._attempts[unit]), unit, line)
            case logged.Decided():
                self._last_pass = record
                self._put(_LAST_PASS, "", "")
            case logged.Remembered():
                self._put(logged.Remembered, "", line)
            case logged.PolicyChanged():
                self._drop(logged.Remembered, "")
                self._put(logged.PolicyChanged, "", line)
            case logged.ReservationAnswered(job_id=job_id):
                self._put("answer", job_id, line)
            case logged.Drained() | logged.Reopened():
                self._put(type(record), "", line)
            case logged.Forgotten(job_ids=job_ids):
                self._forget(set(job_ids))
            case logged.Manifest():
                self._begin()
                self._put(logged.Manifest, "", line)
        if not isinstance(record, logged.EventTaken | logged.Predicted):  # as most are
            self._counted.take(record)
            self._plan.take(record)

    def _put(self, kind: _Kind, unit: events.Unit, line: str) -> None:
        """Keep a line in place of the one before, at the end."""
        if self._number is None or kind in _OF_NO_JOB:
            self._drop(kind, unit)
            self._texts[kind, unit] = (self._last, 1), line
            return
        if self._texts:
            self._texts.pop((kind, unit), None)
        self._numbers.setdefault(kind, {})[unit] = self._number

    def _drop(self, kind: _Kind, unit: events.Unit) -> None:
        """Keep no such line."""
        self._numbers.get(kind, {}).pop(unit, None)
        self._texts.pop((kind, unit), None)

    def _has(self, kind: _Kind, unit: events.Unit) -> bool:
        return unit in self._numbers.get(kind, ()) or (kind, unit) in self._texts

    def _forget(self, gone: Container[str]) -> None:
        """Keep nothing of these jobs."""
        for kind, numbers in tuple(self._numbers.items()):
            kept = {unit: each for unit, each in numbers.items() if events.job_of(unit) not in gone}
            self._numbers[kind] = kept
            if not kept:
                del self._numbers[kind]
        self._texts = {
            (kind, unit): text
            for (kind, unit), text in self._texts.items()
            if kind in _OF_NO_JOB or events.job_of(unit) not in gone
        }
        for unit in [unit for unit in self._attempts if events.job_of(unit) in gone]:
            del self._attempts[unit]
        for job_id, (record, job) in tuple(self._dependent.items()):
            if job_id in gone:
                del self._dependent[job_id]
            elif any(
                each in gone for each in job.after
            ):  # it had them to wait for, and has no more
                event = events.Submitted(record.event.time, _without(job, gone))
                known = replace(record, event=event)
                self._dependent[job_id] = known, event.job
                number = self._numbers.get("submission", {}).pop(job_id, 0)
                place, _ = self._texts.get(("submission", job_id), ((number, 0), ""))
                self._texts["submission", job_id] = place, record_line(known)

    def _happen(self, event: events.Event, line: str) -> None:
        match event:
            case events.Submitted(job=job):
                self._put("submission", job.job_id, line)
            case events.Began():
                unit = events.unit_of(event)
                attempt = self._attempts.get(unit, 0)
                is_known = attempt > 0 and not self._has(("end", attempt), unit)
                if not is_known:
                    attempt = self._attempts[unit] = attempt + 1
                self._put(("confirmed" if is_known else "start", attempt), unit, line)
            case events.ClusterUnavailable() | events.ClusterAvailable():
                self._put("contact", "", line)
            case events.Occupied(node=node):
                self._put("occupied", node, line)
            case events.Ended() | events.NotStarted():
                unit = events.unit_of(event.outcome if isinstance(event, events.Ended) else event)
                attempt = self._attempts[unit]
                self._drop("wake", unit)
                self._drop("preemption", unit)
                self._put(("end", attempt), unit, line)
            case events.Cancelled(job_id=job_id):
                if not self._has("cancellation", job_id):  # any other came too late
                    self._put("cancellation", job_id, line)
            case (
                events.Held(job_id=job_id) | events.Released(job_id=job_id)
            ):  # which job is the first in line follows from it
                self._holds += 1
                self._put(("hold", self._holds), job_id, line)
            case events.JobChanged(job_id=job_id):
                self._job_changes += 1
                self._changing[job_id] = self._job_changes
                self._put(("change", self._job_changes), job_id, line)
            case events.NodeDrained(node=node) | events.NodeResumed(node=node):
                self._put("drain", node, line)
            case events.ClockRead():
                self._put("clock", "", line)
            case events.HistoryOutcome():
                self._recalled += 1
                self._put("history", str(self._recalled), line)
            case events.NodeDown(node=node) | events.NodeUp(node=node):
                self._put("node", node, line)
            case events.NodeAdded() | events.NodeChanged() | events.NodeRemoved():
                # What ran there ran in between.
                self._node_changes += 1
                self._put("nodes", str(self._node_changes), line)
            case _:
                if isinstance(event, events.EstimateExpired):
                    self._drop("wake", events.unit_of(event))
                self._put(_LAST_EVENT, "", line)

    def _obey(self, instruction: Instruction, line: str) -> None:
        job_id = instruction.job_id
        match instruction:
            case Start():
                unit = events.unit_of(instruction)
                self._attempts[unit] = self._attempts.get(unit, 0) + 1
                self._put(("start", self._attempts[unit]), unit, line)
            case Preempt():
                self._put("preemption", events.unit_of(instruction), line)
            case WakeAt():
                self._put("wake", events.unit_of(instruction), line)
            case TickAt():
                self._put("tick", job_id, line)
            case Withdraw():
                self._put("withdrawal", job_id, line)

    def _whole_plan(self) -> logged.Decided:
        """The last pass with all that is planned, as if nothing had been planned before."""
        assert self._last_pass is not None
        plan = self._plan.last_planned()
        return replace(
            self._last_pass,
            plan={each.job_id: each.start_seconds for each in plan},
            places={each.job_id: each.placement.tasks_by_partition for each in plan},
            dropped=(),
            slides=False,
        )


def _without(job: Job, gone: Container[str]) -> Job:
    """The job without its dependencies on jobs that are forgotten, which it has got."""
    gone_ids = {each for each in job.after if each in gone}
    conditions = job.conditions
    if conditions is not None:
        met = [each for each in conditions.dependencies if not gone_ids.isdisjoint(each.job_ids)]
        gone_ids.update(job_id for each in met for job_id in each.job_ids)
        kept = tuple(each for each in conditions.dependencies if each not in met)
        conditions = replace(conditions, dependencies=kept)
    after = tuple(each for each in job.after if each not in gone_ids)
    return replace(job, after=after, conditions=conditions)
