"""Patiences as a table, and all of the answer for machines to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import polars as pl

from foresail.cloud.waiting.green_hours import GreenAnswer, GreenPoint
from foresail.model.words import duration, number, percent
from foresail.reports.html_parts import in_columns
from foresail.reports.renting.green_words import GreenCircumstances
from foresail.reports.renting.page import NumbersTable


def patiences_table(answer: GreenAnswer, asked: GreenCircumstances) -> NumbersTable:
    """What each patience leads to."""
    sure = answer.blocks > 0
    columns: list[tuple[str, Callable[[GreenPoint], str]]] = [
        ("patience", lambda point: duration(point.patience_seconds)),
        ("CO2, kg", lambda point: number(point.believed.grams / 1000.0)),
        ("saved, kg", lambda point: number(point.kilograms_saved)),
        ("saved", lambda point: percent(point.believed.saved)),
        *([("95 % range", _saved_range)] if sure else []),
        ("mean delay", lambda point: duration(point.believed.mean_wait_seconds)),
        ("jobs that wait", lambda point: percent(point.believed.waiting_jobs)),
    ]
    if not asked.are_known:
        columns += [
            ("saved, runtimes known", lambda point: percent(point.known.saved)),
            ("mean delay, known", lambda point: duration(point.known.mean_wait_seconds)),
        ]
    columns.append(("most cores", lambda point: f"{point.most_cores:,}"))
    headings, rows = in_columns(answer.points, *columns)
    return NumbersTable(
        "patiences",
        "What does patience bring?",
        headings,
        rows,
        points_table(answer),
        "Patience: the longest that a job may be put off. Most cores: in use at once at most."
        + (" Range: weeks (or days) of the log drawn anew, of what is believed." if sure else ""),
    )


def _saved_range(point: GreenPoint) -> str:
    if point.certainty is None or not point.patience_seconds:
        return "–"
    low, high = point.certainty.saved
    return f"{percent(low)}–{percent(high)}"


def points_table(answer: GreenAnswer) -> pl.DataFrame:
    """A row for each patience."""
    return pl.DataFrame([_numbers(point) for point in answer.points], infer_schema_length=None)


def record(answer: GreenAnswer, asked: GreenCircumstances) -> dict[str, Any]:
    """All of it for machines to read."""
    return {
        "log": asked.log,
        "intensity": asked.series,
        "repeat": asked.repeat,
        "runtimes": asked.runtimes,
        "jobs": answer.jobs,
        "core_hours": answer.core_hours,
        "gpu_hours": answer.gpu_hours,
        "watts_per_core": 1000.0 * answer.kilowatts_per_core,
        "watts_per_gpu": 1000.0 * answer.kilowatts_per_gpu,
        "hour_grams": answer.hour_grams,
        "kilograms_at_once": answer.points[0].believed.grams / 1000.0,
        "jobs_without_belief": answer.unbelieved_jobs,
        "blocks_drawn": answer.blocks,
        "block_seconds": answer.block_seconds,
        "points": [_numbers(point) for point in answer.points],
    }


def _numbers(point: GreenPoint) -> dict[str, Any]:
    """A patience as numbers; what is believed has no prefix."""
    believed = asdict(point.believed) | {"saved": point.believed.saved}
    known = asdict(point.known) | {"saved": point.known.saved}
    for each in (believed, known):
        del each["grams_at_once"]
    sure = point.certainty
    return {
        "patience_seconds": point.patience_seconds,
        "kilograms_saved": point.kilograms_saved,
        "saved_low": None if sure is None else sure.saved[0],
        "saved_high": None if sure is None else sure.saved[1],
        "mean_wait_seconds_low": None if sure is None else sure.mean_wait_seconds[0],
        "mean_wait_seconds_high": None if sure is None else sure.mean_wait_seconds[1],
        **believed,
        **{f"known_{name}": value for name, value in known.items()},
        "most_cores": point.most_cores,
    }
