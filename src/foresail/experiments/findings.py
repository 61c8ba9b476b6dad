"""What a campaign found: tables, choices and figures, computed from its results."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from foresail.experiments.figures import (
    all_against_baseline,
    correlation_map,
    error_distribution,
    prediction_distribution,
)
from foresail.experiments.results import Results
from foresail.experiments.selection import SelectionRule, candidates, leave_one_out, ranking
from foresail.experiments.study_tables import correlations, headline, prediction_errors
from foresail.experiments.triples import READINGS, clairvoyant_triples
from foresail.reports.figure import Figure, MissingFigure


@dataclass(frozen=True)
class Findings:
    """All that a campaign's report shows.

    ``choices`` is None where there is only one log, so that no other could choose for it.
    """

    results: pl.DataFrame
    headline: pl.DataFrame
    choices: pl.DataFrame | None
    errors: pl.DataFrame
    parts: tuple[Figure | MissingFigure, ...]
    rule: SelectionRule


def findings_of(results: Results, rule: SelectionRule) -> Findings:
    """What the finished runs of a campaign say.

    Raises
    ------
    InputError
        If there is no campaign in the folder, nothing is finished, or the baseline is missing.
    """
    table = results.table()
    quantiles = results.quantiles()
    conventions = table["conventions"][0]
    logs = table["log"].unique(maintain_order=True).to_list()
    choices = leave_one_out(table, rule) if len(logs) > 1 else None
    largest = table.sort("jobs", descending=True, maintain_order=True)["log"][0]
    return Findings(
        results=table,
        headline=headline(table, conventions, choices),
        choices=choices,
        errors=prediction_errors(table),
        parts=(
            all_against_baseline(table, rule.baseline, _named(table, choices, rule)),
            correlation_map(correlations(table)),
            error_distribution(quantiles, largest),
            prediction_distribution(quantiles, largest),
        ),
        rule=rule,
    )


def _named(
    results: pl.DataFrame, choices: pl.DataFrame | None, rule: SelectionRule
) -> dict[str, dict[str, str]]:
    """What the first figure names, on each log."""
    logs = results["log"].unique(maintain_order=True).to_list()
    conventions = results["conventions"][0]
    named = {
        "EASY++": dict.fromkeys(logs, READINGS[conventions].easy_plus_plus),
        "clairvoyant SJBF": dict.fromkeys(logs, clairvoyant_triples()[1]),
    }
    best = ranking(results, rule, candidates(results))
    if not best.is_empty():
        named["best in hindsight"] = dict.fromkeys(logs, best["policy"][0])
    if choices is not None:
        named["chosen by the other logs"] = dict(choices.select("log", "policy").iter_rows())
    return named
