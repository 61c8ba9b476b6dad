"""Settings of waiting policies tried on a log: at once on several cores, and kept if asked."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from dataclasses import asdict, astuple, dataclass, fields, replace
from functools import cached_property, partial
from multiprocessing import get_context
from pathlib import Path
from threading import Lock
from typing import Final, Literal, Protocol

import numpy as np

from foresail import __version__
from foresail.cloud.waiting.blocks import BlockSums, block_seconds, block_sums
from foresail.cloud.waiting.jobs import FixedMachines, Floats, RentedType, TraceJobs
from foresail.cloud.waiting.learning import (
    WaitRows,
    boosted_waits,
    forest_waits,
    linear_waits,
    wait_rows,
)
from foresail.cloud.waiting.metrics import WaitingMetrics, measured
from foresail.cloud.waiting.models import POLICIES as MODELLED
from foresail.cloud.waiting.policies import (
    Beliefs,
    Foresight,
    Queue,
    WaitingPolicy,
    waiting_policy,
)
from foresail.cloud.waiting.simulating import Simulated, simulate
from foresail.kernels.wait_model import FEATURES, WaitModel
from foresail.model.errors import InputError

HAVE_WAITING: Final = ("ajw-t", "sww", "compound", "speculative", "weighing")
HAVE_SHORT: Final = ("ljw", "compound", "speculative")
GO_BY_WAITS: Final = ("sww", "compound")
GO_BY_RUNTIMES: Final = ("ljw", "compound", "weighing")
LEARN_WAITS: Final = (*GO_BY_WAITS, "speculative", "weighing")
POLICIES: Final = (*MODELLED, "speculative", "weighing")

Waits = Literal["known", "unknown", "linear", "forest", "boosting"]
"""What policies are told of waits: the truth, nothing, or what a model says that learned."""
WAITS: Final[tuple[Waits, ...]] = ("known", "unknown", "linear", "forest", "boosting")
_DIGITS: Final = 32
_LEARNED_SHARE: Final = 1.0 / 3.0
_EXAMPLES: Final = 30_000
_TREES: Final = 20
_PARTS: Final = 8
_BOOSTED_DEPTH: Final = 6
_NO_WAITS: Final = WaitRows(np.zeros((1, FEATURES)), np.zeros(1), np.zeros(1, np.bool_))


@dataclass(frozen=True, slots=True)
class Setting:
    """One policy with its thresholds b and t (None: it has none), and the machines owned."""

    policy: str
    machines: int
    waiting_seconds: float | None
    short_seconds: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """An order of those who wait in which the first that fits goes.

    Parameters
    ----------
    ranks
        By job of the log, the least first; shape (jobs,).
    by_runtimes
        Whether they follow from what is believed of runtimes.
    """

    ranks: Floats
    by_runtimes: bool


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
class Grounds:
    """What settings are tried on.

    Parameters
    ----------
    jobs
        The log.
    runtimes
        As policies believe them, shape (jobs,).
    machine
        What is owned; its count does not matter.
    family
        What is on offer for rent.
    queue
        Order of those who wait, or the scheduler of the fixed machines.
    waits
        What SWW and the compound are told of waits; a model that learned from the first third of
        the log tells the speculative and the weighing policy too.
    are_runtimes_true
        Whether ``runtimes`` are the truth.
    hour_value
        What the weighing policy is told that an hour's delay of a job costs.
    own_values
        The same by job where they differ, shape (jobs,); ``hour_value`` is their mean then.

    Raises
    ------
    InputError
        If the log has jobs at one time only, or waits are to be foreseen where nobody overtakes.
    """

    jobs: TraceJobs
    runtimes: Floats
    machine: FixedMachines
    family: Sequence[RentedType]
    queue: Queue | Ranking | Scheduling = "fcfs"
    waits: Waits = "known"
    are_runtimes_true: bool = True
    hour_value: float = 0.0
    own_values: Floats | None = None

    def __post_init__(self) -> None:
        submit = self.jobs.submit_seconds
        if submit.size < 2 or submit[-1] <= submit[0]:
            raise InputError(
                "too few jobs to measure",
                field="submit_seconds",
                value=count_of(submit.size),
                expected="jobs at two times or more",
            )

    @property
    def learns(self) -> bool:
        """Whether a model tells of waits."""
        return self.waits not in ("known", "unknown")

    def told_truths(self, policy: str) -> tuple[str, ...]:
        """What a policy goes by that only an oracle knows."""
        by_runtimes = self.are_runtimes_true and policy in GO_BY_RUNTIMES
        if policy != "njw":  # in which nobody waits
            by_runtimes |= self._starts_by_true_runtimes
        return (
            *(("runtimes",) if by_runtimes else ()),
            *(("waits",) if policy in GO_BY_WAITS and self.waits == "known" else ()),
        )

    @property
    def _starts_by_true_runtimes(self) -> bool:
        """Whether who of those who wait goes first follows from the truth."""
        match self.queue:
            case str(name):
                return self.are_runtimes_true and name == "sjf"
            case Ranking(by_runtimes=by_runtimes):
                return self.are_runtimes_true and by_runtimes
            case scheduling:
                return scheduling.by_true_runtimes

    def simulate(
        self,
        setting: Setting,
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
        policy = waiting_policy(
            setting.policy,
            math.inf if setting.waiting_seconds is None else setting.waiting_seconds,
            setting.short_seconds or 0.0,
            self.queue if isinstance(self.queue, str) else "fcfs",
        )
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
    def span_seconds(self) -> float:
        """From the first submission to the last."""
        return float(self.jobs.submit_seconds[-1] - self.jobs.submit_seconds[0])

    @property
    def mean_machines(self) -> float:
        """Machines that the work would keep busy throughout."""
        return self.machine.kept_busy(self.jobs) / self.span_seconds

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


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """What a setting came to, and its sums by block where the log has enough of them."""

    metrics: WaitingMetrics
    sums: BlockSums | None


def try_settings(
    grounds: Grounds,
    settings: Sequence[Setting],
    *,
    workers: int = 1,
    kept: Path | None = None,
) -> Iterator[tuple[Setting, Tried]]:
    """Simulate every setting; results come as they are done.

    Parameters
    ----------
    grounds, settings
        What to try, and on what.
    workers
        Simulations at once; each holds some 30 bytes a job. Under a scheduler each has a process of
        its own, with the log.
    kept
        Folder for the results: those that are there already come first, and are not simulated.

    Raises
    ------
    InputError
        If a kept result is damaged, or cannot be written.
    """
    left = []
    for setting in dict.fromkeys(settings):
        found = None if kept is None else _read(_path(kept, grounds, setting))
        if found is None:
            left.append(setting)
        else:
            yield setting, found
    grounds.jobs.requests  # noqa: B018 - made once, before the threads ask for it
    pool, simulated = _at_once(grounds, workers)
    with pool:
        pending: dict[Future[Tried], Setting] = {
            pool.submit(simulated, each): each for each in left
        }
        try:
            for future in as_completed(pending):
                setting = pending[future]
                if kept is not None:
                    _keep(_path(kept, grounds, setting), future.result())
                yield setting, future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def count_of(jobs: int) -> str:
    """A number of jobs, for messages."""
    return f"{jobs} job" if jobs == 1 else f"{jobs} jobs"


def _at_once(grounds: Grounds, workers: int) -> tuple[Executor, Callable[[Setting], Tried]]:
    """Who simulates, and how: compiled simulations on threads, schedulers in processes."""
    if workers == 1 or isinstance(grounds.queue, str | Ranking):
        return ThreadPoolExecutor(workers), partial(_simulated, grounds, _WaitModels(grounds))
    return (
        ProcessPoolExecutor(workers, get_context("spawn"), _hold, (grounds,)),
        _simulated_here,
    )


_held: list[tuple[Grounds, _WaitModels]] = []
"""In a process of a pool: what its settings are tried on."""


def _hold(grounds: Grounds) -> None:
    _held.append((grounds, _WaitModels(grounds)))


def _simulated_here(setting: Setting) -> Tried:
    return _simulated(*_held[0], setting)


class _WaitModels:
    """Models of waits by machines and patience, each learned once."""

    def __init__(self, grounds: Grounds) -> None:
        self._grounds = grounds
        self._learned: dict[tuple[int, float], WaitModel] = {}
        self._lock = Lock()

    def of(self, setting: Setting) -> WaitModel:
        """The model for a setting's machines, where all wait as long as it lets them at most."""
        assert setting.waiting_seconds is not None
        key = (setting.machines, setting.waiting_seconds)
        with self._lock:
            if key not in self._learned:
                self._learned[key] = self._learn(*key)
            return self._learned[key]

    def _learn(self, machines: int, waiting_seconds: float) -> WaitModel:
        grounds = self._grounds
        many = max(int(_LEARNED_SHARE * len(grounds.jobs)), 1)
        learned, _, policy = grounds.simulate(
            Setting("ajw-t", machines, waiting_seconds, None),
            None,
            first=many,
            features_every=math.ceil(many / _EXAMPLES),
        )
        rows = wait_rows(learned, policy)
        if not rows.wait_seconds.size:
            return linear_waits(_NO_WAITS)
        match grounds.waits:
            case "forest":
                return forest_waits(rows, trees=_TREES, parts=_PARTS)
            case "boosting":
                return boosted_waits(rows, depth=_BOOSTED_DEPTH)
            case _:
                return linear_waits(rows)


def _simulated(grounds: Grounds, models: _WaitModels, setting: Setting) -> Tried:
    waits: Foresight | WaitModel | None = None
    if grounds.learns and setting.policy in LEARN_WAITS:
        waits = models.of(setting)
    elif grounds.waits == "known" and setting.policy in GO_BY_WAITS:
        waits = Foresight()
    simulated, fixed, policy = grounds.simulate(setting, waits)
    length = block_seconds(grounds.jobs.submit_seconds)
    sums = None if length is None else block_sums(simulated, fixed, policy, length)
    return Tried(measured(simulated, fixed, policy), sums)


def _path(kept: Path, grounds: Grounds, setting: Setting) -> Path:
    value = grounds.hour_value if setting.policy == "weighing" else None
    told = json.dumps([grounds.digest, astuple(setting), value])
    return kept / f"{hashlib.sha256(told.encode()).hexdigest()[:_DIGITS]}.json"


def _read(path: Path) -> Tried | None:
    try:
        content = json.loads(path.read_bytes())
        sums = content["sums"]
        arrays = None if sums is None else {name: np.array(sums[name]) for name in sums}
        return Tried(
            WaitingMetrics(**content["metrics"]), None if arrays is None else BlockSums(**arrays)
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError("a damaged result; delete it and run again", source=path) from error


def _keep(path: Path, result: Tried) -> None:
    """Whole or not at all."""
    sums = result.sums
    content = {
        "metrics": asdict(result.metrics),
        "sums": None
        if sums is None
        else {each.name: getattr(sums, each.name).tolist() for each in fields(sums)},
    }
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(content))
        unfinished.replace(path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=path) from error
