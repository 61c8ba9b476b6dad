"""Records of Slurm's accounting as ``sacct`` prints it: any format, delimiter or width, or JSON.

Texts are not quoted there: a name may hold the delimiter and line ends. A record is what the fields
with a form of their own (times, amounts, states) allow, if they allow one way only.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import polars as pl

from foresail.model.errors import InputError
from foresail.traces.delimited import decodable
from foresail.traces.reading import LINE, Notes

_AMOUNT: Final = r"[\d.]*[KMGTP]?[nc]?\??"
_SPAN: Final = r"[\d:.-]*|[A-Za-z_/]+"
FORMS: Final = {
    **dict.fromkeys(("JobID", "JobIDRaw"), r"\d[\w.+]*(?:\[[^\]]*\])?[\w.+]*|"),
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), r"[\d:T+.Z -]*|[A-Za-z/]+"),
    **dict.fromkeys(("Elapsed", "ElapsedRaw", "Suspended", "Timelimit", "TimelimitRaw"), _SPAN),
    **dict.fromkeys(("AllocCPUS", "NCPUS", "ReqCPUS", "AllocNodes", "NNodes"), rf"\d{_AMOUNT}"),
    **dict.fromkeys(("ReqMem", "Restarts", "MaxRSS"), _AMOUNT),
    **dict.fromkeys(("AllocTRES", "ReqTRES"), r"(?:[^=,]+=[^,=]*(?:,[^=,]+=[^,=]*)*)?\+?"),
    "State": r"[A-Za-z_]*(?: by \S+)?\+?",
    **dict.fromkeys(("User", "Account", "QOS", "Partition", "Cluster"), r"[^\n]*"),
    "JobName": r"[\s\S]*",
}
"""Fields that are read, and the form of their texts."""

_FREE: Final = {
    *("jobname", "submitline", "comment", "admincomment", "systemcomment", "workdir", "extra"),
    *("container", "flags", "constraints", "licenses", "reason", "stdout", "stderr"),
}
_LISTS: Final = {"alloctres", "reqtres", "jobid", "jobidraw", "partition", "nodelist"}
"""Fields whose texts may hold the delimiter or line ends, and those that may hold commas."""
_KNOWN: Final = {name.lower(): name for name in FORMS}
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_WITHOUT_HEADER: Final = re.compile(
    r"\s*\d+[\w.+\[\],%-]*[^\w\n].*\b(?:COMPLETED|FAILED|TIMEOUT|PENDING|RUNNING|CANCELLED)\b"
)
_MOST_LINES: Final = 50
_MOST_SURPLUS: Final = 16
"""Lines of one record, and delimiters in its texts."""


@dataclass(frozen=True)
class _Layout:
    """Header of what ``sacct`` printed: names of fields, and what stands between their texts."""

    names: Sequence[str]
    delimiter: str = ""
    columns: Sequence[slice] = ()  # bytes of each field where these have fixed widths
    is_quoted: bool = False  # texts may have quotes around them, as other programs write them

    @classmethod
    def read(cls, head: str, second: str = "", delimiter: str = "") -> _Layout | None:
        """Return the layout by the first two lines; None if they are no header of ``sacct``."""
        columns: list[slice] = []
        if re.fullmatch(r"-{2,}(?: +-{2,})+ *", second):
            columns = [slice(*match.span()) for match in re.finditer("-+", second)]
            found = [head.encode()[each].decode("utf-8", "replace") for each in columns]
        else:
            between = re.search(r"[^A-Za-z0-9]+", head.lstrip('"'))
            delimiter = delimiter or (between[0].strip('"') if between else "")
            found = head.split(delimiter) if delimiter else []
        names = [_KNOWN.get(each.lower(), each) for each in (each.strip('" ') for each in found)]
        whole = names[:-1] if names and not names[-1] else names  # -p ends each with a delimiter
        is_header = all(map(_WORD.fullmatch, whole)) and len({*whole} & FORMS.keys()) > 2
        is_header &= bool({"JobID", "JobIDRaw"} & {*whole})
        is_quoted = len(delimiter) == 1 and (delimiter in ",;\t" or head.startswith('"'))
        return cls(names, delimiter, columns, is_quoted) if is_header else None

    @cached_property
    def forms(self) -> Sequence[tuple[re.Pattern[str], bool]]:
        """Form of each field, and whether its text may hold the delimiter."""
        texts = [FORMS.get(each, "[^\n]*") if each else "" for each in self.names]
        return [
            (re.compile(r"[\s\S]*" if name.lower() in _FREE else form), name.lower() in wide)
            for wide in [_FREE | _LISTS if self.delimiter == "," else _FREE]
            for name, form in zip(self.names, texts, strict=True)
        ]

    def parted(self, text: str) -> list[list[str]]:
        """Return the ways to part a record into its fields: none, one, or more (two are enough)."""
        if self.columns:
            return self._sliced(text.encode())
        pieces = text.split(self.delimiter)
        surplus = len(pieces) - len(self.names)
        if self.is_quoted and '"' in text:
            with suppress(csv.Error):
                rows = csv.reader(io.StringIO(text), delimiter=self.delimiter, strict=True)
                if ways := [row for row in rows if len(row) == len(self.names)][:1]:
                    return ways
        found: dict[tuple[str, ...], list[str]] = {}
        if 0 <= surplus <= _MOST_SURPLUS:
            self._part(pieces, [], surplus, found)
        return [*found.values()]

    def _sliced(self, text: bytes) -> list[list[str]]:
        """Return the fields of a line, between which there are blanks."""
        stops = [each.stop for each in self.columns]
        begins = [*(each.start for each in self.columns[1:]), len(text)]
        if any(text[stop:begin].strip() for stop, begin in zip(stops, begins, strict=True)):
            return []
        return [[text[each].decode("utf-8", "replace") for each in self.columns]]

    def _part(
        self,
        pieces: Sequence[str],
        fields: list[str],
        surplus: int,
        ways: dict[tuple[str, ...], list[str]],
    ) -> None:
        """Add ways to go on from some fields, with so many pieces more than fields are left."""
        at = len(fields)
        begin = len(pieces) - (len(self.names) - at) - surplus
        if not surplus:
            rest = [*fields, *pieces[begin:]]
            fits = all(self.forms[n][0].fullmatch(rest[n]) for n in range(at, len(rest)))
            if fits:
                read = [text for name, text in zip(self.names, rest, strict=True) if name in FORMS]
                ways.setdefault(tuple(read), rest)
        elif at < len(self.names):
            form, is_wide = self.forms[at]
            for more in range(surplus + 1 if is_wide else 1):
                text = self.delimiter.join(pieces[begin : begin + more + 1])
                if len(ways) < 2 and form.fullmatch(text):
                    self._part(pieces, [*fields, text], surplus - more, ways)


def is_accounting(text: str) -> bool:
    """Test whether a file that begins so is of ``sacct``, if only without the header it needs."""
    lines = [*text.lstrip("\r\n").splitlines()[:2], "", ""]
    if text.lstrip().startswith("{"):
        return re.search(r'"(?:jobs|slurm)"\s*:', text) is not None
    return _Layout.read(lines[0], lines[1]) is not None or bool(_WITHOUT_HEADER.match(lines[0]))


def table_of(content: bytes, notes: Notes, delimiter: str = "") -> pl.DataFrame:
    """Return the rows of an output of ``sacct``: the fields that are read, as texts, and ``LINE``.

    A ``delimiter`` with letters has to be given. What cannot be parted is counted in ``notes``.
    Raises ``InputError`` if the header lacks or changes, or JSON is another; as ``Notes.repair``.
    """
    text = decodable(content, notes).decode("utf-8-sig")
    if text.lstrip().startswith("{"):
        rows = [*_of_json(text, notes)]
        kinds = dict.fromkeys(FORMS, pl.String())
        return pl.DataFrame(rows, kinds).with_columns(pl.lit(None, pl.Int64).alias(LINE))
    lines = text.replace("\r\n", "\n").split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    layout = _Layout.read(lines[first], [*lines, ""][first + 1], delimiter)
    if layout is None:
        problem, value = "holds no header line of sacct", lines[0][:80]
        expected = "names of fields, as sacct prints them without -n"
        raise InputError(problem, source=notes.path, line=1, value=value, expected=expected)
    if twice := next((n for n in FORMS if layout.names.count(n) > 1), None):
        raise InputError("two columns of the same name", source=notes.path, field=twice)
    records = _records(lines, first, layout, notes)
    columns = [
        pl.Series(name, [fields[at].strip(" ") for _, fields in records], pl.String)
        for at, name in enumerate(layout.names)
        if name in FORMS
    ]
    return pl.DataFrame([*columns, pl.Series(LINE, [line for line, _ in records], pl.Int64)])


def _records(
    lines: Sequence[str], first: int, layout: _Layout, notes: Notes
) -> list[tuple[int, list[str]]]:
    """Return records with the number of their first line; what is none is counted."""
    head, is_last_free = lines[first], layout.names[-1].lower() in _FREE
    records: list[tuple[int, list[str]]] = []
    lost: list[tuple[int, str]] = []
    at = first + 1
    while at < len(lines):
        begin, text = at, lines[at]
        at += 1
        if not text.strip() or text == head or (layout.columns and not text.strip("- ")):
            continue
        ways = layout.parted(text)
        while not ways and at < min(len(lines), begin + _MOST_LINES) and not layout.columns:
            if layout.parted(lines[at]):
                break
            text = f"{text}\n{lines[at]}"
            at += 1
            ways = layout.parted(text)
        if len(ways) == 1:
            records.append((begin + 1, ways[0]))
            continue
        at, line = begin + 1, lines[begin]
        if _Layout.read(line, delimiter=layout.delimiter):
            problem = "another header than the first one"
            raise InputError(problem, source=notes.path, line=at, value=line[:80], expected=head)
        fields = line.split(layout.delimiter) if layout.delimiter else []
        if len(fields) == len(layout.names) and not ways:
            records.append((at, fields))  # which of them is wrong is said by who reads them
        elif records and is_last_free and len(fields) == 1:
            records[-1][1][-1] += f"\n{line}"
        else:
            wrong = "may be parted in several ways" if ways else f"{len(fields)} fields"
            lost.append((at, f"{wrong}: {line[:60]}"))
    if lost:
        name, (number, value) = "dropped_malformed_line", lost[0]
        expected = f"{len(layout.names)} fields, parted by what no name holds"
        notes.repair(name, len(lost), line=number, value=value, expected=expected)
    return records


def _of_json(text: str, notes: Notes) -> Iterator[dict[str, str]]:
    """Yield the fields of each job that ``sacct --json`` has."""
    try:
        content = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"is no JSON: {error}", source=notes.path, line=line) from error
    expected = "what sacct --json prints, whole"
    for met in content.get("errors") or ():
        problem = "sacct met an error, so jobs may be missing"
        raise InputError(problem, source=notes.path, field="errors", value=met, expected=expected)
    jobs = content.get("jobs")
    for at, job in enumerate(jobs if isinstance(jobs, list) else [None]):
        try:
            yield _of_job(job)
        except (AttributeError, KeyError, TypeError) as error:
            problem, where = "is no job of sacct", f"jobs[{at}]"
            raise InputError(problem, source=notes.path, field=where, expected=expected) from error


def _of_job(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a job, whose numbers may be wrapped, and whose state may be a list."""

    def found(*path: str) -> str:
        value: Any = job
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict) and "set" in value:
            is_number = value["set"] and not value.get("infinite")
            value = value.get("number") if is_number else "UNLIMITED" * bool(value.get("infinite"))
        if isinstance(value, list):
            value = value[0] if value else None
        return "" if value is None else str(value)

    times = {"Submit": "submission", "ElapsedRaw": "elapsed", "TimelimitRaw": "limit"}
    fields = {name: found("time", key) for name, key in times.items() if job["time"]}
    fields |= {name: found("time", name.lower()) for name in ("Eligible", "Start", "End")}
    job_id, array, gang = found("job_id"), found("array", "job_id"), found("het", "job_id")
    if array not in ("", "0"):
        tasks = found("array", "task").strip("[]")
        job_id = f"{array}_" + (f"[{tasks}]" if tasks else found("array", "task_id"))
        job_id = job_id.removesuffix("_")
    elif gang not in ("", "0"):
        job_id = f"{gang}+{found('het', 'job_offset')}"
    fields |= {
        "JobID": job_id,
        "JobIDRaw": found("job_id"),
        "State": found("state", "current"),
        "User": found("user") or found("association", "user"),
        "JobName": found("name"),
        "ReqCPUS": found("required", "CPUs"),
        "AllocNodes": found("allocation_nodes"),
        "Restarts": found("restart_cnt"),
    }
    fields |= {name: found(name.lower()) for name in ("Account", "QOS", "Partition", "Cluster")}
    for kind, unit in (("node", "Mn"), ("cpu", "Mc")):
        if amount := found("required", f"memory_per_{kind}"):
            fields["ReqMem"] = amount + unit
    for name, key in (("AllocTRES", "allocated"), ("ReqTRES", "requested")):
        listed = (job.get("tres") or {}).get(key) or ()
        fields[name] = ",".join(
            f"{each['type']}{'/' * bool(each.get('name'))}{each.get('name') or ''}={each['count']}"
            for each in listed
            if 0
            <= (each.get("count") or -1)
            < 2.0**62  # beyond are numbers in place of an unknown amount
        )
    return fields
