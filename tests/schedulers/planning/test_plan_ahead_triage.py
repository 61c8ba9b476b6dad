"""More jobs than a cycle has time for: who is left out, that it is said, and that it ends."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.model.cluster import Cluster
from foresail.model.decision import ReasonCode
from foresail.model.preference import Preference, PreferenceKind
from foresail.schedulers._planning import assigning, demands, pricing, triage
from foresail.schedulers._planning.cell_map import CellMap, most_asked
from foresail.schedulers._planning.problem import credits_within, groups_within
from foresail.schedulers._planning.triage import Turn, triaged
from foresail.schedulers._planning.valuing import PlanAheadParameters
from planning_problems import built, crowd, job, racks, running, view_of, waiting

SLOTS = "window_slots=6,slot_seconds=10,cycle_seconds=600"
POOL = Cluster.of_processors(4)


@pytest.fixture
def look_at(monkeypatch):
    """Lets a cycle look at so many groups only."""
    return lambda most: monkeypatch.setattr(triage.problems, "groups_within", lambda *_: most)


def names(pending):
    """Ids of jobs."""
    return [each.job.job_id for each in pending]


def queue(*asked, now=0.0):
    """A view of jobs of (name, deadline), each of one cpu and 20 s, before four free ones."""
    jobs = [(job(name, 1, deadline=deadline), 20.0) for name, deadline in asked]
    return view_of(POOL, waiting(*jobs), now=now)


def chosen(view, planned=None, turn=Turn(), **settings):  # noqa: B008
    """Whom a cycle would look at, and the turn."""
    parameters = PlanAheadParameters(window_slots=6, slot_seconds=10.0, **settings)
    found = triaged(view, CellMap(view.cluster), parameters, {}, planned or {}, turn)
    assert sorted(names(found.considered) + names(found.left_out)) == sorted(names(view.pending))
    return names(found.considered), found.turn


def test_no_job_is_left_out_where_there_is_time():
    """A queue that the work of a cycle allows is looked at as it is."""
    scheduler, view = built(f"3sigma({SLOTS})"), crowd(1)
    decision = scheduler.decide(view)
    assert scheduler.last.left_out == 0
    assert ReasonCode.LEFT_OUT not in {each.code for each in decision.reasons.values()}


@pytest.mark.parametrize("setting", ["placing=globally", "placing=in_order"])
def test_it_is_said_who_is_left_out(setting, look_at):
    """Every job is started, planned or told why not; the record and the reasons have the counts."""
    look_at(6)
    scheduler, view = built(f"3sigma({SLOTS},{setting})"), crowd(3, jobs=40)
    decision = scheduler.decide(view)
    told = {each.job_id for each in decision.starts} | set(decision.reasons)
    assert told == set(names(view.pending))
    left_out = [each for each in decision.reasons.values() if each.code is ReasonCode.LEFT_OUT]
    assert len(left_out) == scheduler.last.left_out > 0
    assert scheduler.last.pending == 40
    for reason in left_out:
        assert reason.numbers == {"considered": 40 - len(left_out), "waiting": 40}
        assert f"looked at {40 - len(left_out)} of 40 waiting jobs" in reason.sentence


def test_what_never_fits_is_not_left_out(look_at):
    """A job wider than the cluster is told so, whoever is looked at."""
    look_at(2)
    asked = [(job(f"j{at}", 1), 20.0) for at in range(9)]
    view = view_of(POOL, waiting(*asked, (job("wide", 9), 20.0)))
    reasons = built(f"3sigma({SLOTS})").decide(view).reasons
    assert reasons["wide"].code is ReasonCode.TOO_WIDE


def test_the_worthiest_are_looked_at(look_at):
    """A deadline that came last is looked at, one that may wait after one that may not."""
    look_at(4)
    best_effort = [(f"b{at}", None) for at in range(9)]
    assert "urgent" in chosen(queue(*best_effort, ("urgent", 50.0)))[0]
    deadlines = [(f"d{at}", 9000.0) for at in range(9)]
    assert "urgent" in chosen(queue(*deadlines, ("urgent", 50.0)))[0]
    late = [(f"d{at}", 1.0) for at in range(9)]
    assert "urgent" in chosen(queue(*late, ("urgent", 50.0), now=5.0))[0]


def test_what_others_wait_for_is_worth_as_much(look_at):
    """A job that a deadline waits for is looked at as if that were its own."""
    look_at(4)
    view = queue(*[(f"b{at}", None) for at in range(9)], ("first", None))
    after = replace(job("goal", 1, deadline=50.0), after=("first",))
    view = replace(view, blocked=waiting((after, 20.0)))
    assert "first" in chosen(view, end_to_end=True)[0]
    assert "first" not in chosen(view)[0]


def test_shares_of_users_count(look_at):
    """Jobs whose worth is divided come after those whose is not."""
    look_at(4)
    view = queue(*[(f"j{at}", 100.0) for at in range(12)])
    factors = {f"j{at}": 0.1 for at in range(9)}
    found = triaged(view, CellMap(view.cluster), PlanAheadParameters(), factors, {}, Turn())
    assert {"j9", "j10", "j11"} <= set(names(found.considered))


def test_planned_jobs_keep_their_place(look_at):
    """Of those that the last cycle planned, the soonest are looked at again."""
    look_at(8)
    view = queue(*[(f"d{at}", 50.0) for at in range(20)], ("a", None), ("b", None), ("c", None))
    considered, _ = chosen(view, planned={"c": 30.0, "a": 50.0, "b": 10.0})
    assert {"b", "c"} <= set(considered)
    assert "a" not in considered


def test_in_order_by_kind_and_arrival(look_at):
    """Where jobs are placed in order, the first of that order are looked at."""
    look_at(3)
    view = queue(("b0", None), ("b1", None), ("b2", None), ("b3", None), ("d", 100.0))
    assert chosen(view, placing="in_order")[0] == ["b0", "b1", "d"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_job_is_left_out_for_ever(data):
    """Whatever comes, and whatever it is worth, all are looked at within two rounds."""
    most = data.draw(st.integers(1, 12), "most")
    coming = data.draw(st.lists(st.integers(0, 8), min_size=30, max_size=30), "coming")
    arrived, turn, seen = 0, Turn(), {}
    pending: list = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(triage.problems, "groups_within", lambda *_: most)
        for cycle, count in enumerate(coming):
            now = 10.0 * cycle
            for _ in range(count if len(pending) < 24 else 0):
                deadline = data.draw(st.one_of(st.none(), st.integers(10, 900)))
                made = job(f"j{arrived}", 1, now, None if deadline is None else now + deadline)
                pending.append(replace(waiting((made, 20.0))[0], arrival=arrived))
                seen[made.job_id] = cycle
                arrived += 1
            considered, turn = chosen(view_of(POOL, pending, now=now), turn=turn)
            seen |= dict.fromkeys(considered, cycle)
            a_turn = max(most // 4, 1)
            rounds = 2 * (-(-len(pending) // a_turn) + 1)
            assert all(cycle - seen[name] <= rounds for name in names(pending))
            gone = data.draw(st.sets(st.sampled_from(names(pending)))) if pending else set()
            pending = [each for each in pending if each.job.job_id not in gone]


def test_the_round_goes_on_after_an_interruption(look_at):
    """A scheduler that is told what another kept leaves out whom that would have."""
    look_at(8)
    crowds = [crowd(2, now, jobs=60) for now in (1.0, 4.0, 7.0)]
    views = [replace(view, cluster=crowds[0].cluster) for view in crowds]
    first, second = built(f"3sigma({SLOTS})"), built(f"3sigma({SLOTS})")
    for view in views[:2]:
        first.decide(view)
    second.remember(first.memory(), views[0].cluster)
    assert second.decide(views[2]).reasons == first.decide(views[2]).reasons
    assert first.memory()["carried"][-1]["turn"] != [-1, -1]
    old = {
        name: kept
        for name, kept in first.memory()["carried"][0].items()
        if name not in ("in_vain", "turn")
    }
    second.remember({"carried": [old], "accounts": None}, views[0].cluster)
    assert second.memory()["carried"][0]["turn"] == [-1, -1]


def test_more_work_looks_at_more():
    """What a cycle may look at follows from its work alone, and is never next to nothing."""
    looked = [groups_within(seconds, 24) for seconds in (1e-9, 0.5, 1.0, 1e300)]
    assert looked == sorted(looked)
    assert looked[0] > 1000
    assert groups_within(1.0, 96) < groups_within(1.0, 24)
    assert credits_within(1e-9) < credits_within(1.0) < credits_within(1e300)


def test_rows_of_too_many_sets():
    """Of many sets those with most to bear keep their rows, and one row holds all there is."""
    totals = np.ones(30)
    sets = [1 << at | 1 << other for at in range(30) for other in range(at)]
    asked = np.arange(float(len(sets)))
    kept = most_asked(sets, asked.tolist(), totals)
    assert len(kept) == 256
    assert set(sets[-255:]) < set(kept)
    assert (1 << 30) - 1 in kept
    assert most_asked(sets[:256], asked[:256].tolist(), totals) == sets[:256]


def test_jobs_of_many_sets_start_where_there_is_room():
    """With fewer rows than sets, starts still fit, and all nodes are used."""
    random = np.random.default_rng(4)
    asked = []
    for at in range(300):
        liked = tuple(f"r{rack + 1}" for rack in sorted(random.choice(12, 6, replace=False)))
        likes = Preference(PreferenceKind.PARTITION, liked, 2.0)
        asked.append((job(f"j{at}", 1, deadline=30.0, preference=likes), 20.0))
    view = view_of(racks(*[4] * 12), waiting(*asked))
    scheduler = built(f"3sigma({SLOTS})")
    assert len(scheduler.demands(view).rows) <= 256 < len(scheduler.demands(view).problem.cover)
    starts = scheduler.decide(view).starts
    nodes = [name for each in starts for name, _ in each.placement.tasks_by_node]
    assert len(nodes) == len(set(nodes)) == 48


def test_only_some_may_be_stopped(monkeypatch):
    """Of many running jobs, those are victims that give back most for what stopping them costs."""
    busy = [running(job(f"r{at}", 1 + at), 40.0, 1 + at, order=at) for at in range(5)]
    view = view_of(
        Cluster.of_processors(20), waiting((job("new", 4, deadline=99.0), 20.0)), now=9.0
    )
    view = replace(view, running=tuple(busy))
    scheduler = built(f"3sigma({SLOTS})")
    assert len(scheduler.demands(view).victims) == 5
    monkeypatch.setattr(demands, "credits_within", lambda _: 2 * 6)
    assert [each.job.job_id for each in scheduler.demands(view).victims] == ["r3", "r4"]


def test_a_linear_program_beyond_the_budget_is_not_made(monkeypatch):
    """Making one is work: where there is too little left for it, the plan is made without."""
    scheduler = built(f"3sigma({SLOTS},relative_gap=0)")
    solved = scheduler.solved(scheduler.demands(crowd(1, 1.0, 30)))
    assert solved.prices is not None
    monkeypatch.setattr(pricing, "of_building", lambda entries: 1e6 * entries)
    monkeypatch.setattr(pricing, "program_of", None)
    without = scheduler.solved(scheduler.demands(crowd(1, 1.0, 30)))
    assert without.prices is None
    assert without.solver_failure == ""
    assert without.greedy_value <= without.value <= solved.bound + 1e-6


def test_starts_without_a_program_for_cells(monkeypatch):
    """Jobs that find no cells in turn wait; the others start, however many there are."""
    monkeypatch.setattr(assigning, "_MOST_COLUMNS", 0)
    likes = Preference(PreferenceKind.PARTITION, ("r1",), 2.0)
    asked = [
        (job("a", 3, deadline=25.0), 20.0),
        (job("b", 2, deadline=25.0, preference=likes), 20.0),
        (job("c", 1, deadline=25.0), 20.0),
    ]
    decision = built(f"3sigma({SLOTS})").decide(view_of(racks(3, 3), waiting(*asked)))
    assert {each.job_id for each in decision.starts} == {"a", "b", "c"}
