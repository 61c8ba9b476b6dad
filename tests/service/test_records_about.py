"""A job's story is the same by the records about it as by the whole log, and needs few of them."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.explain.story import story
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Start
from foresail.model.event import (
    STANDARD,
    Cancelled,
    Ended,
    EndedBecause,
    NodeAdded,
    Outcome,
    Submitted,
)
from foresail.model.job import Job
from foresail.record.log_text import parse_record, record_line
from foresail.record.records import NODES, EventTaken, Instructed, Manifest, about
from foresail.service.store import protocol
from foresail.service.store.protocol import WholeStep
from foresail.service.store.sql_store import SqlStore

BEGIN = 1_780_000_000.0
CLUSTER = Cluster((Partition("all", Resources(4.0), (Node("one", Resources(4.0)),)),))
POLICY = "easy,recent,incremental"
SECONDS = [0, 441, 450, 459, 648, 891]


class Kept:
    """A log in a store."""

    def __init__(self, store):
        self.store, self.records = store, []

    def append(self, record):
        self.records.append(record)

    def commit(self):
        lines = [record_line(each) for each in self.records]
        subjects = [about(each) for each in self.records]
        self.store.commit_step(WholeStep(lines, 0, {}, subjects))
        self.records = []


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Jobs come quicker than they end; some go back, one is cancelled, a node comes."""
    store = SqlStore.in_file(tmp_path_factory.mktemp("log") / "store.db")
    random, log, ends = np.random.default_rng(3), Kept(store), {}
    log.append(Manifest(POLICY, CLUSTER, STANDARD))
    controller = Controller(CLUSTER, *parse_policy(POLICY).build(), STANDARD, log)
    for second in range(0, 900, 3):
        now = BEGIN + second
        events = []
        for job_id, (start, end, attempt) in list(ends.items()):
            if end <= now:
                del ends[job_id]
                lost = attempt == 1 and random.random() < 0.2
                because = EndedBecause.LOST if lost else EndedBecause.COMPLETED
                events.append(Ended(now, Outcome(job_id, start, now, because, attempt=attempt)))
        if second % 9 == 0:
            job = Job.gang(f"j{second}", now, int(random.integers(1, 4)), 60.0, "ann")
            events.append(Submitted(now, job))
        if second == 660:
            events.append(Cancelled(now, "j648"))
        if second == 600:
            events.append(NodeAdded(now, Node("two", Resources(1.0)), "all"))
        for each in controller.step(now, events):
            if isinstance(each, Start):
                end = now + float(random.integers(5, 40))
                ends[each.job_id] = now, end, each.attempt
    yield store
    store.close()


def whole(store):
    return [parse_record(line, "log", number) for number, line in store.records()]


def job(second, end_seconds=None):
    return {"job_id": f"j{second}", "end_seconds": end_seconds}


def told(records, second, **how):
    found = story(records, f"j{second}", **how)
    begin = found.start_unix_seconds
    return [(begin + line.time, line.sentence) for line in found.lines]


def by_index(store, row):
    found = store.records_about(row)
    records = [parse_record(line, "log", number) for number, line in found.lines]
    assert all(before < after for (before, _), (after, _) in pairwise(found.lines))
    return records, found.is_complete


@pytest.mark.parametrize("second", SECONDS)
def test_a_story_by_what_is_near_a_job_is_that_of_the_whole_log(store, second):
    records, knows_others = by_index(store, job(second))
    assert knows_others
    by_log = told(whole(store), second)
    assert len(by_log) > 2
    assert told(records, second) == by_log


@pytest.mark.parametrize("second", SECONDS)
def test_a_story_by_its_own_records_says_the_same_but_why_plans_moved(store, second, monkeypatch):
    monkeypatch.setattr(protocol, "_NEARBY", 0)
    records, knows_others = by_index(store, job(second))
    assert not knows_others
    full = [each for each in told(whole(store), second) if "than before: in" not in each[1]]
    own = told(records, second, knows_others=False)
    assert [each for each in own if "than before: in" not in each[1]] == full
    assert not [each for each in own if "nothing but time" in each[1]]


def test_few_records_are_read_of_a_long_log(store, monkeypatch):
    """Of a job that has long ended, and of one that waited for as long as all others came."""
    monkeypatch.setattr(protocol, "_NEARBY", 0)
    everything = len(whole(store))
    assert everything > 700
    for second in (0, 450, 891):
        assert len(by_index(store, job(second))[0]) < 50


def test_a_job_that_the_log_does_not_know_has_no_story(store):
    assert by_index(store, {"job_id": "unheard", "end_seconds": None}) == ([], True)


def test_records_that_may_be_about_several_jobs_are_about_none(store):
    """A record that names a job, and is about another or nobody, would be missing in its story."""
    subjects = {type(each): set() for each in whole(store)}
    for each in whole(store):
        subjects[type(each)].add(about(each))
        if isinstance(each, EventTaken | Instructed):
            assert about(each) is not None
    assert NODES in subjects[EventTaken]


def test_a_store_of_before_is_told_the_same(store):
    """The migration reads of lines what is told of records."""
    for number, line in store.records():
        assert protocol._subject(json.loads(line)) == about(parse_record(line, "log", number)), line
