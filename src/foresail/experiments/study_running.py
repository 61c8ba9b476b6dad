"""Carrying out a study: run what is missing in parallel, keep each result at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from foresail.experiments.study import GridPoint, Study
from foresail.experiments.study_results import StudyResults, key_of

Measured = Mapping[str, float]

Pool = Callable[
    [Callable[[GridPoint], Measured], Sequence[GridPoint]], Iterator[tuple[GridPoint, Measured]]
]
"""Calls a function for each case and hands over what is done, in any order."""


def carry_out_study(
    study: Study,
    results: StudyResults,
    pool: Pool,
    finished: Callable[[GridPoint, Measured], None],
) -> int:
    """Run the cases of a study whose results are not there; returns how many these were.

    Cases that have the same task share its result.

    Every result is stored in the study's folder when it arrives, and ``finished`` is called then.

    Raises
    ------
    WorkerLostError
        If a worker process dies. What was finished is kept.
    InputError
        If a case cannot be run, or its result not be stored.
    """
    missing = {
        key_of(case.task): case for case in study.cases if not results.is_finished(case.task)
    }
    for case, measured in pool(measure_case, list(missing.values())):
        results.keep(case, measured)
        finished(case, measured)
    return len(missing)


def measure_case(case: GridPoint) -> Measured:
    """What came of a case; a function of a module, so that processes can be sent it."""
    return case.task.measure()
