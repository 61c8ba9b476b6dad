"""Commands of Slurm that any user may run, the rows that they print, and what texts there mean.

Names are free text: so behind each field stands a marker, drawn for each call, that no name has.
22.05 and 24.11 print the same fields so; their JSON differs, and takes ten times as long.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from foresail.model.cluster import Resources
from foresail.model.errors import InputError
from foresail.traces.reading import Notes
from foresail.traces.sacct import table_of

_SAME: Final = {"LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}
_OWN_WISHES: Final = ("SQUEUE_", "SINFO_", "SACCT_")  # variables that change what is printed
_STATES: Final = "PENDING,RUNNING,SUSPENDED,CONFIGURING,COMPLETING,STOPPED,SIGNALING,RESIZING"
NOTHING: Final = frozenset({"", "N/A", "NONE", "(null)", "Unknown", "None", "Invalid", "n/a"})
_UNLIMITED: Final = NOTHING | {"UNLIMITED", "INVALID", "NOT_SET", "Partition_Limit", "infinite"}
_CLOCK: Final = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")
_ACCOUNTING: Final = (
    "JobID,State,User,Account,QOS,Partition,JobName,ReqTRES,Submit,Eligible,Start,End,TimelimitRaw"
)
MEBIBYTE: Final = 1024.0**2
_UNITS: Final = {unit: 1024.0**power for power, unit in enumerate(("", *"KMGTP"))}
_COUNTED: Final = frozenset({"cpu", "mem", "node", "billing", "energy"})


class QueueRow(NamedTuple):
    """Row of ``squeue``: a job, or one task of an array; a short form alone has excluded nodes."""

    JobArrayID: str
    StateCompact: str
    Reason: str
    Partition: str
    UserName: str
    Account: str
    QOS: str
    Name: str
    tres_alloc: str
    OverSubscribe: str
    TimeLimit: str
    SubmitTime: str
    EligibleTime: str
    StartTime: str
    PriorityLong: str
    Feature: str
    Licenses: str
    Reservation: str
    ReqNodes: str
    Dependency: str
    excluded: str


class LifeRow(NamedTuple):
    """Row of ``squeue`` of a job that waits, runs or ended not long ago: where it stands."""

    JobArrayID: str
    StateCompact: str
    StartTime: str
    EndTime: str
    RestartCnt: str
    NodeList: str
    Reason: str
    PriorityLong: str
    admin_comment: str
    comment: str = ""
    cpus_per_task: str = ""
    tres_alloc: str = ""
    NTPerNode: str = ""


class NodeRow(NamedTuple):
    """Row of ``sinfo -N``: a node in one of its partitions."""

    NodeList: str
    PartitionName: str
    StateComplete: str
    CPUsState: str
    Memory: str
    OverSubscribe: str
    PriorityTier: str
    Features: str = ""


def environment() -> dict[str, str]:
    """Return the variables with which commands of Slurm print the same everywhere."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(_OWN_WISHES)}
    return own | _SAME


def output(arguments: Sequence[str], seconds: float = 60.0) -> str:
    """Run a command of Slurm, return what it prints; ``InputError`` if it fails or is too slow."""
    command = arguments[0]
    env = environment()
    try:
        done = subprocess.run(
            arguments, stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(str(error)[:200], source=command, expected="Slurm") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").splitlines() or [""]
        said = "".join(each for each in lines[0] if each.isprintable()).strip()
        raise InputError(said or f"failed with exit status {done.returncode}", source=command)
    return done.stdout.decode("utf-8", "replace")


def read_queue() -> list[QueueRow]:
    """Return what waits and runs; raises as ``output``."""
    rows = framed_rows(QueueRow._fields[:-1], "squeue", "-a", "-h", "-r", "-t", _STATES)
    mark = f"x{secrets.token_hex(8)}"
    words = ["squeue", "-a", "-h", "-r", "-t", "PENDING", "-o", f"%i{mark}%x{mark}"]
    excluded = {row[0]: row[1] for row in framed(output(words), mark, 2)}
    return [QueueRow._make((*row, excluded.get(row[0], ""))) for row in rows]


def read_lives() -> list[LifeRow]:
    """Return all that wait, run, or ended not long ago, as they came; raises as ``output``."""
    asked = "squeue", "-a", "-h", "-r", "-t", "all"
    rows = map(LifeRow._make, framed_rows(LifeRow._fields, *asked))
    return sorted(rows, key=lambda row: [*map(int, re.findall(r"\d+", row.JobArrayID))])


def read_nodes() -> list[NodeRow]:
    """Return all nodes, each once for each of its partitions; raises as ``output``."""
    return [*map(NodeRow._make, framed_rows(NodeRow._fields, "sinfo", "-a", "-h", "-N"))]


def framed_rows(fields: Sequence[str], *words: str) -> list[tuple[str, ...]]:
    """Return rows of a command that prints these fields with ``-O``; raises as ``output``."""
    mark = f"x{secrets.token_hex(8)}"
    names = (name.replace("_", "-").replace("admin-", "admin_") for name in fields)
    asked = ",".join(f"{name}:0{mark}" for name in names)
    return [*framed(output([*words, "-O", asked]), mark, len(fields))]


def read_accounting(begin_seconds: float) -> pl.DataFrame:
    """Return the texts of attempts that were there since a Unix time; raises as ``output``."""
    mark = f"x{secrets.token_hex(8)}"
    words = ["sacct", "-a", "-D", "-X", "-p", f"--delimiter={mark}", "-E", "now"]
    words += ["-S", f"uts{begin_seconds:.0f}", "-o", _ACCOUNTING]
    return table_of(output(words).encode(), Notes(Path(words[0])), mark)


def framed(text: str, mark: str, fields: int) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a text with a marker behind each field; ``InputError`` if it is cut off."""
    pieces = text.split(mark)
    rest = pieces.pop()
    if len(pieces) % fields or rest.strip("\n"):
        raise InputError("an output of Slurm that is not whole", value=rest[-60:])
    for begin in range(0, len(pieces), fields):
        yield (pieces[begin].removeprefix("\n"), *pieces[begin + 1 : begin + fields])


def nodes_of(text: str) -> list[str]:
    """Return the names in a list of nodes such as ``n[1-3,07],gpu``."""
    names: list[str] = []
    for word in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text if text not in NOTHING else ""):
        pieces = re.findall(r"\[[^\]]*\]|[^\[]+", word)
        ways = [_numbers(each[1:-1]) if each.startswith("[") else [each] for each in pieces]
        names += map("".join, product(*ways))
    return names


def _numbers(text: str) -> Iterator[str]:
    for each in text.split(","):
        first, _, last = each.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            yield from (f"{at:0{len(first)}}" for at in range(int(first), int(last or first) + 1))


def moment(text: str) -> float | None:
    """Return a moment in Unix seconds; None where there is none (yet)."""
    return None if text in NOTHING else number(text)


def limit_seconds(text: str) -> float | None:
    """Return a limit (``1-02:03:04``, ``2:00``, or minutes) in seconds; None for no limit."""
    if text in _UNLIMITED:
        return None
    parts = _CLOCK.fullmatch(text)
    if parts is None:
        return 60.0 * number(text)
    days, hours, minutes, seconds = (int(each or 0) for each in parts.groups())
    return 60.0 * (60.0 * (24.0 * days + hours) + minutes) + seconds


def resources_of(tres: str) -> tuple[Resources, tuple[str, ...]]:
    """Return cpus and memory of a list of resources, and the names of all others."""
    amounts: dict[str, float] = {}
    for each in tres.split(",") if tres not in NOTHING else ():
        name, _, text = each.partition("=")
        known = _AMOUNT.fullmatch(text)
        if known is None:
            raise InputError("not an amount of a resource", value=each, expected="cpu=4, mem=2G")
        unit = MEBIBYTE if name == "mem" and not known[2] else _UNITS[known[2]]
        amounts[name] = float(known[1]) * unit
    others = tuple(name for name in amounts if name not in _COUNTED)
    return Resources(amounts.get("cpu", 0.0), amounts.get("mem", 0.0)), others


def nodes_asked(life: LifeRow) -> int:
    """Return how many nodes a job takes at least; 1 where it does not say."""
    found = re.search(r"(?:^|,)node=(\d{1,9})(?:,|$)", life.tres_alloc)
    return int(found[1]) if found else 1


def number(text: str) -> float:
    """Return a number; raises ``InputError`` if it is none."""
    if not text.replace(".", "", 1).isdecimal() or not text.isascii():
        raise InputError("not a number", value=text[:60], expected="a number in what Slurm prints")
    return float(text)
