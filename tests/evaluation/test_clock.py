"""The clock inside kernels tells the processor time that Python's own clock tells."""

import time

from foresail.evaluation._loop import nanoseconds, nanoseconds_to_read
from foresail.kernels.compile import kernel


@kernel
def moment() -> int:
    """The time now, read in compiled code."""
    return nanoseconds()


def test_it_is_the_processor_time_of_this_thread():
    """Between two readings of Python's clock, and standing still while the thread sleeps."""
    moment()
    before, inside, after = time.thread_time_ns(), moment(), time.thread_time_ns()
    assert before <= inside <= after
    time.sleep(0.05)
    assert moment() - inside < 40_000_000


def test_reading_takes_little():
    """Well below the microseconds that are measured with it; nothing if a clock moves in steps."""
    assert 0 <= nanoseconds_to_read() < 20_000
