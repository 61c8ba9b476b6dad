"""Generators ``e2e``, ``deadline`` and ``e2e_sample``: 3Sigma's synthetic workloads.

Their jobs are of classes of a log, or of a population like Google's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from foresail.model.errors import require_at_least, require_each_at_least
from foresail.model.registry import register
from foresail.traces.generating import generator
from foresail.traces.workload import Workload
from foresail_studies.generators._synthetic import SyntheticParameters, synthesise
from foresail_studies.runtime_samples import FEATURE, as_text


@dataclass(frozen=True, slots=True)
class E2EParameters(SyntheticParameters):
    """Parameters of the generator ``e2e``."""

    slack_percents: tuple[float, ...] = (20.0, 40.0, 60.0, 80.0)
    """A deadline is submission plus runtime plus one of these percentages of it, each as likely."""

    def __post_init__(self) -> None:
        SyntheticParameters.__post_init__(self)
        require_each_at_least(self, 0, "slack_percents")


@register("generator", "e2e", parameters=E2EParameters)
@generator
def e2e(parameters: E2EParameters, random: np.random.Generator) -> Workload:
    """3Sigma's E2E: jobs with deadlines and best-effort jobs of k-means classes, bursty arrivals.

    ``--set load=1.6`` is its E2E-LOAD-1.6, ``--set hours=2`` the two-hour variant.
    """
    return synthesise(parameters, parameters.slack_percents, random).workload


@dataclass(frozen=True, slots=True)
class DeadlineParameters(SyntheticParameters):
    """Parameters of the generator ``deadline``."""

    slack_percent: float = 60.0
    """A deadline is submission plus runtime plus this percentage of it; the study takes 20, 40 ...
    180."""

    def __post_init__(self) -> None:
        SyntheticParameters.__post_init__(self)
        require_at_least(self, 0, "slack_percent")


@register("generator", "deadline", parameters=DeadlineParameters)
@generator
def deadline(parameters: DeadlineParameters, random: np.random.Generator) -> Workload:
    """3Sigma's DEADLINE-n: for one seed the same jobs as E2E, all deadlines equally tight."""
    return synthesise(parameters, (parameters.slack_percent,), random).workload


@dataclass(frozen=True, slots=True)
class E2ESampleParameters(E2EParameters):
    """Parameters of the generator ``e2e_sample``."""

    samples: int = 25
    """Independent samples for each job; the study takes 5, 10, 25, 50, 75 and 100."""

    def __post_init__(self) -> None:
        E2EParameters.__post_init__(self)
        require_at_least(self, 1, "samples")


@register("generator", "e2e_sample", parameters=E2ESampleParameters)
@generator
def e2e_sample(parameters: E2ESampleParameters, random: np.random.Generator) -> Workload:
    """3Sigma's E2E-SAMPLE-n: for one seed the jobs of E2E, with samples of their classes.

    The feature ``runtime_samples`` holds seconds, comma-separated, drawn from the distribution that
    the job's runtime was drawn from; ``foresail_studies.runtime_samples.samples_of`` reads it.
    """
    made = synthesise(parameters, parameters.slack_percents, random)
    kinds = np.repeat(made.drawn.of_class[:, None], parameters.samples, axis=1)
    samples = made.classes.draw_runtimes(kinds, random.spawn(1)[0]) * made.factor[:, None]
    feature = pl.Series(FEATURE, as_text(samples))
    return made.workload.with_jobs(made.workload.jobs.with_columns(feature))
