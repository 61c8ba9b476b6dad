"""Public layouts: tables of EC2 prices, spot price histories, and SkyPilot availability traces."""

from __future__ import annotations

import io
import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import PurePosixPath
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices import GIB, InstanceType, Offer, PriceCatalogue, Reserved, Transient
from foresail.cloud.prices_reading import PriceSource, Reference, Row, table_rows
from foresail.model.documents import decoded, parsed_json
from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.traces.delimited import read_delimited
from foresail.traces.reading import LINE, Notes
from foresail.traces.source import LogFile

_DATED: Final = re.compile(r"(\d{4})-(\d{2})")
_PLAN: Final = re.compile(r"yrTerm([13])(Standard|Convertible)\.(\w+)")


class _Ec2Table(PriceSource):
    """Base of tables of EC2's prices: a row per type and region, prices in USD.

    A virtual processor counts as a core. The day of the prices is the first of the month that the
    file's name has (``…-2017-11.csv``), else that of the publication. Rows without a price on
    demand (0, too), and second rows of a type and region (another architecture) are left out and
    counted.
    """

    COLUMNS: ClassVar[tuple[str, str, str, str, str]]
    """Type, processors, GiB, gpus, and price on demand."""
    PUBLISHED: ClassVar[date]

    def recognises(self, reference: Reference) -> bool:
        """The columns of this layout."""
        return {each for each in self.COLUMNS if each.lower() != "gpu"} <= set(reference.columns)

    def catalogue(self, reference: Reference) -> PriceCatalogue:
        """The prices of all regions."""
        repairs: Counter[str] = Counter()
        found = _DATED.search(reference.path.name)
        return PriceCatalogue(
            name=reference.path.name.partition(".")[0],
            valid_on=date(int(found[1]), int(found[2]), 1) if found else self.PUBLISHED,
            currency="USD",
            offers=tuple(self._offers(reference, repairs)),
            source=reference.text,
            repairs=repairs,
        )

    def _offers(self, reference: Reference, repairs: Counter[str]) -> Iterator[Offer]:
        seen: set[tuple[str, str]] = set()
        for row in table_rows(reference):
            key = (row.text(self.COLUMNS[0]), row.text("region"))
            if key in seen and "arch" in row.values:
                repairs["second row of a type and region"] += 1
            elif not row.optional(self.COLUMNS[-1]):
                repairs["not sold on demand"] += 1
            else:
                seen.add(key)
                yield row.record(self._offer)

    def _offer(self, row: Row) -> Offer:
        name, cores, memory, gpus, on_demand = self.COLUMNS
        instance = InstanceType(
            row.text(name),
            "aws",
            row.text("region"),
            row.number(cores),
            row.number(memory) * GIB,
            row.optional(gpus) or 0.0,
        )
        spot = row.price("spot_avg")
        transient = None if spot is None else Transient(spot)
        return Offer(instance, row.number(on_demand), tuple(_reserved(row)), transient)


def _reserved(row: Row) -> Iterator[Reserved]:
    for name in row.values:
        plan = _PLAN.fullmatch(name)
        price = row.price(name) if plan else None
        if plan and price is not None:
            yield Reserved(int(plan[1]), price, f"{plan[2].lower()} {plan[3]}")


@register("price_source", "ec2-reserved-table")
class Ec2ReservedTable(_Ec2Table):
    """On-demand and reserved prices of EC2, one row per type and region.

    Columns instance_type, vcpu, memory_gib, region, ondemand_usd_h and one for each kind of
    reservation, such as ``yrTerm1Standard.noUpfront``; of November 2017 unless its name says.
    """

    COLUMNS = ("instance_type", "vcpu", "memory_gib", "gpu", "ondemand_usd_h")
    PUBLISHED = date(2017, 11, 1)


@register("price_source", "ec2-spot-table")
class Ec2SpotTable(_Ec2Table):
    """On-demand and average spot prices: columns instance-type, vCPU, memory, ondemand, spot_avg.

    Of April 2024 unless its name says.
    """

    COLUMNS = ("instance-type", "vCPU", "memory", "GPU", "ondemand")
    PUBLISHED = date(2024, 4, 1)


_HISTORY_COLUMNS: Final = ("timestamp", "az", "instance_type", "spot_price", "on_demand_price")


@register("price_source", "ec2-spot-history")
class Ec2SpotHistory(PriceSource):
    """Spot price changes: columns timestamp, az, instance_type, spot_price, on_demand_price.

    A market is a type in a zone. Seconds count from the first change of any market; every market
    holds its last price until the last change of any.
    """

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
    """All changes, with Unix ``seconds``."""
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


_NODES: Final = re.compile(r"(\d+)-node")
_BEGAN: Final = re.compile(r"(\d{2})-(\d{2})-(\d{4})$")
_EXPECTED: Final = '{"metadata": {"gap_seconds": 300}, "data": [0, 1, ...]}'
_TAR_MAGIC_AT: Final = 257
_LONGEST_GAP_SECONDS: Final = 366 * 86_400.0


@register("price_source", "skypilot-traces")
class SkyPilotTraces(PriceSource):
    """Counts of instances at every tick: one JSON series, or a tar archive of them.

    A series' folder says how many instances were asked for (``4-node``) and the day it began
    (``aws-08-03-2023``, taken as midnight UTC); its name the zone and the type.
    """

    def recognises(self, reference: Reference) -> bool:
        """A tar archive, or a JSON object that speaks of ``gap_seconds``."""
        return _is_tar(reference) or b'"gap_seconds"' in reference.start[:200]

    def histories(self, reference: Reference) -> tuple[MarketHistory, ...]:
        """One history per series, named by its path without ``.json``.

        Raises ``InputError`` if a series is not as above, or there is none.
        """
        found = [_history(reference, path, text) for path, text in _series(reference)]
        if not found:
            raise InputError("no series", source=reference.text, expected="files ending in .json")
        return tuple(sorted(found, key=lambda history: history.market))


def _is_tar(reference: Reference) -> bool:
    return reference.start[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar"


def _series(reference: Reference) -> Iterator[tuple[PurePosixPath, bytes]]:
    content = b"".join(LogFile(reference.path).blocks())
    if not _is_tar(reference):
        yield PurePosixPath(reference.path.as_posix()), content
        return
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive.getmembers():
                file = archive.extractfile(member)
                if file is not None and member.name.endswith(".json"):
                    yield PurePosixPath(member.name), file.read()
    except tarfile.TarError as error:
        raise InputError(f"the archive is damaged: {error}", source=reference.text) from error


def _history(reference: Reference, path: PurePosixPath, text: bytes) -> MarketHistory:
    gap, counts = _ticks(reference, path, text)
    nodes = _NODES.search(str(path.parent))
    zone, _, kind = path.stem.partition("_")
    return MarketHistory(
        market=str(path.with_suffix("")),
        instance_type=kind or path.stem,
        zone=zone,
        times_seconds=np.arange(counts.size) * gap,
        end_seconds=counts.size * gap,
        units=counts,
        requested_units=float(nodes[1]) if nodes else max(1.0, float(counts.max())),
        origin_unix_seconds=_began(path),
    )


def _ticks(reference: Reference, path: PurePosixPath, text: bytes) -> tuple[float, Any]:
    try:
        document = parsed_json(decoded(text, reference.text), reference.text)
        gap = float(document["metadata"]["gap_seconds"])
        counts = np.asarray(document["data"], np.float64)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise InputError(
            f"not a series: {path}", source=reference.text, expected=_EXPECTED
        ) from error
    if not 0.0 < gap <= _LONGEST_GAP_SECONDS or counts.ndim != 1 or not counts.size:
        raise InputError(
            f"an empty or endless series: {path}",
            source=reference.text,
            field="gap_seconds, data",
            value=(gap, counts.shape),
            expected=_EXPECTED,
        )
    return gap, counts


def _began(path: PurePosixPath) -> float | None:
    found = _BEGAN.search(path.parent.name)
    if found is None:
        return None
    month, day, year = map(int, found.groups())
    return datetime(year, month, day, tzinfo=UTC).timestamp()
