"""The pictures of a campaign: all policies against EASY, logs against each other, errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.campaigns.plan import is_clairvoyant
from foresail.campaigns.results import QUANTILE_LEVELS
from foresail.campaigns.selection import SCORE, correlation_spread
from foresail.control.policy import parse_policy
from foresail.model.words import count, duration, number, percent
from foresail.reports import style as styles
from foresail.reports.figure import Figure, MissingFigure

_ERROR_TICKS: Final = {60.0: "1 min", 3600.0: "1 h", 86400.0: "1 d", 864000.0: "10 d"}
_PREDICTORS: Final = {
    "requested": "requested time",
    "recent": "mean of the last two",
    "recent(whole_seconds=true)": "mean of the last two",
    "regression": "regression, E-Loss",
    "regression(under=squared,weight=const)": "regression, squared loss",
}
"""Predictors whose distributions are drawn, as in the study's figures."""

_NO_PREDICTIONS: Final = (
    "None of the study's predictors was replayed on this log.",
    "A campaign with --triples has them all.",
)


def all_against_baseline(
    results: pl.DataFrame, baseline: str, named: Mapping[str, Mapping[str, str]]
) -> Figure:
    """Every policy's score relative to the baseline's, log by log, with some named.

    ``named`` is the policy that each label means on each log; at most four. The baseline, which is
    1, was replayed on every log.
    """
    logs = results["log"].unique(maintain_order=True).to_list()
    base = dict(results.filter(pl.col("policy") == baseline).select("log", SCORE).iter_rows())
    table = results.select(
        "log",
        "policy",
        SCORE,
        ratio=pl.col(SCORE) / pl.col("log").replace_strict(base, return_dtype=pl.Float64),
        clairvoyant=pl.col("policy").map_elements(
            lambda text: is_clairvoyant(parse_policy(text)), return_dtype=pl.Boolean
        ),
    )
    usable = table.filter(~pl.col("clairvoyant"))
    random = np.random.default_rng(0)
    rows = [logs.index(log) for log in usable["log"]]
    others, *looks = styles.named_styles(["one policy each", *named])
    traces = [
        styles.marks_of(
            others,
            usable["ratio"].to_list(),
            (np.array(rows) + random.uniform(-0.28, 0.28, len(rows))).round(3).tolist(),
            "%{text}: %{x:.2f}×",
            marker={"color": "@policy0", "size": 5, "opacity": 0.45},
            text=usable["policy"].to_list(),
        )
    ]
    scores = {(log, policy): ratio for log, policy, _, ratio, _ in table.iter_rows()}
    for look, (label, meant) in zip(looks, named.items(), strict=True):
        known = [log for log in logs if (log, meant.get(log)) in scores]
        traces.append(
            styles.marks_of(
                look,
                [scores[log, meant[log]] for log in known],
                [logs.index(log) for log in known],
                f"{label}: %{{text}}: %{{x:.2f}}×",
                text=[meant[log] for log in known],
            )
        )
    drawing = styles.layout(
        120 + 64 * len(logs),
        xaxis=styles.ratio_axis(
            f"average bounded slowdown relative to {baseline} (log scale)",
            float(table["ratio"].to_numpy().min()),
            float(table["ratio"].to_numpy().max()),
        ),
        yaxis=styles.axis(
            "",
            tickvals=list(range(len(logs))),
            ticktext=[f"{log}<br>{baseline}: {number(base[log])}" for log in logs],
            range=[len(logs) - 0.5, -0.5],
            showgrid=False,
        ),
        shapes=[styles.mark_at(1)],
    )
    findings = [
        f"{log}: of {count(part.height, 'policy', 'policies')} "
        f"{percent(float((part['ratio'] < 1).to_numpy().mean()))} do better than {baseline}; from "
        f"{number(float(part['ratio'].to_numpy().min()))} to "
        f"{number(float(part['ratio'].to_numpy().max()))} times its slowdown."
        for log in logs
        for part in [usable.filter(pl.col("log") == log, pl.col("policy") != baseline)]
        if part.height
    ]
    return Figure(
        name="policies",
        title="How much does the policy matter?",
        findings=findings or ["The baseline alone was replayed."],
        traces=traces,
        layout=drawing,
        table=table,
        note="Every dot is a policy; clairvoyant ones, unusable in practice, only where named.",
    )


def correlation_map(matrix: pl.DataFrame) -> Figure | MissingFigure:
    """Correlation of the policies' scores between logs, as a heat map with numbers."""
    title = "Does what is good on one log do well on another?"
    logs = matrix["log"].unique(maintain_order=True).to_list()
    if len(logs) < 2:
        return MissingFigure(title, "The campaign has one log.", "Add a second one to compare.")
    if not matrix["correlation"].is_finite().any():
        return MissingFigure(title, "The policies' scores do not differ.", "Replay a second one.")
    values = matrix["correlation"].to_numpy().reshape(len(logs), len(logs))
    rows = values.tolist()
    smallest, mean, largest = map(_signed, correlation_spread(matrix))
    drawing = styles.layout(
        110 + 56 * len(logs),
        xaxis=styles.axis("", tickangle=0, showgrid=False),
        yaxis=styles.axis("", autorange="reversed", showgrid=False),
    )
    return Figure(
        name="correlations",
        title=title,
        findings=[
            "Between two logs, the policies' scores correlate by "
            f"{smallest} to {largest}, {mean} in the mean: 1 would mean that one log says all "
            "about another, 0 nothing."
        ],
        traces=[
            {
                "type": "heatmap",
                "x": logs,
                "y": logs,
                "z": [[each if math.isfinite(each) else None for each in row] for row in rows],
                "zmin": -1,
                "zmax": 1,
                "colorscale": [[0, "@loss"], [0.5, "@neutral"], [1, "@gain"]],
                "showscale": False,
                "xgap": 2,
                "ygap": 2,
                "text": [[_signed(value) for value in row] for row in rows],
                "texttemplate": "%{text}",
                "hovertemplate": "%{y} and %{x}: %{text}<extra></extra>",
            }
        ],
        layout=drawing,
        table=matrix,
        note="Pearson correlation over all policies but the clairvoyant.",
    )


def error_distribution(quantiles: pl.DataFrame, log: str) -> Figure | MissingFigure:
    """Share of jobs by prediction error, a line for each of the study's predictors."""
    title = f"How far off are the predictions on {log}?"
    lines = _lines(quantiles, log, "error_quantiles")
    if not lines:
        return MissingFigure(title, *_NO_PREDICTIONS)
    reach = max(max(abs(values[0]), abs(values[-1])) for _, values in lines)
    ticks = [(seconds, text) for seconds, text in _ERROR_TICKS.items() if seconds <= reach]
    along = styles.axis(
        "prediction − runtime (log scale on either side)",
        tickvals=[*(-_folded(s) for s, _ in reversed(ticks)), 0, *(_folded(s) for s, _ in ticks)],
        ticktext=[*(f"−{text}" for _, text in reversed(ticks)), "0", *(t for _, t in ticks)],
        tickangle=0,
    )
    return Figure(
        name="errors",
        title=title,
        findings=[
            f"{label}: half of the predictions are between {duration(_at(values, 0.25))} and "
            f"{duration(_at(values, 0.75))} off, {percent(_share_below_zero(values))} too short."
            for label, values in lines
        ],
        traces=_traces(lines, _folded),
        layout=_shares_of_jobs(along),
        table=_long(lines, "error_seconds"),
        note="Predictions at submission, before any correction, under the first policy of the "
        "campaign with each predictor.",
    )


def prediction_distribution(quantiles: pl.DataFrame, log: str) -> Figure | MissingFigure:
    """Share of jobs by predicted runtime, a line for each of the study's predictors."""
    title = f"What do the predictors predict on {log}?"
    lines = _lines(quantiles, log, "prediction_quantiles")
    if not lines:
        return MissingFigure(title, *_NO_PREDICTIONS)
    longest = max(values[-1] for _, values in lines)
    return Figure(
        name="predictions",
        title=title,
        findings=[
            f"{label}: half of the predictions are above {duration(_at(values, 0.5))}."
            for label, values in lines
        ],
        traces=_traces(lines, lambda seconds: max(seconds, 1.0)),
        layout=_shares_of_jobs(styles.duration_axis("predicted runtime (log scale)", longest)),
        table=_long(lines, "predicted_seconds"),
        note="Drawn as at least 1 s.",
    )


def _lines(quantiles: pl.DataFrame, log: str, column: str) -> list[tuple[str, list[float]]]:
    lines: dict[str, list[float]] = {}
    order = list(dict.fromkeys(_PREDICTORS.values()))
    for row in quantiles.filter(pl.col("log") == log).iter_rows(named=True):
        label = _PREDICTORS.get(parse_policy(row["policy"]).predictor.text)
        if label is not None and label not in lines and row[column]:
            lines[label] = row[column]
    return sorted(lines.items(), key=lambda line: order.index(line[0]))


def _traces(
    lines: Sequence[tuple[str, list[float]]], place: Callable[[float], float]
) -> list[dict[str, Any]]:
    """A line for each label; ``place`` is where a value (seconds) is drawn."""
    return [
        styles.line_of(
            style,
            [round(place(value), 4) for value in values],
            [round(level, 4) for level in QUANTILE_LEVELS],
            "%{y:.1%} of jobs: at most %{text}",
            text=[duration(value) for value in values],
        )
        for style, (_, values) in zip(
            styles.named_styles([label for label, _ in lines]), lines, strict=True
        )
    ]


def _shares_of_jobs(along: dict[str, Any]) -> dict[str, Any]:
    return styles.layout(
        360, xaxis=along, yaxis=styles.axis("share of jobs", tickformat=".0%", range=[0, 1.01])
    )


def _folded(seconds: float) -> float:
    """Position on an axis that is logarithmic on either side of zero, linear within a minute."""
    return math.copysign(math.log10(1.0 + abs(seconds) / 60.0), seconds)


def _at(values: Sequence[float], level: float) -> float:
    return float(np.interp(level, QUANTILE_LEVELS, values))


def _share_below_zero(values: Sequence[float]) -> float:
    return float(QUANTILE_LEVELS[int(np.searchsorted(values, 0.0))]) if values[-1] >= 0 else 1.0


def _long(lines: list[tuple[str, list[float]]], column: str) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame({"predictor": [label] * len(values), "level": QUANTILE_LEVELS, column: values})
        for label, values in lines
    )


def _signed(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}".replace("-", "−")
