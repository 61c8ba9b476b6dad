"""Study ``waiting-trace-queues``: the queue's order and wrong predictions, on a year of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.study import Bound, GridPoint, Mean, Study, points_at, published
from foresail_studies.waiting import _shared as waiting
from foresail_studies.waiting.trace import TraceRun

_POLICIES: Final = ("ajw", "ajw-t", "sww", "ljw", "compound")
_PERCENTS: Final = (80.0, 100.0, 120.0, 150.0)
_OWN: Final = 150.0
_BEST: Final = 100.0
_FIRST_COME: Final = "first that fits"
_SHORTEST: Final = "shortest first"
_OVER: Final = "SWW, waits predicted too long"
_UNDER: Final = "SWW, waits predicted too short"
_RUNTIMES: Final = "LJW, wrong predictions (%), 133 % of the load owned"
_LJW_PERCENT: Final = 200.0 / 150.0 * 100.0
"""200 machines, where 150 hold the load."""


@dataclass(frozen=True, slots=True)
class TraceQueuesParameters(waiting.YearParameters):
    """Parameters of ``waiting-trace-queues``."""

    FILES: ClassVar[tuple[str, ...]] = ("log",)
    QUICK: ClassVar[dict[str, str]] = {"seeds": "4", "jobs": "1000000"}
    QUICK_MINUTES: ClassVar[float] = 1.5
    FULL_MINUTES: ClassVar[float] = 25.0

    seeds: int = 3

    waiting_hours: float = 24.0
    short_minutes: float = 3.0
    """Thresholds b and t."""
    log: Path | None = None
    """A log to run instead of the year."""
    machine_cores: int = 32
    """Of a fixed machine, for the log."""


@register("study", "waiting-trace-queues", parameters=TraceQueuesParameters)
def waiting_trace_queues(parameters: TraceQueuesParameters) -> Study:
    """The queue's order and wrong predictions, on a year of jobs (6.13, 6.14, 6.16 to 6.18)."""
    cases = [case for seed in range(parameters.seeds) for case in _cases(parameters, seed)]
    return Study(
        title="What do the order of the queue and wrong predictions do on a year of jobs?",
        source=f"{waiting.SOURCE}, figures 6.13, 6.14 and 6.16 to 6.18",
        axis="fixed cores, % of the mean load (runtimes: wrong predictions, %)",
        measures=(waiting.PRICE, waiting.WAIT, waiting.OPPORTUNITY, waiting.RENTED),
        drawn=("price", "mean_wait_seconds", "opportunity_cost"),
        cases=tuple(cases),
        claims=published(*_claims()),
        notes=(
            "The year is generated from the log's published figures; how bursts and weeks vary is "
            "not published, and decides how long jobs wait.",
            "Of 150 published machines 100 % of the mean load is the counterpart, of 225 150 %.",
            "LJW's queue only grows while less is owned than long jobs need: its waits and price "
            "are then those of this many jobs, and no steady state.",
            "The thesis' closing sentences on wrong runtimes name the two kinds the other way "
            "round than its definitions; here over-predicted jobs are short ones taken for long.",
        ),
    )


def _cases(parameters: TraceQueuesParameters, seed: int) -> list[GridPoint]:
    limits = 3600.0 * parameters.waiting_hours, 60.0 * parameters.short_minutes
    trace = (
        waiting.Trace("", parameters.jobs, seed)
        if parameters.log is None
        else waiting.Trace(str(parameters.log), 0, 0, parameters.machine_cores)
    )
    cases = [
        GridPoint(group, percent, policy, seed, TraceRun(trace, percent, policy + queue, *limits))
        for group, queue in ((_FIRST_COME, ""), (_SHORTEST, " sjf"))
        for percent in _PERCENTS
        for policy in _POLICIES
        # With less than its load, a queue that no job leaves only grows.
        if policy != "ajw" or percent >= _OWN
    ]
    for percent in _PERCENTS:
        for group, field in ((_OVER, "waits_over"), (_UNDER, "waits_under")):
            runs = {
                f"{wrong} % wrong": TraceRun(
                    trace, percent, "sww", *limits, **{field: wrong / 100.0}
                )
                for wrong in (0, 5, 30, 100)
            }
            cases += points_at(group, percent, seed, runs)
        nobody = {"nobody waits": TraceRun(trace, percent, "njw", *limits)}
        cases += points_at(_OVER, percent, seed, nobody)
    cases += [
        GridPoint(
            _RUNTIMES,
            wrong,
            f"runtimes {kind}",
            seed,
            TraceRun(trace, _LJW_PERCENT, "ljw", *limits, **{f"runtimes_{kind}": wrong / 100.0}),
        )
        for kind in ("over", "under")
        for wrong in (0.0, 10.0, 30.0, 50.0)
    ]
    return cases


def _claims() -> tuple[dict[str, Bound], ...]:
    def mean(measure: str, system: str, group: str, *x: float) -> Mean:
        return Mean(measure, system, group, x)

    def best(measure: str, system: str, group: str) -> Mean:
        return mean(measure, system, group, _OWN if system == "ajw" else _BEST)

    claims: dict[str, Bound] = {}
    for group, figure in ((_FIRST_COME, "6.13"), (_SHORTEST, "6.14")):
        claims |= {
            f"The compound has the lowest opportunity cost ({policy}, {group}; "
            f"figure {figure}).": mean("opportunity_cost", "compound", group, *at).against(policy)
            for policy in ("ajw", "ajw-t", "sww", "ljw")
            for at in ((_OWN,) if policy == "ajw" else (_BEST, 120.0, _OWN),)
        }
    claims |= {
        f"Shortest first, jobs wait less ({policy}).": Bound(
            best("mean_wait_seconds", policy, _SHORTEST),
            best("mean_wait_seconds", policy, _FIRST_COME),
        )
        for policy in _POLICIES
    }
    claims |= {
        f"... at nearly the same price ({policy}; taken as: within 2 %).": Bound(
            best("price", policy, _SHORTEST), best("price", policy, _FIRST_COME), factor=1.02
        )
        for policy in _POLICIES
    }
    foreseen = {
        "Waits predicted too long raise the price (figure 6.16).": mean(
            "price", "0 % wrong", _OVER
        ).against("30 % wrong"),
        "... and shorten the wait.": mean("mean_wait_seconds", "30 % wrong", _OVER).against(
            "0 % wrong"
        ),
        "... to none at all in the end (taken as: less than 1 s).": Bound(
            mean("mean_wait_seconds", "100 % wrong", _OVER), 1.0
        ),
        "Waits predicted too short lengthen the wait (figure 6.17).": mean(
            "mean_wait_seconds", "0 % wrong", _UNDER
        ).against("30 % wrong"),
        "... and do not change the price (taken as: within 0.1 %).": mean(
            "price", "100 % wrong", _UNDER
        ).against("0 % wrong", factor=1.001),
    }
    known = {
        "Short jobs taken for long ones hardly change LJW's price (figure 6.18; taken as: 50 % of "
        "them change it by 2 % at most).": Bound(
            mean("price", "runtimes over", _RUNTIMES, 50.0),
            mean("price", "runtimes over", _RUNTIMES, 0.0),
            factor=1.02,
        ),
        "... but lengthen the wait.": Bound(
            mean("mean_wait_seconds", "runtimes over", _RUNTIMES, 0.0),
            mean("mean_wait_seconds", "runtimes over", _RUNTIMES, 50.0),
        ),
        "Long jobs taken for short ones raise the price.": Bound(
            mean("price", "runtimes under", _RUNTIMES, 0.0),
            mean("price", "runtimes under", _RUNTIMES, 50.0),
            factor=1.0 / 1.05,
        ),
        "... and shorten the wait.": Bound(
            mean("mean_wait_seconds", "runtimes under", _RUNTIMES, 50.0),
            mean("mean_wait_seconds", "runtimes under", _RUNTIMES, 0.0),
        ),
    }
    return claims, foreseen, known
