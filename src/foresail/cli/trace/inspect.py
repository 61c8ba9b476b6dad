"""``foresail trace inspect``: the facts of a log at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from foresail.cli.formats import Format, FormatOption, print_json
from foresail.cli.log_options import LogOptions, LogPath, read_log
from foresail.cli.progress import doing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foresail.traces.facts import Facts
    from foresail.traces.workload import Oddity

_COLUMNS = {
    "runtime_seconds": "runtime",
    "requested_seconds": "requested time",
    "recorded_wait_seconds": "recorded wait",
    "cpus": "cpus",
}


def command(
    path: LogPath,
    log_options: LogOptions = LogOptions(),
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Jobs, span, load, runtimes, widths, waits; what is missing, and what is odd or cannot be."""
    from foresail.traces.facts import facts
    from foresail.traces.plausibility import plausibility
    from foresail.traces.validation import as_replayed

    workload = read_log(path, log_options)
    with doing(f"inspecting {path.name}"):
        found, odd = facts(workload), plausibility(workload, as_replayed(workload))
    if output_format == Format.JSON:
        _print_json(found, odd)
    else:
        _print_tables(found, workload.meta.unit)
        for each in odd:
            typer.echo(f"{each.severity}: {each.words}")


def _print_json(found: Facts, odd: Sequence[Oddity]) -> None:
    from dataclasses import asdict

    from foresail.traces.facts import QUANTILES

    levels = [f"p{level * 100:g}" if level < 1 else "max" for level in QUANTILES]
    content = asdict(found)
    content["quantiles"] = {
        name: dict(zip(levels, values, strict=True)) for name, values in found.quantiles.items()
    }
    findings = [asdict(each) for each in odd]
    print_json(content | {"missing": found.missing, "findings": findings})


def _print_tables(found: Facts, unit: str) -> None:
    from foresail.cli.formats import print_table
    from foresail.model.words import count, duration, number, percent
    from foresail.traces.plausibility import LEAST_LOADED_SECONDS

    def unknown_or(text: str | None) -> str:
        return "unknown" if text is None else text

    load = None if found.offered_load is None else percent(found.offered_load)
    if load is not None and found.span_seconds < LEAST_LOADED_SECONDS:
        load += f" (of a burst of {duration(found.span_seconds)}, which says little)"
    processors = None if found.processors is None else number(found.processors)
    far = count(found.outside_window, "job")
    outside = f" (without {far} submitted long before or after)" if found.outside_window else ""
    rows = [
        ("source", f"{found.source} (reader {found.reader})"),
        ("jobs", number(found.jobs)),
        ("span", duration(found.span_seconds) + outside),
        ("begins", unknown_or(_date(found.origin_unix_seconds))),
        ("users", number(found.users) if found.users else "unknown"),
        ("queues", number(found.queues) if found.queues else "unknown"),
        (f"{unit}s", unknown_or(processors)),
        ("offered load", unknown_or(load)),
    ]
    print_table(("", ""), rows)
    typer.echo()
    summary = []
    for name, said in _COLUMNS.items():
        if name in found.quantiles:
            say = number if name == "cpus" else duration
            values = (found.mean[name], *found.quantiles[name])
            said = f"{unit}s" if name == "cpus" and unit != "processor" else said
            summary.append((said, *(say(value) for value in values)))
    headings = ("", "mean", "10 %", "median", "90 %", "99 %", "max")
    print_table(headings, summary, right=6)
    typer.echo()
    partly = [f"{n} ({percent(1 - s)})" for n, s in found.known.items() if 0 < s < 1]
    for said, names in (
        ("never known", found.missing),
        ("sometimes unknown", partly),
        ("repairs", [f"{name} ({rows:,})" for name, rows in sorted(found.repairs.items())]),
        ("filters", [f"{name} ({rows:,})" for name, rows in found.filters]),
    ):
        typer.echo(f"{said}: {', '.join(names) or 'none'}")


def _date(unix_seconds: float | None) -> str | None:
    from datetime import UTC, datetime

    if unix_seconds is None:
        return None
    try:
        return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return None
