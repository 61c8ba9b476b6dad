"""What sbatch lets a job wait for, asked of a real service."""

from __future__ import annotations

import time
from contextlib import contextmanager
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from foresail.cli.main import app_of
from foresail.model.errors import InputError
from foresail.model.job import Dependency, DependencyKind
from foresail.service.api.submissions import still_to_wait_for
from live_service import ENDS, becomes, service_of_module, submit

service = service_of_module('cluster = "local(cpus=2)"')


@contextmanager
def ended(service, jobs):
    """A client, and the jobs of a call once all have ended."""
    with service.client() as client:
        answer = client.post("/v1/jobs", json={"jobs": jobs})
        assert answer.status_code == 201, answer.text
        yield client, [becomes(client, each["job_id"], *ENDS) for each in answer.json()["jobs"]]


def test_an_undivided_machine_is_drained_as_one_node(service, monkeypatch):
    """What runs runs on; nothing more starts, and why is said."""
    monkeypatch.setenv("FORESAIL_SERVICE", service.address)
    monkeypatch.setenv("FORESAIL_TOKEN", service.admin_token)

    def nodes(*words):
        result = CliRunner().invoke(app_of("nodes"), list(words))
        assert result.exit_code == 0, result.output
        return result.output.splitlines()[1].split()

    assert nodes()[:5] == ["all", "all", "up", "2", "2"]
    with service.client() as client:
        runs = submit(client, command="sleep 1; true")
        becomes(client, runs, "running")
        assert nodes("--drain", "all")[:5] == ["all", "all", "drained", "2", "0"]
        waits = submit(client, command="true")
        becomes(client, runs, "completed")
        told = client.get(f"/v1/jobs/{waits}").json()
        assert told["state"] == "pending"
        assert "all (drained by admin)" in told["reason"]["sentence"]
        assert "all (drained by admin)" in client.get(f"/v1/jobs/{waits}/wait").text
        assert nodes("--resume", "all")[2] == "up"
        becomes(client, waits, "completed")


def test_dependencies_of_every_kind_run_in_order(service):
    """What can never be is withdrawn with a reason; ends of arrays count together."""
    jobs = [
        {"name": "bad", "command": "exit $FORESAIL_ARRAY_INDEX", "array": "0-1"},
        {"command": "true", "after": "afternotok:bad"},
        {"command": "true", "after": ["afterany:bad", "singleton"]},
        {"command": "true", "after": "after:bad", "name": "cleanup"},
        {"command": "true", "after": "afternotok:cleanup,afterany:bad"},
        {"command": "true", "after": "afterok:bad"},
    ]
    with ended(service, jobs) as (client, told):
        states = [each["state"] for each in told]
        assert states == ["completed", "failed", *3 * ["completed"], *2 * ["withdrawn"]]
        array, ends = told[0]["job_id"].partition("_")[0], told[1]["end_seconds"]
        assert told[2]["start_seconds"] >= ends
        assert told[3]["start_seconds"] >= ends
        assert told[3]["dependencies"] == f"afterany:{array}_0:{array}_1,singleton"
        assert "only after a failure" in told[5]["because"]
        known = {"command": "true", "after": f"afternotok:{array}"}
        assert client.post("/v1/jobs", json=known).status_code == 201
        for never, said in (
            (f"afterok:{array}", "is failed"),
            (f"afternotok:{told[2]['job_id']}", "is completed"),
            ("afterok:1?afterok:2", "? is not supported"),
            ("afterany:12345", "no such job"),
        ):
            answer = client.post("/v1/jobs", json={"command": "true", "after": never})
            assert (answer.status_code, answer.json()["field"]) == (422, "after")
            assert said in answer.text


def test_a_job_begins_when_it_was_to_and_two_of_an_array_at_once(service):
    begin = time.time() + 1.5
    jobs = [
        {"command": "true", "begin": begin},
        {"command": "sleep 0.2", "array": "0-5%1"},
    ]
    with ended(service, jobs) as (client, told):
        assert begin <= told[0]["start_seconds"] < begin + 5.0
        assert told[0]["begin_seconds"] == begin
        for before, after in pairwise(told[1:]):
            assert before["end_seconds"] <= after["start_seconds"]
        later = client.post("/v1/jobs", json={"command": "true", "begin": "1h"}).json()["jobs"][0]
        job = client.get(f"/v1/jobs/{later['job_id']}").json()
        assert job["state"] == "pending"
        assert job["reason"]["code"] == "begin"
        assert job["reason"]["sentence"].startswith("is to begin in ")


def test_of_output_in_a_file_of_ones_own_it_is_said_where_it_is(service, tmp_path):
    """A file that cannot be written is said in the log."""
    jobs = [
        {"command": "echo written", "output": "%x-%j", "directory": str(tmp_path), "name": "own"},
        {"command": "true", "output": "none/such", "directory": str(tmp_path)},
        {"command": "echo $SLURM_ARRAY_TASK_STEP", "array": "2,6,4"},
    ]
    with ended(service, jobs) as (client, told):
        path = tmp_path / f"own-{told[0]['job_id']}"
        assert path.read_text() == "written\n"
        assert told[0]["output"] == str(path)
        answer = client.get(f"/v1/jobs/{told[0]['job_id']}/logs")
        assert (answer.status_code, str(path) in answer.text) == (409, True)
        assert told[1]["state"] == "failed"
        assert "none/such: No such" in client.get(f"/v1/jobs/{told[1]['job_id']}/logs").text
        assert client.get(f"/v1/jobs/{told[2]['job_id']}/logs").text == "2\n"
        refused = client.post("/v1/jobs", json={"command": "true", "output": "%J"})
        assert (refused.status_code, refused.json()["field"]) == (422, "output")


@pytest.mark.parametrize(
    ("kind", "states", "left"),
    [
        ("afterok", ["completed", None], ("afterok", "b")),
        ("afterok", ["completed", "completed"], None),
        ("afterok", ["failed", None], "can never run"),
        ("afternotok", ["failed", None], ("afterany", "b")),
        ("afternotok", ["completed", None], ("afternotok", "b")),
        ("afternotok", ["completed", "completed"], "can never run"),
        ("afterany", ["cancelled", None], ("afterany", "b")),
        ("after", ["failed", None], ("after", "b")),
    ],
)
def test_what_is_left_of_a_dependency_on_jobs_that_have_ended(kind, states, left):
    """A failure of one of an array is enough for whoever waits for that, once all have ended."""
    rows = [
        {"job_id": name, "state": state or "running", "end_seconds": None if state is None else 1.0}
        for name, state in zip("ab", states, strict=True)
    ]
    asked = Dependency(DependencyKind(kind), ("7",))
    if isinstance(left, str):
        with pytest.raises(InputError, match=left):
            still_to_wait_for(asked, rows)
    else:
        expected = None if left is None else Dependency(DependencyKind(left[0]), left[1:])
        assert still_to_wait_for(asked, rows) == expected
    with pytest.raises(LookupError):
        still_to_wait_for(asked, [])
