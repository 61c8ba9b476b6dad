"""Recovery as a fold: every byte of a torn step, logs of older versions, snapshots, a full disk."""

from __future__ import annotations

import random
import re
import resource
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count

import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live import run_log
from foresail.live.run_log import recover, snapshot_path
from foresail.model.cluster import Cluster
from foresail.model.decision import Start, WakeAt
from foresail.model.errors import InputError
from foresail.model.event import Ended, EndedBecause, EstimateExpired, Outcome, Submitted, Tick
from foresail.model.job import Job
from foresail.record.log_text import COMMITTED_LINE, read_log
from foresail.record.records import EventTaken, Manifest, ReasonsChanged, Solved
from long_series import some_of
from toys import Constant, Doubling, Easy, Fcfs

MANIFEST = Manifest("toy", Cluster.of_processors(4))
STEPS = [
    [Submitted(0.0, Job.gang(str(number), 0.0, width)) for number, width in enumerate((3, 2, 1))],
    [Submitted(10.0, Job.gang("3", 10.0, 1))],
    [EstimateExpired(50.0, "0"), EstimateExpired(50.0, "2")],
    [Ended(60.0, Outcome("2", 0.0, 60.0, EndedBecause.LOST))],
    [
        Ended(70.0, Outcome("0", 0.0, 70.0)),
        *(Submitted(70.0, Job.gang(f"{job}", 70.0, 2)) for job in range(4, 8)),
    ],
]


def build(log, scheduler=Easy):
    return Controller(MANIFEST.cluster, scheduler(), Constant(50.0), Doubling(), log=log)


def known(controller):
    """What a controller knows, as far as others can see."""
    return (
        controller.pending,
        tuple(controller.running.values()),
        dict(controller.plan),
        dict(controller.reservations),
        replace(controller.counters),
        controller.draining,
    )


def written(path, steps=STEPS):
    """Take steps; what the controller knew after each, and how long the log was."""
    controller, log = recover(path, MANIFEST, build)
    states = [(path.stat().st_size, known(controller))]
    with closing(log):
        for events in steps:
            controller.step(events[0].time, events)
            states.append((path.stat().st_size, known(controller)))
    return states


def test_every_byte_of_a_torn_step(tmp_path):
    """Wherever the last step breaks off, the state is the one before it, and all goes on."""
    path = tmp_path / "events.jsonl"
    states = written(path)
    content = path.read_bytes()
    unbroken = states[-1][1]
    (begin, before), (end, _) = states[-2:]
    assert end == len(content)
    for cut in some_of(range(begin, end), 7):
        path.write_bytes(content[:cut])
        controller, log = recover(path, MANIFEST, build)
        with closing(log):
            assert path.stat().st_size == begin
            assert known(controller) == before
            controller.step(70.0, STEPS[-1])
        assert known(controller) == unbroken
    controller, log = recover(path, MANIFEST, build)
    with closing(log):
        assert known(controller) == unbroken


def test_every_line_of_a_log(tmp_path):
    """A log that ends with any of its lines leads to the state after the step before."""
    path = tmp_path / "events.jsonl"
    states = written(path)
    content, end = path.read_bytes(), 0
    for line in content.splitlines(keepends=True):
        end += len(line)
        path.write_bytes(content[:end])
        controller, log = recover(path, MANIFEST, build)
        log.close()
        whole = [state for size, state in states if size <= end]
        assert known(controller) == (whole[-1] if whole else states[0][1])


def test_another_scheduler_takes_over(tmp_path):
    """The log says what runs; the scheduler of today, which would not have, goes on from there."""
    path = tmp_path / "events.jsonl"
    _, state = written(path)[-1]
    controller, log = recover(path, MANIFEST, lambda log: build(log, Fcfs))
    with closing(log):
        assert known(controller) == state
        instructions = controller.step(90.0, [Ended(90.0, Outcome("3", 10.0, 90.0))])
    started = [each.job_id for each in instructions if isinstance(each, Start)]
    assert started == [each.job.job_id for each in state[0]][: len(started)]


def test_logs_of_older_versions(tmp_path):
    """Without marks, the last step counts as whole unless a prediction of its jobs is missing."""
    path = tmp_path / "events.jsonl"
    states = written(path)
    lines = [line for line in path.read_text().splitlines(True) if line != COMMITTED_LINE]
    path.write_text("".join(lines))
    controller, log = recover(path, MANIFEST, build)
    log.close()
    assert known(controller) == states[-1][1]
    assert path.read_text() == "".join(lines) + COMMITTED_LINE
    first = max(at for at, line in enumerate(lines) if '"kind":"event"' in line)
    path.write_text("".join(lines[: first + 1]))
    controller, log = recover(path, MANIFEST, build)
    log.close()
    assert known(controller) == states[-2][1]


def test_a_drain_is_remembered(tmp_path):
    """Also after it has ended."""
    path = tmp_path / "events.jsonl"
    for end_of_drain in (False, True):
        controller, log = recover(path, MANIFEST, build)
        with closing(log):
            controller.reopen() if end_of_drain else controller.drain()
            controller.step(1.0, [Tick(1.0)])
        controller, log = recover(path, MANIFEST, build)
        log.close()
        assert controller.draining is not end_of_drain


def test_what_is_told_after_a_recovery_continues_what_was_told_before(tmp_path):
    """The plan that has not changed is not told again; only the reasons are."""
    path = tmp_path / "events.jsonl"
    written(path, STEPS[:2])
    controller, log = recover(path, MANIFEST, build)
    with closing(log):
        controller.step(10.0, [Tick(10.0)])
    told = [record for record in read_log(path) if getattr(record, "step", 0) == 2]
    decided = next(record for record in told if type(record).__name__ == "Decided")
    assert (decided.plan, decided.dropped) == ({}, ())
    assert sum(
        len(each.reasons.job_ids) for each in told if isinstance(each, ReasonsChanged)
    ) == len(controller.pending)


@pytest.fixture
def many(tmp_path, monkeypatch):
    """A log with snapshots, and what its controller knew at the end."""
    monkeypatch.setattr(run_log, "SNAPSHOT_EVERY", 1)
    path = tmp_path / "events.jsonl"
    controller, log = recover(path, MANIFEST, build)
    wakes, began = {}, {}
    with closing(log):
        for second in range(400):
            now = float(second)
            over = [job_id for job_id, start in began.items() if now - start >= 70.0]
            lost = EndedBecause.LOST if second % 3 == 0 else EndedBecause.COMPLETED
            events = [Ended(now, Outcome(each, began.pop(each), now, lost)) for each in over]
            events += [
                EstimateExpired(now, job_id)
                for job_id, time in wakes.items()
                if time == now and job_id in began
            ]
            if second % 17 == 0:
                job = Job.gang(f"j{second}", now, 1 + second % 4, user=f"u{second % 2}")
                events.append(Submitted(now, job))
            if second == 200:
                controller.drain()
            if second == 230:
                controller.reopen()
            for instruction in controller.step(now, [*events, Tick(now)]):
                if isinstance(instruction, Start):
                    began[instruction.job_id] = now
                elif isinstance(instruction, WakeAt):
                    wakes[instruction.job_id] = instruction.time
    return path, controller, controller.state


def everything(state):
    """What became of every job."""
    jobs = state.history
    return jobs.submitted, jobs.past, jobs.ended, jobs.withdrawn, state.wakes, state.ticks


def test_a_snapshot_leads_to_the_same_state(many):
    """With one, and from the beginning."""
    path, controller, state = many
    assert snapshot_path(path).stat().st_size < path.stat().st_size / 3
    for _ in range(2):
        again, log = recover(path, MANIFEST, build)
        log.close()
        assert known(again) == known(controller)
        assert everything(again.state) == everything(state)
        snapshot_path(path).unlink(missing_ok=True)


def test_only_what_follows_a_snapshot_is_read(many):
    """Else it would be of no use: what is wrong before it is not seen."""
    path, controller, _ = many
    content = path.read_bytes()
    at = content.index(b'"kind":"prediction"')
    path.write_bytes(content[:at] + b'"kind":"predictioN"' + content[at + 19 :])
    again, log = recover(path, MANIFEST, build)
    log.close()
    assert known(again) == known(controller)
    snapshot_path(path).unlink()
    with pytest.raises(InputError, match="not a record"):
        recover(path, MANIFEST, build)


@pytest.mark.parametrize("damage", ["torn", "empty", "version", "other log", "shorter log"])
def test_a_snapshot_that_cannot_be_used_is_none(many, damage):
    """Torn at any place, of a version to come, or of another log."""
    path, controller, _ = many
    snapshot = snapshot_path(path)
    content = snapshot.read_bytes()
    match damage:
        case "torn":
            cuts = [content[:cut] for cut in range(0, len(content), len(content) // 9)]
        case "empty":
            cuts = [b""]
        case "version":
            cuts = [content.replace(b'"version": 1', b'"version": 2', 1)]
        case "other log" | "shorter log":
            cuts = [content]
    for cut in cuts:
        snapshot.write_bytes(cut)
        if damage == "shorter log":
            log = path.read_bytes()
            path.write_bytes(log[: log.index(b"\n", 3000) + 1])
        if damage == "other log":
            path.write_bytes(re.sub(rb'"j(\d)', rb'"k\1', path.read_bytes()))
        again, log = recover(path, MANIFEST, build)
        log.close()
        if damage == "other log":
            assert {each.job.job_id[0] for each in again.pending} == {"k"}
        elif damage == "shorter log":
            assert len(again.state.history.submitted) < 10
        else:
            assert known(again) == known(controller)


def test_a_log_that_cannot_be_written_holds_whole_steps(tmp_path):
    """The step that did not fit is not in it, nor after the log is closed."""
    path = tmp_path / "events.jsonl"
    _, before = written(path, STEPS[:2])[-1]
    size = path.stat().st_size
    controller, log = recover(path, MANIFEST, build)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 200, hard))
    try:
        with closing(log), pytest.raises(InputError, match=r"events\.jsonl: cannot be written"):
            controller.step(50.0, STEPS[2])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.stat().st_size == size
    again, log = recover(path, MANIFEST, build)
    log.close()
    assert known(again) == before
    events = [record for record in read_log(path) if isinstance(record, EventTaken)]
    assert len(events) == 4


def jobs_come_and_go(controller, seconds=300):
    """A run of two users' jobs, step by step; yields after each what the controller answered."""
    chance = random.Random(4)
    wakes, ends = {}, {}
    for second in range(seconds):
        now = float(second)
        over = [job_id for job_id, end in ends.items() if end <= now]
        events = [Ended(now, Outcome(each, ends.pop(each) - 30.0, now)) for each in over]
        events += [
            EstimateExpired(now, job_id)
            for job_id, at in wakes.items()
            if now - 1.0 < at <= now and job_id in ends
        ]
        if chance.random() < 0.15:
            width, user = chance.randrange(1, 4), f"u{chance.randrange(2)}"
            events.append(Submitted(now, Job.gang(f"j{second}", now, width, 80.0, user)))
        instructions = controller().step(now, [*events, Tick(now)])
        for instruction in instructions:
            if isinstance(instruction, Start):
                ends[instruction.job_id] = now + chance.randrange(5, 60)
            elif isinstance(instruction, WakeAt):
                wakes[instruction.job_id] = instruction.time
        yield instructions


@pytest.mark.parametrize(
    "policy",
    [
        "easy(order=shortest),recent,incremental",
        "conservative,recent(k=3),doubling",
        "foresail",
    ],
)
def test_a_recovered_run_decides_as_the_unbroken_one(tmp_path, policy):
    """Though its supervisor dies every few steps: nothing that decisions rest on is forgotten."""
    described = Manifest(policy, MANIFEST.cluster)

    def make(log=None):
        return Controller(described.cluster, *parse_policy(policy).build(), log=log)

    whole = make()
    unbroken = list(jobs_come_and_go(lambda: whole))
    path, recovered, steps = tmp_path / "events.jsonl", [], 0

    def anew():
        nonlocal steps
        if steps % 20 == 0:
            for _, log in recovered[-1:]:
                log.close()
            recovered.append(recover(path, described, make))
        steps += 1
        return recovered[-1][0]

    assert list(jobs_come_and_go(anew)) == unbroken
    recovered[-1][1].close()
    assert len(recovered) == 15
    assert recovered[-1][0].counters == whole.counters


TIMED_MANIFEST = Manifest("toy", Cluster.of_processors(4))


@dataclass(frozen=True)
class Report:
    """As a scheduler that plans ahead tells it."""

    cycle_seconds: float
    value: float = 2.0
    bound: float = 3.0
    gap: float = 0.5
    columns: int = 7
    solver_failure: str = ""
    left_out: int = 0


class Timed(Easy):
    """Takes another time at every decision that is ever made."""

    clock = count(1)

    def decide(self, view):
        self.last = Report(float(next(self.clock)))
        return Easy.decide(self, view)

    last: Report | None = None


def build_timed(log):
    return Controller(TIMED_MANIFEST.cluster, Timed(), Constant(50.0), Doubling(), log=log)


@pytest.mark.parametrize("cut", [0, 1, 200, 500])
def test_a_log_with_solutions_is_recovered(tmp_path, cut):
    """Whole or torn, also within a solution: the steps are taken again, and the log goes on."""
    path = tmp_path / "events.jsonl"
    controller, log = recover(path, TIMED_MANIFEST, build_timed)
    with closing(log):
        for number in range(4):
            now = float(number)
            controller.step(now, [Submitted(now, Job.gang(str(number), now, 3))])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut])
    again, log = recover(path, TIMED_MANIFEST, build_timed)
    with closing(log):
        known = [pending.job.job_id for pending in again.pending]
        assert known == ["1", "2", "3"][: len(known)]
        assert len(known) >= 2
        again.step(9.0, [Tick(9.0)])
    solved = [record for record in read_log(path) if isinstance(record, Solved)]
    assert [record.time for record in solved] == [*range(len(known) + 1), 9]
    assert {(record.value, record.columns, record.failure) for record in solved} == {(2.0, 7, "")}
