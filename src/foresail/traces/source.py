"""The bytes of a log, a block at a time, whatever it is compressed with."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import zstandard

from foresail.model.documents import require_end
from foresail.model.errors import InputError

_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_READ_BYTES: Final = 1 << 16
BLOCK_BYTES: Final = 4 << 20
"""Text handed on at once: large enough for compiled parsing, small beside any workload."""


class LogFile:
    """A log file, plain or compressed with gzip or zstd (by its first bytes).

    ``advance`` is called with the number of bytes of the file just read, for a progress bar.
    """

    def __init__(self, path: Path, advance: Callable[[int], None] | None = None) -> None:
        self.path = path
        self._advance = advance
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Digest of what has been read of the file as it is on disk."""
        return self._digest.hexdigest()

    def blocks(self) -> Iterator[bytes]:
        """The decompressed bytes, in blocks of about ``BLOCK_BYTES``.

        Raises ``InputError`` if the file cannot be read, is empty, or its compression is damaged or
        cut off.
        """
        empty = True
        parts: list[bytes] = []
        size = 0
        for part in self._decompressed():
            empty = False
            parts.append(part)
            size += len(part)
            if size >= BLOCK_BYTES:
                yield b"".join(parts)
                parts, size = [], 0
        if parts:
            yield b"".join(parts)
        if empty:
            raise InputError("the file is empty", source=self.path)

    def _raw(self) -> Iterator[bytes]:
        require_end(self.path)
        try:
            with self.path.open("rb") as file:
                while data := file.read(_READ_BYTES):
                    self._digest.update(data)
                    if self._advance is not None:
                        self._advance(len(data))
                    yield data
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
            raise InputError(problem, source=self.path) from error

    def _decompressed(self) -> Iterator[bytes]:
        raw = self._raw()
        first = next(raw, b"")
        if first.startswith(_GZIP_MAGIC):
            yield from self._members(first, raw, "gzip", lambda: zlib.decompressobj(wbits=31))
        elif first.startswith(_ZSTD_MAGIC):
            zstd = zstandard.ZstdDecompressor()
            yield from self._members(first, raw, "zstd", zstd.decompressobj)
        else:
            if first:
                yield first
            yield from raw

    def _members(
        self, first: bytes, raw: Iterator[bytes], kind: str, start: Callable[[], Any]
    ) -> Iterator[bytes]:
        """All members (frames) of a compressed file, one after the other; padding is ignored."""
        stream = start()
        begun = False
        data = first
        while True:
            while data:
                try:
                    text = stream.decompress(data)
                except (zlib.error, zstandard.ZstdError) as error:
                    raise InputError(
                        f"the {kind} compression is damaged: {error}", source=self.path
                    ) from error
                begun = True
                if text:
                    yield text
                data = b""
                if stream.eof:
                    data = stream.unused_data.lstrip(b"\0")
                    stream, begun = start(), False
            following = next(raw, None)
            if following is None:
                break
            data = following if begun else following.lstrip(b"\0")
        if begun:
            raise InputError(
                f"the {kind} file is cut off", source=self.path, expected="a complete file"
            )


def head(path: Path, size: int = 1 << 16) -> bytes:
    """The first decompressed bytes of a file, which show its layout; may be fewer than ``size``.

    Raises ``InputError`` if the file cannot be read or is empty.
    """
    parts: list[bytes] = []
    for part in LogFile(path)._decompressed():
        parts.append(part)
        if sum(map(len, parts)) >= size:
            break
    start = b"".join(parts)[:size]
    if not start:
        raise InputError("the file is empty", source=path)
    return start
