"""A disk without room while a job begins and while it ends: it is waited for, and that is said."""

import subprocess
import time

import pytest

from foresail.scenario import by_daemon
from standins import RecordingObserver, SmallPolicy, command, new_run, supervise


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs to mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_job_that_waits_for_room_is_told_once_and_not_counted_as_running(small_disk, monkeypatch):
    """Each time, the filler is removed once it is said; the wait is no part of the runtime."""
    monkeypatch.setattr(by_daemon, "parse_policy", lambda text: SmallPolicy())
    filler = small_disk / "filler"
    fill = f"cat /dev/zero > {filler} 2> /dev/null; true"
    room_since = []

    class Remover(RecordingObserver):
        def note(self, sentence):
            super().note(sentence)
            room_since.append(time.time())
            filler.unlink()

    shown = Remover(on_start=lambda job: subprocess.run(fill, shell=True, check=True))
    run = new_run(small_disk / "run", [command("only", ["sh", "-c", fill])])
    result = supervise(run, shown)
    assert result.exit_status == 0
    begins, ends = shown.sentences
    assert begins == (
        "only has been started but cannot write its claim: No space left on device; "
        "it begins as soon as there is room"
    )
    assert ends == (
        "only has ended but cannot record that: No space left on device; "
        "it counts as ended as soon as there is room"
    )
    (outcome,) = shown.ends
    assert room_since[0] <= outcome.start_seconds <= outcome.end_seconds <= room_since[1]
