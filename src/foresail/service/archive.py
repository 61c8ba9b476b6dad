"""The archive: pieces of the event log, and of what jobs used, that have left the store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

import zstandard

from foresail.live.cluster_plugin import UseSample
from foresail.model.whole_files import write_durably

_LINES: Final = ".jsonl.zst"
_USAGE: Final = ".usage.zst"


class LogArchive:
    """A folder of compressed pieces, each named by the numbers of its first and last record."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def last(self) -> int:
        """Number of the last record in it; 0 for none."""
        return max((_last(each) for each in self._pieces(_LINES)), default=0)

    def add(self, first: int, lines: Iterable[str], samples: Iterable[UseSample]) -> None:
        """Add records from a number on, and samples that leave with them; then they are durable."""
        kept = list(lines)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        name = f"{first:012}-{first + len(kept) - 1:012}"
        used = [json.dumps(asdict(each)) + "\n" for each in samples]
        for suffix, some in ((_USAGE, used), (_LINES, kept)):
            if some:
                content = zstandard.compress("".join(some).encode())
                write_durably(self._folder / (name + suffix), content)

    def forget_after(self, number: int) -> None:
        """Leave out pieces that end behind a record: of a store that was put back as it was."""
        for each in (*self._pieces(_LINES), *self._pieces(_USAGE)):
            if _last(each) > number:
                each.unlink()

    def records(self) -> Iterator[tuple[int, str]]:
        """Numbers and lines of all records, in order."""
        for piece in self._pieces(_LINES):
            yield from enumerate(_lines_of(piece), int(piece.name.partition("-")[0]))

    def samples(self) -> Iterator[UseSample]:
        """What jobs used."""
        for piece in self._pieces(_USAGE):
            for line in _lines_of(piece):
                yield UseSample(**json.loads(line))

    def _pieces(self, suffix: str) -> list[Path]:
        return sorted(self._folder.glob(f"*{suffix}"))


def _last(piece: Path) -> int:
    return int(piece.name.partition(".")[0].partition("-")[2])


def _lines_of(piece: Path) -> list[str]:
    return zstandard.decompress(piece.read_bytes()).decode().splitlines(keepends=True)
