"""Study ``slearn-estimates``: how wrong sampled and remembered runtimes are."""

from __future__ import annotations

from typing import Final

from foresail.model.registry import register
from foresail_studies.slearn import _shared as slearn
from foresail_studies.study import Bound, Mean, Study

_SYSTEMS: Final = slearn.by_name(slearn.SLEARN, slearn.SIGMA, slearn.POINT, slearn.JOINT)
_MEDIANS: Final = {
    "2strace": (0.1898, 0.3657),
    "gtrace11": (0.1368, 0.2139),
    "gtrace19": (0.5184, 0.7156),
}
"""Published medians of the errors of SLearn and of 3Sigma."""
_LARGE: Final = {
    "2strace": (0.5866, 4.7578),
    "gtrace11": (0.4995, 2.9452),
    "gtrace19": (0.9225, 19.2751),
}
"""Published 90 % quantiles of the errors."""
_RIGHT: Final = {
    "2strace": (0.8909, 0.7384),
    "gtrace11": (0.8645, 0.7620),
    "gtrace19": (0.7396, 0.5807),
}
"""Published shares of wide jobs in the right queue (table 7)."""


@register("study", "slearn-estimates", parameters=slearn.SLearnStudyParameters)
def estimates(parameters: slearn.SLearnStudyParameters) -> Study:
    """Errors of predicted sizes, and wide jobs in the right queue (figure 2, tables 7 and 10)."""
    return Study(
        title="How wrong are sampled and remembered runtimes, and which jobs do they misplace?",
        source=f"{slearn.SOURCE}, figure 2, tables 7 and 10",
        measures=(
            *(slearn.ERROR, slearn.LARGE_ERROR, slearn.OVER),
            *(slearn.RIGHT, slearn.TOO_LOW, slearn.TOO_HIGH),
        ),
        drawn=(slearn.ERROR.name, slearn.RIGHT.name),
        cases=slearn.cases(
            slearn.traces(parameters), parameters.seeds, _SYSTEMS, slower=slearn.SIGMA
        ),
        claims=slearn.claims(_claims),
        notes=(
            "Jobs with three tasks or more; errors of the seconds of all tasks.",
            *slearn.notes(parameters),
        ),
    )


def _claims(trace: str, group: str) -> dict[str, Bound]:
    def of(name: str, system: str) -> Mean:
        return Mean(name, system, group)

    sampled, remembered = (f"{value:.1%}" for value in _MEDIANS[trace])
    large, larger = (f"{value:.0%}" for value in _LARGE[trace])
    right, fewer = (f"{value:.1%}" for value in _RIGHT[trace])
    return {
        f"Half of SLearn's errors are below {sampled}, of 3Sigma's below {remembered}: "
        f"SLearn errs less ({group}).": of(slearn.ERROR.name, slearn.SLEARN).against(slearn.SIGMA),
        f"... as much as published, or less ({sampled}).": Bound(
            of(slearn.ERROR.name, slearn.SLEARN), _MEDIANS[trace][0]
        ),
        f"90 % of SLearn's errors are below {large}, of 3Sigma's below {larger}: SLearn "
        f"errs less ({group}).": of(slearn.LARGE_ERROR.name, slearn.SLEARN).against(slearn.SIGMA),
        f"More wide jobs are in the right queue under SLearn ({right}) than under "
        f"3Sigma ({fewer}; {group}).": of(slearn.RIGHT.name, slearn.SIGMA).against(slearn.SLEARN),
        f"Most of 3Sigma's estimates are too long (published: 60 % on 2STrace; {group}).": Bound(
            0.5, of(slearn.OVER.name, slearn.SIGMA)
        ),
    }
