"""A service in a process of its own, on a port of its own, for tests."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import httpx
import pytest

from foresail.client.connection import Connection
from foresail.client.service_client import ServiceClient
from until import until

ENDS = ("completed", "failed", "limit", "cancelled", "withdrawn")
"""States that no job leaves."""

_MAIN = "from foresail.cli.main import main; main()"
_ADDRESS = re.compile(r"listening on (http://\S+)")


@dataclass(frozen=True)
class LiveService:
    address: str
    state: Path
    process: subprocess.Popen[bytes]

    @cached_property
    def admin_token(self) -> str:
        """Made, as its operator would, on the machine itself."""
        with ServiceClient(Connection(str(self.state / "socket"), "")) as client:
            return client.create_token("admin", "admin")["secret"]

    def client(self, token: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token or self.admin_token}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=30.0)

    def token(self, user: str, role: str) -> str:
        with self.client() as admin:
            answer = admin.post("/v1/tokens", json={"user": user, "role": role})
        answer.raise_for_status()
        return answer.json()["secret"]


def environment_of_service() -> dict[str, str]:
    """As users have it: what Python has compiled once, it keeps."""
    variables = {**os.environ, "PYTHONUNBUFFERED": "1"}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


@contextmanager
def live_service(
    folder: Path,
    more: str = "",
    port: int = 0,
    after: str = "",
    accounts: str = "shared_account = true",
    machine_socket: Path | None = None,
) -> Iterator[LiveService]:
    """A service whose configuration has these lines too; begun again, it goes on."""
    configuration = folder / "service.toml"
    state = folder / "state"
    machine_socket = machine_socket or state / "socket"
    configuration.write_text(
        f'state = "{state}"\n{accounts}\n{more}\n'
        f'[listen]\nport = {port}\nsocket = "{machine_socket}"\n{after}\n'
    )
    process = subprocess.Popen(
        [sys.executable, "-c", _MAIN, "serve", str(configuration)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env=environment_of_service(),
    )
    try:
        yield LiveService(_address(process), state, process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        finally:
            process.kill()
        assert process.stdout is not None
        process.stdout.close()


def service_of_module(more: str = "", after: str = ""):
    """A fixture: one service for all tests of a module."""

    @pytest.fixture(scope="module")
    def service(tmp_path_factory):
        with live_service(tmp_path_factory.mktemp("service"), more, after=after) as running:
            yield running

    return service


def _address(process: subprocess.Popen[bytes]) -> str:
    """What it says; unbuffered, so that no line is read before it is looked for."""
    assert process.stdout is not None
    while select.select([process.stdout], [], [], 60.0)[0]:
        line = process.stdout.readline()
        if not line:
            break
        if found := _ADDRESS.search(line.decode()):
            return found[1]
    raise AssertionError("the service does not begin")


def submit(client: httpx.Client, **job: object) -> str:
    """Submit a job; returns its id."""
    answer = client.post("/v1/jobs", json=job)
    answer.raise_for_status()
    job_id: str = answer.json()["jobs"][0]["job_id"]
    return job_id


def becomes(client: httpx.Client, job_id: str, *states: str, seconds: float = 60.0) -> dict:
    """Wait until a job is in one of these states; returns it as it stands then."""

    def stands() -> dict | None:
        job = client.get(f"/v1/jobs/{job_id}").json()
        return job if job["state"] in states else None

    return until(stands, seconds, 0.05)
