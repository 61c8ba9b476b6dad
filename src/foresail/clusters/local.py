"""The local cluster: real commands on this machine's cpus, driven by the one loop.

Facts are made durable in the order in which they must survive. An accepted job is on disk before
the controller hears of it; a step of the controller is on disk before its instructions are carried
out; a keeper claims its attempt on disk before its command runs, and records the end before it
goes. Whatever is killed at whatever moment, the next supervisor finds out what is true from these.
"""

from __future__ import annotations

import math
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, Protocol

from foresail.clusters.attempts import Attempt, Status
from foresail.clusters.history import HistoryFile, key_of
from foresail.clusters.learned import LearnedFile
from foresail.clusters.nursery import Nursery
from foresail.clusters.recovery import recover
from foresail.clusters.run_directory import RunDirectory, RunSettings
from foresail.clusters.slots import CpuSlots, machine_cpus
from foresail.control.jobs_fold import JobsFold
from foresail.control.log import EventLog
from foresail.control.loop import Controller
from foresail.control.records import Manifest
from foresail.model.decision import Instruction, Preempt, Start, Withdraw
from foresail.model.errors import InputError
from foresail.model.event import Ended, EstimateExpired, Event, HistoryOutcome, Submitted, Tick
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome
from foresail.traces.jobs_file import CommandJob, InvalidJobs, JobLines

MOST_LOSSES: Final = 3
"""A job whose attempts were lost so many times is given up as failed."""

_LONGEST_WAIT_SECONDS: Final = 60.0


class Observer(Protocol):
    """Who is told what happens, while it happens."""

    refresh_seconds: float
    """How often ``refreshed`` is wanted though nothing happens; infinite for never."""

    def started(self, job: CommandJob, attempt: int) -> None:
        """An attempt of a job starts."""
        ...

    def ended(self, job: CommandJob, outcome: Outcome) -> None:
        """An attempt of a job has ended."""
        ...

    def withdrawn(self, job: CommandJob, because: str) -> None:
        """A job will never run."""
        ...

    def told(self, sentence: str) -> None:
        """Something else that a person should know."""
        ...

    def refreshed(self, controller: Controller, jobs: JobsFold) -> None:
        """How things stand now."""
        ...


@dataclass(frozen=True, slots=True)
class LineInput:
    """Jobs that arrive as lines while the run goes on: a descriptor, and who checks the lines."""

    descriptor: int
    reader: JobLines


class UnixClock:
    """Unix time that never goes backwards."""

    def __init__(self, not_before: float) -> None:
        self._last = not_before

    def now(self) -> float:
        """Seconds; at least those of the call before."""
        self._last = max(self._last, time.time())
        return self._last


class LocalCluster:
    """One supervisor of one run.

    Parameters
    ----------
    run
        The run's directory, locked.
    manifest
        What the event log begins with.
    build
        Makes the run's controller, fresh, writing to a log.
    observer
        Who is told what happens.
    lines
        Where further jobs come from.

    Raises
    ------
    InputError
        If what an earlier supervisor left cannot be used.
    """

    def __init__(
        self,
        run: RunDirectory,
        manifest: Manifest,
        build: Callable[[EventLog], Controller],
        observer: Observer,
        lines: LineInput | None = None,
    ) -> None:
        settings = run.settings()
        self.controller, self._log = recover(run.events, manifest, build)
        self.jobs = self._log.jobs
        self.refused_lines = 0
        self._run = run
        self._settings: RunSettings = settings
        self._observer = observer
        self._clock = UnixClock(self.jobs.now)
        self._commands = {job.job_id: job for job in run.jobs()}
        self._nursery = Nursery()
        self._slots = CpuSlots(settings.cpus, machine_cpus())
        self._history = None if settings.history is None else HistoryFile(Path(settings.history))
        learned = settings.learned
        self._learned = None if learned is None else LearnedFile(run, Path(learned))
        self._attempts: dict[str, Attempt] = {}
        self._watched: dict[int, str] = {}
        self._unspawned: dict[str, str] = {}
        self._poll = select.poll()
        self._lines = lines
        self._line_count = 0
        self._unfinished_line = b""
        self._interrupts = 0
        self._stopping = False

    @property
    def left(self) -> tuple[str, ...]:
        """Ids of the jobs that are not done with."""
        return tuple(pending.job.job_id for pending in self.controller.pending)

    def work(self) -> None:
        """Run until nothing is left to do, or until drained or stopped by signals.

        The first SIGINT drains (nothing new starts, what runs runs to its end); a second one, or a
        SIGTERM, stops what runs too, which counts as not done.
        """
        with closing(self._log), closing(self._nursery), self._woken_by_signals() as wake_up:
            self._poll.register(wake_up, select.POLLIN)
            if self._lines is not None:
                self._poll.register(self._lines.descriptor, select.POLLIN)
            self._step(self._opening_events())
            while not self._is_finished():
                self._step(self._wait(wake_up))
                if self._learned is not None and self._learned.is_due:
                    self._keep_learned(self._learned)
            if self._learned is not None:
                self._keep_learned(self._learned)

    def _is_finished(self) -> bool:
        if self._attempts or self._unspawned:
            return False
        return self.controller.draining or (self._lines is None and not self.jobs.ticks)

    def _step(self, events: Sequence[Event]) -> None:
        """Hand events to the controller and carry out its answer."""
        if events:
            now = events[-1].time
            instructions = self.controller.step(now, events)
            for event in events:
                if isinstance(event, Ended):
                    self._tell_end(event)
            for instruction in instructions:
                self._carry_out(instruction)
        self._observer.refreshed(self.controller, self.jobs)

    def _tell_end(self, ended: Ended) -> None:
        outcome = ended.outcome
        self._observer.ended(self._commands[outcome.job_id], outcome)
        self._remember(ended.time, self.jobs.submitted[outcome.job_id], outcome)

    def _remember(self, now: float, job: Job, outcome: Outcome) -> None:
        """Add to the history; a run does not fail because that cannot be written."""
        if self._history is not None:
            try:
                self._history.add(now, job, outcome)
            except InputError as error:
                self._history = None
                self._observer.told(f"no more history is kept: {error}")

    def _keep_learned(self, learned: LearnedFile) -> None:
        """Write what the predictor knows; a run does not fail because that cannot be written."""
        try:
            learned.keep(self.controller.predictor)
        except InputError as error:
            self._learned = None
            self._observer.told(f"what was learned is not kept: {error}")

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case Start(job_id):
                self._start(job_id)
            case Preempt(job_id):
                self._attempts[job_id].stop()
            case Withdraw(job_id, because):
                self._observer.withdrawn(self._commands[job_id], because)

    # --- starting, and finding again what an earlier supervisor started

    def _opening_events(self) -> list[Event]:
        """What happened before this supervisor came."""
        now = self._clock.now()
        events: list[Event] = []
        if self._history is not None:
            latest = self._recall(self._history)
            if self.jobs.submitted:
                known = {key_of(each.job, each.outcome) for each in latest}
                for past in self.jobs.past:
                    if key_of(past.job, past.outcome) not in known:
                        self._remember(now, past.job, past.outcome)
            elif not self._run.learned_before.exists():  # or it would be learned twice
                events += latest
        if self.controller.draining:
            self.controller.reopen()
        for job_id in tuple(self.controller.running):
            ended = self._find_again(job_id, now)
            if ended is not None:
                events.append(ended)
        arrived = (job for job in self._commands.values() if job.job_id not in self.jobs.submitted)
        events += [Submitted(now, job.specification(now)) for job in arrived]
        events.append(Tick(now))
        return events

    def _recall(self, history: HistoryFile) -> list[HistoryOutcome]:
        try:
            return history.latest()
        except InputError as error:
            self._history = None
            self._observer.told(f"no history is used or kept: {error}")
            return []

    def _find_again(self, job_id: str, now: float) -> Ended | None:
        """Adopt a running attempt, or say how it ended; start it if nobody had come to that."""
        attempt = self._attempt(job_id)
        claim = attempt.claim()
        if claim is None and attempt.status() is None:
            self._observer.told(f"{job_id} was about to start: it is started now")
            self._start(job_id)
            return None
        self._slots.hold(job_id, () if claim is None else claim.cpus)
        pidfd = attempt.adopt()
        if pidfd is not None:
            self._observer.told(f"{job_id} is still running: it is waited for")
            self._watch(attempt, pidfd)
            return None
        return self._ended(attempt, now)

    def _attempt(self, job_id: str) -> Attempt:
        return Attempt(job_id, self.jobs.attempts[job_id], self._run.attempts)

    def _start(self, job_id: str) -> None:
        """Start the current attempt of a job that the log says is running."""
        job = self._commands[job_id]
        attempt = self._attempt(job_id)
        self._observer.started(job, attempt.number)
        requested = math.inf if job.requested_seconds is None else job.requested_seconds
        try:
            pidfd = attempt.spawn(
                self._nursery,
                job.arguments,
                limit_seconds=requested,
                grace_seconds=self._settings.grace_seconds,
                cpus=self._slots.take(job_id, job.cpus),
                directory=job.directory,
                environment=_environment(job),
                logs=self._run.logs,
            )
        except OSError as error:
            self._unspawned[job_id] = error.strerror or str(error)
            return
        self._watch(attempt, pidfd)

    def _watch(self, attempt: Attempt, pidfd: int) -> None:
        self._attempts[attempt.job_id] = attempt
        self._watched[pidfd] = attempt.job_id
        self._poll.register(pidfd, select.POLLIN)
        if self._stopping:
            attempt.stop()

    # --- waiting for something to happen

    def _wait(self, wake_up: int) -> list[Event]:
        """Sleep until something happens, and say what."""
        ready = self._poll.poll(self._timeout_seconds() * 1000.0)
        now = self._clock.now()
        events: list[Event] = []
        for job_id, problem in self._unspawned.items():
            self._observer.told(f"{job_id} cannot be started: {problem}")
            events.append(self._never_began(job_id, now))
        self._unspawned.clear()
        for descriptor, _ in ready:
            if descriptor == wake_up:
                os.read(wake_up, 4096)
            elif descriptor in self._watched:
                events += self._keeper_gone(descriptor, now)
            else:
                events += self._read_lines(now)
        events += self._obey_interrupts(now)
        events += self._expired(events, now)
        if any(time <= now for time in self.jobs.ticks.values()):
            events.append(Tick(now))
        return events

    def _timeout_seconds(self) -> float:
        if self._unspawned:
            return 0.0
        awaited = (*self.jobs.wakes.values(), *self.jobs.ticks.values())
        next_wake = min(awaited, default=math.inf) - time.time()
        wait = min(next_wake, self._observer.refresh_seconds, _LONGEST_WAIT_SECONDS)
        return max(0.0, math.ceil(wait * 1000.0) / 1000.0)

    def _keeper_gone(self, pidfd: int, now: float) -> Iterator[Event]:
        job_id = self._watched.pop(pidfd)
        self._poll.unregister(pidfd)
        attempt = self._attempts.pop(job_id)
        attempt.release()
        another = attempt.adopt()  # whoever claimed it first, if that was not the one that has gone
        if another is not None:
            self._watch(attempt, another)
            return
        yield self._ended(attempt, now)

    def _ended(self, attempt: Attempt, now: float) -> Ended:
        """How an attempt ended whose keeper has gone."""
        job_id = attempt.job_id
        self._slots.give_back(job_id)
        status = attempt.status()
        if status is not None:
            return Ended(now, self._outcome(attempt, status, now))
        attempt.clear_remains()
        start = self.controller.running[job_id].start_seconds
        losses = 1 + sum(
            past.job.job_id == job_id and past.outcome.ended_because is EndedBecause.LOST
            for past in self.jobs.past
        )
        if losses < MOST_LOSSES:
            self._observer.told(f"{job_id} was lost while it ran: it is run again")
            because = EndedBecause.LOST
        else:
            self._observer.told(f"{job_id} was lost {losses} times: it is given up")
            because = EndedBecause.FAILED
        return Ended(now, Outcome(job_id, start, now, because, None, attempt.number))

    def _outcome(self, attempt: Attempt, status: Status, now: float) -> Outcome:
        """The recorded end, within what this run's clock can have seen."""
        start = max(status.start_seconds, self.controller.running[attempt.job_id].start_seconds)
        return Outcome(
            job_id=attempt.job_id,
            start_seconds=min(start, now),
            end_seconds=min(max(status.end_seconds, start), now),
            ended_because=status.ended_because,
            exit_code=status.exit_code,
            attempt=attempt.number,
        )

    def _never_began(self, job_id: str, now: float) -> Ended:
        self._slots.give_back(job_id)
        start = self.controller.running[job_id].start_seconds
        number = self.jobs.attempts[job_id]
        return Ended(now, Outcome(job_id, start, now, EndedBecause.FAILED, None, number))

    def _expired(self, events: Iterable[Event], now: float) -> list[Event]:
        ended = {event.outcome.job_id for event in events if isinstance(event, Ended)}
        due = [job_id for job_id, at in self.jobs.wakes.items() if at <= now]
        return [EstimateExpired(now, job_id) for job_id in due if job_id not in ended]

    # --- jobs that arrive as lines

    def _read_lines(self, now: float) -> list[Event]:
        """Accept what has arrived on the input: on disk first, then to the controller."""
        if self._lines is None:
            return []
        content = os.read(self._lines.descriptor, 1 << 16)
        whole, newline, rest = (self._unfinished_line + content).rpartition(b"\n")
        self._unfinished_line = rest
        lines = whole.split(b"\n") if newline else []
        if not content:
            lines += [rest] if rest else []
            self._poll.unregister(self._lines.descriptor)
        jobs = [job for line in lines if (job := self._accept(line, self._lines.reader))]
        if not content:
            self._lines = None
        if not jobs:
            return []
        self._run.add_jobs(jobs)
        self._commands.update((job.job_id, job) for job in jobs)
        return [Submitted(now, job.specification(now)) for job in jobs]

    def _accept(self, line: bytes, reader: JobLines) -> CommandJob | None:
        self._line_count += 1
        try:
            return reader.line(line.decode(errors="replace"), self._line_count)
        except InvalidJobs as error:
            self.refused_lines += 1
            self._observer.told(str(error))
            return None

    # --- signals

    @contextmanager
    def _woken_by_signals(self) -> Iterator[int]:
        """Count SIGINT as one interrupt and SIGTERM as two; both end a wait."""
        wake_up, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        wakeup_before = signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        handlers = {
            number: signal.signal(number, self._count_interrupt)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield wake_up
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup_before)
            os.close(wake_up)
            os.close(woken)

    def _count_interrupt(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._interrupts += 2 if number == signal.SIGTERM else 1

    def _obey_interrupts(self, now: float) -> list[Event]:
        events: list[Event] = []
        if self._interrupts >= 1 and not self.controller.draining:
            self._observer.told(
                f"draining: nothing new is started, {len(self._attempts)} running; "
                "once more to stop those too"
            )
            self.controller.drain()
            if self._lines is not None:
                self._poll.unregister(self._lines.descriptor)
                self._lines = None
            events.append(Tick(now))
        if self._interrupts >= 2 and not self._stopping:
            self._stopping = True
            grace = self._settings.grace_seconds
            self._observer.told(
                f"stopping {len(self._attempts)} running jobs, at most {grace:g} s each"
            )
            for attempt in self._attempts.values():
                attempt.stop()
        return events


def _environment(job: CommandJob) -> Mapping[str, str]:
    """The supervisor's own environment, how many cpus to use, and what the job sets."""
    cpus = str(job.cpus)
    return {**os.environ, "FORESAIL_CPUS": cpus, "OMP_NUM_THREADS": cpus, **job.environment}
