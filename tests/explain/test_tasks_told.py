"""The story of a job of many tasks: its pilots, what they told, and what came of it."""

from __future__ import annotations

import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.explain.story import story
from foresail.record.log_text import read_log
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces import schema
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table


@pytest.fixture
def told(tmp_path):
    """What is told of a job of tasks with these runtimes, on some slots, as sentences."""

    def tell(runtimes, slots=2, policy="slearn(pilot_percent=10)"):
        jobs = jobs_table(
            {
                "job_id": ["a"],
                "submit_seconds": [0.0],
                "runtime_seconds": [max(runtimes)],
                "tasks": [len(runtimes)],
            }
        )
        rows = [("a", "main", None, task, run, 1.0, None) for task, run in enumerate(runtimes)]
        tasks = pl.DataFrame(rows, schema=schema.TASKS, orient="row")
        workload = Workload(jobs, WorkloadMeta("made", "hand", slots), None, tasks)
        log = tmp_path / "events.jsonl"
        run_scenario(Scenario(workload, parse_policy(policy), event_log=log))
        return [f"{each.when}: {each.sentence}" for each in story(read_log(log), "a").lines]

    return tell


def test_a_pilot_tells_of_the_others(told):
    """One of four tasks is drawn; all four are told of, and at last how near the pilot was."""
    lines = told([10.0] * 4, slots=1, policy="slearn")
    lines = [line for line in lines if "Pending" not in line]
    assert "1 task of 4, drawn at random, says how long the others take: " in lines[2]
    assert lines[2].endswith("of stage main, from queue 2.")
    assert ", a pilot: started after 0 s of waiting" in lines[3]
    assert ", pilot 1 of 1: ended (completed) after running for 10 s." in lines[4]
    assert lines[5] == (
        "10 s: The pilot took 10 s. 4 tasks should take 10 s each, 40 s in all; those that "
        "have not started wait in queue 1."
    )
    assert lines[-1].endswith("All tasks took 40 s; the pilots had predicted as much.")


def test_many_tasks_are_told_of_by_their_number(told):
    """Thirty tasks: three pilots one by one, the others as they start together, and by quarters."""
    lines = told([10.0] * 30, slots=40)
    assert "0 s: Tasks started: 27 of stage main." in lines
    assert sum(", a pilot: " in line for line in lines) == 3
    assert "10 s: 30 of 30 tasks have ended, after 10 s on average." in lines
    assert lines[-1] == (
        "10 s: The pilots took 10 s, 10 s, 10 s. 30 tasks should take 10 s each, 5 min in "
        "all. All tasks took 5 min; the pilots had predicted as much."
    )
    assert len(lines) < 16


def test_tasks_that_start_one_by_one_are_one_line(told):
    """It says when the last of them started."""
    lines = told([10.0] * 20, slots=2, policy="task_fifo")
    starts = [line for line in lines if "Tasks started" in line]
    assert starts[0].startswith("0 s: Tasks started: ")
    assert len(starts) < 8
    assert any(", the last at " in line for line in starts)


def test_pilots_that_err_are_told_to_have_erred(told):
    """Nine tasks of a second and one of 41 s: no pilot tells 5 s a task, the mean."""
    lines = told([1.0] * 9 + [41.0], slots=10)
    assert any(
        line.endswith(f"the pilots had predicted {off}.")
        for line in lines
        for off in ("80 % less", "720 % more")
    )


def test_few_tasks_are_not_sampled(told):
    """Two tasks go to the first queue."""
    assert "0 s: Has too few tasks to sample some: they wait in queue 1." in told([5.0, 6.0])
