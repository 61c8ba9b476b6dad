"""``foresail explain``: a moment of a run, or the story of a job, by an event log or a service."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from foresail.cli import _moments as moments
from foresail.cli._service import clock_time, connected, runs_for, start_cell, start_words
from foresail.cli.formats import console, made_by, print_table, refuse, require_output
from foresail.cli.progress import doing
from foresail.model.errors import InputError
from foresail.model.words import CLUSTER_JOB_ID, count, duration, exact_duration

if TYPE_CHECKING:
    from foresail.reports.plan.page import PlanPart

_MOST_JOBS: Final = 10
_ANOTHERS: Final = "another user's job"


_MOST_ROWS: Final = 30
_NOT_OF_STORIES: Final = "a job's story has no such option"
_JOB_ID: Final = re.compile(r"[0-9]{1,18}(_[0-9]{1,9})?")


def explain(
    run: Path,
    job_id: str | None = None,
    /,
    at: str | None = None,
    output: Path | None = None,
    png: bool = False,
) -> None:
    """Explain the plan at a moment of a run, or what happened to a job.

    Options:
        run RUN | JOB: Folder of a run, or its event log; or a job of the service, by its id.
        job_id [JOB]: Id of a job: what happened to it.
        at TIME: Moment since the run's start, such as 1h20m. [when most jobs were planned]
        output DIR: Write it as a page, with tables.
        png: With --output: the picture as a PNG as well.
    """
    options = {"--at": at, "--output": output, "--png": png or None}
    is_job = _JOB_ID.fullmatch(str(run)) or CLUSTER_JOB_ID.fullmatch(str(run))
    if job_id is None and is_job and not run.exists():
        refuse(options, _NOT_OF_STORIES, str(run))
        _print_story_of_service(str(run))
        return
    log = moments.log_of(run)
    if job_id is not None:
        refuse(options, _NOT_OF_STORIES, job_id)
        _print_story(log, job_id)
        return
    require_output(output, png=png)
    _show(log, run, at, output, png)


def _print_story(log: Path, job_id: str) -> None:
    from foresail.explain.story import story
    from foresail.record.log_text import read_log

    with doing(f"reading {log.name}"):
        found = story(read_log(log), job_id)
    if not found.lines:
        raise InputError("the log does not know this job", source=log, value=job_id)
    typer.echo(found.heading)
    width = max(len(line.when) for line in found.lines)
    for line in found.lines:
        typer.echo(f"{line.when:>{width}}  {line.sentence}")


def _print_story_of_service(job_id: str) -> None:
    """Say why a job waits, if it does, and its story with the service's clock."""
    from foresail.client.service_client import ServiceRefusal

    with connected() as client:
        lines, job = client.story(job_id)["lines"], client.job(job_id)
        if job["state"] in ("pending", "held"):
            try:
                _print_wait(job, client.waiting(job_id))
            except ServiceRefusal as refusal:
                if refusal.status != HTTPStatus.SERVICE_UNAVAILABLE:
                    raise
                named = f"Job {job['job_id']} ({job['name']})"
                typer.echo(f"{named} waits, and no more can be said now: {refusal}.\n")
    for line in lines:
        typer.echo(f"{clock_time(line['unix_seconds'])}  {line['sentence']}")


def _show(log: Path, run: Path, at: str | None, output: Path | None, png: bool) -> None:
    from foresail.record.log_text import read_log
    from foresail.reports.figure import write_images
    from foresail.reports.plan.page import PlanPart, write_plan

    with doing(f"reading {log.name}"):
        records = list(read_log(log))
    part = PlanPart.from_snapshot(moments.snapshot_at(records, at, log, "--at"))
    if output is not None:
        command = made_by()
        with doing("writing the page"):
            write_plan(part, output, run.name or str(run), command)
            if png:
                write_images([part.figure], output)
    _print(part)
    if output is not None:
        typer.echo(f"plan: {output / 'plan.html'}", err=True)


def _print(part: PlanPart) -> None:
    """Say what the page says, as text."""
    from rich.table import Table

    from foresail.reports.plan.page import in_order, waiting_columns
    from foresail.reports.plan.view import solver_words

    view = part.view
    typer.echo(f"{duration(view.moment.since_start)} after the start of the run:")
    for sentence in (*part.figure.findings, f"Solver: {solver_words(view.moment.solved)}"):
        typer.echo(textwrap.fill(sentence, 100, initial_indent="  ", subsequent_indent="    "))
    waiting = in_order(view)
    if not waiting:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = waiting_columns(view, waiting[:_MOST_ROWS])
    for name, kind, _ in columns:
        table.add_column(name, justify="right" if kind else "left", overflow="fold")
    for row in zip(*(cells for *_, cells in columns), strict=True):
        table.add_row(*row)
    console().print(table)
    if len(waiting) > _MOST_ROWS:
        typer.echo(f"and {count(len(waiting) - _MOST_ROWS, 'further job')}; all with --output DIR")


def _print_wait(job: Mapping[str, Any], wait: Mapping[str, Any]) -> None:
    """Say why it waits, its place, what runs and goes before it, and what would help."""
    reason = (wait["reason"] or {}).get("sentence", "the service has not said yet")
    typer.echo(f"Job {job['job_id']} ({job['name']}) waits: {reason}.")
    for sentence in _sentences(wait):
        typer.echo(sentence)
    before, in_all = wait["before"], max(0, (wait["place"] or 1) - 1)
    _print_jobs("Runs now", "ends", "end", wait["running"], wait["running_in_all"], wait)
    _print_jobs("Goes before it", "starts", "start", before, in_all, wait)
    for each in wait["helps"]:
        typer.echo(f"What would help: {each['sentence']}.")
    typer.echo()


def _sentences(wait: Mapping[str, Any]) -> Iterator[str]:
    if wait["place"] is not None:
        yield f"It is number {wait['place']:,} of {wait['pending']:,} that may start."
    forecast = wait["forecast"]
    start = start_words(forecast, wait["now_seconds"])
    if forecast is not None and not forecast["is_known"]:
        yield f"When it starts: {start}."
    elif start:
        yield "; ".join((f"It should start {start}", *forecast["remarks"])) + "."
    limit, belief = wait["requested_seconds"], wait["belief"]
    asks = "It asks for "
    asks += "no time limit" if limit is None else f"{exact_duration(limit)} at most"
    if belief is None:
        yield f"{asks}."
        return
    yield f"{asks}, and should run for {runs_for(belief)}."


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
    shown = jobs[:_MOST_JOBS]
    rows = [
        (
            _ANOTHERS if each["job_id"] is None else f"{each['job_id']} ({each['name']})",
            f"{each['cpus']:g}",
            start_cell({**each, "start": each[key]}, wait["now_seconds"]),
        )
        for each in shown
    ]
    print_table((heading, "cpus", when), rows)
    if in_all > len(shown):
        typer.echo(f"and {count(in_all - len(shown), 'further job')}")
