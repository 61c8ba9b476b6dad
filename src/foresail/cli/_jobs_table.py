"""Jobs as a table, as ``squeue`` shows them; and the queue, which ``foresail`` alone shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import typer

from foresail.cli._service import in_use, now_of, starts_in, why
from foresail.cli.formats import print_table
from foresail.client.job_ids import together
from foresail.model.errors import ForesailError, InputError

if TYPE_CHECKING:
    from foresail.client.service_client import ServiceClient

HEADINGS: Final = ("JOBID", "NAME", "USER", "ST", "TIME", "LIMIT", "CPUS", "START", "REASON")
_LETTERS: Final = MappingProxyType(
    {
        "pending": "PD",
        "held": "PD",
        "running": "R",
        "completed": "CD",
        "failed": "F",
        "limit": "TO",
        "cancelled": "CA",
        "withdrawn": "CA",
    }
)
_NAMES: Final = MappingProxyType({"TIMEOUT": "TO", "OOM": "OUT_OF_MEMORY"})


def states_of(words: Iterable[str]) -> tuple[str, ...]:
    """The states that are meant by Slurm's letters or names (``R,PD``), or by our own words."""
    states: dict[str, None] = {}
    for word in ",".join(words).split(","):
        upper = _NAMES.get(word.upper(), word.upper())
        meant = [
            state
            for state, letters in _LETTERS.items()
            if upper in (letters, state.upper()) or (upper, letters) == ("PENDING", "PD")
        ]
        if upper == "OUT_OF_MEMORY":
            meant = ["out_of_memory"]
        if upper != "ALL" and not meant:
            raise InputError(
                "no state of a job",
                field="--states",
                value=word,
                expected="R, PD, CD, F, TO, OOM, CA, all, or " + ", ".join(_LETTERS),
            )
        states |= dict.fromkeys(_LETTERS if upper == "ALL" else meant)
    return tuple(states)


def print_jobs(
    jobs: Sequence[Mapping[str, Any]], *, with_headings: bool = True, each_member: bool = False
) -> None:
    """A line a job; members of an array that wait are one, unless each is to have its own."""
    groups: dict[object, list[Mapping[str, Any]]] = {}
    for job in jobs:
        array, is_member, _ = (job["job_id"] or "").partition("_")
        waits = job["state"] in ("pending", "held") and is_member and not each_member
        groups.setdefault((array, job["state"]) if waits else len(groups), []).append(job)
    headings = HEADINGS if with_headings else [""] * len(HEADINGS)
    print_table(headings, [_row(group, now_of(group[0])) for group in groups.values()])


def _row(group: Sequence[Mapping[str, Any]], now: float) -> tuple[str, ...]:
    job = group[0]
    start, end = job.get("start_seconds"), job.get("end_seconds")
    ids = [each["job_id"] for each in group]
    is_running = job["state"] == "running"
    return (
        together(ids) if len(ids) > 1 else ids[0] or "-",
        job["name"] or "-",
        job["user"] or "-",
        "OOM" if job["state"] == "limit" and "memory" in why(job) else _LETTERS[job["state"]],
        clock(0.0 if start is None else (end or now) - start),
        "" if job.get("requested_seconds") is None else clock(job["requested_seconds"]),
        f"{job['cpus']:g}",
        starts_in(job.get("forecast"), now),
        str(job.get("places") or "") if is_running else why(job),
    )


def clock(seconds: float) -> str:
    """A duration as Slurm tells it: ``0:05``, ``12:03``, ``2:30:00``, ``1-02:03:04``."""
    minutes, second = divmod(max(0, int(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}-{hour:02}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


_TIMEOUT_SECONDS: Final = 2.0
_MOST: Final = 15
"""So many jobs of one's own, and of others."""


def is_queue_shown() -> bool:
    """Print the queue of the service; whether there is one that answers."""
    from foresail.client.connection import find_connection

    try:
        connection = find_connection()
    except InputError:
        return False
    from foresail.client.service_client import ServiceClient

    try:
        with ServiceClient(
            connection, patience_seconds=0.0, timeout_seconds=_TIMEOUT_SECONDS
        ) as client:
            _show_queue(client, connection.address)
    except ForesailError as error:
        typer.echo(f"foresail: {error}", err=True)
        return False
    return True


def _show_queue(client: ServiceClient, address: str) -> None:
    me, plan = client.whoami()["user"], client.plan(most=2 * _MOST)
    own = [
        *client.jobs(users=[me], states=("running", "pending", "held"), order="next", most=_MOST)
    ]
    others = [each for each in _planned(plan) if each["user"] != me][:_MOST]
    typer.echo(f"{address}, {in_use(client.cluster())}")
    if own or others:
        print_jobs([*own, *others])
        typer.echo(
            "START: time until it should start (range that holds 4 times in 5); yours come first"
        )
    typer.echo("foresail submit SCRIPT, foresail jobs, foresail explain JOB, foresail --help")


def _planned(plan: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What runs, then what is next, of everybody; nameless where one may not see it."""
    for each in plan["running"]:
        yield {**each, "state": "running", "start_seconds": each["start"]["p50"]}
    for each in plan["waiting"]:
        yield {**each, "state": "pending", "forecast": {"start": each["start"]}}
