"""Records of options as single parameters of commands."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from foresail.cli.log_options import with_option_records


@dataclass(frozen=True)
class Size:
    """Two options, one with a name of its own."""

    width: Annotated[int, typer.Option("--wide", min=1)] = 3
    height: Annotated[str | None, typer.Option()] = None


def told(*arguments):
    app, taken = typer.Typer(), []

    @app.command()
    @with_option_records
    def command(
        name: Annotated[str, typer.Argument()], size: Size = Size(), loud: bool = False
    ) -> None:
        taken.append((name, size, loud))

    result = CliRunner().invoke(app, list(arguments))
    return result, taken


def test_a_record_is_made_of_its_options():
    """What is given comes in the record, what is not has the field's default."""
    assert told("a", "--wide", "7", "--loud")[1] == [("a", Size(width=7), True)]
    assert told("a", "--height", "x")[1] == [("a", Size(height="x"), False)]


def test_options_are_checked_and_stand_where_the_record_does():
    """Limits hold; the help lists the record's options between what is before and after it."""
    result, taken = told("a", "--wide", "0")
    assert (result.exit_code, taken) == (2, [])
    text = told("--help")[0].output
    assert text.index("--wide") < text.index("--height") < text.index("--loud")
