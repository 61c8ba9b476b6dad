"""A session of a run: one daemon from the lock to the table of what it has done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeAlias

import polars as pl

from foresail.control.loop import Controller
from foresail.live.cluster_contact import ClusterContact
from foresail.live.cluster_plugin import ClusterPlugin, RunContext
from foresail.live.command_job import persons_environment
from foresail.live.daemon import Daemon
from foresail.live.run_directory import LearnedFile, RunDirectory, RunHistory
from foresail.live.run_log import recover
from foresail.live.source import LineInput, Observer, Submissions
from foresail.model.cluster import Cluster
from foresail.model.event import EndedBecause, Outcome
from foresail.model.short_form import part_of
from foresail.record.records import EventLog, Manifest
from foresail.record.schedule import table_of_run
from foresail.traces.schedule import Schedule, ScheduleMeta, write_schedule

BuildController: TypeAlias = Callable[[EventLog], Controller]
"""Makes a run's controller, fresh, writing to a log."""

_MOST_MISTAKES: Final = 5
"""Calls of its cluster in a row, 15 s in all, that a run lets fail at one place of a plug-in."""
_TIMES = ("submit_seconds", "start_seconds", "end_seconds", "eligible_seconds")


@dataclass(frozen=True, slots=True)
class SessionResult:
    """State of a run when a session ends."""

    ended: dict[str, Outcome]
    """The last outcome of every job that has finished, by id."""
    withdrawn: dict[str, str]
    """Reasons for which jobs will never run, by id."""
    left: tuple[str, ...]
    """Ids of jobs that a resumed session would still run."""
    refused_lines: int
    """Lines of standard input that were no jobs."""
    schedule: Schedule
    """Schedule of all attempts; times in seconds from the first submission."""

    def count(self, because: EndedBecause) -> int:
        """Return how many jobs ended for this reason."""
        return sum(outcome.ended_because is because for outcome in self.ended.values())

    @property
    def exit_status(self) -> int:
        """0 all completed, 1 some did not, 2 input was refused, 130 interrupted with work left."""
        if self.left:
            return 130
        if self.withdrawn or self.count(EndedBecause.COMPLETED) < len(self.ended):
            return 1
        return 2 if self.refused_lines else 0


def supervise(
    run: RunDirectory,
    begin: Callable[[Cluster], tuple[Manifest, BuildController]],
    observer: Observer,
    lines: LineInput | None,
    *,
    engine: str,
) -> SessionResult:
    """Work on a run until it is done or interrupted; leaves ``schedule.parquet`` in its directory.

    ``begin`` makes the first record of the run's log and its controller, on its cluster; ``engine``
    is what the schedule says that has carried it out.

    Raises ``InputError`` if another supervisor is at work, or what is there cannot be used.
    """
    with run.locked():
        run.drop_incomplete_line()
        settings = run.settings()
        source = Submissions(run, lines, observer.note)
        cluster: ClusterPlugin = part_of("cluster", settings.cluster).build()
        context = RunContext(
            run.attempts,
            run.logs,
            source.commands,
            observer.note,
            environment=persons_environment(),
        )
        adapter = cluster.connect(context)
        manifest, build = begin(adapter.cluster)
        controller, log = recover(run.events, manifest, build)
        path = None if settings.history is None else Path(settings.history)
        history = RunHistory(path, observer.note)
        learned = LearnedFile(run, observer.note)
        contact = ClusterContact(adapter, _MOST_MISTAKES)
        daemon = Daemon(controller, log, contact, source, history, learned, observer)
        daemon.work()
        schedule = _schedule(daemon, run, manifest.policy, engine)
        write_schedule(schedule, run.schedule)
        return SessionResult(
            ended=dict(daemon.jobs.ended),
            withdrawn=dict(daemon.jobs.withdrawn),
            left=daemon.left,
            refused_lines=source.refused_lines,
            schedule=schedule,
        )


def _schedule(daemon: Daemon, run: RunDirectory, policy: str, engine: str) -> Schedule:
    users = {job.job_id: job.user for job in run.jobs()}
    table = table_of_run(daemon.jobs).with_columns(
        pl.col("job_id").replace_strict(users, return_dtype=pl.String).alias("user")
    )
    origin = min((job.submit_seconds for job in daemon.jobs.submitted.values()), default=0.0)
    controller = daemon.controller
    return Schedule(
        jobs=table.with_columns(pl.col(name) - origin for name in _TIMES),
        meta=ScheduleMeta(
            policy=policy,
            processors=controller.cluster.total.cpus,
            workload=run.settings().source,
            conventions=controller.conventions.name,
            counters={
                **asdict(controller.counters),
                "never_started": len(daemon.left) + len(daemon.jobs.withdrawn),
            },
            manifest={"origin_unix_seconds": origin, "run_directory": run.path.name},
            engine=engine,
        ),
    )
