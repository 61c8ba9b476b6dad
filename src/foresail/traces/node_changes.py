"""Files that say which nodes come, change and go, and when."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from foresail.model.changing_nodes import changed
from foresail.model.cluster import Cluster
from foresail.model.documents import csv_rows, text_of
from foresail.model.errors import InputError
from foresail.model.event import NodeAdded, NodeChange, NodeChanged, NodeRemoved
from foresail.model.resources import Resources
from foresail.traces.nodes import node_of

_NEEDED: Final = ("seconds", "change", "node")
_OFFERED: Final = (
    "partition",
    "cpus",
    "memory_bytes",
    "gpus",
    "model",
    "speed",
    "known_from_seconds",
)
_KINDS: Final = ("added", "changed", "removed")


def read_node_changes(path: Path) -> tuple[NodeChange, ...]:
    """The changes of a CSV file with a header, in its order.

    Columns are ``seconds``, ``change`` (added, changed or removed), ``node``, and of a node that is
    added or changed ``partition`` and ``cpus``, if need be ``memory_bytes``, ``gpus``, ``model``
    and ``speed``; of one that is removed, ``known_from_seconds``, if that is known beforehand.

    Raises
    ------
    InputError
        If the file cannot be read, or a line is no change; names line and column.
    """
    return tuple(change for _, change in _numbered(path))


def require_possible(path: Path, cluster: Cluster) -> None:
    """Refuse changes of a file that the nodes of this cluster cannot go through.

    Raises
    ------
    InputError
        If there is no node to change or to remove, or already is one to add; names the line.
    """
    for line, change in sorted(_numbered(path), key=lambda each: each[1].time):
        try:
            cluster = changed(cluster, change)
        except InputError as error:
            raise InputError(
                error.problem,
                source=path,
                line=line,
                field=error.field,
                value=error.value,
                expected=error.expected,
            ) from error


def _numbered(path: Path) -> list[tuple[int, NodeChange]]:
    """Changes of a file, each with its line."""
    rows = csv_rows(text_of(path), path)
    _, header = next(rows, (1, []))
    unknown = [name for name in header if name not in (*_NEEDED, *_OFFERED)]
    missing = [name for name in _NEEDED if name not in header]
    if unknown or missing:
        raise InputError(
            "not the columns of node changes",
            source=path,
            line=1,
            value=",".join(header),
            expected=f"{','.join(_NEEDED)} and some of {','.join(_OFFERED)}",
        )
    changes = []
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(
                "a row of another length",
                source=path,
                line=line,
                value=",".join(row),
                expected=f"{len(header)} fields",
            )
        changes.append((line, _change(dict(zip(header, row, strict=True)), path, line)))
    return changes


def _change(row: Mapping[str, str], path: Path, line: int) -> NodeChange:
    def number(name: str) -> float:
        text = row.get(name, "")
        try:
            value = float(text or 0.0)
        except ValueError:
            value = math.nan
        if not 0.0 <= value < math.inf:
            raise _wrong(name, "a number of at least 0")
        return value

    def _wrong(name: str, expected: str) -> InputError:
        return InputError(
            "not a node change",
            source=path,
            line=line,
            field=name,
            value=row.get(name, ""),
            expected=expected,
        )

    kind, name, seconds = row["change"], row["node"], number("seconds")
    if not name:
        raise _wrong("node", "the name of a node")
    if kind not in _KINDS:
        raise _wrong("change", " or ".join(_KINDS))
    if kind == "removed":
        known = number("known_from_seconds") if row.get("known_from_seconds") else None
        return NodeRemoved(seconds, name, known)
    if row.get("known_from_seconds"):
        raise _wrong("known_from_seconds", "nothing where a node is not removed")
    total = Resources(number("cpus"), number("memory_bytes"), number("gpus"))
    if total.cpus == 0.0:
        raise _wrong("cpus", "above 0")
    partition = row.get("partition", "")
    if not partition:
        raise _wrong("partition", "the partition of the node")
    speed = number("speed") if row.get("speed") else 1.0
    if speed == 0.0:
        raise _wrong("speed", "above 0")
    node = node_of(name, total, partition, row.get("model") or None, speed)
    return NodeAdded(seconds, node, partition) if kind == "added" else NodeChanged(seconds, node)
