"""The generator of usage series has the properties its parameters state."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from foresail.analysis.finding import Finding
from foresail.model.errors import InputError
from foresail.traces import schema
from foresail.traces.folder import read_folder, write_folder
from foresail.traces.generating import generate
from foresail.traces.measured import quantity
from foresail.traces.workload import Workload
from foresail_studies.analyses.cpu_volatility import (
    CpuVolatilityParameters,
    cpu_volatility,
    measured,
    partly_sampled_jobs,
    periods_of,
    sampling_per_task,
)
from foresail_studies.analyses.task_variability import TaskVariabilityParameters, task_variability
from foresail_studies.generators import usage as generator
from foresail_studies.generators.usage import SWINGS, UsageParameters

CALM = replace(SWINGS, daily_swing=0.0, burst_share=0.0, regimes=1)


@cache
def _generated(seed: int = 1, **parameters: float) -> Workload:
    return generate("usage", UsageParameters(**parameters), seed)  # type: ignore[arg-type]


def _swinging(monkeypatch, **swings: float) -> pl.DataFrame:
    """Usage of services that are calm but for some swings."""
    monkeypatch.setattr(generator, "SWINGS", replace(CALM, **swings))
    return _services(generate("usage", UsageParameters(), 1))


def _usage(workload: Workload) -> pl.DataFrame:
    assert workload.usage is not None
    return workload.usage


def _services(workload: Workload) -> pl.DataFrame:
    """Usage of services alone."""
    jobs = workload.jobs.filter(pl.col("scheduling_class").is_in(["2", "3"]))
    return _usage(workload).join(jobs.select("job_id"), on="job_id", how="semi")


def test_equal_seeds_give_equal_workloads():
    """The same seed gives the same tables, another seed others."""
    parameters = UsageParameters(jobs=40, days=1.0)
    one, same, other = (generate("usage", parameters, seed) for seed in (3, 3, 4))
    assert one.jobs.equals(same.jobs)
    assert one.tasks is not None
    assert one.tasks.equals(same.tasks)
    assert _usage(one).equals(_usage(same))
    assert not _usage(one).equals(_usage(other))


def test_tables_are_canonical(tmp_path):
    """The tables have the schema's columns and survive a folder."""
    workload = _generated()
    assert workload.tasks is not None
    assert workload.tasks.schema == pl.Schema(schema.TASKS)
    assert _usage(workload).schema == pl.Schema(schema.USAGE)
    assert set(workload.feature_names) == {"scheduling_class", "priority"}
    write_folder(workload, tmp_path / "w")
    again = read_folder(tmp_path / "w")
    assert again.jobs.equals(workload.jobs)
    assert again.usage is not None
    assert again.usage.equals(_usage(workload))


def test_tables_agree():
    """Jobs have their tasks, run as long as the longest, and each is measured as long as it ran."""
    workload = _generated()
    assert workload.tasks is not None
    per_job = workload.tasks.group_by("job_id").agg(pl.len(), pl.col("runtime_seconds").max())
    joined = workload.jobs.select("job_id", "tasks", "runtime_seconds").join(per_job, on="job_id")
    assert joined.height == len(workload)
    assert_allclose(joined["len"], joined["tasks"])
    assert_allclose(joined["runtime_seconds_right"], joined["runtime_seconds"])
    seconds = (pl.col("end_seconds") - pl.col("start_seconds")).sum()
    covered = _usage(workload).group_by("job_id", "task").agg(measured=seconds)
    both = workload.tasks.join(covered, on=["job_id", "task"])
    assert both.height == workload.tasks.height
    assert_allclose(both["measured"], both["runtime_seconds"])
    assert (_usage(workload)["end_seconds"] > _usage(workload)["start_seconds"]).all()
    spent = workload.jobs["used_cpu_seconds"] * workload.jobs["cpus_per_task"]
    assert_allclose(quantity(workload, "cpu_time"), spent)


def test_achieved_figures():
    """What was reached is in the header: load by request and by use, jobs of each kind."""
    workload = _generated()
    assert workload.tasks is not None
    header = workload.meta.header
    capacity = 1000 * 7 * 86400.0
    asked = (workload.tasks["cpus"] * workload.tasks["runtime_seconds"]).sum() / capacity
    used = (quantity(workload, "cpu_time") * workload.jobs["tasks"].to_numpy()).sum() / capacity
    assert float(header["achieved_load"]) == pytest.approx(asked, rel=1e-6)
    assert float(header["achieved_used_load"]) == pytest.approx(used, rel=1e-6)
    assert header["achieved_services"] == "60"
    assert header["achieved_corrupt_jobs"] == "75"
    assert int(header["achieved_periods"]) == _usage(workload).height


def test_services_span_the_trace_and_batch_jobs_lie_within():
    """The stated share of jobs covers all of it; no job ends after it."""
    workload = _generated(service_share=0.3, days=2.0)
    jobs = workload.jobs
    service = jobs.filter(pl.col("scheduling_class").is_in(["2", "3"]))
    assert service.height == round(0.3 * 300)
    assert (service["runtime_seconds"] == 2 * 86400.0).all()
    assert set(service["priority"]) <= {"9", "10", "11"}
    end = jobs["submit_seconds"] + jobs["recorded_wait_seconds"] + jobs["runtime_seconds"]
    assert end.max() == 2 * 86400.0


def test_share_of_jobs_with_one_task():
    """77 % of many jobs have one task, none more than stated."""
    tasks = _generated(jobs=4000, days=1.0, service_share=0.0).jobs["tasks"]
    assert (tasks == 1).mean() == pytest.approx(0.77, abs=0.02)
    assert tasks.max() == 20


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_filter_recovers_exactly_the_measured_jobs(share):
    """The stated share of jobs has samples of 0 only; the filter leaves all others whole."""
    workload = _generated(jobs=120, days=1.0, corrupt_share=share)
    periods = periods_of(workload)
    left = measured(periods)
    assert left["job_id"].n_unique() == 120 - round(share * 120)
    assert left.filter(pl.col("sampled") == 0).height == 0
    gone = periods.join(left.select("job_id").unique(), on="job_id", how="anti")
    assert (gone["sampled"] == 0).all()
    assert not partly_sampled_jobs(sampling_per_task(periods)).height


def test_noise_of_samples():
    """The logarithm of sample over mean is normal as stated; maxima are above both."""
    usage = _usage(_generated(corrupt_share=0.0, second_log_deviation=0.4, second_scatter=0.0))
    noise = (usage["sampled_cpus"] / usage["average_cpus"]).log().to_numpy()
    assert noise.std() == pytest.approx(0.4, rel=0.01)
    assert noise.mean() == pytest.approx(-0.08, abs=0.005)
    assert np.exp(noise).mean() == pytest.approx(1.0, abs=0.01)
    assert (usage["maximum_cpus"] >= usage["average_cpus"]).all()
    assert (usage["maximum_cpus"] >= usage["sampled_cpus"]).all()
    assert (usage["maximum_memory_bytes"] >= usage["average_memory_bytes"]).all()


def test_seconds_scatter_by_application():
    """Deviations of seconds differ among applications as stated, around the stated median."""
    workload = _generated(corrupt_share=0.0, second_scatter=0.4, service_share=1.0, users=40)
    joined = _usage(workload).join(workload.jobs.select("job_id", "executable"), on="job_id")
    noise = (pl.col("sampled_cpus") / pl.col("average_cpus")).log()
    log = joined.group_by("executable").agg(noise.std().log()).to_numpy()[:, 1].astype(float)
    assert log.mean() == pytest.approx(np.log(0.5), abs=0.15)
    assert log.std() == pytest.approx(0.4, rel=0.15)


def test_highest_second_is_that_of_300_seconds():
    """The maximum's median is that of the highest of 300 log-normal seconds."""
    usage = _usage(_generated(corrupt_share=0.0, second_log_deviation=0.4, second_scatter=0.0))
    ratio = (usage["maximum_cpus"] / usage["average_cpus"]).log().to_numpy()
    random = np.random.default_rng(9)
    drawn = 0.4 * random.standard_normal((20_000, 300)).max(axis=1) - 0.08
    assert np.median(ratio) == pytest.approx(np.median(drawn), rel=0.03)


def test_regimes(monkeypatch):
    """Use has the stated levels, factors and mean stay, all levels as often."""
    use = _swinging(monkeypatch, regimes=3, regime_spread=2.0, regime_seconds=7200.0)
    level = use.select(
        (pl.col("average_cpus") / pl.col("average_cpus").min().over("job_id", "task")).log(2.0)
    ).to_series()
    number = level.round(6)
    assert sorted(number.unique()) == [0.0, 1.0, 2.0]
    shares = number.value_counts(normalize=True)["proportion"]
    assert_allclose(shares, 1 / 3, atol=0.03)
    same_task = (use["task"].diff() == 0) & (use["job_id"] == use["job_id"].shift(1))
    left = (number != number.shift(1)).filter(same_task)
    assert left.mean() == pytest.approx(300 / 7200, rel=0.05)


def test_daily_swing(monkeypatch):
    """A service without regimes and bursts swings by the stated share, once a day."""
    use = _swinging(monkeypatch, daily_swing=0.4)
    swing = use.group_by("job_id", "task").agg(
        ratio=pl.col("average_cpus").max() / pl.col("average_cpus").min(),
        peak=(pl.col("start_seconds").sort_by("average_cpus").last() % 86400.0),
    )
    assert_allclose(swing["ratio"], 1.4 / 0.6, rtol=1e-3)
    hours = swing["peak"].to_numpy() / 3600.0
    assert np.median(hours) == pytest.approx((0.4 + 0.25) * 24, abs=1.0)


def test_bursts(monkeypatch):
    """The stated share of periods is the stated factor above the rest."""
    use = _swinging(monkeypatch, burst_share=0.05, burst_factor=4.0)
    ratio = use.select(
        pl.col("average_cpus") / pl.col("average_cpus").min().over("job_id", "task")
    ).to_series()
    bursting = ratio > 2.0
    assert bursting.mean() == pytest.approx(0.05, rel=0.05)
    assert_allclose(ratio.filter(bursting), 4.0)


def test_scatter_of_jobs_and_tasks():
    """Runtimes scatter within applications and within jobs as stated."""
    workload = _generated(
        jobs=3000, days=20.0, service_share=0.0, users=4, single_task_share=0.0, most_tasks=4
    )
    assert workload.tasks is not None
    log = pl.col("runtime_seconds").log()
    within = workload.tasks.group_by("job_id").agg(log.var(), pl.len())
    pooled = (within["runtime_seconds"] * (within["len"] - 1)).sum() / (within["len"] - 1).sum()
    assert np.sqrt(pooled) == pytest.approx(0.15, rel=0.05)
    joined = workload.tasks.join(workload.jobs.select("job_id", "executable"), on="job_id")
    means = joined.group_by("job_id").agg(log.mean(), pl.col("executable").first())
    between = means.group_by("executable").agg(pl.col("runtime_seconds").var())
    assert np.sqrt(between["runtime_seconds"].mean()) == pytest.approx(0.5, rel=0.1)


def test_analyses_of_generated_usage():
    """Both studies find what was put in: seconds vary more than means; jobs more than tasks."""
    volatility = cpu_volatility(CpuVolatilityParameters()).examine(_generated())
    assert isinstance(volatility, Finding)
    assert volatility.scalars["share_of_tasks_with_cv_sampled_above_averaged"] > 0.95
    kept = volatility.tables["filters"]["jobs"].to_list()
    assert kept[:3] == [300, 60, 60]
    workload = _generated(jobs=3000, days=20.0, service_share=0.0, single_task_share=0.2)
    study = task_variability(TaskVariabilityParameters(window_days=(3.0, 7.0)))
    variability = study.examine(workload)
    assert isinstance(variability, Finding)
    name = "runtime_time_exceeds_space_at_least_one_share"
    assert variability.scalars[name] > 0.6


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jobs", 0),
        ("days", 0.5),
        ("days", float("inf")),
        ("corrupt_share", 1.5),
    ],
)
def test_usage_parameters_out_of_range(name, value):
    """Absurd parameters are refused by name."""
    with pytest.raises(InputError, match=name):
        UsageParameters(**{name: value})
