"""The column mapping: a TOML file that says where a table's columns go in the canonical schema.

::

    [table]
    delimiter = ";"            # default ","
    null = ["", "NA", "-1"]    # texts that mean unknown; the empty text always does
    processors = 1024
    free_text = ["Comment"]    # columns that hold delimiters unquoted [JobName, SubmitLine]

    [columns]                  # canonical column = source column, or more about it
    job_id = "JobID"
    submit_seconds = { column = "Submit", time = "%Y-%m-%dT%H:%M:%S", zone = "Europe/Paris" }
    runtime_seconds = { column = "End", since = "Start", time = "%Y-%m-%dT%H:%M:%S" }
    requested_seconds = { column = "Limit", unit = "minutes" }
    tasks = { constant = 1 }
    status = { column = "State", values = { COMPLETED = "completed", TIMEOUT = "failed" } }

    [features]                 # further columns kept as text, which predictors may use
    application = "JobName"
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from foresail.model.documents import toml_of
from foresail.model.errors import InputError
from foresail.traces import schema
from foresail.traces.delimited import nearest

UNITS: Final = {
    "microseconds": 1e-6,
    "milliseconds": 1e-3,
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
    "milli": 1e-3,
    "bytes": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
}
"""Factors that turn a number in this unit into one in the canonical unit."""

_REQUIRED: Final = ("submit_seconds",)
_DELIMITER: Final = r"^[\t !#-~]{1,8}$"
"""ASCII characters that are seen, or a blank, but the quote."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ColumnSource(_Strict):
    """The source of one canonical column."""

    column: str | None = None
    """The source column; or a ``constant`` instead of it."""
    constant: float | str | None = None

    since: str | None = None
    """Another source column that is subtracted (end minus start, for example)."""
    unit: str = "seconds"
    scale: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    """A factor for numbers: by a name of ``UNITS``, and any other."""
    time: str | None = None
    zone: str = "UTC"
    """Pattern of times (as ``strptime`` has it), and the zone of those without an offset."""
    values: dict[str, str] | None = None
    """Texts and what they become; other texts become null."""

    @property
    def factor(self) -> float:
        """Return the factor for numbers."""
        return UNITS[self.unit] * self.scale

    @model_validator(mode="after")
    def _is_sensible(self) -> ColumnSource:
        if (self.column is None) == (self.constant is None):
            raise ValueError("give either a column or a constant")
        if self.unit not in UNITS:
            raise ValueError(f"unknown unit {self.unit!r}; known: {', '.join(UNITS)}")
        return self


def _column_alone(value: Any) -> Any:
    return {"column": value} if isinstance(value, str) else value


class TableLayout(_Strict):
    """Facts of the table as a whole."""

    delimiter: str = Field(default=",", pattern=_DELIMITER)
    null: tuple[str, ...] = ()
    free_text: tuple[str, ...] = ("JobName", "SubmitLine")
    """Columns that may hold the delimiter and line ends without quotes, as Slurm writes them."""
    processors: int | None = Field(default=None, gt=0)


class Mapping(_Strict):
    """A column mapping file."""

    table: TableLayout = TableLayout()
    columns: dict[str, Annotated[ColumnSource, BeforeValidator(_column_alone)]]
    features: dict[str, str] = {}

    @property
    def used(self) -> tuple[str, ...]:
        """The source columns that the mapping names, each once."""
        named = [part for c in self.columns.values() for part in (c.column, c.since)]
        given = [name for name in (*named, *self.features.values()) if name is not None]
        return tuple(dict.fromkeys(given))


def _known_keys(above: list[str]) -> Iterable[str]:
    """The keys of a section of the file, or of a column in it."""
    if not above:
        return Mapping.model_fields
    return (TableLayout if above[0] == "table" else ColumnSource).model_fields


def load_mapping(path: Path) -> Mapping:
    """Read a column mapping file.

    Raises ``InputError`` if it cannot be read, is not TOML, or names what does not exist (the
    nearest is offered).
    """
    content = toml_of(path)
    try:
        mapping = Mapping.model_validate(content)
    except ValidationError as error:
        first, *_ = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        problem, expected = first["msg"], "see the docs"
        *above, name = map(str, first["loc"])
        if first["type"] == "extra_forbidden":
            problem, expected = "no such section or key", nearest(name, _known_keys(above))
        where = ".".join([*above, name])
        raise InputError(problem, source=path, field=where, expected=expected) from error
    for name in mapping.columns:
        if name not in schema.JOBS:
            raise InputError(
                "no such canonical column",
                source=path,
                field=name,
                expected=nearest(name, schema.JOBS),
            )
    for name in mapping.features:
        if name in schema.JOBS:
            raise InputError(
                "a feature has the name of a canonical column", source=path, field=name
            )
    for name in _REQUIRED:
        if name not in mapping.columns:
            raise InputError("a required column is not mapped", source=path, field=name)
    return mapping
