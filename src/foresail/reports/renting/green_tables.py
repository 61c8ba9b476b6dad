"""Patiences as a table, and all of the answer for machines to read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import polars as pl

from foresail.cloud.waiting.green_hours import GreenAnswer, GreenPoint
from foresail.model.words import duration, number, percent
from foresail.reports.renting.green_words import GreenCircumstances
from foresail.reports.renting.json_values import finite
from foresail.reports.renting.page import NumbersTable


def patiences_table(answer: GreenAnswer, asked: GreenCircumstances) -> NumbersTable:
    """What each patience leads to."""
    headings = ["patience", "CO2, kg", "saved, kg", "saved", "mean delay", "jobs that wait"]
    sure = answer.blocks > 0
    if sure:
        headings.insert(4, "95 % range")
    headings += [] if asked.are_known else ["saved, runtimes known", "mean delay, known"]
    rows = []
    for point in answer.points:
        believed, known = point.believed, point.known
        row = [
            duration(point.patience_seconds),
            number(believed.grams / 1000.0),
            number(point.kilograms_saved),
            percent(believed.saved),
            *([_saved_range(point)] if sure else []),
            duration(believed.mean_wait_seconds),
            percent(believed.waiting_jobs),
        ]
        if not asked.are_known:
            row += [percent(known.saved), duration(known.mean_wait_seconds)]
        rows.append([*row, f"{point.most_cores:,}"])
    return NumbersTable(
        "patiences",
        "What does patience bring?",
        [*headings, "most cores"],
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
    content = {
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
    return {name: finite(value) for name, value in content.items()}


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
