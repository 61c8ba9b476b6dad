"""``foresail cloud buy``: which purchasing options to buy for jobs that never wait."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from foresail.cli import renting_options
from foresail.cli.formats import naming_options, require_output
from foresail.cli.log_options import LogOptions, LogPath
from foresail.cli.progress import doing
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.cloud.prices import PriceCatalogue
    from foresail.cloud.purchasing.terms import TransientTerms

_OPTIONS = {
    "risk": "--risk",
    "growth": "--growth",
    "growth_spread": "--growth-spread",
    "demand_errors": "--forecast-error",
    "extension": "--short-log",
}


class Amounts(StrEnum):
    """Amounts that the optimum in hindsight buys for a job."""

    ANY = "any"
    OF_MACHINES = "of-machines"


class Short(StrEnum):
    """Treatment of a log that is shorter than a commitment."""

    REPEAT = "repeat"
    REFUSE = "refuse"


def command(
    log: LogPath,
    prices: renting_options.PriceOptions = renting_options.PriceOptions(),
    provider: str = "all",
    without_transient: bool = False,
    lifetime: float | None = None,
    histories: str | None = None,
    risk: float = 0.1,
    growth: float = 1.0,
    growth_spread: float = 0.2,
    forecast_error: list[str] | None = None,
    amounts: Amounts = Amounts.ANY,
    short_log: Short = Short.REPEAT,
    seed: int = 0,
    filters: renting_options.Filters = None,
    log_options: LogOptions = LogOptions(),
    answering: renting_options.PicturedAnswerOptions = renting_options.PicturedAnswerOptions(),
) -> None:
    """Advise what to reserve and what to rent for jobs that never wait, at a stated risk.

    Beside the advice: what would have been best in hindsight, and what errors of the forecast cost.

    Options:
        provider NAME: Whose options: amazon, google, google-customised, microsoft, all.
        without_transient: Jobs must not be revoked.
        lifetime HOURS: Mean life of a transient machine [the catalogue's].
        histories HISTORIES: Or prices and lives as markets had them.
        risk SHARE: Largest chance that a level does not pay.
        growth FACTOR: Of demand in a year, in the middle.
        growth_spread SHARE: How uncertain the logarithm of that is.
        forecast_error SHARES: Errors of what is reserved [-0.5,-0.2,-0.1,0,0.1,0.2,0.5].
        amounts: What hindsight buys: any amounts, or parts of machines on sale.
        short_log: What to do if the log is shorter than a commitment.
        seed (0..): Of the futures.
    """
    from foresail.cli.log_options import load_cleaned
    from foresail.cloud.purchasing.forecast import ForecastSettings
    from foresail.cloud.purchasing.mix import MixRequest, advised_machines, advised_use, mix
    from foresail.cloud.purchasing.offline import OfflineSettings
    from foresail.cloud.purchasing.terms import PROVIDERS
    from foresail.model.errors import UnknownNameError
    from foresail.reports.renting.purchase_page import (
        PurchaseAnswer,
        advice_table,
        costs_table,
        errors_table,
        options_table,
        purchase_page,
        record,
        sentences,
    )

    if provider not in PROVIDERS:
        raise UnknownNameError("provider", provider, PROVIDERS)
    with naming_options(_OPTIONS):
        forecast = ForecastSettings(risk, growth=growth, growth_spread=growth_spread, seed=seed)
    given: dict[str, tuple[float, ...]] = {}
    if forecast_error:
        given["demand_errors"] = renting_options.numbers_of(forecast_error, "--forecast-error")
    with naming_options(_OPTIONS):
        request = MixRequest(
            provider=provider,
            transient=not without_transient,
            settings=OfflineSettings(extension=short_log.value, amounts=amounts.value),
            forecast=forecast,
            **given,  # type: ignore[arg-type]
        )
    require_output(answering.output, png=answering.png)
    catalogue = renting_options.prices_of(prices)
    lives = _transient(catalogue, lifetime, histories)
    if without_transient and lives is not None:
        raise InputError(
            "lives of machines that must not be used",
            field="--without-transient",
            expected="neither --lifetime nor --histories with it",
        )
    workload = load_cleaned(log, log_options, filters or renting_options.STANDARD_FILTERS)
    request = replace(request, transient_terms=lives)
    with naming_options(_OPTIONS), doing("choosing what to buy"):
        report = mix(workload, catalogue, request)
    answer = PurchaseAnswer(
        log=log.name,
        catalogue=catalogue.name,
        valid_on=catalogue.valid_on,
        risk=risk,
        report=report,
        machines=advised_machines(workload, report, catalogue),
        use=advised_use(workload, report),
    )
    answering.answer(
        record(answer),
        sentences(answer),
        (advice_table(answer), costs_table(answer), options_table(report), errors_table(report)),
        lambda: purchase_page(answer),
    )


def _transient(
    catalogue: PriceCatalogue, lifetime: float | None, histories: str | None
) -> TransientTerms | None:
    """Stated or measured lives of transient machines; None: the catalogue's."""
    from foresail.cloud.prices_reading import load_histories
    from foresail.cloud.purchasing.terms import ExponentialRevocation, observed_transient, terms_of

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
    with naming_options({"mean_hours": "--lifetime"}):
        return replace(sold, revocation=ExponentialRevocation(lifetime))
