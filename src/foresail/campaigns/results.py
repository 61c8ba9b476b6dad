"""A campaign's folder: its runs, prepared logs, and a file for what was measured of each run.

``plan.json`` lists the runs of the last plan; ``runs/<key>.json`` appears whole when a run is done;
``workloads/<digest>`` holds each log as it was replayed, and ``<digest>.said.json`` what is to be
said of it. Keys are digests of all that determines a result, so that a run is done once, whatever
was interrupted or asked for before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail import __version__
from foresail.campaigns.plan import CampaignPlan, LogSource
from foresail.control.policy import parse_policy
from foresail.metrics.jobs import per_job, prediction_quality
from foresail.metrics.statistics import statistics
from foresail.metrics.usage import makespan_seconds, utilization
from foresail.model.documents import require_end
from foresail.model.errors import InputError
from foresail.model.event import recorded_name
from foresail.model.registry import loaded_plugins
from foresail.model.short_form import part_of
from foresail.model.whole_files import make_folder, write_whole
from foresail.predictors.kernels.linear_model import SMALLEST_WEIGHT
from foresail.scenario.engines import starts_apart
from foresail.traces.schedule import Schedule

QUANTILE_LEVELS: Final = tuple(float(level) for level in np.linspace(0.0, 1.0, 201))
"""Levels of the quantiles that are kept of prediction errors and predictions."""

EXTREME_SLOWDOWN: Final = 1000.0
_WORST_SHARE: Final = 0.001


@dataclass(frozen=True, slots=True)
class Measured:
    """One policy on one log; predictions are those at submission, before any correction."""

    jobs: int
    processors: float

    jobs_digest: str
    """Digest of what was replayed, by any name: the processors, and each job's submission, cpus,
    runtime, request and user."""

    average_bounded_slowdown: float
    median_bounded_slowdown: float

    extreme_share: float
    """Share of the jobs with a bounded slowdown of ``EXTREME_SLOWDOWN`` or more."""
    worst_thousandth_share: float
    """Share of the sum of all bounded slowdowns that the worst 0.1 % of the jobs hold."""
    mean_wait_seconds: float
    median_wait_seconds: float
    p99_wait_seconds: float
    max_wait_seconds: float
    utilization: float
    makespan_seconds: float
    mean_absolute_error_seconds: float | None

    mean_e_loss: float | None
    """Mean of log10(cpus x runtime) times the squared over- or the linear under-prediction, the
    weight floored as in ``regression``."""
    under_predicted_share: float | None
    corrections: int

    delayed_heads: int | None
    """Passes in which the head's reservation moved later; None from the event engine."""
    replay_seconds: float | None

    error_quantiles: tuple[float, ...]
    prediction_quantiles: tuple[float, ...]
    """Quantiles of prediction - runtime and of predictions, in seconds, at ``QUANTILE_LEVELS``."""


def measure(schedule: Schedule) -> Measured:
    """All that a campaign keeps of a schedule with at least one job."""
    jobs = per_job(schedule)
    slowdown = jobs["bounded_slowdown"].to_numpy()
    wait = statistics(jobs["wait_seconds"])
    known = jobs.filter(pl.col("predicted_seconds").is_finite())
    quality = prediction_quality(jobs)
    predicted = known["predicted_seconds"].to_numpy()
    error = predicted - known["runtime_seconds"].to_numpy()
    area = (known["cpus"] * known["runtime_seconds"].clip(lower_bound=1.0)).to_numpy()
    heads = schedule.meta.counters.get("delayed_heads")
    return Measured(
        jobs=jobs.height,
        processors=schedule.meta.processors,
        jobs_digest=_jobs_digest(schedule),
        average_bounded_slowdown=float(slowdown.mean()),
        median_bounded_slowdown=float(np.median(slowdown)),
        extreme_share=float((slowdown >= EXTREME_SLOWDOWN).mean()),
        worst_thousandth_share=_share_of_worst(slowdown),
        mean_wait_seconds=wait.mean,
        median_wait_seconds=wait.median,
        p99_wait_seconds=wait.p99,
        max_wait_seconds=wait.max,
        utilization=utilization(schedule),
        makespan_seconds=makespan_seconds(schedule),
        mean_absolute_error_seconds=quality.mean_absolute_error_seconds if known.height else None,
        mean_e_loss=mean_e_loss(error, area) if known.height else None,
        under_predicted_share=quality.under_predicted if known.height else None,
        corrections=int(jobs["corrections"].fill_null(0).sum()),
        delayed_heads=None if heads is None else int(heads),
        replay_seconds=schedule.meta.replay_seconds,
        error_quantiles=_quantiles(error),
        prediction_quantiles=_quantiles(predicted),
    )


def mean_e_loss(error: NDArray[np.float64], area: NDArray[np.float64]) -> float:
    """Mean E-Loss of prediction errors (seconds) of jobs of an area (cpu-seconds), base 10."""
    weight = np.maximum(np.log10(area), SMALLEST_WEIGHT)
    return float(np.mean(weight * np.where(error >= 0.0, error * error, -error)))


def _share_of_worst(slowdown: NDArray[np.float64]) -> float:
    worst = max(1, round(_WORST_SHARE * slowdown.size))
    return float(np.sort(slowdown)[-worst:].sum() / slowdown.sum())


def _quantiles(values: NDArray[np.float64]) -> tuple[float, ...]:
    if not values.size:
        return ()
    return tuple(float(f"{value:.6g}") for value in np.quantile(values, QUANTILE_LEVELS))


def _jobs_digest(schedule: Schedule) -> str:
    jobs = schedule.jobs.sort("submit_seconds", "job_id").select(
        pl.col("submit_seconds") - pl.col("submit_seconds").min(),
        "cpus",
        "nominal_runtime_seconds",
        "requested_seconds",
        pl.col("user").rank("dense"),
    )
    digest = hashlib.sha256(str(float(schedule.meta.processors)).encode())
    digest.update(jobs.cast(pl.Float64).to_numpy(order="c").tobytes())
    return digest.hexdigest()[:32]


_PLAN_FILE: Final = "plan.json"
_QUANTILES: Final = ("error_quantiles", "prediction_quantiles")
_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class Run:
    """One policy on one log of a plan."""

    key: str
    """Digest of all that determines the result."""
    log: str
    policy: str
    """The log's name, and the policy in canonical short form."""
    workload: str
    """Digest of the log as prepared: its bytes, how it is read, and the filters."""
    conventions: str
    enforce_limits: bool
    """True if jobs are killed at their limit, as in the plan."""
    one_pool: bool = False
    """Partitions are one pool: a policy of the plan starts tasks apart."""


def workload_digest(log: LogSource, filters: Sequence[str], *, one_pool: bool = False) -> str:
    """Digest of a log's bytes, how it is read, the filters, and what becomes of partitions.

    Raises ``InputError`` if the log cannot be read.
    """
    digest = hashlib.sha256()
    try:
        folder = log.path.is_dir()
        for file in sorted(log.path.iterdir()) if folder else [log.path]:
            require_end(file)
            if folder:
                digest.update(file.name.encode())
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=log.path) from error
    known = all(part_of("filter", text).entry.is_built_in for text in filters)
    read = digest.hexdigest(), log.reader, log.processors, list(filters), __version__
    return _digest(*read, *_plugins_unless(known), *(["one pool"] if one_pool else []))


def runs_of(plan: CampaignPlan) -> tuple[Run, ...]:
    """Every policy on every log, the largest log first: it decides when the last worker ends.

    Raises ``InputError`` if a log cannot be read.
    """
    policies = {each: parse_policy(each) for each in plan.policies}
    one_pool = any(map(starts_apart, policies.values()))
    digests = {log: workload_digest(log, plan.filters, one_pool=one_pool) for log in plan.logs}
    largest_first = sorted(plan.logs, key=lambda log: -_bytes(log.path))
    settings = plan.conventions, plan.enforce_limits, one_pool
    own = {text: _plugins_unless(policy.is_built_in) for text, policy in policies.items()}
    return tuple(
        Run(
            _digest(digests[log], policy, *settings, __version__, *own[policy]),
            log.name,
            policy,
            digests[log],
            *settings,
        )
        for log in largest_first
        for policy in plan.policies
    )


def _run_of(row: Mapping[str, Any]) -> Run:
    run = Run(**row)
    return replace(run, conventions=recorded_name(run.conventions))


class Results:
    """The files of a campaign's folder.

    Raises ``InputError`` if the folder cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs = folder / "runs"

    def begin(self, runs: Iterable[Run]) -> None:
        """Make these the runs of the campaign; what is finished of them stays.

        Raises ``InputError`` if the folder cannot be written to.
        """
        make_folder(self._runs)
        text = json.dumps([asdict(run) for run in runs], indent=0)
        write_whole(self.folder / _PLAN_FILE, text.encode())

    def planned(self) -> tuple[Run, ...]:
        """The runs of the campaign.

        Raises ``InputError`` if the folder holds no campaign.
        """
        path = self.folder / _PLAN_FILE
        try:
            return tuple(_run_of(row) for row in json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                "no campaign here",
                source=self.folder,
                expected="the --output folder of foresail campaign run",
            ) from error

    def is_finished(self, run: Run) -> bool:
        """Return whether a run's result is here."""
        return self._file(run).exists()

    def keep(self, run: Run, measured: Measured) -> None:
        """Store a run's result, whole or not at all.

        Raises ``InputError`` if it cannot be written.
        """
        content = {**asdict(run), "version": __version__, **asdict(measured)}
        write_whole(self._file(run), json.dumps(content).encode())

    def workload_folder(self, digest: str) -> Path:
        """Return where the log of this digest is prepared."""
        return self.folder / "workloads" / digest

    def say(self, digest: str, words: Sequence[str]) -> None:
        """Store what people should know of a prepared log; raises as ``keep`` does."""
        write_whole(self._said(digest), json.dumps(words).encode())

    def said(self) -> list[str]:
        """Remarks on the logs of the plan, each after the name of its log."""
        logs = dict.fromkeys((run.log, self._said(run.workload)) for run in self.planned())
        return [
            f"{log}: {words}"
            for log, path in logs
            if path.exists()
            for words in json.loads(path.read_bytes())
        ]

    def table(self) -> pl.DataFrame:
        """A row per finished run of the plan, in its order: ``Run``, ``Measured`` but its lists.

        Raises ``InputError`` if the folder holds no campaign, or nothing of it is finished.
        """
        return _checked(self._finished(), self.folder).drop(_QUANTILES)

    def quantiles(self) -> pl.DataFrame:
        """``log``, ``policy`` and the two lists of quantiles of every finished run.

        Raises ``InputError`` as ``table``.
        """
        return _checked(self._finished(), self.folder).select("log", "policy", *_QUANTILES)

    def _finished(self) -> list[dict[str, Any]]:
        return [_read(self._file(run)) for run in self.planned() if self.is_finished(run)]

    def _said(self, digest: str) -> Path:
        return self.folder / "workloads" / f"{digest}.said.json"

    def _file(self, run: Run) -> Path:
        return self._runs / f"{run.key}.json"


def _checked(rows: list[dict[str, Any]], folder: Path) -> pl.DataFrame:
    if not rows:
        raise InputError("no run of this campaign is finished", source=folder)
    return pl.DataFrame(rows, infer_schema_length=None)


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise InputError("a damaged result; delete it and run again", source=path) from error


def _plugins_unless(built_in: bool) -> Iterable[str]:
    """Digests of the files of plug-ins, on which hangs what is not built in."""
    return () if built_in else sorted(loaded_plugins().values())


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]


def _bytes(path: Path) -> int:
    return (
        sum(file.stat().st_size for file in path.iterdir())
        if path.is_dir()
        else path.stat().st_size
    )
