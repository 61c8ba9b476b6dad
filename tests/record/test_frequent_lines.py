"""Lines that most of a log consists of are read as all others are, or not at all."""

from __future__ import annotations

import json

import pytest

from foresail.model.cluster import Resources
from foresail.model.decision import AlikeReasons, ReasonCode
from foresail.model.errors import InputError
from foresail.model.event import Submitted
from foresail.model.job import DeadlineValue, Job, Stage, StartConditions
from foresail.record import log_text
from foresail.record.log_text import frequent_record, parse_record, record_line
from foresail.record.records import EventTaken, Predicted, ReasonsChanged

STAGES = (Stage(2, Resources(1.0, 5.0), "first"), Stage(1, Resources(2.0), "last", ("first",)))
FREQUENT = [
    EventTaken(1, 2.5, Submitted(2.5, Job.gang("1", 2.5, 4, 60.0, "ann"))),
    EventTaken(1, 3, Submitted(3, Job("2", 3, STAGES, user='"ü', after=("1",)))),
    Predicted(1, 2.5, "1", 30.0, 10.0, 20.0, 60.0, 60.0),
    Predicted(1, 2.5, "1", 30, 10.0, 20.0, 60.0, 60.0, (1.0, 2, 3.5)),
    ReasonsChanged(
        1, 2.5, AlikeReasons(ReasonCode.NO_ROOM, ("1", "2"), {"cpus": 4.0, "free": 0.0})
    ),
    ReasonsChanged(
        1, 2.5, AlikeReasons(ReasonCode.HELD, ("1",), {}, {"by": ("ann",), "x": (1.0,)})
    ),
]
UNUSUAL = [
    EventTaken(1, 2.5, Submitted(2.5, Job("3", 2.5, STAGES, attributes={"a": "b"}))),
    EventTaken(1, 2.5, Submitted(2.5, Job("3", 2.5, STAGES, value=DeadlineValue(9.0, 1.0)))),
    EventTaken(
        1, 2.5, Submitted(2.5, Job("3", 2.5, STAGES, conditions=StartConditions(begin_seconds=7.0)))
    ),
    Predicted(1, 2.5, "1", 30.0, 10.0, 20.0, float("inf"), 60.0),
]


@pytest.mark.parametrize("record", FREQUENT, ids=str)
def test_a_frequent_line_is_read_as_any_other_would_be(record, monkeypatch):
    line = record_line(record)
    found = frequent_record(line)
    monkeypatch.setattr(log_text, "frequent_record", lambda line: None)
    assert found == parse_record(line, "log", 1) == record
    assert record_line(found) == record_line(parse_record(line, "log", 1))


@pytest.mark.parametrize("record", UNUSUAL, ids=str)
def test_what_is_unusual_is_read_as_others_are(record):
    line = record_line(record)
    assert frequent_record(line) is None
    assert parse_record(line, "log", 1) == record


def _spoilt():
    for record in FREQUENT:
        whole = json.loads(record_line(record))
        of_event = whole.get("event", {})
        for where in (whole, of_event, of_event.get("job", {}), whole.get("reasons", {})):
            for name in (*where, "another"):
                kept = where.pop(name, None)
                yield json.dumps(whole)
                for value in ("7", 7, True, None, [], {}, [1], float("nan"), "\ud800"):
                    where[name] = value
                    yield json.dumps(whole)
                where[name] = kept
            where.pop("another")


def test_what_is_spoilt_is_refused_or_understood_as_without(monkeypatch):
    """Of each field left out, exchanged or added: the outcome is that of the slow way."""
    lines = list(_spoilt())
    frequent = list(map(_outcome, lines))
    monkeypatch.setattr(log_text, "frequent_record", lambda line: None)
    assert frequent == list(map(_outcome, lines))
    assert 0 < frequent.count("refused") < len(lines)


def _outcome(line):
    try:
        record = parse_record(line, "log", 1)
    except InputError:
        return "refused"
    return repr(record)  # nan equals nothing
