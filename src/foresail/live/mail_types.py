"""Mail types: about what of a job mail may be asked for, by the names of ``sbatch``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from foresail.model.outcome import EndedBecause

_ALL: Final = ("BEGIN", "END", "FAIL", "REQUEUE")
_KNOWN: Final = (*_ALL, "TIME_LIMIT", "ARRAY_TASKS")
_FORM: Final = "NONE, ALL, or some of " + ", ".join(_KNOWN) + ", with commas"
_ADDRESS: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,253}")
_OF_ENDS: Final[Mapping[EndedBecause, tuple[str, ...]]] = {
    EndedBecause.COMPLETED: ("END",),
    EndedBecause.CANCELLED: ("END",),
    EndedBecause.FAILED: ("FAIL", "END"),
    EndedBecause.LIMIT: ("TIME_LIMIT", "FAIL", "END"),
    EndedBecause.PREEMPTED: ("REQUEUE",),
    EndedBecause.LOST: ("REQUEUE",),
}


def mail_types(words: str | Iterable[str]) -> str:
    """What was asked for, with commas; nothing for ``NONE``.

    Raises
    ------
    ValueError
        If there is no such type; says which there are.
    """
    text = words if isinstance(words, str) else ",".join(words)
    asked = [each.strip().upper() for each in text.split(",")]
    if asked == ["NONE"]:
        return ""
    types = dict.fromkeys(known for each in asked for known in (_ALL if each == "ALL" else (each,)))
    if not types.keys() <= set(_KNOWN):
        raise ValueError(_FORM)
    return ",".join(types)


def is_address(text: str) -> bool:
    """Whether mail may be sent there: no program takes it for an option or several words."""
    return _ADDRESS.fullmatch(text) is not None


def type_of_end(asked: str, because: EndedBecause) -> str | None:
    """The first type asked for that an end is of; None if mail about it was not asked for."""
    return next((each for each in _OF_ENDS[because] if each in asked.split(",")), None)
