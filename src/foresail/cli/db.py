"""``foresail db``: whether a service's store holds together, and what is in it as files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foresail.cli.progress import doing
from foresail.model.errors import InputError
from foresail.model.words import count

if TYPE_CHECKING:
    from foresail.live.cluster_plugin import UseSample
    from foresail.record.records import Record
    from foresail.service.store.sql_store import SqlStore

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_Source = Annotated[
    Path,
    typer.Argument(
        metavar="STATE", help="State folder of a service, or its configuration file (TOML)."
    ),
]


@app.command()
def check(state: _Source) -> None:
    """Say whether the store holds together; status 1 if it does not."""
    from foresail.service.store.checking import faults_of

    with _opened(state) as store:
        with doing("checking the store"):
            faults = list(faults_of(store))
        for fault in faults:
            typer.echo(fault)
        if faults:
            raise typer.Exit(1)
        jobs = sum(store.counts().values())
        typer.echo(f"well: {count(jobs, 'job')}, {count(store.last_record(), 'record')}")


@app.command()
def export(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="STATE | RUN",
            help="State folder of a service or its configuration; or the folder of a run.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Folder to write; it is made.")
    ],
) -> None:
    """Write a live session as files: its event log, and its jobs as a workload to be replayed.

    DIR/events.jsonl is read by `foresail explain` and `replay`, DIR/workload by all that replays.
    """
    from foresail.model.whole_files import make_folder, to_be_written
    from foresail.record.log_text import parse_record, read_log, record_line
    from foresail.record.session_workload import workload_of
    from foresail.service.measured_use import with_usage
    from foresail.traces.folder import write_folder

    samples: list[UseSample] = []
    make_folder(output)
    log = output / "events.jsonl"
    if (source / "events.jsonl").is_file():
        from foresail.cli._moments import log_of

        if source.resolve() == output.resolve():
            raise InputError("is the run itself", field="--output", value=output)
        with to_be_written(log), log.open("w", encoding="utf-8") as file:
            for record in read_log(log_of(source)):
                file.write(record_line(record))
    else:
        with _opened(source) as store, to_be_written(log), log.open("w", encoding="utf-8") as file:
            for number, line in store.records():
                file.write(line)
                parse_record(line, source, number)
            samples = store.samples()

    def records() -> Iterator[Record]:
        yield from read_log(log)

    workload = with_usage(workload_of(records(), str(source.name)), samples)
    if not len(workload):
        raise InputError("no job has run to its end", source=source)
    write_folder(workload, output / "workload")
    left = int(workload.meta.header["left out"])
    typer.echo(f"{count(len(workload), 'job')}; {left} that did not run to an end are left out")
    typer.echo(f"foresail compare {output / 'workload'} --with easy --with foresail")


@contextmanager
def _opened(state: Path) -> Iterator[SqlStore]:
    """The store of a service that is there already."""
    from foresail.service.configuration import read_configuration
    from foresail.service.session import StateFolder
    from foresail.service.store.opening import opened_store

    if state.is_file():
        configuration = read_configuration(state)
        store = opened_store(configuration)
    else:
        path = StateFolder(state).database
        if not path.is_file():
            raise InputError(
                "holds no store", source=state, expected=f"a folder with {path.name} in it"
            )
        from foresail.service.store.sql_store import SqlStore

        store = SqlStore.in_file(path)
    try:
        yield store
    finally:
        store.close()
