"""The E2E family: classes, arrivals, loads, deadlines and preferences are as the recipe says."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from foresail.model.errors import InputError
from foresail.traces.facts import offered_load
from foresail.traces.generating import generate
from foresail_studies.generators import _demands as arrivals
from foresail_studies.generators import _synthetic as population
from foresail_studies.generators._demands import (
    draw_slacks,
    preferred_racks,
    split_by_load,
)
from foresail_studies.generators._synthetic import JobClasses, SyntheticParameters, k_means
from foresail_studies.generators.e2e import (
    E2ESampleParameters,
    ScalabilityParameters,
)
from foresail_studies.predictors.sampled import samples_of


def e2e(seed=1, **parameters):
    return generate("e2e", SyntheticParameters(**parameters), seed)


def parts(workload):
    """The jobs with deadlines, and the others."""
    jobs = workload.jobs
    return jobs.filter(pl.col("deadline_seconds").is_not_null()), jobs.filter(
        pl.col("deadline_seconds").is_null()
    )


def load(jobs, nodes=256, hours=5.0):
    work = jobs["tasks"].to_numpy(), jobs["runtime_seconds"].to_numpy()
    return offered_load(*work, nodes, 3600.0 * hours)


# Arrivals


def test_golden_hyperexponential():
    """G18: balanced means with a squared coefficient of variation of 4."""
    first, fast, slow = arrivals.balanced_hyperexponential(4.0)
    assert (first, fast, slow) == pytest.approx((0.887298, 1.774597, 0.225403), abs=1e-6)
    mean = first / fast + (1 - first) / slow
    second = 2 * first / fast**2 + 2 * (1 - first) / slow**2
    assert mean == pytest.approx(1.0)
    assert second - mean**2 == pytest.approx(4.0)


def test_gaps_have_their_distribution():
    """A Kolmogorov-Smirnov test against the mixture, and the variability of a long run."""
    gaps = arrivals.draw_gaps(200_000, 4.0, np.random.default_rng(3))
    first, fast, slow = arrivals.balanced_hyperexponential(4.0)

    def distribution(x):
        return 1 - first * np.exp(-fast * x) - (1 - first) * np.exp(-slow * x)

    assert stats.kstest(gaps, distribution).pvalue > 0.01
    assert arrivals.variability_of(np.cumsum(gaps)) == pytest.approx(4.0, rel=0.03)


def test_variability_one_is_poisson():
    """The hyperexponential of variability 1 is the exponential."""
    gaps = arrivals.draw_gaps(50_000, 1.0, np.random.default_rng(3))
    assert stats.kstest(gaps, "expon").pvalue > 0.01


@given(count=st.integers(1, 50), seconds=st.floats(1, 1e6), variability=st.floats(1, 20))
def test_arrivals_fill_the_time(count, seconds, variability):
    """The first is at zero, the last at the end, and they ascend."""
    times = arrivals.draw_arrivals(count, seconds, variability, np.random.default_rng(0))
    assert times.size == count
    assert times[0] == 0.0
    assert times[-1] == (pytest.approx(seconds) if count > 1 else 0.0)
    assert (np.diff(times) >= 0).all()


# Classes


@given(
    values=st.lists(st.floats(-20, 20), min_size=1, max_size=60),
    clusters=st.integers(1, 10),
    seed=st.integers(0, 99),
)
def test_k_means_is_a_fixed_point(values, clusters, seed):
    """Every value is in the cluster of the nearest centre, clusters ascend, none is empty."""
    data = np.array(values)
    labels = k_means(data, clusters, np.random.default_rng(seed))
    kinds = np.unique(labels)
    assert kinds.tolist() == list(range(kinds.size))
    assert kinds.size <= clusters
    centres = np.array([data[labels == kind].mean() for kind in kinds])
    own = np.abs(data - centres[labels])
    nearest = np.abs(data[:, None] - centres[None, :]).min(axis=1)
    assert own == pytest.approx(nearest, abs=1e-9)


def test_k_means_finds_separate_groups():
    """Three groups far apart are told apart whatever the seed."""
    random = np.random.default_rng(0)
    data = np.concatenate([random.normal(centre, 0.1, 50) for centre in (0.0, 10.0, 20.0)])
    for seed in range(5):
        labels = k_means(data, 3, np.random.default_rng(seed))
        assert labels.tolist() == np.repeat([0, 1, 2], 50).tolist()


def source_jobs(seed=0):
    return population.google_like(np.random.default_rng(seed)).no_wider_than(256)


def test_log_normal_classes_have_the_fitted_moments():
    """Runtimes of each class have the mean and deviation of its logarithms."""
    jobs = source_jobs()
    classes = JobClasses(jobs, 8, "log_normal", 256, np.random.default_rng(1))
    drawn = classes.draw(60_000, np.random.default_rng(2))
    logs = np.log(jobs.runtime_seconds)
    for kind in range(classes.count):
        mine = np.log(drawn.runtime_seconds[drawn.of_class == kind])
        member = logs[classes.label == kind]
        assert mine.mean() == pytest.approx(member.mean(), abs=5 * member.std() / mine.size**0.5)
        assert mine.std() == pytest.approx(member.std(), rel=0.15)
        one = (jobs.width[classes.label == kind] == 1).mean()
        width = drawn.width[drawn.of_class == kind]
        assert (width == 1).mean() == pytest.approx(one, abs=0.04)
        several = jobs.width[(classes.label == kind) & (jobs.width > 1)]
        assert np.log(width[width > 1]).mean() == pytest.approx(np.log(several).mean(), abs=0.15)
        share = (classes.label == kind).mean()
        assert mine.size / 60_000 == pytest.approx(share, abs=0.01)


def test_features_and_empirical_values_come_from_the_class():
    """A job's features are those of one job of its class; so are empirical runtimes and widths."""
    jobs = source_jobs()
    classes = JobClasses(jobs, 8, "empirical", 256, np.random.default_rng(1))
    drawn = classes.draw(5000, np.random.default_rng(2))
    assert (classes.label[drawn.source] == drawn.of_class).all()
    for kind in range(classes.count):
        members = classes.label == kind
        mine = drawn.of_class == kind
        assert set(drawn.runtime_seconds[mine]) <= set(jobs.runtime_seconds[members])
        assert set(drawn.width[mine]) <= set(jobs.width[members])


def test_the_population_has_googles_published_characteristics():
    """Median and 80 % quantile of runtimes, share of jobs with one task."""
    jobs = population.google_like(np.random.default_rng(5))
    middle, upper = np.quantile(jobs.runtime_seconds, [0.5, 0.8])
    assert (middle, upper) == pytest.approx((234.5, 720.0), rel=1e-6)
    assert (jobs.width == 1).mean() == pytest.approx(0.77, abs=0.08)
    within = jobs.features.with_columns(log=np.log(jobs.runtime_seconds))
    spread = within.with_columns(pl.col("log") - pl.col("log").mean().over("executable"))
    assert spread["log"].var() < 0.4 * within["log"].var()


def test_names_tell_runtimes_as_in_the_study():
    """The median of a name's jobs is within a factor of two for 77 to 92 % of jobs, as published.

    Classes hide what a name's own runtimes are, so that workloads are at the lower end.
    """
    jobs = e2e(1, part="history", history_hours=50.0).jobs
    for runtime, name in (
        (jobs["runtime_seconds"], jobs["executable"]),
        (pl.Series(source_jobs().runtime_seconds), source_jobs().features["executable"]),
    ):
        table = pl.DataFrame({"runtime": runtime, "name": name})
        ratio = table.select(pl.col("runtime") / pl.col("runtime").median().over("name"))
        assert 0.77 <= ratio.to_series().is_between(0.5, 2.0).mean() <= 0.92


# Demands


@given(
    work=st.lists(st.floats(0.1, 100), min_size=1, max_size=200),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_split_is_as_near_as_one_job(work, share, seed):
    """The part's share of the work is off by half of the largest job at most."""
    data = np.array(work)
    part = split_by_load(data, share, np.random.default_rng(seed))
    off = abs(data[part].sum() / data.sum() - share)
    assert off <= data.max() / data.sum() / 2 + 1e-9


def test_slacks_are_equally_likely():
    """A chi-squared test over the four of the study."""
    slacks = draw_slacks((20.0, 40.0, 60.0, 80.0), 20_000, np.random.default_rng(1))
    values, counts = np.unique(slacks, return_counts=True)
    assert values.tolist() == [0.2, 0.4, 0.6, 0.8]
    assert stats.chisquare(counts).pvalue > 0.01


def test_racks_are_equally_likely_and_six():
    """Each job that fits has six racks of its own; each rack is in three quarters of them."""
    width = np.array([1] * 8000 + [192] * 10 + [193] * 10)
    chosen = preferred_racks(width, 256, np.random.default_rng(1))
    assert all(text is not None for text in chosen[:8010])
    assert all(text is None for text in chosen[8010:])
    racks = [text.removeprefix("partition:").split(",") for text in chosen[:8000]]
    assert {len(set(each)) for each in racks} == {6}
    _, counts = np.unique(np.concatenate(racks), return_counts=True)
    assert counts.size == 8
    assert counts / 8000 == pytest.approx(np.full(8, 0.75), abs=0.02)


# Whole workloads


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_recipe(seed):
    """Loads to 1e-6, job count and mean work of the study, classes unseen, slacks of the set."""
    workload = e2e(seed)
    slo, best_effort = parts(workload)
    assert load(workload.jobs) == pytest.approx(1.4, abs=1e-6)
    assert load(slo) == pytest.approx(0.7, abs=1e-6)
    assert load(best_effort) == pytest.approx(0.7, abs=1e-6)
    assert len(workload) == 1506
    assert workload.jobs["tasks"].max() <= 256
    submit = workload.jobs["submit_seconds"]
    assert (submit[0], submit[-1]) == (0.0, pytest.approx(5 * 3600.0))
    assert arrivals.variability_of(submit.to_numpy()) == pytest.approx(4.0, abs=1.2)
    assert workload.feature_names == ("priority",)
    slack = (slo["deadline_seconds"] - slo["submit_seconds"]) / slo["runtime_seconds"] - 1
    assert set(slack.round(6).to_list()) == {0.2, 0.4, 0.6, 0.8}
    fits = slo.filter(pl.col("preferred").is_not_null())
    assert (fits["slowdown_elsewhere"] == 1.5).all()
    assert slo.filter(pl.col("preferred").is_null())["tasks"].min() in (None, *range(193, 257))
    assert best_effort["preferred"].null_count() == best_effort.height
    assert workload.nodes is not None
    assert workload.nodes["count"].to_list() == [32] * 8


def test_what_was_reached_is_in_the_header():
    """Figures recomputed from the jobs are those that the header states."""
    workload = e2e(4)
    slo, _ = parts(workload)
    header = workload.meta.header
    assert float(header["achieved_load"]) == pytest.approx(load(workload.jobs), rel=1e-6)
    assert float(header["achieved_slo_load"]) == pytest.approx(load(slo), rel=1e-6)
    assert int(header["achieved_slo_jobs"]) == slo.height
    assert float(header["achieved_tasks_per_job"]) == pytest.approx(
        workload.jobs["tasks"].mean(), rel=1e-6
    )
    assert header["slack_percents"] == "(20.0, 40.0, 60.0, 80.0)"
    assert header["seed"] == "4"


def test_history_is_of_the_same_classes_and_other_jobs():
    """Names overlap, runtimes have the same distribution, but no job is in both."""
    run, history = e2e(3), e2e(3, part="history")
    assert not set(run.jobs["job_id"]) & set(history.jobs["job_id"])
    assert not set(run.runtime_seconds) & set(history.runtime_seconds)
    assert len(set(run.jobs["executable"]) & set(history.jobs["executable"])) > 100
    logs = np.log(run.runtime_seconds), np.log(history.runtime_seconds)
    assert stats.ks_2samp(*logs).pvalue > 0.001
    assert load(history.jobs, hours=10.0) == pytest.approx(1.4, abs=1e-6)


def test_deadline_differs_in_deadlines_alone():
    """DEADLINE-n has the jobs of E2E, and one slack."""
    base = e2e(7).jobs
    tight = e2e(7, slack_percents=(20.0,)).jobs
    loose = e2e(7, slack_percents=(180.0,)).jobs
    assert tight.drop("deadline_seconds").equals(loose.drop("deadline_seconds"))
    assert tight.drop("deadline_seconds").equals(base.drop("deadline_seconds"))
    slack = (loose["deadline_seconds"] - loose["submit_seconds"]) / loose["runtime_seconds"]
    assert slack.drop_nulls().to_numpy() == pytest.approx(2.8)


def test_samples_are_of_the_jobs_own_distribution():
    """E2E-SAMPLE-n adds n samples; their class's spread shows, and the runtime is one like them."""
    base = e2e(7).jobs
    workload = generate("e2e_sample", E2ESampleParameters(samples=50), 7)
    assert workload.jobs.drop("runtime_samples").equals(base)
    jobs = list(workload.specifications())
    samples = np.array([samples_of(job.attributes) for job in jobs])
    assert samples.shape == (len(jobs), 50)
    logs, truth = np.log(samples), np.log(workload.runtime_seconds)
    z = (truth - logs.mean(axis=1)) / logs.std(axis=1, ddof=1)
    assert z.mean() == pytest.approx(0.0, abs=0.12)
    assert z.std() == pytest.approx(1.0, abs=0.1)


def test_scalability_has_so_many_jobs_an_hour_and_googles_widths():
    """Thousands of jobs an hour on 12,583 nodes at load 0.95, 71.4 tasks on average."""
    workload = generate("scalability", ScalabilityParameters(jobs_per_hour=2000), 2)
    assert len(workload) == 10_000
    assert load(workload.jobs, nodes=12_583) == pytest.approx(0.95, abs=1e-6)
    assert workload.jobs["tasks"].mean() == pytest.approx(71.4, rel=0.2)
    assert workload.nodes is not None
    assert workload.nodes["count"].sum() == 12_583


def test_source_jobs_are_widened_to_a_mean():
    """Only jobs of several tasks change, and the mean is met to one part in a hundred."""
    jobs = population.google_like(np.random.default_rng(0))
    wide = population.with_mean_tasks(jobs, 71.4)
    assert wide.width.mean() == pytest.approx(71.4, rel=0.01)
    assert ((wide.width == 1) == (jobs.width == 1)).all()


@settings(max_examples=12)
@given(
    hours=st.floats(0.2, 4),
    nodes=st.integers(8, 300),
    racks=st.integers(1, 8),
    wished=st.floats(0.2, 3),
    share=st.floats(0.05, 0.95),
    jobs=st.none() | st.integers(30, 300),
    part=st.sampled_from(["run", "history"]),
    seed=st.integers(0, 50),
)
def test_any_parameters_give_the_load(hours, nodes, racks, wished, share, jobs, part, seed):
    """Load, ids, order and equal results for equal seeds hold for all parameters."""
    given_parameters = {
        "hours": hours,
        "history_hours": 2 * hours,
        "nodes": nodes,
        "racks": racks,
        "load": wished,
        "slo_load_share": share,
        "jobs": jobs,
        "part": part,
    }
    workload = e2e(seed, **given_parameters)
    length = hours if part == "run" else 2 * hours
    assert load(workload.jobs, nodes, length) == pytest.approx(wished, rel=1e-9)
    assert workload.jobs["submit_seconds"].is_sorted()
    assert workload.jobs["job_id"].is_unique().all()
    assert workload.jobs["tasks"].is_between(1, nodes).all()
    if jobs is not None and part == "run":
        assert len(workload) == jobs
    assert workload.jobs.equals(e2e(seed, **given_parameters).jobs)


WRONG = [
    {"hours": 0.0},
    {"history_hours": -1.0},
    {"load": float("nan")},
    {"load": 0.0},
    {"racks": 0},
    {"racks": 257},
    {"jobs": 0},
    {"slo_load_share": 1.5},
    {"part": "future"},
    {"slowdown_elsewhere": 0.9},
    {"slack_percents": ()},
    {"slack_percents": (20.0, -1.0)},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_parameters_out_of_range_are_refused(wrong):
    """Each wrong parameter is named."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        SyntheticParameters(**wrong)


@pytest.mark.parametrize(
    ("record", "wrong"),
    [
        (E2ESampleParameters, {"samples": 0}),
        (ScalabilityParameters, {"jobs_per_hour": 0}),
        (ScalabilityParameters, {"load": -1.0}),
    ],
    ids=["samples", "jobs", "load"],
)
def test_parameters_of_variants_out_of_range_are_refused(record, wrong):
    """Each wrong parameter is named."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        record(**wrong)
