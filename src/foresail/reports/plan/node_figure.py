"""Pictures of a run: the use of a shared node over time, and who waits for which reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.explain.reason_words import REASONS
from foresail.explain.run_snapshot import ReasonShare
from foresail.model.cluster import Node
from foresail.model.words import count, duration, number, percent
from foresail.reports.document import as_html, document, section
from foresail.reports.figure import Figure, MissingFigure, packed, write_page
from foresail.reports.style import DOTTED, axis, caption, layout, level_at, rows_axis, time_unit
from foresail.simulator.real_use import EVICTION_SHARE
from foresail.traces.schedule import GONE

_TITLE = "Why did jobs wait?"


def waiting_by_reason(shares: tuple[ReasonShare, ...]) -> Figure | MissingFigure:
    """A bar per reason: its share of all waiting time, and how many jobs it kept waiting."""
    total = sum(each.seconds for each in shares)
    if total <= 0.0:
        return MissingFigure(_TITLE, "No job has waited.", "All started when they were submitted.")
    names = [_name(each) for each in shares]
    portions = [each.seconds / total for each in shares]
    words = [
        f"{percent(portion)}, {count(each.jobs, 'job')}"
        for each, portion in zip(shares, portions, strict=True)
    ]
    bars: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "name": "share",
        "x": [100 * portion for portion in portions],
        "y": list(range(len(shares))),
        "width": 0.62,
        "text": words,
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": "@policy1", "line": {"width": 0}},
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }
    drawing = layout(
        90 + 34 * len(shares),
        xaxis=axis("share of all waiting time (%)", range=[0, 130 * max(portions)], nticks=6),
        yaxis=rows_axis(names),
    )
    return Figure(
        name="waiting-by-reason",
        title=_TITLE,
        findings=[_finding(shares, total)],
        traces=[bars],
        layout=drawing,
        table=pl.DataFrame(
            {
                "reason": [_code(each) for each in shares],
                "waiting_seconds": [each.seconds for each in shares],
                "share": portions,
                "jobs": [each.jobs for each in shares],
            }
        ),
        note="From the event log: every second that a job waited counts for the reason that was "
        "the last to be given for it. A job may have waited for several reasons, one after the "
        "other.",
    )


def _code(share: ReasonShare) -> str:
    return "none" if share.code is None else share.code.value


def _name(share: ReasonShare) -> str:
    return "the next pass is still to come" if share.code is None else REASONS[share.code]


def _finding(shares: tuple[ReasonShare, ...], total: float) -> str:
    first = shares[0]
    share = percent(first.seconds / total)
    name = _name(first)
    return f"Jobs waited for {duration(total)} in all, {share} of it with the reason “{name}”."


_MOST_STEPS: Final = 2_000
_PANEL_HEIGHT: Final = 190
_USED: Final = {"cpus_needed": 1e-9, "cpus_given": 1e-9, "memory_bytes": 1e-3}
"""What is added up, and what sums are no more than rounding."""

_GIB: Final = 2.0**30


def node_use(use: pl.DataFrame, node: str) -> pl.DataFrame:
    """Return what all tasks of a node need, have and hold from each change on.

    From the ``USE`` of a run: ``seconds``, ``cpus_needed``, ``cpus_given``, ``memory_bytes``, and
    how many tasks were ``evicted`` then.
    """
    here = use.filter(pl.col("node") == node)
    gone = pl.col("what").is_in(GONE)
    now = [pl.when(gone).then(0.0).otherwise(pl.col(name)).alias(name) for name in _USED]
    more = [pl.col(name) - pl.col(name).shift(fill_value=0.0).over("run") for name in _USED]
    evicted = (pl.col("what") == "evicted").sum().alias("evicted")
    steps = here.with_columns(now).with_columns(more)
    sums = steps.group_by("seconds", maintain_order=True).agg(pl.col(list(_USED)).sum(), evicted)
    totals = sums.with_columns(pl.col(list(_USED)).cum_sum())
    return totals.with_columns(
        pl.when(pl.col(name) < least).then(0.0).otherwise(pl.col(name)).alias(name)
        for name, least in _USED.items()
    )


def node_figure(use: pl.DataFrame, node: Node) -> Figure | MissingFigure:
    """Cpus needed and given, and memory held, with what was throttled and evicted marked."""
    title = f"What was {node.name} used for?"
    steps = node_use(use, node.name)
    if steps.height < 2:
        return MissingFigure(title, "No task has run there.", "Name another node.")
    seconds = steps["seconds"].to_numpy()
    unit, unit_seconds = time_unit(float(seconds[-1]))
    shown = _binned(steps)
    x = packed(shown["seconds"].to_numpy() / unit_seconds)
    needed, given = shown["cpus_needed"].to_numpy(), shown["cpus_given"].to_numpy()
    held = shown["memory_bytes"].to_numpy() / _GIB
    evicted = steps.filter(pl.col("evicted") > 0)
    limit = node.total.memory_bytes * EVICTION_SHARE / _GIB
    traces = [
        _area("given", x, given, "@policy1", "y", unit, "cpus"),
        {
            **_area("throttled", x, needed, "@loss", "y", unit, "cpus needed", 0.0),
            "fill": "tonexty",
        },
        _area("memory", x, held, "@policy2", "y2", unit, "GiB"),
        {
            "type": "scatter",
            "mode": "markers",
            "name": "evicted",
            "x": packed(evicted["seconds"].to_numpy() / unit_seconds),
            "y": packed(np.full(evicted.height, limit)),
            "text": [count(tasks, "task") for tasks in evicted["evicted"]],
            "marker": {"symbol": "x", "size": 9, "color": "@loss"},
            "hovertemplate": f"%{{x:.4~g}} {unit}: %{{text}} evicted<extra></extra>",
            "showlegend": False,
            "yaxis": "y2",
        },
    ]
    inner = 2 * _PANEL_HEIGHT + 60
    half = _PANEL_HEIGHT / inner
    tops = {"y": node.total.cpus, "y2": limit}
    drawing = layout(
        inner + 60,
        xaxis=axis(f"{unit} from the start of the run", anchor="y2", tickformat=",~r"),
        yaxis=axis("", domain=[1 - half - 30 / inner, 1 - 30 / inner], rangemode="tozero"),
        yaxis2=axis("", domain=[0, half], rangemode="tozero"),
        annotations=[
            caption("cpus: given, and on top of it what was needed more", 1 - 30 / inner, "@ink"),
            caption("GiB of memory held; × tasks evicted", half, "@ink"),
        ],
        shapes=[level_at(top, line=DOTTED, yref=name) for name, top in tops.items()],
    )
    left_out = (
        f" {steps.height:,} instants are drawn as {shown.height:,}, in each the one when most "
        "was needed."
        if shown.height < steps.height
        else ""
    )
    return Figure(
        name="node-use",
        title=title,
        findings=_findings(steps, node),
        traces=traces,
        layout=drawing,
        table=steps,
        note="Dotted: the cpus that there are, and the memory from which on tasks are evicted."
        + left_out,
    )


def write_node(figure: Figure, node: str, folder: Path, run: str, command: str) -> None:
    """Write ``node.html`` and the CSV file behind it into a folder, made unless it is there.

    Raises ``InputError`` if the folder cannot be written to.
    """
    title = f"{run}: {node} over time"
    body = (
        f"<header><h1>{as_html(title)}</h1></header>"
        f"<main id='numbers'>{section(figure, '', command)}</main>"
        "<p id='keys' hidden>Keys: plus and minus zoom, arrows move, 0 shows all, s saves.</p>"
    )
    page = document(title, body, [figure])
    write_page(folder / "node.html", page, {figure.name: figure.table})


def _binned(steps: pl.DataFrame) -> pl.DataFrame:
    """At most so many instants: of neighbours the one when most cpus were needed."""
    if steps.height <= _MOST_STEPS:
        return steps
    width = -(-steps.height // _MOST_STEPS)
    bins = steps.with_row_index("at").with_columns(pl.col("at") // width)
    most = pl.all().sort_by("cpus_needed").last()
    return bins.group_by("at", maintain_order=True).agg(most).drop("at").sort("seconds")


def _area(
    name: str,
    x: object,
    y: np.ndarray[Any, Any],
    colour: str,
    up: str,
    unit: str,
    what: str,
    width: float = 1.2,
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": x,
        "y": packed(y),
        "line": {"color": colour, "width": width, "shape": "hv"},
        "fill": "tozeroy",
        "hovertemplate": f"%{{x:.4~g}} {unit}: %{{y:.3~g}} {what}<extra></extra>",
        "showlegend": False,
        "yaxis": up,
    }


def _findings(steps: pl.DataFrame, node: Node) -> list[str]:
    lasted = np.diff(steps["seconds"].to_numpy())
    needed, given = (steps[name].to_numpy()[:-1] for name in ("cpus_needed", "cpus_given"))
    held = steps["memory_bytes"].to_numpy()
    short = needed > given * (1 + 1e-9)
    short_seconds = float(lasted[short].sum())
    evictions, when = int(steps["evicted"].sum()), float(lasted.sum())
    used = float(lasted @ given) / (when * node.total.cpus)
    cpus = f"{percent(used)} of {number(node.total.cpus)} cpus were used over {duration(when)}"
    throttled = "no task was throttled"
    if short_seconds:
        worst = float((1.0 - given[short] / needed[short]).max())
        throttled = (
            f"tasks were throttled for {duration(short_seconds)}, by up to {percent(worst)} of "
            "what they needed"
        )
    share = float(held.max()) / node.total.memory_bytes if node.total.memory_bytes else 0.0
    evicted = (
        f"{count(evictions, 'eviction')} for lack of it" if evictions else "nothing was evicted"
    )
    return [
        f"{cpus}; {throttled}.",
        f"At most {percent(share)} of the memory was held; {evicted}.",
    ]
