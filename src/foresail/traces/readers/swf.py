"""Standard Workload Format: the logs of the Parallel Workloads Archive, and extended ones."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part
from foresail.model.distribution import Floats, Integers
from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.traces import schema
from foresail.traces.reading import LINE, UNIX_TIMES_BEGIN, Notes, Sample
from foresail.traces.source import LogFile

FIELDS: Final = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average cpu time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
"""The 18 fields of a line, in order, as the format's definition names them."""

_WHOLE_FIELDS: Final = (0, 4, 7, 10, 11, 12, 13, 14, 15, 16)
_IDS: Final = (0, 11, 12, 13, 14, 15, 16)
"""Whole numbers that are names: up to 64 bits, and not to be rounded."""
_FEWEST_NUMBERS: Final = 14
"""The least for a line of this layout; what else is in it is refused with its line."""
_LARGEST_WHOLE: Final = 2.0**53
_IDS_BELOW: Final = 2**64
_KIBIBYTE: Final = 1024.0
_LONGEST_LINE_BYTES: Final = 64 << 20
_SHOWN_CHARACTERS: Final = 80

_STATUS: Final = {
    0.0: "failed",
    1.0: "completed",
    2.0: "partial",
    3.0: "partial",
    4.0: "partial",
    5.0: "cancelled",
}
_DIRECTIVE: Final = re.compile(r";\s?([A-Z][A-Za-z]+):\s*(.*)")
_CONTINUATION: Final = re.compile(r";\s\s+\S")
_NAMED_QUEUE: Final = r"^\{[^}]*\}\s+(\S+)"
_PROCESSORS_PER_NODE: Final = r"^\{[^}]*\}\s.*\s[0-9]+:ppn=([0-9]+)"


@dataclass(frozen=True)
class SwfParameters:
    """Options of the reader.

    Parameters
    ----------
    machines
        File that lists the machine's nodes (tab-separated: id, name, nodes, cpus per node, speed,
        memory in KiB). By default the log's name with ``.machines``, where there is such a file.
    """

    machines: Path | None = None


@register("reader", "swf", parameters=SwfParameters)
class SwfReader:
    """Standard Workload Format, 18 fields a line (gzip, zstd or plain), extended fields kept.

    Unknown (-1) becomes null. A job's tasks are its requested processors, or else the allocated
    ones. Memory is kilobytes per processor in the format, bytes here. Times stay as they are in the
    file, unless they are Unix times: then the first submission is second zero. Lines that are no
    job (a field missing or no number) are dropped and counted, but the first job line must be one.

    Logs of MetaCentrum append node list, queue name and node request; there field 10 is bytes per
    node (its 400 MiB default does not grow with the number of nodes) and the queue is the named
    one.
    """

    def __init__(self, parameters: SwfParameters) -> None:
        self._machines = parameters.machines

    def recognises(self, sample: Sample) -> bool:
        """Comments begin with a semicolon; the first other line has 18 fields, most numbers."""
        if sample.path.is_dir():
            return False
        for line in sample.text.split("\n"):
            words = line.split()
            if words and not words[0].startswith(";"):
                numbers = sum(map(_is_number, words[: len(FIELDS)]))
                return len(words) >= len(FIELDS) and numbers >= _FEWEST_NUMBERS
        return sample.text.lstrip().startswith(";")

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs of the log, a few ten thousand lines at a time."""
        log = _Log(notes)
        source = notes.source()
        for block in _whole_lines(source):
            yield log.parse(block)
        notes.sha256 = source.sha256
        log.read_header()
        self._read_machines(notes)

    def _read_machines(self, notes: Notes) -> None:
        path = self._machines or _machines_beside(notes.path)
        if path is None:
            return
        notes.nodes = _machines(path)
        if notes.processors is None:
            notes.processors = int((notes.nodes["count"] * notes.nodes["cpus"]).sum()) or None


class _Log:
    """Parses one log, block by block."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._lines_before = 0
        self._header: list[str] = []
        self._first_job_seen = False

    def parse(self, text: bytes) -> pl.DataFrame:
        """The jobs in some whole lines."""
        block, lines = _parse_block(np.frombuffer(text, dtype=np.uint8))
        if not self._first_job_seen:
            self._header += [self._decoded(text[start:end]) for start, end in block.comments]
        long_ids = _finish_slow_numbers(block, text)
        _demand_whole_numbers(block, long_ids)
        self._drop_malformed(block, text)
        raw = self._raw(block, text, long_ids)
        if raw.height and not self._first_job_seen:
            self._first_job_seen = True
            self._notes.unix_times = raw["submit time"][0] >= UNIX_TIMES_BEGIN
        self._lines_before += lines
        unknown = ~raw["status"].is_in([-1.0, *_STATUS])
        self._notes.repair_rows("unknown_for_undefined_status", raw, unknown, "status", "-1 to 5")
        self._count_negative_processors(raw)
        return _in_canonical_columns(self._without_partial_executions(raw))

    def read_header(self) -> None:
        """Put what the directives say into the notes."""
        header: dict[str, str] = {}
        last: str | None = None
        for comment in self._header:
            directive = _DIRECTIVE.match(comment)
            if directive:
                last, text = directive[1], directive[2].strip()
                header[last] = f"{header[last]}\n{text}" if last in header else text
            elif last and _CONTINUATION.match(comment):
                header[last] += " " + comment[1:].strip()
            else:
                last = None
        notes = self._notes
        notes.header |= header
        notes.processors = self._whole("MaxProcs") or self._whole("MaxNodes") or None
        notes.time_zone = header.get("TimeZoneString")
        origin = self._whole("UnixStartTime")
        notes.origin_unix_seconds = None if origin is None else float(origin)

    def _whole(self, directive: str) -> int | None:
        text = self._notes.header.get(directive)
        if text is None or text.startswith("-1"):
            return None
        number = re.match(r"[0-9]{1,15}\b", text)
        if number is None:
            self._notes.repair(
                "ignored_header_directive", field=directive, value=text, expected="a number"
            )
            return None
        return int(number[0])

    def _decoded(self, text: bytes) -> str:
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError:
            shown = text[:_SHOWN_CHARACTERS]
            self._notes.repair("replaced_undecodable_text", value=shown, expected="UTF-8 text")
            return text.decode("utf-8", errors="replace")

    def _drop_malformed(self, block: Block, text: bytes) -> None:
        """Count lines that are no jobs; an error when strict or when it is the first job line."""
        wrong = np.flatnonzero(block.kinds != GOOD)
        if not wrong.size:
            return
        first = self._malformed(block, text, int(wrong[0]))
        if self._notes.strict or (wrong[0] == 0 and not self._first_job_seen):
            raise first
        self._notes.repair(
            "dropped_malformed_line",
            int(wrong.size),
            line=first.line,
            field=first.field,
            value=first.value,
            expected=first.expected,
        )

    def _malformed(self, block: Block, text: bytes, row: int) -> InputError:
        """Return what is wrong with a job line."""
        in_block, detail = int(block.lines[row]), int(block.details[row])
        words = text.split(b"\n", in_block + 1)[in_block].split()
        line = self._lines_before + in_block + 1
        if block.kinds[row] == TOO_FEW_FIELDS:
            return InputError(
                "too few fields",
                source=self._notes.path,
                line=line,
                value=len(words),
                expected=f"at least {len(FIELDS)} fields",
            )
        whole = "a whole number of 64 bits" if detail in _IDS else "a whole number"
        return InputError(
            "no usable number",
            source=self._notes.path,
            line=line,
            field=FIELDS[detail],
            value=words[detail][:_SHOWN_CHARACTERS].decode("utf-8", errors="backslashreplace"),
            expected=whole if detail in _WHOLE_FIELDS else "a number",
        )

    def _raw(self, block: Block, text: bytes, long_ids: LongIds) -> pl.DataFrame:
        """The good job lines: a column per field (-1 for unknown), ``LINE`` and ``extra``.

        Where a field has long ids, there is a further column of these alone.
        """
        raw = pl.DataFrame({name: block.values[at] for at, name in enumerate(FIELDS)})
        for field, ids in long_ids.items():
            exact = pl.Series([ids.get(row) for row in range(raw.height)], dtype=pl.String)
            raw = raw.with_columns(exact.alias(_LONG + FIELDS[field]))
        raw = raw.with_columns(pl.Series(LINE, block.lines + self._lines_before + 1))
        good = block.kinds == GOOD
        starts, ends = block.rest[:, 0], block.rest[:, 1]
        extra: list[str | None] = [None] * raw.height
        for row in np.flatnonzero(good & (ends > starts)).tolist():
            extra[row] = self._decoded(text[starts[row] : ends[row]])
        raw = raw.with_columns(pl.Series("extra", extra, dtype=pl.String))
        return raw if good.all() else raw.filter(good)

    def _count_negative_processors(self, raw: pl.DataFrame) -> None:
        """Count negative numbers but -1, which says that processors are not known."""
        for name in ("requested processors", "allocated processors"):
            repair = f"unknown_for_negative_{name.replace(' ', '_')}"
            self._notes.repair_rows(repair, raw, raw[name] < -1, name, "-1 or more")

    def _without_partial_executions(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Without the bursts of swapped-out jobs: lines with no submission that follow a sum."""
        burst = raw["status"].is_in([2.0, 3.0, 4.0]) & (raw["submit time"] < 0)
        if not burst.any():
            return raw
        self._notes.repair(
            "dropped_partial_execution",
            int(burst.sum()),
            line=raw[LINE][burst.arg_max() or 0],
            field="status",
            expected="one line a job",
        )
        return raw.filter(~burst)


def _whole_lines(source: LogFile) -> Iterator[bytes]:
    rest, mark = b"", codecs.BOM_UTF8
    for each in source.blocks():
        block, mark = each.removeprefix(mark), b""
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = block[end:]
        else:
            rest += block
        if len(rest) > _LONGEST_LINE_BYTES:
            raise InputError("a line without end", source=source.path, expected="lines of text")
    if rest:
        yield rest


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


LongIds = dict[int, dict[int, str]]
"""Ids of so many digits that a float cannot distinguish them, by field and row."""

_LONG: Final = "long "


def _finish_slow_numbers(block: Block, text: bytes) -> LongIds:
    """Read the numbers of many digits; returns those that are ids."""
    long_ids: LongIds = {}
    for row, field, start, end in block.slow.tolist():
        value = float(text[start:end])
        if math.isfinite(value):
            block.values[field, row] = value
        else:
            _mark(block, np.array([row]), field)
        if field in _IDS and text[start:end].isdigit() and int(text[start:end]) < _IDS_BELOW:
            long_ids.setdefault(field, {})[row] = str(int(text[start:end]))
    return long_ids


def _demand_whole_numbers(block: Block, long_ids: LongIds) -> None:
    for field in _WHOLE_FIELDS:
        values = block.values[field]
        wrong = (np.floor(values) != values) | (np.abs(values) >= _LARGEST_WHOLE)
        wrong[list(long_ids.get(field, ()))] = False
        if field == 0:
            wrong |= values < 0
        wrong &= block.kinds == GOOD
        if wrong.any():
            _mark(block, np.flatnonzero(wrong), field)


def _mark(block: Block, rows: Integers, field: int) -> None:
    block.kinds[rows] = NOT_A_NUMBER
    block.details[rows] = field


def _in_canonical_columns(raw: pl.DataFrame) -> pl.DataFrame:
    def known(name: str) -> pl.Expr:
        return pl.when(pl.col(name) != -1).then(pl.col(name))

    def positive(name: str) -> pl.Expr:
        return pl.when(pl.col(name) > 0).then(pl.col(name))

    def text(name: str) -> pl.Expr:
        short = pl.when(pl.col(name) >= 0).then(pl.col(name)).cast(pl.Int64, strict=False)
        written = [pl.col(_LONG + name)] if _LONG + name in raw.columns else []
        return pl.coalesce(*written, short.cast(pl.String))

    tasks = pl.coalesce(positive("requested processors"), positive("allocated processors"))
    memory, queue = known("requested memory") * _KIBIBYTE, text("queue")
    if raw["extra"].null_count() < raw.height:
        extended = pl.col("extra").str.starts_with("{")
        per_node = pl.col("extra").str.extract(_PROCESSORS_PER_NODE).cast(pl.Float64)
        per_task = known("requested memory") / pl.coalesce(per_node, tasks)
        memory = pl.when(extended).then(per_task).otherwise(memory)
        queue = pl.coalesce(pl.col("extra").str.extract(_NAMED_QUEUE), queue)
    return raw.select(
        text("job number").alias("job_id"),
        pl.col("submit time").alias("submit_seconds"),
        known("wait time").alias("recorded_wait_seconds"),
        known("run time").alias("runtime_seconds"),
        tasks.cast(pl.Int64).alias("tasks"),
        pl.lit(1.0).alias("cpus_per_task"),
        memory.alias("memory_bytes_per_task"),
        known("requested time").alias("requested_seconds"),
        positive("allocated processors").alias("allocated_cpus"),
        known("average cpu time").alias("used_cpu_seconds"),
        (known("used memory") * _KIBIBYTE).alias("used_memory_bytes"),
        pl.col("status")
        .replace_strict(_STATUS, default=None, return_dtype=pl.String)
        .alias("status"),
        text("user").alias("user"),
        text("group").alias("group"),
        queue.alias("queue"),
        text("partition").alias("partition"),
        text("executable").alias("executable"),
        text("preceding job").alias("after_job_id"),
        known("think time").alias("think_seconds"),
        "extra",
        LINE,
    )


def _machines_beside(log: Path) -> Path | None:
    """``log.swf.machines.gz`` for ``log.swf.gz``, and so on, where it exists."""
    compression = log.suffix if log.suffix in (".gz", ".zst") else ""
    bare = log.name.removesuffix(compression)
    names = (f"{bare}.machines{ending}" for ending in (compression, "", ".gz", ".zst"))
    return next((path for name in names if (path := log.with_name(name)).is_file()), None)


def _machines(path: Path) -> pl.DataFrame:
    """Nodes table of a machine list."""
    rows = []
    lines = b"".join(LogFile(path).blocks()).decode("utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        words = line.split("\t")
        if not line.strip():
            continue
        usable = len(words) == 6 and all(_is_number(word) for word in (*words[2:4], words[5]))
        if not usable or not 0.0 <= float(words[2]) < _LARGEST_WHOLE:
            raise InputError(
                "not a line of a machine list",
                source=path,
                line=number,
                value=line[:_SHOWN_CHARACTERS],
                expected="id, name, nodes, cpus per node, speed and memory in KiB, tab-separated",
            )
        rows.append(
            {
                "node": words[1],
                "partition": words[1],
                "count": int(float(words[2])),
                "cpus": float(words[3]),
                "memory_bytes": float(words[5]) * _KIBIBYTE,
                "gpus": 0.0,
                "model": None,
            }
        )
    return pl.DataFrame(rows, schema=schema.NODES)


NUMBERS: Final = len(FIELDS)

# What a line turned out to be.
GOOD: Final = 0
TOO_FEW_FIELDS: Final = 1
NOT_A_NUMBER: Final = 2

_EXACT_DIGITS = 15
_EXACT_POWER = 22
_POWERS_OF_TEN = 10.0 ** np.arange(_EXACT_POWER + 1)


@part
def _is_blank(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13


@part
def _number(text: NDArray[np.uint8], start: int, end: int) -> tuple[float, int]:
    """Value of ``text[start:end]`` and 0; or 1 where it needs a slower parser, 2 where it is none.

    Accepted: sign, digits with at most one point among or around them, optional exponent. Up to 15
    digits and 22 decimals the quotient of two exact doubles is correctly rounded.
    """
    at = start
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    mantissa = 0
    digits = 0
    decimals = 0
    point = False
    while at < end:
        byte = text[at]
        if 48 <= byte <= 57:
            # Further digits do not fit in 64 bits; such numbers go to the slower parser.
            if digits < 18:
                mantissa = mantissa * 10 + (byte - 48)
            digits += 1
            decimals += point
        elif byte == 46 and not point:
            point = True
        else:
            break
        at += 1
    if digits == 0:
        return 0.0, 2
    if at < end:
        if text[at] != 101 and text[at] != 69:
            return 0.0, 2
        at += 1
        if at < end and (text[at] == 45 or text[at] == 43):
            at += 1
        if at == end:
            return 0.0, 2
        while at < end:
            if not 48 <= text[at] <= 57:
                return 0.0, 2
            at += 1
        return 0.0, 1
    if digits > _EXACT_DIGITS or decimals > _EXACT_POWER:
        return 0.0, 1
    value = mantissa / _POWERS_OF_TEN[decimals]
    return (-value if negative else value), 0


@bare_kernel
def parse_lines(
    text: NDArray[np.uint8],
    values: Floats,
    lines: Integers,
    kinds: Integers,
    details: Integers,
    rest: Integers,
    comments: Integers,
    slow: Integers,
) -> tuple[int, int, int]:
    """Parse whole lines of an SWF log into the arrays of a ``Block``, which have room for all.

    Returns the number of job lines, of comment lines and of slow numbers.
    """
    jobs = 0
    remarks = 0
    slows = 0
    line = -1
    at = 0
    size = text.size
    while at < size:
        line += 1
        while at < size and text[at] != 10 and _is_blank(text[at]):
            at += 1
        if at == size:
            break
        if text[at] == 10:
            at += 1
            continue
        if text[at] == 59:
            comments[remarks, 0] = at
            while at < size and text[at] != 10:
                at += 1
            comments[remarks, 1] = at
            remarks += 1
            at += 1
            continue
        kind = GOOD
        field = 0
        detail = 0
        first_slow = slows
        while field < NUMBERS and at < size and text[at] != 10:
            start = at
            while at < size and not _is_blank(text[at]):
                at += 1
            if kind == GOOD:
                value, outcome = _number(text, start, at)
                values[field, jobs] = value
                if outcome == 1:
                    slow[slows, 0] = jobs
                    slow[slows, 1] = field
                    slow[slows, 2] = start
                    slow[slows, 3] = at
                    slows += 1
                elif outcome == 2:
                    kind = NOT_A_NUMBER
                    detail = field
            field += 1
            while at < size and text[at] != 10 and _is_blank(text[at]):
                at += 1
        start = at
        end = at
        while at < size and text[at] != 10:
            if not _is_blank(text[at]):
                end = at + 1
            at += 1
        at += 1
        if field < NUMBERS:
            kind = TOO_FEW_FIELDS
            detail = field
        # Nothing of a malformed line counts, slow numbers that were noted of it included.
        if kind != GOOD:
            slows = first_slow
            for index in range(NUMBERS):
                values[index, jobs] = -1.0
        lines[jobs] = line
        kinds[jobs] = kind
        details[jobs] = detail
        rest[jobs, 0] = start
        rest[jobs, 1] = end
        jobs += 1
    return jobs, remarks, slows


class Block(NamedTuple):
    """Findings about some lines: a row per job line, but for ``comments`` and ``slow``."""

    values: Floats
    """The numeric fields; shape (NUMBERS, job lines)."""
    lines: Integers
    """Number of the line within the text, from zero."""
    kinds: Integers
    """GOOD, TOO_FEW_FIELDS or NOT_A_NUMBER."""
    details: Integers
    """Number of fields found, or the index of the field that is no number."""
    rest: Integers
    """Start and end of the text beyond the last field, shape (job lines, 2); empty: equal."""
    comments: Integers
    """Start and end of each comment line; shape (comments, 2)."""
    slow: Integers
    """Job line, field, start and end of numbers left to a slower parser; shape (numbers, 4)."""


def _parse_block(text: NDArray[np.uint8]) -> tuple[Block, int]:
    """Parse whole lines of an SWF log: the findings, and the number of lines in ``text``."""
    lines = int(np.count_nonzero(text == 10)) + bool(text.size and text[-1] != 10)
    block = Block(
        values=np.empty((NUMBERS, lines)),
        lines=np.empty(lines, dtype=np.int64),
        kinds=np.empty(lines, dtype=np.int64),
        details=np.empty(lines, dtype=np.int64),
        rest=np.empty((lines, 2), dtype=np.int64),
        comments=np.empty((lines, 2), dtype=np.int64),
        slow=np.empty((lines * NUMBERS, 4), dtype=np.int64),
    )
    jobs, comments, slow = parse_lines(text, *block)
    return Block(
        block.values[:, :jobs],
        block.lines[:jobs],
        block.kinds[:jobs],
        block.details[:jobs],
        block.rest[:jobs],
        block.comments[:comments],
        block.slow[:slow],
    ), lines
