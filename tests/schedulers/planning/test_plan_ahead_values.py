"""Value functions of users in a plan: any shape that is not negative."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest

from foresail.distributions.basic import Uniform
from foresail.model.errors import InputError
from foresail.schedulers._planning.core import PlanAhead
from foresail.schedulers._planning.valuing import PlanAheadParameters
from planning_problems import job, racks, view_of, waiting

PARAMETERS = PlanAheadParameters(window_slots=6, slot_seconds=10.0, hopeless_jobs="drop")


@dataclass(frozen=True)
class Between:
    """Worth something only if done between two moments; before, too early."""

    earliest: float
    latest: float
    worth: float = 50.0

    def at(self, completion_seconds):
        """The value at a moment."""
        return self.worth if self.earliest <= completion_seconds <= self.latest else 0.0


def worth_by_start(value, belief, **changes):
    """What each start of one job is worth."""
    asked = replace(job("a", 1), value=value)
    scheduler = PlanAhead(replace(PARAMETERS, **changes))
    view = view_of(racks(2), waiting((asked, belief)))
    return scheduler.demands(view).problem.worth[0], scheduler.decide(view)


def test_a_value_that_rises_is_waited_for():
    """Done at 35 to 45 s with a runtime of 10 s: planned for 30 s, and not before."""
    worth, decision = worth_by_start(Between(35.0, 45.0), 10.0)
    assert worth == pytest.approx([0, 0, 0, 50, 0, 0], abs=1e-3)
    assert decision.starts == ()
    assert [(each.job_id, each.start_seconds) for each in decision.plan] == [("a", 30.0)]


def test_the_value_is_averaged_over_the_belief():
    """Runtimes of 0 to 20 s: half of a start's ends at 10 s lie within 20 to 40 s, and so on."""
    worth, _ = worth_by_start(Between(20.0, 40.0), Uniform(0.0, 20.0))
    assert worth == pytest.approx([0, 25, 50, 25, 0, 0], abs=0.5)


def test_best_effort_value_is_the_unit():
    """As of all that has no deadline."""
    worth, _ = worth_by_start(Between(35.0, 45.0), 10.0, best_effort_value=2.0)
    assert worth[3] == pytest.approx(100.0, rel=1e-4)


@pytest.mark.parametrize("odd", [-1.0, math.nan, math.inf])
def test_what_is_no_value_is_refused(odd):
    """With the job, the moment and what was found."""
    with pytest.raises(InputError, match=r"job a .*|value at .*") as refused:
        worth_by_start(Between(0.0, 1e9, odd), 10.0)
    assert "0 or above" in str(refused.value)
