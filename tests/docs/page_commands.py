"""Runs the commands of a page as its readers would: root, Ann and Bob, on a machine made for it.

Run by root in namespaces of its own (``unshare --net --mount``), where ``/run``, ``/home`` and
``/var/lib`` are empty and two accounts are in ``/etc``. ``systemctl`` stands in for systemd: it
begins and ends what the unit on the page says. Writes a line of JSON for each command: who typed
what, its exit status and what it said.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ACCOUNTS = {"ann": 61001, "bob": 61002}
MOST_SECONDS = 60.0
_BLOCK = re.compile(
    r"(?P<left_out><!-- not run: .*? -->\n)?```console(?: (?P<user>\w+))?\n(?P<text>.*?)```", re.S
)


@dataclass(frozen=True)
class Command:
    """A command of a page, and who types it."""

    user: str
    text: str


def commands_of(page: str) -> list[Command]:
    """All that are not said to be left out; lines without a prompt go on with the one before."""
    found: list[Command] = []
    for block in _BLOCK.finditer(page):
        if block["left_out"]:
            continue
        for line in block["text"].splitlines():
            if line[:2] in ("$ ", "# "):
                user = "root" if line[0] == "#" else block["user"] or "ann"
                found.append(Command(user, line[2:]))
            else:
                found[-1] = Command(found[-1].user, f"{found[-1].text}\n{line}")
    return found


class Shell:
    """A login of somebody, who types one command after the other."""

    def __init__(self, user: str, path: str) -> None:
        home = Path("/root" if user == "root" else f"/home/{user}")
        variables = {"PATH": path, "HOME": str(home), "USER": user, "LC_ALL": "C.UTF-8"}
        become = [] if user == "root" else ["runuser", "-u", user, "--"]
        self._process = subprocess.Popen(
            [*become, "bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=home,
            env=variables,
            bufsize=0,
        )
        self._said = ""

    def type(self, text: str) -> tuple[int, str]:
        """Exit status of a command and what was said; one with & has said that it listens."""
        self._said = ""
        self._write(f'{text}\necho "===$?"\n')
        status = int(self._until(r"===(\d+)\n")[1])
        if text.rstrip().endswith("&"):
            self._until(r"listening on")
        return status, re.sub(r"===\d+\n", "", self._said)

    def end(self) -> None:
        """Log out; what runs in the background ends."""
        self._write("kill $(jobs -p) 2>/dev/null; wait; exit\n")
        self._process.wait(30)

    def _write(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())

    def _until(self, pattern: str) -> re.Match[str]:
        until = time.monotonic() + MOST_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while (found := re.search(pattern, self._said)) is None:
                if not selector.select(until - time.monotonic()):
                    raise SystemExit(f"waited in vain for {pattern}: {self._said[-2000:]}")
                self._said += os.read(self._process.stdout.fileno(), 65536).decode()
        return found


def mount(*words: object) -> None:
    """Mount something in this namespace."""
    subprocess.run(["mount", *map(str, words)], check=True)


def have_loopback() -> None:
    """Set up the only network of this namespace."""
    set_flags, up_and_running, name = 0x8914, 0x41, b"lo"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh22x", name, up_and_running))


def make_the_machine() -> None:
    """Empty folders, two accounts, and programs that everybody may run."""
    have_loopback()
    prefixes = {sys.base_prefix, sys.prefix, str(Path(__file__).resolve().parents[2])}
    make_reachable([Path(each) for each in prefixes])
    for folder in ("/run", "/home", "/var/lib"):
        mount("-t", "tmpfs", "-o", "mode=755", "none", folder)
    over = Path(tempfile.mkdtemp(dir="/run"))
    for layer in ("upper", "work"):
        (over / layer).mkdir()
    layers = f"lowerdir=/etc,upperdir={over}/upper,workdir={over}/work"
    mount("-t", "overlay", "-o", layers, "overlay", "/etc")
    share_what_is_compiled(over)
    for file, line in (("passwd", "{0}:x:{1}:{1}::/home/{0}:/bin/sh"), ("group", "{0}:x:{1}:")):
        with Path(f"/etc/{file}").open("a") as known:
            known.writelines(line.format(*each) + "\n" for each in ACCOUNTS.items())
    for name, uid in ACCOUNTS.items():
        for folder in (Path("/home") / name, Path("/run/user") / str(uid)):
            folder.mkdir(parents=True, mode=0o755)
            os.chown(folder, uid, uid)


def share_what_is_compiled(over: Path) -> None:
    """Let everybody have the kernels that this checkout has compiled, and add to them."""
    source = Path(__file__).resolve().parents[2] / "src"
    for layer in ("source", "work-of-source"):
        (over / layer).mkdir()
    layers = f"lowerdir={source},upperdir={over}/source,workdir={over}/work-of-source"
    mount("-t", "overlay", "-o", layers, "overlay", source)
    for folder in source.rglob("__pycache__"):
        folder.chmod(0o777)
        for file in folder.iterdir():
            if not file.stat().st_mode & 0o004:
                file.chmod(0o644)


def make_systemctl(page: str, folder: Path) -> None:
    """Stand in for systemd, of which there is one unit."""
    folder.mkdir()
    begin = re.search(r"^ExecStart=/usr/local/bin/(.*)$", page, re.M)
    program = folder / "systemctl"
    program.write_text(
        f"""#!/bin/sh
case "$1 $2" in
*start*|"enable --now") : >/run/journal  # not to find what the service before has said
    {begin[1] if begin else "false"} >>/run/journal 2>&1 & echo $! >/run/service
    until grep -q listening /run/journal; do kill -0 $! || exit 1; sleep 0.1; done ;;
stop*|"disable --now") service=$(cat /run/service)
    kill $service; while kill -0 $service; do sleep 0.1; done ;;
esac 2>/run/complaints
"""
    )
    program.chmod(0o755)


def make_reachable(paths: Iterable[Path]) -> None:
    """Let everybody come to folders, whatever the modes of those above them."""
    hidden = {}
    for path in paths:
        closed = [each for each in reversed(path.parents) if not each.stat().st_mode & 0o001]
        if closed:
            hidden[path] = (closed[0], tempfile.mkdtemp())
            mount("--bind", path, hidden[path][1])
    for closed_folder in {folder for folder, _ in hidden.values()}:
        mount("-t", "tmpfs", "-o", "mode=755", "none", closed_folder)
    for path, (_, aside) in sorted(hidden.items()):
        path.mkdir(parents=True, exist_ok=True)
        mount("--bind", aside, path)


def main() -> None:
    """Run the commands of the page that is named."""
    page = Path(sys.argv[1]).read_text("utf-8")
    commands = commands_of(page)
    make_the_machine()
    make_systemctl(page, Path("/run/bin"))
    path = f"/run/bin:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    shells: dict[str, Shell] = {}
    try:
        for command in commands:
            shell = shells.setdefault(command.user, None) or Shell(command.user, path)
            shells[command.user] = shell
            status, said = shell.type(command.text)
            sys.stdout.write(json.dumps([command.user, command.text, status, said]) + "\n")
    finally:
        for shell in shells.values():
            shell.end()


if __name__ == "__main__":
    main()
