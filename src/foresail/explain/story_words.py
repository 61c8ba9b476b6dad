"""Sentences of a job's story that need nothing but the record that they are about."""

from __future__ import annotations

from typing import Final

from foresail.model.decision import Placement
from foresail.model.job import Dependency, DependencyKind, Job, StartConditions
from foresail.model.preference import PlacementOption, Preference, PreferenceKind
from foresail.model.view import Rejection, Reservation
from foresail.model.words import count, duration, exact_duration, exact_size, number
from foresail.record.records import Predicted
from foresail.strl.tokens import listed

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
        f"{most}{count(part.tasks, 'task')} on {listed(part.nodes)}" for part in option.parts
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
