"""Waiting in tests: for what processes and threads do in their own time."""

import time


def until(asked, seconds=60.0, pause=0.02):
    """Ask until the answer is true, and return it; fails after so many seconds."""
    end = time.monotonic() + seconds
    while not (answer := asked()):
        assert time.monotonic() < end, "it never came to that"
        time.sleep(pause)
    return answer
