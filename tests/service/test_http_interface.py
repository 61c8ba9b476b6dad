"""The HTTP interface of a real server: what it grants, to whom, and how it refuses."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import foresail
from foresail.cli.main import app_of
from foresail.live.jobs_file import JOB_FIELDS
from foresail.model.errors import InputError
from foresail.service.api.submissions import JobRequest
from foresail.service.configuration import Listening, ServiceConfiguration, require_usable
from live_service import becomes, service_of_module, submit
from until import until

ROLES = ("read-only", "user", "operator", "admin")
MAY_NOT = {
    ("post", "/v1/jobs"): {"read-only"},
    ("post", "/v1/jobs/cancel"): {"read-only"},
    ("post", "/v1/jobs/{job_id}/cancel"): {"read-only"},
    ("post", "/v1/jobs/{job_id}/hold"): {"read-only"},
    ("post", "/v1/jobs/{job_id}/release"): {"read-only"},
    ("post", "/v1/nodes/{node}/drain"): {"read-only", "user"},
    ("post", "/v1/nodes/{node}/resume"): {"read-only", "user"},
    ("get", "/v1/tokens"): {"read-only", "user", "operator"},
    ("post", "/v1/tokens"): {"read-only", "user", "operator"},
    ("delete", "/v1/tokens/{token_id}"): {"read-only", "user", "operator"},
    ("get", "/v1/audit"): {"read-only", "user", "operator"},
    ("post", "/v1/policy"): {"read-only", "user", "operator"},
}
_JSON = {"Content-Type": "application/json"}
BODIES = {
    "/v1/jobs": {"command": "true"},
    "/v1/jobs/cancel": {"job_ids": ["1"]},
    "/v1/tokens": {"user": "somebody"},
    "/v1/policy": {"policy": "no such policy"},
}


service = service_of_module()


@pytest.fixture(scope="module")
def routes(service):
    with service.client() as client:
        document = client.get("/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    return [(method, path) for path, item in document["paths"].items() for method in item]


def _asked(service, method, path, token):
    place = path.replace("{job_id}", "1").replace("{token_id}", "0" * 16).replace("{node}", "none")
    with httpx.Client(base_url=service.address, timeout=30.0) as client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        json = BODIES.get(path) if method == "post" else None
        request = client.build_request(method, place, headers=headers, json=json)
        answer = client.send(request, stream=True)
        if path != "/v1/events" or answer.is_error:
            answer.read()
        answer.close()
        return answer


_ASKED = re.compile(r'["`](/v1/(?:\$?\{[^}]*\}|[^"`?{$])*)')
_PART = re.compile(r"\$?\{[^}]*\}")


def test_the_client_and_the_page_ask_for_what_there_is(routes):
    """A part in braces may be any."""
    package = Path(foresail.__file__).parent
    known = {_PART.sub("{}", path) for _, path in routes} | {"/v1/openapi.json"}
    files = [package / "client" / "service_client.py", *(package / "service" / "page").glob("*.js")]
    asked = {path for file in files for path in _ASKED.findall(file.read_text("utf-8"))}
    assert len(asked) > 20
    for path in asked:
        pattern = "[^/]+".join(re.escape(each) for each in _PART.split(path))
        assert any(re.fullmatch(pattern, each) for each in known), path


def test_a_job_has_the_fields_of_a_jobs_file_and_few_more():
    """Fields that only a service knows are its own; who submits is its user."""
    of_service = {"held", "array", "mail_type", "mail_user"}
    assert set(JobRequest.model_fields) == {*JOB_FIELDS, *of_service} - {"user"}


def test_each_role_may_do_what_it_may_and_nothing_else(service, routes):
    owner = service.token("owner", "user")
    with service.client(owner) as client:
        assert client.post("/v1/jobs", json={"command": "true"}).status_code == 201
    for role in ROLES:
        token = service.token(f"other-{role}", role)
        for method, path in routes:
            answer = _asked(service, method, path, token)
            refused = role in MAY_NOT.get((method, path), ())
            assert (answer.status_code == 403) is refused, (role, method, path, answer.status_code)
            assert answer.status_code < 500
            if role == "user" and ("{job_id}" in path or path == "/v1/jobs/cancel"):
                assert answer.status_code == 404


def test_nothing_but_health_is_told_without_a_token(service, routes):
    for method, path in routes:
        answer = _asked(service, method, path, None)
        assert answer.status_code == (200 if path == "/v1/health" else 401), (method, path)


def test_users_list_their_own_jobs_alone(service):
    mine, other = service.token("mine", "user"), service.token("another", "user")
    with service.client(mine) as client, service.client(other) as stranger:
        job = submit(client, command="echo hello")
        assert [each["job_id"] for each in client.get("/v1/jobs").json()["jobs"]] == [job]
        assert stranger.get("/v1/jobs").json()["jobs"] == []
        assert stranger.get("/v1/jobs", params={"user": "mine"}).json()["jobs"] == []
        after = stranger.post("/v1/jobs", json={"command": "true", "after": job})
        assert (after.status_code, after.json()["field"]) == (422, "after")


def test_a_revoked_token_opens_nothing_at_once(service):
    with service.client() as admin:
        token = admin.post("/v1/tokens", json={"user": "brief"}).json()
        with service.client(token["secret"]) as client:
            assert client.get("/v1/whoami").status_code == 200
            admin.delete(f"/v1/tokens/{token['token_id']}")
            assert client.get("/v1/whoami").status_code == 401
    assert token["secret"].encode() not in (service.state / "foresail.db").read_bytes()


@pytest.mark.parametrize(
    ("given", "status", "field"),
    [
        ({"json": {"command": "true", "cpu": 1}}, 422, "cpu"),
        ({"json": {"command": "true", "cpus": 10**6}}, 422, "cpus"),
        ({"json": {"command": "tr\0ue"}}, 422, "command"),
        ({"json": {"command": "true", "directory": "/none/such"}}, 422, "directory"),
        ({"json": {"command": "true", "array": "9-1"}}, 422, "array"),
        ({"json": {"command": "true", "array": "0-9%0"}}, 422, "array"),
        ({"json": {"command": "true", "after": "../1"}}, 422, "after"),
        ({"content": b"{" * 50_000, "headers": _JSON}, 400, None),
        ({"content": b'{"command":"a\\ud800"}', "headers": _JSON}, 422, "command"),
        ({"content": b"command", "headers": {"Content-Type": "text/csv"}}, 415, "Content-Type"),
        ({"content": b"x" * 1_000_001, "headers": _JSON}, 413, None),
        ({"json": {"command": "true"}, "headers": {"Accept": "image/png"}}, 406, "Accept"),
        ({"json": {"command": "true"}, "headers": {"Host": "evil.example"}}, 421, None),
        ({"json": {"command": "true"}, "params": {"x": "x" * 8_200}}, 414, None),
        ({"json": {"command": "true"}, "headers": {"X": "x" * 32_800}}, 431, None),
    ],
)
def test_every_error_is_a_problem_that_names_the_field(service, given, status, field):
    with service.client() as client:
        answer = client.post("/v1/jobs", **given)
    problem = answer.json()
    assert (answer.status_code, problem.get("field")) == (status, field)
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["request_id"] == answer.headers["x-request-id"]


def test_an_array_and_what_waits_for_it_run_in_order(service):
    jobs = [
        {"name": "part", "command": "echo $FORESAIL_ARRAY_INDEX", "array": "1-3:2"},
        {"command": "echo last", "after": "part"},
    ]
    with service.client() as client:
        once = {"Idempotency-Key": "all of it"}
        answer = client.post("/v1/jobs", json={"jobs": jobs}, headers=once)
        again = client.post("/v1/jobs", json={"jobs": jobs}, headers=once)
        ids = [each["job_id"] for each in answer.json()["jobs"]]
        assert (answer.status_code, again.status_code) == (201, 200)
        assert [each["job_id"] for each in again.json()["jobs"]] == ids
        becomes(client, ids[-1], "completed")
        assert ids[1].endswith("_3")
        assert client.get(f"/v1/jobs/{ids[1]}/logs").text == "3\n"
        assert client.get(f"/v1/jobs/{ids[1]}/story").json()["lines"]
        assert client.post(f"/v1/jobs/{ids[1]}/cancel").status_code == 409


def test_the_stream_goes_on_behind_the_last_event_without_gap_or_repeat(service):
    with service.client() as client:
        for _ in range(3):
            client.post("/v1/jobs", json={"command": "true"})
        seen = _ids(client, "0", 8)
        assert _ids(client, str(seen[3]), 4) == seen[4:]


def test_a_caller_follows_so_often_at_a_time_and_no_more(service):
    with ExitStack() as stack:
        clients = [stack.enter_context(service.client(service.token("many", "user")))]
        clients.append(stack.enter_context(service.client(service.token("another", "user"))))

        def followed(client):
            return stack.enter_context(client.stream("GET", "/v1/events"))

        streams = [followed(clients[0]) for _ in range(20)]
        assert {each.status_code for each in streams} == {200}
        refused = followed(clients[0])
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
        assert followed(clients[1]).status_code == 200
        streams[0].close()
        until(lambda: followed(clients[0]).status_code == 200, 10.0, 0.1)


def _ids(client, last, count):
    ids = []
    with client.stream("GET", "/v1/events", headers={"Last-Event-ID": last}) as answer:
        for line in answer.iter_lines():
            if line.startswith("id: "):
                ids.append(int(line[4:]))
            if len(ids) == count:
                return ids
    raise AssertionError("the stream has ended")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_it_listens_beyond_loopback_only_with_tls_or_a_proxy(host):
    with pytest.raises(InputError, match=r"listen\.host"):
        require_usable(ServiceConfiguration(listen=Listening(host=host)))
    require_usable(ServiceConfiguration(listen=Listening(host=host, behind_proxy=True)))


def test_tokens_are_created_listed_and_revoked_on_the_command_line(service, monkeypatch):
    monkeypatch.setenv("FORESAIL_SERVICE", service.address)
    monkeypatch.setenv("FORESAIL_TOKEN", service.admin_token)
    secret = CliRunner().invoke(app_of("token"), ["create", "typed"]).output.strip()
    with service.client(secret) as client:
        token_id = client.get("/v1/whoami").json()["token_id"]
        assert token_id in CliRunner().invoke(app_of("token"), ["list"]).output
        assert CliRunner().invoke(app_of("token"), ["revoke", token_id]).exit_code == 0
        assert client.get("/v1/whoami").status_code == 401
