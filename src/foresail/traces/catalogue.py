"""The catalogue of public archive logs that can be fetched by name."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from foresail.model.errors import UnknownNameError

_FILE: Final = "catalogue.toml"


class Archive(BaseModel):
    """Where the logs are kept: an address that ends with a slash, terms, and the paper to cite."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    address: Annotated[str, Field(pattern=r"^https?://.*/$")]
    terms: str
    citation: str


class Log(BaseModel):
    """One log of the archive."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str

    path: str
    """Path below the archive's address."""
    system: str
    """The machine, in a few words."""
    jobs: int | None = None
    processors: int | None = None
    """As the log says, where that is known."""
    text_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Digest of the decompressed text, where it is known."""

    @property
    def file_name(self) -> str:
        """Name of the log's file."""
        return self.path.rpartition("/")[2]


class LogCatalogue(BaseModel):
    """The archive and its logs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    archive: Archive
    log: tuple[Log, ...]

    def find(self, name: str) -> Log:
        """The log of this name, in any case of letters.

        Raises
        ------
        UnknownNameError
            If there is none; it offers the names that contain this one, where there are any.
        """
        for log in self.log:
            if log.name.lower() == name.lower():
                return log
        names = [log.name for log in self.log]
        containing = [known for known in names if name.lower() in known.lower()]
        raise UnknownNameError("archive log", name, containing or names)


@cache
def catalogue() -> LogCatalogue:
    """The catalogue that comes with Foresail."""
    text = files("foresail.traces").joinpath(_FILE).read_text(encoding="utf-8")
    return LogCatalogue.model_validate(tomllib.loads(text))
