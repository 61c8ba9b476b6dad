"""Driver of simulations: time, submissions and alarms between a controller and a cluster."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from foresail.control.loop import Controller
from foresail.model import event as news
from foresail.model.adapter import ClusterAdapter
from foresail.model.decision import Instruction, Preempt, TickAt, WakeAt
from foresail.model.event import Ended, EstimateExpired, Event, Outcome, Submitted, Tick, unit_of
from foresail.model.job import Job
from foresail.model.view import Reservation
from foresail.record.job_life import JobState
from foresail.simulator.conditions import IDEAL, ClusterConditions
from foresail.simulator.simulated_cluster import FixedRuntimes, SimulatedCluster

_MAXIMUM_IDLE_TICKS: Final = 100


@dataclass(frozen=True, slots=True)
class _TickFor:
    """A tick that is of no use once the job waits no longer."""

    time: float
    job_id: str


class Driver:
    """Leads a controller and a cluster through time, from one instant at which anything happens on.

    ``submissions`` are jobs in order of submission. The scheduler is asked at multiples of
    ``cycle_seconds``, while jobs wait (None: after every instant). ``external_events`` is asked
    after every step for what is going to happen that is not the cluster's doing.
    """

    def __init__(
        self,
        controller: Controller,
        cluster: ClusterAdapter,
        submissions: Iterable[Job],
        cycle_seconds: float | None = None,
        external_events: Callable[[], Iterable[Event]] = tuple,
    ) -> None:
        self.now = controller.now
        self._controller = controller
        self._cluster = cluster
        self._submissions = iter(submissions)
        self._coming = next(self._submissions, None)
        self._cycle_seconds = cycle_seconds
        self._external_events = external_events
        self._alarms: list[tuple[float, int, Event | WakeAt | _TickFor]] = []
        self._alarms_set = 0
        self._next_tick = -math.inf
        self._look_again = math.inf
        self._reports_at = math.inf
        self._idle_ticks = 0

    def run(self) -> Iterator[Outcome]:
        """Go on until nothing more can happen.

        Each attempt that ends is handed out before the controller hears of it.
        """
        if self._cycle_seconds is not None:
            self._tick_next_cycle(self._cycle_seconds)
        while (now := self._next_seconds()) < math.inf:
            self.now = now
            events = self._happened(now)
            if events:
                for event in events:
                    if type(event) is Ended:
                        yield event.outcome
                self.follow(self._controller.step(now, events))
                for event in self._external_events():
                    self._set_alarm(event)
            if self._cycle_seconds is not None:
                self._tick_next_cycle(self._cycle_seconds)

    def follow(self, instructions: Iterable[Instruction]) -> None:
        """Carry out what the controller instructs now."""
        for instruction in instructions:
            if type(instruction) is WakeAt:
                self._set_alarm(instruction)
            elif type(instruction) is TickAt:
                time = max(self._cycle_from(instruction.time), self.now)
                self._set_alarm(_TickFor(time, instruction.job_id))
            else:
                self._cluster.carry_out(instruction, self.now)
                if self._cycle_seconds is not None and isinstance(instruction, Preempt):
                    self._set_alarm(Tick(self.now))  # the cycle goes on with what that frees

    def _next_seconds(self) -> float:
        alarms, coming, controller = self._alarms, self._coming, self._controller
        soonest = self._reports_at = self._cluster.next_seconds
        look_again = (
            controller.look_again_seconds
            if self._cycle_seconds is None
            else controller.state.next_begin_seconds
        )
        if look_again < math.inf:
            look_again = self._cycle_from(max(look_again, self.now))
            soonest = min(soonest, look_again)
        self._look_again = look_again
        if coming is not None and coming.submit_seconds < soonest:
            soonest = coming.submit_seconds
        while alarms and alarms[0][0] < soonest:
            if not self._is_void(alarms[0][2]):
                return alarms[0][0]
            heapq.heappop(alarms)
        return soonest

    def _happened(self, now: float) -> list[Event]:
        """All that happens at the next instant, once that has been found."""
        coming = self._coming
        events = [*self._cluster.reports(now)] if self._reports_at <= now else []
        if self._alarms and self._alarms[0][0] <= now:
            events += self._rung(now, events)
        if self._look_again <= now and Tick(now) not in events:
            events.append(Tick(now))
        while coming is not None and coming.submit_seconds <= now:
            events.append(Submitted(coming.submit_seconds, coming))
            coming = self._coming = next(self._submissions, None)
        return events

    def _rung(self, now: float, reports: Sequence[Event]) -> list[Event]:
        """The alarms of an instant that are of use, beside what the cluster reports of it."""
        events: list[Event] = []
        ended = {unit_of(event.outcome) for event in reports if isinstance(event, Ended)}
        while self._alarms and self._alarms[0][0] <= now:
            alarm = heapq.heappop(self._alarms)[2]
            match alarm:
                case _TickFor(time, job_id):
                    if self._waits(job_id) and Tick(time) not in events:
                        events.append(Tick(time))
                case WakeAt(job_id, time, stage, tasks):
                    if unit_of(alarm) not in ended and not self._is_void(alarm):
                        events.append(EstimateExpired(time, job_id, stage, tasks))
                case _:
                    events.append(alarm)
        return events

    def _set_alarm(self, alarm: Event | WakeAt | _TickFor) -> None:
        heapq.heappush(self._alarms, (alarm.time, self._alarms_set, alarm))
        self._alarms_set += 1

    def _is_void(self, alarm: Event | WakeAt | _TickFor) -> bool:
        """Return whether an alarm is of no use, now and for ever."""
        if isinstance(alarm, WakeAt):
            running = self._controller.state.running.get(unit_of(alarm))
            return running is None or running.expected_end_seconds > alarm.time
        return (
            isinstance(alarm, _TickFor)
            and self._controller.state.stage_of(alarm.job_id) is JobState.ENDED
        )

    def _waits(self, job_id: str) -> bool:
        state = self._controller.state
        return job_id in state.startable or job_id in state.waiting_for

    def _cycle_from(self, time: float) -> float:
        """Return when the scheduler is asked, at that time or next after it."""
        cycle = self._cycle_seconds
        return time if cycle is None else math.ceil(time / cycle - 1e-9) * cycle

    def _tick_next_cycle(self, cycle: float) -> None:
        """Have the scheduler asked at the next whole cycle, while there is a job to ask about.

        If none runs, nothing is to come, and it has started none in many cycles, it never will.
        """
        state = self._controller.state
        if self._next_tick > self.now:
            return
        if not (state.startable or state.waiting_for or state.running):
            return
        is_idle = not state.running and self._next_seconds() == math.inf
        self._idle_ticks = self._idle_ticks + 1 if is_idle else 0
        if self._idle_ticks <= _MAXIMUM_IDLE_TICKS:
            self._next_tick = (math.floor(self.now / cycle) + 1) * cycle
            self._set_alarm(Tick(self._next_tick))


def simulate_forward(
    controller: Controller,
    runtime_seconds: Mapping[str, float],
    submissions: Iterable[Job] = (),
    *,
    enforce_limits: bool = False,
    conditions: ClusterConditions = IDEAL,
) -> Iterator[Outcome]:
    """Go on from where a run stands until nothing more can happen.

    Jobs that wait wait on, jobs that run have run for as long as they have. Jobs that were asked to
    stop do so at once; drained nodes are used again when that was said. Yields the attempts in
    order of their ends, each as soon as it is known; none of a job that never starts, or ends.

    The controller is led on to the end: a fork of the run's own (``Controller.fork``), or one that
    has taken over what its records lead to (``Controller.take_over``). ``runtime_seconds`` says how
    long each job runs in all, where it runs best, by its id; each part of one that starts in parts
    runs for so long. A job that has run for longer already ends at once. ``submissions`` are
    further jobs, in order, none of them before now. Of the ``conditions`` of nodes that counts
    which is to come.

    Raises ``KeyError`` if the runtime of a job is not given, when it is needed; ``InputError`` if
    an outage or a change is of a node that does not exist, or a node is added that does.
    """
    controller.predictor.reveal(runtime_seconds)

    def job_of(job_id: str) -> Job:
        return controller.state.submitted_job(job_id).job

    execution = FixedRuntimes(
        lambda allocation: runtime_seconds[allocation.job_id],
        job_of,
        controller.cluster,
        conditions,
        enforces_limits=enforce_limits,
    )
    now = controller.now
    cluster = SimulatedCluster(controller.cluster, execution, job_of, conditions, now)
    for running in controller.running.values():
        cluster.start(running.allocation, running.placement, running.start_seconds)
    driver = Driver(controller, cluster, submissions, conditions.cycle_seconds)
    for node, drained in controller.state.drained.items():
        until = drained.until_seconds
        if until is not None and until > now:
            driver._set_alarm(news.NodeResumed(until, node))
    driver.follow(_instructed(controller))
    return driver.run()


def _instructed(controller: Controller) -> Iterator[Instruction]:
    """Yield what the controller has instructed and waits for."""
    now, state = controller.now, controller.state
    for running in state.running.values():
        if math.isfinite(running.expected_end_seconds):
            expected = max(running.expected_end_seconds, now)
            yield WakeAt(running.job.job_id, expected, running.stage, running.tasks)
    for pending in controller.pending:
        answer = pending.reservation
        if isinstance(answer, Reservation) and answer.start_seconds > now:
            yield TickAt(pending.job.job_id, answer.start_seconds)
    for job_id, stage, tasks, attempt in sorted(
        state.running[unit].allocation for unit in state.stopping
    ):
        yield Preempt(job_id, attempt, stage, tasks)
