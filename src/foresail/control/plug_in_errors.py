"""Errors of plug-ins whose answers cannot be used: whose they are, where, and what was expected."""

from __future__ import annotations

from pathlib import PurePath

from foresail.model.decision import Refusal
from foresail.model.errors import InputError
from foresail.model.protocols import Correction, Predictor, Scheduler
from foresail.model.registry import blamed as blamed
from foresail.model.registry import place_of
from foresail.model.words import count


def no_decision(scheduler: Scheduler, decision: object) -> InputError:
    """The error of a scheduler that returned something else than a decision."""
    return InputError(
        f"{_named(scheduler)} decides nothing that can be read",
        **place_of(type(scheduler), "decide"),
        field="decide",
        value=decision,
        expected="a Decision, which may be empty",
    )


def no_belief(predictor: Predictor, answer: object, job_id: str) -> InputError:
    """The error of a predictor that returned something else than a distribution."""
    return InputError(
        f"{_named(predictor, 'predictor')} predicts {answer!r} for job {job_id}",
        **place_of(type(predictor), "predict"),
        field="predict",
        expected="a distribution, such as Point(600.0) of foresail.distributions.basic",
    )


def no_time(
    plug_in: Predictor | Correction, job_id: str, seconds: float, expected: str = "0 s or more"
) -> InputError:
    """The error of a predictor, or of a correction, whose answer is no time that can be used."""
    family, field = "predictor", "predict"
    if isinstance(plug_in, Correction):
        family, field = "correction", "correct"
    return InputError(
        f"{_named(plug_in, family)} expects no usable time of job {job_id}",
        **place_of(type(plug_in), field),
        field=field,
        value=seconds,
        expected=expected,
    )


def no_parts() -> InputError:
    """The error of a scheduler that starts jobs as a whole, where some have begun in parts."""
    return InputError(
        "jobs that have begun in parts cannot go on as a whole",
        field="scheduler",
        expected="one that starts tasks, as the one before did",
    )


def nothing_started(scheduler: Scheduler, jobs: int, first: Refusal | None) -> InputError:
    """The error of a scheduler that started no job at all.

    ``first`` is the first of its decisions that was refused.
    """
    return InputError(
        f"{_named(scheduler)} started none of {jobs:,} jobs{_refused(first)}",
        field="decide",
        expected="a scheduler that starts jobs for which there is room",
    )


def nothing_starts(scheduler: Scheduler, jobs: int, first: Refusal | None) -> str:
    """Describe like ``nothing_started`` a run that goes on: so many jobs wait."""
    waiting = count(jobs, "waiting job")
    return f"nothing runs, and {_named(scheduler)} starts none of {waiting}{_refused(first)}"


def _refused(first: Refusal | None) -> str:
    return (
        "" if first is None else f"; it would have started job {first.job_id!r}: {first.sentence}"
    )


def _named(plug_in: object, family: str = "scheduler") -> str:
    name = type(plug_in).__qualname__
    file = place_of(type(plug_in)).get("source")
    return f"the {family} {name}" + (f" of {PurePath(file).name}" if file else "")
