"""The event engine and the compiled replay give the same schedule, job by job."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.model.event import PREDICTSIM, STANDARD
from foresail.simulator.engine import simulate_events
from foresail.simulator.replay import replay
from foresail.traces.reading import read
from made_scenarios import simulate_by_events
from made_workloads import busy_workload
from shared import shared
from toys import Doubling, Easy, Oracle, Requested

POLICIES = [
    "fcfs",
    "easy",
    "easy,clairvoyant",
    "easy(order=shortest),recent,incremental",
    "easy(order=shortest),regression,incremental",
    "easy(plan=q75),quantile_regression,doubling",
    "easy(reservations=3),recent,doubling",
    "conservative,recent,doubling",
    "saf,clairvoyant",
    "easy(queue=smallest_area,age_limit_seconds=200),recent,requested",
]


@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM], ids=lambda each: each.name)
@pytest.mark.parametrize("text", POLICIES)
def test_engine_and_replay_agree_in_every_column(text, conventions):
    """Starts, corrections, beliefs, who overtook: all columns of the schedule are equal."""
    policy = parse_policy(text)
    for seed in range(3):
        workload = busy_workload(seed)
        by_events = simulate_by_events(workload, policy, conventions)
        compiled = replay(workload, policy, conventions)
        for column in compiled.jobs.columns:
            differ = by_events.jobs[column].ne_missing(compiled.jobs[column])
            assert not differ.any(), (column, by_events.jobs.filter(differ).head(3))
        assert by_events.meta.counters["passes"] == compiled.meta.counters["passes"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("predictor", "column"), [(Requested, "wait_easy"), (Oracle, "wait_easy_clairvoyant")]
)
def test_the_published_waits_by_the_plainest_road(predictor, column):
    """KTH-SP2 through engine, loop and a textbook EASY: every wait of the published study."""
    folder = "traces/predictsim-sc15"
    workload = read(shared(f"{folder}/KTH-SP2.filtered.swf.gz"), processors=100)
    waits = pl.read_csv(shared(f"{folder}/KTH-SP2.oracle-waits.csv.gz"))
    controller = Controller(Cluster.of_processors(100), Easy(), predictor(), Doubling(), PREDICTSIM)
    jobs = simulate_events(workload, controller, "easy").jobs
    ours = (jobs["start_seconds"] - jobs["submit_seconds"]).to_numpy()
    published = waits[column].to_numpy()
    assert np.count_nonzero(ours != published) == 0


@pytest.mark.parametrize("text", ["priority,requested", "easy,perturbed"])
def test_a_policy_without_compiled_steps_is_not_replayed(text):
    """Whichever of its parts it is."""
    with pytest.raises(InputError, match="no compiled steps"):
        replay(busy_workload(1), parse_policy(text))
