"""What of a decision is let through: each way to be wrong, alone and beside what is right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foresail.checks.rules import tiny_pending, tiny_running
from foresail.control.check import check_decision
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Decision, Placement, Preempt, RefusalCode, Start, Withdraw
from foresail.model.event import Part
from foresail.model.free_resources import FreeResources
from foresail.model.job import Job, Stage
from foresail.model.view import StartableTasks, TaskNumbers

GIB = 2.0**30


def check(decision, cpus=(2,), running=(), stopping=(), capacity=None, others=()):
    """Check a decision about pending jobs ``1``, ``2``, ... of these widths, 4 cpus free.

    What runs of ``others`` was not started here.
    """
    held = {job_id: replace(tiny_running(job_id, 1, 10.0), ours=False) for job_id in others}
    held |= {job_id: tiny_running(job_id, 1, 10.0) for job_id in running}
    pending = {str(n): tiny_pending(str(n), width, 10) for n, width in enumerate(cpus, start=1)}
    capacity = capacity or FreeResources(Cluster.of_processors(4))
    return check_decision(decision, pending, held, set(stopping), capacity)


def start(job_id: str, tasks: int, partition: str = "all") -> Start:
    return Start(job_id, Placement.whole(partition, tasks))


def codes(verdict) -> list[tuple[str, RefusalCode]]:
    return [(refusal.job_id, refusal.code) for refusal in verdict.refusals]


def test_starts_take_room_from_those_after_them():
    """Two of three jobs fit; the third is refused and the others still start."""
    verdict = check(Decision((start("1", 3), start("2", 2), start("3", 1))), cpus=(3, 2, 1))
    assert [each.job_id for each in verdict.starts] == ["1", "3"]
    assert codes(verdict) == [("2", RefusalCode.NO_ROOM)]
    assert verdict.refusals[0].sentence == (
        "partition 'all' has 1 cpus free and the job needs 2 cpus there"
    )


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (start("nobody", 1), RefusalCode.UNKNOWN_JOB),
        (start("9", 1), RefusalCode.NOT_PENDING),
        (start("1", 1), RefusalCode.NOT_WHOLE),
        (start("1", 3), RefusalCode.NOT_WHOLE),
        (start("1", 2, "elsewhere"), RefusalCode.NO_SUCH_PLACE),
        (Start("1", Placement((("all", 2),), (("n1", 2),))), RefusalCode.NO_SUCH_PLACE),
        (Start("1", Placement((("all", 1), ("all", 1)))), RefusalCode.NOT_WHOLE),
        (Start("1", Placement((("all", 3), ("all", -1)))), RefusalCode.NOT_WHOLE),
        (Start("1", Placement(())), RefusalCode.NOT_WHOLE),
    ],
)
def test_each_wrong_start_is_refused_with_its_reason(wrong, code):
    """One wrong start; the right one behind it is let through."""
    verdict = check(Decision((wrong, start("2", 2))), cpus=(2, 2), running=("9",))
    assert codes(verdict) == [(wrong.job_id, code)]
    assert [each.job_id for each in verdict.starts] == ["2"]


def test_a_job_is_started_once():
    """The second start of the same job is refused, though it would fit."""
    verdict = check(Decision((start("1", 2), start("1", 2))))
    assert len(verdict.starts) == 1
    assert codes(verdict) == [("1", RefusalCode.TWICE)]


def test_preemptions_need_a_running_job_that_was_not_told_yet():
    """Unknown, already stopping and doubled preemptions are refused, and of what others started."""
    wishes = tuple(Preempt(job_id) for job_id in ("8", "9", "8", "7", "5"))
    decision = Decision(preemptions=wishes)
    verdict = check(decision, running=("8", "9"), stopping=("9",), others=("5",))
    assert verdict.preemptions == (Preempt("8"),)
    assert codes(verdict) == [
        ("9", RefusalCode.TWICE),
        ("8", RefusalCode.TWICE),
        ("7", RefusalCode.NOT_RUNNING),
        ("5", RefusalCode.NOT_OURS),
    ]


def test_the_check_changes_nothing():
    """Capacity is the same after a check as before it."""
    capacity = FreeResources(Cluster.of_processors(4))
    check(Decision((start("1", 2),)), capacity=capacity)
    assert capacity.by_partition() == {"all": Resources(cpus=4)}


def two_nodes() -> FreeResources:
    nodes = tuple(Node(name, Resources(2, 4 * GIB, 1)) for name in ("n1", "n2"))
    return FreeResources(Cluster((Partition("gpu", Resources(4, 8 * GIB, 2), nodes),)))


def two_tasks(cpus: float, memory: float = 0.0, gpus: float = 0.0) -> Job:
    return Job("1", 0.0, (Stage(2, Resources(cpus, memory, gpus)),))


def test_named_nodes_are_accounted_one_by_one():
    """Two tasks fit on two nodes, not on one that has room for a single gpu."""
    capacity = two_nodes()
    job = two_tasks(1, GIB, 1)
    apart = Placement((("gpu", 2),), (("n1", 1), ("n2", 1)))
    together = Placement((("gpu", 2),), (("n1", 2),))
    assert capacity.misplacement(job, apart) is None
    kind, sentence = capacity.misplacement(job, together)
    assert kind == "no_room"
    assert "node 'n1'" in sentence
    assert "1 gpus" in sentence


def test_nodes_and_partitions_of_a_placement_must_agree():
    """Two tasks in the partition and one on its nodes is no gang."""
    problem = two_nodes().misplacement(two_tasks(1), Placement((("gpu", 2),), (("n1", 1),)))
    assert problem == ("not_whole", "its nodes and its partitions disagree")


def test_what_was_taken_comes_back():
    """Take and give back leave the capacity as it was."""
    capacity = two_nodes()
    job, placement = two_tasks(1, GIB), Placement((("gpu", 2),), (("n1", 2),))
    capacity.take(job, placement)
    assert capacity.by_partition()["gpu"] == Resources(2, 6 * GIB, 2)
    assert capacity.misplacement(job, placement) is not None
    capacity.give_back(job, placement)
    assert capacity.misplacement(job, placement) is None


def test_a_task_never_spans_two_nodes():
    """Two 2-cpu tasks could be held by two 2-cpu nodes, two 3-cpu tasks could not."""
    assert two_nodes().could_hold(two_tasks(2))
    assert not two_nodes().could_hold(two_tasks(3))
    assert not two_nodes().could_hold(two_tasks(1, 5 * GIB))


def test_tenths_of_a_cpu_add_up():
    """Ten tasks of 0.1 cpus fill one cpu one after the other, whatever floats make of it."""
    capacity = FreeResources(Cluster.of_processors(1))
    job, placement = Job("1", 0.0, (Stage(1, Resources(0.1)),)), Placement.whole("all", 1)
    for _ in range(10):
        assert capacity.misplacement(job, placement) is None
        capacity.take(job, placement)
    assert capacity.misplacement(job, placement) is not None


def test_a_job_of_several_stages_holds_its_widest_in_one_partition():
    """Stages of 1 and 3 cpus hold 3 cpus, and cannot be split over places."""
    stages = (Stage(1, Resources(1), "a"), Stage(3, Resources(1), "b", ("a",)))
    job = Job("1", 0.0, stages)
    cluster = Cluster((Partition("x", Resources(3)), Partition("y", Resources(2))))
    capacity = FreeResources(cluster)
    assert capacity.could_hold(job)
    assert capacity.misplacement(job, Placement((("x", 2), ("y", 2))))[0] == "not_whole"
    capacity.take(job, Placement.whole("x", 4))
    assert capacity.by_partition() == {"x": Resources(0), "y": Resources(2)}
    assert capacity.misplacement(job, Placement.whole("y", 4))[0] == "no_room"


def test_what_was_shown_as_free_never_changes():
    """A snapshot stays as it was while jobs come and go and nodes fail; so does a copy."""
    capacity = two_nodes()
    job, placement = two_tasks(1, GIB), Placement((("gpu", 2),), (("n1", 2),))
    nodes, partitions, twin = capacity.by_node(), capacity.by_partition(), capacity.copy()
    before = dict(nodes), dict(partitions)
    capacity.take(job, placement)
    capacity.close("n2")
    assert (dict(nodes), dict(partitions)) == before
    assert (dict(twin.by_node()), dict(twin.by_partition())) == before
    assert dict(capacity.by_node()) == {"n1": Resources(0, 2 * GIB, 1)}
    assert capacity.by_partition()["gpu"] == Resources(0, 2 * GIB, 1)
    with pytest.raises(TypeError):
        nodes["n1"] = Resources()


def test_a_node_that_is_back_stands_where_it_stood():
    """What is held on a node that is down is given back there, and order is the cluster's."""
    capacity = two_nodes()
    job, placement = two_tasks(1, GIB), Placement((("gpu", 2),), (("n1", 2),))
    capacity.take(job, placement)
    capacity.close("n1")
    capacity.close("n1")
    assert capacity.misplacement(job, placement)[0] == "no_room"
    capacity.give_back(job, placement)
    capacity.open("n1")
    capacity.open("n1")
    assert list(capacity.by_node().items()) == [
        (name, Resources(2, 4 * GIB, 1)) for name in ("n1", "n2")
    ]
    assert capacity.by_partition() == {"gpu": Resources(4, 8 * GIB, 2)}
    with pytest.raises(KeyError):
        capacity.close("n3")


def test_withdrawals():
    """Who waits may leave, once, and not if he starts."""
    leaving = [Withdraw(job_id, "rented") for job_id in ("2", "2", "1", "nobody")]
    verdict = check(Decision((start("1", 2),), withdrawals=tuple(leaving)), cpus=(2, 2))
    assert verdict.withdrawals == (leaving[0],)
    assert codes(verdict) == [
        ("2", RefusalCode.TWICE),
        ("1", RefusalCode.NOT_PENDING),
        ("nobody", RefusalCode.UNKNOWN_JOB),
    ]


MAP = Stage(4, Resources(1.0), "map", together=False)
GANG = Stage(2, Resources(1.0), "gang")
REDUCE = Stage(2, Resources(1.0), "reduce", ("map",), together=False)


def check_parts(*starts, preemptions=(), withdrawals=(), running=()):
    """Check starts of a job of which tasks 1 to 3 of ``map`` may start, and ``gang``; 4 cpus."""
    job = Job("dag", 0.0, (MAP, GANG, REDUCE))
    left = TaskNumbers.below(4).without([0])
    startable = (StartableTasks(MAP, left), StartableTasks(GANG, TaskNumbers.below(2)))
    pending = replace(tiny_pending("dag", 1, 10.0), job=job, startable=startable)
    capacity = FreeResources(Cluster.of_processors(4))
    held = {each.unit: each for each in running}
    decision = Decision(tuple(starts), tuple(preemptions), withdrawals=tuple(withdrawals))
    whole = tiny_pending("whole", 2, 10.0)
    return check_decision(decision, {"dag": pending, "whole": whole}, held, set(), capacity)


def part(stage: str, *tasks: int, placed: int | None = None) -> Start:
    count = placed or len(tasks) or 2
    return Start("dag", Placement.whole("all", count), stage=stage, tasks=tasks)


def test_parts_that_may_start_do():
    """Single tasks, several as one, and a gang of a stage, as long as there is room."""
    starts = (part("map", 3), part("map", 1), part("gang"), part("map", 2))
    verdict = check_parts(*starts)
    assert verdict.starts == starts[:3]
    assert codes(verdict) == [("dag", RefusalCode.NO_ROOM)]
    several = part("map", 1, 3)
    assert check_parts(several).starts == (several,)


@pytest.mark.parametrize(
    ("wrong", "code", "sentence"),
    [
        (start("dag", 4), RefusalCode.NOT_WHOLE, "it starts in parts: which of them start has to"),
        (part("shuffle", 0), RefusalCode.NO_SUCH_TASK, "it has no stage 'shuffle'"),
        (part("map", 4), RefusalCode.NO_SUCH_TASK, "its stage 'map' has no task 4"),
        (part("map", -1), RefusalCode.NO_SUCH_TASK, "its stage 'map' has no task -1"),
        (part("map", 0), RefusalCode.NOT_PENDING, "task 0 of its stage 'map' runs or has ended"),
        (part("map"), RefusalCode.NOT_WHOLE, "which tasks of its stage 'map' start has to be said"),
        (part("map", 1, 1), RefusalCode.TWICE, "its stage 'map' is started twice in one decision"),
        (part("gang", 1), RefusalCode.NOT_WHOLE, "the tasks of its stage 'gang' start together"),
        (part("reduce", 0), RefusalCode.NOT_PENDING, "nothing of its stage 'reduce' may start now"),
        (part("map", 2, placed=2), RefusalCode.NOT_WHOLE, "2 of its 1 tasks are placed"),
        (
            Start("whole", Placement.whole("all", 1), stage="main", tasks=(0,)),
            RefusalCode.NO_SUCH_TASK,
            "all of its tasks start together",
        ),
    ],
)
def test_each_wrong_part_is_refused_with_its_reason(wrong, code, sentence):
    """The right one behind it is let through."""
    verdict = check_parts(wrong, part("map", 3))
    assert codes(verdict) == [(wrong.job_id, code)]
    assert verdict.refusals[0].sentence.startswith(sentence)
    assert verdict.starts == (part("map", 3),)


def test_a_task_is_started_once():
    """Alone or beside another, and a stage's gang, too."""
    verdict = check_parts(part("map", 1), part("map", 1, 2), part("gang"), part("gang"))
    assert verdict.starts == (part("map", 1), part("gang"))
    assert [each.sentence for each in verdict.refusals] == [
        "task 1 of its stage 'map' is started twice in one decision",
        "its stage 'gang' is started twice in one decision",
    ]


def test_parts_are_stopped_by_name_and_a_job_that_runs_is_not_withdrawn():
    """The task that runs can be stopped, once; another, or the job as a whole, cannot."""
    job = Job("dag", 0.0, (MAP, GANG, REDUCE))
    first = replace(tiny_running("dag", 1, 10.0), job=job, stage="map", tasks=(0,))
    assert first.unit == Part("dag", "map", (0,))
    assert first.held.cpus == 1.0
    stop = Preempt("dag", stage="map", tasks=(0,))
    wishes = (stop, stop, Preempt("dag", stage="map", tasks=(1,)), Preempt("dag"))
    gone = [Withdraw("dag", "no more")]
    verdict = check_parts(preemptions=wishes, withdrawals=gone, running=[first])
    assert verdict.preemptions == (stop,)
    assert [each.code for each in verdict.refusals] == [
        RefusalCode.TWICE,
        RefusalCode.NOT_RUNNING,
        RefusalCode.NOT_RUNNING,
        RefusalCode.NOT_PENDING,
    ]
    assert verdict.withdrawals == ()
    assert len(check_parts(withdrawals=gone).withdrawals) == 1
