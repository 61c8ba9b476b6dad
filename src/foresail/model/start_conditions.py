"""Start conditions: what must hold before a job may start, whatever a scheduler would decide.

Kinds of dependencies, their names and what they mean are those of Slurm's ``sbatch``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class DependencyKind(StrEnum):
    """What must have become of the jobs that another depends on."""

    AFTER_OK = "afterok"
    """They have completed."""
    AFTER_ANY = "afterany"
    """They have ended, in whichever way."""
    AFTER_NOT_OK = "afternotok"
    """They have ended, and one of them at least has not completed."""
    AFTER = "after"
    """They have begun, or ended without."""
    SINGLETON = "singleton"
    """All jobs of its name and user that were submitted before it have ended."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """Jobs that another depends on, all members of an array together, and how; no singleton."""

    kind: DependencyKind
    job_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartConditions:
    """What must hold before a job may start, beside its ``afterok`` dependencies.

    An array's limit is of jobs that start as a whole.
    """

    dependencies: tuple[Dependency, ...] = ()
    """Those of other kinds; their jobs are in ``Job.after`` too."""
    singleton: bool = False
    """Whether it waits for jobs of its name and user."""
    begin_seconds: float | None = None
    """It starts no earlier."""
    array: str = ""
    most_at_once: int | None = None
    """The array it is of, and how many of that run at once."""
    once: bool = False
    """Whether it may start only once: lost or preempted, it has ended."""

    @property
    def keep_out_of_line(self) -> bool:
        """Whether it is not overtaken by others, for it is kept back by its own wish."""
        return self.begin_seconds is not None or self.most_at_once is not None


DEPENDENCY_FORM: Final = (
    "names or ids of jobs, afterok:ID, afterany:ID, afternotok:ID or after:ID (ID:ID... of "
    "several), and singleton, all of which must hold"
)
_JOB: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_REFUSED: Final = {
    "aftercorr": "aftercorr is not supported: of an array, wait for all or for one by its id",
    "afterburstbuffer": "afterburstbuffer is not supported: there are no burst buffers",
    "expand": "expand is not supported: jobs do not grow",
}


def parse_dependencies(words: str | Iterable[str]) -> tuple[Dependency, ...]:
    """Dependencies as people write them: one for each job named, and one for ``singleton``.

    Parameters
    ----------
    words
        Dependencies, in a text separated by commas or spaces. One without a kind is ``afterok``.

    Raises
    ------
    ValueError
        If they are none, or of a kind that is not supported; says what was expected.
    """
    found: dict[str, Dependency] = {}
    text = words if isinstance(words, str) else " ".join(words)
    for word in filter(None, re.split(r"[,\s]+", text)):
        if "?" in word:
            raise ValueError("? is not supported: all dependencies must hold, separated by commas")
        first, *job_ids = word.split(":")
        if first in _REFUSED:
            raise ValueError(_REFUSED[first])
        if word == DependencyKind.SINGLETON:
            found[word] = Dependency(DependencyKind.SINGLETON, ())
            continue
        kind = DependencyKind.AFTER_OK
        if job_ids:
            if first not in tuple(DependencyKind) or first == DependencyKind.SINGLETON:
                raise ValueError(DEPENDENCY_FORM)
            kind = DependencyKind(first)
        for job_id in job_ids or [first]:
            if job_ids and "+" in job_id and job_id.partition("+")[0].isdigit():
                raise ValueError("ID+MINUTES is not supported: give begin a time")
            if not _JOB.fullmatch(job_id):
                raise ValueError(DEPENDENCY_FORM)
            if found.setdefault(job_id, Dependency(kind, (job_id,))).kind is not kind:
                raise ValueError(f"one kind of dependency on job {job_id}")
    return tuple(found.values())
