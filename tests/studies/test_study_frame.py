"""The frame of studies: runs are kept and not repeated, intervals and verdicts, the report."""

import json
import math
import re

import numpy as np
import pytest

from foresail.model.errors import InputError, UnknownNameError
from foresail.model.registry import register
from foresail_studies.report import (
    as_json,
    as_markdown,
    group_table,
    interval,
    judge,
    report_of,
    sentences,
    summary,
    write_study_report,
)
from foresail_studies.results import StudyResults, carry_out_study, key_of
from foresail_studies.study import (
    Bound,
    Mean,
    PublishedClaim,
    Study,
    StudyParameters,
    study_part,
)
from made_studies import Sum, in_turn, made_study
from reading_pages import page_faults


def carried_out(study, folder):
    """The results of a study, run here."""
    results = StudyResults(folder)
    carry_out_study(study, results, in_turn, lambda *_: None)
    return results


def test_interval_of_three_values():
    """Mean 2 of 1, 2, 3 with standard error 1/sqrt(3) and t = 4.303: from -0.484 to 4.484."""
    found = interval(np.array([1.0, 2.0, 3.0]))
    assert found.mean == 2.0
    assert found.high == pytest.approx(2.0 + 4.303 / math.sqrt(3.0))
    assert found.low == pytest.approx(2.0 - 4.303 / math.sqrt(3.0))


def test_one_value_says_nothing_of_its_interval():
    """A single seed has an unbounded interval, no value at all NaN."""
    assert interval(np.array([5.0])).high == math.inf
    assert math.isnan(interval(np.array([])).mean)


def test_intervals_cover_the_mean_as_often_as_they_say():
    """Of 2000 samples of five normal values, 95 % of the intervals hold the mean, give or take."""
    drawn = np.random.default_rng(0).normal(3.0, 2.0, (2000, 5))
    held = [(each := interval(row)).low <= 3.0 <= each.high for row in drawn]
    assert 0.935 <= np.mean(held) <= 0.965


def test_an_interrupted_study_goes_on(tmp_path):
    """What was finished before a break is kept; a second start runs only the rest."""
    study, results, seen = made_study(), StudyResults(tmp_path), []

    def breaks(case, measured):
        seen.append(case)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out_study(study, results, in_turn, breaks)
    assert results.table(study).height == 5
    assert carry_out_study(study, results, in_turn, lambda case, _: seen.append(case)) == 7
    assert len({case.task for case in seen}) == 12
    assert carry_out_study(study, results, in_turn, lambda *_: pytest.fail("again")) == 0


def test_more_seeds_and_points_cost_only_their_own_runs(tmp_path):
    """Three seeds at two points are there already when five seeds at three points are asked for."""
    carried_out(made_study(seeds=3), tmp_path)
    larger = made_study(seeds=5, points=(0, 10, 20))
    results = StudyResults(tmp_path)
    assert carry_out_study(larger, results, in_turn, lambda *_: None) == 30 - 12
    assert results.table(larger).height == 30


def test_keys_tell_tasks_apart():
    """A key depends on every value of the task and on nothing else."""
    assert key_of(Sum("low", 1.0, 2)) == key_of(Sum("low", 1.0, 2))
    others = [Sum("high", 1.0, 2), Sum("low", 1.5, 2), Sum("low", 1.0, 3)]
    assert len({key_of(task) for task in (Sum("low", 1.0, 2), *others)}) == 4


def test_damaged_and_missing_results_are_errors(tmp_path):
    """A file cut short is named; a folder without results says so."""
    study = made_study()
    with pytest.raises(InputError, match="no run of this study is finished"):
        StudyResults(tmp_path).table(study)
    results = carried_out(study, tmp_path)
    next((tmp_path / "runs").iterdir()).write_text('{"measured": {')
    with pytest.raises(InputError, match="damaged"):
        results.table(study)


def test_summary_has_a_row_per_place_system_and_measure(tmp_path):
    """Means and intervals are those of the seeds; what nobody has measured is left out."""
    study = made_study()
    rows = summary(study, carried_out(study, tmp_path).table(study))
    assert rows.height == 4
    first = rows.row(0, named=True)
    assert (first["group"], first["x"], first["system"], first["seeds"]) == ("sums", 0, "low", 3)
    assert first["mean"] == pytest.approx(1.1)
    assert first["high"] - first["mean"] == pytest.approx(4.303 * 0.1 / math.sqrt(3.0))


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (PublishedClaim("less", Bound(Mean("sum", "low"), Mean("sum", "high"))), "holds"),
        (PublishedClaim("more", Bound(Mean("sum", "high"), Mean("sum", "low"))), "does not hold"),
        (
            PublishedClaim("half", Bound(Mean("sum", "low", x=(0.0,)), Mean("sum", "high"), 0.5)),
            "holds",
        ),
        (
            PublishedClaim("a number", Bound(Mean("sum", "low", x=(0.0,)), 1.1)),
            "within the interval",
        ),
        (
            PublishedClaim("margin", Bound(Mean("sum", "high"), Mean("sum", "low"), margin=1.5)),
            "holds",
        ),
        (
            PublishedClaim("equal", Bound(Mean("sum", "low"), Mean("sum", "low"))),
            "within the interval",
        ),
        (PublishedClaim("unknown", Bound(Mean("sum", "nobody"), Mean("sum", "low"))), "not run"),
        (PublishedClaim("no values", Bound(Mean("nothing", "low"), 1.0)), "not run"),
        (PublishedClaim("elsewhere", Bound(Mean("sum", "low", "another group"), 1.0)), "not run"),
    ],
    ids=lambda value: value.published if isinstance(value, PublishedClaim) else value,
)
def test_verdicts(tmp_path, claim, verdict):
    """Seeds differ by the same in both systems, so paired differences are certain."""
    study = made_study()
    runs = carried_out(study, tmp_path).table(study)
    assert judge(study, runs, claim).verdict == verdict


def test_one_seed_decides_nothing(tmp_path):
    """However clear the difference, one seed cannot say that a claim holds."""
    study = made_study(seeds=1)
    runs = carried_out(study, tmp_path).table(study)
    assert judge(study, runs, study.claims[0]).verdict == "within the interval"


def test_report_says_the_same_in_every_form(tmp_path):
    """Page, Markdown, JSON and CSV hold the claim, our figures, the verdict and the command."""
    study = made_study()
    results = carried_out(study, tmp_path)
    report = report_of("sums", "sums(seeds=3)", study, results, "foresail experiment run sums")
    own = tmp_path / "sums"
    write_study_report(report, own)
    page = (own / "report.html").read_text()
    assert not page_faults(page, own)
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=['\"]?https?:", page)
    for text in (page, as_markdown(report), as_json(report)):
        assert "Low is less." in text
        assert report.judgements[0].ours in text
        assert "holds" in text
        assert "foresail experiment run sums" in text
        assert "seeds 0, 1, 2" in text
    assert (own / "sums.md").read_text() == as_markdown(report)
    assert json.loads((own / "summary.json").read_text())["claims"][0]["verdict"] == "holds"
    assert (own / "summary.csv").read_text().startswith("group,x,system,measure,seeds,mean")
    assert [figure.name for figure in report.figures] == ["sum"]
    assert (own / "sum.csv").exists()


def test_words_come_first(tmp_path):
    """The lead counts the verdicts, and repeats what does not hold."""
    claims = (
        PublishedClaim("Low is less.", Bound(Mean("sum", "low"), Mean("sum", "high"))),
        PublishedClaim("High is less.", Bound(Mean("sum", "high"), Mean("sum", "low"))),
    )
    study = made_study(claims=claims)
    report = report_of("sums", "sums", study, carried_out(study, tmp_path), "command")
    said = sentences(report)
    assert said[0] == "Of 2 claims: 1 confirmed, 1 contradicted."
    assert "High is less." in said[1]


def test_unfinished_studies_report_what_there_is(tmp_path):
    """A report can be made of some of the runs, and says how many of how many."""
    study, results = made_study(), StudyResults(tmp_path)
    for case in study.cases[:4]:
        results.keep(case, case.task.measure())
    report = report_of("sums", "sums", study, results, "command")
    assert "4 runs of 12 planned" in report.made
    _, *rows = group_table(report, "sums")
    assert [row[:2] for row in rows] == [["0", "low"], ["0", "high"]]
    assert rows[1][2] == "2"


class _Quick(StudyParameters, quick="seeds=2"):
    pass


def test_settings_go_before_those_of_the_quick_size():
    """--quick gives the quick size; what is set explicitly stays."""
    register("study", "sums", parameters=_Quick)(lambda parameters: made_study(parameters.seeds))
    assert study_part("sums", [], quick=False).parameters.seeds == 5
    assert study_part("sums", [], quick=True).parameters.seeds == 2
    assert study_part("sums", ["seeds=4"], quick=True).parameters.seeds == 4
    with pytest.raises(UnknownNameError, match="seed"):
        study_part("sums", ["seed=4"], quick=True)
    with pytest.raises(InputError, match="'seeds': out of range"):
        study_part("sums", ["seeds=0"], quick=True)


def test_a_study_has_to_say_how_long_it_takes():
    """A parameters record of another kind is refused with what is expected."""
    register("study", "timeless")(lambda _: made_study())
    with pytest.raises(InputError, match="how long it takes"):
        study_part("timeless", [], quick=True)


def test_a_study_without_cases_is_refused():
    """Nothing to run is an error and not an empty page."""
    with pytest.raises(InputError, match="nothing to run"):
        Study("t", "s", (), (), (), ())
