"""EC2 tables: reserved prices, average spot prices, and price histories of the bidding era."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from typing import Final

import numpy as np
import polars as pl

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices import GIB, InstanceType, Offer, PriceCatalogue, Reserved, Transient
from foresail.cloud.prices_reading import PlainSource, Reference, Row, table_rows
from foresail.model.errors import InputError
from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces.delimited import read_delimited
from foresail.traces.reading import LINE, Notes

_PLAN: Final = re.compile(r"yrTerm([13])(Standard|Convertible)\.(\w+)")
_NOT_SOLD: Final = "not sold on demand"
_DATED: Final = re.compile(r"(\d{4})-(\d{2})")
_RESERVED_PUBLISHED: Final = date(2017, 11, 1)
_RESERVED_EXAMPLE: Final = """\
instance_type,family,vcpu,memory_gib,gpu,region,ondemand_usd_h,yrTerm1Standard.noUpfront
m1.small,General purpose,1,1.7,0,us-east-1,0.044,0.028
m1.large,General purpose,2,7.5,0,us-east-1,0.175,
"""


@register("price_source", "ec2-reserved-table")
class Ec2ReservedTable(PlainSource):
    """On-demand and reserved prices of EC2, one row per type and region.

    Columns instance_type, vcpu, memory_gib, region, ondemand_usd_h and one for each kind of
    reservation, such as ``yrTerm1Standard.noUpfront``. A virtual processor counts as a core. The
    day of the prices is taken from the file's name (``…-2017-11.csv``), else it is November 2017.
    Rows without a price on demand are left out.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("reserved-2017-11.csv", _RESERVED_EXAMPLE),)

    def recognises(self, reference: Reference) -> bool:
        """The columns of this layout."""
        return {"instance_type", "vcpu", "ondemand_usd_h"} <= set(reference.columns)

    def catalogue(self, reference: Reference) -> PriceCatalogue:
        """The prices of all regions."""
        return dated_catalogue(reference, _RESERVED_PUBLISHED, _reserved_offers)


def dated_catalogue(
    reference: Reference,
    otherwise: date,
    offers: Callable[[Reference, Counter[str]], Iterator[Offer]],
) -> PriceCatalogue:
    """A file's offers in USD, of the first of the month that its name ends with, if it does.

    ``offers`` counts the rows that it leaves out.
    """
    repairs: Counter[str] = Counter()
    found = _DATED.search(reference.path.name)
    return PriceCatalogue(
        name=reference.path.name.partition(".")[0],
        valid_on=date(int(found[1]), int(found[2]), 1) if found else otherwise,
        currency="USD",
        offers=tuple(offers(reference, repairs)),
        source=reference.text,
        repairs=repairs,
    )


def _reserved_offers(reference: Reference, repairs: Counter[str]) -> Iterator[Offer]:
    for row in table_rows(reference):
        if not row.optional("ondemand_usd_h"):
            repairs[_NOT_SOLD] += 1
            continue
        yield row.record(_reserved_offer)


def _reserved_offer(row: Row) -> Offer:
    instance = InstanceType(
        row.text("instance_type"),
        "aws",
        row.text("region"),
        row.number("vcpu"),
        row.number("memory_gib") * GIB,
        row.optional("gpu") or 0.0,
    )
    return Offer(instance, row.number("ondemand_usd_h"), tuple(_reserved(row)))


def _reserved(row: Row) -> Iterator[Reserved]:
    for name in row.values:
        plan = _PLAN.fullmatch(name)
        price = row.price(name) if plan else None
        if plan and price is not None:
            yield Reserved(int(plan[1]), price, f"{plan[2].lower()} {plan[3]}")


_SPOT_PUBLISHED: Final = date(2024, 4, 1)
_SPOT_EXAMPLE: Final = """\
instance-type,arch,memory,vCPU,GPU,region,ondemand,spot_avg
c5d.2xlarge,x86_64,16.0,8,0,af-south-1,0.52,0.13
c5d.4xlarge,x86_64,32.0,16,0,af-south-1,1.04,0.26
"""


@register("price_source", "ec2-spot-table")
class Ec2SpotTable(PlainSource):
    """On-demand and average spot prices: columns instance-type, vCPU, memory, ondemand, spot_avg.

    A virtual processor counts as a core. The day of the prices is taken from the file's name
    (``…-2024-04.csv``), else it is April 2024. Rows without a price on demand (0 in such files) and
    second rows of one type and region (another architecture) are left out and counted.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("spot-2024-04.csv", _SPOT_EXAMPLE),)

    def recognises(self, reference: Reference) -> bool:
        """The columns of this layout."""
        return {"instance-type", "vCPU", "ondemand", "spot_avg"} <= set(reference.columns)

    def catalogue(self, reference: Reference) -> PriceCatalogue:
        """The prices of all regions."""
        return dated_catalogue(reference, _SPOT_PUBLISHED, _spot_offers)


def _spot_offers(reference: Reference, repairs: Counter[str]) -> Iterator[Offer]:
    seen: set[tuple[str, str]] = set()
    for row in table_rows(reference):
        key = (row.text("instance-type"), row.text("region"))
        if key in seen:
            repairs["second row of a type and region"] += 1
        elif not row.optional("ondemand"):
            repairs["not sold on demand"] += 1
        else:
            seen.add(key)
            yield row.record(_spot_offer)


def _spot_offer(row: Row) -> Offer:
    instance = InstanceType(
        row.text("instance-type"),
        "aws",
        row.text("region"),
        row.number("vCPU"),
        row.number("memory") * GIB,
        row.optional("GPU") or 0.0,
    )
    spot = row.price("spot_avg")
    transient = None if spot is None else Transient(spot)
    return Offer(instance, row.number("ondemand"), transient=transient)


_HISTORY_COLUMNS: Final = ("timestamp", "az", "instance_type", "spot_price", "on_demand_price")
_HISTORY_EXAMPLE: Final = """\
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
        return (Example.of_text("history.csv", _HISTORY_EXAMPLE),)

    def recognises(self, reference: Reference) -> bool:
        """The columns of this layout."""
        return set(_HISTORY_COLUMNS) <= set(reference.columns)

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
    raw = pl.concat(read_delimited(notes.source(), notes, _HISTORY_COLUMNS))
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
