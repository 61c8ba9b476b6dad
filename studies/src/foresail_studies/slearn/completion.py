"""Studies of completion times under SLearn: speed-ups, ratios of pilots, stages, bins of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.model.registry import register
from foresail_studies.slearn._shared import (
    COMPLETION,
    ERROR,
    FASTER,
    FIFO,
    JOINT,
    LAS,
    MEDIAN,
    NINE_TENTHS,
    ORACLE,
    POINT,
    RIGHT,
    SIGMA,
    SIGMA_THIN,
    SLEARN,
    SOURCE,
    WAITING,
    SLearnStudyParameters,
    bins,
    by_name,
    cases,
    claims,
    completion,
    first_tasks,
    made_by,
    narrow,
    notes,
    points,
    replayed,
    traces,
    wider,
)
from foresail_studies.study import Bound, Mean, Measure, Study, published

_SPEEDUPS_SYSTEMS: Final = by_name(
    *(SLEARN, SIGMA, SIGMA_THIN, POINT, LAS, FIFO),
    *(ORACLE, JOINT),
)
_SPEEDUPS_OVER: Final = {
    "2strace": {SIGMA: 1.28, SIGMA_THIN: 1.26, POINT: 1.42, LAS: 1.91},
    "gtrace11": {SIGMA: 1.56, SIGMA_THIN: 1.55, POINT: 2.17, LAS: 1.65},
    "gtrace19": {SIGMA: 1.32, SIGMA_THIN: 1.32, POINT: 1.54, LAS: 1.72},
}
"""Published speed-ups of SLearn (figure 6), by calibration and baseline."""
_FIFO_2S: Final = 3.29
_ORACLE_2S: Final = 0.79


@register("study", "slearn-speedups", parameters=SLearnStudyParameters)
def speedups(parameters: SLearnStudyParameters) -> Study:
    """SLearn's speed-up over every baseline on three traces (figure 6)."""
    return Study(
        title="How much sooner do jobs end if their first tasks tell how long they take?",
        source=f"{SOURCE}, figure 6",
        measures=(
            *(FASTER, MEDIAN, NINE_TENTHS),
            *(COMPLETION, WAITING),
        ),
        drawn=(FASTER.name, MEDIAN.name),
        cases=cases(traces(parameters), parameters.seeds, _SPEEDUPS_SYSTEMS, faster=SLEARN),
        claims=claims(_speedups_claims),
        notes=("Speed-ups are SLearn's over the system of the row.", *notes(parameters)),
    )


def _speedups_claims(trace: str, group: str) -> dict[str, Bound]:
    def over(system: str) -> Mean:
        return Mean(FASTER.name, system, group)

    published = _SPEEDUPS_OVER[trace]
    claims = {
        f"SLearn is faster than {system} (published: {factor:g} times; {group}).": Bound(
            1.0, over(system)
        )
        for system, factor in published.items()
    }
    claims |= {
        f"... {published[SIGMA]:g} times as fast as 3Sigma, or more ({group}).": Bound(
            published[SIGMA], over(SIGMA)
        ),
        f"Point-Est is slower than 3Sigma ({group}).": Bound(over(SIGMA), over(POINT)),
        f"Nothing is as slow as FIFO ({group}).": Bound(over(LAS), over(FIFO)),
        f"The oracle is faster than SLearn ({group}).": Bound(over(ORACLE), 1.0),
        f"Ours: what joins history with pilots loses to pilots "
        f"alone by no more than noise (taken as: 2 %; {group}).": Bound(over(JOINT), 1.02),
        f"Ours: ... nor to 3Sigma, which has history alone (taken as: 2 %; {group}).": FASTER.of(
            JOINT, group=group
        ).against(SIGMA, factor=1.02),
    }
    if trace == "2strace":
        claims |= {
            f"SLearn is {_FIFO_2S:g} times as fast as FIFO ({group}).": Bound(_FIFO_2S, over(FIFO)),
            f"SLearn is {_ORACLE_2S:g} times as fast as the oracle, or nearer ({group}).": Bound(
                _ORACLE_2S, over(ORACLE)
            ),
        }
    return claims


_ADAPTIVE: Final = "adaptive"
_PERCENT: Final = (1, 2, 3, 4, 5, 10)
_THIN: Final = (2, 3, 4, 5, 6)
_THIN_LIMIT: Final = "thin limit"


def _fixed(percent: int) -> str:
    return f"{percent} %"


def _below(thin: int) -> str:
    return f"{_THIN_LIMIT} {thin}"


_RATIOS_SYSTEMS: Final = {
    **{_fixed(percent): f"slearn(pilot_percent={percent})" for percent in _PERCENT},
    _ADAPTIVE: "slearn",
    **{_below(thin): f"slearn(thin_below={thin})" for thin in _THIN},
}


@register("study", "slearn-ratios", parameters=SLearnStudyParameters)
def ratios(parameters: SLearnStudyParameters) -> Study:
    """Fixed ratios of pilots against learned ones, and the thin limit (tables 6 and 8)."""
    return Study(
        title="How many tasks should be sampled, and of which jobs?",
        source=f"{SOURCE}, tables 6 and 8",
        measures=(FASTER, MEDIAN, COMPLETION, ERROR),
        drawn=(FASTER.name,),
        cases=cases(traces(parameters), parameters.seeds, _RATIOS_SYSTEMS, slower=SIGMA),
        claims=claims(_ratios_claims),
        notes=("Speed-ups are those over 3Sigma.", *notes(parameters)),
    )


def _ratios_claims(trace: str, group: str) -> dict[str, Bound]:
    def of(system: str, name: str = COMPLETION.name) -> Mean:
        return Mean(name, system, group)

    claims = {
        f"The learned ratio does within 1 % as well as {percent} % of the tasks, or better "
        f"({group}; taken as: within 2 %).": of(_ADAPTIVE).against(_fixed(percent), factor=1.02)
        for percent in _PERCENT
    }
    claims |= {
        f"With 10 % of the tasks errors are smaller than with 1 % ({group}).": of(
            _fixed(10), ERROR.name
        ).against(_fixed(1))
    }
    if trace == "2strace":
        claims |= {
            f"A thin limit of 6 is worse than one of 3 (published speed-ups "
            f"over 3Sigma: 0.84 against 1.28; {group}).": of(_below(3)).against(_below(6))
        }
    else:
        claims |= {
            f"The thin limit hardly matters (published: within 3 %, from 3 to 6; {group}).": of(
                _below(6)
            ).against(_below(3), factor=1.03)
        }
    return claims


_HYBRID: Final = "slearn-dag"
_DAGS_OVER: Final = {SIGMA: 1.26, LAS: 2.15, POINT: 1.74}
"""Published speed-ups of SLearn-DAG (figure 9)."""
_DAGS_SYSTEMS: Final = by_name(_HYBRID, SLEARN, *_DAGS_OVER, FIFO, ORACLE)
_NAMES: Final = {"": "GTrace19", "wider": "GTrace19, wider jobs"}


@dataclass(frozen=True, slots=True)
class DagParameters(SLearnStudyParameters):
    """Parameters of ``slearn-dags``; ``jobs`` are DAGs."""

    jobs: int = 900


@register("study", "slearn-dags", parameters=DagParameters)
def dags(parameters: DagParameters) -> Study:
    """SLearn-DAG's speed-ups on chains of two to five stages (figure 9)."""
    settings = {
        _NAMES[""]: f"dags={parameters.jobs}",
        _NAMES["wider"]: f"dags={parameters.jobs},median_tasks={parameters.median_tasks:g}",
    }
    places = [made_by("slearn_dag", name, each) for name, each in settings.items()]
    return Study(
        title="What do the first stage's tasks tell of the stages after it?",
        source=f"{SOURCE}, figure 9",
        measures=(FASTER, MEDIAN, COMPLETION, ERROR, RIGHT),
        drawn=(FASTER.name,),
        cases=cases(places, parameters.seeds, _DAGS_SYSTEMS, faster=_HYBRID),
        claims=published(*(_dags_claims(name) for name in reversed(settings))),
        notes=("Speed-ups are SLearn-DAG's over the system of the row.", *notes(parameters)),
    )


def _dags_claims(group: str) -> dict[str, Bound]:
    def over(system: str) -> Mean:
        return Mean(FASTER.name, system, group)

    claims = {
        f"SLearn-DAG is faster than {system} (published: {factor:g} times; {group}).": Bound(
            1.0, over(system)
        )
        for system, factor in _DAGS_OVER.items()
    }
    claims |= {
        f"... {_DAGS_OVER[SIGMA]:g} times as fast as 3Sigma, or more ({group}).": Bound(
            _DAGS_OVER[SIGMA], over(SIGMA)
        ),
        f"Half of its errors are below 33.9 %, of 3Sigma's below 47.2 %: "
        f"it errs less ({group}).": ERROR.of(_HYBRID, group=group).against(SIGMA),
    }
    return claims


_JOBS: Final = Measure("jobs_share", "of the jobs", "share")
_WORK: Final = Measure("work_share", "of the work", "share")
_PUBLISHED: Final = {
    "thin, small": (10.54, 0.0455),
    "wide, small": (1.86, 0.2873),
    "thin, large": (0.80, 0.1429),
    "wide, large": (1.38, 0.5243),
}
"""Published average speed-ups over 3Sigma on 2STrace, and shares of the jobs (table 9)."""


@dataclass(frozen=True, slots=True)
class BinTrial:
    """Jobs of one bin: their shares, and SLearn's speed-up over 3Sigma."""

    workload: str
    history: str
    seed: int
    bin: str

    def measure(self) -> Mapping[str, float]:
        """Measure as above."""
        of_trace = (self.workload, self.history, self.seed)
        ours, theirs = (replayed(*of_trace, each) for each in (SLEARN, SIGMA))
        first_task = first_tasks(ours)
        size = np.add.reduceat(ours.stages.runtime_seconds, first_task[:-1])
        found = bins(np.diff(first_task), size, completion(theirs), completion(ours))
        one = next(each for each in found if each.name == self.bin)
        return {
            FASTER.name: one.speedup.average,
            MEDIAN.name: one.speedup.median,
            _JOBS.name: one.jobs_percent / 100.0,
            _WORK.name: one.work_percent / 100.0,
        }


@register("study", "slearn-bins", parameters=SLearnStudyParameters)
def slearn_bins(parameters: SLearnStudyParameters) -> Study:
    """SLearn's speed-up over 3Sigma by width and size of the jobs (figure 8, table 9)."""
    places, systems = traces(parameters), by_name(*_PUBLISHED)
    return Study(
        title="Which jobs gain from sampling, by width and size?",
        source=f"{SOURCE}, figure 8 and table 9",
        measures=(FASTER, MEDIAN, _JOBS, _WORK),
        drawn=(FASTER.name,),
        cases=points(places, parameters.seeds, systems, BinTrial),
        claims=published(_bins_claims(wider("2strace")), _bins_claims(narrow("2strace"))),
        notes=(
            "Thin: fewer than three tasks; small: below 1000 s of work.",
            *notes(parameters),
        ),
    )


def _bins_claims(group: str) -> dict[str, Bound]:
    claims = {}
    for name, (factor, share) in _PUBLISHED.items():
        ours = Mean(FASTER.name, name, group)
        said = f"{name} ({share:.1%} of the jobs; {group}): published speed-up {factor:g}"
        if factor < 1.0:
            claims[f"{said}, slower than under 3Sigma."] = Bound(ours, 1.0)
        else:
            claims[f"{said}, faster than under 3Sigma."] = Bound(1.0, ours)
    return claims
