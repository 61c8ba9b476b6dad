"""What schedulers and predictors do beside deciding: their methods."""

import pytest

from foresail.control.policy import parse_policy
from foresail.model.decision import Decision
from foresail.model.protocols import Predictor, Scheduler


class Plain(Scheduler):
    def decide(self, view):
        return Decision()


def test_who_says_nothing_else_does_nothing_else():
    """A scheduler of ``decide`` alone and a predictor of two methods have all others."""

    class Silent(Predictor):
        def predict(self, job, now):
            return None

        def observe(self, job, outcome):
            pass

    silent = Silent()
    flags = ("refreshes_predictions", "needs_truth", "needs_real_use", "keeps_state", "is_compiled")
    assert not any(getattr(silent, flag) for flag in flags)
    assert silent.started(None, 0.0) is silent.snapshot() is None
    scheduler = Plain()
    assert scheduler.memory() is scheduler.last is scheduler.reference(None) is None
    assert scheduler.sizes() == ()
    assert parse_policy("easy,recent").build()[1].keeps_state


@pytest.mark.parametrize(("predictor", "needs_truth"), [("clairvoyant", True), ("recent", False)])
def test_an_oracle_is_one_that_takes_the_truth(predictor, needs_truth):
    assert parse_policy(f"easy,{predictor}").needs_truth is needs_truth
