"""``foresail trace generate`` prints what the generator reached, and keeps it with the jobs."""

import pytest
from typer.testing import CliRunner

from foresail.cli.trace import app
from foresail.model.errors import InputError
from foresail.traces.folder import read_folder


def call(*arguments):
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_load_and_mix_are_printed_and_kept(tmp_path):
    """The figures of the header, one a line; generators without figures print none."""
    said = call("generate", "gs_het", "--set", "hours=0.2", "-o", tmp_path / "w", "--seed", 3)
    assert "  load: 1\n" in said
    assert "  slo job share: 0.7" in said
    header = read_folder(tmp_path / "w").meta.header
    assert header["achieved_load"] == "1"
    assert header["slo_kinds"] == "('gpu', 'mpi')"
    plain = call("generate", "lublin", "--jobs", 20, "-o", tmp_path / "plain")
    assert len(plain.splitlines()) == 1


def test_settings_are_lists_and_numbers(tmp_path):
    """As people write them."""
    settings = ("--set", "slack_percents=[10,30]", "--set", "hours=0.5", "--jobs", 50)
    call("generate", "e2e", *settings, "-o", tmp_path / "w")
    workload = read_folder(tmp_path / "w")
    assert len(workload) == 50
    assert workload.meta.header["slack_percents"] == "(10.0, 30.0)"


def test_a_tasks_table_is_written(tmp_path):
    """Stages survive the folder."""
    call("generate", "slearn_dag", "--set", "dags=20", "-o", tmp_path / "w")
    jobs = list(read_folder(tmp_path / "w").specifications())
    assert len(jobs) == 20
    for job in jobs:
        assert [stage.after for stage in job.stages[1:]] == [(s.name,) for s in job.stages[:-1]]


def test_wrong_settings_end_with_their_name(tmp_path):
    """Nothing is written."""
    with pytest.raises(InputError, match="racks"):
        call("generate", "e2e", "--set", "racks=0", "-o", tmp_path / "w")
    assert not (tmp_path / "w").exists()
