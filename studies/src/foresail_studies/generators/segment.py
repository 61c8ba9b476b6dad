"""Generator ``segment``: some hours of a real log, with deadlines and preferences added."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail.model.errors import (
    InputError,
    require_at_least,
    require_choice,
    require_each_at_least,
    require_positive,
    require_share,
)
from foresail.model.registry import register
from foresail.traces.folder import load_workload
from foresail.traces.generating import generator
from foresail.traces.workload import Workload, WorkloadMeta
from foresail_studies.generators._demands import (
    RACKS,
    deadline_seconds,
    draw_slacks,
    of_classes,
    preferred_racks,
    rack_nodes,
    split_by_load,
)

_STEPS_PER_SEGMENT: Final = 10
"""Segments are looked for at every tenth of their length."""
_TOLERANCE: Final = 0.25
"""How far from the load asked for a segment's own load may be to be drawn, as a fraction."""
_NOT_KEPT: Final = ("recorded_wait_seconds", "after_job_id", "think_seconds", "partition")


@dataclass(frozen=True, slots=True)
class SegmentParameters:
    """Parameters of the generator ``segment``."""

    source: str
    """The log: a file or folder that a reader knows."""
    part: Literal["run", "history"] = "run"
    """``run``: the segment's jobs. ``history``: all jobs of the log that had ended before the
    segment began, to train a predictor with; the same seed gives the same segment."""
    hours: float = 5.0
    """Length of the segment in the log."""
    start_hours: float | None = None
    """Where the segment begins, in hours from the log's second zero. None draws one of the segments
    whose load is near the one asked for."""
    nodes: int = 256
    """The machine, in eight racks; wider jobs are left out. A node is what the log calls a
    processor."""
    load: float = 1.4
    """Offered load, which is reached exactly: all times of submission are stretched or squeezed."""
    slo_load_share: float = 0.5
    """Share of the load that jobs with a deadline are to have, as near as jobs allow."""
    slack_percents: tuple[float, ...] = (20.0, 40.0, 60.0, 80.0)
    slowdown_elsewhere: float = 1.5
    """As for ``e2e``."""

    def __post_init__(self) -> None:
        require_positive(self, "hours", "load")
        require_at_least(self, 0, "start_hours")
        require_at_least(self, RACKS, "nodes")
        require_at_least(self, 1, "slowdown_elsewhere")
        require_share(self, "slo_load_share")
        require_each_at_least(self, 0, "slack_percents")
        require_choice(self, part=("run", "history"))


@register("generator", "segment", parameters=SegmentParameters)
@generator
def segment_of_source(parameters: SegmentParameters, random: np.random.Generator) -> Workload:
    """A segment of a real log at an exact load, as 3Sigma's TwoSigma and MUSTANG workloads."""
    return segment(load_workload(Path(parameters.source)), parameters, random)


def segment(log: Workload, parameters: SegmentParameters, random: np.random.Generator) -> Workload:
    """The segment of a log, or what had ended before it.

    Jobs without a known positive runtime, or wider than the machine, are left out of the segment.

    Raises ``InputError`` if no segment has a load near the one asked for, or the one asked for has
    too few jobs.
    """
    drawing, *streams = random.spawn(5)
    width = np.ceil(np.nan_to_num(log.cpus)).astype(np.int64)
    jobs = log.jobs.with_columns(pl.Series("width", width))
    usable = jobs.filter(
        pl.col("runtime_seconds").is_finite(),
        pl.col("runtime_seconds") > 0,
        pl.col("width").is_between(1, parameters.nodes),
    )
    start = _start(usable, parameters, log.meta.source, drawing)
    if parameters.part == "history":
        return _history(log, start, parameters)
    end = start + 3600.0 * parameters.hours
    part = usable.filter(pl.col("submit_seconds") >= start, pl.col("submit_seconds") < end)
    if part.height < 2:
        raise InputError(
            "fewer than two jobs were submitted in the segment",
            source=log.meta.source,
            field="start_hours",
            value=parameters.start_hours,
            expected="another start, or more hours or nodes",
        )
    return _run(log, part, start, parameters, streams)


def _start(
    usable: pl.DataFrame, parameters: SegmentParameters, source: str, random: np.random.Generator
) -> float:
    if parameters.start_hours is not None:
        return 3600.0 * parameters.start_hours
    if not usable.height:
        raise InputError(
            "no job has a runtime and fits the machine",
            source=source,
            field="nodes",
            value=parameters.nodes,
        )
    submit = usable["submit_seconds"].to_numpy()
    work = (usable["width"] * usable["runtime_seconds"]).to_numpy()
    seconds = 3600.0 * parameters.hours
    step = seconds / _STEPS_PER_SEGMENT
    count = int(max(submit[-1] - submit[0] - seconds, 0.0) // step) + 1
    starts = submit[0] + step * np.arange(count)
    sums = np.concatenate(([0.0], np.cumsum(work)))
    first, last = np.searchsorted(submit, starts), np.searchsorted(submit, starts + seconds)
    load = (sums[last] - sums[first]) / (parameters.nodes * seconds)
    near = np.abs(load / parameters.load - 1.0) <= _TOLERANCE
    near &= last - first >= 2
    if not near.any():
        raise InputError(
            "no segment has a load near the one asked for",
            source=source,
            field="load",
            value=parameters.load,
            expected=f"a load from {load.min():.3g} to {load.max():.3g} (the segments' own), or "
            "other nodes",
        )
    return float(random.choice(starts[near]))


def _history(log: Workload, start: float, parameters: SegmentParameters) -> Workload:
    ended = pl.sum_horizontal(
        "submit_seconds", pl.col("recorded_wait_seconds").fill_null(0.0), "runtime_seconds"
    )
    jobs = log.jobs.filter(pl.col("runtime_seconds").is_not_null(), ended <= start)
    facts = {"achieved_segment_start_hours": f"{start / 3600.0:.10g}"}
    return Workload(jobs, _meta(log, parameters, 0.0, facts))


def _meta(
    log: Workload, parameters: SegmentParameters, start: float, header: dict[str, str]
) -> WorkloadMeta:
    """``start`` is the log's time of the workload's second zero."""
    origin = log.meta.origin_unix_seconds
    return WorkloadMeta(
        source="",
        reader="",
        processors=parameters.nodes,
        origin_unix_seconds=None if origin is None else origin + start,
        time_zone=log.meta.time_zone,
        header=header,
    )


def _run(
    log: Workload,
    part: pl.DataFrame,
    start: float,
    parameters: SegmentParameters,
    streams: list[np.random.Generator],
) -> Workload:
    seconds = 3600.0 * parameters.hours
    width, runtime = part["width"].to_numpy(), part["runtime_seconds"].to_numpy()
    work = width * runtime
    stretch = float(work.sum()) / (parameters.load * parameters.nodes * seconds)
    submit = (part["submit_seconds"].to_numpy() - start) * stretch
    slo = split_by_load(work, parameters.slo_load_share, streams[1])
    slack = draw_slacks(parameters.slack_percents, submit.size, streams[2])
    racks = preferred_racks(width, parameters.nodes, streams[3])
    none = pl.lit(None)
    jobs = part.drop("width").with_columns(
        *(none.cast(part.schema[name]).alias(name) for name in _NOT_KEPT),
        pl.Series("submit_seconds", submit),
        pl.Series("tasks", width),
        pl.lit(1.0).alias("cpus_per_task"),
        pl.col("memory_bytes_per_task", "gpus_per_task") * pl.col("tasks") / pl.Series(width),
        pl.when(pl.Series(slo))
        .then(pl.Series(deadline_seconds(submit, runtime, slack)))
        .alias("deadline_seconds"),
        pl.when(pl.Series(slo)).then(pl.Series(racks, dtype=pl.String)).alias("preferred"),
    )
    slowdown = pl.when(pl.col("preferred").is_not_null()).then(parameters.slowdown_elsewhere)
    jobs = jobs.with_columns(slowdown.alias("slowdown_elsewhere"))
    figures = of_classes(submit, runtime, width, slo, parameters.nodes, seconds * stretch)
    figures |= {
        "achieved_segment_start_hours": f"{start / 3600.0:.10g}",
        "achieved_time_stretch": f"{stretch:.10g}",
    }
    nodes = rack_nodes(parameters.nodes)
    return Workload(jobs, _meta(log, parameters, start, figures), nodes)
