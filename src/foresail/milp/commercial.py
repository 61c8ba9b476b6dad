"""Commercial solvers through PyOptInterface: Gurobi, COPT, Xpress and Mosek, each with its licence.

PyOptInterface finds their libraries by the variables that their vendors use (``GUROBI_HOME``,
``COPT_HOME``, ``XPRESSDIR``, ``MOSEK_10_2_BINDIR``).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from foresail.milp.program import Program
from foresail.milp.solver import (
    Limits,
    Solution,
    SolverCapabilities,
    SolveStatus,
    nothing,
    require_package,
)
from foresail.model.errors import InputError
from foresail.model.registry import NoParameters, register

_ENDED = {
    "OPTIMAL": SolveStatus.OPTIMAL,
    "INFEASIBLE": SolveStatus.INFEASIBLE,
    "DUAL_INFEASIBLE": SolveStatus.UNBOUNDED,
    "INFEASIBLE_OR_UNBOUNDED": SolveStatus.UNBOUNDED,
}


@dataclass(frozen=True, slots=True)
class Engine:
    """What differs from vendor to vendor."""

    name: str
    """Of the vendor's solver, and of its module in PyOptInterface."""
    gap_control: str | None = None
    """What the vendor calls the relative gap at which to stop, if PyOptInterface does not know."""
    takes_start: bool = True
    """Whether values to begin from can be handed over."""
    tells_bound: bool = False
    """Whether PyOptInterface hands the bound out (for COPT it gives the objective instead)."""


class CommercialSolver:
    """What the four have in common."""

    engine: ClassVar[Engine]
    capabilities = SolverCapabilities()

    def __init__(self, parameters: NoParameters) -> None:
        del parameters
        name = self.engine.name
        require_package(name, "pyoptinterface", "commercial")
        if not _interface(self.engine).is_library_loaded():
            raise InputError(
                f"the library of solver {name!r} is not found",
                field="solver",
                expected="the vendor's library and licence, or another solver",
            )

    def solve(
        self, program: Program, limits: Limits, start: NDArray[np.float64] | None = None
    ) -> Solution:
        """See ``Solver.solve``."""
        began = time.perf_counter()
        interface, common = _interface(self.engine), import_module("pyoptinterface")
        model = interface.Model()
        model.set_model_attribute(common.ModelAttribute.Silent, True)
        model.set_model_attribute(common.ModelAttribute.NumberOfThreads, 1)
        if math.isfinite(limits.time_limit_seconds):
            model.set_model_attribute(common.ModelAttribute.TimeLimitSec, limits.time_limit_seconds)
        if self.engine.gap_control is None:
            model.set_model_attribute(common.ModelAttribute.RelativeGap, limits.relative_gap)
        else:
            model.set_raw_control(self.engine.gap_control, limits.relative_gap)
        columns = _fill(model, program, common)
        if start is not None and self.engine.takes_start:
            for column, value in zip(columns, start.tolist(), strict=True):
                first = common.VariableAttribute.PrimalStart
                model.set_variable_attribute(column, first, value)
        model.optimize()
        return _solution(model, columns, program, self.engine, limits.relative_gap, began)


@register("solver", "gurobi")
class Gurobi(CommercialSolver):
    """Branch and cut by Gurobi (``foresail[commercial]`` and a licence), on one thread."""

    engine = Engine("gurobi", tells_bound=True)


@register("solver", "copt")
class Copt(CommercialSolver):
    """Branch and cut by COPT (``foresail[commercial]`` and a licence), on one thread."""

    engine = Engine("copt")


@register("solver", "xpress")
class Xpress(CommercialSolver):
    """Branch and cut by Xpress (``foresail[commercial]`` and a licence), on one thread."""

    engine = Engine("xpress", "XPRS_MIPRELSTOP", takes_start=False, tells_bound=True)


@register("solver", "mosek")
class Mosek(CommercialSolver):
    """Branch and cut by Mosek (``foresail[commercial]`` and a licence), on one thread."""

    engine = Engine("mosek")


def _interface(engine: Engine) -> Any:
    return import_module(f"pyoptinterface.{engine.name}")


def _fill(model: Any, program: Program, common: Any) -> list[Any]:
    """Give the model the program's columns, rows and objective."""
    domains = (common.VariableDomain.Continuous, common.VariableDomain.Integer)
    columns = [
        model.add_variable(lb=low, ub=high, domain=domains[whole])
        for low, high, whole in zip(
            program.lower.tolist(), program.upper.tolist(), program.integer.tolist(), strict=True
        )
    ]
    worth = common.ScalarAffineFunction()
    for column, each in zip(columns, program.objective.tolist(), strict=True):
        worth.add_term(column, each)
    model.set_objective(worth, common.ObjectiveSense.Maximize)
    places, factors = program.entry_columns.tolist(), program.entry_values.tolist()
    begins = program.row_starts.tolist()
    senses = common.ConstraintSense
    for row in range(program.row_lower.size):
        low, high = float(program.row_lower[row]), float(program.row_upper[row])
        at = range(begins[row], begins[row + 1])
        if not at and low <= 0.0 <= high:
            continue
        terms = common.ScalarAffineFunction()
        for entry in at:
            terms.add_term(columns[places[entry]], factors[entry])
        if low == high:
            model.add_linear_constraint(terms, senses.Equal, low)
            continue
        if high < math.inf:
            model.add_linear_constraint(terms, senses.LessEqual, high)
        if low > -math.inf:
            model.add_linear_constraint(terms, senses.GreaterEqual, low)
    return columns


def _solution(
    model: Any,
    columns: list[Any],
    program: Program,
    engine: Engine,
    relative_gap: float,
    began: float,
) -> Solution:
    common = import_module("pyoptinterface")
    attribute = common.ModelAttribute
    ended = _ENDED.get(
        model.get_model_attribute(attribute.TerminationStatus).name, SolveStatus.STOPPED
    )
    has_values = (
        model.get_model_attribute(attribute.PrimalStatus) is common.ResultStatusCode.FEASIBLE_POINT
    )
    impossible = ended in (SolveStatus.INFEASIBLE, SolveStatus.UNBOUNDED)
    if impossible or not has_values:
        ended = ended if impossible else SolveStatus.NOTHING_FOUND
        return nothing(ended, time.perf_counter() - began)
    values = np.array([model.get_value(column) for column in columns])
    objective = program.objective_of(values)
    within = relative_gap if program.integer.any() else 0.0
    bound = objective + within * abs(objective) if ended is SolveStatus.OPTIMAL else math.inf
    if engine.tells_bound and program.integer.any():
        bound = float(model.get_model_attribute(attribute.ObjectiveBound))
    return Solution(ended, values, objective, max(bound, objective), time.perf_counter() - began)
