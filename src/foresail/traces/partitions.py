"""Processors of each partition: given, of the nodes, or estimated from a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from foresail.model.cluster import names_in
from foresail.model.errors import InputError
from foresail.model.words import count
from foresail.traces.workload import Workload

_EXPECTED: Final = "names and processors such as A=8,B=8,A+B=4 (4 that belong to both)"
_MOST_NAMED: Final = 6
_WAY_OUT: Final = "--partitions says which processors each has"


def parse_partitions(text: str) -> dict[str, int]:
    """Processors by partition as ``--partitions`` has them; by ``A,B`` those that belong to both.

    Raises ``InputError`` if it is no list of names and whole numbers above 0, or one is there
    twice.
    """
    processors: dict[str, int] = {}
    for piece in text.split(","):
        names, _, number = piece.rpartition("=")
        name = ",".join(names_in(names.replace("+", ",")))
        if not name or not number.strip().isdecimal() or not int(number) or name in processors:
            problem = "a partition is there twice" if name in processors else "no such partition"
            raise InputError(problem, field="--partitions", value=text, expected=_EXPECTED)
        processors[name] = int(number)
    return processors


def named_partitions(workload: Workload) -> dict[str, int]:
    """Jobs by partition that they name, the most first; one that names several counts for each."""
    jobs: dict[str, int] = {}
    for text, many in workload.jobs["partition"].drop_nulls().value_counts().iter_rows():
        for name in names_in(text):
            jobs[name] = jobs.get(name, 0) + many
    return dict(sorted(jobs.items(), key=lambda item: (-item[1], item[0])))


def with_partitions(workload: Workload, processors: Mapping[str, int]) -> Workload:
    """The workload on a machine with these partitions.

    Raises ``InputError`` if they are not all of the machine's processors, or a job names one that
    is none of them.
    """
    total, machine = sum(processors.values()), workload.meta.processors
    if machine not in (None, total):
        raise InputError(
            f"the partitions have {total:,} processors in all",
            source=workload.meta.source,
            field="--partitions",
            value=_listed(processors),
            expected=f"as many as the machine has, {machine:,}",
        )
    known = {name for text in processors for name in names_in(text)}
    unknown = [name for name in named_partitions(workload) if name not in known]
    if unknown:
        raise InputError(
            f"jobs name what --partitions does not have: {few(unknown)}",
            source=workload.meta.source,
            field="partition",
            value=unknown[0],
            expected=f"one of {', '.join(sorted(known))}",
        )
    whole = workload.with_meta(processors=total)
    return _with_sizes(whole, processors, f"Partitions as given: {_listed(processors)} processors")


def largest_partitions(workload: Workload) -> pl.Expr:
    """Processors of the largest partition that each job may run in, or of the machine.

    Partitions are those that the workload has, or will have by its nodes. Raises ``InputError`` if
    it is unknown how many processors the machine has.
    """
    processors = workload.processors
    by_partition = workload.partitions
    if not workload.partitions_said and workload.nodes is not None:
        by_partition = divided(workload).partitions
    if not by_partition:
        return pl.lit(processors)
    sizes: dict[str, int] = {}
    for text, many in by_partition.items():
        for name in names_in(text):
            sizes[name] = sizes.get(name, 0) + many
    anywhere = max(sizes.values())
    most = {
        text: max((sizes[name] for name in names_in(text) if name in sizes), default=anywhere)
        for text in workload.jobs["partition"].drop_nulls().unique().to_list()
    }
    return pl.col("partition").replace_strict(most, default=anywhere, return_dtype=pl.Int64)


def in_one_pool(workload: Workload, because: str) -> Workload:
    """The workload on a machine whose processors all jobs share, whatever partition they name."""
    return _with_sizes(
        workload, {}, f"All partitions are simulated as one pool of processors: {because}"
    )


def divided(workload: Workload) -> Workload:
    """The workload on a machine whose partitions are known, or else on one pool that says why.

    The nodes table has them, if it has any that jobs name. Otherwise a partition has at least
    what its jobs held at once as recorded. What the machine has beyond that belongs to those in
    which no job waited just then: those in which some did were full. Where the largest uses come
    to more processors than there are, partitions share some, and nobody knows which.
    """
    named = named_partitions(workload)
    missing = workload.jobs["partition"].null_count() > 0
    if workload.partitions_said or not named:
        return workload
    sizes_by_nodes = _sizes_by_nodes(workload)
    if not {name for text in sizes_by_nodes for name in names_in(text)}.isdisjoint(named):
        return _by_nodes(workload, sizes_by_nodes, [*named])
    if len(named) == 1:
        only = f"{count(sum(named.values()), 'job')} of {len(workload):,} name {few(named)}"
        return in_one_pool(workload, f"{only}, the others none") if missing else workload
    uses = {name: _largest_use(workload.jobs, name) for name in named}
    unknown = [name for name, use in uses.items() if use is None]
    if unknown:
        return in_one_pool(
            workload, f"no starts are known that show the size of {few(unknown)}; {_WAY_OUT}"
        )
    known = {name: use for name, use in uses.items() if use is not None}
    sizes = {name: most for name, (most, _) in known.items()}
    total, machine = sum(sizes.values()), workload.processors
    if total > machine:
        return in_one_pool(
            workload,
            f"the largest uses at once of {few(named)} come to {total:,} of {machine:,} "
            f"processors, so they share some; {_WAY_OUT}",
        )
    open_ended = {name: most for name, (most, full) in known.items() if not full}
    for name, more in _shared_out(machine - total, open_ended).items():
        sizes[name] += more
    unused = machine - sum(sizes.values())
    said = f"Partitions as estimated from the largest use at once: {_listed(sizes)} processors"
    said += f", {unused:,} in none" if unused else ""
    said += ", and jobs that name none run in any" if missing else ""
    sized = _with_sizes(
        workload.with_meta(processors=machine - unused), sizes, f"{said}; {_WAY_OUT}"
    )
    width = pl.col("tasks") * pl.col("cpus_per_task")
    if sized.jobs.select((width > largest_partitions(sized)).any()).item():
        return in_one_pool(
            workload,
            f"jobs are wider than each that they may run in ({_listed(sizes)}); {_WAY_OUT}",
        )
    return sized


def _with_sizes(workload: Workload, processors: Mapping[str, int], said: str) -> Workload:
    return replace(workload, partitions=processors, partitions_said=f"{said}.")


def _sizes_by_nodes(workload: Workload) -> dict[str, int]:
    """Processors of the nodes by partition; none where there is no table of nodes."""
    sizes: dict[str, int] = {}
    if workload.nodes is None:
        return sizes
    for text, cpus, many in workload.nodes.select("partition", "cpus", "count").iter_rows():
        name = ",".join(names_in(text)) or "all"
        sizes[name] = sizes.get(name, 0) + int(cpus or 0) * (1 if many is None else many)
    return sizes


def _by_nodes(workload: Workload, sizes: Mapping[str, int], named: list[str]) -> Workload:
    known = {name for text in sizes for name in names_in(text)}
    unknown = [name for name in named if name not in known]
    if len(known) == 1 and not unknown:
        return workload
    if len(known) == 1:
        return in_one_pool(
            workload,
            f"all nodes are of {few(known)}, and jobs name others ({few(unknown)}); {_WAY_OUT}",
        )
    if any(name == "dominant_resource" for name, _ in workload.meta.filters):
        return in_one_pool(workload, "jobs count by what they ask most of; try --on-nodes")
    if sum(sizes.values()) != workload.processors:
        return in_one_pool(
            workload,
            f"the nodes have {sum(sizes.values()):,} processors, and the machine has "
            f"{workload.processors:,}; try --on-nodes",
        )
    said = f"Partitions as the nodes have them: {_listed(sizes)} processors"
    said += f"; jobs that name others ({few(unknown)}) run in any" if unknown else ""
    return _with_sizes(workload, sizes, said)


def _largest_use(jobs: pl.DataFrame, partition: str) -> tuple[int, bool] | None:
    """Most processors that jobs of this partition alone held at once, and if any waited then.

    A job that is wider counts, whether its start is known or not. None: no start is known.
    """
    mine = jobs.filter(pl.col("partition").str.strip_chars() == partition).select(
        "submit_seconds",
        pl.col("recorded_wait_seconds").alias("wait"),
        pl.col("runtime_seconds").alias("run"),
        (pl.col("tasks") * pl.col("cpus_per_task")).alias("width"),
    )
    started = mine.filter(pl.col("wait") >= 0.0, pl.col("run") > 0.0)
    if started.is_empty():
        return None
    submit, wait, run, width = (started[name].to_numpy() for name in started.columns)
    times = np.concatenate([submit, submit + wait, submit + wait + run])
    nothing, one = np.zeros(len(width)), np.ones(len(width))
    changes = np.stack(
        [np.concatenate([nothing, width, -width]), np.concatenate([one, -one, nothing])]
    )
    order = np.argsort(times, kind="stable")
    last = np.append(np.diff(times[order]) > 0.0, True)  # whatever happens at one time is one
    held, waiting = changes[:, order].cumsum(axis=1)[:, last]
    most = held.max()
    return int(np.ceil(max(most, mine["width"].max()))), bool(waiting[held == most].any())


def _shared_out(rest: int, among: Mapping[str, int]) -> dict[str, int]:
    """Whole shares in proportion to these amounts."""
    shares: dict[str, int] = {}
    before = 0
    for name, amount in among.items():
        before += amount
        shares[name] = rest * before // sum(among.values()) - sum(shares.values())
    return shares


def _listed(processors: Mapping[str, int]) -> str:
    return few(f"{name.replace(',', '+')} {many:,}" for name, many in processors.items())


def few(words: Iterable[str]) -> str:
    """The first of them, and how many more there are."""
    every = [*words]
    more = len(every) - _MOST_NAMED
    return ", ".join(every[:_MOST_NAMED]) + (f" and {count(more, 'other')}" if more > 0 else "")
