"""Generator ``e2e``: 3Sigma's synthetic workload, from job classes of a log or like Google's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.model.limits import require_each_at_least
from foresail.model.registry import register
from foresail.traces.generators._synthetic import SyntheticParameters, synthesise
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class E2EParameters(SyntheticParameters):
    """Parameters of the generator ``e2e``.

    Parameters
    ----------
    slack_percents
        A deadline is submission plus runtime plus one of these percentages of it, each as likely.
    """

    slack_percents: tuple[float, ...] = (20.0, 40.0, 60.0, 80.0)

    def __post_init__(self) -> None:
        SyntheticParameters.__post_init__(self)
        require_each_at_least(self, 0, "slack_percents")


@register("generator", "e2e", parameters=E2EParameters)
class E2E:
    """3Sigma's E2E: jobs with deadlines and best-effort jobs of k-means classes, bursty arrivals.

    ``--set load=1.6`` is its E2E-LOAD-1.6, ``--set hours=2`` the two-hour variant.
    """

    def __init__(self, parameters: E2EParameters) -> None:
        self._parameters = parameters

    def generate(self, random: np.random.Generator) -> Workload:
        """The run, or the history to train with."""
        return synthesise(self._parameters, self._parameters.slack_percents, random).workload
