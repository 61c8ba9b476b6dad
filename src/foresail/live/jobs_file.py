"""Jobs files and their fields, each checked: from TOML, CSV, JSON lines or typed lines."""

from __future__ import annotations

import getpass
import math
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, Final

from foresail.live.command_job import AS_WRITTEN, SIGN, CommandJob, dependency_words, is_name
from foresail.model.cluster import Resources
from foresail.model.documents import csv_rows, parsed_json, parsed_toml, text_of
from foresail.model.errors import ForesailError, InputError
from foresail.model.free_resources import FreeResources
from foresail.model.job import DEPENDENCY_FORM, Dependency, Job, parse_dependencies
from foresail.model.preference import Preference
from foresail.model.words import DURATION_FORMS, memory_size, parse_duration, parse_size
from foresail.strl.own_requests import RequestPlaces, own_options

_KNOWN: Final = "jAauxN%"


def require_known_signs(pattern: str) -> str:
    """The pattern, if all its signs are known.

    Raises ``ValueError`` if one is not; says which are.
    """
    for sign in SIGN.finditer(pattern):
        if not sign[2] or sign[2] not in _KNOWN:
            known = ", ".join(f"%{each}" for each in _KNOWN)
            raise ValueError(f"the path of a file with {known}: {sign[0]} is not known")
    return pattern


_NAME_FORM: Final = "at most 100 characters that can be printed, without /, for it names files too"
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(%%)?")
"""Name of a variable; functions of bash have two percent signs behind theirs."""


def _text(value: Any, expected: str) -> str:
    if not isinstance(value, str) or not value.strip() or not _can_be_handed_over(value):
        raise ValueError(expected)
    return value


def _can_be_handed_over(text: str) -> bool:
    """Return whether a process can be given this text: no NUL, and only what UTF-8 can encode."""
    return "\0" not in text and text.encode(errors="ignore").decode() == text


def _command(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, list):
        expected = "a list of one or more strings"
        usable = all(isinstance(word, str) and _can_be_handed_over(word) for word in value)
        if not value or not value[0] or not usable:
            raise ValueError(expected)
        return tuple(value)
    return _text(value, "a command line, or a list of a program and its arguments")


def _script(value: Any) -> str:
    text = _text(value, "the text of a script")
    if "\r\n" in text:
        raise ValueError("lines that end as on Unix: a carriage return would be part of each")
    return text


def _arguments(value: Any) -> tuple[str, ...]:
    words = shlex.split(value) if isinstance(value, str) else value
    if not isinstance(words, list) or not all(
        isinstance(word, str) and _can_be_handed_over(word) for word in words
    ):
        raise ValueError("the words that the script is given, in a list")
    return tuple(words)


def _whole(value: Any, least: int) -> int:
    expected = f"a whole number, at least {least}"
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:10])
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(expected)
    return value


def _number(value: Any, expected: str, least: float = 0.0) -> float:
    """A number that is finite, and at least so much."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(expected)
    try:
        number = float(value)
    except (ValueError, OverflowError) as error:  # the latter of whole numbers beyond all others
        raise ValueError(expected) from error
    if not least <= number < math.inf:
        raise ValueError(expected)
    return number


def _preferred(value: Any) -> str:
    expected = "partition:NAME,... or attribute:NAME,... or same:NAME or spread:NAME"
    if not isinstance(value, str):
        raise ValueError(expected)
    try:
        return Preference.parse(value).text
    except InputError as error:
        raise ValueError(expected) from error


def _duration(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(DURATION_FORMS)
    return parse_duration(value)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not is_name(value):
        raise ValueError(_NAME_FORM)
    return value


def _after(value: Any) -> tuple[Dependency, ...]:
    if not isinstance(value, str) and not (
        isinstance(value, list) and all(isinstance(name, str) for name in value)
    ):
        raise ValueError(DEPENDENCY_FORM)
    return parse_dependencies(value)


def _begin(value: Any) -> float:
    """Unix seconds; a duration is from now on."""
    if isinstance(value, str):
        return time.time() + parse_duration(value)
    return _number(value, "Unix seconds, or a duration from now such as 2h")


def _one_of(*words: object) -> Callable[[Any], Any]:
    """Return a value that is one of these, and of its type."""

    def checked(value: Any) -> Any:
        if not any(value is word or (isinstance(value, str) and value == word) for word in words):
            raise ValueError(" or ".join(str(word).lower() for word in words))
        return value

    return checked


def _environment(value: Any) -> Mapping[str, str]:
    expected = 'a table of variables, or "NAME=value" words'
    if isinstance(value, str):
        words = [word.partition("=") for word in shlex.split(value)]
        if not all(equals for _, equals, _ in words):
            raise ValueError(expected)
        value = {name: content for name, _, content in words}
    if not isinstance(value, dict):
        raise ValueError(expected)
    for name, content in value.items():
        if not VARIABLE.fullmatch(name) or isinstance(content, bool | dict | list):
            raise ValueError(f"{expected} (wrong at {name!r})")
        if not _can_be_handed_over(str(content)):
            raise ValueError(f"{expected} in UTF-8 without NUL (wrong at {name!r})")
    return {name: str(content) for name, content in value.items()}


JOB_FIELDS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "command": _command,
        "script": _script,
        "arguments": _arguments,
        "cpus": lambda value: _whole(value, 1),
        "tasks": lambda value: _whole(value, 1),
        "memory": parse_size,
        "gpus": lambda value: _whole(value, 0),
        "requested_time": _duration,
        "deadline": _duration,
        "decay": _duration,
        "worth": lambda value: _number(value, "a number, 0 or more"),
        "preferred": _preferred,
        "slowdown_elsewhere": lambda value: _number(value, "a number, 1 or more", 1.0),
        "after": _after,
        "begin": _begin,
        "requeue": _one_of(True, False),
        "output": lambda value: require_known_signs(_text(value, "the path of a file")),
        "errors": lambda value: require_known_signs(_text(value, "the path of a file")),
        "open_mode": _one_of("append", "truncate"),
        "name": _name,
        "user": lambda value: _text(value, "a user name"),
        "environment": _environment,
        "directory": lambda value: _text(value, "the path of a directory"),
        "strl": lambda value: _text(value, "a request in STRL"),
    }
)
"""Converters of fields; each raises ``ValueError`` with what was expected."""


_TABLE: Final = re.compile(r"^\s*\[\[\s*job\s*\]\]", re.MULTILINE)
FILE_SUFFIXES: Final = (".toml", ".csv", ".jsonl", ".ndjson")
"""Suffixes of jobs files."""
_SUFFIXES: Final = ".toml, .csv, .jsonl or .ndjson"


class InvalidJobs(ForesailError):  # noqa: N818 - what is invalid is the input
    """Everything that is wrong in a jobs file, a line each."""

    def __init__(self, problems: Sequence[ForesailError]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in problems))


def read_jobs(
    path: Path, room: FreeResources, directory: Path, places: RequestPlaces | None = None
) -> list[CommandJob]:
    """All jobs of a file (.toml, .csv, .jsonl, .ndjson), in order, or everything wrong with it.

    ``room`` is that of the empty cluster, which no job may exceed; commands run in ``directory``,
    which those that they name are relative to; ``places`` is what requests in STRL may name, if
    any.

    Raises ``InputError`` if the file cannot be read or holds no job, ``InvalidJobs`` if jobs are
    wrong: every bad field with its line, duplicate names, unknown or cyclic ``after``.
    """
    records = list(_records(path))
    if not records:
        raise InputError("no jobs", source=path, expected="at least one job")
    reader = JobLines(room, directory, path, places)
    problems: list[ForesailError] = []
    jobs: list[tuple[int | None, CommandJob]] = []
    for line, record in records:
        try:
            jobs.append((line, reader.job(record, line)))
        except InvalidJobs as invalid:
            problems += invalid.problems
    problems += _dependency_problems(path, jobs, reader.known)
    if problems:
        raise InvalidJobs(problems)
    return [job for _, job in jobs]


def raw_jobs(path: Path) -> list[dict[str, Any]]:
    """The fields of every job of a file as they are written, for who checks them later."""
    return [dict(record) for _, record in _records(path)]


class JobLines:
    """Checks jobs one after the other, as lines of standard input or records of a file."""

    def __init__(
        self,
        room: FreeResources,
        directory: Path,
        source: object,
        places: RequestPlaces | None = None,
        is_directory: Callable[[Path], bool] = os.path.isdir,
    ) -> None:
        self._room = room
        self._total = sum(room.by_partition().values(), Resources())
        self._directory = directory
        self._source = source
        self._places = places
        self._is_directory = is_directory
        self.known: set[str] = set()
        """Ids so far."""
        self._count = 0

    def line(self, text: str, line: int) -> CommandJob | None:
        """The job of one line: a JSON object or a plain command; None for blanks and comments.

        Raises ``InvalidJobs`` if the line cannot be used; ``after`` may name jobs of earlier lines
        only.
        """
        text = text.strip()
        if not text or text.startswith("#"):
            return None
        earlier = set(self.known)
        try:
            is_plain = not text.startswith("{")
            record = {"command": text} if is_plain else _json_object(text, self._source, line)
            job = self.job(record, line)
            if problems := _dependency_problems(self._source, [(line, job)], earlier):
                raise InvalidJobs(problems)
        except InvalidJobs:
            self.known = earlier
            raise
        except InputError as error:
            raise InvalidJobs([error]) from error
        return job

    def job(self, record: Mapping[str, Any], line: int | None) -> CommandJob:
        """The job of one record; raises ``InvalidJobs`` with a problem for every wrong field."""
        self._count += 1
        found, problems = self._fields(record, line)
        job_id = found.get("name", f"job-{self._count}")
        if job_id in self.known:
            problems.append(
                self._problem("a job of this name exists already", line, "name", job_id)
            )
        self.known.add(job_id)
        if problems:
            raise InvalidJobs(problems)
        directory = self._directory / found.get("directory", "")
        if not self._is_directory(directory):
            raise InvalidJobs(
                [self._problem("no such directory", line, "directory", str(directory))]
            )
        tasks, memory, after = found.get("tasks", 1), found.get("memory"), found.get("after", ())
        job = CommandJob(
            job_id=job_id,
            name=found.get("name") or _program(found.get("command", "script")),
            command=found.get("command", ""),
            directory=str(directory),
            cpus=tasks * found.get("cpus", 1),
            tasks=tasks,
            memory_bytes=None if memory is None else tasks * memory,
            after=tuple(chain.from_iterable(each.job_ids for each in after)),
            dependencies=dependency_words(after),
            once=not found.get("requeue", True),
            cpus_per_task=found.get("cpus"),
            appends=found.get("open_mode") == "append",
            user=found.get("user") or getpass.getuser(),
            **{AS_WRITTEN[name]: value for name, value in found.items() if name in AS_WRITTEN},
        )
        specification = job.specification(0.0)
        if not self._room.could_hold(specification):
            problem = "can never run: no node, or no number of nodes, has so much"
            field, value = _too_much(specification, self._room)
            expected = "tasks that each fit on a node"
            raise InvalidJobs([self._problem(problem, line, field, value, expected)])
        return job

    def _fields(
        self, record: Mapping[str, Any], line: int | None
    ) -> tuple[dict[str, Any], list[ForesailError]]:
        found: dict[str, Any] = {}
        problems: list[ForesailError] = []
        for name, value in record.items():
            if name not in JOB_FIELDS:
                near = get_close_matches(name, JOB_FIELDS, n=1)
                expected = repr(near[0]) if near else "one of " + ", ".join(JOB_FIELDS)
                problems.append(self._problem("unknown field", line, name, value, expected))
                continue
            try:
                found[name] = JOB_FIELDS[name](value)
            except ValueError as error:
                it = None if name == "environment" else value  # that may be secret
                problems.append(self._problem(f"not usable as {name}", line, name, it, str(error)))
        if ("command" in record) is ("script" in record):
            problem = (
                "is there and a script too" if "script" in record else "the job has no command"
            )
            given = record.get("command")
            problems.append(self._problem(problem, line, "command", given, "what to run, once"))
        if record.get("arguments") and "script" not in record:
            given, expected = record["arguments"], "a script, or no arguments"
            problems.append(self._problem("are of no script", line, "arguments", given, expected))
        cpus = found.get("tasks", 1) * found.get("cpus", 1)
        problems += self._problems_of_width(found, cpus, line)
        if "deadline" in found and "decay" in found:
            problem = "is there and a deadline too"
            problems.append(self._problem(problem, line, "decay", record["decay"], "one of them"))
        if "strl" in found:
            problems += self._problems_of_request(found["strl"], cpus, line)
        return found, problems

    def _problems_of_width(
        self, found: Mapping[str, Any], cpus: int, line: int | None
    ) -> Iterator[ForesailError]:
        """Yield what no job can have here: more of something than the whole cluster has."""
        problem, total = "wider than the cluster", self._total
        if cpus > total.cpus:
            field_name = "cpus" if "cpus" in found else "tasks"
            yield self._problem(problem, line, field_name, cpus, f"at most {total.cpus:g}")
        memory = found.get("tasks", 1) * found.get("memory", 0.0)
        if memory > total.memory_bytes:
            most = f"at most {memory_size(total.memory_bytes)} in all"
            yield self._problem(problem, line, "memory", memory_size(memory), most)
        gpus = found.get("gpus", 0)
        if gpus > total.gpus:
            most = f"at most {total.gpus:g}" if total.gpus else "none: this cluster has no gpus"
            yield self._problem(problem, line, "gpus", gpus, most)

    def _problems_of_request(
        self, text: str, cpus: int, line: int | None
    ) -> Iterator[ForesailError]:
        if self._places is None:
            problem = "this scheduler would start the job when its own STRL does not let it"
            expected = "a policy of tetrisched or 3sigma, or no strl"
            yield self._problem(problem, line, "strl", text, expected)
            return
        try:
            own_options(text, cpus, self._places)
        except InputError as error:
            yield self._problem(error.problem, line, "strl", error.value, error.expected)

    def _problem(
        self, problem: str, line: int | None, name: str, value: object, expected: str | None = None
    ) -> InputError:
        return InputError(
            problem, source=self._source, line=line, field=name, value=value, expected=expected
        )


def _too_much(job: Job, room: FreeResources) -> tuple[str, object]:
    """Return what a job asks too much of; of its cpus, if it is all of it together."""
    stage, total = job.stages[0], job.total
    alone = {
        "memory": (Resources(0.0, stage.request.memory_bytes), memory_size(total.memory_bytes)),
        "gpus": (Resources(gpus=stage.request.gpus), total.gpus),
    }
    for field, (request, value) in alone.items():
        if not room.could_hold(replace(job, stages=(replace(stage, request=request),))):
            return field, value
    return "cpus", total.cpus


def _records(path: Path) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    """Line number and fields of every job of a file."""
    text = text_of(path)
    match path.suffix.lower():
        case ".toml":
            yield from _toml_records(text, path)
        case ".csv":
            yield from _csv_records(text, path)
        case ".jsonl" | ".ndjson":
            for number, line in enumerate(text.splitlines(), 1):
                if line.strip():
                    yield number, _json_object(line, path, number)
        case suffix:
            raise InputError("unknown kind of file", source=path, value=suffix, expected=_SUFFIXES)


def _toml_records(text: str, path: Path) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    document = parsed_toml(text, path)
    for key in document:
        if key != "job":
            raise InputError(
                "unknown table or key", source=path, field=key, expected="[[job]] tables"
            )
    tables = document.get("job", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError("not a list of tables", source=path, field="job", expected="[[job]]")
    lines: list[int | None] = [
        text.count("\n", 0, header.end()) + 1 for header in _TABLE.finditer(text)
    ]
    if len(lines) != len(tables):
        lines = [None] * len(tables)
    yield from zip(lines, tables, strict=True)


def _csv_records(text: str, path: Path) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    rows = csv_rows(text, path)
    _, names = next(rows, (1, []))
    header = [name.strip() for name in names]
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(
                f"{len(row)} columns",
                source=path,
                line=line,
                expected=f"{len(header)} as in the header",
            )
        cells = zip(header, row, strict=True)
        yield line, {name: cell.strip() for name, cell in cells if cell.strip()}


def _json_object(line: str, source: object, number: int) -> dict[str, Any]:
    record = parsed_json(line, source, number)
    if not isinstance(record, dict):
        raise InputError(
            "not a JSON object", source=source, line=number, value=record, expected="{...}"
        )
    return record


def _dependency_problems(
    source: object, jobs: Sequence[tuple[int | None, CommandJob]], known: set[str]
) -> list[ForesailError]:
    problems: list[ForesailError] = []
    ids = known | {job.job_id for _, job in jobs}
    for line, job in jobs:
        for earlier in job.after:
            if earlier not in ids:
                near = get_close_matches(earlier, ids, n=1)
                expected = repr(near[0]) if near else "the name of another job"
                where: dict[str, Any] = {"source": source, "line": line, "field": "after"}
                problem = InputError(
                    "no job of this name", **where, value=earlier, expected=expected
                )
                problems.append(problem)
    try:
        TopologicalSorter({job.job_id: job.after for _, job in jobs}).prepare()
    except CycleError as error:
        circle = " after ".join(error.args[1][::-1])
        lines = {job.job_id: line for line, job in jobs}
        problems.append(
            InputError(
                f"jobs wait for each other: {circle}",
                source=source,
                line=lines.get(error.args[1][0]),
                field="after",
            )
        )
    return problems


def _program(command: str | tuple[str, ...]) -> str:
    """Name of the program a command starts, as far as can be seen."""
    words = command.split() if isinstance(command, str) else command
    return PurePath(words[0]).name or words[0]
