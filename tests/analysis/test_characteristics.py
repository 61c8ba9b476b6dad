"""The ten characteristics of the study, decided for logs."""

import pytest

from foresail.analysis.characteristics import CHARACTERISTICS, Analysed, compared, verdict
from foresail.analysis.finding import Finding, Unavailable

BY_NAME = {row.name: row for row in CHARACTERISTICS}


def analysed(analysis, **scalars):
    """A log on which one analysis found these numbers."""
    return Analysed("made", 1, 0.0, (Finding(analysis, "title", "verdict", scalars, {}),))


STUDIED = [
    ("Majority of jobs are small", 0.9, "yes"),
    ("Majority of jobs are small", 0.45, "no"),
    ("Majority of jobs are short", 12 * 60.0, "yes"),
    ("Majority of jobs are short", 2 * 3600.0, "no"),
    ("High job submission rate", 2.1e6 / (61 * 30.4 * 24), "no"),
    ("High job submission rate", 3.2e6 / (9 * 30.4 * 24), "yes"),
    ("High job submission rate", 672074 / (29 * 24), "yes"),
    ("Resource over-commitment", 1.1, "yes"),
    ("Resource over-commitment", 0.98, "no"),
    ("Sub-second inter-arrival periods", 0.44, "yes"),
    ("User request variability", 0.6, "yes"),
    ("User request variability", 0.4, "no"),
]


@pytest.mark.parametrize(
    ("name", "value", "expected"), STUDIED, ids=[f"{name} {value:g}" for name, value, _ in STUDIED]
)
def test_thresholds_give_the_studys_verdicts(name, value, expected):
    """What the study's text says of its platforms gives the verdicts of its table."""
    row = BY_NAME[name]
    assert verdict(row, analysed(row.analysis, **{row.scalar: value})).verdict == expected
    assert expected in row.studied


def test_unknown_where_nothing_was_found():
    """No finding, an unavailable one, or one without the number: unknown, never a guess."""
    row = CHARACTERISTICS[0]
    lacking = Unavailable(row.analysis, "title", "reason")
    for log in (
        Analysed("made", 1, 0.0, ()),
        Analysed("made", 1, 0.0, (lacking,)),
        analysed(row.analysis),
    ):
        assert verdict(row, log).verdict == "unknown"
        assert verdict(row, log).value is None


def test_diurnal_needs_a_clock():
    """Daytime is decided only where the hours are those of the place."""
    row = BY_NAME["Diurnal patterns in submissions"]
    for local, expected in ((1.0, "yes"), (0.0, "unknown")):
        log = analysed(row.analysis, share_by_day=0.8, hours_are_local=local)
        assert verdict(row, log).verdict == expected


def test_table_is_that_of_the_study():
    """Ten rows with the verdicts of table 3.1: Google, TwoSigma, Mustang, OpenTrinity."""
    marks = {"yes": "✓", "no": "✗"}
    rows = ["".join(marks[said] for said in row.studied) for row in CHARACTERISTICS]
    assert rows == ["✓✗✗✗", "✓✗✗✗", "✗✓✓✓", "✓✓✗✗", "✓✗✗✗", "✓✓✓✓", "✗✓✓✓", "✓✓✗✓", "✓✓✗✗", "✓✗✗✗"]
    assert all("{" not in row.yes_if for row in CHARACTERISTICS)
    assert [len(cells) for _, cells in compared([analysed("job_sizes")] * 3)] == [3] * 10
