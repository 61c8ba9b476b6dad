"""Notices that a machine is about to be taken back: from a file, its metadata service, a taint.

A notice that was understood is an annotation of the node; from then on it outlives everybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from foresail.model.errors import InputError
from foresail_kubernetes.connection import UNREACHABLE, Access, Connection, RefusedError

ENDS: Final = "foresail.io/taken-back-at"
"""Annotation of a node: the time at which its machine goes."""

CLOUDS: Final = {
    "aws": "http://169.254.169.254",
    "gcp": "http://metadata.google.internal",
    "azure": "http://169.254.169.254",
}
"""Clouds whose metadata services are understood, and where these are."""

_GOOGLE_SECONDS: Final = 30.0
_AMAZON_SECONDS: Final = 120.0
_EVENTS_VERSION: Final = "2020-07-01"
_ANSWER_SECONDS: Final = 2.0
_MOST_BYTES: Final = 2**20
_FORM: Final = "%Y-%m-%dT%H:%M:%SZ"


def moment(seconds: float) -> str:
    """Return a time as it is written in annotations."""
    return datetime.fromtimestamp(seconds, UTC).strftime(_FORM)


def seconds_said(text: object) -> float | None:
    """Return the Unix seconds of a time, in the forms of RFC 3339 and RFC 1123; None if neither."""
    said = str(text).strip()
    try:
        at = datetime.fromisoformat(said)
    except ValueError:
        try:
            at = parsedate_to_datetime(said)
        except ValueError:
            return None
    try:
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, OSError):
        return None


def listed_notices(text: str) -> tuple[dict[str, float | None], list[str]]:
    """Return the times by node of a file of notices, None where none is said, and bad lines.

    A line has a node and, if known, a time; behind ``#`` there is a comment.
    """
    found: dict[str, float | None] = {}
    bad = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        at = seconds_said(words[1]) if len(words) > 1 else None
        if len(words) > 2 or (len(words) == 2 and at is None):
            bad.append(f"line {number}: {line.strip()[:80]!r} is no node and a time")
        elif words:
            found[words[0]] = at
    return found, bad


def notices_in(path: Path) -> tuple[dict[str, float | None], list[str]]:
    """Return what ``listed_notices`` finds in a file; nothing where there is none yet."""
    try:
        return listed_notices(path.read_text("utf-8", "replace"))
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        return {}, [str(error)]


def end_said_by(cloud: str, answer: bytes, machine: str, now: float) -> float | None:
    """Return the time at which a machine is taken back, by the answer of a metadata service.

    None if it says nothing of it. An answer that is not understood is nothing said, too.
    """
    if cloud == "gcp":
        return now + _GOOGLE_SECONDS if answer.strip() == b"TRUE" else None
    try:
        said = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return None
    if not isinstance(said, dict):
        return None
    if cloud == "aws":
        if said.get("action") not in ("terminate", "stop", "hibernate"):
            return None
        at = seconds_said(said.get("time"))
        return now + _AMAZON_SECONDS if at is None else at
    events = said.get("Events")
    ends = [_end_of(each, machine, now) for each in events] if isinstance(events, list) else []
    return min((each for each in ends if each is not None), default=None)


def _end_of(event: Any, machine: str, now: float) -> float | None:
    if not isinstance(event, dict) or event.get("EventType") not in ("Preempt", "Terminate"):
        return None
    machines = event.get("Resources")
    if not isinstance(machines, list) or machine not in machines:
        return None
    at = seconds_said(event.get("NotBefore") or "")
    return now + _GOOGLE_SECONDS if at is None else at


class Metadata:
    """Metadata service of the machine that this runs on."""

    def __init__(self, session: aiohttp.ClientSession, cloud: str, address: str) -> None:
        self._session = session
        self._cloud = cloud
        self._address = (address or CLOUDS[cloud]).rstrip("/")

    async def asked(self) -> bytes:
        """Return its answer; empty if there is no notice. Raises one of ``UNREACHABLE``."""
        headers: Mapping[str, str]
        match self._cloud:
            case "aws":
                lasts = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
                token = await self._call("PUT", "/latest/api/token", lasts)
                headers = {"X-aws-ec2-metadata-token": token.decode("latin-1").strip()}
                path = "/latest/meta-data/spot/instance-action"
            case "gcp":
                headers = {"Metadata-Flavor": "Google"}
                path = "/computeMetadata/v1/instance/preempted"
            case _:
                headers = {"Metadata": "true"}
                path = f"/metadata/scheduledevents?api-version={_EVENTS_VERSION}"
        return await self._call("GET", path, headers)

    async def _call(self, method: str, path: str, headers: Mapping[str, str]) -> bytes:
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
        address = f"{self._address}{path}"
        async with self._session.request(
            method, address, headers=headers, timeout=timeout, allow_redirects=False
        ) as answer:
            if answer.status == HTTPStatus.NOT_FOUND:
                return b""
            if answer.status != HTTPStatus.OK:
                raise aiohttp.ClientPayloadError(f"{method} {address}: {answer.status}")
            return await answer.content.read(_MOST_BYTES)


async def watch_metadata(
    access: Access,
    node: str,
    machine: str,
    cloud: str,
    address: str,
    every_seconds: float,
    say: Callable[[str], None],
) -> None:
    """Ask the metadata service until it has a notice, and annotate the node; then do nothing more.

    It does not end: who is begun anew might take the same notice for a later one. ``machine`` is
    the name of the machine to its cloud.

    Raises ``InputError`` if nothing says where the API server is, or the cloud is not known.
    """
    if cloud not in CLOUDS:
        raise InputError("is unknown", field="cloud", value=cloud, expected=", ".join(CLOUDS))
    connection = await Connection.opened(access)
    ends: float | None = None
    said = ""
    try:
        async with aiohttp.ClientSession() as session:
            metadata = Metadata(session, cloud, address)
            while True:
                problem = ""
                try:
                    if ends is None:
                        now = datetime.now(UTC).timestamp()
                        ends = end_said_by(cloud, await metadata.asked(), machine, now)
                    if ends is not None:
                        await annotate(connection, node, ends)
                        say(f"{node} is taken back at {moment(ends)}")
                        await asyncio.Event().wait()
                except (RefusedError, *UNREACHABLE) as error:
                    problem = f"{type(error).__name__}: {error}"
                if problem and problem != said:
                    say(problem)
                said = problem
                await asyncio.sleep(every_seconds)
    finally:
        await connection.close()


async def annotate(connection: Connection, node: str, ends: float) -> None:
    """Write to a node that its machine is taken back; raises as ``Connection.ask`` does."""
    change = {"metadata": {"annotations": {ENDS: moment(ends)}}}
    kind = "application/merge-patch+json"
    await connection.ask("PATCH", f"/api/v1/nodes/{node}", None, change, kind)
