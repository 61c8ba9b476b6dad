"""The kernels of tasks as the object that the controller asks.

It keeps the kernels' tables from one event to the next: what jobs have come, what of them runs,
and how long their pilots took. The compiled replay (``foresail.simulator.task_replay``) calls the
same kernels; both give the same schedule, task by task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, Reason, ReasonCode, Start
from foresail.model.distribution import Floats, Integers
from foresail.model.errors import require, require_positive
from foresail.model.event import REQUEUED, Outcome
from foresail.model.job import Job, JobSize, Stage
from foresail.model.placing import FreeRoom, Rooms
from foresail.model.protocols import Scheduler
from foresail.model.view import ClusterView, PendingJob, TaskNumbers
from foresail.schedulers.kernels import pilots, task_jobs, task_queues
from foresail.schedulers.kernels import task_jobs as tables

_MOST_QUEUES: Final = 100
_WEIGHT_RATIO: Final = 10.0


@dataclass(frozen=True, slots=True)
class QueueParameters:
    """Queues with exponential thresholds."""

    queues: int = 10
    """Number of queues."""
    first_threshold_seconds: float = 1000.0
    growth: float = 10.0
    """Seconds of tasks from which on a job is not in the first queue; how many times more each
    further queue takes."""

    def __post_init__(self) -> None:
        require(1 <= self.queues <= _MOST_QUEUES, self, "queues", "from 1 to 100")
        require_positive(self, "first_threshold_seconds")
        require(1.0 < self.growth < math.inf, self, "growth", "more than 1")

    def rules(self) -> Floats:
        """The rules for ``kernels.task_queues``."""
        rules = np.zeros(task_queues.RULE_NUMBERS)
        rules[task_queues.FIRST_THRESHOLD] = self.first_threshold_seconds
        rules[task_queues.GROWTH] = self.growth
        return rules

    def costs(self) -> Floats:
        """Return what a slot costs each queue: its share is ten times that of the next one."""
        return _WEIGHT_RATIO ** np.arange(self.queues, dtype=np.float64)


class CompiledTaskScheduler(NamedTuple):
    """A scheduler of tasks as the numbers of ``foresail.schedulers.kernels.task_jobs``.

    ``asks_predictor``: whether it goes by what the predictor believes of tasks.
    """

    rules: Floats
    costs: Floats
    way: Floats
    pilots: Floats
    outcomes_kept: int
    asks_predictor: bool

    def without_jobs(self, rows: int) -> tables.TaskJobs:
        """Queues with room for so many jobs."""
        return tables.TaskJobs(
            task_queues.empty_queues(
                self.rules.copy(), self.costs.copy(), np.zeros((rows, tables.JOB_COLUMNS))
            ),
            pilots.Pilots(
                self.pilots.copy(), pilots.no_outcomes(self.outcomes_kept), pilots.nothing_proved()
            ),
            self.way.copy(),
        )


def way(source: int, thin_below: int) -> Floats:
    """Return what queues follow from, and the tasks from which on that is so."""
    numbers = np.zeros(tables.WAY_NUMBERS)
    numbers[tables.SOURCE] = source
    numbers[tables.THIN_BELOW] = thin_below
    return numbers


def without_pilots(
    rules: Floats, costs: Floats, source: int, thin_below: int = 0
) -> CompiledTaskScheduler:
    """A scheduler that samples nothing."""
    return CompiledTaskScheduler(
        rules,
        costs,
        way(source, thin_below),
        np.zeros(pilots.PILOT_NUMBERS),
        1,
        asks_predictor=source != tables.ARRIVAL_ORDER,
    )


class QueuesTasks(Scheduler):
    """A scheduler of tasks that start apart whose queues are those of the kernels.

    ``starts_gangs`` says whether ``decide`` also starts jobs whose tasks start together.
    """

    starts_tasks = True
    starts_gangs = False

    def __init__(self, compiled: CompiledTaskScheduler) -> None:
        self._compiled = compiled
        self._rooms = Rooms()

    def compiled_tasks(self) -> CompiledTaskScheduler:
        """The numbers of the kernels that decide, which know no gangs."""
        return self._compiled


_FIRST_ROWS: Final = 64


@dataclass
class _UnfinishedJob:
    """A job that has come and has not ended.

    ``order`` are its tasks, counted through all stages, as they start; ``begins`` where each
    stage's are; ``left`` how many of each have not ended; ``again`` those that were lost, with
    their places and queues; ``opened`` the stages that may start beside the first, in order.
    """

    row: int
    job: Job
    stages: tuple[Stage, ...]
    begins: Integers
    order: Integers
    pilot_seconds: Floats
    ready: int
    left: list[int]
    again: list[tuple[str, int, int, int]] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)

    @classmethod
    def new(cls, row: int, job: Job) -> _UnfinishedJob:
        """A job of which nothing has ended and only the first stage may start."""
        stages = _by_level(job.stages)
        widths = np.array([stage.tasks for stage in stages], dtype=np.int64)
        first = int(widths[0])
        return cls(
            row,
            job,
            stages,
            np.cumsum(widths) - widths,
            np.arange(int(widths.sum()), dtype=np.int64),
            np.zeros(first),
            first,
            widths.tolist(),
        )

    def open(self, at: int) -> int:
        """Let the tasks of a stage start after those that may already; returns how many."""
        count = self.stages[at].tasks
        first = int(self.begins[at])
        self.order[self.ready : self.ready + count] = np.arange(first, first + count)
        self.ready += count
        self.opened.append(at)
        return count

    def task(self, place: int) -> tuple[Stage, int]:
        """Stage and number of the task that is the ``place``-th to start."""
        task = int(self.order[place])
        stage = int(np.searchsorted(self.begins, task, side="right")) - 1
        return self.stages[stage], task - int(self.begins[stage])


class TaskScheduler(QueuesTasks):
    """A scheduler whose jobs' tasks start apart, each as soon as there is a place for it."""

    def __init__(self, compiled: CompiledTaskScheduler) -> None:
        super().__init__(compiled)
        self._tables = compiled.without_jobs(_FIRST_ROWS)
        self._rows: list[str] = []
        self._known: dict[str, _UnfinishedJob] = {}
        self._running: dict[tuple[str, str, int], tuple[int, int, float]] = {}
        self._remembered: dict[str, Mapping[str, Any]] = {}
        self._early: list[tuple[Job, Outcome]] = []
        self._sizes: list[JobSize] = []

    def sizes(self) -> tuple[JobSize, ...]:
        """Sizes of jobs whose sampling has begun or is over, or that are too thin for it."""
        sizes, self._sizes = tuple(self._sizes), []
        return sizes

    def _log_size(self, known: _UnfinishedJob) -> None:
        if self._compiled.way[task_jobs.SOURCE] != task_jobs.SAMPLING:
            return
        row = self._tables.queues.jobs[known.row]
        pilots = int(row[tables.PILOTS_OF_JOB])
        estimated = not np.isnan(row[task_jobs.ESTIMATED])
        self._sizes.append(
            JobSize(
                known.job.job_id,
                int(row[task_queues.QUEUE]),
                int(row[task_jobs.TASKS]),
                known.stages[0].name,
                tuple(known.order[:pilots].tolist()),
                tuple(known.pilot_seconds[:pilots].tolist()) if estimated else (),
                float(row[task_jobs.ESTIMATE]) if estimated else None,
            )
        )

    def part_ended(self, job: Job, outcome: Outcome) -> None:
        """A task has ended: maybe a pilot, the last of its stage, or of its job."""
        known = self._find(job)
        if known is None:  # before a run that goes on is remembered
            self._early.append((job, outcome))
            return
        for task in outcome.tasks:
            place, queue, _ = self._running.pop((job.job_id, outcome.stage, task))
            if outcome.ended_because in REQUEUED:
                known.again.append((outcome.stage, task, place, queue))
            else:
                self._end(known, outcome, place, queue)

    def _end(self, known: _UnfinishedJob, outcome: Outcome, place: int, queue: int) -> None:
        now = outcome.end_seconds
        task_jobs.note_end(
            self._tables,
            known.row,
            place,
            queue,
            outcome.start_seconds,
            now,
            outcome.slowdown,
            known.pilot_seconds,
        )
        row = self._tables.queues.jobs[known.row]
        if place < row[tables.PILOTS_OF_JOB] == row[task_jobs.SEEN]:
            self._log_size(known)
        at = next(i for i, each in enumerate(known.stages) if each.name == outcome.stage)
        known.left[at] -= 1
        if known.left[at] == 0:
            self._open_after(known, outcome.stage)
        if not any(known.left):
            submitted = self._tables.queues.jobs[known.row, task_queues.SUBMITTED]
            task_jobs.end_job(self._tables, known.row, submitted, now)
            del self._known[known.job.job_id]

    def _open_after(self, known: _UnfinishedJob, ended: str) -> None:
        """Let the stages start that have waited for this one last."""
        done = {each.name for each, left in zip(known.stages, known.left, strict=True) if not left}
        for at, stage in enumerate(known.stages):
            if ended in stage.after and done.issuperset(stage.after):
                self._open(known, at)

    def _open(self, known: _UnfinishedJob, at: int) -> None:
        task_queues.make_ready(self._tables.queues, known.row, known.open(at))

    def memory(self) -> Mapping[str, Any]:
        """Queues, what pilots and ended jobs have shown, and the jobs that have not ended."""
        queues = self._tables.queues
        heaps = zip(queues.heaps, queues.waiting, strict=True)
        return {
            "rows": len(self._rows),
            "used": queues.used.tolist(),
            "heaps": [heap[:count].tolist() for heap, count in heaps],
            "learned": [_text(table) for table in self._tables.pilots],
            "jobs": {
                # Of a job not seen again yet the kernels may have changed the row.
                **{
                    job_id: {**kept, "columns": _text(queues.jobs[kept["row"]])}
                    for job_id, kept in self._remembered.items()
                },
                **{job_id: self._kept(known) for job_id, known in self._known.items()},
            },
            "running": [[*task, *how] for task, how in self._running.items()],
        }

    def _kept(self, known: _UnfinishedJob) -> Mapping[str, Any]:
        row = self._tables.queues.jobs[known.row]
        return {
            "row": known.row,
            "columns": _text(row),
            "told": known.pilot_seconds[: int(row[tables.SEEN])].tolist(),
            "opened": list(known.opened),
            "left": list(known.left),
            "again": [list(each) for each in known.again],
        }

    def remember(self, memory: Mapping[str, Any], cluster: Cluster) -> None:
        """Go on from what another kept, and from parts that ended since."""
        del cluster
        rows = memory["rows"]
        self._tables = self._compiled.without_jobs(max(rows, _FIRST_ROWS))
        queues = self._tables.queues
        queues.used[:] = memory["used"]
        for number, heap in enumerate(memory["heaps"]):
            queues.heaps[number, : len(heap)] = heap
            queues.waiting[number] = len(heap)
        for table, text in zip(self._tables.pilots, memory["learned"], strict=True):
            table.flat[:] = _numbers(text)
        self._rows = [""] * rows
        self._known = {}
        self._remembered = dict(memory["jobs"])
        for job_id, kept in self._remembered.items():
            self._rows[kept["row"]] = job_id
            queues.jobs[kept["row"]] = _numbers(kept["columns"])
        self._running = {
            (job_id, stage, task): (place, queue, start)
            for job_id, stage, task, place, queue, start in memory["running"]
        }
        early, self._early = self._early, []
        for job, outcome in early:
            keys = [(job.job_id, outcome.stage, task) for task in outcome.tasks]
            if all(
                key in self._running and self._running[key][2] == outcome.start_seconds
                for key in keys
            ):
                self.part_ended(job, outcome)

    def _find(self, job: Job) -> _UnfinishedJob | None:
        """Find what is known of a job; what was remembered of it is so as it is seen again."""
        kept = self._remembered.pop(job.job_id, None)
        if kept is None:
            return self._known.get(job.job_id)
        known = self._known[job.job_id] = _UnfinishedJob.new(kept["row"], job)
        row = self._tables.queues.jobs[known.row]
        first = known.stages[0].tasks
        self._make_room(known.row + 1)
        seed = int(self._tables.pilots.numbers[pilots.SEED])
        drawn, ordinal = int(row[tables.PILOTS_OF_JOB]), int(row[tables.ORDINAL])
        pilots.draw_pilots(known.order[:first], first, drawn, seed, ordinal)
        for at in kept["opened"]:
            known.open(at)
        known.pilot_seconds[: len(kept["told"])] = kept["told"]
        known.left = list(kept["left"])
        known.again = [(stage, task, place, queue) for stage, task, place, queue in kept["again"]]
        return known

    def decide(self, view: ClusterView) -> Decision:
        """Start what the queues offer, until there is no place for it."""
        room = self._rooms.at(view)
        shown = {pending.job.job_id: pending for pending in view.pending}
        for pending in shown.values():
            if self._find(pending.job) is None:
                self._submit(pending, view.now)
        queues = self._tables.queues
        task_queues.demote(queues, view.now)
        starts: list[Start] = []
        for job_id in [each for each in shown if self._known[each].again]:
            if not self._start_again(self._known[job_id], view.now, room, starts):
                return _waits(starts, self._known[job_id].job, room)
        while True:
            row, queue, place = task_jobs.next_task(self._tables, view.now)
            if row < 0:
                return Decision(tuple(starts))
            known = self._known.get(self._rows[row])
            at = None if known is None else known.task(place)
            if known is None or at is None or not _may_start(shown, known, *at):
                started, ready = queues.jobs[row, [task_queues.LAUNCHED, task_queues.READY]]
                task_queues.make_ready(queues, row, int(started - ready))
                continue
            if not self._start(known, *at, place, queue, view.now, room, starts):
                return _waits(starts, known.job, room)
            task_queues.launch(queues, row, queue, view.now)

    def _start_again(
        self, known: _UnfinishedJob, now: float, room: FreeRoom, starts: list[Start]
    ) -> bool:
        while known.again:
            name, task, place, queue = known.again[0]
            stage = known.job.stage(name)
            if not self._start(known, stage, task, place, queue, now, room, starts):
                return False
            del known.again[0]
        return True

    def _start(
        self,
        known: _UnfinishedJob,
        stage: Stage,
        task: int,
        place: int,
        queue: int,
        now: float,
        room: FreeRoom,
        starts: list[Start],
    ) -> bool:
        """Start a task if there is a place for it."""
        held = known.job.part(stage, 1)
        placement = room.placement(held)
        if placement is None:
            return False
        room.take(held, placement)
        job_id = known.job.job_id
        starts.append(Start(job_id, placement, stage=stage.name, tasks=(task,)))
        self._running[job_id, stage.name, task] = (place, queue, now)
        return True

    def _submit(self, pending: PendingJob, now: float) -> None:
        row = len(self._rows)
        known = self._known[pending.job.job_id] = _UnfinishedJob.new(row, pending.job)
        self._make_room(row + 1)
        self._rows.append(pending.job.job_id)
        first, stages = known.order[: known.ready], known.stages
        deadline = pending.job.deadline_seconds
        columns = self._tables.queues.jobs[row]
        columns[task_jobs.DEADLINE] = math.nan if deadline is None else deadline
        task_jobs.submit_unbelieved(self._tables, row, first, known.order.size, now)
        self._log_size(known)
        for at, stage in enumerate(stages):
            if at and not stage.after:
                self._open(known, at)

    def _make_room(self, rows: int) -> None:
        """Longer tables, where they are too short."""
        queues = self._tables.queues
        if rows > len(queues.jobs):
            jobs = np.zeros((2 * len(queues.jobs), queues.jobs.shape[1]))
            jobs[: len(queues.jobs)] = queues.jobs
            heaps = np.zeros((len(queues.heaps), len(jobs)), dtype=np.int64)
            heaps[:, : queues.heaps.shape[1]] = queues.heaps
            queues = queues._replace(jobs=jobs, heaps=heaps)
            self._tables = self._tables._replace(queues=queues)


def _text(numbers: Floats) -> str:
    """Numbers as they are, those that are none or infinite included."""
    return " ".join(map(repr, numbers.ravel().tolist()))


def _numbers(text: str) -> Floats:
    return np.array(text.split(), dtype=np.float64)


def _by_level(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Stages in order of how many must have ended one after the other before them."""
    level: dict[str, int] = {}
    for stage in stages:
        level[stage.name] = max((level[name] + 1 for name in stage.after), default=0)
    return tuple(sorted(stages, key=lambda each: level[each.name]))


def _may_start(
    shown: Mapping[str, PendingJob], known: _UnfinishedJob, stage: Stage, task: int
) -> bool:
    """Return whether the controller lets this task start."""
    pending = shown.get(known.job.job_id)
    if pending is None:
        return False
    tasks = next(
        (each.tasks for each in pending.startable if each.stage.name == stage.name), TaskNumbers()
    )
    return task in tasks


def _waits(starts: list[Start], job: Job, room: FreeRoom) -> Decision:
    numbers = {"cpus": job.stages[0].request.cpus, "free": max(room.cpus, 0.0)}
    return Decision(tuple(starts), reasons={job.job_id: Reason(ReasonCode.NO_ROOM, numbers)})
