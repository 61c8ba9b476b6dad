"""What settings of waiting policies are tried on: the log, its machines, and what is told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from foresail import __version__
from foresail.cloud.waiting.jobs import FixedMachines, RentedType, TraceJobs
from foresail.cloud.waiting.kernels.wait_model import WaitModel
from foresail.cloud.waiting.policies import (
    Beliefs,
    Foresight,
    Queue,
    WaitingPolicy,
    waiting_policy,
)
from foresail.cloud.waiting.settings import GO_BY_RUNTIMES, GO_BY_WAITS, WaitingSetting
from foresail.cloud.waiting.simulating import Simulated, simulate
from foresail.model.arrays import Floats
from foresail.model.errors import InputError
from foresail.model.words import count

Waits = Literal["known", "unknown", "linear", "forest", "boosting"]
"""What policies are told of waits: the truth, nothing, or what a model says that learned."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """An order of the waiting jobs in which the first that fits goes."""

    ranks: Floats
    """By job of the log, the least first; shape (jobs,)."""
    by_runtimes: bool
    """Whether they follow from what is believed of runtimes."""


class Scheduling(Protocol):
    """A scheduler of the fixed machines, with which a log can be simulated."""

    @property
    def digest(self) -> str:
        """Of the scheduler, and of all that it knows of the log's jobs."""
        ...

    @property
    def by_true_runtimes(self) -> bool:
        """Whether it knows runtimes before they are over."""
        ...

    def simulate(
        self,
        jobs: TraceJobs,
        fixed: FixedMachines,
        family: Sequence[RentedType],
        policy: WaitingPolicy,
        beliefs: Beliefs,
        features_every: int = 0,
    ) -> Simulated:
        """As ``simulating.simulate``, of the first jobs of the log."""
        ...


@dataclass(frozen=True)
class SweepInputs:
    """What settings are tried on.

    Raises
    ------
    InputError
        If the log has jobs at one time only, or waits are to be foreseen where no job overtakes.
    """

    jobs: TraceJobs
    """The log."""
    runtimes: Floats
    """As policies believe them, shape (jobs,)."""
    machine: FixedMachines
    """What is owned; its count does not matter."""
    family: Sequence[RentedType]
    """What is on offer for rent."""
    queue: Queue | Ranking | Scheduling = "fcfs"
    """Order of the waiting jobs, or the scheduler of the fixed machines."""
    waits: Waits = "known"
    """What SWW and the compound are told of waits; a model that learned from the first third of the
    log tells the speculative and the weighing policy too."""
    are_runtimes_true: bool = True
    """Whether ``runtimes`` are the truth."""
    hour_value: float = 0.0
    """What the weighing policy is told that an hour's delay of a job costs."""
    own_values: Floats | None = None
    """The same by job where they differ, shape (jobs,); ``hour_value`` is their mean then."""

    def __post_init__(self) -> None:
        submit = self.jobs.submit_seconds
        if submit.size < 2 or submit[-1] <= submit[0]:
            raise InputError(
                "too few jobs to measure",
                field="submit_seconds",
                value=count(submit.size, "job"),
                expected="jobs at two times or more",
            )

    @property
    def learns(self) -> bool:
        """Whether a model tells of waits."""
        return self.waits not in ("known", "unknown")

    def told_truths(self, policy: str) -> tuple[str, ...]:
        """What a policy goes by that only an oracle knows."""
        by_runtimes = self.are_runtimes_true and policy in GO_BY_RUNTIMES
        if policy != "no-jobs-wait":  # in which no job waits
            by_runtimes |= self._starts_by_true_runtimes
        return (
            *(("runtimes",) if by_runtimes else ()),
            *(("waits",) if policy in GO_BY_WAITS and self.waits == "known" else ()),
        )

    @property
    def _starts_by_true_runtimes(self) -> bool:
        """Whether which waiting job goes first follows from the truth."""
        match self.queue:
            case str(name):
                return self.are_runtimes_true and name == "sjf"
            case Ranking(by_runtimes=by_runtimes):
                return self.are_runtimes_true and by_runtimes
            case scheduling:
                return scheduling.by_true_runtimes

    def simulate(
        self,
        setting: WaitingSetting,
        waits: Foresight | WaitModel | None,
        first: int | None = None,
        features_every: int = 0,
    ) -> tuple[Simulated, FixedMachines, WaitingPolicy]:
        """What becomes of the jobs, or the first so many; with the machines and the policy."""
        many = len(self.jobs) if first is None else first
        jobs = self.jobs if first is None else self.jobs.among(slice(first))
        fixed = replace(self.machine, count=setting.machines)
        delay = self.own_values
        if delay is None and setting.policy == "weighing":
            delay = np.full(len(self.jobs), self.hour_value)
        told = Beliefs(self.runtimes[:many], waits, None if delay is None else delay[:many])
        queue = self.queue if isinstance(self.queue, str) else "fcfs"
        policy = waiting_policy(setting.policy, *setting.limits, queue)
        asked = (jobs, fixed, self.family, policy, told)
        match self.queue:
            case str():
                simulated = simulate(*asked, features_every=features_every)
            case Ranking(ranks=ranks):
                simulated = simulate(*asked, features_every=features_every, ranks=ranks[:many])
            case scheduling:
                simulated = scheduling.simulate(*asked, features_every)
        return simulated, fixed, policy

    @property
    def mean_machines(self) -> float:
        """Machines that the work would keep busy throughout."""
        return self.machine.kept_busy(self.jobs) / self.jobs.span_seconds

    @cached_property
    def digest(self) -> str:
        """Of all that determines results, beside the setting."""
        digest = hashlib.sha256()
        columns = [getattr(self.jobs, each.name) for each in fields(self.jobs)]
        ranks = self.queue.ranks if isinstance(self.queue, Ranking) else None
        for column in (*columns, self.runtimes, self.own_values, ranks):
            if column is not None:
                digest.update(f"{column.dtype}{column.shape}".encode())
                digest.update(np.ascontiguousarray(column).data)
        machine = replace(self.machine, count=0)
        told = [__version__, astuple(machine), [*map(astuple, self.family)]]
        digest.update(json.dumps([*told, self._digest_of_queue, self.waits]).encode())
        return digest.hexdigest()

    @property
    def _digest_of_queue(self) -> str:
        match self.queue:
            case str(name):
                return name
            case Ranking():
                return "ranks"
            case scheduling:
                return scheduling.digest
