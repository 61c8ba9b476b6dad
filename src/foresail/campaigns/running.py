"""Carry out a campaign: prepare logs, replay what is missing on a pool of workers, keep results."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from io import BytesIO
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import polars as pl

from foresail.campaigns.plan import CampaignPlan, LogSource
from foresail.campaigns.results import Measured, Results, Run, measure, runs_of, workload_digest
from foresail.control.policy import parse_policy
from foresail.model.errors import ForesailError, InputError
from foresail.model.event import CONVENTIONS
from foresail.model.registry import blaming_plug_ins, load_plugin, loaded_plugins
from foresail.scenario.running import on_partitions, run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.truth import real_runtimes
from foresail.traces.filtering import choices_of
from foresail.traces.folder import load_workload, read_folder, write_folder
from foresail.traces.plausibility import clean_and_check
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

if TYPE_CHECKING:
    from distributed import Client


class Pool(Protocol):
    """Workers that replay; each result is handed over as soon as it is there."""

    def replay(self, runs: Sequence[Run], results: Results) -> Iterator[tuple[Run, Measured]]:
        """Replay runs on logs prepared in the results folder, in any order."""


def carry_out(
    plan: CampaignPlan,
    results: Results,
    pool: Pool,
    *,
    preparing: Callable[[LogSource], None],
    finished: Callable[[Run, Measured], None],
) -> int:
    """Replay the runs of a plan that are not finished; returns how many these were.

    Every result is stored in the campaign's folder when it arrives; ``preparing`` is called before
    a log is read, ``finished`` after a result was stored.

    Raises ``InputError`` if a log cannot be read or replayed, or the folder cannot be written to;
    ``UnknownNameError`` if a filter does not exist.
    """
    runs = runs_of(plan)
    results.begin(runs)
    missing = [run for run in runs if not results.is_finished(run)]
    if not missing:
        return 0
    wanted = {run.log for run in missing}
    for log in plan.logs:
        digest = workload_digest(log, plan.filters, one_pool=runs[0].one_pool)
        folder = results.workload_folder(digest)
        if log.name in wanted and not folder.exists():
            preparing(log)
            folder.parent.mkdir(exist_ok=True)
            workload = prepared(log, plan.filters)
            results.say(folder.name, _said(workload, one_pool=runs[0].one_pool))
            write_folder(workload, folder)
    warm_up(plan)
    for run, measured in pool.replay(missing, results):
        results.keep(run, measured)
        finished(run, measured)
    return len(missing)


def prepared(log: LogSource, filters: Sequence[str]) -> Workload:
    """A log, read and cleaned, known to be replayable.

    Raises ``InputError`` if it cannot be read or replayed, holds what cannot be, or a filter's
    parameters do not fit; ``UnknownNameError`` if a reader or filter does not exist.
    """
    options: dict[str, Any] = {}
    if log.processors is not None:
        options["processors"] = log.processors
    workload = load_workload(log.path, log.reader, **options)
    workload = clean_and_check(workload, choices_of(filters))
    real_runtimes(workload)
    return workload


def _said(workload: Workload, *, one_pool: bool) -> list[str]:
    """Say what is odd about a log, and what becomes of the partitions that its jobs name."""
    partitions = on_partitions(workload, one_pool=one_pool).partitions_said
    odd = [f"odd: {each.words}" for each in workload.findings]
    return [*odd, partitions] if partitions else odd


@blaming_plug_ins()
def replayed(workload: Workload, run: Run) -> Measured:
    """Return what a campaign keeps of one run."""
    scenario = Scenario(
        on_partitions(workload, one_pool=run.one_pool),
        parse_policy(run.policy),
        conventions=CONVENTIONS[run.conventions],
        enforce_limits=run.enforce_limits,
    )
    return measure(run_scenario(scenario))


def warm_up(plan: CampaignPlan) -> None:
    """Compile every step of the plan's policies once, so that no two workers compile the same."""
    jobs = jobs_table(
        {
            "job_id": ["1", "2"],
            "submit_seconds": [0.0, 1.0],
            "runtime_seconds": [10.0, 20.0],
            "requested_seconds": [60.0, 60.0],
            "tasks": [1, 1],
            "user": ["1", "1"],
        }
    )
    workload = Workload(jobs, WorkloadMeta("warm-up", "none", processors=1))
    for policy in plan.policies:
        conventions = CONVENTIONS[plan.conventions]
        run_scenario(Scenario(workload, parse_policy(policy), conventions=conventions))


Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerLostError(ForesailError):
    """Workers died, and the work cannot go on; what was finished is kept."""


def in_processes(
    call: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Iterator[tuple[Item, Result]]:
    """Call a function for each item, the first ones first.

    ``call`` is a function of a module; it, the hashable items and results are sent between at most
    so many processes, in each of which the plug-ins that are loaded here are loaded too.

    Raises ``WorkerLostError`` if a worker process dies. What was handed over by then is not lost.
    """
    # Processes are spawned: a fork would copy the locks of Polars' and Numba's threads.
    executor = ProcessPoolExecutor(
        max(min(workers, len(items)), 1),
        multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(tuple(loaded_plugins()),),
    )
    try:
        pending = {executor.submit(call, item): item for item in items}
        for future in as_completed(pending):
            yield pending[future], future.result()
    except BrokenProcessPool as error:
        raise WorkerLostError(
            "a worker process died (killed, or out of memory); finished runs are kept: start the "
            "same command again, perhaps with fewer --workers"
        ) from error
    finally:
        executor.shutdown(cancel_futures=True)


def _start_worker(plugins: Sequence[Path]) -> None:
    """Leave Ctrl-C to the parent, and end when the parent has gone, however it went."""
    for plugin in plugins:
        load_plugin(plugin)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


class LocalPool:
    """Runs on worker processes of this machine.

    ``workers``: how many.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def replay(self, runs: Sequence[Run], results: Results) -> Iterator[tuple[Run, Measured]]:
        """Replay runs, the first ones first; results come as they are done.

        Raises ``WorkerLostError`` if a worker process dies. What was handed over by then is not
        lost.
        """
        placed = [(run, results.workload_folder(run.workload)) for run in runs]
        for (run, _), measured in in_processes(_replay, placed, self.workers):
            yield run, measured


@lru_cache(maxsize=2)
def _workload(folder: Path) -> Workload:
    return read_folder(folder)


def _replay(placed: tuple[Run, Path]) -> Measured:
    run, folder = placed
    return replayed(_workload(folder), run)


_RETRIES: Final = 2
_SECONDS_TO_CONNECT: Final = 10


class DaskPool:
    """Runs on the workers of a Dask cluster, which need Foresail but no files.

    Each log is a task of its own, whose result the workers keep and hand to each other: if all
    copies die with their workers, it is unpacked again from the bytes that the scheduler has. Runs
    of a worker that dies are repeated elsewhere.

    Raises ``InputError`` if the extra is not installed.

    ``address``: of the scheduler, such as ``tcp://10.0.0.1:8786``.
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed  # noqa: F401 - said now, not after the logs are read
        except ImportError as error:
            raise InputError(
                "a Dask cluster needs the package distributed", expected="pip install distributed"
            ) from error
        self.address = address

    def replay(self, runs: Sequence[Run], results: Results) -> Iterator[tuple[Run, Measured]]:
        """Replay runs, the first ones first; results come as they are done.

        Raises ``InputError`` if no scheduler answers at the address; ``WorkerLostError`` if a run's
        workers die again and again. What was handed over by then is not lost.
        """
        from distributed import KilledWorker, as_completed

        with _connected(self.address) as client:
            workloads = {
                digest: client.submit(
                    _unpacked,
                    *_packed(results.workload_folder(digest)),
                    key=f"foresail-workload-{digest}",
                )
                for digest in dict.fromkeys(run.workload for run in runs)
            }
            pending: dict[Any, Run] = {
                client.submit(
                    replayed,
                    workloads[run.workload],
                    run,
                    key=f"foresail-run-{run.key}",
                    retries=_RETRIES,
                ): run
                for run in runs
            }
            try:
                for future in as_completed(pending, loop=client.loop):  # type: ignore[no-untyped-call]
                    yield pending[future], future.result()
            except KilledWorker as error:
                raise WorkerLostError(
                    f"workers of the Dask cluster keep dying: {error}; finished runs are kept"
                ) from error


def _connected(address: str) -> Client:
    from distributed import Client

    try:
        return Client(  # type: ignore[no-untyped-call]  # Dask has no annotations
            address, timeout=_SECONDS_TO_CONNECT, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise InputError(
            "no Dask scheduler answers", value=address, expected="an address like tcp://host:8786"
        ) from error


def _packed(folder: Path) -> tuple[bytes, WorkloadMeta]:
    workload = read_folder(folder)
    buffer = BytesIO()
    workload.jobs.write_parquet(buffer)
    return buffer.getvalue(), workload.meta


def _unpacked(jobs: bytes, meta: WorkloadMeta) -> Workload:
    return Workload(pl.read_parquet(BytesIO(jobs)), meta)
