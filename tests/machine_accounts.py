"""Two ordinary accounts of this machine, for tests that nobody can get at another's."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from foresail.live.accounts import account_of
from foresail.model.errors import InputError

_NAMES = ("foresail-ann", "foresail-bob")


@pytest.fixture
def ann_and_bob():
    """Their accounts, made where they are not there; tests that need them are skipped elsewhere."""
    if os.geteuid() != 0 or shutil.which("useradd") is None:
        pytest.skip("needs to be root, and useradd, to make accounts")
    return tuple(map(_made, _NAMES))


def _made(name):
    try:
        return account_of(name)
    except InputError:
        words = ["useradd", "--system", "--user-group", "--shell", "/bin/sh", "--home-dir", "/"]
        subprocess.run([*words, name], check=False)  # another test may make it just now
        return account_of(name)


@pytest.fixture
def common_folder():
    """A folder that every account can reach, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="foresail-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)
