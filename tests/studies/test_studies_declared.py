"""The published studies as declared: everything they name exists, and both sizes can be built."""

import pytest

from foresail.control.policy import parse_policy
from foresail.model.errors import InputError
from foresail.model.registry import entries, find
from foresail.model.short_form import part_of
from foresail.traces.generating import generate
from foresail_studies.report import report_of
from foresail_studies.results import StudyResults, key_of
from foresail_studies.study import Mean, apart_from_full, sizes_of, study_part
from foresail_studies.trial import Trial

PUBLISHED = sorted(
    entry.name for entry in entries("study") if entry.name.startswith(("3sigma", "tetrisched"))
)
SIMULATED = [name for name in PUBLISHED if name != "3sigma-segments"]
"""Those that need no log."""


def both_sizes(name):
    """The study in its quick and its full size."""
    return [study_part(name, [], quick=quick).build() for quick in (True, False)]


def test_the_published_studies_are_there():
    """Every figure of 3Sigma's and TetriSched's evaluation has a study."""
    assert PUBLISHED == [
        "3sigma-assumptions",
        "3sigma-attribution",
        "3sigma-end-to-end",
        "3sigma-load",
        "3sigma-perturbation",
        "3sigma-sample-size",
        "3sigma-scalability",
        "3sigma-segments",
        "tetrisched-assumptions",
        "tetrisched-estimate-error",
        "tetrisched-global",
        "tetrisched-plan-ahead",
        "tetrisched-scalability",
        "tetrisched-soft-constraints",
    ]


@pytest.mark.parametrize("name", SIMULATED)
def test_what_a_study_names_exists(name):
    """Policies and generators parse; claims and figures are about cases that are run."""
    for study in both_sizes(name):
        names = {measure.name for measure in study.measures}
        assert set(study.drawn) <= names
        where = {(case.group, case.x, case.system) for case in study.cases}
        for claim in study.claims:
            for side in (claim.bound.less, claim.bound.more):
                if not isinstance(side, Mean):
                    continue
                assert side.measure in names
                places = {(g, x) for g, x, system in where if system == side.system}
                assert places, claim.published
                assert side.group is None or side.group in {g for g, _ in places}
                assert set(side.x) <= {x for _, x in places}, claim.published
        for text in {case.task.policy for case in study.cases}:
            parse_policy(text)
        for case in study.cases:
            for text in {case.task.workload, case.task.history} - {None}:
                part_of("generator", text)


@pytest.mark.parametrize("name", SIMULATED)
def test_quick_is_smaller_and_says_how_long_it_takes(name):
    """The quick size has fewer or shorter runs, and list can say what each size takes."""
    sizes = sizes_of(find("study", name))
    assert 0 < sizes.MINUTES[0] <= 6 < sizes.MINUTES[1]
    quick, full = both_sizes(name)
    assert len({key_of(case.task) for case in quick.cases}) < len(
        {key_of(case.task) for case in full.cases}
    )


@pytest.mark.parametrize("name", SIMULATED)
def test_systems_of_a_seed_meet_the_same_jobs(name):
    """At every place all systems of a seed run workloads of the same recipe and size."""
    study = study_part(name, [], quick=True).build()
    recipes: dict[object, set[str]] = {}
    for case in study.cases:
        recipe = case.task.workload.replace("e2e_sample", "e2e").split(",samples")[0].rstrip(")")
        recipes.setdefault((case.group, case.x), set()).add(recipe)
    assert all(len(found) == 1 for found in recipes.values())


@pytest.mark.parametrize("name", [name for name in SIMULATED if name != "3sigma-perturbation"])
def test_the_published_systems_drop_hopeless_jobs(name):
    """What is compared is as published; ours, which runs hopeless jobs on leftovers, stands beside.

    Of the perturbed beliefs there are as many systems as widths: all of them drop.
    """
    study = study_part(name, [], quick=True).build()
    for case in study.cases:
        parameters = parse_policy(case.task.policy).scheduler.parameters
        if hasattr(parameters, "hopeless_jobs"):
            dropping = parameters.hopeless_jobs == "drop"
            assert dropping == case.system.endswith("-published"), case.system


def test_a_trained_history_has_so_many_runs_of_each_name():
    """Of 1,500 names, three runs each make 4,500 jobs, whatever load and machine are."""
    settings = ["history_runs_per_name=3", "seeds=1", "nodes=128", "loads=[0.9]"]
    study = study_part("3sigma-load", settings, quick=True).build()
    part = part_of("generator", study.cases[0].task.history)
    made = generate(part.entry.name, part.parameters, 0)
    assert made.jobs.height == pytest.approx(4500, rel=0.02)
    assert made.jobs["executable"].n_unique() > 1000


def test_a_quick_size_says_what_it_leaves_out():
    """Parameters that differ from the full size are named; at full size, none."""
    quick = study_part("3sigma-end-to-end", ["seeds=5"], quick=True)
    assert apart_from_full(quick) == ("hours", "discarded_hours", "cycle_seconds")
    assert apart_from_full(study_part("3sigma-end-to-end", [], quick=False)) == ()


def test_a_run_that_would_measure_nothing_is_refused():
    """The hours that are not counted have to be fewer than those that are run."""
    with pytest.raises(InputError, match="discarded_hours"):
        study_part("3sigma-load", ["discarded_hours=5"], quick=False)


def test_segments_need_a_log(tmp_path):
    """Without one, or with a path to nowhere, the study is refused before anything is run."""
    with pytest.raises(InputError, match="needs a real log"):
        study_part("3sigma-segments", [], quick=True)
    log = tmp_path / "a log.swf"
    with pytest.raises(InputError, match="no such log"):
        study_part("3sigma-segments", [f'log="{log}"'], quick=True)


def test_segments_and_their_history_are_of_the_log(tmp_path):
    """Every run and what its predictor learns from come from the log, whatever its path."""
    log = tmp_path / "a, log.swf"
    log.touch()
    study = study_part("3sigma-segments", [f'log="{log}"'], quick=True).build()
    for case in study.cases:
        run, history = (part_of("generator", t) for t in (case.task.workload, case.task.history))
        assert run.parameters.source == history.parameters.source == str(log)
        assert (run.parameters.part, history.parameters.part) == ("run", "history")


def test_points_without_samples_are_run_once():
    """Systems that do not look at samples share their runs between all sample sizes."""
    study = study_part("3sigma-sample-size", [], quick=True).build()
    keys = {key_of(case.task) for case in study.cases if case.system == "prio"}
    assert len(keys) == len({case.seed for case in study.cases})


def test_a_small_study_runs(tmp_path):
    """From a declaration to a report: the smallest sample-size study, in this process."""
    settings = ["seeds=2", "hours=0.1", "nodes=64", "samples=[5,25]", "cycle_seconds=30"]
    part = study_part("3sigma-sample-size", settings, quick=True)
    study, results = part.build(), StudyResults(tmp_path)
    done = {}
    for case in study.cases:
        assert isinstance(case.task, Trial)
        if case.task not in done:
            done[case.task] = case.task.measure()
            results.keep(case, done[case.task])
    report = report_of("3sigma-sample-size", part.text, study, results, "command")
    assert report.finished == len(study.cases) == 16
    assert {each.verdict for each in report.judgements} <= {
        "holds",
        "does not hold",
        "within the interval",
    }
    assert len(report.figures) == 4
