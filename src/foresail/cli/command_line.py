"""The command line as it was typed."""

from __future__ import annotations

import shlex
import sys


def made_by() -> str:
    """The command line, as a report tells it."""
    return shlex.join(["foresail", *sys.argv[1:]])
