"""Whatever is sent, the service answers as it says it does, and stays up."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from live_service import service_of_module

NASTY = [
    "",
    "\x00",
    "a\nb",
    "../../etc/passwd",
    "$(touch /tmp/owned)",
    "'; DROP TABLE jobs; --",
    "\u202e\u0000",
    "x" * 200_000,
    "\ud800",
    "%00",
    "{{7*7}}",
    "😀" * 500,
]
FIELDS = [
    "command",
    "name",
    "requested_time",
    "after",
    "directory",
    "strl",
    "array",
    "memory",
    "deadline",
    "decay",
]


service = service_of_module(after="[limits]\nrequests_per_second = 100000\nburst = 100000")


def is_up(service):
    with service.client() as client:
        return client.get("/v1/health").status_code == 200


def test_every_operation_answers_as_its_description_says(service):
    """Calls made up from the description: the answers are among those described."""
    with service.client() as client:
        document = client.get("/v1/openapi.json").json()
    for path in ("/v1/events", "/v1/policy", "/v1/tokens/{token_id}", "/metrics"):
        document["paths"].pop(path)
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=service.address)
    headers = {"Authorization": f"Bearer {service.admin_token}"}
    checks = [
        schemathesis.checks.not_a_server_error,
        schemathesis.checks.CHECKS.get_one("status_code_conformance"),
        schemathesis.checks.CHECKS.get_one("content_type_conformance"),
        schemathesis.checks.CHECKS.get_one("response_schema_conformance"),
    ]
    for result in schema.get_all_operations():
        operation = result.ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=True,
        )
        def answered(case):
            case.call_and_validate(headers=headers, checks=checks)

        answered()
    assert is_up(service)


@pytest.mark.parametrize("field", FIELDS)
def test_nothing_nasty_in_any_field_is_more_than_refused_or_text(service, field):
    with service.client() as client:
        for value in NASTY:
            body = {"command": "true", "held": True, field: value}
            try:
                answer = client.post("/v1/jobs", json=body)
            except (UnicodeEncodeError, httpx.LocalProtocolError):
                continue  # it cannot even be sent
            assert answer.status_code in (201, 400, 413, 422), (field, value[:40])
            if answer.status_code == 201:
                job = answer.json()["jobs"][0]
                shown = client.get(f"/v1/jobs/{job['job_id']}").json()
                assert shown["state"] == "held"
    assert is_up(service)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs/..%2f..%2fetc/logs",
        "/v1/jobs/1/logs?stream=../../x",
        "/static/../../configuration.py",
        "/static/..%2fapi%2fapp.py",
        "/static/%00",
        "/v1/jobs/%00",
        "/v1/jobs/999999999999999999999999",
        "/v1/nodes/..%2f..",
        "/" + "x" * 20_000,
    ],
)
def test_no_path_leads_out(service, path):
    with service.client() as client:
        answer = client.get(path)
    assert answer.status_code in (400, 404, 405, 414, 422)
    assert "root:" not in answer.text
    assert "import" not in answer.text


@pytest.mark.parametrize(("size", "status"), [(8_192, 200), (8_193, 414)])
def test_a_query_may_be_so_long(service, size, status):
    with service.client() as client:
        answer = client.get("/v1/jobs?name=" + (size - len("name=")) * "x")
    assert answer.status_code == status


@pytest.mark.parametrize(("size", "status"), [(30_000, 200), (32_768, 431)])
def test_headers_may_be_so_large(service, size, status):
    with service.client() as client:
        answer = client.get("/v1/jobs", headers={"X-Long": size * "x"})
    assert answer.status_code == status


def test_wrong_tokens_are_slowed_down_and_a_right_one_is_not(service):
    def tried(number):
        headers = {"Authorization": f"Bearer foresail_{number:064d}"}
        return httpx.get(f"{service.address}/v1/jobs", headers=headers, timeout=60.0).status_code

    begin = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(tried, range(24)))
    assert set(statuses) <= {401, 429}
    assert 429 in statuses or time.monotonic() - begin > 2.0
    assert is_up(service)


def raw(service, content, seconds=5.0):
    host, port = service.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=seconds) as connection:
        connection.sendall(content)
        found = b""
        try:
            while part := connection.recv(65536):
                found += part
        except TimeoutError:
            pass
        return found


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ],
)
def test_what_is_hardly_http_is_answered_or_dropped(service, content):
    answer = raw(service, content, seconds=2.0)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert is_up(service)


def test_nothing_is_read_of_a_body_whose_sender_has_no_token(service):
    """The answer comes while the body is still on its way."""
    host, port = service.address.removeprefix("http://").split(":")
    head = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port)), timeout=10.0) as caller:
        caller.sendall(f"{head}Content-Length: 900000\r\n\r\n".encode())
        assert caller.recv(1_000).startswith(b"HTTP/1.1 401 ")


def test_a_chunked_body_that_is_too_large_is_refused(service):
    def chunks():
        for _ in range(100):
            yield b'{"command": "' + b"x" * 20_000

    headers = {"Content-Type": "application/json"}
    with service.client() as client:
        answer = client.post("/v1/jobs", content=chunks(), headers=headers)
    assert answer.status_code == 413
    assert "larger than 1,000,000 bytes, variables (--export) included" in answer.json()["detail"]


def test_variables_that_are_too_large_are_refused_with_what_helps(service):
    jobs = [{"command": "true", "environment": {"V": "x" * 100_001}}]
    with service.client() as client:
        answer = client.post("/v1/jobs", json={"jobs": jobs})
    assert "100,000 characters (--export says which are sent)" in answer.json()["detail"]
