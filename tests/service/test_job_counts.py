"""How many of a user's jobs wait is known without a look at all of them at each submission."""

from __future__ import annotations

from foresail.service import slow_answers
from foresail.service.slow_answers import JobCounts


class Store:
    """Counts how often it counts."""

    def __init__(self, waiting):
        self.waiting, self.looks = waiting, 0

    def counts(self, user):
        self.looks += 1
        return {"pending": self.waiting[user], "held": 1, "completed": 1_000}


def test_a_thousand_submissions_take_one_count():
    store = Store({"ann": 10, "bob": 0})
    counts = JobCounts(store)
    assert [counts.reserve("ann", 2, 10_000) for _ in range(1_000)] == [None] * 1_000
    assert store.looks == 1
    assert counts.reserve("bob", 1, 10_000) is None
    assert store.looks == 2


def test_the_last_places_are_given_once_and_again_when_jobs_have_gone(monkeypatch):
    """Where there would be too many it is looked whether some wait no more, but not each time."""
    store = Store({"ann": 10})
    counts = JobCounts(store)
    assert counts.reserve("ann", 4, 15) is None
    assert counts.reserve("ann", 1, 15) == 15
    assert store.looks == 1
    monkeypatch.setattr(slow_answers, "FRESH_SECONDS", -1.0)
    store.waiting["ann"] = 3
    assert counts.reserve("ann", 1, 15) is None
    assert counts.reserve("ann", 12, 15) == 4
