"""``foresail db``: whether a service's store holds together, copies of it, and it as files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foresail.cli.log_options import CommandGroup
from foresail.cli.progress import doing
from foresail.model.errors import InputError
from foresail.model.words import count

if TYPE_CHECKING:
    from foresail.service.configuration import ServiceConfiguration
    from foresail.service.state_folder import StateFolder
    from foresail.service.store.database import Database
    from foresail.service.store.sql_store import SqlStore
    from foresail.service.upkeep import LogArchive

app = CommandGroup()

_Source = Annotated[
    Path,
    typer.Argument(
        metavar="STATE", help="State folder of a service, or its configuration file (TOML)."
    ),
]


@app.named("check")
def check(state: _Source) -> None:
    """Say whether the store holds together; status 1 if it does not."""
    from foresail.service.upkeep import faults_of

    with opened_store(state) as store:
        with doing("checking the store"):
            faults = list(faults_of(store))
        for fault in faults:
            typer.echo(fault)
        if faults:
            raise typer.Exit(1)
        typer.echo(f"well: {_contents(store)}")


@app.named("export")
def export(source: Path, /, output: Path) -> None:
    """Write a live session as files: its event log, and its jobs as a workload to be replayed.

    DIR/events.jsonl is read by `foresail explain` and `replay`, DIR/workload by all that replays.

    Options:
        source STATE | RUN: State folder of a service or its configuration; or the folder of a run.
        output DIR: Folder to write; it is made.
    """
    from foresail.cli._moments import log_of
    from foresail.model.whole_files import all_or_none, to_be_written
    from foresail.record.log_text import parse_record, read_log, record_line
    from foresail.record.schedule import with_usage, workload_of
    from foresail.traces.folder import write_folder

    if source.resolve() == output.resolve():
        raise InputError("is the run itself", field="--output", value=output)
    samples: list[dict[str, Any]] = []
    with all_or_none(output) as drafts:
        log = drafts / "events.jsonl"
        with to_be_written(log), log.open("w", encoding="utf-8") as file:
            if (source / "events.jsonl").is_file():
                file.writelines(map(record_line, read_log(log_of(source))))
            else:
                with opened_store(source) as store:
                    archive = _archive_of(source)
                    for number, line in chain(archive.records(), store.records(after=archive.last)):
                        file.write(line)
                        parse_record(line, source, number)
                    every = chain(archive.samples(), store.samples())
                    samples = [asdict(each) for each in every]
        workload = with_usage(workload_of(read_log(log), str(source.name)), samples)
        if not len(workload):
            raise InputError("no job has run to its end", source=source)
        write_folder(workload, output / "workload")
    left = int(workload.meta.header["left out"])
    typer.echo(f"{count(len(workload), 'job')}; {left} that did not run to an end are left out")
    typer.echo(f"foresail compare {output / 'workload'} --with easy --with foresail")


@app.named("backup")
def backup(state: _Source, file: Path, /) -> None:
    """Write all of a store to a file, as it is at one moment; the service may run meanwhile.

    The outputs of jobs (STATE/logs) are not in it.

    Options:
        file FILE: File to write; it is made.
    """
    from foresail.service.upkeep import back_up

    with closing(_database(state)) as database, doing("backing up the store"):
        back_up(database, file)
    typer.echo(f"{file}: {file.stat().st_size / 1e6:,.1f} MB")


@app.named("restore")
def restore(state: _Source, file: Path, /) -> None:
    """Put a backup in place of a store; the service must not run.

    Ids of jobs go on behind all that were given in the state folder. Of a job that has run since
    the backup was made, the service finds the end in that folder; jobs that have come since are not
    known any more.

    Options:
        file FILE: What `backup` has written.
    """
    from foresail.service.state_folder import adopt, existing_store
    from foresail.service.upkeep import good_backup, write_to, write_to_file

    configuration, folder = _at_rest(state)
    with folder.alone(), doing("checking the backup"), good_backup(file, folder.path) as good:
        adopt(folder, good)
        if configuration.database == "sqlite":
            write_to_file(good, folder.database)
        else:
            with closing(existing_store(configuration)) as target:
                write_to(good, target)
        said = _contents(good)
    typer.echo(f"restored: {said}")


@app.named("move")
def move(state: _Source, /, to: str) -> None:
    """Move a store to another database; the service must not run.

    The one of before is kept as it is, but serves no more.

    Options:
        to DATABASE: `sqlite`, or the address of a PostgreSQL database.
    """
    from foresail.service.state_folder import existing_store, opened_store
    from foresail.service.upkeep import is_free, retire, write_to, write_to_file

    configuration, folder = _at_rest(state)
    target = configuration.model_copy(update={"database": to})
    if configuration.database == to:
        raise InputError("is where it is", field="--to", value=to, expected="another database")
    with folder.alone(), closing(opened_store(configuration)) as source, doing("moving the store"):
        if to != "sqlite" or folder.database.exists():
            with closing(existing_store(target)) as there:
                if not is_free(there):
                    raise InputError("holds a store", field="--to", value=there.database.name)
                if to != "sqlite":
                    write_to(source, there)
        if to == "sqlite":
            write_to_file(source, folder.database)
        retire(source, "sqlite" if to == "sqlite" else there.database.name)
        said = _contents(source)
    typer.echo(f'moved: {said}; now set database = "{to}" in the configuration')


def _contents(store: SqlStore) -> str:
    jobs = sum(store.counts().values())
    return f"{count(jobs, 'job')}, {count(store.last_record(), 'record')}"


def _at_rest(state: Path) -> tuple[ServiceConfiguration, StateFolder]:
    """The configuration of a service that does not run, and its folder, laid out."""
    from foresail.service.state_folder import StateFolder

    configuration = _configuration(state)
    folder = StateFolder(configuration.state.absolute())
    folder.make()
    return configuration, folder


def _configuration(state: Path) -> ServiceConfiguration:
    """Read a service's configuration from its file, or assume the usual one of a folder."""
    from foresail.service.configuration import ServiceConfiguration, read_configuration

    return read_configuration(state) if state.is_file() else ServiceConfiguration(state=state)


def _archive_of(state: Path) -> LogArchive:
    from foresail.service.state_folder import StateFolder
    from foresail.service.upkeep import LogArchive

    return LogArchive(StateFolder(_configuration(state).state).archive)


@contextmanager
def opened_store(state: Path) -> Iterator[SqlStore]:
    """The store of a service that is there already; the service may run meanwhile."""
    from foresail.service.store.sql_store import SqlStore

    with closing(SqlStore(_database(state))) as store:
        yield store


def _database(state: Path) -> Database:
    from foresail.service.state_folder import StateFolder
    from foresail.service.store.database import Database

    configuration = _configuration(state)
    if configuration.database != "sqlite":
        return Database.at_address(configuration.database)
    path = StateFolder(configuration.state.absolute()).database
    if not path.is_file():
        expected = f"a folder with {path.name} in it"
        raise InputError("holds no store", source=path.parent, expected=expected)
    return Database.in_file(path)
