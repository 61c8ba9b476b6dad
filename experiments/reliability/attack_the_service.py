"""Attacks services from outside: ``attack_the_service.py [NAMES...] [--short]``, a line for each.

Each attack begins a service of its own, tells ``held`` or ``FELL`` and its figure; the exit status
is 1 if anything fell. Root attacks on a machine made for it (a mount namespace with two ordinary
accounts); others leave out what needs that. Bounds are ratios and truths, no seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "service"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "docs"))

from size_of_the_service import Caller

from databases import PostgreSQLServer, program
from foresail.client.connection import Connection
from foresail.client.service_client import ServiceClient
from killing import Victim, free_port, kill_again_and_again
from live_service import LiveService, environment_of_service, live_service
from page_commands import ACCOUNTS, make_the_machine, mount
from stopping import stop_again_and_again

_HERE: Final = "FORESAIL_ATTACKED_HERE"
_NAMESPACE: Final = ("unshare", "--mount", "--propagation", "private")
_SERVE: Final = "from foresail.cli.main import main; main()"
_MANY: Final = "[limits]\nrequests_per_second = 100000\nburst = 100000"
_PATIENCE_SECONDS: Final = 90.0


@dataclass
class Attack:
    """One attack: where it may make files, whether it is to be short, and what it has found."""

    folder: Path
    is_short: bool
    is_on_own_machine: bool
    fallen: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)

    def must(self, is_so: bool, what: str) -> None:
        """Note what ought to be so and is not."""
        if not is_so:
            self.fallen.append(what)

    def tell(self, figure: str) -> None:
        """Add to the line."""
        self.figures.append(figure)

    @contextmanager
    def service(self, more: str = "", after: str = "", accounts: str = "") -> Iterator[LiveService]:
        """A service in the folder, which goes on where the one before in it ended."""
        policy = "" if "policy" in more else 'policy = "easy,recent,incremental"\n'
        with live_service(self.folder, policy + more, after=after, accounts=accounts) as service:
            yield service


def token_of(service: LiveService, user: str, role: str) -> str:
    """A new token, made by whoever runs the service."""
    with ServiceClient(Connection(str(service.state / "socket"), "")) as client:
        return str(client.create_token(user, role)["secret"])


class Person:
    """Somebody with a token of a service."""

    def __init__(self, service: LiveService, user: str, role: str) -> None:
        self.token = token_of(service, user, role)
        self.client = service.client(self.token)
        self.user = user

    def submit(self, command: str = "", **job: Any) -> str:
        """The id of a job that is accepted."""
        if command:
            job["command"] = command
        answer = self.client.post("/v1/jobs", json={"requested_time": 600, **job})
        answer.raise_for_status()
        return str(answer.json()["jobs"][0]["job_id"])

    def ended(self, job_id: str) -> dict[str, Any]:
        """A job once it has ended."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while (job := self.client.get(f"/v1/jobs/{job_id}").json())["end_seconds"] is None:
            if time.monotonic() > until:
                raise TimeoutError(f"job {job_id} does not end: {job}")
            time.sleep(0.05)
        return dict(job)

    def ran(self, command: str = "", **job: Any) -> tuple[dict[str, Any], str]:
        """A job that has run, and what it wrote."""
        job_id = self.submit(command, **job)
        return self.ended(job_id), self.log(job_id)

    def log(self, job_id: str) -> str:
        """What a job has written."""
        return self.client.get(f"/v1/jobs/{job_id}/logs").text


def two(service: LiveService) -> tuple[Person, Person]:
    """Ann and Bob."""
    return Person(service, "ann", "user"), Person(service, "bob", "user")


def admin(service: LiveService) -> Person:
    """Somebody who may run jobs and everything else."""
    return Person(service, _own_name(), "admin")


def _own_name() -> str:
    return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()


def _milliseconds(call: Callable[[], float], times: int) -> np.ndarray:
    return 1e3 * np.array([call() for _ in range(times)])


def identity(attack: Attack) -> None:
    """Another database, and an older one, beside the folder of before."""
    state, marks = attack.folder / "state", attack.folder / "marks"
    run = f"echo $FORESAIL_JOB_ID >> {marks}"
    with attack.service() as service:
        person = admin(service)
        person.ran(run)
        first = 0
    older = attack.folder / "older.db"
    shutil.copy(state / "foresail.db", older)
    with attack.service() as service:
        person = admin(service)
        first = max(int(person.ran(run)[0]["job_id"]) for _ in range(5))
    kept = attack.folder / "kept"
    kept.mkdir()
    for file in state.glob("foresail.db*"):
        file.rename(kept / file.name)
    refused = _serve(attack.folder / "service.toml")
    attack.must(refused.returncode == 2, f"another database is accepted ({refused.returncode})")
    attack.must("another store" in refused.stderr, f"is not explained: {refused.stderr[-200:]}")
    for file in state.glob("foresail.db*"):
        file.unlink()
    shutil.copy(older, state / "foresail.db")
    with attack.service() as service:
        person = admin(service)
        jobs = [person.ran(run)[0] for _ in range(3)]
    ids = [int(each["job_id"]) for each in jobs]
    attack.must(min(ids) > first, f"ids {ids} repeat, {first} was given")
    ran = marks.read_text().split()
    attack.must(len(ran) == len(set(ran)) == 9, f"of 9 jobs these ran: {ran}")
    (state / "store.json").unlink()
    for file in state.glob("foresail.db*"):
        file.unlink()
    done = _serve_a_moment(attack, run)
    ran = marks.read_text().split()
    honest = done is None or done["state"] != "completed" or done["job_id"] in ran[9:]
    attack.must(honest, f"without folder's record and database: {done}")
    attack.tell(f"another refused, ids {first} -> {ids[0]}, {len(ran)} of {len(ran)} ran once")


def _serve(path: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", _SERVE, "serve", str(path)]
    return subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=False, env=environment_of_service()
    )


def _serve_a_moment(attack: Attack, command: str) -> dict[str, Any] | None:
    """A job of a service that may also refuse to begin."""
    try:
        with attack.service() as service:
            return admin(service).ran(command)[0]
    except AssertionError:
        return None


_STEPPED: Final = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long step(void) {
    char text[32] = {0};
    int file = open("STEP", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    read(file, text, 31);
    close(file);
    long value = 0, sign = 1;
    for (char *c = text; *c; c++) {
        if (*c == '-') sign = -1;
        else if (*c >= '0' && *c <= '9') value = 10 * value + (*c - '0');
    }
    return sign * value;
}
int clock_gettime(clockid_t which, struct timespec *at) {
    int result = syscall(SYS_clock_gettime, which, at);
    if (which == CLOCK_REALTIME && !result) at->tv_sec += step();
    return result;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


def clock(attack: Attack) -> None:
    """The wall clock of all that is begun is set, an hour on and two back, while jobs run."""
    if not attack.is_on_own_machine or shutil.which("cc") is None:
        attack.tell("not tried: needs root and a C compiler")
        return
    step, code = Path("/run/step"), attack.folder / "stepped.c"
    step.write_text("0")
    step.chmod(0o644)
    code.write_text(_STEPPED.replace("STEP", str(step)))
    library = "/run/stepped.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-o", library, code], check=True)
    Path(library).chmod(0o755)
    Path("/etc/ld.so.preload").write_text(library)
    try:
        told = []
        for sign in ("0", "3600", "-3600"):
            with attack.service() as service:
                person = Person(service, "ann", "user")
                jobs = [person.submit("sleep 2; date +%s") for _ in range(2)]
                while person.client.get(f"/v1/jobs/{jobs[0]}").json()["state"] != "running":
                    time.sleep(0.02)
                time.sleep(0.5)
                step.write_text(sign)
                ends = [person.ended(each) for each in jobs]
                told += [each["end_seconds"] - each["start_seconds"] for each in ends]
                seen = int(person.log(jobs[0])) - time.time()
                attack.must(abs(seen - int(sign)) < 30, f"the clock was not set: {seen:.0f}")
    finally:
        Path("/etc/ld.so.preload").unlink()
    # at worst the machine is so slow that it takes a minute to note an end
    attack.must(all(1.9 < each < 60 for each in told), f"runtimes of 2 s: {told}")
    attack.tell(f"jobs of 2 s are told as {min(told):.2f} to {max(told):.2f} s")


_TRIED_BY_A_JOB: Final = """#!/bin/sh
cd {state} || echo FELL cd
try() {{ if "$@" >/dev/null 2>&1; then echo "FELL $*"; else echo tried; fi; }}
for file in . attempts logs archive logs/bob logs/root; do try ls $file; done
for file in foresail.db foresail.db-wal foresail.db-shm store.json lock snapshot; do
    try cat $file
done
for file in logs/bob/1.out logs/bob/1.1.script attempts/1.1.claim attempts/1.1.status; do
    try cat $file; try sh -c "echo x >> $file"; try rm $file; try ln $file /tmp/link-of-ann
done
try touch new; try touch logs/new; try touch attempts/2.1.status; try mv logs/ann logs/other
try ln -s /etc logs/linked; try chmod 777 .; try mkdir logs/carol; try rm socket; try mv socket s
try kill -9 $PPID; try kill -STOP $PPID; try kill -TERM $PPID; try kill -9 {pid}; try kill -9 {bob}
for of in environ mem maps stack auxv syscall; do try head -c1 /proc/$PPID/$of; done
try ls /proc/$PPID/fd; try cat /proc/{pid}/environ; try cat /proc/{bob}/environ
try sh -c "echo -1000 > /proc/$PPID/oom_score_adj"; try renice -n 5 $PPID; try taskset -p 1 $PPID
try python3 -c 'import os; os.setuid(0)'
try python3 -c 'import os; os.setresuid(0, 0, 0)'
try python3 -c 'import os; os.setgroups([0])'
try python3 -c 'import os; os.setgid(0)'
try python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) != 0)'
try python3 -c "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, $PPID, 0, 0) != 0)"
try python3 -c 'import os; os.open("/dev/tty", os.O_RDWR)'
try sh -c "echo $PPID > /sys/fs/cgroup/cgroup.procs"
echo over
"""


def accounts(attack: Attack) -> None:
    """What one account finds of the service and of another, by jobs and by calls."""
    if not attack.is_on_own_machine:
        attack.tell("not tried: needs root")
        return
    with attack.service("cluster = 'local(nodes=1,cpus=4)'") as service:
        ann, bob = two(service)
        bobs = bob.submit("echo secret-of-bob; sleep 300")
        _until_log(bob, bobs)
        pids = {"pid": service.process.pid, "bob": _pid_of("sleep 300")}
        done, said = ann.ran(script=_TRIED_BY_A_JOB.format(state=service.state, **pids))
        tried = said.count("tried")
        attack.must(said.endswith("over\n") and tried > 50, f"did not try all: {said[-200:]}")
        for line in said.splitlines():
            attack.must(not line.startswith("FELL"), line)
        tried += _calls_about_anothers(attack, ann, bobs)
        for path in ("/etc/of-ann", "/home/bob/of-ann", f"{service.state}/logs/bob/{bobs}.out"):
            before = Path(path).read_bytes() if Path(path).exists() else None
            done, _ = ann.ran("echo x", output=path)
            after = Path(path).read_bytes() if Path(path).exists() else None
            attack.must(done["state"] == "failed" and after == before, f"-o {path} was written")
            tried += 1
        attack.must(bob.client.get(f"/v1/jobs/{bobs}").json()["state"] == "running", "bob's job")
        socket_path = str(service.state / "socket")
        for uid, expected in ((ACCOUNTS["ann"], "user"), (65534, "user"), (0, "admin")):
            role = json.loads(_as(uid, socket_path, "GET", "/v1/whoami")[1])["role"]
            attack.must(role == expected, f"uid {uid} is {role}")
        status, _ = _as(ACCOUNTS["ann"], socket_path, "POST", "/v1/tokens", user="bob", role="user")
        attack.must(status == 403, f"ann makes a token of bob: {status}")
        bob.client.post(f"/v1/jobs/{bobs}/cancel")
        bob.ended(bobs)
    with _service_of(attack, "bob") as (address, path):
        status, _ = _as(ACCOUNTS["ann"], path, "GET", "/v1/whoami")
        attack.must(status == 0, f"ann connects to bob's own service: {status}")
        status = httpx.get(f"{address}/v1/whoami").status_code
        attack.must(status == 401, f"without a token: {status}")
        attack.must(_as(ACCOUNTS["bob"], path, "GET", "/v1/whoami")[0] == 200, "bob is not let in")
    attack.tell(f"{tried + 6} ways tried")


def _until_log(person: Person, job_id: str) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while not person.log(job_id) and time.monotonic() < until:
        time.sleep(0.02)


def _pid_of(line: str) -> int:
    processes = psutil.process_iter(["cmdline"])
    found = (each.pid for each in processes if " ".join(each.info["cmdline"] or ()) == line)
    return next(found)


def _calls_about_anothers(attack: Attack, caller: Person, job_id: str) -> int:
    about = ("", "/logs", "/story", "/forecast", "/wait", "/suggested-request")
    to_do = ("cancel", "hold", "release")
    answers = {each: caller.client.get(f"/v1/jobs/{job_id}{each}") for each in about}
    answers |= {each: caller.client.post(f"/v1/jobs/{job_id}/{each}") for each in to_do}
    answers["submit"] = caller.client.post(
        "/v1/jobs", json={"command": "true", "after": f"afterany:{job_id}"}
    )
    for path in ("tokens", "audit"):
        answers[path] = caller.client.get(f"/v1/{path}")
    for path in ("nodes/node-1/drain", "policy", "tokens"):
        body = {"user": "root", "role": "admin"} if path == "tokens" else {"policy": "fcfs"}
        answers[path] = caller.client.post(f"/v1/{path}", json=body)
    for name, answer in answers.items():
        attack.must(400 <= answer.status_code < 500, f"{name}: {answer.status_code}")
        attack.must("secret-of-bob" not in answer.text, f"{name} tells of it")
    listed = caller.client.get("/v1/jobs?user=bob").json()["jobs"]
    attack.must(not listed, "the list shows it")
    return len(answers) + 1


_ASK: Final = """
import json, os, sys
uid, path, method, what, body = sys.argv[1:]
os.setgroups([]); os.setresgid(int(uid), int(uid), int(uid)); os.setresuid(*[int(uid)] * 3)
import socket
with socket.socket(socket.AF_UNIX) as to:
    try:
        to.connect(path)
    except OSError as error:
        print(json.dumps([0, str(error)])); sys.exit()
    head = f"{method} {what} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n"
    head += f"Content-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
    to.sendall((head + body).encode())
    answer = b""
    while part := to.recv(65536):
        answer += part
print(json.dumps([int(answer.split()[1]), answer.partition(b"\\r\\n\\r\\n")[2].decode()]))
"""


def _as(uid: int, path: str, method: str, what: str, **body: str) -> tuple[int, str]:
    """Status and content of a call that an account makes on the machine; 0 where it may not."""
    text = json.dumps(body) if body else ""
    words = [sys.executable, "-I", "-S", "-c", _ASK, str(uid), path, method, what, text]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    status, said = json.loads(done.stdout)
    return status, said


@contextmanager
def _service_of(attack: Attack, name: str) -> Iterator[tuple[str, str]]:
    """A service that an ordinary account has begun for itself: its address and its socket."""
    home, uid = Path("/home") / name, ACCOUNTS[name]
    path = home / "service.toml"
    path.write_text(f'state = "{home}/state"\n[listen]\nport = 0\nsocket = "{home}/socket"\n')
    path.chmod(0o644)
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, "serve", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=home,
        env=environment_of_service() | {"HOME": str(home)},
        user=uid,
        group=uid,
        extra_groups=[],
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        attack.must("listening on" in line, f"{name} cannot serve: {line}")
        process.stdout.readline()
        yield line.split()[-1], str(home / "socket")
    finally:
        process.terminate()
        process.wait()


def secrets(attack: Attack) -> None:
    """What a job finds of the service's environment, and of scripts in the table of processes."""
    names = ("PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "FORESAIL_TOKEN")
    os.environ.update(dict.fromkeys(names, "very-secret"))
    look = (
        "env; for each in /proc/[0-9]*; do tr '\\0' '\\n' < $each/environ; done 2>/dev/null;"
        "ps -eo args; echo over"
    )
    try:
        service_of_it = attack.service()
        service = service_of_it.__enter__()
    finally:
        for name in names:
            del os.environ[name]
    try:
        person = two(service)[0] if attack.is_on_own_machine else admin(service)
        other = person.submit(script="#!/bin/sh\n# marked-text\necho; sleep 60; : marked-text\n")
        _until_log(person, other)
        _, said = person.ran(look)
        if attack.is_on_own_machine:  # else one account may look at all of its own
            attack.must("very-secret" not in said, "a job finds a secret")
        else:
            attack.must("very-secret" not in said.partition("/proc")[0], "a job has a secret")
        attack.must("marked-text" not in said, "ps shows a script")
        attack.must("over" in said, "the job did not look")
        behind = psutil.Process(service.process.pid).children()
        shims = {each.parent() for each in psutil.process_iter() if _is_script(each)}
        for each in [*behind, *filter(None, shims)]:
            attack.must(each.environ() == {}, f"{each.cmdline()[:3]} has {each.environ()}")
        person.client.post(f"/v1/jobs/{other}/cancel")
        person.ended(other)
        attack.tell(f"{len(behind)} spawner and {len(shims)} shims have no environment")
    finally:
        service_of_it.__exit__(None, None, None)


def _is_script(process: psutil.Process) -> bool:
    try:
        return process.cmdline()[-1:] != [] and process.cmdline()[-1].endswith(".1.script")
    except psutil.Error:
        return False


def logs(attack: Attack) -> None:
    """What is no plain file in the place of a log is served to nobody, and holds up nobody."""
    made = ("ln -s /etc/shadow {0}", "mkfifo {0}", "mkdir {0}", "ln -s /dev/zero {0}")
    slowest, calls = 0.0, 0
    with attack.service() as service:
        person = two(service)[0] if attack.is_on_own_machine else admin(service)
        root = admin(service)
        logs_of = service.state / "logs" / (person.user if attack.is_on_own_machine else "")
        for each in made:
            path = f"{logs_of}/$FORESAIL_JOB_ID.out"
            done, _ = person.ran(f"rm {path}; {each.format(path)}")
            told = [f"jobs/{done['job_id']}/{what}" for what in ("logs", "story", "forecast")]
            for what in (*told, "audit", "predictions", "jobs", "nodes"):
                begin = time.monotonic()
                answer = root.client.get(f"/v1/{what}", timeout=20.0)
                slowest, calls = max(slowest, time.monotonic() - begin), calls + 1
                attack.must("root:" not in answer.text, f"{what} serves another file")
                attack.must(answer.status_code < 500, f"{what}: {answer.status_code}")
                if what.endswith("logs"):
                    attack.must(answer.status_code == 422, f"{each}: {answer.status_code}")
        attack.must(person.ran("echo fine")[1] == "fine\n", "another log cannot be read")
    attack.tell(f"{calls} calls answered, the slowest after {slowest:.2f} s")


def connections(attack: Attack) -> None:
    """1,100 connections that say nothing, or slowly, and never end."""
    many = 1_100
    _more_descriptors()
    with attack.service() as service:
        person = admin(service)
        quiet = _milliseconds(lambda: _health(service), 100)
        host, port = service.address.removeprefix("http://").split(":")
        head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
        halves = (
            b"",
            head,
            head + b"Content-Type: application/json\r\nContent-Length: 900\r\n\r\n{",
        )
        opened = []
        for number in range(many):
            opened.append(socket.create_connection((host, int(port))))
            opened[-1].sendall(halves[number % 3])
        over = threading.Event()

        def trickle() -> None:
            while not over.wait(0.2):
                for number, each in enumerate(opened):
                    try:
                        each.send(b"x" if number % 3 == 2 else b"X-a: b\r\n")
                    except OSError:
                        continue

        threading.Thread(target=trickle, daemon=True).start()
        times, ids = [], []
        until = time.monotonic() + (5 if attack.is_short else 45)
        while time.monotonic() < until:
            times.append(1e3 * _health(service))
            ids.append(person.submit("true"))
        over.set()
        attack.must(bool(np.isfinite(times).all()), "health was not answered")
        states = {person.ended(each)["state"] for each in ids[-3:]}
        attack.must(states == {"completed"}, f"jobs are {states}")
        for each in opened:
            each.close()
        used = psutil.Process(service.process.pid).num_fds()
    figure = f"health p99 {np.quantile(quiet, 0.99):.0f} ms before, {np.quantile(times, 0.99):.0f}"
    attack.tell(f"{figure} ms beside {many:,}; {len(ids)} submitted; {used} descriptors")


def _more_descriptors() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8_192), hard))


def _health(service: LiveService) -> float:
    begin = time.perf_counter()
    try:
        answer = httpx.get(f"{service.address}/v1/health", timeout=20.0)
    except httpx.TransportError:
        return float("inf")
    return time.perf_counter() - begin if answer.status_code == 200 else float("inf")


def flood(attack: Attack) -> None:
    """A job that writes without end, and a disk that is full to the last byte."""
    if not attack.is_on_own_machine:
        attack.tell("not tried: needs root")
        return
    disk = attack.folder / "disk"
    disk.mkdir()
    mount("-t", "tmpfs", "-o", "size=150m,mode=711", "none", disk)
    (disk / "ann").mkdir()
    os.chown(disk / "ann", ACCOUNTS["ann"], ACCOUNTS["ann"])
    attack.folder = disk
    cluster = "cluster = 'local(nodes=1,cpus=2,log_bytes=20000000)'"
    with attack.service(cluster) as service:
        ann = Person(service, "ann", "user")
        root = admin(service)
        endless = ann.submit("yes")
        held = ann.submit("true", held=True)
        waits = ann.submit("true", cpus=2)
        until = time.monotonic() + _PATIENCE_SECONDS
        while not ann.client.get(f"/v1/jobs/{endless}").json()["log_is_cut"]:
            if time.monotonic() > until:
                attack.must(False, "the log is not cut")
                break
            time.sleep(0.1)
        left = shutil.disk_usage(disk).free
        node = root.client.get("/v1/nodes").json()["nodes"][0]["name"]
        fills = ann.submit(f"cat /dev/zero > {disk}/ann/fill; sleep 300", requested_time=300)
        while shutil.disk_usage(disk).free and time.monotonic() < until:
            time.sleep(0.05)
        refused = ann.client.post("/v1/jobs", json={"command": "true"}).status_code
        attack.must(refused == 503, f"a submission to a full disk: {refused}")
        for what in (f"{waits}/hold", f"{waits}/release", f"{held}/release", f"{endless}/cancel"):
            status = ann.client.post(f"/v1/jobs/{what}").status_code
            attack.must(status == 202, f"{what}: {status}")
            _until_held(ann, waits, what.endswith("hold"))
        for what in ("drain", "resume"):
            status = root.client.post(f"/v1/nodes/{node}/{what}").status_code
            attack.must(status == 202, f"{what}: {status}")
        attack.must(ann.ended(endless)["state"] == "cancelled", "the endless job is not cancelled")
        (disk / "ann" / "fill").unlink()
        for job_id in (waits, fills):
            ann.client.post(f"/v1/jobs/{job_id}/cancel")
        attack.must(ann.ended(held)["state"] == "completed", "what waited does not run")
        attack.must(ann.ran("echo well", requested_time=60)[1] == "well\n", "it does not go on")
    attack.folder = disk.parent
    subprocess.run(["umount", "-l", disk], check=True)
    attack.tell(f"log cut with {left / 1e6:.0f} of 150 MB left; all six calls done with none left")


def _until_held(person: Person, job_id: str, is_so: bool) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        state = person.client.get(f"/v1/jobs/{job_id}").json()["state"]
        if not is_so or state == "held":
            return
        time.sleep(0.05)


def streams(attack: Attack) -> None:
    """300 event streams of a token that may only read, beside which others submit."""
    many, times = 300, 60 if attack.is_short else 400
    _more_descriptors()
    with attack.service(after=_MANY) as service:
        person = admin(service)
        token = token_of(service, person.user, "read-only")
        caller = Caller(service.address, token_of(service, person.user, "user"))
        body = {"command": "true", "held": True}

        def submit() -> float:
            return caller.seconds("/v1/jobs", body)

        _milliseconds(submit, 20)
        idle = _milliseconds(submit, times)
        host, port = service.address.removeprefix("http://").split(":")
        head = f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        opened = []
        for _ in range(many):
            opened.append(socket.create_connection((host, int(port))))
            opened[-1].sendall((head + "Last-Event-ID: 0\r\n\r\n").encode())
        time.sleep(1.0)
        beside = _milliseconds(submit, times)
        followed = sum(b" 200 " in each.recv(100)[:20] for each in opened if _has_said(each))
        for each in opened:
            each.close()
    ratio = float(np.median(beside) / np.median(idle))
    attack.must(ratio < 5, f"{ratio:.1f} times")
    attack.must(bool(np.isfinite(beside).all()), "a submission was refused")
    attack.must(followed <= 20, f"{followed} streams of a token")
    attack.tell(
        f"submit {ratio:.1f} times its idle median of {np.median(idle):.1f} ms; "
        f"{followed} of {many} streams are given"
    )


def _has_said(opened: socket.socket) -> bool:
    opened.settimeout(2.0)
    try:
        return bool(opened.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


def postgresql(attack: Attack) -> None:
    """The PostgreSQL server is stopped again and again under load."""
    if program("initdb") is None:
        attack.tell("not tried: needs PostgreSQL")
        return
    stops = 3 if attack.is_short else 20
    database = Path(tempfile.mkdtemp(prefix="foresail-"))
    server = PostgreSQLServer(database)
    server.start()
    try:
        found = stop_again_and_again(attack.folder, server, stops)
    finally:
        server.stop()
        shutil.rmtree(database)
    attack.fallen += found.faults
    attack.tell(
        f"{stops} stops, {len(found.accepted)} jobs, {found.refused} answers 503; "
        f"accepts again after at most {found.slowest_seconds:.1f} s"
    )


def size(attack: Attack) -> None:
    """Many jobs: by ``size_of_the_service.py``; short, only its memory is judged."""
    measure = Path(__file__).with_name("size_of_the_service.py")
    words = ["--queued", "3000", "--finished", "3000", "--seconds", "3", "--submissions", "100"]
    done = subprocess.run(
        [sys.executable, measure, *(words if attack.is_short else ())],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    attack.must(bool(lines) and not done.stderr, f"it ended: {done.stderr[-300:]}")
    for line in lines:
        is_judged = not attack.is_short or line.startswith("memory")
        attack.must(not (is_judged and "BEYOND" in line) and " inf " not in line, line)
    figures = [" ".join(line.split()) for line in lines if line.startswith(("restart", "memory"))]
    attack.tell("; ".join(figures))


def busy(attack: Attack) -> None:
    """231 submissions a second beside a client that lists without a pause."""
    seconds, most = (5.0, 100.0) if attack.is_short else (15.0, 10.0)
    with attack.service("cluster = 'local(nodes=1,cpus=4)'", after=_MANY) as service:
        person = admin(service)
        caller = Caller(service.address, token_of(service, person.user, "admin"))
        runs = person.submit("sleep 600", cpus=4)
        job_id = person.submit("sleep 600", cpus=4)
        asked = {"list": "/v1/jobs?limit=50", "show": f"/v1/jobs/{job_id}", "metrics": "/metrics"}
        for _ in range(100):
            caller.seconds("/v1/jobs", {"command": "true", "requested_time": 60})
        idle = {
            name: float(np.median(_milliseconds(lambda path=path: caller.seconds(path), 100)))
            for name, path in asked.items()
        }
        token = token_of(service, person.user, "admin")
        loads = [
            subprocess.Popen([sys.executable, __file__, "--load", each, service.address, token])
            for each in ("submit", "list")
        ]
        time.sleep(2.0)
        times: dict[str, list[float]] = {name: [] for name in asked}
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for name, path in asked.items():
                times[name].append(1e3 * caller.seconds(path))
            time.sleep(0.01)
        for each in loads:
            each.terminate()
            each.wait()
        person.client.post("/v1/jobs/cancel", json={"job_ids": [job_id, runs]})
    for name, measured in times.items():
        p99 = float(np.quantile(measured, 0.99, method="lower"))
        ratio = p99 / idle[name]
        attack.must(ratio <= most, f"{name} {ratio:.0f} times its idle median")
        attack.tell(f"{name} {idle[name]:.1f} -> p99 {p99:.0f} ms ({ratio:.1f}x)")


def _load(kind: str, address: str, token: str) -> None:
    """Ask without end, in a process of its own; until it is killed."""
    caller, due = Caller(address, token), time.monotonic()
    while True:
        if kind == "list":
            caller.seconds("/v1/jobs?limit=50")
        else:
            caller.seconds("/v1/jobs", {"command": "true", "requested_time": 60})
            due += 1.0 / 231.0
            time.sleep(max(0.0, due - time.monotonic()))


def kills(attack: Attack) -> None:
    """It is killed again and again under load."""
    number = 5 if attack.is_short else 100
    found = kill_again_and_again(Victim(attack.folder, free_port()), number, 1)
    attack.fallen += found.faults
    attack.tell(
        f"{found.kills} kills, {len(found.accepted)} jobs, there again after at most "
        f"{max(found.recoveries):.1f} s"
    )


ATTACKS: Final[Mapping[str, Callable[[Attack], None]]] = {
    each.__name__: each
    for each in (
        identity, clock, accounts, secrets, logs, connections, flood, streams, postgresql, size,
        busy, kills,
    )
}  # fmt: skip


def attacked(name: str, *, is_short: bool, is_on_own_machine: bool) -> bool:
    """Whether what was attacked held; says so in a line."""
    folder = Path(tempfile.mkdtemp(prefix="foresail-attack-"))
    folder.chmod(0o711)
    attack = Attack(folder, is_short, is_on_own_machine)
    begin = time.monotonic()
    try:
        ATTACKS[name](attack)
    except Exception as error:  # what keeps an attack from being made is no defence
        attack.fallen.append(f"{type(error).__name__}: {error}")
    said = "; ".join([*dict.fromkeys(attack.fallen)][:6] + attack.figures)
    verdict = "FELL" if attack.fallen else "held"
    print(f"{name:<12} {verdict}  {said}  [{time.monotonic() - begin:.0f} s]", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return not attack.fallen


def main() -> int:
    """Make the attacks that are named, or all; 1 if anything fell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAMES", help=", ".join(ATTACKS))
    parser.add_argument("--short", action="store_true", help="all within three minutes")
    parser.add_argument("--load", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.load:
        _load(*chosen.load)
    unknown = set(chosen.names) - set(ATTACKS)
    if unknown:
        parser.error(f"no such attack: {', '.join(unknown)}")
    is_there = os.environ.get(_HERE) == "1"
    permitted = (
        os.geteuid() == 0 and not subprocess.run([*_NAMESPACE, "true"], check=False).returncode
    )
    if permitted and not is_there:
        os.execvpe(
            _NAMESPACE[0], [*_NAMESPACE, sys.executable, *sys.argv], os.environ | {_HERE: "1"}
        )
    if is_there:
        make_the_machine()
    wanted = chosen.names or list(ATTACKS)
    held = [attacked(each, is_short=chosen.short, is_on_own_machine=is_there) for each in wanted]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
