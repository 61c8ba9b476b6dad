"""Logs have a limit, of their own and by what is left of the disk; both streams are in one."""

import subprocess
import time

import pytest

from foresail.live.accounts import log_is_cut, read_log
from foresail.live.command_job import CommandJob
from foresail.model.errors import InputError
from local_runs import LocalRun, mounted


class Machine(LocalRun):
    """A run whose jobs do nothing but write."""

    def wrote(self, line, attempt=1):
        """The end of a job, and its log."""
        outcome = self.ran(CommandJob("1", "job", line, str(self.folder)), attempt)
        return outcome, read_log(self.folder / "logs", None, "1.out", 0, 10**7)

    def is_cut(self, attempt=1):
        return log_is_cut(self.folder / "attempts", "1", attempt)


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path, log_bytes=1_000_000)
    yield machine
    machine.adapter.close()


@pytest.fixture
def small_disk(tmp_path):
    yield from mounted(tmp_path / "disk", "8m")


def test_both_streams_are_in_one_log_in_the_order_in_which_they_were_written(machine):
    _, log = machine.wrote("for n in 1 2 3; do echo out $n; echo err $n >&2; done")
    assert log.split(b"\n")[:3] == [b"out 1", b"err 1", b"out 2"]
    assert not machine.is_cut()


def test_beyond_its_limit_a_log_keeps_beginning_and_end_and_says_so(machine):
    outcome, log = machine.wrote("echo first; yes | head -c 5000000; echo last")
    assert outcome.exit_code == 0
    assert len(log) < 1_000_500
    assert log.startswith(b"first\ny\n")
    assert log.endswith(b"y\nlast\n")
    assert b"\nforesail: this log is cut here: a log may have 1,000,000 bytes" in log
    said = [line for line in log.splitlines() if b"were left out" in line]
    left_out = int(said[0].split()[1].replace(b",", b""))
    kept = log.count(b"y\n") * 2
    assert abs(left_out + kept - 5_000_000) <= 2  # a line may be cut in two
    assert machine.is_cut()


def test_a_log_of_nearly_its_limit_is_whole(machine):
    _, log = machine.wrote("head -c 934000 /dev/zero")
    assert (len(log), machine.is_cut()) == (934_000, False)


def test_the_limit_is_of_all_attempts_together(machine):
    machine.wrote("head -c 900000 /dev/zero")
    _, log = machine.wrote("head -c 900000 /dev/zero", attempt=2)
    assert len(log) < 1_000_500
    assert (machine.is_cut(), machine.is_cut(2)) == (False, True)


def test_a_log_leaves_room_on_the_disk_and_its_job_ends_as_it_would(small_disk):
    machine = Machine(small_disk)
    outcome, log = machine.wrote("head -c 20000000 /dev/zero; echo end; exit 3")
    machine.adapter.close()
    assert outcome.exit_code == 3
    assert b"cut here: hardly any room is left on the disk" in log
    assert log.endswith(b"end\n")
    room = subprocess.run(["df", "--output=avail", small_disk], capture_output=True, check=True)
    # KiB: a twentieth of the disk (409), less one read (256), the end of the log (64) and records
    assert int(room.stdout.split()[1]) > 409 - 256 - 64 - 9


def test_a_full_disk_keeps_no_job_waiting_while_it_writes(small_disk):
    """It goes on, and what it writes is lost; its end is recorded once there is room."""
    machine = Machine(small_disk)
    line = "head -c 9000000 /dev/zero > filler; echo lost; rm filler; echo kept"
    outcome, log = machine.wrote(line)
    machine.adapter.close()
    assert outcome.exit_code == 0
    assert b"cut here: no room" in log or b"kept" in log


def test_what_a_job_leaves_behind_in_its_pipe_is_kept(machine):
    _, log = machine.wrote("head -c 200000 /dev/zero; exec true")
    assert len(log) == 200_000


def test_who_holds_the_pipe_longer_keeps_no_job_from_its_end(tmp_path):
    machine = Machine(tmp_path, cgroups=False)
    begin = time.monotonic()
    outcome, _ = machine.wrote("setsid sleep 5 & echo here")
    machine.adapter.close()
    assert outcome.exit_code == 0
    assert time.monotonic() - begin < 4.0


@pytest.mark.parametrize("made", ["symlink_to", "hardlink_to"])
def test_a_link_to_a_file_of_the_services_own_is_not_read_as_a_log(machine, made):
    """Where all jobs run as the service's account, that can make one to whatever it has."""
    secret = machine.folder / "secret"
    secret.write_text("secret")
    getattr(machine.folder / "logs" / "1.out", made)(secret)
    with pytest.raises(InputError, match="is no log"):
        read_log(machine.folder / "logs", None, "1.out", 0, 100)
