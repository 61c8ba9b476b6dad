"""Loads a live service: ``load_the_service.py --seconds 60``; takes as long and a minute more.

While 10,000 jobs wait, 500 a second are submitted over HTTP, one or fifty a call, some 1,000 a
minute end, and others list, show and ask for the cluster. Told are quantiles of the times of calls,
and how long passes took.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "service"))

from live_service import LiveService, live_service

WAITING = 10_000
ENDS_PER_MINUTE = 1_000
LEAST = 'cluster = "local(cpus=64,nodes=1)"\npolicy = "{policy}"'
LIMITS = "[limits]\nrequests_per_second = 100000\nburst = 100000\npending_jobs = 10000000"


class Clients:
    """Threads that call and note how long each call takes, by what it is."""

    def __init__(self, service: LiveService) -> None:
        self.service = service
        self.seconds: dict[str, list[float]] = {}
        self.stop = threading.Event()
        self.submitted = 0
        self._lock = threading.Lock()

    def call(
        self, client: httpx.Client, what: str, method: str, path: str, **given: object
    ) -> None:
        """Make a call, and note its time."""
        begin = time.perf_counter()
        answer = client.request(method, path, **given)  # type: ignore[arg-type]
        answer.raise_for_status()
        with self._lock:
            self.seconds.setdefault(what, []).append(time.perf_counter() - begin)

    def submit(self, per_second: float, at_once: int) -> None:
        """Submit so many jobs a second, several a call; held, so that they wait."""
        job = {"command": "true", "name": "load", "held": True, "requested_time": 60}
        body = {"jobs": [job] * at_once} if at_once > 1 else job
        with self.service.client() as client:
            due = time.perf_counter()
            while not self.stop.is_set():
                self.call(client, f"submit {at_once}", "POST", "/v1/jobs", json=body)
                with self._lock:
                    self.submitted += at_once
                due += at_once / per_second
                time.sleep(max(0.0, due - time.perf_counter()))

    def work(self) -> None:
        """Have jobs run and end, some a second."""
        job = {"command": ["true"], "name": "short", "requested_time": 30}
        with self.service.client() as client:
            due = time.perf_counter()
            while not self.stop.is_set():
                self.call(client, "submit to run", "POST", "/v1/jobs", json=job)
                due += 60.0 / ENDS_PER_MINUTE
                time.sleep(max(0.0, due - time.perf_counter()))

    def look(self) -> None:
        """List, show and ask, as people and pages do."""
        with self.service.client() as client:
            while not self.stop.is_set():
                self.call(client, "list", "GET", "/v1/jobs", params={"limit": 50})
                self.call(client, "cluster", "GET", "/v1/cluster")
                self.call(client, "show", "GET", "/v1/jobs/1")
                time.sleep(0.1)


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--policy", default="easy,recent,incremental")
    parser.add_argument("--submissions", type=float, default=500.0, help="a second")
    chosen = parser.parse_args()
    more = LEAST.format(policy=chosen.policy)
    with (
        tempfile.TemporaryDirectory() as folder,
        live_service(Path(folder), more, after=LIMITS) as service,
    ):
        clients = Clients(service)
        with service.client() as client:
            for _ in range(WAITING // 1000):
                job = {"command": "true", "requested_time": 60, "held": True}
                client.post("/v1/jobs", json={"jobs": [job] * 1000}).raise_for_status()
        process = psutil.Process(service.process.pid)
        before = process.memory_info().rss
        tenth = chosen.submissions / 10
        threads = [threading.Thread(target=clients.submit, args=(tenth, 1)) for _ in range(2)]
        threads += [threading.Thread(target=clients.submit, args=(4 * tenth, 50)) for _ in range(2)]
        threads += [threading.Thread(target=clients.work), threading.Thread(target=clients.look)]
        for thread in threads:
            thread.start()
        time.sleep(chosen.seconds)
        clients.stop.set()
        for thread in threads:
            thread.join()
        with service.client() as client:
            metrics = client.get("/metrics", timeout=60.0).text
        after = process.memory_info().rss
    print(f"submitted a second        {clients.submitted / chosen.seconds:,.0f}")
    every = [each for seconds in clients.seconds.values() for each in seconds]
    for what, seconds in [*sorted(clients.seconds.items()), ("all calls", every)]:
        p50, p99 = np.quantile(seconds, (0.5, 0.99))
        print(f"{what:<25} p50 {1e3 * p50:6.1f} ms  p99 {1e3 * p99:6.1f} ms  of {len(seconds):,}")
    for name in ("cycle", "commit"):
        print(
            f"{name + ' p99 at most':<25} {_bound(metrics, f'foresail_{name}_seconds', 0.99):g} s"
        )
    print(f"jobs ended a minute       {_ended(metrics) * 60 / chosen.seconds:,.0f}")
    print(f"memory                    {before / 1e6:,.0f} MB, then {after / 1e6:,.0f} MB")
    return 0


def _bound(metrics: str, name: str, share: float) -> float:
    """The bucket that a share of a histogram lies below."""
    buckets = re.findall(rf'{name}_bucket{{le="([^"]+)"}} ([\d.e+]+)', metrics)
    total = float(buckets[-1][1])
    return next(float(edge) for edge, count in buckets if float(count) >= share * total)


def _ended(metrics: str) -> float:
    return sum(float(each) for each in re.findall(r"jobs_ended_total{[^}]*} ([\d.e+]+)", metrics))


if __name__ == "__main__":
    sys.exit(main())
