"""Callers: accounts of the machine without tokens, whoever has a token, and nobody else."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import stat
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from starlette.requests import Request
from typer.testing import CliRunner

from foresail.cli.main import app_of
from foresail.client import connection
from foresail.live.accounts import Account
from foresail.model.errors import InputError
from foresail.service import tokens as tokens_module
from foresail.service.api.callers import Door
from foresail.service.api.problems import CallRefused
from foresail.service.configuration import RequestLimits
from foresail.service.connections import PEER
from foresail.service.store.database import Database
from foresail.service.store.protocol import bring_up_to_date
from foresail.service.tokens import Role, ServedAccounts, Tokens
from live_service import becomes, live_service, submit

ONE, OTHER = pwd.getpwuid(1).pw_name, pwd.getpwuid(2).pw_name
UNKNOWN_UID = 54_321
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several accounts")


def no_tokens():
    database = Database.in_file(Path(tempfile.mkdtemp()) / "foresail.db")
    bring_up_to_date(database.engine)
    return Tokens(database)


def own_is(monkeypatch, uid, name="keeper"):
    account = Account(name, uid, uid, (uid,), "/", "/bin/sh")
    monkeypatch.setattr(tokens_module, "own_account", lambda: account)


def door_of(*, shared_account=False, **limits):
    parts = SimpleNamespace(
        configuration=SimpleNamespace(limits=RequestLimits(**limits)),
        tokens=no_tokens(),
        served=ServedAccounts(shared_account=shared_account),
    )
    return Door(parts), parts


def let_in(door, secret=None, uid=None):
    headers = [(b"authorization", f"Bearer {secret}".encode())] if secret else []
    scope = {"type": "http", "headers": headers, "client": None if uid is not None else ("::1", 1)}
    if uid is not None:
        scope[PEER] = uid
    return asyncio.run(door.let_in(Request(scope)))


def refused(door, *who, **more):
    with pytest.raises(CallRefused) as caught:
        let_in(door, *who, **more)
    return caught.value.status


def test_a_token_opens_nothing_once_it_has_expired(monkeypatch):
    now = time.time()
    kept = no_tokens()
    brief, secret = kept.create("one", Role.USER, lifetime_seconds=10.0)
    assert kept.holder(secret) == brief
    monkeypatch.setattr(tokens_module.time, "time", lambda: now + 11.0)
    assert kept.holder(secret) is None
    assert not kept.opens(brief)


def test_each_token_and_each_account_may_ask_so_often_and_no_other_is_hindered(monkeypatch):
    own_is(monkeypatch, 0)
    door, parts = door_of(requests_per_second=0.01, burst=3)
    first, second = (parts.tokens.create(ONE, Role.USER)[1] for _ in range(2))
    for who in ({"secret": first}, {"secret": second}, {"uid": 1}, {"uid": 2}):
        for _ in range(3):
            let_in(door, **who)
        assert refused(door, **who) == 429
    assert let_in(door, uid=0).role is Role.ADMIN


def test_root_serves_accounts_each_as_itself_and_nobody_else(monkeypatch):
    own_is(monkeypatch, 0, "root")
    door, parts = door_of()
    one = let_in(door, uid=1)
    assert (one.user, one.role, one.address) == (ONE, Role.USER, "uid 1")
    assert let_in(door, uid=0).role is Role.ADMIN
    assert refused(door, uid=UNKNOWN_UID) == 403
    assert refused(door) == 401
    _, secret = parts.tokens.create("no-such-account", Role.USER)
    assert refused(door, secret) == 403
    assert parts.served.account(ONE).uid == 1
    with pytest.raises(InputError, match="no such account"):
        parts.served.account("no-such-account")


def test_an_ordinary_account_serves_itself_alone(monkeypatch):
    own_is(monkeypatch, 1000)
    door, parts = door_of()
    assert let_in(door, uid=1000).role is Role.ADMIN
    assert let_in(door, uid=0).user == "keeper"
    assert refused(door, uid=1) == 403
    _, own = parts.tokens.create("keeper", Role.USER)
    _, others = parts.tokens.create(ONE, Role.ADMIN)
    assert let_in(door, own).user == "keeper"
    assert refused(door, others) == 403
    assert parts.served.socket_mode == 0o600


@pytest.mark.parametrize("uid", [0, 1000])
def test_who_shares_an_account_has_a_token_and_is_told(monkeypatch, uid):
    own_is(monkeypatch, uid)
    door, parts = door_of(shared_account=True)
    _, secret = parts.tokens.create("anybody", Role.USER)
    assert let_in(door, secret).user == "anybody"
    assert refused(door, uid=1) == 403
    assert parts.served.socket_mode == 0o600
    assert parts.served.remarks == ("users are not kept apart: all jobs run as keeper",)


@pytest.fixture(scope="module")
def machine():
    """A service that root runs for all, and the socket that all can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    path = folder / "public" / "socket"
    path.parent.mkdir(mode=0o755)
    with live_service(folder, accounts="", machine_socket=path) as running:
        yield running, path
    assert not path.exists()
    shutil.rmtree(folder)


@contextmanager
def calling(path, uid=0):
    """A client whose connection is another account's."""
    with httpx.Client(
        transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost", timeout=30.0
    ) as client:
        until = time.monotonic() + 60.0  # in a fresh clone kernels are compiled first
        os.seteuid(uid)
        try:
            while client.get("/v1/health").status_code == 503 and time.monotonic() < until:
                time.sleep(0.2)
        finally:
            os.seteuid(0)
        yield client


@as_root
def test_whoever_is_logged_in_submits_without_a_token_and_sees_no_others_jobs(machine):
    service, path = machine
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    with calling(path, 1) as one, calling(path, 2) as other, calling(path) as root:
        me = one.get("/v1/whoami").json()
        assert (me["user"], me["role"], me["token_id"]) == (ONE, "user", None)
        assert root.get("/v1/whoami").json()["role"] == "admin"
        job = one.post("/v1/jobs", json={"command": "true", "held": True}).json()["jobs"][0]
        assert job["user"] == ONE
        assert other.get(f"/v1/jobs/{job['job_id']}").status_code == 404
        assert other.get("/v1/jobs").json()["jobs"] == []
        assert root.get(f"/v1/jobs/{job['job_id']}").status_code == 200
        assert one.get("/v1/audit").status_code == 403
    with calling(path, UNKNOWN_UID) as nobody:
        assert nobody.get("/v1/jobs").status_code == 403
    assert httpx.get(f"{service.address}/v1/jobs", headers={PEER: "0"}).status_code == 401


@as_root
def test_its_jobs_run_as_itself_and_do_not_reach_what_is_the_services(machine):
    service, path = machine
    command = f"id -un; cat {service.state}/foresail.db 2>/dev/null || echo kept from it"
    with calling(path, 1) as one:
        asked = {"command": command, "directory": "/"}
        job = submit(one, **asked)
        becomes(one, job, "completed")
        assert one.get(f"/v1/jobs/{job}/logs").text == f"{ONE}\nkept from it\n"


@as_root
def test_an_account_makes_a_token_for_itself_alone_and_root_for_accounts_alone(machine):
    service, path = machine
    with calling(path, 1) as one, calling(path) as root:
        made = one.post("/v1/tokens", json={"user": ONE})
        assert made.status_code == 201
        assert one.post("/v1/tokens", json={"user": OTHER}).status_code == 403
        assert one.post("/v1/tokens", json={"user": ONE, "role": "admin"}).status_code == 403
        unknown = root.post("/v1/tokens", json={"user": "no-such-account"})
        assert (unknown.status_code, unknown.json()["field"]) == (422, "user")
        secret = made.json()["secret"]
        bearer = {"Authorization": f"Bearer {secret}"}
        as_one = root.get("/v1/whoami", headers=bearer).json()
        assert (as_one["user"], as_one["role"]) == (ONE, "user")
        entries = root.get("/v1/audit").json()["entries"]
        assert (entries[0]["user"], entries[0]["address"]) == (ONE, "uid 1")
    with service.client(secret) as client:
        assert client.get("/v1/whoami").json()["user"] == ONE
        assert client.post("/v1/tokens", json={"user": ONE}).status_code == 403


@as_root
def test_commands_find_the_service_of_the_machine_without_a_login(machine, monkeypatch, tmp_path):
    _, path = machine
    for name in ("FORESAIL_SERVICE", "FORESAIL_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(connection, "MACHINE_SOCKET", path)
    monkeypatch.setattr(connection, "well_known_socket", lambda _: tmp_path / "none")
    assert CliRunner().invoke(app_of("jobs"), []).exit_code == 0
    secret = CliRunner().invoke(app_of("token"), ["create"]).output.strip()
    with httpx.Client(headers={"Authorization": f"Bearer {secret}"}) as client:
        assert client.get(f"{machine[0].address}/v1/whoami").json()["user"] == "root"
    monkeypatch.setattr(connection, "MACHINE_SOCKET", tmp_path / "none")
    with pytest.raises(InputError, match="no service runs"):
        connection.find_connection()


@as_root
def test_a_socket_of_somebody_else_is_no_service(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("FORESAIL_SERVICE", "FORESAIL_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(connection, "MACHINE_SOCKET", tmp_path / "none")
    monkeypatch.setattr(connection, "well_known_socket", lambda _: tmp_path / "none")
    beside = tmp_path / "foresail-state" / "socket"
    beside.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(beside))
        with pytest.raises(InputError, match="no service runs"):
            connection.find_connection()
        listener.listen()
        assert connection.find_connection().address == str(beside)
        os.chown(beside, 1, 1)
        with pytest.raises(InputError, match="no service runs"):
            connection.find_connection()
