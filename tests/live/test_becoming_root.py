"""A service with the capabilities to become any account: root in all but name, so openly root."""

import shutil
import subprocess
import sys

import pytest

from machine_accounts import ann_and_bob  # noqa: F401 - a fixture

_SAY_WHO = """
import os
from foresail.live.accounts import go_on_as_root_where_permitted
print(*os.getresuid(), *os.getresgid(), os.getgroups(), flush=True)
go_on_as_root_where_permitted()
print("goes on")
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
@pytest.mark.parametrize(
    ("capabilities", "becomes_root"),
    [("+setuid,+setgid", True), ("+setuid", False), ("+setgid,+kill", False)],
)
def test_both_capabilities_make_root(ann_and_bob, capabilities, becomes_root):  # noqa: F811
    """One without the other does not, and changes nothing."""
    ann = ann_and_bob[0]
    held = f"{capabilities},+dac_override"  # to read Python and the source, wherever they are
    arguments = [f"--reuid={ann.uid}", f"--regid={ann.gid}", "--clear-groups"]
    arguments += [f"--inh-caps={held}", f"--ambient-caps={held}"]
    said = subprocess.run(
        ["setpriv", *arguments, sys.executable, "-c", _SAY_WHO],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    as_ann, as_root = f"{ann.uid} " * 3 + f"{ann.gid} " * 3 + "[]", "0 0 0 0 0 0 []"
    assert said == [as_ann, *([as_root] if becomes_root else []), "goes on"]
