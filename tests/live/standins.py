"""What the tests of the local cluster run under: a small policy, a silent observer, a driver.

Run as a script it is one supervisor: ``python standins.py RUN_DIR [BYTES]`` works on a run
directory under the policy below (which imports quickly), and exits as ``foresail run`` would.
"""

import math
import resource
import sys
from dataclasses import dataclass, field
from pathlib import Path

from foresail.control.loop import Controller
from foresail.distributions.basic import Point
from foresail.live import run_log
from foresail.live.command_job import CommandJob
from foresail.live.run_directory import RunDirectory, RunSettings
from foresail.live.session import SessionResult
from foresail.live.twin import differences
from foresail.model.decision import Decision, Placement, Start
from foresail.model.errors import ForesailError
from foresail.model.protocols import Predictor, Scheduler
from foresail.record.log_text import read_log
from foresail.scenario import by_daemon


class FirstFit(Scheduler):
    """Starts whatever fits, in order of arrival."""

    def decide(self, view):
        free = view.free["all"].cpus
        starts = []
        for pending in view.pending:
            if pending.job.cpus <= free:
                free -= pending.job.cpus
                starts.append(Start(pending.job.job_id, Placement.whole("all", pending.job.tasks)))
        return Decision(tuple(starts))


class LastRuntime(Predictor):
    """Predicts the runtime that a job of the same user had last, a tenth of a second at first."""

    def __init__(self):
        self.last = {}

    def predict(self, job, now):
        return Point(self.last.get(job.user, 0.1))

    def observe(self, job, outcome):
        self.last[job.user] = max(outcome.runtime_seconds, 1e-3)


class Double:
    """The next estimate is twice the one before."""

    def correct(self, job, prediction, initial, current, count):
        return 2.0 * current


class SmallPolicy:
    text = "small"
    starts_tasks = needs_truth = False

    def build(self):
        return FirstFit(), LastRuntime(), Double()


def use_small_policy(monkeypatch):
    """Have runs decided by the small policy, whatever theirs is called."""
    monkeypatch.setattr(by_daemon, "parse_policy", lambda text: SmallPolicy())


def repeats(run):
    """Whether the log of a run brings the same decisions again."""
    build = lambda manifest: Controller(manifest.cluster, *SmallPolicy().build())  # noqa: E731
    return not list(differences(read_log(run.events), build))


@dataclass
class RecordingObserver:
    """An observer that keeps what it is shown."""

    refresh_seconds: float = math.inf
    starts: list = field(default_factory=list)
    ends: list = field(default_factory=list)
    withdrawals: list = field(default_factory=list)
    sentences: list = field(default_factory=list)
    on_start: object = None

    def started(self, job, attempt):
        self.starts.append((job.job_id, attempt))
        if self.on_start is not None:
            self.on_start(job)

    def ended(self, job, outcome):
        self.ends.append(outcome)

    def withdrawn(self, job, because):
        self.withdrawals.append((job.job_id, because))

    def note(self, sentence):
        self.sentences.append(sentence)

    def refreshed(self, controller, jobs):
        pass


def command(job_id, line, **fields):
    """A job that runs one line of shell in the root directory."""
    return CommandJob(job_id, job_id, line, "/", user="tester", **fields)


def new_run(path: Path, jobs, *, cpus=2, grace=0.5, history=None, policy="small") -> RunDirectory:
    """A run directory with these jobs, nothing started."""
    settings = RunSettings(
        "test",
        None,
        policy,
        f"local(cpus={cpus},grace_seconds={grace!r})",
        history and str(history),
    )
    return RunDirectory.create(path, settings, jobs)


def supervise(run: RunDirectory, observer, lines=None) -> SessionResult:
    """One session of a run, as ``foresail run`` has it."""
    return by_daemon.run_commands(run, observer, lines)


def supervise_here(run: Path, most_bytes: int | None) -> int:
    """Be one supervisor, with files of so many bytes at most; returns the exit status."""
    by_daemon.parse_policy = lambda text: SmallPolicy()
    run_log.SNAPSHOT_EVERY = 20
    if most_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    try:
        return supervise(RunDirectory.open(run), RecordingObserver()).exit_status
    except ForesailError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(supervise_here(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else None))
