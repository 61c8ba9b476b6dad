"""What planning may cost, counted as work, so that equal questions get equal answers anywhere.

Work is given in seconds of the machine on which the costs here were measured (x86-64, 2026): a plan
gets as much work as that one does in the time that the plan may take. Where a step costs more or
less than is counted, that is so on every machine. The clock only guards against disaster.
"""

from __future__ import annotations

import time
from typing import Final

from foresail.schedulers._planning.problem import Problem

_PATIENCE: Final = 20.0
"""How many times longer than counted work may take before the clock ends it."""
_LEAST_SECONDS: Final = 1.0
"""What the clock allows in any case."""
_GROUP: Final = 2e-5
_GROUP_SLOT: Final = 8e-7
_LEAST_GROUPS: Final = 2500
"""Any cycle looks at so many, if there are: few jobs are left out by no budget."""
_CREDIT: Final = 1e-6
_LEAST_CREDITS: Final = 250_000
"""Any cycle knows so much of what victims give back: a victim, a row and a slot are one."""
_LOOK: Final = 1e-8
_PRICE: Final = 2.4e-7
_ENTRY: Final = 8.5e-8
_BUILT_ENTRY: Final = 4e-7
_ITERATION_ROW: Final = 1e-8
_CHANGE: Final = 1e-6
_CHANGE_PLACE: Final = 1.5e-8
_CHANGE_JOB: Final = 5e-9
_PROGRAM_ENTRY: Final = 4e-6
_CHECK: Final = 0.01
_CHECK_ENTRY: Final = 1e-7


class Budget:
    """Work that is left to spend; ``left`` is 0 or less when it is spent."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self._end = time.perf_counter() + max(_PATIENCE * seconds, _LEAST_SECONDS)

    def spend(self, seconds: float) -> None:
        """Count some work."""
        self.left -= seconds

    def keep(self, share: float) -> None:
        """Spend no more than this share of what is left."""
        self.left *= min(share, 1.0)

    def set_aside(self, share: float) -> float:
        """Keep a share of what is left for later; how much that is."""
        aside = max(share * self.left, 0.0)
        self.left -= aside
        return aside

    @property
    def guard_seconds(self) -> float:
        """How long anything may take before it is a disaster."""
        return max(self._end - time.perf_counter(), 0.0)

    @property
    def is_spent(self) -> bool:
        """Whether there is nothing left, or the clock has come first."""
        return self.left <= 0.0 or self.guard_seconds <= 0.0


def groups_within(seconds: float, slots: int) -> int:
    """How many groups (jobs in sets of places) a cycle looks at.

    That is what they cost from view to decision, but for linear programs and searches, which end
    when a budget is spent.
    """
    return max(int(min(seconds / (_GROUP + _GROUP_SLOT * slots), 1e9)), _LEAST_GROUPS)


def credits_within(seconds: float) -> int:
    """Of how many victims, rows and slots a cycle knows what is given back."""
    return max(int(min(seconds / _CREDIT, 1e9)), _LEAST_CREDITS)


def of_looking(problem: Problem) -> float:
    """The work of looking at every option once."""
    return _LOOK * problem.worth.size


def of_pricing(problem: Problem) -> float:
    """The work of saying what prices make of every option."""
    return _PRICE * problem.worth.size


def of_building(entries: int) -> float:
    """The work of making a linear program of so many entries."""
    return _BUILT_ENTRY * entries


def of_solving(entries: int, rows: int, iterations: int) -> float:
    """The work of a linear program of so many entries and rows, in so many iterations."""
    return _ENTRY * entries + _ITERATION_ROW * rows * iterations


def iterations_within(seconds: float, rows: int) -> int:
    """How many iterations of a linear program of so many rows a budget allows, at least one."""
    return max(int(min(seconds / (_ITERATION_ROW * max(rows, 1)), 1e9)), 1)


def of_searching(problem: Problem, changes: int) -> float:
    """The work of so many changes of a plan."""
    of_all = _CHANGE_PLACE * problem.capacity.size + _CHANGE_JOB * problem.jobs
    return changes * (_CHANGE + of_all)


def of_program(entries: int, checks: int) -> float:
    """The work of a program of so many entries, with so many looks at its limits."""
    return _PROGRAM_ENTRY * entries + checks * (_CHECK + _CHECK_ENTRY * entries)


def checks_within(seconds: float, entries: int) -> int:
    """How many looks at its limits a budget allows a program, 0 if not even a beginning."""
    left = seconds - _PROGRAM_ENTRY * entries
    return max(int(min(left / (_CHECK + _CHECK_ENTRY * entries), 1e9)), 0)
