"""Submissions: from the body of a call to requests, arrays and names resolved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from foresail.live.accounts import Account
from foresail.live.command_job import CommandJob, dependency_words
from foresail.live.jobs_file import JobLines
from foresail.model.containers import replaced
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause
from foresail.model.job import Dependency, DependencyKind, parse_dependencies
from foresail.service.api.answers import JobId
from foresail.service.mail import checked_mail
from foresail.service.parts import ClusterLimits, KnownDirectories
from foresail.service.store.protocol import Request, Row, Submit

MOST_JOBS: Final = 10_000
"""Number of jobs that one call may submit, members of arrays counted."""

MOST_KEPT_BYTES: Final = 64_000_000
"""Size up to which they are kept, a line for each with its script and all that it waits for."""

MOST_WAITS: Final = 1_000_000
"""Limit of the dependencies of them, as many as an array of a thousand has on another."""

_USUAL_NUMBER: Final = 10**6
"""A job's number, as far as its length matters."""

_RANGE: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::(0{0,8}[1-9][0-9]{0,8}))?)?")
_ID: Final = re.compile(r"[0-9]{1,18}(_[0-9]{1,9})?")

Text = Annotated[str, Field(min_length=1, max_length=100_000)]
Short = Annotated[str, Field(max_length=1_000)]
Duration: TypeAlias = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | Short


class JobRequest(BaseModel):
    """A job to run, with the fields of a jobs file."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [{"command": "make test", "cpus": 2, "requested_time": "30min"}]
        },
    )

    command: Text | Annotated[list[Short], Field(min_length=1, max_length=10_000)] | None = Field(
        None, description="A line for `sh`, or a program and its arguments."
    )
    script: Annotated[str, Field(min_length=1, max_length=1_000_000)] | None = Field(
        None,
        description="Instead of a command: the text of a file, run by what its `#!` line names.",
    )
    arguments: Annotated[list[Short], Field(max_length=10_000)] = Field(
        default_factory=list, description="The words that the script is given."
    )
    name: Short | None = Field(
        None, description="What its runs have in common; `after` may name it within a call."
    )
    cpus: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    requested_time: Duration | None = Field(
        None, description="Its limit: seconds, or a duration such as `2h`."
    )
    after: Text | Annotated[list[Short], Field(max_length=10_000)] = Field(
        default_factory=list,
        description="Jobs that must have completed before: ids, or names within the call; or "
        "`afterok:ID`, `afterany:ID`, `afternotok:ID`, `after:ID` (`ID:ID` of several) and "
        "`singleton`, all of which must hold.",
    )
    begin: Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)] | Short | None = Field(
        None, description="It starts no earlier: Unix seconds, or a duration from now such as `2h`."
    )
    requeue: bool = Field(True, description="Whether it is run again if it is lost or preempted.")
    output: Text | None = Field(
        None,
        description="File for what it writes, relative to its directory, with `%j` (its id), `%A` "
        "and `%a` (array and index), `%x` (name), `%u` (user), `%N` (machine); a log by default.",
    )
    errors: Text | None = Field(
        None, description="File for its standard error; where its output goes, by default."
    )
    open_mode: Literal["append", "truncate"] = Field(
        "truncate", description="Whether these files keep what is in them."
    )
    mail_type: Short | Annotated[list[Short], Field(max_length=10)] | None = Field(
        None,
        description="About what mail is sent: `BEGIN`, `END`, `FAIL`, `REQUEUE`, `TIME_LIMIT`, "
        "`ALL`; `ARRAY_TASKS` for each member of an array.",
    )
    mail_user: Short | None = Field(None, description="To whom; its user by default.")
    environment: Annotated[
        dict[Short, Text | Annotated[str, Field(max_length=0)]], Field(max_length=1_000)
    ] = Field(default_factory=dict, description="Variables on top of those of a login.")
    directory: Annotated[str, Field(pattern=r"^/[^\x00]*$", max_length=4_000)] | None = Field(
        None, description="Absolute path of its working directory; its user's home by default."
    )
    tasks: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1, description="Tasks of so many cpus, which start together."
    )
    memory: Short | None = Field(
        None,
        description="Of a task: `2GiB`. Kept free for it, and it is ended where it needs more.",
    )
    gpus: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        0, description="Gpus for it alone, those of all its tasks."
    )
    deadline: Duration | None = Field(
        None, description="When it should be done: seconds from its submission, or `6h`."
    )
    worth: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] | None = Field(
        None, description="What it is worth by its deadline, or at once; 1 unless given."
    )
    decay: Duration | None = Field(
        None, description="Instead of a deadline: when it is worth nothing any more."
    )
    preferred: Short | None = Field(
        None,
        description="Where it runs best: `partition:a,b`, `attribute:x`, `same:x`, `spread:x`.",
    )
    slowdown_elsewhere: Annotated[float, Field(ge=1, le=1e6, allow_inf_nan=False)] | None = Field(
        None, description="How many times longer it runs anywhere else; 1 unless given."
    )
    strl: Text | None = Field(None, description="A request of its own, in STRL.")
    held: bool = Field(False, description="Whether it waits until it is released.")
    array: Short | None = Field(
        None,
        description="Indices of an array's members: `0-9`, `0-8:2`, `1,5,7`; with `%5` behind, at "
        "most 5 of them run at once.",
    )


class JobsRequest(BaseModel):
    """Several jobs to run, all of them accepted or none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    jobs: Annotated[list[JobRequest], Field(min_length=1, max_length=MOST_JOBS)]


class JobIdsBody(BaseModel):
    """Ids of the jobs that are meant."""

    model_config = ConfigDict(extra="forbid", strict=True)

    job_ids: Annotated[list[JobId], Field(min_length=1, max_length=MOST_JOBS)]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A job that has no id yet.

    ``after`` is what it depends on, by what it names; ``indices`` those of an array, none of a
    single job.
    """

    job: CommandJob
    after: tuple[Dependency, ...]
    name: str | None
    held: bool
    indices: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Submission:
    """Jobs that were checked, of which requests can be made once their numbers are known."""

    drafts: tuple[_Draft, ...]
    known: Mapping[Dependency, Dependency | None]

    @property
    def jobs(self) -> int:
        """Return how many jobs they are."""
        return sum(1 if each.indices is None else len(each.indices) for each in self.drafts)

    @property
    def waits(self) -> int:
        """Return how many jobs its jobs wait for, counted once for each of them."""
        drafts = zip(self.drafts, self._by_draft(_USUAL_NUMBER), strict=True)
        return sum(
            len(next(requests).job.after) * len(draft.indices or "1")
            for draft, requests in drafts
            if draft.after
        )

    @property
    def is_too_large(self) -> bool:
        """Return whether more would be stored than one call may ask for: a line for each.

        A single job that waits for nothing is no larger than the call itself.
        """
        size = 0
        for draft, requests in zip(self.drafts, self._by_draft(_USUAL_NUMBER), strict=True):
            if draft.indices is not None or draft.after:
                size += len(next(requests).job.to_json()) * len(draft.indices or "1")
            if size > MOST_KEPT_BYTES:
                return True
        return False

    def requests(self, number: int) -> Sequence[Request]:
        """The requests, of which the first job gets this number."""
        return [*chain.from_iterable(self._by_draft(number))]

    def _by_draft(self, number: int) -> Iterator[Iterator[Submit]]:
        ids: list[tuple[str, ...]] = []
        for draft in self.drafts:
            if draft.indices is None:
                ids.append((str(number),))
            else:
                ids.append(tuple(f"{number}_{index}" for index in draft.indices))
                number += 1  # that means all of them
            number += len(ids[-1])
        named = {draft.name: own for draft, own in zip(self.drafts, ids, strict=True) if draft.name}
        for draft, own in zip(self.drafts, ids, strict=True):
            yield _requests_of(draft, own, named, self.known)


def _requests_of(
    draft: _Draft,
    ids: Sequence[str],
    named: Mapping[str, tuple[str, ...]],
    known: Mapping[Dependency, Dependency | None],
) -> Iterator[Submit]:
    meant = [
        known[each] if each in known else Dependency(each.kind, named[each.job_ids[0]])
        for each in draft.after
    ]
    awaited = [each for each in meant if each is not None]
    after = tuple(dict.fromkeys(chain.from_iterable(each.job_ids for each in awaited)))
    dependencies = dependency_words(awaited)
    job = replaced(draft.job, job_id=ids[0], after=after, dependencies=dependencies)
    if draft.indices is None:
        yield Submit(job, held=draft.held)
        return
    environment = {**job.environment, **_of_array(draft.indices)}
    for number, job_id in enumerate(ids, int(job.array_id) + 1):
        member = replaced(job, job_id=job_id, number=number, environment=environment)
        yield Submit(member, held=draft.held)


def _of_array(indices: Sequence[int]) -> Mapping[str, str]:
    """Return Slurm's variables of all members of an array; its own are set where each starts."""
    ordered = sorted(indices)
    steps = {after - before for before, after in pairwise(ordered)}
    return {
        "SLURM_ARRAY_TASK_COUNT": str(len(indices)),
        "SLURM_ARRAY_TASK_MIN": str(ordered[0]),
        "SLURM_ARRAY_TASK_MAX": str(ordered[-1]),
        "SLURM_ARRAY_TASK_STEP": str(steps.pop() if len(steps) == 1 else 1),
    }


class JobChecks:
    """Checks the jobs of a call; what they have in common is looked up once.

    ``account`` is as which they run, if not as the service's own: what folders it can see, it finds
    out itself, when they start.
    """

    def __init__(
        self,
        user: str,
        limits: ClusterLimits,
        directories: KnownDirectories,
        *,
        account: Account | None = None,
        sends_mail: bool = False,
    ) -> None:
        self._user = user
        self._sends_mail = sends_mail
        self._limits = limits
        self._home = Path.home() if account is None else Path(account.home)
        self._directories = directories if account is None else None

    def is_quick(self, asked: JobRequest) -> bool:
        """Return whether a job is checked without a look at other jobs or at a disk."""
        directories, directory = self._directories, asked.directory
        if asked.after or asked.array is not None:
            return False
        return directories is None or directories.knows(Path(directory or self._home))

    def submission(
        self, asked: Sequence[JobRequest], waited_for: Callable[[Dependency], Dependency | None]
    ) -> Submission:
        """A submission that can be accepted.

        ``waited_for`` says what is still to be waited for of a dependency on a job, or an array,
        that is not of this call; None if nothing is. It refuses one that cannot be met any more,
        and raises ``LookupError`` if there is no such job that the user may see.

        Raises ``InvalidJobs`` or ``InputError`` as ``job`` does.
        """
        drafts = tuple(_draft(each, self.job(each)) for each in asked)
        submission = Submission(drafts, _known(drafts, waited_for))
        if submission.jobs > MOST_JOBS:
            raise InputError(
                "too many jobs in one call",
                field="array",
                value=submission.jobs,
                expected=f"at most {MOST_JOBS:,}",
            )
        if submission.waits > MOST_WAITS:
            raise InputError(
                "too many dependencies: each member of an array is kept with all that it waits for",
                field="after",
                value=submission.waits,
                expected=f"at most {MOST_WAITS:,} in one call; one job between two arrays, which "
                "waits for the first and is waited for by the second, makes them few",
            )
        if submission.is_too_large:
            raise InputError(
                "too much in one call: each member of an array is kept as a job of its own",
                field="array",
                value=submission.jobs,
                expected=f"at most {MOST_KEPT_BYTES:,} bytes; fewer jobs",
            )
        return submission

    def job(self, asked: JobRequest) -> CommandJob:
        """A job that could be accepted, under an id that is not its own.

        Raises ``InvalidJobs`` or ``InputError`` if it is wrong, or can never run; names the field.
        """
        record = asked.model_dump(
            exclude_unset=True, exclude={"held", "array", "mail_type", "mail_user"}
        )
        record = {name: value for name, value in record.items() if value is not None}
        limits = self._limits
        reader = JobLines(limits.room, self._home, None, limits.places, self._is_directory)
        job = reader.job({**record, "user": self._user}, None)
        if asked.array is not None:
            job = replaced(job, most_at_once=_array(asked.array)[1])
        mail_type, mail_user = checked_mail(
            asked.mail_type or "NONE",
            asked.mail_user or self._user,
            is_set_up=self._sends_mail,
            is_array=asked.array is not None,
        )
        return replaced(job, mail_type=mail_type, mail_user=mail_user)

    def _is_directory(self, path: Path) -> bool:
        return self._directories is None or self._directories.has(path)


def _draft(asked: JobRequest, job: CommandJob) -> _Draft:
    indices = None if asked.array is None else _array(asked.array)[0]
    after = parse_dependencies(asked.after)
    return _Draft(job, after, asked.name, asked.held, indices)


def _array(text: str) -> tuple[tuple[int, ...], int | None]:
    """The indices of an array, and how many of it run at once; None for any number."""
    listed, percent, most = text.partition("%")
    is_limit = not percent or (most.isdecimal() and 0 < int(most[:10]) < 10**9)
    indices: dict[int, None] = {}
    for part in listed.split(","):
        some, found = range(0), _RANGE.fullmatch(part)
        if found is not None and is_limit:
            some = range(int(found[1]), int(found[2] or found[1]) + 1, int(found[3] or 1))
        if not some:
            expected = "0-9, 0-8:2 or 1,5,7; with %2 behind, at most 2 of them run at once"
            raise InputError("not usable here", field="array", value=text, expected=expected)
        if len(some) > MOST_JOBS:
            raise InputError(
                "too many members", field="array", value=text, expected=f"at most {MOST_JOBS:,}"
            )
        indices.update(dict.fromkeys(some))
    return tuple(indices), int(most) if most else None


def _known(
    drafts: Sequence[_Draft], waited_for: Callable[[Dependency], Dependency | None]
) -> dict[Dependency, Dependency | None]:
    """The dependencies on jobs that are not of this call, and what is to be waited for of each."""
    names = [draft.name for draft in drafts if draft.name is not None]
    wanted = dict.fromkeys(chain.from_iterable(draft.after for draft in drafts))
    known: dict[Dependency, Dependency | None] = {}
    for each in wanted:
        if each.kind is DependencyKind.SINGLETON:
            known[each] = each
            continue
        name = each.job_ids[0]
        count = names.count(name)
        if count > 1:
            raise InputError("several jobs have this name", field="after", value=name)
        if count:
            continue
        try:
            if not _ID.fullmatch(name):
                raise LookupError
            known[each] = waited_for(each)
        except LookupError as error:
            raise InputError(
                "no such job",
                field="after",
                value=name,
                expected="the id of a job, or the name of one in the same call",
            ) from error
    graph = {
        draft.name: [each.job_ids[0] for each in draft.after if each not in known]
        for draft in drafts
        if draft.name is not None
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " after ".join(error.args[1][::-1])
        raise InputError(f"jobs wait for each other: {circle}", field="after") from error
    return known


def still_to_wait_for(dependency: Dependency, rows: Sequence[Row]) -> Dependency | None:
    """Return what is left of a dependency on these jobs; None if nothing.

    Raises ``LookupError`` if there are none, ``InputError`` if what waits for it can never run.
    """
    if not rows:
        raise LookupError
    kind = dependency.kind
    ended = [row for row in rows if row["end_seconds"] is not None]
    failed = next((row for row in ended if row["state"] != EndedBecause.COMPLETED), None)
    never = failed if kind is DependencyKind.AFTER_OK else None
    if kind is DependencyKind.AFTER_NOT_OK:
        if failed is not None:
            kind = DependencyKind.AFTER_ANY
        elif len(ended) == len(rows):
            never = ended[-1]
    if never is not None:
        raise InputError(
            f"can never run: job {never['job_id']} is {never['state']}",
            field="after",
            value=dependency.job_ids[0],
            expected="jobs that have completed or may yet"
            if kind is DependencyKind.AFTER_OK
            else "jobs that have failed or may yet",
        )
    left = tuple(row["job_id"] for row in rows if row["end_seconds"] is None)
    return Dependency(kind, left) if left else None


_ONE: Final = "one job"
_SEVERAL: Final = "several jobs"
JobsBody: TypeAlias = Annotated[
    Annotated[JobRequest, Tag(_ONE)] | Annotated[JobsRequest, Tag(_SEVERAL)],
    Discriminator(lambda body: _SEVERAL if isinstance(body, dict) and "jobs" in body else _ONE),
]
"""One job, or several under ``jobs``."""
