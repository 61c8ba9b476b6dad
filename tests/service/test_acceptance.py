"""Acceptance: what many ask at once is written once, in order, and nothing ends its thread."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from foresail.live.command_job import CommandJob
from foresail.service.exchange import Acceptance, CommandsById, Inbox
from foresail.service.store.protocol import (
    JOBS,
    Command,
    CommandRequest,
    KeyedCall,
    StoreUnavailable,
    Submit,
    numbers_of,
)
from foresail.service.store.sql_store import SqlStore

_JOB = CommandJob("", "name", "true", "/", user="ann")


def some(count, command="true"):
    """So many jobs, numbered from the first one's number."""

    def made(number):
        return [
            Submit(replace(_JOB, job_id=str(each), command=command))
            for each in range(number, number + count)
        ]

    return made


def cancel(_):
    return [CommandRequest(Command.CANCEL, "1")]


class Batches:
    """An acceptance whose thread waits until several calls are there."""

    def __init__(self, path):
        self.store = SqlStore.in_file(path)
        self.inbox = Inbox(self.store)
        self.inbox.begin_again()
        self.aside = []
        self.acceptance = Acceptance(self.store, self.inbox, self.aside.append)

    def at_once(self, *asked):
        """Ask while the thread is kept, so that all of it shares one transaction."""
        may_go_on = threading.Event()

        def first(_):
            may_go_on.wait(10.0)
            return []

        self.acceptance.ask("eve", first)
        answers = [self.acceptance.ask("ann", *each) for each in asked]
        may_go_on.set()
        return answers

    def ids(self):
        """Of the jobs in the store, by number."""
        with self.store.database.reading() as connection:
            return [row[0] for row in connection.execute(JOBS.select().order_by(JOBS.c.number))]

    def passed_on(self):
        return [each.number for each in self.inbox._arrived]


@pytest.fixture
def batches(tmp_path):
    made = Batches(tmp_path / "store.db")
    yield made
    made.acceptance.close()
    made.inbox.close()
    made.store.close()


def ids_of(answer):
    return [each.request.job.job_id for each in answer.result(10.0).requests]


def test_two_calls_in_one_transaction_share_no_number(batches):
    one, other = batches.at_once((some(3),), (some(2),))
    assert ids_of(one) + ids_of(other) == ["1", "2", "3", "4", "5"]
    assert batches.ids() == ["1", "2", "3", "4", "5"]
    assert batches.aside[-1] == 5


def test_a_call_asked_again_takes_no_number_from_the_one_beside_it(batches):
    """The job's number is the one that it is called by, and the next one gets the next."""
    ids_of(batches.acceptance.ask("ann", some(1), "k"))
    again, other = batches.at_once((some(1), "k"), (some(1),))
    assert (ids_of(again), ids_of(other)) == (["1"], ["3"])
    assert ids_of(batches.acceptance.ask("ann", some(1))) == ["4"]
    assert batches.ids() == ["1", "3", "4"]
    assert batches.passed_on() == [1, 2, 3]


def test_a_fault_of_the_store_at_any_place_leaves_the_thread_alive(batches, monkeypatch):
    """Who asks is told, and the next call is answered once the store is there again."""

    def away(*_):
        raise StoreUnavailable("away")

    for name in ("next_number", "accept"):
        with monkeypatch.context() as patched:
            patched.setattr(batches.store, name, away)
            with pytest.raises(StoreUnavailable):
                batches.acceptance.ask("ann", some(1)).result(10.0)
    assert ids_of(batches.acceptance.ask("ann", some(1))) == ["1"]


def test_what_was_written_though_it_could_not_be_said_so_is_passed_on_once(batches, monkeypatch):
    """A server that goes after it has committed: no number is given twice, no request forgotten."""
    accept = batches.store.accept

    def lost(asked):
        accept(asked)
        batches.store._is_unsure_of_requests = True
        batches.store._last_request = batches.store._last_job = 0
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patched:
        patched.setattr(batches.store, "accept", lost)
        with pytest.raises(StoreUnavailable):
            batches.acceptance.ask("ann", some(2), "k").result(10.0)
    assert ids_of(batches.acceptance.ask("ann", some(1))) == ["3"]
    assert ids_of(batches.acceptance.ask("ann", some(2), "k")) == ["1", "2"]
    assert batches.passed_on() == [1, 2, 3]
    assert list(batches.inbox.commands) == ["1", "2", "3"]


def test_where_no_job_can_be_accepted_a_wish_beside_it_is(batches, monkeypatch):
    def full():
        raise StoreUnavailable("full")

    monkeypatch.setattr(batches.store.database, "require_room", full)
    submitted, cancelled = batches.at_once((some(1),), (cancel,))
    assert cancelled.result(10.0).is_new
    with pytest.raises(StoreUnavailable, match="full"):
        submitted.result(10.0)


def test_a_request_is_given_to_the_daemon_once_though_it_comes_both_ways(batches):
    """Read from the store by a new daemon, and put in by the thread that accepted it."""
    (answer,) = batches.at_once((some(2),))
    accepted = answer.result(10.0).requests
    batches.inbox.begin_again()
    batches.inbox.put(accepted)
    events = batches.inbox.earlier((), 1.0)
    assert [event.job.job_id for event in events] == ["1", "2"]
    assert batches.inbox.taken == 2


def test_commands_are_read_when_they_are_asked_for_and_kept_until_their_jobs_are_done(tmp_path):
    """Of those that wait nothing is in memory; which there are, the store knows."""
    first = CommandJob("1", "name", ("true", "é"), "/", user="ann", after=("0",))
    second = CommandJob("2", "name", "false", "/")
    store = SqlStore.in_file(tmp_path / "store.db")
    commands = CommandsById(store)
    call = KeyedCall("ann", (Submit(first), Submit(second)))
    store.accept([call])
    assert not commands._asked_for
    assert commands["1"] == first
    assert commands["1"] is commands["1"]
    assert list(commands) == ["1", "2"]
    assert len(commands) == 2
    commands.forget(["1", "3"])
    assert not commands._asked_for
    assert "3" not in commands
    store.close()


def array(number, members, sent):
    """An array's members, as they are submitted."""
    return tuple(
        Submit(CommandJob(f"{number}_{at}", "a", "true", "/", number=number + at, environment=sent))
        for at in range(1, members + 1)
    )


@pytest.fixture
def store(tmp_path):
    found = SqlStore.in_file(tmp_path / "store.sqlite")
    yield found
    found.close()


def test_numbers_go_on_behind_an_arrays_members(store):
    """Each is a job's, and no other job's."""
    requests = (*array(7, 3, {}), Submit(CommandJob("11", "b", "true", "/")))
    assert numbers_of(requests, 7) == [8, 9, 10, 11]
    store.accept([KeyedCall("ann", requests, None, 7)])
    assert store.next_number() == 12
    assert store.member("9")["job_id"] == "7_2"
    assert [store.member(each) for each in ("7", "11", "12", "7_2", "x")] == [None] * 5


def test_a_call_that_is_repeated_may_come_from_another_terminal(store):
    """Its variables are others, and its key stands for what is run."""
    (new,), (again,) = (
        store.accept([KeyedCall("ann", array(first, 2, {"TTY": tty}), "nightly", first)])
        for first, tty in ((1, "a"), (4, "b"))
    )
    assert (new.is_new, again.is_new, again.conflicts) == (True, False, False)
