"""The HTML page of a campaign, words before pictures, and a CSV file behind all that it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import polars as pl

from foresail.campaigns import figures
from foresail.campaigns.plan import EASY_PLUS_PLUS, clairvoyant_triples
from foresail.campaigns.results import Results
from foresail.campaigns.selection import (
    SCORE,
    SelectionRule,
    candidates,
    correlations,
    headline,
    leave_one_out,
    prediction_errors,
    ranking,
)
from foresail.model.words import count, duration, number, percent, signed
from foresail.reports.document import (
    as_html,
    document,
    footer,
    key_of,
    missing,
    numbers_section,
    row,
    section,
    table,
)
from foresail.reports.figure import Figure, MissingFigure, write_page


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
    said: tuple[str, ...]
    """Remarks on the logs for the reader."""


def findings_of(results: Results, rule: SelectionRule) -> Findings:
    """Return what the finished runs of a campaign say.

    Raises ``InputError`` if there is no campaign in the folder, nothing is finished, or the
    baseline is missing.
    """
    table = results.table()
    quantiles = results.quantiles()
    logs = table["log"].unique(maintain_order=True).to_list()
    choices = leave_one_out(table, rule) if len(logs) > 1 else None
    largest = table.sort("jobs", descending=True, maintain_order=True)["log"][0]
    return Findings(
        results=table,
        headline=headline(table, choices),
        choices=choices,
        errors=prediction_errors(table),
        parts=(
            figures.all_against_baseline(table, rule.baseline, _named(table, choices, rule)),
            figures.correlation_map(correlations(table)),
            figures.error_distribution(quantiles, largest),
            figures.prediction_distribution(quantiles, largest),
        ),
        rule=rule,
        said=tuple(results.said()),
    )


def _named(
    results: pl.DataFrame, choices: pl.DataFrame | None, rule: SelectionRule
) -> dict[str, dict[str, str]]:
    """Return what the first figure names, on each log."""
    logs = results["log"].unique(maintain_order=True).to_list()
    named = {
        "EASY++": dict.fromkeys(logs, EASY_PLUS_PLUS.text),
        "clairvoyant SJBF": dict.fromkeys(logs, clairvoyant_triples()[1]),
    }
    best = ranking(results, rule, candidates(results))
    if not best.is_empty():
        named["best in hindsight"] = dict.fromkeys(logs, best["policy"][0])
    if choices is not None:
        named["chosen by the other logs"] = dict(choices.select("log", "policy").iter_rows())
    return named


HEADINGS: Final[Mapping[str, str]] = {
    "easy": "EASY",
    "easy_plus_plus": "EASY++",
    "clairvoyant_fcfs": "clairvoyant",
    "clairvoyant_sjbf": "clairvoyant SJBF",
    "learned_fcfs_best": "learned, best",
    "learned_fcfs_worst": "learned, worst",
    "learned_sjbf_best": "learned SJBF, best",
    "learned_sjbf_worst": "learned SJBF, worst",
    "chosen": "chosen",
}
"""Columns of the main table, and how people call them."""

_PUBLISHED: Final = {
    "CTC-SP2": (49.6, 85.8, 37.2, 17.6, 25.5, 163.5, 16.3, 134.7, 20.5),
    "SDSC-SP2": (87.9, 79.4, 70.5, 56.8, 70.9, 102.3, 69.7, 194.8, 75.0),
    "KTH-SP2": (92.6, 63.5, 71.7, 49.8, 62.6, 93.2, 51.4, 74.5, 51.4),
    "SDSC-BLUE": (36.5, 21.0, 30.6, 13.2, 16.5, 48.0, 12.6, 47.8, 34.7),
    "CEA-Curie": (202.1, 193.5, 69.9, 12.1, 26.3, 9348.8, 24.3, 40100.0, 27.9),
}
"""Average bounded slowdowns as V. Reis' thesis prints them (tables 2.1, 2.6, 2.7)."""

_LOGS: Final = {
    "9a5491e4261dac54a2d7e313c8ef5d68": "CTC-SP2",
    "34be0e947385d6027dd9d3a0bd00a423": "SDSC-SP2",
    "48d561ef6d028ce647f27955b7f3bb36": "KTH-SP2",
    "3958152fd1bd00bdca80e3905e132303": "SDSC-BLUE",
    "913bd1b2c7c10d3adceddc17588a8556": "CEA-Curie",
}
"""The logs that it replayed, by the digest of their jobs."""


def write_report(results: Results, rule: SelectionRule, *, command: str | None = None) -> Findings:
    """Write ``report.html`` and the CSV files into the campaign's folder.

    Raises ``InputError`` as ``findings_of``, or if the folder cannot be written to.
    """
    found = findings_of(results, rule)
    tables = {part.name: part.table for part in found.parts if isinstance(part, Figure)}
    tables |= {
        "results": found.results,
        "slowdowns": found.headline,
        "prediction-errors": found.errors,
    }
    if found.choices is not None:
        tables["choices"] = found.choices
    write_page(results.folder / "report.html", page(found, command), tables)
    return found


def page(found: Findings, command: str | None = None) -> str:
    """The whole page as text."""
    logs = found.results["log"].n_unique()
    policies = found.results["policy"].n_unique()
    title = f"{count(policies, 'policy', 'policies')} on {count(logs, 'log')}"
    body = [
        f"<header><h1>{as_html(title)}</h1>",
        f"<p class='lead'>{as_html(' '.join(sentences(found)))}</p></header>",
        *(f"<p>{as_html(words)}</p>" for words in found.said),
        "<main id='numbers'>",
        _slowdowns(found),
        _choices(found),
        *(section(part, key_of(part), command) for part in found.parts),
        _errors(found),
        "</main>",
        _footer(found, command),
    ]
    drawn = [part for part in found.parts if isinstance(part, Figure)]
    return document(title, "".join(body), drawn)


def sentences(found: Findings) -> list[str]:
    """Say what the campaign says, in words."""
    if found.choices is None:
        return ["With one log there is no other log to choose a policy by."]
    mean = float(found.choices["reduction"].to_numpy().mean())
    reductions = found.choices.select("log", "reduction")
    worst = float(found.choices["longest_wait_ratio"].to_numpy().max())
    said = [
        f"A policy chosen for each log by the results on the others alone changes the average "
        f"bounded slowdown against {found.rule.baseline} by {signed(percent(-mean))} in the mean "
        f"({', '.join(f'{log} {signed(percent(-r))}' for log, r in reductions.iter_rows())}).",
        f"Its longest wait is at most {number(worst)} times that of {found.rule.baseline}.",
    ]
    scores = found.results.filter(pl.col("policy") == found.rule.baseline)
    hindsight = _best_in_hindsight(found, scores)
    if hindsight is not None:
        policy, reduction = hindsight
        said.append(
            f"The policy with the smallest sum in hindsight, {policy}, changes it by "
            f"{signed(percent(-reduction))}."
        )
    return said


def _best_in_hindsight(found: Findings, base: pl.DataFrame) -> tuple[str, float] | None:
    ranked = ranking(found.results, found.rule, candidates(found.results))
    if ranked.is_empty():
        return None
    policy = ranked["policy"][0]
    own = found.results.filter(pl.col("policy") == policy)
    both = own.join(base.select("log", baseline=SCORE), on="log")
    return policy, float((1.0 - both[SCORE] / both["baseline"]).to_numpy().mean())


def _slowdowns(found: Findings) -> str:
    rows = []
    for log in found.headline.iter_rows(named=True):
        rows.append(row([escape(log["log"]), *(number(log[column]) for column in HEADINGS)]))
        run = found.results.filter(pl.col("log") == log["log"]).row(0, named=True)
        known = published(run.get("jobs_digest"))
        if known is not None:
            rows.append(row(["as published", *map(number, known)], kind="stated"))
    headings = ["log", *map(escape, HEADINGS.values())]
    title = "Average bounded slowdown"
    return numbers_section("slowdowns", title, table(title, headings, rows))


def published(jobs_digest: str | None) -> Sequence[float] | None:
    """The paper's figures in the order of ``HEADINGS``, for the very jobs that it replayed."""
    return _PUBLISHED[_LOGS[jobs_digest]] if jobs_digest in _LOGS else None


def _choices(found: Findings) -> str:
    title = "Which policy do the other logs recommend?"
    if found.choices is None:
        return missing(title, "The campaign has one log.", "Add logs that resemble your own.")
    rows = [
        row(
            [
                escape(each["log"]),
                f"<code>{escape(each['policy'])}</code>",
                number(each["baseline"]),
                number(each[SCORE]),
                percent(each["reduction"]),
                f"{number(each['longest_wait_ratio'])}×",
            ],
            words=2,
        )
        for each in found.choices.iter_rows(named=True)
    ]
    scores = (escape(found.rule.baseline), "chosen", "reduction", "longest wait")
    headings = ("log", "chosen by the other logs", *scores)
    return numbers_section("choices", title, table(title, headings, rows, words=2))


def _errors(found: Findings) -> str:
    rows = [
        row(
            [
                escape(each["log"]),
                f"<code>{escape(each['predictor'])}</code>",
                duration(each["mean_absolute_error_seconds"]),
                _scientific(each["mean_e_loss"]),
                percent(each["under_predicted_share"]),
            ],
            words=2,
        )
        for each in found.errors.iter_rows(named=True)
        if each["mean_absolute_error_seconds"] is not None
    ]
    title = "How good are the predictions?"
    headings = ("log", "predictor", "mean absolute error", "mean E-Loss", "too short")
    return numbers_section("prediction-errors", title, table(title, headings, rows, words=2))


def _footer(found: Findings, command: str | None) -> str:
    conventions = ", ".join(found.results["conventions"].unique(maintain_order=True))
    made = (
        f"Conventions of the replay: {escape(conventions)}. SJBF: backfilling shortest predicted "
        "runtime first. Learned: the 20 regressions with every correction. Clairvoyant policies "
        "know the runtimes; they bound what predictions can give. E-Loss: log10 of processors "
        "× runtime, times the squared error of a prediction above the runtime, or the error of one "
        "below."
    )
    return footer([made], command)


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa} × 10<sup>{int(exponent)}</sup>"
