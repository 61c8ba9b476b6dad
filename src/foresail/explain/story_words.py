"""Sentences of a job's story: of single records, and of threads that run through many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from foresail.model import event as events
from foresail.model.decision import Placement
from foresail.model.event import EndedBecause, OfUnit, Outcome
from foresail.model.job import Dependency, DependencyKind, Job, JobSize, StartConditions
from foresail.model.preference import PlacementOption, Preference, PreferenceKind
from foresail.model.view import Rejection, Reservation
from foresail.model.words import count, duration, exact_duration, exact_size, listed, number
from foresail.record.plans import PlanFold
from foresail.record.records import Decided, Predicted
from foresail.strl.tokens import listed as nodes_listed

_MOST_PLACES: Final = 8


def elapsed(seconds: float) -> str:
    """Time since a start, to the second: ``0.4 s``, ``95 s``, ``21 min 40 s``, ``2 d 3 h 0 min``.

    From a day on, to the minute.
    """
    if round(seconds) < 120:
        return f"{seconds:.1f} s" if 0 < seconds < 10 and seconds % 1 else f"{round(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h {minutes} min"
    if hours:
        return f"{hours} h {minutes} min {rest} s"
    return f"{minutes} min {rest} s"


def margin_words(seconds: float) -> str:
    """Describe whether a deadline was met, and by how much."""
    if seconds >= 0:
        return f", {duration(seconds)} before its deadline"
    return f", {duration(-seconds)} after its deadline"


def _where(preference: Preference) -> str:
    names = ", ".join(preference.names)
    match preference.kind:
        case PreferenceKind.PARTITION:
            return f"in {names}"
        case PreferenceKind.ATTRIBUTE:
            return f"on nodes with {names}"
        case PreferenceKind.SAME:
            return f"with all tasks in one {names}"
        case PreferenceKind.SPREAD:
            return f"with no two tasks in one {names}"


def submission_words(job: Job) -> str:
    """Describe what a job asks for, and when and where it is to run."""
    user = "" if job.user is None else f" by {job.user}"
    limit = (
        "no time limit"
        if job.requested_seconds is None
        else f"a limit of {exact_duration(job.requested_seconds)}"
    )
    after = _of_conditions(job)
    deadline = (
        ""
        if job.deadline_seconds is None
        else f", a deadline in {exact_duration(job.deadline_seconds - job.submit_seconds)}"
    )
    best = ""
    if job.preference is not None and job.preference.slowdown > 1:
        best = (
            f" It runs best {_where(job.preference)}, and {job.preference.slowdown:g} times as "
            "long elsewhere."
        )
    if job.options:
        ways = "; or ".join(_of_option(each, job.tasks) for each in job.options)
        best = f" By its own STRL it runs {ways}."
    total = job.total
    asked = [] if job.tasks == job.cpus else [count(job.tasks, "task")]
    asked.append(count(total.cpus, "cpu"))
    if total.memory_bytes:
        asked.append(f"{exact_size(total.memory_bytes)} of memory")
    if total.gpus:
        asked.append(count(total.gpus, "gpu"))
    return f"Submitted{user}: {', '.join(asked)}, {limit}{deadline}{after}.{best}"


def _of_conditions(job: Job) -> str:
    """Describe the conditions that a job sets itself."""
    conditions = job.conditions or StartConditions()
    otherwise = {job_id for each in conditions.dependencies for job_id in each.job_ids}
    own = tuple(each for each in job.after if each not in otherwise)
    all_of_them = (Dependency(DependencyKind.AFTER_OK, own), *conditions.dependencies)
    before = [":".join((each.kind, *each.job_ids)) for each in all_of_them if each.job_ids]
    after = f", to run {', '.join(before)}" if before else ""
    if conditions.singleton:
        after += ", after all before it of its name (singleton)"
    if conditions.begin_seconds is not None:
        after += f", to begin {duration(job.eligible_seconds - job.submit_seconds)} later"
    if conditions.most_at_once is not None:
        after += f", {conditions.most_at_once} of its array at once"
    return after + (", once only" if conditions.once else "")


def _of_option(option: PlacementOption, tasks: int) -> str:
    most = "at most " if sum(part.tasks for part in option.parts) > tasks else ""
    where = " and ".join(
        f"{most}{count(part.tasks, 'task')} on {nodes_listed(part.nodes)}" for part in option.parts
    )
    longer = f", {option.slowdown:g} times as long" if option.slowdown > 1.0 else ""
    starts = [f"{number(value)} from {duration(start)} on" for start, value in option.starts]
    shown = ", ".join(starts[:_MOST_PLACES])
    more = f", and {len(starts) - _MOST_PLACES} more" if len(starts) > _MOST_PLACES else ""
    return f"with {where}{longer}, worth {shown}{more}"


def place_words(placement: Placement) -> str:
    """Describe where tasks run: by node, or where these are many, by partition."""
    named = placement.places
    if len(named) <= _MOST_PLACES:
        return ", ".join(f"{count(tasks, 'task')} on {place}" for place, tasks in named)
    tasks = sum(tasks for _, tasks in named)
    partitions = placement.tasks_by_partition
    where = ", ".join(f"{tasks:,} in {place}" for place, tasks in partitions[:_MOST_PLACES])
    if len(partitions) > _MOST_PLACES:
        where += f" and in {count(len(partitions) - _MOST_PLACES, 'further partition')}"
    places = "nodes" if placement.tasks_by_node else "partitions"
    return f"{count(tasks, 'task')} on {len(named):,} {places}, {where}"


def answer_words(answer: Reservation | Rejection, now: float) -> str:
    """Describe the answer to a request for a reservation."""
    match answer:
        case Reservation(start_seconds=start, end_seconds=end, containers=containers):
            return (
                f"Reservation accepted: {count(containers, 'container')} for "
                f"{duration(end - start)}, from {duration(max(start - now, 0.0))} after now."
            )
        case Rejection(because=because):
            return f"Reservation rejected: {because}."


def prediction_words(belief: Predicted) -> str:
    """Describe how long a job is expected to run."""
    planned = (
        ""
        if belief.planned_seconds == belief.mean_seconds
        else f"; planned with {duration(belief.planned_seconds)}"
    )
    if belief.low_seconds == belief.high_seconds:
        return f"Expected to run for {duration(belief.mean_seconds)}{planned}."
    middle, mean = duration(belief.median_seconds), duration(belief.mean_seconds)
    average = "" if middle == mean else f" ({mean} on average)"
    return (
        f"Expected to run for {middle}{average}, with 80 % probability between "
        f"{duration(belief.low_seconds)} and {duration(belief.high_seconds)}{planned}."
    )


MOST_TASKS_EACH: Final = 12
"""Jobs of more tasks are reported by how many tasks start and end, but for their pilots."""

_SHARES: Final = 4
"""Number of parts of its tasks in which the end of a job of many is reported."""


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
        """Describe how many tasks of which stage started, until when."""
        parts = [f"{tasks:,} of stage {stage}" for stage, tasks in self.by_stage.items()]
        until = f", the last at {last}" if self.last_seconds > self.first_seconds else ""
        return f"Tasks started: {', '.join(parts)}{until}."


@dataclass
class TasksThread:
    """Follows the tasks of one job from its submission on."""

    _size: JobSize | None = None
    _pilots: set[tuple[str, int]] = field(default_factory=set)
    _tasks: int = 0
    _ended: int = 0
    _pilots_ended: int = 0
    _seconds: float = 0.0
    _shown_shares: int = 0
    _starts: Starts | None = None

    def submitted(self, job: Job) -> None:
        """The job is there: nothing of it has run."""
        self._tasks = sum(stage.tasks for stage in job.stages)

    def sized(self, size: JobSize) -> str:
        """Describe what follows from the job's size, as far as that is known."""
        self._size = size
        self._pilots = {(size.stage, task) for task in size.pilots}
        queue = f"queue {size.queue + 1}"
        if not size.pilots:
            return f"Has too few tasks to sample some: they wait in {queue}."
        if size.seconds is None:
            return (
                f"{count(len(size.pilots), 'task')} of {size.tasks:,}, drawn at random, "
                f"{'says' if len(size.pilots) == 1 else 'say'} how long the others take: "
                f"{_of_stage(size)}, from {queue}."
            )
        each = size.seconds / size.tasks
        waits = (
            "" if self._ended == self._tasks else f"; those that have not started wait in {queue}"
        )
        lasted = ", ".join(duration(seconds) for seconds in size.told)
        pilots = "pilots" if len(size.told) > 1 else "pilot"
        return (
            f"The {pilots} took {lasted}. "
            f"{count(size.tasks, 'task')} should take {duration(each)} each, "
            f"{duration(size.seconds)} in all{waits}.{self._compared()}"
        )

    def started(self, part: OfUnit, sentence: str, now: float) -> str | None:
        """A sentence about a start, or None: those of many tasks are in ``starts``."""
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
        """Return how many of many tasks have started since last asked."""
        starts, self._starts = self._starts, None
        return starts

    def ended(self, outcome: Outcome, sentence: str) -> str | None:
        """A sentence about an end, with what the tasks have shown so far."""
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
        if share == self._shown_shares:
            return None
        self._shown_shares = share
        mean = duration(self._seconds / self._ended)
        return (
            f"{self._ended:,} of {count(self._tasks, 'task')} have ended, after "
            f"{mean} on average.{self._compared()}"
        )

    def is_one_of_many(self, part: OfUnit) -> bool:
        """Return whether tasks like this one are reported by their number."""
        return bool(part.stage) and self._tasks > MOST_TASKS_EACH

    def _compared(self) -> str:
        """Describe, when all have ended, their size beside what was predicted of it."""
        size = self._size
        if self._ended < self._tasks or size is None or size.seconds is None:
            return ""
        off = size.seconds / self._seconds - 1.0 if self._seconds else 0.0
        said = (
            "as much"
            if abs(off) < 0.005
            else f"{100 * abs(off):.0f} % {'more' if off > 0 else 'less'}"
        )
        return f" All tasks took {duration(self._seconds)}; the pilots had predicted {said}."

    def _is_pilot(self, part: OfUnit) -> bool:
        return bool(part.tasks) and {(part.stage, task) for task in part.tasks} <= self._pilots


def _of_stage(size: JobSize) -> str:
    numbers = ", ".join(map(str, size.pilots))
    return f"task{'s' if len(size.pilots) > 1 else ''} {numbers} of stage {size.stage}"


_LEAST_SECONDS: Final = 60.0
_LEAST_SHARE: Final = 0.2

_ENDS: Final = {
    EndedBecause.PREEMPTED: "preempted",
    EndedBecause.LOST: "lost",
    EndedBecause.REVOKED: "revoked",
}


class PlanThread:
    """Follows the planned start of one job through a log's scheduling passes.

    A move is reported that is longer than a minute, than a fifth of what is left until the start,
    and than a fifth of what the job has waited: plans that count from now move on with the clock.

    Unless it ``knows_others``, and so hears of all that happens, it says of no move what had
    happened meanwhile.
    """

    def __init__(self, job_id: str, *, knows_others: bool = True) -> None:
        self._job_id = job_id
        self._knows_others = knows_others
        self._plan = PlanFold()
        self._shown: float | None = None
        self._since = 0.0
        self._meanwhile: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._started: Sequence[str] = ()

    @property
    def is_shown(self) -> bool:
        """Return whether a planned start was reported that still stands."""
        return self._shown is not None

    def happened(self, event: events.Event) -> None:
        """Take note of an event that plans may answer."""
        match event:
            case events.Submitted(job=job) if job.job_id == self._job_id:
                self._since = event.time
            case events.Ended(outcome=outcome):
                kind = _ENDS.get(outcome.ended_because, "ended")
                self._note(kind, outcome.job_id)
            case events.Submitted(job=job) if job.job_id != self._job_id:
                self._note("submitted", job.job_id)
            case events.Cancelled(job_id=job_id):
                self._note("cancelled", job_id)
            case events.NodeDown(node=node) | events.NodeDrained(node=node):
                self._note("down", node)
            case events.NodeUp(node=node) | events.NodeResumed(node=node):
                self._note("up", node)
            case events.NodeAdded(node=added):
                self._note("added", added.name)
            case events.NodeChanged(node=changed):
                self._note("changed", changed.name)
            case events.NodeRemoved(node=node):
                self._note("removed", node)

    def outlived(self, job_id: str) -> None:
        """A running job has run longer than was expected of it."""
        self._note("outlived", job_id)

    def _note(self, kind: str, name: str) -> None:
        self._meanwhile[kind] += 1
        self._names[kind] = name

    def forget(self) -> None:
        """The job has started: what was planned is over."""
        self._shown = None
        self._meanwhile.clear()

    def for_whom(self) -> str:
        """Return for whose start the last pass preempted others, as far as its plan says."""
        if not self._started:
            return ""
        names = ", ".join(self._started[:3])
        return f" for job {names}" if len(self._started) == 1 else f" for jobs {names}"

    def sentence(self, record: Decided) -> str | None:
        """Return a sentence on what a pass changed for the job; None if it is not worth one."""
        self._plan.take(record)
        now, start = record.time, self._plan.starts.get(self._job_id)
        self._started = tuple(job for job, begin in record.plan.items() if begin <= now)
        if start is None:
            return None
        if self._shown is None:
            self._shown = start
            self._meanwhile.clear()
            return None  # the reason, reported in the same step, says when
        move = start - self._shown
        least = _LEAST_SHARE * max(self._shown - now, now - self._since)
        if not abs(move) > max(_LEAST_SECONDS, least):
            return None
        said = _moved(move, start - now) + self._because()
        self._shown = start
        self._meanwhile.clear()
        return said

    def _because(self) -> str:
        if not self._knows_others:
            return "."
        parts = [
            words
            for kind, one, many in (
                ("ended", "job {} ended", "{} jobs ended"),
                ("preempted", "job {} was stopped", "{} jobs were stopped"),
                ("lost", "job {} was lost with a node", "{} jobs were lost with nodes"),
                ("revoked", "the place of job {} was taken back", "{} places were taken back"),
                ("outlived", "job {} outlived its estimate", "{} estimates were outlived"),
                ("submitted", "job {} was submitted", "{} jobs were submitted"),
                ("cancelled", "job {} was cancelled", "{} jobs were cancelled"),
                ("down", "node {} failed", "{} nodes failed"),
                ("up", "node {} came back", "{} nodes came back"),
                ("added", "node {} was added", "{} nodes were added"),
                ("changed", "node {} was changed", "{} nodes were changed"),
                ("removed", "node {} was removed", "{} nodes were removed"),
            )
            if (words := self._happenings(kind, one, many))
        ]
        if not parts:
            return "; nothing but time has passed."
        return f"; meanwhile {listed(parts)}."

    def _happenings(self, kind: str, one: str, many: str) -> str:
        amount = self._meanwhile[kind]
        if not amount:
            return ""
        return one.format(self._names[kind]) if amount == 1 else many.format(f"{amount:,}")


def _moved(move: float, left: float) -> str:
    if math.isinf(left):
        return "Planned for no known time any more"
    if math.isinf(move):
        return f"Planned for a time again, in {duration(max(left, 0.0))}"
    direction = "later" if move > 0 else "earlier"
    return f"Planned {duration(abs(move))} {direction} than before: in {duration(max(left, 0.0))}"
