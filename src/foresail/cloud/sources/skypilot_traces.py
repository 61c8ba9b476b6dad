"""Spot availability and preemption series: how many instances could be had at every tick."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Final

import numpy as np

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices_reading import PlainSource, Reference
from foresail.model.documents import decoded, parsed_json
from foresail.model.errors import InputError
from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces.source import LogFile

_NODES: Final = re.compile(r"(\d+)-node")
_BEGAN: Final = re.compile(r"(\d{2})-(\d{2})-(\d{4})$")
_EXPECTED: Final = '{"metadata": {"gap_seconds": 300}, "data": [0, 1, ...]}'
_TAR_MAGIC_AT: Final = 257
_LONGEST_GAP_SECONDS: Final = 366 * 86_400.0
_EXAMPLE: Final = '{"metadata": {"gap_seconds": 300}, "data": [0, 1, 1, 0]}'


@register("price_source", "skypilot-traces")
class SkyPilotTraces(PlainSource):
    """Counts of instances at every tick: one JSON series, or a tar archive of them.

    A series' folder says how many instances were asked for (``4-node``) and the day it began
    (``aws-08-03-2023``, taken as midnight UTC); its name the zone and the type.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        series = _EXAMPLE.encode()
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for zone in ("us-west-2a", "us-west-2b"):
                member = tarfile.TarInfo(f"4-node/aws-08-03-2023/{zone}_v100_1.json")
                member.size = len(series)
                archive.addfile(member, io.BytesIO(series))
        return (
            Example.of_text("us-west-2a_v100_1.json", _EXAMPLE),
            Example({"traces.tar": packed.getvalue()}, "traces.tar"),
        )

    def recognises(self, reference: Reference) -> bool:
        """A tar archive, or a JSON object that speaks of ``gap_seconds``."""
        return _is_tar(reference) or b'"gap_seconds"' in reference.start[:200]

    def histories(self, reference: Reference) -> tuple[MarketHistory, ...]:
        """One history per series, named by its path without ``.json``.

        Raises
        ------
        InputError
            If a series is not as above, or there is none.
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
