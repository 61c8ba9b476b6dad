"""The event log: what is written comes back, a crash costs at most the last step."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.checks.rules import tiny_workload
from foresail.control.loop import Controller
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import (
    AlikeReasons,
    Decision,
    Placement,
    Preempt,
    ReasonCode,
    Start,
    WakeAt,
)
from foresail.model.errors import InputError
from foresail.model.event import (
    PREDICTSIM,
    STANDARD,
    Cancelled,
    EndedBecause,
    EstimateExpired,
    Held,
    HistoryOutcome,
    NodeDrained,
    NodeResumed,
    Outcome,
    Released,
    Submitted,
    Tick,
)
from foresail.model.job import DeadlineValue, DecayingValue, Job, JobSize, Stage
from foresail.record import records
from foresail.record.log_text import (
    DurableLog,
    JsonLinesLog,
    MemoryLog,
    parse_record,
    read_log,
    record_line,
)
from foresail.record.records import Manifest
from foresail.simulator.engine import simulate_events
from toys import Constant, Doubling, Easy, PreemptsOnce, Scripted

MANIFEST = Manifest("toy", Cluster.of_processors(4), seed=3, versions={"foresail": "0"})
JOBS = [(0, 4, 100, 150), (1, 4, 20, 40), (2, 2, 30, 90), (3, 9, 1, 1)]


def run(log, scheduler=None) -> None:
    controller = Controller(
        Cluster.of_processors(4), scheduler or Easy(), Constant(10.0), Doubling(), STANDARD, log
    )
    simulate_events(tiny_workload(JOBS), controller, "toy")


def test_a_file_log_reads_back_as_the_memory_log_has_it(tmp_path):
    """The same run logged both ways gives equal records, of every kind that such a run has."""
    memory = MemoryLog(MANIFEST)
    run(memory, PreemptsOnce("1"))
    with JsonLinesLog(tmp_path / "events.jsonl", MANIFEST) as file:
        run(file, PreemptsOnce("1"))
    read = list(read_log(tmp_path / "events.jsonl"))
    assert read == memory.records
    assert {type(record) for record in read} == {
        records.Manifest,
        records.EventTaken,
        records.Predicted,
        records.Decided,
        records.ReasonsChanged,
        records.Instructed,
        records.Corrected,
    }


def test_refusals_and_drains_are_logged():
    """A refused start stands in the log with its sentence, a drain before the next step."""
    log = MemoryLog(MANIFEST)
    scheduler = Scripted(Decision((Start("1", Placement.whole("nowhere", 1)),)))
    controller = Controller(Cluster.of_processors(4), scheduler, Constant(1), Doubling(), log=log)
    controller.step(0, [Submitted(0, Job.gang("1", 0, 1))])
    controller.drain()
    refused = [each for each in log.records if isinstance(each, records.Refused)]
    assert refused[0].refusal.sentence == "the cluster has no partition 'nowhere'"
    assert log.records[-1] == records.Drained(step=1)
    for record in (refused[0], log.records[-1]):
        assert parse_record(record_line(record), "log", 1) == record


def test_reasons_are_logged_only_when_they_change():
    """Ticks that change nothing add no reason."""
    log = MemoryLog(MANIFEST)
    controller = Controller(Cluster.of_processors(4), Easy(), Constant(50), Doubling(), log=log)
    controller.step(0, [Submitted(0, Job.gang(name, 0, 3)) for name in ("1", "2", "3")])
    for second in range(1, 5):
        controller.step(second, [Tick(second)])
    changed = [each for each in log.records if isinstance(each, records.ReasonsChanged)]
    assert [(each.time, *each.reasons.job_ids) for each in changed] == [(0, "2"), (0, "3")]


def test_reasons_of_earlier_versions_are_read():
    """They had a record for each job."""
    line = (
        '{"kind":"reason","step":3,"time":4.0,"job_id":"7",'
        '"reason":{"code":"no_room","numbers":{"cpus":4.0,"free":1.0}}}'
    )
    record = parse_record(line, "log", 1)
    reasons = AlikeReasons(ReasonCode.NO_ROOM, ("7",), {"cpus": 4.0, "free": 1.0})
    assert record == records.ReasonsChanged(3, 4.0, reasons)
    assert parse_record(record_line(record), "log", 1) == record


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_is_left_out_and_then_cut_off(tmp_path, cut):
    """A crash within a line costs that line alone; the next session begins on a line of its own."""
    path = tmp_path / "events.jsonl"
    with JsonLinesLog(path, MANIFEST) as log:
        run(log)
    whole = list(read_log(path))
    path.write_bytes(path.read_bytes()[:-cut])
    assert list(read_log(path)) == whole[:-1]
    with JsonLinesLog(path, MANIFEST):
        pass
    assert list(read_log(path)) == [*whole[:-1], MANIFEST]


def test_a_step_is_in_the_file_before_its_instructions_are_returned(tmp_path):
    """What a controller has answered can be read by somebody else at once."""
    path = tmp_path / "events.jsonl"
    with closing(DurableLog(path, MANIFEST)) as log:
        controller = Controller(Cluster.of_processors(4), Easy(), Constant(9), Doubling(), log=log)
        told = controller.step(0, [Submitted(0, Job.gang("1", 0, 1))])
        instructed = [each for each in read_log(path) if isinstance(each, records.Instructed)]
        assert [each.instruction for each in instructed] == told


texts = st.text(max_size=8)
numbers = st.floats(min_value=0, max_value=1e12)
jobs = st.builds(
    Job,
    job_id=texts,
    submit_seconds=numbers,
    stages=st.lists(
        st.builds(
            Stage, st.integers(1, 9), st.builds(Resources, numbers, numbers, numbers), name=texts
        ),
        min_size=1,
        max_size=2,
    ).map(tuple),
    requested_seconds=st.none() | numbers,
    user=st.none() | texts,
    after=st.lists(texts, max_size=2).map(tuple),
    value=st.none()
    | st.builds(DeadlineValue, numbers, numbers)
    | st.builds(
        lambda start, value: DecayingValue(start, 2.0 * start + 1.0, value), numbers, numbers
    ),
    attributes=st.dictionaries(texts, texts, max_size=2),
)
outcomes = st.builds(
    Outcome, texts, numbers, numbers | st.just(float("inf")), st.sampled_from(EndedBecause)
)
events = (
    st.builds(Submitted, numbers, jobs)
    | st.builds(HistoryOutcome, numbers, jobs, outcomes)
    | st.builds(Cancelled, numbers, texts)
    | st.builds(Held, numbers, texts)
    | st.builds(Released, numbers, texts)
    | st.builds(NodeDrained, numbers, texts)
    | st.builds(NodeResumed, numbers, texts)
)


@given(event=events, step=st.integers(0, 10**9))
def test_every_event_survives_the_text(event, step):
    """Any job, any outcome, any characters: the line gives back an equal record."""
    record = records.EventTaken(step, event.time, event)
    line = record_line(record)
    assert line.isascii()
    assert line.splitlines(keepends=True) == [line]
    assert parse_record(line, "log", 1) == record


def test_half_a_surrogate_pair_survives_the_text():
    """JSON has it, though not every reader of JSON does: a job's name may come from anywhere."""
    event = Submitted(0.0, Job.gang("7", 0.0, 1, user="ann/\ud800"))
    record = records.EventTaken(0, 0.0, event)
    assert parse_record(record_line(record), "log", 1) == record


@pytest.mark.parametrize(
    "job",
    [
        {"more": 1},
        {"user": 1},
        {"submit_seconds": "soon"},
        {"value": {"deadline_seconds": "never"}},
        {"attributes": None},
    ],
)
def test_a_wrong_field_of_a_job_makes_no_record(job):
    """Each is checked; one that no job has is refused, and so is a job that lacks one."""
    line = json.loads(
        record_line(records.EventTaken(0, 0.0, Submitted(0.0, Job.gang("7", 0.0, 1))))
    )
    line["event"]["job"] |= job
    with pytest.raises(InputError, match="log, line 7: not a record"):
        parse_record(json.dumps(line), "log", 7)
    line["event"]["job"].pop(next(iter(job)))
    line["event"]["job"].pop("user", None)
    with pytest.raises(InputError, match="log, line 7: not a record"):
        parse_record(json.dumps(line), "log", 7)


@pytest.mark.parametrize(
    "record",
    [
        records.EventTaken(1, 2.0, EstimateExpired(2.0, "7", "map", (3, 4))),
        records.Instructed(1, 2.0, WakeAt("7", 2.0, "map", (3,))),
        records.Instructed(1, 2.0, Start("7", Placement.whole("all", 2), 2, "map", (3, 4))),
        records.Instructed(1, 2.0, Preempt("7", 2, "map")),
        records.Corrected(1, 2.0, "7", 1, 3.0, 4.0, "map", (3,)),
        records.Manifest("toy", Cluster.of_processors(4), starts_tasks=True),
        records.Sized(1, 2.0, JobSize("7", 0, 2)),
        records.Sized(1, 2.0, JobSize("7", 1, 9, "map", (4, 0))),
        records.Sized(1, 2.0, JobSize("7", 2, 9, "map", (4, 0), (3.0, 5.0), 36.0)),
    ],
)
def test_records_of_parts_survive_the_text(record):
    """With stage and tasks."""
    assert parse_record(record_line(record), "log", 1) == record


def test_records_of_whole_jobs_read_as_they_always_did():
    """What parts have added is not there."""
    lines = [
        '{"kind":"event","step":1,"time":2.0,"event":'
        '{"type":"EstimateExpired","time":2.0,"job_id":"7"}}\n',
        '{"kind":"instruction","step":1,"time":2.0,"instruction":'
        '{"type":"WakeAt","job_id":"7","time":2.0}}\n',
        '{"kind":"correction","step":1,"time":2.0,"job_id":"7","count":1,'
        '"previous_seconds":3.0,"next_seconds":4.0}\n',
    ]
    for line in lines:
        assert record_line(parse_record(line, "log", 1)) == line
    job = Job.gang("7", 0.0, 1)
    assert "together" not in record_line(records.EventTaken(0, 0.0, Submitted(0.0, job)))
    assert "starts_tasks" not in record_line(MANIFEST)


def test_a_manifest_keeps_nodes_and_conventions():
    """The cluster with its nodes, the conventions and the hashes come back."""
    node = Node("n1", Resources(2, 3, 1), {"rack": "a"})
    cluster = Cluster((Partition("gpu", Resources(2, 3, 1), (node,)),))
    manifest = Manifest("toy", cluster, PREDICTSIM, None, {"python": "3"}, {"log.swf": "00"}, 1e9)
    assert parse_record(record_line(manifest), "log", 1) == manifest


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "null",
        '{"kind":"nothing"}',
        '{"kind":"event","step":0,"time":0}',
        '{"kind":"event","step":0,"time":0,"event":{"type":"Start"}}',
        '{"kind":"event","step":"x","time":0,"event":{"type":"Tick","time":0}}',
        '{"kind":"event","step":0,"time":0,"event":{"type":"Tick","time":"soon"}}',
        '{"kind":"event","step":0,"time":0,"event":{"type":"Submitted","time":0,"job":{}}}',
        '{"kind":"drained","step":0,"more":1}',
    ],
)
def test_a_line_that_is_no_record_is_named(line):
    """Whatever stands there, the error says where."""
    with pytest.raises(InputError, match="log, line 7: not a record"):
        parse_record(line, "log", 7)


@given(text=st.binary(max_size=200))
def test_no_file_breaks_the_reader(tmp_path_factory, text):
    """Any bytes at all give records or an InputError."""
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    path.write_bytes(text)
    with pytest.raises(InputError):
        list(read_log(path))


def test_a_log_begins_with_its_manifest(tmp_path):
    """A line that is a record but no manifest is no beginning; an empty or absent file neither."""
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps({"kind": "drained", "step": 0}) + "\n")
    with pytest.raises(InputError, match="manifest"):
        list(read_log(path))
    path.write_text("")
    with pytest.raises(InputError, match="no record"):
        list(read_log(path))
    with pytest.raises(InputError, match="cannot be read"):
        list(read_log(tmp_path / "absent"))


def test_a_log_that_cannot_be_written_is_an_error_of_the_input(tmp_path):
    """A folder in the file's place, or no folder at all."""
    with pytest.raises(InputError, match="cannot be written"):
        JsonLinesLog(tmp_path, MANIFEST)
    with pytest.raises(InputError, match="cannot be written"):
        JsonLinesLog(tmp_path / "absent" / "events.jsonl", MANIFEST)
