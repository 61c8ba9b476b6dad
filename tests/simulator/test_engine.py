"""The event engine against schedules drawn by hand, and under schedulers that obey no rule."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.checks.rules import tiny_workload
from foresail.control.loop import Controller
from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, Placement, Preempt, Start
from foresail.model.errors import InputError
from foresail.model.event import PREDICTSIM, STANDARD, Conventions
from foresail.model.protocols import Scheduler
from foresail.simulator import engine
from foresail.simulator.conditions import ClusterConditions
from foresail.simulator.engine import simulate_events
from foresail.traces import schema
from toys import Constant, Doubling, Easy, Fcfs, Oracle, PreemptsOnce, Requested

# (submit, cpus, runtime, requested) on 4 cpus: section 11 of the study's reference.
SIX_JOBS = [
    (0, 2, 100, 150),
    (0, 2, 50, 100),
    (1, 4, 60, 120),
    (2, 2, 50, 60),
    (3, 2, 30, 90),
    (4, 2, 20, 40),
]


def run(jobs, scheduler, predictor, conventions=STANDARD, processors=4, **options):
    controller = Controller(
        Cluster.of_processors(processors), scheduler, predictor, Doubling(), conventions
    )
    return simulate_events(tiny_workload(jobs, processors), controller, "toy", **options)


def starts(schedule) -> list[float]:
    return schedule.jobs["start_seconds"].to_list()


def test_first_come_first_served_by_hand():
    """Jobs start in order, each as soon as it fits behind the ones before it."""
    schedule = run(SIX_JOBS, Fcfs(), Requested())
    assert starts(schedule) == [0, 0, 100, 160, 160, 190]
    assert not schedule.jobs["backfilled"].any()


@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM])
@pytest.mark.parametrize("predictor", [Requested, Oracle])
def test_easy_by_hand(conventions, predictor):
    """Job 4 goes before job 3 and does not delay it; the same with requests and with the truth."""
    schedule = run(SIX_JOBS, Easy(), predictor(), conventions)
    assert starts(schedule) == [0, 0, 100, 50, 160, 160]
    assert schedule.jobs["backfilled"].to_list() == [False] * 3 + [True] + [False] * 2


def test_schedule_has_the_canonical_columns():
    """Every column of the schema, in its type; who, where, why."""
    schedule = run(SIX_JOBS, Easy(), Requested())
    assert schedule.jobs.schema == pl.Schema(schema.SCHEDULE)
    row = schedule.jobs.row(3, named=True)
    assert row["job_id"] == "4"
    assert row["placement"] == "all"
    assert row["ended_because"] == "completed"
    assert row["predicted_seconds"] == row["predicted_high_seconds"] == 60
    assert schedule.meta.counters["never_started"] == 0
    assert schedule.meta.conventions == "standard"


def test_corrections_fire_when_the_estimate_is_reached_and_no_later():
    """All predicted 10 s: doubling corrects job 1 at 10, 20, 40 and 80 s, the last to its limit."""
    schedule = run(SIX_JOBS, Fcfs(), Constant(10.0))
    assert schedule.jobs["corrections"].to_list()[0] == 4
    assert starts(schedule) == [0, 0, 100, 160, 160, 190]


def test_an_estimate_that_is_exactly_right_is_not_corrected():
    """A job that ends just when it is expected to end needs no correction."""
    schedule = run([(0, 1, 10, 20)], Fcfs(), Constant(10.0))
    assert schedule.jobs["corrections"].to_list() == [0]


def test_limits_kill_only_when_enforced():
    """A job longer than its limit runs on, or is cut there with its reason."""
    jobs = [(0, 1, 100, 60)]
    free = run(jobs, Fcfs(), Requested()).jobs.row(0, named=True)
    killed = run(jobs, Fcfs(), Requested(), enforce_limits=True).jobs.row(0, named=True)
    assert (free["end_seconds"], free["ended_because"]) == (100, "completed")
    assert (killed["end_seconds"], killed["ended_because"]) == (60, "limit")


def test_a_preempted_job_has_two_attempts_and_runs_from_the_beginning():
    """Job 1 is stopped when job 2 arrives and starts anew, ahead of it in the queue."""
    predictor = Constant(100.0)
    schedule = run([(0, 4, 100, None), (30, 4, 10, None)], PreemptsOnce("1"), predictor)
    columns = ("job_id", "attempt", "start_seconds", "end_seconds", "ended_because")
    assert schedule.jobs.select(columns).rows() == [
        ("1", 1, 0.0, 30.0, "preempted"),
        ("1", 2, 30.0, 130.0, "completed"),
        ("2", 1, 130.0, 140.0, "completed"),
    ]
    assert [kind for kind, job_id, _ in predictor.heard if job_id == "1"] == [
        "predict",
        "started",
        "preempted",
        "started",
        "ended",
    ]


def test_too_wide_a_job_waits_for_ever_and_stops_nobody():
    """The job that no cluster could hold is counted, and the one behind it runs."""
    schedule = run([(0, 5, 10, 10), (1, 1, 10, 10)], Fcfs(), Requested())
    assert schedule.jobs.select("job_id", "attempt", "start_seconds", "backfilled").rows() == [
        ("1", None, None, None),
        ("2", 1, 1, False),
    ]
    assert schedule.meta.counters["never_started"] == 1


def test_an_empty_workload_gives_an_empty_schedule():
    """No job, no row, no error."""
    assert run([], Fcfs(), Requested()).jobs.height == 0


def test_expected_ends_count_as_free_under_the_study_conventions():
    """Job 2 arrives in the second in which job 1 ends as expected.

    The study's rule starts job 2 before job 1's end is handled; without it, that takes another
    pass.
    """
    jobs = [(0, 4, 10, 10), (10, 4, 10, 10)]
    strict = Conventions("strict", "per_event", "submissions_first", "actual")
    study = run(jobs, Fcfs(), Requested(), PREDICTSIM)
    other = run(jobs, Fcfs(), Requested(), strict)
    assert starts(study) == starts(other) == [0, 10]
    assert (study.meta.counters["passes"], other.meta.counters["passes"]) == (2, 3)


def test_study_conventions_pass_after_every_event():
    """Two submissions in one second: the first is started alone, before the second is known."""
    jobs = [(0, 3, 50, 50), (0, 2, 10, 10)]
    study = run(jobs, Fcfs(), Requested(), PREDICTSIM)
    ours = run(jobs, Fcfs(), Requested(), STANDARD)
    assert (study.meta.counters["passes"], ours.meta.counters["passes"]) == (3, 2)


job = st.tuples(
    st.integers(0, 50), st.integers(1, 5), st.integers(0, 30), st.none() | st.integers(1, 40)
)
workloads = st.lists(job, max_size=12).map(lambda jobs: sorted(jobs, key=lambda row: row[0]))


class Rogue(Scheduler):
    """Wishes for whatever Hypothesis draws: unknown, running, half and doubled jobs."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.preemptions_left = 5

    def decide(self, view) -> Decision:
        ids = [job.job.job_id for job in (*view.pending, *view.running)] + ["nobody"]
        tasks = {job.job.job_id: job.job.tasks for job in view.pending}
        starts = []
        for job_id in self.draw(st.lists(st.sampled_from(ids), max_size=6)):
            whole = tasks.get(job_id, 1)
            placement = self.draw(
                st.sampled_from(
                    [
                        Placement.whole("all", whole),
                        Placement.whole("all", whole),
                        Placement.whole("all", max(1, whole - 1)),
                        Placement.whole("nowhere", whole),
                        Placement((("all", whole), ("all", 0))),
                    ]
                )
            )
            starts.append(Start(job_id, placement))
        preemptions = []
        if self.preemptions_left and self.draw(st.booleans()):
            self.preemptions_left -= 1
            preemptions.append(Preempt(self.draw(st.sampled_from(ids))))
        return Decision(tuple(starts), tuple(preemptions))


def held_cpus(jobs: pl.DataFrame, time: float) -> float:
    """Cpus of the attempts that run at this time, their ends excluded."""
    return jobs.filter((pl.col("start_seconds") <= time) & (time < pl.col("end_seconds")))[
        "cpus"
    ].sum()


@settings(max_examples=60, deadline=None)
@given(jobs=workloads, data=st.data(), per_event=st.booleans())
def test_no_scheduler_can_break_the_cluster(jobs, data, per_event):
    """Whatever is decided: capacity holds, no job is lost or ends twice, runtimes are the truth."""
    conventions = PREDICTSIM if per_event else STANDARD
    schedule = run(jobs, Rogue(data.draw), Oracle(), conventions)
    table = schedule.jobs.drop_nulls("start_seconds")
    for time in table["start_seconds"].unique():
        assert held_cpus(table, time) <= 4
    completed = table.filter(pl.col("ended_because") == "completed")
    assert completed["job_id"].is_unique().all()
    assert completed.height + schedule.meta.counters["never_started"] == len(jobs)
    truth = {str(number + 1): row[2] for number, row in enumerate(jobs)}
    ran = (completed["end_seconds"] - completed["start_seconds"]).to_list()
    np.testing.assert_allclose(ran, [truth[job_id] for job_id in completed["job_id"]])
    attempts = Counter(table["job_id"])
    assert sum(attempts.values()) - completed.height <= 5
    assert (table["start_seconds"] >= table["submit_seconds"]).all()


@settings(max_examples=60, deadline=None)
@given(jobs=workloads, easy=st.booleans())
def test_a_working_scheduler_runs_every_job_that_fits(jobs, easy):
    """FCFS and EASY leave nobody waiting but those that are too wide, and work is conserved."""
    schedule = run(jobs, Easy() if easy else Fcfs(), Requested())
    fitting = [row for row in jobs if row[1] <= 4]
    assert schedule.jobs["start_seconds"].count() == len(fitting)
    area = (schedule.jobs["end_seconds"] - schedule.jobs["start_seconds"]) * schedule.jobs["cpus"]
    assert area.sum() == sum(row[1] * row[2] for row in fitting)
    assert schedule.meta.counters["refusals"] == 0


def test_the_same_run_twice_is_the_same_run():
    """Nothing in the engine or the loop depends on anything but its input."""
    first = run(SIX_JOBS, Easy(), Constant(10.0))
    second = run(SIX_JOBS, Easy(), Constant(10.0))
    assert first.jobs.equals(second.jobs)
    assert first.meta.counters == second.meta.counters


def test_shared_nodes_without_the_package_that_simulates_them(monkeypatch):
    """The refusal says which package to install."""
    monkeypatch.setattr(engine, "find_quickly", lambda *_: None)
    with pytest.raises(InputError, match="not installed") as caught:
        run(SIX_JOBS, Fcfs(), Requested(), conditions=ClusterConditions(share_nodes=True))
    assert "foresail-studies" in str(caught.value)
