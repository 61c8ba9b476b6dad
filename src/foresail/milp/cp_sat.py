"""CP-SAT of OR-Tools, in a process of its own: it cannot be loaded together with HiGHS."""

from __future__ import annotations

import io
import math
import subprocess
import sys
import time
from collections.abc import Mapping
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

_HELPER = "ortools.linear_solver.python.model_builder_helper"
_PARTS = tuple(Program.__dataclass_fields__)
_SERVE = "from foresail.milp.cp_sat import serve; serve()"
_GRID = 1000
_GRACE_SECONDS = 30.0
"""What the process may take beyond the time limit, to start and to write down the program."""


@register("solver", "cp-sat")
class CpSat:
    """Clause learning by CP-SAT of OR-Tools (``foresail[cp-sat]``), on one thread.

    Its process takes a second or two to start. Columns that need not be whole are
    whole thousandths.
    """

    capabilities = SolverCapabilities()

    def __init__(self, parameters: NoParameters) -> None:
        del parameters
        require_package("cp-sat", "ortools", "cp-sat")

    def solve(
        self, program: Program, limits: Limits, start: NDArray[np.float64] | None = None
    ) -> Solution:
        """See ``Solver.solve``.

        Raises
        ------
        RuntimeError
            If the process fails.
        """
        began = time.perf_counter()
        asked = {name: getattr(program, name) for name in _PARTS}
        asked["limits"] = np.array([limits.time_limit_seconds, limits.relative_gap])
        asked["start"] = np.empty(0) if start is None else start
        most = limits.time_limit_seconds + _GRACE_SECONDS
        try:
            answer = subprocess.run(
                [sys.executable, "-c", _SERVE],
                input=_packed(asked),
                capture_output=True,
                timeout=most if math.isfinite(most) else None,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return nothing(SolveStatus.NOTHING_FOUND, time.perf_counter() - began)
        if answer.returncode:
            raise RuntimeError(f"CP-SAT failed: {answer.stderr.decode('utf-8', 'replace')[-2000:]}")
        found = _unpacked(answer.stdout)
        return _solution(program, found, time.perf_counter() - began)


def _solution(
    program: Program, found: Mapping[str, NDArray[np.float64]], seconds: float
) -> Solution:
    bound, ended = float(found["bound"]), SolveStatus(str(found["status"]))
    if not found["values"].size:
        return nothing(ended, seconds, bound)
    values = found["values"]
    objective = program.objective_of(values)
    return Solution(ended, values, objective, max(bound, objective), seconds)


def _packed(arrays: Mapping[str, Any]) -> bytes:
    memory = io.BytesIO()
    np.savez(memory, **arrays)
    return memory.getvalue()


def _unpacked(content: bytes) -> Mapping[str, NDArray[Any]]:
    with np.load(io.BytesIO(content)) as arrays:
        return {name: arrays[name] for name in arrays.files}


def serve() -> None:
    """What the process does: a program from standard input, its solution to standard output."""
    asked = _unpacked(sys.stdin.buffer.read())
    program = Program(**{name: asked[name] for name in _PARTS})
    time_limit, gap = asked["limits"].tolist()
    sys.stdout.buffer.write(_packed(_solved(program, time_limit, gap, asked["start"])))


def _solved(
    program: Program, time_limit: float, gap: float, start: NDArray[np.float64]
) -> dict[str, Any]:
    helper = import_module(_HELPER)

    solver = helper.ModelSolverHelper("sat")
    settings = (
        f"relative_gap_limit:{gap} num_workers:1 mip_max_bound:1e9 mip_var_scaling:{_GRID}"
        " mip_automatically_scale_variables:false"  # else some continuous columns become whole
    )
    solver.set_solver_specific_parameters(settings)
    if math.isfinite(time_limit):
        solver.set_time_limit_in_seconds(time_limit)
    solver.solve(_model(program, start))
    ended = solver.status()
    statuses = {
        helper.SolveStatus.OPTIMAL: SolveStatus.OPTIMAL,
        helper.SolveStatus.FEASIBLE: SolveStatus.STOPPED,
        helper.SolveStatus.NOT_SOLVED: SolveStatus.NOTHING_FOUND,
        helper.SolveStatus.INFEASIBLE: SolveStatus.INFEASIBLE,
        helper.SolveStatus.UNBOUNDED: SolveStatus.UNBOUNDED,
    }
    if ended not in statuses:
        raise RuntimeError(f"CP-SAT ends as {ended}: {solver.status_string()}")
    has_values = solver.has_solution()
    bound = solver.best_objective_bound() if solver.has_response() else math.inf
    if not has_values:
        bound = math.inf
    return {
        "status": statuses[ended].value,
        "values": np.asarray(solver.variable_values()) if has_values else np.empty(0),
        "bound": bound,
    }


def _model(program: Program, start: NDArray[np.float64]) -> Any:
    helper = import_module(_HELPER)

    model = helper.ModelBuilderHelper()
    model.add_var_array_with_bounds(program.lower, program.upper, program.integer, "x")
    for column, worth in enumerate(program.objective.tolist()):
        model.set_var_objective_coefficient(column, worth)
    model.set_maximize(True)
    columns, values = program.entry_columns.tolist(), program.entry_values.tolist()
    begins = program.row_starts.tolist()
    for row in range(program.row_lower.size):
        model.add_linear_constraint()
        model.set_constraint_lower_bound(row, float(program.row_lower[row]))
        model.set_constraint_upper_bound(row, float(program.row_upper[row]))
        for entry in range(begins[row], begins[row + 1]):
            model.add_term_to_constraint(row, columns[entry], values[entry])
    for column, value in enumerate(start.tolist()):
        model.add_hint(column, value)
    return model
