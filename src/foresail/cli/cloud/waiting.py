"""``foresail cloud waiting``: how many machines to own, and which jobs wait for them."""

from __future__ import annotations

import json
import math
import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from foresail.cli.cloud._options import Config, Format, FormatOption, Output
from foresail.cli.cloud._prices import (
    STANDARD_FILTERS,
    Filters,
    Png,
    PricesName,
    Region,
    Types,
    echo,
    make_output,
    numbers_of,
    prices_of,
    times_of,
    trace_jobs,
    write_page,
)
from foresail.cli.trace._options import MappingPath, Processors, ReaderName, Strict
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from foresail.cloud.prices import Catalogue, Offer
    from foresail.cloud.waiting.jobs import FixedMachines, Floats, TraceJobs
    from foresail.cloud.waiting.models import Mispredicted
    from foresail.cloud.waiting.owning import OwningAnswer, Sweep, Worth
    from foresail.cloud.waiting.policies import Queue
    from foresail.cloud.waiting.trying import Ranking, Scheduling
    from foresail.control.policy import Policy
    from foresail.reports.rent_or_wait_page import Circumstances
    from foresail.traces.workload import Workload

_WORKERS: Final = min(4, os.cpu_count() or 1)
_LONG_LOG: Final = 1_000_000
_OF_LONG_LOGS: Final = 12
_OF_LOGS: Final = 30
_OF_SCHEDULERS: Final = 8
_OF_FORMULAS: Final = 1_000
_JOBS_A_SECOND: Final = 2_500
_LONG_SECONDS: Final = 60.0
"""Numbers of machines to try, unless they are given."""


class Waits(StrEnum):
    """What policies are told of waits."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    LINEAR = "linear"
    FOREST = "forest"
    BOOSTING = "boosting"


@dataclass(frozen=True)
class _Told:
    """What policies are told of runtimes and waits."""

    runtimes: str
    waits: Waits


@dataclass(frozen=True)
class _Line:
    """Who starts of those who wait: an order, or a policy of the replay."""

    order: str
    scheduler: Policy | None


@dataclass(frozen=True)
class _Asked:
    """What was asked about machines and thresholds."""

    policies: tuple[str, ...] | None
    counts: tuple[int, ...] | None
    waiting_seconds: tuple[float, ...]
    short_seconds: tuple[float, ...]
    owned: tuple[int, str] | None
    hour_value: float | None
    hour_values: Path | None
    longest_wait_seconds: float
    customised: bool
    wrong: tuple[float, float]


def command(
    log: Annotated[
        Path | None, typer.Argument(metavar="LOG", help="A job log, or a workload folder.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="RATE,RUNTIME",
            help="Instead of a log: jobs per second and their mean runtime, by formula.",
        ),
    ] = None,
    prices: PricesName = "thesis",
    region: Region = None,
    types: Types = "*",
    machine: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="What is owned [the largest that can be reserved]."),
    ] = None,
    term: Annotated[
        int | None, typer.Option(metavar="YEARS", help="Of the reservation [the longest].")
    ] = None,
    fixed_price: Annotated[
        float | None,
        typer.Option(metavar="PRICE", help="Of an owned machine per hour, instead."),
    ] = None,
    customised: Annotated[
        bool,
        typer.Option(
            "--customised",
            help="Rent machines of just the cores and memory that each job asks for, too.",
        ),
    ] = False,
    fixed: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST:LAST:STEP", help="Numbers of machines, or 50,100 [those that may pay]."
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", metavar="NAMES", help="With commas, or repeated [all]; see the docs."
        ),
    ] = None,
    wait_limit: Annotated[
        list[str] | None,
        typer.Option(metavar="TIMES", help="Longest wait b; several with commas [24h]."),
    ] = None,
    short: Annotated[
        list[str] | None,
        typer.Option(metavar="TIMES", help="Jobs below t are short; several with commas [15min]."),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="ORDER",
            help="Who of those who wait goes first: fcfs, strict-fcfs, sjf, random, or an order "
            "such as 'requested * cpus' [fcfs].",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="Instead of an order: a policy of foresail simulate, such as easy; slower.",
        ),
    ] = None,
    runtimes: Annotated[
        str,
        typer.Option(metavar="BY", help="What policies believe: known, requested, or a predictor."),
    ] = "known",
    waits: Annotated[
        Waits,
        typer.Option(help="What policies know of waits, or which model tells them."),
    ] = Waits.KNOWN,
    mispredicted: Annotated[
        str | None,
        typer.Option(
            metavar="OVER,UNDER",
            help="With --model: shares of predictions that are too long, and too short.",
        ),
    ] = None,
    owned: Annotated[
        int | None, typer.Option(metavar="N", help="Machines that you own today.")
    ] = None,
    owned_policy: Annotated[str, typer.Option(metavar="NAME", help="Who waits today.")] = "ajw",
    hour_value: Annotated[
        float | None,
        typer.Option(metavar="MONEY", help="What an hour of a job's waiting is worth."),
    ] = None,
    hour_values: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="The same by user: columns user, value; --hour-value is for all others.",
        ),
    ] = None,
    target_wait: Annotated[
        str | None, typer.Option(metavar="TIME", help="Largest mean wait.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Simulations at once.")] = _WORKERS,
    kept: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep each result there, and go on from those."),
    ] = None,
    filters: Filters = None,
    reader: ReaderName = None,
    mapping: MappingPath = None,
    processors: Processors = None,
    strict: Strict = False,
    config: Config = None,
    output_format: FormatOption = Format.TABLE,
    output: Output = None,
    png: Png = False,
) -> None:
    """How many machines to own or reserve, which jobs should wait, and what that costs.

    Every number of machines is simulated under every policy on the log: jobs run on owned machines
    or wait for them, or run on machines that are rented. The answer names the cheapest, with
    waiting at its value, and how sure it is.
    """
    del config
    if (log is None) == (model is None):
        raise InputError("no log, or two questions", expected="LOG, or --model RATE,RUNTIME")
    if model is not None and customised:
        raise InputError("a formula knows no memory", field="--customised", expected="a log")
    if model is None and mispredicted is not None:
        raise InputError(
            "on a log policies err as who tells them does",
            field="--mispredicted",
            value=mispredicted,
            expected="--model, or --runtimes and --waits",
        )
    if model is not None and hour_values is not None:
        raise InputError(
            "a formula knows no users", field="--hour-values", value=hour_values, expected="a log"
        )
    asked = _Asked(
        policies=tuple(name.strip() for text in policies or () for name in text.split(",")) or None,
        counts=None if fixed is None else _counts(fixed),
        waiting_seconds=times_of(wait_limit or ["24h"], "--wait-limit"),
        short_seconds=times_of(short or ["15min"], "--short"),
        owned=None if owned is None else (owned, owned_policy),
        hour_value=hour_value,
        hour_values=hour_values,
        longest_wait_seconds=math.inf
        if target_wait is None
        else times_of([target_wait], "--target-wait")[0],
        customised=customised,
        wrong=(0.0, 0.0) if mispredicted is None else _wrong(mispredicted),
    )
    from foresail.cloud.waiting.offers import owned_machines, owned_offer

    line = _line(order, scheduler, model)
    make_output(output)
    catalogue = prices_of(prices, region, types)
    offer = owned_offer(catalogue, machine)
    fleet = owned_machines(offer, term, fixed_price)
    if model is not None:
        answer, around = _by_formula(model, asked, catalogue, offer, fleet)
    else:
        assert log is not None
        from foresail.cli._replaying import load_cleaned

        workload = load_cleaned(
            log, reader, mapping, processors, strict, filters or STANDARD_FILTERS
        )
        jobs = trace_jobs(workload, log)
        if machine is None and jobs.gpus is not None:
            offer = owned_offer(catalogue, None, jobs.requests)
            fleet = owned_machines(offer, term, fixed_price)
        told = _Told(runtimes, waits)
        answer, around = _on_log(
            log, workload, jobs, asked, line, catalogue, offer, fleet, told, workers, kept
        )
    _show(answer, around, output_format)
    if output is not None:
        from foresail.reports.rent_or_wait_page import rent_or_wait_page

        write_page(rent_or_wait_page(answer, around), output, png)


def _on_log(
    log: Path,
    workload: Workload,
    jobs: TraceJobs,
    asked: _Asked,
    line: _Line,
    catalogue: Catalogue,
    offer: Offer,
    fleet: FixedMachines,
    told: _Told,
    workers: int,
    kept: Path | None,
) -> tuple[OwningAnswer, Circumstances]:
    """By simulation."""
    from foresail.cloud.waiting import owning
    from foresail.cloud.waiting.customised import customised_of
    from foresail.cloud.waiting.offers import rented_family
    from foresail.cloud.waiting.trying import POLICIES, Grounds
    from foresail.evaluation.believed_runtimes import KNOWN, believed_runtimes
    from foresail.reports.rent_or_wait_page import Circumstances

    family = rented_family(catalogue)
    if asked.customised:
        family += customised_of(catalogue, jobs.requests)
    believed = believed_runtimes(workload, told.runtimes)
    worth = _worth(asked, owning.usual_hour_value(jobs, family))
    own_values = None
    if asked.hour_values is not None:
        worth, own_values = _by_user(worth, asked.hour_values, workload)
    grounds = Grounds(
        jobs,
        believed,
        fleet,
        family,
        _queue(line, workload, believed),
        told.waits.value,
        told.runtimes == KNOWN,
        worth.hour_value,
        own_values,
    )
    relative = fleet.price_per_hour / offer.on_demand_per_hour
    many = _OF_LONG_LOGS if len(jobs) > _LONG_LOG else _OF_LOGS
    if line.scheduler is not None:
        many = _OF_SCHEDULERS
    usual = owning.usual_counts(grounds.mean_machines, relative, many)
    # Weighing needs learned waits; a page tells seven policies apart, so that ljw makes room.
    policies = [name for name in POLICIES if name != ("ljw" if grounds.learns else "weighing")]
    sweep = _sweep(asked, policies, usual)
    if "weighing" in sweep.policies and not grounds.learns:
        raise InputError(
            "nothing to weigh: no model tells of waits",
            field="--waits",
            value=told.waits.value,
            expected="linear, forest or boosting",
        )
    if line.scheduler is not None:
        _warn_of_time(line.scheduler, len(jobs), len(sweep.settings()))
    with _progress() as done:
        answer = owning.own_or_rent(grounds, sweep, worth, workers=workers, kept=kept, done=done)
    by = told.runtimes if told.runtimes == KNOWN else f"as {told.runtimes} says"
    waits = (
        f"as a model ({told.waits.value}) says that learned from the first third of the log"
        if grounds.learns
        else told.waits.value
    )
    return answer, Circumstances(
        log=log.name,
        machine_name=offer.instance.name,
        machine=fleet,
        currency=catalogue.currency,
        catalogue=catalogue.name,
        valid_on=catalogue.valid_on,
        known=f"runtimes {by}, waits {waits}",
        queue=_in_words(line),
        too_wide=owning.share_too_wide(jobs, fleet, family) if line.scheduler is None else 0.0,
        memory_known=jobs.memory_bytes is not None,
    )


def _line(order: str | None, scheduler: str | None, model: str | None) -> _Line:
    """Checked, before a long log is read."""
    from foresail.cloud.waiting.policies import QUEUES
    from foresail.control.policy import parse_policy
    from foresail.evaluation.waiting_order import static_order

    if model is not None and (order is not None or scheduler is not None):
        raise InputError(
            "formulas are of first come, first served",
            field="--order" if scheduler is None else "--scheduler",
            value=order if scheduler is None else scheduler,
            expected="a log",
        )
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
        return _Line(order or "fcfs", None)
    policy = parse_policy(scheduler)
    policy.build()
    return _Line("", policy)


def _queue(line: _Line, workload: Workload, believed: Floats) -> Queue | Ranking | Scheduling:
    from foresail.cloud.waiting.policies import QUEUES
    from foresail.evaluation.renting import ReplayScheduling
    from foresail.evaluation.waiting_order import ranking

    if line.scheduler is not None:
        return ReplayScheduling(workload, line.scheduler)
    for name in QUEUES:
        if name == line.order:
            return name
    return ranking(workload, line.order, believed)


def _in_words(line: _Line) -> str:
    """Who of those who wait starts."""
    if line.scheduler is None:
        return f"who waits goes in the order {line.order}"
    return f"the fixed machines are under {line.scheduler.label}"


def _warn_of_time(scheduler: Policy, jobs: int, settings: int) -> None:
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


def _by_formula(
    model: str, asked: _Asked, catalogue: Catalogue, offer: Offer, fleet: FixedMachines
) -> tuple[OwningAnswer, Circumstances]:
    from foresail.cloud.waiting import owning
    from foresail.cloud.waiting.models import POLICIES, Load, Mispredicted
    from foresail.reports.rent_or_wait_page import Circumstances

    rate, _, runtime = model.partition(",")
    try:
        arrivals = float(rate)
    except ValueError:
        raise InputError(
            "no arrivals and runtime", field="--model", value=model, expected="such as 0.2,500s"
        ) from None
    mean = times_of([runtime], "--model")[0]
    if not mean > 0.0:
        raise InputError("no runtime", field="--model", value=model, expected="above 0 s")
    relative = fleet.price_per_hour / offer.on_demand_per_hour
    load = Load(arrivals, 1.0 / mean, relative)
    wrong = Mispredicted(*asked.wrong)
    policies = [name for name in POLICIES if name != "compound" or not any(wrong)]
    answer = owning.own_or_rent_by_formula(
        load,
        offer.on_demand_per_hour,
        _sweep(asked, policies, owning.usual_counts(load.offered, relative, _OF_FORMULAS)),
        _worth(asked, owning.USUAL_SHARE * offer.on_demand_per_hour),
        wrong,
    )
    return answer, Circumstances(
        log=f"{rate} jobs a second of {runtime} on average",
        machine_name=offer.instance.name,
        machine=fleet,
        currency=catalogue.currency,
        catalogue=catalogue.name,
        valid_on=catalogue.valid_on,
        known=_of_formula(wrong),
        by_formula=True,
    )


def _of_formula(wrong: Mispredicted) -> str:
    """What predictions are like."""
    from foresail.model.words import percent

    if not any(wrong):
        return "by formula, all predictions right"
    return (
        f"by formula, {percent(wrong.over)} of predictions too long, {percent(wrong.under)} of "
        "those that matter too short"
    )


def _wrong(text: str) -> tuple[float, float]:
    shares = numbers_of([text], "--mispredicted")
    if len(shares) != 2 or not all(0.0 <= share <= 1.0 for share in shares):
        raise InputError(
            "not two shares",
            field="--mispredicted",
            value=text,
            expected="such as 0.05,0.3: too long, too short",
        )
    return shares[0], shares[1]


def _sweep(asked: _Asked, policies: Sequence[str], usual: tuple[int, ...]) -> Sweep:
    from foresail.cloud.waiting.owning import Sweep

    return Sweep(
        policies=tuple(policies) if asked.policies is None else asked.policies,
        counts=usual if asked.counts is None else asked.counts,
        waiting_seconds=asked.waiting_seconds,
        short_seconds=asked.short_seconds,
        owned=asked.owned,
        refine=asked.counts is None,
    )


def _worth(asked: _Asked, usual: float) -> Worth:
    from foresail.cloud.waiting.owning import Worth

    stated = asked.hour_value is not None
    value = usual if asked.hour_value is None else asked.hour_value
    return Worth(value, stated, asked.longest_wait_seconds)


def _by_user(worth: Worth, path: Path, workload: Workload) -> tuple[Worth, Floats]:
    """The worth where users say their own, and that of an hour by job."""
    from foresail.cloud.waiting.user_values import read_user_values, values_by_job

    users = read_user_values(path)
    values = values_by_job(workload.jobs["user"], users, worth.hour_value, path)
    mean = float(values.mean())
    return replace(worth, hour_value=mean, users=len(users), others_value=worth.hour_value), values


def _show(answer: OwningAnswer, around: Circumstances, output_format: Format) -> None:
    from foresail.cli.trace._tables import print_table
    from foresail.reports.rent_or_wait_page import (
        policies_table,
        record,
        sentences,
        values_table,
    )

    if output_format is Format.JSON:
        typer.echo(json.dumps(record(answer, around), indent=2, allow_nan=False))
        return
    for sentence in sentences(answer, around):
        echo(sentence)
    for table in (policies_table(answer, around), values_table(answer, around)):
        typer.echo()
        print_table(table.headings, table.rows, right=len(table.headings) - 1)


def _counts(text: str) -> tuple[int, ...]:
    parts = text.split(":")
    try:
        if len(parts) == 1:
            counts = tuple(int(each) for each in text.split(","))
        else:
            first, last, step = (int(part) for part in [*parts, "1"][:3])
            counts = tuple(range(first, last + 1, step))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 0:
        raise InputError(
            "no numbers of machines",
            field="--fixed",
            value=text,
            expected="0 or more, such as 50:300:10 or 50,100",
        )
    return counts


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """How many settings are done, where somebody looks."""
    from foresail.cli._replaying import spinner

    with spinner() as progress:
        task = progress.add_task("simulating")

        def done(number: int, total: int) -> None:
            progress.update(task, description=f"{number} of {total} settings")

        yield done
