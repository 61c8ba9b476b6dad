"""Maps of a study: who is best where, and by how much."""

from dataclasses import dataclass

import pytest

from foresail_studies.report import (
    as_markdown,
    map_table,
    report_of,
    summary,
    write_study_report,
)
from foresail_studies.results import StudyResults, carry_out_study
from foresail_studies.study import BestMap, GridPoint, Measure, Study


@dataclass(frozen=True, slots=True)
class Told:
    """Says what it was told."""

    value: float
    seed: int

    def measure(self):
        return {"seconds": self.value}


MEANS = {("dry", 1.0): (10.0, 20.0), ("dry", 2.0): (8.0, 4.0), ("wet", 1.0): (10.0, 10.05)}


@pytest.fixture
def told(tmp_path):
    """A study of two systems at three places, and its runs."""
    cases = [
        GridPoint(group, x, system, seed, Told(value, seed))
        for (group, x), values in MEANS.items()
        for system, value in zip(("one", "other"), values, strict=True)
        for seed in (0, 1)
    ]
    measure = Measure("seconds", "how long", "duration")
    best = BestMap("Who is quicker?", "seconds", "weather", {"dry": "sun", "wet": "rain"})
    study = Study("What?", "Ours", (measure,), (), tuple(cases), (), "wind", maps=(best,))
    results = StudyResults(tmp_path)
    carry_out_study(
        study, results, lambda call, every: ((case, call(case)) for case in every), _ignored
    )
    return study, results


def _ignored(case, measured):
    del case, measured


def test_a_map_is_a_table(told, tmp_path):
    """By a share of the next one's mean; below one percent nobody leads; a dash: not run."""
    study, results = told
    assert map_table(study.maps[0], study, summary(study, results.table(study))) == [
        ["weather", "wind 1", "wind 2"],
        ["sun", "one (50 %)", "other (50 %)"],
        ["rain", "even", "–"],
    ]
    report = report_of("told", "told", study, results, "foresail experiment run told")
    assert "| rain | even | – |" in as_markdown(report)
    write_study_report(report, tmp_path / "told")
    assert "Who is quicker?" in (tmp_path / "told" / "report.html").read_text()
