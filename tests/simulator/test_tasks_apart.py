"""Jobs whose stages and tasks start apart: schedules by hand, failures, losses, metrics."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.metrics.jobs import per_job, whole_jobs
from foresail.metrics.summary import summary
from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import Placement, Start
from foresail.model.errors import InputError
from foresail.model.event import Ended, EndedBecause, Outcome, Part, Submitted
from foresail.model.job import Stage
from foresail.record.job_life import ImpossibleTransition, JobState
from foresail.scenario.engines import EVENT_ENGINE, TASK_REPLAY, engine_of
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions, Outage
from foresail.simulator.driver import simulate_forward
from foresail.simulator.engine import simulate_events
from foresail.traces import schema
from foresail.traces.schedule import read_schedule, write_schedule
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from made_moments import racks
from toys import Constant, Doubling

MAPS = [4.0, 6.0, 3.0]
REDUCES = [5.0, 2.0]


def workload(processors=2, maps=MAPS, requested=50.0):
    """A job of three maps and two reduces, and a job of two cpus behind it."""
    jobs = jobs_table(
        {
            "job_id": ["dag", "gang"],
            "submit_seconds": [0.0, 1.0],
            "tasks": [3, 2],
            "runtime_seconds": [11.0, 7.0],
            "requested_seconds": [requested, 20.0],
            "user": ["ann", "bob"],
        }
    )
    rows = [("map", None, task, seconds) for task, seconds in enumerate(maps)]
    rows += [("reduce", "map", task, seconds) for task, seconds in enumerate(REDUCES)]
    tasks = pl.DataFrame(
        [("dag", *row, None, None) for row in rows], schema=schema.TASKS, orient="row"
    )
    return Workload(jobs, WorkloadMeta("hand", "hand", processors), tasks=tasks)


def scenario(**changes):
    """In the event engine: the replay of tasks knows no gangs."""
    usual = {"workload": workload(), "policy": parse_policy("task_fifo"), "engine": "event-engine"}
    return Scenario(**{**usual, **changes})


def rows_of(schedule, *columns):
    names = columns or ("job_id", "stage", "tasks", "start_seconds", "end_seconds")
    return (
        schedule.jobs.sort("start_seconds", "end_seconds", maintain_order=True).select(names).rows()
    )


def test_tasks_start_as_places_become_free():
    """Two maps at once, the third behind the first; the gang overtakes none of them."""
    schedule = run_scenario(scenario())
    assert rows_of(schedule) == [
        ("dag", "map", "0", 0.0, 4.0),
        ("dag", "map", "1", 0.0, 6.0),
        ("dag", "map", "2", 4.0, 7.0),
        ("dag", "reduce", "1", 7.0, 9.0),
        ("dag", "reduce", "0", 7.0, 12.0),
        ("gang", None, None, 12.0, 19.0),
    ]
    assert schedule.jobs["cpus"].to_list() == [1.0] * 5 + [2.0]


def test_any_other_scheduler_starts_the_job_as_a_whole():
    """With all of it at once, as long as there were no parts; its width is that of its maps."""
    schedule = run_scenario(scenario(workload=workload(3), policy=parse_policy("easy")))
    assert schedule.jobs.columns == list(schema.SCHEDULE)
    columns = ("job_id", "start_seconds", "end_seconds", "cpus")
    assert rows_of(schedule, *columns) == [("dag", 0.0, 11.0, 3.0), ("gang", 11.0, 18.0, 2.0)]


def test_a_job_counts_once():
    """It waits until its first task starts, and ends with its last; work is what its tasks held."""
    schedule = run_scenario(scenario())
    job, gang = per_job(schedule).iter_rows(named=True)
    assert (job["wait_seconds"], job["runtime_seconds"], job["attempt"]) == (0.0, 12.0, 1)
    assert job["cpus"] * 12.0 == pytest.approx(sum(MAPS) + sum(REDUCES))
    assert (gang["wait_seconds"], gang["runtime_seconds"]) == (11.0, 7.0)
    found = summary(schedule)
    assert (found.jobs, found.best_effort_completed) == (2, 2)
    assert found.utilization == pytest.approx((20.0 + 14.0) / (2 * 19.0))
    assert found.goodput_hours == pytest.approx(34.0 / 3600.0)


def test_a_schedule_in_parts_is_read_back(tmp_path):
    """With its further columns."""
    schedule = run_scenario(scenario())
    write_schedule(schedule, tmp_path / "schedule.parquet")
    read = read_schedule(tmp_path / "schedule.parquet")
    assert read.jobs.equals(schedule.jobs)
    assert per_job(read).equals(per_job(schedule))


def test_a_job_wider_than_the_machine_runs_in_parts():
    """Three maps on one processor, one after the other; as a gang they are refused."""
    narrow = scenario(workload=workload(1).with_jobs(workload(1).jobs.head(1)))
    assert [row[3] for row in rows_of(run_scenario(narrow))] == [0.0, 4.0, 10.0, 13.0, 18.0]
    with pytest.raises(InputError, match="cannot be replayed"):
        run_scenario(replace(narrow, policy=parse_policy("easy")))


def test_a_task_that_fails_ends_the_job():
    """One map exceeds the limit at 5 s: what runs is stopped then, and nothing more starts."""
    limited = scenario(workload=workload(requested=5.0), enforce_limits=True)
    schedule = run_scenario(limited)
    columns = ("job_id", "tasks", "start_seconds", "end_seconds", "ended_because")
    assert rows_of(schedule, *columns) == [
        ("dag", "0", 0.0, 4.0, "completed"),
        ("dag", "1", 0.0, 5.0, "limit"),
        ("dag", "2", 4.0, 5.0, "preempted"),
        ("gang", None, 5.0, 12.0, "completed"),
    ]
    assert whole_jobs(schedule)["ended_because"].to_list() == ["limit", "completed"]


def test_a_lost_task_runs_again():
    """The one that ran on the node, as its second attempt; the other runs on."""
    down = ClusterConditions(outages=(Outage("rack1-1", 2.0, 3.0),))
    schedule = run_scenario(scenario(place=racks(1, 2), conditions=down))
    columns = ("stage", "tasks", "attempt", "ended_because", "start_seconds", "placement")
    lost = [row for row in rows_of(schedule, *columns) if row[3] == "lost"]
    again = [row for row in rows_of(schedule, *columns) if row[2] == 2]
    assert len(lost) == 1
    assert [row[:2] for row in again] == [lost[0][:2]]
    assert per_job(schedule)["job_id"].to_list() == ["dag", "gang"]
    assert set(whole_jobs(schedule)["ended_because"]) == {"completed"}


def test_the_replay_of_gangs_cannot_do_tasks():
    """By name of what is lacking, where it is asked for; the others can."""
    assert engine_of(scenario()) is EVENT_ENGINE
    assert engine_of(scenario(engine=None)) is TASK_REPLAY
    with pytest.raises(InputError, match="tasks that start apart"):
        engine_of(scenario(engine="compiled-replay"))


def test_a_task_of_unknown_runtime_is_refused():
    """Before anything runs."""
    with pytest.raises(InputError, match=r"1 tasks cannot be replayed.*job 'dag'"):
        run_scenario(scenario(workload=workload(maps=[4.0, None, 3.0])))


def lone(policy="task_fifo", predictor=None):
    """A controller on two processors, before its first step."""
    scheduler, _, correction = parse_policy(policy).build()
    return Controller(Cluster.of_processors(2), scheduler, predictor or Constant(9.0), correction)


def begun():
    """A controller two of whose job's maps run, of which one has just ended."""
    controller = lone()
    job = next(workload().specifications())
    controller.step(0.0, [Submitted(0.0, job)])
    controller.step(4.0, [Ended(4.0, Outcome("dag", 0.0, 4.0, stage="map", tasks=(0,)))])
    return controller


def test_what_runs_and_waits_of_a_job_is_shown():
    """By unit what runs; as what may start what waits; nothing of it once all of a stage runs."""
    controller = begun()
    assert list(controller.running) == [Part("dag", "map", (1,)), Part("dag", "map", (2,))]
    assert controller.pending == ()
    assert controller.state.stage_of("dag") is JobState.RUNNING
    (down,) = controller.step(5.0, [Ended(5.0, lost(1))])[:1]
    assert down == Start("dag", Placement.whole("all", 1), 2, "map", (1,))
    controller.drain()
    controller.step(6.0, [Ended(6.0, lost(1, attempt=2))])
    (pending,) = controller.pending
    assert [(each.stage.name, list(each.tasks)) for each in pending.startable] == [("map", [1])]


def lost(task, attempt=1):
    because = EndedBecause.LOST
    return Outcome("dag", 0.0, 5.0, because, attempt=attempt, stage="map", tasks=(task,))


def test_an_end_of_what_does_not_run_is_impossible():
    """A task that has ended, and a job that runs in parts."""
    for event in (
        Ended(5.0, Outcome("dag", 0.0, 5.0, stage="map", tasks=(0,))),
        Ended(5.0, Outcome("dag", 0.0, 5.0)),
    ):
        with pytest.raises(ImpossibleTransition, match="runs in part"):
            begun().step(5.0, [event])


def test_another_scheduler_cannot_go_on_with_parts():
    """One that starts whole jobs is refused; one that starts tasks goes on."""
    controller = begun()
    scheduler, _, correction = parse_policy("easy").build()
    with pytest.raises(InputError, match="cannot go on as a whole"):
        controller.fork(scheduler, Constant(9.0), correction)
    scheduler, _, correction = parse_policy("task_fifo").build()
    twin = controller.fork(scheduler, Constant(9.0), correction)
    assert list(twin.running) == list(controller.running)
    instructions = twin.step(6.0, [Ended(6.0, lost(1))])
    assert instructions[0] == Start("dag", Placement.whole("all", 1), 2, "map", (1,))
    assert Part("dag", "map", (1,)) in controller.running


def test_the_future_of_a_job_in_parts():
    """What runs ends as it is believed, and what waits follows."""
    controller = begun()
    outcomes = simulate_forward(controller, {"dag": 9.0})
    told = [(each.stage, each.tasks, each.end_seconds) for each in outcomes]
    assert told == [
        ("map", (1,), 9.0),
        ("map", (2,), 13.0),
        ("reduce", (0,), 22.0),
        ("reduce", (1,), 22.0),
    ]


def test_a_job_waits_for_all_of_another():
    """One that comes after it starts when its last task has ended, not when its first has."""
    jobs = workload().jobs.with_columns(
        after_jobs=pl.Series([None, "dag"]), submit_seconds=pl.Series([0.0, 0.0])
    )
    schedule = run_scenario(scenario(workload=workload(4).with_jobs(jobs)))
    assert rows_of(schedule)[-1] == ("gang", None, None, 11.0, 18.0)


def test_a_stage_whose_tasks_start_together_is_a_gang():
    """It waits for room for all of them, behind the stage that it waits for."""
    job = next(workload().specifications())
    stages = tuple(replace(each, together=each.name == "reduce") for each in job.stages)
    controller = lone()
    controller.step(0.0, [Submitted(0.0, replace(job, stages=stages))])
    for task, end in ((0, 4.0), (1, 6.0)):
        ended = Outcome("dag", 0.0, end, stage="map", tasks=(task,))
        controller.step(end, [Ended(end, ended)])
    last = Outcome("dag", 4.0, 7.0, stage="map", tasks=(2,))
    instructions = controller.step(7.0, [Ended(7.0, last)])
    assert instructions[0] == Start("dag", Placement.whole("all", 2), stage="reduce")
    assert list(controller.running) == [Part("dag", "reduce")]


def test_a_job_too_wide_in_parts_says_what_it_needs_at_once():
    """A stage of a gang that no partition holds; tasks alone would fit."""
    job = next(workload().specifications())
    stages = (*job.stages, Stage(5, Resources(1.0), "gang", ("reduce",)))
    controller = lone()
    controller.step(0.0, [Submitted(0.0, replace(job, stages=stages))])
    assert controller.running == {}
    reason = controller.reasons()["dag"]
    assert reason.sentence == "asks for 5 cpus and the cluster has 2"


def test_stages_that_no_order_starts_are_refused():
    """One that waits for a later one, and two of one name."""
    job = next(workload().specifications())
    for stages in (job.stages[::-1], (job.stages[0], job.stages[0])):
        with pytest.raises(InputError, match="cannot be started one after the other"):
            lone().step(0.0, [Submitted(0.0, replace(job, stages=stages))])


class HearsTasks(Constant):
    """Notes the parts that have ended, too."""

    def part_ended(self, job, outcome):
        part = f"{outcome.stage}{list(outcome.tasks)} {outcome.ended_because}"
        self.heard.append((part, job.job_id, outcome.end_seconds))


def test_predictors_learn_jobs_and_not_tasks():
    """One is told once of a job, from its first start to its last end; parts on request alone."""
    heard = []
    for predictor in (Constant(9.0), HearsTasks(9.0)):
        whole = scenario()
        scheduler, _, _ = whole.policy.build()
        controller = Controller(Cluster.of_processors(2), scheduler, predictor, Doubling())
        simulate_events(whole.jobs, controller, "tasks")
        heard.append(predictor.heard)
    jobs, all_of_it = heard
    assert jobs == [
        ("predict", "dag", 0.0),
        ("started", "dag", 0.0),
        ("predict", "gang", 1.0),
        ("ended", "dag", 12.0),
        ("started", "gang", 12.0),
        ("ended", "gang", 19.0),
    ]
    assert [each for each in all_of_it if each in jobs] == jobs
    parts = [each for each in all_of_it if each not in jobs]
    assert parts[:2] == [("map[0] completed", "dag", 4.0), ("map[1] completed", "dag", 6.0)]
    assert len(parts) == 5
