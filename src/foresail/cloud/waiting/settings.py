"""Settings of waiting policies, the sweep over them, and the log that they are tried on."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property
from itertools import product
from typing import Final, Literal, Protocol

import numpy as np

from foresail import __version__
from foresail.cloud.waiting.jobs import FixedMachines, RentedType, TraceJobs
from foresail.cloud.waiting.kernels.waiting_choice import WaitModel
from foresail.cloud.waiting.models import POLICIES as MODELLED
from foresail.cloud.waiting.simulating import (
    Beliefs,
    Foresight,
    Queue,
    Simulated,
    WaitingPolicy,
    simulate,
    waiting_policy,
)
from foresail.model.arrays import Floats
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.registry import todays_name
from foresail.model.words import count

HAVE_WAITING: Final = (
    "all-jobs-wait-threshold",
    "short-waits-wait",
    "compound",
    "speculative",
    "weighing",
)
HAVE_SHORT: Final = ("long-jobs-wait", "compound", "speculative")
GO_BY_WAITS: Final = ("short-waits-wait", "compound")
GO_BY_RUNTIMES: Final = ("long-jobs-wait", "compound", "weighing")
LEARN_WAITS: Final = (*GO_BY_WAITS, "speculative", "weighing")
POLICIES: Final = (*MODELLED, "speculative", "weighing")
_FINER: Final = 8


@dataclass(frozen=True, slots=True)
class WaitingSetting:
    """One policy with its thresholds b and t (None: it has none), and the machines owned."""

    policy: str
    machines: int
    waiting_seconds: float | None
    short_seconds: float | None

    @classmethod
    def having(cls, policy: str, machines: int, waiting: float, short: float) -> WaitingSetting:
        """Make a setting with those of the thresholds (seconds) that the policy has."""
        return cls(
            policy,
            machines,
            waiting if policy in HAVE_WAITING else None,
            short if policy in HAVE_SHORT else None,
        )

    @property
    def limits(self) -> tuple[float, float]:
        """Both thresholds in seconds; one that it has not limits nothing."""
        waiting = math.inf if self.waiting_seconds is None else self.waiting_seconds
        return waiting, self.short_seconds or 0.0

    @property
    def place(self) -> tuple[int, float, float, int]:
        """Among others: by policy, then by thresholds, then by machines."""
        return (
            POLICIES.index(self.policy),
            self.waiting_seconds or 0.0,
            self.short_seconds or 0.0,
            self.machines,
        )


@dataclass(frozen=True, slots=True)
class Sweep:
    """The settings to try."""

    policies: tuple[str, ...]
    """Names, long or short."""
    counts: tuple[int, ...]
    """Of machines owned."""
    waiting_seconds: tuple[float, ...]
    short_seconds: tuple[float, ...]
    """Thresholds b and t, for the policies that have them."""
    owned: tuple[int, str] | None = None
    """How many machines there are today, and under which policy; None: not asked."""
    refine: bool = False
    """Whether numbers of machines in between are tried too, where the first pass was best."""

    def __post_init__(self) -> None:
        for name in ("policies", "counts", "waiting_seconds", "short_seconds"):
            if not getattr(self, name):
                raise InputError("nothing to try", field=name, expected="one or more")
        policies = tuple(todays_name("waiting policy", each) for each in self.policies)
        object.__setattr__(self, "policies", policies)
        if self.owned is not None:
            machines, policy = self.owned
            object.__setattr__(self, "owned", (machines, todays_name("waiting policy", policy)))
        named = [*self.policies, *([self.owned[1]] if self.owned else [])]
        for policy in named:
            if policy not in POLICIES:
                raise UnknownNameError("waiting policy", policy, POLICIES)
        for name in ("counts", "waiting_seconds", "short_seconds"):
            for value in getattr(self, name):
                if not value >= 0:
                    raise InputError("out of range", field=name, value=value, expected="0 or more")
        if self.owned is not None and self.owned[0] < 0:
            raise InputError(
                "out of range", field="owned", value=self.owned[0], expected="0 or more"
            )

    def settings(self) -> list[WaitingSetting]:
        """All that is to be tried, with what there is today; none twice."""
        tried = [
            WaitingSetting.having(*each)
            for each in product(
                self.policies, self.counts, self.waiting_seconds, self.short_seconds
            )
        ]
        today = self.today
        return list(dict.fromkeys([*tried, *([today] if today else [])]))

    def between(self, best: Sequence[WaitingSetting]) -> list[WaitingSetting]:
        """Numbers of machines around those of some settings, and their policies."""
        found = []
        for each in best:
            own = each.machines
            below = max((c for c in self.counts if c < own), default=own)
            above = min((c for c in self.counts if c > own), default=own)
            step = max((above - below) // _FINER, 1)
            found += [
                WaitingSetting(each.policy, count, each.waiting_seconds, each.short_seconds)
                for count in range(below, above, step)
            ]
        return found

    @property
    def today(self) -> WaitingSetting | None:
        """Setting of today; its thresholds are the first to try."""
        if self.owned is None:
            return None
        machines, policy = self.owned
        return WaitingSetting.having(
            policy, machines, self.waiting_seconds[0], self.short_seconds[0]
        )


def usual_counts(mean_machines: float, fixed_price: float, most: int) -> tuple[int, ...]:
    """Numbers of machines to try: from none to where owning alone costs as much as renting all.

    ``mean_machines`` are those that the work would keep busy, ``fixed_price`` is that of an owned
    machine relative to a rented one, and ``most`` is how many numbers there are, about.
    """
    last = max(math.ceil(mean_machines / max(fixed_price, 0.05)), 1)
    step = math.ceil(last / most)
    return tuple(range(0, last + step, step))


Waits = Literal["known", "unknown", "linear", "forest", "boosting"]
"""Beliefs of policies about waits: the truth, none, or the predictions of a model."""


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
        """Digest of the scheduler, and of all that it knows of the log's jobs."""

    @property
    def by_true_runtimes(self) -> bool:
        """True if it knows runtimes before they are over."""

    def simulate(
        self,
        jobs: TraceJobs,
        fixed: FixedMachines,
        family: Sequence[RentedType],
        policy: WaitingPolicy,
        beliefs: Beliefs,
        features_every: int = 0,
    ) -> Simulated:
        """Simulate as ``simulating.simulate``, the first jobs of the log."""


@dataclass(frozen=True)
class SweepInputs:
    """The log, machines and beliefs that settings are tried on.

    Raises ``InputError`` if the log has jobs at one time only, or waits are to be foreseen where no
    job overtakes.
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
    """Beliefs of SWW and the compound about waits; a model that learned from the first third of the
    log informs the speculative and the weighing policy too."""
    are_runtimes_true: bool = True
    """Whether ``runtimes`` are the truth."""
    hour_value: float = 0.0
    """Cost of an hour's delay of a job, for the weighing policy."""
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
        """True if waits come from a model."""
        return self.waits not in ("known", "unknown")

    def truths_used(self, policy: str) -> tuple[str, ...]:
        """Truths that a policy goes by and only an oracle knows."""
        by_runtimes = self.are_runtimes_true and policy in GO_BY_RUNTIMES
        if policy != "no-jobs-wait":  # in which no job waits
            by_runtimes |= self._starts_by_true_runtimes
        return (
            *(("runtimes",) if by_runtimes else ()),
            *(("waits",) if policy in GO_BY_WAITS and self.waits == "known" else ()),
        )

    @property
    def _starts_by_true_runtimes(self) -> bool:
        """True if the order of the waiting jobs follows from the truth."""
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
        """Simulate the jobs, or the first so many; with the machines and the policy."""
        many = len(self.jobs) if first is None else first
        jobs = self.jobs if first is None else self.jobs.among(slice(first))
        fixed = replace(self.machine, count=setting.machines)
        delay = self.own_values
        if delay is None and setting.policy == "weighing":
            delay = np.full(len(self.jobs), self.hour_value)
        beliefs = Beliefs(self.runtimes[:many], waits, None if delay is None else delay[:many])
        queue = self.queue if isinstance(self.queue, str) else "fcfs"
        policy = waiting_policy(setting.policy, *setting.limits, queue)
        asked = (jobs, fixed, self.family, policy, beliefs)
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
        """Digest of all that determines results, beside the setting."""
        digest = hashlib.sha256()
        columns = [getattr(self.jobs, each.name) for each in fields(self.jobs)]
        ranks = self.queue.ranks if isinstance(self.queue, Ranking) else None
        for column in (*columns, self.runtimes, self.own_values, ranks):
            if column is not None:
                digest.update(f"{column.dtype}{column.shape}".encode())
                digest.update(np.ascontiguousarray(column).data)
        machine = replace(self.machine, count=0)
        facts = [__version__, astuple(machine), [*map(astuple, self.family)]]
        digest.update(json.dumps([*facts, self._digest_of_queue, self.waits]).encode())
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
