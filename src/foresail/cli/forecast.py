"""``foresail forecast``: when a job of a service or of a run will start and end, and what if."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foresail.cli.formats import print_json, refuse
from foresail.cli.log_options import Plugins
from foresail.model.errors import InputError
from foresail.model.words import duration, from_now

if TYPE_CHECKING:
    from foresail.explain.forecast import Range
    from foresail.record.records import Record


_Clock: TypeAlias = Callable[[float], str]


def forecast(
    job_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[JOB | RUN]",
            help="A job of the service that waits or runs; or folder of a run, or its event log.",
        ),
    ] = None,
    job_of_run: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="Of a run: id of the job.")
    ] = None,
    command: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Of one that is not submitted.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What jobs like that one are called.")] = None,
    cpus: Annotated[int | None, typer.Option(min=1, help="If it asked for so many.")] = None,
    requested_time: Annotated[
        str | None, typer.Option("--time", metavar="TIME", help="If it asked for so long.")
    ] = None,
    submitted_in: Annotated[
        str | None, typer.Option("--in", metavar="TIME", help="If it came so much later.")
    ] = None,
    arrivals: Annotated[
        bool, typer.Option("--arrivals", help="Expect jobs to come as they came before.")
    ] = False,
    risk: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="How long to ask for, to need longer with this probability."
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Of a run: moment since its start. [its last one, or when the job was submitted]",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="Of a run: if this one decided from then on."),
    ] = None,
    futures: Annotated[
        int | None, typer.Option(min=1, help="Of a run: how many are simulated. [100]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    plugins: Plugins = None,
) -> None:
    """Forecast when a job starts and ends: the middle, and the range of four times in five."""
    del plugins  # they are loaded
    if job_id is not None and job_of_run is not None:
        of_service: dict[str, object] = {
            "--command": command,
            "--name": name,
            "--cpus": cpus,
            "--time": requested_time,
            "--in": submitted_in,
            "--arrivals": arrivals or None,
            "--risk": risk,
        }
        refuse(of_service, "is asked of a service", "--at, --policy or --futures")
        told = forecast_of_run(Path(job_id), job_of_run, at, policy, futures)
        _say({"then": told}, told["made_seconds"], _since_start, as_json=as_json)
        return
    from foresail.cli._service import connected

    refuse({"--at": at, "--policy": policy, "--futures": futures}, "is asked of a run", "RUN JOB")
    if (job_id is None) is (command is None):
        raise InputError("one is needed", field="JOB", expected="a job's id, or --command")
    changes = _changes(cpus, requested_time, submitted_in)
    with connected() as client:
        answers: dict[str, Any] = {}
        if job_id is None:
            given = {"command": command, "name": name}
            job = {name: value for name, value in given.items() if value}
            told = client.what_if({"job": job, "arrivals": arrivals, **changes})
            answers["if submitted"] = told["then"]
        elif changes:
            both = client.what_if({"job_id": job_id, "arrivals": arrivals, **changes})
            answers["now"], answers["then"] = both["now"], both["then"]
        else:
            answers["now"] = client.forecast(job_id, arrivals=arrivals)
        if risk is not None and job_id is not None:
            answers["ask for"] = client.suggested_request(job_id, risk)
    _say(answers, time.time(), _by_the_clock, as_json=as_json)


def _since_start(seconds: float) -> str:
    return f"{duration(seconds)} after its start"


def _by_the_clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _say(
    answers: Mapping[str, Mapping[str, Any]], now: float, clock: _Clock, *, as_json: bool
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
    from foresail.client.job_options import limit_of
    from foresail.traces.durations import duration_of

    changes: dict[str, Any] = {"cpus": cpus}
    if requested_time is not None:
        changes["requested_time"] = limit_of(requested_time)
    if submitted_in is not None:
        changes["submitted_in"] = duration_of(submitted_in, "--in")
    return {name: value for name, value in changes.items() if value is not None}


def _lines(answer: Mapping[str, Any], now: float, clock: _Clock) -> Iterator[str]:
    if "risk" in answer:
        seconds = answer["requested_seconds"]
        share = f"needs longer with {100 * answer['risk']:g} %"
        yield f"{'no time is enough' if seconds is None else duration(seconds)}: {share}"
        if answer["risk_now"] is not None:
            asked = duration(answer["requested_now_seconds"])
            yield f"{asked}, as it asks now: with {100 * answer['risk_now']:.0f} %"
        return
    for name in ("start", "end"):
        if answer.get(name):
            yield f"{name}s {_range(answer[name], now, clock)}"
    for name, words in (
        ("never", "never starts, as things stand"),
        ("overruns", "needs longer than it asked for"),
        ("misses", "misses its deadline"),
    ):
        if answer.get(name):
            yield f"{words}: {100 * answer[name]:.0f} %"


def _range(quantiles: Mapping[str, float | None], now: float, clock: _Clock) -> str:
    """``in 20 min (5 min to 50 min)``, with the clock of the middle."""
    low, median, high = (quantiles[key] for key in ("p10", "p50", "p90"))
    if median is None or low is None:
        return "at no known time"
    middle = "now" if median - now < 1.0 else f"{from_now(median - now)} ({clock(median)})"
    latest = "never" if high is None else from_now(max(0.0, high - now))
    return f"{middle}, between {from_now(max(0.0, low - now))} and {latest} four times in five"


def forecast_of_run(
    run: Path, job_id: str, at: str | None, policy: str | None, futures: int | None
) -> dict[str, Any]:
    """The forecast of a job at a moment of a run, as the service answers.

    Times are seconds since the run's start.

    The moment is the log's last one; if the job has started by then, that of its submission.

    Raises ``InputError`` if the log or the policy cannot be used, or the job does not wait then.
    """
    from foresail.cli import _moments as moments
    from foresail.cli.progress import doing
    from foresail.control.policy import parse_policy
    from foresail.explain.forecast import forecast_running
    from foresail.explain.run_forecast import SCENARIOS, controller_at, forecast_in_run, scenario_at
    from foresail.record.log_text import read_log

    log = moments.log_of(run)
    with doing(f"reading {log.name}"):
        records = list(read_log(log))
        now = _usual_moment(records, job_id, log)
        if at is not None:
            now = moments.seconds_at(records, at, log, "--at")
        decides = None if policy is None else parse_policy(policy)
        before = moments.learned_before(run) if decides is None else None
        scenario = replace(scenario_at(records, now, decides), learned_before=before)
        controller, forecaster = controller_at(records, now, scenario)
    zero = _zero(records)
    told: dict[str, Any] = {"job_id": job_id, "made_seconds": now - zero}
    running = controller.running.get(job_id)
    if running is not None:
        ahead = forecast_running(running, now)
        told |= {"end": _quantiles(ahead.end, zero), "overruns": ahead.overruns}
        return {**told, "misses": ahead.misses}
    scenarios = SCENARIOS if futures is None else futures
    with doing(f"simulating {scenarios} futures") as entered:
        found = forecast_in_run(
            controller,
            scenario,
            job_id,
            now,
            forecaster.draw,
            scenarios=scenarios,
            watch=entered.watch,
        )
    told |= {"start": _quantiles(found.start, zero), "end": _quantiles(found.end, zero)}
    return {**told, "never": found.never, "misses": found.misses}


def _zero(records: Sequence[Record]) -> float:
    from foresail.record.log import LogClock

    clock = LogClock()
    for record in records:
        clock.see(record)
    return clock.zero


def _quantiles(times: Range, zero: float) -> dict[str, float | None]:
    """Seconds since then, as JSON has them: infinite ones are unknown."""
    told = {"p10": times.low, "p50": times.median, "p90": times.high}
    return {name: None if math.isinf(time) else time - zero for name, time in told.items()}


def _usual_moment(records: Sequence[Record], job_id: str, log: Path) -> float:
    """The last moment of a log if a job has not started by then, else that of its submission."""
    from foresail.model.decision import Start
    from foresail.model.event import Submitted
    from foresail.record.records import EventTaken, Instructed

    submitted: float | None = None
    last, has_started = 0.0, False
    for record in records:
        last = max(last, getattr(record, "time", last))
        match record:
            case EventTaken(time=now, event=Submitted(job=job)) if job.job_id == job_id:
                submitted = now
            case Instructed(instruction=Start(job_id=started)) if started == job_id:
                has_started = True
    if submitted is None:
        raise InputError("the log does not know this job", source=log, value=job_id)
    return submitted if has_started else last
