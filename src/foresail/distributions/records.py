"""Distributions as records that JSON can hold, and back: exactly, or refused by name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.basic import Point, Shifted, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.histogram import Histogram
from foresail.distributions.kernels.streaming_histogram import (
    CENTROIDS,
    COUNT,
    LARGEST,
    MERGED,
    SMALLEST,
    USED,
    histogram_columns,
)
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.mixture import Mixture
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.truncated_normal import TruncatedNormal
from foresail.model.distribution import Distribution
from foresail.model.documents import json_of
from foresail.model.errors import InputError, UnknownNameError, naming

VERSION: Final = 1
"""Of all kinds of records; a newer one is refused."""
_DEEPEST: Final = 32
_MOST_BINS: Final = 1_000_000


def to_record(distribution: Distribution) -> dict[str, Any]:
    """A record of plain values, ready for JSON; ``from_record`` makes the same distribution of it.

    Raises ``TypeError`` if the distribution is of a kind that has no records.
    """
    return {"version": VERSION, **_fields(distribution)}


def _fields(distribution: Distribution) -> dict[str, Any]:
    kinds: list[tuple[type, str, tuple[str, ...]]] = [(Histogram, "histogram", _HISTOGRAM)]
    kinds += [(made, kind, tuple(fields)) for kind, (made, fields) in _KINDS.items()]
    for made, kind, names in kinds:
        if isinstance(distribution, made):
            return {"kind": kind, **{name: _plain(getattr(distribution, name)) for name in names}}
    raise TypeError(f"a {type(distribution).__name__} has no record")


def _plain(value: Any) -> Any:
    match value:
        case np.ndarray():
            return value.tolist()
        case tuple():
            return [_fields(component) for component in value]
        case bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None  # a cap that is none
        case _:
            return _fields(value)


def read_record(path: Path) -> Distribution:
    """The distribution whose record is in a JSON file.

    Raises ``InputError`` if the file cannot be read, is no JSON, or as ``from_record``.
    """
    with naming(path):
        return from_record(json_of(path), path)


def from_record(record: object, source: object | None = None) -> Distribution:
    """The distribution that ``to_record`` described.

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
    return _read(reader)


class _Reader:
    """Takes typed fields out of a record, and knows their full names for errors."""

    def __init__(
        self, record: object, source: object | None, path: str = "", depth: int = 0
    ) -> None:
        self.path = path
        self.depth = depth
        self.source = source
        if not isinstance(record, Mapping):
            raise InputError(
                "is not a record",
                source=source,
                field=path or None,
                value=record,
                expected="named fields",
            )
        self.record = record

    def name(self, field: str) -> str:
        return f"{self.path}.{field}" if self.path else field

    def error(self, field: str, problem: str, expected: str) -> InputError:
        value = self.record.get(field)
        return InputError(
            problem, source=self.source, field=self.name(field), value=value, expected=expected
        )

    def get(self, field: str) -> Any:
        if field not in self.record:
            raise InputError("is missing", source=self.source, field=self.name(field))
        return self.record[field]

    def number(self, field: str) -> float:
        value = self.get(field)
        if not _is_number(value):
            raise self.error(field, "is not a finite number", "a finite number")
        return float(value)

    def whole(self, field: str) -> int:
        value = self.number(field)
        if value % 1.0:
            raise self.error(field, "is not whole", "a whole number")
        return int(value)

    def numbers(self, field: str) -> NDArray[np.float64]:
        values = self.get(field)
        if not isinstance(values, list) or not all(_is_number(value) for value in values):
            raise self.error(field, "is not a list of finite numbers", "finite numbers")
        return np.array(values, dtype=np.float64)

    def within(self, field: str, record: object) -> _Reader:
        return _Reader(record, self.source, self.name(field), self.depth + 1)

    def only(self, *fields: str) -> None:
        """Refuse fields that this kind does not have."""
        known = {"kind", *fields} | (set() if self.path else {"version"})
        for field in self.record:
            if field not in known:
                raise self.error(str(field), "is unknown", ", ".join(sorted(known)))


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floating point ones
        return False


def _read(reader: _Reader) -> Distribution:
    kind = reader.get("kind")
    kinds = ("histogram", *_KINDS)
    if not isinstance(kind, str):
        raise reader.error("kind", "is not a name", "one of " + ", ".join(sorted(kinds)))
    if kind not in kinds:
        raise UnknownNameError("distribution", kind, kinds)
    if reader.depth > _DEEPEST:
        raise reader.error("kind", "is nested too deeply", f"at most {_DEEPEST} levels")
    try:
        if kind == "histogram":
            return _read_histogram(reader)
        made, fields = _KINDS[kind]
        reader.only(*fields)
        return made(*(read(reader, field) for field, read in fields.items()))
    except ValueError as error:
        field = _blamed(str(error), reader)
        raise InputError(
            f"no {kind} distribution can have it",
            source=reader.source,
            field=reader.name(field),
            value=reader.record.get(field),
            expected=str(error),
        ) from error


def _blamed(words: str, reader: _Reader) -> str:
    """The field that the error of a constructor speaks of first."""
    return next((word for word in re.findall(r"\w+", words) if word in reader.record), "kind")


def _read_histogram(reader: _Reader) -> Distribution:
    reader.only(*_HISTOGRAM)
    bins = reader.whole("bins")
    centroids, counts = reader.numbers("centroids"), reader.numbers("counts")
    if not 1 <= bins <= _MOST_BINS:
        raise reader.error("bins", "is no number of bins", f"1 to {_MOST_BINS}")
    if not 1 <= centroids.size <= bins:
        raise reader.error("centroids", "are not as many as it has bins", f"1 to {bins}")
    if counts.shape != centroids.shape:
        raise reader.error("counts", "are not one per centroid", f"{centroids.size}")
    if not isinstance(reader.get("merged"), bool):
        raise reader.error("merged", "is not a truth value", "true or false")
    row = np.zeros(histogram_columns(bins))
    row[COUNT] = reader.number("count")
    row[SMALLEST], row[LARGEST] = reader.number("smallest"), reader.number("largest")
    row[USED], row[MERGED] = centroids.size, float(reader.get("merged"))
    row[CENTROIDS : CENTROIDS + centroids.size] = centroids
    first = CENTROIDS + bins + 1
    row[first : first + counts.size] = counts
    return Histogram(row, reader.number("elapsed"))


def _value(reader: _Reader, field: str) -> float:
    value = reader.number(field)
    if value < 0.0:
        raise reader.error(field, "is negative", "0 or more")
    return value


def _cap(reader: _Reader, field: str) -> float:
    return math.inf if reader.get(field) is None else reader.number(field)


def _probabilities(reader: _Reader, field: str) -> NDArray[np.float64]:
    probabilities = reader.numbers(field)
    if np.any(probabilities < 0.0):
        raise reader.error(field, "holds a negative one", "0 or more")
    return probabilities


def _inner(reader: _Reader, field: str) -> Distribution:
    return _read(reader.within(field, reader.get(field)))


def _components(reader: _Reader, field: str) -> list[Distribution]:
    records = reader.get(field)
    if not isinstance(records, list):
        raise reader.error(field, "is not a list", "records of distributions")
    return [_read(reader.within(f"{field}.{i}", record)) for i, record in enumerate(records)]


def _weights(reader: _Reader, field: str) -> NDArray[np.float64]:
    weights, components = reader.numbers(field), len(reader.get("components"))
    if weights.size != components:
        raise reader.error(field, "are not one per component", str(components))
    return weights


_number, _numbers = _Reader.number, _Reader.numbers

_Fields = Mapping[str, Callable[[_Reader, str], Any]]

_KINDS: Final[Mapping[str, tuple[type[Distribution], _Fields]]] = {
    "point": (Point, {"value": _value}),
    "uniform": (Uniform, {"low": _number, "high": _number}),
    "truncated-normal": (TruncatedNormal, {"mu": _number, "sigma": _number, "low": _number}),
    "log-normal": (
        LogNormal,
        {"mu": _number, "sigma": _number, "cap": _cap, "elapsed": _number},
    ),
    "empirical": (Empirical, {"values": _numbers, "probabilities": _probabilities}),
    "quantiles": (Quantiles, {"levels": _numbers, "values": _numbers}),
    "mixture": (Mixture, {"components": _components, "weights": _weights}),
    "shifted": (Shifted, {"inner": _inner, "amount": _number}),
}
"""What each kind is made of, but a histogram: its arguments in order, which its record names."""

_HISTOGRAM: Final = (
    "bins",
    "count",
    "smallest",
    "largest",
    "merged",
    "centroids",
    "counts",
    "elapsed",
)
