"""Options about logs and prices that ``waiting``, ``buy`` and ``advise`` share; how they answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foresail.cli.formats import Format, print_json
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from foresail.cloud.prices import PriceCatalogue
    from foresail.cloud.waiting.jobs import TraceJobs
    from foresail.reports.renting.page import NumbersTable
    from foresail.traces.workload import Workload


@dataclass(frozen=True)
class PriceOptions:
    """Prices, and the machines on sale."""

    prices: Annotated[
        str,
        typer.Option(
            "--prices",
            metavar="PRICES",
            help="A built-in catalogue (thesis, ec2-2017) or a file; SOURCE:FILE names its source.",
        ),
    ] = "thesis"
    region: Annotated[
        str | None, typer.Option("--region", help="With prices of several regions: which one.")
    ] = None
    types: Annotated[
        str,
        typer.Option(
            "--types", metavar="PATTERNS", help="Machines of such names only: 'm4*,p3.*'."
        ),
    ] = "*"


Filters: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NAME(PARAMETER=VALUE,...)",
        help="Cleaning filters, in order [core_for_gpus, drop_no_processors, fill_processors, "
        "drop_no_runtime].",
    ),
]
STANDARD_FILTERS = ("core_for_gpus", "drop_no_processors", "fill_processors", "drop_no_runtime")
_FEW = 6


def prices_of(options: PriceOptions) -> PriceCatalogue:
    """The catalogue of one region."""
    from foresail.cloud.prices_reading import load_prices
    from foresail.model.registry import entries

    text = options.prices
    source, colon, rest = text.partition(":")
    named = colon and source in {entry.name for entry in entries("price_source")}
    catalogue = load_prices(rest, source) if named else load_prices(text)
    chosen = catalogue.only(options.types, options.region)
    regions = sorted({offer.instance.region for offer in chosen.offers})
    if len(regions) > 1:
        few = ", ".join(regions[:_FEW])
        raise InputError(
            "prices of several regions",
            source=text,
            field="--region",
            value=f"{len(regions)} regions",
            expected=f"one of them: {few}{', ...' if len(regions) > _FEW else ''}",
        )
    left_out = {c.instance for c in catalogue.commitments} - {
        c.instance for c in chosen.commitments
    }
    if left_out:
        names = ", ".join(sorted(left_out))
        typer.echo(f"not counted: commitments to {names}, which --types leaves out", err=True)
    return chosen


def require_jobs(workload: Workload) -> None:
    """Refuse a log of which cleaning has left nothing."""
    if not len(workload):
        raise workload.meta.nothing_left(
            "no jobs with cores and a runtime are left", "a log that has both, or fewer filters"
        )


def trace_jobs(workload: Workload, log: Path) -> TraceJobs:
    """The jobs of a log that was cleaned, as waiting policies see them.

    Raises ``InputError`` if none is left, or one has no cores.
    """
    from foresail.cloud.waiting.jobs import TraceJobs

    require_jobs(workload)
    if not (workload.cpus > 0.0).all():
        raise InputError(
            "jobs without cores",
            source=log,
            field="cpus_per_task",
            value=int((~(workload.cpus > 0.0)).sum()),
            expected="cores of every job; the filter drop_no_processors drops the others",
        )
    return TraceJobs.of_workload(workload)


def numbers_of(texts: Sequence[str], field: str) -> tuple[float, ...]:
    """Numbers, each alone or several with commas."""
    try:
        return tuple(float(part) for text in texts for part in text.split(","))
    except ValueError:
        raise InputError(
            "no numbers", field=field, value=",".join(texts), expected="such as 0.1,0.2"
        ) from None


def times_of(texts: Sequence[str], field: str) -> tuple[float, ...]:
    """Durations in seconds, each alone or several with commas; 0 is one too."""
    from foresail.traces.durations import duration_of

    return tuple(duration_of(each.strip(), field) for text in texts for each in text.split(","))


def show(
    output_format: Format,
    record: Mapping[str, Any],
    sentences: Iterable[str],
    tables: Iterable[NumbersTable],
) -> None:
    """Print an answer: its record for a program; for people sentences, then tables."""
    if output_format is Format.JSON:
        print_json(record)
        return
    for sentence in sentences:
        echo(sentence)
    for table in tables:
        typer.echo()
        print_numbers(table)


def print_numbers(table: NumbersTable, left: int = 1) -> None:
    """A table of a page; all but the first columns are numbers."""
    from foresail.cli.formats import print_table

    print_table(table.headings, table.rows, right=len(table.headings) - left)


def echo(sentence: str) -> None:
    """A sentence on lines of a hundred characters; a number stays with its sign of per cent."""
    import textwrap

    kept = sentence.replace(" %", "\u00a0%")
    lines = textwrap.fill(kept, 100, break_on_hyphens=False)
    typer.echo(lines.replace("\u00a0%", " %"))
