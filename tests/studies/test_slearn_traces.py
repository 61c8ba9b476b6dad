"""SLearn's traces: exact variation over time and space, mixes, halves, load over windows, DAGs."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.traces import schema
from foresail.traces.folder import write_folder
from foresail.traces.generating import generate
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.generators._preparation import (
    CALIBRATIONS,
    JobsWithTasks,
    calibrated,
    compressed,
    jobs_with_tasks,
    rescaled_times,
    sharing,
    spread,
    window_loads,
)
from foresail_studies.generators.slearn import SLearnDagParameters, SLearnTracesParameters


def slearn(seed=1, **parameters):
    return generate("slearn", SLearnTracesParameters(**parameters), seed)


def dags(seed=1, **parameters):
    return generate("slearn_dag", SLearnDagParameters(**parameters), seed)


def made_jobs(submit, widths, seconds=None):
    submit = np.array(submit, dtype=np.float64)
    width = np.array(widths, dtype=np.int64)
    if seconds is None:
        seconds = np.arange(1, width.sum() + 1)
    features = pl.DataFrame({"user": [f"u{n % 2}" for n in range(width.size)]})
    return JobsWithTasks(submit, width, np.array(seconds, dtype=np.float64), features)


# Values with an exact variation


@settings(max_examples=40)
@given(
    members=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    wished=st.floats(0, 5),
    seed=st.integers(0, 99),
)
def test_spread_has_the_coefficient_of_variation(members, wished, seed):
    """Each group has mean 1 and the wished coefficient, or 90 % of the most it can have."""
    sizes = np.array(members)
    values = spread(sizes, np.full(sizes.size, wished), np.random.default_rng(seed))
    assert (values >= 0).all()
    for group, size in zip(np.split(values, np.cumsum(sizes)[:-1]), sizes, strict=True):
        assert group.mean() == pytest.approx(1.0)
        expected = min(wished, 0.9 * np.sqrt(size - 1))
        assert group.std() == pytest.approx(expected, abs=1e-6)


# Load over windows


def slow_window_loads(submit, size, slots):
    """Window by window, as the definition reads."""
    loads, start = [], submit[0] - 900.0
    while start <= submit[-1]:
        inside = [s for t, s in zip(submit, size, strict=True) if start <= t < start + 1000.0]
        loads.append(sum(inside) / (slots * 1000.0))
        start += 100.0
    return loads


@given(
    gaps=st.lists(st.integers(0, 3000), min_size=1, max_size=30),
    slots=st.integers(1, 200),
)
def test_window_loads_are_the_definition(gaps, slots):
    """Against the slow reading, job by job and window by window."""
    submit = np.cumsum(gaps).astype(np.float64)
    size = np.arange(1.0, submit.size + 1)
    assert window_loads(submit, size, slots) == pytest.approx(
        slow_window_loads(submit, size, slots)
    )


@given(
    gaps=st.lists(st.floats(0.01, 5000), min_size=5, max_size=60),
    wished=st.floats(0.05, 3),
)
def test_rescaled_load_is_met_to_one_window(gaps, wished):
    """The mean load is the wished one as nearly as a whole number of windows can, if it can."""
    submit = np.cumsum(gaps)
    size = np.linspace(100, 90_000, submit.size)
    times = rescaled_times(submit, size, 50, wished)
    loads = window_loads(times, size, 50)
    assert times[0] == 0.0
    stretched = np.diff(times) * (submit[-1] - submit[0])
    assert stretched == pytest.approx(np.diff(submit) * times[-1], abs=1e-6 * submit[-1])
    if loads.size > 11:
        assert loads.mean() == pytest.approx(wished, rel=0.6 / loads.size)


# The population


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_variation_over_time_and_space(name):
    """Median and 90 % quantile over jobs are those of table 4."""
    calibration = CALIBRATIONS[name]
    jobs = calibrated(8000, calibration, np.random.default_rng(3))
    p90 = NormalDist().inv_cdf(0.9)
    means = pl.DataFrame({"name": jobs.features["executable"], "mean": jobs.size / jobs.width})
    over_time = means.select(
        (pl.col("mean").std(ddof=0) / pl.col("mean").mean()).over("name")
    ).to_series()
    median, deviation = calibration.time
    assert over_time.median() == pytest.approx(median, rel=0.03)
    assert over_time.quantile(0.9) == pytest.approx(median * np.exp(p90 * deviation), rel=0.1)
    groups = zip(np.split(jobs.task_seconds, jobs.begins[1:]), jobs.width, strict=True)
    over_space = np.array(
        [
            tasks.std() / (tasks.mean() * np.sqrt(0.03 * width))
            for tasks, width in groups
            if width > 1
        ]
    )
    median, deviation = calibration.space
    assert np.median(over_space) == pytest.approx(median, rel=0.05)
    assert np.quantile(over_space, 0.9) == pytest.approx(median * np.exp(p90 * deviation), rel=0.1)


@pytest.mark.parametrize("seed", [0, 1])
def test_widths_and_sizes_are_mixed_as_in_table_9(seed):
    """Shares of jobs to half a point of the population, shares of work to one."""
    jobs = calibrated(10_000, CALIBRATIONS["2strace"], np.random.default_rng(seed))
    thin, small = jobs.width < 3, jobs.size < 1000
    bins = [thin & small, ~thin & small, thin & ~small, ~thin & ~small]
    counts = [100 * part.mean() for part in bins]
    work = [100 * jobs.size[part].sum() / jobs.size.sum() for part in bins]
    assert counts == pytest.approx([4.55, 28.73, 14.29, 52.43], abs=0.5)
    assert work == pytest.approx([0.01, 0.06, 5.41, 94.52], abs=0.1)
    assert (jobs.width < 5).mean() == pytest.approx(0.585, abs=0.015)
    assert jobs.width.max() <= 150


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_a_run_has_its_load(name):
    """1250 jobs, the published mean load over windows, and mixes near those of the population."""
    workload = slearn(calibration=name)
    assert len(workload) == 1250
    assert workload.processors == 150
    header = workload.meta.header
    assert float(header["achieved_load"]) == pytest.approx(CALIBRATIONS[name].load, rel=1e-3)
    assert float(header["achieved_wide_large_jobs_percent"]) == pytest.approx(52.43, abs=5)
    assert float(header["achieved_wide_large_work_percent"]) == pytest.approx(94.52, abs=4)


def test_tasks_agree_with_jobs():
    """A row for each task, numbered; the longest is the job's runtime."""
    workload = slearn(jobs=200)
    assert workload.tasks is not None
    assert dict(workload.tasks.schema) == schema.TASKS
    by_job = workload.tasks.group_by("job_id", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("tasks"),
        pl.col("runtime_seconds").max(),
        pl.col("task").sort().alias("number"),
    )
    for name in ("job_id", "tasks", "runtime_seconds"):
        assert by_job[name].equals(workload.jobs[name], check_names=False)
    assert all(row == list(range(len(row))) for row in by_job["number"].to_list())
    stages = [job.stages[0].tasks for job in workload.specifications()]
    assert stages == workload.jobs["tasks"].to_list()


def test_history_shares_names_with_the_run():
    """It comes from the earlier half, of the same users and names, and has other ids."""
    run, history = slearn(jobs=300), slearn(jobs=300, part="history")
    assert len(history) > 900
    assert not set(run.jobs["job_id"]) & set(history.jobs["job_id"])
    identity = ("user", "executable", "application")
    shared_values = {name: set(run.jobs[name]) for name in identity}
    for row in history.jobs.iter_rows(named=True):
        assert any(row[name] in shared_values[name] for name in identity)


def test_only_jobs_that_share_a_value_are_history():
    """A user or a name in common; unknown values are not in common."""

    def with_names(users, names):
        jobs = made_jobs(range(len(users)), [1] * len(users))
        return replace(jobs, features=pl.DataFrame({"user": users, "executable": names}))

    run = with_names(["a", None], ["x", "y"])
    history = with_names(["a", "b", "c", None], ["q", "y", "z", None])
    assert sharing(history, run).submit_seconds.tolist() == [0.0, 1.0]


# Preparation of a log


def log(count=400, widest=300):
    random = np.random.default_rng(9)
    width = random.integers(1, widest + 1, count)
    jobs = jobs_table(
        {
            "job_id": [f"j{n}" for n in range(count)],
            "submit_seconds": np.cumsum(random.exponential(600, count)),
            "runtime_seconds": random.uniform(1, 1000, count),
            "tasks": width,
            "user": random.choice(["a", "b", "c"], count),
        }
    )
    return Workload(jobs, WorkloadMeta("made", "made", processors=441))


def test_wide_jobs_are_dropped_or_compressed(tmp_path):
    """Google's rule and 2Sigma's; halves are by order of submission."""
    source = log()
    write_folder(source, tmp_path / "log")
    dropped = slearn(source=str(tmp_path / "log"), jobs=400)
    few = source.jobs.filter(pl.col("tasks") <= 150)
    assert dropped.jobs["tasks"].equals(few["tasks"].slice(few.height // 2))
    squeezed = slearn(source=str(tmp_path / "log"), jobs=400, wide="compress")
    expected = (source.jobs["tasks"] / 2.94).ceil().clip(1, 150).cast(pl.Int64)
    assert squeezed.jobs["tasks"].equals(expected.slice(200))


def test_the_load_of_a_log_is_its_own(tmp_path):
    """On its own machine, over all its jobs; or what is asked for."""
    source = log()
    write_folder(source, tmp_path / "log")
    size = (source.jobs["tasks"] * source.jobs["runtime_seconds"]).to_numpy()
    own = window_loads(source.jobs["submit_seconds"].to_numpy(), size, 441).mean()
    workload = slearn(source=str(tmp_path / "log"))
    assert float(workload.meta.header["achieved_load"]) == pytest.approx(own, rel=2e-3)
    asked = slearn(source=str(tmp_path / "log"), load=0.3)
    assert float(asked.meta.header["achieved_load"]) == pytest.approx(0.3, rel=2e-3)


def test_compression_keeps_tasks_of_the_job():
    """11.18: the width over the ratio, rounded up, of the job's own tasks, none twice."""
    jobs = made_jobs([0, 1, 2], [10, 1, 500])
    result = compressed(jobs, 2.94, 150, np.random.default_rng(1))
    assert result.width.tolist() == [4, 1, 150]
    own = np.split(jobs.task_seconds, jobs.begins[1:])
    for kept, all_of_them in zip(
        np.split(result.task_seconds, result.begins[1:]), own, strict=True
    ):
        assert set(kept) <= set(all_of_them)
        assert len(set(kept)) == kept.size


def test_tasks_of_a_log_are_used(tmp_path):
    """Where a job has rows of its own they count, else all its tasks are equal."""
    table = jobs_table(
        {
            "job_id": ["x", "y"],
            "submit_seconds": [0.0, 1.0],
            "runtime_seconds": [7.0, 9.0],
            "tasks": [2, 3],
        }
    )
    tasks = pl.DataFrame({"job_id": ["x", "x"], "task": [0, 1], "runtime_seconds": [7.0, 3.0]})
    workload = Workload(table, WorkloadMeta("made", "made"), tasks=tasks)
    jobs = jobs_with_tasks(workload)
    assert jobs.width.tolist() == [2, 3]
    assert jobs.task_seconds.tolist() == [7.0, 3.0, 9.0, 9.0, 9.0]


def test_taking_jobs_takes_their_tasks():
    """Sizes, widths and tasks follow the rows, in any order."""
    jobs = made_jobs([0, 5, 9], [2, 1, 3])
    taken = jobs.taken(np.array([2, 0]))
    assert taken.task_seconds.tolist() == [4.0, 5.0, 6.0, 1.0, 2.0]
    assert taken.size.tolist() == [15.0, 3.0]


def test_a_log_without_a_load_needs_one(tmp_path):
    """Its processors unknown, the user must say."""
    source = log().with_meta(processors=None)
    write_folder(source, tmp_path / "log")
    with pytest.raises(InputError, match="load"):
        slearn(source=str(tmp_path / "log"))
    assert len(slearn(source=str(tmp_path / "log"), load=1.0)) > 50


# DAGs


def test_dags_are_chains_of_one_name():
    """Two to five stages, each after the one before, about equally likely."""
    workload = dags(dags=400)
    assert len(workload) == 400
    jobs = list(workload.specifications())
    for job in jobs:
        names = [stage.name for stage in job.stages]
        assert names == [f"stage{n + 1}" for n in range(len(names))]
        assert [stage.after for stage in job.stages] == [(), *((name,) for name in names[:-1])]
        assert max(stage.tasks for stage in job.stages) == job.cpus
    lengths = np.bincount([len(job.stages) for job in jobs], minlength=6)
    assert lengths[:2].sum() == 0
    assert lengths[2:] / 400 == pytest.approx(np.full(4, 0.25), abs=0.08)
    assert workload.jobs["tasks"].to_list() == [job.cpus for job in jobs]


def test_runtime_of_a_dag_is_the_sum_of_its_stages():
    """Each as long as its longest task."""
    workload = dags(dags=60)
    assert workload.tasks is not None
    stages = workload.tasks.group_by("job_id", "stage", maintain_order=True).agg(
        pl.col("runtime_seconds").max()
    )
    total = stages.group_by("job_id", maintain_order=True).agg(pl.col("runtime_seconds").sum())
    assert total["runtime_seconds"].to_numpy() == pytest.approx(workload.runtime_seconds)
    assert workload.tasks["runtime_seconds"].is_unique().all()  # no job is in two DAGs
    assert float(workload.meta.header["achieved_load"]) == pytest.approx(1.04, rel=2e-3)


def test_history_of_dags():
    """Other DAGs of the same names."""
    run, history = dags(dags=100), dags(dags=100, part="history")
    assert not set(run.runtime_seconds) & set(history.runtime_seconds)
    assert set(run.jobs["user"]) & set(history.jobs["user"])


def test_dags_need_names(tmp_path):
    """Jobs of nobody do not belong together."""
    source = log().with_jobs(log().jobs.with_columns(user=pl.lit(None, dtype=pl.String)))
    write_folder(source, tmp_path / "log")
    with pytest.raises(InputError, match="users"):
        dags(source=str(tmp_path / "log"))


@settings(max_examples=15)
@given(
    jobs=st.integers(2, 150),
    slots=st.integers(1, 300),
    wished=st.none() | st.floats(0.2, 2),
    part=st.sampled_from(["run", "history"]),
    seed=st.integers(0, 50),
)
def test_equal_seeds_give_equal_traces(jobs, slots, wished, part, seed):
    """Jobs and tasks alike, in order of submission, for all parameters."""
    own = {"jobs": jobs, "slots": slots, "load": wished, "part": part}
    first, second = slearn(seed, **own), slearn(seed, **own)
    assert first.jobs.equals(second.jobs)
    assert first.tasks is not None
    assert first.tasks.equals(second.tasks)
    assert first.jobs["submit_seconds"].is_sorted()
    assert first.jobs["runtime_seconds"].min() > 0
    assert len(first) == jobs or part == "history"


@pytest.mark.parametrize(
    ("record", "wrong"),
    [
        (SLearnTracesParameters, {"jobs": 1}),
        (SLearnTracesParameters, {"slots": 0}),
        (SLearnTracesParameters, {"load": 0.0}),
        (SLearnTracesParameters, {"calibration": "azure"}),
        (SLearnTracesParameters, {"wide": "keep"}),
        (SLearnTracesParameters, {"part": "future"}),
        (SLearnDagParameters, {"dags": 1}),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(record, wrong):
    """Each wrong parameter is named."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        record(**wrong)


def test_a_population_may_be_wider():
    """The median of the wide jobs' widths is as asked for, and all else is the same mix."""
    wide = slearn(jobs=1000, median_tasks=60.0)
    width = wide.jobs["tasks"].to_numpy()
    many = width[width >= 3]
    assert many.min() >= 5
    assert np.median(many) == pytest.approx(60.0, rel=0.3)
    assert many.size / width.size == pytest.approx(0.8116, abs=0.05)
    with pytest.raises(InputError, match="out of range"):
        SLearnTracesParameters(median_tasks=0.0)
