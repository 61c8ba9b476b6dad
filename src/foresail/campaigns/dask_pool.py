"""Workers of a Dask cluster, to which the logs are sent; needs the extra ``dask``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from foresail.campaigns.measuring import Measured
from foresail.campaigns.processes import WorkerLostError
from foresail.campaigns.results import Results, Run
from foresail.campaigns.running import replayed
from foresail.model.errors import InputError
from foresail.traces.folder import read_folder
from foresail.traces.workload import Workload, WorkloadMeta

if TYPE_CHECKING:
    from distributed import Client

_RETRIES: Final = 2
_SECONDS_TO_CONNECT: Final = 10


class DaskPool:
    """Runs on the workers of a Dask cluster, which need Foresail but no files.

    Each log is a task of its own, whose result the workers keep and hand to each other: if all
    copies die with their workers, it is unpacked again from the bytes that the scheduler has. Runs
    of a worker that dies are repeated elsewhere.

    Parameters
    ----------
    address
        Of the scheduler, such as ``tcp://10.0.0.1:8786``.

    Raises
    ------
    InputError
        If the extra is not installed.
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed  # noqa: F401 - said now, not after the logs are read
        except ImportError as error:
            raise InputError(
                "a Dask cluster needs the package distributed",
                expected="pip install distributed",
            ) from error
        self.address = address

    def replay(self, runs: Sequence[Run], results: Results) -> Iterator[tuple[Run, Measured]]:
        """Replay runs, the first ones first; results come as they are done.

        Raises
        ------
        InputError
            If no scheduler answers at the address.
        WorkerLostError
            If a run's workers die again and again. What was handed over by then is not lost.
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
