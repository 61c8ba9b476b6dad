"""The page about green hours: CO2 saved against the delay it costs, and when work runs then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.cloud.waiting.carbon import GreenMetrics
from foresail.cloud.waiting.green_hours import GreenAnswer, GreenCourse, GreenPoint
from foresail.model.words import count, duration, listed, number, percent
from foresail.reports.curve_figure import Axis, Curve, curve_figure
from foresail.reports.figure import Figure
from foresail.reports.renting.page import CloudPage, Column, NumbersTable, numbers_table
from foresail.reports.style import named_styles


def _saving_figure(answer: GreenAnswer, asked: GreenCircumstances) -> Figure:
    """CO2 saved against the mean delay, with runtimes known and believed."""
    kinds: dict[str, Sequence[GreenMetrics]] = {
        "runtimes known": [point.known for point in answer.points]
    }
    kinds[f"runtimes {asked.runtimes}"] = [point.believed for point in answer.points]
    words = [duration(point.patience_seconds) for point in answer.points]
    curves, findings = [], []
    for style, (name, metrics) in zip(named_styles(list(kinds)), kinds.items(), strict=True):
        waits = np.array([each.mean_wait_seconds for each in metrics])
        saved = np.array([each.saved for each in metrics])
        believed = metrics is kinds[f"runtimes {asked.runtimes}"]
        sure = [point.certainty for point in answer.points if believed and point.certainty]
        curves.append(
            Curve(
                style,
                waits,
                saved,
                list(range(1, waits.size)) if believed else (),
                words[1:] if believed else (),
                low=np.array([each.saved[0] for each in sure]) if sure else None,
                high=np.array([each.saved[1] for each in sure]) if sure else None,
            )
        )
        findings.append(
            f"{name}: {percent(float(saved[-1]))} saved for {duration(float(waits[-1]))} of mean "
            f"delay, with {words[-1]} of patience."
        )
    return curve_figure(
        "saving",
        "What does the delay buy?",
        findings,
        curves,
        Axis("mean delay", "duration"),
        Axis("CO2 saved", "share"),
        table=_points_table(answer),
        note="A point for each patience, which stands beside it."
        + (" Band: 95 % range." if answer.blocks else ""),
    )


def _day_figure(course: GreenCourse, asked: GreenCircumstances) -> Figure:
    """Means by hour of the day over those of the log: of the intensity, and of cores at work."""
    hours, length = np.arange(24.0), np.diff(course.edges_seconds)
    lines = {
        "intensity": (course.grams_per_kwh, course.grams_per_kwh),
        "cores, all start at once": (course.cores_at_once, course.cores_at_once),
        "cores, waiting for green hours": (course.cores_waiting, course.cores_at_once),
    }
    curves, findings = [], []
    for style, (name, (column, whole)) in zip(
        named_styles(list(lines)), lines.items(), strict=True
    ):
        mean = float(np.average(whole, weights=length))
        by_hour = course.by_hour_of_day(column)
        known = np.isfinite(by_hour)
        curves.append(Curve(style, hours[known], by_hour[known] / (mean or 1.0)))
        findings.append(
            f"{name}: from {number(float(by_hour[known].min()))} to "
            f"{number(float(by_hour[known].max()))}; the mean of the log is {number(mean)}."
        )
    return curve_figure(
        "day",
        "At what hours does work run?",
        findings,
        curves,
        Axis("hour of the day, UTC" if asked.dated else "hour of the log's day", "hour"),
        Axis("relative to the mean"),
        table=pl.DataFrame(
            {
                "begin_seconds": course.edges_seconds[:-1],
                "end_seconds": course.edges_seconds[1:],
                "grams_per_kwh": course.grams_per_kwh,
                "cores_at_once": course.cores_at_once,
                "cores_waiting": course.cores_waiting,
            }
        ),
        note="Waiting: up to the longest patience. The CSV has every hour of the log.",
        level=(1.0, ""),
    )


def patiences_table(answer: GreenAnswer, asked: GreenCircumstances) -> NumbersTable:
    """Tabulate what each patience leads to."""
    sure, learned = answer.blocks > 0, not asked.are_known
    columns: list[Column[GreenPoint]] = [
        Column("patience", "", lambda point: point.patience_seconds, duration),
        Column("CO2, kg", "", lambda point: point.believed.grams / 1000.0, number),
        Column("saved, kg", "", lambda point: point.kilograms_saved, number),
        Column("saved", "", lambda point: point.believed.saved, percent),
        Column("95 % range" if sure else "", "", lambda point: point, _saved_range),
        Column("mean delay", "", lambda point: point.believed.mean_wait_seconds, duration),
        Column("jobs that wait", "", lambda point: point.believed.waiting_jobs, percent),
        Column(
            "saved, runtimes known" if learned else "", "", lambda point: point.known.saved, percent
        ),
        Column(
            "mean delay, known" if learned else "",
            "",
            lambda point: point.known.mean_wait_seconds,
            duration,
        ),
        Column("most cores", "", lambda point: point.most_cores, "{:,}".format),
    ]
    found = numbers_table(
        "patiences",
        "What does patience bring?",
        answer.points,
        columns,
        "Patience: the longest that a job may be put off. Most cores: in use at once at most."
        + (" Range: weeks (or days) of the log drawn anew, of what is believed." if sure else ""),
    )
    return replace(found, table=_points_table(answer))


def _saved_range(point: GreenPoint) -> str:
    if point.certainty is None or not point.patience_seconds:
        return "–"
    low, high = point.certainty.saved
    return f"{percent(low)}–{percent(high)}"


def _points_table(answer: GreenAnswer) -> pl.DataFrame:
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


_LITTLE: Final = 0.001
_DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class GreenCircumstances:
    """Circumstances of a question, beside the answer."""

    log: str
    series: str
    """Names of their files."""
    runtimes: str
    """Runtimes that jobs are believed to have: ``known``, ``requested`` or a predictor."""
    repeat: str | None
    """Part of the series that goes round, None if it does not."""
    dated: bool
    """True if the log's date is known, so that hours are of the day in UTC."""

    @property
    def are_known(self) -> bool:
        """Return whether the runtimes are the truth."""
        return self.runtimes == "known"


def sentences(answer: GreenAnswer, asked: GreenCircumstances) -> list[str]:
    """Say what it saves, what it costs, and what it rests on."""
    most = answer.points[-1]
    at_once = most.believed.grams_at_once / 1000.0
    patience = duration(most.patience_seconds)
    if abs(most.believed.saved) < _LITTLE:
        said = [
            f"Waiting for green hours saves nothing worth its name: {percent(most.believed.saved)} "
            f"of {number(at_once)} kg CO2, if jobs wait up to {patience}."
        ]
    else:
        verb = "saves" if most.kilograms_saved > 0.0 else "costs another"
        said = [
            f"If every job starts within {patience} of its submission when it emits least"
            f"{_priced(answer)}, that {verb} {percent(abs(most.believed.saved))} of the CO2 "
            f"({number(abs(most.kilograms_saved))} of {number(at_once)} kg); jobs start "
            f"{duration(most.believed.mean_wait_seconds)} later on average."
        ]
    said += _less_patience(answer)
    said += _certain(answer)
    said.append(_knowledge(most, asked))
    if answer.unbelieved_jobs > 0.0:
        said.append(
            f"{percent(answer.unbelieved_jobs)} of the jobs start at once, because nothing is "
            "believed of their runtime."
        )
    said.append(
        f"Jobs never wait for capacity here: {count(most.most_cores, 'core')} would be in use at "
        f"once at most, {number(answer.most_cores_at_once)} if no job waited. Where there are "
        "fewer, less is saved."
    )
    return said


def _priced(answer: GreenAnswer) -> str:
    if not answer.hour_grams:
        return ""
    return f", and an hour's delay of a job must save {number(answer.hour_grams)} g"


def _less_patience(answer: GreenAnswer) -> list[str]:
    """The patience before the longest, compared."""
    inner = answer.points[1:-1]
    most = answer.points[-1]
    if not inner or most.believed.saved < _LITTLE:
        return []
    each = [
        f"{duration(point.patience_seconds)} of patience {percent(point.believed.saved)} "
        f"({duration(point.believed.mean_wait_seconds)} later on average)"
        for point in inner
    ]
    return [f"Less patience saves less: {listed(each)}."]


def _certain(answer: GreenAnswer) -> list[str]:
    """Say what weeks drawn anew make of it."""
    sure = answer.points[-1].certainty
    if sure is None:
        return ["The log is too short to say how sure that is: jobs on five days are the least."]
    unit = "week" if answer.block_seconds > _DAY else "day"
    low, high = sure.saved
    brief, long = sure.mean_wait_seconds
    return [
        f"Put together anew from the log's {count(answer.blocks, unit)}, 19 periods of 20 save "
        f"{percent(low)} to {percent(high)}, with a mean delay of {duration(brief)} to "
        f"{duration(long)}."
    ]


def _knowledge(most: GreenPoint, asked: GreenCircumstances) -> str:
    if asked.are_known:
        return "Runtimes are taken to be known, which is a bound: --runtimes says by whom else."
    realised = most.realised
    share = "" if realised is None else f", of which this is {percent(realised)}"
    return (
        f"Starts go by what {asked.runtimes} says of runtimes; known ones would save "
        f"{percent(most.known.saved)}{share}."
    )


def notes(answer: GreenAnswer, asked: GreenCircumstances) -> list[str]:
    """Say how it was computed."""
    of_watts = "; other watts change the kilograms, not the shares"
    if answer.gpu_hours:
        of_watts = "; other watts change the kilograms, and the shares where jobs differ in gpus"
    if answer.hour_grams:
        of_watts = ", and with other watts other jobs wait"
    return [
        "The intensity is taken to be known in advance. Of starts that emit as little, a job takes "
        "the earliest. Cores that no job uses are not counted: neither their power, nor what "
        "making machines emitted.",
        "Emission is counted over the true runtimes"
        + (
            "."
            if asked.are_known
            else f"; starts are chosen by what {asked.runtimes} believed on submission."
        ),
        f"Power is taken to be {watts(answer)}, whatever it does{of_watts}.",
    ]


def watts(answer: GreenAnswer) -> str:
    """The power that is assumed."""
    gpu = f", {number(1000.0 * answer.kilowatts_per_gpu)} W for a busy gpu"
    core = f"{number(1000.0 * answer.kilowatts_per_core)} W for a busy core"
    return core + (gpu if answer.gpu_hours else "")


def green_page(answer: GreenAnswer, asked: GreenCircumstances) -> CloudPage:
    """The page about one answer."""
    rounds = "" if asked.repeat is None else f", repeated {asked.repeat}"
    return CloudPage(
        title="What does waiting for green hours save?",
        situation=(
            f"{asked.log}: {count(answer.jobs, 'job')} of {number(round(answer.core_hours))} "
            f"core-hours{_gpu_hours(answer)}; {watts(answer)}; intensity {asked.series}{rounds}."
        ),
        sentences=sentences(answer, asked),
        parts=[
            patiences_table(answer, asked),
            _saving_figure(answer, asked),
            _day_figure(answer.course, asked),
        ],
        notes=notes(answer, asked),
    )


def _gpu_hours(answer: GreenAnswer) -> str:
    return f" and {number(round(answer.gpu_hours))} gpu-hours" if answer.gpu_hours else ""
