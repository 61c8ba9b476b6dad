"""A live session: policies that fail, metrics, what it leaves, and what another would have done."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from typer.testing import CliRunner

from foresail.cli.main import app_of
from foresail.client.connection import Connection
from foresail.client.service_client import ServiceClient
from foresail.model.cluster import Cluster, Node, Partition, Resources, require_same_processors
from foresail.model.errors import InputError
from foresail.traces.folder import load_workload
from foresail.traces.measured import quantity
from live_service import live_service, submit
from until import until

SESSION = """
policy = "easy,recent,incremental"
cluster = "local(cpus=2,nodes=1,sample_seconds=0.1,gpus=1)"
"""
BROKEN = """
from foresail.model.protocols import Scheduler
from foresail.model.registry import register

@register("scheduler", "broken")
class Broken(Scheduler):
    def __init__(self, parameters=None):
        pass

    def decide(self, view):
        {body}
"""


def done(client):
    states = {each["state"] for each in client.get("/v1/jobs").json()["jobs"]}
    return states and states <= {"completed", "failed", "cancelled", "withdrawn", "limit"}


def invoke(app, *words):
    return CliRunner().invoke(app, [str(each) for each in words])


def test_a_session_is_exported_decided_alike_again_and_replayed_under_others(tmp_path):
    with live_service(tmp_path, SESSION) as service:
        with service.client() as client:
            for number in range(12):
                job = {"command": f"sleep 0.{number % 4}", "name": "nap", "requested_time": 10}
                job |= {"memory": "64MiB", "gpus": number // 8}
                client.post("/v1/jobs", json={**job, "deadline": 60, "cpus": 1 + number % 2})
            client.post("/v1/jobs", json={"command": "sleep 60", "held": True})
            client.post("/v1/jobs/13/cancel")
            until(lambda: client.get("/v1/jobs/4").json()["state"] == "completed")
            client.post("/v1/policy", json={"policy": "foresail"})
            until(lambda: done(client))
            client.post("/v1/policy", json={"policy": "fcfs,recent,incremental"})
            until(lambda: client.get("/v1/health").status_code == 200)
            metrics = client.get("/metrics").text
        assert "foresail_deadlines_met_total 12.0" in metrics
        assert 'foresail_jobs_ended_total{because="completed"} 12.0' in metrics
        assert "foresail_cycle_seconds_bucket" in metrics
    assert invoke(app_of("db"), "check", service.state).output.startswith("well: 13 jobs")
    exported = tmp_path / "exported"
    told = invoke(app_of("db"), "export", service.state, "--output", exported)
    used = quantity(load_workload(exported / "workload"), "memory")
    assert (used > 1e5).sum() >= 3
    assert told.output.startswith("12 jobs; 1 that did not run")
    again = invoke(app_of("replay"), exported)
    assert (again.exit_code, again.output) == (0, "every decision is made again\n")
    words = (app_of("compare"), exported / "workload", "--with", "easy", "--with", "foresail")
    assert "gpus" in str(invoke(*words).exception)  # one pool of processors says nothing of them
    other = invoke(*words, "--filter", "drop_gpus")
    assert (other.exit_code, "foresail" in other.output) == (0, True), other.exception
    assert invoke(app_of("db"), "check", tmp_path / "none").exit_code != 0


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise ValueError('no idea')", "no idea"),
        (
            "import time; time.sleep(0.3); from foresail.model.decision import Decision; "
            "return Decision()",
            "which may take 0.1 s",
        ),
    ],
)
def test_a_policy_that_fails_or_takes_too_long_gives_way_to_easy(tmp_path, body, why):
    """Jobs run on, people are told, and another policy can be asked for."""
    (tmp_path / "broken.py").write_text(BROKEN.format(body=body))
    more = 'policy = "broken,recent,incremental"\nplugins = ["broken.py"]\ndecision_seconds = 0.1'
    with (
        live_service(tmp_path, f"{more}\ncycle_seconds = 0.2") as service,
        service.client() as client,
    ):
        job = submit(client, command="true")
        until(lambda: client.get(f"/v1/jobs/{job}").json()["state"] == "completed")
        cluster = client.get("/v1/cluster").json()
        assert cluster["policy"] == "easy,recent,incremental"
        assert why in cluster["remarks"][0]
        client.post("/v1/policy", json={"policy": "easy(order=shortest),recent,incremental"})
        until(lambda: len(client.get("/v1/cluster").json()["remarks"]) == 1)  # of accounts


def test_a_configuration_read_anew_changes_the_policy_or_is_refused(tmp_path):
    policy = 'policy = "easy,recent,incremental"'
    with live_service(tmp_path, policy) as service, service.client() as client:
        path = tmp_path / "service.toml"
        text = path.read_text()
        path.write_text(text.replace("easy,recent", "fcfs,recent"))
        service.process.send_signal(signal.SIGHUP)
        until(lambda: client.get("/v1/cluster").json()["policy"].startswith("fcfs"))
        path.write_text(text.replace("easy,recent", "none such"))
        service.process.send_signal(signal.SIGHUP)
        remarks = []

        def is_told():  # once there is a daemon of the policy before: until then it answers 503
            remarks[:] = client.get("/v1/health").json().get("remarks", [])
            return any("none such" in each for each in remarks)

        until(is_told)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("policy = 3", "policy"),
        ('policy = "none such"', "policy"),
        ("cycle_seconds = -1", "cycle_seconds"),
        ("[listen]\nport = 99999", "listen.port"),
        ("what = 1", "what"),
        ("= = =", "service.toml"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_field_and_nothing_is_made(tmp_path, text, names):
    path = tmp_path / "service.toml"
    path.write_text(f"{text}\n")
    main = "from foresail.cli.main import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", main, "serve", str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ran.returncode == 2
    assert names in ran.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["service.toml"]


POOL = Cluster((Partition("all", Resources(4.0, 8e9)),))
NODES = Cluster((Partition("all", Resources(4.0, 8e9), (Node("a", Resources(4.0, 8e9)),)),))
SMALLER = Cluster((Partition("all", Resources(2.0, 8e9)),))
LESS_MEMORY = Cluster((Partition("all", Resources(4.0, 4e9)),))
ANOTHER_KERNEL = Cluster((Partition("all", Resources(4.0, 7.9e9)),))


@pytest.mark.parametrize(
    ("before", "there"),
    [(POOL, NODES), (NODES, POOL), (POOL, SMALLER), (POOL, LESS_MEMORY)],
)
def test_processors_without_nodes_are_those_that_the_state_was_begun_with(before, there):
    with pytest.raises(InputError, match="or another state folder") as refused:
        require_same_processors(before, there)
    assert refused.value.field == "cluster"


@pytest.mark.parametrize(
    ("before", "there"), [(POOL, POOL), (POOL, ANOTHER_KERNEL), (NODES, NODES)]
)
def test_the_same_processors_go_on(before, there):
    require_same_processors(before, there)


def test_what_the_service_says_is_json_where_that_is_wished(tmp_path):
    path = tmp_path / "service.toml"
    state = tmp_path / "state"
    path.write_text(
        f'state = "{state}"\nlog_format = "json"\n[listen]\nport = 0\nsocket = "{state}/socket"\n'
    )
    main = "from foresail.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", main, "serve", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    while "listening" not in process.stdout.readline():
        pass
    with ServiceClient(Connection(str(state / "socket"), "")) as client:
        secret = client.create_token(client.whoami()["user"], "admin")["secret"]
    process.send_signal(signal.SIGHUP)
    first = process.stderr.readline()
    while "policy" not in first.splitlines()[-1]:
        first += process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=60)
    said = first + rest
    lines = [json.loads(line) for line in said.splitlines()]
    assert any("policy" in line["message"] for line in lines)
    assert all(line["level"] in ("info", "warning", "error") for line in lines)
    assert secret not in said


def test_what_ended_long_ago_is_forgotten_and_can_still_be_read_about(tmp_path):
    lines = f"{SESSION}remembered_jobs = 1000\ncycle_seconds = 0.5"
    with live_service(tmp_path, lines) as service, service.client() as client:
        for command in ("true", "false"):
            client.post("/v1/jobs", json={"command": command}).raise_for_status()
        until(lambda: done(client))
        held = [{"command": "true", "held": True}] * 2_500
        client.post("/v1/jobs", json={"jobs": held}).raise_for_status()
        waiting = {"job_ids": [str(number) for number in range(3, 2_503)]}
        client.post("/v1/jobs/cancel", json=waiting).raise_for_status()
        until(lambda: '"kind":"forgotten"' in records(service.state))
        assert "Started after" in str(client.get("/v1/jobs/1/story").json())
        behind = client.post("/v1/jobs", json={"command": "true", "after": ["1"]})
        assert behind.status_code == 201
        refused = client.post("/v1/jobs", json={"command": "true", "after": ["2"]})
        assert (refused.status_code, refused.json()["field"]) == (422, "after")
        assert "job 2 is failed" in refused.json()["detail"]
    with live_service(tmp_path, lines) as service, service.client() as client:
        until(lambda: client.get("/v1/jobs/2503").json()["state"] == "completed")
        assert client.get("/v1/jobs/1").json()["state"] == "completed"
    assert invoke(app_of("db"), "check", service.state).output.startswith("well: 2,503 jobs")
    exported = tmp_path / "exported"
    told = invoke(app_of("db"), "export", service.state, "--output", exported)
    assert told.output.startswith("3 jobs; 2500 that did not run")
    assert invoke(app_of("replay"), exported).output == "every decision is made again\n"


def records(state):
    with closing(sqlite3.connect(f"file:{state}/foresail.db?mode=ro", uri=True)) as connection:
        latest = connection.execute("SELECT line FROM records ORDER BY number DESC LIMIT 5")
        return "".join(line for (line,) in latest)
