"""Advice on jobs of a Slurm cluster: limits at a risk, shapes, and what cannot run."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from foresail.distributions.basic import Point
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.cluster import Placement
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job
from foresail.model.view import RunningJob
from foresail.record.job_life import EndedAttempt, JobHistory
from foresail_slurm.advice import Adviser
from foresail_slurm.commands import NodeRow, QueueRow
from foresail_slurm.state import state_of

NOW = 1_000_000.0
NODE = NodeRow("n1", "main", "idle", "0/8/0/8", "4000", "NO", "1")
JOB = QueueRow(
    *("7", "PD", "Priority", "main", "ann", "lab", "normal", "fit"),
    *("cpu=4,mem=500M,node=1", "OK", "2:00:00", "999990", "999990", "N/A", "10"),
    *("(null)", "(null)", "(null)", "", "(null)", ""),
)


def learned(minutes: list[float], name: str = "fit") -> tuple[StartForecaster, JobHistory]:
    """A forecaster of one application whose jobs have run so long."""
    history = JobHistory()
    for at, each in enumerate(minutes):
        start = NOW - 100_000.0 + 100.0 * at
        job = replace(Job.gang(f"p{at}", start, 4, 7_200.0), user="ann", name=name)
        ran = RunningJob(job, start, 0, Placement.whole("main", 4), Point(60.0), start)
        outcome = Outcome(job.job_id, start, start + 60.0 * each, EndedBecause.COMPLETED)
        history.past.append(EndedAttempt(ran, outcome, 7_200.0))
        history.submitted[job.job_id] = job
    starts = StartForecaster()
    starts.catch_up(history)
    return starts, history


def advised(row: QueueRow, *others: QueueRow, risk: float = 0.05, with_starts: bool = False):
    draw = random.Random(1)
    starts, past = learned([draw.uniform(20.0, 40.0) for _ in range(100)])
    state = state_of([row, *others], [NODE], NOW)
    return Adviser(past, starts, NOW, risk).advice(state, row.JobArrayID, with_starts=with_starts)


def test_a_limit_follows_from_the_chosen_risk() -> None:
    """Runs of 20 to 40 min, evenly: the smaller the risk, the longer the limit."""
    limits = [advised(JOB, risk=risk).limit_minutes for risk in (0.5, 0.2, 0.05)]
    assert limits == sorted(limits)
    assert limits[0] == pytest.approx(30.0, abs=2.0)
    assert limits[2] == pytest.approx(39.0, abs=3.0)


def test_runs_that_a_limit_ended_are_longer_than_any() -> None:
    """With more of these than the risk allows there is no limit to advise."""
    starts, past = learned([10.0] * 40)
    cut = Adviser(past, starts, NOW, 0.05)
    job = past.past[0].job
    assert cut.limit_seconds(job) == 600.0
    for at in range(3):
        outcome = replace(past.past[at].outcome, ended_because=EndedBecause.LIMIT)
        past.past[at] = EndedAttempt(past.past[at].running, outcome, 7_200.0)
    assert Adviser(past, starts, NOW, 0.05).limit_seconds(job) is None
    assert Adviser(past, starts, NOW, 0.1).limit_seconds(job) == 600.0


def test_limits_hold_as_often_as_they_say() -> None:
    """The next run of 400 applications with 30 runs each is longer in at most some 10 %."""
    draw, exceeded = random.Random(3), 0
    for _ in range(400):
        minutes = [draw.lognormvariate(5.0, 1.0) for _ in range(31)]
        starts, past = learned(minutes[:30])
        limit = Adviser(past, starts, NOW, 0.1).limit_seconds(past.past[0].job)
        exceeded += limit < 60.0 * minutes[30]
    assert 0.05 <= exceeded / 400 <= 0.14


def test_a_limit_that_is_too_short_is_said() -> None:
    """And one that is near enough is left alone; a job without a limit has none that ends it."""
    short = advised(JOB._replace(TimeLimit="25:00"))
    assert short.risk_now == pytest.approx(0.75, abs=0.1)
    assert short.sentences[0].startswith("its limit of 25 min ends it too soon in 7")
    well = advised(JOB._replace(TimeLimit="45:00"))
    assert well.sentences == ("its limit is well chosen",)
    endless = advised(JOB._replace(TimeLimit="UNLIMITED"))
    assert endless.risk_now == 0.0
    assert endless.sentences == (f"--time={endless.limit_minutes} is enough in 95 % of cases",)


def test_changes_that_start_sooner() -> None:
    """A short limit fits before the job that waits for all nodes, fewer tasks beside what runs."""
    runs = JOB._replace(
        JobArrayID="1", StateCompact="R", StartTime="999000", TimeLimit="1:10:00", Name="other"
    )
    wide = JOB._replace(
        JobArrayID="2", tres_alloc="cpu=8,mem=1G,node=1", PriorityLong="99", Name="other"
    )
    found = advised(JOB, runs, wide, with_starts=True)
    shorter = found.changes[0]
    assert (shorter.tasks, shorter.start) == (4, NOW)
    assert found.start > NOW + 600.0
    assert f"with --time={shorter.limit_minutes} it starts in 0 s rather than" in str(found)
    full = runs._replace(tres_alloc="cpu=6,mem=1G,node=1")
    found = advised(JOB, full, with_starts=True)
    half = found.changes[1]
    assert (half.tasks, half.start) == (2, NOW)
    assert half.limit_minutes == 2 * found.limit_minutes
    assert any(each.startswith("with -n 2 --time=") for each in found.sentences)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tres_alloc": "cpu=9,mem=1G,node=1"}, "asks for 9 cpus, and nodes in use have 8"),
        ({"Reason": "DependencyNeverSatisfied", "Dependency": "afterok:1"}, "can no longer happen"),
        ({"Reason": "PartitionTimeLimit"}, "asks for more time than its partition allows"),
        ({"Reason": "JobHeldUser"}, "is held"),
        ({"Reason": "QOSMaxCpuPerJobLimit"}, "more than a job of its account or QOS may have"),
    ],
)
def test_jobs_that_cannot_run(change: dict[str, str], words: str) -> None:
    found = advised(JOB._replace(**change), with_starts=True)
    assert words in found.cannot_run
    assert found.sentences[0].startswith("cannot run now: ")
    assert (found.start, found.changes) == (None, ())


def test_nothing_is_advised_of_what_is_not_known() -> None:
    found = advised(JOB._replace(Name="new", UserName="bob"))
    assert (found.limit_minutes, found.risk_now) == (None, None)
    assert found.sentences == ("too few of its like have ended to advise a limit at that risk",)


def test_a_table_in_lua() -> None:
    """It is a table of Lua whatever names hold; applications of few jobs are not in it."""
    name = 'a"]=os.exit()--\\\n|ü'
    starts, history = learned([10.0] * 19, name)
    few = replace(Job.gang("q", NOW, 1), user="bob", name="few")
    text = Adviser(history, starts, NOW, 0.05).lua_table([*history.submitted.values(), few])
    found = re.fullmatch(r'return {\n  \["([\w/.+\\-]+)"\] = 10,\n}\n', text, re.ASCII)
    assert found
    key = re.sub(rb"\\(\d{3})", lambda byte: bytes([int(byte[1])]), found[1].encode())
    assert key.decode() == f"ann/{name}".replace('"', "`")


def test_how_far_ahead_jobs_go() -> None:
    """By the median of its like, no longer than its limit; without either it goes last."""
    starts, past = learned([10.0, 20.0, 90.0])
    adviser, job = Adviser(past, starts, NOW, 0.5), past.past[0].job
    new = replace(job, user="bob")
    cases = {
        "like": job,
        "20 min": replace(new, requested_seconds=1_200.0),
        "limit": replace(new, requested_seconds=7_200.0),
        "week": replace(new, requested_seconds=None),
    }
    ahead = {name: adviser.site_factor(each, 1_000) for name, each in cases.items()}
    assert ahead["like"] == ahead["20 min"] == 660
    assert (ahead["limit"], ahead["week"]) == (480, 0)
    assert adviser.site_factor(replace(job, requested_seconds=300.0), 1_000) > 660
    assert [adviser.site_factor(each, 0) for each in cases.values()] == [0] * 4
