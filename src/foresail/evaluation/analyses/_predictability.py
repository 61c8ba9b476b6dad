"""What the analyses of predictability have in common: the predictor, and about how many jobs."""

from __future__ import annotations

from dataclasses import dataclass

from foresail.model.errors import InputError


@dataclass(frozen=True, slots=True)
class PredictabilityParameters:
    """Parameters of an analysis of predictability."""

    predictor: str = "jvu"
    """Short form of the predictor that is asked."""
    most_jobs: int = 200_000
    """The first so many jobs are looked at."""

    def __post_init__(self) -> None:
        if self.most_jobs < 1:
            raise InputError("too few", field="most_jobs", value=self.most_jobs, expected="1 on")
