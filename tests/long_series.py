"""How much of a series of cases runs: some of it with every change, all with ``make test-long``."""

import os

IS_LONG = os.environ.get("FORESAIL_LONG_TESTS") == "1"


def of_a_series(cases: int, short: int) -> int:
    """So many cases, of which only ``short`` run with every change."""
    return cases if IS_LONG else short


def some_of(cases, every: int):
    """All of a matrix, of which every so manyth case runs with every change."""
    cases = list(cases)
    return cases if IS_LONG else cases[::every]
