"""Study ``slearn-dags``: what the first stage's tasks tell of the stages after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from foresail.model.registry import register
from foresail_studies.slearn import _shared as slearn
from foresail_studies.study import Bound, Mean, Study, published

_HYBRID: Final = "slearn-dag"
_OVER: Final = {slearn.SIGMA: 1.26, slearn.LAS: 2.15, slearn.POINT: 1.74}
"""Published speed-ups of SLearn-DAG (figure 9)."""
_SYSTEMS: Final = slearn.by_name(_HYBRID, slearn.SLEARN, *_OVER, slearn.FIFO, slearn.ORACLE)
_NAMES: Final = {"": "GTrace19", "wider": "GTrace19, wider jobs"}


@dataclass(frozen=True, slots=True)
class DagParameters(slearn.SLearnStudyParameters):
    """Parameters of ``slearn-dags``; ``jobs`` are DAGs."""

    jobs: int = 900


@register("study", "slearn-dags", parameters=DagParameters)
def dags(parameters: DagParameters) -> Study:
    """SLearn-DAG's speed-ups on chains of two to five stages (figure 9)."""
    settings = {
        _NAMES[""]: f"dags={parameters.jobs}",
        _NAMES["wider"]: f"dags={parameters.jobs},median_tasks={parameters.median_tasks:g}",
    }
    places = [slearn.made_by("slearn_dag", name, each) for name, each in settings.items()]
    return Study(
        title="What do the first stage's tasks tell of the stages after it?",
        source=f"{slearn.SOURCE}, figure 9",
        measures=(slearn.FASTER, slearn.MEDIAN, slearn.COMPLETION, slearn.ERROR, slearn.RIGHT),
        drawn=(slearn.FASTER.name,),
        cases=slearn.cases(places, parameters.seeds, _SYSTEMS, faster=_HYBRID),
        claims=published(*(_claims(name) for name in reversed(settings))),
        notes=("Speed-ups are SLearn-DAG's over the system of the row.", *slearn.notes(parameters)),
    )


def _claims(group: str) -> dict[str, Bound]:
    def over(system: str) -> Mean:
        return Mean(slearn.FASTER.name, system, group)

    claims = {
        f"SLearn-DAG is faster than {system} (published: {factor:g} times; {group}).": Bound(
            1.0, over(system)
        )
        for system, factor in _OVER.items()
    }
    claims |= {
        f"... {_OVER[slearn.SIGMA]:g} times as fast as 3Sigma, or more ({group}).": Bound(
            _OVER[slearn.SIGMA], over(slearn.SIGMA)
        ),
        f"Half of its errors are below 33.9 %, of 3Sigma's below 47.2 %: "
        f"it errs less ({group}).": slearn.ERROR.of(_HYBRID, group=group).against(slearn.SIGMA),
    }
    return claims
