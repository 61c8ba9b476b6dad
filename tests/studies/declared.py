"""What must hold of every declared study."""

from __future__ import annotations

from foresail.model.registry import find
from foresail_studies.study import Mean, sizes_of


def require_claims_about_cases(name, quick, full):
    """Claims and figures are about cases that are run; the sizes differ and say how long."""
    for study in (quick, full):
        names = {measure.name for measure in study.measures}
        assert set(study.drawn) <= names
        for claim in study.claims:
            for side in (claim.bound.less, claim.bound.more):
                if not isinstance(side, Mean):
                    continue
                assert side.measure in names
                found = {
                    case.x
                    for case in study.cases
                    if case.system == side.system and side.group in (None, case.group)
                }
                assert found, claim.published
                assert set(side.x) <= found, claim.published
    sizes = sizes_of(find("study", name))
    assert 0 < sizes.MINUTES[0] <= 6
    assert sizes.MINUTES[0] < sizes.MINUTES[1]
    assert {case.task for case in quick.cases} != {case.task for case in full.cases}
