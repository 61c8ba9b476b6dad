"""A published study as a declaration: what is run, what is measured, and what was claimed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final, Literal, Protocol

from foresail.model.errors import InputError, require, require_at_least, require_positive
from foresail.model.registry import Entry, find
from foresail.model.short_form import PlugIn, make_part, name_and_settings, part_of
from foresail.model.words import duration, number, percent
from foresail.traces.filtering import apply_filters, choices_of
from foresail.traces.folder import load_workload
from foresail.traces.generating import generate
from foresail.traces.workload import Workload


class Task(Protocol):
    """One independent run: a frozen dataclass of plain values, which say all of the result."""

    def measure(self) -> Mapping[str, float]:
        """Carry it out; what came of it, by name (NaN where there is nothing to measure)."""
        ...


@dataclass(frozen=True, slots=True)
class GridPoint:
    """A point of a study's grid."""

    group: str
    """Which of the study's settings, such as a workload; each has figures of its own."""
    x: float | None
    """Where on the figures' axis; None in groups that have none."""
    system: str
    """Who is compared with whom."""
    seed: int
    """Systems of one seed meet the same chance, so that their difference is paired."""
    task: Task
    """How it is run."""


def points_at(group: str, x: float | None, seed: int, tasks: Mapping[str, Task]) -> list[GridPoint]:
    """One place of a grid with one seed: what each of the systems runs there."""
    return [GridPoint(group, x, system, seed, task) for system, task in tasks.items()]


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that runs measure: its name in the results, and how people call it."""

    name: str
    label: str

    kind: Literal["share", "duration", "number"] = "number"
    """``share`` of one, ``duration`` in seconds, or a plain ``number``."""

    def said(self, value: float | None) -> str:
        """A value in words."""
        return {"share": percent, "duration": duration, "number": number}[self.kind](value)


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a measure over some cases of each seed."""

    measure: str
    system: str
    """Of what, and whose."""
    group: str | None = None
    """In which group; None for all of them."""
    x: tuple[float, ...] = ()
    """At which points; none for all of them."""


@dataclass(frozen=True, slots=True)
class Bound:
    """``less <= factor * more + margin``."""

    less: Mean | float
    more: Mean | float
    """Means, or numbers where a claim states one."""
    factor: float = 1.0
    margin: float = 0.0
    """What is added to the bare order; a factor of 0.4 means 60 % less."""


@dataclass(frozen=True, slots=True)
class PublishedClaim:
    """Published claim in words, with its numbers, and its result here."""

    published: str
    bound: Bound


@dataclass(frozen=True, slots=True)
class BestMap:
    """Table of who is best where: the study's axis across, groups of it downwards."""

    title: str
    """The question that it answers."""
    measure: str
    """Of which the least mean is best."""
    axis: str
    """What the groups differ in."""
    rows: Mapping[str, str]
    """What the axis says of each group, by the group."""


@dataclass(frozen=True)
class Study:
    """All that is known of a study before it is run."""

    title: str
    """The question it answers."""
    source: str
    """The publication and its figures."""
    measures: tuple[Measure, ...]
    """What tables show."""
    drawn: tuple[str, ...]
    """Names of the measures that have figures."""
    cases: tuple[GridPoint, ...]
    """The grid."""
    claims: tuple[PublishedClaim, ...]
    """What was published."""
    axis: str = ""
    """What ``x`` means, as people call it; empty where no case has one."""
    notes: tuple[str, ...] = ()
    """Where this study differs from the published one, and what its source leaves open."""
    maps: tuple[BestMap, ...] = ()
    """Tables of who is best where."""

    def __post_init__(self) -> None:
        if not self.cases:
            raise InputError("the study has nothing to run", expected="seeds, systems and points")

    def measure(self, name: str) -> Measure:
        """The measure of this name."""
        return next(each for each in self.measures if each.name == name)

    @property
    def systems(self) -> tuple[str, ...]:
        """Return the systems that are compared, in order of appearance."""
        return tuple(dict.fromkeys(case.system for case in self.cases))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups, in order of appearance."""
        return tuple(dict.fromkeys(case.group for case in self.cases))


@dataclass(frozen=True, slots=True)
class StudyParameters:
    """Parameters that every study has; the defaults are the published size."""

    QUICK: ClassVar[Mapping[str, str]] = {}
    """Settings that make it a study of some minutes, as text."""
    MINUTES: ClassVar[tuple[float, float]] = (0.0, 0.0)
    """How long that takes, and the full size, roughly, on two cores that do nothing else."""
    POSITIVE: ClassVar[tuple[str, ...]] = ()
    """Names of the parameters that have to be above 0."""
    FILES: ClassVar[tuple[str, ...]] = ()
    """Names of the parameters that are files; refused before anything is run if they are not."""

    seeds: int = 5
    """How many seeds, counted from 0."""

    def __init_subclass__(cls, quick: str = "", minutes: tuple[float, float] | None = None) -> None:
        """Say what is quick (``seeds=3 jobs=100``) beyond the class above, and ``MINUTES``."""
        cls.QUICK = {**cls.QUICK, **dict(each.split("=", 1) for each in quick.split())}
        cls.MINUTES = cls.MINUTES if minutes is None else minutes

    def __post_init__(self) -> None:
        require_at_least(self, 1, "seeds")
        require_positive(self, *self.POSITIVE)
        for name in self.FILES:
            path = getattr(self, name)
            if path is not None and not path.is_file():
                raise InputError("there is no such file", source=path, field=name)


def require_log(log: str) -> None:
    """Raise ``InputError`` unless a study that needs a real log was given one that exists."""
    if not log:
        raise InputError("the study needs a real log", field="log", expected="--log PATH")
    if not Path(log).exists():
        raise InputError("there is no such log", field="log", source=log)


def sizes_of(entry: Entry) -> type[StudyParameters]:
    """The parameters record of a registered study, which says how long it takes.

    Raises ``InputError`` if it is not one of a study.
    """
    if not issubclass(entry.parameters, StudyParameters):
        raise InputError(
            "the parameters of a study have to say how long it takes",
            value=entry.parameters.__name__,
            expected="a subclass of StudyParameters",
        )
    return entry.parameters


def apart_from_full(part: PlugIn) -> tuple[str, ...]:
    """In which parameters a study differs from its full size, of those that its quick size sets.

    Raises ``InputError`` if it is not a study.
    """
    sizes = sizes_of(part.entry)
    full = {each.name: each.default for each in fields(sizes)}
    return tuple(name for name in sizes.QUICK if getattr(part.parameters, name) != full[name])


def study_part(name: str, settings: Sequence[str], *, quick: bool) -> PlugIn:
    """A registered study with settings (``parameter=value``), which go before those of its size.

    Raises ``UnknownNameError`` if there is no such study, or it has no such parameter;
    ``InputError`` if a setting is malformed or does not fit.
    """
    entry = find("study", name)
    sizes = sizes_of(entry)
    given = [name_and_settings(setting)[0].partition("=")[0].strip() for setting in settings]
    preset = sizes.QUICK if quick else {}
    kept = [f"{key}={value}" for key, value in preset.items() if key not in given]
    return make_part(entry, [*kept, *settings])


_FILTERS: Final = ("drop_no_processors", "fill_processors", "drop_no_runtime")
"""How ``foresail cloud`` cleans a log."""


@lru_cache(maxsize=4)
def generated(text: str, seed: int) -> Workload:
    """The workload of a generator's short form, such as ``e2e(hours=2,load=1.6)``.

    Raises ``InputError`` if the short form is malformed, or a parameter or the seed is out of its
    range; ``UnknownNameError`` if there is no such generator.
    """
    part = part_of("generator", text)
    return generate(part.entry.name, part.parameters, seed)


@lru_cache(maxsize=1)
def log_of(text: str, seed: int) -> Workload:
    """The jobs of a log's path or of a generator's short form; kept for the next run.

    Raises ``InputError`` if the log cannot be read, or the short form is malformed;
    ``UnknownNameError`` if there is no such generator.
    """
    if not Path(text).exists():
        return generated(text, seed)
    return apply_filters(load_workload(Path(text)), choices_of(_FILTERS))


def require_each_positive(record: object, *names: str) -> None:
    """Raise ``InputError`` unless these fields hold values, each finite and above 0."""
    for name in names:
        values = getattr(record, name)
        holds = bool(values) and all(0.0 < value < math.inf for value in values)
        require(holds, record, name, "one or more, each finite and above 0")
