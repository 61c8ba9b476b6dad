"""Worker processes on this machine, each of which keeps the logs that it replayed last."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing.connection import wait
from pathlib import Path

from foresail.experiments.measuring import Measured
from foresail.experiments.results import Results, Run
from foresail.experiments.running import WorkerLostError, replayed
from foresail.traces.folder import read_folder
from foresail.traces.workload import Workload


class LocalPool:
    """Runs on worker processes of this machine.

    Parameters
    ----------
    workers
        How many.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def replay(self, runs: Sequence[Run], results: Results) -> Iterator[tuple[Run, Measured]]:
        """Replay runs, the first ones first; results come as they are done.

        Raises
        ------
        WorkerLostError
            If a worker process dies. What was handed over by then is not lost.
        """
        workers = min(self.workers, len(runs))
        # Processes are spawned: a fork would copy the locks of Polars' and Numba's threads.
        executor = ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), initializer=_start_worker
        )
        try:
            pending: dict[Future[Measured], Run] = {
                executor.submit(_replay, run, results.workload_folder(run.workload)): run
                for run in runs
            }
            for future in as_completed(pending):
                yield pending[future], future.result()
        except BrokenProcessPool as error:
            raise WorkerLostError(
                "a worker process died (killed, or out of memory); finished runs are kept: start "
                "the same campaign again, perhaps with fewer --workers"
            ) from error
        finally:
            executor.shutdown(cancel_futures=True)


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent has gone, however it went."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


@lru_cache(maxsize=2)
def _workload(folder: Path) -> Workload:
    return read_folder(folder)


def _replay(run: Run, folder: Path) -> Measured:
    return replayed(_workload(folder), run)
