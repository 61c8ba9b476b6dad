"""Compilation ahead of the kernels that decide and draw forecasts, by a process apart.

A compiler's memory stays with the process that has compiled, and its other threads wait for it.
``python -m foresail.explain.compiling`` leaves in the cache on disk what a service needs, unless it
is there; ``make setup`` calls it, and so does a service that finds nothing.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import llvmlite.binding
import numba

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.summary import summarise
from foresail.explain.forecast import forecast_running
from foresail.explain.kernels.forward import fill_starts
from foresail.explain.outlook import outlook_maker
from foresail.explain.start_forecaster import StartForecaster
from foresail.kernels.compile import digest_of_sources
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.event import Submitted
from foresail.model.job import Job, Stage
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest
from foresail.scenario.beginning import rehearse

_LOG: Final = logging.getLogger("foresail.service")
_MODULE: Final = "foresail.explain.compiling"
_POLICIES: Final = ("foresail", "easy")
_NODE: Final = Resources(4.0, 16.0 * 2**30)
_CLUSTER: Final = Cluster((Partition("all", _NODE, (Node("node-1", _NODE),)),))
_MANIFEST: Final = Manifest(policy="", cluster=_CLUSTER)
_JOBS: Final = [Job(str(number), 0.0, (Stage(4, Resources(1.0)),), 60.0) for number in range(3)]
_VARIABLES: Final = re.compile("HOME|PATH|TMPDIR|(NUMBA|PYTHON|XDG)_?[A-Z_]*")
"""Names of what of the environment decides where code is found and cached; no secrets."""

_NICE: Final = 10


def _mark() -> Path | None:
    """File that says for which sources all is in the cache; None if nothing can be cached."""
    folder = getattr(fill_starts, "_cache").cache_path  # noqa: B009 - a kernel is a function to mypy
    return None if folder is None else Path(folder) / "compiled-ahead"


def _state() -> str:
    """Text of what the cache depends on: compiler, processor and sources."""
    return (
        f"{numba.__version__} {llvmlite.binding.get_host_cpu_name()} {digest_of_sources(_MODULE)}"
    )


def are_compiled() -> bool:
    """Return whether what a service needs was compiled for these sources on such a processor."""
    mark = _mark()
    return mark is not None and mark.is_file() and mark.read_text(encoding="utf-8") == _state()


class CompilerApart:
    """Has a process apart compile what is not compiled yet, once; others wait for it meanwhile."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._was_tried = False
        self.is_stopped = False

    def compile(self) -> None:
        """Return when all is compiled, or cannot be by a process apart, or that was stopped."""
        with self._lock:
            if self.is_stopped or self._was_tried or _mark() is None or are_compiled():
                return
            self._was_tried = True
            variables = {
                name: each for name, each in os.environ.items() if _VARIABLES.fullmatch(name)
            }
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE],
                env=variables,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            _, problem = self._process.communicate()
            if self._process.returncode > 0:
                _LOG.warning("kernels are compiled by the service itself: %s", problem[-500:])

    def stop(self) -> None:
        """End the process, if there is one; it leaves what it has compiled."""
        self.is_stopped = True
        if self._process is not None:
            self._process.kill()


def compile_here() -> None:
    """Compile, or load, all that is needed, by using it on a few jobs."""
    for text in _POLICIES:
        controllers = [
            Controller(_CLUSTER, *parse_policy(text).build(), log=MemoryLog(_MANIFEST))
            for _ in range(2)
        ]
        rehearse(controllers[0])  # some of its jobs want memory: the list kernel carries them on
        controllers[1].step(0.0, [Submitted(0.0, job) for job in _JOBS])
        for each in controllers:
            _foresee(each)
    summarise(Quantiles((0.0, 1.0), (1.0, 2.0)))


def _foresee(controller: Controller) -> None:
    """Forecast what waits and runs of a controller."""
    history = controller.state.history
    starts = StartForecaster()
    if history is not None:
        starts.catch_up(history)
    starts.forecast(outlook_maker(controller, (), history)())
    forecast_running([*controller.running.values()], controller.now, starts.draw)
    float(controller.look_again_seconds)  # the guard's next look: asking for it compiles it


def main() -> None:
    """Compile what is not in the cache on disk."""
    if are_compiled():
        return
    os.nice(_NICE)
    compile_here()
    mark = _mark()
    if mark is not None:
        mark.write_text(_state(), encoding="utf-8")


if __name__ == "__main__":
    main()
