"""The commands on the pages about the service do what the pages say."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.floors import ROOT
from docs.page_commands import commands_of

TASKS = ROOT / "docs" / "tasks"
DRIVER = Path(__file__).with_name("page_commands.py")
NAMESPACE = ["unshare", "--net", "--mount", "--propagation", "private"]


@pytest.fixture(scope="module")
def permitted():
    """Only root may make a machine of its own; others skip this."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs to be root, and unshare")
    if subprocess.run([*NAMESPACE, "true"], check=False).returncode:
        pytest.skip("no namespaces are permitted here")


@pytest.mark.parametrize("name", ["serve-a-cluster", "share-a-machine", "operate-a-service"])
def test_the_commands_of_a_page_run(name, permitted):
    """In their order, as their readers, each with status 0, on a machine that has nothing yet."""
    page = TASKS / f"{name}.md"
    done = subprocess.run(
        [*NAMESPACE, sys.executable, str(DRIVER), str(page)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [(user, text, said[-1500:]) for user, text, status, said in lines if status]
    assert (wrong, done.returncode, done.stderr) == ([], 0, "")
    assert len(lines) == len(commands_of(page.read_text("utf-8")))


def test_the_unit_is_one(tmp_path):
    """What systemd would say of the unit, where it is."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze on this machine")
    page = (TASKS / "operate-a-service.md").read_text("utf-8")
    unit = tmp_path / "foresail.service"
    text = re.search(r"```ini\n(.*?)```", page, re.S)[1]
    unit.write_text(text.replace("/usr/local/bin/foresail", sys.executable))
    said = subprocess.run(
        [analyze, "verify", str(unit)], capture_output=True, text=True, check=False
    )
    complaints = [line for line in said.stderr.splitlines() if unit.name in line]
    assert [line for line in complaints if "DelegateSubgroup" not in line] == []  # of 254 or newer
