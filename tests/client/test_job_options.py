"""Options of job scripts and of the command line, beside what a real Slurm makes of them."""

from __future__ import annotations

import math
import os
import re
import time
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.client.job_options import OPTIONS, asked_by_script, asked_jobs, moment
from foresail.model.errors import InputError
from foresail.model.job import parse_dependencies

MIB, GIB = 2**20, 2**30


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder of one's own, and no variables that would be handed on."""
    monkeypatch.chdir(tmp_path)
    for name in set(os.environ) - {"PATH", "HOME"}:
        monkeypatch.delenv(name)
    return tmp_path


def of_script(here, *lines, typed=(), arguments=()):
    """The job of a script with these lines, submitted with these options and arguments."""
    text = "\n".join(["#!/bin/sh", *lines, "true", ""])
    (here / "h.sh").write_text(text)
    asked = asked_jobs([*typed, "h.sh", *arguments], time.time())
    (job,) = asked.jobs
    assert job["script"] == text
    return job


# Recorded of Slurm 22.05.8 (`slurm-cluster up DIR 2`; nodes of 8 cpus, 32000 MB) by
#   printf '#!/bin/sh\n%b\ntrue\n' "HEADER" > h.sh; id=$(sbatch --parsable -H h.sh)
#   scontrol show -o job $id | tr ' ' '\n' |
#     grep -E '^(JobName|TimeLimit|NumTasks|CPUs/Task|TRES|TresPer|MinMemory|ArrayTaskId)'
# TimeLimit (whole minutes there, rounded up), NumTasks, CPUs/Task, mem of TRES in MB (4000 for each
# cpu if nothing was asked for, which is told as None here), JobName.
SLURM_SAYS = [
    ("", "UNLIMITED", 1, 1, None, "h.sh"),
    ("#SBATCH -t 5", "00:05:00", 1, 1, None, "h.sh"),
    ("#SBATCH -t 1:30", "00:02:00", 1, 1, None, "h.sh"),
    ("#SBATCH --time=10:00", "00:10:00", 1, 1, None, "h.sh"),
    ("#SBATCH -t 1:30:05", "01:31:00", 1, 1, None, "h.sh"),
    ("#SBATCH -t 2-12", "2-12:00:00", 1, 1, None, "h.sh"),
    ("#SBATCH -t 1-0:30", "1-00:30:00", 1, 1, None, "h.sh"),
    ("#SBATCH -t 1-2:3:4", "1-02:04:00", 1, 1, None, "h.sh"),
    ("#SBATCH -t 0", "UNLIMITED", 1, 1, None, "h.sh"),
    ("#SBATCH -t UNLIMITED", "UNLIMITED", 1, 1, None, "h.sh"),
    ("#SBATCH -t infinite", "UNLIMITED", 1, 1, None, "h.sh"),
    ("#SBATCH -t -1", "UNLIMITED", 1, 1, None, "h.sh"),
    ("#SBATCH -t 90:00", "01:30:00", 1, 1, None, "h.sh"),
    ("#SBATCH -t 0:30", "00:01:00", 1, 1, None, "h.sh"),
    ("#SBATCH -n4", "UNLIMITED", 4, 1, None, "h.sh"),
    ("#SBATCH -n 4 -c 2", "UNLIMITED", 4, 2, None, "h.sh"),
    ("#SBATCH -c2", "UNLIMITED", 1, 2, None, "h.sh"),
    ("#SBATCH --cpus-per-task 3 # why", "UNLIMITED", 1, 3, None, "h.sh"),
    ("#SBATCH -J=x", "UNLIMITED", 1, 1, None, "=x"),
    ("#SBATCH --mem=500", "UNLIMITED", 1, 1, 500, "h.sh"),
    ("#SBATCH --mem=2G", "UNLIMITED", 1, 1, 2048, "h.sh"),
    ("#SBATCH --mem=2GB", "UNLIMITED", 1, 1, 2048, "h.sh"),
    ("#SBATCH --mem=2g", "UNLIMITED", 1, 1, 2048, "h.sh"),
    ("#SBATCH --mem=1048576K", "UNLIMITED", 1, 1, 1024, "h.sh"),
    ("#SBATCH --mem=1T", "UNLIMITED", 1, 1, 1048576, "h.sh"),
    ("#SBATCH -n 2 -c 2 --mem=4G", "UNLIMITED", 2, 2, 4096, "h.sh"),
    ("#SBATCH -n 2 -c 2 --mem-per-cpu=1G", "UNLIMITED", 2, 2, 4096, "h.sh"),
    ("#SBATCH -N 1 --ntasks-per-node=4", "UNLIMITED", 4, 1, None, "h.sh"),
    ("#SBATCH --ntasks-per-node=4", "UNLIMITED", 4, 1, None, "h.sh"),
    ("#SBATCH -N 1-1 -n 2", "UNLIMITED", 2, 1, None, "h.sh"),
    ("#SBATCH -HQ", "UNLIMITED", 1, 1, None, "h.sh"),
    ("# SBATCH -n 4", "UNLIMITED", 1, 1, None, "h.sh"),
    ("##SBATCH -n 4", "UNLIMITED", 1, 1, None, "h.sh"),
    ("#SBATCH", "UNLIMITED", 1, 1, None, "h.sh"),
    ("true\n#SBATCH -n 4", "UNLIMITED", 1, 1, None, "h.sh"),
    ("\n\n#comment\n#SBATCH -n 4", "UNLIMITED", 4, 1, None, "h.sh"),
    ("#SBATCH -n 2\n#SBATCH -n 3", "UNLIMITED", 3, 1, None, "h.sh"),
]
SLURM_REFUSES = [
    *("-t 1.5", "-n=4", "-n four", "--mem=1.5G", "--mem=2X", "--mem=2GiB"),
    *("--mem-per-cpu=100 --mem=4G", "--mem=4G --mem-per-cpu=100", "stray", "--hold=yes"),
    *("-d afterok", "--begin=4pm", "--nosuch", "-d expand:46"),
]


@pytest.mark.parametrize(("header", "limit", "tasks", "cpus", "megabytes", "name"), SLURM_SAYS)
def test_a_header_means_what_it_means_to_slurm(here, header, limit, tasks, cpus, megabytes, name):
    """Time limit (ours to the second), tasks, cpus, memory and name."""
    job = of_script(here, header)
    seconds = job.get("requested_time")
    assert (None if seconds is None else math.ceil(seconds / 60)) == minutes_of(limit)
    assert (job.get("tasks", 1), job.get("cpus", 1), job["name"]) == (tasks, cpus, name)
    memory = job.get("memory")
    in_all = None if memory is None else int(memory.removesuffix("B")) * tasks
    assert in_all == (None if megabytes is None else megabytes * MIB)


def minutes_of(limit):
    """What ``scontrol`` tells, in minutes."""
    if limit == "UNLIMITED":
        return None
    days, _, clock = limit.rpartition("-")
    hours, minutes, _ = (int(each) for each in clock.split(":"))
    return int(days or 0) * 1440 + hours * 60 + minutes


@pytest.mark.parametrize("options", SLURM_REFUSES)
def test_what_slurm_refuses_is_refused(here, options):
    """With the line that it is in."""
    with pytest.raises(InputError, match="line 2"):
        of_script(here, f"#SBATCH {options}")


# The same, EligibleTime of jobs submitted on 2026-11-26 at 14:57:04.
@pytest.mark.parametrize(
    ("begin", "eligible"),
    [
        ("now+1hour", "2026-11-26T15:57:04"),
        ("now+60", "2026-11-26T14:58:04"),
        ("now+2minutes", "2026-11-26T14:59:04"),
        ("now+1days", "2026-11-27T14:57:04"),
        ("16:00", "2026-11-26T16:00:00"),
        ("10:00", "2026-11-27T10:00:00"),
        ("2026-12-01", "2026-12-01T00:00:00"),
        ("2026-12-01T12:34", "2026-12-01T12:34:00"),
        ("2026-12-01T12:34:56", "2026-12-01T12:34:56"),
        ("tomorrow", "2026-11-27T00:00:00"),
        ("midnight", "2026-11-27T00:00:00"),
        ("noon", "2026-11-27T12:00:00"),
        ("teatime", "2026-11-26T16:00:00"),
        ("2h", "2026-11-26T16:57:04"),  # refused by Slurm: our own
    ],
)
def test_moments_are_those_of_slurm(begin, eligible):
    """In the time zone of the one who submits."""
    now = datetime(2026, 11, 26, 14, 57, 4).astimezone()
    assert moment(begin, now) == datetime.fromisoformat(eligible).astimezone().timestamp()


# The same, Dependency= of jobs 46 and 47 that wait; `(unfulfilled)` left out.
@pytest.mark.parametrize(
    ("options", "dependency"),
    [
        ("afterok:46", "afterok:46"),
        ("afterok:46:47", "afterok:46,afterok:47"),
        ("afterany:46,afternotok:47", "afterany:46,afternotok:47"),
        ("after:46", "after:46"),
        ("singleton", "singleton"),
        ("46", "afterany:46"),
        ("afterok:46,singleton", "afterok:46,singleton"),
    ],
)
def test_dependencies_are_those_of_slurm(here, options, dependency):
    """What the service is told is read by what it reads it with."""
    told = parse_dependencies(of_script(here, f"#SBATCH -d {options}")["after"])
    assert dependency == ",".join(":".join((each.kind, *each.job_ids)) for each in told)


def test_files_and_mail_are_asked_of_the_service(here):
    """Relative to the folder of the job, which need not be that of its submission."""
    lines = ["#SBATCH -o %x-%j.out -e err.%A_%a --open-mode=append", "#SBATCH -D /tmp"]
    job = of_script(here, *lines, "#SBATCH --mail-type=END,FAIL --mail-user=ann@here")
    assert (job["output"], job["errors"]) == ("%x-%j.out", "err.%A_%a")
    assert job["open_mode"] == "append"
    assert (job["mail_type"], job["mail_user"]) == ("END,FAIL", "ann@here")
    assert (job["directory"], job["environment"]["SLURM_SUBMIT_DIR"]) == ("/tmp", str(here))


def test_what_the_service_checks_is_handed_on(here):
    """Arrays with a limit, a begin, whether it runs again, predecessors by any name."""
    typed = ["--begin=2026-12-01T12:00", "-a", "0-9%2", "--no-requeue", "--after", "1", "-d", "2"]
    job = of_script(here, typed=typed)
    assert (job["array"], job["requeue"]) == ("0-9%2", False)
    assert job["begin"] == datetime(2026, 12, 1, 12).astimezone().timestamp()
    assert job["after"] == ["1", "afterany:2"]
    assert of_script(here, typed=["--requeue"])["requeue"] is True


@pytest.mark.parametrize(
    ("options", "seconds"),
    [("90s", 90), ("30min", 1800), ("2h", 7200), ("1h30m", 5400), ("1d", 86400), ("5", 300)],
)
def test_our_own_times_have_a_unit(here, options, seconds):
    """On lines of scripts and typed; without a unit they are sbatch's minutes."""
    assert of_script(here, f"#FORESAIL --time {options}")["requested_time"] == seconds
    assert of_script(here, typed=["-t", options])["requested_time"] == seconds


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--partition=long", "no partitions here"),
        ("-p long", "leave it out"),
        ("-q high", "no accounts"),
        ("-N 2", "--cpus-per-task say how much"),
        ("--signal=USR1", "SIGTERM comes at the limit"),
        ("--job-na=x", "--job-name in full"),
        ("--tmie=5", "--time in full"),
        ("--mem=0", "megabytes"),
        ("-n", "N behind it"),
        ("-d afterok:1?afterok:2", "all dependencies must hold"),
        ("-d aftercorr:1", "aftercorr is not supported"),
        ("-d after:1+5", "give begin a time"),
        ("--gres=fpga:1", "no other resources by name"),
        ("--gpus=a100:2", "of one kind"),
        ("--deadline=2020-01-01", "is over"),
        ("-n 4 -N 1 --ntasks-per-node=2", "there is one node"),
        ('-J "open', "quote that is not closed"),
    ],
)
def test_what_there_is_not_is_refused_with_what_to_do(here, options, words):
    """Never dropped; abbreviations are refused."""
    with pytest.raises(InputError, match=f"(?s){re.escape(words)}"):
        of_script(here, f"#SBATCH {options}")


@pytest.mark.parametrize("options", ["--wrap=true", "--key=1"])
def test_some_are_of_the_command_line_alone(here, options):
    """A line of a script cannot say what is run instead of it."""
    with pytest.raises(InputError, match="on the command line alone"):
        of_script(here, f"#SBATCH {options}")


def test_what_is_typed_wins_over_the_script(here):
    """Option by option, also where they are called differently."""
    lines = ["#SBATCH -t 5 -J a", "#SBATCH --mem=1G -c 2 -n 2", "#SBATCH --env=A=1"]
    typed = ["--mem-per-cpu", "100", "--time=2h", "-n1", "--env", "B=2"]
    job = of_script(here, *lines, typed=typed)
    assert (job["requested_time"], job["name"], job["tasks"], job["cpus"]) == (7200, "a", 1, 2)
    assert job["memory"] == f"{200 * MIB}B"
    assert of_script(here, *lines, typed=["-t0"])["requested_time"] is None


def test_lines_behind_the_first_command_are_told_of(here):
    """They ask for nothing, as with sbatch, which does not say so."""
    (here / "h.sh").write_text("#!/bin/sh\n#SBATCH -n 2\n\ntrue\n#SBATCH -n 3\n")
    asked = asked_jobs(["h.sh"], time.time())
    assert (asked.jobs[0]["tasks"], asked.call) == (2, {"late": [5]})


def test_arguments_are_the_scripts(here):
    """Also those that look like options."""
    job = of_script(here, "#SBATCH -n 2", arguments=["A", "-n", "3", "--help"])
    assert (job["tasks"], job["arguments"]) == (2, ["A", "-n", "3", "--help"])


@pytest.mark.parametrize("words", [[], ["-"], ["-c", "2", "-", "A"]])
def test_a_script_is_read_from_standard_input(words, monkeypatch):
    """As sbatch reads one behind ``<<``."""
    (job,) = piped(monkeypatch, "#!/bin/sh\n#SBATCH -n 3\n", words).jobs
    assert (job["name"], job["tasks"], job["script"][:9]) == ("sbatch", 3, "#!/bin/sh")
    assert job["arguments"] == words[3:]


def piped(monkeypatch, text, words):
    """What is asked for by words and what comes from standard input."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    monkeypatch.setattr("sys.stdin.read", lambda: text, raising=False)
    return asked_jobs(words, time.time())


@pytest.mark.parametrize(
    ("text", "words"),
    [("echo hi\n", "look like a script"), ("#!/bin/sh\r\n\r\n", "DOS"), ("", "#!")],
)
def test_what_is_no_script_is_refused(monkeypatch, text, words):
    """As sbatch refuses it."""
    with pytest.raises(InputError, match=words):
        piped(monkeypatch, text, [])


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["--", "echo", "a b"], ["echo", "a b"]),
        (["-H", "--", "echo", "--", "x"], ["echo", "--", "x"]),
        (["echo", "-n", "3"], ["echo", "-n", "3"]),
        (["--wrap", "echo a; echo b"], "echo a; echo b"),
        (["--", "there/is/none"], ["there/is/none"]),
        (["--", "not-here"], ["not-here"]),
    ],
)
def test_commands(words, command):
    """A program that is here, anything behind ``--``, or a line for the shell."""
    (job,) = asked_jobs(words, time.time()).jobs
    assert job["command"] == command
    assert "script" not in job
    assert job.get("name") == ("wrap" if words[0] == "--wrap" else None)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--", "h.sh", "A"], "./h.sh"),
        (["a; b"], "--wrap 'a; b'"),
        (["--", "a; b"], "--wrap 'a; b'"),
        (["echo $HOME"], "--wrap"),
        (["not-here"], "a script or a program"),
        (["misspelt.sh"], "misspelt.sh"),
        (["./not-here", "A"], "not-here"),
        (["--wrap", "true", "A"], "--wrap"),
        (["--"], "no command"),
        ([""], "no such program"),
    ],
)
def test_what_would_be_no_program_is_said_before(here, words, says):
    """With what was probably meant, not as exit code 127 later."""
    (here / "h.sh").write_text("#!/bin/sh\n")
    with pytest.raises(InputError, match=re.escape(says)):
        asked_jobs(words, time.time())


def test_a_program_is_no_script(here):
    """It is run from where it is, with its arguments."""
    (here / "program").write_bytes(b"\x7fELF\0")
    (job,) = asked_jobs(["program", "A"], time.time()).jobs
    assert job["command"] == [str(here / "program"), "A"]


# By `sbatch --wait -o out OPTION e.sh`, with FOO=1 set, `echo FOO=$FOO BAR=$BAR` in e.sh.
@pytest.mark.parametrize(
    ("options", "foo", "bar"),
    [
        ([], "1", None),
        (["--env", "BAR=2"], "1", "2"),
        (["--export=ALL"], "1", None),
        (["--export=NONE"], None, None),
        (["--export=NIL"], None, None),
        (["--export=BAR=2"], None, "2"),
        (["--export=FOO"], "1", None),
        (["--export=ALL,BAR=2"], "1", "2"),
        (["--export=FOO,BAR=x"], "1", "x"),
        (["--export=NONE", "--env", "BAR=a,b"], None, "a,b"),
    ],
)
def test_variables(options, foo, bar, monkeypatch):
    """Neither the token is handed on, nor what a job was told, nor what an account has."""
    monkeypatch.setenv("FOO", "1")
    for name in ("SLURM_JOB_ID", "FORESAIL_JOB_ID", "OMP_NUM_THREADS", "not-a-name"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("ODD", "\udce4")
    monkeypatch.setenv("FORESAIL_TOKEN", "secret")
    (job,) = asked_jobs([*options, "--", "true"], time.time()).jobs
    assert (job["environment"].get("FOO"), job["environment"].get("BAR")) == (foo, bar)
    sent = {"FOO": foo, "BAR": bar, "PATH": os.environ["PATH"]}
    if options and "ALL" not in options[0] and options[0] != "--env":
        del sent["PATH"]
    job["environment"].pop("PYTEST_CURRENT_TEST", None)
    assert job["environment"] == {name: value for name, value in sent.items() if value is not None}


def test_a_jobs_file_with_options(here):
    """What is typed wins for each of its jobs."""
    (here / "jobs.toml").write_text('[[job]]\ncommand = "true"\ncpus = 2\n[[job]]\ncommand = "b"\n')
    first, second = asked_jobs(["-t", "5", "jobs.toml"], time.time()).jobs
    assert (first["cpus"], first["requested_time"], second["requested_time"]) == (2, 300, 300)
    with pytest.raises(InputError, match=r"'--mem'.*--memory"):
        asked_jobs(["--mem", "5", "jobs.toml"], time.time())


@pytest.mark.parametrize(
    ("file", "name"), [("my job.sh", "my job.sh"), ("a\nb.sh", "a_b.sh"), ("a" * 120, "a" * 100)]
)
def test_a_script_is_called_as_its_file_as_far_as_may_be(here, file, name):
    """Names of jobs name files too."""
    (here / file).write_text("#!/bin/sh\n")
    (job,) = asked_jobs([file], time.time()).jobs
    assert job["name"] == name


def test_names_are_of_one_option_each():
    """Of those there are, and of those there are not."""
    names = [name for each in OPTIONS for name in each.names.split()]
    assert len(names) == len(set(names))


@given(st.text())
def test_any_text_is_a_script_or_refused(text):
    """Never another error."""
    try:
        asked_by_script(text, "h.sh")
    except InputError:
        return
    assert text.startswith("#!")


@given(st.lists(st.text(alphabet="-+:=,%.0159 ngtmeabs", max_size=12), max_size=4))
def test_any_words_are_options_or_refused(words):
    """Never another error."""
    try:
        asked_by_script("#!/bin/sh\n#SBATCH " + " ".join(words), "h.sh")
    except InputError:
        return
