"""Published logs that are plain tables: GAIA, Philly, Google's features, SWIM, Alibaba's pods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from foresail.model.errors import InputError
from foresail.model.registry import Example, register
from foresail.traces import schema
from foresail.traces.delimited import TableFileReader, read_delimited
from foresail.traces.mapping import LARGEST_WHOLE, unix_seconds, with_numbers
from foresail.traces.reading import LINE, Notes, Sample
from foresail.traces.source import LogFile

SWIM_BYTES: Final = ("map_input_bytes", "shuffle_bytes", "reduce_output_bytes")
_SWIM_NUMBERS: Final = ("submit_seconds", "gap_seconds", *SWIM_BYTES)
_GIBIBYTE: Final = 2.0**30
_MEBIBYTE: Final = 2.0**20
_MILLISECONDS: Final = 1000.0
_CORES_PER_MACHINE: Final = 16.0
"""Cores of a machine of normalised capacity 1.0: 3Sigma's estimate (dissertation, section 2)."""


@register("reader", "gaia")
class GaiaReader(TableFileReader):
    """Job samples of the GAIA artifact: arrival and length in hours, cpus; ids are row numbers.

    Hours become seconds rounded to the millisecond, since the files (of Mustang, PAI and Azure)
    hold decimal fractions of hours. Whole cpus become that many tasks of one cpu, which start
    together.
    """

    columns = ("arrival_time", "length", "cpus")
    example = "arrival_time,length,cpus\n0.0,0.75,4\n0.5,19.25,4\n1.5,2.0,0.5\n"

    def jobs(self, chunk: pl.DataFrame, notes: Notes) -> pl.DataFrame:
        """The jobs of some rows."""
        cpus = pl.col("cpus")
        whole = (cpus == cpus.floor()) & (cpus.abs() < LARGEST_WHOLE)
        return with_numbers(chunk, self.columns, notes, required=self.columns).select(
            _row_number(),
            (pl.col("arrival_time") * 3600.0).round(3).alias("submit_seconds"),
            (pl.col("length") * 3600.0).round(3).alias("runtime_seconds"),
            pl.when(whole).then("cpus").otherwise(1.0).cast(pl.Int64).alias("tasks"),
            pl.when(whole).then(1.0).otherwise("cpus").alias("cpus_per_task"),
            LINE,
        )


@register("reader", "philly")
class PhillyReader(TableFileReader):
    """Philly jobs as a table of submission, duration, gpus and virtual cluster.

    A job is a gang of one task per gpu, each with one cpu (the table has no cpus), so that its
    width is its gpus wherever cpus are counted. The virtual cluster is the queue. Timestamps are
    read as UTC, ids are row numbers.
    """

    columns = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
    example = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 06:13:03,2951.0,1,2951.0,6214e9
2017-10-09 07:01:55,66.0,1,66.0,11cb48
"""

    def jobs(self, chunk: pl.DataFrame, notes: Notes) -> pl.DataFrame:
        """The jobs of some rows."""
        notes.unix_times = True
        notes.header["unit of cpus"] = "gpu"
        gpus = ("num_gpus",)
        table = with_numbers(chunk, ("duration", *gpus), notes, required=gpus, whole=gpus)
        table = unix_seconds(table, "timestamp", "%Y-%m-%d %H:%M:%S", notes, "UTC", "timestamp")
        return table.select(
            _row_number(),
            pl.col("timestamp").alias("submit_seconds"),
            pl.col("duration").alias("runtime_seconds"),
            pl.col("num_gpus").cast(pl.Int64).alias("tasks"),
            pl.lit(1.0).alias("cpus_per_task"),
            pl.lit(1.0).alias("gpus_per_task"),
            pl.col("cluster").alias("queue"),
            LINE,
        )


@register("reader", "google_features")
class GoogleFeaturesReader(TableFileReader):
    """Google 2011 jobs with 3Sigma's features; the warm-up table has runtimes, the test not.

    ``job_runtime`` is in milliseconds: so read the median is 3.9 minutes and the longest 49 hours,
    within the 29 days of the trace; as microseconds half of the jobs would end within 0.24 s, as
    seconds the longest would run for 5.6 years. Without the column runtimes are unknown (null).
    ``resource_requested`` is cpu:memory in thousandths of the largest machine; the cpu share
    becomes cores (of 16), the memory share stays text, since the machine's memory was not
    published. Submission is known to the hour only.
    """

    columns = (
        *("job_id", "application_name", "day_of_the_week", "hour_of_the_day"),
        *("job_name", "resource_requested", "user_name"),
    )
    optional = ("job_runtime",)
    example = """\
job_id,application_name,day_of_the_week,hour_of_the_day,job_name,resource_requested,user_name,job_runtime
1,app,0,0,name,85:625,user,15881558
2,app,0,1,name,46:125,user,1588
"""

    def jobs(self, chunk: pl.DataFrame, notes: Notes) -> pl.DataFrame:
        """The jobs of some rows."""
        runtime = [name for name in self.optional if name in chunk.columns]
        cpus = pl.col("resource_requested").str.extract(r"^(\d+):\d+$")
        numbers = ("day_of_the_week", "hour_of_the_day", *runtime, "cpus")
        table = with_numbers(chunk.with_columns(cpus=cpus), numbers, notes, required=["cpus"])
        hours = pl.col("day_of_the_week") * 24 + pl.col("hour_of_the_day")
        known = pl.col("job_runtime") / _MILLISECONDS if runtime else pl.lit(None)
        return table.select(
            "job_id",
            (hours * 3600.0).alias("submit_seconds"),
            known.alias("runtime_seconds"),
            pl.lit(1).alias("tasks"),
            (pl.col("cpus") / 1000.0 * _CORES_PER_MACHINE).alias("cpus_per_task"),
            pl.col("user_name").alias("user"),
            pl.col("job_name").alias("executable"),
            "application_name",
            "resource_requested",
            LINE,
        )


@register("reader", "swim")
class SwimReader(TableFileReader):
    """SWIM samples: job, submission, gap, bytes of map input, shuffle and reduce output.

    Six tab-separated fields without a header line, of a day of Facebook's Hadoop jobs. Neither how
    many tasks a job had nor how long it ran is in them: both are unknown (null); the bytes are
    features. The generators ``gr_slo`` and ``gr_mix`` model both from the bytes.
    """

    columns = ("job_id", *_SWIM_NUMBERS)
    example = "job0\t49\t49\t736773\t2339561\t627471\njob1\t101\t52\t736346\t0\t432269\n"

    def recognises(self, sample: Sample) -> bool:
        """The first line has six fields, the last five of which are whole numbers."""
        fields = sample.text.partition("\n")[0].split("\t")
        return len(fields) == len(self.columns) and all(f.strip().isdecimal() for f in fields[1:])

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some ten thousand lines at a time."""
        names, numbers = self.columns, _SWIM_NUMBERS
        for chunk in read_delimited(notes.source(), notes, names, "\t", header=names):
            table = with_numbers(chunk, numbers, notes, required=numbers, whole=SWIM_BYTES)
            texts = (pl.col(name).cast(pl.Int64).cast(pl.String) for name in SWIM_BYTES)
            yield table.select("job_id", "submit_seconds", *texts, LINE)


_POD_REQUESTS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_POD_COLUMNS: Final = (
    *_POD_REQUESTS,
    *("gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"),
)
_POD_NUMBERS: Final = (*_POD_REQUESTS[1:], "creation_time", "deletion_time", "scheduled_time")
_NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_NODE_LIST: Final = "openb_node_list_all_node.csv"

_POD_STATUS: Final = {
    "Succeeded": "completed",
    "Failed": "failed",
    "Running": "unknown",
    "Pending": "cancelled",
}


_POD_EXAMPLE: Final = f"""\
{",".join(_POD_COLUMNS)}
pod-0,12000,16384,1,1000,,LS,Running,0,12537496,0
pod-1,6000,12288,1,460,V100M16|V100M32,BE,Succeeded,427061,12902960,427061
pod-2,6000,12288,1,460,,LS,Pending,427100,12902960,
"""


@register("reader", "alibaba_pods")
class AlibabaPodsReader(TableFileReader):
    """Alibaba gpu pods of 2023: one pod is a job of one task, with fractions of gpus.

    Wait is scheduling minus creation, runtime deletion minus scheduling; a pod that was never
    scheduled has neither, and is cancelled. A fraction of a gpu is kept: gpus are
    ``num_gpu x gpu_milli / 1000``. The kinds of gpu a pod accepts are the partition, the quality of
    service is the queue. Processors are the cores of the node list
    (``openb_node_list_all_node.csv``, or .gz, .zst) beside the log, where there is one.
    """

    columns = _POD_COLUMNS

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Small files of the layout."""
        nodes = f"{','.join(_NODE_COLUMNS)}\nnode-0,64000,262144,2,P100\nnode-1,96000,786432,8,T4\n"
        files = {"pods.csv": _POD_EXAMPLE.encode(), _NODE_LIST: nodes.encode()}
        return (Example(files, "pods.csv"),)

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some ten thousand lines at a time."""
        nodes = _nodes_beside(notes.path)
        if nodes is not None:
            notes.nodes = _node_table(nodes, notes)
            notes.processors = int(notes.nodes["cpus"].sum()) or None
        yield from super().chunks(notes)

    def jobs(self, chunk: pl.DataFrame, notes: Notes) -> pl.DataFrame:
        """The jobs of some rows."""
        table = with_numbers(chunk, _POD_NUMBERS, notes, required=_POD_REQUESTS[1:])
        created, scheduled, deleted = (
            pl.col(f"{name}_time") for name in ("creation", "scheduled", "deletion")
        )
        return table.select(
            pl.col("name").alias("job_id"),
            created.alias("submit_seconds"),
            (scheduled - created).alias("recorded_wait_seconds"),
            (deleted - scheduled).alias("runtime_seconds"),
            pl.lit(1).alias("tasks"),
            (pl.col("cpu_milli") / 1000.0).alias("cpus_per_task"),
            (pl.col("memory_mib") * _MEBIBYTE).alias("memory_bytes_per_task"),
            (pl.col("num_gpu") * pl.col("gpu_milli") / 1000.0).alias("gpus_per_task"),
            pl.col("pod_phase")
            .replace_strict(_POD_STATUS, default=None, return_dtype=pl.String)
            .alias("status"),
            pl.col("qos").alias("queue"),
            pl.col("gpu_spec").str.replace_all("|", ",", literal=True).alias("partition"),
            LINE,
        )


def _nodes_beside(log: Path) -> Path | None:
    candidates = (log.with_name(_NODE_LIST + ending) for ending in (".gz", "", ".zst"))
    return next((path for path in candidates if path.is_file()), None)


def _node_table(path: Path, notes: Notes) -> pl.DataFrame:
    of_nodes = Notes(path, notes.strict)
    parts = []
    for chunk in read_delimited(LogFile(path), of_nodes, _NODE_COLUMNS):
        numbers = _NODE_COLUMNS[1:4]
        table = with_numbers(chunk, numbers, of_nodes, required=numbers)
        parts.append(
            table.select(
                pl.col("sn").alias("node"),
                pl.col("model").alias("partition"),
                pl.lit(1, dtype=pl.Int64).alias("count"),
                (pl.col("cpu_milli") / 1000.0).alias("cpus"),
                (pl.col("memory_mib") * _MEBIBYTE).alias("memory_bytes"),
                pl.col("gpu").alias("gpus"),
                "model",
            )
        )
    nodes = pl.concat(parts)
    if not nodes.height:
        raise InputError("holds no nodes", source=path)
    notes.repairs.update(of_nodes.repairs)
    return schema.laid_out(nodes, schema.NODES)


def _row_number() -> pl.Expr:
    return (pl.col(LINE) - 1).cast(pl.String).alias("job_id")
