"""Use of a node that tasks share, over time: as a picture, and in words."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
import typer

from foresail.cli.formats import made_by
from foresail.cli.progress import doing
from foresail.model.cluster import Node
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.words import count, duration, number, percent
from foresail.record.log_text import read_log
from foresail.record.records import Manifest
from foresail.reports.document import as_html, document, key_of, section
from foresail.reports.figure import Figure, MissingFigure, write_images, write_page
from foresail.reports.plots import PlotKind, PlottedTable, drawn, log_styles, plot_of
from foresail.reports.style import PolicyStyle
from foresail_studies.use_record import EVICTION_SHARE, GONE, read_use

_MOST_STEPS: Final = 2_000
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
    limit = node.total.memory_bytes * EVICTION_SHARE / _GIB
    shown = _binned(steps).with_columns(held=pl.col("memory_bytes") / _GIB)
    marks = steps.filter(pl.col("evicted") > 0).with_columns(limit=pl.lit(limit))
    names = ["cpus given", "memory held", "cpus needed", "tasks evicted"]
    given, held, needed, evicted = log_styles(names)

    def part(
        style: PolicyStyle, kind: PlotKind, y: str, label: str, level: float | None
    ) -> PlottedTable:
        table = marks if kind == "points" else shown
        across = "since the start of the run"
        plot = plot_of(kind, "seconds", y, across, label, x_kind="duration", level=level)
        return PlottedTable(style, plot, table)

    panels = [
        [
            part(needed, "steps", "cpus_needed", "cpus", node.total.cpus),
            part(given, "steps", "cpus_given", "cpus", None),
        ],
        [
            part(held, "steps", "held", "GiB of memory", limit),
            part(evicted, "points", "limit", "GiB of memory", None),
        ],
    ]
    left_out = (
        f" {steps.height:,} instants are drawn as {shown.height:,}, in each the one when most "
        "was needed."
        if shown.height < steps.height
        else ""
    )
    return drawn(
        "node-use",
        title,
        _findings(steps, node),
        panels,
        table=steps,
        note="Grey: the cpus that there are, and the memory from which on tasks are evicted. Where "
        f"more cpus are needed than given, tasks are throttled.{left_out}",
        height=440,
    )


def write_node(figure: Figure, node: str, folder: Path, run: str, command: str) -> None:
    """Write ``node.html`` and the CSV file behind it into a folder, made unless it is there.

    Raises ``InputError`` if the folder cannot be written to.
    """
    title = f"{run}: {node} over time"
    body = (
        f"<header><h1>{as_html(title)}</h1></header>"
        f"<main id='numbers'>{section(figure, key_of(figure), command)}</main>"
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
    return [f"{cpus}; {throttled}.", f"At most {percent(share)} of the memory was held; {evicted}."]


def show_node(run: Path, name: str, output: Path | None, png: bool) -> None:
    """Print what tasks used on a node over time; with ``output`` it is a page there, too.

    Raises ``InputError`` if there is no such node, or no task has run there.
    """
    if png and output is None:
        raise InputError("only with --output", field="--png")
    log = run / "events.jsonl" if run.is_dir() else run
    use = read_use(log)
    with doing(f"reading {log.name}"):
        cluster = next(each.cluster for each in read_log(log) if isinstance(each, Manifest))
    nodes = {node.name: node for each in cluster.partitions for node in each.nodes}
    if name not in nodes:
        raise UnknownNameError("node", name, nodes)
    figure = node_figure(use, nodes[name])
    if isinstance(figure, MissingFigure):
        raise InputError(f"{figure.problem} {figure.remedy}", source=log, value=name)
    for sentence in figure.findings:
        typer.echo(textwrap.fill(sentence, 100))
    if output is not None:
        with doing("writing the page"):
            write_node(figure, name, output, run.name, made_by())
            if png:
                write_images([figure], output)
        typer.echo(f"node: {output / 'node.html'}", err=True)
