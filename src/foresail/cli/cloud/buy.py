"""``foresail cloud buy``: which purchasing options to buy for jobs that never wait."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from foresail.cli._replaying import LogPath
from foresail.cli.cloud._options import PicturedAnswerOptions, told_by_options
from foresail.cli.cloud._prices import (
    STANDARD_FILTERS,
    Filters,
    PriceOptions,
    numbers_of,
    prices_of,
    show,
)
from foresail.cli.log_options import LogOptions
from foresail.cli.progress import doing
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.cloud.prices import PriceCatalogue
    from foresail.cloud.purchasing.terms import TransientTerms
    from foresail.traces.workload import Workload

_DAY_HOURS = 24.0
_OPTIONS = {
    "risk": "--risk",
    "growth": "--growth",
    "growth_spread": "--growth-spread",
    "demand_errors": "--forecast-error",
    "extension": "--short-log",
    "time_limit_seconds": "--exact-seconds",
}


class DecideBy(StrEnum):
    """What the policy goes by where it rents."""

    MEAN = "mean"
    DISTRIBUTION = "distribution"


class Amounts(StrEnum):
    """What the optimum in hindsight buys for a job."""

    ANY = "any"
    OF_MACHINES = "of-machines"


class Short(StrEnum):
    """What is assumed of a log that is shorter than a commitment."""

    REPEAT = "repeat"
    REFUSE = "refuse"


def command(
    log: LogPath,
    prices: PriceOptions = PriceOptions(),
    provider: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Whose options: amazon, google, google-customised, microsoft, all."
        ),
    ] = "all",
    without_transient: Annotated[
        bool, typer.Option("--without-transient", help="Jobs must not be revoked.")
    ] = False,
    lifetime: Annotated[
        float | None,
        typer.Option(metavar="HOURS", help="Mean life of a transient machine [the catalogue's]."),
    ] = None,
    histories: Annotated[
        str | None,
        typer.Option(metavar="HISTORIES", help="Or prices and lives as markets had them."),
    ] = None,
    risk: Annotated[
        float, typer.Option(metavar="SHARE", help="Largest chance that a level does not pay.")
    ] = 0.1,
    growth: Annotated[
        float, typer.Option(metavar="FACTOR", help="Of demand in a year, in the middle.")
    ] = 1.0,
    growth_spread: Annotated[
        float, typer.Option(metavar="SHARE", help="How uncertain the logarithm of that is.")
    ] = 0.2,
    forecast_error: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHARES", help="Errors of what is reserved [-0.5,-0.2,-0.1,0,0.1,0.2,0.5]."
        ),
    ] = None,
    runtime_error: Annotated[
        list[str] | None,
        typer.Option(metavar="SHARES", help="Mean errors of predicted runtimes [0,0.1,0.5,1]."),
    ] = None,
    train: Annotated[
        float | None,
        typer.Option(metavar="DAYS", help="What the policy learns from [a third of the log]."),
    ] = None,
    decide_by: Annotated[
        DecideBy, typer.Option(help="Whether it rents by mean runtimes or by all that may be.")
    ] = DecideBy.MEAN,
    amounts: Annotated[
        Amounts,
        typer.Option(help="What hindsight buys: any amounts, or parts of machines on sale."),
    ] = Amounts.ANY,
    exact_seconds: Annotated[
        float,
        typer.Option(min=0.0, metavar="SECONDS", help="For the exact optimum; 0: leave it out."),
    ] = 60.0,
    short_log: Annotated[
        Short, typer.Option(help="What to do if the log is shorter than a commitment.")
    ] = Short.REPEAT,
    seed: Annotated[int, typer.Option(min=0, help="Of the futures and the errors.")] = 0,
    filters: Filters = None,
    log_options: LogOptions = LogOptions(),
    answering: PicturedAnswerOptions = PicturedAnswerOptions(),
) -> None:
    """What to reserve and what to rent for a log whose jobs never wait, at a stated risk.

    Beside the advice: what would have been best in hindsight, what a policy pays that must learn
    and predict, and what errors of the forecast cost.
    """
    from foresail.cli._replaying import load_cleaned
    from foresail.cloud.purchasing.advising import advised_course, advised_machines
    from foresail.cloud.purchasing.forecast import ForecastSettings
    from foresail.cloud.purchasing.mix import mix
    from foresail.cloud.purchasing.mix_request import MixRequest
    from foresail.cloud.purchasing.offline_plan import OfflineSettings
    from foresail.cloud.purchasing.terms import PROVIDERS
    from foresail.model.errors import UnknownNameError
    from foresail.reports.renting.purchase_answer import PurchaseAnswer, record
    from foresail.reports.renting.purchase_tables import (
        advice_table,
        costs_table,
        errors_table,
        options_table,
    )
    from foresail.reports.renting.purchase_words import sentences

    if train is not None and not train > 0.0:
        raise InputError(
            "not a training period", field="--train", value=train, expected="days above 0"
        )
    if provider not in PROVIDERS:
        raise UnknownNameError("provider", provider, PROVIDERS)
    with told_by_options(_OPTIONS):
        forecast = ForecastSettings(risk, growth=growth, growth_spread=growth_spread, seed=seed)
    given: dict[str, tuple[float, ...]] = {}
    if forecast_error:
        given["demand_errors"] = numbers_of(forecast_error, "--forecast-error")
    if runtime_error:
        given["runtime_errors"] = _above(numbers_of(runtime_error, "--runtime-error"))
    with told_by_options(_OPTIONS):
        request = MixRequest(
            provider=provider,
            transient=not without_transient,
            settings=OfflineSettings(extension=short_log.value, amounts=amounts.value),
            training_hours=None if train is None else train * _DAY_HOURS,
            decide_by=decide_by.value,
            forecast=forecast,
            exact_seconds=exact_seconds or None,
            seed=seed,
            **given,  # type: ignore[arg-type]
        )
    answering.make_folder()
    catalogue = prices_of(prices)
    lives = _transient(catalogue, lifetime, histories)
    if without_transient and lives is not None:
        raise InputError(
            "lives of machines that must not be used",
            field="--without-transient",
            expected="neither --lifetime nor --histories with it",
        )
    workload = load_cleaned(log, log_options, filters or STANDARD_FILTERS)
    request = replace(
        request, transient_terms=lives, training_hours=request.training_hours or _third(workload)
    )
    options = {**_OPTIONS, "training_hours": "--train"}
    with told_by_options(options), doing("choosing what to buy"):
        report = mix(workload, catalogue, request)
    answer = PurchaseAnswer(
        log=log.name,
        catalogue=catalogue.name,
        valid_on=catalogue.valid_on,
        risk=risk,
        report=report,
        machines=advised_machines(workload, report, catalogue),
        course=advised_course(workload, report),
    )
    tables = (
        *(advice_table(answer), costs_table(answer)),
        *(options_table(report), errors_table(report)),
    )
    show(answering.output_format, record(answer), sentences(answer), tables)
    if answering.output is not None:
        from foresail.reports.renting.purchase_page import purchase_page

        answering.write(purchase_page(answer))


def _transient(
    catalogue: PriceCatalogue, lifetime: float | None, histories: str | None
) -> TransientTerms | None:
    """Stated or measured lives of transient machines; None: the catalogue's."""
    from foresail.cloud.prices_reading import load_histories
    from foresail.cloud.purchasing.revocation import ExponentialRevocation
    from foresail.cloud.purchasing.terms import observed_transient, terms_of

    if histories is not None:
        if lifetime is not None:
            raise InputError(
                "lives are given twice", field="--lifetime", value=lifetime, expected="one of them"
            )
        return observed_transient(load_histories(histories))
    if lifetime is None:
        return None
    sold = terms_of(catalogue).transient
    if sold is None:
        raise InputError(
            "the catalogue sells no transient machines",
            source=catalogue.name,
            field="--lifetime",
            value=lifetime,
        )
    with told_by_options({"mean_hours": "--lifetime"}):
        return replace(sold, revocation=ExponentialRevocation(lifetime))


def _third(workload: Workload) -> float | None:
    """Hours of the log's first third; None where all jobs come at once."""
    submit = workload.jobs["submit_seconds"]
    first, last = submit.min(), submit.max()
    if not isinstance(first, float) or not isinstance(last, float) or last <= first:
        return None
    return (last - first) / 3600.0 / 3.0


def _above(errors: tuple[float, ...]) -> tuple[float, ...]:
    for error in errors:
        if not error >= 0.0:
            raise InputError(
                "not an error", field="--runtime-error", value=error, expected="0 or more"
            )
    return errors
