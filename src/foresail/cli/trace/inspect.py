"""``foresail trace inspect``: the facts of a log at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from foresail.cli.formats import Format, FormatOption, print_json
from foresail.cli.log_options import LogOptions, LogPath, read_log
from foresail.cli.progress import doing

if TYPE_CHECKING:
    from foresail.traces.facts import Facts

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
    """Jobs, span, load, runtimes, widths, waits; what is missing."""
    from foresail.traces.facts import facts

    workload = read_log(path, log_options)
    with doing(f"inspecting {path.name}"):
        found = facts(workload)
    if output_format == Format.JSON:
        _print_json(found)
    else:
        _print_tables(found, workload.meta.unit)


def _print_json(found: Facts) -> None:
    from dataclasses import asdict

    from foresail.traces.facts import QUANTILES

    levels = [f"p{level * 100:g}" if level < 1 else "max" for level in QUANTILES]
    content = asdict(found)
    content["quantiles"] = {
        name: dict(zip(levels, values, strict=True)) for name, values in found.quantiles.items()
    }
    print_json(content | {"missing": found.missing})


def _print_tables(found: Facts, unit: str) -> None:
    from foresail.cli.formats import print_table
    from foresail.model.words import count, duration, number, percent

    def unknown_or(text: str | None) -> str:
        return "unknown" if text is None else text

    load = None if found.offered_load is None else percent(found.offered_load)
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
