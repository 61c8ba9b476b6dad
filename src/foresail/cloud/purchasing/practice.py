"""The practical policy on a log: it learns from the beginning, and is held to the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.purchasing.demand import BoughtJobs
from foresail.cloud.purchasing.mix_request import MixRequest
from foresail.cloud.purchasing.offline import plan_offline
from foresail.cloud.purchasing.offline_plan import OfflineSettings
from foresail.cloud.purchasing.resources import resources_of
from foresail.cloud.purchasing.runtimes import ridge_beliefs, with_error
from foresail.cloud.purchasing.serving import OnlineOutcome, serve
from foresail.cloud.purchasing.terms import PurchaseTerms
from foresail.cloud.purchasing.training import OnlinePolicy, train
from foresail.model.errors import InputError
from foresail.traces.workload import Workload


@dataclass(frozen=True, eq=False)
class OnlineReport:
    """The practical policy after its training period."""

    outcome: OnlineOutcome
    """With runtimes predicted by the buyer's regression, or as given."""
    optimum_cost: float
    """What the optimum in hindsight pays for the same jobs, in any amounts."""
    mean_error: float
    """Of the predictions: mean of |predicted - real| / real."""
    by_runtime_error: pl.DataFrame
    """Mean error, cost, and cost relative to all on demand; 0 is an oracle."""


def practise(
    workload: Workload,
    jobs: BoughtJobs,
    catalogue: PriceCatalogue,
    terms: PurchaseTerms,
    request: MixRequest,
) -> OnlineReport:
    """Let the policy learn from the log's beginning, and serve the rest (spec section 4.2).

    It goes by what its own regression of runtimes, trained on the same period, believes.

    Raises
    ------
    InputError
        If there are no jobs before or after the end of the training period.
    """
    assert request.training_hours is not None
    before = jobs.start_hours < request.training_hours
    if before.all() or not before.any():
        raise InputError(
            "no jobs on one side of the end of the training period",
            source=workload.meta.source,
            field="training_hours",
            value=f"{request.training_hours / 24.0:g} days",
            expected=f"less than the log's {jobs.start_hours.max() / 24.0:.4g} days of submissions",
        )
    policy = train(jobs.between(0.0, request.training_hours), catalogue, terms, request.settings)
    evaluated = jobs.between(request.training_hours, np.inf)
    beliefs = ridge_beliefs(workload, jobs, before)
    mean = beliefs.mean_hours[~before]
    believed = beliefs.hours[~before] if request.decide_by == "distribution" else mean
    return OnlineReport(
        outcome=serve(policy, evaluated, believed, request.training_hours),
        optimum_cost=_optimum_cost(evaluated, catalogue, terms, request.settings),
        mean_error=float(np.mean(np.abs(mean - evaluated.hours) / evaluated.hours)),
        by_runtime_error=_by_runtime_error(policy, evaluated, request, request.training_hours),
    )


def _optimum_cost(
    jobs: BoughtJobs, catalogue: PriceCatalogue, terms: PurchaseTerms, settings: OfflineSettings
) -> float:
    """Of the jobs themselves: the share of a repeated log that they would pay on demand."""
    cost = 0.0
    repeated = replace(settings, extension="repeat")
    for each in resources_of(jobs, catalogue, settings.amounts, terms.customised_markup):
        plan = plan_offline(jobs, each.units, terms, repeated, held=each.held)
        cost += plan.cost / plan.demand_hours * float(each.units @ jobs.hours) * each.per_hour
    return cost


def _by_runtime_error(
    policy: OnlinePolicy, jobs: BoughtJobs, request: MixRequest, elapsed_hours: float
) -> pl.DataFrame:
    rows = []
    for error in request.runtime_errors:
        hours = with_error(jobs.hours, error, request.seed)
        outcome = serve(policy, jobs, hours, elapsed_hours)
        rows.append((error, outcome.cost, outcome.cost / outcome.all_on_demand_cost))
    return pl.DataFrame(rows, schema=["error", "cost", "share"], orient="row")
