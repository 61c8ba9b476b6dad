"""``foresail strl``: one file per command."""

from __future__ import annotations

from foresail.cli.option_records import group_of

app = group_of(
    __name__,
    __path__,
    "Check, explain and solve files of requests in STRL, the space-time request language.",
)
