"""Numbers of members of arrays: each its own, behind the array's; and repeated calls."""

from __future__ import annotations

import pytest

from foresail.live.command_job import CommandJob
from foresail.service.store.protocol import KeyedCall, Submit, numbers_of
from foresail.service.store.sql_store import SqlStore


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
