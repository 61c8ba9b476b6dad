"""A job's story is the same by a snapshot as by the whole log, and needs less of it."""

from __future__ import annotations

import numpy as np
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.explain.story import story
from foresail.live.recovery import KnownRun
from foresail.model.cluster import Cluster
from foresail.model.conventions import STANDARD
from foresail.model.event import Ended, Submitted
from foresail.model.job import Job
from foresail.model.outcome import Outcome
from foresail.record.log_text import parse_record, record_line
from foresail.record.records import Manifest
from foresail.service.job_records import records_of_job
from foresail.service.store.protocol import WholeStep
from foresail.service.store.sql_store import SqlStore

BEGIN = 1_780_000_000.0
CLUSTER = Cluster.of_processors(4)
POLICY = "easy,recent,incremental"


class Kept:
    """A log in a store, with a snapshot when it is asked for."""

    def __init__(self, store):
        self.store, self.known, self.lines = store, KnownRun(), []

    def append(self, record):
        self.lines.append(record_line(record))
        number = self.store.last_record() + len(self.lines)
        self.known.take(self.lines[-1], number, "log")

    def commit(self):
        self.store.commit_step(WholeStep(self.lines, 0, {}))
        self.lines = []

    def keep_snapshot(self):
        self.store.keep_snapshot(list(self.known.compaction.lines()), self.store.last_record())


@pytest.fixture
def store(tmp_path):
    store = SqlStore.in_file(tmp_path / "store.db")
    random, log, ends = np.random.default_rng(3), Kept(store), {}
    log.append(Manifest(POLICY, CLUSTER, STANDARD))
    controller = Controller(CLUSTER, *parse_policy(POLICY).build(), STANDARD, log)
    for second in range(0, 900, 3):
        now = BEGIN + second
        events = [
            Ended(now, Outcome(job_id, start, now, attempt=1))
            for job_id, (start, end) in list(ends.items())
            if end <= now and ends.pop(job_id)
        ]
        if second % 9 == 0:
            job = Job.gang(f"j{second}", now, int(random.integers(1, 4)), 60.0, "ann")
            events.append(Submitted(now, job))
        controller.step(now, events)
        for job_id in controller.running.keys() - ends.keys():
            ends[job_id] = now, now + float(random.integers(5, 40))
        if second == 450:
            log.keep_snapshot()
    yield store
    store.close()


def whole(store):
    return [parse_record(line, "log", number) for number, line in store.records()]


@pytest.mark.parametrize("second", [0, 441, 450, 459, 648, 891])
def test_a_story_by_a_snapshot_is_that_of_the_whole_log(store, second):
    job = {"submit_seconds": BEGIN + second}
    by_snapshot = story(records_of_job(store, job), f"j{second}")
    by_log = story(whole(store), f"j{second}")
    assert len(by_log.lines) > 2
    begin, real_begin = by_snapshot.start_unix_seconds, by_log.start_unix_seconds
    assert [(begin + line.time, line.sentence) for line in by_snapshot.lines] == [
        (real_begin + line.time, line.sentence) for line in by_log.lines
    ]


def test_of_what_came_before_a_job_the_snapshot_will_do(store):
    everything = len(whole(store))
    assert len(list(records_of_job(store, {"submit_seconds": BEGIN + 450}))) == everything
    assert len(list(records_of_job(store, {"submit_seconds": BEGIN + 459}))) < 0.8 * everything
