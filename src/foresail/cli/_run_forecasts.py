"""Forecasts of jobs at a moment of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from foresail.cli import _moments as moments
from foresail.cli.progress import doing
from foresail.model.errors import InputError
from foresail.model.words import percent

if TYPE_CHECKING:
    from foresail.control.loop import Controller
    from foresail.explain.forecast import Range
    from foresail.explain.start_forecaster import StartForecaster
    from foresail.record.records import Record
    from foresail.scenario.scenario import Scenario

_FEWEST_STARTS: Final = 30
_DOUBTFUL: Final = 0.6
"""By so many earlier starts it is known how ranges hold, and below such a share it is said."""


def forecast_of_run(
    run: Path, job_id: str, at: str | None, policy: str | None, futures: int | None
) -> dict[str, Any]:
    """The forecast of a job at a moment of a run, as the service answers.

    Times are seconds since the run's start.

    The moment is the log's last one; if the job has started by then, that of its submission.

    Raises ``InputError`` if the log or the policy cannot be used, or the job does not wait then.
    """
    from foresail.explain.forecast import forecast_running
    from foresail.explain.run_forecast import SCENARIOS, forecast_in_run, past_ranges

    records, controller, forecaster, scenario, now, zero = _standing(run, job_id, at, policy)
    answer: dict[str, Any] = {"job_id": job_id, "made_seconds": now - zero}
    running = controller.running.get(job_id)
    if running is not None:
        ahead = forecast_running([running], now, forecaster.draw)[job_id]
        answer |= {"end": _quantiles(ahead.end, zero), "overruns": ahead.overruns}
        return {**answer, "misses": ahead.misses}
    scenarios = SCENARIOS if futures is None else futures
    with doing(f"simulating {scenarios} futures") as entered:
        found = forecast_in_run(
            controller,
            scenario,
            job_id,
            now,
            forecaster.draw,
            past=records,
            scenarios=scenarios,
            watch=entered.watch,
        )
    answer |= {"start": _quantiles(found.start, zero), "end": _quantiles(found.end, zero)}
    with doing("looking back at earlier starts"):
        held = [] if policy is not None else past_ranges(records, now, scenario, controller)
    share = sum(held) / len(held) if len(held) >= _FEWEST_STARTS else None
    if share is not None and share < _DOUBTFUL:
        past = f"of {len(held)} starts so far, forecast at earlier moments in the same way"
        answer["remarks"] = [f"{past}, only {percent(share)} were within their range"]
    return {**answer, "never": found.never, "misses": found.misses, "held": share}


def _standing(
    run: Path, job_id: str, at: str | None, policy: str | None
) -> tuple[list[Record], Controller, StartForecaster, Scenario, float, float]:
    """Return its log, how a run stood, what was learned by then, that moment and its start."""
    from foresail.control.policy import parse_policy
    from foresail.explain.run_forecast import controller_at, scenario_at
    from foresail.explain.run_snapshot import extent_of
    from foresail.record.log_text import read_log

    log = moments.log_of(run)
    with doing(f"reading {log.name}"):
        records = list(read_log(log))
        now = moments.usual_moment(records, job_id, log)
        if at is not None:
            now = moments.seconds_at(records, at, log, "--at")
        decides = None if policy is None else parse_policy(policy)
        before = moments.learned_before(run) if decides is None else None
        scenario = replace(scenario_at(records, now, decides), learned_before=before)
        controller, forecaster = controller_at(records, now, scenario)
    return records, controller, forecaster, scenario, now, extent_of(records, log).zero_seconds


def _quantiles(times: Range, zero: float) -> dict[str, float | None]:
    """Seconds since then, as JSON has them: infinite ones are unknown."""
    answer = {"p10": times.low, "p50": times.median, "p90": times.high}
    return {name: None if math.isinf(time) else time - zero for name, time in answer.items()}


_Tries: TypeAlias = Callable[
    [dict[str, Any], float, Callable[[Mapping[str, Any]], Any]], list[dict[str, Any]]
]
"""Changes a job that asks for something, of the most cpus; asks for forecasts, best first."""


def tried_in_run(
    run: Path, job_id: str, at: str | None, policy: str | None, futures: int | None, tries: _Tries
) -> tuple[float, list[dict[str, Any]]]:
    """Try changes of a job at a moment of a run, by a service's forecasts; no jobs come.

    Returned is that moment since the run's start, too. Raises ``InputError`` as
    ``forecast_of_run`` does.
    """
    from foresail.explain.forecast import SCENARIOS
    from foresail.explain.futures import stand_in_words
    from foresail.explain.outlook import outlook_of

    _, controller, forecaster, _, now, zero = _standing(run, job_id, at, policy)
    pending = controller.state.pending_job(job_id)
    if pending is None:
        raise InputError("does not wait then", field="job", value=job_id, expected="one that does")
    job, scenarios = pending.job, futures or SCENARIOS
    stage, since = job.stages[0], job.submit_seconds

    def then(each: Mapping[str, Any]) -> Any:
        share = each["cpus"] / job.cpus
        cpus, tasks = stage.request.cpus, round(stage.tasks * share)
        if stage.tasks == 1:
            cpus, tasks = cpus * share, 1
        asked = replace(
            job,
            submit_seconds=now + each["submitted_in"] if each["submitted_in"] else since,
            requested_seconds=each["requested_time"],
            stages=(replace(stage, tasks=tasks, request=replace(stage.request, cpus=cpus)),),
        )
        outlook = outlook_of(controller, [asked])
        known_as = replace(asked, requested_seconds=job.requested_seconds)
        found = forecaster.forecast(outlook, scenarios=scenarios, alike={job_id: known_as})[job_id]
        needed = forecaster.needed_seconds(known_as, now)
        limit = math.inf if asked.requested_seconds is None else asked.requested_seconds
        off = stand_in_words(outlook)
        return {
            "start": _quantiles(found.start, zero),
            "end": _quantiles(found.end, zero),
            "remarks": [] if off is None else [f"may be off: {off}"],
            "overruns": float((needed >= limit).mean()),
        }

    standing = {"cpus": job.cpus, "requested_time": job.requested_seconds, "submitted_in": 0.0}
    widest = max((each.total.cpus for each in controller.cluster.partitions), default=0.0)
    most = widest if len(job.stages) == 1 else 0.0
    return now - zero, tries(standing, most, then)
