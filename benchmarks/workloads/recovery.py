"""Recovery of a run: 10,000 jobs and a million records, with the snapshot and without it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live.run_log import recover, snapshot_path
from foresail.model.cluster import Cluster
from foresail.model.event import EstimateExpired, Submitted
from foresail.model.job import Job
from foresail.record.records import EventLog, Manifest

_JOBS = 10_000
_RUNNING = 1_000
_CORRECTIONS = 330
"""Of each job that runs; every one is two records."""


@benchmark("recovery")
def measure() -> Iterator[Measurement]:
    """How long it takes until a controller knows again what the log says; processor time."""
    policy = parse_policy("easy,requested,exponential_increment(cycle_seconds=60,growth=1)")
    manifest = Manifest("recovery", Cluster.of_processors(_RUNNING))

    def build(log: EventLog) -> Controller:
        return Controller(manifest.cluster, *policy.build(), log=log)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        records = _write(path, manifest, build)
        snapshot = snapshot_path(path)
        aside = snapshot.with_suffix(".aside")

        def with_snapshot() -> None:
            recover(path, manifest, build)[1].close()

        def whole_log() -> None:
            snapshot.rename(aside)
            try:
                recover(path, manifest, build)[1].close()
            finally:
                aside.rename(snapshot)

        seconds, reference = best_in_turns(2.0, with_snapshot, whole_log, clock=time.process_time)
    yield Measurement(
        "recovery of 10,000 jobs", seconds, "without the snapshot", reference, records, "record"
    )


def _write(path: Path, manifest: Manifest, build: Callable[[EventLog], Controller]) -> int:
    """Write the log of a run whose running jobs outlast every estimate; how many records it has."""
    controller, log = recover(path, manifest, build)
    controller.step(
        0.0, [Submitted(0.0, Job.gang(f"{number}", 0.0, 1, 60.0)) for number in range(_JOBS)]
    )
    for _ in range(_CORRECTIONS):
        now = min(each.expected_end_seconds for each in controller.running.values())
        controller.step(
            now, [EstimateExpired(now, job.job.job_id) for job in controller.running.values()]
        )
    log.close()
    with path.open("rb") as file:
        return sum(1 for _ in file)
