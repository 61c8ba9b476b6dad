"""The simulated cluster with nodes: preferences, preemption, outages, cycles, delays and noise."""

import random
from collections import defaultdict
from itertools import pairwise

import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.model.errors import InputError
from foresail.simulator.simulate import simulate_on_nodes
from foresail.simulator.surroundings import Outage, Surroundings, random_outages
from foresail.traces import schema
from foresail.traces.nodes import cluster_of
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

PRIO = parse_policy("prio,requested,doubling")


def nodes(racks=2, of=2, gpu_racks=()):
    """Nodes of one cpu in racks r1, r2, ...; those of some racks have a gpu."""
    rows = [
        {
            "node": f"n{rack}{number}",
            "partition": f"r{rack}",
            "count": 1,
            "cpus": 1.0,
            "gpus": 1.0 if rack in gpu_racks else 0.0,
        }
        for rack in range(1, racks + 1)
        for number in range(1, of + 1)
    ]
    return pl.DataFrame(rows, schema=schema.NODES)


def workload(jobs, table=None):
    """Jobs as dictionaries; ``tasks``, ``runtime_seconds`` and ``submit_seconds`` have defaults."""
    rows = [
        {
            "job_id": name,
            "submit_seconds": 0.0,
            "runtime_seconds": 10.0,
            "tasks": 1,
            "requested_seconds": 1000.0,
            "user": "ann",
            "deadline_seconds": None,
            "preferred": None,
            "slowdown_elsewhere": None,
            **fields,
        }
        for name, fields in jobs.items()
    ]
    kinds = {name: kind for name, kind in schema.JOBS.items() if name in rows[0]}
    given = pl.DataFrame(rows, schema=kinds).to_dict(as_series=True)
    table = nodes() if table is None else table
    return Workload(jobs_table(given), WorkloadMeta("made", "hand", table.height), table)


def spans(schedule):
    """Start and end of every attempt, by job and in order."""
    by_job = defaultdict(list)
    for row in schedule.jobs.iter_rows(named=True):
        by_job[row["job_id"]].append((row["start_seconds"], row["end_seconds"]))
    return dict(by_job)


def test_a_job_elsewhere_than_preferred_runs_longer():
    """The first gang takes the preferred rack; the second cannot and is slower in the other."""
    likes = {"tasks": 2, "preferred": "partition:r1", "slowdown_elsewhere": 1.5}
    schedule = simulate_on_nodes(workload({"a": likes, "b": likes}), PRIO)
    assert spans(schedule) == {"a": [(0, 10)], "b": [(0, 15)]}
    assert schedule.jobs["placement"].to_list() == ["n11:1,n12:1", "n21:1,n22:1"]


@pytest.mark.parametrize(
    ("preferred", "placed", "seconds"),
    [
        ("attribute:gpu", "n21:1,n22:1", 10),
        ("same:rack", "n11:1,n12:1", 10),
        ("spread:rack", "n11:1,n21:1", 10),
        ("partition:r3", "n11:1,n12:1", 30),
        (None, "n11:1,n12:1", 10),
    ],
)
def test_every_kind_of_preference(preferred, placed, seconds):
    """Each is given where it can be; where it cannot, the job is slower."""
    job = {"tasks": 2, "preferred": preferred, "slowdown_elsewhere": 3.0}
    schedule = simulate_on_nodes(workload({"a": job}, nodes(gpu_racks=(2,))), PRIO)
    row = schedule.jobs.row(0, named=True)
    assert row["placement"] == placed
    assert row["end_seconds"] == seconds


@pytest.mark.parametrize("cycle", [None, 2.0])
def test_a_job_with_a_deadline_stops_the_youngest_without(cycle):
    """Work is lost, the victim starts anew later, and the other keeps running."""
    made = workload(
        {
            "old": {"runtime_seconds": 100.0},
            "young": {"submit_seconds": 2.0, "runtime_seconds": 50.0, "tasks": 2},
            "urgent": {"submit_seconds": 10.0, "tasks": 3, "deadline_seconds": 30.0},
        }
    )
    schedule = simulate_on_nodes(made, PRIO, Surroundings(cycle_seconds=cycle))
    first = 0.0 if cycle is None else cycle
    assert spans(schedule) == {
        "old": [(first, first + 100)],
        "young": [(2, 10), (20, 70)],
        "urgent": [(10, 20)],
    }
    because = schedule.jobs.filter(pl.col("job_id") == "young")["ended_because"].to_list()
    assert because == ["preempted", "completed"]


def test_what_runs_on_a_node_that_goes_down_is_lost_and_run_again():
    """The gang restarts on other nodes; nothing is placed on the node until it is back."""
    made = workload({"a": {"tasks": 2}, "b": {"submit_seconds": 6.0, "tasks": 3}})
    surroundings = Surroundings(outages=(Outage("n11", 5.0, 40.0),))
    schedule = simulate_on_nodes(made, PRIO, surroundings)
    assert spans(schedule) == {"a": [(0, 5), (5, 15)], "b": [(15, 25)]}
    wide = workload({"a": {"tasks": 4, "submit_seconds": 7.0}})
    assert spans(simulate_on_nodes(wide, PRIO, surroundings)) == {"a": [(40, 50)]}


def random_workload(seed, jobs=80):
    draw = random.Random(seed)
    submit, made = 0.0, {}
    for number in range(jobs):
        submit += draw.choice([0.0, 1.0, 7.5])
        kind = draw.choice([None, "partition:r1,r2", "same:rack", "spread:rack", "attribute:gpu"])
        runtime = draw.choice([0.0, 3.0, 20.0, 55.5])
        made[f"j{number}"] = {
            "submit_seconds": submit,
            "runtime_seconds": runtime,
            "tasks": draw.randint(1, 9),
            "deadline_seconds": submit + 60.0 if draw.random() < 0.4 else None,
            "preferred": kind,
            "slowdown_elsewhere": 1.5 if kind else None,
        }
    return workload(made, nodes(racks=3, of=3, gpu_racks=(3,)))


@pytest.mark.parametrize("cycle", [None, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_node_is_double_booked_and_no_job_is_lost(seed, cycle):
    """Under outages, noise and delays: every job completes once, gangs whole, nodes used once."""
    made = random_workload(seed)
    outages = random_outages(cluster_of(made.nodes), 400.0, 150.0, 30.0, seed)
    surroundings = Surroundings(cycle, 0.5, 0.3, outages, seed)
    schedule = simulate_on_nodes(made, PRIO, surroundings)
    jobs = schedule.jobs
    assert jobs.filter(pl.col("ended_because") == "completed").height == len(made)
    assert schedule.meta.counters["refusals"] == 0
    busy = defaultdict(list)
    tasks = dict(zip(made.jobs["job_id"], made.jobs["tasks"], strict=True))
    for row in jobs.iter_rows(named=True):
        places = [place.split(":")[0] for place in row["placement"].split(",")]
        assert len(places) == tasks[row["job_id"]]
        for place in places:
            busy[place].append((row["start_seconds"], row["end_seconds"]))
    for outage in outages:
        busy[outage.node].append((outage.down_seconds, outage.up_seconds))
    for times in busy.values():
        ordered = sorted(span for span in times if span[0] < span[1])
        for before, after in pairwise(ordered):
            assert before[1] <= after[0]
    if cycle is not None:
        assert (jobs["start_seconds"] % cycle == 0).all()
    again = simulate_on_nodes(made, PRIO, surroundings)
    assert again.jobs.equals(jobs)


def test_noise_is_the_same_under_every_policy():
    """An attempt's delay and noise depend on its job alone, and have the stated mean."""
    noisy = Surroundings(start_delay_seconds=2.0, runtime_noise=0.5, seed=3)
    held = [noisy.seconds_held(f"j{number}", 1, 10.0) for number in range(4000)]
    assert sum(held) / len(held) == pytest.approx(12.0, rel=0.03)
    assert held[7] == Surroundings(None, 2.0, 0.5, (), 3).seconds_held("j7", 1, 10.0)
    assert held[7] != noisy.seconds_held("j7", 2, 10.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Surroundings(cycle_seconds=0.0), "cycle_seconds"),
        (lambda: Surroundings(runtime_noise=-1.0), "runtime_noise"),
        (lambda: Surroundings(outages=(Outage("n11", 5.0, 5.0),)), "outages"),
        (
            lambda: simulate_on_nodes(
                workload({"a": {}}), PRIO, Surroundings(outages=(Outage("n99", 5.0, 6.0),))
            ),
            "no such node",
        ),
        (lambda: simulate_on_nodes(workload({"a": {"preferred": "near"}}), PRIO), "preferred"),
        (lambda: cluster_of(nodes().with_columns(cpus=pl.lit(0.0))), "without cpus"),
        (lambda: cluster_of(pl.concat([nodes(), nodes()])), "same name"),
        (lambda: cluster_of(nodes().head(0)), "no nodes"),
    ],
)
def test_bad_input(make, words):
    """Each is refused with what was expected."""
    with pytest.raises(InputError, match=words):
        make()
