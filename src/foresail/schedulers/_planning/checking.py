"""Refuses beliefs that make no numbers: a plan made with one would be wrong without a sign."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foresail.model.errors import InputError
from foresail.model.view import ClusterView
from foresail.schedulers._planning.demands import Demands


def require_runtimes(view: ClusterView) -> None:
    """Every waiting job has a runtime to plan with.

    Raises
    ------
    InputError
        If one is not a number; the message names the job.
    """
    for each in view.pending:
        if math.isnan(each.planned_seconds):
            _refuse("predicted runtime", each.job.job_id, each.planned_seconds)


def require_numbers(demands: Demands) -> None:
    """Every expected worth and consumption is a finite number.

    Raises
    ------
    InputError
        If one is not; the message names the job.
    """
    problem = demands.problem
    job_ids = [demands.pending[at].job.job_id for at in problem.group_job]
    _require("expected worth", problem.worth, job_ids)
    _require("expected consumption", problem.consumption, job_ids)


def _require(what: str, numbers: NDArray[np.float64], job_ids: Sequence[str]) -> None:
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1)))
        _refuse(what, job_ids[row], float(numbers[row][wrong[row]][0]))


def _refuse(what: str, job_id: str, value: float) -> None:
    raise InputError(
        f"nothing can be planned for job {job_id}",
        field=what,
        value=value,
        expected="a finite number",
    )
