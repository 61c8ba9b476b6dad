"""Compare forecasts of starts with what others offer: ``compare_forecasts.py LOG...``.

The beginning of each log is simulated under each policy, or taken as it was recorded. When random
jobs that wait for more than a second start is asked at their submission and at half of their
wait, of every method, each of which knows only what was known by then.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from asking import OURS, PARTS, Questions, answers_of_ours, questions_of
from by_limits import planned_starts
from joined import joined_waits
from learned_waits import stated_waits as waits_by_trees
from past_waits import stated_waits as waits_of_past
from schedules import (
    RECORDED,
    Floats,
    Log,
    PastSchedule,
    has_recorded_waits,
    load_log,
    on_smaller_machine,
    run_schedule,
    stand_in_limits,
    with_limits,
)
from scoring import Score, crps, score

from foresail.traces.workload import Workload

_LIMITS, _PAST, _TREES = "schedule by limits", "past waits", "boosted trees"
_JOINED = "all three joined"
_NEARLY_ALL = 0.999
_FEW = 0.02
_LOAD = 0.85


def main() -> int:
    """Print a table for each log and policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--policy", action="append", default=[])
    parser.add_argument("--recorded", action="store_true", help="the waits that the log records")
    parser.add_argument("--jobs", type=int, default=5_000, help="the first so many of each log")
    parser.add_argument("--asked", type=int, default=200, help="jobs that are asked of, twice each")
    parser.add_argument("--scenarios", type=int, default=200, help="futures of each forecast")
    parser.add_argument(
        "--learned", type=int, default=400, help="other submissions that corrections learn from"
    )
    parser.add_argument("--processors", type=int, help="of machines whose logs do not say so")
    parser.add_argument("--parts", action="store_true", help="ours without parts, too")
    chosen = parser.parse_args()
    policies = chosen.policy or ([] if chosen.recorded else ["easy", "foresail"])
    for path in chosen.logs:
        workload, limited = load_log(path, chosen.jobs, chosen.processors)
        said = "" if limited > _NEARLY_ALL else f"; {1.0 - limited:.0%} have no limit: a stand-in"
        if chosen.recorded and has_recorded_waits(workload):
            _compare(f"{_name(path)}, recorded{said}", workload, RECORDED, chosen)
        elif chosen.recorded:
            print(f"{_name(path)}: the log records no waits")
        if policies and not _waiting(workload):
            workload = on_smaller_machine(workload, _LOAD)
            said += f"; a machine of {workload.processors} processors, that jobs wait"
        for policy in policies:
            _compare(f"{_name(path)}, {policy}{said}", workload, policy, chosen)
    return 0


def _name(path: Path) -> str:
    return path.name.split(".")[0]


def _waiting(workload: Workload) -> bool:
    """Return whether more than a few jobs wait on the log's own machine, the first come first."""
    limits = stand_in_limits(workload.jobs)
    past = run_schedule(with_limits(workload, limits), "easy", limits, Log())
    return float((past.start - past.submit > 1.0).mean()) > _FEW


def _compare(title: str, workload: Workload, policy: str, chosen: argparse.Namespace) -> None:
    begin = time.perf_counter()
    limits = stand_in_limits(workload.jobs)
    taken = workload if policy == RECORDED else with_limits(workload, limits)
    past = run_schedule(taken, policy, limits, Log())
    questions = questions_of(past, chosen.asked)
    if not len(questions.jobs):
        print(f"{title}: no job waits")
        return
    answers = _answers_of_others(past, questions)
    parts = [*PARTS] if chosen.parts else [*PARTS][-1:]
    ours, told = answers_of_ours(
        taken,
        policy,
        past,
        questions,
        scenarios=chosen.scenarios,
        learned=chosen.learned,
        parts=parts,
    )
    answers |= ours
    known = questions.asked + questions.left
    three = [answers[OURS], answers[_TREES], answers[_PAST]]
    answers[_JOINED] = joined_waits(three, questions.left, questions.asked, known)
    _print(title, answers, questions)
    low, high, start = told.T
    before, within = float((start < low).mean()), float(((low <= start) & (start <= high)).mean())
    print(
        f"ours of all {len(told)} at doublings of waits: {before:.0%} before, {within:.0%} within"
    )
    print(f"    {time.perf_counter() - begin:.0f} s", flush=True)


def _answers_of_others(past: PastSchedule, questions: Questions) -> dict[str, Floats]:
    planned = [
        planned_starts(past, now, np.array([job]))[0] - now
        for job, now in zip(questions.jobs, questions.asked, strict=True)
    ]
    return {
        _LIMITS: np.repeat(np.array(planned)[:, None], 3, axis=1),
        _PAST: waits_of_past(past, questions.jobs, questions.asked),
        _TREES: waits_by_trees(past, questions.jobs, questions.asked),
    }


def _print(title: str, answers: dict[str, Floats], questions: Questions) -> None:
    print(f"\n{title}")
    print(
        f"{'':24}{'asked':>6}{'?':>6}{'1 min':>7}{'10 min':>7}{'1 h':>6}{'x2':>6}{'mean':>10}"
        f"{'median':>10}{'before':>8}{'within':>8}{'after':>7}{'width':>10}{'CRPS':>10}"
    )
    shared = np.logical_and.reduce([np.isfinite(each).all(axis=1) for each in answers.values()])
    for halfway, when in ((False, "at submission"), (True, "at half of the wait")):
        some = questions.halfway == halfway
        compared = some & shared
        print(f"{when}; CRPS of the {compared.sum()} that all methods answered")
        for method, stated in answers.items():
            found = score(stated[some], questions.left[some])
            if compared.any():
                sharpness = float(crps(stated[compared], questions.left[compared]).mean())
                found = replace(found, crps=sharpness)
            _print_line(method, found)


def _print_line(method: str, found: Score) -> None:
    near = "".join(f"{share:7.0%}" for share in found.near[:2]) + f"{found.near[2]:6.0%}"
    print(
        f"  {method:22}{found.asked:6}{found.unknown:6.0%}{near}{found.doubled:6.0%}"
        f"{_hours(found.mean_error)}{_hours(found.median_error)}{found.before:8.0%}"
        f"{found.within:8.0%}{found.after:7.0%}{_hours(found.width)}{_hours(found.crps)}"
    )


def _hours(seconds: float) -> str:
    return f"{seconds / 3600.0:8.2f} h"


if __name__ == "__main__":
    sys.exit(main())
