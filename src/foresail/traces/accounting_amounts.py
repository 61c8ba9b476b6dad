"""Amounts as accounting writes them: clocks, sizes, counted resources (TRES), and no limits."""

from __future__ import annotations

from typing import Final

import polars as pl

UNSET: Final = (2.0**32 - 1, 2.0**32 - 2, 2.0**64)
"""Numbers that Slurm's database holds in place of an amount that is unlimited or was not set; of 64
bits there are two such as well, which are one float."""

UNKNOWN_WORDS: Final = (
    *("Unknown", "None", "N/A", "(null)", "INVALID"),
    *("UNLIMITED", "Partition_Limit"),
)
"""What is written in place of an amount that is not known, and of a limit where there is none."""

PER_TASK: Final = ("memory_bytes_per_task", "gpus_per_task")
"""Columns whose amounts accounting may give of a job, a node or a cpu instead."""

_SHARE: Final = "__share__"
_NODES: Final = "__nodes__"
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
            known = table[_NODES] if _NODES in table.columns else pl.lit(None)
            table = table.with_columns(pl.coalesce(nodes.cast(pl.Float64), known).alias(_NODES))
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
    nodes = pl.col(_NODES).fill_null(1.0)
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
    """Memory among resources that are listed by their numbers in the database."""
    return _counted(resources, "2").cast(pl.Float64, strict=False) * _MEBIBYTE
