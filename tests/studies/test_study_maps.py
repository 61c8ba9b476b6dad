"""Maps of a study: who is best where, and by how much."""

from dataclasses import dataclass

import pytest

from foresail_studies.report import as_markdown, cells, map_table, maps_of, report_of, summary
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


def test_the_best_leads_over_the_next(told):
    """By a share of the next one's mean; below one percent nobody does."""
    study, results = told
    found = cells(study.maps[0], summary(study, results.table(study)))
    assert [(each.row, each.x, each.best) for each in found] == [
        ("sun", 1.0, "one"),
        ("sun", 2.0, "other"),
        ("rain", 1.0, None),
    ]
    assert [each.lead for each in found] == pytest.approx([0.5, 0.5, 1 - 10.0 / 10.05])


def test_a_map_is_a_table_and_a_picture(told):
    """With a dash where nothing was run; the picture comes first in the report."""
    study, results = told
    numbers = summary(study, results.table(study))
    assert map_table(study.maps[0], study, numbers) == [
        ["weather", "wind 1", "wind 2"],
        ["sun", "one (50 %)", "other (50 %)"],
        ["rain", "even", "–"],
    ]
    (figure,) = maps_of(study, numbers)
    assert figure.traces[0]["z"] == [[1, 2], [0, None]]
    assert figure.table["best"].to_list() == ["one", "other", None]
    report = report_of("told", "told", study, results, "foresail experiment run told")
    assert [each.name for each in report.figures] == ["map-1"]
    assert "| rain | even | – |" in as_markdown(report)
