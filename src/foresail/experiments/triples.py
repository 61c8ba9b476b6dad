"""The heuristic triples of the published study: prediction, correction and backfilling variant.

Source: paper 004 section 2.6; spec of backfilling, section 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Final, get_args

from foresail.control.policy import Policy, parse_policy
from foresail.predictors.regression import Shape, Weight

VARIANTS: Final = ("easy", "easy(order=shortest)")
"""EASY, and EASY-SJBF: shortest predicted runtime first among the candidates."""


@dataclass(frozen=True, slots=True)
class Readings:
    """Where the paper can be read in two ways: the parts of a policy as one reads them."""

    recent: str
    """AVE2: the mean of the user's last two runtimes."""
    incremental: str
    """The correction by longer and longer increments."""

    @property
    def easy_plus_plus(self) -> str:
        """EASY++ of Tsafrir, Etsion and Feitelson (2007)."""
        return parse_policy(f"easy(order=shortest),{self.recent},{self.incremental}").text


READINGS: Final[Mapping[str, Readings]] = MappingProxyType(
    {
        "standard": Readings("recent", "incremental"),
        "predictsim": Readings("recent(whole_seconds=true)", "incremental(reading=absolute)"),
    }
)
"""By the name of the conventions they belong to: the paper's words, or the study's simulator."""


def heuristic_triples(readings: Readings = READINGS["standard"]) -> tuple[str, ...]:
    """The 128 triples in canonical short form.

    20 regressions and AVE2, times three corrections, times two variants; and the requested time,
    which needs no correction, times two variants.
    """
    regressions = [
        f"regression(over={over},under={under},weight={weight})"
        for over, under, weight in product(get_args(Shape), get_args(Shape), get_args(Weight))
    ]
    corrections = ("requested", readings.incremental, "doubling")
    learned = product(VARIANTS, (readings.recent, *regressions), corrections)
    written = [*VARIANTS, *(",".join(parts) for parts in learned)]
    return tuple(parse_policy(text).text for text in written)


def clairvoyant_triples() -> tuple[str, ...]:
    """The two bounds that are reported beside the triples."""
    return tuple(parse_policy(f"{variant},clairvoyant").text for variant in VARIANTS)


def is_clairvoyant(policy: Policy) -> bool:
    """Whether a policy was told the real runtimes, so that no cluster could use it."""
    return policy.predictor.entry.name == "clairvoyant"
