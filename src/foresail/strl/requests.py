"""From a job to its expression: the canonical shapes of TetriSched, over the starts of a window.

Every shape is a choice (``max``) between options; an option that is worth nothing is left out, and
None is what is left of a job without options.
Source: TetriSched (EuroSys 2016), sections 4.3 and 4.4; spec tetrisched sections 4.3, 5, 8.2, 8.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from foresail.model.errors import InputError
from foresail.model.value import ValueFunction
from foresail.strl.expression import (
    Barrier,
    Expression,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
)

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class StartWindow:
    """The starts that a plan considers: one a slot from now on, as far as it plans ahead.

    Parameters
    ----------
    now_seconds
        The first slot.
    plan_ahead_seconds
        How far behind it the last start may be; 0 for starts at once only.
    slot_seconds
        From one start to the next.
    earliest_start_seconds, latest_end_seconds
        What the job itself allows: its reservation's begin, its deadline.
    """

    now_seconds: float
    plan_ahead_seconds: float
    slot_seconds: float
    earliest_start_seconds: float = -math.inf
    latest_end_seconds: float = math.inf

    def __post_init__(self) -> None:
        for field, holds, expected in (
            ("now_seconds", math.isfinite(self.now_seconds), "a time"),
            ("plan_ahead_seconds", 0.0 <= self.plan_ahead_seconds < math.inf, "not negative"),
            ("slot_seconds", 0.0 < self.slot_seconds < math.inf, "above 0"),
        ):
            if not holds:
                value = getattr(self, field)
                raise InputError("no window", field=field, value=value, expected=expected)

    def starts(self, duration_seconds: float) -> tuple[float, ...]:
        """The starts from which so long a run ends in time, in order."""
        earliest = max(self.earliest_start_seconds - self.now_seconds, 0.0)
        latest = min(
            self.plan_ahead_seconds, self.latest_end_seconds - duration_seconds - self.now_seconds
        )
        if earliest > latest + _ROUNDING * self.slot_seconds:
            return ()
        first = math.ceil(earliest / self.slot_seconds - _ROUNDING)
        last = math.floor(latest / self.slot_seconds + _ROUNDING)
        return tuple(self.now_seconds + slot * self.slot_seconds for slot in range(first, last + 1))


@dataclass(frozen=True, slots=True)
class Gang:
    """What a job asks for wherever it runs.

    Parameters
    ----------
    tasks
        Nodes it needs at once, at least 1.
    duration_seconds
        How long it runs where it runs best, above 0.
    value
        What completing at a time is worth.
    window
        When it may start.
    """

    tasks: int
    duration_seconds: float
    value: ValueFunction
    window: StartWindow

    def __post_init__(self) -> None:
        for field, holds, expected in (
            ("tasks", self.tasks >= 1, "at least 1"),
            ("duration_seconds", 0.0 < self.duration_seconds < math.inf, "above 0"),
        ):
            if not holds:
                value = getattr(self, field)
                raise InputError("not a gang", field=field, value=value, expected=expected)

    def slower(self, times: float) -> Gang:
        """The same job where it runs this many times longer."""
        return replace(self, duration_seconds=self.duration_seconds * times)


Nodes: TypeAlias = frozenset[str]


def unconstrained(gang: Gang, nodes: Nodes) -> Expression | None:
    """Any nodes will do: ``nCk`` of all of them, one for each start."""
    return _choice(_gangs(gang, nodes))


def within(gang: Gang, sets: Iterable[Nodes]) -> Expression | None:
    """All nodes from one of several sets, whichever it is; sets that are too small are left out.

    One set (the nodes with a gpu) is the fast half of the source's GPU job, one for each rack that
    of its MPI job.
    """
    return _choice([option for nodes in sets for option in _gangs(gang, nodes)])


def spread(gang: Gang, domains: Sequence[Nodes]) -> Expression | None:
    """One node of every failure domain: ``min`` of an ``nCk`` of one node in each.

    Raises
    ------
    InputError
        If there are not as many domains as tasks; ``at_most_per_domain`` chooses among more.
    """
    if len(domains) != gang.tasks:
        raise InputError(
            "not one task for every domain",
            field="tasks",
            value=gang.tasks,
            expected=f"{len(domains)}, the number of domains",
        )

    def option(start: float, value: float) -> Expression:
        one_each = tuple(
            NChooseK(domain, 1, start, gang.duration_seconds, value) for domain in domains
        )
        return one_each[0] if len(one_each) == 1 else Minimum(one_each)

    return _choice(_options(gang, option))


def at_most_per_domain(gang: Gang, domains: Sequence[Nodes], most: int) -> Expression | None:
    """All tasks, but no more than ``most`` of them in any one failure domain.

    A node is worth 1, so that a ``barrier`` counts them; ``scale`` makes the count the job's value.

    Raises
    ------
    InputError
        If ``most`` is below 1.
    """
    if most < 1:
        raise InputError("no room", field="most", value=most, expected="at least 1")
    room = [min(most, len(domain)) for domain in domains]
    if sum(room) < gang.tasks:
        return None

    def option(start: float, value: float) -> Expression:
        parts = tuple(
            LinearNChooseK(domain, count, start, gang.duration_seconds, float(count))
            for domain, count in zip(domains, room, strict=True)
        )
        whole = parts[0] if len(parts) == 1 else Sum(parts)
        return Scale(Barrier(whole, float(gang.tasks)), value / gang.tasks)

    return _choice(_options(gang, option))


def elastic(gang: Gang, nodes: Nodes) -> Expression | None:
    """Up to ``gang.tasks`` nodes for the same time, worth their share: ``LnCk`` for each start."""

    def option(start: float, value: float) -> Expression:
        return LinearNChooseK(nodes, gang.tasks, start, gang.duration_seconds, value)

    return _choice(_options(gang, option) if nodes else [])


def either(choices: Iterable[Expression | None]) -> Expression | None:
    """The best of several expressions, of which some may have no options."""
    return _choice([choice for choice in choices if choice is not None])


def _choice(options: Sequence[Expression]) -> Expression | None:
    if len(options) < 2:
        return options[0] if options else None
    return Maximum(tuple(options))


def _gangs(gang: Gang, nodes: Nodes) -> list[Expression]:
    """``nCk`` for each start; none if the set is too small."""
    if gang.tasks > len(nodes):
        return []

    def option(start: float, value: float) -> Expression:
        return NChooseK(nodes, gang.tasks, start, gang.duration_seconds, value)

    return _options(gang, option)


def _options(gang: Gang, option: Callable[[float, float], Expression]) -> list[Expression]:
    """An option for each start from which the run is worth something."""
    duration, latest = gang.duration_seconds, gang.window.latest_end_seconds
    worth = [  # the sum of a start and a length may be a hair beyond the latest end
        (start, _worth(gang.value, min(start + duration, latest)))
        for start in gang.window.starts(duration)
    ]
    return [option(start, value) for start, value in worth if value > 0.0]


def _worth(value: ValueFunction, completion_seconds: float) -> float:
    worth = value.at(completion_seconds)
    if not 0.0 <= worth < math.inf:
        problem = f"the value of completing at {completion_seconds:g} s"
        raise InputError(problem, field="value", value=worth, expected="a number, not negative")
    return worth
