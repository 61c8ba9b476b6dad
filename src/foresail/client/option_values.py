"""Values of options as sbatch reads them, and in our own forms where these cannot be mistaken."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, Literal

from foresail.model.errors import InputError
from foresail.model.job import DEPENDENCY_FORM, DependencyKind, parse_dependencies
from foresail.traces.durations import parse_duration

_SLURM_TIME: Final = re.compile(r"(?:(\d{1,6})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?")
_SIZE: Final = re.compile(r"(\d{1,15})([KMGT]?)B?", re.IGNORECASE)
_FROM_NOW: Final = re.compile(r"now(?:\+(\d{1,9})(second|minute|hour|day|week)?s?)?")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_CLOCK_NAMES: Final = MappingProxyType(
    {"midnight": "0:00", "elevenses": "11:00", "noon": "12:00", "fika": "15:00", "teatime": "16:00"}
)
_GPUS: Final = re.compile(r"(?:gpu)?:?(\d{1,6})?")
_FINDING: Final = (
    *("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH"),
    *("LD_LIBRARY_PATH", "LANG", "LC_ALL"),
)
_HANDED_ON: Final = re.compile(r"(?!FORESAIL_|SLURM_)[A-Za-z_][A-Za-z0-9_]*")
"""With all of one's own: not the token, nor what tells a job of itself."""

_MOMENT_FORMS: Final = "such as 6h, now+2hours, 16:30, tomorrow or 2026-12-31T08:00"


@dataclass(frozen=True, slots=True)
class Memory:
    """An amount of memory of each cpu, or of the whole job."""

    bytes: int
    of: Literal["cpu", "job"]


def limit(value: str) -> float | None:
    """Seconds of a time limit; None for no limit.

    Digits, colons and a dash are sbatch's: minutes, minutes:seconds, hours:minutes:seconds, and
    days-hours[:minutes[:seconds]]. What has a unit (``90s``, ``30min``, ``1h30m``) is our own.
    """
    if value.upper() in {"UNLIMITED", "INFINITE", "0", "-1"}:
        return None
    found = _SLURM_TIME.fullmatch(value)
    if found is None:
        return _with_unit(value, "minutes, or a time such as 30min, 2:30:00 or 1-12")
    days, *given = found.groups()
    first, second, third = (0 if each is None else int(each) for each in given)
    if days is not None:
        seconds = int(days) * 86400 + first * 3600 + second * 60 + third
    elif given[2] is not None:
        seconds = first * 3600 + second * 60 + third
    else:
        seconds = first * 60 + second
    return float(seconds) if seconds else None


def limit_of(value: str) -> float:
    """Seconds of a time limit that is one; raises ``InputError`` if it is none."""
    try:
        seconds = limit(value)
    except ValueError as error:
        raise InputError(
            "no time limit", field="--time", value=value, expected=str(error)
        ) from error
    if seconds is None:
        raise InputError("no time limit", field="--time", value=value, expected="one that ends")
    return seconds


def _with_unit(value: str, expected: str) -> float:
    if not value[-1:].isalpha():
        raise ValueError(expected)
    try:
        return parse_duration(value)
    except ValueError as error:
        raise ValueError(expected) from error


def moment(value: str, now: datetime | None = None) -> float:
    """Unix seconds of a moment as sbatch takes it, or of one that is a duration from now."""
    now = now or datetime.now().astimezone()
    at = _moment(_CLOCK_NAMES.get(value, value), now)
    if at is None:
        at = now + timedelta(seconds=_with_unit(value, _MOMENT_FORMS))
    return at.timestamp()


def _moment(value: str, now: datetime) -> datetime | None:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if value in {"today", "tomorrow"}:
        return now if value == "today" else today + timedelta(days=1)
    if found := _FROM_NOW.fullmatch(value):
        return now + timedelta(**{f"{found[2] or 'second'}s": int(found[1] or 0)})
    if found := _CLOCK.fullmatch(value):
        hour, minute, second = (int(each or 0) for each in found.groups())
        try:
            at = today.replace(hour=hour, minute=minute, second=second)
        except ValueError as error:
            raise ValueError(_MOMENT_FORMS) from error
        return at if at > now else at + timedelta(days=1)
    try:
        return datetime.fromisoformat(value).astimezone() if "-" in value else None
    except ValueError as error:
        raise ValueError(_MOMENT_FORMS) from error


def job_memory(value: str) -> Memory:
    """Slurm's megabytes, or a number with K, M, G or T; all are powers of 1024."""
    return _size(value, "job")


def cpu_memory(value: str) -> Memory:
    """The same, of each cpu."""
    return _size(value, "cpu")


def _size(value: str, of: Literal["cpu", "job"]) -> Memory:
    found = _SIZE.fullmatch(value)
    if found is None or not int(found[1]):
        raise ValueError("megabytes, or a size such as 500M or 2G")
    step = "KMGT".index((found[2] or "M").upper()) + 1
    return Memory(int(found[1]) * 1024**step, of)


def whole(value: str) -> int:
    """A number of cpus, tasks or gpus."""
    if not value.isascii() or not value.isdigit():
        raise ValueError("a whole number")
    return int(value[:10])


def gpus(value: str) -> int:
    """``gpu``, ``gpu:2`` or ``2``; there is one kind of them."""
    found = _GPUS.fullmatch(value)
    if found is None or not value:
        raise ValueError("gpu:N: there are no other resources by name, and gpus are of one kind")
    return int(found[1] or 1)


def one_node(value: str) -> int:
    """The one node that a job can have."""
    if value not in {"1", "1-1"}:
        raise ValueError("1: --ntasks and --cpus-per-task say how much a job needs")
    return 1


def dependencies(value: str) -> list[str]:
    """Kinds of waiting with the jobs that are waited for, and ``singleton``."""
    if value.replace(":", "").replace("_", "").isdigit():
        value = f"{DependencyKind.AFTER_ANY}:{value}"
    words = value.split(",")
    if not all(":" in word or word == DependencyKind.SINGLETON for word in words):
        raise ValueError(DEPENDENCY_FORM)
    parse_dependencies(words)
    return words


def export(value: str) -> dict[str, str]:
    """``ALL``, ``NONE``, names of variables of one's own and ``NAME=value``, with commas."""
    words = [] if value in {"NONE", "NIL"} else value.split(",")
    everything = filter(_HANDED_ON.fullmatch, os.environ) if "ALL" in words else ()
    assigned = dict(_assignment(each) for each in words if "=" in each)
    return {**own_variables(everything), **own_variables(words), **assigned}


def own_variables(names: Iterable[str] = _FINDING) -> dict[str, str]:
    """Those of one's own variables that are set; by default those by which programs are found."""
    return {name: os.environ[name] for name in names if name in os.environ}


def names(value: str) -> list[str]:
    """Names or ids with commas."""
    return value.split(",")


def assignments(value: str) -> list[tuple[str, str]]:
    """The one ``NAME=value``, in two."""
    return [_assignment(value)]


def _assignment(value: str) -> tuple[str, str]:
    name, equals, content = value.partition("=")
    if not equals or not name:
        raise ValueError("NAME=value")
    return name, content
