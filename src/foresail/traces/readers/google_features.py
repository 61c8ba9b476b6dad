"""Google's 2011 jobs as the feature tables that 3Sigma's predictor is fed with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces.delimited import read_delimited, with_numbers
from foresail.traces.reading import LINE, Notes, PlainReader, Sample

_FEATURES: Final = (
    "job_id",
    "application_name",
    "day_of_the_week",
    "hour_of_the_day",
    "job_name",
    "resource_requested",
    "user_name",
)
_RUNTIME: Final = "job_runtime"
_MILLISECONDS: Final = 1000.0
_CORES_PER_MACHINE: Final = 16.0
"""Cores of a machine of normalised capacity 1.0: 3Sigma's estimate (dissertation, section 2)."""
_EXAMPLE: Final = """\
job_id,application_name,day_of_the_week,hour_of_the_day,job_name,resource_requested,user_name,job_runtime
1,app,0,0,name,85:625,user,15881558
2,app,0,1,name,46:125,user,1588
"""


@register("reader", "google_features")
class GoogleFeaturesReader(PlainReader):
    """Google 2011 jobs with 3Sigma's features; the warm-up table has runtimes, the test not.

    ``job_runtime`` is in milliseconds: so read the median is 3.9 minutes and the longest 49 hours,
    within the 29 days of the trace; as microseconds half of the jobs would end within 0.24 s, as
    seconds the longest would run for 5.6 years. Without the column runtimes are unknown (null).
    ``resource_requested`` is cpu:memory in thousandths of the largest machine; the cpu share
    becomes cores (of 16), the memory share stays text, since the machine's memory was not
    published. Submission is known to the hour only.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("features.csv", _EXAMPLE),)

    def recognises(self, sample: Sample) -> bool:
        """The header line names the features, with or without the runtime."""
        return sample.columns in (_FEATURES, (*_FEATURES, _RUNTIME))

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some ten thousand lines at a time."""
        runtime = [_RUNTIME] if _RUNTIME in Sample.of(notes.path).columns else []
        numeric = ["day_of_the_week", "hour_of_the_day", *runtime]
        for chunk in read_delimited(notes.source(), notes, (*_FEATURES, *runtime)):
            cpus = pl.col("resource_requested").str.extract(r"^(\d+):\d+$")
            table = with_numbers(
                chunk.with_columns(cpus.alias("cpus")),
                [*numeric, "cpus"],
                notes,
                required=["cpus"],
            )
            hours = pl.col("day_of_the_week") * 24 + pl.col("hour_of_the_day")
            known = pl.col(_RUNTIME) / _MILLISECONDS if runtime else pl.lit(None)
            yield table.select(
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
