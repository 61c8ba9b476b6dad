"""``foresail forecast``: when a job of a service or of a run will start and end, and what if."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from foresail.cli.formats import print_json, print_table, refuse
from foresail.cli.log_options import Plugins
from foresail.explain.start_words import UNKNOWN, Clock, by_clock, range_cell, range_words
from foresail.model.errors import InputError
from foresail.model.words import duration, from_now, percent

if TYPE_CHECKING:
    from foresail.client.service_client import ServiceClient


def forecast(
    job_id: str | None = None,
    job_of_run: str | None = None,
    /,
    command: str | None = None,
    name: str | None = None,
    cpus: int | None = None,
    requested_time: str | None = None,
    submitted_in: str | None = None,
    arrivals: bool = True,
    before: str | None = None,
    when_to_submit: bool = False,
    risk: float | None = None,
    at: str | None = None,
    policy: str | None = None,
    futures: int | None = None,
    as_json: bool = False,
    plugins: Plugins = None,
) -> None:
    """Forecast when a job starts and ends: a range that holds four times in five.

    Options:
        job_id [JOB | RUN]: A job of the service that waits or runs; or folder of a run, or its
            event log.
        job_of_run [JOB]: Of a run: id of the job.
        command COMMAND: Of one that is not submitted.
        name: What jobs like that one are called.
        cpus (1..): If it asked for so many.
        requested_time --time TIME: If it asked for so long.
        submitted_in --in TIME: If it came so much later.
        arrivals --arrivals/--no-arrivals: Expect jobs to come as they came before.
        before MOMENT: How likely it starts before this, such as 18:00.
        when_to_submit --when-should-i-submit: Try it with other sizes, limits and hours; first what
            should end first.
        risk (0.0..1.0): How long to ask for, to need longer with this probability.
        at TIME: Of a run: moment since its start. [its last one, or when the job was submitted]
        policy POLICY: Of a run: if this one decided from then on.
        futures (1..): Of a run: how many are simulated. [100]
        as_json --json: As JSON.
    """
    del plugins  # they are loaded
    if job_id is not None and job_of_run is not None:
        from foresail.cli._run_forecasts import forecast_of_run, tried_in_run

        of_service: dict[str, object] = {
            "--command": command,
            "--name": name,
            "--cpus": cpus,
            "--time": requested_time,
            "--in": submitted_in,
            "--no-arrivals": None if arrivals else True,
            "--before": before,
            "--risk": risk,
        }
        refuse(of_service, "is asked of a service", "--at, --policy or --futures")
        if when_to_submit:
            now, found = tried_in_run(Path(job_id), job_of_run, at, policy, futures, _tried)
            _show_tried(found, now, _by_day, as_json=as_json)
            if not as_json:
                typer.echo(f"At {_by_day(now)} of the run, as are times with days.")
            return
        document = forecast_of_run(Path(job_id), job_of_run, at, policy, futures)
        _say({"then": document}, document["made_seconds"], _of_run, as_json=as_json)
        return
    from foresail.cli._service import connected, moment_of

    refuse({"--at": at, "--policy": policy, "--futures": futures}, "is asked of a run", "RUN JOB")
    if (job_id is None) is (command is None):
        raise InputError("one is needed", field="JOB", expected="a job's id, or --command")
    changes = _changes(cpus, requested_time, submitted_in)
    how: dict[str, Any] = {"arrivals": arrivals, "before": moment_of(before, "--before")}
    given = {"command": command, "name": name, **changes}
    job = {name: value for name, value in given.items() if value and name != "submitted_in"}
    asked = {"job": job} if job_id is None else {"job_id": job_id}
    with connected() as client:
        if when_to_submit:
            options = {"--before": before, "--risk": risk, "--in": submitted_in}
            refuse(options, "is tried by --when-should-i-submit", "--cpus or --time")
            found = _tried_of_service(client, {**asked, "arrivals": arrivals}, changes)
            _show_tried(found, time.time(), by_clock, as_json=as_json)
            return
        answers: dict[str, Any] = {}
        if job_id is None:
            answers["if submitted"] = client.what_if({**asked, **how, **changes})["then"]
        elif changes:
            both = client.what_if({**asked, **how, **changes})
            answers["now"], answers["then"] = both["now"], both["then"]
        else:
            answers["now"] = client.forecast(job_id, **how)
        if risk is not None and job_id is not None:
            answers["ask for"] = client.suggested_request(job_id, risk)
    _say(answers, time.time(), by_clock, as_json=as_json)


_HOURS: Final = (1, 2, 4, 8, 12, 24)
_RISKY: Final = 0.1
"""Choices that need longer than their limit with more than this probability come last."""


def _tried_of_service(
    client: ServiceClient, asked: Mapping[str, Any], changes: Mapping[str, Any]
) -> list[dict[str, Any]]:
    job = {} if "job" in asked else client.job(asked["job_id"])
    cpus, limit = job.get("cpus", 1), job.get("requested_seconds")
    most = max((each["cpus"] for each in client.nodes()), default=client.cluster()["cpus"])

    def then(each: Mapping[str, Any]) -> Any:
        given = {name: value for name, value in each.items() if value}
        return client.what_if({**asked, **given})["then"]

    now = {"cpus": cpus, "requested_time": limit, "submitted_in": 0.0, **changes}
    return _tried(now, most, then)


def _tried(
    now: dict[str, Any], most: float, then: Callable[[Mapping[str, Any]], Any]
) -> list[dict[str, Any]]:
    """Return what is expected of a job with one thing of it changed at a time, the best first.

    Each has ``submitted_in`` (seconds), ``cpus`` (that many at most), ``requested_time`` (seconds
    or None) and ``then``, a forecast.
    """
    cpus, limit = now["cpus"], now["requested_time"]
    tried = [now]
    tried += [now | {"cpus": each} for each in (cpus // 2, 2 * cpus) if 1 <= each <= most]
    if limit is not None:
        tried += [now | {"requested_time": limit * factor} for factor in (0.5, 2.0)]
    tried += [now | {"submitted_in": 3600.0 * hours} for hours in _HOURS]
    found = [each | {"then": then(each)} for each in tried]

    def rank(each: Mapping[str, Any]) -> tuple[bool, float, float]:
        then = each["then"]
        moments = (then[name]["p50"] for name in ("end", "start"))
        end, start = (math.inf if moment is None else moment for moment in moments)
        return (then["overruns"] or 0.0) > _RISKY, end, start

    return sorted(found, key=rank)


def _show_tried(
    tried: Sequence[Mapping[str, Any]], now: float, clock: Clock, *, as_json: bool
) -> None:
    if as_json:
        print_json({"tried": tried})
        return
    rows = [
        (
            from_now(each["submitted_in"]) if each["submitted_in"] else "now",
            f"{each['cpus']:g}",
            "none" if each["requested_time"] is None else duration(each["requested_time"]),
            *(
                range_cell(each["then"][name], now, clock)
                if each["then"].get("is_known", True)
                else UNKNOWN
                for name in ("start", "end")
            ),
            percent(each["then"]["overruns"] or 0.0),
        )
        for each in tried
    ]
    print_table(("SUBMIT", "CPUS", "LIMIT", "STARTS", "ENDS", "NEEDS LONGER"), rows)
    for remark in tried[0]["then"]["remarks"]:
        typer.echo(f"{remark[0].upper()}{remark[1:]}.")


_DAY_SECONDS: Final = 86_400.0


def _by_day(seconds: float, _: float = 0.0) -> str:
    """Say a moment of a run to the minute: ``13 d 04:12``."""
    days, rest = divmod(seconds, _DAY_SECONDS)
    return f"{days:.0f} d {rest // 3600:02.0f}:{rest % 3600 // 60:02.0f}"


def _of_run(seconds: float, _: float) -> str:
    said = duration(seconds) if seconds < _DAY_SECONDS else _by_day(seconds)
    return f"{said} of the run"


def _say(
    answers: Mapping[str, Mapping[str, Any]], now: float, clock: Clock, *, as_json: bool
) -> None:
    if as_json:
        print_json(answers)
        return
    for heading, answer in answers.items():
        for line in _lines(answer, now, clock):
            typer.echo(f"{heading:<12}  {line}")


def _changes(
    cpus: int | None, requested_time: str | None, submitted_in: str | None
) -> dict[str, Any]:
    from foresail.client.job_options import limit, read_as
    from foresail.model.words import duration_of

    changes: dict[str, Any] = {"cpus": cpus}
    if requested_time is not None:
        changes["requested_time"] = read_as(limit, "--time", requested_time)
    if submitted_in is not None:
        changes["submitted_in"] = duration_of(submitted_in, "--in")
    return {name: value for name, value in changes.items() if value is not None}


def _lines(answer: Mapping[str, Any], now: float, clock: Clock) -> Iterator[str]:
    if "risk" in answer:
        seconds = answer["requested_seconds"]
        share = f"needs longer with {100 * answer['risk']:g} %"
        yield f"{'no time is enough' if seconds is None else duration(seconds)}: {share}"
        if answer["risk_now"] is not None:
            asked = duration(answer["requested_now_seconds"])
            yield f"{asked}, as it asks now: with {100 * answer['risk_now']:.0f} %"
        return
    if not answer.get("is_known", True):
        yield f"{UNKNOWN} of when it starts"
        return
    for name in ("start", "end"):
        if answer.get(name):
            yield f"{name}s {range_words(answer[name], now, clock)}"
    yield from answer.get("remarks", ())
    chances = answer.get("chances")
    if chances is not None:
        moments = [("within an hour", "within_hour"), ("today", "today"), ("before then", "before")]
        said = [
            f"{words} {percent(chances[name])}"
            for words, name in moments
            if chances[name] is not None
        ]
        yield f"has started {', '.join(said)}"
    for name, words in (
        ("never", "never starts, as things stand"),
        ("overruns", "needs longer than it asked for"),
        ("misses", "misses its deadline"),
    ):
        if answer.get(name):
            yield f"{words}: {percent(answer[name])}"
