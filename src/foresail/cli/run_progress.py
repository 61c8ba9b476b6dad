"""The progress of ``foresail run``: a line per event, on a terminal above a line of totals."""

from __future__ import annotations

import math
import os
import sys
import time
from contextlib import AbstractContextManager
from typing import Final, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from foresail.control.loop import Controller
from foresail.live.run_directory import RunDirectory
from foresail.live.session import SessionResult
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job
from foresail.model.words import duration
from foresail.record.job_life import JobHistory

_REFRESH_SECONDS: Final = 0.25
_UNKNOWN_FROM_SECONDS: Final = 86_400.0
_STYLES: Final = {
    EndedBecause.COMPLETED: "green",
    EndedBecause.FAILED: "bold red",
    EndedBecause.LIMIT: "bold yellow",
}


def observer_for(run: RunDirectory) -> Lines:
    """Return an observer for standard output."""
    console = _PatientConsole(highlight=False, soft_wrap=True)
    return _LiveDisplay(run, console) if console.is_terminal else Lines(run, console)


class _PatientConsole(Console):
    """A console whose reader may leave: the run goes on in silence."""

    def on_broken_pipe(self) -> None:
        """Say nothing more, and let nothing that is still buffered complain at exit."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class Lines(AbstractContextManager["Lines"]):
    """A line for everything that happens, with the seconds since the session began."""

    refresh_seconds = math.inf

    def __init__(self, run: RunDirectory, console: Console) -> None:
        self._run = run
        self._console = console
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        """Clear nothing away."""

    def started(self, job: Job, attempt: int) -> None:
        """Say that an attempt starts, on how many cpus."""
        again = f", attempt {attempt}" if attempt > 1 else ""
        self._say("started", f"{job.job_id} ({_cpus(job.cpus)}{again})", "")

    def ended(self, job: Job, outcome: Outcome) -> None:
        """Say how an attempt ended, and where to look if it did not go well."""
        took = duration(outcome.runtime_seconds)
        because = outcome.ended_because
        why = f": {outcome.reason}" if outcome.reason else ""
        log = self._run.logs / f"{job.job_id}.out"
        sentence = {
            EndedBecause.COMPLETED: f"in {took}",
            EndedBecause.FAILED: f"after {took}{_exit(outcome.exit_code)}{why}; see {log}",
            EndedBecause.LIMIT: f"after {took}, its requested time; see {log}",
        }.get(because, f"after {took}: it waits to run again")
        word = {EndedBecause.LIMIT: "stopped", EndedBecause.PREEMPTED: "stopped"}
        style = _STYLES.get(because, "")
        self._say(word.get(because, because.value), f"{job.job_id} {sentence}", style)

    def withdrawn(self, job: Job, because: str) -> None:
        """Say that a job will not run."""
        self._say("cancelled", f"{job.job_id}: {because}", "bold red")

    def note(self, sentence: str) -> None:
        """Pass on a sentence."""
        self._say("note", sentence, "cyan")

    def refreshed(self, controller: Controller, jobs: JobHistory) -> None:
        """Lines are not drawn anew."""

    def _say(self, word: str, rest: str, style: str) -> None:
        at = f"{time.monotonic() - self._began:7.1f} s  "
        self._console.print(Text.assemble(at, (f"{word:<10}", style), rest))


class _LiveDisplay(Lines):
    """Lines above one of totals, which is redrawn as things change."""

    refresh_seconds = _REFRESH_SECONDS

    def __init__(self, run: RunDirectory, console: Console) -> None:
        super().__init__(run, console)
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._drawn = -math.inf

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def refreshed(self, controller: Controller, jobs: JobHistory) -> None:
        """Draw how things stand, at most four times a second."""
        now = time.monotonic()
        if now - self._drawn >= _REFRESH_SECONDS / 2:
            self._drawn = now
            self._live.update(Text(totals(controller, jobs, time.time()), "bold"), refresh=True)


def totals(controller: Controller, jobs: JobHistory, now: float) -> str:
    """One line: how many jobs are done, run and wait, and how long the rest may take."""
    ended, withdrawn = len(jobs.ended), len(jobs.withdrawn)
    running, waiting = len(controller.running), len(controller.pending)
    failed = sum(
        outcome.ended_because is not EndedBecause.COMPLETED for outcome in jobs.ended.values()
    )
    words = [f"{ended + withdrawn} of {len(jobs.submitted)} done"]
    words += [f"{failed + withdrawn} failed"] if failed + withdrawn else []
    words += [f"{running} running", f"{waiting} waiting"]
    left = remaining_seconds(controller, now)
    if 0 < left < _UNKNOWN_FROM_SECONDS:
        words.append(f"about {duration(round(left, 1))} left")
    return " · ".join(words)


def remaining_seconds(controller: Controller, now: float) -> float:
    """About how long the rest will take: its area spread over all cpus, or its longest job."""
    rest = [
        (max(0.0, job.expected_end_seconds - now), job.held.cpus)
        for job in controller.running.values()
    ]
    if not controller.draining:
        rest += [(pending.planned_seconds, pending.job.cpus) for pending in controller.pending]
    area = sum(seconds * cpus for seconds, cpus in rest)
    longest = max((seconds for seconds, _ in rest), default=0.0)
    return max(longest, area / controller.cluster.total.cpus)


def summarise(result: SessionResult, run: RunDirectory) -> str:
    """Say how the run stands at the end of a session, in a few lines."""
    counts = {
        "completed": result.count(EndedBecause.COMPLETED),
        "failed": result.count(EndedBecause.FAILED),
        "stopped at its requested time": result.count(EndedBecause.LIMIT),
        "cancelled": len(result.withdrawn),
        "left": len(result.left),
    }
    words = [f"{count} {word}" for word, count in counts.items() if count]
    lines = [", ".join(words) or "no jobs"]
    table = result.schedule.jobs
    if not table.is_empty():
        span = float(table["end_seconds"].max() or 0.0)  # type: ignore[arg-type]
        runtimes = table["end_seconds"] - table["start_seconds"]
        used = float((runtimes * table["cpus"]).sum())
        processors = result.schedule.meta.processors
        share = used / (span * processors) if span > 0 else 0.0
        lines[0] += f" in {duration(span)}; {_cpus(processors)}, {share:.0%} of them busy"
    lines.append(f"logs, events and schedule in {run.path}")
    if result.left:
        lines.append(f"go on with: foresail run --resume {run.path}")
    return "\n".join(lines)


def _cpus(count: float) -> str:
    return f"{count:g} cpu" if count == 1 else f"{count:g} cpus"


def _exit(code: int | None) -> str:
    if code is None:
        return ""
    return f" with exit code {code}" if code >= 0 else f" by signal {-code}"
