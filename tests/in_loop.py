"""Tests that are coroutines: each runs in a loop of its own."""

import asyncio
from functools import wraps


def in_loop(test):
    """Run a coroutine as a test."""

    @wraps(test)
    def run(*given, **named):
        asyncio.run(test(*given, **named))

    return run
