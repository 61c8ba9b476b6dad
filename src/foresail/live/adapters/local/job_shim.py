"""Shims: the small process around each attempt that claims it, limits it and records its end.

Shims are forked from a spawner, one process that runs this file as a script without the package
(``python -I -S job_shim.py``), because forking from something small takes a millisecond and
starting Python takes ten. A shim outlives spawner and daemon: whatever happens to those, an
attempt runs at most once, is stopped at its limit, and leaves its exit code behind.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

_T = TypeVar("_T")

_CANNOT_RUN = 127
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_PATIENCE_SECONDS = 1.0
_EMPTYING_SECONDS = 5.0
_BLOCKED = (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP)


def state_and_start_ticks(pid: int) -> tuple[str, int]:
    """State letter of a process, and its start in clock ticks since boot.

    Raises
    ------
    OSError
        If there is no such process.
    """
    with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - pathlib is slow to import
        fields = stat.read().rpartition(b")")[2].split()
    return fields[0].decode(), int(fields[19])


def boot_id() -> str:
    """Which boot of the machine this is."""
    with open("/proc/sys/kernel/random/boot_id") as boot:  # noqa: PTH123
        return boot.read().strip()


def patiently(act: Callable[[], _T]) -> _T:
    """Do what needs room on a disk, however long it takes until there is some."""
    while True:
        try:
            return act()
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
        time.sleep(_PATIENCE_SECONDS)


def claim(prefix: str, text: str) -> bool:
    """Make ``prefix.claim`` appear, whole; False if the attempt was claimed before.

    It is not forced to the disk: a crash of the machine that takes the claim takes the command too.
    """
    draft = f"{prefix}.claim.{os.getpid()}"
    _write(draft, text)
    try:
        os.link(draft, prefix + ".claim")
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)  # noqa: PTH108
    return True


def record(prefix: str, text: str) -> None:
    """Make ``prefix.status`` appear, whole, and on disk when this returns."""
    draft = f"{prefix}.status.{os.getpid()}"
    _force_to_disk(_write(draft, text))
    os.rename(draft, prefix + ".status")  # noqa: PTH104
    _force_to_disk(os.path.dirname(prefix))  # noqa: PTH120


def _write(path: str, text: str, mode: int = 0o644) -> str:
    content = text.encode()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        if os.write(file, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(file)
    return path


def _force_to_disk(path: str) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(file)
    os.close(file)


def _become_command(go: int, request: dict[str, Any]) -> None:
    """In the child: wait for the word, then turn into the command. Never returns."""
    command, cpus, problem = request["command"], request["cpus"], request.get("problem")
    try:
        os.setsid()
        if os.read(go, 1) != b"!":
            os._exit(_CANNOT_RUN)
        if problem is not None:
            _complain(problem)
            os._exit(_CANNOT_RUN)
        if cpus:
            try:
                os.sched_setaffinity(0, cpus)
            except OSError as error:
                _complain(f"not bound to cpus {cpus}: {error.strerror}")
        for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored_by_python, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.chdir(request["directory"])
        os.execvpe(command[0], command, request["environment"])
    except OSError as error:
        _complain(f"{error.filename or command[0]}: {error.strerror}")
    finally:
        os._exit(_CANNOT_RUN)


def _complain(sentence: str) -> None:
    os.write(2, f"foresail: {sentence}\n".encode())


def _signal(child: int, cgroup: str | None, number: int) -> None:
    """Signal the command's group, and what has left that but not its cgroup; each one once."""
    for pid in members(cgroup) if cgroup else ():
        try:
            if os.getpgid(pid) != child:
                os.kill(pid, number)
        except ProcessLookupError:
            continue
    _signal_group(child, number)


def _kill(child: int, cgroup: str | None) -> None:
    if cgroup:
        _put(os.path.join(cgroup, "cgroup.kill"), "1")  # noqa: PTH118
    _signal_group(child, signal.SIGKILL)


def _signal_group(child: int, number: int) -> None:
    try:
        os.killpg(child, number)
    except ProcessLookupError:  # the child has not made its own session yet, or all have gone
        return


def _entered(cgroup: str, limits: dict[str, str], child: int) -> bool:
    """Make a cgroup with these limits and put the command into it; False if that cannot be done."""
    try:
        os.mkdir(cgroup)  # noqa: PTH102
        for name, value in limits.items():
            _put(os.path.join(cgroup, name), value)  # noqa: PTH118
        _put(os.path.join(cgroup, "cgroup.procs"), str(child))  # noqa: PTH118
    except OSError as error:
        _complain(f"without a cgroup: {error.filename or cgroup}: {error.strerror}")
        remove_cgroup(cgroup)
        return False
    return True


def _put(path: str, value: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, value.encode())
    finally:
        os.close(file)


def members(cgroup: str) -> list[int]:
    """Ids of the processes in a cgroup; none where there is no such cgroup."""
    return [int(line) for line in _lines(cgroup, "cgroup.procs")]


def counters(cgroup: str, name: str) -> dict[str, int]:
    """What a file of counters says, such as ``cpu.stat``; nothing where there is none."""
    return {key: int(value) for key, value in map(str.split, _lines(cgroup, name))}


def _lines(cgroup: str, name: str) -> list[str]:
    try:
        with open(os.path.join(cgroup, name)) as file:  # noqa: PTH118, PTH123
            return file.read().splitlines()
    except OSError:
        return []


def remove_cgroup(cgroup: str) -> None:
    """Kill whatever is in a cgroup, and take it away; what cannot be killed stays in it."""
    until = time.monotonic() + _EMPTYING_SECONDS
    try:
        _put(os.path.join(cgroup, "cgroup.kill"), "1")  # noqa: PTH118
    except OSError:  # it is not there
        return
    for folder, _, _ in os.walk(cgroup, topdown=False):  # a job may have made some of its own
        while True:
            try:
                os.rmdir(folder)  # noqa: PTH106
                break
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > until:
                    return
            time.sleep(0.002)  # until the last one has gone


def _wait(child: int, cgroup: str | None, limit: float, grace: float) -> str:
    """Wait for the command, stopping it at its limit or on request; returns why it ended."""
    why = "exit"
    term_at: float | None = time.monotonic() + limit
    kill_at: float | None = None
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        now = time.monotonic()
        next_at = min(at for at in (term_at, kill_at, now + 3600.0) if at is not None)
        caught = signal.sigtimedwait([signal.SIGTERM, signal.SIGCHLD], max(0.0, next_at - now))
        now = time.monotonic()
        asked = caught is not None and caught.si_signo == signal.SIGTERM
        due = term_at is not None and now >= term_at
        if why == "exit" and (asked or due):
            why = "stopped" if asked else "limit"
            term_at, kill_at = None, now + grace
            _signal(child, cgroup, signal.SIGTERM)
            _signal(child, cgroup, signal.SIGCONT)
        elif kill_at is not None and now >= kill_at:
            kill_at = None
            _kill(child, cgroup)
    return why


def keep(prefix: str, request: dict[str, Any]) -> None:
    """Run one attempt of a job, unless another shim has claimed it.

    ``prefix.claim`` names the boot, this process and the command's by id and start, and appears,
    whole or not at all, before the command is let loose. ``prefix.status`` holds exit code
    (negative: ended by that signal), start and end (Unix seconds) and why it ended (exit, limit,
    stopped, memory), and the cpu seconds of all that it was, where a cgroup has counted them.
    """
    go_read, go_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go_write)
        _become_command(go_read, request)
    os.close(go_read)
    who = " ".join(f"{pid} {state_and_start_ticks(pid)[1]}" for pid in (os.getpid(), child))
    slots = ",".join(map(str, request["cpus"])) or "-"
    if request["gpus"]:
        slots += "/" + ",".join(request["gpus"])
    cgroup = request["cgroup"]

    def begun() -> float | None:
        started = time.time()
        text = f"{boot_id()} {who} {started!r} {slots} {cgroup or '-'}\n"
        return started if claim(prefix, text) else None

    started = patiently(begun)
    if started is None:
        os.close(go_write)
        os.waitpid(child, 0)
        return
    if cgroup and not _entered(cgroup, request["cgroup_limits"], child):
        cgroup = None
    text = request["script_text"]
    if text is not None:
        patiently(lambda: _write(request["script"], text, 0o600))
    os.write(go_write, b"!")
    os.close(go_write)
    why = _wait(child, cgroup, request["limit_seconds"], request["grace_seconds"])
    _kill(child, cgroup)  # what it left behind, before its id can be used again
    if text is not None:
        os.unlink(request["script"])  # noqa: PTH108
    ended = time.time()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    spent = "-"
    if cgroup:
        spent = str(counters(cgroup, "cpu.stat")["usage_usec"] / 1e6)
        if code and why == "exit" and counters(cgroup, "memory.events").get("oom_kill"):
            why = "memory"
            _complain("it needed more memory than it may have")
        remove_cgroup(cgroup)
    patiently(lambda: record(prefix, f"{code} {started!r} {ended!r} {why} {spent}\n"))


def _become_shim(request: dict[str, Any]) -> None:
    """In a child of the spawner: leave its session and its streams, and keep. Never returns."""
    try:
        os.setsid()
        append = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        for number, path, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, request["output"], append),
            (2, request["errors"], append),
        ):
            if path in request["begun_anew"]:
                flags |= os.O_TRUNC
            try:
                file = patiently(partial(os.open, path, flags, 0o644))
            except OSError as error:
                request["problem"] = f"{path}: {error.strerror}"
                file = patiently(partial(os.open, request["log"], append, 0o644))
            os.dup2(file, number)
            os.close(file)
        keep(request["prefix"], request)
    finally:
        os._exit(0)


def serve() -> None:
    """The spawner: fork a shim for every line of JSON on standard input, and say its process id.

    A shim that has ended is reaped only when the next request comes: until then its id is its
    own, and a descriptor can be opened for it. Ends with its input, that is, with the adapter.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
    for line in sys.stdin.buffer:
        _reap()
        child = os.fork()
        if child == 0:
            _become_shim(json.loads(line))
        os.write(1, f"{child}\n".encode())


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


if __name__ == "__main__":
    serve()
