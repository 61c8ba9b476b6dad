"""Carrying out a study; and its folder: one file per finished run.

A file is named by a digest of all that determines the run, so that what is there is not run again,
whatever was interrupted; more seeds or points, or another study with runs in common, cost only
their own runs. Each study's report has a folder of its own.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from foresail import __version__
from foresail.model.errors import InputError
from foresail.model.whole_files import make_folder, write_whole
from foresail_studies.study import GridPoint, Study, Task

_DIGITS = 32

Measured = Mapping[str, float]

Pool = Callable[
    [Callable[[GridPoint], Measured], Sequence[GridPoint]], Iterator[tuple[GridPoint, Measured]]
]
"""Calls a function for each case and hands over what is done, in any order."""


def key_of(task: Task) -> str:
    """Digest of all that determines a task's result, Foresail's version included."""
    kind = type(task)
    words = [f"{kind.__module__}.{kind.__qualname__}", asdict(task), __version__]  # type: ignore[call-overload]  # tasks are dataclasses
    return hashlib.sha256(json.dumps(words, default=str).encode()).hexdigest()[:_DIGITS]


class StudyResults:
    """The files of a folder of studies.

    Raises ``InputError`` if the folder cannot be made.

    ``folder``: where they are; the runs are in ``runs``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs = folder / "runs"
        make_folder(self._runs)

    def is_finished(self, task: Task) -> bool:
        """Return whether a task's result is here."""
        return self._file(task).exists()

    def keep(self, case: GridPoint, measured: Measured) -> None:
        """Store what came of a case's task, whole or not at all.

        Raises ``InputError`` if it cannot be written.
        """
        told: dict[str, Any] = asdict(case.task)  # type: ignore[call-overload]  # a dataclass
        known = {name: value if math.isfinite(value) else None for name, value in measured.items()}
        content = {"version": __version__, "task": told, "measured": known}
        write_whole(self._file(case.task), json.dumps(content, default=str, indent=0).encode())

    def table(self, study: Study) -> pl.DataFrame:
        """A row per finished case: ``group``, ``x``, ``system``, ``seed`` and what was measured.

        Raises ``InputError`` if nothing is finished, or a file is damaged.
        """
        rows = [
            {
                "group": case.group,
                "x": case.x,
                "system": case.system,
                "seed": case.seed,
                **_measured(self._file(case.task)),
            }
            for case in study.cases
            if self.is_finished(case.task)
        ]
        if not rows:
            raise InputError("no run of this study is finished", source=self.folder)
        table = pl.DataFrame(rows, infer_schema_length=None)
        numbers = [name for name in table.columns if name not in ("group", "system", "seed")]
        return table.with_columns(pl.col(numbers).cast(pl.Float64))

    def _file(self, task: Task) -> Path:
        return self._runs / f"{key_of(task)}.json"


def _measured(path: Path) -> dict[str, float | None]:
    try:
        return dict(json.loads(path.read_bytes())["measured"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError("a damaged result; delete it and run again", source=path) from error


def carry_out_study(
    study: Study, results: StudyResults, pool: Pool, finished: Callable[[GridPoint, Measured], None]
) -> int:
    """Run the cases of a study whose results are not there; returns how many these were.

    Cases that have the same task share its result.

    Every result is stored in the study's folder when it arrives, and ``finished`` is called then.

    Raises ``WorkerLostError`` if a worker process dies. What was finished is kept; ``InputError``
    if a case cannot be run, or its result not be stored.
    """
    missing = {
        key_of(case.task): case for case in study.cases if not results.is_finished(case.task)
    }
    for case, measured in pool(measure_case, list(missing.values())):
        results.keep(case, measured)
        finished(case, measured)
    return len(missing)


def measure_case(case: GridPoint) -> Measured:
    """Measure a case; a function of a module, so that processes can be sent it."""
    return case.task.measure()
