"""What is to be expected, over HTTP: forecasts, what if, suggestions, the plan, the use."""

from __future__ import annotations

import time

import numpy as np
import pytest

from foresail.live.command_job import CommandJob
from foresail.service.slow_answers import use_over_time
from foresail.service.store.protocol import KeyedCall, Submit, WholeStep
from foresail.service.store.sql_store import SqlStore
from live_service import becomes, live_service, service_of_module, submit
from until import until

POLICY = 'policy = "easy,recent,incremental"\ncluster = "local(cpus=2,nodes=1)"'


service = service_of_module(POLICY)


def await_forecast(client, job_id):
    """Wait until there is one: kernels may have to be compiled first."""

    def answered():
        code = client.get(f"/v1/jobs/{job_id}/forecast").status_code
        assert code in (200, 503)
        return code == 200

    until(answered, 120.0, 0.2)


@pytest.fixture(scope="module")
def queue(service):
    """One that runs for long, two that wait for all cpus, one that is held."""
    with service.client(service.token("ann", "user")) as client:
        long = {"command": "sleep 300", "cpus": 2, "requested_time": 600, "name": "long"}
        narrow, held = {**long, "cpus": 1, "deadline": 60}, {**long, "held": True}
        jobs = [submit(client, **each) for each in (long, long, narrow, held)]
        becomes(client, jobs[0], "running")
        await_forecast(client, jobs[1])
        yield client, jobs
        client.post("/v1/jobs/cancel", json={"job_ids": jobs})


def test_a_waiting_a_running_and_a_held_job_are_forecast(queue):
    client, (runs, waits, narrow, held) = queue
    found = client.get(f"/v1/jobs/{waits}/forecast").json()
    start = found["start"]
    assert found["made_seconds"] < start["p10"] <= start["p50"] <= start["p90"]
    assert found["end"]["p50"] > start["p50"]
    assert client.get(f"/v1/jobs/{narrow}/forecast").json()["misses"] > 0.5
    assert found["sentence"].startswith("starts ")
    chances = found["chances"]
    assert 0.0 <= chances["within_hour"] <= 1.0
    assert chances["before"] is None
    asked = {"arrivals": False, "before": found["made_seconds"] + 1e6}
    before = client.get(f"/v1/jobs/{waits}/forecast", params=asked).json()["chances"]["before"]
    assert 0.9 < before <= 1.0
    running = client.get(f"/v1/jobs/{runs}/forecast").json()
    assert running["start"] is None
    assert running["sentence"].startswith("ends ")
    assert running["overruns"] is not None
    never = client.get(f"/v1/jobs/{held}/forecast").json()
    assert (never["never"], never["start"]["p50"]) == (1.0, None)
    shown = client.get(f"/v1/jobs/{waits}").json()
    assert shown["forecast"]["start"]["p50"] > time.time()
    believed = shown["belief"]  # learned, though the policy plans with one number
    assert 0.0 < believed["p10"] < believed["p90"] <= 600.0
    shown = client.get(f"/v1/jobs/{runs}").json()
    again, lasts = client.get(f"/v1/jobs/{runs}/forecast").json()["end"], shown["belief"]
    ends = [shown["start_seconds"] + lasts[level] for level in ("p10", "p90")]
    assert ends[0] < ends[1]  # as of waiting ones
    assert ends == pytest.approx([again["p10"], again["p90"]], abs=60.0)


def test_what_runs_is_listed_first_then_what_starts_next(queue, service):
    """By expected start, held ones last, page by page; other users see none of it."""
    client, jobs = queue
    asked = {"order": "next", "limit": 3}
    first = client.get("/v1/jobs", params=asked).json()
    assert [each["job_id"] for each in first["jobs"]] == jobs[:3]
    starts = [each["forecast"]["start"]["p50"] for each in first["jobs"][1:]]
    assert starts == sorted(starts)
    rest = client.get("/v1/jobs", params={**asked, "after": first["next"]}).json()
    assert [each["job_id"] for each in rest["jobs"]] == jobs[3:]
    assert rest["next"] is None
    waiting = client.get("/v1/jobs", params={"order": "next", "state": "held"}).json()
    assert [each["job_id"] for each in waiting["jobs"]] == jobs[3:]
    with service.client(service.token("bob", "user")) as other:
        assert other.get("/v1/jobs", params=asked).json()["jobs"] == []
        admin = other.get("/v1/jobs", params={**asked, "user": "ann"})
        assert admin.json()["jobs"] == []


def test_what_if_it_asked_for_less_came_later_or_were_submitted(queue):
    client, (runs, waits, *_) = queue
    both = client.post("/v1/what-if", json={"job_id": waits, "cpus": 1}).json()
    assert both["now"]["job_id"] == both["then"]["job_id"] == waits
    later = client.post("/v1/what-if", json={"job_id": waits, "submitted_in": 5000.0}).json()
    assert later["then"]["start"]["p10"] > time.time() + 4000
    new = {"job": {"command": "true", "requested_time": "1min"}}
    assert client.post("/v1/what-if", json=new).json()["now"] is None
    for wrong, status in (
        ({}, 422),
        ({"job_id": runs}, 409),
        ({"job_id": waits, "cpus": 3}, 422),
        ({"job_id": "999"}, 404),
        ({"job": {"command": "true"}, "submitted_in": -1}, 422),
    ):
        assert client.post("/v1/what-if", json=wrong).status_code == status
    assert client.get(f"/v1/jobs/{waits}").json()["cpus"] == 2


def test_a_request_is_suggested(queue):
    client, (runs, waits, *_) = queue
    path = f"/v1/jobs/{waits}/suggested-request"
    safe = client.get(path, params={"risk": 0.01}).json()
    bold = client.get(path, params={"risk": 0.5}).json()
    assert safe["requested_seconds"] >= bold["requested_seconds"]
    assert safe["requested_now_seconds"] == 600.0
    assert client.get(path, params={"risk": 0}).status_code == 422
    assert client.get(f"/v1/jobs/{runs}/suggested-request").status_code == 409


def test_the_plan_and_the_use_are_told_without_others_names(service, queue):
    client, (runs, *_) = queue
    plan = client.get("/v1/plan").json()
    assert [each["job_id"] for each in plan["running"]] == [runs]
    assert {each["name"] for each in plan["waiting"]} == {"long"}
    with service.client(service.token("eve", "user")) as other:
        seen = other.get("/v1/plan").json()
    assert {each["job_id"] for each in [*seen["running"], *seen["waiting"]]} == {None}
    use = client.get("/v1/usage", params={"hours": 1, "bins": 10}).json()
    assert use["used_cpus"][-1] > 0
    assert sum(use["started"]) >= 1
    soon = client.get("/v1/usage", params={"hours": 0.001, "bins": 500}).json()
    assert None not in soon["used_cpus"]
    refused = client.get("/v1/usage", params={"hours": 5e-324, "bins": 10})  # bins of no length
    assert (refused.status_code, refused.json()["field"]) == (422, "hours")
    nodes = client.get("/v1/nodes").json()["nodes"]
    assert [each["free_cpus"] for each in nodes] == [0.0]


def test_how_good_it_was_is_told(queue):
    client, _ = queue
    told = client.get("/v1/predictions").json()
    assert told["starts"]["stated"] == told["ends"]["stated"] == told["runtimes"]["stated"] == 0.8
    horizons = [each["below_seconds"] for each in told["starts_by_horizon"]]
    assert horizons == [60.0, 600.0, 3600.0, 21600.0, None]


def test_use_over_time_by_hand(tmp_path):
    store = SqlStore.in_file(tmp_path / "jobs.db")
    empty = use_over_time(store, 0.0, 20.0, 2)
    assert empty.used_cpus.tolist() == [0.0, 0.0]
    assert np.isnan(empty.wait_seconds).all()
    assert store.first_submission(0.0) is None
    spans = [(2, 5.0, 15.0), (1, 12.0, None), (8, None, None), (4, 25.0, 30.0), (4, -9.0, -1.0)]
    jobs = [
        Submit(CommandJob(str(at), "j", "true", "/", cpus=each[0])) for at, each in enumerate(spans)
    ]
    store.accept([KeyedCall("ann", jobs, first_number=1)])
    times = {
        str(at): {"submit_seconds": 0.0, "start_seconds": start, "end_seconds": end}
        for at, (_, start, end) in enumerate(spans)
    }
    store.commit_step(WholeStep(["{}"], 0, times))
    use = use_over_time(store, 0.0, 20.0, 2)
    np.testing.assert_allclose(use.used_cpus, [1.0, 1.8])
    assert use.started.tolist() == [1, 1]
    assert use.wait_seconds.tolist() == [5.0, 12.0]
    assert store.first_submission(0.0) == 0.0
    store.close()


@pytest.mark.slow
def test_the_last_of_many_new_jobs_starts_within_its_range(tmp_path):
    """Of 48 times half a second, limited to 300 s, asked after eight ends."""
    more = 'policy = "foresail"\ncluster = "local(cpus=4,nodes=1)"'
    with live_service(tmp_path, more) as service, service.client() as client:
        long = {"command": "sleep 300", "cpus": 4, "requested_time": 600, "name": "long"}
        jobs = [submit(client, **long) for _ in range(2)]
        await_forecast(client, jobs[1])
        client.post("/v1/jobs/cancel", json={"job_ids": jobs})
        short = {"command": "sleep 0.5", "array": "1-48", "requested_time": 300, "name": "short"}
        answer = client.post("/v1/jobs", json=short).json()["jobs"]
        first, last = (answer[at]["job_id"] for at in (7, -1))
        becomes(client, first, "completed")
        found = client.get(f"/v1/jobs/{last}/forecast").json()
        shown = becomes(client, last, "completed")
    assert found["is_known"]
    start = found["start"]
    assert start["p10"] - 2.0 <= shown["start_seconds"] <= start["p90"] + 2.0
    assert start["p90"] - found["made_seconds"] < 60.0
