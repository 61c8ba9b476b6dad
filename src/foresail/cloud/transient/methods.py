"""The names of the ways to choose a pool; imports nothing, for the command line."""

from __future__ import annotations

from enum import StrEnum


class Method(StrEnum):
    """How a pool is chosen (spec 2.3).

    ``best`` takes the marginal ones at several scales and refines them, ``exact`` is the cheapest
    of all by branch and bound.
    """

    BEST = "best"
    MARGINAL_LOG = "marginal_log"
    MARGINAL_LINEAR = "marginal_linear"
    EQ33_STATIC = "eq33_static"
    EXACT = "exact"
