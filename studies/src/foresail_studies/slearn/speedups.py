"""Study ``slearn-speedups``: how much sooner jobs end if their first tasks tell their runtime."""

from __future__ import annotations

from typing import Final

from foresail.model.registry import register
from foresail_studies.slearn import _shared as slearn
from foresail_studies.study import Bound, Mean, Study

_SYSTEMS: Final = slearn.by_name(
    *(slearn.SLEARN, slearn.SIGMA, slearn.SIGMA_THIN, slearn.POINT, slearn.LAS, slearn.FIFO),
    *(slearn.ORACLE, slearn.JOINT),
)
_OVER: Final = {
    "2strace": {slearn.SIGMA: 1.28, slearn.SIGMA_THIN: 1.26, slearn.POINT: 1.42, slearn.LAS: 1.91},
    "gtrace11": {slearn.SIGMA: 1.56, slearn.SIGMA_THIN: 1.55, slearn.POINT: 2.17, slearn.LAS: 1.65},
    "gtrace19": {slearn.SIGMA: 1.32, slearn.SIGMA_THIN: 1.32, slearn.POINT: 1.54, slearn.LAS: 1.72},
}
"""Published speed-ups of SLearn (figure 6), by calibration and baseline."""
_FIFO_2S: Final = 3.29
_ORACLE_2S: Final = 0.79


@register("study", "slearn-speedups", parameters=slearn.SLearnStudyParameters)
def speedups(parameters: slearn.SLearnStudyParameters) -> Study:
    """SLearn's speed-up over every baseline on three traces (figure 6)."""
    return Study(
        title="How much sooner do jobs end if their first tasks tell how long they take?",
        source=f"{slearn.SOURCE}, figure 6",
        measures=(
            *(slearn.FASTER, slearn.MEDIAN, slearn.NINE_TENTHS),
            *(slearn.COMPLETION, slearn.WAITING),
        ),
        drawn=(slearn.FASTER.name, slearn.MEDIAN.name),
        cases=slearn.cases(
            slearn.traces(parameters), parameters.seeds, _SYSTEMS, faster=slearn.SLEARN
        ),
        claims=slearn.claims(_claims),
        notes=("Speed-ups are SLearn's over the system of the row.", *slearn.notes(parameters)),
    )


def _claims(trace: str, group: str) -> dict[str, Bound]:
    def over(system: str) -> Mean:
        return Mean(slearn.FASTER.name, system, group)

    published = _OVER[trace]
    claims = {
        f"SLearn is faster than {system} (published: {factor:g} times; {group}).": Bound(
            1.0, over(system)
        )
        for system, factor in published.items()
    }
    claims |= {
        f"... {published[slearn.SIGMA]:g} times as fast as 3Sigma, or more ({group}).": Bound(
            published[slearn.SIGMA], over(slearn.SIGMA)
        ),
        f"Point-Est is slower than 3Sigma ({group}).": Bound(
            over(slearn.SIGMA), over(slearn.POINT)
        ),
        f"Nothing is as slow as FIFO ({group}).": Bound(over(slearn.LAS), over(slearn.FIFO)),
        f"The oracle is faster than SLearn ({group}).": Bound(over(slearn.ORACLE), 1.0),
        f"Ours: what joins history with pilots loses to pilots "
        f"alone by no more than noise (taken as: 2 %; {group}).": Bound(over(slearn.JOINT), 1.02),
        f"Ours: ... nor to 3Sigma, which has "
        f"history alone (taken as: 2 %; {group}).": slearn.FASTER.of(
            slearn.JOINT, group=group
        ).against(slearn.SIGMA, factor=1.02),
    }
    if trace == "2strace":
        claims |= {
            f"SLearn is {_FIFO_2S:g} times as fast as FIFO ({group}).": Bound(
                _FIFO_2S, over(slearn.FIFO)
            ),
            f"SLearn is {_ORACLE_2S:g} times as fast as the oracle, or nearer ({group}).": Bound(
                _ORACLE_2S, over(slearn.ORACLE)
            ),
        }
    return claims
