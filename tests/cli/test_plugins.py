"""``--plugin`` is taken wherever a name is looked for: readers, filters, generators, policies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from foresail.cli.campaign import app as campaign
from foresail.cli.cloud import app as cloud
from foresail.cli.cloud import group_of
from foresail.cli.main import app_of
from foresail.cli.predict import app as predict
from foresail.cli.trace import app as trace
from foresail.model.errors import InputError

compare = app_of("compare")
policies = app_of("policies")
run = app_of("run")
simulate = app_of("simulate")

OWN = '''
import polars as pl
from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import keep, plain
from foresail.traces.reading import PlainReader
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

COLUMNS = {"job_id": ["a", "b", "c"], "submit_seconds": [0.0, 5.0, 9.0], "tasks": [1, 1, 1]}
JOBS = {**COLUMNS, "runtime_seconds": [10.0, 100.0, 20.0], "cpus_per_task": [1.0, 1.0, 1.0]}

@register("reader", "three")
class Three(PlainReader):
    """Always three jobs."""

    def recognises(self, sample):
        return sample.text.startswith("three")

    def chunks(self, notes):
        yield pl.DataFrame(JOBS)

@register("generator", "three")
class ThreeMade:
    """Always three jobs."""

    def __init__(self, parameters: NoParameters):
        pass

    def generate(self, random):
        return Workload(jobs_table(JOBS), WorkloadMeta("three", "three", 2))

@register("filter", "brief")
@plain
def brief(workload):
    """Keep those below a minute."""
    return keep(workload, pl.col("runtime_seconds") < 60)
'''
SCHEDULER = Path(__file__).resolve().parents[2] / "examples" / "shortest_likely.py"


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.three"
    path.write_text("three\n")
    return path


def said(app, *arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_logs_of_a_layout_of_ones_own(own, log, tmp_path):
    """Whatever reads logs reads them."""
    plugin = ("--plugin", own)
    assert "(reader three)" in said(trace, "inspect", log, *plugin)
    assert "3 jobs" in said(trace, "validate", log, *plugin)
    assert "(reader three)" in said(trace, "convert", log, tmp_path / "folder", *plugin)
    brief = ("--with", "brief", *plugin)
    assert "2 jobs left of 3" in said(trace, "filter", log, tmp_path / "brief", *brief)
    assert said(trace, "sample", log, tmp_path / "sample", "--fraction", 1, *plugin)
    machine = ("--processors", 2, "--filter", "brief", *plugin)
    assert "2 jobs on 2 processors" in said(simulate, log, "--policy", "easy", *machine)
    assert "2 jobs on 2 processors" in said(compare, log, "--with", "easy", *machine)
    assert said(cloud, "buy", log, *plugin)
    state = tmp_path / "state"
    told = said(predict, "train", log, "--predictor", "recent", "--output", state, *machine)
    assert "after 2 jobs" in told


def test_lists_and_generators(own, tmp_path):
    """What is in the file is told, and made."""
    assert "Keep those below a minute" in said(trace, "filter", "--plugin", own)
    assert "Always three jobs" in said(trace, "generate", "--plugin", own)
    made = said(trace, "generate", "three", "--output", tmp_path / "made", "--plugin", own)
    assert "3 jobs" in made
    assert "shortest_likely" in said(policies, "--plugin", SCHEDULER)


def test_commands_under_a_policy_of_ones_own(tmp_path, monkeypatch):
    """As simulated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    Path("jobs.csv").write_text("command\ntrue\n")
    here = ("--directory", "here", "--cpus", 1)
    assert said(run, "jobs.csv", *here, "--policy", "shortest_likely", "--plugin", SCHEDULER)


def test_campaigns_with_a_policy_of_ones_own(tmp_path):
    """In processes of their own, too; when the file changes, its policies alone are run again."""
    logs, results, scheduler = [tmp_path / "a", tmp_path / "b"], tmp_path / "r", tmp_path / "m.py"
    for log, jobs in zip(logs, (20, 30), strict=True):
        assert said(trace, "generate", "lublin", "--jobs", jobs, "--output", log)
    text = SCHEDULER.read_text().replace('"shortest_likely"', '"mine"')
    policies = ["--with", "mine", "--with", "easy"]
    asked = ["campaign", "run", *logs, *policies, "--output", results, "--plugin", scheduler]
    command = [Path(sys.executable).with_name("foresail"), *map(str, asked)]

    def replayed():
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    scheduler.write_text(text)
    assert "4 of 4 runs replayed" in replayed()
    assert "0 of 4 runs replayed" in replayed()
    scheduler.write_text(text + "# otherwise\n")
    assert "2 of 4 runs replayed, 2 were there" in replayed()
    assert "mine" in said(campaign, "choose", results, "--plugin", scheduler)
    assert "EASY" in said(campaign, "report", results, "--plugin", scheduler)


def test_workers_elsewhere_have_no_plug_ins(log, own, tmp_path):
    """Which is said before anything is read."""
    elsewhere = ("--dask", "tcp://localhost:1", "--plugin", own)
    with pytest.raises(InputError, match="'--plugin'"):
        said(campaign, "run", log, "--with", "easy", "--output", tmp_path / "results", *elsewhere)


def test_a_file_that_is_not_there_is_named(log):
    """Before anything is read."""
    with pytest.raises(InputError, match=r"missing\.py: not a Python file"):
        said(trace, "inspect", log, "--plugin", "missing.py")


def test_commands_of_studies_that_are_missing():
    """Without the studies their commands below ``cloud`` say what brings them."""
    alone = group_of(["foresail.cli.cloud"])
    error = CliRunner().invoke(alone, ["waiting", "log.swf", "--owned", "4"]).exception
    assert isinstance(error, InputError)
    assert "foresail-studies to be installed" in str(error)
    assert "waiting" not in CliRunner().invoke(alone, ["--help"]).output
