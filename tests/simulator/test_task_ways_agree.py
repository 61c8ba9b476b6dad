"""One policy, two callers: the replay of tasks and the event engine give the same schedule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.control.policy import parse_policy
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces.workload import Workload
from test_task_replay import GOLDEN, Jobs, deadlines_of, jobs_in_order, workload_of

RULES = "queues=4,first_threshold_seconds=10"
POLICIES = (
    "task_fifo",
    f"las({RULES})",
    f"slearn({RULES})",
    f"slearn({RULES},trials=2,pilot_percent=none)",
    f"slearn({RULES},pilot_percent=34)",
    "task_edf",
    f"slearn({RULES},deadlines=by_odds)",
    f"slearn({RULES},pilot_percent=50)",
)


def starts(workload: Workload, policy: str, engine: str) -> list[tuple[Any, ...]]:
    scenario = Scenario(workload, parse_policy(policy), engine=engine)
    rows = run_scenario(scenario).jobs.select("job_id", "stage", "tasks", "start_seconds")
    return sorted(rows.iter_rows())


@pytest.mark.parametrize("policy", POLICIES)
def test_the_golden_jobs(policy: str) -> None:
    """Three jobs on two slots."""
    workload = workload_of(GOLDEN, 2)
    assert starts(workload, policy, "task-replay") == starts(workload, policy, "event-engine")


@settings(max_examples=100, deadline=None)
@given(
    jobs=jobs_in_order(),
    slots=st.integers(1, 5),
    policy=st.sampled_from(POLICIES),
    data=st.data(),
)
def test_any_jobs(jobs: Jobs, slots: int, policy: str, data: st.DataObject) -> None:
    """Stages, ties, deadlines, tasks without a runtime: the same, task by task."""
    workload = workload_of(jobs, slots, deadlines=data.draw(deadlines_of(jobs)))
    assert starts(workload, policy, "task-replay") == starts(workload, policy, "event-engine")


@settings(max_examples=100, deadline=None)
@given(
    jobs=jobs_in_order(),
    speeds=st.lists(st.sampled_from([0.3, 0.5, 1.0, 1.7, 3.0]), min_size=1, max_size=5),
    policy=st.sampled_from(POLICIES),
    data=st.data(),
)
def test_any_speeds(jobs: Jobs, speeds: list[float], policy: str, data: st.DataObject) -> None:
    """Slots that differ, as pools of the event engine, too."""
    deadlines = data.draw(deadlines_of(jobs))
    workload = workload_of(jobs, len(speeds), deadlines=deadlines, speeds=speeds)
    assert starts(workload, policy, "task-replay") == starts(workload, policy, "event-engine")
