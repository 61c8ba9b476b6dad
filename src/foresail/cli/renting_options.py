"""Options that commands of ``foresail cloud`` share (a file of them, prices), and their answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from foresail.cli.formats import Format, FormatOption, made_by, print_json
from foresail.cli.progress import doing
from foresail.model.documents import toml_of
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from foresail.cloud.prices import PriceCatalogue
    from foresail.cloud.waiting.jobs import TraceJobs
    from foresail.reports.renting.page import CloudPage, NumbersTable
    from foresail.traces.workload import Workload


def _from_file(context: typer.Context, path: Path | None) -> Path | None:
    """Take the options that a file gives for those that were not given."""
    if path is not None and not context.resilient_parsing:
        name = str(context.info_name)
        context.default_map = _defaults(context, path, _table(path, name))
    return path


@dataclass(frozen=True)
class AnswerOptions:
    """Options of an answer: a file of further options, its format, a folder for its report.

    Options:
        output DIR: Write a report and its numbers.
    """

    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE.toml",
            help="Options in a table with the command's name; what is given here goes first.",
            callback=_from_file,
            is_eager=True,
        ),
    ] = None
    output_format: FormatOption = Format.TABLE
    output: Path | None = None

    def answer(
        self,
        record: Mapping[str, Any],
        sentences: Iterable[str],
        tables: Iterable[NumbersTable],
        page: Callable[[], CloudPage],
        remarks: Iterable[str] = (),
        **records: Mapping[str, Any],
    ) -> None:
        """Print an answer, and write its page (and records) where one is asked for.

        A program gets the record; people get sentences, then tables, then remarks.
        """
        if self.output is not None:
            self.write(page(), **records)
        if self.output_format is Format.JSON:
            print_json(record)
            return
        for sentence in sentences:
            echo(sentence)
        for table in tables:
            typer.echo(f"\n{table.title}")
            _print_numbers(table)
        for place, remark in enumerate(remarks):
            echo(remark if place else f"\n{remark}")

    def write(self, page: CloudPage, **records: Mapping[str, Any]) -> None:
        """Write the page, its numbers and records for programs into the folder asked for.

        Records are named as their files are, but for ``.json``.
        """
        from foresail.model.documents import json_answer
        from foresail.model.whole_files import all_or_none, write_whole
        from foresail.reports.renting.page import write_cloud_page

        assert self.output is not None
        with doing("writing the report"), all_or_none(self.output) as drafts:
            for name, record in records.items():
                write_whole(drafts / f"{name}.json", json_answer(record).encode())
            path = write_cloud_page(page, drafts, command=made_by())
        typer.echo(f"report: {self.output / path.name}", err=True)


@dataclass(frozen=True)
class PicturedAnswerOptions(AnswerOptions):
    """The same, and whether there are to be pictures.

    Options:
        png: With --output: a PNG per figure.
    """

    png: bool = False

    def write(self, page: CloudPage, **records: Mapping[str, Any]) -> None:
        """Write the page, its numbers, and perhaps its pictures."""
        AnswerOptions.write(self, page, **records)
        if self.png and self.output is not None:
            from foresail.reports.figure import Figure, write_images

            with doing("drawing the pictures"):
                figures = [part for part in page.parts if isinstance(part, Figure)]
                write_images(figures, self.output)


def _table(path: Path, name: str) -> Mapping[str, Any]:
    table = toml_of(path).get(name)
    if not isinstance(table, dict):
        raise InputError("has no such table", source=path, field=name, expected=f"[{name}]")
    return table


def _defaults(context: typer.Context, path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    """The file's values by parameter, each checked as if it had been written as an option."""
    options = {
        option.lstrip("-"): parameter
        for parameter in context.command.params
        for option in parameter.opts
        if option.startswith("--") and option not in ("--config", "--help")
    }
    defaults = {}
    for key, value in table.items():
        written = key.replace("_", "-")
        if written not in options:
            near = get_close_matches(written, options) or sorted(options)
            raise InputError("no such option", source=path, field=key, expected=" or ".join(near))
        parameter = options[written]
        alone = getattr(parameter, "multiple", False) and not isinstance(value, list)
        given = [value] if alone else value
        try:
            parameter.process_value(context, given)
        except Exception as error:
            problem = getattr(error, "message", "cannot be")
            raise InputError(problem, source=path, field=key, value=value) from error
        defaults[str(parameter.name)] = given
    return defaults


@dataclass(frozen=True)
class PriceOptions:
    """Prices, and the machines on sale.

    Options:
        prices PRICES: A built-in catalogue (thesis, ec2-2017) or a file; SOURCE:FILE names its
            source.
        region: With prices of several regions: which one.
        types PATTERNS: Machines of such names only: 'm4*,p3.*'.
    """

    prices: str = "thesis"
    region: str | None = None
    types: str = "*"


Filters: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NAME(PARAMETER=VALUE,...)",
        help="Cleaning filters, in order [core_for_gpus, drop_no_processors, fill_processors, "
        "drop_no_runtime].",
    ),
]


class WaitingOrder(StrEnum):
    """Order of the waiting jobs."""

    FCFS = "fcfs"
    STRICT_FCFS = "strict-fcfs"
    SJF = "sjf"
    RANDOM = "random"


Workers: TypeAlias = Annotated[int, typer.Option(min=1, help="Simulations at once.")]
WORKERS: Final = min(4, os.cpu_count() or 1)
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
    from foresail.model.words import duration_of

    return tuple(duration_of(each.strip(), field) for text in texts for each in text.split(","))


def _print_numbers(table: NumbersTable) -> None:
    """Print a table of a page; columns of numbers, behind one or more of texts, to the right."""
    from foresail.cli.formats import print_table

    columns = zip(*table.rows, strict=True)
    texts = takewhile(lambda column: not any(each[:1].isdigit() for each in column), columns)
    left = max(sum(1 for _ in texts), 1)
    print_table(table.headings, table.rows, right=len(table.headings) - left)


def echo(sentence: str) -> None:
    """A sentence on lines of a hundred characters; a number stays with its sign of per cent."""
    import textwrap

    kept = sentence.replace(" %", "\u00a0%")
    lines = textwrap.fill(kept, 100, break_on_hyphens=False)
    typer.echo(lines.replace("\u00a0%", " %"))
