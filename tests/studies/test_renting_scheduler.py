"""The scheduler that rents, at the controller: what it is asked, and whom it lets go."""

from __future__ import annotations

from dataclasses import replace

from foresail.cloud.waiting.simulating import WaitingPolicy
from foresail.control.loop import Controller
from foresail.model.cluster import Cluster
from foresail.model.decision import Start, TickAt, Withdraw
from foresail.model.event import Cancelled, Ended, Submitted, Tick
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome
from foresail_studies.waiting.renting_scheduler import (
    ArrivalChoice,
    Renting,
    RentingCase,
    Sent,
    SentBecause,
)
from toys import Doubling, Fcfs, Requested

ALL_WAIT = WaitingPolicy().rules


class Script:
    """Says what it was told to say of each job, else that it waits; keeps what it was asked."""

    def __init__(self, done=(), **choices: ArrivalChoice) -> None:
        self._choices = choices
        self._done = done
        self.asked: list[tuple[str, bool, bool]] = []

    def choose(self, question: RentingCase) -> ArrivalChoice:
        job_id = question.pending.job.job_id
        self.asked.append((job_id, question.fits, question.tried))
        if question.fits:
            return ArrivalChoice.START
        return (
            ArrivalChoice.WAIT if question.tried else self._choices.get(job_id, ArrivalChoice.WAIT)
        )

    def is_done(self, job_id: str) -> bool:
        return job_id in self._done


def build(script: Script, **rules: float) -> tuple[Controller, Renting]:
    """Strict first come, first served, on four cpus."""
    renting = Renting(Fcfs(), ALL_WAIT._replace(**rules), script)
    return Controller(Cluster.of_processors(4), renting, Requested(), Doubling()), renting


def come(now: float, *widths: tuple[str, int]) -> list[Submitted]:
    return [Submitted(now, Job.gang(job_id, now, cpus, 100.0, "ann")) for job_id, cpus in widths]


def end(now: float, job_id: str, because=EndedBecause.COMPLETED) -> Ended:
    return Ended(now, Outcome(job_id, 0.0, now, because))


def told(instructions, kind=(Start, Withdraw, TickAt)) -> list[tuple[str, str]]:
    return [(type(each).__name__, each.job_id) for each in instructions if isinstance(each, kind)]


def test_who_leaves_was_never_there():
    """2 holds up 3 until it is rented a machine; both came at once."""
    script = Script(b=ArrivalChoice.RENT)
    controller, renting = build(script)
    instructions = controller.step(0.0, come(0.0, ("a", 2), ("b", 3), ("c", 2)))
    assert told(instructions) == [("Start", "a"), ("Start", "c"), ("Withdraw", "b")]
    assert script.asked == [("a", True, False), ("b", False, False), ("c", True, False)]
    assert renting.sent == [Sent("b", 0.0, SentBecause.CHOSEN, False)]
    assert [each.job.job_id for each in controller.pending] == []


def test_patience():
    """The first to lose it is told of; when he leaves, or starts, it is the next one's turn."""
    controller, renting = build(Script(), patience_seconds=50.0)
    first = controller.step(0.0, come(0.0, ("a", 4), ("b", 4)))
    assert told(first, TickAt) == [("TickAt", "b")]
    assert told(controller.step(10.0, come(10.0, ("c", 4))), TickAt) == []
    assert told(controller.step(20.0, come(20.0, ("d", 4))), TickAt) == []
    over = controller.step(50.0, [Tick(50.0)])
    assert told(over) == [("Withdraw", "b"), ("TickAt", "c")]
    assert renting.sent == [Sent("b", 50.0, SentBecause.PATIENCE_EXPIRED, False)]
    begins = controller.step(60.0, [end(60.0, "a"), Tick(60.0)])  # starts just in time
    assert told(begins) == [("Start", "c"), ("TickAt", "d")]
    assert [each.time for each in begins if isinstance(each, TickAt)] == [70.0]


def test_trials():
    """While it is tried, nobody sees a job; then it is done, or asked about once more."""
    script = Script(done=("b",), b=ArrivalChoice.SPECULATE, c=ArrivalChoice.SPECULATE)
    controller, renting = build(script, speculation_seconds=30.0)
    controller.step(0.0, come(0.0, ("a", 4)))
    instructions = controller.step(1.0, come(1.0, ("b", 4), ("c", 4)))
    assert told(instructions) == [("TickAt", "b"), ("TickAt", "c")]
    controller.step(2.0, come(2.0, ("d", 1)))
    assert script.asked[-1] == ("d", False, False)
    assert told(controller.step(31.0, [Tick(31.0)])) == [("Withdraw", "b")]
    assert script.asked[-1] == ("c", False, True)
    assert told(controller.step(40.0, [end(40.0, "a")])) == [("Start", "c")]
    assert [(each.job_id, each.because) for each in renting.sent] == [
        ("b", SentBecause.ON_TRIAL),
        ("c", SentBecause.ON_TRIAL),
    ]


def test_who_was_preempted_is_asked_about_anew():
    """His first patience is over and forgotten; the second begins when he is back."""
    controller, renting = build(Script(), patience_seconds=50.0)
    controller.step(0.0, come(0.0, ("a", 4), ("b", 4)))
    controller.step(10.0, [end(10.0, "a")])
    controller.step(20.0, [*come(20.0, ("c", 4)), end(20.0, "b", EndedBecause.PREEMPTED)])
    assert renting.sent == []
    assert told(controller.step(70.0, [Tick(70.0)])) == [("Withdraw", "c")]
    assert controller.running.keys() == {"b"}


def test_who_is_cancelled_is_forgotten():
    """Neither patience nor trials outlive a job."""
    script = Script(c=ArrivalChoice.SPECULATE)
    rules = {"patience_seconds": 50.0, "speculation_seconds": 30.0}
    controller, renting = build(script, **rules)
    controller.step(0.0, come(0.0, ("a", 4), ("b", 1), ("c", 1), ("d", 4)))
    controller.step(5.0, [Cancelled(5.0, "b"), Cancelled(5.0, "c")])
    assert told(controller.step(50.0, [Tick(50.0)])) == [("Withdraw", "d")]
    assert [each.job_id for each in renting.sent] == ["c", "d"]
    assert controller.counters.refusals == 0


def test_dependents_of_who_leaves():
    """They are withdrawn, as after any job that does not end here."""
    controller, _ = build(Script(b=ArrivalChoice.RENT))
    submissions = come(0.0, ("a", 4), ("b", 1), ("c", 1))
    dependent = Submitted(0.0, replace(submissions[2].job, after=("b",)))
    instructions = controller.step(0.0, [*submissions[:2], dependent])
    assert told(instructions) == [("Start", "a"), ("Withdraw", "b"), ("Withdraw", "c")]
