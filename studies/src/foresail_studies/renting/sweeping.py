"""The sweep over settings of waiting policies: what is tried on a log, on several cores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import product
from threading import Lock
from typing import Final, Literal

import numpy as np

from foresail.cloud.over_time import block_seconds
from foresail.cloud.waiting.jobs import FixedMachines, RentedType, TraceJobs
from foresail.cloud.waiting.kernels.waiting_choice import FEATURES, WaitModel
from foresail.cloud.waiting.learning import (
    FEWEST_WAITS,
    WaitRows,
    linear_waits,
    observed_waits,
    waits_over,
)
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
from foresail.model.words import count, duration
from foresail_studies.renting.formulas import POLICIES as MODELLED
from foresail_studies.renting.metrics import BlockSums, WaitingMetrics, block_sums, measured
from foresail_studies.renting.wait_models import boosted_waits, forest_waits

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


@dataclass(frozen=True)
class SweepInputs:
    """The log, machines and beliefs that settings are tried on.

    Raises ``InputError`` if the log has jobs at one time only.
    """

    jobs: TraceJobs
    """The log."""
    runtimes: Floats
    """As policies believe them, shape (jobs,)."""
    machine: FixedMachines
    """What is owned; its count does not matter."""
    family: Sequence[RentedType]
    """What is on offer for rent."""
    queue: Queue = "fcfs"
    """Order of the waiting jobs."""
    waits: Waits = "known"
    """Beliefs of SWW and the compound about waits; a model that learned from the first third of the
    log informs the speculative and the weighing policy too."""
    are_runtimes_true: bool = True
    """Whether ``runtimes`` are the truth."""
    hour_value: float = 0.0
    """Cost of an hour's delay of a job, for the weighing policy."""

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
        by_runtimes = policy in GO_BY_RUNTIMES
        by_runtimes |= self.queue == "sjf" and policy != "no-jobs-wait"  # in which no job waits
        return (
            *(("runtimes",) if self.are_runtimes_true and by_runtimes else ()),
            *(("waits",) if policy in GO_BY_WAITS and self.waits == "known" else ()),
        )

    def simulate(
        self,
        setting: WaitingSetting,
        waits: Foresight | WaitModel | None,
        first: int | None = None,
        features_every: int = 0,
    ) -> tuple[Simulated, FixedMachines, WaitingPolicy]:
        """Simulate the jobs, or the first so many; with the machines and the policy."""
        jobs = self.jobs if first is None else self.jobs.among(slice(first))
        fixed = replace(self.machine, count=setting.machines)
        weighed = setting.policy == "weighing"
        delay = np.full(len(jobs), self.hour_value) if weighed else None
        beliefs = Beliefs(self.runtimes[: len(jobs)], waits, delay)
        policy = waiting_policy(setting.policy, *setting.limits, self.queue)
        simulated = simulate(
            jobs, fixed, self.family, policy, beliefs, features_every=features_every
        )
        return simulated, fixed, policy

    @property
    def mean_machines(self) -> float:
        """Machines that the work would keep busy throughout."""
        return self.machine.kept_busy(self.jobs) / self.jobs.span_seconds


_TREES: Final = 20
_PARTS: Final = 8
_BOOSTED_DEPTH: Final = 6
_NO_WAITS: Final = WaitRows(np.zeros((1, FEATURES)), np.zeros(1), np.zeros(1, np.bool_))


@dataclass(frozen=True, slots=True, eq=False)
class TrialResult:
    """Metrics of a setting, and its sums by block where the log has enough of them."""

    metrics: WaitingMetrics
    sums: BlockSums | None


def try_settings(
    inputs: SweepInputs, settings: Sequence[WaitingSetting], *, workers: int = 1
) -> Iterator[tuple[WaitingSetting, TrialResult]]:
    """Simulate every setting; results come as they are done.

    ``workers`` simulations run at once; each holds some 30 bytes a job.

    Raises ``InputError`` if a model is to learn waits and the log is too short for that.
    """
    _require_lessons(inputs, settings)
    inputs.jobs.requests  # noqa: B018 - made once, before the threads ask for it
    models = _WaitModels(inputs)
    with ThreadPoolExecutor(workers) as pool:
        pending: dict[Future[TrialResult], WaitingSetting] = {
            pool.submit(_simulated, inputs, models, each): each for each in dict.fromkeys(settings)
        }
        try:
            for future in as_completed(pending):
                yield pending[future], future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _require_lessons(inputs: SweepInputs, settings: Iterable[WaitingSetting]) -> None:
    """Enough waits in the first third of the log, if a policy is to learn from them."""
    if not inputs.learns:
        return
    limits = {each.waiting_seconds for each in settings if each.policy in LEARN_WAITS}
    longest = max((each for each in limits if each is not None), default=0.0)
    known = waits_over(inputs.jobs.submit_seconds, longest)
    if limits and known < FEWEST_WAITS:
        raise InputError(
            "too few waits are over in the first third of the log to learn from",
            field="waits",
            value=f"{count(known, 'wait')} up to {duration(longest)}",
            expected=f"{FEWEST_WAITS}: a longer log, or a shorter limit",
        )


class _WaitModels:
    """Models of waits by machines and patience, each learned once."""

    def __init__(self, inputs: SweepInputs) -> None:
        self._inputs = inputs
        self._learned: dict[tuple[int, float], WaitModel] = {}
        self._lock = Lock()

    def learned_for(self, setting: WaitingSetting) -> WaitModel:
        """The model for a setting's machines, where all wait as long as it lets them at most."""
        assert setting.waiting_seconds is not None
        key = (setting.machines, setting.waiting_seconds)
        with self._lock:
            if key not in self._learned:
                self._learned[key] = self._learn(*key)
            return self._learned[key]

    def _learn(self, machines: int, waiting_seconds: float) -> WaitModel:
        inputs = self._inputs

        def all_wait(many: int, every: int) -> tuple[Simulated, WaitingPolicy]:
            setting = WaitingSetting("all-jobs-wait-threshold", machines, waiting_seconds, None)
            seen, _, policy = inputs.simulate(setting, None, first=many, features_every=every)
            return seen, policy

        rows = observed_waits(inputs.jobs.submit_seconds, waiting_seconds, all_wait)
        if rows is None:  # the machines hold too few jobs
            return linear_waits(_NO_WAITS)
        match inputs.waits:
            case "forest":
                return forest_waits(rows, trees=_TREES, parts=_PARTS)
            case "boosting":
                return boosted_waits(rows, depth=_BOOSTED_DEPTH)
            case _:
                return linear_waits(rows)


def _simulated(inputs: SweepInputs, models: _WaitModels, setting: WaitingSetting) -> TrialResult:
    waits: Foresight | WaitModel | None = None
    if inputs.learns and setting.policy in LEARN_WAITS:
        waits = models.learned_for(setting)
    elif inputs.waits == "known" and setting.policy in GO_BY_WAITS:
        waits = Foresight()
    simulated, fixed, policy = inputs.simulate(setting, waits)
    length = block_seconds(inputs.jobs.submit_seconds)
    sums = None if length is None else block_sums(simulated, fixed, policy, length)
    return TrialResult(measured(simulated, fixed, policy), sums)
