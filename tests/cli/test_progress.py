"""What long commands say on standard error: when, where, and when nothing."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from foresail.cli import progress
from foresail.cli.cloud import app as cloud
from foresail.cli.progress import Compilations

CLEARED = "\x1b[2K"
JOB = "{id} {submit} -1 100 1 -1 -1 1 200 -1 1 1 1 -1 -1 -1 -1 -1\n"
IMPATIENT = (
    "from foresail.cli import progress\n"
    "from foresail.cli.main import main\n"
    "progress.PATIENCE_SECONDS = 0.0\n"
    "main()\n"
)
SIMULATE = ("simulate", "--policy", "easy", "--conventions", "standard")


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.swf"
    jobs = (JOB.format(id=number, submit=10 * number) for number in range(1, 50))
    path.write_text("; MaxProcs: 4\n" + "".join(jobs))
    return path


class Stream(io.StringIO):
    """Standard error: a terminal or not."""

    def __init__(self, moving):
        super().__init__()
        self.isatty = lambda: moving


@pytest.mark.parametrize("moving", [True, False])
def test_nothing_is_said_of_what_is_quick(monkeypatch, moving):
    """Two seconds pass in silence, on a terminal and elsewhere."""
    stream = Stream(moving)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 2.0)
    with progress.progress_shown([]), progress.doing("reading"):
        time.sleep(0.3)
    assert stream.getvalue() == ""


def test_plain_lines_come_now_and_then(monkeypatch):
    """The first when patience ends, the others ever more rarely; none after the end."""
    stream = Stream(moving=False)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(progress, "_REDRAWN_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_PLAIN_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_PLAIN_SHARE", 1.0)
    with progress.progress_shown([]):
        with progress.doing("reading"):
            while stream.getvalue().count("\n") < 3:
                time.sleep(0.01)
        said = stream.getvalue()
        time.sleep(0.2)
    assert all(line.startswith("reading (") for line in said.splitlines())
    assert said.count("\n") < 8
    assert stream.getvalue() == said


def test_what_is_within_what_and_how_long_it_takes():
    """Time left goes by the innermost that is known, from when it was first looked at."""
    with (
        progress.doing("policy 2 of 6: easy") as outer,
        progress.doing("replaying", said=progress.in_days) as inner,
    ):
        inner.watch(lambda: (139.5 * 86_400.0, 339.5 * 86_400.0))
        assert progress.sentence(10.0, 10.0) == (
            "policy 2 of 6: easy, replaying: day 140 of 340 (10 s)"
        )
        inner.watch(lambda: (239.5 * 86_400.0, 339.5 * 86_400.0))
        assert progress.sentence(30.0, 30.0) == (
            "policy 2 of 6: easy, replaying: day 240 of 340 (30 s, about 20 s left)"
        )
        outer.begin("policy 3 of 6: easy", 0.0, None)
        assert progress.sentence(30.0, 30.0).startswith("policy 3 of 6")
    assert progress.sentence(0.0, 0.0) == "working (0 s)"


def test_a_narrow_terminal_keeps_the_times():
    """What is done gives way."""
    with progress.doing("reading a log with a long name"):
        assert progress.sentence(0.0, 12.0, 20) == "reading a ... (12 s)"


def test_bytes_of_a_file_are_counted(tmp_path):
    """A file's size is known, a folder's is not."""
    path = tmp_path / "log.swf"
    path.write_bytes(bytes(4_000_000))
    with progress.reading(path) as advance:
        advance(1_000_000)
        assert progress.sentence(0.0, 3.0) == "reading log.swf: 1 of 4 MB (3 s)"
    with progress.reading(tmp_path) as advance:
        assert progress.sentence(0.0, 3.0) == f"reading {tmp_path.name} (3 s)"


def test_only_what_is_compiled_for_itself_counts():
    """What a kernel is made of is compiled with it; the module is named in words."""
    compilations = Compilations()
    compilations.begun("foresail.predictors.kernels.history_table")
    compilations.begun("foresail.kernels.waiting_jobs")
    compilations.ended()
    said = progress.sentence(0.0, 3.0)
    assert said == "compiling history table, part 1, once for all later runs (3 s)"
    compilations.ended()
    compilations.begun("foresail.simulator.kernels.replay_loop")
    assert "compiling replay loop, part 2" in progress.sentence(0.0, 3.0)
    compilations.ended()
    assert progress.sentence(0.0, 3.0) == "working (3 s)"


@pytest.mark.parametrize(
    ("arguments", "for_a_program"),
    [
        (["simulate", "log", "--format", "json"], True),
        (["simulate", "log", "--format=csv"], True),
        (["simulate", "log", "--format", "table"], False),
        (["trace", "convert", "log.json", "json"], False),
    ],
)
def test_programs_are_told_nothing(arguments, for_a_program):
    """Who asks for a format that programs read wants no progress."""
    assert progress.for_a_program(arguments) is for_a_program


def test_a_file_of_options_may_ask_for_a_program(tmp_path):
    """Then nothing is told either, from when the file is read; a table leaves it as it is."""
    file, types = tmp_path / "options.toml", tmp_path / "types.csv"
    types.write_text("name,capacity,availability,price_per_hour\na,10,0.95,2\nb,10,0.9,1\n")
    for wanted in ("json", "table"):
        file.write_text(
            f'[transient]\nformat = "{wanted}"\ntypes = "{types}"\n'
            "capacity = 10\navailability = 0.9\n"
        )
        with progress.progress_shown(["cloud", "transient"]):
            told = CliRunner().invoke(cloud, ["transient", "--config", str(file)])
            assert told.exit_code == 0, told.output
            assert progress._is_shown == (wanted == "table")


def run(log, *options, terminal):
    """Standard output and standard error of an impatient command; a terminal for both if asked."""
    command = [sys.executable, "-c", IMPATIENT, *SIMULATE, str(log), *options]
    if not terminal:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm"}
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=follower, env=environment, text=True
    )
    os.close(follower)
    said = b""
    while True:
        try:
            part = os.read(leader, 65_536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        said += part
    os.close(leader)
    out, _ = running.communicate()
    assert running.returncode == 0
    return out, said.decode()


def test_on_a_terminal_a_line_moves_and_vanishes(log):
    """It is drawn in its place, and nothing of it is left."""
    out, err = run(log, terminal=True)
    assert " s)" in err
    assert CLEARED in err
    assert err.endswith("\x1b[1A\x1b[2K")
    assert "49 jobs" in out
    assert CLEARED not in out


def test_elsewhere_lines_are_plain(log):
    """Standard output holds the answer alone."""
    out, err = run(log, terminal=False)
    assert err.splitlines()[0].endswith(" s)")
    assert CLEARED not in err
    assert "49 jobs" in out
    assert " s)" not in out


@pytest.mark.parametrize("terminal", [True, False])
def test_json_is_alone(log, terminal):
    """Nothing is said beside it, on a terminal or elsewhere."""
    out, err = run(log, "--format", "json", terminal=terminal)
    assert json.loads(out)["policies"][0]["jobs"] == 49
    assert err == ""
