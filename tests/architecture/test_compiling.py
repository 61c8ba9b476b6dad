"""What a newcomer waits for: no kernel takes long to compile, and all together do not."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import compiling

from long_series import IS_LONG

pytestmark = pytest.mark.skipif(not IS_LONG, reason="minutes: of make test-long and .ci/run")

MOST_OF_ONE = 11.0
MOST_TOGETHER = 270.0
"""Times what a bare EASY loop takes, among the kernels: some 0.4 s. Together it was 225 to 245."""


@pytest.fixture(scope="module")
def compiled():
    """Small uses of everything, in a process of their own with an empty cache.

    What seems long is measured once more: a machine that is slow for seconds makes one kernel long.
    """
    first = compiling.measured()
    return first if not _long(first) and _is_short(first) else compiling.measured()


def _long(compiled):
    return {
        each.name: (each.times, round(compiled.ratio(each.own_seconds), 1))
        for each in compiled.kernels
        if compiled.ratio(each.own_seconds) > MOST_OF_ONE
    }


def _is_short(compiled):
    return compiled.ratio(compiled.seconds) < MOST_TOGETHER


@pytest.mark.slow
def test_no_kernel_takes_long(compiled):
    """Too many arrays, library functions on arrays, or several types of the same arguments.

    What is called counts for itself. ``foresail.kernels.compile`` says what is quick to compile,
    ``python -m benchmarks compiling`` where the time goes.
    """
    assert not _long(compiled)
    assert _is_short(compiled), compiled.table()


@pytest.mark.slow
def test_every_kernel_is_measured(compiled):
    """A kernel that nothing compiles is missing in ``benchmarks.small_uses``, or has no use."""
    assert not compiled.unreached
