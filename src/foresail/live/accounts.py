"""Accounts of the operating system, as which commands run, and the logs of their jobs."""

from __future__ import annotations

import os
import pwd
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foresail.model.errors import InputError

_SET_GROUPS_AND_USER: Final = 1 << 6 | 1 << 7
"""CAP_SETGID and CAP_SETUID, as ``capabilities(7)`` numbers them."""


@dataclass(frozen=True, slots=True)
class Account:
    """One account: its user and group, all its groups, its home folder and its shell."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str


def account_of(name: str) -> Account:
    """The account of a name; raises ``InputError`` if there is none."""
    try:
        return _account(pwd.getpwnam(name))
    except (KeyError, ValueError) as error:  # the latter of names with NUL
        raise _unknown(name) from error


def account_of_uid(uid: int) -> Account:
    """The account of a user id; raises ``InputError`` if there is none."""
    try:
        return _account(pwd.getpwuid(uid))
    except KeyError as error:
        raise _unknown(uid) from error


def own_account() -> Account:
    """The account that this process runs as; its id is its name where that is all there is."""
    uid = os.geteuid()
    try:
        return account_of_uid(uid)
    except InputError:
        return Account(str(uid), uid, os.getegid(), tuple(os.getgroups()), "/", "/bin/sh")


def go_on_as_root_where_permitted() -> None:
    """Execute this program anew as root, if it has the capabilities to become any account.

    Whoever has them is root by one call, and keeps no less by being it openly; jobs then run as the
    accounts that submit them. Does nothing for root, and for those who may not.
    """
    status = Path("/proc/self/status").read_text("ascii", errors="replace")
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    held = int(effective[1], 16) if effective else 0
    if os.geteuid() == 0 or held & _SET_GROUPS_AND_USER != _SET_GROUPS_AND_USER:
        return
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _account(entry: pwd.struct_passwd) -> Account:
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    shell = entry.pw_shell or "/bin/sh"
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir or "/", shell)


def _unknown(value: object) -> InputError:
    return InputError(
        "no such account", field="user", value=value, expected="an account of this machine"
    )


_CAREFULLY: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def _folder_of(logs: Path, account: Account | None) -> Path:
    """Return where the logs of an account are; of all where all run as the service's account."""
    return logs if account is None else logs / account.name


def made_folder(logs: Path, account: Account | None) -> Path:
    """Such a folder, made, which nobody else can look into."""
    folder = _folder_of(logs, account)
    if account is not None:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid != account.uid:
            os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    return folder


def log_is_cut(attempts: Path, job_id: str, attempt: int) -> bool:
    """Return whether some output of an attempt was left out, as its shim has marked."""
    return (attempts / f"{job_id}.{attempt}.cut").exists()


def read_log(logs: Path, account: Account | None, name: str, offset: int, limit: int) -> bytes:
    """Some of a log, from a byte on; nothing where there is none.

    Raises ``InputError`` if something else than a plain file of that account is in its place.
    """
    folder = _folder_of(logs, account)
    try:
        within = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _no_log(folder) from error
    try:
        file = os.open(name, _CAREFULLY, dir_fd=within)
    except FileNotFoundError:
        return b""
    except OSError as error:  # a link, or something without another end
        raise _no_log(folder / name) from error
    finally:
        os.close(within)
    try:
        about = os.fstat(file)
        owner = os.geteuid() if account is None else account.uid
        if not stat.S_ISREG(about.st_mode) or about.st_uid != owner or about.st_nlink != 1:
            raise _no_log(folder / name)
        return os.pread(file, limit, offset)
    finally:
        os.close(file)


def _no_log(path: Path) -> InputError:
    return InputError("is no log", source=path, expected="a plain file, and its user's own")
