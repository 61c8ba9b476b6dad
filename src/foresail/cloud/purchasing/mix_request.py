"""What is asked of the mix: options, settings, risk, and the errors to try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from foresail.cloud.purchasing.forecast import ForecastSettings
from foresail.cloud.purchasing.offline_plan import DEFAULT_SETTINGS, OfflineSettings
from foresail.cloud.purchasing.terms import TransientTerms
from foresail.model.limits import require


@dataclass(frozen=True, slots=True)
class MixRequest:
    """What is asked of the mix.

    Raises
    ------
    InputError
        If a number is out of its range.
    """

    provider: str = "all"
    """Whose options are on sale: see ``PROVIDERS``."""
    transient: bool = True
    """Whether jobs may be revoked."""
    transient_terms: TransientTerms | None = None
    """Price and lifetimes of transient machines; None: those of the catalogue, where a mean life of
    24 hours stands in for what it does not say."""
    settings: OfflineSettings = DEFAULT_SETTINGS
    """Of the optimum in hindsight."""
    forecast: ForecastSettings | None = None
    """How uncertain the coming years are; None: no plan at a stated risk."""
    exact_seconds: float | None = None
    """How long to look for the exact optimum of a coarser problem that the optimum in hindsight is
    held against; None: not at all."""
    demand_errors: tuple[float, ...] = (-0.5, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5)
    """Relative errors of the amounts reserved, to see what they cost."""

    def __post_init__(self) -> None:
        some = all(error >= -1.0 for error in self.demand_errors)
        require(some, self, "demand_errors", "-1 (nothing is reserved) or more")


DEFAULT_REQUEST: Final = MixRequest()
