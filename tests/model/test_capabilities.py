"""What schedulers and predictors do beside deciding: their methods, and a wrapper its own one's."""

import inspect

import pytest

from foresail.control.policy import parse_policy
from foresail.model.decision import Decision
from foresail.model.protocols import Predictor, Scheduler, SchedulerWrapper


class Plain(Scheduler):
    def decide(self, view):
        return Decision()


class OfAllKinds(Plain):
    """Answers whatever it is asked, and by that does whatever a scheduler can."""

    starts_tasks = ignores_time = places_by_options = backfills = True
    last = "report"

    def answer(self, *_):
        return "answer"

    planned_seconds = place_in_queue = reserve = release = take_over = memory = answer
    remember = reference = watch_use = part_ended = went_back = sizes = compiled = answer


FLAGS = ("takes_reservations", "compares", "ignores_time", "places_by_options", "backfills")


def test_a_wrapper_does_what_its_own_one_does():
    """All but to start tasks and to be compiled, and what only those who start tasks do."""
    wrapped = SchedulerWrapper(SchedulerWrapper(OfAllKinds()))
    assert all(getattr(wrapped, flag) for flag in FLAGS)
    assert wrapped.last == "report"
    assert not any((wrapped.starts_tasks, wrapped.is_compiled))
    plain = SchedulerWrapper(Plain())
    assert not any(getattr(plain, flag) for flag in FLAGS)
    methods = [
        name
        for name, method in vars(Scheduler).items()
        if inspect.isfunction(method) and name not in {"decide", "part_ended", "sizes"}
    ]
    for name in methods:
        arguments = [None] * (len(inspect.signature(getattr(wrapped, name)).parameters))
        got = getattr(wrapped, name)(*arguments)
        assert got in ("answer", None)
        assert name in vars(SchedulerWrapper)


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
