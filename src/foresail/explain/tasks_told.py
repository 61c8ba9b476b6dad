"""What is told of a job's tasks: which were pilots, what they told, and how the rest compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from foresail.model.job import Job, JobSize
from foresail.model.outcome import EndedBecause, OfUnit, Outcome
from foresail.model.words import count, duration

MOST_TASKS_EACH: Final = 12
"""Jobs of more tasks are told of by how many tasks start and end, but for their pilots."""

_SHARES: Final = 4
"""In so many parts of its tasks the end of a job of many is told."""


def of_part(part: OfUnit, sentence: str, role: str = "") -> str:
    """The sentence, with what of the job it is about where that is not all of it."""
    if not part.stage:
        return sentence
    if not part.tasks:
        what = "Stage"
    else:
        numbers = ", ".join(map(str, part.tasks))
        what = f"Task{'s' if len(part.tasks) > 1 else ''} {numbers} of stage"
    return f"{what} {part.stage}{', ' if role else ''}{role}: {sentence[0].lower()}{sentence[1:]}"


@dataclass
class Starts:
    """Tasks of a job of many that have started one after the other, by stage."""

    first_seconds: float
    last_seconds: float
    by_stage: dict[str, int]

    def sentence(self, last: str) -> str:
        """How many of which stage, until when."""
        parts = [f"{tasks:,} of stage {stage}" for stage, tasks in self.by_stage.items()]
        until = f", the last at {last}" if self.last_seconds > self.first_seconds else ""
        return f"Tasks started: {', '.join(parts)}{until}."


@dataclass
class TasksTeller:
    """Follows the tasks of one job from its submission on."""

    _size: JobSize | None = None
    _pilots: set[tuple[str, int]] = field(default_factory=set)
    _tasks: int = 0
    _ended: int = 0
    _pilots_ended: int = 0
    _seconds: float = 0.0
    _told_shares: int = 0
    _starts: Starts | None = None

    def submitted(self, job: Job) -> None:
        """The job is there: nothing of it has run."""
        self._tasks = sum(stage.tasks for stage in job.stages)

    def sized(self, size: JobSize) -> str:
        """What follows from its size, as far as that is known."""
        self._size = size
        self._pilots = {(size.stage, task) for task in size.pilots}
        queue = f"queue {size.queue + 1}"
        if not size.pilots:
            return f"Has too few tasks to sample some: they wait in {queue}."
        if size.seconds is None:
            return (
                f"{count(len(size.pilots), 'task')} of {size.tasks:,}, drawn at random, "
                f"{'tells' if len(size.pilots) == 1 else 'tell'} how long the others take: "
                f"{_of_stage(size)}, from {queue}."
            )
        each = size.seconds / size.tasks
        waits = (
            "" if self._ended == self._tasks else f"; those that have not started wait in {queue}"
        )
        told = ", ".join(duration(seconds) for seconds in size.told)
        return (
            f"The {'pilots have' if len(size.told) > 1 else 'pilot has'} told: {told}. "
            f"{count(size.tasks, 'task')} should take {duration(each)} each, "
            f"{duration(size.seconds)} in all{waits}.{self._compared()}"
        )

    def started(self, part: OfUnit, sentence: str, now: float) -> str | None:
        """A sentence about a start, or None: of those of many tasks, ``starts`` tells."""
        if self._is_pilot(part):
            return of_part(part, sentence, "a pilot")
        if not self.is_one_of_many(part):
            return of_part(part, sentence)
        if self._starts is None:
            self._starts = Starts(now, now, {})
        self._starts.last_seconds = now
        by_stage = self._starts.by_stage
        by_stage[part.stage] = by_stage.get(part.stage, 0) + max(1, len(part.tasks))
        return None

    def starts(self) -> Starts | None:
        """How many of many tasks have started since it was asked last."""
        starts, self._starts = self._starts, None
        return starts

    def ended(self, outcome: Outcome, sentence: str) -> str | None:
        """A sentence about an end, with what the tasks have told so far."""
        if not outcome.stage:
            return sentence
        if outcome.ended_because is not EndedBecause.COMPLETED:
            return of_part(outcome, sentence)
        self._ended += max(1, len(outcome.tasks))
        self._seconds += outcome.runtime_seconds
        if self._is_pilot(outcome):
            self._pilots_ended += 1
            role = f"pilot {self._pilots_ended} of {len(self._pilots)}"
            return of_part(outcome, sentence, role) + self._compared()
        if not self.is_one_of_many(outcome):
            return of_part(outcome, sentence) + self._compared()
        share = _SHARES * self._ended // self._tasks
        if share == self._told_shares:
            return None
        self._told_shares = share
        mean = duration(self._seconds / self._ended)
        return (
            f"{self._ended:,} of {count(self._tasks, 'task')} have ended, after "
            f"{mean} on average.{self._compared()}"
        )

    def is_one_of_many(self, part: OfUnit) -> bool:
        """Whether tasks like this one are told of by their number."""
        return bool(part.stage) and self._tasks > MOST_TASKS_EACH

    def _compared(self) -> str:
        """When all have ended: what their size was, and what had been told of it."""
        size = self._size
        if self._ended < self._tasks or size is None or size.seconds is None:
            return ""
        off = size.seconds / self._seconds - 1.0 if self._seconds else 0.0
        said = (
            "as much"
            if abs(off) < 0.005
            else f"{100 * abs(off):.0f} % {'more' if off > 0 else 'less'}"
        )
        return f" All tasks took {duration(self._seconds)}; the pilots had told of {said}."

    def _is_pilot(self, part: OfUnit) -> bool:
        return bool(part.tasks) and {(part.stage, task) for task in part.tasks} <= self._pilots


def _of_stage(size: JobSize) -> str:
    numbers = ", ".join(map(str, size.pilots))
    return f"task{'s' if len(size.pilots) > 1 else ''} {numbers} of stage {size.stage}"
