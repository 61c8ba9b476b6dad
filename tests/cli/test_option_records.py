"""Records of options as single parameters of commands."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from foresail.cli.log_options import with_option_records
from foresail.cli.main import GROUPS


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


def test_a_docstring_declares_options():
    """Positional parameters are arguments; flags, metavars and bounds are as it says."""
    app, taken = typer.Typer(rich_markup_mode=None), []

    @app.command()
    @with_option_records
    def command(name: str, /, most: int = 3, at_once: bool = False) -> None:
        """Do it.

        Options:
            name NAME: Whose it is, and
                no other's.
            most --limit -m SO MANY (1..9): At most.
            at_once: Now.
        """
        taken.append((name, most, at_once))

    assert CliRunner().invoke(app, ["a", "-m", "9", "--at-once"]).exit_code == 0
    assert taken == [("a", 9, True)]
    assert CliRunner().invoke(app, ["a", "--limit", "10"]).exit_code == 2
    text = " ".join(CliRunner().invoke(app, ["--help"]).output.split())
    for said in ("Do it. ", "Whose it is, and no other's.", "SO MANY"):
        assert said in text
    assert "no-at-once" not in text


def test_each_command_stands_in_one_group_of_the_help():
    names = [name for group in GROUPS.values() for name in group]
    assert sorted(names) == sorted(set(names))
