"""Bursting between partitions: decisions on rows, and a queue whose mover dies after any order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from foresail.cloud.waiting.simulating import waiting_policy
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.errors import InputError
from foresail.record.job_life import JobHistory
from foresail_slurm import renting
from foresail_slurm.bursting import Belief, Bursting, BurstRow, Journal, Mark, Step, Went
from foresail_slurm.commands import NodeRow, limit_seconds
from foresail_slurm.renting import BurstRun, Rounds, SlurmBeliefs, costs_of
from foresail_slurm.state import state_of
from test_slurm_reading import JOB, NODE

NOW = 10_000.0
ROW = BurstRow(
    JobArrayID="7",
    StateCompact="PD",
    Reason="Resources",
    Partition="main",
    TimeLimit="2:00:00",
    SubmitTime="9900",
    EligibleTime="9900",
    StartTime="N/A",
    RestartCnt="0",
    Requeue="1",
    BatchFlag="1",
    tres_alloc="cpu=2,node=1,billing=2",
)
NODES = [
    NodeRow(f"c{n}", name, "idle+cloud+powered_down", "0/4/0/4", "4000", "NO", "1")
    for n in (1, 2)
    for name in ("cloud", "tried")
]
CUT = "job requeued in held state"


def bursting(name: str = "speculative", wait: float = 600.0, short: float = 90.0) -> Bursting:
    return Bursting("main", "cloud", "tried", waiting_policy(name, wait, short), 300.0)


def decided(row, mark=None, name="speculative", believed=(300.0, (60.0,))) -> list[Step]:
    """Steps for a row, of which that was decided before; all is believed as said."""
    belief = Belief(believed[0], np.array(believed[1]))
    marks = {} if mark is None else {row.JobArrayID: mark}
    return [*bursting(name).steps([row], NODES, marks, lambda *_: belief, NOW)]


def steps(*given, **named):
    """Decision and order of each step."""
    found = decided(*given, **named)
    return [(each.mark and each.mark.went.value, " ".join(each.words)) for each in found]


def all_of(rows, name="no-jobs-wait", nodes=NODES):
    """Ids of jobs for which something is to be done."""
    belief = Belief(300.0, np.array([60.0]))
    return [each.job_id for each in bursting(name).steps(rows, nodes, {}, lambda *_: belief, NOW)]


MARK = Mark(Went.WAITS, "main", 9_900.0, 0, 9_900.0, 300.0, 60.0, "120", 90.0)
RENTED = replace(MARK, went=Went.RENTED, place="cloud")
TRIED = replace(MARK, went=Went.TRIED, place="tried")
STAYS = replace(MARK, went=Went.STAYS)
THERE = ROW._replace(Partition="tried", TimeLimit="5:00")
TO_CLOUD = ("rented", "update JobId=7 Partition=cloud")
TO_TRIAL = ("tried", "update JobId=7 Partition=tried TimeLimit=5")


@pytest.mark.parametrize(
    ("name", "believed", "found"),
    [
        ("all-jobs-wait", (300.0, (9e9,)), ("waits", "")),
        ("no-jobs-wait", (300.0, (1.0,)), TO_CLOUD),
        ("all-jobs-wait-threshold", (300.0, (0.0,)), ("waits", "")),
        ("short-waits-wait", (300.0, (100.0, 500.0, 1100.0)), ("waits", "")),
        ("short-waits-wait", (300.0, (100.0, 500.0, 1300.0)), TO_CLOUD),
        ("long-jobs-wait", (89.0, (60.0,)), TO_CLOUD),
        ("long-jobs-wait", (91.0, (60.0,)), ("waits", "")),
        ("compound", (91.0, (601.0,)), TO_CLOUD),
        ("compound", (91.0, (599.0,)), ("waits", "")),
        ("speculative", (9e9, (60.0,)), TO_TRIAL),
        ("weighing", (60.0, (500.0,)), ("waits", "")),
        ("weighing", (60.0, (599.0, 599.0, 700.0)), TO_CLOUD),
    ],
)
def test_a_policy_decides_on_who_finds_no_room(name, believed, found) -> None:
    """Each by its rule: weighing rents where a tenth of the wait costs more than it saves."""
    assert steps(ROW, None, name, believed) == [found]


@pytest.mark.parametrize(
    ("row", "mark"),
    [
        (ROW._replace(Reason="None"), None),
        (ROW._replace(Reason="JobHeldUser"), None),
        (ROW._replace(Reason="Dependency"), None),
        (ROW._replace(StateCompact="R"), None),
        (ROW._replace(Partition="cloud"), None),
        (ROW._replace(Partition="tried"), None),
        (ROW._replace(Partition="main,other"), None),
        (ROW, STAYS),
        (ROW._replace(RestartCnt="1"), STAYS),
        (ROW._replace(Reason="JobHeldAdmin"), RENTED),
        (ROW._replace(Partition="cloud"), RENTED),
        (THERE, TRIED),
        (THERE._replace(StateCompact="CF", StartTime="9000"), TRIED),
        (THERE._replace(StateCompact="R", StartTime="9911"), TRIED),
        (THERE._replace(StateCompact="R", StartTime="9000"), None),
        (THERE._replace(StateCompact="CG", Reason=CUT, RestartCnt="1"), TRIED),
        (THERE._replace(Reason=CUT, RestartCnt="1"), None),
        (THERE._replace(Reason="JobHeldAdmin", RestartCnt="1"), TRIED),
        (THERE._replace(StateCompact="TO", TimeLimit="2:00:00"), TRIED),
        (THERE._replace(StateCompact="CD"), TRIED),
    ],
)
def test_nothing_else_is_touched(row, mark) -> None:
    """What is no waiting job of the fixed partition, or was decided on, or is held by somebody."""
    assert steps(row, mark, "no-jobs-wait") == []


def test_a_trial_is_cut_and_waits() -> None:
    """Each order once what was before it is seen; the job gets its own limit back."""
    runs = THERE._replace(StateCompact="R", StartTime="9910")
    assert steps(runs, TRIED) == [(None, "requeuehold Incomplete 7")]
    held = THERE._replace(Reason=CUT, RestartCnt="1")
    back = [("cut", "update JobId=7 Partition=main TimeLimit=120 StartTime=now")]
    assert steps(held, TRIED) == back
    cut = replace(TRIED, went=Went.CUT, place="main", restarts=1)
    assert steps(held, cut) == back  # it was noted, and not ordered
    home = ROW._replace(RestartCnt="1", Reason=CUT)
    assert steps(home, cut) == [(None, "release 7")]
    let_go = home._replace(Reason="Priority")
    assert steps(let_go, cut) == [("waits", "")]
    (step,) = decided(let_go, replace(cut, since=9_990.0))
    assert step.mark is not None
    assert (step.mark.since, step.mark.restarts) == (9_990.0, 1)  # it waits since it was cut
    assert steps(let_go, cut, believed=(300.0, (700.0,))) == [TO_CLOUD]


@pytest.mark.parametrize(("mark", "order"), [(RENTED, TO_CLOUD), (TRIED, TO_TRIAL)])
def test_what_was_noted_and_not_ordered_is_ordered(mark, order) -> None:
    """Unless it was requeued since: a decision is of an attempt."""
    assert steps(ROW, mark, "all-jobs-wait") == [order]
    assert steps(ROW._replace(RestartCnt="1"), mark, "all-jobs-wait") == [("waits", "")]
    tired, again = replace(MARK, since=0.0), ROW._replace(RestartCnt="1")
    assert steps(again, tired, "short-waits-wait") == [("waits", "")]


def test_a_trial_that_the_backstop_has_ended_is_run_again() -> None:
    """Its limit was shorter than its own; one that its own limit has ended stays ended."""
    assert steps(THERE._replace(StateCompact="TO"), TRIED) == [(None, "requeuehold 7")]


def test_a_job_with_a_shorter_limit_keeps_it() -> None:
    """A trial changes only limits that its partition does not allow."""
    found = steps(ROW._replace(TimeLimit="3:00"))
    assert found == [("tried", "update JobId=7 Partition=tried")]


@pytest.mark.parametrize("field", ["Requeue", "BatchFlag"])
def test_what_cannot_be_run_again_is_not_tried(field) -> None:
    """It waits, or is rented a node."""
    row = ROW._replace(**{field: "0"})
    assert steps(row) == [("waits", "")]
    assert steps(row, believed=(1.0, (700.0,))) == [TO_CLOUD]


def test_patience_ends() -> None:
    """Time counts from when the job could have run, also where the mover was away meanwhile."""
    assert steps(ROW, replace(MARK, since=NOW - 600.0)) == [TO_CLOUD]
    assert steps(ROW, replace(MARK, since=NOW - 599.0)) == []
    assert steps(ROW, replace(MARK, since=0.0), "all-jobs-wait") == []


def test_room_is_given_once() -> None:
    """None on nodes that run others, are down, or for which others wait; the rest stays."""
    rows = [ROW._replace(JobArrayID=str(n), tres_alloc="cpu=3") for n in (1, 2, 3)]
    assert all_of(rows) == ["1", "2"]
    booting = ROW._replace(JobArrayID="9", Partition="cloud", tres_alloc="cpu=4")
    assert all_of([*rows, booting]) == ["1"]
    busy = [each._replace(CPUsState="4/0/0/4") for each in NODES[:2]]
    assert all_of(rows, nodes=busy + NODES[2:]) == ["1"]
    down = [each._replace(StateComplete="down+cloud") for each in NODES]
    assert all_of(rows, nodes=down) == []


def test_those_behind_know_who_has_left() -> None:
    """Beliefs about waits are asked for without the jobs that were moved in this round."""
    asked: list[tuple[str, frozenset[str]]] = []

    def belief(job_id: str, gone: frozenset[str]) -> Belief:
        asked.append((job_id, gone))
        return Belief(300.0, np.array([0.0 if gone else 700.0]))

    rows = [ROW._replace(JobArrayID=each) for each in ("1", "2")]
    found = [*bursting("short-waits-wait").steps(rows, NODES, {}, belief, NOW)]
    assert [each.mark.went for each in found if each.mark] == [Went.RENTED, Went.WAITS]
    assert asked == [("1", frozenset()), ("2", frozenset({"1"}))]


@pytest.mark.parametrize("reason", ["PartitionNodeLimit", "BadConstraints", "AccountNotAllowed"])
def test_what_cannot_run_there_comes_back(reason) -> None:
    """With its own limit, and for good."""
    back = [("stays", "update JobId=7 Partition=main TimeLimit=120")]
    assert steps(THERE._replace(Reason=reason), TRIED) == back
    assert steps(THERE._replace(Reason=reason), STAYS) == back  # it was noted, and not ordered
    (step,) = decided(THERE._replace(Reason=reason), STAYS)
    assert step.mark == STAYS  # as it was noted, or who dies after each note never comes to order


def test_what_has_just_ended_is_not_decided_on() -> None:
    """It was in the first answer of Slurm, and not in the second."""
    assert [*bursting().steps([ROW], NODES, {}, lambda *_: None, NOW)] == []


def test_notes_outlive_who_wrote_them(tmp_path) -> None:
    """Whole lines alone count; one process at a time writes."""
    journal, state = Journal(tmp_path / "state"), tmp_path / "state"
    assert journal.marks == {}
    with journal.alone():
        journal.note("7", MARK)
        journal.note("5_2", replace(RENTED, waits=float("inf")))
        journal.note("7", TRIED)
        with pytest.raises(InputError, match="in use by another process"), Journal(state).alone():
            pass
    file = state / "slurm-burst.jsonl"
    file.write_bytes(file.read_bytes() + b'{"job": "8", "went": "wai')
    again = Journal(state)
    assert again.marks == {"7": TRIED, "5_2": replace(RENTED, waits=float("inf"))}
    with again.alone():
        again.note("8", MARK)
    assert [job for job, _ in Journal(state).decisions] == ["7", "5_2", "7", "8"]
    file.write_bytes(file.read_bytes() + b'{"job": "9"}\n')
    with pytest.raises(InputError, match="line 5: is no decision"):
        Journal(state)


@pytest.mark.parametrize(
    ("tried", "limit", "said"),
    [("", 300.0, "--tried"), ("tried", 149.0, "before they are cut"), ("main", 300.0, "distinct")],
)
def test_partitions_that_do_not_do_are_refused(tried, limit, said) -> None:
    """Trials take a partition, whose limit comes after the cut."""
    with pytest.raises(InputError, match=said):
        Bursting("main", "cloud", tried, waiting_policy("speculative", 600.0, 90.0), limit)


class Queue:
    """A queue that takes orders as Slurm does; each job runs for a time, of which trials count."""

    def __init__(self, runtimes: Mapping[str, float]) -> None:
        self.now = NOW
        self.rows = {each: ROW._replace(JobArrayID=each) for each in runtimes}
        self.runtimes = runtimes
        self.ended: list[tuple[str, str]] = []
        self.marks: dict[str, Mark] = {}

    def take(self, words: tuple[str, ...]) -> None:
        """Carry an order out."""
        job_id = words[-1] if words[0] != "update" else words[1].removeprefix("JobId=")
        row = self.rows[job_id]
        if words[0] == "requeuehold":
            assert row.StateCompact in (("R",) if "Incomplete" in words else ("TO",))
            values = {
                "StateCompact": "PD",
                "Reason": CUT,
                "RestartCnt": str(int(row.RestartCnt) + 1),
            }
        elif words[0] == "release":
            assert row.Reason == CUT
            values = {"Reason": "Priority"}
        else:
            assert row.StateCompact == "PD"
            given = dict(each.split("=", 1) for each in words[2:])
            values = {"Partition": given["Partition"]}
            if "TimeLimit" in given:
                values["TimeLimit"] = f"{given['TimeLimit']}:00"
        self.rows[job_id] = row._replace(**values)

    def go_on(self, seconds: float) -> None:
        """Let what is away start and end, and the first of the fixed partition start there."""
        self.now += seconds
        for job_id, row in self.rows.items():
            if row.StateCompact == "R" and self.now - float(row.StartTime) >= self.runtimes[job_id]:
                self.ended.append((job_id, row.Partition))
                self.rows[job_id] = row._replace(StateCompact="CD")
        busy = self.now < NOW + 400.0 or any(
            r.Partition == "main" and r.StateCompact == "R" for r in self.rows.values()
        )
        for job_id, row in self.rows.items():
            at_home = row.Partition == "main"
            if row.StateCompact != "PD" or row.Reason == CUT or (at_home and busy):
                continue
            if at_home and job_id not in self.marks:
                continue  # it was never looked at
            busy = busy or at_home
            self.rows[job_id] = row._replace(StateCompact="R", StartTime=str(self.now))


@pytest.mark.parametrize("lives", [1, 2, 3, 100])
def test_a_mover_may_die_after_any_note_and_any_order(lives) -> None:
    """Who does so much and begins anew leaves all jobs done once, long ones at home."""
    queue = Queue({"1": 30.0, "2": 500.0, "3": 80.0, "4": 200.0})
    belief = Belief(300.0, np.array([60.0]))

    def life() -> Iterator[None]:
        """Pause where it may die."""
        rows = [*queue.rows.values()]
        mover = bursting("speculative", 9e9)
        for step in mover.steps(rows, NODES, queue.marks, lambda *_: belief, queue.now):
            if step.mark is not None and step.mark != queue.marks.get(step.job_id):
                queue.marks[step.job_id] = step.mark
                yield
            if step.words:
                queue.take(step.words)
                yield

    for _ in range(1_000):
        for _ in zip(range(lives), life(), strict=False):
            pass
        queue.go_on(5.0)
    assert sorted(queue.ended) == [("1", "tried"), ("2", "main"), ("3", "tried"), ("4", "main")]
    limits = [limit_seconds(queue.rows[each].TimeLimit) for each in sorted(queue.rows)]
    assert limits == [300.0, 7_200.0, 300.0, 7_200.0]


def test_cost_beside_what_was_foreseen() -> None:
    """Worked out by hand: an hour of 2 cpus rented, foreseen as half; a trial; a wait."""
    hour = replace(RENTED, at=1_050.0, since=1_000.0, runs=1_800.0, waits=7_200.0)
    trial = replace(hour, went=Went.TRIED, place="tried", at=1_000.0, trial=90.0)
    home = replace(trial, went=Went.CUT, place="main", at=1_101.0, since=1_100.0, waits=500.0)
    decisions = [("1", hour), ("2", trial), ("2", home), ("5", hour)]
    runs = [
        BurstRun("1", "cloud", "1060", "4660", "2", "1"),
        BurstRun("2", "tried", "1010", "1100", "4", "2"),
        BurstRun("2", "main", "1300", "Unknown", "4", "2"),
        BurstRun("4", "main", "1300", "1400", "4", "2"),
        BurstRun("1", "cloud", "900", "1000", "2", "1"),
        BurstRun("5", "cloud", "Unknown", "Unknown", "0", "1"),
    ]
    costs = costs_of(runs, decisions, (3.0, 1.0), 4_900.0)
    found = {each.went: each for each in costs}
    assert [*found] == ["rented", "tried", "waits"]
    assert found["rented"].cost == pytest.approx(7.0)
    assert found["rented"].cost_foreseen == pytest.approx(3.5)
    assert (found["rented"].wait, found["rented"].wait_foreseen) == (60.0, 7_200.0)
    assert found["tried"].cost == pytest.approx(14 * 90 / 3600)
    assert found["tried"].cost_foreseen == pytest.approx(14 * 90 / 3600)
    assert (found["waits"].cost, found["waits"].cpu_hours) == (0.0, 4.0)
    assert (found["waits"].wait, found["waits"].wait_foreseen) == (200.0, 500.0)


def test_beliefs_follow_from_slurm_and_from_who_has_left() -> None:
    """Without history jobs run to their limits; of one that has just gone nothing is known."""
    runs = JOB._replace(JobArrayID="1", StateCompact="R", StartTime="9990", tres_alloc="cpu=4")
    first, second = (JOB._replace(JobArrayID=each, tres_alloc="cpu=4") for each in ("2", "3"))
    state = state_of([runs, first, second], [NODE], NOW)
    beliefs = SlurmBeliefs(state, StartForecaster(), JobHistory())
    waits = {
        (job, gone): beliefs.belief(job, frozenset(gone))
        for job, gone in [("2", ()), ("3", ()), ("3", ("2",)), ("3", ("2", "3")), ("9", ())]
    }
    assert waits.pop(("9", ())) is None
    assert {each.runs for each in waits.values() if each} == {120.0}
    means = {key: float(np.mean(each.waits)) for key, each in waits.items() if each}
    assert means["3", ()] > means["3", ("2",)] == means["2", ()]
    assert means["3", ("2", "3")] == 0.0


@pytest.fixture
def rounds(monkeypatch, tmp_path) -> Iterator[tuple[Rounds, Journal, list[tuple[str, ...]]]]:
    """Rounds with two jobs that wait, of which Slurm refuses to move the second; their orders."""
    asked: list[tuple[str, ...]] = []
    journal, lines, nothing = Journal(tmp_path), list[str](), (StartForecaster(), JobHistory())

    def ask(words: tuple[str, ...]) -> str:
        asked.append(words)
        assert words[1].removeprefix("JobId=") in Journal(tmp_path).marks
        return "" if "JobId=7" in words else refusals[-1]

    refusals = ["Job is no longer pending execution"]
    rows = [ROW, ROW._replace(JobArrayID="8")]
    odd = JOB._replace(StartTime=str(NOW + 900.0), Feature="big")  # nothing is forecast of it
    queue = [odd._replace(JobArrayID=each) for each in ("7", "8")]
    monkeypatch.setattr(renting, "read_burst", lambda *_: rows)
    monkeypatch.setattr(renting, "read_queue", lambda: queue)
    monkeypatch.setattr(renting, "read_nodes", lambda: [*NODES, NODE])
    monkeypatch.setattr(renting, "learn", lambda _: (*nothing, "none learned"))
    monkeypatch.setattr(renting, "ask", ask)
    monkeypatch.setattr(renting.time, "time", lambda: NOW)
    made = Rounds(bursting("short-waits-wait"), journal, lines.append)
    made.lines, made.refusals = lines, refusals
    with journal.alone():
        yield made, journal, asked


def test_a_round_notes_then_orders(rounds) -> None:
    """A job that Slurm refuses to move is left for a while; nothing of it stops the others."""
    made, journal, asked = rounds
    made.round()
    assert [each[1:] for each in asked] == [(f"JobId={n}", "Partition=cloud") for n in (7, 8)]
    assert journal.marks["7"].waits == 900.0  # as Slurm expects, where nothing was learned
    assert journal.marks["7"].runs == 120.0  # its limit
    made.round()
    assert [each[1] for each in asked] == ["JobId=7", "JobId=8", "JobId=7"]
    assert made.lines[0] == "none learned"
    assert made.lines[2].endswith("goes to cloud: Job is no longer pending execution")


def test_who_comes_back_is_asked_for_soon_again(rounds, monkeypatch) -> None:
    """Slurm refuses changes of a job that it has just requeued; who goes away has more time."""
    made, journal, asked = rounds
    held = THERE._replace(JobArrayID="8", Reason=CUT, RestartCnt="1")
    monkeypatch.setattr(renting, "read_burst", lambda *_: [held])
    journal.note("8", TRIED)
    for seconds, orders in ((0.0, 1), (2.9, 1), (3.1, 2)):
        monkeypatch.setattr(renting.time, "time", lambda at=NOW + seconds: at)
        made.round()
        assert len(asked) == orders
    monkeypatch.setattr(renting, "read_burst", lambda *_: [ROW._replace(JobArrayID="8")])
    journal.note("8", RENTED)
    for seconds, orders in ((10.0, 3), (309.0, 3), (311.0, 4), (612.0, 5), (616.0, 6)):
        made.refusals.append("Resource temporarily unavailable" if seconds > 600.0 else "no")
        monkeypatch.setattr(renting.time, "time", lambda at=NOW + seconds: at)
        made.round()
        assert len(asked) == orders


def test_a_dry_run_changes_nothing(rounds) -> None:
    """It says what would be done."""
    made, journal, asked = rounds
    made.round(is_tried=True)
    assert (asked, journal.marks) == ([], {})
    assert [each[:8] for each in made.lines[1:]] == ["would: 7", "would: 8"]


def test_slurm_may_be_away(rounds, monkeypatch) -> None:
    """Which is said once, as is its return; only who runs it ends it."""
    made, _, _ = rounds
    answers = iter([InputError("squeue: away"), ConnectionError("away"), None, KeyboardInterrupt()])

    def answer() -> None:
        if (error := next(answers)) is not None:
            raise error

    monkeypatch.setattr(made, "round", answer)
    monkeypatch.setattr(renting.time, "sleep", lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        made.go_on()
    assert made.lines == ["nothing is moved: squeue: away", "Slurm is back"]


@pytest.mark.parametrize(
    ("name", "level", "may"),
    [
        ("root", "", True),
        ("slurm", "", True),
        ("ann", "Operator\n", True),
        ("ann", "None\n", False),
    ],
)
def test_only_operators_move_jobs(monkeypatch, name, level, may) -> None:
    """Who is none is refused before anything is read."""
    said = {"scontrol": "SlurmUser               = slurm(64030)\n", "sacctmgr": level}
    monkeypatch.setattr(renting, "output", lambda words: said[words[0]])
    monkeypatch.setattr(renting.pwd, "getpwuid", lambda _: type("Entry", (), {"pw_name": name}))
    if may:
        renting.require_operator()
    else:
        with pytest.raises(InputError, match="AdminLevel=Operator"):
            renting.require_operator()
