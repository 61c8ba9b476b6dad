"""Jobs that come from the cluster are jobs of the service, also after it was killed."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import toy_queue
from foresail.model import registry
from foresail.service.store.sql_store import SqlStore
from foresail.service.upkeep import faults_of
from live_service import environment_of_service, live_service
from toy_queue import Queue
from until import until as await_that

PLUGIN = Path(toy_queue.__file__)
registry._ENTRIES.pop(("cluster", "toyqueue"), None)  # it is no plug-in of other tests


def settings(folder):
    file = folder / "queue.json"
    return (
        f"cluster = 'toyqueue(file=\"{file}\")'\nplugins = [\"{PLUGIN}\"]\npolicy = 'easy,recent'"
    )


def foresail(service, *words):
    """What the command says, and its exit status."""
    variables = {**environment_of_service(), "FORESAIL_SERVICE": str(service.state / "socket")}
    done = subprocess.run(
        [sys.executable, "-c", "from foresail.cli.main import main; main()", *words],
        capture_output=True,
        text=True,
        env=variables,
        cwd="/",
        timeout=60,
    )
    return done.stdout + done.stderr, done.returncode


def answered(client, path):
    """Ask until it is known: what draws forecasts may have to be compiled."""
    end = time.monotonic() + 120.0
    while (answer := client.get(path)).status_code == 503 and time.monotonic() < end:
        time.sleep(0.2)
    return answer


def until(client, **wanted):
    """Wait until jobs are in these states; returns all jobs by id."""
    end = time.monotonic() + 30.0
    while time.monotonic() < end:
        jobs = {each["job_id"]: each for each in client.get("/v1/jobs").json().get("jobs", ())}
        states = {job_id.removeprefix("toyqueue:"): job["state"] for job_id, job in jobs.items()}
        if all(states.get(name.strip("_")) == state for name, state in wanted.items()):
            return jobs
        time.sleep(0.05)
    raise AssertionError(states)


def follow_what_is_left_to_the_cluster(client, queue):
    """It is said, nobody here starts or releases it though there is room, and it is load."""
    queue.put("88", user="bob", licences=True)
    until(client, _88="held")
    left = "left to the cluster: it asks for licences"
    reason = await_that(lambda: client.get("/v1/jobs/88").json()["reason"])  # of the next snapshot
    assert reason["sentence"] == left
    refused = client.post("/v1/jobs/88/release")
    assert (refused.status_code, left in refused.text) == (409, True)
    assert answered(client, "/v1/jobs/88/wait").json()["helps"] == []
    assert client.get("/v1/cluster").json()["free_cpus"] == 1.0
    queue.begin("88", time.time())
    until(client, _88="running")
    assert client.get("/v1/cluster").json()["free_cpus"] == 0.0


def test_the_life_of_a_queue_is_followed_through_a_kill(tmp_path):
    """Rows, names, forecasts and ends are those of the cluster; nothing is lost or doubled."""
    queue, now = Queue(tmp_path / "queue.json"), time.time()
    queue.put("84", cpus=3, user="ann", name="of\nann")
    queue.begin("84", now - 60.0)
    queue.put("85", cpus=4, user="bob", name="later")
    with live_service(tmp_path, settings(tmp_path)) as service, service.client() as client:
        jobs = until(client, _84="running", _85="pending")
        assert [*jobs] == ["toyqueue:85", "toyqueue:84"]
        follow_what_is_left_to_the_cluster(client, queue)
        first, second = jobs["toyqueue:84"], jobs["toyqueue:85"]
        assert (first["user"], first["name"], first["cpus"]) == ("ann", "of?ann", 3)
        assert first["start_seconds"] == pytest.approx(now - 60.0)
        assert (first["attempt"], second["requested_seconds"]) == (1, 7200.0)
        assert client.get("/v1/jobs/85").json()["reason"]["code"] == "reserved"
        for way in ("forecast", "wait", "story", "suggested-request"):
            answer = answered(client, f"/v1/jobs/85/{way}")
            assert answer.status_code == 200, (way, answer.text)
            assert answer.json()["job_id"] == "toyqueue:85"
        tried = client.post("/v1/what-if", json={"job_id": "85", "cpus": 2}).json()
        assert tried["then"]["job_id"] == "toyqueue:85"
        several = client.get("/v1/jobs", params={"job": ["84", "99"]}).json()["jobs"]
        assert [each["job_id"] for each in several] == ["toyqueue:84"]
        said, status = foresail(service, "submit", "--", "true")
        assert status == 2
        assert "runs no commands of Foresail's" in said
        said, status = foresail(service, "show", "84")
        assert (status, "toyqueue:84" in said) == (0, True)
        said, status = foresail(service, "explain", "toyqueue:85")
        assert (status, "next in line: 4 cpus" in said) == (0, True)
        service.process.kill()
    queue.end("84", time.time())
    queue.end("88", time.time())
    queue.put("85", limit=600.0, name="sooner")
    queue.put("86", cpus=4, user="bob")
    queue.put("87", cpus=4, user="bob")
    away = tmp_path / "queue.json.away"
    away.touch()
    with live_service(tmp_path, settings(tmp_path)) as service, service.client() as client:
        health = client.get("/v1/health")
        assert health.status_code == 503
        assert "the cluster cannot be reached (OSError: the queue is away)" in health.text
        away.unlink()
        jobs = until(client, _84="completed", _85="running", _86="pending", _87="pending")
        assert len(jobs) == 5
        changed = jobs["toyqueue:85"]
        assert (changed["requested_seconds"], changed["name"]) == (600.0, "sooner")
        with queue.rows() as rows:
            assert [rows[name]["attempt"] for name in ("84", "85", "86", "87")] == [1, 1, 0, 0]
        assert client.post("/v1/jobs/cancel", json={"job_ids": ["86"]}).status_code == 202
        queue.put("87", state="gone")
        jobs = until(client, _86="cancelled", _87="cancelled")
        assert jobs["toyqueue:86"]["because"] == "cancelled by admin"
        with queue.rows() as rows:
            assert rows["86"]["state"] == "gone"
    with closing(SqlStore.in_file(tmp_path / "state" / "foresail.db")) as store:
        assert [*faults_of(store)] == []


def test_a_connection_that_hangs_is_made_once(tmp_path):
    """It counts as away, whoever asks is answered, and all goes on once it has been made."""
    Queue(tmp_path / "queue.json").put("84", cpus=3)
    hangs = tmp_path / "queue.json.hangs"
    hangs.touch()
    with live_service(tmp_path, settings(tmp_path)) as service, service.client() as client:
        await_that(lambda: "has not answered for 5 s" in client.get("/v1/health").text)
        assert client.get("/v1/health").status_code == 503
        time.sleep(4.0)  # it is tried again meanwhile
        hangs.unlink()
        until(client, _84="running")
    assert (tmp_path / "queue.json.connections").read_text() == "one\n"
