"""Connections: however many there are and however slow, whoever has a request is answered."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

from foresail.service.connections import (
    PEER,
    Connections,
    Patience,
    Server,
    most_connections,
)

MOST = 16
SHORT = Patience(head=0.4, body=0.4, idle=0.4, unsent=0.4)
HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        if message["type"] == "http.disconnect":
            return
    if scope["path"] == "/long":
        await asyncio.sleep(1.5)
    body = b"x" * 30_000_000 if scope["path"] == "/large" else str(scope.get(PEER)).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serving(folder, patience):
    """A server with few connections; yields its address and the path of its socket."""
    connections = Connections(MOST, patience)
    server = Server(uvicorn.Config(application, lifespan="off", log_config=None), connections)
    path = folder / "socket"
    machine = socket.socket(socket.AF_UNIX)
    machine.bind(str(path))
    network = socket.create_server(("127.0.0.1", 0))
    address = network.getsockname()
    listeners = [network, machine]
    thread = threading.Thread(target=server.run, args=(listeners,))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield address, str(path)
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def patient(tmp_path):
    with serving(tmp_path, Patience()) as there:
        yield there


@pytest.fixture
def impatient(tmp_path):
    with serving(tmp_path, SHORT) as there:
        yield there


def ended_after(connection, most_seconds=3.0):
    """How long until the other end lets go, whatever it says before."""
    began = time.monotonic()
    connection.settimeout(most_seconds)
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - began


def asked(there, path="/"):
    address, _ = there
    return httpx.get(f"http://{address[0]}:{address[1]}{path}", timeout=5.0)


def asked_on_machine(there):
    with httpx.Client(transport=httpx.HTTPTransport(uds=there[1])) as client:
        return client.get("http://localhost/", headers={PEER: "0", "foresail-uid": "0"})


@pytest.mark.parametrize("half", [b"", HEAD, HEAD + b"Content-Length: 9\r\n\r\n123"])
def test_connections_that_only_wait_give_way_to_those_that_ask(patient, half):
    flood = []
    for _ in range(8):
        for _ in range(MOST):
            flood.append(socket.create_connection(patient[0]))
            flood[-1].sendall(half)
        assert asked(patient).status_code == 200
        assert asked_on_machine(patient).status_code == 200
    living = [each for each in flood if _is_open(each)]
    assert 0 < len(living) <= MOST // 2
    for each in flood:
        each.close()


def _is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def test_one_that_is_being_answered_gives_way_to_none(patient):
    with socket.create_connection(patient[0]) as first:
        first.sendall(HEAD.replace(b"/ ", b"/long ") + b"Connection: close\r\n\r\n")
        time.sleep(0.2)
        flood = [socket.create_connection(patient[0]) for _ in range(3 * MOST)]
        answer = b"".join(iter(lambda: first.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
    for each in flood:
        each.close()


def test_where_all_are_being_answered_a_further_one_is_refused_and_other_accounts_are_not(patient):
    busy = [socket.create_connection(patient[0]) for _ in range(MOST // 2)]
    for each in busy:
        each.sendall(HEAD.replace(b"/ ", b"/long ") + b"\r\n")
    time.sleep(0.3)
    with pytest.raises(httpx.TransportError):
        asked(patient)
    assert asked_on_machine(patient).status_code == 200
    for each in busy:
        assert each.recv(100).startswith(b"HTTP/1.1 200")
        each.close()


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        HEAD,
        HEAD + b"Content-Length: 9\r\n\r\n123",
        HEAD + b"\r\n",
        HEAD + b"\r\n" + HEAD,
    ],
    ids=["nothing", "half a head", "half a body", "idle", "half of a second head"],
)
def test_who_is_too_slow_is_let_go(impatient, begun):
    with socket.create_connection(impatient[0]) as slow:
        slow.sendall(begun)
        assert ended_after(slow) < 2.0


def test_a_head_that_comes_in_drops_is_let_go_all_the_same(impatient):
    began = time.monotonic()
    with socket.create_connection(impatient[0]) as slow:
        slow.sendall(HEAD + b"X: ")
        while sent_still(slow, b"x") and time.monotonic() < began + 5.0:
            time.sleep(0.05)
    assert time.monotonic() - began < 2.0


def test_a_head_without_end_is_let_go_before_it_takes_room(patient):
    with socket.create_connection(patient[0]) as endless:
        endless.sendall(HEAD + b"X: ")
        assert not all(sent_still(endless, b"x" * 10_000) for _ in range(1000))


def sent_still(connection, content):
    try:
        connection.sendall(content)
    except OSError:
        return False
    return True


def test_who_takes_nothing_of_an_answer_is_let_go(impatient):
    with socket.create_connection(impatient[0]) as deaf:
        deaf.sendall(HEAD.replace(b"/ ", b"/large ") + b"\r\n")
        time.sleep(1.2)
        taken = sum(map(len, iter(lambda: deaf.recv(1_000_000), b"")))
    assert taken < 30_000_000


def test_the_kernel_says_who_is_on_the_machines_socket_and_no_header_does(patient):
    assert asked_on_machine(patient).text == str(os.getuid())
    headers = {PEER: "0", "foresail-uid": "0"}
    address, _ = patient
    assert httpx.get(f"http://127.0.0.1:{address[1]}/", headers=headers).text == "None"


def test_a_quarter_of_the_descriptors_is_no_connections(monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 1024))
    assert most_connections(800) == 768
    assert most_connections(100) == 100
