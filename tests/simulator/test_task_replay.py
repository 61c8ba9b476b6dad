"""The compiled replay of tasks: published examples, and the slow simulator event for event."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.control.policy import parse_policy
from foresail.model.errors import InputError
from foresail.simulator.task_replay import TasksReplayed, replay_task_arrays, replay_tasks
from foresail.traces import schema
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from long_series import of_a_series
from slow_tasks import SlowRules, SlowStage, slow_tasks

Jobs = list[tuple[float, tuple[SlowStage, ...]]]


def workload_of(
    jobs: Jobs,
    slots: int,
    requested: float | None = None,
    deadlines: list[float | None] | None = None,
    speeds: Sequence[float] | None = None,
) -> Workload:
    rows = [
        (
            f"job{number}",
            f"stage{at}",
            ",".join(f"stage{before}" for before in stage.after) or None,
            task,
            runtime,
            1.0,
            None,
        )
        for number, (_, stages) in enumerate(jobs)
        for at, stage in enumerate(stages)
        for task, runtime in enumerate(stage.runtimes)
    ]
    table = jobs_table(
        {
            "job_id": [f"job{number}" for number in range(len(jobs))],
            "submit_seconds": [submit for submit, _ in jobs],
            "runtime_seconds": [sum(max(stage.runtimes) for stage in stages) for _, stages in jobs],
            "tasks": [max(len(stage.runtimes) for stage in stages) for _, stages in jobs],
            "requested_seconds": [requested] * len(jobs),
            "deadline_seconds": deadlines or [None] * len(jobs),
        }
    )
    tasks = pl.DataFrame(rows, schema=schema.TASKS, orient="row")
    nodes = None if speeds is None else nodes_of(speeds)
    return Workload(table, WorkloadMeta("made", "made", processors=slots), nodes, tasks)


def nodes_of(speeds: Sequence[float]) -> pl.DataFrame:
    """A node of one cpu for each speed."""
    nodes = pl.DataFrame(
        {
            "node": [f"n{number}" for number in range(len(speeds))],
            "partition": ["all"] * len(speeds),
            "count": [1] * len(speeds),
            "cpus": [1.0] * len(speeds),
        },
        schema_overrides=schema.NODES,
    )
    absent = [
        pl.lit(None, kind).alias(name) for name, kind in schema.NODES.items() if name not in nodes
    ]
    return nodes.with_columns(*absent, pl.Series(schema.SPEED, speeds, dtype=pl.Float64))


def one_stage(*jobs: tuple[float, tuple[float, ...]]) -> Jobs:
    return [(submit, (SlowStage(runtimes),)) for submit, runtimes in jobs]


GOLDEN = one_stage((0.0, (400.0,) * 4), (10.0, (100.0,) * 2), (20.0, (50.0,) * 3))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("slearn(pilot_percent=3)", (1100, 590, 680)),
        ("predicted_queues,clairvoyant", (1150, 590, 730)),
        ("task_fifo", (800, 890, 980)),
    ],
)
def test_golden_10_5(policy: str, expected: tuple[float, ...]) -> None:
    """Spec slearn, golden example 10.5: completion times of three jobs on two slots."""
    result = replay_task_arrays(workload_of(GOLDEN, 2), parse_policy(policy))
    np.testing.assert_array_equal(result.job_end - result.submit, expected)


def test_golden_10_5_step_by_step() -> None:
    """Every start, its queue, and the estimates of 10.5."""
    result = replay_task_arrays(workload_of(GOLDEN, 2), parse_policy("slearn(pilot_percent=3)"))
    names = np.repeat(["A", "B", "C"], [4, 2, 3])
    seen = sorted(zip(result.start.tolist(), result.queue.tolist(), names.tolist(), strict=True))
    assert seen == sorted(
        [
            *((0.0, 1, "A"), (0.0, 1, "A"), (400.0, 0, "B"), (400.0, 1, "C"), (450.0, 1, "A")),
            *((500.0, 0, "B"), (600.0, 0, "C"), (650.0, 0, "C"), (700.0, 1, "A")),
        ]
    )
    np.testing.assert_array_equal(result.estimate, [1600.0, np.nan, 150.0])
    np.testing.assert_array_equal(result.pilots, [1, 0, 1])


def _first_pilot_is_first(jobs: Jobs, slots: int) -> int:
    """A seed that draws the first task of each wide job as its pilot."""
    for seed in range(1000):
        policy = parse_policy(f"slearn(pilot_percent=3,seed={seed})")
        result = replay_task_arrays(workload_of(jobs, slots), policy)
        begins = result.stages.first_task[:-1]
        wide = result.pilots > 0
        if result.pilot[begins[wide]].all():
            return seed
    raise AssertionError("no such seed")


def test_golden_10_6() -> None:
    """Spec slearn, golden example 10.6, in which each job's first task is its pilot."""
    jobs = one_stage((0.0, (600.0, 500.0, 700.0, 600.0)), (5.0, (30.0,) * 5), (5.0, (200.0,)))
    seed = _first_pilot_is_first(jobs, 3)
    policy = f"slearn(pilot_percent=3,seed={seed})"
    result = replay_task_arrays(workload_of(jobs, 3), parse_policy(policy))
    np.testing.assert_array_equal(result.job_end - result.submit, [1300, 725, 695])
    np.testing.assert_array_equal(result.estimate, [2400.0, 150.0, np.nan])
    for other, expected in (
        ("task_fifo", (1100, 725, 915)),
        ("predicted_queues,clairvoyant", (1230, 625, 815)),
    ):
        result = replay_task_arrays(workload_of(jobs, 3), parse_policy(other))
        np.testing.assert_array_equal(result.job_end - result.submit, expected)


CHAIN_BEFORE = (
    SlowStage((20.0,) * 4),
    SlowStage((50.0,) * 4, (0,)),
    SlowStage((50.0,), (1,)),
)
CHAIN_NOW = (SlowStage((30.0,) * 4), SlowStage((70.0,) * 4, (0,)), SlowStage((90.0,), (1,)))
BY_STAGE = "history_point(features=[stage],utility=mean)"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (f"slearn(later_stages=history),{BY_STAGE}", 495.0),
        (f"predicted_queues,{BY_STAGE}", 330.0),
        ("predicted_queues,clairvoyant", 490.0),
        ("slearn", 270.0),
    ],
)
def test_golden_10_4(policy: str, expected: float) -> None:
    """Spec slearn 10.4: a chain whose first stage is sampled, or not, after one like it."""
    before = workload_of([(0.0, CHAIN_BEFORE)], 4)
    now = workload_of([(100.0, CHAIN_NOW)], 4)
    result = replay_task_arrays(now, parse_policy(policy), before)
    assert result.estimate.tolist() == [expected]


def test_history_is_what_jobs_alike_took() -> None:
    """Spec slearn 10.3, by three jobs that ended before: the mean runtime of their tasks counts."""
    before = workload_of(one_stage((0.0, (50.0, 150.0)), (0.0, (200.0,)), (9.0, (400.0,) * 3)), 4)
    now = workload_of(one_stage((5.0, (1.0,) * 10)), 4)
    policy = parse_policy("predicted_queues,history_point(features=[stage])")
    assert replay_task_arrays(now, policy, before).estimate[0] == pytest.approx(1511.857892)
    assert replay_task_arrays(now, policy).estimate[0] > 1e5


def test_a_history_that_overlaps_has_taught_all_before_the_first_job() -> None:
    """What ended by its clock after jobs came counts as if it had been weeks earlier."""
    policy = parse_policy("predicted_queues,history_point(features=[stage])")
    now = workload_of(one_stage((50.0, (1.0,) * 4), (900.0, (1.0,) * 4)), 4)
    runs = one_stage((0.0, (10.0,)), (40.0, (3000.0,)), (800.0, (500.0,) * 2))
    overlapping = replay_task_arrays(now, policy, workload_of(runs, 4)).estimate
    week = 7 * 86400.0
    earlier = workload_of([(submit - week, stages) for submit, stages in runs], 4)
    assert overlapping.tolist() == replay_task_arrays(now, policy, earlier).estimate.tolist()
    assert overlapping[0] < 1e5


def test_a_run_teaches_its_later_jobs() -> None:
    """What a job's tasks took is known when they have ended, not before."""
    policy = parse_policy("predicted_queues,history_point(features=[stage])")
    jobs = one_stage((0.0, (10.0,) * 4), (9.0, (10.0,) * 4), (10.0, (10.0,) * 4))
    estimates = replay_task_arrays(workload_of(jobs, 4), policy).estimate
    assert estimates[1] == estimates[0] > 1e5
    assert estimates[2] == pytest.approx(40.0)


def test_what_history_knows_better_is_not_sampled() -> None:
    """Jobs alike that all take the same, of tasks that do not: the second is not sampled any more.

    The first one is, since nobody knows yet how tasks vary.
    """
    tasks = (5.0, 15.0, 5.0, 15.0)
    before = workload_of(one_stage(*((0.0, tasks),) * 9), 40)
    now = workload_of(one_stage((0.0, tasks), (100.0, tasks)), 4)
    policy = "slearn(source=surer),history(features=[stage])"
    result = replay_task_arrays(now, parse_policy(policy), before)
    assert result.pilots.tolist() == [1, 0]
    assert result.estimate[1] == pytest.approx(40.0)
    assert result.estimated[1] == 100.0


def test_a_history_that_has_proved_itself_spares_pilots() -> None:
    """Jobs alike, that history is right about: what it was worth before the run counts too."""
    alike = one_stage(*((100.0 * number, (10.0,) * 4) for number in range(8)))
    before, now = workload_of(alike, 40), workload_of(alike, 4)
    policy = parse_policy("slearn(source=proved),history(features=[stage])")
    result = replay_task_arrays(now, policy, before)
    assert result.pilots.tolist() == [0] * 8
    untaught = replay_task_arrays(now, policy)
    assert untaught.pilots.tolist()[0] == 1
    beginner = workload_of(one_stage(*((0.0, (10.0,) * 4),) * 8), 40)
    assert replay_task_arrays(now, policy, beginner).pilots.tolist() == [1] + [0] * 7


def test_others_wait_by_history_while_pilots_run() -> None:
    """Once pilots have started, a job's other tasks need not wait until these have told.

    Where nothing is proved they wait in the last queue, and have what nothing else wants.
    """
    jobs = one_stage((0.0, (100.0,) * 10))
    policy = "slearn(source={},queues=4,pilot_percent=1),history"
    found = {
        source: replay_task_arrays(workload_of(jobs, 6), parse_policy(policy.format(source)))
        for source in ("pilots", "proved")
    }
    for result in found.values():
        assert sorted(result.start[:10]) == [0.0] * 6 + [100.0] * 4
    assert sorted(found["pilots"].queue[:10]) == [1] * 10
    assert sorted(found["proved"].queue[:10]) == [1] * 5 + [3] * 5


def test_deadlines_are_met_while_the_odds_are_good() -> None:
    """The wide job, which is due first, cannot be in time, as its first two tasks tell at 10 s.

    Under the earliest deadline first, it makes the other late, too. By the odds it has one of the
    two slots from then on, as the first of a lower queue.
    """
    lost, other = (10.0,) * 10, (10.0,) * 4
    workload = workload_of(one_stage((0.0, lost), (0.0, other)), 2, deadlines=[40.0, 60.0])
    ends = {
        policy: replay_task_arrays(workload, parse_policy(policy)).job_end.tolist()
        for policy in ("task_edf", "slearn(deadlines=by_odds)", "task_fifo")
    }
    assert ends["task_edf"] == ends["task_fifo"] == [50.0, 70.0]
    assert ends["slearn(deadlines=by_odds)"] == [70.0, 50.0]


def test_the_earliest_deadline_first() -> None:
    """Those without one last, in order of arrival."""
    one = (10.0,)
    jobs = one_stage((0.0, one), (0.0, one), (0.0, one), (0.0, one))
    workload = workload_of(jobs, 1, deadlines=[None, 90.0, 30.0, None])
    result = replay_task_arrays(workload, parse_policy("task_edf"))
    assert result.start.tolist() == [20.0, 10.0, 0.0, 30.0]


def test_a_history_that_errs_does_not_move_what_pilots_tell() -> None:
    """Sure of 1000 s, and wrong by a factor of a hundred each time: pilots are believed."""
    before = workload_of(one_stage(*((0.0, (1000.0,) * 4),) * 400), 1600)
    jobs = one_stage(*((2000.0 + 100.0 * number, (9.0, 11.0) * 4) for number in range(12)))
    policy = parse_policy("slearn(statistic=log_posterior),history(features=[stage])")
    estimates = replay_task_arrays(workload_of(jobs, 8), policy, before).estimate
    np.testing.assert_allclose(estimates, 80.0, rtol=0.15)


@st.composite
def stages(draw: st.DrawFn) -> tuple[SlowStage, ...]:
    made = []
    for number in range(draw(st.sampled_from([1, 1, 1, 2, 3, 4]))):
        runtimes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=6))
        after = draw(st.sets(st.integers(0, number - 1), max_size=2)) if number else set()
        made.append(SlowStage(tuple(map(float, runtimes)), tuple(sorted(after))))
    return tuple(made)


@st.composite
def jobs_in_order(draw: st.DrawFn) -> Jobs:
    gaps = draw(st.lists(st.integers(0, 8), min_size=1, max_size=12))
    return [(float(submit), draw(stages())) for submit in np.cumsum(gaps)]


def deadlines_of(jobs: Jobs) -> st.SearchStrategy[list[float | None]]:
    """A deadline within 60 s of the submission, in quarters of a second, or none."""
    return st.tuples(
        *(
            st.none() | st.integers(1, 240).map(lambda quarters, at=submit: at + quarters / 4.0)
            for submit, _ in jobs
        )
    ).map(list)


RULES = st.builds(
    SlowRules,
    source=st.sampled_from(["arrival", "deadline", "service", "truth", "pilots", "pilots"]),
    queues=st.integers(2, 5),
    first_threshold_seconds=st.sampled_from([2.0, 10.0, 25.0]),
    pilot_percent=st.sampled_from([None, 3.0, 34.0, 100.0]),
    thin_below=st.integers(1, 4),
    trials=st.integers(1, 3),
    seed=st.integers(0, 3),
    likely_spreads=st.sampled_from([None, 1.0]),
    believed=st.sampled_from([None, 2.0, 5.0]),
    hopeless_below=st.sampled_from([None, 0.05]),
)
SPEEDS = st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0]), min_size=1, max_size=5)
"""Of slots: times at them are exact."""


def _in_order_of_level(jobs: Jobs) -> Jobs:
    """The same, with stages in the order in which the replay has them."""
    return [(submit, _by_level(stages_of_job)) for submit, stages_of_job in jobs]


def _by_level(given_stages: tuple[SlowStage, ...]) -> tuple[SlowStage, ...]:
    levels: list[int] = []
    for stage in given_stages:
        levels.append(max((levels[before] + 1 for before in stage.after), default=0))
    places = sorted(range(len(given_stages)), key=lambda at: levels[at])
    renamed = {old: new for new, old in enumerate(places)}
    moved = [given_stages[old] for old in places]
    return tuple(
        SlowStage(stage.runtimes, tuple(sorted(renamed[before] for before in stage.after)))
        for stage in moved
    )


def policy_of(rules: SlowRules) -> str:
    shared = f"queues={rules.queues},first_threshold_seconds={rules.first_threshold_seconds}"
    if rules.source == "service":
        return f"las({shared})"
    if rules.source == "truth":
        return f"predicted_queues({shared},thin_below={rules.thin_below}),clairvoyant"
    if rules.source == "arrival":
        return "task_fifo"
    if rules.source == "deadline":
        return "task_edf"
    percent = "none" if rules.pilot_percent is None else rules.pilot_percent
    source, predictor = "", ""
    if rules.likely_spreads is not None:
        source = "source=proved,"
        predictor = ",clairvoyant" if rules.believed is None else ",requested"
    if rules.hopeless_below is not None:
        source += "deadlines=by_odds,"
    return (
        f"slearn({source}{shared},thin_below={rules.thin_below},pilot_percent={percent},"
        f"trials={rules.trials},seed={rules.seed}){predictor}"
    )


def same(
    result: TasksReplayed,
    jobs: Jobs,
    speeds: Sequence[float],
    rules: SlowRules,
    deadlines: list[float | None],
) -> None:
    slow = slow_tasks(jobs, speeds, rules, deadlines)
    keys = [
        (number, at, task)
        for number, (_, stages) in enumerate(jobs)
        for at, stage in enumerate(stages)
        for task in range(len(stage.runtimes))
    ]
    assert result.start.tolist() == [slow.starts[key] for key in keys]
    assert result.queue.tolist() == [slow.queues[key] for key in keys]
    assert result.pilot.tolist() == [key[1:] in slow.pilots[key[0]] for key in keys]
    assert result.job_end.tolist() == slow.ends
    np.testing.assert_allclose(result.estimate, slow.estimates, rtol=1e-12)


def _same_of_any_speeds(
    jobs: Jobs, speeds: list[float], rules: SlowRules, data: st.DataObject
) -> None:
    jobs = _in_order_of_level(jobs)
    if rules.source in {"arrival", "deadline"}:
        rules = dataclasses.replace(rules, queues=1, hopeless_below=None)
    if rules.source != "pilots":
        rules = dataclasses.replace(rules, hopeless_below=None)
    deadlines = data.draw(deadlines_of(jobs))
    workload = workload_of(jobs, len(speeds), rules.believed, deadlines, speeds)
    result = replay_task_arrays(workload, parse_policy(policy_of(rules)))
    same(result, jobs, speeds, rules, deadlines)


@settings(max_examples=of_a_series(400, short=100), deadline=None)
@given(jobs=jobs_in_order(), slots=st.integers(1, 5), rules=RULES, data=st.data())
def test_same_as_the_slow_simulator(
    jobs: Jobs, slots: int, rules: SlowRules, data: st.DataObject
) -> None:
    """Every start, queue, pilot and estimate is that of the obvious simulator."""
    _same_of_any_speeds(jobs, [1.0] * slots, rules, data)


@settings(max_examples=of_a_series(400, short=100), deadline=None)
@given(jobs=jobs_in_order(), speeds=SPEEDS, rules=RULES, data=st.data())
def test_same_as_the_slow_simulator_on_slots_of_any_speeds(
    jobs: Jobs, speeds: list[float], rules: SlowRules, data: st.DataObject
) -> None:
    """So too where slots differ."""
    _same_of_any_speeds(jobs, speeds, rules, data)


def test_a_pilot_on_a_fast_slot_tells_the_work_at_speed_1() -> None:
    """Ten tasks of 8 s: 80 s of work, whatever its pilot's slot."""
    jobs = one_stage((0.0, (8.0,) * 10))
    workload = workload_of(jobs, 3, speeds=[1.0, 4.0, 0.5])
    known = replay_task_arrays(workload, parse_policy("slearn"))
    assert known.classes == ("speed-4", "speed-1", "speed-0.5")
    assert known.slot_class[known.pilot].tolist() == [0]
    assert known.estimate[0] == 80.0
    assert known.estimated[0] == 2.0
    took = known.end - known.start
    np.testing.assert_array_equal(took, np.array([2.0, 8.0, 16.0])[known.slot_class])


def test_a_row_per_task() -> None:
    """The schedule has a row per task, in order of submission, and tells what was believed."""
    schedule = replay_tasks(workload_of(GOLDEN, 2), parse_policy("slearn(pilot_percent=3)"))
    assert schedule.jobs.schema == pl.Schema({**schema.SCHEDULE, **schema.PARTS})
    assert schedule.jobs["job_id"].to_list() == ["job0"] * 4 + ["job1"] * 2 + ["job2"] * 3
    assert schedule.jobs["tasks"].to_list() == ["0", "1", "2", "3", "0", "1", "0", "1", "2"]
    told = schedule.jobs.filter(pl.col("predicted_seconds").is_not_null())
    assert set(told["predicted_seconds"].to_list()) == {400.0, 50.0}
    assert (told["start_seconds"] >= 400.0).all()


def test_unknown_runtimes_are_refused() -> None:
    """A task that never ends is an error at load, not a replay without end."""
    workload = workload_of(one_stage((0.0, (1.0, float("nan")))), 2)
    with pytest.raises(InputError, match="runtime of a task is unknown or negative"):
        replay_tasks(workload, parse_policy("task_fifo"))
