"""``foresail cloud waiting`` by formula, for jobs that arrive at random."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from foresail.cli.cloud._prices import times_of
from foresail.cli.cloud._waiting_question import Owning, WaitingRequest
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.cloud.waiting.models import Mispredicted
    from foresail.cloud.waiting.owning_answer import OwningAnswer
    from foresail.reports.renting.rent_or_wait_words import Circumstances

_OF_FORMULAS: Final = 1_000
"""Numbers of machines to try, unless they are given."""
_MOST_MACHINES: Final = 1_000_000


def answer_by_formula(
    model: str, wrong_shares: tuple[float, float], question: WaitingRequest, owning: Owning
) -> tuple[OwningAnswer, Circumstances]:
    """What is best for RATE,RUNTIME, with what was asked of."""
    from foresail.cloud.waiting.models import POLICIES, Load, Mispredicted
    from foresail.cloud.waiting.owning_by_formula import own_or_rent_by_formula
    from foresail.cloud.waiting.settings import usual_counts
    from foresail.cloud.waiting.worth import USUAL_SHARE
    from foresail.reports.renting.rent_or_wait_words import Circumstances

    rate, runtime, arrivals, mean = _arrivals_and_mean(model)
    load = Load(arrivals, 1.0 / mean, owning.relative_price)
    if load.offered > _MOST_MACHINES:
        raise InputError(
            "too many jobs at a time",
            field="--model",
            value=f"{load.offered:g} on average",
            expected=f"up to {_MOST_MACHINES:,}",
        )
    wrong = Mispredicted(*wrong_shares)
    policies = [name for name in POLICIES if name != "compound" or not any(wrong)]
    counts = usual_counts(load.offered, owning.relative_price, _OF_FORMULAS)
    hourly = owning.offer.on_demand_per_hour
    answer = own_or_rent_by_formula(
        load, hourly, question.sweep(policies, counts), question.worth(USUAL_SHARE * hourly), wrong
    )
    return answer, Circumstances(
        log=f"{rate} jobs a second of {runtime} on average",
        machine_name=owning.offer.instance.name,
        machine=owning.machine,
        currency=owning.catalogue.currency,
        catalogue=owning.catalogue.name,
        valid_on=owning.catalogue.valid_on,
        known=_known(wrong),
        by_formula=True,
    )


def _arrivals_and_mean(model: str) -> tuple[str, str, float, float]:
    """RATE and RUNTIME as they were written, and as numbers (per second, and seconds)."""
    parts = model.split(",")
    try:
        rate, runtime = parts
        arrivals = float(rate)
    except ValueError:
        raise InputError(
            "no arrivals and runtime", field="--model", value=model, expected="such as 0.2,500s"
        ) from None
    mean = times_of([runtime], "--model")[0]
    if not (mean > 0.0 and 0.0 < arrivals < math.inf):
        raise InputError(
            "no arrivals and runtime", field="--model", value=model, expected="both above 0"
        )
    return rate, runtime, arrivals, mean


def _known(wrong: Mispredicted) -> str:
    """What predictions are like."""
    from foresail.model.words import percent

    if not any(wrong):
        return "by formula, all predictions right"
    return (
        f"by formula, {percent(wrong.over)} of predictions too long, {percent(wrong.under)} of "
        "those that matter too short"
    )
