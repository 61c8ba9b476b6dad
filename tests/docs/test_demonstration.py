"""The demonstration's sentences are true of its log, and every step has one."""

import re
import shlex

import pytest

from architecture.floors import ROOT
from foresail.cli import main as cli
from foresail.control.policy import parse_policy
from foresail.metrics.summary import summary
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces.folder import load_workload
from made_scenarios import simulate

SCRIPT = (ROOT / "scripts" / "demo").read_text("utf-8").replace("\\\n", " ")


def test_the_recommended_policy_does_what_it_promises(tmp_path, monkeypatch):
    """Less average slowdown than EASY on the demonstration's log, no wait a third longer."""
    command = re.search(r"show foresail (trace generate lublin .*)", SCRIPT)[1]
    words = shlex.split(command.replace("$folder", str(tmp_path)))
    monkeypatch.setattr("sys.argv", ["foresail", *words])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    workload = load_workload(tmp_path / "log")
    easy, ours = (summary(simulate(workload, parse_policy(each))) for each in ("easy", "foresail"))
    assert ours.average_bounded_slowdown < easy.average_bounded_slowdown
    assert ours.max_wait_seconds <= 1.33 * easy.max_wait_seconds


def test_first_tasks_do_what_they_promise(tmp_path, monkeypatch):
    """Less average slowdown than without looking at the size of jobs, or by what they got."""
    command = re.search(r"foresail (trace generate slearn .*)", SCRIPT)[1]
    words = shlex.split(command.replace("$folder", str(tmp_path)))
    monkeypatch.setattr("sys.argv", ["foresail", *words])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    workload = load_workload(tmp_path / "many")
    policies = re.search(r"compare .*/many.*", SCRIPT)[0].split("--with ")[1:]
    slowdown = {
        name: summary(run_scenario(Scenario(workload, parse_policy(name)))).average_bounded_slowdown
        for name in (policy.split()[0] for policy in policies)
    }
    assert len(slowdown) == 3
    assert min(slowdown, key=lambda name: slowdown[name]) == "slearn"


def test_every_step_says_what_it_shows():
    """One sentence before the commands of each step."""
    sentences = re.findall(r'^ +step "(.*)"', SCRIPT, flags=re.MULTILINE)
    assert len(sentences) >= 7
    assert all(sentence.endswith(".") for sentence in sentences)
    commands = re.findall(
        r"^ +(?:show|show_first \d+) foresail (?:trace generate )?(\w+)", SCRIPT, re.M
    )
    assert {"compare", "predict", "analyse", "cloud", "simulate", "explain", "run"} <= {*commands}
