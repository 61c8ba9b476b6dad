"""What a run's predictor knows is kept in a file: once, whole, and of one run at a time."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from foresail.cli.main import main
from foresail.model.short_form import part_of
from foresail.predictors.saving import load_state, read_header

JOBS = "command\n" + "true\n" * 3
POLICY = "fcfs,history"


@pytest.fixture
def foresail(monkeypatch, capsys, tmp_path):
    """Run the command line in this process; returns exit status, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "jobs.csv").write_text(JOBS)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["foresail", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return left.value.code or 0, captured.out, captured.err

    return call


def begin(foresail, directory, *more):
    """One run of three jobs."""
    run = ("run", "jobs.csv", "--policy", POLICY, "--directory", directory, "--cpus", "1")
    status, out, err = foresail(*run, "--learned", "known", *more)
    assert status == 0, out + err
    return out


def learned(path):
    """How many jobs a file knows."""
    predictor = part_of("predictor", read_header(path).predictor).build()
    load_state(path, predictor, read_header(path).predictor)
    return predictor.memory().learned


def test_runs_go_on_from_one_another(foresail, tmp_path):
    """Each adds its jobs once; history is kept, too, but not learned on top of the file."""
    for number in range(1, 4):
        begin(foresail, f"run{number}")
        assert learned(tmp_path / "known") == 3 * number
    assert len((tmp_path / "state/foresail/history.jsonl").read_text().splitlines()) == 9


def test_the_first_run_begins_with_the_history(foresail, tmp_path):
    """Where there is no file yet; afterwards the file holds it."""
    run = ("run", "jobs.csv", "--policy", POLICY, "--directory", "before", "--cpus", "1")
    assert foresail(*run)[0] == 0
    begin(foresail, "run1")
    assert learned(tmp_path / "known") == 6
    begin(foresail, "run2")
    assert learned(tmp_path / "known") == 9


def test_resuming_learns_nothing_twice(foresail, tmp_path):
    """A finished run taken up again leaves the file with as many jobs."""
    begin(foresail, "run1", "--no-history")
    begin(foresail, "run2", "--no-history")
    assert foresail("run", "--resume", "run2")[0] == 0
    assert learned(tmp_path / "known") == 6


def test_another_runs_knowledge_is_not_overwritten(foresail, tmp_path):
    """Run 1 is taken up again after run 2 has written: its own knowledge goes aside."""
    begin(foresail, "run1", "--no-history")
    begin(foresail, "run2", "--no-history")
    before = (tmp_path / "known").read_bytes()
    status, out, err = foresail("run", "--resume", "run1")
    assert status == 0
    assert "written by another run" in out + err
    assert (tmp_path / "known").read_bytes() == before
    assert learned(tmp_path / "run1" / "learned") == 3


@pytest.mark.parametrize(
    ("content", "policy", "words"),
    [
        (b"nonsense", POLICY, "not a learned state"),
        (None, "fcfs,similar", "another predictor"),
        (None, "fcfs,history(bins=9)", "other parameters"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(foresail, tmp_path, content, policy, words):
    """Before anything starts; the file is left as it is."""
    begin(foresail, "run1", "--no-history")
    if content is not None:
        (tmp_path / "known").write_bytes(content)
    before = (tmp_path / "known").read_bytes()
    status, _, err = foresail(
        "run", "jobs.csv", "--policy", policy, "--directory", "run2", "--learned", "known"
    )
    assert status == 2
    assert words in err
    assert not (tmp_path / "run2").exists()
    assert (tmp_path / "known").read_bytes() == before


def test_a_resumed_run_keeps_its_file(foresail):
    """It cannot be given another."""
    status, _, err = foresail("run", "--resume", "run1", "--learned", "known")
    assert status == 2
    assert "keeps its jobs and its settings" in err


def test_killed_in_the_midst_the_file_is_old_or_new(foresail, tmp_path):
    """The supervisor is killed while it writes the file all the time; then resumed to the end."""
    begin(foresail, "run1", "--no-history")
    script = (
        "import sys\n"
        "from foresail.live import run_directory\n"
        "run_directory.KEPT_EVERY_SECONDS = 0.0\n"
        "from foresail.cli.main import main\n"
        "main()\n"
    )
    (tmp_path / "many.csv").write_text("command\n" + "true\n" * 60)
    arguments = ("--policy", POLICY, "--cpus", "1", "--learned", "known", "--no-history")
    run = [sys.executable, "-c", script, "run", "many.csv", "--directory", "run2", *arguments]
    supervisor = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60.0
    while learned(tmp_path / "known") < 10 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(supervisor.pid, signal.SIGKILL)
    supervisor.wait()
    assert 10 <= learned(tmp_path / "known") <= 63
    status, out, err = foresail("run", "--resume", "run2")
    assert status == 0, out + err
    assert learned(tmp_path / "known") == 63


def test_settings_of_older_runs_are_read(foresail, tmp_path):
    """A run directory without the new fields is resumed."""
    begin(foresail, "run1", "--no-history")
    path = tmp_path / "run1" / "run.json"
    settings = json.loads(path.read_text())
    del settings["learned"], settings["learned_as"]
    path.write_text(json.dumps(settings))
    (tmp_path / "run1" / "learned-before").unlink(missing_ok=True)
    assert foresail("run", "--resume", "run1")[0] == 0
