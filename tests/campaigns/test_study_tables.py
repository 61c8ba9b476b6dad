"""The published study's tables from hand-made results."""

import math

import polars as pl
import pytest

from foresail.campaigns.figures import correlation_map
from foresail.campaigns.page import HEADINGS, published
from foresail.campaigns.plan import EASY_PLUS_PLUS
from foresail.campaigns.results import measure
from foresail.campaigns.selection import (
    SelectionRule,
    correlation_spread,
    correlations,
    headline,
    leave_one_out,
    prediction_errors,
)
from foresail.control.policy import parse_policy
from foresail.model.event import PREDICTSIM
from foresail.reports.figure import MissingFigure
from foresail.simulator.replay import replay
from foresail.traces.filtering import apply_filters, choices_of
from foresail.traces.folder import load_workload
from made_campaigns import results_table
from shared import shared

SJBF = "easy(order=shortest)"
PLUS_PLUS = EASY_PLUS_PLUS.text


def test_correlations_by_hand():
    """A doubled column correlates by 1, a reversed one by -1; clairvoyant policies are left out."""
    results = results_table(
        {
            "one": {"easy": 1.0, SJBF: 2.0, "easy,recent": 4.0, "easy,clairvoyant": 99.0},
            "two": {"easy": 2.0, SJBF: 4.0, "easy,recent": 8.0, "easy,clairvoyant": 0.0},
            "three": {"easy": 4.0, SJBF: 3.0, "easy,recent": 1.0, "easy,clairvoyant": 0.0},
        }
    )
    matrix = correlations(results)
    values = dict(
        zip(matrix.select("log", "other").iter_rows(), matrix["correlation"], strict=True)
    )
    assert len(values) == 9
    assert values["one", "two"] == values["two", "one"] == pytest.approx(1.0)
    assert values["one", "three"] == pytest.approx(-1.0)
    assert correlation_spread(matrix) == pytest.approx((-1.0, -1 / 3, 1.0))


def test_correlation_of_equal_scores_is_unknown():
    """Where all policies score alike there is nothing to correlate."""
    results = results_table({"one": {"easy": 1.0, SJBF: 1.0}, "two": {"easy": 1.0, SJBF: 2.0}})
    values = correlations(results).filter(log="one", other="two")["correlation"]
    assert math.isnan(values[0])


def test_one_policy_says_nothing_of_other_logs():
    """Neither a number nor numpy's warning, and no figure."""
    matrix = correlations(results_table({"one": {"easy": 1.0}, "two": {"easy": 2.0}}))
    assert matrix["correlation"].is_nan().all()
    assert isinstance(correlation_map(matrix), MissingFigure)


def test_headline():
    """Each column picks its policies: bounds, EASY++, best and worst regression of each variant."""
    scores = {
        "easy": 10.0,
        "easy,clairvoyant": 6.0,
        f"{SJBF},clairvoyant": 2.0,
        PLUS_PLUS: 8.0,
        "easy,regression": 9.0,
        "easy,regression,doubling": 11.0,
        f"{SJBF},regression": 5.0,
        f"{SJBF},regression,doubling": 4.0,
        "easy,recent": 1.0,
    }
    results = results_table({"one": scores, "two": {name: 2 * v for name, v in scores.items()}})
    row = headline(results, leave_one_out(results, SelectionRule())).row(0, named=True)
    assert row == {
        "log": "one",
        "easy": 10.0,
        "clairvoyant_fcfs": 6.0,
        "clairvoyant_sjbf": 2.0,
        "easy_plus_plus": 8.0,
        "learned_fcfs_best": 9.0,
        "learned_fcfs_worst": 11.0,
        "learned_sjbf_best": 4.0,
        "learned_sjbf_worst": 5.0,
        "chosen": 1.0,
        "chosen_policy": "easy,recent",
    }


def test_headline_of_what_is_there():
    """What was not replayed is null, not a number."""
    row = headline(results_table({"one": {"easy": 10.0}}), None).row(0, named=True)
    assert row.pop("log") == "one"
    assert row.pop("easy") == 10.0
    assert set(row.values()) == {None}


def test_prediction_errors_by_predictor():
    """Policies with the same predictor are one row, whatever corrects or orders them."""
    results = results_table({"one": {"easy": 1, "easy,recent": 1, f"{SJBF},recent,doubling": 1}})
    results = results.with_columns(
        mean_absolute_error_seconds=pl.Series([7.0, 1.0, 3.0]),
        mean_e_loss=pl.Series([70.0, 10.0, 30.0]),
        under_predicted_share=pl.Series([0.0, 0.2, 0.4]),
    )
    table = prediction_errors(results)
    assert table["predictor"].to_list() == ["requested", "recent"]
    assert table["policies"].to_list() == [1, 2]
    assert table["mean_absolute_error_seconds"].to_list() == [7.0, 2.0]
    assert table["mean_e_loss"].to_list() == [70.0, 20.0]
    assert table["under_predicted_share"].to_list() == pytest.approx([0.0, 0.3])


def test_published_figures():
    """The paper's figures stand beside the jobs that they are of, and not beside some of these.

    Nor beside the same jobs on another machine, or with other requests.
    """

    def figures(workload):
        return published(measure(replay(workload, parse_policy("fcfs"))).jobs_digest)

    log = shared("traces/pwa/KTH-SP2-1996-2.swf.gz")
    workload = apply_filters(load_workload(log), choices_of(["predictsim"]))
    kth = dict(zip(HEADINGS, figures(workload), strict=True))
    assert (kth["easy"], kth["learned_sjbf_best"], kth["chosen"]) == (92.6, 51.4, 51.4)
    assert figures(workload.with_jobs(workload.jobs.head(5000))) is None
    assert figures(workload.with_meta(processors=101)) is None
    longer = pl.col("requested_seconds") + 1.0
    assert figures(workload.with_jobs(workload.jobs.with_columns(longer))) is None
    assert published(None) is None


def test_easy_plus_plus_is_one():
    """The policy of that name gives the figure that is published for it on KTH-SP2: 63.5."""
    workload = load_workload(shared("traces/predictsim-sc15/KTH-SP2.filtered.swf.gz"))
    schedule = replay(workload.with_meta(processors=100), parse_policy("easy++"), PREDICTSIM)
    assert measure(schedule).average_bounded_slowdown == pytest.approx(63.5, abs=0.05)
