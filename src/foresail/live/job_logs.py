"""Where logs are, and reading them: what a job's user has put in their place is not followed."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from foresail.live.accounts import Account
from foresail.model.errors import InputError

_CAREFULLY: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def folder_of(logs: Path, account: Account | None) -> Path:
    """Where the logs of an account are; those of all where all run as the service's."""
    return logs if account is None else logs / account.name


def made_folder(logs: Path, account: Account | None) -> Path:
    """Such a folder, made, which nobody else can look into."""
    folder = folder_of(logs, account)
    if account is not None:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid != account.uid:
            os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    return folder


def log_is_cut(attempts: Path, job_id: str, attempt: int) -> bool:
    """Whether some of what an attempt wrote was left out, as its shim has marked."""
    return (attempts / f"{job_id}.{attempt}.cut").exists()


def read_log(logs: Path, account: Account | None, name: str, offset: int, limit: int) -> bytes:
    """Some of a log, from a byte on; nothing where there is none.

    Raises ``InputError`` if something else than a plain file of that account is in its place.
    """
    folder = folder_of(logs, account)
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
