"""Logs, and the accounts as which shims write them and run commands.

What a command writes goes through its shim into a file whose size has a limit.

Beyond the limit, or where the disk has hardly any room left, the rest is dropped but for its end,
which follows when the command has ended. The log itself says so.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from foresail.live.adapters.local.cgroup_files import put

Request: TypeAlias = dict[str, Any]
"""What the adapter asks of a shim, as ``Attempt.spawn`` puts it."""

_SOFT_LIMITS = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 1024))
"""As a login has them; up to the hard ones a command may raise them itself."""


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
    """A file, and the pipe of which it keeps what fits.

    It may be there already. ``limit_bytes`` is its greatest size, but for a few words on what is
    left out; ``account`` whose it is (None: one's own); if it ``begins_anew``, what is in it is
    dropped.

    Raises ``OSError`` if it cannot be written, or is neither a plain file nor a device; those of
    ``/proc`` are the shim's own.
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
        """Why some of it is left out, if it is."""
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
