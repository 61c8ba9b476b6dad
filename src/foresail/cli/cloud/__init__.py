"""``foresail cloud``: one file per command."""

from __future__ import annotations

from foresail.cli.log_options import group_of

app = group_of(
    __name__,
    __path__,
    "What to own, what to rent, what may be taken back, and what waiting for each other costs.",
)
