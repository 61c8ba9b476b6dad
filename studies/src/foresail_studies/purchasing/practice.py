"""The practical policy on a log: it learns from the beginning, and is held to the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.purchasing.demand import BoughtJobs, bought_jobs
from foresail.cloud.purchasing.mix import MixRequest
from foresail.cloud.purchasing.offline import plan_offline
from foresail.cloud.purchasing.offline_plan import OfflineSettings
from foresail.cloud.purchasing.resources import resources_of
from foresail.cloud.purchasing.terms import PurchaseTerms
from foresail.model.arrays import Floats
from foresail.model.errors import InputError, require
from foresail.traces.workload import Workload
from foresail_studies.purchasing.retired_offers import published_terms
from foresail_studies.purchasing.serving import OnlineOutcome, serve
from foresail_studies.purchasing.training import OnlinePolicy, train

_RIDGE: Final = 1.0
_DAY_HOURS: Final = 24.0
_SHORTEST_HOURS: Final = 1.0 / 3600.0
_FACTORS: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class RegressedRuntimes:
    """Runtimes that a regression of log runtimes predicts."""

    middle_hours: Floats
    """Exponential of the predicted logarithm; shape (jobs,)."""
    factors: Floats
    """Equally likely factors by which runtimes were off it: quantiles of the residuals."""
    limit_hours: Floats
    """Where jobs are killed, inf where nowhere; shape (jobs,)."""

    @property
    def hours(self) -> Floats:
        """Equally likely runtimes of every job, within its limit; shape (jobs, factors)."""
        spread = self.middle_hours[:, None] * self.factors
        return np.asarray(np.clip(spread, _SHORTEST_HOURS, self.limit_hours[:, None]))

    @property
    def mean_hours(self) -> Floats:
        """Mean of them: the prediction as one number; shape (jobs,)."""
        return np.asarray(self.hours.mean(axis=1))


def ridge_beliefs(
    workload: Workload, jobs: BoughtJobs, trained: NDArray[np.bool_]
) -> RegressedRuntimes:
    """Runtimes of all jobs, learned from some of them (spec section 4.2).

    Ridge regression of the logarithm of the runtime on the user (a coefficient each), the submit
    time of day, cores, memory, GPUs and the limit. Logarithms, since runtimes spread over six
    orders of magnitude; the residuals' quantiles say how far off it is.

    ``trained`` says which jobs to learn from, shape (jobs,); users and limits are in the workload.

    Raises ``InputError`` if there is none to learn from.
    """
    if not trained.any():
        raise InputError("no jobs to learn runtimes from", expected="jobs in the training period")
    table = workload.jobs.select("user", "requested_seconds")[jobs.row]
    limit = table["requested_seconds"].fill_null(np.inf).to_numpy() / 3600.0
    user = _codes(table["user"])
    features = _features(jobs, limit)
    target = np.log(np.maximum(jobs.hours, _SHORTEST_HOURS))
    centre, spread = features[trained].mean(axis=0), features[trained].std(axis=0)
    scaled = (features - centre) / np.where(spread > 0.0, spread, 1.0)
    mean = float(target[trained].mean())
    weights, of_user = _fitted(scaled[trained], user[trained], target[trained] - mean, user.max())
    predicted = mean + scaled @ weights + of_user[user]
    levels = (np.arange(_FACTORS) + 0.5) / _FACTORS
    factors = np.exp(np.quantile((target - predicted)[trained], levels))
    return RegressedRuntimes(np.exp(predicted), factors, np.maximum(limit, _SHORTEST_HOURS))


def _features(jobs: BoughtJobs, limit_hours: Floats) -> Floats:
    known = np.isfinite(limit_hours)
    day = 2.0 * np.pi * (jobs.start_hours % _DAY_HOURS) / _DAY_HOURS
    return np.column_stack(
        [
            np.sin(day),
            np.cos(day),
            np.log(jobs.cores),
            np.log(jobs.gib),
            np.log1p(jobs.gpus),
            np.log(np.maximum(np.where(known, limit_hours, 1.0), _SHORTEST_HOURS)),
            known,
        ]
    )


def _codes(users: pl.Series) -> NDArray[np.int64]:
    return users.fill_null("").rank("dense").to_numpy().astype(np.int64) - 1


def _fitted(
    features: Floats, user: NDArray[np.int64], target: Floats, last_user: int
) -> tuple[Floats, Floats]:
    """Weights of the features and of every user; the users' block of the equations is diagonal."""
    users = int(last_user) + 1
    count = np.bincount(user, minlength=users) + _RIDGE
    of_user = np.column_stack([np.bincount(user, column, users) for column in features.T])
    target_of_user = np.bincount(user, target, users)
    width = features.shape[1]
    reduced = (
        features.T @ features + _RIDGE * np.eye(width) - of_user.T @ (of_user / count[:, None])
    )
    right = features.T @ target - of_user.T @ (target_of_user / count)
    weights = np.linalg.solve(reduced, right)
    of_users = (target_of_user - of_user @ weights) / count
    return weights.astype(np.float64), of_users.astype(np.float64)


def with_error(hours: Floats, mean_error: float, seed: int) -> Floats:
    """Runtimes with a relative error of this mean size: times 1 + e, E|e| = ``mean_error``.

    Errors are normal, and cut so that at least a twentieth of a runtime remains.

    Raises ``InputError`` if the error is negative.
    """
    if not mean_error >= 0.0:
        raise InputError("not an error", field="mean_error", value=mean_error, expected=">= 0")
    draws = np.random.default_rng(seed).standard_normal(hours.size)
    factor = 1.0 + draws * mean_error * np.sqrt(np.pi / 2.0)
    return np.asarray(hours * np.maximum(factor, 0.05))


@dataclass(frozen=True, slots=True)
class PracticeRequest:
    """Request to the practical policy.

    Raises ``InputError`` if the training period is not above 0.
    """

    training_hours: float
    """The beginning of the log from which it learns."""
    decide_by: Literal["mean", "distribution"] = "mean"
    """Whether it rents by the mean of what its regression believes of a runtime, as published, or
    by the expected cost over all that it believes."""
    runtime_errors: tuple[float, ...] = (0.0, 0.1, 0.5, 1.0)
    """Mean relative errors of predicted runtimes, to see what they cost."""
    seed: int = 0
    """Of these errors."""

    def __post_init__(self) -> None:
        require(self.training_hours > 0.0, self, "training_hours", "above 0")


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
    workload: Workload, catalogue: PriceCatalogue, mix: MixRequest, request: PracticeRequest
) -> OnlineReport:
    """Let the policy learn from the log's beginning, and serve the rest (spec section 4.2).

    It goes by what its own regression of runtimes, trained on the same period, believes.

    Raises ``InputError`` if there are no jobs before or after the end of the training period.
    """
    jobs, terms = bought_jobs(workload), published_terms(catalogue, mix)
    before = jobs.start_hours < request.training_hours
    if before.all() or not before.any():
        raise InputError(
            "no jobs on one side of the end of the training period",
            source=workload.meta.source,
            field="training_hours",
            value=f"{request.training_hours / 24.0:g} days",
            expected=f"less than the log's {jobs.start_hours.max() / 24.0:.4g} days of submissions",
        )
    policy = train(jobs.between(0.0, request.training_hours), catalogue, terms, mix.settings)
    evaluated = jobs.between(request.training_hours, np.inf)
    beliefs = ridge_beliefs(workload, jobs, before)
    mean = beliefs.mean_hours[~before]
    believed = beliefs.hours[~before] if request.decide_by == "distribution" else mean
    return OnlineReport(
        outcome=serve(policy, evaluated, believed, request.training_hours),
        optimum_cost=_optimum_cost(evaluated, catalogue, terms, mix.settings),
        mean_error=float(np.mean(np.abs(mean - evaluated.hours) / evaluated.hours)),
        by_runtime_error=_by_runtime_error(policy, evaluated, request, request.training_hours),
    )


def _optimum_cost(
    jobs: BoughtJobs, catalogue: PriceCatalogue, terms: PurchaseTerms, settings: OfflineSettings
) -> float:
    """Return the jobs' own part in the cost of a repeated log, as if on demand."""
    cost = 0.0
    repeated = replace(settings, extension="repeat")
    for each in resources_of(jobs, catalogue, settings.amounts, terms.customised_markup):
        plan = plan_offline(jobs, each.units, terms, repeated, held=each.held)
        cost += plan.cost / plan.demand_hours * float(each.units @ jobs.hours) * each.per_hour
    return cost


def _by_runtime_error(
    policy: OnlinePolicy, jobs: BoughtJobs, request: PracticeRequest, elapsed_hours: float
) -> pl.DataFrame:
    rows = []
    for error in request.runtime_errors:
        hours = with_error(jobs.hours, error, request.seed)
        outcome = serve(policy, jobs, hours, elapsed_hours)
        rows.append((error, outcome.cost, outcome.cost / outcome.all_on_demand_cost))
    return pl.DataFrame(rows, schema=["error", "cost", "share"], orient="row")
