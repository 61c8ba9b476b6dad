"""Distributions as JSON files hold them: read exactly, or refused by the name of the field."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.truncated_normal import TruncatedNormal
from foresail.model.distribution import Distribution, Floats
from foresail.model.errors import InputError, UnknownNameError

VERSION: Final = 1
"""Of all kinds of records; a newer one is refused."""


def from_record(record: object, source: object | None = None) -> Distribution:
    """The distribution that a record describes: its version, its kind, and what that is made of.

    ``source`` is where it came from, for the error.

    Raises ``InputError`` if a field is missing, unknown or holds what no distribution can have;
    names the field; ``UnknownNameError`` if the kind is unknown.
    """
    reader = _Reader(record, source)
    version = reader.get("version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise reader.error("version", "is not a version", "a whole number")
    if version != VERSION:
        raise reader.error("version", "is not readable here", f"version {VERSION}")
    kind = reader.get("kind")
    if not isinstance(kind, str):
        raise reader.error("kind", "is not a name", "one of " + ", ".join(sorted(_KINDS)))
    if kind not in _KINDS:
        raise UnknownNameError("distribution", kind, _KINDS)
    made, fields = _KINDS[kind]
    known = {"version", "kind", *fields}
    for field in reader.record:
        if field not in known:
            raise reader.error(str(field), "is unknown", ", ".join(sorted(known)))
    try:
        return made(*(read(reader, field) for field, read in fields.items()))
    except ValueError as error:
        field = _blamed(str(error), reader)
        raise reader.error(field, f"no {kind} distribution can have it", str(error)) from error


class _Reader:
    """Takes typed fields out of a record."""

    def __init__(self, record: object, source: object | None) -> None:
        self.source = source
        if not isinstance(record, Mapping):
            raise InputError(
                "is not a record", source=source, value=record, expected="named fields"
            )
        self.record = record

    def error(self, field: str, problem: str, expected: str) -> InputError:
        value = self.record.get(field)
        return InputError(problem, source=self.source, field=field, value=value, expected=expected)

    def get(self, field: str) -> Any:
        if field not in self.record:
            raise InputError("is missing", source=self.source, field=field)
        return self.record[field]

    def number(self, field: str) -> float:
        value = self.get(field)
        if not _is_number(value):
            raise self.error(field, "is not a finite number", "a finite number")
        return float(value)

    def numbers(self, field: str) -> Floats:
        values = self.get(field)
        if not isinstance(values, list) or not all(_is_number(value) for value in values):
            raise self.error(field, "is not a list of finite numbers", "finite numbers")
        return np.array(values, dtype=np.float64)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floating point ones
        return False


def _blamed(words: str, reader: _Reader) -> str:
    """The field that the error of a constructor speaks of first."""
    return next((word for word in re.findall(r"\w+", words) if word in reader.record), "kind")


def _value(reader: _Reader, field: str) -> float:
    value = reader.number(field)
    if value < 0.0:
        raise reader.error(field, "is negative", "0 or more")
    return value


def _cap(reader: _Reader, field: str) -> float:
    return math.inf if reader.get(field) is None else reader.number(field)


def _probabilities(reader: _Reader, field: str) -> Floats:
    probabilities = reader.numbers(field)
    if np.any(probabilities < 0.0):
        raise reader.error(field, "holds a negative one", "0 or more")
    return probabilities


_number, _numbers = _Reader.number, _Reader.numbers

_Fields = Mapping[str, Callable[[_Reader, str], Any]]

_KINDS: Final[Mapping[str, tuple[type[Distribution], _Fields]]] = {
    "point": (Point, {"value": _value}),
    "uniform": (Uniform, {"low": _number, "high": _number}),
    "truncated-normal": (TruncatedNormal, {"mu": _number, "sigma": _number, "low": _number}),
    "log-normal": (LogNormal, {"mu": _number, "sigma": _number, "cap": _cap, "elapsed": _number}),
    "empirical": (Empirical, {"values": _numbers, "probabilities": _probabilities}),
    "quantiles": (Quantiles, {"levels": _numbers, "values": _numbers}),
}
"""Arguments of each kind, in order; its record names them."""
