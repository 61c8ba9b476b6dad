"""The studies of planning beyond the published systems: what they name exists, and a run of one."""

import math

import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.model.registry import entries, find
from foresail.model.short_form import part_of
from foresail.traces import schema
from foresail.traces.generating import generate
from foresail.traces.schedule import Schedule, ScheduleMeta
from foresail_studies.beyond._shared import CALM_WAIT, FLOOD_WAIT, KEPT, Plans, WatchedTrial
from foresail_studies.study import Mean, sizes_of, study_part

BEYOND = sorted(entry.name for entry in entries("study") if entry.name.startswith("beyond"))


def test_there_is_one_for_each_section():
    """Risk, chains, and shares."""
    assert BEYOND == ["beyond-chains", "beyond-fair-share", "beyond-risk"]


@pytest.mark.parametrize("name", BEYOND)
def test_what_a_study_names_exists(name):
    """Policies and generators parse, claims are about what is run, and quick is smaller."""
    sizes = sizes_of(find("study", name))
    assert 0 < sizes.QUICK_MINUTES < sizes.FULL_MINUTES
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


def test_a_planned_start_is_kept_if_it_comes_in_time():
    """Each plan of each cycle counts; not of jobs that had run before and were stopped."""
    rows = [{"job_id": "a", "start_seconds": 100.0}, {"job_id": "b", "start_seconds": 10.0}]
    table = pl.DataFrame(rows)
    missing = [pl.lit(None).cast(kind).alias(n) for n, kind in schema.SCHEDULE.items()]
    jobs = table.with_columns([each for each in missing if each.meta.output_name() not in table])
    schedule = Schedule(jobs, ScheduleMeta("policy", 1.0, "", "in_cycles"))
    plans = Plans([("a", 0.0, 60.0), ("a", 20.0, 80.0), ("a", 40.0, 120.0), ("b", 20.0, 30.0)])
    assert plans.kept(schedule, 20.0) == pytest.approx(2 / 3)
    assert math.isnan(Plans([]).kept(schedule, 20.0))
    assert KEPT.kind == "share"


def test_a_flood_is_four_jobs_of_five():
    """The same jobs as e2e; most belong to one user, and whose they are says nothing of them."""
    made = generate("flooded", find("generator", "flooded").parameters(hours=1.0), 3)
    bare = generate("e2e", find("generator", "e2e").parameters(hours=1.0), 3)
    assert made.jobs.drop("user").equals(bare.jobs.drop("user"))
    share = (made.jobs["user"] == "flood").mean()
    assert share == pytest.approx(0.8, abs=0.06)
    assert set(made.jobs["user"]) <= {"flood", *(f"calm{at}" for at in range(1, 10))}
