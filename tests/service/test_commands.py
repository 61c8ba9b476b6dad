"""The commands that speak to a service, typed as their users type them."""

from __future__ import annotations

import json
import os
import time

import pytest
from typer.testing import CliRunner

from foresail.cli.main import app_of, main
from foresail.client.service_client import ServiceClient, ServiceRefusal
from foresail.model.errors import ForesailError
from live_service import service_of_module
from until import until

SCRIPT = """#!/bin/sh
#SBATCH --job-name=scripted
#SBATCH --time=00:01:00
#SBATCH --ntasks=2
#FORESAIL --deadline=1h
echo from a script, $FORESAIL_TASKS tasks
"""


service = service_of_module('cluster = "local(cpus=2,nodes=1,memory=8GiB,gpus=2)"')


@pytest.fixture
def typed(service, monkeypatch, tmp_path):
    monkeypatch.setenv("FORESAIL_SERVICE", service.address)
    monkeypatch.setenv("FORESAIL_TOKEN", service.admin_token)
    monkeypatch.chdir(tmp_path)

    def type_it(name, *words, status=0):
        app = app_of(name)
        result = CliRunner().invoke(app, [str(each) for each in words])
        if isinstance(result.exception, ForesailError):
            assert status == 2, result.exception
            return str(result.exception)
        assert result.exit_code == status, (result.output, result.exception)
        return result.stdout if name == "submit" and not status else result.output

    return type_it


def test_a_command_is_submitted_waited_for_and_read(typed):
    job = typed("submit", "--name", "hello", "--wait", "--", "echo", "a  b").strip()
    assert typed("logs", job) == "a  b\n"
    assert "completed" in typed("show", job)
    assert json.loads(typed("show", job, "--json"))["name"] == "hello"
    assert "Started after" in typed("explain", job)
    assert job in typed("jobs", "--all")
    assert job not in typed("jobs")


def test_what_is_no_text_is_refused(typed):
    """Whatever command it is typed behind: bytes that are no UTF-8."""
    said = "is no text (UTF-8)"
    assert said in typed("submit", "--wrap", "echo \udcff", status=2)
    assert said in typed("jobs", "--name", "\udcff", status=2)
    assert said in typed("cancel", "--user", "\udcff", status=2)


def test_what_others_have_written_reaches_no_terminal_but_as_text(typed, tmp_path):
    """Neither a line more nor a sign that a terminal obeys."""
    line = "true \x1b[2J\nstate  completed"
    (tmp_path / "a\rb").mkdir()
    job = typed("submit", "--hold", "--wrap", line, "-D", tmp_path / "a\rb").strip()
    shown = typed("show", job)
    assert "true ?[2J?state  completed\n" in shown
    assert "/a?b\n" in shown
    typed("cancel", job)


def test_what_a_job_may_hold_of_memory_is_shown(typed):
    job = typed("submit", "--memory", "50M", "--hold", "--", "true").strip()
    assert "1 cpu, at most 50 MiB of memory, no time limit" in typed("show", job)
    typed("cancel", job)


def test_what_was_understood_is_said_and_what_cannot_be_met(typed):
    """Standard output has the id alone; what is odd about a job is said with the rest."""
    asked = ("--memory", "2GiB", "--gpus", "1", "--time", "30min", "--deadline", "10min")
    words = [*asked, "--wait", "--", "sh", "-c", "echo gpu:$CUDA_VISIBLE_DEVICES"]
    result = CliRunner().invoke(app_of("submit"), words)
    understood = (
        "1 cpu, at most 2 GiB of memory, 1 gpu, a limit of 30 min, to be done within 10 min"
    )
    odd = "it may run for 30 min and should be done in 10 min"
    assert understood in result.stderr
    assert odd in result.stderr
    shown = typed("show", result.stdout.strip())
    assert understood in shown
    assert odd in shown
    assert typed("logs", result.stdout.strip()) == "gpu:0\n"


def test_the_service_tells_of_memory_and_gpus(typed, service):
    """Nodes, the cluster and the metrics, while a job holds some and once it has gone."""
    job = typed("submit", "--memory", "6GiB", "--gpus", "2", "--", "sleep", "60").strip()
    with service.client() as client:

        def free():
            told = client.get("/v1/cluster").json()
            return told["free_memory_bytes"] / 2**30, told["free_gpus"]

        until(lambda: free() == (2.0, 0.0))
        assert "2 GiB" in typed("nodes")
        (node,) = client.get("/v1/nodes").json()["nodes"]
        assert (node["memory_bytes"], node["free_memory_bytes"]) == (2.0**33, 2.0**31)
        assert (node["gpus"], node["free_gpus"]) == (2.0, 0.0)
        lines = client.get("/metrics").text.splitlines()
        assert 'foresail_memory_bytes{use="held"} 6.442450944e+09' in lines
        assert 'foresail_gpus{use="held"} 2.0' in lines
        typed("cancel", job)
        until(lambda: free() == (8.0, 2.0))


def test_a_script_with_directives_and_a_file_of_jobs(typed, tmp_path):
    (tmp_path / "job.sh").write_text(SCRIPT)
    job = typed("submit", "--wait", "job.sh").strip()
    assert typed("logs", job) == "from a script, 2 tasks\n"
    shown = json.loads(typed("show", job, "--json"))
    assert (shown["name"], shown["cpus"], shown["requested_seconds"]) == ("scripted", 2, 60.0)
    assert "2 cpus for 2 tasks, no memory limit, a limit of 1 min" in typed("show", job)
    (tmp_path / "jobs.toml").write_text(
        '[[job]]\nname = "first"\ncommand = "true"\n'
        '[[job]]\ncommand = "echo $FORESAIL_ARRAY_INDEX"\narray = "4-5"\nafter = "first"\n'
    )
    jobs = typed("submit", "jobs.toml").split()
    assert len(jobs) == 2
    typed("wait", *jobs)
    assert typed("logs", f"{jobs[-1]}_5") == "5\n"


def test_members_of_an_array_know_themselves_by_the_names_of_slurm(typed, tmp_path):
    script = tmp_path / "array.sh"
    script.write_text(
        "#!/bin/sh\n#SBATCH --array=2-8:3\n"
        "echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, "
        "$SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX\n"
    )
    array = typed("submit", "--wait", "array.sh").strip()
    assert typed("logs", f"{array}_5") == f"{array} 5 of 3, 2 to 8\n"
    of_two = typed("logs", f"{array}_[2,8]")
    assert of_two.startswith(f"==> {array}_2 <==\n{array} 2 of 3")
    assert f"==> {array}_8 <==\n{array} 8 of 3" in of_two
    assert "_5 <==" not in of_two
    assert typed("logs", array).count("==>") == 3
    typed("wait", array, f"{array}_[2-5:3]")


def test_a_member_of_an_array_goes_by_its_own_number_too(typed, tmp_path):
    """A number, as SLURM_JOB_ID is in Slurm: no other job's, and taken wherever ids are."""
    line = (
        "echo $SLURM_JOB_ID $SLURM_JOBID $FORESAIL_JOB_ID; test $SLURM_ARRAY_TASK_ID = 7 || exit 3"
    )
    words = ("submit", "-a", "7,9", "-o", "%j-%A_%a.txt", "--wrap", line)
    array = int(typed(*words))
    after = int(typed("submit", "-d", f"afterany:{array + 2}", "--wait", "--wrap", "true"))
    assert after == array + 3  # each has a number of its own
    for number, index in ((array + 1, 7), (array + 2, 9)):
        told = f"{number} {number} {array}_{index}\n"
        assert (tmp_path / f"{number}-{array}_{index}.txt").read_text() == told
        assert f"{number}-{array}_{index}.txt" in typed("logs", number)
        assert f"{array}_{index}  wrap" in typed("show", number)
        assert json.loads(typed("show", number, "--json"))["job_id"] == f"{array}_{index}"
        assert f"{array}_{index}" in typed("jobs", "-j", number)
    typed("wait", array + 1)
    typed("wait", array + 2, status=3)
    assert "Ended" in typed("explain", array + 2)
    both = typed("submit", "-a", "1-2", "--wrap", "foresail-none; sleep 60").strip()
    typed("cancel", int(both) + 1)
    assert {job["job_id"] for job in _jobs(typed)} == {f"{both}_2"}
    typed("cancel", both)


def _jobs(typed):
    until(lambda: "no jobs" in typed("jobs") or typed("jobs").count("\n") == 2)
    return [json.loads(line) for line in typed("jobs", "--json").splitlines()]


def test_an_array_knows_what_its_submitter_had_set(typed, monkeypatch, service):
    """Sent by default, but for the token and what a job was told; kept once for all members."""
    monkeypatch.setenv("MINE", "a 'b' ü\nsecond line")
    monkeypatch.setenv("BASH_FUNC_greet%%", "() {  echo greeted; }")
    monkeypatch.setenv("SLURM_NTASKS", "99")
    line = 'echo "$MINE" $SLURM_ARRAY_TASK_ID ${FORESAIL_TOKEN-none} $SLURM_NTASKS; bash -c greet'
    array = typed("submit", "-a", "0-1", "--wait", "--", "bash", "-c", line).strip()
    assert typed("logs", f"{array}_1") == "a 'b' ü\nsecond line 1 none 1\ngreeted\n"
    alone = typed("submit", "--wait", "--wrap", 'echo "$MINE"').strip()
    assert typed("logs", alone) == "a 'b' ü\nsecond line\n"
    nothing = typed("submit", "--export=NONE", "--wait", "--wrap", 'echo "${MINE-unset}"').strip()
    assert typed("logs", nothing) == "unset\n"
    for told in (typed("show", f"{array}_1", "--json"), typed("explain", f"{array}_1")):
        assert "second line" not in told


def test_a_job_is_held_forecast_released_and_cancelled(typed):
    job = typed("submit", "--hold", "--time", "1min", "--", "sleep", "60").strip()
    until(lambda: "held by admin until it is released" in typed("jobs"))
    assert "never starts" in typed("forecast", job)
    assert "ask for" in typed("forecast", job, "--risk", "0.1")
    assert "then" in typed("forecast", job, "--cpus", "2")
    assert "then" in typed("forecast", job, "--time", "10:00")
    assert "minutes, or a time" in typed("forecast", job, "--time", "soon", status=2)
    assert "one that ends" in typed("forecast", job, "--time", "0", status=2)
    assert "starts now" in typed("forecast", "--command", "true")
    assert "before then 100 %" in typed("forecast", "--command", "true", "--before", "tomorrow")
    tried = typed("forecast", "--command", "true", "--when-should-i-submit", "--time", "10min")
    heading, *rows = (row for row in tried.splitlines() if not row.endswith("."))  # remarks
    assert heading.split()[:4] == ["SUBMIT", "CPUS", "LIMIT", "STARTS"]
    assert len(rows) == 10
    assert {"now", "in"} == {row.split()[0] for row in rows}
    assert "if submitted" in typed("forecast", "--command", "true", "--in", "1h", "--json")
    typed("release", job)
    typed("cancel", job)
    typed("wait", job, status=1)
    assert "cancelled" in typed("show", job)
    assert "is cancelled" in typed("hold", job, status=1)


def test_nodes_are_drained_and_resumed(typed, service):
    with service.client() as client:
        (node,) = [each["name"] for each in client.get("/v1/nodes").json()["nodes"]]
    typed("nodes", "--drain", node)
    try:
        job = typed("submit", "--", "true").strip()
        with service.client() as client:
            assert client.get(f"/v1/jobs/{job}").json()["state"] == "pending"
            assert "drained  " in typed("nodes")
            typed("nodes", "--drain", node, "--until", "2h")
            assert "drained until " in typed("nodes")
            (known,) = client.get("/v1/nodes").json()["nodes"]
            assert known["until_seconds"] == pytest.approx(time.time() + 7200.0, abs=60.0)
            path, asked = f"/v1/jobs/{job}/forecast", {"arrivals": False}
            start = client.get(path, params=asked).json()["start"]
            assert start["p10"] == pytest.approx(known["until_seconds"], abs=60.0)
    finally:
        typed("nodes", "--resume", node)
    assert "--until" in typed("nodes", "--until", "2h", status=2)
    typed("wait", job)
    assert "no node" in typed("nodes", "--drain", "none", status=2)


def test_the_cluster_at_a_glance(typed):
    until(lambda: "cpus 0 of 2 in use" in typed("top"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["show", "99999"], "no job 99999"),
        (["submit", "--cpus", "99", "--", "true"], "wider than the cluster"),
        (["submit", "--time", "soon", "--", "true"], "'--time'"),
        (["submit", "--memory", "much", "--", "true"], "memory"),
        (["submit", "--memory", "8", "--", "true"], "such as 8GiB"),
        (["submit", "--memory", "999GiB", "--", "true"], "at most 8 GiB in all"),
        (["submit", "--gpus", "3", "--", "true"], "at most 2"),
        (["submit", "--after", "99999", "--", "true"], "no such job"),
        (["forecast"], "a job's id"),
        (["forecast", "1", "--in", "x"], "--in"),
        (["forecast", "1", "--before", "noonish"], "a moment such as"),
        (["forecast", "1", "--when-should-i-submit", "--risk", "0.1"], "--risk"),
        (["submit", "misspelt.sh"], "misspelt.sh"),
        (["cancel", "first"], "no id of a job"),
        (["cancel"], "which jobs?"),
        (["jobs", "-t", "X"], "no state of a job"),
        (["wait", "99999"], "no job 99999"),
        (["logs", "99999"], "no job 99999"),
        (["token", "revoke", "ann"], "'ann' is no id of a token"),
        (["explain", "99999"], "no job 99999"),
    ],
)
def test_what_cannot_be_done_is_said(typed, words, says):
    assert says in typed(*words, status=2)


def test_of_an_array_one_job_is_told_at_a_time(typed):
    array = typed("submit", "--hold", "--array", "3-4", "--", "true").strip()
    for command in ("explain", "forecast"):
        assert f"array; ask for one of its jobs, {array}_3 to {array}_4" in typed(
            command, array, status=2
        )
    typed("cancel", array)


def test_a_wait_is_explained_as_far_as_a_busy_service_can(typed, monkeypatch):
    """As in the first minute on a machine, when what draws forecasts is being compiled."""

    def waiting(client, job_id):
        raise ServiceRefusal({"status": 503, "detail": "what the policy needs is being compiled"})

    monkeypatch.setattr(ServiceClient, "waiting", waiting)
    job = typed("submit", "--hold", "--", "true").strip()
    told = typed("explain", job)
    assert "no more can be said now: what the policy needs is being compiled." in told
    typed("cancel", job)


def test_what_can_be_cancelled_is_and_what_is_not_is_named(typed):
    """As are hold and release."""
    first, array, last = (
        typed("submit", "-H", *more, "--", "true").strip() for more in ([], ["-a0-4"], [])
    )
    says = typed("cancel", first, "99999", f"{array}_[1-2,7]", last, status=1)
    assert "no job 99999" in says
    assert f"no job {array}_7" in says
    waited = typed("wait", first, last, f"{array}_[1-2]", status=1)
    assert f"job {first}: cancelled by" in waited
    states = {
        each["job_id"]: each["state"]
        for each in map(json.loads, typed("jobs", "--all", "--json").splitlines())
    }
    assert states[first] == states[last] == states[f"{array}_2"] == "cancelled"
    assert states[f"{array}_0"] == "held"
    assert f"job {first} is cancelled" in typed("release", first, f"{array}_0", status=1)
    typed("wait", f"{array}_0")
    typed("cancel", array)


def test_jobs_are_cancelled_by_name_state_and_user(typed):
    """As scancel does; together they mean the jobs that all of them mean."""
    kept = typed("submit", "-H", "-J", "kept", "--", "true").strip()
    gone = typed("submit", "-H", "-J", "gone", "-a", "1-2", "--", "true").strip()
    typed("cancel", "-n", "gone", "--state", "PD", "--me")
    typed("wait", gone, status=1)
    assert typed("jobs", "-j", gone, "-h").count("CA") == 2
    assert "PD" in typed("jobs", "-h", "-j", kept)
    typed("cancel", "-n", "kept", "-u", "nobody")
    assert "PD" in typed("jobs", "-h", "-j", kept)
    typed("cancel", kept)


def test_jobs_are_listed_as_squeue_lists_them(typed):
    """Members of an array that wait are a line; how many are left out is said."""
    array = typed(
        "submit", "-H", "-J", "listed", "-t", "90:00", "-a", "1,3-5", "--", "true"
    ).strip()
    line = typed("jobs", "-t", "PD", "-n", "listed", "-h").split()
    assert line[:2] == [f"{array}_[1,3-5]", "listed"]
    assert line[3:7] == ["PD", "0:00", "1:30:00", "1"]
    assert typed("jobs", "-r", "-h", "-j", array).count("\n") == 4
    assert typed("jobs", "--me", "-j", f"{array}_[1-3]", "-r", "-h").count("\n") == 2
    assert "foresail: 3 more:" in typed("jobs", "--limit", "1", "-n", "listed")
    assert "more:" not in typed("jobs", "--limit", "4", "-n", "listed")
    assert "JOBID" in typed("jobs", "--limit", "0", "-n", "listed")
    assert "no jobs" in typed("jobs", "-t", "R,CD", "-n", "listed")
    typed("cancel", array)


def test_a_job_that_failed_says_so(typed, tmp_path):
    """Its errors are in its log, its exit code is that of who waits for it."""
    (tmp_path / "job.sh").write_text("#!/bin/bash\necho out of $0 $*; echo oh >&2; exit 7\n")
    job = typed("submit", "job.sh", "A", "b c").strip()
    assert "exit code 7" in typed("wait", job, status=7)
    printed = typed("logs", job)
    assert "oh\n" in printed
    assert "A b c\n" in printed
    assert "bash" not in printed
    quiet = typed("submit", "-Q", "--wait", "--wrap", "kill -9 $$", status=1)
    assert "failed" in quiet
    silent = typed("submit", "-W", "--", "true").strip()
    assert "has written nothing" in typed("logs", silent)
    array = typed("submit", "-a", "1-3", "--wrap", "exit $SLURM_ARRAY_TASK_ID").strip()
    typed("wait", array, status=3)


def test_a_job_is_shown_as_understood_and_why_it_ended_at_last(typed, tmp_path):
    """Where its logs are, and of an array all jobs, or some of them."""
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -t 1-0 -n2 --begin=now+1hour -a 1-3%2 -d singleton\n")
    array = typed("submit", "-J", "shown", "job.sh").splitlines()[-1]
    told = typed("show", f"{array}_[1,3]").split("\n\n")
    assert [each.split()[1] for each in told] == [f"{array}_1", f"{array}_3"]
    assert "2 cpus for 2 tasks" in told[0]
    assert "a limit of 1 d, to run singleton, not before 20" in told[0]
    assert "2 of its array at once" in told[0]
    typed("cancel", array)
    assert typed("show", array).count("logs") >= 3
    failed = typed("submit", "-W", "--wrap", "/there/is/none", status=127).splitlines()
    shown = typed("show", next(each for each in failed if each.isdigit())).splitlines()
    assert any(line.startswith("why") and "exit code 127: " in line for line in shown)
    assert any(line.startswith("logs") and "foresail logs" in line for line in shown)


def test_files_for_what_is_written_are_the_users(typed, tmp_path):
    """By sbatch's patterns; where they are is said by who looks for logs."""
    (tmp_path / "in").mkdir()
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -o %x-%A_%a.out -e err.%a\npwd; echo oh >&2\n")
    array = typed("submit", "-a", "1-2", "-D", "in", "-W", "-Q", "-J", "written", "job.sh")
    assert array == ""
    (first, _) = sorted((tmp_path / "in").glob("written-*.out"))
    assert first.read_text() == f"{tmp_path / 'in'}\n"
    assert (tmp_path / "in" / "err.2").read_text() == "oh\n"
    job_id = first.stem.partition("-")[2]
    assert f"{first} and {tmp_path / 'in' / 'err.1'}" in typed("show", job_id)
    told = typed("logs", job_id)
    assert f"writes to {first}" in told
    assert f"writes to {tmp_path / 'in' / 'err.1'}" in told
    job = typed("submit", "-W", "-e", "oh", "--wrap", "printf %150000d 1; echo oh >&2")
    told = typed("logs", job.splitlines()[-1])
    assert told.startswith(" " * 149999 + "1foresail:")
    assert f"writes to {tmp_path / 'oh'}" in told


def test_a_users_own_file_is_read_where_the_service_is(typed, service, monkeypatch, tmp_path):
    """By whoever asks on this machine; a link to another's file, or what is no file, is named."""
    monkeypatch.setenv("FORESAIL_SERVICE", str(service.state / "socket"))
    monkeypatch.delenv("FORESAIL_TOKEN")
    words = ("-o", "both", "--wrap", "echo one; sleep 0.7; echo two >&2")
    job = typed("submit", *words).strip()
    assert typed("logs", "--follow", job) == "one\ntwo\n"
    apart = typed("submit", "-W", "-o", "o", "-e", "e", "--wrap", "echo out; echo err >&2").strip()
    assert typed("logs", apart) == "out\nerr\n"
    (tmp_path / "both").unlink()
    assert f"writes to {tmp_path / 'both'}" in typed("logs", job)
    os.mkfifo(tmp_path / "both")
    assert f"writes to {tmp_path / 'both'}" in typed("logs", job)
    if os.geteuid() == 0:
        others = tmp_path / "others"
        others.write_text("secret")
        os.chown(others, 65534, 65534)
        (tmp_path / "both").unlink()
        (tmp_path / "both").symlink_to(others)
        assert "secret" not in typed("logs", job)


def test_a_start_is_told_without_submitting(typed):
    before = typed("jobs", "--all", "-r")
    assert "would start: now" in typed("submit", "--test-only", "-n2", "--wrap", "true")
    assert typed("jobs", "--all", "-r") == before


def test_tasks_of_one_node_may_be_several_where_there_is_one(typed):
    job = typed("submit", "-N1", "--ntasks-per-node=2", "-W", "--wrap", "echo $FORESAIL_TASKS")
    assert typed("logs", job.strip()) == "2\n"


def test_ids_are_whole_at_a_glance(typed):
    """However long the names of jobs are."""
    array = typed("submit", "--hold", "--name", "n" * 90, "--array", "100000-100001", "--", "true")
    shown = typed("top")
    assert all(f"{array.strip()}_10000{each}" in shown for each in (0, 1))
    typed("cancel", array.strip())


def test_without_a_service_or_a_token_that_is_said(typed, monkeypatch):
    monkeypatch.setenv("FORESAIL_TOKEN", "foresail_wrong")
    assert "opens nothing" in typed("jobs", status=2)


def test_log_in_keeps_the_token_for_its_owner_alone(typed, service, monkeypatch, tmp_path):
    monkeypatch.delenv("FORESAIL_TOKEN")
    monkeypatch.delenv("FORESAIL_SERVICE")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "token").write_text(service.admin_token)
    said = typed("login", service.address, "--token-file", tmp_path / "token")
    assert "users are not kept apart" in said
    assert typed("jobs", "--all")
    monkeypatch.setenv("FORESAIL_TOKEN", "foresail_wrong")
    assert "opens nothing" in typed("jobs", status=2)  # at the address that is kept
    kept = list((tmp_path / "foresail").iterdir())
    assert all(each.stat().st_mode & 0o077 == 0 for each in kept)


def test_alone_it_shows_what_runs_and_is_next(service, monkeypatch, capsys):
    """One's own first; what others run is nameless to who may not see it; without one, help."""
    monkeypatch.setenv("FORESAIL_SERVICE", service.address)
    monkeypatch.setattr("sys.argv", ["foresail"])

    def seen_by(token, status=(0, None)):
        monkeypatch.setenv("FORESAIL_TOKEN", token)
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code in status
        return capsys.readouterr()

    ann, bob = (service.token(name, "user") for name in ("ann", "bob"))
    with service.client(bob) as client:
        runs = client.post("/v1/jobs", json={"command": "sleep 60", "cpus": 2, "name": "secret"})
    with service.client(ann) as client:
        waits = client.post("/v1/jobs", json={"command": "true", "name": "mine"})
    until(lambda: " R " in seen_by(ann).out)
    told = seen_by(ann).out.splitlines()
    assert "cpus 2 of 2 in use" in told[0]
    assert told[1].split()[:5] == ["JOBID", "NAME", "USER", "ST", "TIME"]
    own, other = told[2].split(), told[3].split()
    assert own[:4] == [waits.json()["jobs"][0]["job_id"], "mine", "ann", "PD"]
    assert other[:4] == ["-", "-", "-", "R"]
    assert "secret" not in "".join(told)
    assert "secret" in seen_by(service.admin_token).out
    wrong = seen_by("foresail_wrong", status=(2,))
    assert "[OPTIONS] COMMAND" in wrong.err
    assert "opens nothing" in wrong.err
    with service.client() as client:
        for answer in (runs, waits):
            client.post(f"/v1/jobs/{answer.json()['jobs'][0]['job_id']}/cancel")
