"""The commands that speak to a service, typed as their users type them."""

from __future__ import annotations

import importlib
import json
import time

import pytest
from typer.testing import CliRunner

from foresail.model.errors import ForesailError
from live_service import live_service

SCRIPT = """#!/bin/sh
#SBATCH --job-name=scripted
#SBATCH --time=00:01:00
#SBATCH --ntasks=2
#FORESAIL --deadline=1h
echo from a script, $FORESAIL_TASKS tasks
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    more = 'cluster = "local(cpus=2,nodes=1)"'
    with live_service(tmp_path_factory.mktemp("service"), more) as running:
        yield running


@pytest.fixture
def typed(service, monkeypatch, tmp_path):
    monkeypatch.setenv("FORESAIL_SERVICE", service.address)
    monkeypatch.setenv("FORESAIL_TOKEN", service.admin_token)
    monkeypatch.chdir(tmp_path)

    def type_it(name, *words, status=0):
        app = importlib.import_module(f"foresail.cli.{name}").app
        result = CliRunner().invoke(app, [str(each) for each in words])
        if isinstance(result.exception, ForesailError):
            assert status == 2, result.exception
            return str(result.exception)
        assert result.exit_code == status, (result.output, result.exception)
        return result.output

    return type_it


def test_a_command_is_submitted_waited_for_and_read(typed):
    job = typed("submit", "--name", "hello", "--wait", "--", "echo", "a  b").strip()
    assert typed("logs", job) == "a  b\n"
    assert "completed" in typed("show", job)
    assert json.loads(typed("show", job, "--json"))["name"] == "hello"
    assert "Started after" in typed("explain", job)
    assert job in typed("jobs", "--all")
    assert job not in typed("jobs")


def test_what_a_job_may_hold_of_memory_is_shown(typed):
    job = typed("submit", "--memory", "50M", "--hold", "--", "true").strip()
    assert "1 cpu, at most 50 MiB of memory, no time limit" in typed("show", job)
    typed("cancel", job)


def test_a_script_with_directives_and_a_file_of_jobs(typed, tmp_path):
    (tmp_path / "job.sh").write_text(SCRIPT)
    job = typed("submit", "--wait", "job.sh").strip()
    assert typed("logs", job) == "from a script, 2 tasks\n"
    shown = json.loads(typed("show", job, "--json"))
    assert (shown["name"], shown["cpus"], shown["requested_seconds"]) == ("scripted", 2, 60.0)
    assert "2 cpus, a limit of 60 s" in typed("show", job)
    (tmp_path / "jobs.toml").write_text(
        '[[job]]\nname = "first"\ncommand = "true"\n'
        '[[job]]\ncommand = "echo $FORESAIL_ARRAY_INDEX"\narray = "4-5"\nafter = "first"\n'
    )
    jobs = typed("submit", "jobs.toml").split()
    assert len(jobs) == 3
    typed("wait", *jobs)
    assert typed("logs", jobs[-1]) == "5\n"


def test_members_of_an_array_know_themselves_by_the_names_of_slurm(typed, tmp_path):
    script = tmp_path / "array.sh"
    script.write_text(
        "#!/bin/sh\n#SBATCH --array=2-8:3\n"
        "echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, "
        "$SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX\n"
    )
    members = typed("submit", "--wait", "array.sh").split()
    array = members[0].partition("_")[0]
    assert members == [f"{array}_2", f"{array}_5", f"{array}_8"]
    assert typed("logs", members[1]) == f"{array} 5 of 3, 2 to 8\n"


def test_a_job_is_held_forecast_released_and_cancelled(typed):
    job = typed("submit", "--hold", "--time", "1min", "--", "sleep", "60").strip()
    assert "held until it is released" in typed("jobs")
    assert "never starts" in typed("forecast", job)
    assert "ask for" in typed("forecast", job, "--risk", "0.1")
    assert "then" in typed("forecast", job, "--cpus", "2")
    assert "starts now" in typed("forecast", "--command", "true")
    assert "if submitted" in typed("forecast", "--command", "true", "--in", "1h", "--json")
    typed("release", job)
    typed("cancel", job)
    typed("wait", job, status=1)
    assert "cancelled" in typed("show", job)
    assert "is cancelled" in typed("hold", job, status=2)


def test_nodes_are_drained_and_resumed(typed, service):
    with service.client() as client:
        (node,) = [each["name"] for each in client.get("/v1/nodes").json()["nodes"]]
    typed("nodes", "--drain", node)
    job = typed("submit", "--", "true").strip()
    with service.client() as client:
        assert client.get(f"/v1/jobs/{job}").json()["state"] == "pending"
    assert "drained" in typed("nodes")
    typed("nodes", "--resume", node)
    typed("wait", job)
    assert "no node" in typed("nodes", "--drain", "none", status=2)


def test_the_cluster_at_a_glance(typed):
    until = time.monotonic() + 20.0
    while "cpus 0 of 2 in use" not in typed("top"):
        assert time.monotonic() < until


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["show", "99999"], "no job 99999"),
        (["submit", "--cpus", "99", "--", "true"], "wider than the cluster"),
        (["submit", "--time", "soon", "--", "true"], "requested_time"),
        (["submit", "--memory", "much", "--", "true"], "memory"),
        (["submit", "--after", "99999", "--", "true"], "no such job"),
        (["forecast"], "a job's id"),
        (["forecast", "1", "--in", "x"], "--in"),
        (["submit", "misspelt.sh"], "misspelt.sh"),
        (["cancel", "first"], "'first' is no id of a job"),
        (["token", "revoke", "ann"], "'ann' is no id of a token"),
        (["cancel", "99999"], "no job 99999"),
        (["explain", "99999"], "no job 99999"),
    ],
)
def test_what_cannot_be_done_is_said(typed, words, says):
    assert says in typed(*words, status=2)


def test_of_an_array_one_job_is_told_at_a_time(typed):
    first, last = typed("submit", "--hold", "--array", "3-4", "--", "true").split()
    array = first.partition("_")[0]
    for command in ("show", "explain", "logs", "forecast"):
        assert f"array; ask for one of its jobs, {first} to {last}" in typed(
            command, array, status=2
        )
    typed("cancel", array)


def test_ids_are_whole_at_a_glance(typed):
    """However long the names of jobs are."""
    jobs = typed("submit", "--hold", "--name", "n" * 90, "--array", "100000-100001", "--", "true")
    shown = typed("top")
    assert all(job in shown for job in jobs.split())
    typed("cancel", *jobs.split())


def test_without_a_service_or_a_token_that_is_said(typed, monkeypatch):
    monkeypatch.setenv("FORESAIL_TOKEN", "foresail_wrong")
    assert "opens nothing" in typed("jobs", status=2)


def test_log_in_keeps_the_token_for_its_owner_alone(typed, service, monkeypatch, tmp_path):
    monkeypatch.delenv("FORESAIL_TOKEN")
    monkeypatch.delenv("FORESAIL_SERVICE")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    typed("login", service.address, "--token-file", service.state / "admin-token")
    assert typed("jobs", "--all")
    monkeypatch.setenv("FORESAIL_TOKEN", "foresail_wrong")
    assert "opens nothing" in typed("jobs", status=2)  # at the address that is kept
    kept = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert all(each.stat().st_mode & 0o077 == 0 for each in kept)
