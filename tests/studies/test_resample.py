"""The resampler keeps what schedulers and predictors feel: sizes, runtimes, habits, cycles."""

from contextlib import nullcontext, suppress

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.traces.generating import generate
from foresail.traces.generators.lublin import LublinParameters
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.generators.resample import WEEK_SECONDS, ResampleParameters, resampled
from shared import shared


def model_log(jobs=15_000):
    return generate("lublin", LublinParameters(jobs=jobs, load=2.0), 5)


def resample(workload, seed=1, **parameters):
    return resampled(workload, ResampleParameters("", **parameters), np.random.default_rng(seed))


def distance(first, second):
    """Largest difference of two empirical distributions (Kolmogorov-Smirnov)."""
    at = np.union1d(first, second)
    return np.abs(
        np.searchsorted(np.sort(first), at, "right") / first.size
        - np.searchsorted(np.sort(second), at, "right") / second.size
    ).max()


def log_runtimes(workload):
    known = workload.jobs.filter(pl.col("runtime_seconds") > 0)
    return np.log(known["runtime_seconds"].to_numpy())


def memory_of_users(workload):
    """Correlation of successive log runtimes of a user, about that user's mean."""
    log = pl.col("runtime_seconds").log()
    jobs = workload.jobs.filter(pl.col("runtime_seconds") > 0).select("user", log.alias("log"))
    jobs = jobs.with_columns((pl.col("log") - pl.col("log").mean().over("user")).alias("log"))
    pairs = jobs.with_columns(pl.col("log").shift().over("user").alias("before")).drop_nulls()
    return np.corrcoef(pairs["log"], pairs["before"])[0, 1]


def cycle(workload, period, parts):
    """Share of submissions in each part of a day or week."""
    phase = np.mod(workload.jobs["submit_seconds"].to_numpy(), period) * parts // period
    return np.bincount(phase.astype(int), minlength=parts) / phase.size


def assert_alike(source, result):
    """Within the tolerances that the documentation of the resampler states."""
    assert distance(source.cpus, result.cpus) < 0.05
    assert distance(log_runtimes(source), log_runtimes(result)) < 0.05
    assert abs(memory_of_users(source) - memory_of_users(result)) < 0.1
    assert np.abs(cycle(source, 86400, 24) - cycle(result, 86400, 24)).max() < 0.015
    assert np.abs(cycle(source, WEEK_SECONDS, 7) - cycle(result, WEEK_SECONDS, 7)).max() < 0.03
    assert len(result) == pytest.approx(len(source), rel=0.15)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_model_log_keeps_its_structure(seed):
    """Distributions, the memory of users and the daily cycle are those of the source."""
    source = model_log()
    result = resample(source, seed)
    assert_alike(source, result)
    assert not result.jobs["runtime_seconds"].equals(source.jobs["runtime_seconds"])


@pytest.mark.parametrize("name", ["KTH-SP2-1996-2", "SDSC-BLUE-2000-4.2-cln"])
def test_a_real_log_keeps_its_structure(name):
    """So it is for real logs, read by the generator itself."""
    from foresail.traces.reading import read

    path = shared(f"traces/pwa/{name}.swf.gz")
    result = generate("resample", ResampleParameters(str(path)), 1)
    assert_alike(read(path), result)
    assert result.meta.reader == "resample"


def test_load_factor_multiplies_the_load_and_keeps_habits():
    """Twice the users' copies give about twice the jobs; copies are users of their own."""
    source = model_log()
    double = resample(source, load_factor=2.0)
    assert len(double) == pytest.approx(2 * len(source), rel=0.15)
    assert double.jobs["user"].n_unique() > 1.5 * source.jobs["user"].n_unique()
    assert np.abs(cycle(source, 86400, 24) - cycle(double, 86400, 24)).max() < 0.015


def test_longer_than_the_source():
    """More weeks than the source has are filled evenly."""
    source = model_log(5000)
    weeks = int(source.jobs["submit_seconds"].max() // WEEK_SECONDS) + 1
    longer = resample(source, weeks=3 * weeks)
    assert len(longer) == pytest.approx(3 * len(source), rel=0.2)
    assert longer.jobs["submit_seconds"].max() > 2.5 * source.jobs["submit_seconds"].max()


def test_a_users_week_stays_together():
    """Without jitter and with whole runs, gaps between a user's jobs within a week are kept."""
    weeks = np.repeat(np.arange(4), 3)
    jobs = jobs_table(
        {
            "job_id": [str(n) for n in range(12)],
            "submit_seconds": weeks * WEEK_SECONDS + np.tile([100.0, 160.0, 400.0], 4),
            "runtime_seconds": weeks * 10.0 + np.tile([1.0, 2.0, 3.0], 4),
            "tasks": [1] * 12,
            "user": ["u"] * 12,
        }
    )
    source = Workload(jobs, WorkloadMeta("made", "made", processors=4))
    result = resample(source, jitter_seconds=0.0).jobs
    in_week = np.mod(result["submit_seconds"].to_numpy(), WEEK_SECONDS).reshape(-1, 3)
    assert (in_week == [100.0, 160.0, 400.0]).all()
    runtimes = result["runtime_seconds"].to_numpy().reshape(-1, 3)
    assert (np.diff(runtimes, axis=1) == 1.0).all()


@given(
    submits=st.lists(st.floats(0, 5e6), min_size=1, max_size=40),
    users=st.lists(st.sampled_from(["a", "b", None]), min_size=40, max_size=40),
    weeks=st.none() | st.integers(1, 20),
    most=st.none() | st.integers(1, 50),
    seed=st.integers(0, 1000),
)
def test_any_log_gives_a_sound_workload(submits, users, weeks, most, seed):
    """Ids are new and unique, submissions sorted and inside, the same seed gives the same jobs."""
    n = len(submits)
    jobs = jobs_table(
        {
            "job_id": [str(i) for i in range(n)],
            "submit_seconds": submits,
            "runtime_seconds": [5.0] * n,
            "tasks": [1] * n,
            "user": pl.Series(users[:n], dtype=pl.String),
            "after_job_id": pl.Series([None] * n, dtype=pl.String),
        }
    )
    source = Workload(jobs, WorkloadMeta("made", "made"))
    # A short horizon may miss the only user; a horizon as long as the source cannot.
    may_miss = weeks is not None or most is not None
    result = None
    with suppress(InputError) if may_miss else nullcontext():
        result = resample(source, seed, weeks=weeks, jobs=most)
    if result is None:
        return
    assert result.jobs.schema == source.jobs.schema
    assert result.jobs["submit_seconds"].is_sorted()
    assert result.jobs["submit_seconds"].min() >= 0
    assert result.jobs["job_id"].to_list() == [str(i + 1) for i in range(len(result))]
    assert most is None or len(result) <= most
    assert result.jobs.equals(resample(source, seed, weeks=weeks, jobs=most).jobs)


@pytest.mark.parametrize(
    "wrong",
    [
        {"weeks": 0},
        {"jobs": 0},
        {"load_factor": 0.0},
        {"jitter_seconds": -1.0},
    ],
)
def test_parameters_out_of_range_are_refused(wrong):
    """Each wrong parameter is named."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        ResampleParameters("x", **wrong)


def test_an_absent_source_is_named():
    """The reader's error reaches the user."""
    with pytest.raises(InputError, match=r"absent\.swf"):
        generate("resample", ResampleParameters("absent.swf"), 1)


def test_an_empty_workload_is_refused():
    """There is nothing to draw from."""
    with pytest.raises(InputError, match="no jobs"):
        resample(Workload(model_log(10).jobs.head(0), WorkloadMeta("made", "made")))
