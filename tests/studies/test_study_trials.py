"""One simulated run of a study: what it measures, and that it depends on its record alone."""

import dataclasses
import math

import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.metrics.summary import deadline_metrics
from foresail.model.protocols import Scheduler
from foresail.model.short_form import part_of
from foresail.traces.generating import generate
from foresail_studies.trial import Trial, _learned, clocked, metrics_of, with_requests
from made_schedules import made_schedule

SMALL = "e2e(hours=0.1,nodes=24,history_hours=0.2)"
HISTORY = "e2e(hours=0.1,nodes=24,history_hours=0.2,part=history)"
_CLOCK = ("milliseconds", "cycles")


def comparable(measured):
    """What was measured without what the clock says."""
    return {
        name: value
        for name, value in measured.items()
        if not any(part in name for part in _CLOCK) and not math.isnan(value)
    }


@pytest.mark.parametrize("policy", ["3sigma", "prio"])
def test_equal_trials_give_equal_results(policy):
    """The same record gives the same figures, another seed others."""
    trial = Trial(SMALL, HISTORY, 1, policy, 30.0)
    first = comparable(trial.measure())
    assert comparable(trial.measure()) == first
    assert comparable(dataclasses.replace(trial, seed=2).measure()) != first
    assert first["slo_jobs"] > 0


def test_latencies_are_of_every_policy():
    """Decisions are timed whatever the scheduler; predictions where something is learned."""
    measured = Trial(SMALL, HISTORY, 1, "point-real", 30.0).measure()
    assert 0.0 < measured["cycle_milliseconds_median"] <= measured["cycle_milliseconds_max"]
    assert measured["prediction_milliseconds_median"] > 0.0
    oracle = Trial(SMALL, None, 1, "point-perfect", 30.0).measure()
    assert "prediction_milliseconds_median" not in oracle


def test_a_clock_leaves_what_a_scheduler_can_do():
    """A timed scheduler still plans runtimes and takes reservations, as a controller sees it."""
    scheduler, _, _ = parse_policy("tetrisched").build()
    clocked(scheduler)
    assert type(scheduler).planned_seconds is not Scheduler.planned_seconds
    assert scheduler.takes_reservations


def test_the_first_hours_are_run_and_not_measured():
    """Jobs submitted while the machine fills are there, and do not count."""
    trial = Trial("gs_mix(hours=0.4)", None, 1, "prio", 30.0)
    later = dataclasses.replace(trial, discarded_hours=0.1)
    all_jobs, counted = (each.measure()["slo_jobs"] for each in (trial, later))
    assert 0.5 * all_jobs < counted < all_jobs


def test_a_history_is_learned_once():
    """A second run of the same predictor takes what the first has learned, and comes out alike."""
    trial = Trial(SMALL, HISTORY, 1, "3sigma", 30.0)
    _learned.cache_clear()
    first = comparable(trial.measure())
    assert comparable(trial.measure()) == first
    assert _learned.cache_info().hits == 1


def test_policies_are_told_the_cycle():
    """Scheduler and correction of a named policy learn the trial's cycle; others have none."""
    told = parse_policy("3sigma").in_cycles(20.0)
    assert told.scheduler.parameters.cycle_seconds == 20.0
    assert told.correction.parameters.cycle_seconds == 20.0
    assert parse_policy("priority").in_cycles(20.0).text == parse_policy("priority").text


def test_requests_are_wrong_by_the_percentage():
    """An error of -50 % requests half of every runtime."""
    part = part_of("generator", "gs_mix(hours=0.1)")
    workload = generate("gs_mix", part.parameters, 0)
    jobs = with_requests(workload, -50.0).jobs
    halves = (jobs["runtime_seconds"] / 2.0).to_list()
    assert jobs["requested_seconds"].to_list() == pytest.approx(halves)


def test_goodput_by_the_end_is_what_was_done_at_the_last_submission():
    """Of three one-hour jobs on one cpu, one has ended when the last is submitted at two hours."""
    hour = 3600.0
    schedule = made_schedule(
        {
            "submit_seconds": [0.0, 0.0, 2 * hour],
            "start_seconds": [0.0, 1.5 * hour, 2.5 * hour],
            "end_seconds": [hour, 2.5 * hour, 3.5 * hour],
            "deadline_seconds": [2 * hour, None, None],
        }
    )
    measured = metrics_of(schedule)
    assert measured["goodput_hours"] == pytest.approx(3.0)
    assert measured["goodput_hours_by_the_end"] == pytest.approx(1.0)
    assert measured["best_effort_goodput_hours_by_the_end"] == 0.0
    assert measured["best_effort_completed_by_the_end"] == 0.0
    assert measured["slo_miss_rate"] == deadline_metrics(schedule).slo_miss_rate == 0.0


def test_nothing_done_by_the_end_is_zero():
    """Where the only job ends after its submission, as ever, nothing is done by then."""
    schedule = made_schedule(
        {
            "submit_seconds": [0.0],
            "start_seconds": [0.0],
            "end_seconds": [10.0],
            "deadline_seconds": pl.Series([None], dtype=pl.Float64),
        }
    )
    assert metrics_of(schedule)["goodput_hours_by_the_end"] == 0.0
