"""Report of a study, as a page, Markdown and JSON: means over seeds, verdicts on claims."""

from __future__ import annotations

import math
import platform
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail import __version__
from foresail.model.distribution import Floats
from foresail.model.documents import json_answer
from foresail.model.whole_files import all_or_none, write_whole
from foresail.model.words import count, number, percent
from foresail.reports import document as html
from foresail.reports.figure import Figure, write_page
from foresail.reports.plots import PlottedTable, drawn, plot_of
from foresail.reports.style import PolicyStyle, named_styles
from foresail_studies.results import StudyResults
from foresail_studies.study import BestMap, Bound, Mean, Measure, PublishedClaim, Study

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


EVEN_SHARE: Final = 0.01
"""By less than this the best leads over no one."""


def map_table(found: BestMap, study: Study, summary: pl.DataFrame) -> list[list[str]]:
    """Headings and rows of a map: who has the least mean, and by which share of the next one's."""
    of_measure = summary.filter(pl.col("measure") == found.measure).drop_nulls("x")
    points = sorted(set(of_measure["x"].to_list()))
    table = [[found.axis, *(f"{study.axis} {number(x)}" for x in points)]]
    for group, row in found.rows.items():
        cells = [row]
        for x in points:
            there = of_measure.filter(pl.col("group") == group, pl.col("x") == x).sort("mean")
            least, following = (*there["mean"].to_list(), 0.0, 0.0)[:2]
            lead = 1.0 - least / following if following else 0.0
            best = f"{there['system'][0]} ({percent(lead)})" if lead >= EVEN_SHARE else "even"
            cells.append(best if there.height else "–")
        table.append(cells)
    return table


def figures_of(study: Study, summary: pl.DataFrame) -> tuple[Figure, ...]:
    """A figure per group and drawn measure that has any value."""
    figures = []
    for group in study.groups:
        for name in study.drawn:
            rows = summary.filter(pl.col("group") == group, pl.col("measure") == name)
            if rows.height:
                figures.append(_figure(study, group, study.measure(name), rows))
    return tuple(figures)


def _figure(study: Study, group: str, measure: Measure, rows: pl.DataFrame) -> Figure:
    styles = [
        style
        for style in named_styles(study.systems)
        if style.policy in set(rows["system"].to_list())
    ]
    subject = f"{measure.label}, {group}" if len(study.groups) > 1 else measure.label
    along = rows["x"].null_count() == 0
    across = ("x", "mean", study.axis) if along else ("system", "mean", "system")
    plot = plot_of(
        "band" if along else "rows",
        *across,
        measure.label,
        x_kind="number" if along else "category",
        y_kind=measure.kind,
    )
    most = pl.max_horizontal("mean", pl.lit(1.0 if measure.kind == "share" else math.inf))
    reach = rows.with_columns(
        low=pl.coalesce("low", "mean").clip(pl.min_horizontal("mean", 0.0)),
        high=pl.coalesce("high", "mean").clip(upper_bound=most),
    )
    panel = [
        PlottedTable(style, plot, reach.filter(pl.col("system") == style.policy).sort("x"))
        for style in styles
    ]
    return drawn(
        _stem(f"{group}-{measure.name}" if len(study.groups) > 1 else measure.name),
        subject[0].upper() + subject[1:],
        [_finding(measure, rows, style) for style in styles],
        [panel],
        table=rows,
        note=f"Means over {_seeds(rows)} seeds; bands are 95 % intervals (Student's t)."
        if along
        else f"Means over {_seeds(rows)} seeds; ± is the 95 % interval (Student's t).",
        height=380 if along else 100 + 34 * len(styles),
    )


def _finding(measure: Measure, rows: pl.DataFrame, style: PolicyStyle) -> str:
    part = rows.filter(pl.col("system") == style.policy).sort("x")
    if part["x"].null_count():
        mean, high = part["mean"][0], part["high"][0]
        reach = "" if high is None else f" ± {measure.said(high - mean)}"
        return f"{style.label}: {measure.said(mean)}{reach}."
    said = ", ".join(
        f"{measure.said(mean)} at {number(x)}" for x, mean in part.select("x", "mean").iter_rows()
    )
    return f"{style.label}: {said}."


def _seeds(rows: pl.DataFrame) -> str:
    counts = sorted(set(rows["seeds"].to_list()))
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _stem(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


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
        figures_of(study, numbers),
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
        lines += [f"## {each.title}", "", *_table_lines(map_table(each, study, report.summary))]
    for group in study.groups:
        lines += [f"## {group[0].upper() + group[1:]}", ""] if len(study.groups) > 1 else []
        lines += _table_lines(group_table(report, group))
    lines += [f"- {note}" for note in study.notes]
    return "\n".join(lines).rstrip() + "\n"


def _table_lines(table: Sequence[Sequence[str]]) -> list[str]:
    headings, *rows = (f"| {' | '.join(map(_cell, row))} |" for row in table)
    return [headings, "|" + "---|" * len(table[0]), *rows, ""]


def group_table(report: StudyReport, group: str) -> list[list[str]]:
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
    table = [headings]
    for x, system in dict.fromkeys(rows.select("x", "system").iter_rows()):
        cells = []
        for measure in measures:
            row = found.get((x, system, measure.name))
            cells.append("–" if row is None else _with_interval(measure.said, row))
        table.append([*([number(x)] if along else []), system, *cells])
    return table


def _with_interval(said: object, row: dict[str, float | None]) -> str:
    assert callable(said)
    text = str(said(row["mean"]))
    if row["high"] is None or row["mean"] is None or row["high"] == row["mean"]:
        return text
    return f"{text} ± {said(row['high'] - row['mean'])}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_MARKS: Final[dict[Verdict, str]] = {
    "holds": "✓",
    "does not hold": "✗",
    "within the interval": "≈",
    "not run": "–",
}


def study_page(report: StudyReport) -> str:
    """The whole page as text."""
    study = report.study
    body = [
        f"<header><h1>{html.as_html(study.title)}</h1>",
        f"<p class='situation'>{html.as_html(study.source)}. {html.as_html(report.made)}</p>",
        f"<p class='lead'>{html.as_html(' '.join(sentences(report)))}</p></header>",
        "<main id='numbers'>",
        _claims(report),
        *(html.section(figure, html.key_of(figure), report.command) for figure in report.figures),
        *(_section(each.title, map_table(each, study, report.summary)) for each in study.maps),
        *(_table(report, group) for group in study.groups),
        "</main>",
        html.footer(map(html.as_html, study.notes), report.command),
    ]
    return html.document(study.title, "".join(body), report.figures)


def write_study_report(report: StudyReport, folder: Path) -> None:
    """Write ``report.html``, ``<name>.md``, ``summary.csv``, ``summary.json`` and ``runs.csv``.

    Raises ``InputError`` if the folder cannot be written to.
    """
    tables = {figure.name: figure.table for figure in report.figures}
    tables |= {"summary": report.summary, "runs": report.runs}
    with all_or_none(folder) as drafts:
        write_page(drafts / "report.html", study_page(report), tables)
        write_whole(drafts / "summary.json", as_json(report).encode())
        write_whole(drafts / f"{report.name}.md", as_markdown(report).encode())


def sentences(report: StudyReport) -> list[str]:
    """Describe the study's findings on the claims, published ones and our own."""
    found = Counter(each.verdict for each in report.judgements)
    total = len(report.judgements)
    words: dict[Verdict, str] = {
        "holds": "confirmed",
        "does not hold": "contradicted",
        "within the interval": "cannot be told with these seeds",
        "not run": "not run",
    }
    parts = [f"{found[verdict]} {word}" for verdict, word in words.items() if found[verdict]]
    said = [f"Of {count(total, 'claim')}: {', '.join(parts)}."]
    said += [
        f"Does not hold: {each.claim.published} Ours: {each.ours}."
        for each in report.judgements
        if each.verdict == "does not hold"
    ]
    return said


def _claims(report: StudyReport) -> str:
    rows = [
        html.row(
            [
                html.as_html(each.claim.published),
                html.as_html(each.ours),
                (f"<b aria-hidden='true'>{_MARKS[each.verdict]}</b>{each.verdict}", "verdict"),
            ],
            words=3,
        )
        for each in report.judgements
    ]
    said = html.note(
        "A claim holds, or does not, where the 95 % interval over seeds (paired: systems of one "
        "seed meet the same jobs) lies on one side of it. To spare: by how much it is kept."
    )
    claims = html.table("Claims", ["published", "ours", "verdict"], rows, words=3)
    return (
        f"<section id='claims'><h2>What was published, and what came out</h2>{claims}{said}"
        "</section>"
    )


def _table(report: StudyReport, group: str) -> str:
    title = f"The numbers: {group}" if len(report.study.groups) > 1 else "The numbers"
    return _section(title, group_table(report, group))


def _section(title: str, rows: Sequence[Sequence[str]]) -> str:
    headings, *values = rows
    words = headings.index("system") + 1 if "system" in headings else len(headings)
    shown = [html.row([html.as_html(text) for text in each], words) for each in values]
    numbers = html.table(title, [html.as_html(text) for text in headings], shown, words)
    return f"<section><h2>{html.as_html(title)}</h2>{numbers}{html.behind('summary')}</section>"
