"""Commands to run: as asked for, as schedulers know them, and their variables."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import msgspec

from foresail.live.accounts import Account
from foresail.model.cluster import Cluster, Resources
from foresail.model.containers import quickly_made
from foresail.model.job import (
    DeadlineValue,
    DecayingValue,
    Dependency,
    DependencyKind,
    Job,
    Stage,
    StartConditions,
    ValueFunction,
)
from foresail.model.preference import Preference
from foresail.model.words import exact_duration
from foresail.strl.own_requests import RequestPlaces, own_options

SIGN: Final = re.compile(r"%(\d{0,2})(.?)", re.DOTALL)


def is_name(text: str) -> bool:
    """Return whether a job may be called so: names are shown, and parts of the names of files."""
    return text.isprintable() and "/" not in text and 0 < len(text.strip()) <= len(text) <= 100


@cache
def host_name() -> str:
    """The short name of this machine, as which jobs know their node; read once."""
    return socket.gethostname().partition(".")[0] or "localhost"


def output_path(pattern: str, directory: str, values: Mapping[str, str]) -> str:
    """The absolute path that a pattern stands for, of a job in this directory.

    ``values`` are of its signs; a number between ``%`` and the sign is of the digits to fill.
    """

    def meant(sign: re.Match[str]) -> str:
        text = values[sign[2]]
        return text.zfill(int(sign[1] or 0)) if text.isdigit() else text

    return os.path.join(directory, SIGN.sub(meant, pattern))  # noqa: PTH118 - a text it stays


AS_WRITTEN: Final[Mapping[str, str]] = MappingProxyType(
    {name: name for name in ("script", "arguments", "gpus", "worth", "preferred", "strl")}
    | {name: name for name in ("slowdown_elsewhere", "environment", "output", "errors")}
    | {"deadline": "deadline_seconds", "decay": "decay_seconds", "begin": "begin_seconds"}
    | {"requested_time": "requested_seconds"}
)
"""Fields of jobs files that are those of a job, as they are called there and here."""


@quickly_made
@dataclass(frozen=True, slots=True)
class CommandJob:
    """One command to run, and what is asked for it."""

    job_id: str
    """Unique within a run: the name where one was given, ``job-3`` by position otherwise."""
    name: str
    """Name that runs of the same job have in common from one day to the next: the one given, or the
    program that the command starts."""
    command: str | tuple[str, ...]
    """A string is a line for ``sh``; a sequence is run directly; empty where there is a script."""
    directory: str
    """Absolute path of its working directory."""
    script: str | None = None
    arguments: tuple[str, ...] = ()
    """The text of a file to run instead of a command, by what its ``#!`` line names or else by
    ``sh``, and the words it is given."""
    cpus: int = 1
    """Cpus the command holds while it runs, those of all its tasks."""
    tasks: int = 1
    """Number of tasks that share these, as the command learns; all start together."""
    memory_bytes: float | None = None
    """Kept free for it, and it is ended when it needs more, all tasks together; None: neither."""
    gpus: int = 0
    """Gpus that it alone is given, all tasks together."""
    deadline_seconds: float | None = None
    decay_seconds: float | None = None
    """Seconds from its submission by which it should be done, or after which it is worth nothing
    any more, falling evenly; not both."""
    worth: float = 1.0
    """Worth by its deadline, or at first."""
    preferred: str | None = None
    slowdown_elsewhere: float = 1.0
    """Nodes where it runs best (``Preference.text``), and its slowdown anywhere else."""
    requested_seconds: float | None = None
    """Limit: it is ended once it has run for so long."""
    after: tuple[str, ...] = ()
    """Ids of the jobs that it waits for; they must have completed before."""
    dependencies: str = ""
    """States that other jobs must have reached where they need not have completed, and whether it
    is a singleton: as ``parse_dependencies`` reads it, several ids of one kind being an array's."""
    begin_seconds: float | None = None
    """Time before which it does not start (Unix seconds)."""
    most_at_once: int | None = None
    """Number of its array that run at once; None for any number."""
    number: int | None = None
    """Number of a member of an array: as Slurm has it, no other job has this one as its id."""
    once: bool = False
    """True if it is not run again once it was lost or preempted."""
    cpus_per_task: int | None = None
    """Cpus per task as asked for; None where nothing was said of it."""
    output: str | None = None
    errors: str | None = None
    """Patterns of the files that it writes to (``output_path``), relative to its directory: its
    log, where there is none for its output; as its output, where there is none for its errors."""
    appends: bool = False
    """True if these keep what is in them when it begins."""
    mail_type: str = ""
    mail_user: str = ""
    """Events that mail is sent about, between commas (``mail_types``), and who gets it."""
    user: str = ""

    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables on top of those that commands begin with."""
    strl: str | None = None
    """Request of its own: when it may start, and what that is worth; None if it has none."""

    @property
    def array_id(self) -> str:
        """The id of its array; its own if it is of none."""
        return self.job_id.partition("_")[0]

    @property
    def waits_for(self) -> str:
        """All that it depends on, each kind with its jobs: ``afterok:17:18,singleton``."""
        others = re.split("[:,]", self.dependencies)
        own = [each for each in self.after if each not in others]
        words = ":".join((DependencyKind.AFTER_OK, *own)) if own else ""
        return ",".join(filter(None, (words, self.dependencies)))

    @property
    def output_paths(self) -> tuple[str | None, str | None]:
        """The files for its output and for its errors; None where none is asked for."""
        if self.output is self.errors is None:
            return None, None
        index = self.job_id.partition("_")[2] or "0"
        values = {
            "j": str(self.number or self.job_id),
            "A": self.array_id,
            "a": index,
            "u": self.user,
            "%": "%",
        }
        values |= {"x": self.name, "N": host_name()}
        output, errors = (
            None if pattern is None else output_path(pattern, self.directory, values)
            for pattern in (self.output, self.errors)
        )
        return output, errors

    @property
    def file_text(self) -> str | None:
        """Return the content of the file that it runs; None where it runs a program directly."""
        if self.script is not None:
            return self.script
        return f"{self.command}\n" if isinstance(self.command, str) else None

    def words(self, file: str) -> list[str]:
        """Return the command line, where ``file_text`` is in that file."""
        if not isinstance(self.command, str):
            return list(self.command)
        return [*_interpreter(self.script or ""), file, *self.arguments]

    @property
    def text(self) -> str:
        """The command on one line, for people; of a script its name."""
        if self.script is not None:
            return shlex.join((self.name, *self.arguments))
        return self.command if isinstance(self.command, str) else shlex.join(self.command)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what its owner should know, though it is accepted."""
        limit, deadline = self.requested_seconds, self.deadline_seconds
        if limit is None or deadline is None or limit <= deadline:
            return ()
        return (
            f"it may run for {exact_duration(limit)} and should be done in "
            f"{exact_duration(deadline)}: "
            "if it needs its time, it misses its deadline",
        )

    def specification(self, submit_seconds: float) -> Job:
        """The job as schedulers and predictors know it: a gang of its tasks, each with its share.

        One with a request of its own is a gang of one-cpu tasks, of which its STRL speaks.

        Predictors distinguish jobs by user. On one's own machine all are the same user's and it is
        the name that says which are alike, so that both together are the user here.
        """
        tasks = self.tasks if self.strl is None else self.cpus
        request = Resources(
            self.cpus / tasks, (self.memory_bytes or 0.0) / tasks, self.gpus / tasks
        )
        return Job(
            job_id=self.job_id,
            submit_seconds=submit_seconds,
            stages=(Stage(tasks, request),),
            requested_seconds=self.requested_seconds,
            user=f"{self.user}/{self.name}",
            name=self.name,
            after=self.after,
            conditions=self._conditions(),
            value=self._value(submit_seconds),
            preference=None
            if self.preferred is None
            else Preference.parse(self.preferred, self.slowdown_elsewhere),
            options=()
            if self.strl is None
            else own_options(
                self.strl, self.cpus, RequestPlaces.on(Cluster.of_processors(self.cpus))
            ),
        )

    def as_cluster_has_it(self, job: Job) -> CommandJob:
        """Return the job with all that a cluster says of it."""
        conditions, total = job.conditions or _NO_CONDITIONS, job.total
        deadline = job.deadline_seconds
        return replace(
            self,
            name=job.name or self.name,
            cpus=math.ceil(total.cpus),
            tasks=job.tasks,
            memory_bytes=total.memory_bytes or None,
            gpus=math.ceil(total.gpus),
            deadline_seconds=None if deadline is None else deadline - job.submit_seconds,
            requested_seconds=job.requested_seconds,
            after=job.after,
            dependencies=dependency_words(conditions.dependencies),
            begin_seconds=conditions.begin_seconds,
        )

    def _conditions(self) -> StartConditions | None:
        others = [word.split(":") for word in self.dependencies.split(",") if ":" in word]
        conditions = StartConditions(
            dependencies=tuple(
                Dependency(DependencyKind(kind), tuple(job_ids)) for kind, *job_ids in others
            ),
            singleton=self.dependencies.endswith(DependencyKind.SINGLETON),
            begin_seconds=self.begin_seconds,
            array="" if self.most_at_once is None else self.array_id,
            most_at_once=self.most_at_once,
            once=self.once,
        )
        return None if conditions == _NO_CONDITIONS else conditions

    def _value(self, submit_seconds: float) -> ValueFunction | None:
        if self.deadline_seconds is not None:
            return DeadlineValue(submit_seconds + self.deadline_seconds, self.worth)
        if self.decay_seconds is not None:
            zero = submit_seconds + self.decay_seconds
            return DecayingValue(submit_seconds, zero, self.worth)
        return None

    def record(self) -> dict[str, Any]:
        """The fields of a jobs file that make it, but for its id and what it waits for."""
        tasks, words = self.tasks, self.command
        asked = {name: getattr(self, field) for name, field in AS_WRITTEN.items()} | {
            "command": None if self.script is not None else words,
            "name": self.name if is_name(self.name) else None,
            "cpus": self.cpus // tasks,
            "tasks": tasks,
            "memory": None if self.memory_bytes is None else f"{int(self.memory_bytes // tasks)}B",
            "directory": self.directory,
        }
        lists = {name: list(value) for name, value in asked.items() if isinstance(value, tuple)}
        return {name: value for name, value in (asked | lists).items() if value not in (None, [])}

    def to_json(self) -> str:
        """One line that ``from_json`` reads back."""
        try:
            return msgspec.json.encode(self, enc_hook=dict).decode()
        except UnicodeEncodeError:  # half a surrogate pair
            return json.dumps(msgspec.structs.asdict(self), default=dict)  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, line: str) -> CommandJob:
        """The job of a line written by ``to_json``."""
        try:
            return _decoded(line)
        except msgspec.DecodeError:  # half a surrogate pair
            return msgspec.convert(json.loads(line), cls)


_decoded: Final = msgspec.json.Decoder(CommandJob).decode


def _interpreter(script: str) -> list[str]:
    """Return the interpreter of a script, as the kernel reads its first line."""
    line = script.partition("\n")[0]
    words = line[2:].split(maxsplit=1) if line.startswith("#!") else []
    return [word.rstrip() for word in words] or ["/bin/sh"]


_NO_CONDITIONS: Final = StartConditions()


def dependency_words(dependencies: Iterable[Dependency]) -> str:
    """Dependencies other than ``afterok``, as ``CommandJob.dependencies``, a singleton last."""
    others = [each for each in dependencies if each.kind is not DependencyKind.AFTER_OK]
    words = [":".join((each.kind, *each.job_ids)) for each in others]
    return ",".join(sorted(words, key=lambda word: word == DependencyKind.SINGLETON))


_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_OURS: Final = "FORESAIL_"
"""Beginning of the variables that are Foresail's: a token is none of a job's business."""


def login_environment(account: Account) -> Mapping[str, str]:
    """Return an account's environment: who it is, where programs are, language and time zone."""
    of_the_machine = {
        name: value
        for name, value in os.environ.items()
        if name in ("LANG", "TZ") or name.startswith("LC_")
    }
    return {
        **of_the_machine,
        "PATH": _PATH,
        "HOME": account.home,
        "USER": account.name,
        "LOGNAME": account.name,
        "SHELL": account.shell,
    }


def persons_environment() -> Mapping[str, str]:
    """The variables of who runs her own commands, but for what is Foresail's."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}


_SUBMITTERS: Final = ("SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST", "OMP_NUM_THREADS")
"""Variables that whoever submits knows better."""


def job_environment(job: CommandJob, attempt: int) -> Mapping[str, str]:
    """Return what a job was given, and the variables about itself, which win."""
    mine = job_variables(job, attempt)
    given = {name: mine[name] for name in _SUBMITTERS} | dict(job.environment)
    return {**mine, **given, **{name: mine[name] for name in mine if name not in _SUBMITTERS}}


def job_variables(job: CommandJob, attempt: int) -> Mapping[str, str]:
    """Return the variables about an attempt; how large its array is, is in its environment."""
    mine = {
        "FORESAIL_JOB_ID": job.job_id,
        "FORESAIL_ATTEMPT": str(attempt),
        "OMP_NUM_THREADS": str(max(1, job.cpus // job.tasks)),
        "SLURM_JOB_USER": job.user,
        "SLURM_SUBMIT_DIR": job.directory,
    }
    for names, value in (
        ("FORESAIL_JOB_NAME SLURM_JOB_NAME", job.name),
        ("SLURM_JOB_ID SLURM_JOBID", job.number or job.job_id),
        ("FORESAIL_CPUS SLURM_CPUS_ON_NODE SLURM_JOB_CPUS_PER_NODE", job.cpus),
        ("FORESAIL_TASKS SLURM_NTASKS SLURM_NPROCS", job.tasks),
        ("SLURM_JOB_NUM_NODES SLURM_NNODES", 1),
        ("SLURM_JOB_NODELIST SLURM_NODELIST SLURMD_NODENAME SLURM_SUBMIT_HOST", host_name()),
    ):
        mine |= dict.fromkeys(names.split(), str(value))
    if job.cpus_per_task is not None:
        mine["SLURM_CPUS_PER_TASK"] = str(job.cpus_per_task)
    if job.memory_bytes is not None:
        mine["FORESAIL_MEMORY_BYTES"] = str(int(job.memory_bytes))
        mine["SLURM_MEM_PER_NODE"] = str(int(job.memory_bytes) >> 20)  # MiB
    if job.gpus:
        mine["SLURM_GPUS"] = mine["SLURM_GPUS_ON_NODE"] = str(job.gpus)
    if job.number or "SLURM_ARRAY_TASK_ID" in job.environment:  # of a former version
        mine["SLURM_ARRAY_JOB_ID"], _, index = job.job_id.partition("_")
        mine |= dict.fromkeys(("SLURM_ARRAY_TASK_ID", "FORESAIL_ARRAY_INDEX"), index)
    if attempt > 1:
        mine["SLURM_RESTART_COUNT"] = str(attempt - 1)
    return mine
