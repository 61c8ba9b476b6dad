"""A store that is away or full: the service waits, says so, and goes on."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from databases import PostgreSQLServer, program
from foresail.service.configuration import read_configuration
from foresail.service.doctor import examined
from live_service import becomes, live_service
from stopping import stop_again_and_again
from until import until


def test_a_server_that_is_stopped_three_times_is_waited_for(tmp_path):
    """Under load: 503 with Retry-After meanwhile, and nothing is lost or run twice."""
    if program("initdb") is None:
        pytest.skip("no PostgreSQL on this machine")
    with tempfile.TemporaryDirectory() as folder:
        server = PostgreSQLServer(Path(folder))
        server.start()
        try:
            found = stop_again_and_again(tmp_path, server, stops=3)
        finally:
            server.stop()
    assert found.faults == []
    assert found.refused
    assert found.accepted


def test_an_idle_service_says_for_how_long_its_server_is_away(tmp_path):
    """Health, what is refused and ``doctor``, that what was accepted waits; then nothing more."""
    if program("initdb") is None:
        pytest.skip("no PostgreSQL on this machine")
    with tempfile.TemporaryDirectory() as folder:
        server = PostgreSQLServer(Path(folder))
        server.start()
        is_there = True
        try:
            more = f'database = "{server.address}"\ncluster = "local(cpus=2)"'
            with live_service(tmp_path, more) as service, service.client() as client:

                def health_comes_to(status):
                    until(lambda: client.get("/v1/health").status_code == status, 30.0, 0.1)
                    return client.get("/v1/health")

                health_comes_to(200)
                server.stop()
                is_there = False
                time.sleep(2.5)
                detail = health_comes_to(503).json()["detail"]
                assert re.search(r"^the database \S+ has not answered for \d+(\.\d+)? s: ", detail)
                assert "what was accepted is in it and waits" in detail
                refused = client.post("/v1/jobs", json={"command": "true"})
                assert refused.status_code == 503
                assert "has not answered for" in refused.json()["detail"]
                configuration = read_configuration(tmp_path / "service.toml")
                found = next(each for each in examined(configuration) if each.what == "store")
                assert "has not answered" in found.says
                assert found.remedy
                server.start()
                is_there = True
                health_comes_to(200)
        finally:
            if is_there:
                server.stop()


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 100 MB of its own."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_on_a_full_disk_jobs_are_cancelled_held_released_and_nodes_drained(small_disk):
    """A job has filled it faster than anybody could look; what it has written is then removed."""
    more = 'policy = "easy,recent,incremental"\ncluster = "local(nodes=1,cpus=2)"'
    flood = small_disk / "flood"
    with live_service(small_disk, more) as service, service.client() as client:

        def submit(command, **fields):
            job = {"command": command, "directory": "/", **fields}
            return client.post("/v1/jobs", json=job)

        assert submit("sleep 100", cpus=2, held=True).is_success
        assert submit("sleep 100", cpus=2, held=True).is_success
        its_pid = small_disk.parent / "pid"
        assert submit(f"echo $$ > {its_pid}; cat /dev/zero > {flood}; exec sleep 100").is_success
        until(lambda: not os.statvfs(small_disk).f_bavail)
        refused = submit("true")
        assert refused.status_code == 503
        assert "Retry-After" in refused.headers
        assert "cancel, hold, release and drain are" in refused.json()["detail"]
        for _ in range(20):  # more than the room of a journal would take, were it not written over
            assert client.post("/v1/jobs/1/release").status_code == 202
            becomes(client, "1", "pending")
            assert client.post("/v1/jobs/1/hold").status_code == 202
            becomes(client, "1", "held")
        (node,) = client.get("/v1/nodes").json()["nodes"]
        assert client.post(f"/v1/nodes/{node['name']}/drain").status_code == 202
        assert client.post("/v1/jobs/2/cancel").status_code == 202
        becomes(client, "2", "cancelled")
        assert client.post("/v1/jobs/3/cancel").status_code == 202
        until(lambda: not Path("/proc", its_pid.read_text().strip()).exists())
        flood.unlink()
        becomes(client, "3", "cancelled")
        assert submit("true").is_success
        until(lambda: client.get("/v1/nodes").json()["nodes"][0]["state"] == "drained")
