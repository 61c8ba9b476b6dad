"""Nodes as tables and files: the cluster they make, how they change, and what jobs ask of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.model.changing_nodes import changed
from foresail.model.cluster import Cluster, NamedPartitions, Node, Partition, Resources, names_in
from foresail.model.distribution import Floats
from foresail.model.documents import csv_rows, text_of
from foresail.model.errors import InputError
from foresail.model.event import NodeAdded, NodeChange, NodeChanged, NodeRemoved
from foresail.model.preference import Preference, PreferenceKind
from foresail.model.words import count
from foresail.traces import schema
from foresail.traces.workload import Workload

_ONE_PARTITION = "all"


def cluster_of(nodes: pl.DataFrame) -> Cluster:
    """The cluster that a nodes table (``schema.NODES``) describes.

    A row of several equal nodes becomes as many, numbered behind its name; each offers its rack
    (partition), model and gpu. The order of rows means nothing: partitions and nodes are in that of
    their names. A further column, ``schema.SPEED``, says how fast they are.

    Raises ``InputError`` if there are no nodes, one has no cpus or no speed above 0, or two have
    the same name.
    """
    speed = nodes.schema.get(schema.SPEED, pl.Float64())
    if not speed.is_numeric():
        raise InputError(
            "speeds are no numbers", field=schema.SPEED, value=str(speed), expected="Float64"
        )
    by_partition: dict[str, list[Node]] = {}
    names: set[str] = set()
    for row in sorted(nodes.iter_rows(named=True), key=_place):
        partition = ",".join(names_in(row["partition"])) or _ONE_PARTITION
        for node in _nodes_of(row, partition):
            if node.name in names:
                raise InputError("two nodes have the same name", field="node", value=node.name)
            names.add(node.name)
            by_partition.setdefault(partition, []).append(node)
    if not names:
        raise InputError("no nodes", expected="a nodes table with at least one row")
    return Cluster(
        tuple(
            Partition(name, sum((node.total for node in members), Resources()), tuple(members))
            for name, members in by_partition.items()
        )
    )


def _place(row: Mapping[str, Any]) -> tuple[str, int, str]:
    """The order of a row, in which node 2 is before node 10."""
    return row["partition"] or "", len(row["node"]), row["node"]


def processors_of(workload: Workload) -> Cluster:
    """The processors of a workload: one pool, or one for each speed that its nodes have.

    Raises ``InputError`` if the number of processors is unknown, or not that of the nodes that say
    speeds.
    """
    nodes = workload.nodes
    cluster = None if nodes is None or schema.SPEED not in nodes.columns else cluster_of(nodes)
    if cluster is None or not cluster.has_speeds:
        return Cluster.of_processors(workload.processors)
    cpus: dict[float, float] = {}
    for partition in cluster.partitions:
        for node in partition.nodes:
            cpus[node.speed] = cpus.get(node.speed, 0.0) + node.total.cpus
    if sum(cpus.values()) != workload.processors:
        raise InputError(
            "the nodes, which are of several speeds, have another number of processors",
            source=workload.meta.source,
            field="processors",
            value=workload.processors,
            expected=f"{sum(cpus.values()):g}",
        )
    pools = (
        Partition(f"speed-{speed:g}", Resources(cpus[speed]), speed=speed)
        for speed in sorted(cpus, reverse=True)
    )
    return Cluster(tuple(pools))


def _node_of(
    name: str, total: Resources, partition: str, model: str | None, speed: float = 1.0
) -> Node:
    """A node; it offers its ``rack`` (partition), its ``model`` if known, and ``gpu`` if any."""
    attributes = {"rack": partition}
    if model is not None:
        attributes["model"] = model
    if total.gpus:
        attributes["gpu"] = model or "yes"
    return Node(name, total, attributes, speed)


def unknown_preferences(jobs: pl.DataFrame, cluster: Cluster) -> dict[str, list[str]]:
    """Preferences that name what the cluster does not have, or are none at all.

    Parameters
    ----------
    jobs
        Table with the column ``preferred``.
    cluster
        With the nodes that the jobs are to run on.

    Returns
    -------
    dict
        What a job prefers (as the table has it) to the names there are of that kind.
    """
    partitions = sorted(NamedPartitions(cluster).records)
    offered = {
        attribute
        for partition in cluster.partitions
        for node in partition.nodes
        for attribute in node.attributes
    }
    unknown: dict[str, list[str]] = {}
    for text in jobs["preferred"].drop_nulls().unique(maintain_order=True).to_list():
        try:
            preference = Preference.parse(text)
        except InputError:
            unknown[text] = [f"{kind}:name,..." for kind in PreferenceKind]
            continue
        of_partitions = preference.kind is PreferenceKind.PARTITION
        known = partitions if of_partitions else sorted(offered)
        if not set(preference.names) <= set(known):
            unknown[text] = known
    return unknown


def require_known_preferences(jobs: pl.DataFrame, cluster: Cluster, source: str) -> None:
    """Refuse jobs that prefer what the cluster does not have.

    Raises
    ------
    InputError
        Naming the first such job.
    """
    unknown = unknown_preferences(jobs, cluster)
    if unknown:
        text, known = next(iter(unknown.items()))
        job_id = jobs.filter(pl.col("preferred") == text)["job_id"][0]
        raise InputError(
            f"job {job_id} prefers what the cluster does not have",
            source=source,
            field="preferred",
            value=text,
            expected=f"one of {', '.join(known)}",
        )


def _nodes_of(row: Mapping[str, Any], partition: str) -> Iterator[Node]:
    cpus, count = row["cpus"], row["count"]
    if not cpus or cpus <= 0:
        raise InputError("a node without cpus", field="cpus", value=cpus, expected="above 0")
    total = Resources(cpus, row["memory_bytes"] or 0.0, row["gpus"] or 0.0)
    given = row.get(schema.SPEED)
    offered = (total, partition, row["model"], 1.0 if given is None else given)
    if count is None or count == 1:
        yield _node_of(row["node"], *offered)
        return
    for number in range(1, count + 1):
        yield _node_of(f"{row['node']}-{number}", *offered)


_REQUESTED = {
    "cpus": "cpus_per_task",
    "memory_bytes": "memory_bytes_per_task",
    "gpus": "gpus_per_task",
}
"""Column of the nodes table, and of the jobs table."""

_FILTERS = "--filter replayable --filter"
"""Filters that are asked for stand in place of the usual one."""


def shares_of_nodes(workload: Workload) -> Mapping[str, Floats]:
    """Return the share that each job asks for of all that the nodes have, by resource.

    Shape (jobs,) each; by column of the nodes table, and empty where there is no such table.
    """
    if workload.nodes is None:
        return {}
    have = workload.nodes.select(
        (pl.col(name) * pl.col("count").fill_null(1)).sum() for name in _REQUESTED
    ).row(0, named=True)
    asked = workload.jobs.select(
        (pl.col("tasks") * pl.col(column)).fill_null(0.0).alias(name)
        for name, column in _REQUESTED.items()
    )
    return {name: asked[name].to_numpy() / total for name, total in have.items() if total}


def require_processors_bind(workload: Workload) -> None:
    """Refuse jobs that a pool of processors would run as if they asked for these alone.

    Such are jobs that ask for gpus, unless all jobs ask for as many processors (the pool is then
    one of gpus), and those whose memory is, over time, a larger share of what the nodes have
    than their processors are. Without a nodes table nothing is known of memory
    (``memory_left_out``).

    Raises
    ------
    InputError
        With the ways out.
    """
    jobs = workload.jobs
    gpus = pl.col("gpus_per_task").fill_null(0.0)
    some = jobs.filter(pl.col("tasks") > 0)
    asking = some.filter(gpus > 0.0)
    if asking.height and some.filter(gpus != pl.col("cpus_per_task")).height:
        _refuse(workload, asking.height, "gpus", "gpus_per_task", "drop_gpus")
    shares = shares_of_nodes(workload)
    if "memory_bytes" in shares and "cpus" in shares:
        lasting = np.nan_to_num(workload.runtime_seconds)
        memory, cpus = (float(shares[name] @ lasting) for name in ("memory_bytes", "cpus"))
        if memory > cpus:
            many = int((shares["memory_bytes"] > shares["cpus"]).sum())
            _refuse(workload, many, "more memory than processors", "memory_bytes_per_task", "")


def with_processors_alone(workload: Workload) -> Workload:
    """Return the workload without what a pool of processors does not count: memory and gpus."""
    tasks, none = workload.tasks, pl.lit(None, pl.Float64)
    jobs = workload.jobs.with_columns(memory_bytes_per_task=none, gpus_per_task=none)
    if tasks is not None:
        tasks = tasks.with_columns(memory_bytes=none)
    return replace(workload, jobs=jobs, tasks=tasks)


def memory_left_out(workload: Workload) -> str | None:
    """Say that jobs ask for memory of which nobody knows how much there is.

    None where it is known, or no job asks for any.
    """
    asking = workload.jobs.filter(pl.col("memory_bytes_per_task") > 0.0).height
    if not asking or "memory_bytes" in shares_of_nodes(workload):
        return None
    return (
        f"{asking:,} of {count(len(workload), 'job')} ask for memory, which is not counted: "
        "the log does not say how much there is"
    )


def _refuse(workload: Workload, jobs: int, what: str, field: str, without: str) -> None:
    ways = [f"a filter that drops them ({_FILTERS} {without})"] if without else []
    if workload.nodes is not None:
        ways = [
            "--on-nodes (the log says which nodes there are)",
            f"what counts each job by what it asks most of ({_FILTERS} dominant_resource)",
            *ways,
        ]
    raise InputError(
        f"{jobs:,} of {len(workload):,} jobs ask for {what}, and a pool of processors knows only "
        "these",
        source=workload.meta.source,
        field=field,
        expected=", or ".join(ways),
    )


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

    Raises ``InputError`` if the file cannot be read, or a line is no change; names line and column.
    """
    return tuple(change for _, change in _numbered(path))


def require_possible(path: Path, cluster: Cluster) -> None:
    """Refuse changes of a file that the nodes of this cluster cannot go through.

    Raises ``InputError`` if there is no node to change or to remove, or already is one to add;
    names the line.
    """
    for line, change in sorted(_numbered(path), key=lambda each: each[1].time):
        try:
            cluster = changed(cluster, change)
        except InputError as error:
            raise error.placed("", path, line) from error


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
    node = _node_of(name, total, partition, row.get("model") or None, speed)
    return NodeAdded(seconds, node, partition) if kind == "added" else NodeChanged(seconds, node)
