"""Studies from their files: what a claim's text says, and that every file belongs to a study."""

import pytest

from foresail.model.registry import entries
from foresail_studies.declaring import _FOLDER, bound_of, claims_of, declared
from foresail_studies.study import Bound, GridPoint, Mean
from foresail_studies.waiting._shared import MEASURES


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("0.4 <= use of none at 108", Bound(0.4, Mean("use", "none", "usual", (108.0,)))),
        (
            "price of a, b at 1,2.5 in all, but one <= 1/4 * c",
            Bound(
                Mean("price", "a, b", "all, but one", (1.0, 2.5)),
                Mean("price", "c", "all, but one", (1.0, 2.5)),
                0.25,
            ),
        ),
        (
            "price of 10 % off at 3 <= 1.1 * wait of in order of arrival + 0.02",
            Bound(
                Mean("price", "10 % off", "usual", (3.0,)),
                Mean("wait", "in order of arrival", "usual"),
                1.1,
                0.02,
            ),
        ),
        (
            "price of a at 3 <= a at 4 in other",
            Bound(Mean("price", "a", "usual", (3.0,)), Mean("price", "a", "other", (4.0,))),
        ),
    ],
)
def test_bounds_are_read(text, bound):
    """Numbers, factors, margins; the right is as the left where it says nothing else."""
    assert bound_of(text, "usual") == bound


def test_a_sentence_goes_over_lines():
    """Up to the indented line; names in braces are filled in both."""
    (claim,) = claims_of("A is less\nthan {it}.\n    price of a <= {it}\n", {"it": "b"})
    assert claim.published == "A is less than b."
    assert claim.bound == Bound(Mean("price", "a"), Mean("price", "b"))


def test_every_file_is_of_a_study():
    """And none is left over."""
    known = {entry.name for entry in entries("study")}
    files = {path.stem for path in _FOLDER.glob("*.toml")}
    shared = {"3sigma", "slearn", "distsched", "tetrisched"}
    assert files - shared <= known
    assert shared < files


def test_groups_have_their_long_names():
    """In cases and in claims."""
    study = declared(
        "waiting-trace", MEASURES, [GridPoint("wrong", 1.0, "runtimes under", 0, None)]
    )
    assert study.groups == ("wrong predictions (compound, 100 % of the load)",)
    assert study.groups[0] in {claim.bound.less.group for claim in study.claims}
