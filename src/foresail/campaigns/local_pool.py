"""Worker processes on this machine, each of which keeps the logs that it replayed last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from foresail.campaigns.measuring import Measured
from foresail.campaigns.processes import in_processes
from foresail.campaigns.results import Results, Run
from foresail.campaigns.running import replayed
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
        placed = [(run, results.workload_folder(run.workload)) for run in runs]
        for (run, _), measured in in_processes(_replay, placed, self.workers):
            yield run, measured


@lru_cache(maxsize=2)
def _workload(folder: Path) -> Workload:
    return read_folder(folder)


def _replay(placed: tuple[Run, Path]) -> Measured:
    run, folder = placed
    return replayed(_workload(folder), run)
