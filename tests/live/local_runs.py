"""Runs of single jobs on the adapter to this machine, without a daemon."""

import subprocess
import time

import pytest

from foresail.live.adapters.local.cluster import LocalCluster, LocalParameters
from foresail.live.cluster_plugin import RunContext
from foresail.model.decision import Placement, Start
from until import until


class LocalRun:
    """Adapters to this machine, one after the other, and the jobs of a run in a folder."""

    def __init__(self, folder, identity="", account_of_job=None, **parameters):
        self.folder = folder
        self.commands, self.notes, self.samples = {}, [], []
        for name in ("attempts", "logs"):
            (folder / name).mkdir(exist_ok=True)
        self.context = RunContext(
            folder / "attempts",
            folder / "logs",
            self.commands,
            self.notes.append,
            self.samples.extend,
            identity=identity,
            account_of_job=account_of_job,
        )
        self._parameters = LocalParameters(**{"cpus": 2, **parameters})
        self.connect()

    def connect(self):
        """Another adapter, after the former one was closed."""
        self.adapter = LocalCluster(self._parameters).connect(self.context)
        return self.adapter

    def start(self, job, attempt=1):
        """Start an attempt of a job."""
        self.commands[job.job_id] = job
        start = Start(job.job_id, Placement.whole("all", job.cpus), attempt)
        self.adapter.carry_out(start, time.time())
        return start

    def outcome(self, now=time.time, seconds=60.0):
        """The end of what runs."""
        return until(lambda: self.adapter.reports(now()), seconds)[0].outcome

    def ran(self, job, attempt=1):
        """The end of a job that is started now."""
        self.start(job, attempt)
        return self.outcome()

    def log(self, job_id="1"):
        """What a job has written."""
        return (self.folder / "logs" / f"{job_id}.out").read_text()


def mounted(disk, size):
    """A disk of so many bytes at a place, for as long as a test takes it; skips without rights."""
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs to mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)
