"""Which log is read, and how, and files of plug-ins: what commands that read logs are told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foresail.cli.progress import reading
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.traces.workload import Workload


def _loaded(plugins: list[Path] | None) -> list[Path] | None:
    """The files, once what they register can be found."""
    if plugins:
        from foresail.model.registry import load_plugin

        for plugin in plugins:
            load_plugin(plugin)
    return plugins


Plugins: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="A file with plug-ins of your own; may be repeated.",
        callback=_loaded,
    ),
]
"""They are loaded as the command line is read, before any name is looked for."""


LogPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="PATH", help="A log file, or a workload folder.")
]


@dataclass(frozen=True)
class ReaderOptions:
    """What is told of how to read a log."""

    reader: Annotated[
        str | None, typer.Option("--reader", help="Name of the reader, if it cannot be told.")
    ] = None
    mapping: Annotated[
        Path | None,
        typer.Option("--mapping", help="Column mapping (TOML) of a CSV or Parquet table."),
    ] = None
    processors: Annotated[
        int | None, typer.Option("--processors", min=1, help="Processors of the machine.")
    ] = None
    plugins: Plugins = None

    def given(self) -> dict[str, Any]:
        """As arguments of ``foresail.traces.reading.read``; a mapping only where there is one."""
        given = {"reader": self.reader, "processors": self.processors}
        return given if self.mapping is None else given | {"mapping": self.mapping}


@dataclass(frozen=True)
class LogOptions(ReaderOptions):
    """The same, and what becomes of rows that are odd."""

    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--lenient",
            help="What would be repaired or is odd is an error; or drop as many rows as there are "
            "that are no jobs [more than 1 % are an error].",
            show_default=False,
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """The same, and how strict to be."""
        return ReaderOptions.given(self) | {"strict": self.strict}

    def on_machine(self, workload: Workload) -> Workload:
        """The log on the machine that the options describe further: here, as it says itself."""
        return workload


@dataclass(frozen=True)
class MachineOptions(LogOptions):
    """The same, and which partitions the machine has that jobs are simulated on."""

    partitions: Annotated[
        str | None,
        typer.Option(
            "--partitions",
            metavar="NAME=PROCESSORS,...",
            help="Processors of each partition, such as A=8,B=8, or A=8,A+B=4 where 4 belong to "
            "both [as the nodes have them, else estimated from the log].",
        ),
    ] = None
    one_pool: Annotated[
        bool,
        typer.Option("--one-pool", help="All partitions are one pool of processors."),
    ] = False

    def given(self) -> dict[str, Any]:
        """The same; the machine has the processors of its partitions."""
        from foresail.traces.partitions import parse_partitions

        given = LogOptions.given(self)
        if self.partitions is not None and self.processors is None:
            given["processors"] = sum(parse_partitions(self.partitions).values())
        return given

    def on_machine(self, workload: Workload) -> Workload:
        """The log on a machine with these partitions, or on one pool.

        Raises
        ------
        InputError
            If both are asked for, the partitions are none, or not those of the machine.
        """
        from foresail.traces.partitions import in_one_pool, parse_partitions, with_partitions

        if self.partitions is None:
            return in_one_pool(workload, "--one-pool") if self.one_pool else workload
        if self.one_pool:
            problem = "not together with --one-pool"
            raise InputError(problem, field="--partitions", value=self.partitions)
        return with_partitions(workload, parse_partitions(self.partitions))


def read_log(path: Path, options: ReaderOptions) -> Workload:
    """The workload that these options mean; says how far reading is."""
    from foresail.traces.reading import read

    with reading(path) as advance:
        return read(path, advance=advance, **options.given())
