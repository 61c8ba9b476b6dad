"""Report of a study, as Markdown and as JSON: means over seeds, intervals, verdicts on claims."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail import __version__
from foresail.model.arrays import Floats
from foresail.model.documents import json_answer
from foresail.model.words import count, number, percent
from foresail.reports.figure import Figure
from foresail.reports.style import axis, layout, named_styles
from foresail_studies.figures import figures_of
from foresail_studies.results import StudyResults
from foresail_studies.study import BestMap, Bound, Mean, PublishedClaim, Study

Verdict = Literal["holds", "does not hold", "within the interval", "not run"]

_STUDENT_95: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom."""
_NORMAL_95: Final = 1.96
_SUMMARY: Final = pl.Schema(
    {
        "group": pl.String(),
        "x": pl.Float64(),
        "system": pl.String(),
        "measure": pl.String(),
        "seeds": pl.Int64(),
        "mean": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
    }
)


@dataclass(frozen=True, slots=True)
class SeedInterval:
    """A mean over seeds with its 95 % interval (Student's t); unbounded for a single seed."""

    mean: float
    low: float
    high: float


def interval(values: Floats) -> SeedInterval:
    """Mean and 95 % interval of independent values; NaN without any."""
    if not values.size:
        return SeedInterval(math.nan, math.nan, math.nan)
    mean = float(values.mean())
    if values.size == 1:
        return SeedInterval(mean, -math.inf, math.inf)
    freedom = values.size - 1
    quantile = _STUDENT_95[freedom - 1] if freedom <= len(_STUDENT_95) else _NORMAL_95
    reach = quantile * float(values.std(ddof=1)) / math.sqrt(values.size)
    return SeedInterval(mean, mean - reach, mean + reach)


def summary(study: Study, runs: pl.DataFrame) -> pl.DataFrame:
    """A row per group, point, system and measure of a study.

    ``runs`` are as ``StudyResults.table`` has them.

    Returns
    -------
    DataFrame
        ``group``, ``x``, ``system``, ``measure``, ``seeds``, ``mean``, ``low``, ``high``; the ends
        of the interval are null for a single seed. Seeds with nothing to measure are left out.
    """
    rows = []
    where = list(dict.fromkeys((case.group, case.x, case.system) for case in study.cases))
    for group, x, system in where:
        part = runs.filter(
            pl.col("group") == group, pl.col("x").eq_missing(pl.lit(x)), pl.col("system") == system
        )
        for measure in study.measures:
            if measure.name not in part.columns:
                continue
            values = part[measure.name].drop_nulls().to_numpy()
            found = interval(values)
            if not values.size:
                continue
            rows.append(
                {
                    "group": group,
                    "x": x,
                    "system": system,
                    "measure": measure.name,
                    "seeds": int(values.size),
                    "mean": found.mean,
                    "low": found.low if math.isfinite(found.low) else None,
                    "high": found.high if math.isfinite(found.high) else None,
                }
            )
    return pl.DataFrame(rows, schema=_SUMMARY)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim beside what came out."""

    claim: PublishedClaim

    ours: str
    """Our figures in words."""
    verdict: Verdict
    """``holds`` and ``does not hold`` where the interval over seeds is on one side of the claim,
    ``within the interval`` where it is on both, ``not run`` where a side is missing."""


def judge(study: Study, runs: pl.DataFrame, claim: PublishedClaim) -> Judgement:
    """Hold a claim against the runs, seed by seed."""
    bound = claim.bound
    sides = [_by_seed(runs, side) for side in (bound.less, bound.more)]
    seeds = sorted(set.intersection(*(set(side) for side in sides if side is not None)))
    less, more = (
        np.full(len(seeds), constant) if side is None else np.array([side[s] for s in seeds])
        for side, constant in zip(sides, (bound.less, bound.more), strict=True)
    )
    if not seeds:
        return Judgement(claim, "nothing was run that says so", "not run")
    spare = interval(bound.factor * more + bound.margin - less)
    verdict: Verdict = "within the interval"
    if spare.low > 0.0:
        verdict = "holds"
    elif spare.high < 0.0:
        verdict = "does not hold"
    return Judgement(claim, _ours(study, bound, less, more, spare), verdict)


def _by_seed(runs: pl.DataFrame, side: Mean | float) -> dict[int, float] | None:
    """The mean of each seed; None for a number that the claim states."""
    if not isinstance(side, Mean):
        return None
    part = runs.filter(pl.col("system") == side.system)
    if side.group is not None:
        part = part.filter(pl.col("group") == side.group)
    if side.x:
        part = part.filter(pl.col("x").is_in([float(x) for x in side.x]))
    if side.measure not in part.columns:
        return {}
    known = part.drop_nulls(side.measure).group_by("seed").agg(pl.col(side.measure).mean())
    return dict(known.iter_rows())


def _ours(study: Study, bound: Bound, less: Floats, more: Floats, spare: SeedInterval) -> str:
    """Both sides in words, their ratio, and by how much the claim is kept."""
    parts = []
    groups = {side.group for side in (bound.less, bound.more) if isinstance(side, Mean)}
    for side, values in ((bound.less, less), (bound.more, more)):
        if isinstance(side, Mean):
            where = f" on the {side.group}" if len(groups) > 1 and side.group else ""
            where += f" at {', '.join(number(x) for x in side.x)}" if side.x else ""
            said = study.measure(side.measure).said(float(values.mean()))
            parts.append(f"{side.system}{where} {said}")
    text = ", ".join(parts)
    both = isinstance(bound.less, Mean) and isinstance(bound.more, Mean)
    if both and float(more.mean()) > 0.0:
        text += f" (ratio {number(float(less.mean() / more.mean()))})"
    if less.size > 1 and _is_share(study, bound):
        text += f"; to spare {percent(spare.mean)} [{percent(spare.low)}, {percent(spare.high)}]"
    elif less.size > 1:
        text += f"; to spare {number(spare.mean)} [{number(spare.low)}, {number(spare.high)}]"
    return text


def _is_share(study: Study, bound: Bound) -> bool:
    sides = [side for side in (bound.less, bound.more) if isinstance(side, Mean)]
    return all(study.measure(side.measure).kind == "share" for side in sides)


EVEN_SHARE = 0.01
"""By less than this the best leads over no one."""


@dataclass(frozen=True, slots=True)
class MapCell:
    """A place of a map: who has the least mean there, and by which share of the next one's."""

    row: str
    x: float

    best: str | None
    """None where the lead is below 1 %."""
    lead: float

    @property
    def said(self) -> str:
        """In words."""
        return "even" if self.best is None else f"{self.best} ({percent(self.lead)})"


def cells(found: BestMap, summary: pl.DataFrame) -> list[MapCell]:
    """The places of a map that have been run, row by row."""
    places = []
    of_measure = summary.filter(pl.col("measure") == found.measure)
    for group, row in found.rows.items():
        part = of_measure.filter(pl.col("group") == group)
        for x in sorted(set(part["x"].drop_nulls().to_list())):
            there = part.filter(pl.col("x") == x).sort("mean")
            systems, means = there["system"].to_list(), there["mean"].to_list()
            lead = 1.0 - means[0] / means[1] if len(means) > 1 and means[1] else 0.0
            places.append(MapCell(row, x, systems[0] if lead >= EVEN_SHARE else None, lead))
    return places


def map_table(found: BestMap, study: Study, summary: pl.DataFrame) -> list[list[str]]:
    """Headings and rows of a map as texts."""
    places = cells(found, summary)
    points = sorted({each.x for each in places})
    said = {(each.row, each.x): each.said for each in places}
    rows = [
        [row, *(said.get((row, x), "–") for x in points)]
        for row in dict.fromkeys(each.row for each in places)
    ]
    return [[found.axis, *(f"{study.axis} {number(x)}" for x in points)], *rows]


def maps_of(study: Study, summary: pl.DataFrame) -> tuple[Figure, ...]:
    """A heat map for each map of the study that has been run."""
    return tuple(
        _figure(each, study, summary, position)
        for position, each in enumerate(study.maps)
        if cells(each, summary)
    )


def _figure(found: BestMap, study: Study, summary: pl.DataFrame, position: int) -> Figure:
    places = cells(found, summary)
    styles = named_styles(study.systems)
    numbers: dict[str | None, int] = {style.policy: at + 1 for at, style in enumerate(styles)}
    numbers[None] = 0
    colours = ["@neutral", *(style.colour for style in styles)]
    steps = len(colours)
    rows = list(dict.fromkeys(each.row for each in places))
    points = sorted({each.x for each in places})
    by_place = {(each.row, each.x): each for each in places}
    grid = [[by_place.get((row, x)) for x in points] for row in rows]
    return Figure(
        name=f"map-{position + 1}",
        title=found.title,
        findings=[
            f"{found.axis} {row}: "
            + ", ".join(f"{each.said} at {number(each.x)}" for each in places if each.row == row)
            + "."
            for row in rows
        ],
        traces=[
            {
                "type": "heatmap",
                "x": [number(x) for x in points],
                "y": rows,
                "z": [
                    [None if cell is None else numbers[cell.best] for cell in row] for row in grid
                ],
                "zmin": -0.5,
                "zmax": steps - 0.5,
                "colorscale": [
                    [edge / steps, colour]
                    for at, colour in enumerate(colours)
                    for edge in (at, at + 1)
                ],
                "showscale": False,
                "xgap": 2,
                "ygap": 2,
                "text": [["" if cell is None else cell.said for cell in row] for row in grid],
                "texttemplate": "%{text}",
                "hovertemplate": "%{y}, %{x}: %{text}<extra></extra>",
            }
        ],
        layout=layout(
            130 + 46 * len(rows),
            xaxis=axis(study.axis, type="category", tickangle=0, showgrid=False),
            yaxis=axis(found.axis, type="category", showgrid=False),
        ),
        table=pl.DataFrame(
            [asdict(each) for each in places],
            schema={"row": pl.String, "x": pl.Float64, "best": pl.String, "lead": pl.Float64},
        ),
        note="Who has the least mean, and by how much of the next one's; even: by less than 1 %.",
    )


_SOLVER_PACKAGE: Final = "highspy"
_HOW: Final = "Means over seeds with 95 % intervals (Student's t; differences are paired by seed)."


@dataclass(frozen=True)
class StudyReport:
    """All that the report of a study shows."""

    name: str
    settings: str
    """The study as it was called: its name, and its parameters in short form."""
    study: Study
    runs: pl.DataFrame
    summary: pl.DataFrame
    judgements: tuple[Judgement, ...]
    figures: tuple[Figure, ...]

    finished: int
    """How many of its cases have a result."""
    command: str
    """The command that made it."""
    apart: tuple[str, ...] = ()
    """The parameters in which it differs from the full size."""

    @property
    def made(self) -> str:
        """Return how and by what it was made, as sentences."""
        seeds = sorted(set(self.runs["seed"].to_list()))
        packages = f"Foresail {__version__}, Python {platform.python_version()}, HiGHS "
        partly = (
            ""
            if self.finished == len(self.study.cases)
            else f" of {len(self.study.cases):,} planned"
        )
        size = f" Not the full size: {', '.join(self.apart)} differ." if self.apart else ""
        return (
            f"{count(self.finished, 'run')}{partly}; seeds {', '.join(map(str, seeds))}; "
            f"{packages}{version(_SOLVER_PACKAGE)}; {self.settings}.{size}"
        )


def report_of(
    name: str,
    settings: str,
    study: Study,
    results: StudyResults,
    command: str,
    apart: tuple[str, ...] = (),
) -> StudyReport:
    """Build the report of a study's finished runs; the arguments are the report's.

    Raises ``InputError`` if nothing is finished.
    """
    runs = results.table(study)
    numbers = summary(study, runs)
    return StudyReport(
        name,
        settings,
        study,
        runs,
        numbers,
        tuple(judge(study, runs, claim) for claim in study.claims),
        (*maps_of(study, numbers), *figures_of(study, numbers)),
        runs.height,
        command,
        apart,
    )


def as_json(report: StudyReport) -> str:
    """The summary and the verdicts as a JSON object; unknown is null."""
    content = {
        "study": report.name,
        "settings": report.settings,
        "command": report.command,
        "made": report.made,
        "claims": [
            {"published": each.claim.published, "ours": each.ours, "verdict": each.verdict}
            for each in report.judgements
        ],
        "summary": report.summary.to_dicts(),
    }
    return json_answer(content)


def as_markdown(report: StudyReport) -> str:
    """The study as a page: claims with verdicts, a table per group, and how it was made."""
    study = report.study
    lines = [f"# {study.title}", "", f"{study.source}.", "", "```console", f"$ {report.command}"]
    lines += ["```", "", report.made, ""]
    lines += ["| published | ours | verdict |", "|---|---|---|"]
    lines += [
        f"| {_cell(each.claim.published)} | {_cell(each.ours)} | {each.verdict} |"
        for each in report.judgements
    ]
    lines += ["", _HOW, ""]
    for each in study.maps:
        headings, *rows = map_table(each, study, report.summary)
        lines += [f"## {each.title}", "", *_table_lines(headings, rows), ""]
    for group in study.groups:
        headings, rows = group_table(report, group)
        lines += [f"## {group[0].upper() + group[1:]}", ""] if len(study.groups) > 1 else []
        lines += [*_table_lines(headings, rows), ""]
    lines += [f"- {note}" for note in study.notes]
    return "\n".join(lines).rstrip() + "\n"


def _table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    head = [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings)]
    return [*head, *(f"| {' | '.join(map(_cell, row))} |" for row in rows)]


def group_table(report: StudyReport, group: str) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the table of a group: a row per point and system, as texts.

    Measures that no run of the group has are left out.
    """
    study = report.study
    rows = report.summary.filter(pl.col("group") == group)
    known = set(rows["measure"].to_list())
    measures = [each for each in study.measures if each.name in known]
    along = any(case.group == group and case.x is not None for case in study.cases)
    headings = [*([study.axis] if along else []), "system", *(each.label for each in measures)]
    found = {(row["x"], row["system"], row["measure"]): row for row in rows.iter_rows(named=True)}
    table = []
    for x, system in dict.fromkeys(rows.select("x", "system").iter_rows()):
        cells = []
        for measure in measures:
            row = found.get((x, system, measure.name))
            cells.append("–" if row is None else _with_interval(measure.said, row))
        table.append([*([number(x)] if along else []), system, *cells])
    return headings, table


def _with_interval(said: object, row: dict[str, float | None]) -> str:
    assert callable(said)
    text = str(said(row["mean"]))
    if row["high"] is None or row["mean"] is None or row["high"] == row["mean"]:
        return text
    return f"{text} ± {said(row['high'] - row['mean'])}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
