"""Alibaba's 2023 gpu pods (OpenB), with the list of nodes they ran on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from foresail.model.errors import InputError
from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces import schema
from foresail.traces.delimited import read_delimited, with_numbers
from foresail.traces.reading import LINE, Notes, Sample
from foresail.traces.source import LogFile

_REQUESTS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_COLUMNS: Final = (
    *_REQUESTS,
    *("gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"),
)
_NUMBERS: Final = (*_REQUESTS[1:], "creation_time", "deletion_time", "scheduled_time")
_NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_NODE_LIST: Final = "openb_node_list_all_node.csv"
_MEBIBYTE: Final = 2.0**20

_STATUS: Final = {
    "Succeeded": "completed",
    "Failed": "failed",
    "Running": "unknown",
    "Pending": "cancelled",
}


@dataclass(frozen=True)
class AlibabaPodsParameters:
    """Options of the reader.

    Parameters
    ----------
    nodes
        The node list. By default ``openb_node_list_all_node.csv`` (or .gz, .zst) beside the log,
        where there is one.
    """

    nodes: Path | None = None


_EXAMPLE: Final = f"""\
{",".join(_COLUMNS)}
pod-0,12000,16384,1,1000,,LS,Running,0,12537496,0
pod-1,6000,12288,1,460,V100M16|V100M32,BE,Succeeded,427061,12902960,427061
pod-2,6000,12288,1,460,,LS,Pending,427100,12902960,
"""


@register("reader", "alibaba_pods", parameters=AlibabaPodsParameters)
class AlibabaPodsReader:
    """Alibaba gpu pods of 2023: one pod is a job of one task, with fractions of gpus.

    Wait is scheduling minus creation, runtime deletion minus scheduling; a pod that was never
    scheduled has neither, and is cancelled. A fraction of a gpu is kept: gpus are
    ``num_gpu x gpu_milli / 1000``. The kinds of gpu a pod accepts are the partition, the quality of
    service is the queue. Processors are the cores of the node list.
    """

    def __init__(self, parameters: AlibabaPodsParameters) -> None:
        self._nodes = parameters.nodes

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        nodes = f"{','.join(_NODE_COLUMNS)}\nnode-0,64000,262144,2,P100\nnode-1,96000,786432,8,T4\n"
        files = {"pods.csv": _EXAMPLE.encode(), _NODE_LIST: nodes.encode()}
        return (Example(files, "pods.csv"),)

    def recognises(self, sample: Sample) -> bool:
        """The header line names exactly the eleven columns."""
        return sample.columns == _COLUMNS

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some ten thousand lines at a time."""
        nodes = self._nodes or _nodes_beside(notes.path)
        if nodes is not None:
            notes.nodes = _node_table(nodes, notes)
            notes.processors = int(notes.nodes["cpus"].sum()) or None
        for chunk in read_delimited(notes.source(), notes, _COLUMNS):
            table = with_numbers(chunk, _NUMBERS, notes, required=_REQUESTS[1:])
            yield table.select(
                pl.col("name").alias("job_id"),
                pl.col("creation_time").alias("submit_seconds"),
                (pl.col("scheduled_time") - pl.col("creation_time")).alias("recorded_wait_seconds"),
                (pl.col("deletion_time") - pl.col("scheduled_time")).alias("runtime_seconds"),
                pl.lit(1).alias("tasks"),
                (pl.col("cpu_milli") / 1000.0).alias("cpus_per_task"),
                (pl.col("memory_mib") * _MEBIBYTE).alias("memory_bytes_per_task"),
                (pl.col("num_gpu") * pl.col("gpu_milli") / 1000.0).alias("gpus_per_task"),
                pl.col("pod_phase")
                .replace_strict(_STATUS, default=None, return_dtype=pl.String)
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
