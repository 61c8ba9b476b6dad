"""``foresail predict``: one file per command."""

from __future__ import annotations

from foresail.cli.option_records import group_of

app = group_of(
    __name__, __path__, "Evaluate predictors on logs; train, merge and show their state."
)
