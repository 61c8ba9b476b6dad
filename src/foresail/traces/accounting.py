"""Accounting as Slurm and others write it: amounts, steps and arrays among jobs, suspension."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from foresail.traces.reading import LINE, Notes

UNSET: Final = (2.0**32 - 1, 2.0**32 - 2, 2.0**64)
"""Numbers that Slurm's database holds in place of an amount that is unlimited or was not set; of 64
bits there are two such as well, which are one float."""

UNKNOWN_WORDS: Final = (
    *("Unknown", "None", "N/A", "(null)", "INVALID"),
    *("UNLIMITED", "Partition_Limit"),
)
"""Texts in place of an amount that is not known, and of a limit where there is none."""

PER_TASK: Final = ("memory_bytes_per_task", "gpus_per_task")
"""Columns whose amounts accounting may give of a job, a node or a cpu instead."""

_SHARE: Final = "__share__"
NODES: Final = "__nodes__"  # column of how many nodes a job has
_CLOCK: Final = r"^(?:(\d+)-)?(\d+):([0-5]?\d):([0-5]?\d(?:\.\d+)?)$"
_SHORT_CLOCK: Final = r"^()()(\d+):([0-5]\d\.\d+)$"
"""Slurm writes thousandths of seconds where it leaves out hours, and only there."""
_SIZE: Final = r"^(\d+(?:\.\d*)?)([KMGTP]?)(?:i?B)?([nc]?)$"
_RESOURCES: Final = r"^(?:[\w/:.-]+=[^,=]*)(?:,[\w/:.-]+=[^,=]*)*$"
_OF_JOB, _OF_NODE, _OF_CPU = "job", "n", "c"
_SIZE_UNITS: Final = {unit: 1024.0**power for power, unit in enumerate(("", *"KMGTP"))}
_MEBIBYTE: Final = 1024.0**2


def with_amounts(
    table: pl.DataFrame, column: str, canonical: str, source: str, factor: float
) -> pl.DataFrame:
    """The table with what a text column holds of such amounts as texts of plain numbers.

    They are divided by ``factor``, the unit that the mapping says plain numbers have. Of a column
    of ``PER_TASK``, which share of the job each is of is kept for ``of_one_task``.
    """
    text = pl.col(column)
    amount, share = pl.lit(None, pl.Float64), pl.lit(None, pl.String)
    if canonical.endswith("_seconds"):
        amount = clock_seconds(text)
    else:
        resources = pl.when(text.str.contains(_RESOURCES)).then(text)
        if "memory" in canonical:
            amount = pl.coalesce(
                _size(text), _size(_counted(resources, "mem")), _megabytes(resources)
            )
            of_job = pl.lit(_OF_JOB if source == "ReqMem" else None)
            share = text.str.extract(_SIZE, 3).replace("", None).fill_null(of_job)
        else:
            amount = _gpus(resources) if "gpus" in canonical else _cpus(resources)
        share = pl.when(resources.is_not_null()).then(pl.lit(_OF_JOB)).otherwise(share)
        nodes = pl.coalesce(_counted(resources, "node"), _counted(resources, "4"))
        if canonical in PER_TASK:
            known = table[NODES] if NODES in table.columns else pl.lit(None)
            table = table.with_columns(pl.coalesce(nodes.cast(pl.Float64), known).alias(NODES))
            table = table.with_columns(
                pl.when(amount.is_not_null()).then(share).alias(_SHARE + canonical)
            )
    plain = (amount / factor).cast(pl.String)
    return table.with_columns(pl.coalesce(plain, pl.col(column)).alias(column))


def of_one_task(table: pl.DataFrame, target: str, canonical: str, tasks: str, cpus: str) -> pl.Expr:
    """The amounts of a column of ``PER_TASK``, each of one task; of unknown nodes there is one."""
    amount, share = pl.col(target), _SHARE + canonical
    if share not in table.columns:
        return amount
    of_all = pl.max_horizontal(pl.col(tasks), 1)
    nodes = pl.col(NODES).fill_null(1.0)
    return (
        pl.when(pl.col(share) == _OF_JOB)
        .then(amount / of_all)
        .when(pl.col(share) == _OF_NODE)
        .then(amount * nodes / of_all)
        .when(pl.col(share) == _OF_CPU)
        .then(amount * pl.col(cpus))
        .otherwise(amount)
        .alias(target)
    )


def clock_seconds(text: pl.Expr) -> pl.Expr:
    """Seconds of a clock with days or without; null where a text is none."""
    return pl.coalesce(_clock(text, _CLOCK), _clock(text, _SHORT_CLOCK))


def _clock(text: pl.Expr, pattern: str) -> pl.Expr:
    days, hours, minutes, seconds = (
        text.str.extract(pattern, group).replace("", None).cast(pl.Float64, strict=False)
        for group in range(1, 5)
    )
    return ((days.fill_null(0.0) * 24 + hours.fill_null(0.0)) * 60 + minutes) * 60 + seconds


def _size(text: pl.Expr) -> pl.Expr:
    """Bytes of a size with a unit or a share behind it; null where there is neither."""
    unit = text.str.extract(_SIZE, 2).replace_strict(_SIZE_UNITS, default=None)
    is_plain = text.str.contains(r"^[\d.]*$")
    return pl.when(~is_plain).then(text.str.extract(_SIZE, 1).cast(pl.Float64) * unit)


def _counted(resources: pl.Expr, name: str) -> pl.Expr:
    return resources.str.extract(rf"(?:^|,){name}=(\d[^,]*)", 1)


def _cpus(resources: pl.Expr) -> pl.Expr:
    named = pl.coalesce(_counted(resources, "cpu"), _counted(resources, "1"))
    return named.cast(pl.Float64, strict=False)


def _gpus(resources: pl.Expr) -> pl.Expr:
    """Gpus in all; where they are listed by model as well, no gpu is counted twice."""
    by_model = resources.str.extract_all(r"gres/gpu:[^=,]+=\d+")
    models = by_model.list.eval(pl.element().str.extract(r"=(\d+)$", 1).cast(pl.Float64)).list.sum()
    numbered = resources.str.extract_all(r"(?:^|,)1\d\d\d=\d+")  # a site's own resources
    most = numbered.list.eval(pl.element().str.extract(r"=(\d+)$", 1).cast(pl.Float64)).list.max()
    in_all = _counted(resources, "gres/gpu").cast(pl.Float64, strict=False)
    found = pl.coalesce(in_all, pl.when(by_model.list.len() > 0).then(models), most, pl.lit(0.0))
    return pl.when(resources.is_not_null()).then(found)


def _megabytes(resources: pl.Expr) -> pl.Expr:
    """Memory among resources where it has no unit, by name or its number in the database."""
    found = pl.coalesce(_counted(resources, "2"), _counted(resources, "mem"))
    return found.cast(pl.Float64, strict=False) * _MEBIBYTE


ELAPSED: Final = ("ElapsedRaw", "Elapsed", "time_suspended")
"""Columns that say for how long a job ran, or did not, between its start and its end."""

STEP: Final = r"^(.+)\.(?:batch|extern|interactive|TBD\+?|\d+(?:\+\d*)?)$"
"""Ids of steps: that of their job, and a name or number of their own, that of a component behind
it; what has none yet is to be done."""

PENDING_ARRAY: Final = r"^(.+)_\[([\d,:-]+)(?:\.\.\.)?(?:%\d+)?\]$"
"""Ids of such arrays; of a long list Slurm writes the beginning, and dots."""
_SPAN: Final = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")
_MOST_TASKS: Final = 4_000_000
"""The most that Slurm lets an array have."""


class Folding:
    """Folds steps into their jobs, where these stand in the same chunk or in the one before."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._before = pl.Series([], dtype=pl.String)

    def jobs(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows that are jobs; the most memory that steps used is what their job used."""
        ids = rows["job_id"]
        parents = ids.str.extract(STEP, 1)
        is_step = (parents.is_in(ids.implode()) | parents.is_in(self._before.implode())).fill_null(
            value=False
        )
        self._before = ids
        if not is_step.any():
            return rows
        expected = "jobs, without steps"
        self._notes.repair_rows("folded_steps", rows, is_step, "job_id", expected)
        jobs = rows.filter(~is_step)
        if "used_memory_bytes" not in jobs.columns:
            return jobs
        most = pl.col("used_memory_bytes").max().alias("__most__")
        of_steps = rows.with_columns(job_id=parents).filter(is_step).group_by("job_id").agg(most)
        joined = jobs.join(of_steps, on="job_id", how="left", maintain_order="left")
        used = pl.coalesce("used_memory_bytes", "__most__").alias("used_memory_bytes")
        return joined.with_columns(used).drop("__most__")


def with_array_tasks(rows: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """The rows with one for each task of an array that waits as one, such as ``7_[1-4,9%2]``."""
    waits = rows["job_id"].str.contains(PENDING_ARRAY).fill_null(value=False)
    if not waits.any():
        return rows
    arrays = rows.filter(waits)
    ids = [_tasks_of(job_id) for job_id in arrays["job_id"]]
    cut = arrays["job_id"].str.contains(r"\.\.\.").fill_null(value=False)
    notes.repair_rows("pending_array_cut_short", arrays, cut, "job_id", "the whole list of tasks")
    notes.repair(
        "pending_array_tasks",
        sum(map(len, ids)),
        line=arrays[LINE][0],
        field="job_id",
        value=arrays["job_id"][0],
        expected="a row for each task",
    )
    listed = pl.Series("job_id", ids, dtype=pl.List(pl.String))
    return pl.concat([rows.filter(~waits), arrays.with_columns(listed).explode("job_id")])


def without_suspension(rows: pl.DataFrame, runtime: str, notes: Notes) -> pl.DataFrame:
    """The rows whose runtimes (end less start) leave out what ``ELAPSED`` says was suspended."""
    ran = pl.col(runtime)
    said = {
        "ElapsedRaw": pl.col("ElapsedRaw").cast(pl.Float64, strict=False),
        "Elapsed": clock_seconds(pl.col("Elapsed")),
        "time_suspended": ran - pl.col("time_suspended").cast(pl.Float64, strict=False),
    }
    known = [elapsed for name, elapsed in said.items() if name in rows.columns]
    if not known:
        return rows
    elapsed = pl.coalesce(known)
    is_shorter = elapsed.is_between(0.0, ran - 1.0).fill_null(value=False)
    shorter = rows.select(is_shorter).to_series()
    named = rows.rename({runtime: "runtime_seconds"})
    expected = "as long as from start to end: the job was suspended"
    notes.repair_rows("runtime_without_suspension", named, shorter, "runtime_seconds", expected)
    return rows.with_columns(pl.when(shorter).then(elapsed).otherwise(ran).alias(runtime))


def _tasks_of(job_id: str) -> list[str]:
    """The ids of an array's tasks; its own where it has none."""
    array = re.match(PENDING_ARRAY, job_id)
    tasks: list[int] = []
    for part in array[2].split(",") if array else ():
        if span := _SPAN.fullmatch(part):
            first, last, step = int(span[1]), int(span[2] or span[1]), int(span[3] or 1)
            tasks += range(first, min(last, first + _MOST_TASKS) + 1, max(step, 1))
    return [f"{array[1]}_{task}" for task in tasks] if array and tasks else [job_id]
