"""The conformance suite of schedulers: ``check_scheduler`` on anything registered, or not."""

from __future__ import annotations

import pickle
import random
import time
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final, Literal

import polars as pl

from foresail.checks.rules import (
    DoubledEstimate,
    Make,
    RequestedRuntime,
    Rule,
    demand,
    require_of_entry,
    tiny_pending,
    tiny_running,
    tiny_view,
    tiny_workload,
)
from foresail.control.check import check_decision
from foresail.control.loop import Controller
from foresail.model.cluster import Cluster, Partition, Resources
from foresail.model.decision import Decision
from foresail.model.event import PREDICTSIM, STANDARD
from foresail.model.free_resources import FreeResources
from foresail.model.protocols import Scheduler
from foresail.model.registry import Entry
from foresail.model.view import ClusterView, RunningJob
from foresail.simulator.engine import simulate_events
from foresail.traces import schema
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload

_VIEWS: Final = 60
_PROCESSORS: Final = 4
_LONG_QUEUE: Final = 10_000
_LONG_QUEUE_SECONDS: Final = 20.0


def check_scheduler(entry: Entry, parameters: Any = None) -> None:
    """Apply every rule that schedulers must keep to a registered one; as ``require_of_entry``."""
    require_of_entry(entry, parameters, RULES)


def empty_queue(make: Make) -> None:
    """With no job waiting it starts none."""
    for view in (tiny_view(), tiny_view(running=[tiny_running("r", 4, 10.0)])):
        starts = make().decide(view).starts
        demand(not starts, f"starts {[start.job_id for start in starts]}")


def lone_job(make: Make) -> None:
    """A lone job that fits an idle cluster is started, or planned."""
    decision = make().decide(tiny_view([tiny_pending("1", 2, 10.0)]))
    served = [each.job_id for each in (*decision.starts, *decision.plan)]
    demand(served == ["1"], f"starts and plans {served}")


def job_too_wide(make: Make) -> None:
    """A job wider than the cluster is left with a reason, and the one behind it is not lost."""
    view = tiny_view([tiny_pending("wide", 5, 10.0), tiny_pending("1", 1, 10.0, arrival=1)])
    decision = make().decide(view)
    demand("wide" not in {start.job_id for start in decision.starts}, "starts it")
    demand("wide" in decision.reasons, "gives it no reason")
    mentioned = {*(start.job_id for start in decision.starts), *decision.reasons}
    demand("1" in mentioned, "neither starts the job behind it nor gives it a reason")


def fits_the_cluster(make: Make) -> None:
    """Every start and preemption passes the decision check: room, gangs whole, known jobs."""
    scheduler = make()
    for view in _views():
        if scheduler.starts_tasks:  # no partitions are named to it
            anywhere = (
                replace(each, job=replace(each.job, partition=None)) for each in view.pending
            )
            view = replace(view, pending=tuple(anywhere))
        refusals = _refusals(view, scheduler.decide(view))
        demand(not refusals, f"at {view.now:g} s, of {len(view.pending)} jobs: {refusals[:3]}")


def every_job_has_a_reason(make: Make) -> None:
    """Every waiting job is started or given a reason whose sentence can be said."""
    scheduler = make()
    for view in _views():
        decision = scheduler.decide(view)
        started = {start.job_id for start in decision.starts}
        for pending in view.pending:
            job_id = pending.job.job_id
            if job_id not in started:
                reason = decision.reasons.get(job_id)
                demand(reason is not None and reason.sentence, f"nothing is said to job {job_id}")


def same_view_same_decision(make: Make) -> None:
    """The same view gives the same decision, from the same instance and from a fresh one."""
    scheduler = make()
    for view in _views():
        first = scheduler.decide(view)
        demand(scheduler.decide(view) == first, "the second decision differs from the first")
        demand(make().decide(view) == first, "a fresh instance decides otherwise")


def view_unchanged(make: Make) -> None:
    """Demand that it leaves the view as it was."""
    scheduler = make()
    for view in _views():
        before = repr(view)
        scheduler.decide(view)
        demand(repr(view) == before, "the view is another after the decision")


def ignores_time_if_it_says_so(make: Make) -> None:
    """One that says so decides the same whatever the time: it is not asked in between."""
    if make().ignores_time:
        scheduler = make()
        for view in _views():
            later = scheduler.decide(replace(view, now=view.now + 1000.0))
            demand(later == scheduler.decide(view), "a later time changes its decision")


def equal_jobs_in_order(make: Make) -> None:
    """Require that of equal jobs those that arrived first start first."""
    for count in (3, 7):
        view = tiny_view([tiny_pending(str(n), 2, 10.0, arrival=n) for n in range(count)])
        starts = [start.job_id for start in make().decide(view).starts]
        expected = [str(n) for n in range(len(starts))]
        demand(starts == expected, f"starts {starts}")


def survives_pickling(make: Make) -> None:
    """A pickled copy decides the same, so that campaigns can send it to other processes."""
    scheduler = make()
    copy = pickle.loads(pickle.dumps(scheduler))
    for view in _views():
        demand(copy.decide(view) == scheduler.decide(view), "the copy decides otherwise")


def long_queue(make: Make) -> None:
    """A queue of ten thousand jobs is decided within 20 s."""
    draw = random.Random(3)
    pending = [
        tiny_pending(str(n), draw.randint(1, 64), float(draw.randint(60, 86_400)), arrival=n)
        for n in range(_LONG_QUEUE)
    ]
    running = [tiny_running(f"r{n}", 8, 100.0 * n + 1, start_order=n) for n in range(15)]
    view = tiny_view(pending, running, processors=128)
    began = time.perf_counter()
    decision = make().decide(view)
    seconds = time.perf_counter() - began
    demand(seconds < _LONG_QUEUE_SECONDS, f"took {seconds:.1f} s")
    demand(not _refusals(view, decision), "the decision does not fit the cluster")


def runs_to_the_end(make: Make) -> None:
    """In a simulation every job that fits is run to its end, and nothing is refused."""
    if make().starts_nothing:
        return
    draw = random.Random(4)
    for conventions in (STANDARD, PREDICTSIM):
        rows = []
        for submit in sorted(draw.randint(0, 300) for _ in range(40)):
            runtime = draw.randint(0, 60)
            rows.append((submit, draw.randint(1, 4), runtime, float(runtime + draw.randint(0, 60))))
        workload = tiny_workload(rows)
        cluster = tiny_view().cluster
        controller = Controller(cluster, make(), RequestedRuntime(), DoubledEstimate(), conventions)
        counters = simulate_events(workload, controller, "check").meta.counters
        left, refused = counters["never_started"], counters["refusals"]
        demand(not left, f"{left:g} of 40 jobs never start ({conventions.name} conventions)")
        demand(not refused, f"{refused:g} refusals ({conventions.name} conventions)")


def tasks_run_once_and_in_order(make: Make) -> None:
    """One that starts tasks runs each of them once, behind the stages before it, where is room."""
    if not make().starts_tasks:
        return
    schedule = _in_parts(make())
    counters, rows = schedule.meta.counters, schedule.jobs
    demand(not counters["never_started"], f"{counters['never_started']:g} jobs never start")
    demand(not counters["refusals"], f"{counters['refusals']:g} refusals")
    parts = rows.filter(pl.col("stage").is_not_null()).with_columns(pl.col("tasks").str.split(","))
    ran = parts.explode("tasks").select("job_id", "stage", pl.col("tasks").cast(pl.Int64))
    asked = _jobs_with_tasks().tasks
    assert asked is not None
    wanted = asked.select("job_id", "stage", pl.col("task").alias("tasks"))
    same = ran.sort(ran.columns).equals(wanted.sort(wanted.columns))
    demand(same, f"{ran.height} tasks are run of {wanted.height}, or others than these")
    times = parts.group_by("job_id", "stage").agg(
        pl.col("start_seconds").min(), pl.col("end_seconds").max()
    )
    ends = {(job_id, stage): end for job_id, stage, _, end in times.iter_rows()}
    for job_id, stage, start, _ in times.iter_rows():
        early = stage == "second" and start < ends[job_id, "first"]
        demand(not early, f"the second stage of job {job_id} starts before the first has ended")
    changes = [(start, 1, cpus) for start, cpus in rows.select("start_seconds", "cpus").iter_rows()]
    changes += [(end, 0, -cpus) for end, cpus in rows.select("end_seconds", "cpus").iter_rows()]
    held = list(accumulate(cpus for _, _, cpus in sorted(changes)))
    demand(max(held) <= _PROCESSORS, f"{max(held):g} cpus are held of {_PROCESSORS}")


def same_parts_same_decision(make: Make) -> None:
    """One that starts tasks decides the same of the same view of these, and leaves it as it was."""
    if not make().starts_tasks:
        return
    asked_again = _AskedAgain(make)
    _in_parts(asked_again)
    demand(not asked_again.seen, asked_again.seen)


RULES: Final[tuple[Rule, ...]] = (
    empty_queue,
    lone_job,
    job_too_wide,
    fits_the_cluster,
    every_job_has_a_reason,
    same_view_same_decision,
    view_unchanged,
    ignores_time_if_it_says_so,
    equal_jobs_in_order,
    survives_pickling,
    long_queue,
    runs_to_the_end,
    tasks_run_once_and_in_order,
    same_parts_same_decision,
)


class _AskedAgain(Scheduler):
    """A scheduler that starts tasks, each decision of which is made three times."""

    starts_tasks: Literal[True] = True

    def __init__(self, make: Make) -> None:
        self._make = make
        self._scheduler = make()
        self.seen = ""

    def decide(self, view: ClusterView) -> Decision:
        """Note what differs, and go on with the first answer."""
        before = repr(view)
        decision: Decision = self._scheduler.decide(view)
        if self._scheduler.decide(view) != decision:
            self.seen = "the second decision differs from the first"
        if self._make().decide(view) != decision:
            self.seen = "a fresh instance decides otherwise"
        if repr(view) != before:
            self.seen = "the view is another after the decision"
        return decision


def _in_parts(scheduler: Scheduler) -> Schedule:
    """A schedule of jobs of many tasks, and of gangs."""
    controller = Controller(
        Cluster.of_processors(_PROCESSORS), scheduler, RequestedRuntime(), DoubledEstimate()
    )
    return simulate_events(_jobs_with_tasks(), controller, "check")


def _jobs_with_tasks() -> Workload:
    """Jobs of two stages, some wider than the cluster; every third is a gang."""
    draw = random.Random(6)
    submits = sorted(draw.randint(0, 200) for _ in range(18))
    rows = [(submit, draw.randint(1, 4), draw.randint(0, 30), 30.0) for submit in submits]
    tasks = [
        (str(job), stage, before, task, float(draw.randint(0, 20)), None, None)
        for job in range(1, len(rows) + 1)
        if job % 3
        for stage, before in (("first", None), ("second", "first"))
        for task in range(draw.randint(1, 2 * _PROCESSORS))
    ]
    table = pl.DataFrame(tasks, schema=schema.TASKS, orient="row")
    return replace(tiny_workload(rows, _PROCESSORS), tasks=table)


def _refusals(view: ClusterView, decision: Any) -> list[str]:
    capacity = FreeResources(view.cluster)
    for running in view.running:
        capacity.take(running.held, running.placement)
    pending = {each.job.job_id: each for each in view.pending}
    running_jobs = {each.unit: each for each in view.running}
    verdict = check_decision(decision, pending, running_jobs, (), capacity)
    return [f"job {refusal.job_id}: {refusal.sentence}" for refusal in verdict.refusals]


def _views() -> list[ClusterView]:
    """Random snapshots: idle to crowded, some with running jobs past their expected end."""
    draw = random.Random(5)
    return [_random_view(draw) for _ in range(_VIEWS)]


def _random_view(draw: random.Random) -> ClusterView:
    now = float(draw.randint(0, 100))
    processors = draw.choice([1, 4, 16, 100])
    free = processors
    running: list[RunningJob] = []
    while free and draw.random() < 0.7:
        cpus = draw.randint(1, free)
        start = float(draw.randint(0, int(now)))
        end = start + draw.randint(1, 120)
        number = len(running)
        running.append(
            tiny_running(f"r{number}", cpus, end, start_seconds=start, start_order=number)
        )
        free -= cpus
    pending = [
        tiny_pending(
            f"p{number}",
            draw.randint(1, processors + 1),
            float(draw.choice([1, 10, 10, 60, 3600])),
            arrival=number,
            submit_seconds=float(draw.randint(0, int(now))),
        )
        for number in range(draw.choice([0, 1, 2, 5, 30]))
    ]
    view = tiny_view(pending, running, processors=processors, now=now)
    return _with_second_partition(view) if draw.random() < 0.3 else view


def _with_second_partition(view: ClusterView) -> ClusterView:
    """The same with an idle partition ``other`` of 4 cpus; a job asks for either, or for none."""
    room = Resources(cpus=4.0)
    names = ("all", "other", None)
    pending = (
        replace(each, job=replace(each.job, partition=names[each.arrival % 3]))
        for each in view.pending
    )
    return replace(
        view,
        cluster=Cluster((*view.cluster.partitions, Partition("other", room))),
        free={**view.free, "other": room},
        pending=tuple(pending),
    )
