"""Many settings of waiting policies on one trace, at once on several cores."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, astuple, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from foresail import __version__
from foresail.cloud.waiting.jobs import FixedMachines, RentedType, TraceJobs
from foresail.cloud.waiting.metrics import WaitingMetrics, measured
from foresail.cloud.waiting.policies import Beliefs, Queue, WaitingPolicy, waiting_policy
from foresail.cloud.waiting.simulating import simulate
from foresail.model.errors import InputError, UnknownNameError

_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of a sweep.

    Parameters
    ----------
    fixed, policy
        The machines that are owned, and the policy.
    beliefs
        Name of what the policy is told.
    trial_price
        Price of machines for trials relative to the on-demand price.
    """

    fixed: FixedMachines
    policy: WaitingPolicy
    beliefs: str = "oracle"
    trial_price: float = 1.0


def grid(
    policy: str,
    fixed: Iterable[FixedMachines],
    waiting_seconds: Sequence[float] = (np.inf,),
    short_seconds: Sequence[float] = (0.0,),
    queue: Queue = "fcfs",
    beliefs: str = "oracle",
) -> list[Setting]:
    """Every combination of machines and thresholds under a policy by name."""
    return [
        Setting(machines, waiting_policy(policy, waiting, short, queue), beliefs)
        for machines, waiting, short in product(fixed, waiting_seconds, short_seconds)
    ]


def sweep(
    jobs: TraceJobs,
    settings: Sequence[Setting],
    family: Sequence[RentedType],
    beliefs: Mapping[str, Beliefs],
    workers: int = 1,
    kept: Path | None = None,
) -> Iterator[tuple[Setting, WaitingMetrics]]:
    """Simulate every setting; results come as they are done.

    Parameters
    ----------
    jobs, family
        The trace and the machines to rent.
    settings
        The points.
    beliefs
        What policies are told, by the names that the settings use.
    workers
        Simulations at once. Each holds some 30 bytes a job.
    kept
        Folder for the results: those that are there already come first, and are not simulated.

    Raises
    ------
    UnknownNameError
        If a setting asks for beliefs that are not given.
    InputError
        If a kept result is damaged, or results cannot be kept there.
    """
    for setting in settings:
        if setting.beliefs not in beliefs:
            raise UnknownNameError("beliefs", setting.beliefs, beliefs)
    files: dict[Setting, Path] = {}
    left = list(dict.fromkeys(settings))
    if kept is not None:
        _make_folder(kept)
        files = {each: kept / f"{key}.json" for each, key in _keys(jobs, left, family, beliefs)}
        finished = [each for each in left if files[each].exists()]
        left = [each for each in left if not files[each].exists()]
        for each in finished:
            yield each, _read(files[each])
    jobs.requests  # noqa: B018 - made once, before the threads ask for it
    with ThreadPoolExecutor(workers) as pool:
        pending = {
            pool.submit(_result, jobs, each, family, beliefs[each.beliefs]): each for each in left
        }
        try:
            for future in as_completed(pending):
                setting = pending[future]
                if kept is not None:
                    _keep(files[setting], future.result())
                yield setting, future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _result(
    jobs: TraceJobs, setting: Setting, family: Sequence[RentedType], beliefs: Beliefs
) -> WaitingMetrics:
    simulated = simulate(jobs, setting.fixed, family, setting.policy, beliefs)
    return measured(simulated, setting.fixed, setting.policy, setting.trial_price)


def _keys(
    jobs: TraceJobs,
    settings: Sequence[Setting],
    family: Sequence[RentedType],
    beliefs: Mapping[str, Beliefs],
) -> Iterator[tuple[Setting, str]]:
    """Digests of all that determines each result."""
    columns = (jobs.submit_seconds, jobs.runtime_seconds, jobs.cores, jobs.memory_bytes, jobs.gpus)
    trace = _digest_of(*columns)
    told = {name: _digest_of(*_parts(beliefs[name])) for name in {s.beliefs for s in settings}}
    for setting in settings:
        points = json.dumps(
            [__version__, trace, told[setting.beliefs], asdict(setting), [*map(astuple, family)]]
        )
        yield setting, hashlib.sha256(points.encode()).hexdigest()[:_DIGITS]


def _parts(record: Any) -> Iterator[Any]:
    """Arrays of a record, and of the records within."""
    if isinstance(record, tuple):
        for part in record:
            yield from _parts(part)
    elif hasattr(record, "__dataclass_fields__"):
        yield type(record).__name__
        for field in fields(record):
            yield from _parts(getattr(record, field.name))
    else:
        yield record


def _digest_of(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            digest.update(repr(part).encode())
    return digest.hexdigest()


def _read(path: Path) -> WaitingMetrics:
    try:
        return WaitingMetrics(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise InputError("a damaged result; delete it and run again", source=path) from error


def _make_folder(kept: Path) -> None:
    """Before anything is simulated: what cannot be kept would be lost."""
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder for results cannot be made: {error.strerror}",
            source=kept,
            expected="a folder that may be written to",
        ) from error


def _keep(path: Path, result: WaitingMetrics) -> None:
    """Whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_text(json.dumps(asdict(result)))
        unfinished.replace(path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=path) from error
