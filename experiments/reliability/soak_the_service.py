"""Soaks a live service: ``soak_the_service.py --minutes 60``; takes as long.

Jobs come, run and end, a few a second, some of several tasks' cpus, some in arrays, some after
others, some cancelled; people list, show, explain and follow, each over a connection of its own.
Told are every minute the memory of the service and what it has done, and at the end what the
memory has grown by a job once the service knew as many ended jobs as it remembers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

import httpx
import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "service"))

from live_service import LiveService, live_service

REMEMBERED = 1_000
CONFIGURATION = """
cluster = "local(cpus=16,nodes=2)"
policy = "{policy}"
remembered_jobs = {remembered}
"""
LIMITS = "[limits]\nrequests_per_second = 100000\nburst = 100000\npending_jobs = 10000000"
KINDS = 40
"""So many names do jobs have, whose runtimes differ."""

MOST_WAITING = 200


class People:
    """Threads that submit and look, until they are stopped."""

    def __init__(self, service: LiveService, per_second: float) -> None:
        self.service = service
        self.stop = threading.Event()
        self._per_second = per_second
        self._random = np.random.default_rng(1)

    def submit(self) -> None:
        """Submit a call a second; fewer jobs while many wait."""
        while not self.stop.wait(1.0):
            with self.service.client() as client:
                counts = client.get("/v1/cluster").json()["jobs_by_state"]
                if counts.get("pending", 0) > MOST_WAITING:
                    continue
                jobs = [self._job(at) for at in range(self._random.poisson(self._per_second))]
                if not jobs:
                    continue
                answer = client.post("/v1/jobs", json={"jobs": jobs}).raise_for_status().json()
                last = answer["jobs"][-1]["job_id"]
                if self._random.random() < 0.2:
                    client.post(f"/v1/jobs/{last}/cancel")

    def _job(self, at: int) -> dict[str, object]:
        kind = int(self._random.integers(KINDS))
        job: dict[str, object] = {
            "command": f"sleep {self._random.gamma(2.0, 0.02 * (1 + kind % 10)):.3f}",
            "name": f"kind-{kind}",
            "cpus": int(self._random.integers(1, 9)),
            "requested_time": 60,
            "directory": "/",
        }
        if at and self._random.random() < 0.1:
            job["array"] = "0-2"
        return job

    def look(self) -> None:
        """List, show, tell the story and forecast, as people do."""
        while not self.stop.wait(2.0):
            with self.service.client() as client:
                jobs = client.get("/v1/jobs", params={"limit": 50}).json()["jobs"]
                for path in ("/v1/cluster", "/v1/plan", "/v1/predictions", "/metrics"):
                    answer = client.get(path)
                    if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE:  # kernels are compiled
                        answer.raise_for_status()
                if jobs:
                    job_id = jobs[-1]["job_id"]
                    for what in ("", "/forecast", "/logs"):
                        client.get(f"/v1/jobs/{job_id}{what}")
                client.get("/v1/jobs/no-number")

    def follow(self) -> None:
        """Read the stream of events, half a minute at a time."""
        while not self.stop.is_set():
            until = time.monotonic() + 30.0
            with (
                self.service.client() as client,
                client.stream("GET", "/v1/events") as stream,
            ):
                for _ in stream.iter_lines():
                    if self.stop.is_set() or time.monotonic() > until:
                        break


def main() -> int:
    """Print a line a minute, and the slope."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--policy", default="foresail")
    parser.add_argument("--submissions", type=float, default=4.0, help="a second")
    chosen = parser.parse_args()
    more = CONFIGURATION.format(policy=chosen.policy, remembered=REMEMBERED)
    print(f"{'minute':>8}{'ended':>10}{'MB':>9}{'cpu s':>9}{'store MB':>10}", flush=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        live_service(Path(folder), more, after=LIMITS) as service,
    ):
        people = People(service, chosen.submissions)
        threads = [
            threading.Thread(target=each) for each in (people.submit, people.look, people.follow)
        ]
        for thread in threads:
            thread.start()
        try:
            seen = _watched(service, chosen.minutes)
        finally:
            people.stop.set()
            for thread in threads:
                thread.join()
    steady = [each for each in seen if each[0] >= 3 * REMEMBERED]
    if len(steady) > 2:
        ended, memory = np.array(steady).T
        slope, _ = np.polyfit(ended, memory, 1)
        print(f"from {ended[0]:,.0f} ended jobs on memory grew by {slope:,.0f} bytes a job")
    return 0


def _watched(service: LiveService, minutes: float) -> Sequence[tuple[float, float]]:
    """Ended jobs and resident bytes, a minute apart, printed as they come."""
    process = psutil.Process(service.process.pid)
    seen = []
    for minute in range(1, int(minutes) + 1):
        time.sleep(60.0)
        ended = _ended(service)
        memory = process.memory_info().rss
        used = process.cpu_times()
        stored = sum(each.stat().st_size for each in service.state.glob("foresail.db*"))
        seen.append((ended, float(memory)))
        print(
            f"{minute:8}{ended:10,.0f}{memory / 1e6:9.1f}{used.user + used.system:9.0f}"
            f"{stored / 1e6:10.1f}",
            flush=True,
        )
    return seen


def _ended(service: LiveService) -> float:
    with service.client() as client:
        try:
            counts = client.get("/v1/cluster").raise_for_status().json()["jobs_by_state"]
        except httpx.HTTPError:
            return float("nan")
    return float(sum(counts.get(each, 0) for each in ("completed", "failed", "limit", "cancelled")))


if __name__ == "__main__":
    sys.exit(main())
