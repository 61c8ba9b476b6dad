"""Slurm's commands as they are read: recorded outputs of two versions, hostile text, state."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.cluster import Resources
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause
from foresail.traces.reading import LINE
from foresail_slurm import commands
from foresail_slurm.commands import NodeRow, QueueRow
from foresail_slurm.state import history_of, state_of

RECORDED = Path(__file__).parent
MARK = "xMARKER"
NODE = NodeRow("n1", "main", "idle", "0/4/0/4", "4000", "NO", "1")
JOB = QueueRow(
    *("7", "PD", "Priority", "main", "ann", "lab", "normal", "fit"),
    *("cpu=2,mem=500M,node=1,billing=2", "OK", "2:00", "100", "100", "N/A", "10"),
    *("(null)", "(null)", "(null)", "", "(null)", ""),
)
ENDED = {
    "JobID": "7",
    "State": "COMPLETED",
    "User": "ann",
    "Account": "lab",
    "QOS": "normal",
    "Partition": "main",
    "JobName": "fit",
    "ReqTRES": "billing=2,cpu=2,mem=1G,node=1",
    "Submit": "100",
    "Eligible": "100",
    "Start": "110",
    "End": "140",
    "TimelimitRaw": "2",
}


def accounting(*rows: dict[str, str]) -> pl.DataFrame:
    """What accounting has of some attempts."""
    schema = dict.fromkeys(ENDED, pl.String())
    return pl.DataFrame(rows, schema).with_columns(pl.int_range(pl.len()).alias(LINE))


def recorded(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    def output(arguments: list[str], seconds: float = 0.0) -> str:
        short = "-o" if arguments[0] == "squeue" and "-o" in arguments else ""
        path = RECORDED / f"slurm-{version}" / f"{arguments[0]}{short}.txt"
        return path.read_bytes().decode()

    monkeypatch.setattr(commands.secrets, "token_hex", lambda _: MARK[1:])
    monkeypatch.setattr(commands, "output", output)


def test_a_recorded_cluster_of_2205(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(monkeypatch, "22.05")
    state = state_of(commands.read_queue(), commands.read_nodes(), 1795827670.0)
    assert {name: each.cpus for name, each in state.room.items()} == {"main,spec": 12, "cloud": 8}
    names = {
        each.job.job_id: each.job.name
        for line in (*state.running.values(), *state.waiting.values())
        for each in line
    }
    assert names["61"] == "evil|name,\nx1" or "61" not in names
    assert names["62"] == "evil|name,\nx1"
    assert names["64_2"] == "ünï cödé"
    assert set(state.estimates) - set(names) == {"23", "45", "47", "53"}
    assert state.aside["45"] == "is kept back (JobHeldUser)"
    assert state.aside["47"] == "asks for dependency: 'afterok:46(unfulfilled)'"
    assert state.aside["50"] == "asks for reqnodes: 'n2'"
    assert "62" not in state.aside
    ready = {
        each.job.job_id: each.job.submit_seconds for line in state.waiting.values() for each in line
    }
    assert ready["48"] == 1795831197.0
    wide = next(each for line in state.waiting.values() for each in line if each.job.job_id == "46")
    assert (wide.job.cpus, wide.planned_seconds) == (16.0, 26 * 3600.0)


def test_a_recorded_cluster_of_2411(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(monkeypatch, "24.11")
    state = state_of(commands.read_queue(), commands.read_nodes(), 1795827670.0)
    assert state.room["main"].cpus == 12
    assert set(state.estimates) >= {"9", "12"}
    assert state.aside["9"] == "is kept back (JobHeldUser)"


def test_jobs_are_seen_in_the_order_in_which_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in that of squeue, whose rows are sorted by priority."""
    names = ["100", "85_10", "99", "85_9"]
    blank = [""] * (len(commands.LifeRow._fields) - 1)
    monkeypatch.setattr(commands, "framed_rows", lambda *_: [(name, *blank) for name in names])
    assert [row.JobArrayID for row in commands.read_lives()] == ["85_9", "85_10", "99", "100"]


def test_recorded_accounting(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(monkeypatch, "22.05")
    attempts = history_of(commands.read_accounting(0.0)).past
    assert [each.outcome.end_seconds for each in attempts] == sorted(
        each.outcome.end_seconds for each in attempts
    )
    first = attempts[0]
    assert (first.job.job_id, first.job.name) == ("1", "evil|name\nx1")
    assert (first.job.cpus, first.job.requested_seconds) == (3.0, 120.0)
    assert first.outcome.runtime_seconds == 20.0
    ids = {each.job.job_id for each in attempts}
    assert {"7_1", "22_3"} <= ids
    assert not ids & {"23", "24", "45"}


FREE = st.text(max_size=30).filter(lambda text: MARK not in text and MARK[0] not in text)


@given(st.lists(st.tuples(FREE, FREE, FREE), max_size=5))
def test_no_text_between_markers_breaks_a_row(rows: list[tuple[str, str, str]]) -> None:
    rows = [(f"{at}", *row[1:]) for at, row in enumerate(rows)]
    text = "".join("".join(each + MARK for each in row) + "\n" for row in rows)
    assert [*commands.framed(text, MARK, 3)] == rows
    if rows:
        with pytest.raises(InputError, match="not whole"):
            [*commands.framed(text[: -len(MARK) - 1], MARK, 3)]


@given(st.text(max_size=40))
def test_parsers_refuse_or_read_any_text(text: str) -> None:
    row = JOB._replace(Name=text, Account=text, Reason=text, Feature=text)
    assert len(state_of([row], [NODE], 200.0).estimates) == 1
    for parse in (commands.limit_seconds, commands.moment, commands.resources_of):
        try:
            parse(text)
        except InputError:
            continue


def test_values() -> None:
    assert commands.limit_seconds("1-02:03:04") == 93_784.0
    assert commands.limit_seconds("2:00") == 120.0
    assert commands.limit_seconds("UNLIMITED") is None
    assert commands.limit_seconds("2") == 120.0
    tres = "cpu=3,mem=1.5G,node=2,billing=3,gres/gpu=2,license/x=1"
    others = "gres/gpu", "license/x"
    assert commands.resources_of(tres) == (Resources(3.0, 1.5 * 2**30), others)


@pytest.mark.parametrize("flag", ["drain", "not_responding", "maintenance", "reserved"])
def test_nodes_out_of_use_are_no_room(flag: str) -> None:
    out = NODE._replace(NodeList="n2", StateComplete=f"mixed+{flag}", CPUsState="1/0/3/4")
    running = JOB._replace(StateCompact="R", StartTime="150")
    state = state_of([running], [NODE, out], 200.0)
    assert state.room["main"].cpus == 5.0  # what runs there holds it to its end
    assert state.running["main"][0].expected_end_seconds == 270.0


def test_partitions_that_share_nodes_are_one_account() -> None:
    shared = [NODE._replace(PartitionName=name) for name in ("long", "short")]
    chain = [NODE._replace(NodeList="n2", PartitionName=name) for name in ("short", "big")]
    job = JOB._replace(Partition="long")
    state = state_of(
        [job, JOB._replace(JobArrayID="8")], [*shared, *chain, NODE._replace(NodeList="n3")], 0.0
    )
    assert state.aside == {"7": "may use some of the nodes of big,long,short only"}
    assert state.room["big,long,short"].cpus == 8.0
    assert state.room["main"].cpus == 4.0


def test_order_is_that_of_tiers_and_priorities() -> None:
    nodes = [NODE, NODE._replace(PartitionName="urgent", PriorityTier="5")]
    rows = [
        JOB,
        JOB._replace(JobArrayID="8", PriorityLong="20"),
        JOB._replace(JobArrayID="9", Partition="urgent", PriorityLong="1"),
        JOB._replace(JobArrayID="10"),
    ]
    state = state_of(rows, nodes, 200.0)
    assert [each.job.job_id for line in state.waiting.values() for each in line] == [
        "9",
        "8",
        "7",
        "10",
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"Feature": "a100|v100"}, "asks for feature: 'a100|v100'"),
        ({"excluded": "n1"}, "asks for excluded: 'n1'"),
        ({"JobArrayID": "7+1"}, "is part of a heterogeneous job"),
        ({"tres_alloc": "cpu=1,gres/fpga=1"}, "needs 'gres/fpga'"),
        ({"Reason": "AssocMaxJobsLimit"}, "is kept back (AssocMaxJobsLimit)"),
        ({"Partition": "gone"}, "may run in partitions that share no nodes: 'gone'"),
        ({"Licenses": "matlab:1"}, "asks for licenses: 'matlab:1'"),
    ],
)
def test_what_is_not_understood_is_left_to_slurm(change: dict[str, str], why: str) -> None:
    state = state_of([JOB._replace(**change)], [NODE], 200.0)
    assert [*state.aside.values()] == [why]


def test_whole_nodes_are_left_to_slurm() -> None:
    exclusive = NODE._replace(OverSubscribe="EXCLUSIVE")
    for row, node in ((JOB._replace(OverSubscribe="NO"), NODE), (JOB, exclusive)):
        assert state_of([row], [node], 200.0).aside == {"7": "takes whole nodes"}


def test_attempts_that_ended_are_the_past() -> None:
    requeued = {"JobID": "11", "State": "REQUEUED", "End": "160"}
    history = history_of(
        accounting(
            ENDED | {"JobID": "8", "State": "CANCELLED by 0", "End": "150"},
            ENDED | {"JobID": "9", "State": "CANCELLED by 0", "Start": "None", "End": "150"},
            ENDED | {"JobID": "10", "State": "RUNNING", "End": "Unknown"},
            ENDED | requeued | {"Submit": "090", "Eligible": "090"},
            ENDED,
        )
    )
    assert [each.job.job_id for each in history.past] == ["7", "8", "11"]
    because = [each.outcome.ended_because for each in history.past]
    assert because == [EndedBecause.COMPLETED, EndedBecause.CANCELLED, EndedBecause.REVOKED]
    assert [*history.submitted] == ["11", "7", "8"]
    assert history.past[0].job.requested_seconds == 120.0


def test_errors_of_commands_are_one_sentence() -> None:
    with pytest.raises(InputError, match=r"no-such-command"):
        commands.output(["no-such-command"])
    away = "import sys; print('Unable to contact slurm controller\\x1b', file=sys.stderr); exit(1)"
    with pytest.raises(InputError, match=r"contact slurm controller$"):
        commands.output([sys.executable, "-c", away])
    with pytest.raises(InputError, match="timed out"):
        commands.output(
            [sys.executable, "-c", "input() if 0 else __import__('time').sleep(9)"], 0.1
        )
    with pytest.raises(InputError, match="failed with exit status 3"):
        commands.output([sys.executable, "-c", "exit(3)"])
    shown = "import os; print(os.environ['LC_ALL'], os.environ['SLURM_TIME_FORMAT'])"
    assert commands.output([sys.executable, "-c", shown]) == "C %s\n"
