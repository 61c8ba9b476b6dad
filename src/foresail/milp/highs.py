"""HiGHS, embedded: arrays go in without a modelling layer in between."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.milp.program import Program
from foresail.milp.solver import Capabilities, Limits, Solution, Status
from foresail.model.registry import NoParameters, register

_BY_ROW = 2
_MAXIMISE = -1
_FEASIBLE = 2  # of what HiGHS calls the primal solution status


@register("solver", "highs")
class Highs:
    """Branch and cut by HiGHS, on one thread: it was never quicker on two."""

    capabilities = Capabilities(
        warm_start=True, time_limit=True, gap=True, bound=True, column_addition=False
    )

    def __init__(self, parameters: NoParameters) -> None:
        del parameters

    def solve(
        self, program: Program, limits: Limits, start: NDArray[np.float64] | None = None
    ) -> Solution:
        """See ``Solver.solve``.

        Raises
        ------
        RuntimeError
            If HiGHS refuses the program or fails.
        """
        began = time.perf_counter()
        if not program.objective.size:
            return _without_columns(program, time.perf_counter() - began)
        highs = _loaded(program)
        if math.isfinite(limits.time_limit_seconds):
            highs.setOptionValue("time_limit", limits.time_limit_seconds)
        highs.setOptionValue("mip_rel_gap", limits.relative_gap)
        if start is not None:
            columns = np.arange(start.size, dtype=np.int32)
            _require_success(highs.setSolution(start.size, columns, start), "a start")
        _run(highs)
        return _solution(highs, program, time.perf_counter() - began)


def _require_success(status: Any, what: str) -> None:
    import highspy

    if status == highspy.HighsStatus.kError:
        raise RuntimeError(f"HiGHS does not accept {what}")


def _loaded(program: Program) -> Any:
    import highspy

    make: Any = highspy.Highs  # its constructor has no annotations
    highs = make()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("mip_abs_gap", 0.0)
    status = highs.passModel(
        program.objective.size,
        program.row_lower.size,
        program.entry_values.size,
        _BY_ROW,
        _MAXIMISE,
        0.0,
        program.objective,
        program.lower,
        program.upper,
        program.row_lower,
        program.row_upper,
        program.row_starts.astype(np.int32),
        program.entry_columns.astype(np.int32),
        program.entry_values,
        program.integer.astype(np.int32),
    )
    _require_success(status, "the program")
    return highs


def _run(highs: Any) -> None:
    """Solve; once more if HiGHS's workers were started for another number of threads."""
    import highspy

    if highs.run() == highspy.HighsStatus.kError:
        highspy.Highs.resetGlobalScheduler(True)
        _require_success(highs.run(), "to be run")
    if highs.getModelStatus() == highspy.HighsModelStatus.kUnboundedOrInfeasible:
        highs.setOptionValue("presolve", "off")
        _require_success(highs.run(), "to be run without presolve")


def _solution(highs: Any, program: Program, seconds: float) -> Solution:
    import highspy

    ended = highs.getModelStatus()
    nothing = -math.inf
    if ended == highspy.HighsModelStatus.kInfeasible:
        return Solution(Status.INFEASIBLE, None, nothing, nothing, seconds)
    if ended == highspy.HighsModelStatus.kUnbounded:
        return Solution(Status.UNBOUNDED, None, nothing, math.inf, seconds)
    finished = ended == highspy.HighsModelStatus.kOptimal
    found = highs.getInfo()
    if finished and not program.integer.any():
        bound = found.objective_function_value
    else:
        bound = found.mip_dual_bound if math.isfinite(found.mip_dual_bound) else math.inf
    if found.primal_solution_status != _FEASIBLE:
        return Solution(Status.NOTHING_FOUND, None, nothing, bound, seconds)
    values = np.asarray(highs.getSolution().col_value, np.float64)
    objective = program.objective_of(values)
    status = Status.OPTIMAL if finished else Status.STOPPED
    return Solution(status, values, objective, max(bound, objective), seconds)


def _without_columns(program: Program, seconds: float) -> Solution:
    """HiGHS does not judge the rows of a program without columns."""
    values = np.empty(0)
    if program.admits(values):
        return Solution(Status.OPTIMAL, values, 0.0, 0.0, seconds)
    return Solution(Status.INFEASIBLE, None, -math.inf, -math.inf, seconds)
