"""``foresail trace inspect``, ``validate`` and ``convert`` as a user meets them."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from foresail.cli.trace import app
from foresail.model.errors import InputError
from foresail.traces.folder import read_folder

LOG = """; MaxProcs: 16
; UnixStartTime: 843480031
1 0 5 7200 4 -1 -1 4 90000 -1 1 3 1 -1 2 -1 -1 -1
2 86400 -1 40 2 -1 -1 2 -1 -1 1 4 1 -1 2 -1 -1 -1
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_inspect_in_words(log):
    """Facts come in words, plain when piped."""
    output = run("inspect", log).stdout
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert "jobs 2" in lines
    assert "span 24 h" in lines
    assert "begins 1996-09-23 12:00 UTC" in lines
    assert "processors 16" in lines
    assert "requested time 25 h 25 h 25 h 25 h 25 h 25 h" in lines
    assert "sometimes unknown: recorded_wait_seconds (50 %), requested_seconds (50 %)" in lines
    assert "\x1b" not in output


def test_inspect_as_json(log):
    """The same facts as JSON, with units in the names."""
    facts = json.loads(run("inspect", log, "--format", "json", "--processors", 32).stdout)
    assert facts["jobs"] == 2
    assert facts["processors"] == 32
    assert facts["span_seconds"] == 86400.0
    assert facts["quantiles"]["runtime_seconds"]["max"] == 7200.0
    assert "extra" in facts["missing"]


def test_validate(log):
    """Findings are listed with count, example and remedy; only --strict fails."""
    result = run("validate", log)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "log.swf: 2 jobs, 1 finding"
    assert lines[2] == "unknown_requested_time: 1 (first: job 2)"
    assert lines[4] == "  remedy: filter drop_no_request"
    assert run("validate", log, "--strict").exit_code == 2
    report = json.loads(run("validate", log, "--format", "json").stdout)
    assert [finding["name"] for finding in report["findings"]] == ["unknown_requested_time"]
    log.write_text("\n".join(LOG.splitlines()[:3]))
    clean = run("validate", log, "--strict")
    assert (clean.exit_code, clean.stdout) == (0, "log.swf: 1 job, 0 findings\n")


def test_convert(log, tmp_path):
    """A folder appears, repairs are said once, and --strict refuses and writes nothing."""
    log.write_text(LOG + LOG.splitlines()[2] + "\n")
    result = run("convert", log, tmp_path / "out", "--processors", 8)
    assert result.exit_code == 0
    assert "repaired: renamed duplicate id, 1 row" in result.stdout
    assert "repaired: sorted by submit, 1 row" in result.stdout
    assert read_folder(tmp_path / "out").processors == 8
    assert result.stderr == ""
    refused = run("convert", log, tmp_path / "strict", "--strict")
    assert isinstance(refused.exception, InputError)
    assert not (tmp_path / "strict").exists()


def test_convert_with_a_mapping(tmp_path):
    """A column mapping makes any table readable."""
    (tmp_path / "log.csv").write_text("when,hours\n0,2\n5,1\n")
    (tmp_path / "m.toml").write_text(
        "[columns]\nsubmit_seconds = 'when'\nruntime_seconds = { column = 'hours', unit = 'hours'}"
    )
    result = run(
        "convert", tmp_path / "log.csv", tmp_path / "out", "--mapping", tmp_path / "m.toml"
    )
    assert result.exit_code == 0
    assert read_folder(tmp_path / "out").jobs["runtime_seconds"].to_list() == [7200.0, 3600.0]


def test_errors_are_one_line_and_status_two(tmp_path, monkeypatch, capsys):
    """Through the entry point a bad log is one sentence on standard error and exit status 2."""
    from foresail.cli.main import main

    bad = tmp_path / "bad.swf"
    bad.write_text("1 2 3\n")
    monkeypatch.setattr(sys, "argv", ["foresail", "trace", "inspect", str(bad), "--reader", "swf"])
    with pytest.raises(SystemExit) as exit_status:
        main()
    assert exit_status.value.code == 2
    error = capsys.readouterr().err
    assert error == (
        f"foresail: {bad}, line 1: too few fields (found 3); expected at least 18 fields\n"
    )
