"""The data-driven waiting policies side by side (section 7.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.cloud.waiting.kernels.waiting_choice import WaitModel
from foresail.cloud.waiting.simulating import Beliefs, Foresight, WaitingPolicy
from foresail.model.arrays import Floats
from foresail_studies.waiting.learned import perturbed

SPOT_PRICE: Final = 0.3
_MEAN_ERROR: Final = 0.1
_TAKEN_SOON: Final = 0.45
_EARLY_HOURS: Final = 1.0
_LATE_HOURS: Final = 0.8
_LONGEST_HOURS: Final = 24.0
"""Of lifetimes, as measured for preemptible machines: many end soon, or at the end of a day."""


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """One way to live without an oracle."""

    name: str
    """Shown in tables."""
    policy: WaitingPolicy
    beliefs: Beliefs
    """The policy and its knowledge."""
    lost_seconds: Floats | None = None
    trial_price: float = 1.0
    """Of trials; see ``simulate`` and ``measured``."""


def standard_variants(
    jobs: TraceJobs,
    baseline: WaitingPolicy,
    wait_models: Mapping[str, WaitModel],
    runtime_estimates: Mapping[str, Floats],
    seed: int = 0,
) -> list[Variant]:
    """The published variants of a compound policy, and those of the models that are given.

    All go by the baseline's thresholds. A model of waits gives SWW-ML, and with speculation the
    combined variant; estimates of runtimes (by job) one variant with waits still foreseen.
    """
    short = baseline.short_seconds
    tried = replace(baseline, short_seconds=0.0, speculation_seconds=short)
    truth = Beliefs.true_runtimes(jobs)
    foreseen = Beliefs.true_runtimes(jobs, Foresight())
    lost = lost_in_trials(jobs.runtime_seconds, short, seed)
    close = perturbed(jobs.runtime_seconds, _MEAN_ERROR, seed)
    variants = [
        Variant("oracle", baseline, foreseen),
        Variant("naive", baseline, truth),
        Variant("runtimes 10 % off", baseline, Beliefs(close, Foresight())),
        Variant("speculative", tried, foreseen),
        Variant("speculative, spot", tried, foreseen, lost, SPOT_PRICE),
    ]
    for name, estimates in runtime_estimates.items():
        variants.append(Variant(f"runtimes by {name}", baseline, Beliefs(estimates, Foresight())))
    for name, model in wait_models.items():
        told = Beliefs.true_runtimes(jobs, model)
        variants.append(Variant(f"waits by {name}", baseline, told))
        variants.append(Variant(f"combined, {name}", tried, told))
    return variants


def taken_by(seconds: Floats) -> Floats:
    """Share of machines that were taken back by then: A (1 - exp(-x / e) + exp((x - 24 h) / l))."""
    hours = seconds / 3600.0
    soon = 1.0 - np.exp(-hours / _EARLY_HOURS)
    share = _TAKEN_SOON * (soon + np.exp((hours - _LONGEST_HOURS) / _LATE_HOURS))
    return np.where(hours >= _LONGEST_HOURS, 1.0, np.clip(share, 0.0, 1.0))


def lost_in_trials(runtime_seconds: Floats, speculation_seconds: float, seed: int) -> Floats:
    """By job: how long its trial ran before its machine was taken back; 0 if it was not."""
    seconds: Floats = np.arange(0.0, 3600.0 * _LONGEST_HOURS + 1.0)
    levels = np.random.default_rng(seed).random(runtime_seconds.size)
    life = np.interp(levels, taken_by(seconds), seconds)
    return np.where(life < np.minimum(runtime_seconds, speculation_seconds), life, 0.0)
