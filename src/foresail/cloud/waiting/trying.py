"""Settings of waiting policies tried on a log: at once on several cores, and kept if asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from dataclasses import asdict, astuple, dataclass, fields
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np

from foresail.cloud.waiting.kernels.waiting_choice import FEATURES, WaitModel
from foresail.cloud.waiting.learning import (
    FEWEST_WAITS,
    WaitRows,
    boosted_waits,
    forest_waits,
    linear_waits,
    observed_waits,
    waits_over,
)
from foresail.cloud.waiting.metrics import (
    BlockSums,
    WaitingMetrics,
    block_seconds,
    block_sums,
    measured,
)
from foresail.cloud.waiting.settings import (
    GO_BY_WAITS,
    LEARN_WAITS,
    Ranking,
    SweepInputs,
    WaitingSetting,
)
from foresail.cloud.waiting.simulating import Foresight, Simulated, WaitingPolicy
from foresail.model.errors import InputError
from foresail.model.whole_files import make_folder, write_whole
from foresail.model.words import count, duration

_DIGITS: Final = 32
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
    inputs: SweepInputs,
    settings: Sequence[WaitingSetting],
    *,
    workers: int = 1,
    kept: Path | None = None,
) -> Iterator[tuple[WaitingSetting, TrialResult]]:
    """Simulate every setting; results come as they are done.

    Raises ``InputError`` if a model is to learn waits and the log is too short for that, or if a
    kept result is damaged or cannot be written.

    Parameters
    ----------
    inputs, settings
        What to try, and on what.
    workers
        Simulations at once; each holds some 30 bytes a job. Under a scheduler each has a process of
        its own, with the log.
    kept
        Folder for the results: those that are there already come first, and are not simulated.
    """
    _require_lessons(inputs, settings)
    if kept is not None:
        make_folder(kept)  # what cannot be kept would be lost
    left = []
    for setting in dict.fromkeys(settings):
        found = None if kept is None else _read(_path(kept, inputs, setting))
        if found is None:
            left.append(setting)
        else:
            yield setting, found
    inputs.jobs.requests  # noqa: B018 - made once, before the threads ask for it
    pool, simulated = _at_once(inputs, workers)
    with pool:
        pending: dict[Future[TrialResult], WaitingSetting] = {
            pool.submit(simulated, each): each for each in left
        }
        try:
            for future in as_completed(pending):
                setting = pending[future]
                if kept is not None:
                    _keep(_path(kept, inputs, setting), future.result())
                yield setting, future.result()
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


def _at_once(
    inputs: SweepInputs, workers: int
) -> tuple[Executor, Callable[[WaitingSetting], TrialResult]]:
    """Return a pool and its function: compiled simulations in threads, schedulers in processes."""
    if workers == 1 or isinstance(inputs.queue, str | Ranking):
        return ThreadPoolExecutor(workers), partial(_simulated, inputs, _WaitModels(inputs))
    return (
        ProcessPoolExecutor(workers, get_context("spawn"), _hold, (inputs,)),
        _simulated_here,
    )


_held: list[tuple[SweepInputs, _WaitModels]] = []
"""In a process of a pool: what its settings are tried on."""


def _hold(inputs: SweepInputs) -> None:
    _held.append((inputs, _WaitModels(inputs)))


def _simulated_here(setting: WaitingSetting) -> TrialResult:
    return _simulated(*_held[0], setting)


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


def _path(kept: Path, inputs: SweepInputs, setting: WaitingSetting) -> Path:
    value = inputs.hour_value if setting.policy == "weighing" else None
    key = json.dumps([inputs.digest, astuple(setting), value])
    return kept / f"{hashlib.sha256(key.encode()).hexdigest()[:_DIGITS]}.json"


def _read(path: Path) -> TrialResult | None:
    try:
        content = json.loads(path.read_bytes())
        sums = content["sums"]
        arrays = None if sums is None else {name: np.array(sums[name]) for name in sums}
        return TrialResult(
            WaitingMetrics(**content["metrics"]), None if arrays is None else BlockSums(**arrays)
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError("a damaged result; delete it and run again", source=path) from error


def _keep(path: Path, result: TrialResult) -> None:
    """Whole or not at all."""
    sums = result.sums
    content = {
        "metrics": asdict(result.metrics),
        "sums": None
        if sums is None
        else {each.name: getattr(sums, each.name).tolist() for each in fields(sums)},
    }
    write_whole(path, json.dumps(content).encode())
