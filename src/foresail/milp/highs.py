"""HiGHS, embedded: arrays go in without a modelling layer in between."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from foresail.milp import solver
from foresail.model.distribution import Floats, Integers
from foresail.model.registry import NoParameters, register

_SLOW_RULES = 0b1_1111_1111_1110_0000
"""Presolve rules from dominated columns (bit 5) on, as HiGHS numbers them, which are left out.

On a plan of 50 jobs on 256 nodes they took three seconds to remove a tenth of what the others left,
without a look at the time limit; without them, three seconds gave a bound and ten a better plan.
"""
_UNCOUNTED = "mip_heuristic_run_root_reduced_cost"
"""Programs of the options of low reduced cost, solved within the root without a look at its limits.

Of six plans of 60 jobs that took 1.2 to 5.8 s of processor time, in 34 to 58 looks, they found
nothing that was not found without them in 1.0 to 1.9 s.
"""
_BY_ROW = 2
_MAXIMISE = -1
_FEASIBLE = 2  # of what HiGHS calls the primal solution status


@register("solver", "highs")
class Highs(solver.Solver):
    """Branch and cut by HiGHS, on one thread: it was never quicker on two."""

    def __init__(self, parameters: NoParameters) -> None:
        del parameters

    def solve(
        self, program: solver.Program, limits: solver.Limits, start: Floats | None = None
    ) -> solver.Solution:
        """See ``Solver.solve``.

        Raises ``RuntimeError`` if HiGHS refuses the program or fails.
        """
        began = time.perf_counter()
        if not program.objective.size:
            return _without_columns(program, time.perf_counter() - began)
        highs = _loaded(program)
        if math.isfinite(limits.time_limit_seconds):
            highs.setOptionValue("time_limit", limits.time_limit_seconds)
        if limits.most_nodes is not None:
            highs.setOptionValue("mip_max_nodes", limits.most_nodes)
        highs.setOptionValue("mip_rel_gap", limits.relative_gap)
        if start is not None:
            columns = np.arange(start.size, dtype=np.int32)
            _require_success(highs.setSolution(start.size, columns, start), "a start")
        checks = _Checks(limits.most_checks)
        if limits.most_checks is not None:
            highs.cbMipInterrupt += checks
            highs.setOptionValue(_UNCOUNTED, False)
        _run(highs)
        found = _solution(highs, program, time.perf_counter() - began)
        return replace(found, checks=checks.count)

    def relaxation(self, program: solver.Program) -> _HighsRelaxation:
        """See ``Solver.relaxation``."""
        return _HighsRelaxation(program)


class _Checks:
    """Counts how often branch and cut looks at its limits, and ends it after so many times.

    The root of a tree has a few dozen, one for every round of cuts: on hard programs it is most of
    the work, and no number of nodes ends it.
    """

    def __init__(self, most: int | None) -> None:
        self.count = 0
        self._most = math.inf if most is None else most

    def __call__(self, event: Any) -> None:
        self.count += 1
        if self.count > self._most:
            event.data_in.user_interrupt = True


class _HighsRelaxation:
    """A linear program that stays within HiGHS, and with it the basis of the last solve."""

    def __init__(self, program: solver.Program) -> None:
        self._highs = _loaded(replace(program, integer=np.zeros_like(program.integer)))

    def add_columns(
        self, objective: Floats, upper: Floats, starts: Integers, rows: Integers, values: Floats
    ) -> None:
        """See ``Relaxation.add_columns``."""
        status = self._highs.addCols(
            objective.size,
            objective,
            np.zeros(objective.size),
            upper,
            values.size,
            starts[:-1].astype(np.int32),
            rows.astype(np.int32),
            values,
        )
        _require_success(status, "more columns")

    def solve(
        self, most_iterations: int | None = None, time_limit_seconds: float = math.inf
    ) -> solver.RelaxedSolution:
        """See ``Relaxation.solve``."""
        if most_iterations is not None:
            self._highs.setOptionValue("simplex_iteration_limit", most_iterations)
        used = self._highs.getRunTime()  # the limit counts from the first solve on
        self._highs.setOptionValue("time_limit", used + time_limit_seconds)
        _run(self._highs)
        ended = _status(self._highs)
        iterations = self._highs.getInfo().simplex_iteration_count
        if ended != solver.SolveStatus.OPTIMAL:
            return solver.RelaxedSolution(ended, None, None, math.inf, iterations)
        found = self._highs.getSolution()
        values, prices = np.asarray(found.col_value), np.asarray(found.row_dual)
        objective = self._highs.getInfo().objective_function_value
        return solver.RelaxedSolution(ended, values, prices, objective, iterations)


def _require_success(status: Any, what: str) -> None:
    import highspy

    if status == highspy.HighsStatus.kError:
        raise RuntimeError(f"HiGHS does not accept {what}")


def _loaded(program: solver.Program) -> Any:
    import highspy

    make: Any = highspy.Highs  # its constructor has no annotations
    highs = make()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("mip_abs_gap", 0.0)
    highs.setOptionValue("presolve_rule_off", _SLOW_RULES)
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


def _status(highs: Any) -> solver.SolveStatus:
    import highspy

    known = {
        highspy.HighsModelStatus.kOptimal: solver.SolveStatus.OPTIMAL,
        highspy.HighsModelStatus.kInfeasible: solver.SolveStatus.INFEASIBLE,
        highspy.HighsModelStatus.kUnbounded: solver.SolveStatus.UNBOUNDED,
    }
    return known.get(highs.getModelStatus(), solver.SolveStatus.STOPPED)


def _solution(highs: Any, program: solver.Program, seconds: float) -> solver.Solution:
    ended = _status(highs)
    if ended in (solver.SolveStatus.INFEASIBLE, solver.SolveStatus.UNBOUNDED):
        return solver.nothing(ended, seconds)
    finished = ended == solver.SolveStatus.OPTIMAL
    found = highs.getInfo()
    if finished and not program.integer.any():
        bound = found.objective_function_value
    else:
        bound = found.mip_dual_bound if math.isfinite(found.mip_dual_bound) else math.inf
    if found.primal_solution_status != _FEASIBLE:
        return solver.nothing(solver.SolveStatus.NOTHING_FOUND, seconds, bound)
    values = np.asarray(highs.getSolution().col_value, np.float64)
    objective = program.objective_of(values)
    return solver.Solution(ended, values, objective, max(bound, objective), seconds)


def _without_columns(program: solver.Program, seconds: float) -> solver.Solution:
    """HiGHS does not judge the rows of a program without columns."""
    values = np.empty(0)
    if program.admits(values):
        return solver.Solution(solver.SolveStatus.OPTIMAL, values, 0.0, 0.0, seconds)
    return solver.nothing(solver.SolveStatus.INFEASIBLE, seconds)
