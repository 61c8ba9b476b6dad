"""Slurm's accounting, as ``sacct`` prints it: jobs and their attempts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from foresail.model.errors import InputError
from foresail.model.registry import Example, register
from foresail.traces import accounting
from foresail.traces.reading import LINE, Notes, PlainReader, Sample
from foresail.traces.sacct import FORMS, is_accounting, table_of

_MORE: Final = ("state", "start", "end", "came")
_ROWS_AT_ONCE: Final = 1 << 17
_NEVER: Final = r"^(?:0|(?:1970-01-0|1969).*)$"
"""Times that stand for what never was: 0, in whatever zone."""

_CLOCKS_APART_SECONDS: Final = 60.0
_SUMMER_SECONDS: Final = 3_601.0
"""So little before its submission a job may have started by another clock; and so much longer than
by its start and end it may have run, in a night when clocks are put back."""

_RESULTS: Final = {
    **dict.fromkeys(("COMPLETED", "RESIZING"), "completed"),
    **dict.fromkeys(("CANCELLED", "REVOKED"), "cancelled"),
    **dict.fromkeys(("FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL"), "failed"),
    **dict.fromkeys(("DEADLINE", "OUT_OF_MEMORY", "REQUEUED", "LAUNCH_FAILED"), "failed"),
    "RECONFIG_FAIL": "failed",
    **dict.fromkeys(("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING"), None),
    **dict.fromkeys(("STOPPED", "SIGNALING", "STAGE_OUT", "SPECIAL_EXIT"), None),
    **dict.fromkeys(("REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"), None),
}
"""Results of an attempt by its state; None while it has not ended. Of a job that was resized each
size is a row, of which all but the last are *RESIZING*."""

_TIMES: Final = ("Submit", "Eligible", "Start", "End")
_LISTS: Final = ("AllocTRES", "ReqTRES")
_CPUS: Final = ("AllocCPUS", "AllocTRES", "NCPUS", "ReqCPUS", "ReqTRES")
"""Fields that say how many cpus a job has, the surest first."""

_TEXTS: Final = ("User", "Account", "QOS", "Partition", "JobName")
_CALLED: Final = ("user", "group", "queue", "partition", "executable")
_ANY_OF: Final = (("Submit",), _CPUS, ("State", "End"), ("Elapsed", "ElapsedRaw", "End"))
"""Fields of which at least one is needed."""

_ID: Final = r"^\d+(?:_(?:\d+|\[[\d,:%-]+(?:\.\.\.)?(?:%\d+)?\])|\+\d+)?$"
_WITH_MEMORY: Final = r"(?:^|,)(?:mem|2)=\d"


@register("reader", "slurm")
class SlurmReader(PlainReader):
    """Accounting of Slurm, as ``sacct`` prints it in any format, with its header, or as JSON.

    Jobs are submitted when they become eligible. Clocks count as UTC where they have no offset.
    Attempts, components of heterogeneous jobs and rows of overlapping windows become one job.
    """

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Small outputs."""
        head, day = "JobID|Submit|Start|End|NCPUS|TimelimitRaw|State", "2024-05-01T10"
        rows = (f"7_{at}|{day}:0{at}:00|{day}:30:00|{day}:59:00|4|60|COMPLETED" for at in (1, 2))
        return (Example.of_text("sacct.txt", "\n".join([head, *rows, ""])),)

    def recognises(self, sample: Sample) -> bool:
        """The first lines are a header of ``sacct``, or could stand below one."""
        return is_accounting(sample.text)

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs; all are read before the first comes, since windows may overlap."""
        source = notes.source()
        table = table_of(b"".join(source.blocks()), notes)
        notes.sha256, notes.unix_times = source.sha256, True
        found = attempts_of(table, notes)
        jobs = _without_copies(accounting.with_array_tasks(found, notes), notes)
        sizes = (pl.col("state") == "RESIZING").any() & (pl.len() > 1)
        one = pl.when(sizes.over("job_id", "came")).then(pl.format("{} {}", "job_id", "came"))
        jobs = _merged(jobs, one, "max", "sum", "folded_resized_jobs", notes)
        name, turn = pl.col("job_id"), pl.int_range(pl.len()).over("job_id")
        key = pl.format("{}/{}", name.str.extract(r"^(\d+)\+\d+$"), turn)
        jobs = _merged(jobs, key, "sum", "max", "joined_components", notes)
        jobs = jobs.with_columns(name.str.replace(r"\+\d+$", "")).drop(*_MORE)
        yield from jobs.iter_slices(_ROWS_AT_ONCE) if jobs.height else (jobs,)


def attempts_of(table: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """Return the attempts among the rows of ``table_of``, with canonical columns.

    And *state*, *start*, *end*, *came* (the submission; Unix seconds). What cannot be read is
    counted in ``notes``. Raises ``InputError`` if a field is lacking or clusters are several.
    """
    for needed in _ANY_OF:
        if {*table.columns}.isdisjoint(needed):
            problem = "the output of sacct lacks a field"
            expected = f"{' or '.join(needed)}, or a mapping of columns (--mapping)"
            raise InputError(problem, source=notes.path, field=needed[0], expected=expected)
    unknown = ("", *accounting.UNKNOWN_WORDS)
    rows = table.with_columns(
        pl.lit(None, pl.String).alias(name) for name in FORMS if name not in table.columns
    ).with_columns(pl.when(~pl.col(name).is_in(unknown)).then(name).alias(name) for name in FORMS)
    rows = rows.with_columns(job_id=pl.coalesce("JobID", "JobIDRaw"), used_memory_bytes="MaxRSS")
    rows = accounting.with_amounts(rows, "used_memory_bytes", "used_memory_bytes", "MaxRSS", 1.0)
    used = pl.col("used_memory_bytes").cast(pl.Float64, strict=False)
    rows = accounting.Folding(notes).jobs(rows.with_columns(used))
    rows = _read(rows, "job_id", pl.col("job_id").str.extract(f"({_ID})"), "an id", notes)
    if rows["Cluster"].n_unique() > 1:
        where, clusters = notes.path, ", ".join(rows["Cluster"].drop_nulls().unique())
        raise InputError("jobs of several clusters", source=where, field="Cluster", value=clusters)
    return _sized(_timed(_with_states(rows, notes), notes), notes)


def _read(
    rows: pl.DataFrame, name: str, value: pl.Expr, expected: str, notes: Notes
) -> pl.DataFrame:
    """The rows whose text of a field has a value, or is not there; the others are counted."""
    text = rows[name]
    rows = rows.with_columns(value.alias(name))
    return _kept(rows, text.is_not_null() & rows[name].is_null(), text, expected, notes)


def _kept(
    rows: pl.DataFrame, wrong: pl.Series, text: pl.Series, expected: str, notes: Notes
) -> pl.DataFrame:
    """The rows that are not wrong; the others are counted, with the text that makes them so."""
    said = pl.DataFrame([rows[LINE], text])
    notes.repair_rows("dropped_malformed_line", said, wrong, text.name, expected)
    return rows.filter(~wrong)


def _where(rows: pl.DataFrame, condition: pl.Expr) -> pl.Series:
    return rows.select(condition.fill_null(value=False)).to_series()


def _with_states(rows: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """The rows with ``state`` and ``status``: without a state, what has an end has ended."""
    known = {}
    for text in rows["State"].drop_nulls().unique():
        word = text.upper().partition(" ")[0]
        is_cut = word.endswith("+")
        names = [n for n in _RESULTS if n == word or (is_cut and n.startswith(word[:-1]))]
        if len(names) == 1:
            known[text] = names[0]
    named = pl.col("State").replace_strict(known, default=None, return_dtype=pl.String)
    rows = _read(rows, "State", named, "a state of Slurm", notes)
    ended = pl.when(pl.col("End").is_not_null()).then(pl.lit("COMPLETED"))
    rows = rows.with_columns(state=pl.coalesce("State", ended.otherwise(pl.lit("RUNNING"))))
    rows = rows.with_columns(
        status=pl.col("state").replace_strict(_RESULTS, return_dtype=pl.String)
    )
    elsewhere = rows["state"] == "REVOKED"
    notes.repair_rows("dropped_job_of_another_cluster", rows, elsewhere, "state", "jobs of its own")
    return rows.filter(~elsewhere)


def _timed(rows: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """The rows with submissions, waits, runtimes and limits (seconds)."""
    for name in _TIMES:
        rows = rows.with_columns(pl.when(~pl.col(name).str.contains(_NEVER)).then(name).alias(name))
        rows = _read(rows, name, _moment(pl.col(name)), "a time as 2024-05-01T10:00:00", notes)
    for name, expected in (("ElapsedRaw", "whole seconds"), ("TimelimitRaw", "whole minutes")):
        whole = pl.col(name).str.extract(r"^(\d+)$").cast(pl.Float64)
        rows = _read(rows, name, whole, expected, notes)
    for name in ("Elapsed", "Suspended", "Timelimit"):
        clock = accounting.clock_seconds(pl.col(name))
        rows = _read(rows, name, clock, "days-hours:minutes:seconds", notes)
    minutes = pl.when(~pl.col("TimelimitRaw").is_in(accounting.UNSET)).then("TimelimitRaw")
    start, span = pl.col("Start"), pl.col("End") - pl.col("Start")
    elapsed = pl.coalesce("ElapsedRaw", "Elapsed")
    too_long = _where(rows, elapsed > span + _SUMMER_SECONDS)
    text = rows.select(elapsed.cast(pl.String).alias("Elapsed")).to_series()
    rows = _kept(rows, too_long, text, "at most the time from Start to End", notes)
    shorter = _where(rows, elapsed.is_between(0.0, span - 1.0))
    expected = "as long as from start to end: the job was suspended, or clocks were put forward"
    notes.repair_rows("runtime_without_suspension", rows, shorter, "End", expected)
    eligible = pl.min_horizontal(pl.coalesce("Eligible", "Submit"), "Start")
    ready = pl.max_horizontal("Submit", eligible)
    later = _where(rows, ready > pl.col("Submit"))
    notes.repair_rows("submitted_when_eligible", rows, later, "Eligible", "as when submitted")
    wait = start - ready
    is_early = wait.is_between(-_CLOCKS_APART_SECONDS, 0.0)
    ran = pl.coalesce(elapsed, span - pl.col("Suspended").fill_null(0.0))
    ended = pl.col("status").is_not_null()
    return rows.with_columns(
        start=start,
        end=pl.when(ended).then(pl.coalesce("End", start + elapsed)),
        came=pl.col("Submit"),
        submit_seconds=ready,
        recorded_wait_seconds=pl.when(is_early).then(0.0).otherwise(wait),
        runtime_seconds=pl.when(ended & (start.is_not_null() | (elapsed > 0))).then(ran),
        requested_seconds=pl.coalesce(minutes * 60.0, "Timelimit"),
    )


def _moment(text: pl.Expr) -> pl.Expr:
    """Unix seconds of a time."""
    form, text = "%Y-%m-%dT%H:%M:%S", text.str.replace(" ", "T")
    plain = text.str.to_datetime(form, strict=False, time_unit="ms")
    zoned = text.str.replace("Z$", "+0000").str.to_datetime(
        f"{form}%z", strict=False, time_unit="ms", time_zone="UTC"
    )
    digits = text.str.extract(r"^(\d{1,11})$").cast(pl.Float64)
    return pl.coalesce(plain.dt.epoch("ms") / 1000.0, zoned.dt.epoch("ms") / 1000.0, digits)


def _sized(rows: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """The rows with tasks of a cpu each, and their memory and gpus; and the texts."""
    for name in _LISTS:
        cut = _where(rows, pl.col(name).str.ends_with("+"))
        notes.repair_rows(f"unknown_for_cut_off_{name}", rows, cut, name, f"-o {name}%80")
        rows = rows.with_columns(pl.when(~cut).then(name).alias(name))
    for name in ("AllocCPUS", "NCPUS", "ReqCPUS", "AllocNodes", "NNodes"):
        rows = _read(rows, name, _count(pl.col(name)), "a whole number", notes)
    cpus = []
    for name in _CPUS:
        column = f"cpus of {name}"
        rows = rows.with_columns(pl.col(name).alias(column))
        if "TRES" in name:
            rows = accounting.with_amounts(rows, column, "tasks", name, 1.0)
        cpus.append(pl.col(column).cast(pl.Float64, strict=False))
    positive = [pl.when(each > 0).then(each.cast(pl.Int64)) for each in cpus]
    rows = rows.with_columns(tasks=pl.coalesce(positive), cpus_per_task=1.0)
    lacking = rows["tasks"].is_null() & rows["start"].is_not_null()
    rows = _kept(rows, lacking, rows["AllocCPUS"], "cpus of what has run", notes)
    held = pl.coalesce("AllocTRES", "ReqTRES")
    lists = [pl.when(pl.col(name).str.contains(_WITH_MEMORY)).then(name) for name in _LISTS]
    asked = pl.when(~pl.col("ReqMem").str.contains(r"^0[A-Z]*[nc]?$|\?")).then("ReqMem")
    nodes = pl.coalesce(
        "AllocNodes", "NNodes", held.str.extract(r"(?:^|,)(?:node|4)=(\d+)").cast(pl.Float64)
    )
    rows = rows.with_columns(
        gpus_per_task=held,
        memory_bytes_per_task=pl.coalesce(lists[0], asked, lists[1]),
        **{accounting.NODES: nodes},
    )
    memory, known = pl.col("memory_bytes_per_task"), pl.col(accounting.NODES).is_not_null()
    of_node = _where(rows, memory.str.ends_with("n") & ~known)
    name, expected = "unknown_for_ReqMem_of_a_node", "NNodes or AllocTRES beside it"
    notes.repair_rows(name, rows, of_node, "memory_bytes_per_task", expected)
    rows = rows.with_columns(pl.when(~of_node).then(memory).alias("memory_bytes_per_task"))
    for name, source in (("gpus_per_task", "AllocTRES"), ("memory_bytes_per_task", "ReqMem")):
        rows = accounting.with_amounts(rows, name, name, source, 1.0)
        number = pl.col(name).cast(pl.Float64, strict=False)
        rows = _read(rows, name, number, f"an amount in {source}", notes)
        rows = rows.with_columns(accounting.of_one_task(rows, name, name, "tasks", "cpus_per_task"))
    note = pl.when(pl.col("Restarts") != "0").then(pl.format("restarted {} times", "Restarts"))
    texts = [pl.col(name).alias(said) for name, said in zip(_TEXTS, _CALLED, strict=True)]
    kept = (
        *("job_id", "status", *_MORE, "submit_seconds", LINE),
        *("recorded_wait_seconds", "runtime_seconds", "requested_seconds", "tasks"),
        *("cpus_per_task", "memory_bytes_per_task", "gpus_per_task", "used_memory_bytes"),
    )
    return rows.select(*kept, *texts, note.alias("extra"))


def _count(text: pl.Expr) -> pl.Expr:
    """A whole number, which Slurm may write as thousands of 1,024."""
    number = text.str.extract(r"^([\d.]+)K?$").cast(pl.Float64, strict=False)
    number *= pl.when(text.str.ends_with("K")).then(1024.0).otherwise(1.0)
    return pl.when(number == number.round()).then(number)


def _without_copies(jobs: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """The attempts, each once: as it ended, or else as it was last seen."""
    jobs = jobs.with_row_index("at").with_columns(pl.col("status").is_not_null().alias("ended"))
    end = pl.when("ended").then(pl.coalesce("end", "came")).max().over("job_id")
    order = jobs.sort("came", "start", "ended", "at", nulls_last=False)
    is_last = pl.int_range(pl.len()).over("job_id") == pl.len().over("job_id") - 1
    again = pl.int_range(pl.len()).over("job_id", "came", "start")
    again = again < pl.len().over("job_id", "came", "start") - 1
    seen_later = ~pl.col("ended") & (~is_last | (pl.coalesce("start", "came") < end))
    marked = order.with_columns(copy=again | seen_later.fill_null(value=False)).sort("at")
    notes.repair_rows("folded_copies", marked, marked["copy"], "job_id", "each attempt once")
    return marked.filter(~pl.col("copy")).drop("at", "ended", "copy")


def _merged(
    jobs: pl.DataFrame, key: pl.Expr, width: str, length: str, name: str, notes: Notes
) -> pl.DataFrame:
    """The attempts, those of a key as one; width and length are the sum or the most of all."""
    rows = jobs.with_columns(key.alias("one"))
    tasks, ran, done = pl.col("tasks"), pl.col("runtime_seconds"), pl.col("status") == "completed"
    wide, long = getattr(tasks, width)().over("one"), getattr(ran, length)().over("one")
    merged = rows.filter(pl.col("one").is_not_null()).with_columns(
        *(
            pl.when(pl.col(each).is_not_null().all().over("one"))
            .then(((pl.col(each) * tasks).sum() / tasks.sum()).over("one"))
            .alias(each)
            for each in accounting.PER_TASK
        ),
        pl.col("requested_seconds", "used_memory_bytes").max().over("one"),
        pl.col("submit_seconds", "recorded_wait_seconds", "start").min().over("one"),
        tasks=wide,
        runtime_seconds=pl.when(ran.is_not_null().all().over("one")).then(long),
        status=pl.col("status").sort_by(done).first().over("one"),
        part=pl.int_range(pl.len()).over("one") > 0,
    )
    notes.repair_rows(name, merged, merged["part"], "job_id", "a job by itself")
    whole = merged.filter(~pl.col("part")).drop("part")
    return pl.concat([rows.filter(pl.col("one").is_null()), whole]).drop("one")
