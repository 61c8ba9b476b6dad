"""The studies of DistSched: what they name exists, and a tiny run measures all that they show."""

import math

import pytest

from declared import require_claims_about_cases
from foresail.control.policy import parse_policy
from foresail.model.registry import entries
from foresail.model.short_form import part_of
from foresail_studies.study import study_part
from foresail_studies.trial import SharedTrial

STUDIES = sorted(entry.name for entry in entries("study") if entry.name.startswith("distsched"))
RUN = "packing(machines=6,jobs=20,hours=1,history_hours=2,most_tasks=6,load=0.6)"
HISTORY = f"{RUN[:-1]},part=history)"


def test_every_part_of_the_evaluation_has_a_study():
    """Sections 5.4.2 (averages, and maxima) to 5.4.5; and what goes beyond them."""
    assert STUDIES == [
        "distsched-attribution",
        "distsched-cluster-size",
        "distsched-cycle-time",
        "distsched-end-to-end",
        "distsched-maxima",
    ]


@pytest.mark.parametrize("name", STUDIES)
def test_what_a_study_names_exists(name):
    """Policies and generators parse; claims are about what is run; quick is smaller."""
    quick, full = (study_part(name, [], quick=quick).build() for quick in (True, False))
    require_claims_about_cases(name, quick, full)
    for study in (quick, full):
        for case in study.cases:
            parse_policy(case.task.policy)
            part_of("generator", case.task.workload)
            part_of("generator", case.task.history)


def test_the_full_size_is_the_published_one():
    """700 machines, as many jobs, a load of 0.8, cycles of 15 s, and ten workloads."""
    study = study_part("distsched-end-to-end", [], quick=False).build()
    assert {case.seed for case in study.cases} == set(range(10))
    task = study.cases[0].task
    made = part_of("generator", task.workload).parameters
    assert (made.machines, made.jobs, made.load) == (700, 700, 0.8)
    assert (task.machines, task.cycle_seconds) == (700, 15.0)


def test_other_sizes_have_the_same_jobs():
    """The workload is made for one cluster, whatever the number of machines it runs on."""
    study = study_part("distsched-cluster-size", ["sizes=[50,90]"], quick=True).build()
    assert {(case.x, case.task.machines) for case in study.cases} == {(50.0, 50), (90.0, 90)}
    assert len({case.task.workload for case in study.cases}) == 1


@pytest.mark.parametrize("policy", ["dist", "actual"])
def test_a_run_measures_everything(policy):
    """All measures come out of a tiny run, and the parts of the goodput are no more than all."""
    found = SharedTrial(RUN, HISTORY, 1, policy, 15.0, 6).measure()
    names = {
        measure.name
        for name in STUDIES
        for measure in study_part(name, [], quick=True).build().measures
    }
    assert names <= set(found)
    assert 0.0 <= found["slo_miss_rate"] <= 1.0
    assert found["best_effort_used_hours_by_the_end"] <= found["used_hours_by_the_end"]
    assert math.isfinite(found["throttles_per_machine_hour"])


def test_fewer_machines_get_less_done():
    """The same jobs on a quarter of the machines get less done by the end."""
    many, few = (SharedTrial(RUN, HISTORY, 1, "actual", 15.0, n).measure() for n in (12, 3))
    assert few["used_hours_by_the_end"] < many["used_hours_by_the_end"]
