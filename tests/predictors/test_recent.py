"""The mean of the last runtimes: rules, and every prediction of the published study."""

import csv
import gzip

import numpy as np
import pytest

from compiled import take
from foresail.kernels.columns import PREDICTED, SPEC_COLUMNS, SUMMARY_COLUMNS
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.predictors.recent import Recent, RecentParameters
from shared import shared


def predicted_after(runtimes, requested, **parameters):
    """Prediction for a user whose jobs ran so long."""
    predictor = Recent(RecentParameters(**parameters))
    for i, runtime in enumerate(runtimes):
        job = Job.gang(f"job{i}", 0.0, 1, 1e6, "user")
        predictor.observe(job, Outcome(job.job_id, 0.0, runtime))
    return predictor.predict(Job.gang("next", 0.0, 1, requested, "user"), 0.0).mean()


@pytest.mark.parametrize(
    ("runtimes", "requested", "parameters", "expected"),
    [
        ([], 900.0, {}, 900.0),
        ([100], 900.0, {}, 900.0),
        ([100, 201], 900.0, {}, 150.5),
        ([100, 201], 900.0, {"whole_seconds": True}, 150.0),
        ([100, 201, 400], 900.0, {}, 300.5),
        ([100, 201, 400], 250.0, {}, 250.0),
        ([1000, 100, 200, 300], 900.0, {"k": 3}, 200.0),
        ([100, 300], None, {}, 200.0),
        ([300], None, {}, 300.0),
        ([], None, {}, 86_400.0),
    ],
)
def test_rules(runtimes, requested, parameters, expected):
    """Mean of the last k, capped at the request; before that the request or its stand-in."""
    assert predicted_after(runtimes, requested, **parameters) == expected


@pytest.mark.parametrize("log", ["KTH-SP2", "CTC-SP2", "SDSC-SP2"])
def test_every_prediction_of_the_published_study(log):
    """Under the study's EASY++ schedule, AVE2 in whole seconds is what its simulator predicted."""
    folder = "traces/predictsim-sc15"
    with gzip.open(shared(f"{folder}/{log}.filtered.swf.gz"), "rt") as lines:
        rows = np.array([line.split()[:18] for line in lines if line[0] != ";"], dtype=float)
    with gzip.open(shared(f"{folder}/{log}.oracle-waits.csv.gz"), "rt") as lines:
        oracle = list(csv.DictReader(lines))
    wait = np.array([float(row["wait_easypp_tsafrir"]) for row in oracle])
    published = np.array([float(row["pred_easypp_tsafrir"]) for row in oracle])
    _, users = np.unique(rows[:, 11], return_inverse=True)
    specs = np.full((len(rows), SPEC_COLUMNS), -1.0)
    specs[:, :4] = np.column_stack((rows[:, 1], rows[:, 7], rows[:, 8], users))
    submit, runtime = specs[:, 0], rows[:, 3]

    # Same-second events: submissions before ends; ends in order of start.
    jobs = np.arange(len(rows))
    start = submit + wait
    started = np.empty(len(rows))
    started[np.lexsort((jobs, start))] = jobs
    order = np.lexsort(
        (
            np.concatenate((jobs, started)),
            np.repeat((0, 1), len(rows)),
            np.concatenate((submit, start + runtime)),
        )
    )
    steps, state = Recent(RecentParameters(whole_seconds=True)).compiled(specs)
    summaries = np.empty((len(rows), SUMMARY_COLUMNS))
    for event in order.tolist():
        if event < len(rows):
            take(steps.predict, event, submit[event], np.nan, specs, *state, summaries)
        else:
            job = event - len(rows)
            take(steps.observe, job, 0.0, runtime[job], specs, *state, summaries)
    assert np.array_equal(summaries[:, PREDICTED], published)
