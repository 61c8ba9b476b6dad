"""Limits of the fields of records; what is beyond them is refused by the field's name."""

from __future__ import annotations

import math
from collections.abc import Iterable

from foresail.model.errors import InputError


def require(holds: bool, record: object, name: str, expected: str) -> None:
    """Raise ``InputError`` about this field of a record unless the condition holds."""
    if not holds:
        raise InputError("out of range", field=name, value=getattr(record, name), expected=expected)


def require_at_least(record: object, least: float, *names: str) -> None:
    """Raise ``InputError`` unless these fields are finite and not below ``least``; None passes."""
    for name in names:
        value = getattr(record, name)
        require(
            value is None or least <= value < math.inf, record, name, f"finite, {least:g} or more"
        )


def require_positive(record: object, *names: str) -> None:
    """Raise ``InputError`` unless these fields are finite and above 0; None passes."""
    for name in names:
        value = getattr(record, name)
        require(value is None or 0.0 < value < math.inf, record, name, "finite, above 0")


def require_share(record: object, *names: str) -> None:
    """Raise ``InputError`` unless these fields are from 0 to 1; None passes."""
    for name in names:
        value = getattr(record, name)
        require(value is None or 0.0 <= value <= 1.0, record, name, "from 0 to 1")


def require_each_at_least(record: object, least: float, *names: str) -> None:
    """Raise ``InputError`` unless these fields hold values, each finite and not below ``least``."""
    for name in names:
        values = getattr(record, name)
        holds = bool(values) and all(least <= value < math.inf for value in values)
        require(holds, record, name, f"one or more, each finite and {least:g} or more")


def require_each_positive(record: object, *names: str) -> None:
    """Raise ``InputError`` unless these fields hold values, each finite and above 0."""
    for name in names:
        values = getattr(record, name)
        holds = bool(values) and all(0.0 < value < math.inf for value in values)
        require(holds, record, name, "one or more, each finite and above 0")


def require_choice(record: object, **choices: Iterable[str]) -> None:
    """Raise ``InputError`` unless these fields are each one of its choices."""
    for name, known in choices.items():
        require(getattr(record, name) in known, record, name, " or ".join(known))
