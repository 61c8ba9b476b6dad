"""What takes long to make is waited for once; what takes little is always as things stand."""

from __future__ import annotations

import asyncio
import time
from threading import Event
from types import SimpleNamespace

import pytest

from foresail.service import slow_answers
from foresail.service.slow_answers import JobCounts, Lately, Overview, slowly
from in_loop import in_loop


class Made:
    """Makes numbers, each in so many seconds."""

    def __init__(self, seconds):
        self.seconds, self.count = seconds, 0

    async def make(self):
        self.count += 1
        number = self.count
        await asyncio.sleep(self.seconds)
        if number == 13:
            raise ValueError(number)
        return number


@in_loop
async def test_what_takes_little_is_made_for_each_who_asks():
    made = Made(0.0)
    value = Lately(made.make)
    found = []
    for _ in range(5):
        await asyncio.sleep(0.01)
        found.append(await value.get())
    assert found == [1, 2, 3, 4, 5]


@in_loop
async def test_a_fresh_value_is_given_at_once_and_made_anew_once_it_is_half_as_old():
    made = Made(0.0)
    value = Lately(made.make, fresh_seconds=0.6)
    found = []
    for _ in range(4):
        found.append(await value.get())
        await asyncio.sleep(0.35)
    await asyncio.sleep(0.35)
    assert [*found, await value.get()] == [1, 1, 2, 3, 5]


@in_loop
async def test_what_takes_long_is_given_as_it_was_and_made_anew_meanwhile(monkeypatch):
    """Many askers at once wait for one making; later ones wait for none."""
    monkeypatch.setattr(slow_answers, "_SHARE", 1.0)
    made = Made(0.1)
    value = Lately(made.make)
    first = await asyncio.gather(*(value.get() for _ in range(20)))
    await asyncio.sleep(0.15)
    begin = time.monotonic()
    again = await asyncio.gather(*(value.get() for _ in range(20)))
    waited = time.monotonic() - begin
    await asyncio.sleep(0.15)
    last, count = await value.get(), made.count
    assert (first, again, last) == ([1] * 20, [1] * 20, 2)
    assert waited < 0.08
    assert count == 2


@in_loop
async def test_it_is_not_made_again_and_again_and_not_given_when_it_is_old(monkeypatch):
    made = Made(0.05)
    value = Lately(made.make)
    for _ in range(10):
        await value.get()
    once = made.count
    monkeypatch.setattr(slow_answers, "_SHARE", 0.0)
    monkeypatch.setattr(slow_answers, "_OLDEST_SECONDS", 0.0)
    await asyncio.sleep(0.01)
    assert (once, await value.get()) == (1, 2)


@in_loop
async def test_one_that_takes_longer_than_it_did_is_not_waited_for(monkeypatch):
    """It took little the last time: who asks has that until there is a new one."""
    monkeypatch.setattr(slow_answers, "_READER_SECONDS", 0.02)
    made = Made(0.0)
    value = Lately(made.make)
    await value.get()
    made.seconds = 0.3
    await asyncio.sleep(0.01)
    begin = time.monotonic()
    again = [await value.get() for _ in range(2)]
    waited = time.monotonic() - begin
    await asyncio.sleep(0.3)
    last = await value.get()
    assert (again, last) == ([1, 1], 2)
    assert waited < 0.2


def test_jobs_are_counted_though_slow_questions_are_being_answered():
    """What `foresail` alone shows waits for none of them, the first time either."""
    store = SimpleNamespace(counts=lambda: {"pending": 3})

    async def ask():
        ends = Event()
        slow = [asyncio.create_task(slowly(ends.wait, 10.0)) for _ in range(4)]
        overview = Overview(store, SimpleNamespace(), float)
        try:
            return await asyncio.wait_for(overview.by_state.get(), 5.0)
        finally:
            ends.set()
            await asyncio.gather(*slow)

    assert asyncio.run(ask()) == {"pending": 3}


@in_loop
async def test_one_that_cannot_be_made_fails_for_who_waits_and_is_tried_again():
    made = Made(0.0)
    made.count = 12
    value = Lately(made.make)
    with pytest.raises(ValueError, match="13"):
        await value.get()
    assert await value.get() == 14


@in_loop
async def test_slow_questions_keep_no_thread_of_others():
    """As many as like may be at work: what is asked beside them is done at once."""
    slow = [asyncio.create_task(slowly(time.sleep, 0.2)) for _ in range(4)]
    await asyncio.sleep(0)
    begin = time.monotonic()
    await asyncio.gather(*(asyncio.to_thread(int) for _ in range(20)))
    waited = time.monotonic() - begin
    await asyncio.gather(*slow)
    assert waited < 0.15


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
