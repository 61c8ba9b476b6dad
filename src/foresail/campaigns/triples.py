"""The heuristic triples of the published study: prediction, correction and backfilling variant.

Source: paper 004 section 2.6; spec of backfilling, section 8.
"""

from __future__ import annotations

from itertools import product
from typing import Final, get_args

from foresail.control.policy import Policy, parse_policy
from foresail.predictors.regression import Shape, Weight

VARIANTS: Final = ("easy", "easy(order=shortest)")
"""EASY, and EASY-SJBF: shortest predicted runtime first among the candidates."""


EASY_PLUS_PLUS: Final = parse_policy("easy++")
"""Policy of Tsafrir, Etsion and Feitelson (2007), as the study read it."""


def heuristic_triples() -> tuple[str, ...]:
    """The 128 triples in canonical short form.

    20 regressions and AVE2, times three corrections, times two variants; and the requested time,
    which needs no correction, times two variants. AVE2 and increments are those of EASY++.
    """
    regressions = [
        f"regression(over={over},under={under},weight={weight})"
        for over, under, weight in product(get_args(Shape), get_args(Shape), get_args(Weight))
    ]
    average, increments = EASY_PLUS_PLUS.predictor.text, EASY_PLUS_PLUS.correction.text
    corrections = ("requested", increments, "doubling")
    learned = product(VARIANTS, (average, *regressions), corrections)
    written = [*VARIANTS, *(",".join(parts) for parts in learned)]
    return tuple(parse_policy(text).text for text in written)


def clairvoyant_triples() -> tuple[str, ...]:
    """The two bounds that are reported beside the triples."""
    return tuple(parse_policy(f"{variant},clairvoyant").text for variant in VARIANTS)


def is_clairvoyant(policy: Policy) -> bool:
    """Whether a policy was told the real runtimes, so that no cluster could use it."""
    return policy.predictor.entry.name == "clairvoyant"
