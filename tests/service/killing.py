"""Kills a service at random moments under load, and looks whether anything was lost or done twice.

Every job appends its id and attempt to a file when its command begins, so that what really ran is
known from outside. Used by the tests for some kills and by ``experiments/reliability`` for
hundreds.
"""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from foresail.client.connection import Connection
from foresail.client.service_client import NoAnswer, ServiceClient
from live_service import environment_of_service

_MAIN = "from foresail.cli.main import main; main()"
_WHILE_IT_BEGINS = 0.3
"""How often it is killed before it has said that it listens."""

_AFTER_ACCEPTING = 0.7
"""How often it is killed only after it has accepted a job again, however slow the machine is."""

_DONE = {"completed", "failed", "limit", "cancelled", "withdrawn"}


@dataclass
class Findings:
    """What was accepted, what came of it, and how long the service took to be there again.

    Jobs that were ``held`` when they came are to wait until the end.
    """

    kills: int = 0
    accepted: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    recoveries: list[float] = field(default_factory=list)


class Victim:
    """A service on a port of its own that is killed and begun again on the same state.

    ``policy`` decides; ``database`` is where it keeps things.
    """

    def __init__(
        self,
        folder: Path,
        port: int,
        policy: str = "easy,recent,incremental",
        database: str = "sqlite",
    ) -> None:
        self.folder, self.port = folder, port
        self.path = folder / "service.toml"
        self.path.write_text(
            f'state = "{folder / "state"}"\ncluster = "local(cpus=8,nodes=1)"\n'
            f"policy = '{policy}'\ndatabase = '{database}'\n[listen]\nport = {port}\n"
            f"socket = '{folder}/state/socket'\n"
        )
        self.process: subprocess.Popen[bytes] | None = None
        self._token = ""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spawn(self) -> None:
        """Start it, and wait for nothing."""
        with (self.folder / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, "serve", str(self.path)],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment_of_service(),
            )

    def begin(self) -> float:
        """Start it; returns after how many seconds it listens."""
        begin = time.monotonic()
        self.spawn()
        assert self.process is not None
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if b"listening" in line:
                return time.monotonic() - begin
        raise AssertionError((self.folder / "serve.log").read_text()[-3000:])

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def processor_seconds(self) -> float:
        """What it has worked since it was started last."""
        assert self.process is not None
        used = psutil.Process(self.process.pid).cpu_times()
        return used.user + used.system

    def client(self) -> ServiceClient:
        if not self._token:
            with ServiceClient(Connection(str(self.folder / "state" / "socket"), "")) as machine:
                user = machine.whoami()["user"]
                self._token = machine.create_token(user, "admin")["secret"]
        return ServiceClient(Connection(self.address, self._token), patience_seconds=60.0)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def kill_again_and_again(victim: Victim, kills: int, seed: int) -> Findings:
    """Submit short commands all the while, kill the service so many times, and let it finish."""
    random_of, found = random.Random(seed), Findings()
    marks = victim.folder / "marks"
    victim.begin()
    stop = threading.Event()

    def submit() -> None:
        number = 0
        with victim.client() as client:
            while not stop.is_set():
                number += 1
                command = (
                    f"echo $FORESAIL_JOB_ID.$FORESAIL_ATTEMPT >> {marks}; sleep 0.{number % 4}"
                )
                job = {"command": command, "name": f"kind-{number % 3}", "requested_time": 30}
                wanted = [{**job, "directory": "/"}] * (1 + number % 3)
                try:
                    some = client.submit(wanted, client_key=f"call-{number}")
                    if number % 5 == 0:
                        job = {**wanted[0], "held": True}
                        kept = client.submit([job], client_key=f"held-{number}")
                        found.held += [each["job_id"] for each in kept]
                except NoAnswer as error:
                    found.faults.append(f"no answer: {error}")
                    return
                found.accepted += [each["job_id"] for each in some]
                if number % 7 == 0:
                    client.submit(wanted, client_key=f"call-{number}")
                time.sleep(0.02)

    submitting = threading.Thread(target=submit)
    submitting.start()
    while found.kills < kills:
        if random_of.random() < _AFTER_ACCEPTING:
            _wait_for_more(found, submitting)
        time.sleep(random_of.uniform(0.05, 0.6))
        victim.kill()
        found.kills += 1
        while found.kills < kills and random_of.random() < _WHILE_IT_BEGINS:
            victim.spawn()
            time.sleep(random_of.uniform(0.3, 1.5))
            victim.kill()
            found.kills += 1
        found.recoveries.append(victim.begin())
    stop.set()
    submitting.join()
    with victim.client() as client:
        for job_id in found.held:
            state = client.job(job_id)["state"]
            if state != "held":
                found.faults.append(f"{job_id} was held and is reported as {state}")
            client.cancel(job_id)
        ended = {each["job_id"]: each for each in _finished(client, found)}
    victim.process.send_signal(signal.SIGTERM)
    victim.process.wait(30)
    victim.process.stdout.close()
    began = Counter(marks.read_text().split())
    found.faults += [f"{each} began {times} times" for each, times in began.items() if times > 1]
    found.faults += [
        f"{each} was accepted twice" for each, n in Counter(found.accepted).items() if n > 1
    ]
    attempts = Counter(each.partition(".")[0] for each in began)
    for job_id in found.accepted:
        job = ended.get(job_id)
        if job is None:
            found.faults.append(f"{job_id} is lost")
        elif job["state"] != "completed":
            found.faults.append(f"{job_id} is reported as {job['state']}")
        elif attempts[job_id] < 1 or attempts[job_id] > job["attempt"]:
            found.faults.append(f"{job_id} ran {attempts[job_id]} times of {job['attempt']}")
    unasked = set(attempts) - set(found.accepted)
    found.faults += [f"{each} ran and was never accepted" for each in unasked]
    return found


def _wait_for_more(found: Findings, submitting: threading.Thread) -> None:
    """Until a job more was accepted, or nobody submits any longer."""
    before = len(found.accepted)
    while len(found.accepted) == before and submitting.is_alive():
        time.sleep(0.01)


def _finished(client: ServiceClient, found: Findings) -> list[dict]:
    until = time.monotonic() + 300
    while time.monotonic() < until:
        jobs = list(client.jobs())
        if len(jobs) >= len(found.accepted) and all(each["state"] in _DONE for each in jobs):
            return jobs
        time.sleep(0.3)
    found.faults.append("jobs are not done with after five minutes")
    return list(client.jobs())
