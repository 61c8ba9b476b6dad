"""Shims: the small process around each attempt that claims it, limits it and records its end.

Shims are forked from a spawner, one process that runs ``serve`` and has loaded next to nothing
(``python -I -S``, an empty environment), because forking from something small takes a millisecond
and starting Python takes ten. A shim outlives spawner and daemon: whatever happens to those, an
attempt runs at most once, is stopped at its limit, and leaves its exit code behind.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from foresail.live.adapters.local.shim_files import (
    START_TICKS,
    JobLog,
    Request,
    acting_as,
    become,
    boot_id,
    claim,
    counters,
    descendants,
    kill_cgroup,
    make_cgroup,
    members,
    patiently,
    record,
    remove_cgroup,
    since_boot_seconds,
    stat_fields,
    write,
)

_CANNOT_RUN = 127
_NOT_PERMITTED = 126
_LONGEST_PROBLEM_BYTES = 4096
_LONGEST_WAIT_SECONDS = 300.0
_SET_CHILD_SUBREAPER = 36
_STRAYS_SECONDS = 5.0
_BLOCKED = (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP)


def _become_command(go: int, failed: int, request: Request, streams: tuple[int, int]) -> None:
    """In the child: wait for the word, then turn into the command. Never returns.

    What keeps it from that is written to ``failed``, which the command does not inherit.
    """
    command, cpus, account = request["command"], request["cpus"], request["account"]
    code = _CANNOT_RUN
    try:
        os.setsid()
        if os.read(go, 1) != b"!":
            os._exit(_CANNOT_RUN)
        for number, stream in enumerate(streams, 1):
            os.dup2(stream, number)
        if cpus:
            try:
                os.sched_setaffinity(0, cpus)
            except OSError as error:
                _complain(f"not bound to cpus {cpus}: {error.strerror}")
        for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored_by_python, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        if account is not None:
            become(account)
        os.chdir(request["directory"])
        os.execvpe(command[0], command, request["environment"])
    except OSError as error:
        code = _NOT_PERMITTED if isinstance(error, PermissionError) else code
        looked_for = isinstance(error.filename, bytes)  # in each folder of PATH
        sentence = f"{command[0] if looked_for else error.filename}: {error.strerror}"
        os.write(failed, sentence.encode())
        _complain(sentence)
    finally:
        os._exit(code)


def _complain(sentence: str) -> None:
    os.write(2, f"foresail: {sentence}\n".encode())


def _signal(child: int, cgroup: str | None, number: int) -> None:
    """Signal the command's group, and what of the job has left that; each one once."""
    for pid in members(cgroup) if cgroup else descendants(own := os.getpid())[own]:
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) != child:
                os.kill(pid, number)
    _signal_group(child, number)


def _kill(child: int, cgroup: str | None) -> None:
    if cgroup:
        kill_cgroup(cgroup)
    _signal_group(child, signal.SIGKILL)


def _signal_group(child: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it has not made its own session yet, or all have gone
        os.killpg(child, number)


def _kill_strays() -> None:
    """Kill what is left below this process, and what that has begun meanwhile."""
    own, until = os.getpid(), time.monotonic() + _STRAYS_SECONDS
    with suppress(ChildProcessError):  # none is left
        while time.monotonic() < until:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                for pid in descendants(own)[own]:
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.002)


def _reap_orphans(child: int) -> None:
    """Let go of what has ended of the job, but for its command."""
    while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if found.si_pid == child:
            return
        os.waitpid(found.si_pid, 0)


def _signal_pipe() -> int:
    """A descriptor from which the numbers of SIGTERM and SIGCHLD can be read."""
    signals, writer = os.pipe()
    for end in (signals, writer):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: None)  # noqa: ARG005
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGCHLD])
    return signals


def _wait(child: int, logs: Sequence[JobLog], cgroup: str | None, request: Request) -> str:
    """Keep what the command writes until it ends, stopping it at its limit or on request.

    Returns why it ended.
    """
    why = "exit"
    term_at = since_boot_seconds() + request["limit_seconds"]
    kill_at = math.inf
    ended, signals, is_stopped = os.pidfd_open(child), _signal_pipe(), False
    by_pipe = {log.pipe: log for log in logs}
    poll = select.poll()
    for descriptor in (ended, signals, *by_pipe):
        poll.register(descriptor, select.POLLIN)
    while True:
        wait = min(term_at, kill_at, since_boot_seconds() + _LONGEST_WAIT_SECONDS)
        ready = {each for each, _ in poll.poll(max(0.0, wait - since_boot_seconds()) * 1000.0)}
        if ended in ready:
            return why
        for pipe in ready & by_pipe.keys():
            log = by_pipe[pipe]
            was_cut = log.cut_because
            if not log.take():
                poll.unregister(pipe)
            if log.cut_because is not was_cut:
                with suppress(OSError):  # as soon as there is room
                    write(f"{request['prefix']}.cut", "")
        if signals in ready:
            is_stopped = signal.SIGTERM in os.read(signals, 1 << 16)
            _reap_orphans(child)
        now = since_boot_seconds()
        if why == "exit" and (is_stopped or now >= term_at):
            why = "stopped" if is_stopped else "limit"
            term_at, kill_at = math.inf, now + request["grace_seconds"]
            _signal(child, cgroup, signal.SIGTERM)
            _signal(child, cgroup, signal.SIGCONT)
        elif now >= kill_at:
            kill_at = math.inf
            _kill(child, cgroup)


def keep(prefix: str, request: Request) -> None:
    """Run one attempt of a job, unless another shim has claimed it.

    ``prefix.claim`` names the boot, this process and the command's by id and start, and appears,
    whole or not at all, before the command is let loose. ``prefix.status`` says how it ended: the
    exit code (negative: by that signal), when it began, by the wall clock and since boot, how long
    it ran, why it ended (exit, limit, stopped, memory), what kept it from running if something did,
    and the cpu seconds of all that it was. Both say whose they are. ``prefix.cut`` is there once a
    log was cut. Without a cgroup what leaves the command's session comes below this process.
    """
    account, cgroup = request["account"], request["cgroup"]
    logs, problem = _opened_logs(request)
    streams = [log.inlet for log in logs] or [1]
    go_read, go_write = os.pipe()
    failed_read, failed_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go_write)
        _become_command(go_read, failed_write, request, (streams[0], streams[-1]))
    os.close(go_read)
    os.close(failed_write)
    for log in logs:
        os.close(log.inlet)
    shim, command = ([pid, int(stat_fields(pid)[START_TICKS])] for pid in (os.getpid(), child))
    whose = {"identity": request["identity"], "boot": boot_id()}

    def begun() -> dict[str, object] | None:
        started: dict[str, object] = {
            **whose,
            "start_unix_seconds": time.time(),
            "start_since_boot_seconds": since_boot_seconds(),
        }
        who = {"shim": shim, "command": command, "cgroup": cgroup, "script": request["script"]}
        held = {"cpus": request["cpus"], "gpus": request["gpus"]}
        return started if claim(prefix, {**started, **who, **held}) else None

    started = patiently(begun)
    if started is None:
        os.close(go_write)
        os.waitpid(child, 0)
        return
    began = since_boot_seconds()
    if cgroup:
        try:
            make_cgroup(cgroup, request["cgroup_limits"], child)
        except OSError as error:
            for log in logs[-1:]:
                log.say(f"without a cgroup: {error.filename or cgroup}: {error.strerror}")
            cgroup = None
    if not cgroup:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if problem is None:
        problem = _problem_with_script(request)
    if problem is None:
        os.write(go_write, b"!")
    os.close(go_write)
    why = _wait(child, logs, cgroup, request)
    ran_seconds = since_boot_seconds() - began
    _kill(child, cgroup)  # what it left behind, before its id can be used again
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    problem = problem or os.read(failed_read, _LONGEST_PROBLEM_BYTES).decode(errors="replace")
    if not cgroup:
        _kill_strays()
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_seconds = spent.ru_utime + spent.ru_stime
    else:
        cpu_seconds = counters(cgroup, "cpu.stat")["usage_usec"] / 1e6
        if code and why == "exit" and counters(cgroup, "memory.events").get("oom_kill"):
            why = "memory"
            for log in logs[-1:]:
                log.say("it needed more memory than it may have")
        remove_cgroup(cgroup)
    for log in logs:
        log.close()
    if any(log.cut_because for log in logs):
        patiently(partial(write, f"{prefix}.cut", ""))
    if request["script"] is not None:
        with acting_as(account), suppress(OSError):
            os.unlink(request["script"])  # noqa: PTH108
    status = {
        **started,
        "runtime_seconds": ran_seconds,
        "exit_code": code,
        "why": why,
        "problem": problem or None,
        "cpu_seconds": cpu_seconds,
    }
    patiently(partial(record, prefix, status))


def _opened_logs(request: Request) -> tuple[list[JobLog], str | None]:
    """One for both streams, or one for each; what keeps the command from running, if it does."""
    paths = dict.fromkeys(filter(None, (request["output"], request["errors"])))
    limit_bytes, account = request["log_bytes"], request["account"]
    try:
        return [
            patiently(partial(JobLog, path, limit_bytes, account, path in request["begun_anew"]))
            for path in paths
        ], None
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
    logs = []
    with suppress(OSError):
        logs.append(patiently(partial(JobLog, request["log"], limit_bytes, account)))
        logs[0].say(problem)
    return logs, problem


def _problem_with_script(request: Request) -> str | None:
    """Put the script where it is run from; what keeps it from there, if anything does."""
    path = request["script"]
    if path is None:
        return None
    try:
        with acting_as(request["account"]):
            patiently(partial(write, path, request["script_text"]))
    except OSError as error:
        return f"{path}: {error.strerror}"
    return None


def _become_shim(request: Request) -> None:
    """In a child of the spawner: leave its session and its streams, and keep. Never returns."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        os.close(nothing)
        if request["account"] is not None:
            os.setgroups(request["account"]["groups"])
        keep(request["prefix"], request)
    finally:
        os._exit(0)


def serve() -> None:
    """The spawner: fork a shim for every line of JSON on standard input, and say its process id.

    A shim that has ended is reaped only when the next request comes: until then its id is its
    own, and a descriptor can be opened for it. Ends with its input, that is, with the adapter.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
    gc.disable()  # looking for garbage would copy what a shim shares with the spawner
    for line in sys.stdin.buffer:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        child = os.fork()
        if child == 0:
            _become_shim(json.loads(line))
        os.write(1, f"{child}\n".encode())
