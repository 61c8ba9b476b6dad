"""``foresail cloud waiting`` on a log: what is simulated, and what of it is told."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from foresail.cli.cloud._waiting_question import Owning, ToldBeliefs, WaitingRequest
from foresail.cli.cloud._waiting_queue import QueueChoice, queue_of, warn_of_time
from foresail.cli.progress import doing
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from foresail.cloud.waiting.jobs import TraceJobs
    from foresail.cloud.waiting.owning import OwningAnswer
    from foresail.cloud.waiting.settings import Sweep, SweepInputs
    from foresail.cloud.waiting.worth import Worth
    from foresail.model.arrays import Floats
    from foresail.reports.renting.rent_or_wait_words import Circumstances
    from foresail.traces.workload import Workload

_LONG_LOG: Final = 1_000_000
_OF_LONG_LOGS: Final = 12
_OF_LOGS: Final = 30
_OF_SCHEDULERS: Final = 8
"""Numbers of machines to try, unless they are given."""


def answer_on_log(
    log: Path,
    workload: Workload,
    jobs: TraceJobs,
    question: WaitingRequest,
    owning: Owning,
    line: QueueChoice,
    told: ToldBeliefs,
    workers: int,
    kept: Path | None,
) -> tuple[OwningAnswer, Circumstances]:
    """What is best on a log, by simulation, with what was asked of."""
    from foresail.cloud.waiting.offers import customised_of, rented_family, share_too_wide
    from foresail.cloud.waiting.owning import own_or_rent
    from foresail.cloud.waiting.settings import SweepInputs
    from foresail.cloud.waiting.worth import usual_hour_value
    from foresail.evaluation.renting import KNOWN, believed_runtimes
    from foresail.reports.renting.rent_or_wait_words import Circumstances

    family = rented_family(owning.catalogue)
    if question.customised:
        family += customised_of(owning.catalogue, jobs.requests)
    with doing(f"runtimes by {told.runtimes}"):
        believed = believed_runtimes(workload, told.runtimes)
    worth = question.worth(usual_hour_value(jobs, family))
    own_values = None
    if question.hour_values is not None:
        worth, own_values = _by_user(worth, question.hour_values, workload)
    inputs = SweepInputs(
        jobs,
        believed,
        owning.machine,
        family,
        queue_of(line, workload, believed),
        told.waits.value,
        told.runtimes == KNOWN,
        worth.hour_value,
        own_values,
    )
    sweep = _sweep(question, inputs, owning, line)
    if line.scheduler is not None:
        warn_of_time(line.scheduler, len(jobs), len(sweep.settings()))
    with _progress(kept) as done:
        answer = own_or_rent(inputs, sweep, worth, workers=workers, kept=kept, done=done)
    return answer, Circumstances(
        log=log.name,
        machine_name=owning.offer.instance.name,
        machine=owning.machine,
        currency=owning.catalogue.currency,
        catalogue=owning.catalogue.name,
        valid_on=owning.catalogue.valid_on,
        known=_known(told, inputs),
        queue=str(line),
        too_wide=share_too_wide(jobs, owning.machine, family) if line.scheduler is None else 0.0,
        memory_known=jobs.memory_bytes is not None,
    )


def _sweep(
    question: WaitingRequest, inputs: SweepInputs, owning: Owning, line: QueueChoice
) -> Sweep:
    """The settings to try."""
    from foresail.cloud.waiting.settings import POLICIES, usual_counts

    many = _OF_LONG_LOGS if len(inputs.jobs) > _LONG_LOG else _OF_LOGS
    if line.scheduler is not None:
        many = _OF_SCHEDULERS
    # Weighing needs learned waits; a page tells seven policies apart, so that another makes room.
    policies = [
        name for name in POLICIES if name != ("long-jobs-wait" if inputs.learns else "weighing")
    ]
    counts = usual_counts(inputs.mean_machines, owning.relative_price, many)
    sweep = question.sweep(policies, counts)
    if "weighing" in sweep.policies and not inputs.learns:
        raise InputError(
            "nothing to weigh: no model tells of waits",
            field="--waits",
            value=inputs.waits,
            expected="linear, forest or boosting",
        )
    return sweep


def _known(told: ToldBeliefs, inputs: SweepInputs) -> str:
    """What policies are told, in words."""
    from foresail.evaluation.renting import KNOWN

    by = told.runtimes if told.runtimes == KNOWN else f"as {told.runtimes} says"
    waits = (
        f"as a model ({told.waits.value}) says that learned from the first third of the log"
        if inputs.learns
        else told.waits.value
    )
    return f"runtimes {by}, waits {waits}"


def _by_user(worth: Worth, path: Path, workload: Workload) -> tuple[Worth, Floats]:
    """The worth where users say their own, and that of an hour by job."""
    from foresail.cloud.waiting.worth import read_user_values, values_by_job

    users = read_user_values(path)
    values = values_by_job(workload.jobs["user"], users, worth.hour_value, path)
    mean = float(values.mean())
    return replace(worth, hour_value=mean, users=len(users), others_value=worth.hour_value), values


@contextmanager
def _progress(kept: Path | None) -> Iterator[Callable[[int, int], None]]:
    """How many settings are done; how to go on, if they are interrupted."""
    with doing("simulating settings") as entered:
        try:
            yield entered.progressed
        except KeyboardInterrupt:
            if kept is not None:
                typer.echo(f"what is done is kept in {kept}; the same command goes on", err=True)
            raise
