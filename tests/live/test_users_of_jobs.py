"""Jobs of two accounts on a service that root runs: whatever they try, each is kept to itself."""

import json
import os
import shlex
import signal
import socket
import time

import psutil
import pytest

from foresail.live.accounts import account_of, read_log
from foresail.live.command_job import CommandJob
from foresail.model.decision import Preempt
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause
from local_runs import LocalRun
from machine_accounts import ann_and_bob, common_folder  # noqa: F401 - fixtures


class Machine(LocalRun):
    """A run as root, whose jobs run as those who own them."""

    def __init__(self, folder):
        for name, mode in (("attempts", 0o700), ("logs", 0o711)):
            (folder / name).mkdir()
            (folder / name).chmod(mode)
        super().__init__(folder, account_of_job=lambda job: account_of(job.user), grace_seconds=0.3)

    def begin(self, user, command, job_id="1", **fields):
        fields = {"directory": "/", **fields}
        self.start(CommandJob(job_id, "job", command, user=user, **fields))

    def written(self, user, job_id="1"):
        return read_log(self.folder / "logs", account_of(user), f"{job_id}.out", 0, 1_000_000)

    def did(self, user, command, job_id="1", **fields):
        """The exit code of a job, and what it has written."""
        self.begin(user, command, job_id, **fields)
        return self.outcome().exit_code, self.written(user, job_id).decode()


@pytest.fixture
def machine(ann_and_bob, common_folder):  # noqa: F811
    machine = Machine(common_folder)
    yield machine
    machine.adapter.close()


@pytest.fixture
def ann(ann_and_bob):  # noqa: F811
    return ann_and_bob[0]


@pytest.fixture
def bob(ann_and_bob):  # noqa: F811
    return ann_and_bob[1]


def test_a_job_is_its_users_in_every_way(machine, ann, monkeypatch):
    """Ids, groups, capabilities, variables, limits, and no descriptor but the three."""
    for name in ("PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "FORESAIL_TOKEN"):
        monkeypatch.setenv(name, "secret")
    line = (
        "grep -E '^(Uid|Gid|Groups|Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)' /proc/self/status;"
        "umask; ulimit -c; ulimit -n; cat /proc/self/oom_score_adj; ls -x /proc/$$/fd; env"
    )
    with socket.socket() as inherited:
        inherited.set_inheritable(True)
        code, written = machine.did(ann.name, line, environment={"MINE": "1"})
    assert code == 0
    said = dict(each.split(":", 1) for each in written.splitlines()[:8])
    assert set(said["Uid"].split()) == {str(ann.uid)}
    assert set(said["Gid"].split()) == {str(ann.gid)}
    assert set(said["Groups"].split()) == set(map(str, ann.groups))
    assert all(int(said[f"Cap{each}"], 16) == 0 for each in ("Inh", "Prm", "Eff", "Amb"))
    assert said["NoNewPrivs"].strip() == "0"
    umask, core, files, score, descriptors, *variables = written.splitlines()[8:]
    assert (umask, core, files, score) == ("0022", "0", "1024", "0")
    assert set(descriptors.split()) <= {"0", "1", "2", "10", "255"}  # the latter: its script
    environment = dict(each.split("=", 1) for each in variables)
    assert (environment["HOME"], environment["USER"], environment["MINE"]) == ("/", ann.name, "1")
    assert (environment["LOGNAME"], environment["SHELL"]) == (ann.name, "/bin/sh")
    assert "secret" not in written


@pytest.mark.parametrize(
    "attack",
    [
        "cat {folder}/admin-token",
        "ls {folder}",
        "ls {folder}/attempts",
        "ls {folder}/logs",
        "cat {folder}/logs/{bob}/9.out",
        "ls {folder}/logs/{bob}",
        "cat /proc/$PPID/environ",
        "cat /proc/$PPID/mem",
        "ls /proc/$PPID/fd",
        "kill -9 $PPID",
        "kill -STOP $PPID",
        "echo > {folder}/attempts/1.1.status",
        "echo > {folder}/logs/mine",
        "mv {folder}/logs/{ann} {folder}/logs/elsewhere",
        "{python} -c 'import os; os.setuid(0)'",
        "{python} -c 'import os; os.setgroups([0])'",
        "{python} -c 'import os; os.chown(\"{folder}/logs/{ann}\", 0, 0)'",
        "{python} -c 'import ctypes, sys; c = ctypes.CDLL(None); "
        "sys.exit(c.ptrace(16, int(sys.argv[1]), 0, 0) != 0)' $PPID",
        "mkdir /sys/fs/cgroup/foresail-of-ann",
        "echo $PPID > /sys/fs/cgroup/cgroup.procs",
    ],
)
def test_it_gets_at_nothing_that_is_not_its_users(machine, ann, bob, attack):
    (machine.folder / "admin-token").write_text("secret-of-root")
    (machine.folder / "admin-token").chmod(0o600)
    machine.did(bob.name, "echo secret-of-bob", "9")
    words = {"folder": machine.folder, "ann": ann.name, "bob": bob.name}
    line = attack.format(**words, python="/usr/bin/env python3")
    code, written = machine.did(ann.name, line)
    assert code not in (0, 127, -9), written
    assert "secret" not in written


def test_its_shim_shows_no_secret_and_cannot_be_ended_by_it(machine, ann, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "secret")
    machine.begin(ann.name, "echo $PPID; sleep 30")
    until = time.monotonic() + 30
    while not (found := machine.written(ann.name)) and time.monotonic() < until:
        time.sleep(0.01)
    shim = psutil.Process(int(found))
    living = [each for each in psutil.Process().children() if each.status() != "zombie"]
    ours = [each for each in living if "job_shim" in " ".join(each.cmdline())]
    assert len(ours) == 1
    for each in (shim, *ours):
        assert each.environ() == {}
    assert {each.path for each in shim.open_files()} <= {
        str(machine.folder / "logs" / ann.name / "1.out")
    }
    machine.adapter.carry_out(Preempt("1"), time.time())
    assert machine.outcome().ended_because is EndedBecause.PREEMPTED


def test_a_folder_that_its_user_may_not_enter_is_its_own_fault_alone(machine, ann, bob):
    (machine.folder / "closed").mkdir(mode=0o700)
    code, written = machine.did(ann.name, "true", directory=str(machine.folder / "closed"))
    assert code == 126
    assert "Permission denied" in written
    assert machine.did(bob.name, "echo fine", "2") == (0, "fine\n")


def test_whom_the_machine_does_not_know_runs_nothing(machine):
    machine.begin("nobody-of-this-name", "touch /tmp/never")
    outcome = machine.outcome()
    assert (outcome.ended_because, outcome.exit_code) == (EndedBecause.FAILED, None)
    assert "no such account" in machine.notes[0]


def test_what_it_writes_to_opens_again(machine, ann):
    """A pipe of root's would be closed to ``/dev/stderr``, which many scripts write to."""
    assert machine.did(ann.name, "echo a > /dev/stdout; echo b > /dev/stderr") == (0, "a\nb\n")


def test_its_script_is_its_own_and_so_is_its_log(machine, ann):
    _, written = machine.did(ann.name, 'stat -c "%U %a" "$0"; ps -o args= -p $$')
    owner, shown = written.splitlines()
    assert owner == f"{ann.name} 600"
    assert shown.split() == ["/bin/sh", f"{machine.folder}/logs/{ann.name}/1.1.script"]
    log = (machine.folder / "logs" / ann.name / "1.out").stat()
    assert (log.st_uid, log.st_mode & 0o777) == (ann.uid, 0o600)


def test_a_linked_log_is_written_with_its_users_rights(machine, ann):
    """The second attempt would otherwise write, as root, what the first has chosen."""
    roots = machine.folder / "roots"
    roots.write_text("untouched")
    log = machine.folder / "logs" / ann.name / "2.out"
    assert machine.did(ann.name, f"ln -s {shlex.quote(str(roots))} {log}")[0] == 0
    machine.begin(ann.name, "echo written", "2")
    assert machine.outcome().exit_code == 127
    assert "Permission denied" in machine.notes[0]
    assert roots.read_text() == "untouched"


@pytest.mark.parametrize(
    "made",
    ["ln -s {roots} 1.out", "mkfifo 1.out", "mkdir 1.out", "ln {roots} 1.out", "mv bobs 1.out"],
)
def test_what_is_no_plain_file_of_its_users_is_not_read_as_a_log(machine, ann, bob, made):
    roots = machine.folder / "roots"
    roots.write_text("secret")
    folder = machine.folder / "logs" / ann.name
    folder.mkdir()
    os.chown(folder, ann.uid, ann.gid)
    (folder / "bobs").write_text("secret")
    os.chown(folder / "bobs", bob.uid, bob.gid)
    assert os.system(f"cd {folder} && {made.format(roots=roots)}") == 0
    with pytest.raises(InputError, match="is no log"):
        machine.written(ann.name)


def test_a_linked_folder_of_logs_is_not_followed(machine, ann):
    (machine.folder / "logs" / ann.name).symlink_to(machine.folder)
    (machine.folder / "1.out").write_text("secret")
    os.chown(machine.folder / "1.out", ann.uid, ann.gid)
    with pytest.raises(InputError, match="is no log"):
        machine.written(ann.name)


def test_a_limit_holds_whatever_it_does_to_its_own(machine, ann):
    """Signals to its processes are root's; what it claims to be in its cgroup does not matter."""
    machine.begin(ann.name, "trap '' TERM HUP; while :; do sleep 1; done", requested_seconds=0.3)
    assert machine.outcome().ended_because is EndedBecause.LIMIT
    assert json.loads((machine.folder / "attempts" / "1.1.status").read_text())["why"] == "limit"


def test_what_is_left_of_a_job_whose_watcher_was_killed_is_taken_away(machine, ann):
    machine.begin(ann.name, "echo $PPID; exec sleep 300")
    until = time.monotonic() + 30
    while not (found := machine.written(ann.name)) and time.monotonic() < until:
        time.sleep(0.01)
    (command,) = psutil.Process(int(found)).children()
    os.kill(int(found), signal.SIGKILL)
    assert machine.outcome().ended_because is EndedBecause.LOST
    assert not command.is_running() or command.status() == psutil.STATUS_ZOMBIE
    assert not list((machine.folder / "logs" / ann.name).glob("*.script"))


@pytest.mark.parametrize("name", ["timerslack_ns", "attr/exec"])
def test_its_output_is_nothing_that_changes_its_shim(machine, ann, name):
    """Files of ``/proc/self`` are the shim's where the shim opens them."""
    code, written = machine.did(ann.name, "echo 1", output=f"/proc/self/{name}")
    assert (code, "not a plain file" in written or "Permission denied" in written) == (127, True)
