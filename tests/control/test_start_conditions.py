"""Start conditions: dependencies of every kind, a begin, and arrays of which some run at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.control.loop import Controller
from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import ReasonCode, Start, Withdraw
from foresail.model.event import (
    Cancelled,
    Ended,
    EndedBecause,
    Held,
    Outcome,
    Released,
    Submitted,
    Tick,
)
from foresail.model.job import (
    Dependency,
    DependencyKind,
    Job,
    Stage,
    StartConditions,
    parse_dependencies,
)
from foresail.simulator.conditions import ClusterConditions
from foresail.simulator.driver import Driver
from foresail.simulator.simulated_cluster import FixedRuntimes, SimulatedCluster
from toys import Doubling, Fcfs, Requested

ONE_CPU = (Stage(1, Resources(1.0)),)


def begun(cpus: int = 4) -> Controller:
    return Controller(Cluster.of_processors(cpus), Fcfs(), Requested(), Doubling())


def job(job_id: str, now: float = 0.0, after=(), name=None, **conditions) -> Submitted:
    made = StartConditions(**conditions)
    wanted = Job(job_id, now, ONE_CPU, 10.0, "ann", name=name, after=tuple(after), conditions=made)
    return Submitted(now, wanted)


def after(job_id: str, kind: DependencyKind, *others: str) -> Submitted:
    return job(job_id, after=others, dependencies=(Dependency(kind, others),))


def end(now: float, job_id: str, because=EndedBecause.COMPLETED) -> Ended:
    return Ended(now, Outcome(job_id, 0.0, now, because))


def said(instructions) -> list[str]:
    """What starts and is withdrawn."""
    words = {Start: "start", Withdraw: "withdraw"}
    return [f"{words[type(e)]} {e.job_id}" for e in instructions if type(e) in words]


@pytest.mark.parametrize(
    ("kind", "ends", "told", "code"),
    [
        ("afterok", ["completed", "completed"], "start 3", "dependency"),
        ("afterok", ["completed", "failed"], "withdraw 3", "dependency"),
        ("afterany", ["failed", "cancelled"], "start 3", "dependency_any"),
        ("afternotok", ["completed", "failed"], "start 3", "dependency_failure"),
        ("afternotok", ["failed", "completed"], "start 3", "dependency_failure"),
        ("afternotok", ["completed", "completed"], "withdraw 3", "dependency_failure"),
    ],
)
def test_what_the_ends_of_two_jobs_let_another_do(kind, ends, told, code):
    """Both of an array count together: a failure of one is enough, and known once both ended."""
    loop = begun()
    loop.step(0, [job("1"), job("2"), after("3", DependencyKind(kind), "1", "2")])
    assert loop.reasons()["3"].code == code
    assert loop.reasons()["3"].numbers == {"after": "1"}
    assert said(loop.step(5, [end(5, "1", EndedBecause(ends[0]))])) == []
    instructions = loop.step(6, [end(6, "2", EndedBecause(ends[1]))])
    assert said(instructions) == [told]
    if kind == "afternotok" and told.startswith("withdraw"):
        assert "only after a failure" in instructions[-1].because


def test_after_a_begin_another_starts_in_the_same_instant():
    """It is let through by the start of the other, and asked about at once."""
    loop = begun(cpus=2)
    early = after("2", DependencyKind.AFTER, "3")
    assert said(loop.step(0, [job("1"), early, job("3", begin_seconds=7.0)])) == ["start 1"]
    assert loop.reasons()["2"].sentence == "waits for job 3 to begin (after)"
    assert loop.look_again_seconds == 7.0
    assert said(loop.step(7, [Tick(7)])) == ["start 3"]
    assert loop.look_again_seconds == 7.0
    assert said(loop.step(7, [end(7, "1"), Tick(7)])) == ["start 2"]
    assert loop.look_again_seconds == float("inf")
    assert said(loop.step(8, [end(8, "3"), after("4", DependencyKind.AFTER, "2")])) == ["start 4"]


def test_a_job_that_is_cancelled_before_it_begins_lets_those_after_it_start():
    loop = begun()
    loop.step(0, [job("1", begin_seconds=9.0), after("2", DependencyKind.AFTER, "1")])
    assert said(loop.step(1, [Cancelled(1, "1")])) == ["start 2"]
    assert loop.look_again_seconds == float("inf")


def test_singletons_run_one_after_the_other_behind_all_of_their_name():
    """Others of the name that came later do not matter, nor do other users' and other names."""
    loop = begun(cpus=9)
    first, second = (job(each, name="a", singleton=True) for each in "34")
    events = [job("1", name="a"), job("2", name="b"), first, second, job("5", name="a")]
    assert said(loop.step(0, events)) == ["start 1", "start 2", "start 5"]
    assert (
        loop.reasons()["4"].sentence == "waits for job 1, of its name and user, to end (singleton)"
    )
    assert said(loop.step(1, [end(1, "2")])) == []
    assert said(loop.step(2, [end(2, "1", EndedBecause.FAILED)])) == ["start 3"]
    assert said(loop.step(3, [end(3, "3")])) == ["start 4"]


def test_a_job_waits_for_its_begin_whatever_is_wished_of_it():
    loop = begun()
    assert said(loop.step(0, [job("1", begin_seconds=20.0), job("2", begin_seconds=-1.0)])) == [
        "start 2"
    ]
    assert loop.reasons()["1"].sentence == "is not to begin before 20 s"
    loop.step(1, [Held(1, "1")])
    assert loop.reasons()["1"].code is ReasonCode.HELD
    assert said(loop.step(2, [Released(2, "1")])) == []
    assert said(loop.step(19.9, [Tick(19.9)])) == []
    assert said(loop.step(20, [Tick(20)])) == ["start 1"]
    assert not loop.running["1"].backfilled


def test_simulated_jobs_begin_at_their_time():
    """With the scheduler asked after every event, and in cycles."""
    for cycle, expected in ((None, 25.0), (10.0, 30.0)):
        loop, starts = begun(), {}
        events = [job("1", begin_seconds=25.0).job, job("2").job]
        for outcome in driven(loop, events, cycle):
            starts[outcome.job_id] = outcome.start_seconds
        assert starts == {"2": 0.0, "1": expected}


def driven(loop, jobs, cycle):
    def job_of(job_id):
        return loop.state.submitted_job(job_id).job

    ideal = ClusterConditions()
    runs = FixedRuntimes(lambda _: 5.0, job_of, loop.cluster, ideal, enforces_limits=False)
    cluster = SimulatedCluster(loop.cluster, runs, job_of, ideal)
    return Driver(loop, cluster, jobs, cycle).run()


def test_of_an_array_so_many_run_at_once_in_order():
    loop = begun(cpus=9)
    members = [job(f"7_{at}", array="7", most_at_once=2) for at in range(5)]
    assert said(loop.step(0, [*members, job("8")])) == ["start 7_0", "start 7_1", "start 8"]
    assert loop.reasons()["7_2"].sentence == "of its array at most 2 may run at once"
    assert not loop.running["8"].backfilled
    assert said(loop.step(1, [Held(1, "7_2")])) == []
    assert said(loop.step(2, [end(2, "7_0")])) == ["start 7_3"]
    assert said(loop.step(3, [Released(3, "7_2")])) == []
    assert said(loop.step(4, [end(4, "7_1", EndedBecause.LOST)])) == ["start 7_1"]
    assert said(loop.step(5, [end(5, "7_1")])) == ["start 7_2"]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9))
def test_limits_begins_and_orders_hold_whatever_happens(seed):
    """Jobs end, fail, are lost, held, released and cancelled at random."""
    random = np.random.default_rng(seed)
    loop, jobs, limits = begun(cpus=6), {}, {"a": 1, "b": 3}
    kinds = [each for each in DependencyKind if each is not DependencyKind.SINGLETON]
    begins: dict[str, float] = {}
    ends: dict[str, EndedBecause] = {}
    for second in range(60):
        now, events = float(second), []
        for job_id in [each for each in loop.running if random.random() < 0.3]:
            why = [EndedBecause.COMPLETED, EndedBecause.FAILED, EndedBecause.LOST]
            because = why[random.choice(3, p=[0.6, 0.2, 0.2])]
            if job_id in loop.state.cancelled:
                because = EndedBecause.CANCELLED
            attempt = loop.running[job_id].attempt
            events.append(Ended(now, Outcome(job_id, 0.0, now, because, None, attempt)))
            if because is not EndedBecause.LOST:
                ends[job_id] = because
        if second < 30:
            array = ("", "a", "b")[random.integers(3)]
            earlier = tuple({*map(str, random.integers(0, second, 2))}) if second > 2 else ()
            earlier = earlier if random.random() < 0.4 else ()
            dependency = Dependency(kinds[random.integers(4)], earlier)
            begin = now + float(random.integers(-3, 9))
            jobs[str(second)] = wanted = job(
                str(second),
                now,
                earlier,
                "abc"[random.integers(3)],
                dependencies=(dependency,) if earlier else (),
                singleton=bool(random.random() < 0.3),
                begin_seconds=begin if random.random() < 0.3 else None,
                array=array,
                most_at_once=limits.get(array),
            )
            events.append(wanted)
        for wish in (Held, Released, Cancelled):
            waiting = loop.pending
            if waiting and random.random() < 0.15:
                events.append(wish(now, waiting[random.integers(len(waiting))].job.job_id))
        for each in loop.step(now, [*events, Tick(now)]):
            if not isinstance(each, Start):
                continue
            begins.setdefault(each.job_id, now)
            started = jobs[each.job_id].job
            conditions = started.conditions
            assert conditions.begin_seconds is None or conditions.begin_seconds <= now
            became = [ends.get(other) for other in started.after]
            for dependency in conditions.dependencies:
                completed = [ending is EndedBecause.COMPLETED for ending in became]
                match dependency.kind:
                    case DependencyKind.AFTER_OK:
                        assert all(completed)
                    case DependencyKind.AFTER_NOT_OK:
                        assert loop.state.ended.keys() >= {*started.after}
                        assert not all(completed)
                    case DependencyKind.AFTER_ANY:
                        assert loop.state.ended.keys() >= {*started.after}
                    case DependencyKind.AFTER:
                        assert loop.state.ended.keys() | begins >= {*started.after}
            if conditions.singleton:
                names = {other for other in jobs if jobs[other].job.name == started.name}
                before = {other for other in names if int(other) < int(each.job_id)}
                assert before <= loop.state.ended.keys()
        running = [each.job.conditions.array for each in loop.running.values()]
        for array, most in limits.items():
            assert running.count(array) <= most
            back = [e for e in loop.state.held_back if jobs[e].job.conditions.array == array]
            may = [e for e in loop.state.startable if jobs[e].job.conditions.array == array]
            free = most - running.count(array)
            kept = [e for e in back if loop.reasons()[e].code is ReasonCode.ARRAY_LIMIT]
            assert len(may) == min(free, len(may) + len(kept))
    assert len(begins) > 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("afterok:1?afterany:2", "\\? is not supported"),
        ("aftercorr:1", "aftercorr is not supported"),
        ("after:1+5", "ID\\+MINUTES is not supported"),
        ("afterburstbuffer:1", "no burst buffers"),
        ("afterall:1", "singleton"),
        ("afterok:", "singleton"),
        ("singleton:1", "singleton"),
        ("afterok:1,afterany:1", "one kind"),
    ],
)
def test_dependencies_that_are_none_or_not_supported_are_refused_by_name(text, problem):
    with pytest.raises(ValueError, match=problem):
        parse_dependencies(text)


def test_dependencies_are_read_as_sbatch_has_them():
    told = parse_dependencies("afterany:1:2,3 singleton afterok:make")
    assert [(each.kind.value, *each.job_ids) for each in told] == [
        ("afterany", "1"),
        ("afterany", "2"),
        ("afterok", "3"),
        ("singleton",),
        ("afterok", "make"),
    ]


def test_an_array_of_ten_thousand_with_a_limit_is_cheap():
    """Each start and end touches a few of its members, not all."""
    loop = begun(cpus=9)
    count = 10_000
    events = [job(f"1_{at}", array="1", most_at_once=5) for at in range(count)]
    loop.step(0, events)
    assert len(loop.state.startable) == 0
    changes = sum(each.listed().version for each in loop.state.pending_rosters)
    for at in range(500):
        loop.step(at + 1.0, [end(at + 1.0, f"1_{at}")])
    assert len(loop.running) == 5
    assert sum(each.listed().version for each in loop.state.pending_rosters) - changes < 5 * 500
