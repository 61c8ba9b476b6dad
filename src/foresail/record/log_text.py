"""The event log: records as lines of JSON, and back; where they are kept; its clock.

What is read is checked with pydantic. Submissions, beliefs and reasons, of which most of a long log
consists, are read in a fifth of the time where they are just as they are written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, BinaryIO, Final, Literal, Self, get_args, get_type_hints

import msgspec
import pydantic
from pydantic_core import from_json, to_json

from foresail.model import decision, event
from foresail.model.cluster import Cluster, Node, Partition
from foresail.model.containers import LateTuple
from foresail.model.decision import AlikeReasons, ReasonCode
from foresail.model.documents import require_end
from foresail.model.errors import InputError
from foresail.model.event import Outcome, Submitted
from foresail.model.job import DeadlineValue, DecayingValue, Job, JobSize, Stage, StartConditions
from foresail.model.preference import PlacementOption, Preference
from foresail.record import records
from foresail.record.beliefs import shared_belief

NO_ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType({})


_NOTHING: Final = msgspec.Raw(b"[]")


class _Exactly(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Record of these fields and no others."""


class _Job(_Exactly):
    job_id: str
    submit_seconds: float
    stages: msgspec.Raw
    requested_seconds: float | None
    user: str | None
    group: str | None
    queue: str | None
    partition: str | None
    name: str | None
    after: tuple[str, ...]
    value: None
    attributes: _Exactly
    preference: None = None


class _Submitted(_Exactly):
    type: Literal["Submitted"]
    time: float
    job: _Job


class _Event(_Exactly, tag_field="kind", tag="event"):
    step: int
    time: float
    event: _Submitted


class _Predicted(_Exactly, tag_field="kind", tag="prediction"):
    step: int
    time: float
    job_id: str
    mean_seconds: float
    low_seconds: float
    median_seconds: float
    high_seconds: float
    planned_seconds: float
    belief: msgspec.Raw = _NOTHING


class _AlikeReasons(_Exactly):
    code: ReasonCode
    job_ids: tuple[str, ...]
    numbers: dict[str, float | str] = {}
    by_job: dict[str, tuple[float | str, ...]] = {}


class _ReasonsChanged(_Exactly, tag_field="kind", tag="reasons"):
    step: int
    time: float
    reasons: _AlikeReasons


_decoded: Final = msgspec.json.Decoder(_Event | _Predicted | _ReasonsChanged).decode
_kept: Final = lru_cache(maxsize=4_096)(msgspec.json.Decoder(tuple[float, ...]).decode)
_staged: Final = lru_cache(maxsize=4_096)(msgspec.json.Decoder(tuple[Stage, ...]).decode)
"""Values that equal texts share, which is found sooner than one that is read and compared."""


def frequent_record(
    line: str,
) -> records.EventTaken | records.Predicted | records.ReasonsChanged | None:
    """The record of a line; None if it is not one of these, or anything about it is unusual."""
    try:
        found = _decoded(line)
        kind = type(found)
        if kind is _Predicted:
            return _prediction(found)
        return _submission(found) if kind is _Event else _reasons(found)
    except (msgspec.MsgspecError, UnicodeError):
        return None


def _reasons(found: _ReasonsChanged) -> records.ReasonsChanged:
    columns = found.reasons
    alike = AlikeReasons(columns.code, columns.job_ids, columns.numbers, columns.by_job)
    return records.ReasonsChanged(found.step, found.time, alike)


def _prediction(found: _Predicted) -> records.Predicted:
    return records.Predicted(
        found.step,
        shared(found.time),
        shared(found.job_id),
        shared(found.mean_seconds),
        shared(found.low_seconds),
        shared(found.median_seconds),
        shared(found.high_seconds),
        shared(found.planned_seconds),
        _kept(bytes(found.belief)),
    )


def _submission(found: _Event) -> records.EventTaken:
    job = found.event.job
    known = Job(
        shared(job.job_id),
        shared(job.submit_seconds),
        _staged(bytes(job.stages)),
        shared(job.requested_seconds),
        shared(job.user),
        shared(job.group),
        shared(job.queue),
        shared(job.partition),
        shared(job.name),
        shared(job.after),
        None,
        NO_ATTRIBUTES,
    )
    event = Submitted(shared(found.event.time), known)
    return records.EventTaken(found.step, shared(found.time), event)


@lru_cache(maxsize=4_096, typed=True)
def shared(value: Any) -> Any:
    """One for all that are equal, as much is of thousands of jobs."""
    return value


def forget_shared() -> None:
    """Let go of what is kept so that equal values are one: a long log has been read."""
    for known in (_kept, _staged, shared, shared_belief):
        known.cache_clear()


_NAMES: Final = (
    *("manifest", "event", "prediction", "reservation", "decision", "solution", "memory", "size"),
    *("refusal", "reasons", "instruction", "correction", "drained", "reopened", "policy"),
    *("forgotten", "committed", "counted"),
)
_KINDS: Final[Mapping[str, type]] = dict(zip(_NAMES, get_args(records.Record), strict=True))
_ONE_REASON: Final = "reason"
"""Record for each job that earlier versions wrote instead of ``reasons``."""

_WHOLE_JOB: Final = {"stage": "", "tasks": []}
_BY_NOBODY: Final = {"by": ""}
_SILENT: Final[Mapping[type, Mapping[str, object]]] = {
    decision.Start: {"attempt": 1, **_WHOLE_JOB},
    decision.Preempt: {"attempt": 1, **_WHOLE_JOB},
    decision.WakeAt: _WHOLE_JOB,
    event.EstimateExpired: _WHOLE_JOB,
    event.Began: {"ours": True, **_WHOLE_JOB},
    event.NotStarted: _WHOLE_JOB,
    event.Cancelled: _BY_NOBODY,
    event.Held: _BY_NOBODY,
    event.NodeDrained: {**_BY_NOBODY, "until_seconds": None},
    event.NodeRemoved: {"known_from_seconds": None},
    Outcome: {**_WHOLE_JOB, "used": {}, "reason": ""},
    Cluster: {"shared": False},
    Node: {"speed": 1.0},
    Partition: {"speed": 1.0},
    JobSize: {"stage": "", "pilots": [], "told": [], "seconds": None},
    Stage: {"together": True},
    Job: {"options": [], "conditions": None},
    records.Manifest: {"starts_tasks": False},
    records.PolicyChanged: {"starts_tasks": False},
    records.Corrected: _WHOLE_JOB,
    records.Predicted: {"belief": []},
    AlikeReasons: {"numbers": {}, "by_job": {}},
    records.Solved: {"failure": "", "left_out": 0},
    records.Decided: {
        "places": {},
        "dropped": [],
        "slides": False,
        "head": None,
        "head_delayed": False,
    },
}
_KIND_OF: Final = {record: kind for kind, record in _KINDS.items()}

_TYPES: Final[Mapping[str, Mapping[str, type]]] = {
    "event": {each.__name__: each for each in get_args(event.Event)},
    "instruction": {each.__name__: each for each in get_args(decision.Instruction)},
}
_AS_THEY_ARE: Final = frozenset({str, float, int, bool, type(None)})
_in_ascii: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_BUILT_APART: Final = frozenset({*_TYPES, "job", "reasons"})
"""Fields of jobs, events, instructions and reasons, which are made by rules of their own."""


def record_line(record: records.Record) -> str:
    """The record as one line of JSON, with its line end."""
    plain = {"kind": _KIND_OF[type(record)], **_plain_fields(record)}
    try:
        return to_json(plain, inf_nan_mode="constants").decode("ascii") + "\n"
    except ValueError:  # other letters are escaped, which takes longer: a line is one to everybody
        return _in_ascii(plain) + "\n"


def read_log(path: Path) -> Iterator[records.Record]:
    """The records of a log file in order; an incomplete last line is left out.

    Raises ``InputError`` if the file cannot be read, does not begin with a manifest, or holds a
    line that is not a record.
    """
    require_end(path)
    number = 0
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith("\n"):
                    number -= 1
                    break
                record = parse_record(line, path, number)
                if number == 1 and not isinstance(record, records.Manifest):
                    raise InputError(
                        "does not begin with a manifest", source=path, expected="an event log"
                    )
                yield record
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=path) from error
    except UnicodeDecodeError as error:
        raise InputError(
            "is not text", source=path, line=number + 1, expected="an event log"
        ) from error
    if number == 0:
        raise InputError("holds no record", source=path, expected="an event log")


def parse_record(line: str, source: object, number: int) -> records.Record:
    """One line of a log as a record.

    Raises ``InputError`` if the line is not a record; names the source and the line.
    """
    frequent = frequent_record(line)
    if frequent is not None:
        return frequent
    try:
        plain = _read(line)
        name = plain.pop("kind")
        if name == _ONE_REASON:
            one = {"job_ids": [plain.pop("job_id")], **plain.pop("reason")}
            name, plain = "reasons", {**plain, "reasons": one}
        kind = _KINDS[name]
        for field, types in _TYPES.items():
            if field in plain:
                plain[field] = _typed(plain[field], types)
        if kind is records.ReasonsChanged:
            plain["reasons"] = _checked(AlikeReasons, plain["reasons"])
        return _checked(kind, plain)  # type: ignore[no-any-return] # it is one of _KINDS
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            "not a record of an event log",
            source=source,
            line=number,
            value=line[:80].rstrip(),
            expected="a JSON object with a known kind and its fields",
        ) from error


def _read(line: str) -> Any:
    """The JSON of a line; twice as quickly as ``json`` reads it, but for half a surrogate pair."""
    try:
        return from_json(line)
    except ValueError:
        return json.loads(line)


def _plain_fields(record: Any) -> dict[str, Any]:
    """Fields by name, but for those that say nothing: they are as ``_SILENT`` has them."""
    plain = {}
    of_record: type = type(record)
    names, silent = _fields_of(of_record)
    for name in names:
        value = getattr(record, name)
        kind: type = type(value)
        shown = value if kind in _AS_THEY_ARE else _way_to_show(kind)(value)
        if name not in silent or shown != silent[name]:
            plain[name] = shown
    return plain


@cache
def _fields_of(kind: type) -> tuple[tuple[str, ...], Mapping[str, object]]:
    return tuple(each.name for each in fields(kind)), _SILENT.get(kind, {})


def _plain(value: Any) -> Any:
    kind: type = type(value)
    return _way_to_show(kind)(value)


def _plain_list(values: Iterable[Any]) -> list[Any]:
    shown = [*values]
    if not _AS_THEY_ARE.issuperset(map(type, shown)):
        shown = [_plain(each) for each in shown]
    return shown


@cache
def _way_to_show(kind: type) -> Callable[[Any], Any]:
    """Return a function that turns a value of this kind into lists, objects and plain values."""
    if issubclass(kind, (tuple, LateTuple)):
        return _plain_list
    if issubclass(kind, Mapping):
        return lambda value: {key: _plain(each) for key, each in value.items()}
    if any(kind in types.values() for types in _TYPES.values()):
        return lambda value: {"type": kind.__name__, **_plain_fields(value)}
    return _plain_fields if is_dataclass(kind) else lambda value: value


def _fixed(attributes: dict[str, str]) -> Mapping[str, str]:
    return MappingProxyType(attributes) if attributes else NO_ATTRIBUTES


class _JobFields:
    """The fields of a job as it stands in the log; which may be missing, the job itself knows."""

    job_id: str
    submit_seconds: float
    stages: Annotated[tuple[Stage, ...], pydantic.AfterValidator(shared)]
    requested_seconds: float | None
    user: str | None
    group: str | None
    queue: str | None
    partition: str | None
    name: str | None
    after: tuple[str, ...]
    value: DeadlineValue | DecayingValue | None
    attributes: Annotated[dict[str, str], pydantic.AfterValidator(_fixed)]
    preference: Preference | None
    options: tuple[PlacementOption, ...]
    conditions: StartConditions | None


_AS_LOGGED: Final[Mapping[type, type]] = {Job: _JobFields, AlikeReasons: _AlikeReasons}
"""Declarations of the fields of records whose own ones admit more than a log holds."""

_NEWER_FIELDS: Final = {"preference", "options", "conditions"}
"""Fields of jobs that earlier versions did not write."""


def _typed(plain: dict[str, Any], types: Mapping[str, type]) -> object:
    """An event or an instruction from its fields and the name of its type."""
    kind = types[plain.pop("type")]
    if "job" in plain:
        plain["job"] = _checked(Job, plain["job"])
    return _checked(kind, plain)


def _checked(kind: type, plain: dict[str, Any]) -> Any:
    """A record of a kind from its fields, each checked; what is built apart is left as it is."""
    return _maker(kind, tuple(plain))(plain)


@cache
def _maker(kind: type, names: tuple[str, ...]) -> Callable[[dict[str, Any]], Any]:
    """Return a function that checks fields of these names, and makes a record of them.

    Raises ``KeyError`` if there are others than the kind has, or too few of a job.
    """
    hints = _hints(_AS_LOGGED.get(kind, kind))
    wrong = set(names) - hints.keys()
    if kind is Job:
        wrong |= hints.keys() - set(names) - _NEWER_FIELDS
    if wrong:
        raise KeyError(*wrong)
    if kind not in _AS_LOGGED and _BUILT_APART.isdisjoint(hints):
        return _check(kind)
    checked = [name for name in names if name not in _BUILT_APART]
    check = _check(tuple[tuple(hints[name] for name in checked)])  # type: ignore[misc]

    def make(plain: dict[str, Any]) -> Any:
        plain.update(zip(checked, check([plain[name] for name in checked]), strict=True))
        return kind(**plain)

    return make


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


@cache
def _check(kind: Any) -> Callable[[object], Any]:
    """Return a function that checks a value, and makes a record of its fields."""
    return pydantic.TypeAdapter(kind).validator.validate_python


_EARLIEST_UNIX_SECONDS: Final = 1e9
"""September 2001: no simulation lasts from its second zero to such a time."""


class LogClock:
    """Reads the beginning of a log for the start of its run.

    Times count from second zero of a simulation, and from the first record of a live run, whose
    clock is Unix time.
    """

    def __init__(self) -> None:
        self._zero: float | None = None
        self.start_unix_seconds: float | None = None
        """Unix time of the run's start, where the log knows it."""

    @property
    def zero(self) -> float:
        """The start of the run on the log's own clock (seconds)."""
        return self._zero or 0.0

    def see(self, record: records.Record) -> None:
        """Take the next record of the log."""
        if self._zero is not None:
            return
        if isinstance(record, records.Manifest):
            self.start_unix_seconds = record.origin_unix_seconds
            return
        first = getattr(record, "time", None)
        if first is not None:
            live = self.start_unix_seconds is None and first >= _EARLIEST_UNIX_SECONDS
            self._zero = first if live else 0.0
            if live:
                self.start_unix_seconds = first


COMMITTED_LINE: Final = record_line(records.Committed())
"""Line that ends every step of a live run's log."""


class MemoryLog:
    """Keeps the records in ``records``."""

    def __init__(self, manifest: records.Manifest) -> None:
        self.records: list[records.Record] = [manifest]

    def append(self, record: records.Record) -> None:
        """Keep the record."""
        self.records.append(record)

    def commit(self) -> None:
        """Do nothing."""


class JsonLinesLog:
    """Appends a line of JSON per record to a file; a step is in the file once it is committed.

    A file that exists is continued, after cutting off a last line that a crash left incomplete: the
    manifest begins a new session in it; without one, its last session goes on.

    Raises ``InputError`` if the file cannot be opened for writing.
    """

    def __init__(self, path: Path, manifest: records.Manifest | None) -> None:
        self._path = path
        self._lines: list[str] = []
        self._file = _open_at_last_whole_line(path)
        if manifest is not None:
            self.append(manifest)
            self.commit()

    def append(self, record: records.Record) -> None:
        """Keep the record until the step is committed."""
        self._lines.append(record_line(record))

    def commit(self) -> None:
        """Hand the step's lines to the operating system."""
        content = "".join(self._lines).encode()
        self._lines.clear()
        try:
            self._file.write(content)
            self._file.flush()
        except OSError as error:
            with suppress(OSError):  # what is left in the buffer cannot be written either
                self._file.close()
            raise InputError(f"cannot be written: {error.strerror}", source=self._path) from error

    def close(self) -> None:
        """Commit and close the file, unless it could not be written."""
        if not self._file.closed:
            self.commit()
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DurableLog:
    """A log for live use: a committed step survives a crash of the machine, whole or not at all.

    A file that exists is continued, and is to end with a whole step (see
    ``foresail.live.run_log``); the manifest begins a new one.

    Raises ``InputError`` if the file cannot be written; the step is not in it then, and the log
    takes no more.
    """

    def __init__(self, path: Path, manifest: records.Manifest | None) -> None:
        self._path = path
        self._lines: list[str] = []
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", source=path) from error
        self._end = os.lseek(self._file, 0, os.SEEK_END)
        if manifest is not None:
            self.append(manifest)
            self.commit()

    def append(self, record: records.Record) -> None:
        """Keep the record until the step is committed."""
        self._lines.append(record_line(record))

    def commit(self) -> None:
        """Hand the step's lines, and that these are all, to the disk."""
        if not self._lines:
            return
        content = "".join((*self._lines, COMMITTED_LINE)).encode()
        self._lines.clear()
        try:
            _write_all(self._file, content)
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):  # else recovery does it
                os.ftruncate(self._file, self._end)
            raise InputError(
                f"cannot be written: {error.strerror}; nothing was begun that is not in it",
                source=self._path,
                expected="room for it, before the run is resumed",
            ) from error
        self._end += len(content)

    def close(self) -> None:
        """Close the file; what was not committed never happened."""
        os.close(self._file)


def _write_all(file: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


def _open_at_last_whole_line(path: Path) -> BinaryIO:
    try:
        file = path.open("r+b") if path.exists() else path.open("x+b")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=path) from error
    _cut_incomplete_line(file)
    return file


def _cut_incomplete_line(file: BinaryIO) -> None:
    end = file.seek(0, os.SEEK_END)
    block = 65536
    while end > 0:
        begin = max(0, end - block)
        file.seek(begin)
        newline = file.read(end - begin).rfind(b"\n")
        if newline >= 0:
            end = begin + newline + 1
            break
        end = begin
    file.truncate(end)
    file.seek(end)
