"""``foresail cloud waiting`` on a log: the simulated question, and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from foresail.cli.cloud._options import numbers_of
from foresail.cli.progress import doing
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from foresail.cloud.prices import Offer, PriceCatalogue
    from foresail.cloud.waiting.jobs import FixedMachines, TraceJobs
    from foresail.cloud.waiting.offers import Worth
    from foresail.cloud.waiting.owning import OwningAnswer
    from foresail.cloud.waiting.settings import Ranking, Scheduling, Sweep, SweepInputs
    from foresail.cloud.waiting.simulating import Queue
    from foresail.control.policy import Policy
    from foresail.model.arrays import Floats
    from foresail.reports.renting.rent_or_wait_sentences import Circumstances
    from foresail.traces.workload import Workload


_MOST_COUNTS: Final = 100_000


class Waits(StrEnum):
    """Source of the policies' beliefs about waits."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    LINEAR = "linear"
    FOREST = "forest"
    BOOSTING = "boosting"


@dataclass(frozen=True)
class BeliefSources:
    """Sources of the policies' beliefs about runtimes and waits."""

    runtimes: str
    waits: Waits


@dataclass(frozen=True)
class Owning:
    """Prices, and what is owned at them."""

    catalogue: PriceCatalogue
    offer: Offer
    machine: FixedMachines

    @property
    def relative_price(self) -> float:
        """Price of an owned machine, relative to one that is rented."""
        return self.machine.price_per_hour / self.offer.on_demand_per_hour


@dataclass(frozen=True)
class WaitingRequest:
    """Machines and thresholds that were asked for; None: nothing in particular."""

    policies: tuple[str, ...] | None
    counts: tuple[int, ...] | None
    waiting_seconds: tuple[float, ...]
    short_seconds: tuple[float, ...]
    owned: tuple[int, str] | None
    hour_value: float | None
    hour_values: Path | None
    longest_wait_seconds: float
    customised: bool

    def sweep(self, usual_policies: Sequence[str], usual_counts: tuple[int, ...]) -> Sweep:
        """The settings to try."""
        from foresail.cloud.waiting.settings import Sweep

        return Sweep(
            policies=tuple(usual_policies) if self.policies is None else self.policies,
            counts=usual_counts if self.counts is None else self.counts,
            waiting_seconds=self.waiting_seconds,
            short_seconds=self.short_seconds,
            owned=self.owned,
            refine=self.counts is None,
        )

    def worth(self, usual_hour_value: float) -> Worth:
        """Worth of waiting."""
        from foresail.cloud.waiting.offers import Worth

        stated = self.hour_value is not None
        value = usual_hour_value if self.hour_value is None else self.hour_value
        return Worth(value, stated, self.longest_wait_seconds)


def names_of(texts: Sequence[str] | None) -> tuple[str, ...] | None:
    """Names, each alone or several with commas; None if there are none."""
    return tuple(name.strip() for text in texts or () for name in text.split(",")) or None


def counts_of(text: str) -> tuple[int, ...]:
    """Numbers of machines: FIRST:LAST:STEP, or several with commas."""
    parts = text.split(":")
    counts: Sequence[int]
    try:
        if len(parts) == 1:
            counts = tuple(int(each) for each in text.split(","))
        else:
            first, last, step = (int(part) for part in [*parts, "1"][:3])
            counts = range(first, last + 1, step)
    except ValueError:
        counts = ()
    if len(counts) > _MOST_COUNTS:
        raise InputError(
            "too many numbers of machines to try",
            field="--fixed",
            value=text,
            expected=f"up to {_MOST_COUNTS:,} of them; a larger STEP",
        )
    if not counts or min(counts) < 0:
        raise InputError(
            "no numbers of machines",
            field="--fixed",
            value=text,
            expected="0 or more, such as 50:300:10 or 50,100",
        )
    return tuple(counts)


def wrong_shares(text: str) -> tuple[float, float]:
    """Shares of predictions that are too long, and too short."""
    shares = numbers_of([text], "--mispredicted")
    if len(shares) != 2 or not all(0.0 <= share <= 1.0 for share in shares):
        raise InputError(
            "not two shares",
            field="--mispredicted",
            value=text,
            expected="such as 0.05,0.3: too long, too short",
        )
    return shares[0], shares[1]


_JOBS_A_SECOND: Final = 2_500
_LONG_SECONDS: Final = 60.0


@dataclass(frozen=True)
class QueueChoice:
    """Choice of the waiting job that starts: an order, or a policy of the replay."""

    order: str
    scheduler: Policy | None

    def __str__(self) -> str:
        if self.scheduler is None:
            return f"waiting jobs go in the order {self.order}"
        return f"the fixed machines are under {self.scheduler.label}"


def line_of(order: str | None, scheduler: str | None) -> QueueChoice:
    """Checked, before a long log is read."""
    from foresail.cloud.waiting.simulating import QUEUES
    from foresail.control.policy import parse_policy
    from foresail.evaluation.renting import static_order

    if order is not None and scheduler is not None:
        raise InputError(
            "an order and a scheduler, which has one of its own",
            field="--order",
            value=order,
            expected="--order or --scheduler",
        )
    if order is not None and order not in QUEUES:
        static_order(order)
    if scheduler is None:
        return QueueChoice(order or "fcfs", None)
    policy = parse_policy(scheduler)
    policy.build()
    return QueueChoice("", policy)


def queue_of(
    line: QueueChoice, workload: Workload, believed: Floats
) -> Queue | Ranking | Scheduling:
    """The same for simulations of a log."""
    from foresail.cloud.waiting.simulating import QUEUES
    from foresail.evaluation.renting import ReplayScheduling, ranking

    if line.scheduler is not None:
        return ReplayScheduling(workload, line.scheduler)
    for name in QUEUES:
        if name == line.order:
            return name
    return ranking(workload, line.order, believed)


def warn_of_time(scheduler: Policy, jobs: int, settings: int) -> None:
    """A scheduler is asked at every event, in every simulation: say what that comes to."""
    seconds = jobs * settings / _JOBS_A_SECOND
    if seconds < _LONG_SECONDS:
        return
    from foresail.model.words import count, duration

    typer.echo(
        f"{count(settings, 'setting')} of {count(jobs, 'job')} under {scheduler.label}, event by "
        f"event: at {_JOBS_A_SECOND:,} jobs a second (easy; planning ahead is much slower) some "
        f"{duration(seconds)} of processor time; fewer --fixed, --policy and jobs are quicker",
        err=True,
    )


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
    sources: BeliefSources,
    workers: int,
    kept: Path | None,
) -> tuple[OwningAnswer, Circumstances]:
    """Find the best on a log, by simulation, with what was asked of."""
    from foresail.cloud.waiting.offers import (
        customised_of,
        rented_family,
        share_too_wide,
        usual_hour_value,
    )
    from foresail.cloud.waiting.owning import own_or_rent
    from foresail.cloud.waiting.settings import SweepInputs
    from foresail.evaluation.renting import KNOWN, believed_runtimes
    from foresail.reports.renting.rent_or_wait_sentences import Circumstances

    family = rented_family(owning.catalogue)
    if question.customised:
        family += customised_of(owning.catalogue, jobs.requests)
    with doing(f"runtimes by {sources.runtimes}"):
        believed = believed_runtimes(workload, sources.runtimes)
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
        sources.waits.value,
        sources.runtimes == KNOWN,
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
        known=_known(sources, inputs),
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
    # Weighing needs learned waits; a page has room for seven policies, so another makes room.
    policies = [
        name for name in POLICIES if name != ("long-jobs-wait" if inputs.learns else "weighing")
    ]
    counts = usual_counts(inputs.mean_machines, owning.relative_price, many)
    sweep = question.sweep(policies, counts)
    if "weighing" in sweep.policies and not inputs.learns:
        raise InputError(
            "nothing to weigh: no model predicts waits",
            field="--waits",
            value=inputs.waits,
            expected="linear, forest or boosting",
        )
    return sweep


def _known(sources: BeliefSources, inputs: SweepInputs) -> str:
    """Beliefs of the policies, in words."""
    from foresail.evaluation.renting import KNOWN

    by = sources.runtimes if sources.runtimes == KNOWN else f"as {sources.runtimes} says"
    waits = (
        f"as a model ({sources.waits.value}) says that learned from the first third of the log"
        if inputs.learns
        else sources.waits.value
    )
    return f"runtimes {by}, waits {waits}"


def _by_user(worth: Worth, path: Path, workload: Workload) -> tuple[Worth, Floats]:
    """The worth where users say their own, and that of an hour by job."""
    from foresail.cloud.waiting.offers import read_user_values, values_by_job

    users = read_user_values(path)
    values = values_by_job(workload.jobs["user"], users, worth.hour_value, path)
    mean = float(values.mean())
    return replace(worth, hour_value=mean, users=len(users), others_value=worth.hour_value), values


@contextmanager
def _progress(kept: Path | None) -> Iterator[Callable[[int, int], None]]:
    """Show how many settings are done; how to go on, if they are interrupted."""
    with doing("simulating settings") as entered:
        try:
            yield entered.progressed
        except KeyboardInterrupt:
            if kept is not None:
                typer.echo(f"what is done is kept in {kept}; the same command goes on", err=True)
            raise
