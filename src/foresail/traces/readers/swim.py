"""SWIM's day-long samples of Facebook's Hadoop jobs: submissions and bytes, no durations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces.delimited import read_delimited, with_numbers
from foresail.traces.reading import LINE, Notes, PlainReader, Sample

COLUMNS: Final = (
    *("job_id", "submit_seconds", "gap_seconds"),
    *("map_input_bytes", "shuffle_bytes", "reduce_output_bytes"),
)
BYTES: Final = COLUMNS[3:]
_EXAMPLE: Final = """\
job0\t49\t49\t736773\t2339561\t627471
job1\t101\t52\t736346\t0\t432269
"""


@register("reader", "swim")
class SwimReader(PlainReader):
    """SWIM samples: job, submission, gap, bytes of map input, shuffle and reduce output.

    Six tab-separated fields without a header line. Neither how many tasks a job had nor how long it
    ran is in them: both are unknown (null); the bytes are features. The generators ``gr_slo`` and
    ``gr_mix`` model both from the bytes.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("swim.tsv", _EXAMPLE),)

    def recognises(self, sample: Sample) -> bool:
        """The first line has six fields, the last five of which are whole numbers."""
        fields = sample.text.partition("\n")[0].split("\t")
        return len(fields) == len(COLUMNS) and all(f.strip().isdecimal() for f in fields[1:])

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some ten thousand lines at a time."""
        for chunk in read_delimited(notes.source(), notes, COLUMNS, "\t", header=COLUMNS):
            table = with_numbers(chunk, COLUMNS[1:], notes, required=COLUMNS[1:], whole=BYTES)
            yield table.select(
                "job_id",
                "submit_seconds",
                *(pl.col(name).cast(pl.Int64).cast(pl.String) for name in BYTES),
                LINE,
            )
