"""The studies of SLearn: what they name exists, and a tiny run of each kind of task."""

import math

import numpy as np
import pytest

from declared import require_claims_about_cases
from foresail.control.policy import parse_policy
from foresail.model.registry import entries
from foresail.model.short_form import part_of
from foresail_studies.slearn import _shared as slearn
from foresail_studies.slearn.studies import (
    BinTrial,
    DistributionTrial,
    LoadTrial,
    RegimeTrial,
    TimelineTrial,
    VariabilityTrial,
)
from foresail_studies.study import study_part

ALL = [entry.name for entry in entries("study") if entry.name.startswith("slearn")]
NAMES = sorted(name for name in ALL if name != "slearn-real-tasks")
"""Those that need no log."""
REPLAYED = [
    "slearn-dags",
    "slearn-estimates",
    "slearn-ratios",
    "slearn-speedups",
]
TINY = ("slearn(jobs=60)", "slearn(jobs=60,part=history)", 3)


def test_the_published_figures_are_there():
    """Every table and figure that tasks of generated traces can show, and the map of regimes."""
    others = [
        "slearn-bins",
        "slearn-distributions",
        "slearn-over-time",
        "slearn-regimes",
        "slearn-variability",
    ]
    assert sorted([*REPLAYED, *others]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_claims_are_about_cases(name):
    """In both sizes, which differ, and say how long they take."""
    quick, full = (study_part(name, [], quick=quick).build() for quick in (True, False))
    require_claims_about_cases(name, quick, full)


@pytest.mark.parametrize("name", REPLAYED)
def test_what_a_study_names_exists(name):
    """Policies and generators parse; systems of one place meet the same trace."""
    study = study_part(name, ["seeds=1"], quick=True).build()
    recipes = {}
    for case in study.cases:
        task = case.task
        for policy in (task.policy, task.faster, task.slower):
            parse_policy(policy)
        for text in (task.workload, task.history):
            part_of("generator", text)
        recipes.setdefault(case.group, set()).add((task.workload, task.history))
    assert all(len(found) == 1 for found in recipes.values())


def test_a_trial_measures_everything():
    """All measures come out of a tiny run; a policy is as fast as itself, and says if it errs."""
    found = slearn.TaskTrial(*TINY, slearn.SLEARN, slearn.SLEARN, slearn.FIFO).measure()
    names = {
        measure.name
        for name in REPLAYED
        for measure in study_part(name, [], quick=True).build().measures
    }
    assert names == set(found)
    assert all(math.isfinite(value) for value in found.values())
    queues = (found[name] for name in ("right_queue", "too_low", "too_high"))
    assert sum(queues) == pytest.approx(1.0)
    itself = slearn.TaskTrial(*TINY, slearn.ORACLE, slearn.ORACLE, slearn.ORACLE).measure()
    assert itself["speedup"] == itself["median_speedup"] == 1.0
    assert itself["error_p90"] == pytest.approx(0.0, abs=1e-9)
    assert itself["right_queue"] == 1.0


def test_a_policy_without_estimates_has_no_errors():
    """Arrival order estimates nothing."""
    found = slearn.TaskTrial(*TINY, slearn.FIFO, slearn.SLEARN, slearn.FIFO).measure()
    assert "error_median" not in found
    assert found["completion_seconds"] > 0.0


def test_errors_are_those_of_wide_jobs():
    """Half and 90 % of the errors, and how many of the estimates are too long."""
    estimate = np.array([110.0, 50.0, 2000.0, np.nan, 9.0])
    size = np.array([100.0, 100.0, 1000.0, 70.0, 1.0])
    found = slearn.estimates(estimate, size, np.array([True, True, True, True, False]))
    assert found["error_median"] == pytest.approx(0.5)
    assert found["error_p90"] == pytest.approx(0.9)
    assert found["over_estimated"] == pytest.approx(2 / 3)
    assert found["right_queue"] == 1.0
    assert slearn.estimates(estimate, size, np.zeros(5, dtype=bool)) == {}


def test_bins_are_all_of_the_jobs():
    """Shares of jobs and of work add up."""
    study = study_part("slearn-bins", ["seeds=1"], quick=True).build()
    found = [BinTrial(*TINY, name).measure() for name in study.systems]
    assert sum(each["jobs_share"] for each in found) == pytest.approx(1.0)
    assert sum(each["work_share"] for each in found) == pytest.approx(1.0)


def test_distributions_rise_and_the_oracle_does_not_err():
    """Of a tiny run: shares of the jobs below, and no error where the truth is known."""

    def found(policy, share):
        return DistributionTrial(*TINY, policy, share).measure()

    for name, high in found(slearn.SIGMA, 0.9).items():
        assert found(slearn.SIGMA, 0.1)[name] < high
    assert found(slearn.SIGMA, 0.1)["signed_error"] < 0.0
    assert found(slearn.ORACLE, 0.9)["signed_error"] == pytest.approx(0.0, abs=1e-9)
    assert found(slearn.SLEARN, 0.05)["resistance"] >= 0.0


def test_windows_are_all_of_the_time():
    """Their loads add up to the whole work over the whole time, and each job is in one."""
    found = slearn.replayed(*TINY, slearn.ORACLE)
    study = study_part("slearn-over-time", ["seeds=1"], quick=True).build()
    windows = sorted({case.task.window for case in study.cases})
    loads = [LoadTrial(*TINY, window).measure()["load"] for window in windows]
    slots = slearn.generated(TINY[0], TINY[2]).processors
    reach = found.submit[-1] - found.submit[0]
    whole = found.stages.job_seconds.sum() / (slots * reach)
    assert sum(loads) / len(loads) == pytest.approx(whole)
    errors = [
        TimelineTrial(*TINY, slearn.ORACLE, window).measure()["signed_error"] for window in windows
    ]
    assert np.nanmax(np.abs(errors)) == pytest.approx(0.0, abs=1e-9)


def test_regimes_differ_in_what_is_known():
    """Without variation over time history errs least; without any within jobs sampling does not."""
    size = {"width": 10, "jobs": 80, "seed": 2}
    for time, space, sampling_is_better in ((0.05, 1.0, False), (1.0, 0.05, True)):
        found = {
            system: RegimeTrial(system, job_variation=time, task_variation=space, **size).measure()
            for system in ("history", "sampling", "both")
        }
        error = {system: each["error_median"] for system, each in found.items()}
        assert (error["sampling"] < error["history"]) == sampling_is_better
        assert found["history"]["misordered"] == 0.5
        assert found["both"]["misordered"] == found["sampling"]["misordered"]
        better = min(found[each]["completion_seconds"] for each in ("history", "sampling"))
        assert found["both"]["of_better"] == found["both"]["completion_seconds"] / better


def test_a_map_has_a_row_for_each_task_wise_variation():
    """Rows of a map are groups that are run, and its measure is shown."""
    study = study_part("slearn-regimes", [], quick=True).build()
    for each in study.maps:
        assert set(each.rows) <= set(study.groups)
        assert study.measure(each.measure).name == each.measure


def test_variation_is_as_calibrated():
    """Over time more than over space; a history too short to judge by says nothing."""
    history = "slearn(jobs=1250,part=history)"
    over = {
        where: VariabilityTrial(history, 1, where).measure()
        for where in ("over time", "over space")
    }
    assert over["over space"]["p50"] < over["over time"]["p50"]
    assert 0.5 < over["over space"]["time_exceeds"] <= 1.0
    assert VariabilityTrial("slearn(jobs=20,part=history)", 1, "over time").measure() == {}
