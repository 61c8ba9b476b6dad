"""Generator ``e2e_sample``: E2E jobs that carry samples of their runtime distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from foresail.model.limits import require_at_least
from foresail.model.registry import register
from foresail.traces.generators._synthetic import synthesise
from foresail.traces.generators.e2e import E2EParameters
from foresail.traces.runtime_samples import FEATURE, as_text
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class E2ESampleParameters(E2EParameters):
    """Parameters of the generator ``e2e_sample``.

    Parameters
    ----------
    samples
        Independent samples for each job; the study takes 5, 10, 25, 50, 75 and 100.
    """

    samples: int = 25

    def __post_init__(self) -> None:
        E2EParameters.__post_init__(self)
        require_at_least(self, 1, "samples")


@register("generator", "e2e_sample", parameters=E2ESampleParameters)
class E2ESample:
    """3Sigma's E2E-SAMPLE-n: for one seed the jobs of E2E, with samples of their classes.

    The feature ``runtime_samples`` holds seconds, comma-separated, drawn from the distribution that
    the job's runtime was drawn from; ``foresail.traces.runtime_samples.samples_of`` reads it.
    """

    def __init__(self, parameters: E2ESampleParameters) -> None:
        self._parameters = parameters

    def generate(self, random: np.random.Generator) -> Workload:
        """The run, or the history to train with."""
        made = synthesise(self._parameters, self._parameters.slack_percents, random)
        kinds = np.repeat(made.drawn.of_class[:, None], self._parameters.samples, axis=1)
        samples = made.classes.draw_runtimes(kinds, random.spawn(1)[0]) * made.factor[:, None]
        feature = pl.Series(FEATURE, as_text(samples))
        return made.workload.with_jobs(made.workload.jobs.with_columns(feature))
