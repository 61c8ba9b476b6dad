"""``foresail run`` as a person uses it: files, lines, words and exit statuses."""

import getpass
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from foresail.cli.main import main
from foresail.cli.run_progress import remaining_seconds, totals
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live.command_job import CommandJob
from foresail.model.cluster import Cluster
from foresail.model.event import Submitted
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest
from foresail.traces.schedule import read_schedule


@pytest.fixture
def foresail(monkeypatch, capsys, tmp_path):
    """Run the command line in this process; returns exit status, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def call(*arguments, stdin=""):
        (tmp_path / "stdin").write_text(stdin)
        monkeypatch.setattr(sys, "argv", ["foresail", *map(str, arguments)])
        with (tmp_path / "stdin").open() as typed:
            monkeypatch.setattr(sys, "stdin", typed)
            with pytest.raises(SystemExit) as left:
                main()
        captured = capsys.readouterr()
        return left.value.code or 0, captured.out, captured.err

    return call


def test_a_jobs_file_is_run_and_told_in_plain_lines(foresail, tmp_path):
    """Piped output has a line per event and a summary; the status says that something failed."""
    (tmp_path / "jobs.toml").write_text(
        '[[job]]\nname = "fine"\ncommand = "echo hello"\n'
        '[[job]]\nname = "bad"\ncommand = "exit 3"\nafter = "fine"\n'
        '[[job]]\nname = "never"\ncommand = "true"\nafter = "bad"\n'
    )
    status, out, _ = foresail("run", "jobs.toml", "--directory", "here", "--cpus", "2", "--report")
    assert status == 1
    assert "started   fine (1 cpu)" in out
    assert "failed    bad after" in out
    assert "with exit code 3; see" in out
    assert "cancelled never: job bad" in out
    assert "1 completed, 1 failed, 1 cancelled" in out
    assert (tmp_path / "here" / "logs" / "fine.out").read_text() == "hello\n"
    schedule = read_schedule(tmp_path / "here" / "schedule.parquet")
    assert schedule.jobs["job_id"].to_list() == ["fine", "bad"]
    assert schedule.jobs["user"].to_list() == [getpass.getuser()] * 2
    assert "easy(order=shortest)" in (tmp_path / "here" / "report" / "report.html").read_text()
    assert (tmp_path / "state" / "foresail" / "history.jsonl").is_file()


def test_lines_of_standard_input_are_run(foresail, tmp_path):
    """Commands and objects mix; the default directory is named after the time."""
    lines = f"echo one\n\n{json.dumps({'command': ['echo', 'two'], 'name': 'second'})}\n"
    status, out, _ = foresail("run", "-", "--no-history", stdin=lines)
    assert status == 0
    (directory,) = tmp_path.glob("foresail-run-*")
    assert (directory / "logs" / "job-1.out").read_text() == "one\n"
    assert (directory / "logs" / "second.out").read_text() == "two\n"
    assert "2 completed" in out
    assert not (tmp_path / "state").exists()


def test_resuming_a_finished_run_and_a_used_directory(foresail, tmp_path):
    """The first is quiet and right, the second is refused."""
    (tmp_path / "jobs.csv").write_text("command\ntrue\n")
    assert foresail("run", "jobs.csv", "--directory", "here")[0] == 0
    status, out, _ = foresail("run", "--resume", "here")
    assert status == 0
    assert "1 completed" in out
    assert "started" not in out
    status, _, err = foresail("run", "jobs.csv", "--directory", "here")
    assert status == 2
    assert "holds a run already" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["jobs.csv", "--policy", "eazy"], "did you mean 'easy'"),
        (["jobs.csv", "--policy", "easy,clairvoyant"], "how long jobs will run"),
        (["jobs.csv", "--grace", "a while"], "'--grace'"),
        (["absent.toml"], "cannot be read"),
        (["wide.csv", "--cpus", "1"], "wider than the cluster"),
        (["--resume", "nowhere"], "not a run directory"),
        (["jobs.csv", "--resume", "nowhere"], "keeps its jobs and its settings"),
        ([], "no jobs"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(foresail, tmp_path, arguments, words):
    """Nothing is started and no directory is made."""
    (tmp_path / "jobs.csv").write_text("command\ntouch started\n")
    (tmp_path / "wide.csv").write_text("command,cpus\ntouch started,1\ntouch started,2\n")
    status, _, err = foresail("run", *arguments)
    assert status == 2
    assert words in err
    assert not list(tmp_path.glob("foresail-run-*"))
    assert not (tmp_path / "started").exists()


def test_totals_of_a_run():
    """One running job, one that the first makes wait, and a remaining time."""
    cluster, log = Cluster.of_processors(2), MemoryLog(Manifest("easy", Cluster.of_processors(2)))
    controller = Controller(cluster, *parse_policy("easy,requested").build(), log=log)
    jobs = [
        CommandJob("wide", "wide", "true", "/", cpus=2, requested_seconds=60.0),
        CommandJob("next", "next", "true", "/", requested_seconds=30.0),
    ]
    events = [Submitted(1e9, job.specification(1e9)) for job in jobs]
    controller.step(1e9, events)
    said = totals(controller, controller.state.history, 1e9 + 20.0)
    assert said == "0 of 2 done · 1 running · 1 waiting · about 55 s left"
    assert remaining_seconds(controller, 1e9 + 20.0) == pytest.approx(55.0)


def test_the_example_runs_to_its_end_as_a_process_of_its_own(tmp_path):
    """The jobs of the demonstration: seven complete, the greedy one is stopped at its limit."""
    start = "from foresail.cli.main import main; main()"
    example = Path(__file__).parents[2] / "examples" / "jobs.toml"
    done = subprocess.run(
        [sys.executable, "-c", start, "run", example, "--cpus", "2", "--no-history"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    slow_start = ("compiling ", "working (")
    assert all(line.startswith(slow_start) for line in done.stderr.splitlines())
    assert "7 completed, 1 stopped at its requested time" in done.stdout
    assert done.returncode == 1


def test_a_run_is_decided_again_and_a_changed_policy_is_told(foresail, tmp_path):
    """With the policy of its log nothing differs; with another one the first steps are named."""
    (tmp_path / "jobs.csv").write_text(
        "command,requested_time\n" + "".join(f"true,{9 - n} s\n" for n in range(4))
    )
    policy = ("--policy", "sjf", "--cpus", "1")
    assert foresail("run", "jobs.csv", "--directory", "here", *policy)[0] == 0
    status, out, _ = foresail("replay", "here")
    assert (status, out) == (0, "every decision is made again\n")
    log = tmp_path / "here" / "events.jsonl"
    text = log.read_text()
    log.write_text(text.replace('"policy":"sjf', '"policy":"fcfs', 1))
    status, out, _ = foresail("replay", "here")
    assert status == 1
    assert "decided otherwise" in out
    assert "  step 0, at" in out
    assert re.search(r"start job-\d.*; now: start job-\d", out)
    log.write_text(text.replace('"policy":"sjf', '"policy":"sjf,clairvoyant', 1))
    assert foresail("replay", "here")[0] == 2
    assert foresail("replay", str(tmp_path))[0] == 2


def test_a_run_under_a_policy_of_ones_own_is_decided_again(foresail, tmp_path):
    """In a process that has not seen it, which is told of it by the same option."""
    example = Path(__file__).resolve().parents[2] / "examples" / "shortest_likely.py"
    plugin = tmp_path / "own.py"
    plugin.write_text(example.read_text().replace("shortest_likely", "likely_first"))
    (tmp_path / "jobs.csv").write_text("command,requested_time\ntrue,9 s\ntrue,8 s\n")
    assert foresail("run", "jobs.csv", "--directory", "here", "--cpus", "1")[0] == 0
    log = tmp_path / "here" / "events.jsonl"
    recorded = re.compile('"policy":"[^"]*"')
    log.write_text(recorded.sub('"policy":"likely_first"', log.read_text(), count=1))
    assert foresail("replay", "here")[0] == 2
    assert foresail("replay", "here", "--plugin", str(plugin))[0] in (0, 1)


def test_a_full_disk_is_one_sentence_and_status_2(tmp_path):
    """As a process of its own, whose files may not grow beyond a few thousand bytes."""
    (tmp_path / "jobs.csv").write_text("command\n" + "echo once >> marks\n" * 6)
    full = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000));"
        "from foresail.cli.main import main; main()"
    )
    arguments = ("run", "jobs.csv", "--policy", "fcfs", "--directory", "here", "--no-history")
    done = subprocess.run(
        [sys.executable, "-c", full, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "events.jsonl: cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    start = "from foresail.cli.main import main; main()"
    again = [sys.executable, "-c", start, "run", "--resume", "here"]
    assert subprocess.run(again, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert (tmp_path / "marks").read_text() == "once\n" * 6


def test_a_job_with_strl_of_its_own_starts_when_that_says(foresail, tmp_path):
    """Not before a second has passed, though nothing else runs; another scheduler refuses it."""
    (tmp_path / "jobs.toml").write_text(
        '[[job]]\nname = "later"\ncommand = "true"\nrequested_time = "5 s"\n'
        'strl = "nCk(all, 1, 1s, 5s, 3)"\n'
    )
    planner = "tetrisched(slot_seconds=1,cycle_seconds=1),requested"
    status, out, _ = foresail(
        "run", "jobs.toml", "--directory", "here", "--cpus", "1", "--policy", planner
    )
    assert (status, "1 completed" in out) == (0, True)
    (row,) = read_schedule(tmp_path / "here" / "schedule.parquet").jobs.iter_rows(named=True)
    assert row["start_seconds"] - row["submit_seconds"] >= 1.0
    _, told, _ = foresail("explain", "here", "later")
    assert "By its own STRL it runs with 1 task on all, worth 3 from 1 s on." in " ".join(
        told.split()
    )
    status, _, error = foresail("run", "jobs.toml", "--directory", "there", "--cpus", "1")
    assert status == 2
    assert "jobs.toml, line 1, field 'strl': this scheduler would start the job when" in error


TOY = Path(__file__).parents[1] / "checks" / "toy_adapters" / "toy" / "cluster.py"


def test_a_cluster_of_a_plug_in_runs_jobs_and_resumes(foresail, tmp_path):
    """One file outside of the package; settings keep which cluster it is, wide jobs are refused."""
    (tmp_path / "jobs.toml").write_text('[[job]]\nname = "a"\ncommand = "false"\n')
    given = ("--plugin", TOY, "--cluster", "toy(seconds=0.02)", "--no-history")
    status, out, _ = foresail("run", "jobs.toml", "--directory", "here", *given)
    assert (status, "1 completed" in out) == (0, True)  # the toy runs nothing, so nothing fails
    settings = json.loads((tmp_path / "here" / "run.json").read_text())
    assert settings["cluster"] == "toy(seconds=0.02)"
    assert foresail("run", "--resume", "here", "--plugin", TOY)[0] == 0
    (tmp_path / "wide.toml").write_text('[[job]]\nname = "a"\ncommand = "false"\ncpus = 3\n')
    status, _, err = foresail("run", "wide.toml", *given)
    assert (status, "cpus" in err) == (2, True)
    (tmp_path / "large.toml").write_text('[[job]]\nname = "a"\ncommand = "false"\ncpus = 2\n')
    status, _, err = foresail("run", "large.toml", *given)
    assert (status, "field 'cpus': can never run: no node" in err) == (2, True)
    assert not list(tmp_path.glob("foresail-run-*"))
    status, _, err = foresail("run", "jobs.toml", "--cpus", "2", *given)
    assert (status, "--cluster" in err) == (2, True)


def test_a_cluster_whose_own_code_is_mistaken_ends_a_run(foresail, tmp_path, monkeypatch):
    """In a sentence with the line; once that is mended, the run goes on."""
    monkeypatch.setattr("foresail.live.cluster_contact._FIRST_PAUSE_SECONDS", 0.01)
    (tmp_path / "jobs.toml").write_text('[[job]]\nname = "a"\ncommand = "false"\n')
    right = TOY.read_text().replace('"toy"', '"mistaken"')
    assert right.count("    def carry_out(self, instruction, now):\n") == 1
    plugin = tmp_path / "mistaken.py"
    line = right[: right.index("    def carry_out(")].count("\n") + 2
    start = "    def carry_out(self, instruction, now):\n"
    plugin.write_text(right.replace(start, f"{start}        now.strftime()\n"))
    given = ("--plugin", plugin, "--cluster", "mistaken(seconds=0.02)", "--no-history")
    status, out, err = foresail("run", "jobs.toml", "--directory", "here", *given)
    said = f"mistaken.py, line {line}: the cluster fails: AttributeError: 'float' object has no"
    assert (status, said in err, "Traceback" in err) == (2, True, False), out + err
    plugin.write_text(right)
    status, out, _ = foresail("run", "--resume", "here", "--plugin", plugin)
    assert (status, "1 completed" in out) == (0, True)


def test_a_cluster_without_nodes_is_refused(foresail, tmp_path):
    """Before anything is begun, with its file and line."""
    (tmp_path / "jobs.toml").write_text('[[job]]\nname = "a"\ncommand = "true"\n')
    text = TOY.read_text().replace('"toy"', '"nowhere"')
    plugin = tmp_path / "nowhere.py"
    plugin.write_text(text.replace("self.cluster = ", "self.cluster = None and "))
    given = ("--plugin", plugin, "--cluster", "nowhere", "--no-history")
    status, _, err = foresail("run", "jobs.toml", "--directory", "here", *given)
    assert (status, "its cluster is None, not a Cluster" in err) == (2, True), err
    assert "nowhere.py, line" in err
    assert not (tmp_path / "here").exists()


def test_a_run_that_began_before_clusters_had_names_is_resumed(foresail, tmp_path):
    """Its settings have cpus and the time between signals."""
    (tmp_path / "jobs.toml").write_text('[[job]]\nname = "a"\ncommand = "true"\n')
    assert foresail("run", "jobs.toml", "--directory", "old", "--no-history")[0] == 0
    file = tmp_path / "old" / "run.json"
    stored = json.loads(file.read_text())
    del stored["cluster"]
    file.write_text(json.dumps(stored | {"cpus": 2, "grace_seconds": 10.0}))
    assert foresail("run", "--resume", "old")[0] == 0
