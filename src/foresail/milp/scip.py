"""SCIP through PySCIPOpt."""

from __future__ import annotations

import math
import time
from importlib import import_module
from typing import Any

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
from foresail.model.registry import NoParameters, register

_ENDED = {
    "optimal": SolveStatus.OPTIMAL,
    "gaplimit": SolveStatus.OPTIMAL,
    "infeasible": SolveStatus.INFEASIBLE,
    "unbounded": SolveStatus.UNBOUNDED,
    "inforunbd": SolveStatus.UNBOUNDED,
}


@register("solver", "scip")
class Scip:
    """Branch, cut and price by SCIP (``foresail[scip]``), on one thread."""

    capabilities = SolverCapabilities()

    def __init__(self, parameters: NoParameters) -> None:
        del parameters
        require_package("scip", "pyscipopt", "scip")

    def solve(
        self, program: Program, limits: Limits, start: NDArray[np.float64] | None = None
    ) -> Solution:
        """See ``Solver.solve``."""
        began = time.perf_counter()
        model, columns = _model(program)
        if math.isfinite(limits.time_limit_seconds):
            model.setParam("limits/time", limits.time_limit_seconds)
        if limits.most_nodes is not None:
            model.setParam("limits/nodes", limits.most_nodes)
        model.setParam("limits/gap", limits.relative_gap)
        if start is not None:
            first = model.createSol()
            for column, value in zip(columns, start.tolist(), strict=True):
                model.setSolVal(first, column, value)
            model.addSol(first)
        model.optimize()
        return _solution(model, columns, program, began)


def _model(program: Program) -> tuple[Any, list[Any]]:
    pyscipopt = import_module("pyscipopt")

    model = pyscipopt.Model()
    model.hideOutput()
    kinds = np.where(program.integer, "I", "C").tolist()
    bounds = zip(program.lower.tolist(), program.upper.tolist(), strict=True)
    columns = [
        model.addVar(
            vtype=kind,
            lb=None if low == -math.inf else low,
            ub=None if high == math.inf else high,
            obj=worth,
        )
        for kind, (low, high), worth in zip(kinds, bounds, program.objective.tolist(), strict=True)
    ]
    model.setMaximize()
    places, factors = program.entry_columns.tolist(), program.entry_values.tolist()
    begins = program.row_starts.tolist()
    for row in range(program.row_lower.size):
        at = range(begins[row], begins[row + 1])
        if not at and program.row_lower[row] <= 0.0 <= program.row_upper[row]:
            continue
        terms = pyscipopt.quicksum(factors[entry] * columns[places[entry]] for entry in at)
        low, high = float(program.row_lower[row]), float(program.row_upper[row])
        if low == high:
            model.addCons(terms == low)
        elif low > -math.inf and high < math.inf:
            model.addCons((low <= terms) <= high)
        elif low > -math.inf:
            model.addCons(terms >= low)
        elif high < math.inf:
            model.addCons(terms <= high)
    return model, columns


def _solution(model: Any, columns: list[Any], program: Program, began: float) -> Solution:
    ended = _ENDED.get(model.getStatus(), SolveStatus.STOPPED)
    bound = model.getDualbound()
    bound = math.inf if model.isInfinity(abs(bound)) else bound
    if ended in (SolveStatus.INFEASIBLE, SolveStatus.UNBOUNDED) or not model.getNSols():
        if ended not in (SolveStatus.INFEASIBLE, SolveStatus.UNBOUNDED):
            ended = SolveStatus.NOTHING_FOUND
        return nothing(ended, time.perf_counter() - began, bound)
    best = model.getBestSol()
    values = np.array([model.getSolVal(best, column) for column in columns])
    objective = program.objective_of(values)
    seconds = time.perf_counter() - began
    return Solution(ended, values, objective, max(bound, objective), seconds)
