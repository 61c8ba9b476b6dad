"""Checks that parameter records of generators share; each names the field that is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable

from foresail.model.errors import InputError


def require_at_least(record: object, least: float, *names: str) -> None:
    """Raise ``InputError`` unless these fields are finite and not below ``least``; None passes."""
    for name in names:
        value = getattr(record, name)
        if value is not None and not least <= value < math.inf:
            raise InputError("too small", field=name, value=value, expected=f">= {least:g}")


def require_positive(record: object, *names: str) -> None:
    """Raise ``InputError`` unless these fields are finite and above 0; None passes."""
    for name in names:
        value = getattr(record, name)
        if value is not None and not 0.0 < value < math.inf:
            raise InputError("not positive", field=name, value=value, expected="> 0")


def require_share(record: object, *names: str) -> None:
    """Raise ``InputError`` unless these fields are from 0 to 1."""
    for name in names:
        value = getattr(record, name)
        if not 0.0 <= value <= 1.0:
            raise InputError("not a share", field=name, value=value, expected="0 to 1")


def require_choice(record: object, **choices: Iterable[str]) -> None:
    """Raise ``InputError`` unless these fields are each one of its choices."""
    for name, known in choices.items():
        value = getattr(record, name)
        if value not in known:
            expected = " or ".join(known)
            raise InputError("unknown choice", field=name, value=value, expected=expected)


def require_slacks(record: object, name: str) -> None:
    """Raise ``InputError`` unless the field holds finite percentages of at least 0, one or more."""
    slacks = getattr(record, name)
    if not slacks or not all(0.0 <= slack < math.inf for slack in slacks):
        raise InputError(
            "not a set of slacks", field=name, value=slacks, expected="percentages, each >= 0"
        )


def require_racks(nodes: int, racks: int) -> None:
    """Raise ``InputError`` unless every rack can have a node."""
    if not 1 <= racks <= nodes:
        raise InputError(
            "not that many racks", field="racks", value=racks, expected=f"1 to {nodes}"
        )
