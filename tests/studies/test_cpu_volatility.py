"""Volatility of cpu use: golden values, the filters, the corruption report, the finding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from foresail.analysis.finding import Finding, Unavailable
from foresail.model.errors import InputError
from foresail.model.registry import NoParameters
from foresail.traces.measured import tasks_table, usage_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.analyses.cpu_volatility import (
    CpuVolatilityParameters,
    covering,
    cpu_volatility,
    deviation,
    filtered,
    heat_cells,
    measured,
    partly_sampled_jobs,
    periods_of,
    sampling_per_task,
    usage_sampling,
    volatility_per_task,
    with_requests,
)
from foresail_studies.analyses.task_variability import cpu_spread

Series = tuple[list[float | None], list[float | None]]


def _workload(
    series: dict[tuple[str, int], Series], classes: dict[str, str] | None = None
) -> Workload:
    """Tasks with their averaged and sampled series in periods of 300 s, from second 0 on."""
    rows = [
        (job, task, 300.0 * at, 300.0 * (at + 1), averaged, sampled)
        for (job, task), (means, samples) in series.items()
        for at, (averaged, sampled) in enumerate(zip(means, samples, strict=True))
    ]
    names = ["job_id", "task", "start_seconds", "end_seconds", "average_cpus", "sampled_cpus"]
    usage = usage_table(pl.DataFrame(rows, names, orient="row", infer_schema_length=None))
    ids = sorted({job for job, _ in series})
    jobs = {
        "job_id": ids,
        "submit_seconds": np.zeros(len(ids)),
        "runtime_seconds": np.full(len(ids), 900.0),
        "tasks": [sum(job == one for job, _ in series) for one in ids],
        "cpus_per_task": np.full(len(ids), 0.5),
    }
    if classes:
        jobs["scheduling_class"] = [classes[one] for one in ids]
    return Workload(jobs_table(jobs), WorkloadMeta("made", "made"), usage=usage)


GOLDEN = {("g", 0): ([0.2, 0.4, 0.1], [0.1, 0.5, 0.1])}


def test_golden_values():
    """The spec's three periods: deviations, their mean size, both coefficients of variation."""
    periods = periods_of(_workload(GOLDEN))
    assert_allclose(periods.select(deviation()).to_series(), [0.5, -0.25, 0.0])
    task = volatility_per_task(periods).row(0, named=True)
    assert task["distance"] == pytest.approx(0.25)
    assert task["cv_averaged"] == pytest.approx(0.6546536707, abs=1e-10)
    assert task["cv_sampled"] == pytest.approx(0.9897433186, abs=1e-10)


def test_robust_measures():
    """The median absolute deviation over the median ignores one outlier."""
    calm = [1.0, 2.0, 3.0, 4.0, 5.0]
    wild = [1.0, 2.0, 3.0, 4.0, 500.0]
    task = volatility_per_task(periods_of(_workload({("j", 0): (calm, wild)}))).row(0, named=True)
    assert task["mad_averaged"] == task["mad_sampled"] == pytest.approx(1 / 3)


def test_what_has_no_variation():
    """One period, or a mean of 0, has no variation; a mean of 0 no deviation either."""
    series: dict[tuple[str, int], Series] = {
        ("once", 0): ([1.0], [2.0]),
        ("idle", 0): ([0.0, 0.0], [0.0, 0.0]),
    }
    tasks = volatility_per_task(periods_of(_workload(series)))
    assert tasks["cv_averaged"].null_count() == 2
    assert tasks.filter(pl.col("job_id") == "idle")["distance"].null_count() == 1


def test_filters_in_order():
    """Class, then long-running, then sampled; each counts what it left."""
    full, none = [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]
    series: dict[tuple[str, int], Series] = {
        ("batch", 0): (full, full),
        ("service", 0): (full, [0.0, 2.0, 0.0]),
        ("service", 1): (full, none),
        ("service", 2): ([1.0], [1.0]),
        ("silent", 0): (full, none),
        ("silent", 1): (full, [None, None, None]),
    }
    classes = {"batch": "0", "service": "2", "silent": "3"}
    left = filtered(_workload(series, classes), ("2", "3"), 0.95)
    assert [(kept.jobs, kept.tasks, kept.periods) for kept in left.counts] == [
        (3, 6, 16),
        (2, 5, 13),
        (2, 4, 12),
        (1, 2, 6),
    ]
    assert left.skipped == ()
    unclassed = filtered(_workload(series), ("2", "3"), 0.95)
    assert [kept.tasks for kept in unclassed.counts] == [6, 5, 3]
    assert "skipped" in unclassed.skipped[0]


def test_a_sample_only_in_a_short_task_does_not_count():
    """The filters go in order: what the long-running filter removed cannot vouch for a job."""
    series: dict[tuple[str, int], Series] = {
        ("a", 0): ([1.0, 1.0], [0.0, 0.0]),
        ("a", 1): ([1.0], [1.0]),
    }
    assert filtered(_workload(series), ("2",), 0.95).counts[-1].tasks == 0
    assert filtered(_workload(series), ("2",), 0.5).counts[-1].tasks == 2


def test_violators_of_the_rule():
    """A job with one working task sampled and one not is reported; an idle task excuses itself."""
    series: dict[tuple[str, int], Series] = {
        ("mixed", 0): ([1.0, 1.0], [0.0, 1.0]),
        ("mixed", 1): ([1.0, 1.0], [0.0, 0.0]),
        ("fine", 0): ([1.0, 1.0], [1.0, 1.0]),
        ("fine", 1): ([0.0, 0.0], [0.0, 0.0]),
        ("never", 0): ([1.0, 1.0], [0.0, 0.0]),
    }
    workload = _workload(series)
    violators = partly_sampled_jobs(sampling_per_task(periods_of(workload)))
    assert violators.rows() == [("mixed", 2, 1)]
    finding = usage_sampling(NoParameters()).examine(workload)
    assert isinstance(finding, Finding)
    assert finding.scalars["jobs_sampled_in_part"] == 1
    assert finding.scalars["jobs_never_sampled"] == 1
    assert finding.scalars["tasks_with_1_samples_not_0"] == 1
    assert finding.scalars["tasks_with_2_samples_not_0"] == 1
    assert finding.scalars["tasks_with_mean_sample_0"] == 3
    assert finding.scalars["median_samples_per_task"] == 2


def test_heat_map_cells():
    """Cells count periods by both shares of the request; what is above goes to the last cell."""
    workload = _workload({("a", 0): ([0.25, 0.25, 5.0], [0.5, 0.25, 0.0])})
    cells = heat_cells(with_requests(periods_of(workload), workload), bins=3, highest=1.5)
    expected = np.zeros((3, 3), dtype=np.int64)
    expected[1, 2] += 1
    expected[1, 1] += 1
    expected[2, 0] += 1
    assert_allclose(cells, expected)


def test_requests_of_tasks_come_first():
    """The request is the task's where tasks are known; one of 0 is unknown."""
    workload = _workload({("a", 0): ([1.0], [1.0]), ("a", 1): ([1.0], [1.0])})
    tasks = tasks_table({"job_id": ["a", "a"], "task": [0, 1], "cpus": [2.0, 0.0]})
    workload = Workload(workload.jobs, workload.meta, tasks=tasks, usage=workload.usage)
    assert with_requests(periods_of(workload), workload)["request"].to_list() == [2.0, None]


def _noisy(tasks: int = 40, periods: int = 200, noise: float = 0.5) -> Workload:
    random = np.random.default_rng(2)
    averaged = random.lognormal(-1.0, 0.2, (tasks, periods))
    sampled = averaged * random.lognormal(0.0, noise, (tasks, periods))
    sampled[::4] = 0.0
    return _workload(
        {(f"j{at}", 0): (averaged[at].tolist(), sampled[at].tolist()) for at in range(tasks)}
    )


def test_finding_of_noisy_samples():
    """Noise of samples comes out: more variation than the means, the right share of deviations."""
    finding = cpu_volatility(CpuVolatilityParameters()).examine(_noisy())
    assert isinstance(finding, Finding)
    scalars = finding.scalars
    assert scalars["tasks"] == 30
    assert scalars["share_of_tasks_with_cv_sampled_above_averaged"] == 1.0
    assert scalars["cv_averaged_median"] == pytest.approx(0.2, rel=0.1)
    over = scalars["share_of_periods_deviating_over_0.5"]
    drawn = np.random.default_rng(7).lognormal(0.0, 0.5, 200_000)
    assert over == pytest.approx((np.abs(1 - drawn) > 0.5).mean(), abs=0.02)
    assert finding.tables["distances"]["tasks"].sum() == 30
    assert finding.tables["deviations"]["share"][-1] == 1.0
    assert finding.tables["deviations"]["share"].is_sorted()
    assert finding.tables["heat"]["periods"].sum() == 30 * 200
    assert finding.tables["filters"]["tasks"].to_list() == [40, 40, 30]


def test_filter_recovers_the_sampled_jobs():
    """Exactly the jobs whose samples are not all 0 are left."""
    left = measured(periods_of(_noisy()))
    expected = {f"j{at}" for at in range(40) if at % 4}
    assert set(left["job_id"]) == expected


def test_plots_of_volatility_show_columns_that_are_there():
    """Every plot names a table of the finding and columns of it, small enough to draw."""
    findings = [
        cpu_volatility(CpuVolatilityParameters()).examine(_noisy()),
        usage_sampling(NoParameters()).examine(_noisy()),
    ]
    for finding in findings:
        assert isinstance(finding, Finding)
        for plot in finding.plots:
            table = finding.tables[plot.table]
            assert {plot.x, plot.y, plot.series, plot.shade} - {None} <= set(table.columns)
            assert 0 < table.height <= 10_000


def test_unavailable_without_samples():
    """No usage table, no samples in it, or nothing left: said so, with the reason."""
    study = cpu_volatility(CpuVolatilityParameters())
    workload = _noisy(tasks=4)
    bare = Workload(workload.jobs, workload.meta)
    unsampled = _workload({("a", 0): ([1.0], [None])})
    silent = _workload({("a", 0): ([1.0], [0.0])})
    for one, reason in (
        (bare, "no usage table"),
        (unsampled, "sampled"),
        (silent, "sampled: 0 tasks"),
    ):
        found = study.examine(one)
        assert isinstance(found, Unavailable)
        assert reason in found.reason
    assert isinstance(usage_sampling(NoParameters()).examine(bare), Unavailable)
    assert isinstance(usage_sampling(NoParameters()).examine(unsampled), Unavailable)


def test_volatility_parameters_out_of_range():
    """A coverage that is no share is refused."""
    with pytest.raises(InputError, match="coverage"):
        CpuVolatilityParameters(coverage=1.5)


def test_tasks_of_the_same_number_in_different_stages_are_different_tasks():
    """As if they had numbers of their own, in what they use and in what they asked for."""
    series = {("g", task): ([0.2, 0.4, 0.1 * task], [0.1, 0.5, 0.1]) for task in (0, 1, 2)}
    whole = _workload(series)
    asked = {"job_id": ["g"] * 3, "task": [0, 1, 2], "cpus": [0.5, 1.0, 2.0]}
    whole = replace(whole, tasks=tasks_table(asked))
    stages = {"stage": [None, "reduce", "reduce"], "task": [0, 0, 1]}
    staged = replace(
        whole,
        tasks=tasks_table({**asked, **stages}),
        usage=whole.usage.with_columns(
            pl.Series(name, np.repeat(np.array(values, object), 3).tolist())
            for name, values in stages.items()
        ),
    )
    of_whole, of_staged = periods_of(whole), periods_of(staged)
    assert set(of_staged["stage"]) == {"main", "reduce"}
    for measure in (volatility_per_task, sampling_per_task):
        found = measure(of_staged).drop("stage", "task")
        assert found.equals(measure(of_whole).drop("task"))
    assert covering(of_staged, 900.0).height == 9
    requests = with_requests(of_staged, staged)["request"]
    assert requests.equals(with_requests(of_whole, whole)["request"])
    assert cpu_spread(staged).mean == pytest.approx(cpu_spread(whole).mean)
    assert cpu_spread(staged).tasks == [3.0]
