"""The conformance suite of analyses, run over all that is registered and over bad ones."""

from __future__ import annotations

import dataclasses
import itertools

import polars as pl
import pytest

from checks.analyses import check_analysis
from foresail.analysis.finding import Finding, Plot, Unavailable
from foresail.checks.rules import NonconformityError
from foresail.model.registry import entries, find, register

GOOD = Finding(
    "wrong",
    "Is it right?",
    "It is.",
    {"one": 1.0},
    {"t": pl.DataFrame({"x": [1.0], "y": [2.0]})},
    (Plot("line", "t", "x", "y", "x", "y", "Said."),),
)
CALLS = itertools.count()


@pytest.mark.parametrize("entry", list(entries("analysis")), ids=lambda entry: entry.name)
def test_analysis_conforms(entry):
    """Every registered analysis keeps every rule."""
    check_analysis(entry)


def crash(workload):
    return 1 / len(workload)


def spoil(workload):
    workload.jobs.insert_column(0, pl.Series("new", [0] * len(workload)))
    return GOOD


WRONG = {
    "nan": (lambda _: dataclasses.replace(GOOD, scalars={"one": float("nan")}), "not finite: one"),
    "silent": (lambda _: dataclasses.replace(GOOD, verdict=" "), "it says nothing"),
    "other name": (lambda _: dataclasses.replace(GOOD, name="other"), "calls itself 'other'"),
    "no column": (
        lambda _: dataclasses.replace(GOOD, tables={"t": pl.DataFrame({"x": [1.0]})}),
        "t has no y",
    ),
    "no table": (lambda _: dataclasses.replace(GOOD, tables={}), "no table 't'"),
    "crash": (crash, "raised ZeroDivisionError"),
    "moody": (
        lambda _: dataclasses.replace(GOOD, scalars={"one": float(next(CALLS))}),
        "another finding",
    ),
    "spoils": (spoil, "its jobs changed"),
    "answers nothing": (lambda _: GOOD, "an empty workload gets a finding"),
}


@pytest.mark.parametrize("case", WRONG)
def test_suite_finds_what_is_wrong(case):
    """Each way to break the contract is found, and said."""
    examine, told = WRONG[case]

    @register("analysis", "wrong")
    class Wrong:
        """Breaks a rule."""

        def __init__(self, parameters):
            del parameters

        def examine(self, workload):
            if case != "answers nothing" and case != "crash" and not len(workload):
                return Unavailable("wrong", "Is it right?", "No jobs.")
            return examine(workload)

    with pytest.raises(NonconformityError, match=told):
        check_analysis(find("analysis", "wrong"))
