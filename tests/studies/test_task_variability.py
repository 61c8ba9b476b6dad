"""Variability over time and over space: golden values, a slow reference, and the finding."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from foresail.analysis.finding import Finding, Unavailable
from foresail.model.errors import InputError
from foresail.traces.measured import tasks_table, usage_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.analyses.task_variability import (
    DAY_AND_HOUR,
    REQUEST,
    TaskVariabilityParameters,
    cpu_spread,
    feature_codes,
    over_time,
    runtime_spread,
    task_variability,
    window_variation,
)

DAY = 86400.0


def _workload(jobs, tasks=None, usage=None) -> Workload:
    return Workload(jobs_table(jobs), WorkloadMeta("made", "made"), tasks=tasks, usage=usage)


def _tasks(rows: list[tuple[str, int, float]]) -> pl.DataFrame:
    return tasks_table(pl.DataFrame(rows, ["job_id", "task", "runtime_seconds"], orient="row"))


def _one_job(runtimes: list[float]) -> Workload:
    jobs = {
        "job_id": ["j"],
        "submit_seconds": [0.0],
        "runtime_seconds": [max(runtimes)],
        "tasks": [len(runtimes)],
    }
    return _workload(jobs, _tasks([("j", at, one) for at, one in enumerate(runtimes)]))


def test_space_golden_values():
    """The spec's job of 100 tasks, and its job of 4 with the literal and the clamped sample."""
    wide = runtime_spread(_one_job([8.0, 10.0, 12.0, 10.0] * 25))
    assert_allclose(wide.over_space(), 0.1414213562, atol=1e-10)
    assert_allclose(wide.of_sampled_mean(at_least_one=False), 0.0816496581, atol=1e-10)
    assert_allclose(wide.of_sampled_mean(at_least_one=True), 0.0816496581, atol=1e-10)
    thin = runtime_spread(_one_job([8.0, 10.0, 12.0, 10.0]))
    assert_allclose(thin.of_sampled_mean(at_least_one=False), 0.4082482905, atol=1e-10)
    assert_allclose(thin.of_sampled_mean(at_least_one=True), 0.1414213562, atol=1e-10)


@pytest.mark.parametrize("runtimes", [[7.0], [0.0, 0.0]])
def test_space_of_what_cannot_vary(runtimes):
    """A job of one task, or of no duration, has no variation over space."""
    assert np.isnan(runtime_spread(_one_job(runtimes)).over_space()).all()


def _slow_variation(codes, values, asked, known, window, least):
    answer = np.full(len(codes), np.nan)
    for job, now in enumerate(asked):
        similar = [
            values[other]
            for other in range(len(codes))
            if codes[other] == codes[job] >= 0 and now - window <= known[other] <= now
        ]
        if len(similar) >= least and np.mean(similar) > 0:
            answer[job] = np.std(similar) / np.mean(similar)
    return answer


@given(
    st.lists(
        st.tuples(
            st.integers(-1, 2),
            st.sampled_from([0.0, 1.0, 3.0, 100.0, 1e6]),
            st.integers(0, 20),
            st.integers(0, 20),
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 12),
    st.integers(1, 3),
)
def test_window_against_slow_reference(jobs, window, least):
    """The sliding sums give what going through all jobs for every job gives."""
    codes, values, asked, after = (np.array(column) for column in zip(*jobs, strict=True))
    asked = asked.astype(float)
    known = asked + after
    found = window_variation(
        codes.astype(np.int64),
        values.astype(float),
        asked,
        np.argsort(asked, kind="stable"),
        known,
        np.argsort(known, kind="stable"),
        float(window),
        least,
    )
    expected = _slow_variation(codes, values, asked, known, window, least)
    assert_allclose(found, expected, atol=1e-4)


def _history(days: int = 30, tasks: int = 4, users: int = 5) -> Workload:
    """Jobs every hour whose mean varies by 40 % and whose tasks by 5 %."""
    random = np.random.default_rng(5)
    count = days * 24
    mean = random.lognormal(np.log(100.0), 0.4, count)
    runtimes = mean[:, None] * random.normal(1.0, 0.05, (count, tasks))
    ids = [f"j{at}" for at in range(count)]
    jobs = {
        "job_id": ids,
        "submit_seconds": np.arange(count) * 3600.0,
        "recorded_wait_seconds": np.zeros(count),
        "runtime_seconds": runtimes.max(axis=1),
        "tasks": np.full(count, tasks),
        "user": [f"u{at % users}" for at in range(count)],
    }
    rows = [
        (ids[at], task, float(runtimes[at, task])) for at in range(count) for task in range(tasks)
    ]
    usage = usage_table(
        {
            "job_id": np.repeat(ids, tasks),
            "task": np.tile(np.arange(tasks), count),
            "start_seconds": np.zeros(count * tasks),
            "end_seconds": np.full(count * tasks, 300.0),
            "average_cpus": random.normal(1.0, 0.02, count * tasks),
        }
    )
    return _workload(jobs, _tasks(rows), usage)


def _examine(workload: Workload, **parameters) -> Finding:
    finding = task_variability(TaskVariabilityParameters(**parameters)).examine(workload)
    assert isinstance(finding, Finding)
    return finding


def test_only_what_ended_in_the_window_is_history():
    """Jobs that ended before the window, or not yet, do not count; nor does the job itself."""
    jobs = {
        "job_id": list("abcd"),
        "submit_seconds": [0.0, 1 * DAY, 2 * DAY, 2.5 * DAY],
        "recorded_wait_seconds": [0.0] * 4,
        "runtime_seconds": [10.0, 30.0, DAY, 5.0],
        "tasks": [1] * 4,
        "user": ["u"] * 4,
    }
    workload = _workload(jobs)
    codes = {"user": feature_codes(workload, "user")}
    means = runtime_spread(workload).mean
    found = over_time(workload, means, codes, 3.0)
    assert_allclose(found, [np.nan, np.nan, 0.5, 0.5])
    assert np.isnan(over_time(workload, means, codes, 2.0)[3])


def test_the_feature_of_least_variation_counts():
    """Jobs of a user vary, jobs of an executable do not: the variation over time is 0."""
    jobs = {
        "job_id": list("abcde"),
        "submit_seconds": [0.0, 100.0, 200.0, 300.0, 400.0],
        "runtime_seconds": [10.0, 20.0, 10.0, 20.0, 10.0],
        "tasks": [1] * 5,
        "user": ["u"] * 5,
        "executable": list("xyxyx"),
    }
    workload = _workload(jobs)
    both = {name: feature_codes(workload, name) for name in ("user", "executable")}
    means = runtime_spread(workload).mean
    assert over_time(workload, means, {"user": both["user"]}, 1.0)[4] == pytest.approx(1 / 3)
    assert over_time(workload, means, both, 1.0)[4] == 0.0


def test_derived_features():
    """Hours of the week repeat after a week; requests are those of the whole job."""
    jobs = {
        "job_id": list("abc"),
        "submit_seconds": [0.0, 3600.0, 7 * DAY],
        "runtime_seconds": [1.0] * 3,
        "tasks": [2, 4, 1],
        "cpus_per_task": [2.0, 1.0, 1.0],
    }
    workload = _workload(jobs)
    hours = feature_codes(workload, DAY_AND_HOUR)
    assert hours[0] == hours[2] != hours[1]
    requests = feature_codes(workload, REQUEST)
    assert requests[0] == requests[1] != requests[2]
    assert feature_codes(workload, "user") is None
    assert feature_codes(workload, "no_such_column") is None


def test_finding_of_varying_jobs():
    """Deviations put in come out: over time 0.42, over sampled tasks 0.05, for cpu both 0.02."""
    finding = _examine(_history(), features=("user",))
    scalars = finding.scalars
    assert scalars["runtime_over_time_p50"] == pytest.approx(np.sqrt(np.exp(0.16) - 1), rel=0.15)
    clamped = scalars["runtime_over_space_at_least_one_p50"]
    assert clamped == pytest.approx(0.05, rel=0.25)
    assert scalars["runtime_over_space_p50"] == pytest.approx(clamped / np.sqrt(0.12))
    assert scalars["runtime_time_exceeds_space_at_least_one_share"] == 1.0
    assert scalars["cpu_over_time_p50"] == pytest.approx(0.01, rel=0.2)
    ratios = finding.tables["ratios"].filter(
        (pl.col("quantity") == "runtime") & (pl.col("space").str.contains("at least"))
    )
    assert ratios["share"].is_sorted(descending=True)
    assert ratios["share"][0] == 1.0
    assert ratios["share"][-1] < 1.0
    assert finding.tables["scatter"]["job"].max() == 70
    assert "time exceeds space in" in finding.verdict


def test_all_windows_are_judged_on_the_same_jobs():
    """With 30 days of jobs the windows of 3, 7 and 14 days are judged on the last 16."""
    finding = _examine(_history(), features=("user",))
    quantiles = finding.tables["quantiles"]
    runtimes = quantiles.filter(pl.col("quantity") == "runtime")
    assert runtimes.filter(pl.col("measured").str.starts_with("time"))["measured"].to_list() == [
        "time, 3 days",
        "time, 7 days",
        "time, 14 days",
    ]
    assert set(runtimes["jobs"]) == {16 * 24}
    assert any("30 days" in note for note in finding.notes)


def test_few_similar_jobs_vary_less_whatever_the_drift():
    """Without any drift a short window still has the lower median: its similar jobs are fewer."""
    workload = _history(days=30, users=24)
    finding = _examine(workload, features=("user",))
    medians = finding.tables["quantiles"].filter(pl.col("quantity") == "runtime")["p50"]
    three, seven, fourteen = medians[:3]
    assert three < seven < fourteen < np.sqrt(np.exp(0.16) - 1)


def test_plots_show_columns_that_are_there():
    """Every plot names a table of the finding and columns of it."""
    finding = _examine(_history())
    for plot in finding.plots:
        columns = finding.tables[plot.table].columns
        assert {plot.x, plot.y, plot.series} <= set(columns)
        assert finding.tables[plot.table].height < 10_000


def test_log_without_tasks():
    """Without a tasks table only the variation of job runtimes over time is given, and said so."""
    workload = _history()
    finding = _examine(Workload(workload.jobs, workload.meta), features=("user",))
    assert "runtime_over_time_p50" in finding.scalars
    assert not any("space" in name for name in finding.scalars)
    assert any("not tasks" in note for note in finding.notes)


def test_what_cannot_be_judged():
    """No feature at all, or too short a log, is said to be unavailable, with the reason."""
    study = task_variability(TaskVariabilityParameters(features=("user",)))
    short = study.examine(_history(days=5))
    assert isinstance(short, Unavailable)
    assert "5.0 days" in short.reason
    nameless = Workload(
        _history().jobs.with_columns(user=pl.lit(None, pl.String)), WorkloadMeta("made", "made")
    )
    without = study.examine(nameless)
    assert isinstance(without, Unavailable)
    assert "user" in without.reason


def test_how_many_similar_jobs_count():
    """A feature with fewer similar jobs than asked for does not count; none at all is said."""
    workload = _history()
    some = _examine(workload, features=("user",), similar_jobs=10)
    quantiles = some.tables["quantiles"].filter(pl.col("measured") == "time, 3 days")
    assert quantiles["jobs"][0] == 16 * 24
    none = task_variability(
        TaskVariabilityParameters(features=("user",), similar_jobs=10_000)
    ).examine(workload)
    assert isinstance(none, Unavailable)
    assert "10000 similar jobs" in none.reason


def test_cpu_spread_needs_usage():
    """Without a usage table there is no spread of cpu use."""
    assert cpu_spread(_one_job([1.0, 2.0])) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"features": ()},
        {"window_days": ()},
        {"window_days": (0.0,)},
        {"similar_jobs": 1},
    ],
    ids=lambda wrong: next(iter(wrong)) + str(len(str(wrong))),
)
def test_parameters_out_of_range(wrong):
    """Absurd parameters are refused."""
    with pytest.raises(InputError):
        TaskVariabilityParameters(**wrong)
