"""A call of a command that must succeed."""

from typer.testing import CliRunner


def call(app, *arguments):
    """Its standard output; raises the error of one that does not succeed."""
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout
