"""Errors of plug-ins whose answers cannot be used: whose they are, where, and what was expected."""

from __future__ import annotations

import traceback
from pathlib import PurePath
from typing import Final

from foresail.model.decision import Refusal
from foresail.model.errors import ForesailError, InputError
from foresail.model.protocols import Correction, Predictor, Scheduler
from foresail.model.registry import place_of
from foresail.model.words import count

_OWN: Final = "foresail."


def no_decision(scheduler: Scheduler, decision: object, now: float) -> InputError:
    """The error of a scheduler that returned something else than a decision."""
    return InputError(
        f"{_named(scheduler)} decides nothing that can be read at {now:g} s",
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


def no_time(plug_in: Predictor | Correction, job_id: str, seconds: float) -> InputError:
    """The error of a predictor, or of a correction, whose answer is no time."""
    family, field = "predictor", "predict"
    if isinstance(plug_in, Correction):
        family, field = "correction", "correct"
    return InputError(
        f"{_named(plug_in, family)} expects no time of job {job_id}",
        **place_of(type(plug_in), field),
        field=field,
        value=seconds,
        expected="0 s or more",
    )


def no_parts() -> InputError:
    """The error of a scheduler that starts jobs as a whole, where some have begun in parts."""
    return InputError(
        "jobs that have begun in parts cannot go on as a whole",
        field="scheduler",
        expected="one that starts tasks, as the one before did",
    )


def blamed(scheduler: Scheduler, error: BaseException, now: float) -> BaseException:
    """The error itself if the scheduler is one of ours; else one that says whose it is, and where.

    It was raised by the scheduler's decision, or by checking that, at ``now`` (seconds from the
    workload's origin).
    """
    if isinstance(error, ForesailError) or type(scheduler).__module__.startswith(_OWN):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.filename == place_of(type(scheduler)).get("source")]
    where = f" in line {own[-1].lineno}" if own else ""
    return InputError(
        f"{_named(scheduler)} fails at {now:g} s{where}: {type(error).__name__}: {error}",
        field="decide",
        expected="a Decision whose starts are of pending jobs, each with a Placement",
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
