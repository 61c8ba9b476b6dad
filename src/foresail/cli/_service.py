"""Connection to a service, and jobs as tables and in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from foresail.cli.formats import print_table
from foresail.client.connection import find_connection, together
from foresail.explain.start_words import UNKNOWN, Moments, range_cell, range_words
from foresail.model.errors import ForesailError, InputError
from foresail.model.words import count, duration, exact_duration, exact_size, percent

if TYPE_CHECKING:
    from foresail.client.service_client import ServiceClient


JobIds: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="JOB...", help="Ids, also 18 or 18_[1-3] of arrays.")
]

_OF_A_JOB: Final = (404, 409)
"""Refusals that are about one job, not about whoever asks."""


def connected() -> ServiceClient:
    """A client of the service that the user has logged in to."""
    from foresail.client.service_client import ServiceClient

    return ServiceClient(find_connection())


def moment_of(words: str | None, option: str) -> float | None:
    """Unix seconds of a moment to come, as people type it."""
    from foresail.client.job_options import moment, read_as

    return None if words is None else read_as(moment, option, words)


def members_of(client: ServiceClient, words: Iterable[str]) -> list[str]:
    """The jobs that ids mean, of an array its members; ids that mean none, for a refusal."""
    from foresail.client.connection import job_ids

    members: list[str] = []
    for each in job_ids(words):
        found = client.jobs(job_ids=[each], order="oldest")
        members += [job["job_id"] for job in found] or [each]
    return members


def for_each(job_ids: Iterable[str], request: Callable[[str], object]) -> None:
    """Request something of every job; of which it cannot be is said, with exit status 1 then."""
    from foresail.client.service_client import ServiceRefusal

    is_done = True
    for job_id in job_ids:
        try:
            request(job_id)
        except ServiceRefusal as refusal:
            if refusal.status not in _OF_A_JOB:
                raise
            typer.echo(f"foresail: {refusal}", err=True)
            is_done = False
    if not is_done:
        raise typer.Exit(1)


def now_of(job: Mapping[str, Any]) -> float:
    """The time by the service's clock, which its times count by."""
    now: float | None = job.get("now_seconds")
    return time.time() if now is None else now


def asked_for(job: Mapping[str, Any]) -> str:
    """Say what a job asks for, as it was understood."""
    return ", ".join(_asked_for(job))


def _asked_for(job: Mapping[str, Any]) -> Iterator[str]:
    tasks = job.get("tasks", 1)
    yield count(job["cpus"], "cpu") + (f" for {tasks:,} tasks" if tasks > 1 else "")
    memory = job.get("memory_bytes")
    yield f"at most {exact_size(memory)} of memory" if memory else "no memory limit"
    if job.get("gpus"):
        yield count(job["gpus"], "gpu")
    limit, deadline = job.get("requested_seconds"), job.get("deadline_seconds")
    yield "no time limit" if limit is None else f"a limit of {exact_duration(limit)}"
    if deadline is not None:
        yield f"to be done within {exact_duration(deadline - job['submit_seconds'])}"
    if job.get("dependencies"):
        yield f"to run {job['dependencies']}"
    if job.get("begin_seconds") is not None:
        yield f"not before {clock_time(job['begin_seconds'])}"
    if job.get("most_at_once") is not None:
        yield f"{job['most_at_once']:,} of its array at once"


def in_use(cluster: Mapping[str, Any]) -> str:
    """Say how the cluster is used, on one line."""
    counts, used = cluster["jobs_by_state"], cluster["cpus"] - cluster["free_cpus"]
    is_whole = all(node["state"] == "up" for node in cluster["nodes"])
    words = "in use" if is_whole else "in use or drained"
    return (
        f"cpus {max(0.0, used):g} of {cluster['cpus']:g} {words}, "
        f"{counts.get('running', 0)} running, {counts.get('pending', 0)} waiting, "
        f"{counts.get('held', 0)} held"
    )


def start_cell(forecast: Mapping[str, Any] | None, now: float) -> str:
    """Format when a job should start, in a table: ``15:00 (14:10 to 16:30)``; or nothing.

    Where few such ranges have held, that is said.
    """
    said, held = _start(forecast, now, range_cell), (forecast or {}).get("held")
    return said if held is None or said == UNKNOWN else f"{said}, only {percent(held)} held"


def start_words(forecast: Mapping[str, Any] | None, now: float) -> str:
    """Format the same in a sentence, as ``range_words`` says it."""
    return _start(forecast, now, range_words)


def _start(
    forecast: Mapping[str, Any] | None, now: float, words: Callable[[Moments, float], str]
) -> str:
    start = (forecast or {}).get("start")
    if forecast is None or not start:
        return ""
    return words(start, now) if forecast.get("is_known", True) else UNKNOWN


def clock_time(unix_seconds: float) -> str:
    """A moment by the clock."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(unix_seconds))


def runs_for(belief: Mapping[str, Any]) -> str:
    """The odds of a runtime: ``20 min (5 to 50 min)``."""
    low, median, high = (
        "no known time" if belief[key] is None else duration(belief[key])
        for key in ("p10", "p50", "p90")
    )
    return spread(low, median, high)


def spread(low: str, middle: str, high: str) -> str:
    """Format a value and its range, unless that is no wider: ``20 min (5 to 50 min)``."""
    return middle if low == middle == high else f"{middle} ({low} to {high})"


def why(job: Mapping[str, Any]) -> str:
    """Say why a job waits, or ended as it did."""
    reason = job.get("reason") or {}
    return str(reason.get("sentence") or job.get("because") or "")


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
        start_cell(job.get("forecast"), now),
        str(job.get("places") or "") if is_running else why(job),
    )


def clock(seconds: float) -> str:
    """A duration as Slurm prints it: ``0:05``, ``12:03``, ``2:30:00``, ``1-02:03:04``."""
    minutes, second = divmod(max(0, int(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}-{hour:02}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


_TIMEOUT_SECONDS: Final = 2.0
_MOST: Final = 15
"""Most jobs shown of one's own, and of others."""


def is_queue_shown() -> bool:
    """Print the queue of the service; whether there is one that answers."""
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
            "START: when it should start, or in how long (range that holds 4 times in 5); "
            "yours come first"
        )
    typer.echo("foresail submit SCRIPT, foresail jobs, foresail explain JOB, foresail --help")


def _planned(plan: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return what runs, then what is next, of everybody; nameless where one may not see it."""
    for each in plan["running"]:
        yield {**each, "state": "running", "start_seconds": each["start"]["p50"]}
    for each in plan["waiting"]:
        forecast = {key: each[key] for key in ("start", "is_known", "held")}
        yield {**each, "state": "pending", "forecast": forecast}
