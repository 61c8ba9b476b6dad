"""Being somebody else: a shim's command for good, the shim itself while it touches files.

A shim that may be anyone stays root, so that it can limit and record what it watches; no process of
its user may trace or signal it, whose real and saved ids never change.
"""

from __future__ import annotations

import os
import resource
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
    """Be an account, whose groups this process has, and never anybody else again.

    Raises
    ------
    OSError
        If that cannot be.
    """
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
