"""How often jobs start within the range of 80 % that was forecast: ``coverage_of_starts.py LOG``.

A log is simulated, event by event. At random submissions of jobs that do not start at once the
start is forecast from how things stand, without and with jobs to come, as it comes out and as it is
corrected by how those before have held, and compared with the start in the simulation.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.explain.forecast import Range, WaitingForecast, forecast_waiting
from foresail.explain.outlook import outlook_of, with_arrivals
from foresail.explain.start_calibration import AskedStart, StartCalibration
from foresail.model.cluster import Cluster
from foresail.model.decision import Start
from foresail.model.event import Submitted
from foresail.record.records import EventTaken, Instructed, Record
from foresail.simulator.engine import simulate_events
from foresail.traces.folder import load_workload
from foresail.traces.workload import Workload

_WAYS = ("none", "corrected", "drawn, corrected")


class Asking:
    """A log that asks for forecasts as it is written, and notes when jobs start."""

    def __init__(self, share: float, scenarios: int) -> None:
        self.controller: Controller | None = None
        self.told: dict[str, dict[str, WaitingForecast]] = {}
        self._drawn: dict[str, dict[str, tuple[float, Range, int]]] = {way: {} for way in _WAYS[1:]}
        self.starts: dict[str, float] = {}
        self.asked_at: dict[str, float] = {}
        self._share, self._scenarios = share, scenarios
        self._random = np.random.default_rng(1)
        self._submitted: list[str] = []

    def append(self, record: Record) -> None:
        """Take one record."""
        match record:
            case EventTaken(event=Submitted(job=job)):
                self._submitted.append(job.job_id)
            case Instructed(time=now, instruction=Start(job_id=job_id)):
                self.starts.setdefault(job_id, now)

    def commit(self) -> None:
        """A step is whole: ask of some of the jobs that it has let wait."""
        came, self._submitted = self._submitted, []
        controller = self.controller
        assert controller is not None
        history = controller.state.history
        assert history is not None
        for job_id in came:
            waits = controller.state.pending_job(job_id) is not None
            if not waits or self._random.random() >= self._share:
                continue
            outlook = outlook_of(controller)
            self.asked_at[job_id] = controller.now
            told = self.told[job_id] = {}
            for way, corrected in (("none", "corrected"), ("drawn", "drawn, corrected")):
                if way == "drawn":
                    outlook = with_arrivals(outlook, controller, history)
                drawn = forecast_waiting(outlook, scenarios=self._scenarios)
                told[way] = drawn[job_id]
                told[corrected] = self._calibration(corrected).corrected(controller.now, drawn)[
                    job_id
                ]
                self._drawn[corrected][job_id] = controller.now, told[way].start, len(drawn)

    def _calibration(self, way: str) -> StartCalibration:
        """Return the calibration by what is known now of those that were asked about."""
        assert self.controller is not None
        now, starts = self.controller.now, self.starts
        return StartCalibration(
            [
                AskedStart(*drawn, starts.get(job_id, now), job_id in starts)
                for job_id, drawn in self._drawn[way].items()
            ]
        )


def covered(workload: Workload, policy: str, share: float, scenarios: int) -> Asking:
    """Simulate a log, and ask as it goes by."""
    cluster = Cluster.of_processors(workload.processors)
    log = Asking(share, scenarios)
    log.controller = Controller(cluster, *parse_policy(policy).build(), log=log)
    simulate_events(workload, log.controller, policy)
    return log


def main() -> int:
    """Print a line for each log, and for each way of asking."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--policy", action="append")
    parser.add_argument("--jobs", type=int, default=5_000, help="the first so many of each log")
    parser.add_argument("--asked", type=int, default=300, help="of about so many")
    parser.add_argument("--scenarios", type=int, default=200)
    chosen = parser.parse_args()
    print(
        f"{'log':22}{'policy':28}{'jobs to come':>18}{'asked':>7}{'before':>8}{'within':>8}"
        f"{'after':>7}{'width':>9}"
    )
    for path in chosen.logs:
        workload = load_workload(path)
        some = Workload(workload.jobs.head(chosen.jobs), workload.meta)
        for policy in chosen.policy or ["easy,recent,incremental", "foresail"]:
            log = covered(some, policy, chosen.asked / chosen.jobs * 2.0, chosen.scenarios)
            for way in ("none", "corrected", "drawn", "drawn, corrected"):
                _print(path.name[:20], policy, log, way)
    return 0


def _print(name: str, policy: str, log: Asking, way: str) -> None:
    known = [job_id for job_id in log.told if job_id in log.starts]
    if not known:
        print(f"{name:22}{policy:28}{'no job waited':>18}")
        return
    found = [log.told[job_id][way].start for job_id in known]
    ranges = np.array([(each.low, each.median, each.high) for each in found])
    starts = np.array([log.starts[job_id] for job_id in known])
    before, after = starts < ranges[:, 0] - 1.0, starts > ranges[:, 2] + 1.0
    width = np.median((ranges[:, 2] - ranges[:, 0])[np.isfinite(ranges[:, 2])])
    print(
        f"{name:22}{policy:28}{way:>18}{len(known):7}"
        f"{before.mean():8.0%}{1.0 - before.mean() - after.mean():8.0%}{after.mean():7.0%}"
        f"{width / 3600.0:7.1f} h",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
