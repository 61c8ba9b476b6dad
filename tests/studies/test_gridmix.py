"""TetriSched's workloads: mixes, kinds, widths, Poisson arrivals and exact loads."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from foresail.model.errors import InputError
from foresail.traces.facts import offered_load
from foresail.traces.generating import generate
from foresail.traces.reading import read
from foresail_studies.generators.tetrisched import (
    GridmixParameters,
    GsHetParameters,
    GsMixParameters,
    draw_bytes,
)
from foresail_studies.readers.published_logs import SWIM_BYTES
from shared import shared

RECORDS = {
    "gr_slo": GridmixParameters,
    "gr_mix": GridmixParameters,
    "gs_mix": GsMixParameters,
    "gs_het": GsHetParameters,
}


def make(name, seed=1, **parameters):
    return generate(name, RECORDS[name](**parameters), seed)


def load_of(workload, hours=1.0):
    jobs = workload.jobs
    work = jobs["tasks"].to_numpy(), jobs["runtime_seconds"].to_numpy()
    return offered_load(*work, workload.processors, 3600.0 * hours)


@pytest.mark.parametrize(
    ("name", "share", "nodes"),
    [("gr_slo", 1.0, 256), ("gr_mix", 0.52, 256), ("gs_mix", 0.70, 80), ("gs_het", 0.75, 80)],
)
def test_mix_machine_and_load(name, share, nodes):
    """Shares of jobs with deadlines to one job, 8 racks, load 1, slacks of 250 or 300 %."""
    workload = make(name)
    jobs = workload.jobs
    slo = jobs.filter(pl.col("deadline_seconds").is_not_null())
    assert abs(slo.height - share * jobs.height) <= 1.0
    assert workload.processors == nodes
    assert workload.nodes is not None
    assert workload.nodes["count"].sum() == nodes
    assert workload.nodes["gpus"].to_list() == [1.0, 1.0, *[0.0] * 6]
    assert load_of(workload) == pytest.approx(1.0, rel=1e-6)
    slack = (slo["deadline_seconds"] - slo["submit_seconds"]) / slo["runtime_seconds"] - 1
    assert set(slack.round(6)) == {2.5, 3.0}
    assert jobs["tasks"].is_between(max(round(0.01 * nodes), 1), round(0.1 * nodes)).all()


def test_het_kinds():
    """T-12: half of the SLO jobs prefer gpus, half one rack; others prefer nothing."""
    jobs = make("gs_het", hours=10.0).jobs
    slo = jobs.filter(pl.col("deadline_seconds").is_not_null())
    counts = dict(slo.group_by("preferred").len().iter_rows())
    assert set(counts) == {"attribute:gpu", "same:rack"}
    assert stats.binomtest(counts["same:rack"], slo.height).pvalue > 0.001
    assert (slo["slowdown_elsewhere"] == 1.5).all()
    rest = jobs.filter(pl.col("deadline_seconds").is_null())
    assert rest["preferred"].null_count() == rest.height
    assert set(rest["executable"]) == {"unconstrained"}


def test_availability_spreads_over_racks():
    """Jobs of that kind ask for different racks, unless they have more tasks than there are."""
    jobs = make("gs_het", slo_kinds=("availability",), nodes=200, hours=4.0).jobs
    slo = jobs.filter(pl.col("executable") == "availability")
    fits = slo["tasks"] <= 8
    assert 0 < fits.sum() < slo.height
    assert set(slo.filter(fits)["preferred"]) == {"spread:rack"}
    assert slo.filter(~fits)["preferred"].null_count() == (~fits).sum()


def test_arrivals_are_poisson():
    """Gaps of a long run are exponential."""
    submit = make("gs_mix", hours=20.0).jobs["submit_seconds"].to_numpy()
    gaps = np.diff(submit)
    assert stats.kstest(gaps / gaps.mean(), "expon").pvalue > 0.01


def test_synthetic_runtimes_are_log_normal():
    """Of the mean asked for and a deviation of 0.6, up to the scaling of the load."""
    jobs = make("gs_mix", hours=40.0, mean_seconds=150.0).jobs
    logs = np.log(jobs["runtime_seconds"].to_numpy())
    assert jobs["runtime_seconds"].mean() == pytest.approx(150.0, rel=0.02)
    assert logs.std() == pytest.approx(0.6, rel=0.03)
    assert stats.kstest((logs - logs.mean()) / logs.std(), "norm").pvalue > 0.01


def test_built_in_bytes_are_those_of_the_samples():
    """They are within their steps of 5 % of the files that they were taken from."""
    files = {"fb2009": "FB-2009_samples_24_times_1hr_1", "fb2010": "FB-2010_samples_24_times_1hr_0"}
    random = np.random.default_rng(1)
    for name, file in files.items():
        jobs = read(shared(f"traces/swim-facebook/{file}.tsv.gz")).jobs
        moved = sum(jobs[each].cast(float).to_numpy() for each in SWIM_BYTES)
        own = np.log10(np.maximum(moved, 1.0))
        built_in = np.log10(draw_bytes(name, 20_000, random))
        assert stats.ks_2samp(own, built_in).statistic < 0.055


@settings(max_examples=25)
@given(
    name=st.sampled_from(list(RECORDS)),
    hours=st.floats(0.1, 2),
    nodes=st.integers(8, 400),
    wished=st.floats(0.2, 2),
    seed=st.integers(0, 50),
)
def test_any_parameters_give_the_load(name, hours, nodes, wished, seed):
    """Load, order and equal results for equal seeds hold for all parameters."""
    own = {"hours": hours, "nodes": nodes, "load": wished}
    workload = make(name, seed, **own)
    assert load_of(workload, hours) == pytest.approx(wished, rel=1e-9)
    assert workload.jobs["submit_seconds"].is_sorted()
    assert workload.jobs["tasks"].is_between(1, nodes).all()
    assert workload.jobs.equals(make(name, seed, **own).jobs)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("gr_slo", {"hours": 0.0}),
        ("gr_slo", {"load": 0.0}),
        ("gr_slo", {"nodes": 7}),
        ("gr_slo", {"slack_percents": ()}),
        ("gs_mix", {"mean_seconds": 0.0}),
        ("gs_het", {"slo_kinds": ("quantum",)}),
        ("gs_het", {"slo_kinds": ()}),
        ("gs_het", {"slowdown_elsewhere": 0.0}),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(name, wrong):
    """Each wrong parameter is named."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        RECORDS[name](**wrong)
