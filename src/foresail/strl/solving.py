"""What to give to an expression: compile, begin with a quick plan, solve, clean up, name nodes."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from foresail.milp.program import ProgramSize
from foresail.milp.solver import Limits, SolveStatus, find_solver, relative_gap
from foresail.model.arrays import Integers
from foresail.strl.assignment import Allocation, named_nodes
from foresail.strl.branch import worths
from foresail.strl.compiling import Compiled, Formulation, compile_expression
from foresail.strl.expression import Expression
from foresail.strl.greedy import fill
from foresail.strl.supply import Supply
from foresail.strl.trimming import trimmed


@dataclass(frozen=True, slots=True)
class SolvedRequest:
    """An allocation, and how good it is known to be."""

    allocation: Allocation
    """Names of the nodes that each leaf is given, by the leaf's number; none that adds no worth.
    Leaves that start later hold their nodes provisionally."""
    value: float
    """What the allocation is worth: at least ``quick_value``."""
    bound: float
    """No allocation is worth more."""
    quick_value: float
    """What the quick plan was worth that the solver began from."""
    status: SolveStatus
    """How the solver ended. It found nothing: the quick plan is the answer."""
    size: ProgramSize
    """Columns and rows of the program."""
    build_seconds: float
    solve_seconds: float
    finish_seconds: float
    """Of compiling, of the solver, and of all the rest: quick plan, clean-up, names."""

    @property
    def gap(self) -> float:
        """By what share of its value the best allocation may be better."""
        return relative_gap(self.value, self.bound)


def solve(
    expression: Expression,
    supply: Supply,
    quantum_seconds: float,
    *,
    solver: str = "highs",
    limits: Limits | None = None,
    formulation: Formulation = "tight",
) -> SolvedRequest:
    """The best allocation of an expression that is found within the limits.

    The solver is a registered one; without limits it stops at the best. The others are as of
    ``compile_expression``.

    Raises
    ------
    InputError
        If a leaf starts before 0, the quantum is not above 0, or the solver's package is missing.
    UnknownNameError
        If there is no solver of this name.
    """
    back_end = find_solver(solver)
    began = time.perf_counter()
    compiled = compile_expression(expression, supply, quantum_seconds, formulation)
    quick = quick_plan(compiled)
    quick_value = _worth(compiled, quick)
    found = back_end.solve(compiled.program, limits or Limits(), compiled.values(quick))
    best = quick
    if found.values is not None:
        improved = _improved(compiled, compiled.given(found.values))
        if _worth(compiled, improved) > quick_value:
            best = improved
    value = _worth(compiled, best)
    allocation = named_nodes(compiled, best)
    seconds = time.perf_counter() - began
    return SolvedRequest(
        allocation=allocation,
        value=value,
        bound=max(value, min(found.bound, compiled.root.highest)),
        quick_value=quick_value,
        status=found.status,
        size=compiled.program.size,
        build_seconds=compiled.build_seconds,
        solve_seconds=found.seconds,
        finish_seconds=seconds - compiled.build_seconds - found.seconds,
    )


def quick_plan(compiled: Compiled) -> Integers:
    """Nodes for every part (a leaf's share of a partition) by greedy alone: see ``greedy.fill``."""
    once = _improved(compiled, np.zeros(compiled.part_leaf.size, np.int64))
    return _improved(compiled, once)  # with what barriers did not need


def _improved(compiled: Compiled, given: Integers) -> Integers:
    """The same without nodes that add no worth, and with more where free nodes add some."""
    return _trimmed(compiled, fill(compiled, _trimmed(compiled, given)))


def _trimmed(compiled: Compiled, given: Integers) -> Integers:
    """Take back what adds no worth; of a leaf's partitions, from the one that gives most."""
    amounts = compiled.amounts(given)
    surplus = amounts - np.array(trimmed(compiled.root, amounts.tolist()))
    given = given.copy()
    for leaf in np.flatnonzero(surplus).tolist():
        at = slice(*np.searchsorted(compiled.part_leaf, [leaf, leaf + 1]))
        for _ in range(surplus[leaf]):
            given[at.start + np.argmax(given[at])] -= 1
    return given


def _worth(compiled: Compiled, given: Integers) -> float:
    found = worths(compiled.root, compiled.amounts(given).tolist())
    return found.get(compiled.root.number, 0.0)
