"""The conformance suite of cluster adapters: ``check_cluster`` on anything registered, or not."""

from __future__ import annotations

import math
import select
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final, Self, cast

from foresail.checks.rules import Make, Rule, demand, require_conformity
from foresail.live.cluster_plugin import ClusterPlugin
from foresail.model import event as news
from foresail.model.adapter import ClusterAdapter, ClusterTrial, KnownJob, LivesByItself
from foresail.model.changing_nodes import changed, changes_between
from foresail.model.cluster import Cluster, Node
from foresail.model.decision import Placement, Preempt, Start, Withdraw
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.registry import Entry
from foresail.model.words import CLUSTER_JOB_ID

_PATIENCE_SECONDS: Final = 10.0
_QUIET_SECONDS: Final = 0.2
_SOON_SECONDS: Final = 0.3
_LONG_SECONDS: Final = 60.0


def check_cluster(entry: Entry, parameters: Any = None) -> None:
    """Apply every rule that cluster adapters must keep to a registered one.

    Its parameters are the defaults if not given.

    Raises ``NonconformityError`` if it breaks a rule; the message lists every broken one.
    """
    record = entry.parameters() if parameters is None else parameters
    with tempfile.TemporaryDirectory() as folder:
        numbers = count()

        def trial() -> ClusterTrial:
            plugin: ClusterPlugin = entry.build(record)
            return plugin.trial(Path(folder) / str(next(numbers)))

        check_adapter(entry.name, trial)


def check_adapter(name: str, trial: Callable[[], ClusterTrial]) -> None:
    """Apply every rule to an adapter that need not be registered; ``trial`` makes it afresh.

    Raises ``NonconformityError`` if it breaks a rule; the message lists every broken one.
    """
    require_conformity(f"cluster {name!r}", trial, RULES)


def starts_once(make: Make) -> None:
    """A start is carried out once, though it is handed over twice and after its end again."""
    trial = make()
    with _Driver(trial) as driver:
        start = trial.start_of(_SOON_SECONDS)
        driver.carry_out(start, start)
        driver.wait_for(1)
        driver.carry_out(start)
        driver.wait_quietly()
        begun = trial.times_begun(start.job_id)
    demand(begun == 1, f"the job began {begun} times")


def reports_every_end_once(make: Make) -> None:
    """Every start ends in exactly one report, which is of this attempt and not of the future."""
    trial = make()
    with _Driver(trial) as driver:
        starts = [trial.start_of(seconds) for seconds in (0.0, _SOON_SECONDS, 0.0, 0.1)]
        for start in starts:  # one after the other: the cluster may be as small as one job
            driver.carry_out(start)
            driver.wait_for(1)
        driver.wait_quietly()
        ended = [(each.job_id, each.attempt) for each in driver.outcomes]
        expected = [(start.job_id, start.attempt) for start in starts]
        demand(ended == expected, f"of {expected} it reports {ended}")
        because = {str(each.ended_because) for each in driver.outcomes}
        demand(because == {"completed"}, f"they ended {because}")


def takes_its_time(make: Make) -> None:
    """A job runs as long as it takes, and is reported when it has ended."""
    trial = make()
    with _Driver(trial) as driver:
        driver.carry_out(trial.start_of(_SOON_SECONDS))
        began = driver.now
        driver.wait_for(1)
        seconds = driver.now - began
        demand(seconds >= 0.9 * _SOON_SECONDS, f"{_SOON_SECONDS} s took {seconds:.3f} s")


def stops_what_it_is_to_stop(make: Make) -> None:
    """Require that a preempted attempt stops, and that the next one of its job can start."""
    trial = make()
    with _Driver(trial) as driver:
        if not driver.adapter.capabilities.preempts:
            return
        long = trial.start_of(_LONG_SECONDS)
        driver.carry_out(long)
        driver.wait_quietly()
        driver.carry_out(Preempt(long.job_id, attempt=2))
        driver.wait_quietly()
        demand(not driver.outcomes, "another attempt than the running one was to be stopped")
        driver.carry_out(Preempt(long.job_id))
        driver.wait_for(1)
        driver.carry_out(Preempt(long.job_id), replace(long, attempt=2))
        driver.wait_quietly()
        driver.carry_out(Preempt(long.job_id, attempt=2))
        driver.wait_for(1)
        ended = [(each.attempt, each.ended_because) for each in driver.outcomes]
        expected = [(1, news.EndedBecause.PREEMPTED), (2, news.EndedBecause.PREEMPTED)]
        demand(ended == expected, f"it reports {ended}")


def loses_nothing(make: Make) -> None:
    """After it was closed, the next one finds all again: nothing is lost and nothing runs twice."""
    trial = make()
    now = 0.0
    for seconds, was_handed_over in ((0.0, True), (3 * _SOON_SECONDS, True), (0.0, False)):
        start = trial.start_of(seconds)
        with _Driver(trial, now) as driver:
            if was_handed_over:
                driver.carry_out(start)
                driver.leave()
            now = driver.now
        if seconds == 0.0 and was_handed_over:  # it ends with no driver there
            now = _later(driver)
        with _Driver(trial, now) as driver:
            driver.resume(start)
            driver.carry_out(start)
            driver.wait_for(1)
            driver.wait_quietly()
            now = driver.now
        begun = trial.times_begun(start.job_id)
        demand(begun == 1, f"the job began {begun} times")


def repeats_nothing_of_another(make: Make) -> None:
    """Require that work of its own is reported, and not restarted for a driver without a log."""
    trial = make()
    start = trial.start_of(0.0)
    for _ in range(2):
        with _Driver(trial) as driver:
            if driver.leads_time:
                return
            driver.carry_out(start)
            driver.wait_for(1)
    begun = trial.times_begun(start.job_id)
    demand(begun == 1, f"the job began {begun} times")


def refuses_what_it_cannot(make: Make) -> None:
    """Require that what its capabilities do not declare is refused with a sentence."""
    trial = make()
    with _Driver(trial) as driver:
        can = driver.adapter.capabilities
        start = trial.start_of(0.0)
        placed = replace(start, placement=Placement((("all", 1),), (("node-1", 1),)))
        part = replace(start, stage="main")
        for declared, instruction in (
            (can.places, placed),
            (can.preempts, Preempt("none")),
            (can.starts_tasks, part),
        ):
            if declared:
                continue
            try:
                driver.adapter.carry_out(instruction, driver.now)
            except InputError as error:
                demand(str(error), "the refusal says nothing")
            else:
                demand(False, f"{type(instruction).__name__} is not refused")
        demand(trial.times_begun(start.job_id) == 0, "it starts what it refuses")


def knows_its_history_in_order(make: Make) -> None:
    """Require that earlier runs are reported in order of their ends."""
    with _Driver(make()) as driver:
        times = [each.time for each in driver.adapter.history()]
        demand(times == sorted(times), "it is not")


def reports_what_its_nodes_do(make: Make) -> None:
    """Require that each node that comes, changes or goes is reported once and shown by ``cluster``.

    Where they do not, ``cluster`` stays as it is.
    """
    trial = make()
    with _Driver(trial) as driver:
        before = driver.adapter.cluster
        if not driver.adapter.capabilities.changes_nodes:
            driver.carry_out(trial.start_of(0.0))
            driver.wait_for(1)
        else:
            living = _living(trial)
            for change in _comings_and_goings(before, driver.now):
                living.happen(change)
                driver.wait_for_nodes(change)
        replayed = before
        for change in driver.node_changes:
            replayed = changed(replayed, change)
        after = driver.adapter.cluster
        demand(
            not [*changes_between(replayed, after, 0.0)],
            "its cluster is not what was reported of it",
        )


def loses_what_nodes_take_along(make: Make) -> None:
    """Require that work on a node that goes is reported lost first; its job can run again."""
    trial = make()
    with _Driver(trial) as driver:
        if not driver.adapter.capabilities.changes_nodes:
            return
        long = trial.start_of(_LONG_SECONDS)
        driver.carry_out(long)
        driver.wait_quietly()
        homes, living = _homes(driver.adapter.cluster), _living(trial)
        for name in homes:
            living.happen(news.NodeRemoved(driver.now, name))
            driver.wait_for_nodes(news.NodeRemoved(driver.now, name))
        ended = [(each.attempt, str(each.ended_because)) for each in driver.outcomes]
        demand(
            ended in ([(1, "lost")], [(1, "revoked")]),
            f"once all nodes have gone it has reported {ended}",
        )
        for node, partition in homes.values():
            living.happen(news.NodeAdded(driver.now, node, partition))
            driver.wait_for_nodes(news.NodeAdded(driver.now, node, partition))
        driver.carry_out(replace(long, attempt=2))
        driver.wait_quietly()
        begun = trial.times_begun(long.job_id)
        demand(begun == 2 and len(driver.outcomes) == 1, f"the job began {begun} times")


def reports_what_it_did_not_start(make: Make) -> None:
    """Require that a start that is not carried out is reported, and the next one is carried out."""
    trial = make()
    with _Driver(trial) as driver:
        if not driver.adapter.capabilities.refuses_starts:
            return
        start = trial.start_of(0.0)
        _living(trial).happen(
            news.NotStarted(driver.now, start.job_id, 1, "it is tried", _SOON_SECONDS)
        )
        driver.carry_out(start)
        driver.wait_quietly()
        driver.carry_out(start)
        driver.wait_quietly()
        refused = [(each.attempt, each.again_after_seconds > 0.0) for each in driver.not_started]
        demand(refused == [(1, True)], f"of a start not carried out it reports {refused}")
        demand(bool(driver.not_started[0].sentence), "it does not say why it started nothing")
        driver.carry_out(replace(start, attempt=2))
        driver.wait_for(1)
    begun = trial.times_begun(start.job_id)
    demand(begun == 1, f"the job began {begun} times")


def reports_what_began_by_itself(make: Make) -> None:
    """Require that what begins by no start of ours is reported as such, before its end, once."""
    trial = make()
    with _Driver(trial) as driver:
        if not driver.adapter.capabilities.begins_jobs:
            return
        start = trial.start_of(_SOON_SECONDS)
        now = driver.now
        _living(trial).happen(news.Began(now, start.job_id, 1, start.placement, now, ours=False))
        driver.wait_for(1)
        driver.carry_out(start)
        driver.wait_quietly()
    begun = [(each.job_id, each.attempt, each.ours) for each in driver.begun]
    demand(begun == [(start.job_id, 1, False)], f"of a job that began by itself it reports {begun}")
    times = trial.times_begun(start.job_id)
    demand(times == 1, f"the job began {times} times")


def reports_what_was_submitted_to_it(make: Make) -> None:
    """Require that a job of its own is reported once, under its name, and what becomes of it.

    So it is where one driver comes after another and is said what that knew.
    """
    trial = make()
    with _Driver(trial) as driver:
        if not driver.adapter.capabilities.brings_jobs:
            return
        living = _living(trial)
        first, now = _submitted(driver, living), driver.now
        ids = [job.job_id for job in first]
    living.happen(news.Cancelled(now, ids[0]))
    living.happen(news.Submitted(now, Job.gang("86", now, 1, _LONG_SECONDS)))
    with _Driver(trial, now) as driver:
        driver.resume(known=[KnownJob(job, 0, runs=False) for job in first])
        driver.wait_quietly()
        said = sorted(
            ("submits", each.job.job_id)
            if isinstance(each, news.Submitted)
            else ("cancels", each.job_id)
            for each in driver.news
        )
    expected = [("cancels", ids[0]), ("submits", f"{ids[0].partition(':')[0]}:86")]
    demand(said == expected, f"after job 84 has gone and 86 has come, of {ids} known, it {said}")


def _submitted(driver: _Driver, living: LivesByItself) -> list[Job]:
    """Let two jobs be submitted to the cluster; returns them as it reports them."""
    for name in ("84", "85"):
        living.happen(news.Submitted(driver.now, Job.gang(name, driver.now, 1, _LONG_SECONDS)))
    driver.wait_quietly()
    found = [each.job for each in driver.news if isinstance(each, news.Submitted)]
    ids = [job.job_id for job in found if CLUSTER_JOB_ID.fullmatch(job.job_id)]
    names = [job_id.partition(":")[2] for job_id in ids]
    demand(names == ["84", "85"], f"of jobs 84 and 85 it submits {[job.job_id for job in found]}")
    return found


def hears_what_is_wished(make: Make) -> None:
    """Require that every wish reaches jobs in its queue, also what was wished while none drove."""
    trial = make()
    with _Driver(trial) as driver:
        can = driver.adapter.capabilities
        if not (can.keeps_queue and can.brings_jobs):
            return
        living = _living(trial)
        first, second = _submitted(driver, living)
        now, longer = driver.now, replace(first, requested_seconds=2 * _LONG_SECONDS)
        for wish, job_id, expected in (
            (news.Held(now, first.job_id), first.job_id, (True, _LONG_SECONDS)),
            (news.Released(now, first.job_id), first.job_id, (False, _LONG_SECONDS)),
            (news.JobChanged(now, longer), first.job_id, (False, 2 * _LONG_SECONDS)),
            (news.Cancelled(now, first.job_id), first.job_id, None),
            (news.Held(now, second.job_id), second.job_id, (True, _LONG_SECONDS)),
        ):
            driver.adapter.carry_out(wish, driver.now)
            driver.wait_quietly()
            found = living.in_queue(job_id)
            demand(found == expected, f"after {type(wish).__name__} its queue has {found}")
        now = driver.now
    with _Driver(trial, now) as driver:
        driver.resume(known=[KnownJob(second, 0, runs=False, held=False)])
        driver.wait_quietly()
        found = living.in_queue(second.job_id)
        demand(found == (False, _LONG_SECONDS), f"what was let go meanwhile is as {found}")
        driver.adapter.carry_out(Withdraw(second.job_id, "it is tried"), driver.now)
        driver.wait_quietly()
        demand(living.in_queue(second.job_id) is None, "it does not hear of a withdrawal")


def _living(trial: ClusterTrial) -> LivesByItself:
    """The trial as one that does by itself what its adapter declares."""
    demand(isinstance(trial, LivesByItself), "it declares what its trial cannot let happen")
    return cast("LivesByItself", trial)


RULES: Final[tuple[Rule, ...]] = (
    starts_once,
    reports_every_end_once,
    takes_its_time,
    stops_what_it_is_to_stop,
    loses_nothing,
    repeats_nothing_of_another,
    refuses_what_it_cannot,
    knows_its_history_in_order,
    reports_what_its_nodes_do,
    loses_what_nodes_take_along,
    reports_what_it_did_not_start,
    reports_what_began_by_itself,
    reports_what_was_submitted_to_it,
    hears_what_is_wished,
)


class _Driver:
    """Drives an adapter for a while: by the clock, or by its own time if it has no descriptor.

    To be read: ``adapter``, ``now``, ``leads_time`` (it is the adapter's own), ``outcomes`` (as
    they were reported), ``node_changes``, ``not_started``, ``begun`` and ``news`` of jobs
    (likewise). What still runs at the end is stopped, if it can be.
    """

    def __init__(self, trial: ClusterTrial, not_before: float = 0.0) -> None:
        self.adapter: ClusterAdapter = trial.connect()
        self.outcomes: list[news.Outcome] = []
        self.node_changes: list[news.NodeChange] = []
        self.not_started: list[news.NotStarted] = []
        self.begun: list[news.Began] = []
        self.news: list[news.Submitted | news.Cancelled] = []
        self.leads_time = self.adapter.wake_descriptor is None
        self.now = not_before if self.leads_time else time.time()
        self._running: dict[tuple[str, int], Start] = {}
        self._last_seconds = -math.inf
        self._ends_awaited = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.adapter.capabilities.preempts:
            for start in self._running.values():
                self.adapter.carry_out(Preempt(start.job_id, attempt=start.attempt), self.now)
        self.adapter.close()

    def leave(self) -> None:
        """Let run what runs."""
        self._running.clear()

    def carry_out(self, *instructions: Start | Preempt) -> None:
        """Hand over instructions."""
        for instruction in instructions:
            if isinstance(instruction, Start) and not self._is_over(instruction):
                self._running[instruction.job_id, instruction.attempt] = instruction
            self.adapter.carry_out(instruction, self.now)

    def resume(self, *starts: Start, known: Sequence[KnownJob] = ()) -> None:
        """Have it find again what was started before, and what else was known."""
        self._running |= {(start.job_id, start.attempt): start for start in starts}
        self._take(self.adapter.resume(starts, known, self.now))

    def wait_for(self, ends: int) -> None:
        """Wait until so many more attempts have been reported as ended than were waited for."""
        self._ends_awaited += ends
        end = time.monotonic() + _PATIENCE_SECONDS
        while len(self.outcomes) < self._ends_awaited:
            demand(time.monotonic() < end, f"no end is reported in {_PATIENCE_SECONDS:g} s")
            self._look(_PATIENCE_SECONDS)

    def wait_for_nodes(self, change: news.NodeChange) -> None:
        """Wait until a change is reported that was just made, and nothing else of it."""
        known = len(self.node_changes)
        end = time.monotonic() + _PATIENCE_SECONDS
        while len(self.node_changes) == known:
            demand(time.monotonic() < end, f"it does not report {_without_time(change)}")
            self._look(_QUIET_SECONDS)
        found = [_without_time(each) for each in self.node_changes[known:]]
        demand(found == [_without_time(change)], f"for {_without_time(change)} it reports {found}")

    def wait_quietly(self) -> None:
        """Look for reports a while longer."""
        end, until = time.monotonic() + _QUIET_SECONDS, self.now + _QUIET_SECONDS
        while time.monotonic() < end and self.now < until:
            self._look(_QUIET_SECONDS)

    def _look(self, seconds: float) -> None:
        """Wait for reports, at most so long, and take them."""
        descriptor = self.adapter.wake_descriptor
        if descriptor is None:
            self.now = max(self.now, min(self.adapter.next_seconds, self.now + seconds))
        else:
            wait = min(seconds, max(0.0, self.adapter.next_seconds - time.time()))
            select.select([descriptor], [], [], wait)
            self.now = max(self.now, time.time())
        self._take(self.adapter.reports(self.now))

    def _take(self, events: Iterable[news.Event]) -> None:
        for event in events:
            demand(event.time <= self.now, f"it reports an event {event.time - self.now} s ahead")
            demand(event.time >= self._last_seconds, "it reports an event after a later one")
            self._last_seconds = event.time
            if isinstance(event, news.NodeEvent):
                declared = self.adapter.capabilities.changes_nodes
                demand(declared, "it reports nodes that change, and does not declare it")
                self._note_node(event)
            if isinstance(event, news.Began):
                key = event.job_id, event.attempt
                demand(event.ours or key not in self._running, f"{key} was ours to begin")
                self._running[key] = Start(event.job_id, event.placement, event.attempt)
                self.begun.append(event)
            if isinstance(event, news.Submitted | news.Cancelled):
                self.news.append(event)
            if isinstance(event, news.NotStarted):
                demand(
                    (event.job_id, event.attempt) in self._running,
                    f"{event.job_id} is reported as not started, which was not to start",
                )
                del self._running[event.job_id, event.attempt]
                self.not_started.append(event)
            if not isinstance(event, news.Ended):
                continue
            outcome = event.outcome
            key = outcome.job_id, outcome.attempt
            demand(key in self._running, f"the end of {key} is reported, which does not run")
            del self._running[key]
            times = (outcome.start_seconds, outcome.end_seconds, event.time)
            demand(tuple(sorted(times)) == times, f"start, end and report at {times}")
            self.outcomes.append(outcome)

    def _note_node(self, event: news.NodeEvent) -> None:
        if isinstance(event, news.NodeDown | news.NodeRemoved):
            there = [
                start.job_id
                for start in self._running.values()
                if event.node in dict(start.placement.tasks_by_node)
            ]
            demand(not there, f"node {event.node} has gone, and {there} still run on it")
        if isinstance(event, news.NodeChange):
            self.node_changes.append(event)

    def _is_over(self, start: Start) -> bool:
        over: list[news.Outcome | news.NotStarted] = [*self.outcomes, *self.not_started]
        return any((each.job_id, each.attempt) == (start.job_id, start.attempt) for each in over)


def _homes(cluster: Cluster) -> dict[str, tuple[Node, str]]:
    """Nodes by name, each with its partition."""
    return {node.name: (node, each.name) for each in cluster.partitions for node in each.nodes}


def _comings_and_goings(cluster: Cluster, now: float) -> Iterator[news.NodeChange]:
    """A node comes, changes, goes; one that was there from the beginning does the rest."""
    homes = _homes(cluster)
    demand(bool(homes), "its nodes change, and it has none")
    node, partition = next(iter(homes.values()))
    other = replace(node, name=f"{node.name}-other")
    yield news.NodeAdded(now, other, partition)
    yield news.NodeChanged(now, replace(other, total=node.total + node.total))
    yield news.NodeRemoved(now, other.name)
    yield news.NodeChanged(now, replace(node, attributes={**node.attributes, "changed": "yes"}))
    yield news.NodeRemoved(now, node.name)
    yield news.NodeAdded(now, node, partition)


def _without_time(change: news.NodeChange) -> news.NodeChange:
    return replace(change, time=0.0)


def _later(driver: _Driver) -> float:
    """Let some time pass in which nothing drives the cluster."""
    if not driver.leads_time:
        time.sleep(_SOON_SECONDS)
    return driver.now + _SOON_SECONDS
