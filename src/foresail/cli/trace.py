"""``foresail trace``: workloads inspected, validated, cleaned, made and fetched."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from foresail.cli.formats import Format, FormatOption, print_json, print_plugins, print_table
from foresail.cli.log_options import (
    CommandGroup,
    LogOptions,
    LogPath,
    Plugins,
    ReaderOptions,
    read_log,
)
from foresail.cli.progress import doing, in_bytes, reading
from foresail.model.errors import InputError
from foresail.model.words import count, duration, number, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foresail.traces.facts import Facts
    from foresail.traces.validation import ValidationReport
    from foresail.traces.workload import Oddity, Workload


app = CommandGroup("Inspect, validate, convert, filter, sample, generate and fetch workloads.")


def write(workload: Workload, path: Path) -> None:
    """Write an SWF file or a workload folder.

    Raises ``InputError`` if it cannot be written, or something else is there already.
    """
    from foresail.traces.folder import write_folder
    from foresail.traces.swf_writer import is_swf_name, write_swf

    with doing(f"writing {path}"):
        if is_swf_name(path):
            write_swf(workload, path)
        else:
            write_folder(workload, path)


_COLUMNS = {
    "runtime_seconds": "runtime",
    "requested_seconds": "requested time",
    "recorded_wait_seconds": "recorded wait",
    "cpus": "cpus",
}


@app.named("inspect")
def inspect(
    path: LogPath,
    log_options: LogOptions = LogOptions(),
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Show jobs, span, load, runtimes, widths, waits; what is missing, odd or cannot be."""
    from foresail.traces.facts import facts
    from foresail.traces.plausibility import plausibility
    from foresail.traces.validation import as_replayed

    workload = read_log(path, log_options)
    with doing(f"inspecting {path.name}"):
        found, odd = facts(workload), plausibility(workload, as_replayed(workload))
    if output_format == Format.JSON:
        _print_facts_json(found, odd)
    else:
        _print_facts(found, workload.meta.unit)
        for each in odd:
            typer.echo(f"{each.severity}: {each.words}")


def _print_facts_json(found: Facts, odd: Sequence[Oddity]) -> None:
    from foresail.traces.facts import QUANTILES

    levels = [f"p{level * 100:g}" if level < 1 else "max" for level in QUANTILES]
    content = asdict(found)
    content["quantiles"] = {
        name: dict(zip(levels, values, strict=True)) for name, values in found.quantiles.items()
    }
    findings = [asdict(each) for each in odd]
    print_json(content | {"missing": found.missing, "findings": findings})


def _print_facts(found: Facts, unit: str) -> None:
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


@app.named("validate")
def validate(
    path: LogPath,
    log_options: LogOptions = LogOptions(),
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Report what is impossible, missing or doubtful, and what to do about it.

    Ends with status 2 if something cannot be, as it is refused by what replays a log, or more than
    1 % of the rows are no jobs, unless lenient.
    """
    from foresail.traces.validation import validate

    workload = read_log(path, replace(log_options, strict=False))
    with doing(f"validating {path.name}"):
        report = validate(workload)
    if output_format == Format.JSON:
        print_json(asdict(report) | {"clean": report.clean})
    else:
        _print_findings(report)
    strict = log_options.strict
    if (strict and not report.clean) or (strict is None and report.is_unusable):
        raise typer.Exit(2)


def _print_findings(report: ValidationReport) -> None:
    found = count(len(report.findings), "finding")
    typer.echo(f"{report.source}: {count(report.jobs, 'job')}, {found}")
    for finding in report.findings:
        first = f" (first: {finding.example})" if finding.example else ""
        kind = "" if finding.severity == "minor" else f"{finding.severity}: "
        typer.echo(f"\n{kind}{finding.name}: {finding.count:,}{first}\n  {finding.sentence}")
        typer.echo(f"  remedy: {finding.remedy}")


@app.named("convert")
def convert(path: LogPath, folder: Path, /, log_options: LogOptions = LogOptions()) -> None:
    """Turn a log of any size into a workload folder (Parquet).

    Options:
        folder FOLDER: The workload folder.
    """
    from foresail.traces.folder import convert

    with reading(path) as advance:
        meta = convert(path, folder, advance=advance, **log_options.given())
    typer.echo(f"{folder}: converted from {meta.source} (reader {meta.reader})")
    for name, rows in sorted(meta.repairs.items()):
        typer.echo(f"repaired: {name.replace('_', ' ')}, {count(rows, 'row')}")
    for each in meta.lost:
        said = f"{count(each.rows, 'row')} without {each.expected} (the first is {each.example})"
        typer.echo(f"dropped: {said}")


@app.named("filter")
def filter_log(
    path: Path | None = None,
    output: Path | None = None,
    /,
    filters: list[str] | None = None,
    log_options: LogOptions = LogOptions(),
) -> None:
    """Clean a log and say how many jobs each filter touched; without PATH, list the filters.

    Options:
        path [PATH]: A log or workload folder [list the filters].
        output [OUT]: A workload folder, or FILE.swf[.gz|.zst].
        filters --with NAME(PARAMETER=VALUE,...): Filters, in order.
    """
    from foresail.traces.filtering import apply_filters, choices_of

    if path is None:
        print_plugins("filter", "what it does")
        return
    if output is None:
        raise InputError("nowhere to write", field="OUT", expected="a folder or FILE.swf[.gz|.zst]")
    if not filters:
        raise InputError("no filter is named", field="--with", expected="--with predictsim")
    choices = choices_of(filters)
    workload = read_log(path, log_options)
    with doing(f"cleaning {path.name}"):
        cleaned = apply_filters(workload, choices)
    if not len(cleaned):
        raise InputError("the filters leave no job", source=path)
    write(cleaned, output)
    touched = cleaned.meta.filters[len(workload.meta.filters) :]
    rows = [(name, number(jobs)) for name, jobs in touched]
    print_table(("filter", "jobs touched"), rows, right=1)
    typer.echo(f"{output}: {count(len(cleaned), 'job')} left of {len(workload):,}")


@app.named("sample")
def sample(
    path: LogPath,
    output: Path,
    /,
    weeks: int | None = None,
    from_week: int = 0,
    users: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
    log_options: ReaderOptions = ReaderOptions(),
) -> None:
    """Take some weeks, some users or a fraction of the jobs of a log.

    Options:
        output OUT: A workload folder, or FILE.swf[.gz|.zst].
        weeks (1..): Take so many weeks; the load stays as it is.
        from_week (0..): With --weeks: the first, from 0.
        users (1..): Take all jobs of so many users, drawn at random.
        fraction: Take each job with this probability.
        seed (0..): The same seed gives the same sample.
    """
    from foresail.traces.filtering import sample_fraction, sample_users, sample_weeks

    if sum(option is not None for option in (weeks, users, fraction)) != 1:
        raise InputError("say what to take", expected="one of --weeks, --users and --fraction")
    workload = read_log(path, log_options)
    with doing("sampling"):
        if weeks is not None:
            part = sample_weeks(workload, weeks, from_week)
        elif users is not None:
            part = sample_users(workload, users, seed)
        else:
            part = sample_fraction(workload, fraction or 0.0, seed)
    write(part, output)
    typer.echo(f"{output}: {count(len(part), 'job')} of {len(workload):,}")


@app.named("generate")
def generate(
    name: str | None = None,
    /,
    jobs: int | None = None,
    processors: int | None = None,
    seed: int = 0,
    output: Path | None = None,
    settings: list[str] | None = None,
    plugins: Plugins = None,
) -> None:
    """Generate a workload; without NAME, list the generators and their parameters.

    Options:
        name [NAME]: The generator [list them all].
        jobs (1..): Number of jobs.
        processors (1..): Processors of the machine.
        seed (0..): The same seed gives the same jobs.
        output --output -o: A workload folder, or FILE.swf[.gz|.zst].
        settings --set --param KEY=VALUE: Any parameter.
    """
    del plugins  # they are loaded
    from foresail.model.short_form import part_of, settings_of

    if name is None:
        print_plugins("generator", "what it makes")
        return
    if output is None:
        raise InputError(
            "nowhere to write", field="--output", expected="a folder or FILE.swf[.gz|.zst]"
        )
    given = settings_of({"jobs": jobs, "processors": processors})
    parameters = part_of("generator", name, [*given, *(settings or ())]).parameters
    _generate(name, parameters, seed, output)


def _generate(name: str, parameters: object, seed: int, output: Path) -> None:
    from foresail.traces.generating import ACHIEVED, generate

    with doing(f"generating by {name}"):
        workload = generate(name, parameters, seed)
    write(workload, output)
    submit = workload.jobs["submit_seconds"]
    users = workload.jobs["user"].drop_nulls().n_unique()
    of_users = f" of {count(users, 'user')}" if users else ""
    span = duration(submit[-1] - submit[0])
    typer.echo(f"{output}: {count(len(workload), 'job')}{of_users} over {span}")
    for name, value in workload.meta.header.items():
        if name.startswith(ACHIEVED):
            typer.echo(f"  {name.removeprefix(ACHIEVED).replace('_', ' ')}: {value}")


@app.named("fetch")
def fetch(
    name: str | None = None,
    /,
    output: Path = Path(),
    from_address: str | None = None,
    unverified: bool = False,
) -> None:
    """Download a public archive log, resuming and checking; without NAME, list the catalogue.

    Options:
        name [NAME]: Name of the log [list them all].
        output --output -o DIR: Where to put it.
        from_address --from URL: Another address of the file, or of its folder (ends in /).
        unverified: Take it even if its digest is another.
    """
    from foresail.traces.fetching import catalogue, fetch

    if name is None:
        _list()
        return
    known = catalogue()
    log = known.find(name)
    address = from_address or known.archive.address + log.path
    with doing(f"downloading {log.file_name}", said=in_bytes) as entered:
        on_progress = entered.progressed
        fetched = fetch(log, output, address, progress=on_progress, accept_other_digest=unverified)
    state = "downloaded" if fetched.downloaded else "was there"
    if fetched.verified:
        digest = "its text has the catalogue's SHA-256"
    elif log.text_sha256 is None:
        digest = f"whole, but the catalogue has no digest of it; SHA-256 {fetched.sha256}"
    else:
        digest = f"NOT the catalogue's SHA-256 but {fetched.sha256}"
    typer.echo(f"{fetched.path}: {state}; {digest}")
    typer.echo(known.archive.terms)
    typer.echo(f"Cite: {known.archive.citation}.")


def _list() -> None:
    from foresail.traces.fetching import catalogue

    known = catalogue()
    print_table(
        ("name", "system", "jobs", "processors", "digest known"),
        [
            (
                log.name,
                log.system,
                number(log.jobs),
                number(log.processors),
                "yes" if log.text_sha256 else "no",
            )
            for log in known.log
        ],
        right=3,
    )
    typer.echo()
    typer.echo(f"{known.archive.name}: {known.archive.address}")
    typer.echo(known.archive.terms)
