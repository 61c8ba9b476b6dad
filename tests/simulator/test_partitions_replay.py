"""The compiled replay of partitions against the event engine, job by job."""

import random
from dataclasses import replace

import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.scenario.engines import COMPILED_REPLAY, EVENT_ENGINE, engine_of
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

PROCESSORS = {"A": 5, "B": 5, "C": 3}
SAME = [
    *("job_id", "start_seconds", "end_seconds", "cpus", "placement", "partition"),
    *("predicted_seconds", "corrections", "ended_because", "backfilled"),
]
POLICIES = (
    "easy",
    "fcfs",
    "conservative",
    "easy++",
    "easy(reservations=3),recent",
    "easy(queue=-(wait+1)/predicted),history",
    "conservative,quantile_regression,doubling",
    "easy(age_limit_seconds=30),regression",
    "easy-sjbf",
    "easy,clairvoyant",
)


def log(seed, jobs=60, names="ABCB"):
    """Many of the same second, of no length, and that run longer than a user's earlier ones."""
    draw, submit, rows = random.Random(seed), 0.0, []
    for number in range(jobs):
        submit += draw.choice([0.0, 0.0, 1.0, 3.0, 8.0])
        partition, runtime = draw.choice(names), draw.choice([0.0, 1.0, 5.0, 20.0, 20.0, 50.0])
        rows.append(
            {
                "job_id": str(number),
                "submit_seconds": submit,
                "runtime_seconds": runtime,
                "requested_seconds": max(runtime + draw.choice([0.0, 0.0, 5.0, 30.0]), 1.0),
                "tasks": draw.randint(1, min(PROCESSORS[partition], 5)),
                "partition": partition,
                "user": f"u{draw.randint(0, 2)}",
            }
        )
    table = jobs_table(pl.DataFrame(rows).to_dict(as_series=True))
    return Workload(table, WorkloadMeta("made", "hand", 13), partitions=PROCESSORS)


@pytest.mark.parametrize("policy", POLICIES)
def test_both_engines_agree(policy):
    """In every job: where and when it runs, and what was believed of it."""
    for seed in range(4):
        scenario = Scenario(log(seed), parse_policy(policy), enforce_limits=seed == 3)
        assert engine_of(scenario) is COMPILED_REPLAY
        compiled = run_scenario(scenario)
        by_events = run_scenario(replace(scenario, engine=EVENT_ENGINE.name))
        assert compiled.jobs.select(SAME).equals(by_events.jobs.select(SAME)), seed
        assert compiled.meta.partitions == by_events.meta.partitions == PROCESSORS
        assert compiled.meta.counters["corrections"] == by_events.meta.counters["corrections"]


@pytest.mark.parametrize("policy", ["easy", "conservative", "easy(queue=-(wait+1)/predicted)"])
@pytest.mark.parametrize("engine", [COMPILED_REPLAY.name, EVENT_ENGINE.name])
def test_a_partition_alone(policy, engine):
    """Its jobs start as they do on a machine of its own that has no others."""
    every = log(5)
    made = run_scenario(Scenario(every, parse_policy(policy), engine=engine)).jobs
    for name, processors in PROCESSORS.items():
        mine = every.with_jobs(every.jobs.filter(pl.col("partition") == name))
        own = replace(mine.with_meta(processors=processors), partitions={})
        alone = run_scenario(Scenario(own, parse_policy(policy), engine=engine)).jobs
        start = made.filter(pl.col("partition") == name)["start_seconds"]
        assert start.equals(alone["start_seconds"]), name
