"""Every wait has its true reason: a code, numbers and a sentence that the state bears out."""

import pytest

from foresail.control.loop import Controller
from foresail.explain.reason_words import REASONS, reason_words
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Decision, Placement, Reason, ReasonCode, Start
from foresail.model.event import (
    Held,
    NodeDown,
    NodeDrained,
    NodeResumed,
    Released,
    Submitted,
)
from foresail.model.job import Job, Stage
from foresail.model.protocols import Scheduler
from toys import Constant, Doubling

GIB = 2.0**30
A_NODE = Resources(4.0, 8 * GIB, 2.0)


class WhatFits(Scheduler):
    """Starts what fits on the first node that has room; of all others it says: no room."""

    def decide(self, view):
        free = dict(view.free_nodes)
        starts, reasons = [], {}
        for pending in view.pending:
            job = pending.job
            for name, room in free.items():
                if job.total.fits_in(room):
                    free[name] = room - job.total
                    starts.append(Start(job.job_id, Placement((("all", 1),), ((name, 1),))))
                    break
            else:
                cpus = sum(room.cpus for room in free.values())
                numbers = {"cpus": job.cpus, "free": cpus}
                reasons[job.job_id] = Reason(ReasonCode.NO_ROOM, numbers)
        return Decision(tuple(starts), reasons=reasons)


@pytest.fixture
def loop():
    nodes = tuple(Node(f"box-{number}", A_NODE) for number in (1, 2))
    cluster = Cluster((Partition("all", A_NODE + A_NODE, nodes),))
    return Controller(cluster, WhatFits(), Constant(3600.0), Doubling())


def job(job_id, cpus=1.0, memory=0.0, gpus=0.0, after=()):
    stage = Stage(1, Resources(cpus, memory * GIB, gpus))
    return Job(job_id, 0.0, (stage,), user="ann/train", after=after)


def wait(loop, *events, now=60.0):
    """Why the last job waits once these have happened."""
    loop.step(now, events)
    reason = loop.reasons()["last"]
    return reason.code, reason_words(reason, now)


def arrive(*jobs):
    return tuple(Submitted(0.0, each) for each in jobs)


WAITS = [
    (
        arrive(job("a", 3.0), job("b", 3.0), job("last", 3.0)),
        "no_room",
        "needs 3 cpus and 2 are free",
    ),
    (
        arrive(job("a", 1.0, 6.0), job("b", 1.0, 6.0), job("last", 1.0, 5.0)),
        "no_room",
        "needs 5 GiB of memory and 4 GiB is free",
    ),
    (
        arrive(job("a", 1.0, 0.0, 2.0), job("b", 1.0, 0.0, 2.0), job("last", 1.0, 0.0, 1.0)),
        "no_room",
        "needs 1 gpu and 0 are free",
    ),
    (
        arrive(job("a", 2.0), job("b", 3.0), job("c", 0.5), job("last", 2.5)),
        "fragmented",
        "needs 2.5 cpus; enough is free, but nowhere for a whole task",
    ),
    (arrive(job("last", 5.0)), "too_wide", None),
    (
        arrive(job("a"), job("last", after=("a",))),
        "dependency",
        "waits for job a to complete (afterok)",
    ),
    (
        (*arrive(job("last")), Held(0.0, "last", "ann")),
        "held",
        "held by ann until it is released",
    ),
    ((*arrive(job("last")), Held(0.0, "last")), "held", "held until it is released"),
]


@pytest.mark.parametrize(("events", "code", "words"), WAITS)
def test_each_wait_has_its_reason(loop, events, code, words):
    """What a job lacks is what is said, though the scheduler knows of cpus alone."""
    held = [event for event in events if isinstance(event, Held)]
    if held:
        loop.drain()  # or it has started before
    loop.step(30.0, [event for event in events if not isinstance(event, Held)])
    said = wait(loop, *held)
    assert said[0] == code
    assert words is None or said[1] == words


def test_a_drained_node_is_named_with_who_drained_it_and_when(loop):
    """And a node that is down; not where others have room for the job."""
    loop.step(0.0, arrive(job("a", 3.0), job("b", 3.0), job("last", 3.0)))
    code, _ = wait(loop, NodeDrained(60.0, "box-1", "olga"))
    assert code == "no_room"
    code, words = wait(loop, NodeDown(90.0, "box-2"), now=90.0)
    assert code == "nodes_out"
    assert words == (
        "has room only on nodes that are out of use: box-1 (drained by olga) and box-2 (down)"
    )
    assert wait(loop, NodeResumed(120.0, "box-1"), now=120.0)[0] == "no_room"


def test_one_drained_node_is_told_with_its_time():
    """As on a machine that is all the cluster there is."""
    cluster = Cluster((Partition("all", A_NODE, (Node("box", A_NODE),)),))
    loop = Controller(cluster, WhatFits(), Constant(3600.0), Doubling())
    loop.step(0.0, [NodeDrained(0.0, "box", "olga"), *arrive(job("last"))])
    reason = loop.reasons()["last"]
    assert reason_words(reason, 1200.0) == (
        "has room only on nodes that are out of use: box (drained by olga), 20 min ago"
    )
    assert loop.fork(WhatFits(), Constant(3600.0), Doubling()).reasons()["last"] == reason


def test_a_drain_is_the_reason_of_all(loop):
    """Nothing new is started."""
    loop.drain()
    assert wait(loop, *arrive(job("last")))[0] == "draining"


def test_released_behind_another_it_waits_for_that_one_and_then_starts(loop):
    """A held job that depends on another: released before that has ended."""
    loop.step(0.0, arrive(job("a"), job("last", after=("a",))))
    assert wait(loop, Held(1.0, "last", "bob"))[0] == "held"
    assert wait(loop, Released(2.0, "last"), now=61.0) == (
        "dependency",
        "waits for job a to complete (afterok)",
    )
    assert not loop.state.held
    loop.step(62.0, arrive(job("later")))
    assert loop.state.running["later"].backfilled


def test_what_is_held_behind_another_is_overtaken_by_nobody(loop):
    """It stands in no line, until it is released."""
    loop.step(0.0, arrive(job("a"), job("last", after=("a",))))
    loop.step(1.0, [Held(1.0, "last", "bob")])
    loop.step(2.0, arrive(job("later")))
    assert not loop.state.running["later"].backfilled


def test_every_code_has_its_sentence_and_its_name():
    """With whatever numbers it comes."""
    numbers = dict.fromkeys(("cpus", "free", "ahead", "total", "gpus"), 2.0)
    numbers |= {"start": 60.0, "turn": 60.0, "head": "7", "after": "7", "nodes": "box", "by": "ann"}
    numbers |= {"considered": 2.0, "waiting": 3.0, "begin": 60.0, "most": 2.0, "why": "no"}
    for code in ReasonCode:
        assert REASONS[code]
        assert "{" not in Reason(code, numbers).sentence
