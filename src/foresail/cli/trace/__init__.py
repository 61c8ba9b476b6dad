"""``foresail trace``: one file per command."""

from __future__ import annotations

from foresail.cli.option_records import group_of

app = group_of(
    __name__, __path__, "Inspect, validate, convert, filter, sample, generate and fetch workloads."
)
