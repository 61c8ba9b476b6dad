"""What schedulers and predictors can is found by what they have; a wrapper can what its own can."""

from dataclasses import fields

import pytest

from foresail.control.policy import parse_policy
from foresail.model.decision import Decision
from foresail.model.protocols import (
    SchedulerOfScheduler,
    capabilities_of_predictor,
    capabilities_of_scheduler,
)


class Plain:
    def decide(self, view):
        return Decision()


class Planning(Plain):
    ignores_time = True

    def planned_seconds(self, pending):
        return 7.0


class Promising(Planning):
    last = None

    def reserve(self, pending, earliest_seconds, now, cluster):
        return None

    def release(self, job_id, now):
        pass

    def take_over(self, promised, cluster):
        pass


class Wrapping(SchedulerOfScheduler):
    def decide(self, view):
        return self._scheduler.decide(view)


class WrappingInTime(Wrapping):
    ignores_time = False


def told(scheduler):
    can = capabilities_of_scheduler(scheduler)
    return (
        can.plans_runtimes is not None,
        can.takes_reservations is not None,
        can.reports_cycles is not None,
        can.ignores_time,
    )


CASES = [
    (Plain(), (False, False, False, False)),
    (Planning(), (True, False, False, True)),
    (Promising(), (True, True, True, True)),
]


@pytest.mark.parametrize(("scheduler", "expected"), CASES)
def test_a_scheduler_and_what_wraps_it_can_the_same(scheduler, expected):
    assert told(scheduler) == told(Wrapping(scheduler)) == expected
    assert told(Wrapping(Wrapping(scheduler))) == expected
    assert told(WrappingInTime(scheduler)) == (*expected[:3], False)


def test_what_is_asked_of_a_wrapper_its_own_one_answers():
    can = capabilities_of_scheduler(Wrapping(Planning()))
    assert can.plans_runtimes.planned_seconds(None) == 7.0
    with pytest.raises(AttributeError):
        _ = Wrapping(Planning()).compiled


class OfAllKinds(Promising):
    """Has all that any capability asks for."""

    starts_tasks = places_by_options = backfills = True
    place_in_queue = memory = remember = reference = watch_use = Promising.release
    part_ended = went_back = sizes = compiled = Promising.release


def test_a_wrapper_can_all_but_start_tasks_and_be_compiled():
    """No capability is forgotten: what is not handed on is named here."""
    own, wrapping = OfAllKinds(), Wrapping(OfAllKinds())
    can, handed_on = capabilities_of_scheduler(own), capabilities_of_scheduler(wrapping)
    assert all(getattr(can, each.name) for each in fields(can))
    lost = {each.name for each in fields(can) if not getattr(handed_on, each.name)}
    assert lost == {"observes_tasks", "tells_sizes", "starts_tasks", "is_compiled"}


def test_predictors_by_what_they_have():
    class Watching:
        def started(self, job, now):
            pass

    plain, watching = capabilities_of_predictor(Plain()), capabilities_of_predictor(Watching())
    assert (plain.watches_starts, plain.refreshes_predictions) == (None, None)
    assert watching.watches_starts is not None
    assert watching.refreshes_predictions is None


def test_who_keeps_only_some_of_a_state_keeps_none():
    class Forgetting:
        def snapshot(self):
            pass

        def restore(self, known):
            pass

    assert capabilities_of_predictor(Forgetting()).keeps_state is None
    assert capabilities_of_predictor(parse_policy("easy,recent").build()[1]).keeps_state is not None


@pytest.mark.parametrize(("predictor", "needs_truth"), [("clairvoyant", True), ("recent", False)])
def test_an_oracle_is_one_that_takes_the_truth(predictor, needs_truth):
    assert parse_policy(f"easy,{predictor}").needs_truth is needs_truth
