"""The data-driven waiting policies side by side (section 7.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.cloud.waiting.kernels.wait_model import WaitModel
from foresail.cloud.waiting.learning import perturbed
from foresail.cloud.waiting.policies import Beliefs, Forecast, Foresight, WaitingPolicy
from foresail.cloud.waiting.spot import Revocations
from foresail.model.arrays import Floats

SPOT_PRICE: Final = 0.3
_MEAN_ERROR: Final = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """One way to live without an oracle.

    Parameters
    ----------
    name
        Shown in tables.
    policy, beliefs
        The policy and what it is told.
    lost_seconds, trial_price
        Of trials; see ``simulate`` and ``measured``.
    """

    name: str
    policy: WaitingPolicy
    beliefs: Beliefs
    lost_seconds: Floats | None = None
    trial_price: float = 1.0


def standard_variants(
    jobs: TraceJobs,
    baseline: WaitingPolicy,
    wait_models: Mapping[str, WaitModel],
    runtime_estimates: Mapping[str, Floats],
    seed: int = 0,
) -> list[Variant]:
    """The published variants of a compound policy, and those of the models that are given.

    All go by the baseline's thresholds. A model of waits gives SWW-ML, and with speculation the
    combined variant; estimates of runtimes (by job) one variant with waits still foreseen, and one
    with waits that are forecast from the same estimates, as published.
    """
    short = baseline.short_seconds
    tried = replace(baseline, short_seconds=0.0, speculation_seconds=short)
    truth = Beliefs.true_runtimes(jobs)
    foreseen = Beliefs.true_runtimes(jobs, Foresight())
    lost = Revocations().lost_seconds(jobs.runtime_seconds, short, seed)
    close = perturbed(jobs.runtime_seconds, _MEAN_ERROR, seed)
    variants = [
        Variant("oracle", baseline, foreseen),
        Variant("naive", baseline, truth),
        Variant("runtimes 10 % off", baseline, Beliefs(close, Foresight())),
        Variant("runtimes and waits 10 % off", baseline, Beliefs(close, Forecast())),
        Variant("speculative", tried, foreseen),
        Variant("speculative, spot", tried, foreseen, lost, SPOT_PRICE),
    ]
    for name, estimates in runtime_estimates.items():
        variants += [
            Variant(f"runtimes by {name}", baseline, Beliefs(estimates, Foresight())),
            Variant(f"runtimes and waits by {name}", baseline, Beliefs(estimates, Forecast())),
        ]
    for name, model in wait_models.items():
        told = Beliefs.true_runtimes(jobs, model)
        variants.append(Variant(f"waits by {name}", baseline, told))
        variants.append(Variant(f"combined, {name}", tried, told))
    return variants
