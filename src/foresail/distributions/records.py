"""Distributions as records that JSON can hold, and back: exactly, or refused by name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
from foresail.distributions.point import Point
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.shifted import Shifted
from foresail.distributions.truncated_normal import TruncatedNormal
from foresail.distributions.uniform import Uniform
from foresail.model.distribution import Distribution
from foresail.model.documents import json_of
from foresail.model.errors import InputError, UnknownNameError, naming

VERSION: Final = 1
"""Of all kinds of records; a newer one is refused."""
_DEEPEST: Final = 32
_MOST_BINS: Final = 1_000_000


def to_record(distribution: Distribution) -> dict[str, Any]:
    """A record of plain values, ready for JSON; ``from_record`` makes the same distribution of it.

    Raises
    ------
    TypeError
        If the distribution is of a kind that has no records.
    """
    return {"version": VERSION, **_fields(distribution)}


def _fields(distribution: Distribution) -> dict[str, Any]:
    match distribution:
        case Point(value):
            return {"kind": "point", "value": float(value)}
        case Uniform(low, high):
            return {"kind": "uniform", "low": low, "high": high}
        case TruncatedNormal(mu, sigma, low):
            return {"kind": "truncated-normal", "mu": mu, "sigma": sigma, "low": low}
        case LogNormal(mu, sigma, cap, elapsed):
            limit = cap if math.isfinite(cap) else None
            return {
                "kind": "log-normal",
                "mu": mu,
                "sigma": sigma,
                "cap": limit,
                "elapsed": elapsed,
            }
        case Empirical():
            return {
                "kind": "empirical",
                "values": distribution.values.tolist(),
                "probabilities": distribution.probabilities.tolist(),
            }
        case Quantiles():
            return {
                "kind": "quantiles",
                "levels": distribution.levels.tolist(),
                "values": distribution.values.tolist(),
            }
        case Histogram():
            return _histogram_fields(distribution)
        case Mixture():
            return {
                "kind": "mixture",
                "components": [_fields(component) for component in distribution.components],
                "weights": distribution.weights.tolist(),
            }
        case Shifted(inner, amount):
            return {"kind": "shifted", "inner": _fields(inner), "amount": amount}
        case _:
            raise TypeError(f"a {type(distribution).__name__} has no record")


def _histogram_fields(histogram: Histogram) -> dict[str, Any]:
    return {
        "kind": "histogram",
        "bins": histogram.bins,
        "count": histogram.count,
        "smallest": histogram.smallest,
        "largest": histogram.largest,
        "merged": histogram.merged,
        "centroids": histogram.centroids.tolist(),
        "counts": histogram.counts.tolist(),
        "elapsed": histogram.elapsed,
    }


def read_record(path: Path) -> Distribution:
    """The distribution whose record is in a JSON file.

    Raises
    ------
    InputError
        If the file cannot be read, is no JSON, or as ``from_record``.
    """
    with naming(path):
        return from_record(json_of(path), path)


def from_record(record: object, source: object | None = None) -> Distribution:
    """The distribution that ``to_record`` described.

    ``source`` is where it came from, for the error.

    Raises
    ------
    InputError
        If a field is missing, unknown or holds what no distribution can have; names the field.
    UnknownNameError
        If the kind is unknown.
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
    if not isinstance(kind, str):
        raise reader.error("kind", "is not a name", "one of " + ", ".join(sorted(_READERS)))
    if kind not in _READERS:
        raise UnknownNameError("distribution", kind, _READERS)
    if reader.depth > _DEEPEST:
        raise reader.error("kind", "is nested too deeply", f"at most {_DEEPEST} levels")
    try:
        return _READERS[kind](reader)
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


def _read_point(reader: _Reader) -> Distribution:
    reader.only("value")
    value = reader.number("value")
    if value < 0.0:
        raise reader.error("value", "is negative", "0 or more")
    return Point(value)


def _read_uniform(reader: _Reader) -> Distribution:
    reader.only("low", "high")
    return Uniform(reader.number("low"), reader.number("high"))


def _read_truncated_normal(reader: _Reader) -> Distribution:
    reader.only("mu", "sigma", "low")
    return TruncatedNormal(reader.number("mu"), reader.number("sigma"), reader.number("low"))


def _read_log_normal(reader: _Reader) -> Distribution:
    reader.only("mu", "sigma", "cap", "elapsed")
    cap = math.inf if reader.get("cap") is None else reader.number("cap")
    return LogNormal(reader.number("mu"), reader.number("sigma"), cap, reader.number("elapsed"))


def _read_empirical(reader: _Reader) -> Distribution:
    reader.only("values", "probabilities")
    probabilities = reader.numbers("probabilities")
    if np.any(probabilities < 0.0):
        raise reader.error("probabilities", "holds a negative one", "0 or more")
    return Empirical(reader.numbers("values"), probabilities)


def _read_quantiles(reader: _Reader) -> Distribution:
    reader.only("levels", "values")
    return Quantiles(reader.numbers("levels"), reader.numbers("values"))


def _read_histogram(reader: _Reader) -> Distribution:
    reader.only(*_histogram_names())
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


def _histogram_names() -> tuple[str, ...]:
    return (
        "bins",
        "count",
        "smallest",
        "largest",
        "merged",
        "centroids",
        "counts",
        "elapsed",
    )


def _read_mixture(reader: _Reader) -> Distribution:
    reader.only("components", "weights")
    components = reader.get("components")
    if not isinstance(components, list):
        raise reader.error("components", "is not a list", "records of distributions")
    read = [
        _read(reader.within(f"components.{i}", component)) for i, component in enumerate(components)
    ]
    weights = reader.numbers("weights")
    if weights.size != len(read):
        raise reader.error("weights", "are not one per component", str(len(read)))
    return Mixture(read, weights)


def _read_shifted(reader: _Reader) -> Distribution:
    reader.only("inner", "amount")
    inner = _read(reader.within("inner", reader.get("inner")))
    return Shifted(inner, reader.number("amount"))


_READERS: Final[Mapping[str, Callable[[_Reader], Distribution]]] = MappingProxyType(
    {
        "point": _read_point,
        "uniform": _read_uniform,
        "truncated-normal": _read_truncated_normal,
        "log-normal": _read_log_normal,
        "empirical": _read_empirical,
        "quantiles": _read_quantiles,
        "histogram": _read_histogram,
        "mixture": _read_mixture,
        "shifted": _read_shifted,
    }
)
