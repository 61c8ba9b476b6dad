"""Databases for tests: SQLite in a file, and a PostgreSQL server of our own, where there is one."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def program(name: str) -> str | None:
    return shutil.which(name) or next((path for path in found(name) if Path(path).exists()), None)


def found(name: str) -> list[str]:
    return [f"{folder}/{name}" for folder in SERVERS]


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """The address of a database on a server that listens on a socket in this folder alone.

    It refuses to be run by root, and so is run by somebody else then.
    """
    data = folder / "data"
    as_user = []
    if os.getuid() == 0:
        users = {each.pw_name for each in pwd.getpwall()}
        user = "postgres" if "postgres" in users else "nobody"
        shutil.chown(folder, user)
        for parent in folder.parents:
            if parent.stat().st_uid == 0 and parent != Path("/"):
                parent.chmod(parent.stat().st_mode | 0o011)
        as_user = ["setpriv", "--reuid", user, "--regid", str(pwd.getpwnam(user).pw_gid)]
        as_user.append("--clear-groups")

    def run(*command: object) -> None:
        words = [*as_user, *map(str, command)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd=folder)

    run(program("initdb"), "-D", data, "-U", "foresail", "-A", "trust", "--no-sync")
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    run(program("pg_ctl"), "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
    try:
        yield f"postgresql://foresail@/postgres?host={folder}"
    finally:
        run(program("pg_ctl"), "-D", data, "-m", "immediate", "stop")
