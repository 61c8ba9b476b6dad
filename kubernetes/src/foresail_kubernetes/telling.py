"""Telling pods when they are likely to start, and why they wait: annotations, and Events.

It is a process of its own, with an account of its own: a service that observes needs no right to
write. What was told before stands in the pod, so that nothing is kept here.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from foresail.client.service_client import ServiceClient
from foresail.model.errors import ForesailError
from foresail_kubernetes import wire
from foresail_kubernetes.connection import UNREACHABLE, Access, Connection, RefusedError
from foresail_kubernetes.groups import group_of, stem_of
from foresail_kubernetes.records import job_id_of

FORECAST: Final = "foresail.io/start-forecast"
REASON: Final = "foresail.io/waits-because"
_LONGEST: Final = 250
_NUMBER: Final = re.compile(r"\d+")
_FORM: Final = "%Y-%m-%dT%H:%MZ"
_PREFIX: Final = "kubernetes:"

_PAUSE_SECONDS: Final = 60.0
"""Nothing is told anew of a pod sooner."""
_LEAST_SECONDS: Final = 120.0
_SHARE: Final = 0.25
"""A start is told anew once it has moved by this share of the wait ahead, and so many seconds."""
_MUCH_SECONDS: Final = 900.0
_MUCH: Final = 0.5
"""An Event says so once it has moved by as much."""


@dataclass(frozen=True, slots=True)
class Told:
    """Sentences on a pod that waits, as its annotations hold them."""

    forecast: str
    reason: str

    @property
    def annotations(self) -> dict[str, str]:
        """Return the annotations that say it."""
        return {FORECAST: self.forecast, REASON: self.reason}


def told_of(row: Mapping[str, Any]) -> Told:
    """Return what there is to say of a job that waits, as the service has it."""
    forecast = row.get("forecast") or {}
    start = forecast.get("start") or {}
    low, middle, high = (start.get(each) for each in ("p10", "p50", "p90"))
    if not forecast.get("is_known", True) or low is None or middle is None:
        said = "not known yet" if forecast else "none"
    else:
        later = "no known time" if high is None else _moment(high)
        said = f"{_moment(middle)} ({_moment(low)} to {later})"
    reason = (row.get("reason") or {}).get("sentence", "")
    return Told(said, " ".join(str(reason).split())[:_LONGEST])


def is_news(before: Mapping[str, str], told: Told, now: float) -> bool:
    """Return whether that is worth another annotation: a start has moved, or is known or not.

    Another reason is, too, unless it differs in numbers alone; nothing known is not.
    """
    if seconds_told(told.forecast) is None and not told.reason:
        return False
    if _NUMBER.sub("", before.get(REASON, "")) != _NUMBER.sub("", told.reason):
        return True
    return before.get(FORECAST) != told.forecast and _has_moved(
        before.get(FORECAST), told, now, _LEAST_SECONDS, _SHARE
    )


def is_much(before: Mapping[str, str], told: Told, now: float) -> bool:
    """Return whether that is worth an Event: a start that was known has moved by much."""
    starts = seconds_told(before.get(FORECAST, "")), seconds_told(told.forecast)
    is_known = None not in starts
    return is_known and _has_moved(before.get(FORECAST), told, now, _MUCH_SECONDS, _MUCH)


def seconds_told(said: str) -> float | None:
    """Return the most likely start that an annotation says, if it does (Unix seconds)."""
    try:
        return datetime.strptime(said.partition(" ")[0], _FORM).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _has_moved(before: str | None, told: Told, now: float, least: float, share: float) -> bool:
    old, new = seconds_told(before or ""), seconds_told(told.forecast)
    if old is None or new is None:
        return True
    return abs(new - old) >= max(least, share * max(0.0, old - now))


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(_FORM)


def _second(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Teller:
    """Writes to pods what a service expects of them; no more than ``most`` at each round.

    To those that name ``scheduler`` it writes the condition that they are not scheduled, too.
    """

    def __init__(
        self,
        connection: Connection,
        most: int,
        say: Callable[[str], None],
        scheduler: str = "",
    ) -> None:
        self._connection = connection
        self._most = most
        self._scheduler = scheduler
        self._say = say
        self._last: dict[str, float] = {}
        """Times at which pods were told, by uid."""

    async def tell(self, rows: Iterable[Mapping[str, Any]], now: float) -> int:
        """Tell pods that wait, those that start first before others; returns how many.

        Raises ``RefusedError`` where the account lacks a right, or one of ``UNREACHABLE``.
        """
        there: dict[str, list[wire.WirePod]] = {}
        for each in await self._waiting():
            group = stem_of(each.metadata.namespace, group_of(each)[0])
            for name in filter(None, (job_id_of(each.metadata), group)):
                there.setdefault(name, []).append(each)
        self._last = {uid: at for uid, at in self._last.items() if now - at < _PAUSE_SECONDS}
        count = 0
        for row in rows:
            job_id = row["job_id"].removeprefix(_PREFIX)
            for pod in there.get(job_id) or there.get(job_id.rpartition("+")[0]) or ():
                if count < self._most and pod.metadata.uid not in self._last:
                    count += await self._told(pod, told_of(row), now)
        return count

    async def _told(self, pod: wire.WirePod, told: Told, now: float) -> bool:
        """Tell a pod, if that is news; returns whether it was."""
        meta = pod.metadata
        before = meta.annotations or {}
        if not is_news(before, told, now) or not await self._annotate(meta, told):
            return False
        if self._scheduler and pod.spec.scheduler_name == self._scheduler:
            await self._condition(meta, told, now)
        self._last[meta.uid] = now
        if is_much(before, told, now):
            await self._event(meta, before[FORECAST], told, now)
        return True

    async def _waiting(self) -> list[wire.WirePod]:
        """Return pods that are bound to no node."""
        found: list[wire.WirePod] = []
        query = {"limit": "500", "fieldSelector": "spec.nodeName=,status.phase=Pending"}
        while True:
            page = _PAGES.decode(await self._connection.ask("GET", "/api/v1/pods", query))
            found += page.items
            if not page.metadata.continue_:
                return found
            query["continue"] = page.metadata.continue_

    async def _annotate(self, meta: wire.Metadata, told: Told) -> bool:
        """Write annotations to a pod, unless it has gone, or is another by now."""
        body = {"metadata": {"uid": meta.uid, "annotations": told.annotations}}
        return await self._patch(meta, "", body)

    async def _condition(self, meta: wire.Metadata, told: Told, now: float) -> None:
        """Write why a pod waits where kubectl and autoscalers look for it."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": f"{told.reason or 'waits'}; starts: {told.forecast}",
            "lastTransitionTime": _second(now),
        }
        body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
        await self._patch(meta, "/status", body)

    async def _patch(self, meta: wire.Metadata, part: str, body: object) -> bool:
        path = f"/api/v1/namespaces/{meta.namespace}/pods/{meta.name}{part}"
        kind = "application/strategic-merge-patch+json"
        try:
            await self._connection.ask("PATCH", path, None, body, kind)
        except RefusedError as error:
            if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                return False
            raise
        return True

    async def _event(self, meta: wire.Metadata, before: str, told: Told, now: float) -> None:
        """Write that a start has moved by much; who may write no Events does without."""
        at = _second(now)
        of = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{meta.name[:200]}.", "namespace": meta.namespace},
            "involvedObject": of | {"namespace": meta.namespace},
            "type": "Normal",
            "reason": "StartForecast",
            "message": f"likely to start {told.forecast}; before {before}"[:1000],
            "source": {"component": "foresail"},
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        path = f"/api/v1/namespaces/{meta.namespace}/events"
        try:
            await self._connection.ask("POST", path, None, body)
        except RefusedError as error:
            self._say(f"an Event was not taken: {error}")


_PAGES: Final = msgspec.json.Decoder(wire.Listed[wire.WirePod])


async def tell_for_ever(
    access: Access,
    service: Callable[[], ServiceClient],
    every_seconds: float,
    most: int,
    say: Callable[[str], None],
    scheduler: str = "",
    rounds: int | None = None,
) -> bool:
    """Ask the service and tell pods, again and again; what fails is said and tried again.

    Returns whether the last of so many rounds did not fail.

    Raises ``InputError`` if nothing says where the API server is.
    """
    connection = await Connection.opened(access)
    teller, said = Teller(connection, most, say, scheduler), ""
    try:
        while rounds is None or rounds > 0:
            problem = ""
            try:
                rows = await asyncio.to_thread(_rows, service)
                count = await teller.tell(rows, time.time())
                if count:
                    say(f"{count} pods were told")
            except RefusedError as error:
                lacks = error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED)
                problem = (
                    f"this account may not list and patch pods ({error})" if lacks else f"{error}"
                )
            except (*UNREACHABLE, ForesailError) as error:
                problem = f"{type(error).__name__}: {error}"
            if problem and problem != said:
                say(f"nothing is told: {problem}")
            said = problem
            rounds = None if rounds is None else rounds - 1
            if rounds != 0:
                await asyncio.sleep(every_seconds)
    finally:
        await connection.close()
    return not said


def _rows(service: Callable[[], ServiceClient]) -> list[Mapping[str, Any]]:
    with service() as client:
        jobs = client.jobs(states=["pending", "held"], order="next")
        return [each for each in jobs if each["job_id"].startswith(_PREFIX)]
