"""Files of shims: claims and statuses of attempts, those of a cgroup, and logs.

What a command writes goes through its shim into a file whose size has a limit; beyond that, or
where the disk has hardly any room left, all but its end is dropped, which the log itself says.

Shims import nothing but small modules of Python's own.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

_T = TypeVar("_T")

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_PATIENCE_SECONDS = 1.0


def boot_id() -> str:
    """Return the identity of this boot of the machine."""
    with open("/proc/sys/kernel/random/boot_id") as boot:  # noqa: PTH123 - pathlib is slow to import
        return boot.read().strip()


def since_boot_seconds() -> float:
    """Return how long the machine has been up, suspended or not, whatever clocks are set to."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def patiently(act: Callable[[], _T]) -> _T:
    """Do what needs room on a disk, however long it takes until there is some."""
    while True:
        try:
            return act()
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
        time.sleep(_PATIENCE_SECONDS)


def claim(prefix: str, content: dict[str, Any]) -> bool:
    """Make ``prefix.claim`` appear, whole; False if the attempt was claimed before.

    It is not forced to the disk: a crash of the machine that takes the claim takes the command too.
    """
    draft = f"{prefix}.claim.{os.getpid()}"
    write(draft, _line(content))
    try:
        os.link(draft, prefix + ".claim")
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)  # noqa: PTH108
    return True


def record(prefix: str, content: dict[str, Any]) -> None:
    """Make ``prefix.status`` appear, whole, and on disk when this returns."""
    draft = f"{prefix}.status.{os.getpid()}"
    write(draft, _line(content))
    _force_to_disk(draft)
    os.rename(draft, prefix + ".status")  # noqa: PTH104
    _force_to_disk(os.path.dirname(prefix))  # noqa: PTH120


def write(path: str, text: str) -> None:
    """Write a new file that its owner alone may read.

    What has its name goes first: a FIFO that a user has put there would be waited for without end.
    """
    content = text.encode()
    if os.path.lexists(path):
        os.unlink(path)  # noqa: PTH108
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        while content:
            content = content[os.write(file, content) :]
    finally:
        os.close(file)


def contents(path: str) -> dict[str, Any] | None:
    """Read a claim or a status; None if there is none, or a crash has left it incomplete."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            line = file.read()
    except FileNotFoundError:
        return None
    try:
        found = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else None


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content) + "\n"


def _force_to_disk(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


_EMPTYING_SECONDS = 5.0


def make_cgroup(cgroup: str, limits: dict[str, str], member: int) -> None:
    """Make a cgroup with these limits and put a process into it.

    Raises ``OSError`` if that cannot be done; nothing of it is left.
    """
    try:
        os.mkdir(cgroup)  # noqa: PTH102
        for name, value in limits.items():
            put(os.path.join(cgroup, name), value)  # noqa: PTH118
        put(os.path.join(cgroup, "cgroup.procs"), str(member))  # noqa: PTH118
    except OSError:
        remove_cgroup(cgroup)
        raise


def put(path: str, value: str) -> None:
    """Write into a file of the kernel's."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, value.encode())
    finally:
        os.close(file)


def members(cgroup: str) -> list[int]:
    """Ids of the processes in a cgroup; none where there is no such cgroup."""
    return [int(line) for line in _lines(cgroup, "cgroup.procs")]


def descendants(*processes: int) -> dict[int, dict[int, list[bytes]]]:
    """Return of each of these what is below it: by id the fields of ``stat_fields``."""
    known: dict[int, list[bytes]] = {}
    children: dict[int, list[int]] = {}
    for each in map(int, filter(str.isdecimal, os.listdir("/proc"))):  # noqa: PTH208
        fields = stat_fields(each)
        if fields:
            known[each] = fields
            children.setdefault(int(fields[1]), []).append(each)
    found = {}
    for process in processes:
        below = list(children.get(process, ()))
        for each in below:  # which grows meanwhile
            below += children.get(each, ())
        found[process] = {each: known[each] for each in below}
    return found


START_TICKS = 19
"""Index of the field that is the start of a process, in clock ticks since boot."""


def stat_fields(process: int) -> list[bytes]:
    """Read the fields of a process behind its name; nothing if it has ended."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def counters(cgroup: str, name: str) -> dict[str, int]:
    """Read a file of counters such as ``cpu.stat``; nothing where there is none."""
    return {key: int(value) for key, value in map(str.split, _lines(cgroup, name))}


def _lines(cgroup: str, name: str) -> list[str]:
    try:
        with open(os.path.join(cgroup, name)) as file:  # noqa: PTH118, PTH123
            return file.read().splitlines()
    except OSError:
        return []


def kill_cgroup(cgroup: str) -> None:
    """Kill whatever is in a cgroup; raises ``OSError`` if there is no such cgroup."""
    put(os.path.join(cgroup, "cgroup.kill"), "1")  # noqa: PTH118


def remove_cgroup(cgroup: str) -> None:
    """Kill whatever is in a cgroup, and take it away; what cannot be killed stays in it."""
    until = time.monotonic() + _EMPTYING_SECONDS
    try:
        kill_cgroup(cgroup)
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


Request: TypeAlias = dict[str, Any]
"""Request of the adapter to a shim, as ``Attempt.spawn`` puts it."""

_SOFT_LIMITS = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 1024))
"""Soft limits of a login; up to the hard ones a command may raise them itself."""


@contextmanager
def acting_as(account: Request | None) -> Iterator[None]:
    """Open and write files as an account, whose groups this process has; None: as oneself."""
    if account is None:
        yield
        return
    os.setegid(account["gid"])
    os.seteuid(account["uid"])
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def become(account: Request) -> None:
    """Be an account, whose groups this process has, and never anybody else again."""
    for which, wanted in _SOFT_LIMITS:
        hard = resource.getrlimit(which)[1]
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (soft, hard))
    with suppress(OSError):  # without /proc there is nothing to put right
        put("/proc/self/oom_score_adj", "0")
    uid, gid = account["uid"], account["gid"]
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    os.umask(0o022)


_AT_ONCE = 1 << 18
_LONGEST_TAIL = 1 << 16
_MOST_LEFT = 1 << 20
_ALWAYS_KEPT = 1 << 20
_SPARE_BYTES = 1 << 30
_SPARE_SHARE = 0.05
"""Room that logs of some size leave on a disk: so many bytes, or this share of a small one."""


class JobLog:
    """A file, and the pipe of which it keeps what fits into ``limit_bytes``.

    It may be there already, and is emptied if it ``begins_anew``; ``account`` says whose it is
    (None: one's own). Raises ``OSError`` if it cannot be written, or is neither a plain file nor a
    device; those of ``/proc`` are the shim's own.
    """

    def __init__(
        self, path: str, limit_bytes: float, account: Request | None, begins_anew: bool = False
    ) -> None:
        self._account = account
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY
        if begins_anew:
            flags |= os.O_TRUNC
        with acting_as(account):
            self._file = os.open(path, flags, 0o600)
        about = os.fstat(self._file)
        is_file = stat.S_ISREG(about.st_mode) and about.st_dev != os.stat("/proc").st_dev  # noqa: PTH116
        if not (is_file or stat.S_ISCHR(about.st_mode)):
            os.close(self._file)
            raise OSError(errno.EINVAL, "not a plain file", path)
        self._longest_tail = int(min(_LONGEST_TAIL, limit_bytes / 4))
        self._size = about.st_size
        self._limit_bytes = limit_bytes
        self._tail = b""
        self._left_out = 0
        self.cut_because: str | None = None
        """Reason for which some of it is left out, if it is."""
        self.pipe, self.inlet = os.pipe()
        if account is not None:  # whoever writes to /dev/stdout opens it again
            os.fchown(self.inlet, account["uid"], account["gid"])
        with suppress(OSError):  # a user may have so much in pipes, and no more
            fcntl.fcntl(self.inlet, fcntl.F_SETPIPE_SZ, _AT_ONCE)
        os.set_blocking(self.pipe, False)

    def take(self) -> bool:
        """Keep some of what was written; False if there is nothing."""
        try:
            written = os.read(self.pipe, _AT_ONCE)
        except BlockingIOError:
            return False
        rest = written if self.cut_because else self._keep(written)
        if rest:
            self._left_out += len(rest)
            self._tail = (self._tail + rest)[-self._longest_tail :]
        return bool(written)

    def say(self, sentence: str) -> None:
        """Add something that is not the command's, if there is room."""
        self._write(f"foresail: {sentence}\n".encode())

    def close(self) -> None:
        """Keep what is still in the pipe, and the end of what was left out."""
        for _ in range(_MOST_LEFT // 4096):  # somebody may write for ever
            if not self.take():
                break
        if self._left_out:
            left_out = self._left_out - len(self._tail)
            self.say(f"{left_out:,} bytes were left out, and then there came:")
            self._write(self._tail)

    def _keep(self, written: bytes) -> bytes:
        """Write what there is room for; returns the rest."""
        room = int(max(0.0, min(self._limit_bytes - self._longest_tail - self._size, len(written))))
        if self._size > _ALWAYS_KEPT and self._disk_is_nearly_full():
            self.cut_because, done = "hardly any room is left on the disk", 0
        else:
            done = self._write(written[:room])
            if done < room:
                self.cut_because = "no room is left on the disk"
            elif room < len(written):
                self.cut_because = f"a log may have {self._limit_bytes:,.0f} bytes"
        if self.cut_because:
            self.say(f"this log is cut here: {self.cut_because}; its end will follow")
        return written[done:]

    def _disk_is_nearly_full(self) -> bool:
        disk = os.fstatvfs(self._file)
        spare = min(_SPARE_BYTES, _SPARE_SHARE * disk.f_blocks * disk.f_frsize)
        return disk.f_bavail * disk.f_frsize < spare

    def _write(self, content: bytes) -> int:
        """Append as much as there is room for; how much that was."""
        done = 0
        with acting_as(self._account), suppress(OSError):
            while done < len(content):
                done += os.write(self._file, content[done:])
        self._size += done
        return done
