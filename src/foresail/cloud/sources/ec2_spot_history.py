"""EC2 spot price histories of the bidding era: one row per change of a market's price."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices_reading import PlainSource, Reference
from foresail.model.errors import InputError
from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces.delimited import read_delimited
from foresail.traces.reading import LINE, Notes

_COLUMNS: Final = ("timestamp", "az", "instance_type", "spot_price", "on_demand_price")
_EXAMPLE: Final = """\
timestamp,az,instance_type,os,spot_price,on_demand_price
2015-03-11 00:00:00+00:00,us-east-1a,small,Linux,0.1,0.2
2015-03-11 06:00:00+00:00,us-east-1a,small,Linux,0.3,0.2
2015-03-12 00:00:00+00:00,us-east-1a,small,Linux,0.15,0.2
"""


@register("price_source", "ec2-spot-history")
class Ec2SpotHistory(PlainSource):
    """Spot price changes: columns timestamp, az, instance_type, spot_price, on_demand_price.

    A market is a type in a zone. Seconds count from the first change of any market; every market
    holds its last price until the last change of any.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("history.csv", _EXAMPLE),)

    def recognises(self, reference: Reference) -> bool:
        """The columns of this layout."""
        return set(_COLUMNS) <= set(reference.columns)

    def histories(self, reference: Reference) -> tuple[MarketHistory, ...]:
        """One history per market, by name."""
        table = _changes(reference)
        origin = table["seconds"].min()
        end = table["seconds"].max()
        if not isinstance(origin, float) or not isinstance(end, float) or origin == end:
            raise InputError("no history", source=reference.text, expected="two changes at least")
        return tuple(_markets(table, origin, end))


def _changes(reference: Reference) -> pl.DataFrame:
    """All changes, with Unix ``seconds``.

    Raises
    ------
    InputError
        If a time or a price cannot be used; with its line.
    """
    # Strict: a price that is left out would leave the one before standing.
    notes = Notes(reference.path, strict=True)
    raw = pl.concat(read_delimited(notes.source(), notes, _COLUMNS))
    table = raw.with_columns(
        seconds=pl.col("timestamp").str.to_datetime(strict=False, time_zone="UTC").dt.epoch("ms")
        / 1000.0,
        price=pl.col("spot_price").cast(pl.Float64, strict=False),
        on_demand=pl.col("on_demand_price").cast(pl.Float64, strict=False),
    )
    for column, source, expected in (
        ("seconds", "timestamp", "a time, such as 2015-03-11 16:54:38+00:00"),
        ("price", "spot_price", "a number above 0"),
        ("on_demand", "on_demand_price", "a number above 0"),
        ("az", "az", "a zone"),
        ("instance_type", "instance_type", "a type"),
    ):
        usable = pl.col(column).is_not_null()
        if table.schema[column].is_float():
            usable &= (pl.col(column) > 0.0) & pl.col(column).is_finite()
        wrong = table.filter(~usable)
        if wrong.height:
            raise InputError(
                "cannot be used",
                source=reference.text,
                line=int(wrong[LINE][0]),
                field=source,
                value=wrong[source][0],
                expected=expected,
            )
    return table


def _markets(table: pl.DataFrame, origin: float, end: float) -> Iterator[MarketHistory]:
    kept = table.sort("seconds", maintain_order=True).unique(
        ["az", "instance_type", "seconds"], keep="last", maintain_order=True
    )
    for (zone, name), changes in sorted(kept.group_by("az", "instance_type", maintain_order=True)):
        times = changes["seconds"].to_numpy() - origin
        # A change in the very last moment holds for no time.
        held = times < end - origin
        if held.any():
            yield MarketHistory(
                market=f"{zone}/{name}",
                instance_type=str(name),
                zone=str(zone),
                times_seconds=times[held],
                end_seconds=end - origin,
                prices=changes["price"].to_numpy()[held].astype(np.float64),
                on_demand_per_hour=float(changes["on_demand"][0]),
                origin_unix_seconds=origin,
            )
