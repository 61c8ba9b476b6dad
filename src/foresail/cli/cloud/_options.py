"""Options that several commands of ``foresail cloud`` share, and options from a file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foresail.cli.formats import Format, FormatOption, made_by
from foresail.cli.progress import doing
from foresail.model.documents import toml_of
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
if TYPE_CHECKING:
    from foresail.reports.renting.page import CloudPage


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    """Raise errors about these fields anew, with the option's name in place of the field's."""
    try:
        yield
    except InputError as error:
        option = options.get(error.field or "")
        if option is None:
            raise
        expected = error.expected
        raise InputError(
            error.problem,
            source=error.source,
            field=option,
            value=error.value,
            expected=expected and expected.replace(f"{error.field}=", f"{option} "),
        ) from error


def _from_file(context: typer.Context, path: Path | None) -> Path | None:
    """Take the options that a file gives for those that were not given."""
    if path is not None and not context.resilient_parsing:
        name = str(context.info_name)
        context.default_map = _defaults(context, path, _table(path, name))
    return path


@dataclass(frozen=True)
class AnswerOptions:
    """Options of an answer: a file of further options, its format, a folder for its report."""

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
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Write a report and its numbers.")
    ] = None

    def require_folder(self) -> None:
        """Refuse a folder for results that cannot be made, before anything long begins."""
        if self.output is not None:
            from foresail.model.whole_files import require_folder

            require_folder(self.output)

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
    """The same, and whether there are to be pictures."""

    png: Annotated[bool, typer.Option("--png", help="With --output: a PNG per figure.")] = False

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
