"""Stops a service's PostgreSQL server again and again under load, and looks what came of it.

Used by the tests for some stops and by ``experiments/reliability`` for many.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from databases import PostgreSQLServer
from live_service import live_service

_DONE = {"completed", "failed", "limit", "cancelled", "withdrawn"}


@dataclass
class Stopped:
    """What was answered meanwhile, and what of it was not true afterwards."""

    accepted: set[str] = field(default_factory=set)
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    slowest_seconds: float = 0.0
    """The longest time until it accepted a job again, from when the server was back."""


def stop_again_and_again(folder: Path, server: PostgreSQLServer, stops: int) -> Stopped:
    """Submit short commands all the while, stop the server so many times, let all of it finish."""
    found, marks = Stopped(), folder / "marks"
    more = (
        f'database = "{server.address}"\ncluster = "local(nodes=1,cpus=8)"\n'
        'policy = "easy,recent,incremental"'
    )
    over = threading.Event()
    with live_service(folder, more) as service:
        submitting = threading.Thread(
            target=_submit, args=(service.client(), marks, over, found), daemon=True
        )
        submitting.start()
        _wait_for_more(found)
        for each in range(stops):
            time.sleep(each % 3)  # at times the daemon is at work again by then, at times not
            server.stop()
            time.sleep(0.5 + 0.5 * (each % 3))
            server.start()
            begin = time.monotonic()
            _wait_for_more(found)
            found.slowest_seconds = max(found.slowest_seconds, time.monotonic() - begin)
        over.set()
        submitting.join()
        if service.process.poll() is not None:
            found.faults.append(f"the service has ended with status {service.process.poll()}")
            return found
        with service.client() as client:
            _look(client, marks, found)
    return found


def _submit(client: httpx.Client, marks: Path, over: threading.Event, found: Stopped) -> None:
    job = {"command": f"echo $FORESAIL_JOB_ID >> {marks}; sleep 0.1", "directory": "/"}
    number = 0
    with client:
        while not over.is_set():
            headers = {"Idempotency-Key": f"call-{number}"}
            try:
                answer = client.post("/v1/jobs", json=job, headers=headers)
                client.get("/v1/jobs")
            except httpx.TransportError as error:
                found.faults.append(f"no answer: {error!r}")
                return
            if answer.status_code == 503:
                found.refused += 1
                if "Retry-After" not in answer.headers:
                    found.faults.append("503 without Retry-After")
            elif answer.is_success:
                found.accepted |= {each["job_id"] for each in answer.json()["jobs"]}
                number += 1
            else:
                found.faults.append(f"{answer.status_code}: {answer.text}")
            time.sleep(0.02)


def _wait_for_more(found: Stopped) -> None:
    before, until = len(found.accepted), time.monotonic() + 60.0
    while len(found.accepted) == before and not found.faults:
        if time.monotonic() > until:
            found.faults.append("no job is accepted for a minute")
        time.sleep(0.01)


def _look(client: httpx.Client, marks: Path, found: Stopped) -> None:
    until = time.monotonic() + 120.0
    while client.get("/v1/jobs", params={"state": ["pending", "running"]}).json()["jobs"]:
        if time.monotonic() > until:
            found.faults.append("jobs are not done with after two minutes")
            return
        time.sleep(0.1)
    began = Counter(marks.read_text().split())
    for job_id in found.accepted:
        state = client.get(f"/v1/jobs/{job_id}").json()["state"]
        if state != "completed" or began[job_id] != 1:
            found.faults.append(f"{job_id} is {state} and began {began[job_id]} times")
    found.faults += [f"{each} ran and was never accepted" for each in set(began) - found.accepted]
