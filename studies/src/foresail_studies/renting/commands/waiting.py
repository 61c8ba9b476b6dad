"""``foresail cloud waiting``: how many machines to own, and which jobs wait for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from foresail.cli.formats import refuse
from foresail.cli.log_options import LogOptions
from foresail.cli.progress import doing
from foresail.cli.renting_options import (
    STANDARD_FILTERS,
    WORKERS,
    Filters,
    Order,
    PicturedAnswerOptions,
    PriceOptions,
    Workers,
    numbers_of,
    prices_of,
    times_of,
    trace_jobs,
)
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.cloud.prices import Offer, PriceCatalogue
    from foresail.cloud.waiting.jobs import FixedMachines, Requests
    from foresail_studies.renting.owned_machines import Worth
    from foresail_studies.renting.owning import OwningAnswer
    from foresail_studies.renting.rent_or_wait_page import Circumstances
    from foresail_studies.renting.sweeping import Sweep, SweepInputs

_MOST_COUNTS: Final = 100_000
_MOST_MACHINES: Final = 1_000_000
_LONG_LOG: Final = 1_000_000
_OF_FORMULAS: Final = 1_000
_OF_LONG_LOGS: Final = 12
_OF_LOGS: Final = 30
"""Numbers of machines to try, unless they are given."""


class Waits(StrEnum):
    """Source of the policies' beliefs about waits."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    LINEAR = "linear"
    FOREST = "forest"
    BOOSTING = "boosting"


@dataclass(frozen=True)
class WaitingRequest:
    """Machines and thresholds that were asked for (None: nothing in particular), and prices."""

    policies: tuple[str, ...]
    counts: tuple[int, ...] | None
    waiting_seconds: tuple[float, ...]
    short_seconds: tuple[float, ...]
    owned: tuple[int, str] | None
    hour_value: float | None
    longest_wait_seconds: float
    catalogue: PriceCatalogue
    offer: Offer
    machine: FixedMachines

    @property
    def relative_price(self) -> float:
        """Price of an owned machine, relative to one that is rented."""
        return self.machine.price_per_hour / self.offer.on_demand_per_hour

    def sweep(self, usual_policies: Sequence[str], mean_machines: float, most: int) -> Sweep:
        """The settings to try, unless they are given: about so many numbers of machines."""
        from foresail_studies.renting.sweeping import Sweep, usual_counts

        return Sweep(
            policies=self.policies or tuple(usual_policies),
            counts=self.counts or usual_counts(mean_machines, self.relative_price, most),
            waiting_seconds=self.waiting_seconds,
            short_seconds=self.short_seconds,
            owned=self.owned,
            refine=self.counts is None,
        )

    def worth(self, usual_hour_value: float) -> Worth:
        """Worth of waiting."""
        from foresail_studies.renting.owned_machines import Worth

        value = usual_hour_value if self.hour_value is None else self.hour_value
        return Worth(value, self.hour_value is not None, self.longest_wait_seconds)

    def circumstances(self, log: str, known: str, **more: object) -> Circumstances:
        """The same in words, for the report about a log (or what stands for one)."""
        from foresail_studies.renting.rent_or_wait_page import Circumstances

        return Circumstances(
            log=log,
            machine_name=self.offer.instance.name,
            machine=self.machine,
            currency=self.catalogue.currency,
            catalogue=self.catalogue.name,
            valid_on=self.catalogue.valid_on,
            known=known,
            **more,  # type: ignore[arg-type]
        )


def command(
    log: Annotated[
        Path | None, typer.Argument(metavar="LOG", help="A job log, or a workload folder.")
    ] = None,
    model: str | None = None,
    prices: PriceOptions = PriceOptions(),
    machine: str | None = None,
    term: int | None = None,
    fixed_price: float | None = None,
    fixed: str | None = None,
    policies: list[str] | None = None,
    wait_limit: list[str] | None = None,
    short: list[str] | None = None,
    order: Order = Order.FCFS,
    runtimes: str = "known",
    waits: Waits = Waits.KNOWN,
    mispredicted: str | None = None,
    owned: int | None = None,
    owned_policy: str = "all-jobs-wait",
    hour_value: float | None = None,
    target_wait: str | None = None,
    workers: Workers = WORKERS,
    filters: Filters = None,
    log_options: LogOptions = LogOptions(),
    answering: PicturedAnswerOptions = PicturedAnswerOptions(),
) -> None:
    """Find how many machines to own, which jobs should wait, and what that costs.

    Every number of machines is simulated under every policy on the log: jobs run on owned machines
    or wait for them, or run on machines that are rented. The answer names the cheapest, with
    waiting at its value, and how sure it is.

    Options:
        model RATE,RUNTIME: Instead of a log: jobs per second and their mean runtime, by formula.
        machine TYPE: What is owned [the largest that can be reserved].
        term YEARS: Of the reservation [the longest].
        fixed_price PRICE: Of an owned machine per hour, instead.
        fixed FIRST:LAST:STEP: Numbers of machines, or 50,100 [those that may pay].
        policies --policy NAMES: With commas, or repeated [all]; see the docs.
        wait_limit TIMES: Longest wait b; several with commas [24h].
        short TIMES: Jobs below t are short; several with commas [15min].
        order: Which waiting job goes first, of those that fit.
        runtimes BY: What policies believe: known, requested, or a predictor.
        waits: What policies know of waits, or which model predicts them.
        mispredicted OVER,UNDER: With --model: shares of predictions that are too long, and too
            short.
        owned N: Machines that you own today.
        owned_policy NAME: Which jobs wait today.
        hour_value MONEY: What an hour of a job's waiting is worth.
        target_wait TIME: Largest mean wait.
    """
    from foresail.cli.log_options import load_as_one_pool
    from foresail.cloud.waiting.jobs import rented_family, usual_hour_value
    from foresail.evaluation.replaying import KNOWN, believed_runtimes
    from foresail_studies.renting.owned_machines import owned_machines, owned_offer, share_too_wide
    from foresail_studies.renting.owning import own_or_rent
    from foresail_studies.renting.rent_or_wait_page import (
        policies_table,
        record,
        rent_or_wait_page,
        sentences,
        values_table,
    )
    from foresail_studies.renting.sweeping import SweepInputs

    if (log is None) == (model is None):
        raise InputError("give either LOG or --model", expected="LOG, or --model RATE,RUNTIME")
    if model is None:
        refuse(
            {"--mispredicted": mispredicted},
            "on a log policies err as their predictor does",
            "--model, or --runtimes and --waits",
        )
    else:
        stated = {
            "--order": None if order is Order.FCFS else order.value,
            "--runtimes": None if runtimes == "known" else runtimes,
            "--waits": None if waits is Waits.KNOWN else waits.value,
            "--filter": filters,
            **{f"--{name}": value for name, value in log_options.given().items()},
        }
        refuse(stated, "it says nothing about a formula", "a log")
    answering.require_folder()
    catalogue = prices_of(prices)

    def question(requests: Requests | None = None) -> WaitingRequest:
        offer = owned_offer(catalogue, machine, requests)
        return WaitingRequest(
            policies=tuple(name.strip() for text in policies or () for name in text.split(",")),
            counts=None if fixed is None else _counts(fixed),
            waiting_seconds=times_of(wait_limit or ["24h"], "--wait-limit"),
            short_seconds=times_of(short or ["15min"], "--short"),
            owned=None if owned is None else (owned, owned_policy),
            hour_value=hour_value,
            longest_wait_seconds=math.inf
            if target_wait is None
            else times_of([target_wait], "--target-wait")[0],
            catalogue=catalogue,
            offer=offer,
            machine=owned_machines(offer, term, fixed_price),
        )

    asked = question()
    if model is not None:
        answer, around = _by_formula(model, _wrong_shares(mispredicted), asked)
    else:
        assert log is not None
        workload = load_as_one_pool(log, log_options, filters or STANDARD_FILTERS)
        jobs = trace_jobs(workload, log)
        if machine is None and jobs.gpus is not None:
            asked = question(jobs.requests)
        with doing(f"runtimes by {runtimes}"):
            believed = believed_runtimes(workload, runtimes)
        family = rented_family(catalogue)
        worth = asked.worth(usual_hour_value(jobs, family))
        inputs = SweepInputs(
            *(jobs, believed, asked.machine, family, order.value, waits.value),
            are_runtimes_true=runtimes == KNOWN,
            hour_value=worth.hour_value,
        )
        with doing("simulating settings") as entered:
            answer = own_or_rent(
                inputs, _sweep(asked, inputs), worth, workers=workers, done=entered.progressed
            )
        by = runtimes if runtimes == KNOWN else f"as {runtimes} says"
        learned = f"as a model ({waits.value}) says that learned from the first third of the log"
        around = asked.circumstances(
            log.name,
            f"runtimes {by}, waits {learned if inputs.learns else waits.value}",
            queue=f"waiting jobs go in the order {order.value}",
            too_wide=share_too_wide(jobs, asked.machine, family),
            memory_known=jobs.memory_bytes is not None,
        )
    tables = policies_table(answer, around), values_table(answer, around)
    answering.answer(
        record(answer, around),
        sentences(answer, around),
        tables,
        lambda: rent_or_wait_page(answer, around),
    )


def _counts(text: str) -> tuple[int, ...]:
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
    if not counts or min(counts) < 0 or len(counts) > _MOST_COUNTS:
        raise InputError(
            "no numbers of machines",
            field="--fixed",
            value=text,
            expected=f"0 or more, such as 50:300:10 or 50,100; up to {_MOST_COUNTS:,} of them",
        )
    return tuple(counts)


def _wrong_shares(text: str | None) -> tuple[float, float]:
    """Shares of predictions that are too long, and too short."""
    shares = (0.0, 0.0) if text is None else numbers_of([text], "--mispredicted")
    if len(shares) != 2 or not all(0.0 <= share <= 1.0 for share in shares):
        raise InputError(
            "not two shares",
            field="--mispredicted",
            value=text,
            expected="such as 0.05,0.3: too long, too short",
        )
    return shares[0], shares[1]


def _sweep(question: WaitingRequest, inputs: SweepInputs) -> Sweep:
    """The settings to try on a log."""
    from foresail_studies.renting.sweeping import POLICIES

    # Weighing needs learned waits; a page has room for seven policies, so another makes room.
    left_out = "long-jobs-wait" if inputs.learns else "weighing"
    most = _OF_LONG_LOGS if len(inputs.jobs) > _LONG_LOG else _OF_LOGS
    policies = [name for name in POLICIES if name != left_out]
    sweep = question.sweep(policies, inputs.mean_machines, most)
    if "weighing" in sweep.policies and not inputs.learns:
        raise InputError(
            "nothing to weigh: no model predicts waits",
            field="--waits",
            value=inputs.waits,
            expected="linear, forest or boosting",
        )
    return sweep


def _by_formula(
    model: str, shares: tuple[float, float], question: WaitingRequest
) -> tuple[OwningAnswer, Circumstances]:
    """Find the best for RATE,RUNTIME."""
    from foresail.cloud.waiting.jobs import USUAL_SHARE
    from foresail.model.words import percent
    from foresail_studies.renting.formulas import POLICIES, Load, Mispredicted
    from foresail_studies.renting.owning import own_or_rent_by_formula

    rate, runtime, arrivals, mean = _arrivals_and_mean(model)
    load = Load(arrivals, 1.0 / mean, question.relative_price)
    if load.offered > _MOST_MACHINES:
        raise InputError(
            "too many jobs at a time",
            field="--model",
            value=f"{load.offered:g} on average",
            expected=f"up to {_MOST_MACHINES:,}",
        )
    wrong = Mispredicted(*shares)
    policies = [name for name in POLICIES if name != "compound" or not any(wrong)]
    hourly = question.offer.on_demand_per_hour
    sweep = question.sweep(policies, load.offered, _OF_FORMULAS)
    answer = own_or_rent_by_formula(
        load, hourly, sweep, question.worth(USUAL_SHARE * hourly), wrong
    )
    known = "all predictions right"
    if any(wrong):
        known = (
            f"{percent(wrong.over)} of predictions too long, {percent(wrong.under)} of those that "
            "matter too short"
        )
    log = f"{rate} jobs a second of {runtime} on average"
    return answer, question.circumstances(log, f"by formula, {known}", by_formula=True)


def _arrivals_and_mean(model: str) -> tuple[str, str, float, float]:
    """RATE and RUNTIME as they were written, and as numbers (per second, and seconds)."""
    rate, runtime, *more = [*model.split(","), ""]
    mean = times_of([runtime or "0"], "--model")
    try:
        arrivals = float(rate)
    except ValueError:
        arrivals = math.nan
    if len(more) > 1 or not (mean[0] > 0.0 and 0.0 < arrivals < math.inf):
        raise InputError(
            "no arrivals and runtime", field="--model", value=model, expected="such as 0.2,500s"
        )
    return rate, runtime, arrivals, mean[0]
