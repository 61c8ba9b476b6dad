"""The fold of a run's records is the state that its controller is in, after every step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foresail.checks.rules import tiny_workload
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement
from foresail.model.event import (
    IN_CYCLES,
    PREDICTSIM,
    STANDARD,
    Began,
    Cancelled,
    ClusterAvailable,
    ClusterUnavailable,
    Ended,
    EndedBecause,
    Held,
    JobChanged,
    NodeDown,
    NodeDrained,
    NodeResumed,
    NodeUp,
    NotStarted,
    Occupied,
    Outcome,
    Released,
    Submitted,
    Tick,
)
from foresail.model.job import Dependency, DependencyKind, Job, StartConditions
from foresail.record.compaction import Compaction
from foresail.record.log_text import parse_record, record_line
from foresail.record.records import Manifest
from foresail.record.run_fold import RunFold
from foresail.simulator.engine import simulate_events
from toys import Constant, Doubling, Easy, Fcfs, PreemptsOnce


class Checked:
    """A log that is folded as it is written, and compared with its controller step by step."""

    def __init__(self, manifest):
        self.fold, self.compaction = RunFold(), Compaction()
        self.controller: Controller | None = None
        self.steps = self.records = 0
        self.append(manifest)

    def append(self, record):
        self.records += 1
        line = record_line(record)
        self.fold.take(parse_record(line, "log", self.records))
        self.compaction.take(record, line)

    def commit(self):
        assert known(self.fold) == of_controller(self.controller)
        assert self.fold.room_came == self.controller._room_came
        self.steps += 1
        if self.steps % 10 == 0:
            assert known(self.refolded()) == known(self.fold)

    def refolded(self):
        """What the records that matter lead to, as a state."""
        fold = RunFold()
        for number, line in enumerate(self.compaction.lines(), 1):
            fold.take(parse_record(line, "log", number))
        assert fold.history.past == self.fold.history.past
        assert fold.state.wakes == self.fold.state.wakes
        assert fold.state.held == self.fold.state.held
        assert fold.state.cancelled == self.fold.state.cancelled
        assert fold.predictor_calls == self.fold.predictor_calls
        assert (fold.memory, fold.has_news) == (self.fold.memory, self.fold.has_news)
        assert (fold.steps, fold.now) == (self.fold.steps, self.fold.now)
        assert (fold.learned_of, fold.room_came) == (self.fold.learned_of, self.fold.room_came)
        return fold


def known(fold):
    state = fold.state
    return (
        state.pending(),
        dict(state.running),
        dict(state.estimates),
        set(state.stopping),
        dict(state.ended),
        *wishes(state),
        dict(fold.reservations),
        rounded(fold.plan.starts),
        replace(fold.counters),
        fold.draining,
    )


def rounded(starts):
    """A plan that moves on is logged as a shift, which rounds its starts."""
    return {job_id: round(start, 6) for job_id, start in starts.items()}


def wishes(state):
    free = state.free.by_partition(), state.free.by_node()
    later = dict(state.wakes), dict(state.ticks)
    kept_back = set(state.held), {*state.held_back, *state.not_started, *state.occupied}
    kept_back[1].add(state.unavailable)
    return (*kept_back, dict(state.cancelled), set(state.drained), *free, *later)


def of_controller(controller):
    state = controller.state
    return (
        state.pending(),
        dict(state.running),
        dict(state.estimates),
        set(state.stopping),
        dict(state.ended),
        *wishes(state),
        dict(controller.reservations),
        rounded(controller.plan),
        replace(controller.counters),
        controller.draining,
    )


def checked(parts, cluster, conventions=STANDARD):
    log = Checked(Manifest("toy", cluster, conventions))
    log.controller = Controller(cluster, *parts, conventions, log)
    return log


def random_jobs(seed):
    random = np.random.default_rng(seed)
    submit = np.cumsum(random.integers(0, 30, 60)).tolist()
    return [(at, int(random.integers(1, 6)), int(random.integers(5, 90)), 100) for at in submit]


@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM])
@pytest.mark.parametrize("scheduler", [Fcfs, Easy, lambda: PreemptsOnce("7")])
def test_simulations_fold_to_the_state_of_their_controller(scheduler, conventions):
    """Corrections, preemption, jobs too wide, passes within an instant."""
    log = checked((scheduler(), Constant(25.0), Doubling()), Cluster.of_processors(4), conventions)
    simulate_events(tiny_workload(random_jobs(3)), log.controller, "toy")
    assert log.steps > 100
    assert log.fold.history.past


@pytest.mark.parametrize(
    "policy", ["conservative,recent,incremental", "capacity(cycle_seconds=5),recent,doubling"]
)
def test_plans_fold_too(policy):
    """Every job has a planned start, which moves as others end."""
    conventions = IN_CYCLES if "cycle" in policy else STANDARD
    log = checked(parse_policy(policy).build(), Cluster.of_processors(5), conventions)
    controller, running = log.controller, {}
    random = np.random.default_rng(5)
    for second in range(0, 600, 5):
        now = float(second)
        over = [job_id for job_id, end in running.items() if end <= now]
        because = [EndedBecause.COMPLETED, EndedBecause.FAILED, EndedBecause.LOST]
        events = [
            Ended(now, Outcome(job_id, 0.0, now, because[random.integers(3)])) for job_id in over
        ]
        for job_id in over:
            del running[job_id]
        if random.random() < 0.5:
            job = Job.gang(f"j{second}", now, int(random.integers(1, 4)), 60.0, "ann")
            after = (f"j{second - 25}",) if random.random() < 0.3 else ()
            events.append(Submitted(now, replace(job, after=after)))
        waiting = [each.job.job_id for each in controller.pending]
        if waiting and random.random() < 0.1:
            events.append(Cancelled(now, waiting[-1]))
        controller.step(now, [*events, Tick(now)])
        for job_id in controller.running.keys() - running.keys():
            running[job_id] = now + float(random.integers(5, 60))
    assert len(log.fold.history.past) > 20
    assert len(log.compaction) < log.records / 2


PLACES = [Placement((("all", 1),), ((f"n{at}", 1),)) for at in range(2)]


def nodes(count):
    return [Node(f"n{number}", Resources(2.0)) for number in range(count)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "policy", ["fcfs,requested,requested", "easy,requested,requested", "task_fifo"]
)
def test_wishes_of_users_and_operators_fold_too(policy, seed):
    """Jobs are held, released and cancelled in whatever state; nodes are drained and go down.

    Some are held in the step in which they come, before the log tells what is believed of them.
    Starts are not carried out, and jobs begin by themselves, some of them as they come. Some begin
    later, are of arrays with a limit, or depend on others in one way or another.
    """
    cluster = Cluster((Partition("all", Resources(6.0), tuple(nodes(3))),))
    log = checked(parse_policy(policy).build(), cluster)
    controller, running = log.controller, {}
    random = np.random.default_rng(seed)
    submitted: list[str] = []

    def chance(share):
        return random.random() < share

    for second in range(0, 800, 4):
        now = float(second)
        over = [unit for unit, end in running.items() if end <= now or random.random() < 0.02]
        events = []
        for unit in over:
            job_id, stage, tasks = (unit, "", ()) if isinstance(unit, str) else unit
            attempt = controller.running[unit].attempt
            if chance(0.1):
                refused = NotStarted(now, job_id, attempt, "no", float(random.integers(1, 40)))
                events.append(replace(refused, stage=stage, tasks=tasks))
                del running[unit]
                continue
            because = [EndedBecause.COMPLETED, EndedBecause.FAILED, EndedBecause.REVOKED]
            why = because[random.choice(3, p=[0.8, 0.05, 0.15])]
            if job_id in controller.state.cancelled:
                why = EndedBecause.CANCELLED
            events.append(
                Ended(now, Outcome(job_id, 0.0, now, why, None, attempt, stage=stage, tasks=tasks))
            )
            del running[unit]
            again = why is EndedBecause.REVOKED and isinstance(unit, str)
            if again and chance(0.5):  # at once, by no start of ours
                events.append(Began(now, unit, attempt + 1, PLACES[0], now - 1.0, ours=False))
        began = {each.job_id for each in events if isinstance(each, Began)}
        for unit, runs in controller.running.items():
            if unit in running and chance(0.05) and isinstance(unit, str):
                place = PLACES[random.integers(2)] if runs.job.tasks == 1 else runs.placement
                events.append(Began(now, unit, runs.attempt, place, now - 2.0, ours=runs.ours))
        for each in controller.pending:
            job_id = each.job.job_id
            if chance(0.03) and not each.startable and job_id not in began:
                attempt = 1 + controller.state._requeued.get(job_id, 0)
                events.append(Began(now, job_id, attempt, PLACES[1], now - 3.0, ours=False))
        if chance(0.06):
            events.append(ClusterUnavailable(now, "away"))
        elif chance(0.5):
            events.append(ClusterAvailable(now))
        if chance(0.1):
            amount = Resources(float(random.integers(0, 2)))
            events.append(Occupied(now, f"n{random.integers(3)}", amount))
        if random.random() < 0.6:
            submitted.append(f"j{second}")
            events.append(Submitted(now, job_of(submitted, now, random)))
            at_once = (
                Began(now, submitted[-1], 1, PLACES[1], now - 3.0, ours=False),
                Cancelled(now, submitted[-1]),
                Ended(now, Outcome(submitted[-1], now - 3.0, now)),
            )
            if policy == "task_fifo" and chance(0.1):
                events.append(JobChanged(now, other(events[-1].job, random)))
            if policy != "task_fifo" and not events[-1].job.after:
                events += at_once[: int(random.choice(4, p=[0.8, 0.1, 0.05, 0.05]))]
        of_jobs = [each for each in (Held, *3 * [Released], Cancelled) if chance(0.15)]
        if len(submitted) > 1:
            last = [*submitted[-7:-1], *(each.job.job_id for each in controller.running.values())]
            events += [wish(now, last[random.integers(len(last))]) for wish in of_jobs]
        if submitted and chance(0.1):
            events += [Held(now, submitted[-1]), *[Released(now, submitted[-1])] * int(chance(0.3))]
        if len(submitted) > 1 and chance(0.3):
            changing = last[random.integers(len(last))]
            events.append(JobChanged(now, other(log.fold.history.submitted[changing], random)))
        rarely = (NodeDrained, NodeDown, *3 * [NodeResumed, NodeUp])
        of_nodes = [each for each in rarely if chance(0.06)]
        events += [wish(now, f"n{random.integers(3)}") for wish in of_nodes]
        controller.step(now, [*events, Tick(now)])
        for unit in sorted(controller.running.keys() - running.keys(), key=str):
            running[unit] = now + float(random.integers(5, 60))
    assert len(log.fold.history.past) > 20
    kinds = {each.outcome.ended_because for each in log.fold.history.past}
    assert EndedBecause.CANCELLED in kinds


def other(job, random):
    """The job as somebody might change it."""
    return replace(
        job,
        requested_seconds=float(random.integers(1, 90)),
        stages=(replace(job.stages[0], tasks=int(random.integers(1, 9))),),
        name=[None, "lone", "other"][random.integers(3)],
    )


def job_of(submitted, now, random):
    tasks = int(random.integers(1, 4))
    job = Job.gang(submitted[-1], now, tasks, 60.0, "ann")
    after = (submitted[-3],) if len(submitted) > 3 and random.random() < 0.3 else ()
    return replace(job, after=after, **conditions_of(after, now, random))


def conditions_of(after, now, random):
    """A name, and what must hold before a job may start, of some."""
    if random.random() < 0.5:
        return {"name": "lone"} if random.random() < 0.5 else {}
    kind = list(DependencyKind)[random.integers(4)]
    conditions = StartConditions(
        dependencies=(Dependency(kind, after),) if after else (),
        singleton=random.random() < 0.2,
        begin_seconds=now + float(random.integers(-9, 60)) if random.random() < 0.3 else None,
        array=f"a{now // 120}",
        most_at_once=2 if random.random() < 0.6 else None,
    )
    return {"name": "lone", "conditions": conditions}
