"""Segments of a log: the right jobs, an exact load, demands added, and what had ended before."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.traces.facts import offered_load
from foresail.traces.generating import generate
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.generators.lublin import LublinParameters
from foresail_studies.generators.segment import SegmentParameters, segment
from shared import shared


@pytest.fixture(scope="module")
def log():
    return generate("lublin", LublinParameters(jobs=4000, processors=64, load=0.9), 1)


def cut(log, seed=1, **parameters):
    given_parameters = {"nodes": 48, "load": 0.8, "hours": 20.0, **parameters}
    return segment(log, SegmentParameters("", **given_parameters), np.random.default_rng(seed))


def figure(workload, name):
    return float(workload.meta.header["achieved_" + name])


def load_of(workload, nodes=48):
    jobs = workload.jobs
    hours = figure(workload, "hours")
    return offered_load(
        jobs["tasks"].to_numpy(), jobs["runtime_seconds"].to_numpy(), nodes, 3600.0 * hours
    )


@settings(max_examples=30)
@given(
    wished=st.floats(0.7, 1.0),
    seed=st.integers(0, 100),
    share=st.floats(0, 1),
)
def test_the_load_is_exact_and_jobs_are_the_logs(log, wished, seed, share):
    """The load is as asked for; runtimes, widths, users and gaps are the log's."""
    workload = cut(log, seed, load=wished, slo_load_share=share)
    assert load_of(workload) == pytest.approx(wished, rel=1e-6)
    assert workload.jobs["tasks"].max() <= 48
    own = log.jobs.select("job_id", "runtime_seconds", "tasks", "user", at="submit_seconds")
    both = workload.jobs.join(own, on="job_id", suffix="_own")
    assert both.height == len(workload)
    for name in ("runtime_seconds", "tasks", "user"):
        assert both[name].equals(both[name + "_own"], check_names=False)
    stretch = figure(workload, "time_stretch")
    start = 3600.0 * figure(workload, "segment_start_hours")
    expected = (both["at"].to_numpy() - start) * stretch
    assert workload.jobs["submit_seconds"].to_numpy() == pytest.approx(expected, abs=0.05)
    assert workload.jobs["submit_seconds"].is_sorted()


def test_segments_near_the_load_are_chosen_at_random(log):
    """Their own load is within the tolerance, and seeds give different ones."""
    made = [cut(log, seed) for seed in range(12)]
    stretches = [figure(each, "time_stretch") for each in made]
    assert all(0.75 - 1e-6 <= stretch <= 1.25 + 1e-6 for stretch in stretches)
    assert len({figure(each, "segment_start_hours") for each in made}) > 6


def test_demands_are_added(log):
    """Half of the load has deadlines and six racks to prefer, the rest has neither."""
    workload = cut(log, 2, slack_percents=(40.0,))
    slo = workload.jobs.filter(pl.col("deadline_seconds").is_not_null())
    assert figure(workload, "slo_load") == pytest.approx(0.4, abs=0.05)
    slack = (slo["deadline_seconds"] - slo["submit_seconds"]) / slo["runtime_seconds"]
    assert slack.to_numpy() == pytest.approx(1.4)
    prefers = slo.filter(pl.col("tasks") <= 36)["preferred"]
    assert prefers.str.count_matches("rack").unique().to_list() == [6]
    others = workload.jobs.filter(pl.col("deadline_seconds").is_null())
    for name in ("preferred", "slowdown_elsewhere"):
        assert others[name].null_count() == others.height


def test_a_given_start_is_taken(log):
    """From then on, for so many hours."""
    workload = cut(log, start_hours=30.0, hours=10.0)
    expected = log.jobs.filter(
        pl.col("submit_seconds").is_between(108_000, 144_000, closed="left"),
        pl.col("tasks") <= 48,
        pl.col("runtime_seconds") > 0,
    )
    assert workload.jobs["job_id"].equals(expected["job_id"])


def test_wide_tasks_become_nodes():
    """Two tasks of three cpus are six nodes; memory stays the same over all, the origin moves."""
    jobs = jobs_table(
        {
            "job_id": ["a", "b"],
            "submit_seconds": [3600.0, 4000.0],
            "runtime_seconds": [50.0, 60.0],
            "tasks": [2, 1],
            "cpus_per_task": [3.0, 0.5],
            "memory_bytes_per_task": [600.0, 7.0],
        }
    )
    made = Workload(jobs, WorkloadMeta("made", "made", origin_unix_seconds=1e9))
    workload = cut(made, start_hours=1.0)
    assert workload.jobs["tasks"].to_list() == [6, 1]
    assert workload.jobs["memory_bytes_per_task"].to_list() == [200.0, 7.0]
    assert workload.meta.origin_unix_seconds == 1e9 + 3600.0


def test_history_ended_before_the_segment(log):
    """All jobs that had ended, none of the segment's, untouched; a wait counts."""
    waited = log.with_jobs(log.jobs.with_columns(recorded_wait_seconds=pl.lit(3600.0)))
    run = cut(waited, 5)
    history = cut(waited, 5, part="history")
    start = 3600.0 * figure(run, "segment_start_hours")
    assert figure(history, "segment_start_hours") == figure(run, "segment_start_hours")
    ends = waited.jobs["submit_seconds"] + 3600.0 + waited.jobs["runtime_seconds"]
    assert history.jobs.equals(waited.jobs.filter(ends <= start + 0.01))
    assert not set(history.jobs["job_id"]) & set(run.jobs["job_id"])


def test_a_real_log():
    """Blue Horizon has segments of load 1.4 on 256 of its processors."""
    path = shared("traces/pwa/SDSC-BLUE-2000-4.2-cln.swf.gz")
    workload = generate("segment", SegmentParameters(str(path)), 3)
    assert load_of(workload, 256) == pytest.approx(1.4, rel=1e-6)
    assert workload.meta.processors == 256


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"load": 50.0}, "load"),
        ({"start_hours": 1e6}, "start_hours"),
        ({"nodes": 8, "load": 1e9}, "load"),
    ],
    ids=["load", "start", "nodes"],
)
def test_no_such_segment(log, wrong, named):
    """What cannot be found is said, with what there is."""
    with pytest.raises(InputError, match=named):
        cut(log, **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"hours": 0.0},
        {"start_hours": -1.0},
        {"nodes": 0},
        {"load": -1.0},
        {"part": "future"},
        {"slo_load_share": -0.1},
        {"slack_percents": ()},
        {"slowdown_elsewhere": 0.5},
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(wrong):
    """Each wrong parameter is named."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        SegmentParameters("x", **wrong)
