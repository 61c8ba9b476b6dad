"""Alibaba's 2025 trace of disaggregated recommendation models: inference instances on gpus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces.delimited import read_delimited, with_numbers
from foresail.traces.reading import LINE, Notes, PlainReader, Sample

_COLUMNS: Final = (
    *("instance_sn", "role", "app_name", "cpu_request", "cpu_limit", "gpu_request", "gpu_limit"),
    *("rdma_request", "rdma_limit", "memory_request", "memory_limit", "disk_request"),
    *("disk_limit", "max_instance_per_node", "creation_time", "scheduled_time", "deletion_time"),
)
_REQUESTS: Final = ("cpu_request", "gpu_request", "memory_request")
_TIMES: Final = ("creation_time", "scheduled_time", "deletion_time")
_GIBIBYTE: Final = 2.0**30
_EARLIER: Final = "created_before_the_log"
_EXAMPLE: Final = f"""\
{",".join(_COLUMNS)}
instance_0,HN,app_0,12,12,1,1,25,25,120.0,120.0,640.0,800.0,8,,,
instance_1,CN,app_1,48,48,0,0,1,1,240,240,680,800,-1,10.0,12.0,112.0
"""


@register("reader", "alibaba_dlrm")
class AlibabaDlrmReader(PlainReader):
    """Alibaba DLRM instances of 2025: one instance is a job of one task.

    The role (``HN`` with gpus, ``CN`` without) is the queue and the application the executable;
    requests of network and disk, and how many instances a node may hold, are features. An instance
    without a creation time was there before the log began: it is submitted at second zero, which is
    counted as a repair, and its runtime is unknown, as is that of an instance without deletion.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("dlrm.csv", _EXAMPLE),)

    def recognises(self, sample: Sample) -> bool:
        """The header line names exactly the seventeen columns."""
        return sample.columns == _COLUMNS

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some ten thousand lines at a time."""
        for chunk in read_delimited(notes.source(), notes, _COLUMNS):
            table = with_numbers(chunk, (*_REQUESTS, *_TIMES), notes, required=_REQUESTS)
            earlier = table["creation_time"].is_null()
            notes.repair_rows(_EARLIER, table, earlier, "creation_time", "a time within the log")
            created, scheduled, deleted = (pl.col(name) for name in _TIMES)
            yield table.select(
                pl.col("instance_sn").alias("job_id"),
                created.fill_null(0.0).alias("submit_seconds"),
                (scheduled - created).alias("recorded_wait_seconds"),
                (deleted - scheduled).alias("runtime_seconds"),
                pl.lit(1).alias("tasks"),
                pl.col("cpu_request").alias("cpus_per_task"),
                (pl.col("memory_request") * _GIBIBYTE).alias("memory_bytes_per_task"),
                pl.col("gpu_request").alias("gpus_per_task"),
                pl.col("role").alias("queue"),
                pl.col("app_name").alias("executable"),
                "rdma_request",
                "disk_request",
                "max_instance_per_node",
                LINE,
            )
