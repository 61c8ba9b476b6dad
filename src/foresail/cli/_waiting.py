"""Why a job of the service waits, as a first screen of plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import typer

from foresail.cli._service import spread, starts_in
from foresail.cli.tables import print_table
from foresail.model.words import count, duration

_MOST_ROWS: Final = 10
_ANOTHERS: Final = "another user's job"


def print_wait(job: Mapping[str, Any], wait: Mapping[str, Any]) -> None:
    """Why it waits, its place, what runs and goes before it, and what would help."""
    reason = (wait["reason"] or {}).get("sentence", "the service has not said yet")
    typer.echo(f"Job {job['job_id']} ({job['name']}) waits: {reason}.")
    for sentence in _sentences(wait):
        typer.echo(sentence)
    before, in_all = wait["before"], max(0, (wait["place"] or 1) - 1)
    _print_jobs("Runs now", "ends in", "end", wait["running"], wait["running_in_all"], wait)
    _print_jobs("Goes before it", "starts in", "start", before, in_all, wait)
    for each in wait["helps"]:
        typer.echo(f"What would help: {each['sentence']}.")
    typer.echo()


def _sentences(wait: Mapping[str, Any]) -> Iterator[str]:
    start = starts_in(wait["forecast"], wait["now_seconds"])
    should = f"should start in {start}" if start[:1].isdigit() else f"should start {start}"
    if wait["place"] is not None:
        place = f"It is number {wait['place']:,} of {wait['pending']:,} that may start"
        yield f"{place}, and {should}." if start else f"{place}."
    elif start:
        yield f"It {should}."
    limit, belief = wait["requested_seconds"], wait["belief"]
    asks = (
        "It asks for no time limit" if limit is None else f"It asks for {duration(limit)} at most"
    )
    if belief is None:
        yield f"{asks}."
        return
    low, middle, high = (
        "no known time" if belief[key] is None else duration(belief[key])
        for key in ("p10", "p50", "p90")
    )
    yield f"{asks}, and should run for {spread(low, middle, high)}."


def _print_jobs(
    heading: str,
    when: str,
    key: str,
    jobs: list[Mapping[str, Any]],
    in_all: int,
    wait: Mapping[str, Any],
) -> None:
    if not jobs:
        return
    shown = jobs[:_MOST_ROWS]
    rows = [
        (
            _ANOTHERS if each["job_id"] is None else f"{each['job_id']} ({each['name']})",
            f"{each['cpus']:g}",
            starts_in({"start": each[key]}, wait["now_seconds"]),
        )
        for each in shown
    ]
    print_table((heading, "cpus", when), rows)
    if in_all > len(shown):
        typer.echo(f"and {count(in_all - len(shown), 'further job')}")
