"""What knowledge of runtimes does for a schedule: one thing swapped at a time.

usage: python studies/knowledge/ablation.py TRACES [--log NAME ...]

The base is ``guarded_backfilling`` with ``similar``. Each row swaps one thing of it: which quantile
orders the queue, which decides whether a job fits before a reservation, whether beliefs of waiting
jobs are made anew, who predicts, who knows the truth and for what, by how much estimates are off
(the truth times the exponential of a normal number), and what else is looked at. Printed per log:
the average bounded slowdown against EASY's (less is a gain) and the longest wait against EASY's; of
estimates also the CRPS over the mean runtime and the rank correlation (Spearman) of their medians
with the runtimes, both at submission. The last lines are least squares over the rows that swap the
estimates alone: what a tenth of CRPS and a tenth of rank correlation change of the slowdown.

The last rows look at what logs offer beyond user and request. The estimate is the median of
``similar`` at submission times a factor that is learned, as jobs end, for the class of the job by
one thing that was known at submission: the exponential of the sum of the logarithms by which the
estimates of ended jobs of its class were off, over their count and ten more.
"""

from __future__ import annotations

import argparse
import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from estimating import recorded_ends, requested, seen
from numpy.typing import NDArray

from foresail.control.policy import parse_policy
from foresail.evaluation.replaying import evaluate
from foresail.evaluation.scores import scores
from foresail.metrics.summary import summary
from foresail.model.registry import NoParameters, find, register
from foresail.predictors.clairvoyant import Clairvoyant
from foresail.predictors.stepped import SteppedPredictor
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces.reading import read
from foresail.traces.workload import Workload

LOGS = ("KTH-SP2", "CTC-SP2", "SDSC-SP2")
PREDICTORS = ("requested", "recent", "jvu", "quantile_regression", "combined", "calibrated")
SPREADS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)
STRENGTH = 10.0

ESTIMATES: dict[str, float] = {}
"""What ``told`` predicts, by job id."""


@register("predictor", "told", parameters=NoParameters)
class Told(Clairvoyant):
    """Predicts the estimates that the experiment made, whatever the truth is."""

    def reveal(self, runtime_seconds: Mapping[str, float]) -> None:
        """Take the estimates instead of the truth."""
        super().reveal({job: ESTIMATES[job] for job in runtime_seconds})


@register("predictor", "similar_at_submission", parameters=NoParameters)
class SimilarAtSubmission(SteppedPredictor):
    """``similar``, whose beliefs about waiting jobs stay as they were at submission."""

    def __init__(self, parameters: object) -> None:
        del parameters
        entry = find("predictor", "similar")
        inner: Any = entry.build(entry.parameters())
        super().__init__(inner._steps._replace(refresh=None), inner._layout)


def measured(workload: Workload, policy: str) -> tuple[float, float]:
    """Average bounded slowdown, and the longest wait in seconds."""
    found = summary(run_scenario(Scenario(workload, parse_policy(policy))))
    return found.average_bounded_slowdown, found.max_wait_seconds


def policies() -> Iterator[tuple[str, str, str]]:
    """What is swapped, for what, and the policy."""
    base = "guarded,similar"
    yield "nothing", "", base
    for key in ("q10", "q25", "q50", "q75", "q90", "predicted"):
        yield "order", key, f"guarded(queue=max({key},10)/probe),similar"
    yield "order", "the same, no pilots", "guarded(queue=predicted/urgency),similar"
    yield "order", "urgency", "guarded(queue=1/(urgency*probe)),similar"
    yield "order", "requested", "guarded(queue=max(requested,10)/probe),similar"
    for key in ("q25", "q75", "q90", "predicted", "requested"):
        yield "what fits", key, f"guarded(likely={key}),similar"
    yield "running jobs", "q90", "guarded(plan=q90),similar"
    yield "refreshed", "never", "guarded,similar_at_submission"
    for name in PREDICTORS:
        yield "predictor", name, f"guarded,{name}"
    yield "truth", "all", "guarded,clairvoyant"
    yield "truth", "order only", "guarded(likely=requested),clairvoyant"
    yield "truth", "what fits only", "guarded(queue=max(requested,10)/probe),clairvoyant"


def off_by(workload: Workload, spread: float) -> NDArray[np.float64]:
    """The truth, off by factors."""
    random = np.random.default_rng(0)
    runtime = np.maximum(workload.runtime_seconds, 1.0)
    return np.minimum(
        runtime * np.exp(random.normal(0.0, spread, runtime.size)), requested(workload)
    )


def looked_at(workload: Workload) -> dict[str, list[Any]]:
    """Classes of jobs by what was known at submission beyond user and request."""
    users = workload.jobs["user"].to_list()
    classes: dict[str, list[Any]] = {name: [] for name in NAMES}
    hour = 3600.0
    for user, known in zip(users, seen(workload), strict=True):
        gap, think = known.gap, known.think
        classes["time since the user's last job"].append(_octave(gap))
        classes["think time since the user's last end"].append(_octave(think))
        classes["session (a gap of an hour ends it)"].append(gap > hour and think > hour)
        classes["last runs ended early"].append(min(known.crashes, 3))
        classes["place in a burst"].append(_octave(known.burst + 1.0))
        classes["jobs under way"].append(_octave(known.under_way + 1.0))
        classes["the last three requests at once"].append((user, *known.asked))
    return classes


NAMES = (
    "time since the user's last job",
    "think time since the user's last end",
    "session (a gap of an hour ends it)",
    "last runs ended early",
    "place in a burst",
    "jobs under way",
    "the last three requests at once",
)


def _octave(seconds: float) -> int:
    return int(math.log2(seconds + 1.0)) if math.isfinite(seconds) else -1


def corrected(
    workload: Workload, medians: NDArray[np.float64], classes: list[Any]
) -> NDArray[np.float64]:
    """The medians times what was learned of each class by the time of submission."""
    submit = workload.jobs["submit_seconds"].to_numpy()
    end = recorded_ends(workload)
    runtime = workload.runtime_seconds
    total: dict[Any, float] = defaultdict(float)
    count: dict[Any, int] = defaultdict(int)
    ends: list[tuple[float, int]] = []
    out = medians.copy()
    limit = requested(workload)
    for i in range(out.size):
        while ends and ends[0][0] <= submit[i]:
            _, j = heapq.heappop(ends)
            total[classes[j]] += math.log(max(runtime[j], 1.0) / max(medians[j], 1.0))
            count[classes[j]] += 1
        shift = total[classes[i]] / (count[classes[i]] + STRENGTH)
        out[i] = min(max(medians[i], 1.0) * math.exp(shift), limit[i])
        heapq.heappush(ends, (float(end[i]), i))
    return out


def tell(workload: Workload, estimates: NDArray[np.float64]) -> None:
    """Make these the estimates of ``told``."""
    ESTIMATES.clear()
    ESTIMATES.update(zip(workload.jobs["job_id"].to_list(), estimates.tolist(), strict=True))


@dataclass(frozen=True)
class Row:
    """What was swapped for what, the schedule against EASY's, and the worth of the estimates."""

    swapped: str
    what: str
    slowdown: float
    longest: float
    crps: float = math.nan
    ranks: float = math.nan

    @property
    def cell(self) -> str:
        """Its numbers."""
        known = "" if math.isnan(self.crps) else f" ({self.crps:.3f}, {self.ranks:.2f})"
        return f"{self.slowdown:.2f}, {self.longest:.2f}{known}"


def rank_correlation(estimates: NDArray[np.float64], runtime: NDArray[np.float64]) -> float:
    """Spearman's."""
    table = pl.DataFrame({"estimate": estimates, "runtime": runtime})
    return float(table.select(pl.corr("estimate", "runtime", method="spearman")).item())


def rows(workload: Workload) -> Iterator[Row]:
    """All rows of a log."""
    easy, longest = measured(workload, "easy")
    runtime = workload.runtime_seconds

    def against_easy(policy: str) -> tuple[float, float]:
        slowdown, wait = measured(workload, policy)
        return slowdown / easy, wait / longest

    def told(swapped: str, what: str, estimates: NDArray[np.float64]) -> Row:
        tell(workload, estimates)
        crps = float(np.abs(estimates - runtime).mean() / runtime.mean())
        ranks = rank_correlation(estimates, runtime)
        return Row(swapped, what, *against_easy("guarded,told"), crps, ranks)

    for swapped, what, policy in policies():
        worth = {}
        if swapped in ("nothing", "predictor"):
            evaluation = evaluate(workload, policy.partition(",")[2])
            jobs = evaluation.jobs
            medians, actual = jobs["q50"].to_numpy(), jobs["actual"].to_numpy()
            worth["crps"] = scores(evaluation).relative_crps.value
            worth["ranks"] = rank_correlation(medians, actual)
        yield Row(swapped, what, *against_easy(policy), **worth)
    for spread in SPREADS:
        yield told("truth, off by", f"e^{spread:g}", off_by(workload, spread))
    at_submission = evaluate(workload, "similar").jobs["q50"].to_numpy()
    looks = {"nothing": [0] * at_submission.size, **looked_at(workload)}
    for name, classes in looks.items():
        yield told("also looked at", name, corrected(workload, at_submission, classes))


def worth_of_a_tenth(told: Sequence[Row], read_of: Callable[[Row], float]) -> float:
    """Change of the slowdown with a tenth more of a measure of the estimates, by least squares."""
    known = [row for row in told if not math.isnan(row.crps)]
    return 0.1 * float(np.polyfit(list(map(read_of, known)), [row.slowdown for row in known], 1)[0])


def asked_logs(words: str | None) -> dict[str, Workload]:
    """The logs that the command line asks for, by name; the first of the words is its help."""
    parser = argparse.ArgumentParser(description=(words or "").partition("\n")[0])
    parser.add_argument("traces", type=Path, help="the folder with the filtered logs")
    parser.add_argument("--log", action="append", choices=LOGS, help="may be repeated")
    asked = parser.parse_args()
    return {name: read(asked.traces / f"{name}.filtered.swf.gz") for name in asked.log or LOGS}


def main() -> None:
    """Print a table in Markdown."""
    logs = asked_logs(__doc__)
    tables = [list(rows(workload)) for workload in logs.values()]
    print(f"| swapped | for | mean slowdown | {' | '.join(logs)} |")
    print("|---|---|---" + "|---" * len(logs) + "|")
    for same in zip(*tables, strict=True):
        mean = np.mean([row.slowdown for row in same])
        cells = " | ".join(row.cell for row in same)
        print(f"| {same[0].swapped} | {same[0].what} | {mean:.2f} | {cells} |")
    for name, read_of in (
        ("a tenth more CRPS", lambda row: row.crps),
        ("a tenth more rank correlation", lambda row: row.ranks),
    ):
        worth = [worth_of_a_tenth(table, read_of) for table in tables]
        cells = " | ".join(f"{each:+.3f}" for each in worth)
        print(f"| least squares | {name} | {np.mean(worth):+.3f} | {cells} |")


if __name__ == "__main__":
    main()
