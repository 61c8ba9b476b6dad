"""Forecasts and reasons on pods: what is worth telling, and that a real API server takes it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from foresail_kubernetes.command import app
from foresail_kubernetes.connection import Access, Connection, RefusedError
from foresail_kubernetes.telling import (
    FORECAST,
    REASON,
    Teller,
    Told,
    is_much,
    is_news,
    seconds_told,
    told_of,
)
from real_kubernetes import RealCluster, cluster, module_cluster, pod

__all__ = ["cluster", "module_cluster"]

NOW = 1_796_000_040.0
"""2026-11-30T00:54:00 UTC."""


def row(
    *starts: float | None, sentence: str = "needs 8 cpus", known: bool = True
) -> dict[str, Any]:
    start = dict(zip(("p10", "p50", "p90"), starts, strict=True))
    return {
        "job_id": "kubernetes:default.a",
        "forecast": {"start": start, "is_known": known},
        "reason": {"sentence": sentence},
    }


@pytest.mark.parametrize(
    ("starts", "known", "said"),
    [
        (
            (NOW, NOW + 600.0, NOW + 3600.0),
            True,
            "2026-11-30T01:04Z (2026-11-30T00:54Z to 2026-11-30T01:54Z)",
        ),
        ((NOW, NOW + 60.0, None), True, "2026-11-30T00:55Z (2026-11-30T00:54Z to no known time)"),
        ((NOW, None, None), True, "not known yet"),
        ((NOW, NOW, NOW), False, "not known yet"),
    ],
)
def test_what_is_told(starts: Any, known: bool, said: str) -> None:
    """A likely start with its range, in UTC, as far as it is known."""
    told = told_of(row(*starts, sentence="needs\n8 cpus " + "x" * 999, known=known))
    assert told.forecast == said
    assert told.reason.startswith("needs 8 cpus x")
    assert len(told.reason) == 250


def test_without_a_forecast_the_reason_is_told() -> None:
    """A pod that is left to the cluster is told why."""
    held = {"forecast": None, "reason": {"sentence": "left to the cluster: claims devices"}}
    assert told_of(held) == Told("none", "left to the cluster: claims devices")


@pytest.mark.parametrize(
    ("before", "after", "news", "much"),
    [
        (None, 600.0, True, False),
        (600.0, 660.0, False, False),  # a minute of ten
        (600.0, 780.0, True, False),  # three minutes of ten
        (7200.0, 7800.0, False, False),  # ten minutes of two hours
        (7200.0, 9300.0, True, False),
        (7200.0, 3600.0, True, True),
        (600.0, 1560.0, True, True),
        (600.0, None, True, False),
    ],
)
def test_what_is_news(before: float | None, after: float | None, news: bool, much: bool) -> None:
    """A start that has moved by a quarter of its wait and two minutes, or by half and fifteen."""

    def told(seconds: float | None) -> Told:
        return told_of(row(NOW, None if seconds is None else NOW + seconds, None))

    annotations = {} if before is None else told(before).annotations
    assert is_news(annotations, told(after), NOW) is news
    assert is_much(annotations, told(after), NOW) is much
    assert not is_news(told(after).annotations, told(after), NOW)


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [("", "needs 8 cpus", True), ("needs 4 cpus", "needs 8 cpus", False), ("is held", "x", True)],
)
def test_another_reason_is_news(before: str, after: str, news: bool) -> None:
    """Unless it differs in numbers alone; where nothing is known, nothing is told."""
    starts = NOW, NOW + 600.0, None
    annotations = told_of(row(*starts, sentence=before)).annotations
    assert is_news(annotations, told_of(row(*starts, sentence=after)), NOW) is news
    assert not is_news({}, told_of(row(NOW, None, None, sentence="")), NOW)


@pytest.mark.parametrize("text", ["", "x", "2026-13-01T00:00Z", "٢", "9" * 999])
def test_what_others_wrote_there_ends_nothing(text: str) -> None:
    """Anybody may write annotations; what is no time is told anew."""
    assert seconds_told(text) is None
    assert is_news({FORECAST: text, REASON: "needs 8 cpus"}, told_of(row(NOW, NOW, NOW)), NOW)


@pytest.mark.slow
def test_a_real_server_takes_it(cluster: RealCluster) -> None:
    """Annotations once, again after much has changed, with an Event; never those of another pod."""
    cluster.create(pod("a", schedulerName="foresail"), pod("b"))
    now = time.time()

    def waits(name: str) -> dict[str, Any]:
        return msgspec.json.decode(cluster.kubectl("get", "pod", name, "-o", "json"))

    def of(name: str, seconds: float) -> dict[str, Any]:
        uid = waits(name)["metadata"]["uid"]
        job_id = f"kubernetes:default.{name}+{uid[:8]}"
        return row(now, now + seconds, None) | {"job_id": job_id}

    async def told() -> list[int]:
        connection = await Connection.opened(Access(str(cluster.config)))
        teller = Teller(connection, 1, said.append, "foresail")
        try:
            counts = [await teller.tell([of("a", 600.0), of("b", 600.0)], now)]
            counts.append(await teller.tell([of("a", 9000.0), of("b", 600.0)], now + 1.0))
            counts.append(await teller.tell([of("a", 9000.0), of("b", 600.0)], now + 2.0))
            counts.append(await teller.tell([of("a", 9000.0)], now + 61.0))
            again = of("b", 9000.0)
            cluster.kubectl("delete", "pod", "b", "--grace-period=0", "--force")
            cluster.create(pod("b"))
            counts.append(await teller.tell([again], now + 130.0))
            return counts
        finally:
            await connection.close()

    said: list[str] = []
    assert asyncio.run(told()) == [1, 1, 0, 1, 0]
    assert said == []
    assert waits("a")["metadata"]["annotations"] == told_of(of("a", 9000.0)).annotations
    (condition,) = waits("a")["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert condition["message"] == f"needs 8 cpus; starts: {told_of(of('a', 9000.0)).forecast}"
    assert "conditions" not in waits("b")["status"]
    assert FORECAST not in waits("b")["metadata"].get("annotations", {})
    events = msgspec.json.decode(cluster.kubectl("get", "events", "-o", "json"))["items"]
    found = [e["involvedObject"]["name"] for e in events if e["reason"] == "StartForecast"]
    assert found == ["a"]


@pytest.mark.slow
def test_who_may_not_write_is_refused(cluster: RealCluster) -> None:
    """An account that may only look."""
    cluster.create(pod("a"))
    uid = msgspec.json.decode(cluster.kubectl("get", "pod", "a", "-o", "json"))["metadata"]["uid"]

    async def tells() -> None:
        connection = await Connection.opened(Access(str(cluster.limited_config)))
        try:
            await teller_of(connection)
        finally:
            await connection.close()

    async def teller_of(connection: Connection) -> None:
        one = row(NOW, NOW, NOW) | {"job_id": f"kubernetes:default.a+{uid[:8]}"}
        await Teller(connection, 5, print).tell([one], NOW)

    with pytest.raises(RefusedError, match="403"):
        asyncio.run(tells())


def test_one_round_that_tells_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service is not there: it is said, and the exit status says so too."""
    named = {"cluster": {"server": "http://127.0.0.1:9"}, "name": "c"}
    context = {"context": {"cluster": "c", "user": "u"}, "name": "x"}
    config = {"clusters": [named], "users": [{"name": "u", "user": {}}], "contexts": [context]}
    (tmp_path / "config").write_bytes(msgspec.json.encode({**config, "current-context": "x"}))
    monkeypatch.setenv("FORESAIL_SERVICE", str(tmp_path / "socket"))
    words = ["tell", "--once", "--config", str(tmp_path / "config")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "nothing is told: NoAnswer" in result.stderr
