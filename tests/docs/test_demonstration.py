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


@pytest.fixture
def typed(monkeypatch, capsys):
    def type_it(words):
        monkeypatch.setattr("sys.argv", ["foresail", *shlex.split(words)])
        with pytest.raises(SystemExit, match="0"):
            cli.main()
        return capsys.readouterr().out

    return type_it


@pytest.fixture
def log(tmp_path, typed):
    """The log that the demonstration makes."""
    command = re.search(r"show foresail (trace generate lublin .*)", SCRIPT)[1]
    typed(command.replace("$folder", str(tmp_path)))
    return tmp_path / "log"


def test_the_table_of_the_readme_is_what_its_command_prints(log, typed):
    readme = (ROOT / "README.md").read_text("utf-8")
    command, shown = re.search(
        r"\$ foresail (compare demo-output/log .*)\n((?:.*\n)+?)```", readme
    ).groups()
    printed = typed(command.replace("demo-output/log", str(log)))
    policies = ("easy ", "easy-sjbf ", "foresail ")
    tables = [
        [line.split()[:-2] for line in text.splitlines() if line.startswith(policies)][:3]
        for text in (shown, printed)
    ]  # without how long the replay took
    assert len(tables[0]) == 3
    assert tables[0] == tables[1]


def test_the_recommended_policy_does_what_it_promises(log):
    """Less average slowdown than EASY on the demonstration's log, no wait a third longer."""
    workload = load_workload(log)
    easy, ours = (summary(simulate(workload, parse_policy(each))) for each in ("easy", "foresail"))
    assert ours.average_bounded_slowdown < easy.average_bounded_slowdown
    assert ours.max_wait_seconds <= 1.33 * easy.max_wait_seconds


def test_first_tasks_do_what_they_promise(tmp_path, typed):
    """Less average slowdown than without looking at the size of jobs, or by what they got."""
    command = re.search(r"foresail (trace generate slearn .*)", SCRIPT)[1]
    typed(command.replace("$folder", str(tmp_path)))
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
