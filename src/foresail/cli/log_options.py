"""Options of commands that read logs: the log, how it is read and cleaned, and plug-ins."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from foresail.cli.progress import doing, reading
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.traces.filtering import FilterChoice
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
"""Loaded as the command line is read, before any name is looked for."""


LogPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="LOG", help="A job log, or a workload folder.")
]
FilterNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NAME(PARAMETER=VALUE,...)",
        help="Cleaning filters, in order [replayable, or replayable_by_task where all policies "
        "start tasks apart]; see foresail trace filter.",
    ),
]


LEARNABLE: Final = ("drop_no_processors", "fill_processors", "drop_no_runtime")
"""Filters that clean what predictors learn from: jobs may be wider than any machine."""


@dataclass(frozen=True)
class ReaderOptions:
    """Options of how to read a log.

    Options:
        reader: Name of the reader, if it cannot be recognised.
        mapping: Column mapping (TOML) of a CSV or Parquet table.
        processors (1..): Processors of the machine.
    """

    reader: str | None = None
    mapping: Path | None = None
    processors: int | None = None
    plugins: Plugins = None

    def given(self) -> dict[str, Any]:
        """Return arguments of ``traces.reading.read``; a mapping only where there is one."""
        given = {"reader": self.reader, "processors": self.processors}
        return given if self.mapping is None else given | {"mapping": self.mapping}


@dataclass(frozen=True)
class LogOptions(ReaderOptions):
    """Options of how to read a log, and of what becomes of odd rows.

    Options:
        strict --strict/--lenient: What would be repaired or is odd is an error; or drop as many
            rows as there are that are no jobs [more than 1 % are an error].
    """

    strict: bool | None = None

    def given(self) -> dict[str, Any]:
        """The same, and how strict to be."""
        return ReaderOptions.given(self) | {"strict": self.strict}

    def on_machine(self, workload: Workload) -> Workload:
        """The log on the machine that the options describe further: here, as it says itself."""
        return workload


@dataclass(frozen=True)
class MachineOptions(LogOptions):
    """Options of a log, and of the partitions of the machine that is simulated.

    Options:
        partitions NAME=PROCESSORS,...: Processors of each partition, such as A=8,B=8, or A=8,A+B=4
            where 4 belong to both [as the nodes have them, else estimated from the log].
        one_pool: All partitions are one pool of processors.
    """

    partitions: str | None = None
    one_pool: bool = False

    def given(self) -> dict[str, Any]:
        """The same; the machine has the processors of its partitions."""
        from foresail.traces.partitions import parse_partitions

        given = LogOptions.given(self)
        if self.partitions is not None and self.processors is None:
            given["processors"] = sum(parse_partitions(self.partitions).values())
        return given

    def on_machine(self, workload: Workload) -> Workload:
        """The log on a machine with these partitions, or on one pool.

        Raises ``InputError`` if both are asked for, the partitions are none, or not those of the
        machine.
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


def load(
    log: Path,
    log_options: LogOptions,
    filters: Sequence[str] | None,
    usual: Callable[[Workload], str] = lambda _: "replayable",
) -> Workload:
    """Read a log and clean it as asked, else by its ``usual`` filter; standard error says so.

    What is odd about what is left is said as well, and what cannot be is refused.
    """
    from foresail.traces.filtering import choices_of

    if filters:
        return load_cleaned(log, log_options, filters)
    workload = log_options.on_machine(read_log(log, log_options))
    return _cleaned(log, workload, choices_of([usual(workload)]), strict=log_options.strict)


def load_cleaned(log: Path, log_options: LogOptions, filters: Sequence[str]) -> Workload:
    """Read a log and clean it, saying what was repaired and dropped on standard error."""
    from foresail.traces.filtering import choices_of

    choices = choices_of(filters)
    workload = log_options.on_machine(read_log(log, log_options))
    return _cleaned(log, workload, choices, strict=log_options.strict)


def load_as_one_pool(log: Path, log_options: LogOptions, filters: Sequence[str]) -> Workload:
    """Read and clean a log for machines without partitions, saying so where its jobs name some."""
    from foresail.traces.partitions import in_one_pool, named_partitions

    workload = load_cleaned(log, log_options, filters)
    if len(named_partitions(workload)) > 1 and not workload.partitions_said:
        workload = in_one_pool(workload, "machines that are rented or bought for it have none")
    if workload.partitions_said:
        typer.echo(workload.partitions_said, err=True)
    return workload


def _cleaned(
    log: Path, workload: Workload, choices: Sequence[FilterChoice], *, strict: bool | None
) -> Workload:
    from foresail.traces.plausibility import clean_and_check

    before = len(workload.meta.filters)
    with doing(f"cleaning {log.name}"):
        workload = clean_and_check(workload, choices, strict)
    counts = [*workload.meta.repairs.items(), *workload.meta.filters[before:]]
    touched = [f"{name} {count:,}" for name, count in counts if count]
    if touched:
        typer.echo(f"cleaned: {', '.join(touched)}", err=True)
    for each in workload.meta.lost:
        typer.echo(each.words, err=True)
    for found in workload.findings:
        typer.echo(f"odd: {found.words}", err=True)
    return workload


class CommandGroup(typer.Typer):
    """A group of commands, each of which may take records of options."""

    def __init__(self, summary: str | None = None) -> None:
        super().__init__(
            no_args_is_help=True, rich_markup_mode=None, add_completion=False, help=summary
        )

    def named(self, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Register a command under this name."""

        def register(command: Callable[..., None]) -> Callable[..., None]:
            self.command(name)(with_option_records(command))
            return command

        return register


_NUMBER: Final = r"\d+(?:\.\d+)?"
_DECLARED: Final = re.compile(
    r"(?P<name>\w+)(?P<flags>(?: -\S+)*)(?: (?P<metavar>.+?))??"
    rf"(?: \((?P<least>{_NUMBER})?\.\.(?P<most>{_NUMBER})?\))?"
)


def with_option_records(command: Callable[..., None]) -> Callable[..., None]:
    """The command for Typer: options as its docstring declares them, and those of records.

    Below ``Options:`` an entry such as ``user --user -u NAME (1..9): All of this user.`` declares a
    parameter: its flags, metavar and bounds, each where it is not the usual one, and its help.
    Positional parameters are arguments.

    A record is a dataclass that declares its fields likewise, or whose fields are annotated as
    parameters of commands are. Its options have the fields' defaults, and stand in the help where
    the record stands in the command.
    """
    signature = inspect.signature(command, eval_str=True)
    words, declared = _declared(command.__doc__)
    records: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    for record in records.values():
        for kind in reversed(record.__mro__):
            declared |= _declared(kind.__doc__)[1]
    options = [
        _option(option, declared.get(option.name))
        for name, parameter in signature.parameters.items()
        for option in (
            inspect.signature(records[name], eval_str=True).parameters.values()
            if name in records
            else [parameter]
        )
    ]
    positional = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY
    ]

    @wraps(command)
    def asked(**given: Any) -> None:
        for name, record in records.items():
            given[name] = record(**{each.name: given.pop(each.name) for each in fields(record)})
        leading = [given.pop(name) for name in positional]
        command(*leading, **given)

    asked.__doc__ = words
    asked.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    asked.__annotations__ = {option.name: option.annotation for option in options}
    return asked


def _declared(text: str | None) -> tuple[str, dict[str, Mapping[str, str | None]]]:
    """A docstring without its options, and by the parameter what is declared of it."""
    words, _, listed = inspect.cleandoc(text or "").partition("\n\nOptions:\n")
    found: dict[str, Mapping[str, str | None]] = {}
    for entry in re.split(r"\n(?=\S)", textwrap.dedent(listed)) if listed else ():
        head, _, said = " ".join(entry.split()).partition(": ")
        match = _DECLARED.fullmatch(head)
        assert match is not None, entry
        found[match["name"]] = match.groupdict() | {"help": said}
    return words, found


def _option(
    parameter: inspect.Parameter, declared: Mapping[str, str | None] | None
) -> inspect.Parameter:
    """The parameter as Typer reads it."""
    keyword = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    if declared is None:
        return keyword
    settings: dict[str, Any] = {"help": declared["help"], "metavar": declared["metavar"]}
    for name, bound in (("min", declared["least"]), ("max", declared["most"])):
        if bound is not None:
            settings[name] = float(bound) if "." in bound else int(bound)
    flags = (declared["flags"] or "").split()
    if parameter.annotation is bool and not flags:
        flags = [f"--{parameter.name.replace('_', '-')}"]
    is_argument = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
    made = typer.Argument(**settings) if is_argument else typer.Option(*flags, **settings)
    return keyword.replace(annotation=Annotated[parameter.annotation, made])
