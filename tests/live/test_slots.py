"""Slots: no cpu or gpu is handed out twice, whatever the order of starts and ends."""

from hypothesis import given
from hypothesis import strategies as st

from foresail.live.adapters.local.machine import Slots


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4)), max_size=40))
def test_jobs_hold_distinct_cpus_that_come_back(moves):
    """Starts of jobs that fit and ends of the oldest, in any order."""
    slots, held = Slots(range(10, 14)), {}
    for number, (starts, width) in enumerate(moves):
        free = 4 - sum(map(len, held.values()))
        if starts and width <= free:
            held[str(number)] = slots.take(str(number), width)
            assert len(held[str(number)]) == width
        elif held:
            oldest = next(iter(held))
            slots.give_back(oldest)
            del held[oldest]
        used = [cpu for cpus in held.values() for cpu in cpus]
        assert len(used) == len(set(used))
        assert set(used) <= {10, 11, 12, 13}


def test_where_there_are_too_few_a_job_has_none():
    """Half of what it asked for would be as good as a lie."""
    slots = Slots((0, 1))
    assert slots.take("a", 3) == ()
    slots.give_back("a")


def test_cpus_of_an_adopted_job_are_not_given_away():
    """A job that an earlier supervisor bound keeps its cpu until it ends."""
    slots = Slots((0, 1))
    slots.hold("adopted", (0,))
    assert slots.take("new", 1) == (1,)
    slots.give_back("adopted")
    assert slots.take("next", 1) == (0,)
