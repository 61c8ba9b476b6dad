"""Generated workloads with tasks and stages: engine and replay give the same schedule."""

import pytest
from polars.testing import assert_frame_equal

from foresail.control.policy import parse_policy
from foresail.simulator.replay import replay
from foresail.traces.generating import generate
from foresail_studies.generators.slearn import SLearnDagParameters, SLearnTracesParameters
from made_scenarios import simulate_by_events

GENERATED = {
    "slearn": SLearnTracesParameters(jobs=60),
    "slearn_dag": SLearnDagParameters(dags=60),
}


@pytest.mark.parametrize("name", GENERATED)
def test_engine_and_replay_agree(name):
    """A job of several stages holds its widest one, in the table as in its specification."""
    workload = generate(name, GENERATED[name], 1)
    policy = parse_policy("easy,recent,incremental")
    by_events = simulate_by_events(workload, policy)
    compiled = replay(workload, policy).jobs
    assert_frame_equal(by_events.jobs, compiled, rel_tol=1e-9)
    assert by_events.meta.counters["refusals"] == 0
