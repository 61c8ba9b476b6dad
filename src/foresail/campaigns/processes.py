"""Independent calls on worker processes of this machine; results come as they are done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from pathlib import Path
from typing import TypeVar

from foresail.model.errors import ForesailError
from foresail.model.registry import load_plugin, loaded_plugins

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

    Raises
    ------
    WorkerLostError
        If a worker process dies. What was handed over by then is not lost.
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
