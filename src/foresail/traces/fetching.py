"""Logs of public archives: the catalogue, and downloads that resume and are checked."""

from __future__ import annotations

import hashlib
import re
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from foresail.model.errors import InputError, UnknownNameError
from foresail.traces.source import LogFile

if TYPE_CHECKING:
    import httpx


_FILE: Final = "catalogue.toml"


class Archive(BaseModel):
    """A place of logs: an address that ends with a slash, terms, and the paper to cite."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    address: Annotated[str, Field(pattern=r"^https?://.*/$")]
    terms: str
    citation: str


class Log(BaseModel):
    """One log of the archive."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str

    path: str
    """Path below the archive's address."""
    system: str
    """The machine, in a few words."""
    jobs: int | None = None
    processors: int | None = None
    """Figures of the log itself, where they are known."""
    text_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Digest of the decompressed text, where it is known."""

    @property
    def file_name(self) -> str:
        """Name of the log's file."""
        return self.path.rpartition("/")[2]


class LogCatalogue(BaseModel):
    """The archive and its logs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    archive: Archive
    log: tuple[Log, ...]

    def find(self, name: str) -> Log:
        """The log of this name, in any case of letters.

        Raises ``UnknownNameError`` if there is none; it offers the names that contain this one,
        where there are any.
        """
        for log in self.log:
            if log.name.lower() == name.lower():
                return log
        names = [log.name for log in self.log]
        containing = [known for known in names if name.lower() in known.lower()]
        raise UnknownNameError("archive log", name, containing or names)


@cache
def catalogue() -> LogCatalogue:
    """The catalogue that comes with Foresail."""
    text = files("foresail.traces").joinpath(_FILE).read_text(encoding="utf-8")
    return LogCatalogue.model_validate(tomllib.loads(text))


Progress = Callable[[int, int | None], None]
"""Called with the bytes there are so far, and the bytes of the whole file where that is known."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_LONGEST_PAUSE_SECONDS: Final = 30.0
_WORTH_ANOTHER_TRY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONTENT_RANGE: Final = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """Limits of trying again."""

    attempts: int = 5
    """Give up after so many attempts in a row that brought nothing."""
    pause_seconds: float = 1.0
    """Pause after the first of them; it doubles with each."""
    timeout_seconds: float = 30.0
    """Seconds that a server may stay silent."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A log on disk."""

    path: Path
    """The file."""
    sha256: str
    """Digest of its decompressed text."""
    verified: bool
    """True if that is the digest in the catalogue. If not, the catalogue has none or it differs."""
    downloaded: bool
    """False where the file was there already."""


class _NotYetError(Exception):
    """An attempt failed in a way that another may not."""


def fetch(
    log: Log,
    folder: Path,
    address: str,
    *,
    progress: Progress | None = None,
    patience: RetryLimits = RetryLimits(),
    accept_other_digest: bool = False,
) -> Fetched:
    """Download a log into a folder, or check the one that is there.

    What has come so far is kept in a file ending in ``.part``, and the next call goes on from
    there. The file gets its name only when it decompresses to its end and has the catalogue's
    digest, or another where that is accepted. An ``address`` that ends with a slash is of the
    folder that has a file of this name; ``progress`` is called for every bit that arrives.

    Raises ``InputError`` if the server does not have the file or cannot be reached, the file is
    damaged or not the catalogued one, the disk is full, or httpx is not installed.
    """
    target = folder / log.file_name
    whole = address + log.file_name if address.endswith("/") else address
    if target.exists():
        digest = _checked(target, target, log, accept_other_digest)
        return Fetched(target, digest, digest == log.text_sha256, downloaded=False)
    part = target.with_name(target.name + ".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        digest = _download(log, part, whole, progress, patience, accept_other_digest)
        part.replace(target)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=target) from error
    return Fetched(target, digest, digest == log.text_sha256, downloaded=True)


def _download(
    log: Log,
    part: Path,
    address: str,
    progress: Progress | None,
    patience: RetryLimits,
    accept_other_digest: bool,
) -> str:
    """Bring the file to its end in ``part``; returns the text's digest."""
    resumed = part.exists()
    _bring(part, address, progress, patience)
    try:
        return _checked(part, Path(log.file_name), log, accept_other_digest)
    except InputError:
        part.unlink()
        if not resumed:
            raise
    # What was left from an earlier call may have been of another version of the file.
    _bring(part, address, progress, patience)
    try:
        return _checked(part, Path(log.file_name), log, accept_other_digest)
    except InputError:
        part.unlink()
        raise


def _bring(part: Path, address: str, progress: Progress | None, patience: RetryLimits) -> None:
    """Make attempts until the whole body is in ``part``."""
    import httpx  # takes longer to import than most commands run

    failures = 0
    with httpx.Client(follow_redirects=True, timeout=patience.timeout_seconds) as client:
        while True:
            before = _size(part)
            try:
                _attempt(client, part, address, progress)
                return
            except (httpx.TransportError, _NotYetError) as error:
                failures = failures + 1 if _size(part) <= before else 0
                if failures >= patience.attempts:
                    raise InputError(
                        f"the download broke off {failures} times in a row: {_reason(error)}",
                        source=address,
                        expected="a connection; what has come so far is kept and resumed",
                    ) from error
            except (httpx.InvalidURL, httpx.HTTPError) as error:
                raise InputError(
                    f"cannot be fetched: {error}", source=address, expected="an HTTP(S) address"
                ) from error
            time.sleep(min(patience.pause_seconds * 2.0**failures, _LONGEST_PAUSE_SECONDS))


def _attempt(client: httpx.Client, part: Path, address: str, progress: Progress | None) -> None:
    """Ask for what is missing and append it; returns when the body is complete."""
    have = _size(part)
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with client.stream("GET", address, headers=headers) as response:
        whole = _whole_bytes(response)
        match response.status_code:
            case 200:
                have = 0
            case 206 if _range_start(response) == have:
                pass
            case 206 | 416 if have and whole != have:
                part.unlink()
                raise _NotYetError("the server's file changed meanwhile")
            case 416 if have:
                return
            case status if status in _WORTH_ANOTHER_TRY:
                raise _NotYetError(f"status {status} {response.reason_phrase}")
            case status:
                raise InputError(
                    f"the server answers {status} {response.reason_phrase}".rstrip(),
                    source=address,
                    expected="the log; archives move files, --from gives another address",
                )
        with part.open("ab" if have else "wb") as stream:
            for chunk in response.iter_raw():
                stream.write(chunk)
                have += len(chunk)
                if progress is not None:
                    progress(have, whole)
        if whole is not None and have < whole:
            raise _NotYetError(f"{have} of {whole} bytes came")


def _whole_bytes(response: httpx.Response) -> int | None:
    """Bytes of the whole file, where the server says."""
    span = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if span is not None:
        return None if span[2] == "*" else int(span[2])
    length = response.headers.get("Content-Length", "")
    return int(length) if response.status_code == 200 and length.isdigit() else None


def _range_start(response: httpx.Response) -> int | None:
    span = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    return int(span[1]) if span is not None and span[1] is not None else None


def _checked(path: Path, shown: Path, log: Log, accept_other_digest: bool) -> str:
    """Digest of the text, once it is known to be whole and the catalogued one."""
    if log.file_name.endswith(".gz"):
        with path.open("rb") as stream:
            if stream.read(2) != _GZIP_MAGIC:
                raise InputError("is not compressed with gzip", source=shown, expected="the log")
    digest = hashlib.sha256()
    for block in LogFile(path).blocks():
        digest.update(block)
    found = digest.hexdigest()
    if log.text_sha256 not in (None, found) and not accept_other_digest:
        raise InputError(
            "is not the catalogued log: the SHA-256 of its text differs",
            source=shown,
            value=found,
            expected=f"{log.text_sha256}, or --unverified to take it as it is",
        )
    return found


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
