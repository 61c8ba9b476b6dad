"""The studies of planning beyond the published systems: what they name exists, and a run of one."""

import math

import pytest

from foresail.control.policy import parse_policy
from foresail.model.registry import entries, find
from foresail.model.short_form import part_of
from foresail.traces.generating import generate
from foresail_studies.beyond.studies import CALM_WAIT, FLOOD_WAIT, WatchedTrial
from foresail_studies.study import Mean, sizes_of, study_part

BEYOND = sorted(entry.name for entry in entries("study") if entry.name.startswith("beyond"))


def test_there_is_one_for_each_section():
    """Chains, and shares."""
    assert BEYOND == ["beyond-chains", "beyond-fair-share"]


@pytest.mark.parametrize("name", BEYOND)
def test_what_a_study_names_exists(name):
    """Policies and generators parse, claims are about what is run, and quick is smaller."""
    sizes = sizes_of(find("study", name))
    assert 0 < sizes.MINUTES[0] < sizes.MINUTES[1]
    quick, full = (study_part(name, [], quick=quick).build() for quick in (True, False))
    assert len(quick.cases) <= len(full.cases)
    for study in (quick, full):
        measures = {measure.name for measure in study.measures}
        assert set(study.drawn) <= measures
        for claim in study.claims:
            for side in (claim.bound.less, claim.bound.more):
                assert isinstance(side, Mean)
                assert side.measure in measures
                assert side.system in study.systems
        for case in study.cases:
            parse_policy(case.task.policy)
            part_of("generator", case.task.workload)
            part_of("generator", case.task.history)


def test_a_run_measures_everything():
    """All measures of the studies come out of a small run of one."""
    size = "hours=0.1,nodes=32,jobs=16,history_hours=0.2"
    trial = WatchedTrial(
        f"flooded({size})",
        f"flooded({size},part=history)",
        seed=1,
        policy="3sigma(fair_share=1),history,exponential_increment",
        cycle_seconds=20.0,
    )
    found = trial.measure()
    names = {
        measure.name
        for name in BEYOND
        for measure in study_part(name, [], quick=True).build().measures
    }
    assert names <= set(found)
    assert all(math.isfinite(found[measure.name]) for measure in (CALM_WAIT, FLOOD_WAIT))


def test_a_flood_is_four_jobs_of_five():
    """The same jobs as e2e; most belong to one user, and whose they are says nothing of them."""
    made = generate("flooded", find("generator", "flooded").parameters(hours=1.0), 3)
    bare = generate("e2e", find("generator", "e2e").parameters(hours=1.0), 3)
    assert made.jobs.drop("user").equals(bare.jobs.drop("user"))
    share = (made.jobs["user"] == "flood").mean()
    assert share == pytest.approx(0.8, abs=0.06)
    assert set(made.jobs["user"]) <= {"flood", *(f"calm{at}" for at in range(1, 10))}
