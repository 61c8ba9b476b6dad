"""Bringing a database up to date: each version of the schema follows from the one before."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import Engine, inspect, text

from foresail.model.errors import InputError

LATEST: Final = "0004"
"""The version that this Foresail reads and writes."""

_VERSIONS: Final = "alembic_version"


def bring_up_to_date(engine: Engine) -> None:
    """Make or change the tables of a database until they are as this version has them.

    Raises
    ------
    InputError
        If a later version of Foresail has made them.
    """
    version = version_of(engine)
    if version == LATEST:
        return
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    known = {each.revision for each in ScriptDirectory.from_config(configuration).walk_revisions()}
    if version is not None and version not in known:
        raise InputError(
            "was made by a later version of Foresail",
            source=engine.url.render_as_string(hide_password=True),
            value=version,
            expected=f"version {LATEST} or earlier",
        )
    with engine.begin() as connection:
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, LATEST)


def version_of(engine: Engine) -> str | None:
    """The version of a database's tables; None where there are none."""
    with engine.connect() as connection:
        if not inspect(connection).has_table(_VERSIONS):
            return None
        version: str | None = connection.scalar(text(f"SELECT version_num FROM {_VERSIONS}"))
        return version
