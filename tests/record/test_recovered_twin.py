"""A run that was killed and recovered at any step decides from then on as one that was not."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.model.event import IN_CYCLES, STANDARD, JobChanged
from foresail.model.registry import entries
from foresail.predictors.stepped import SteppedPredictor
from foresail.record.compaction import Compaction
from foresail.record.log_text import parse_record, record_line
from foresail.record.records import Manifest, Predicted, ReasonsChanged
from foresail.record.run_fold import RunFold
from foresail.simulator.conditions import ClusterConditions, random_outages
from foresail.simulator.engine import simulate_events
from foresail.traces import schema
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from long_series import some_of
from made_moments import racks, random_node_changes

SCHEDULERS = (
    "fcfs,recent,doubling",
    "ljf,recent,doubling",
    "saf,recent,doubling",
    "sjf,recent,doubling",
    "in_order(queue=smallest_area),recent,doubling",
    "easy(order=shortest),recent,incremental",
    "conservative,similar,incremental",
    "guarded_backfilling(patience=0.1),similar,incremental",
    "capacity(cycle_seconds=20),recent,doubling",
    "priority,similar,doubling",
    "tetrisched(cycle_seconds=20),similar,doubling",
    "3sigma(solver_share=0.01),similar,exponential_increment",
    "3sigma(solver_share=0.01,fair_share=2),similar,exponential_increment",
    "distsched,similar,incremental",
    "las(first_threshold_seconds=100),recent,doubling",
    "predicted_queues,recent,doubling",
    "slearn(first_threshold_seconds=100,pilot_percent=20),recent,doubling",
    "slearn(trials=1),similar,incremental",
    "slearn(deadlines=by_odds),recent,doubling",
    "task_edf,recent,doubling",
    "task_fifo,recent,incremental",
    "task_fifo,similar,doubling",
    "3sigma(solver_share=0.01,reservations=latest),history,exponential_increment",
)
PREDICTORS = (
    "actual_usage",
    "calibrated",
    "calibrated(of=history)",
    "clairvoyant",
    "combined",
    "combined(members=[history,similar])",
    "history(feature_values=2000,false_alarm_jobs=10)",
    "history_point",
    "jvu",
    "perturbed",
    "quantile_regression",
    "recent(k=3)",
    "regression",
    "requested",
    "sampled",
    "similar",
    "usage",
)


def workload(seed):
    """Jobs of three users, some urgent, some in chains, some that like a rack, one too wide."""
    chance = np.random.default_rng(seed)
    count = 36
    submits = np.sort(chance.integers(0, 1500, count)).astype(float)
    runtimes = np.ceil(np.exp(chance.normal(5.0, 1.0, count)))
    late = np.where(chance.random(count) < 0.4, submits + runtimes * 2.5, np.nan)
    widths = chance.integers(1, 10, count)
    widths[7] = 99
    table = jobs_table(
        {
            "job_id": [str(number) for number in range(count)],
            "submit_seconds": submits,
            "tasks": widths,
            "runtime_seconds": runtimes,
            "requested_seconds": np.ceil(runtimes * chance.uniform(1.0, 6.0, count)),
            "user": [f"u{number}" for number in chance.integers(0, 3, count)],
            "deadline_seconds": [None if np.isnan(each) else float(each) for each in late],
            "preferred": ["partition:rack1" if at % 5 == 0 else None for at in range(count)],
            "slowdown_elsewhere": [1.5 if at % 5 == 0 else None for at in range(count)],
            "after_jobs": [str(at - 4) if at % 9 == 8 else None for at in range(count)],
        }
    )
    return Workload(table, WorkloadMeta("random", "drawn", 16))


def with_tasks(whole, seed):
    """The same with two of three jobs in stages, whose tasks may run into their job's limit."""
    chance = np.random.default_rng(seed)
    rows = []
    for job_id, width in whole.jobs.select("job_id", "tasks").iter_rows():
        counts = {"map": width, "reduce": 1 + width // 3} if int(job_id) % 3 else {}
        for stage, count in counts.items():
            after = "map" if stage == "reduce" else None
            for task, seconds in enumerate(np.ceil(chance.exponential(120.0, count))):
                rows.append((job_id, stage, after, task, float(seconds), None, None))
    return replace(whole, tasks=pl.DataFrame(rows, schema=schema.TASKS, orient="row"))


class Records:
    """A log in memory, as text; ``told`` are beliefs and reasons, which are told but not done."""

    def __init__(self, manifest):
        self.told = []
        self.compaction = Compaction()
        self.lines = []
        self.append(manifest)

    def append(self, record):
        self.lines.append(record_line(record))
        self.compaction.take(record, self.lines[-1])
        if isinstance(record, Predicted | ReasonsChanged):
            self.told.append(replace(record, step=0))

    def commit(self):
        pass


class Mortal:
    """A controller that is killed now and then; another one takes over, from the log alone."""

    def __init__(self, build, log, kills, share):
        self._build, self._log, self._kills, self._share = build, log, kills, share
        self.steps = []
        self.controller = build(log)

    def __getattr__(self, name):
        return getattr(self.controller, name)

    def step(self, now, events):
        if self._kills.random() < self._share:
            self._recover()
        instructions = self.controller.step(now, events)
        self.steps.append((now, tuple(instructions), replace(self.controller.counters)))
        return instructions

    def _recover(self):
        run = RunFold(self.controller.compares_with)
        whole = self._kills.random() < 0.5
        for number, line in enumerate(self._log.lines if whole else self._log.compaction.lines()):
            run.take(parse_record(line, "log", number))
        predictor, scheduler = self.controller.predictor, self.controller.scheduler
        self.controller = self._build(self._log)
        if hasattr(scheduler, "_measured"):  # the cluster goes on, and measures
            self.controller.scheduler.watch_use(scheduler._measured)
        if predictor.needs_truth:
            self.controller.predictor = predictor
        self.controller.take_over(run)
        assert learned(self.controller.predictor) == learned(predictor)


class Changing(Mortal):
    """The same, but that jobs are changed now and then, by who they are and how many steps in."""

    def step(self, now, events):
        turn, rest = divmod(len(self.steps), 4)
        living = [*self.controller.state._living.values()]
        if living and not rest:
            job = living[turn % len(living)].job
            limit = (0.4, 2.5)[turn % 2] * (job.requested_seconds or 100.0)
            events = [*events, JobChanged(now, replace(job, requested_seconds=limit, name="x"))]
        return super().step(now, events)


def learned(predictor):
    """What a predictor knows of users, and which jobs of theirs are in flight."""
    if not isinstance(predictor, SteppedPredictor):
        return None
    return predictor._state.users.tobytes(), sorted(predictor._slots)


def decided(policy, seed, kills, mortal=Mortal):
    """Every step of a run, with what was counted, and what its log was told of beliefs."""
    cluster = racks(2, 8)
    conditions = ClusterConditions(
        cycle_seconds=20.0,
        refused_start_share=0.1,
        refused_for_seconds=45.0,
        outages=random_outages(cluster, 2000.0, 4000.0, 150.0, seed),
        node_changes=random_node_changes(cluster, 1500.0, 12, seed),
    )
    conventions = STANDARD if seed % 2 else IN_CYCLES
    in_parts = parse_policy(policy).starts_tasks
    jobs = with_tasks(workload(seed), seed) if in_parts else workload(seed)
    return steps_of(
        policy, jobs, cluster, conditions, kills, conventions, limits=in_parts, mortal=mortal
    )


def steps_of(
    policy,
    jobs,
    cluster,
    conditions,
    kills,
    conventions=STANDARD,
    *,
    limits=False,
    share=0.15,
    mortal=Mortal,
):
    """Every step of a run of these jobs, and what its log was told of beliefs."""
    in_parts = parse_policy(policy).starts_tasks
    log = Records(Manifest(policy, cluster, conventions, starts_tasks=in_parts))

    def build(log):
        return Controller(cluster, *parse_policy(policy).build(), conventions, log)

    driven = mortal(build, log, kills, share)
    schedule = simulate_events(jobs, driven, policy, conditions=conditions, enforce_limits=limits)
    told = [each for each in log.told if isinstance(each, Predicted)]
    return driven.steps, told, schedule.meta.counters, log.lines


class Never(random.Random):
    """No kill at all."""

    def random(self):
        return 1.0


@pytest.mark.parametrize("seed", some_of([1, 2], every=2))
@pytest.mark.parametrize(
    "policy", [*SCHEDULERS, *(f"easy(order=shortest),{each},doubling" for each in PREDICTORS)]
)
def test_a_killed_run_decides_as_one_that_was_not(policy, seed):
    """Killed at about every seventh step, recovered from the whole log or from a snapshot."""
    unbroken = decided(policy, seed, Never())
    assert len(unbroken[0]) > 50
    assert decided(policy, seed, random.Random(seed))[:2] == unbroken[:2]


@pytest.mark.parametrize(
    "policy",
    [
        "guarded_backfilling(patience=0.1),similar,incremental",
        "easy,requested,requested",
        "easy(order=shortest),regression,doubling",
        "task_fifo,similar,doubling",
    ],
)
def test_a_killed_run_knows_which_jobs_were_changed(policy):
    """Learned, believed and decided is the same, of those that waited and those that ran."""
    unbroken = decided(policy, 1, Never(), Changing)
    assert sum('"JobChanged"' in line for line in unbroken[3]) > 10
    assert decided(policy, 1, random.Random(1), Changing)[:2] == unbroken[:2]


def test_every_registered_scheduler_and_predictor_is_killed():
    """Whoever adds one adds it here."""
    names = {text.partition("(")[0] for each in SCHEDULERS for text in each.split(",")}
    assert {each.name for each in entries("scheduler")} <= names | {"external"}  # starts none
    assert {each.name for each in entries("task_scheduler")} <= names
    assert {each.name for each in entries("predictor")} <= {
        each.partition("(")[0] for each in PREDICTORS
    }
