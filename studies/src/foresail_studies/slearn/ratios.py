"""Study ``slearn-ratios``: how many tasks to sample, and of which jobs."""

from __future__ import annotations

from typing import Final

from foresail.model.registry import register
from foresail_studies.slearn import _shared as slearn
from foresail_studies.study import Bound, Mean, Study

_ADAPTIVE: Final = "adaptive"
_PERCENT: Final = (1, 2, 3, 4, 5, 10)
_THIN: Final = (2, 3, 4, 5, 6)
_THIN_LIMIT: Final = "thin limit"


def _fixed(percent: int) -> str:
    return f"{percent} %"


def _below(thin: int) -> str:
    return f"{_THIN_LIMIT} {thin}"


_SYSTEMS: Final = {
    **{_fixed(percent): f"slearn(pilot_percent={percent})" for percent in _PERCENT},
    _ADAPTIVE: "slearn",
    **{_below(thin): f"slearn(thin_below={thin})" for thin in _THIN},
}


@register("study", "slearn-ratios", parameters=slearn.SLearnStudyParameters)
def ratios(parameters: slearn.SLearnStudyParameters) -> Study:
    """Fixed ratios of pilots against learned ones, and the thin limit (tables 6 and 8)."""
    return Study(
        title="How many tasks should be sampled, and of which jobs?",
        source=f"{slearn.SOURCE}, tables 6 and 8",
        measures=(slearn.FASTER, slearn.MEDIAN, slearn.COMPLETION, slearn.ERROR),
        drawn=(slearn.FASTER.name,),
        cases=slearn.cases(
            slearn.traces(parameters), parameters.seeds, _SYSTEMS, slower=slearn.SIGMA
        ),
        claims=slearn.claims(_claims),
        notes=("Speed-ups are those over 3Sigma.", *slearn.notes(parameters)),
    )


def _claims(trace: str, group: str) -> dict[str, Bound]:
    def of(system: str, name: str = slearn.COMPLETION.name) -> Mean:
        return Mean(name, system, group)

    claims = {
        f"The learned ratio does within 1 % as well as {percent} % of the tasks, or better "
        f"({group}; taken as: within 2 %).": of(_ADAPTIVE).against(_fixed(percent), factor=1.02)
        for percent in _PERCENT
    }
    claims |= {
        f"With 10 % of the tasks errors are smaller than with 1 % ({group}).": of(
            _fixed(10), slearn.ERROR.name
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
