"""What is said of a log whose records do not follow from each other."""

from __future__ import annotations

from foresail.model.errors import InputError
from foresail.record.job_life import ImpossibleTransition


def misfit(error: KeyError | ImpossibleTransition) -> InputError:
    """The error of a fold (``foresail.record``) as one of the file that it was handed."""
    return InputError(
        f"the log does not fit together: {error}",
        value=getattr(error, "job_id", error.args[0]),
        expected="a whole event log",
    )
