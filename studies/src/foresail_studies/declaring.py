"""Words and claims of a study, from its file in ``declarations``; what is run comes from the code.

A file has ``title``, ``source``, perhaps ``axis``, names of ``measures`` and of those that are
``drawn``, ``notes`` (paragraphs) and ``claims``. Its ``groups`` have short names, for cases and for
braces in texts; ``group`` is the short name of that of claims which say none. Claims of
``for_each`` are made once for each row of what the code gives by that name. ``like`` names a file
of what several studies share, among it ``words`` for names in braces.

A claim is a sentence, and indented below it what that comes to in figures:

.. code-block:: text

    SWW waits longest with 93 servers: longer than with 95.
        mean_wait_seconds of sww at 95 in {fleets} <= sww at 93

A side is a number, or the mean of a measure of a system, at some points and in a group. What the
right does not say is as on the left; with a measure of its own, only the group is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from foresail_studies.study import Bound, GridPoint, Mean, Measure, PublishedClaim, Study

_FOLDER: Final = Path(__file__).with_name("declarations")
_BOUND: Final = re.compile(
    r"(?P<less>.+?) <= (?:(?P<factor>[\d./]+) \* )?(?P<more>.+?)(?: \+ (?P<margin>-?[\d.]+))?"
)
_MEAN: Final = re.compile(
    r"(?:(?P<measure>[\w-]+) of )?(?P<system>.+?)"
    r"(?: at (?P<points>[\d.,e+-]+))?(?: in (?P<group>.+))?"
)
Rows = Iterable[Mapping[str, object]]


def declared(
    name: str,
    measures: Iterable[Measure],
    cases: Iterable[GridPoint],
    for_each: Mapping[str, Rows] | None = None,
    notes: Iterable[str] = (),
    /,
    **values: object,
) -> Study:
    """The study of this name.

    Parameters
    ----------
    name
        Its file's.
    measures
        Among which are those that the file names.
    cases
        The grid.
    for_each
        Values for names in braces in claims that are made several times.
    notes
        Further ones, after the file's.
    values
        For names in braces in all texts.
    """
    told = _read(name)
    told = {**_read(told["like"]), **told} if "like" in told else told
    groups: dict[str, str] = told.get("groups", {})
    known = {**groups, "group": groups.get(told.get("group", "")), **values}
    for key, text in told.get("words", {}).items():
        known[key] = text.format(**known)
    claims = list(claims_of(told.get("claims", ""), known))
    for part, text in told.get("for_each", {}).items():
        for row in (for_each or {}).get(part, ()):
            full = {**known, **row}
            full["group"] = groups.get(str(full["group"]), full["group"])
            claims += claims_of(text, full)
    by_name = {each.name: each for each in measures}
    paragraphs = told.get("notes", "").format(**known).split("\n\n")
    return Study(
        title=told["title"],
        source=told["source"],
        axis=told.get("axis", ""),
        measures=tuple(by_name[each] for each in told["measures"]),
        drawn=tuple(told["drawn"]),
        cases=tuple(replace(case, group=groups.get(case.group, case.group)) for case in cases),
        claims=tuple(claims),
        notes=(*(" ".join(each.split()) for each in paragraphs if each.strip()), *notes),
    )


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def claims_of(text: str, values: Mapping[str, object]) -> Iterator[PublishedClaim]:
    """Claims of a text; names in braces stand for values."""
    sentence: list[str] = []
    for line in text.format(**values).strip().splitlines():
        if not line.startswith(" "):
            sentence.append(line)
            continue
        yield PublishedClaim(" ".join(sentence), bound_of(line.strip(), values.get("group")))
        sentence = []


def bound_of(text: str, group: object = None) -> Bound:
    """The bound that a text such as ``price of easy at 2,3 in CTC <= 0.9 * fcfs + 0.02`` says."""
    found = _BOUND.fullmatch(text)
    assert found is not None, text
    usual = Mean("", "", None if group is None else str(group))
    less = _side(found["less"], usual)
    above, _, below = (found["factor"] or "1").partition("/")
    factor, margin = float(above) / float(below or 1), float(found["margin"] or 0)
    more = _side(found["more"], less if isinstance(less, Mean) else usual)
    return Bound(less, more, factor, margin)


def _side(text: str, known: Mean) -> Mean | float:
    """A number, or a mean that is as the known one where nothing else is said."""
    try:
        return float(text)
    except ValueError:
        pass
    found = _MEAN.fullmatch(text)
    assert found is not None, text
    points = tuple(float(point) for point in (found["points"] or "").split(",") if point)
    if not found["measure"]:
        points = points or known.x
    measure = found["measure"] or known.measure
    return Mean(measure, found["system"], found["group"] or known.group, points)
