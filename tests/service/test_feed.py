"""The feed: what happens is told once to however many follow, to each what it may see."""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack

import pytest

from foresail.model.event import Cancelled
from foresail.record.log_text import record_line
from foresail.record.records import EventTaken
from foresail.service import feed as feed_module
from foresail.service.feed import Feed
from foresail.service.store.protocol import StoreUnavailable


class _Stored:
    """Records in memory; every third job is one's, the others are another's."""

    def __init__(self):
        self.lines, self.lookups, self.pages, self.faults = [], 0, 0, 0

    def last_record(self):
        return len(self.lines)

    def records(self, after=0, limit=None):
        self.pages += 1
        return list(enumerate(self.lines, 1))[after : after + limit]

    def owners(self, job_ids):
        self.lookups += 1
        if self.faults:
            self.faults -= 1
            raise StoreUnavailable("away")
        return {each: "one" if int(each) % 3 == 0 else "another" for each in job_ids}

    def add(self, feed, count):
        first = len(self.lines) + 1
        numbers = range(first, first + count)
        some = [EventTaken(each, 0.0, Cancelled(0.0, str(each))) for each in numbers]
        self.lines += map(record_line, some)
        feed.committed(first, some)


def followed(story):
    """Run a story in a loop that a feed's followers are in."""

    async def told():
        stored = _Stored()
        feed = Feed(stored)
        feed.begin(asyncio.get_running_loop())
        try:
            await asyncio.wait_for(story(feed, stored), 20.0)
        finally:
            feed.close()
            await feed._publishing

    asyncio.run(told())


async def read(feed, sees=None, after=0, until=None):
    """Numbers of the events that a follower is told until it has come to a record."""
    numbers = []
    while after < until:
        after, text = await feed.after(after, sees, 5.0)
        numbers += [int(each) for each in re.findall(r"^id: (\d+)$", text, re.M)]
    return numbers


def test_all_are_told_the_same_text_which_is_made_once():
    async def story(feed, stored):
        with ExitStack() as stack:
            for number in range(50):
                stack.enter_context(feed.following(f"all-{number}", None))
                stack.enter_context(feed.following(f"one-{number}", "one"))
            readers = [feed.after(0, sees, 5.0) for sees in (None, "one") for _ in range(50)]
            told = asyncio.gather(*readers)
            await asyncio.sleep(0)
            stored.add(feed, 9)
            texts = [text for _, text in await told]
        assert len({id(each) for each in texts}) == 2
        assert texts[0].count("id: ") == 9
        assert re.findall(r"id: (\d+)", texts[-1]) == ["3", "6", "9"]
        assert (stored.lookups, stored.pages) == (1, 0)

    followed(story)


def test_where_nobody_follows_nothing_is_kept_and_who_comes_later_reads_on_from_the_store():
    async def story(feed, stored):
        stored.add(feed, 1_200)
        assert not feed._arrived
        with feed.following("late", "one"):
            assert await read(feed, "one", 0, 1_200) == list(range(3, 1_201, 3))
            assert stored.pages == 3
            stored.add(feed, 3)
            assert await read(feed, "one", 1_200, 1_203) == [1_203]
            assert stored.pages == 3

    followed(story)


@pytest.mark.parametrize("sees", [None, "one"])
def test_who_is_too_slow_for_what_is_kept_misses_nothing(monkeypatch, sees):
    monkeypatch.setattr(feed_module, "_KEPT_CHUNKS", 4)

    async def story(feed, stored):
        with feed.following("slow", sees), feed.following("quick", None):
            for _ in range(12):
                stored.add(feed, 10)
                await read(feed, None, len(stored.lines) - 10, len(stored.lines))
            assert len(feed._chunks) == 4
            wanted = [each for each in range(1, 121) if sees is None or each % 3 == 0]
            assert await read(feed, sees, 0, 120) == wanted
            middle = [each for each in wanted if each > 115]
            assert await read(feed, sees, 115, 120) == middle

    followed(story)


def test_what_arrives_faster_than_it_is_told_is_not_kept_and_not_lost(monkeypatch):
    monkeypatch.setattr(feed_module, "_MOST_ARRIVED", 100)

    async def story(feed, stored):
        with feed.following("one", None):
            for _ in range(30):
                stored.add(feed, 40)
                assert len(feed._arrived) <= 100
            assert await read(feed, None, 0, 1_200) == list(range(1, 1_201))

    followed(story)


def test_a_store_that_is_away_for_a_moment_ends_no_stream(monkeypatch):
    monkeypatch.setattr(feed_module, "_AFTER_FAULT_SECONDS", 0.0)

    async def story(feed, stored):
        with feed.following("one", "one"):
            stored.faults = 1
            stored.add(feed, 6)
            while stored.faults:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            stored.add(feed, 3)
            assert await read(feed, "one", 0, 9) == [3, 6, 9]

    followed(story)


def test_who_sees_its_own_alone_is_shown_them_in_what_was_told_to_others_before():
    async def story(feed, stored):
        with feed.following("all", None):
            stored.add(feed, 6)
            assert await read(feed, None, 0, 6) == [1, 2, 3, 4, 5, 6]
            with feed.following("one", "one"):
                assert await read(feed, "one", 0, 6) == [3, 6]

    followed(story)


def test_reading_on_from_the_store_takes_one_page_at_a_time_and_a_share_of_the_time():
    async def story(feed, stored):
        stored.add(feed, 1_000)
        active = most = 0
        plain = feed._stored_after

        def watched(number):
            nonlocal active, most
            active += 1
            most = max(most, active)
            try:
                return plain(number)
            finally:
                active -= 1

        feed._stored_after = watched
        with feed.following("many", None):
            told = await asyncio.gather(*(read(feed, None, 0, 1_000) for _ in range(5)))
        assert all(each == list(range(1, 1_001)) for each in told)
        assert most == 1

    followed(story)
