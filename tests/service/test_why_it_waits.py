"""Why do I wait, over HTTP, with two users: place, what runs and goes before, odds, help."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from foresail.cli.main import app_of
from foresail.client import connection
from live_service import becomes, service_of_module, submit
from until import until

POLICY = 'policy = "easy,recent,incremental"\ncluster = "local(cpus=4,nodes=1)"'
SECRET = ("bob", "secretname", "secretcommand")


service = service_of_module(POLICY)


@pytest.fixture(scope="module")
def ann(service):
    with service.client(service.token("ann", "user")) as client:
        yield client


@pytest.fixture(scope="module")
def bob(service):
    with service.client(service.token("bob", "user")) as client:
        yield client


def submit_long(client, **job):
    return submit(client, **{"command": "sleep 600", **job})


def wait_of(client, job_id):
    """Why it waits, once the queue has been looked at, for which kernels may be compiled first."""

    def known():
        answer = client.get(f"/v1/jobs/{job_id}/wait")
        return None if answer.json()["place"] is None else answer

    return until(known, 120.0, 0.1)


@pytest.fixture(scope="module")
def queue(ann, bob):
    """Bob's job runs on three of four cpus and another of his waits for all; ann's comes last."""
    secret = {"name": SECRET[1], "command": f"sleep 600; {SECRET[2]}"}
    runs = submit_long(bob, cpus=3, requested_time=3600, **secret)
    becomes(bob, runs, "running")
    before = submit_long(bob, cpus=4, requested_time=3600, **secret)
    mine = submit_long(ann, cpus=2, requested_time=7200, name="mine")
    return runs, before, mine


def test_who_holds_a_job_finds_it_held_at_once(ann, queue):
    """And may release it: that was refused, and its reason was the one of before."""
    for _ in range(5):
        for command, code in (("hold", True), ("release", False)):
            answer = ann.post(f"/v1/jobs/{queue[2]}/{command}")
            assert answer.status_code == 202, (command, answer.text)
            job = ann.get(f"/v1/jobs/{queue[2]}").json()
            assert job["state"] == ("held" if code else "pending")
            assert (job["reason"]["code"] == "held") is code


def test_others_jobs_are_rows_without_names(ann, bob, queue):
    """Ann sees sizes and ends; bob sees his own by name."""
    runs, before, mine = queue
    told = wait_of(ann, mine)
    assert not any(word in told.text for word in SECRET)
    told = told.json()
    assert (told["place"], told["pending"]) == (2, 2)
    assert told["reason"]["code"] in ("no_room", "would_delay")
    (row,) = told["running"]
    assert (row["cpus"], row["job_id"], row["name"], row["user"]) == (3, None, None, None)
    assert row["end"]["p50"] > told["now_seconds"]
    assert [each["cpus"] for each in told["before"]] == [4]
    forecast = told["forecast"]
    assert forecast["start"]["p50"] > told["now_seconds"]
    assert not any(f"job {runs}" in remark for remark in forecast["remarks"])
    assert told["requested_seconds"] == 7200
    assert told["belief"]["p50"] is not None
    own = wait_of(bob, before).json()
    assert (own["place"], own["before"]) == (1, [])
    assert own["running"][0]["job_id"] == runs
    assert bob.get(f"/v1/jobs/{mine}/wait").status_code == 404
    assert bob.get(f"/v1/jobs/{runs}/wait").status_code == 409


def test_what_would_help_is_said_if_it_is_true(ann, queue):
    """A short job on the cpu that is free delays nobody; one of two hours does on any."""
    assert ann.get(f"/v1/jobs/{queue[2]}/wait").json()["helps"] == []
    wide = submit_long(ann, cpus=4, requested_time=600)
    told = wait_of(ann, wide).json()
    (fewer,) = told["helps"]
    words = "ask for 1 cpu instead of 4: it should start now rather than in "
    assert fewer["sentence"].startswith(words)
    both = ann.post("/v1/what-if", json={"job_id": wide, "cpus": fewer["cpus"]}).json()
    assert both["then"]["start"]["p50"] < both["now"]["start"]["p50"] - 3600
    ann.post(f"/v1/jobs/{wide}/cancel").raise_for_status()
    assert becomes(ann, wide, "cancelled")["because"] == "cancelled by its user"


def test_what_is_held_is_told_by_whom_and_how_to_let_it_go(service, ann, queue):
    """By an operator, whom the user may know."""
    held = submit_long(ann, cpus=1)
    with service.client(service.token("olga", "operator")) as olga:
        narrow = submit_long(ann, cpus=4)
        olga.post(f"/v1/jobs/{narrow}/hold").raise_for_status()
        becomes(ann, narrow, "held")
        told = ann.get(f"/v1/jobs/{narrow}/wait").json()
        assert told["reason"]["sentence"] == "held by olga until it is released"
        assert told["place"] is None
        assert [each["sentence"] for each in told["helps"]] == [
            f"release it: foresail release {narrow}"
        ]
        olga.post(f"/v1/jobs/{narrow}/cancel").raise_for_status()
        olga.post(f"/v1/jobs/{held}/cancel").raise_for_status()
        assert becomes(ann, narrow, "cancelled")["because"] == "cancelled by olga"
        assert becomes(ann, held, "cancelled")["because"] == "cancelled by olga"


def test_explain_prints_it_in_plain_words(service, ann, queue, monkeypatch):
    """The first screen: the reason, the place, what runs and goes before; then what happened."""
    monkeypatch.setenv(connection.ADDRESS_VARIABLE, service.address)
    monkeypatch.setenv(connection.TOKEN_VARIABLE, service.token("ann", "user"))
    result = CliRunner().invoke(app_of("explain"), [queue[2]])
    assert result.exit_code == 0, result.output
    assert not any(word in result.output for word in SECRET)
    first, second, start, third, *_ = result.output.splitlines()
    assert first.startswith(f"Job {queue[2]} (mine) waits: ")
    assert second.startswith("It is number 2 of 2 that may start.")
    assert re.match("It should start|When it starts: too little is known yet", start)
    assert third.startswith("It asks for 2 h at most, and should run for ")
    assert "another user's job" in result.output
    assert "2 cpus, a limit of 2 h." in result.output
    assert "2 tasks" not in result.output


def test_explain_and_show_say_the_same_numbers(service, ann, queue, monkeypatch):
    """Why it waits, when it should start, and how long it should run; a minute may end between."""
    monkeypatch.setenv(connection.ADDRESS_VARIABLE, service.address)
    monkeypatch.setenv(connection.TOKEN_VARIABLE, service.token("ann", "user"))
    for _ in range(10):
        shown = CliRunner().invoke(app_of("show"), [queue[2]]).output
        told = dict(re.split(r" {2,}", line, maxsplit=1) for line in shown.splitlines())
        explained = CliRunner().invoke(app_of("explain"), [queue[2]]).output
        same = (
            f"waits: {told['why']}.",
            told["starts"],
            f"should run for {told['should run for']}.",
        )
        missing = [each for each in same if each not in explained]
        if not missing:
            return
    raise AssertionError(f"{missing} of {shown} is not in {explained}")


def test_every_end_says_why(service, ann, queue):
    """Over HTTP: how it failed, which limit, and in the story as well."""
    ends = {
        "exit 3": "exit code 3",
        "/no/such/command": "exit code 127: a command",
        "kill -9 $$": "ended by signal 9 (SIGKILL)",
        "sleep 60": "its time limit of 1 s was over",
    }
    for command, words in ends.items():
        job_id = submit_long(ann, command=command, requested_time=1.0)
        job = becomes(ann, job_id, "failed", "limit")
        assert job["because"].startswith(words)
        lines = ann.get(f"/v1/jobs/{job_id}/story").json()["lines"]
        assert words in lines[-1]["sentence"]


def test_a_drained_node_is_the_reason_and_named(service, ann, queue):
    """Who drained it, and when: in the list, in the wait, and in the story."""
    mine = queue[2]
    with service.client(service.token("olga", "operator")) as olga:
        (node,) = olga.get("/v1/nodes").json()["nodes"]
        olga.post(f"/v1/nodes/{node['name']}/drain").raise_for_status()
        until(lambda: ann.get(f"/v1/jobs/{mine}/wait").json()["reason"]["code"] == "nodes_out")
        told = ann.get(f"/v1/jobs/{mine}").json()["reason"]["sentence"]
        assert told.startswith(
            f"has room only on nodes that are out of use: {node['name']} (drained by olga), "
        )
        olga.post(f"/v1/nodes/{node['name']}/resume").raise_for_status()
    story = json.dumps(ann.get(f"/v1/jobs/{mine}/story").json())
    assert "has room only on nodes that are out of use" in story
    assert "0 are free" not in story
