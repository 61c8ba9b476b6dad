"""Generator ``deadline``: the E2E workload with one slack for all jobs (DEADLINE-n)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.model.limits import require_at_least
from foresail.model.registry import register
from foresail.traces.generators._synthetic import SyntheticParameters, synthesise
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class DeadlineParameters(SyntheticParameters):
    """Parameters of the generator ``deadline``.

    Parameters
    ----------
    slack_percent
        A deadline is submission plus runtime plus this percentage of it; the study takes 20, 40 ...
        180.
    """

    slack_percent: float = 60.0

    def __post_init__(self) -> None:
        SyntheticParameters.__post_init__(self)
        require_at_least(self, 0, "slack_percent")


@register("generator", "deadline", parameters=DeadlineParameters)
class Deadline:
    """3Sigma's DEADLINE-n: for one seed the same jobs as E2E, all deadlines equally tight."""

    def __init__(self, parameters: DeadlineParameters) -> None:
        self._parameters = parameters

    def generate(self, random: np.random.Generator) -> Workload:
        """The run, or the history to train with."""
        return synthesise(self._parameters, (self._parameters.slack_percent,), random).workload
