"""Measures a service of many jobs: ``size_of_the_service.py --queued 50000 --finished 100000``.

Told are how soon it is there again, its memory, how long reads take when nobody else asks (the
first apart), a forecast, and then reads and submissions while 500 jobs a second are submitted, one
or fifty a call. What is beyond its bound is marked; short: ``--queued 5000 --finished 5000``.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "service"))

from filled_store import fill

from foresail.service.configuration import ServiceConfiguration
from live_service import LiveService, live_service

CPUS: Final = 64
CLUSTER: Final = f"local(cpus={CPUS},nodes=1)"
LIMITS: Final = "[limits]\nrequests_per_second = 100000\nburst = 100000\npending_jobs = 10000000"
JOB: Final = {"command": "true", "name": "load", "directory": "/", "requested_time": 60}

MOST_BYTES: Final = 350e6
MOST_READ_SECONDS: Final = 0.1
MOST_FORECAST_SECONDS: Final = 2.0
MOST_PATIENCE_SECONDS: Final = 120.0
"""For so long 503 is an answer: all that has ended is learned, and kernels are compiled."""
MOST_RESTART_SECONDS: Final = 5.0
MOST_SUBMIT_SECONDS: Final = 0.05
MOST_TIMES_IDLE: Final = 10.0


class Caller:
    """One connection to a service, kept open."""

    def __init__(self, address: str, token: str) -> None:
        host = address.removeprefix("http://")
        self._connection = http.client.HTTPConnection(host, timeout=120.0)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def seconds(self, path: str, body: object = None) -> float:
        """How long a call takes; infinite if it is not answered well."""
        begin = time.perf_counter()
        status = self.answer(path, body)[0]
        return time.perf_counter() - begin if status < 400 else float("inf")

    def patient_seconds(self, path: str) -> float:
        """Seconds until a call is answered well; infinite if that is too long."""
        begin = time.monotonic()
        while time.monotonic() - begin < MOST_PATIENCE_SECONDS:
            if self.answer(path)[0] < 400:
                return time.monotonic() - begin
            time.sleep(0.5)
        return float("inf")

    def answer(self, path: str, body: object = None) -> tuple[int, bytes]:
        """Status and content."""
        content = None if body is None else json.dumps(body)
        self._connection.request("GET" if body is None else "POST", path, content, self._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def reads(finished: int, queued: int) -> dict[str, str]:
    """What is read, by name; one job in the middle of the queue, one that ended long ago."""
    waits, done = finished + 1 + queued // 2, max(1, finished // 2)
    return {
        "list": "/v1/jobs?limit=50",
        "list of a user": "/v1/jobs?limit=50&user=user-3",
        "list that waits": "/v1/jobs?limit=50&state=pending&order=oldest",
        "show, waits": f"/v1/jobs/{waits}",
        "show, done": f"/v1/jobs/{done}",
        "story, waits": f"/v1/jobs/{waits}/story",
        "story, done": f"/v1/jobs/{done}/story",
        "metrics": "/metrics",
        "cluster": "/v1/cluster",
        "nodes": "/v1/nodes",
        "predictions": "/v1/predictions",
        "plan": "/v1/plan",
        "usage": "/v1/usage",
        "suggested request": f"/v1/jobs/{waits}/suggested-request",
    }


def submit(
    address: str,
    token: str,
    begin: Barrier,
    stop: Event,
    told: Any,
    per_second: float,
    at_once: int,
) -> None:
    """Submit so many jobs a second, several a call; in a process of its own."""
    caller = Caller(address, token)
    body = {"jobs": [JOB] * at_once} if at_once > 1 else JOB
    seconds = []
    begin.wait()
    due = time.perf_counter()
    while not stop.is_set():
        seconds.append(caller.seconds("/v1/jobs", body))
        due += at_once / per_second
        time.sleep(max(0.0, due - time.perf_counter()))
    told.put((f"submit {at_once}", seconds))


class Report:
    """Prints figures, and knows whether all are within their bounds."""

    def __init__(self) -> None:
        self.is_well = True

    def line(self, what: str, value: float, most: float, text: str) -> None:
        """One figure; ``most`` infinite for no bound."""
        is_well = value <= most
        self.is_well = self.is_well and is_well
        print(f"{what:<28} {text}{'' if is_well else '   BEYOND'}", flush=True)

    def quantiles(self, what: str, seconds: Sequence[float], most: float, more: str = "") -> None:
        """A figure of the times of calls; the bound is for 99 of 100."""
        p50, p99 = np.quantile(seconds, (0.5, 0.99), method="lower")
        text = f"p50 {1e3 * p50:8.1f} ms  p99 {1e3 * p99:8.1f} ms  of {len(seconds):,}{more}"
        self.line(what, p99, most, text)


def patiently(call: Callable[[], float], seconds: float) -> list[float]:
    """The times of a call made again and again: for so long, and at least three times."""
    times: list[float] = []
    until = time.monotonic() + seconds
    while len(times) < 3 or (time.monotonic() < until and len(times) < 200):
        times.append(call())
    return times


def measure(service: LiveService, began: float, chosen: argparse.Namespace, report: Report) -> None:
    """Print what there is to say of a service that has just been begun."""
    process = psutil.Process(service.process.pid)
    caller = Caller(service.address, service.admin_token)
    listens = time.monotonic() - began
    while caller.answer("/v1/health")[0] != 200:
        time.sleep(0.05)
    there, worked = time.monotonic() - began, sum(process.cpu_times()[:2])
    text = f"listens after {listens:.2f} s, works after {there:.2f} s, {worked:.2f} s worked"
    report.line("restart", there, MOST_RESTART_SECONDS, text)
    megabytes("memory, recovered", process, report)
    idle: dict[str, float] = {}
    asked = reads(chosen.finished, chosen.queued)
    for what, path in asked.items():
        first = caller.seconds(path)
        times = patiently(lambda path=path: caller.seconds(path), chosen.seconds / 4)
        idle[what] = float(np.median(times))
        report.quantiles(what, times, MOST_READ_SECONDS, f", first {1e3 * first:.0f} ms")
    waits = chosen.finished + 1 + chosen.queued // 2
    for what in ("forecast, first", "forecast, again"):
        seconds = caller.patient_seconds(f"/v1/jobs/{waits}/forecast")
        report.line(what, seconds, MOST_FORECAST_SECONDS, f"{seconds:.2f} s")
    megabytes("memory, after reads", process, report)
    loaded(
        service,
        {name: asked[name] for name in ("list", "show, waits", "metrics", "cluster")},
        idle,
        chosen,
        report,
    )
    megabytes("memory, after load", process, report)


def loaded(
    service: LiveService,
    asked: dict[str, str],
    idle: dict[str, float],
    chosen: argparse.Namespace,
    report: Report,
) -> None:
    """Reads and submissions under load."""
    context = multiprocessing.get_context("spawn")
    per_second = chosen.submissions
    rates = [(per_second * chosen.singly, 1), (per_second * (1 - chosen.singly), 50)]
    rates = [(rate / 2, at_once) for rate, at_once in rates for _ in range(2) if rate]
    begin, stop, told = context.Barrier(1 + len(rates)), context.Event(), context.Queue()
    given = (service.address, service.admin_token, begin, stop, told)
    workers = [context.Process(target=submit, args=(*given, *rate), daemon=True) for rate in rates]
    for each in workers:
        each.start()
    caller = Caller(service.address, service.admin_token)
    times: dict[str, list[float]] = {what: [] for what in asked}
    begin.wait()
    until = time.monotonic() + chosen.seconds
    while time.monotonic() < until:
        for what, path in asked.items():
            times[what].append(caller.seconds(path))
        time.sleep(0.05)
    stop.set()
    submitted: dict[str, list[float]] = {}
    for _ in workers:
        what, seconds = told.get(timeout=60)
        submitted.setdefault(what, []).extend(seconds)
    for what, seconds in submitted.items():
        rate = len(seconds) * int(what.split()[1]) / chosen.seconds
        report.quantiles(f"load: {what}", seconds, MOST_SUBMIT_SECONDS, f", {rate:.0f} jobs/s")
    for what, seconds in times.items():
        ratio = float(np.quantile(seconds, 0.99, method="lower")) / idle[what]
        bound = MOST_TIMES_IDLE * idle[what]
        report.quantiles(f"load: {what}", seconds, bound, f", {ratio:.1f} times the idle median")


def megabytes(what: str, process: psutil.Process, report: Report) -> None:
    """How much memory a process holds."""
    held = process.memory_info().rss
    report.line(what, held, MOST_BYTES, f"{held / 1e6:,.0f} MB")


def main() -> int:
    """Print the figures; 1 if one is beyond its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queued", type=int, default=50_000)
    parser.add_argument("--finished", type=int, default=100_000)
    parser.add_argument("--policy", default="foresail")
    parser.add_argument("--seconds", type=float, default=15.0, help="of load")
    parser.add_argument("--submissions", type=float, default=500.0, help="a second")
    parser.add_argument("--singly", type=float, default=0.2, help="share that is one job a call")
    parser.add_argument("--store", type=Path, help="folder that is filled, or was, and kept")
    chosen = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        filled = chosen.store or Path(folder) / "filled"
        if not filled.exists():
            settings = {"state": filled, "policy": chosen.policy, "cluster": CLUSTER}
            fill(ServiceConfiguration(**settings), chosen.finished, chosen.queued, CPUS)
        shutil.copytree(filled, Path(folder) / "state")
        more = f'cluster = "{CLUSTER}"\npolicy = "{chosen.policy}"'
        began = time.monotonic()
        with live_service(Path(folder), more, after=LIMITS) as service:
            measure(service, began, chosen, report)
            stop(service)
    return 0 if report.is_well else 1


def stop(service: LiveService) -> None:
    """Cancel what runs."""
    caller = Caller(service.address, service.admin_token)
    running = json.loads(caller.answer("/v1/jobs?state=running")[1])["jobs"]
    caller.answer("/v1/nodes/node-1/drain", {})
    for each in running:
        caller.answer(f"/v1/jobs/{each['job_id']}/cancel", {})


if __name__ == "__main__":
    sys.exit(main())
