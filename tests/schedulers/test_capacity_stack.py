"""Rayon/CapacityScheduler: a schedule by hand for each of its rules, and what it guarantees."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from fixed_predictor import Fixed, FixedParameters
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.model.cluster import Cluster, Resources
from foresail.model.errors import ForesailError
from foresail.model.event import IN_CYCLES, STANDARD
from foresail.model.view import Rejection, Reservation
from foresail.schedulers._planning.valuing import PlanAheadParameters, utility_decay
from foresail.schedulers.plan_ahead import TetriSchedParameters
from foresail.simulator.conditions import ClusterConditions, Outage
from foresail.simulator.engine import simulate_events
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from planning_problems import built, job, nodes, outcome, racks, view_of, waiting

CYCLE = 10.0


def workload(*jobs):
    """Jobs a, b, ... as (submit, cpus, runtime, deadline or None, preferred nodes if any)."""
    padded = [(*each, None)[:5] for each in jobs]
    table = jobs_table(
        {
            "job_id": [chr(ord("a") + at) for at in range(len(jobs))],
            "submit_seconds": [float(each[0]) for each in padded],
            "tasks": [each[1] for each in padded],
            "runtime_seconds": [float(each[2]) for each in padded],
            "deadline_seconds": pl.Series([each[3] for each in padded], dtype=pl.Float64),
            "preferred": pl.Series([each[4] for each in padded], dtype=pl.String),
            "slowdown_elsewhere": pl.Series(
                [1.5 if each[4] else None for each in padded], dtype=pl.Float64
            ),
        }
    )
    return Workload(table, WorkloadMeta("made", "", processors=4))


class Estimates(Fixed):
    """Predicts what it was told of jobs a, b, ..."""

    def predict(self, job, now):
        return super().predict(replace(job, job_id=str(ord(job.job_id) - ord("a") + 1)), now)


def run(jobs, estimates=None, policy="capacity", cluster=None, outages=(), cycle=CYCLE):
    """The schedule, cycle by cycle, with these estimates (the runtimes if none are given)."""
    made = workload(*jobs)
    told = estimates or [each[2] for each in jobs]
    settings = policy if "(" in policy else f"{policy}(cycle_seconds={CYCLE:g})"
    scheduler, _, correction = parse_policy(f"{settings},requested,doubling").build()
    predictor = Estimates(FixedParameters(tuple(map(float, told))))
    cluster = cluster or Cluster.of_processors(4)
    conventions = STANDARD if cycle is None else IN_CYCLES
    controller = Controller(cluster, scheduler, predictor, correction, conventions)
    conditions = ClusterConditions(cycle_seconds=cycle, outages=outages)
    return simulate_events(made, controller, policy, conditions=conditions)


def attempts(schedule):
    """Start and end of every attempt, by job."""
    columns = ("job_id", "start_seconds", "end_seconds")
    found: dict[str, list[tuple[float, float]]] = {}
    for name, start, end in schedule.jobs.select(columns).iter_rows():
        found.setdefault(name, []).append((start, end))
    return found


def accepted(schedule):
    """What became of every job's request."""
    return dict(schedule.jobs.select("job_id", "accepted").iter_rows())


@pytest.mark.parametrize("cycle", [CYCLE, None], ids=["cycles", "events"])
@pytest.mark.parametrize(("policy", "start"), [("latest", 70.0), ("earliest", 0.0)])
def test_a_reserved_job_runs_from_the_start_of_its_reservation(policy, start, cycle):
    """Rule 1: on an idle cluster too, woken up at that moment if nothing else happens."""
    text = f"capacity(reservations={policy},cycle_seconds=10)"
    schedule = run([(0, 4, 30, 100.0)], policy=text, cycle=cycle)
    assert attempts(schedule) == {"a": [(start, start + 30.0)]}
    assert accepted(schedule) == {"a": True}


def test_the_youngest_without_a_reservation_make_room():
    """Rule 2: c has its nodes at 70; b, which started last, begins again from zero at 100."""
    jobs = [(0, 2, 200, None), (5, 2, 200, None), (12, 2, 30, 100.0)]
    schedule = run(jobs)
    assert attempts(schedule) == {
        "a": [(10.0, 210.0)],
        "b": [(10.0, 70.0), (100.0, 300.0)],
        "c": [(70.0, 100.0)],
    }
    assert accepted(schedule) == {"a": None, "b": None, "c": True}


def test_a_reservation_that_is_over_protects_no_more():
    """Rule 3: a is believed to end at 100; then b's reservation begins, and a has to go.

    It starts again once b has ended, though its deadline has passed.
    """
    jobs = [(0, 4, 60, 100.0), (3, 4, 20, 120.0)]
    schedule = run(jobs, estimates=[20, 20])
    assert attempts(schedule) == {"a": [(80.0, 100.0), (120.0, 180.0)], "b": [(100.0, 120.0)]}


def test_a_reservation_that_is_over_leaves_what_nobody_needs():
    """Rule 3: moved to the other queue with what it holds, a goes on where nobody is short."""
    schedule = run([(0, 4, 60, 100.0), (3, 2, 20, None)], estimates=[20, 20])
    assert attempts(schedule)["a"] == [(80.0, 140.0)]


def test_the_queue_is_blind_to_deadlines_and_leaves_nothing_idle():
    """Rules 4 and 7: rejected b is hopeless and runs before c; d, which fits, overtakes c."""
    jobs = [(0, 3, 50, None), (1, 1, 90, 20.0), (2, 2, 10, None), (12, 1, 10, None)]
    schedule = run(jobs)
    assert accepted(schedule)["b"] is False
    assert attempts(schedule) == {
        "a": [(10.0, 60.0)],
        "b": [(10.0, 100.0)],
        "c": [(60.0, 70.0)],
        "d": [(60.0, 70.0)],
    }
    jobs[3] = (12, 1, 10, None)
    jobs[1] = (1, 1, 20, 15.0)
    assert attempts(run(jobs))["d"] == [(30.0, 40.0)]


def test_it_does_not_look_where_a_job_runs_best():
    """Rule 5: the first free nodes have no gpu, and the job takes half as long again there."""
    cluster = racks(2, 2, gpu=(2,))
    schedule = run([(0, 2, 20, None, "attribute:gpu")], cluster=cluster)
    assert attempts(schedule) == {"a": [(10.0, 40.0)]}
    assert schedule.jobs["placement"].to_list() == ["n11:1,n12:1"]


def test_reservations_are_for_the_slow_nodes():
    """Rule 5: 20 s with a gpu are 30 s without: reserved from 70 on, and done in time."""
    cluster = racks(2, 2, gpu=(2,))
    schedule = run([(0, 2, 20, 100.0, "attribute:gpu")], cluster=cluster)
    assert attempts(schedule) == {"a": [(70.0, 100.0)]}


@pytest.mark.parametrize(("runtime", "answer"), [(10, True), (80, False)], ids=["early", "late"])
def test_what_ends_early_gives_back_its_reservation(runtime, answer):
    """Rule 6: b asks at 35 for what a was promised until 100; a ends at 30, or does not."""
    schedule = run([(0, 4, runtime, 100.0), (35, 4, 40, 90.0)], estimates=[80, 40])
    assert accepted(schedule) == {"a": True, "b": answer}


def test_a_lost_attempt_keeps_its_reservation():
    """Its node is gone at 50: b is at once given that of a, for whom nothing is reserved."""
    cluster = racks(1, 1)
    jobs = [(0, 1, 500, None), (0, 1, 20, 100.0)]
    schedule = run(jobs, [500, 60], cluster=cluster, outages=(Outage("n21", 50.0, 300.0),))
    assert attempts(schedule)["b"] == [(40.0, 50.0), (50.0, 70.0)]


def drawn(seed, jobs=60):
    """Jobs of four cpus at the most, half of them with deadlines."""
    draw = random.Random(seed)
    rows, submit = [], 0
    for _ in range(jobs):
        submit += draw.choice([0, 3, 10, 25])
        ran = draw.randint(1, 80)
        deadline = submit + draw.choice([1.2, 2.0, 4.0]) * ran if draw.random() < 0.5 else None
        rows.append((submit, draw.randint(1, 4), ran, deadline))
    return rows


def most_in_use(jobs):
    """Most cpus in use at any time; at equal times ends come first."""
    changes = [
        change
        for start, end, cpus in jobs.select("start_seconds", "end_seconds", "cpus").iter_rows()
        if end > start
        for change in ((start, 1, cpus), (end, 0, -cpus))
    ]
    return max(np.cumsum([cpus for _, _, cpus in sorted(changes)]))


@pytest.mark.parametrize("cycle", [CYCLE, None], ids=["cycles", "events"])
@pytest.mark.parametrize("error", [0.5, 1.0, 2.0], ids=["under", "exact", "over"])
@pytest.mark.parametrize("alignment", ["latest", "earliest"])
def test_promises_are_kept_unless_estimates_were_too_short(alignment, error, cycle):
    """All jobs end, on no more cpus than there are; who was promised nodes is done in time."""
    kept, rejected = 0, 0
    for seed in range(8):
        jobs = drawn(seed)
        text = f"capacity(reservations={alignment},cycle_seconds=10)"
        schedule = run(jobs, [error * each[2] for each in jobs], policy=text, cycle=cycle)
        assert most_in_use(schedule.jobs) <= 4
        done = schedule.jobs.filter(ended_because="completed")
        assert done.height == len(jobs)
        assert schedule.meta.counters["refusals"] == 0
        promised = done.filter(accepted=True)
        rejected += done.filter(accepted=False).height
        kept += promised.height
        if error >= 1.0:
            assert (promised["end_seconds"] <= promised["deadline_seconds"]).all()
    assert kept > 20
    assert rejected > 20


def test_who_waits_for_a_reservation_is_planned():
    """The plan is the reservations to come, the next one first; the queue has none."""
    asked = [job(name, 1, deadline=90.0) for name in ("late", "soon")]
    late, soon, queued = waiting(*((each, 10.0) for each in asked), (job("wide", 5), 10.0))
    late = replace(late, reservation=Reservation("late", 80.0, 90.0, 1))
    soon = replace(soon, reservation=Reservation("soon", 60.0, 70.0, 1))
    view = view_of(racks(4), (late, soon, queued), now=20.0)
    decision = built("capacity").decide(view)
    assert [(each.job_id, each.start_seconds) for each in decision.plan] == [
        ("soon", 60.0),
        ("late", 80.0),
    ]
    codes = {job_id: reason.code.value for job_id, reason in decision.reasons.items()}
    assert codes == {"late": "reserved", "soon": "reserved", "wide": "no_room"}
    assert decision.starts == ()


@pytest.mark.parametrize("setting", ["reservations=off", "cycle_seconds=0"])
def test_capacity_parameters_out_of_range(setting):
    """Refused when the policy is built."""
    with pytest.raises(ForesailError):
        parse_policy(f"capacity({setting})").build()


@pytest.mark.parametrize(
    "name", ["tetrisched", "tetrisched-nh", "tetrisched-ng", "tetrisched-np", "rayon-cs"]
)
def test_who_asks_for_reservations(name):
    """TetriSched, its ablations and the capacity stack answer alike; 3Sigma answers nobody."""
    cluster = racks(2)
    asked = waiting((job("a", 2, deadline=20.0), 10.0), (job("b", 1, deadline=20.0), 12.0))
    scheduler = parse_policy(name).scheduler.build()
    assert scheduler.takes_reservations
    assert scheduler.reserve(asked[0], 0.0, 0.0, cluster) == Reservation("a", 8.0, 20.0, 2)
    assert isinstance(scheduler.reserve(asked[1], 0.0, 0.0, cluster), Rejection)
    scheduler.release("a", 1.0)
    assert scheduler.reserve(asked[1], 1.0, 1.0, cluster) == Reservation("b", 8.0, 20.0, 1)
    assert built("3sigma").reserve(asked[0], 0.0, 0.0, cluster) is None


def test_values_by_what_was_promised():
    """H12: 1000, 25 and 1; all of a deadline's worth until then and nothing after."""
    late = job("late", 1, deadline=100.0)
    slo, vain, patient = waiting((late, 10.0), (late, 10.0), (job("be", 1), 10.0))
    slo = replace(slo, reservation=Reservation("late", 80.0, 100.0, 1))
    vain = replace(vain, reservation=Rejection("none are free"))
    parameters = TetriSchedParameters(best_effort_horizon_seconds=200.0)
    falls = [utility_decay(each, parameters) for each in (slo, vain, patient)]
    assert [fall.full for fall in falls] == [1000.0, 25.0, 1.0]
    assert [fall.begin_seconds for fall in falls] == [100.0, 100.0, 0.0]
    assert [fall.end_seconds for fall in falls] == [100.0, 100.0, 200.0]
    assert PlanAheadParameters().reservations == "off"


@pytest.mark.parametrize("placing", ["globally", "in_order"])
def test_three_classes_in_order(placing):
    """One node: who was promised it, then who was not, then who never asked; whoever came first."""
    asked = [job(name, 1, deadline=deadline) for name, deadline in (("vain", 16.0), ("slo", 8.0))]
    patient, vain, slo = waiting((job("be", 1), 8.0), *((each, 8.0) for each in asked))
    vain = replace(vain, reservation=Rejection("none are free"))
    slo = replace(slo, reservation=Reservation("slo", 0.0, 8.0, 1))
    view = view_of(racks(1), (patient, vain, slo))
    starts, _ = outcome(built(f"tetrisched(placing={placing},relative_gap=0)"), view)
    assert starts == {"slo": 0.0, "vain": 8.0, "be": 16.0}


def answers(jobs, cluster):
    """What a stack answers to jobs of ten seconds that come one after the other, by name."""
    stack = built("capacity(reservations=earliest,cycle_seconds=10)")
    asking = waiting(*((each, 10.0) for each in jobs))
    return {each.job.job_id: stack.reserve(each, 0.0, 0.0, cluster) for each in asking}


@pytest.mark.parametrize(("memory", "gpus"), [(12, 0), (0, 2), (12, 2)])
def test_promises_fit_in_memory_and_gpus(memory, gpus):
    """Cpus would do for both at once; of memory and gpus the first has more than half."""
    cluster = nodes(a=(8, 20, 3))
    wide = Resources(1.0, float(memory), float(gpus))
    told = answers([job(name, 1, 0.0, 20.0, request=wide) for name in "abc"], cluster)
    assert [(told[name].start_seconds, told[name].end_seconds) for name in "ab"] == [
        (0.0, 10.0),
        (10.0, 20.0),
    ]
    assert isinstance(told["c"], Rejection)
    light = Resources(1.0, float(memory) / 3, 0.0)
    told = answers([job(name, 1, 0.0, 10.0, request=light) for name in "abc"], cluster)
    assert all(isinstance(each, Reservation) for each in told.values())


def test_nothing_is_promised_before_what_a_job_waits_for_is_to_end():
    """It begins when that ends; the next would be too late, and one is never known to end."""
    stack = built("capacity(reservations=earliest,cycle_seconds=10)")
    (asked,) = waiting((job("a", 1, 0.0, 40.0), 10.0))
    cluster = nodes(a=(8, 0, 0))
    assert stack.reserve(asked, 12.0, 0.0, cluster).start_seconds == 20.0
    late = Rejection("its deadline comes before jobs that it waits for are to end")
    assert stack.reserve(asked, 40.0, 0.0, cluster) == late
    unknown = Rejection("nothing is known of the runtime of a job that it waits for")
    assert stack.reserve(asked, math.inf, 0.0, cluster) == unknown
