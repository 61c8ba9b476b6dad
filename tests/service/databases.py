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


class PostgreSQLServer:
    """A server that listens on a socket in this folder alone.

    It refuses to be run by root, and so is run by somebody else then.
    """

    def __init__(self, folder: Path) -> None:
        self.address = f"postgresql://foresail@/postgres?host={folder}"
        self._folder = folder
        self._data = folder / "data"
        self._as_user: list[str] = []
        if os.getuid() == 0:
            users = {each.pw_name for each in pwd.getpwall()}
            user = "postgres" if "postgres" in users else "nobody"
            shutil.chown(folder, user)
            for parent in folder.parents:
                if parent.stat().st_uid == 0 and parent != Path("/"):
                    parent.chmod(parent.stat().st_mode | 0o011)
            self._as_user = ["setpriv", "--reuid", user, "--regid", str(pwd.getpwnam(user).pw_gid)]
            self._as_user.append("--clear-groups")
        self._run("initdb", "-U", "foresail", "-A", "trust", "--no-sync")

    def start(self) -> None:
        options = f"-c listen_addresses= -c unix_socket_directories={self._folder} -c fsync=off"
        self._run("pg_ctl", "-o", options, "-l", self._folder / "log", "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "immediate", "stop")

    def _run(self, name: str, *words: object) -> None:
        command = [*self._as_user, program(name), "-D", str(self._data), *map(str, words)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self._folder)


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """The address of a database on a server of our own."""
    server = PostgreSQLServer(folder)
    server.start()
    try:
        yield server.address
    finally:
        server.stop()
