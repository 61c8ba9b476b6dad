"""The daemon: the one loop by the clock, for any cluster, with facts durable in their order.

Facts are made durable in the order in which they must survive. An accepted job is on disk before
the controller hears of it; a step of the controller is on disk before its instructions are carried
out, each of which the cluster carries out once. Whenever the daemon is killed, the next one finds
out what is true from its log and from the cluster.
"""

from __future__ import annotations

import itertools
import math
import os
import select
import signal
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from types import FrameType
from typing import Final, Self

from foresail.control.loop import Controller
from foresail.control.plug_in_errors import nothing_starts
from foresail.live.cluster_contact import ClusterContact, what_can_be
from foresail.live.run_clock import MachineClocks, RunClock
from foresail.live.run_directory import LearnedFile, RunHistory
from foresail.live.run_log import FollowedLog
from foresail.live.source import DaemonCommand, EventSource, Observer
from foresail.model import event as news
from foresail.model.adapter import JobCommand, KnownJob
from foresail.model.changing_nodes import changes_between
from foresail.model.decision import Instruction, Preempt, Start, Withdraw
from foresail.model.view import RunningJob
from foresail.model.words import LEFT_TO
from foresail.record.job_life import JobHistory


class Interrupts:
    """Counts SIGINT as one interrupt and SIGTERM as two, while it is entered.

    ``descriptor`` is readable after each, until ``taken``.
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        self.descriptor, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wakeup_before = signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        self._handlers = {
            number: signal.signal(number, self._interrupt)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self.descriptor)
        os.close(self._woken)

    def taken(self) -> None:
        """Let the descriptor be readable again only after the next signal."""
        os.read(self.descriptor, 4096)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.count += 2 if number == signal.SIGTERM else 1


MOST_LOSSES: Final = 3
"""A job whose attempts were lost so many times is given up as failed."""

_LONGEST_WAIT_SECONDS: Final = 60.0


class Daemon:
    """Drives one run on a cluster, from where its log ends.

    Controller and log are as they were recovered; where ``learned`` is None, nothing is kept of
    that.
    """

    def __init__(
        self,
        controller: Controller,
        log: FollowedLog,
        adapter: ClusterContact,
        source: EventSource,
        history: RunHistory,
        learned: LearnedFile | None,
        observer: Observer,
        clocks: MachineClocks | None = None,
    ) -> None:
        self.controller = controller
        controller.names_nodes = adapter.capabilities.places
        state = controller.state
        self.clock = RunClock(controller.now, state.clock, clocks or MachineClocks())
        self._log = log
        self._adapter = adapter
        self._source = source
        self._history = history
        self._learned = learned
        self._observer = observer
        self._poll = select.poll()
        self._polled: int | None = None
        self._stopping = False
        self._leaving = False
        self._stands_still = False
        self._interrupts = Interrupts()
        self._wishes: list[JobCommand] = []  # of the step that comes

    @property
    def jobs(self) -> JobHistory:
        """Return what became of the jobs."""
        history = self.controller.state.history
        assert history is not None, "the controller of a daemon writes a log"
        return history

    @property
    def left(self) -> tuple[str, ...]:
        """Ids of the jobs that are not finished."""
        return tuple(pending.job.job_id for pending in self.controller.pending)

    def work(self) -> None:
        """Run until nothing is left to do, or the source wishes otherwise.

        The first SIGINT counts as one interrupt, any further one and a SIGTERM as two.
        """
        with closing(self._log), closing(self._adapter), self._interrupts as interrupts:
            self._poll.register(interrupts.descriptor, select.POLLIN)
            if self._adapter.wake_descriptor is not None:
                self._poll.register(self._adapter.wake_descriptor, select.POLLIN)
            self._poll_source()
            now = self._now()
            self._step(*self._opening(now))
            while not self._is_finished():
                ready = {each for each, _ in self._poll.poll(self._timeout_seconds() * 1000.0)}
                now = self._now()
                self._step(now, self._events(ready, interrupts, now))
                if self._learned is not None:
                    self._learned.keep_if_due(self.controller.predictor)
            if self._learned is not None:
                self._learned.keep(self.controller.predictor)

    @property
    def was_interrupted(self) -> bool:
        """Return whether a signal came, be it that something else has ended it."""
        return self._interrupts.count > 0

    def _now(self) -> float:
        if not self.controller.running:
            self.clock.follow_wall()
        return self.clock.advance()

    def _is_finished(self) -> bool:
        if self._leaving:
            return True
        if self._ours:
            return False
        begin = self.controller.state.next_begin_seconds
        is_waited_for = (
            self._source.descriptor is not None
            or self._adapter.is_away
            or self.controller.state.ticks
            or begin < math.inf
        )
        return self.controller.draining or not is_waited_for

    @property
    def _ours(self) -> list[RunningJob]:
        """Return what runs by a start of ours; the rest is for the cluster to end."""
        return [each for each in self.controller.running.values() if each.ours]

    def _poll_source(self) -> None:
        """Wait for the source as long as something may come from it."""
        descriptor = self._source.descriptor
        if descriptor == self._polled:
            return
        if self._polled is not None:
            self._poll.unregister(self._polled)
        if descriptor is not None:
            self._poll.register(descriptor, select.POLLIN)
        self._polled = descriptor

    def _step(self, now: float, events: Sequence[news.Event]) -> None:
        """Hand events to the controller and carry out its answer."""
        read = self.clock.news(self._observer.note, is_step=bool(events))
        if read is not None:
            events = (read, *events)
        if events:
            self._say_of_contact(events)
            instructions = self.controller.step(now, events)
            for event in events:
                if isinstance(event, news.Ended):
                    job = self.jobs.submitted[event.outcome.job_id]
                    self._observer.ended(job, event.outcome)
                    self._history.add(now, job, event.outcome)
            for instruction in instructions:
                self._carry_out(instruction, now)
            wishes, self._wishes = self._wishes, []
            self._report_queue(wishes, now)
            self._say_when_nothing_starts()
        self._observer.refreshed(self.controller, self.jobs)

    def _say_of_contact(self, events: Iterable[news.Event]) -> None:
        for event in events:
            match event:
                case news.ClusterUnavailable(because=because):
                    said = f"the cluster cannot be reached ({because})"
                    self._observer.note(f"{said}: nothing is started until it is back")
                case news.ClusterAvailable():
                    self._observer.note("the cluster is back")

    def _say_when_nothing_starts(self) -> None:
        """Warn, once until that changes, of a scheduler that leaves a free cluster idle."""
        controller, state, before = self.controller, self.controller.state, self._stands_still
        will_not_start = not (controller.running or controller.draining or controller.plan)
        self._stands_still = (
            will_not_start
            and bool(state.startable)
            and not (state.down or state.drained or state.ticks or state.unavailable)
            and controller.look_again_seconds == math.inf
        )
        if self._stands_still and not before:
            waiting, refused = len(state.startable), controller.first_refusal
            self._observer.note(nothing_starts(controller.scheduler, waiting, refused))

    def _carry_out(self, instruction: Instruction, now: float) -> None:
        """Hand over what is for the cluster; the times to report at are in the state."""
        match instruction:
            case Start(job_id):
                self._observer.started(self.jobs.submitted[job_id], instruction.attempt)
                self._adapter.carry_out(instruction, now)
            case Preempt():
                self._adapter.carry_out(instruction, now)
            case Withdraw(job_id, because):
                self._observer.withdrawn(self.jobs.submitted[job_id], because)
                self._report_queue([instruction], now)

    def _report_queue(self, named: Iterable[Withdraw | JobCommand], now: float) -> None:
        """Let a cluster that keeps a queue hear what becomes of jobs in it."""
        if self._adapter.capabilities.keeps_queue:
            for each in named:
                self._adapter.carry_out(each, now)

    def _from_people(self, events: Iterable[news.Event]) -> Iterator[news.Event]:
        """Yield what the source has, and note which of it the cluster is to hear."""
        for event in events:
            if isinstance(event, JobCommand):
                self._wishes.append(event)
            yield event

    def _opening(self, now: float) -> tuple[float, list[news.Event]]:
        """Return the events before this daemon came, and the time by then.

        It is late enough for all that ran meanwhile, however the wall clock was set.
        """
        heard, events = self.controller.now, list[news.Event]()
        if self.jobs.submitted:
            self._history.catch_up(self.jobs, heard)
        elif self._learned is None or not self._learned.knew_before:  # or it is learned twice
            events += (*self._adapter.history(), *self._history.latest())
        if self.controller.draining:
            self.controller.reopen()
        running = [
            Start(each.job.job_id, each.placement, each.attempt, each.stage, each.tasks)
            for each in self._ours
        ]
        found = [*self._adapter.resume(running, self._known(), now)]
        self._stop_again(now)
        if not self._adapter.has_resumed():  # what it finds again is reported once it is back
            earlier = self._source.earlier(self.jobs.submitted, now)
            events += (*found, *self._from_people(earlier), news.Tick(now))
            return now, events
        if self.controller.state.unavailable:
            found.insert(0, news.ClusterAvailable(now))
        found += self._gone(found, now)
        outcomes = [each.outcome for each in found if isinstance(each, news.Ended)]
        ran = [self._start_of(each) + each.runtime_seconds for each in outcomes if not _lost(each)]
        now = self.clock.advance(not_before=max(ran, default=now))
        events += self._within_run([*self._nodes_since(found, now), *found], now, heard)
        events += self._from_people(self._source.earlier(self.jobs.submitted, now))
        events.append(news.Tick(now))
        return now, events

    def _known(self) -> list[KnownJob]:
        """Return the jobs that wait, and those that run by no start of ours."""
        running, state = self.controller.running.values(), self.controller.state
        begun = [KnownJob(each.job, each.attempt, runs=True) for each in running if not each.ours]
        waiting = ((each.job, each.job.job_id) for each in self.controller.pending)
        held = {job_id for job_id, by in state.held.items() if not by.startswith(LEFT_TO)}
        return begun + [
            KnownJob(job, state.attempts(job_id), runs=False, held=job_id in held)
            for job, job_id in waiting
        ]

    def _gone(self, found: Sequence[news.Event], now: float) -> Iterator[news.Ended]:
        """Yield ends of what was not ours and is not there any more: nothing is known of these."""
        named = {news.unit_of(each) for each in found if isinstance(each, news.Began)}
        named |= {news.unit_of(each.outcome) for each in found if isinstance(each, news.Ended)}
        for unit, each in self.controller.running.items():
            if not each.ours and unit not in named:
                job_id, stage, tasks, attempt = each.allocation
                why = "it has gone, and how it ended was not recorded"
                because = news.EndedBecause.CANCELLED
                ids = job_id, each.start_seconds, now, because, None, attempt, 1.0, stage, tasks
                yield news.Ended(now, news.Outcome(*ids, reason=why))

    def _nodes_since(self, reported: Sequence[news.Event], now: float) -> list[news.Event]:
        """Return how nodes differ from the log, but for those that are reported to be so."""
        down = {event.node for event in reported if isinstance(event, news.NodeDown)}
        controller, there = self.controller, self._adapter.cluster
        changes = list(changes_between(controller.cluster, there, now))
        gone = {change.node for change in changes if isinstance(change, news.NodeRemoved)}
        up = [news.NodeUp(now, node) for node in sorted(controller.state.down - down - gone)]
        return [*up, *self._adapter.undrained(controller.state, reported, now), *changes]

    def _events(
        self, ready: Container[int | None], interrupts: Interrupts, now: float
    ) -> list[news.Event]:
        """Return the events that these readable descriptors announce."""
        events = [*self._adapter.reports(now)]
        if self._adapter.has_resumed():
            events = [*self._nodes_since(events, now), *events]
        events = self._within_run(events, now, now)
        if self._polled in ready:
            events += self._from_people(self._source.arrived(now))
            self._poll_source()
        if interrupts.descriptor in ready:
            interrupts.taken()
        events += self._wished(self._source.command(interrupts.count), now)
        events += self._expired(events, now)
        ticks = (self.controller.look_again_seconds, *self.controller.state.ticks.values())
        if min(ticks) <= now:
            events.append(news.Tick(now))
        return events

    def _timeout_seconds(self) -> float:
        expected = (*self.controller.state.wakes.values(), *self.controller.state.ticks.values())
        next_seconds = min(
            self._adapter.next_seconds, self.controller.look_again_seconds, *expected
        )
        wait = min(
            next_seconds - self.clock.now(), self._observer.refresh_seconds, _LONGEST_WAIT_SECONDS
        )
        return max(0.0, math.ceil(wait * 1000.0) / 1000.0)

    def _within_run(
        self, events: Iterable[news.Event], now: float, heard: float
    ) -> list[news.Event]:
        """Return the cluster's reports as this run has them: by its clock, and with its patience.

        What is lost has run until ``heard`` at least, and nobody knows how much longer.
        """
        return [
            self._ended(each, now, heard) if isinstance(each, news.Ended) else each
            for each in what_can_be(events, self.controller.state, self._observer.note)
        ]

    def _start_of(self, outcome: news.Outcome) -> float:
        """Return when the run started what has ended; of what began since, when that did."""
        running = self.controller.running.get(news.unit_of(outcome))
        return outcome.start_seconds if running is None else running.start_seconds

    def _ended(self, event: news.Ended, now: float, heard: float) -> news.Ended:
        """An end by the run's clock: it ran as long as whoever measured it says."""
        outcome, earliest = event.outcome, self._start_of(event.outcome)
        start, end = outcome.start_seconds, outcome.end_seconds
        if start < earliest or end > now:  # by a wall clock that was set
            start, end = earliest, min(now, earliest + max(0.0, outcome.runtime_seconds))
        if _lost(outcome):
            end = max(start, min(end, heard))
        because, reason = outcome.ended_because, outcome.reason
        job = self.jobs.submitted.get(outcome.job_id)
        conditions = None if job is None else job.conditions  # it may come in the same step
        if because in news.REQUEUED and outcome.job_id in self.controller.state.cancelled:
            because = news.EndedBecause.CANCELLED
        elif because in news.REQUEUED and conditions is not None and conditions.once:
            reason = f"{because}, and by its own wish not run again"
            self._observer.note(f"{outcome.job_id} was {reason}")
            because = news.EndedBecause.FAILED
        elif because is news.EndedBecause.LOST:
            because, reason = self._after_loss(outcome)
        lived = replace(
            outcome, start_seconds=start, end_seconds=end, ended_because=because, reason=reason
        )
        return news.Ended(now, lived)

    def _after_loss(self, outcome: news.Outcome) -> tuple[news.EndedBecause, str]:
        """A lost job runs again, unless it was lost too often; and why it ended, if not."""
        job_id = outcome.job_id
        losses = 1 + sum(
            past.job.job_id == job_id and past.outcome.ended_because is news.EndedBecause.LOST
            for past in self.jobs.past
        )
        if losses < MOST_LOSSES:
            self._observer.note(f"{job_id} was lost while it ran: it is run again")
            return news.EndedBecause.LOST, outcome.reason
        self._observer.note(f"{job_id} was lost {losses} times: it is given up")
        return (
            news.EndedBecause.FAILED,
            f"given up: lost {losses} times while it ran, as what watched it, or the machine, "
            "went down",
        )

    def _expired(self, events: Iterable[news.Event], now: float) -> list[news.Event]:
        ended = {news.unit_of(event.outcome) for event in events if isinstance(event, news.Ended)}
        due = [
            unit
            for unit, at in self.controller.state.wakes.items()
            if at <= now and unit not in ended
        ]
        return [
            news.EstimateExpired(now, *((unit,) if isinstance(unit, str) else unit)) for unit in due
        ]

    def _wished(self, wish: DaemonCommand, now: float) -> list[news.Event]:
        """Drain, stop what runs, or leave it, if that is wished."""
        if wish is DaemonCommand.GO_ON:
            return []
        if wish is DaemonCommand.LEAVE:
            self._leaving = True
            return []
        events: list[news.Event] = []
        running = self._ours
        if not self.controller.draining:
            self._observer.note(
                f"draining: nothing new is started, {len(running)} running; "
                "once more to stop those too"
            )
            self.controller.drain()
            self._source.close()
            self._poll_source()
            events.append(news.Tick(now))
        if wish is DaemonCommand.STOP and not self._stopping:
            self._stopping = True
            self._stop_all(now)
        return events

    def _stop_again(self, now: float) -> None:
        """Repeat what a daemon that is gone may not have handed over; it is heeded once."""
        running = self.controller.running
        for unit in self.controller.state.stopping:
            self._adapter.carry_out(_preempt(running[unit]), now)
        self._report_queue(itertools.starmap(Withdraw, self.jobs.withdrawn.items()), now)

    def _stop_all(self, now: float) -> None:
        """Have the cluster stop what runs, if it can; that is the user's wish, not a decision."""
        running = self._ours
        if not self._adapter.capabilities.preempts:
            self._observer.note(f"this cluster stops no jobs: {len(running)} are waited for")
            return
        self._observer.note(f"stopping {len(running)} running jobs")
        for each in running:
            self._adapter.carry_out(_preempt(each), now)


def _lost(outcome: news.Outcome) -> bool:
    return outcome.ended_because is news.EndedBecause.LOST


def _preempt(running: RunningJob) -> Preempt:
    return Preempt(running.job.job_id, running.attempt, running.stage, running.tasks)
