"""What the guard of the default policy costs in processor time, against EASY in the same run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from benchmarks import logs
from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.policy import parse_policy
from foresail.schedulers.backfilling import GuardedParameters
from foresail.simulator.replay import replay_arrays
from foresail.traces.workload import Workload

REFERENCES = {
    "order": ("EASY, same order and beliefs", f"easy(queue={GuardedParameters().queue}),similar"),
    "easy": ("EASY by requested times", "easy"),
}


@benchmark("guard")
def measure() -> Iterator[Measurement]:
    """``foresail`` against EASY in its order, where the guard is all that differs, and EASY."""
    for log, workload in [("lublin", logs.generated(20_000)), *logs.real()]:
        yield from _against_easy(log, workload)


def _against_easy(log: str, workload: Workload) -> Iterator[Measurement]:
    def replayed(text: str) -> None:
        replay_arrays(workload, workload.runtime_seconds.copy(), parse_policy(text))

    texts = ["foresail", *(text for _, text in REFERENCES.values())]
    replays = [partial(replayed, text) for text in texts]
    ours, *references = best_in_turns(0.5, *replays, clock=time.process_time)
    for (name, (reference, _)), least in zip(REFERENCES.items(), references, strict=True):
        yield Measurement(f"guard {log} {name}", ours, reference, least, len(workload), "job")
