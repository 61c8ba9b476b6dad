"""What the guard of the default policy costs: replays with it, against EASY in the same run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks import logs
from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.policy import parse_policy
from foresail.schedulers.guarded import GuardedParameters
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
    seconds: dict[str, list[float]] = {}

    def replayed(text: str) -> None:
        runtime = workload.runtime_seconds.copy()
        result = replay_arrays(workload, runtime, parse_policy(text))
        seconds.setdefault(text, []).append(result.seconds)

    texts = ["foresail", *(text for _, text in REFERENCES.values())]
    best_in_turns(0.5, *[partial(replayed, text) for text in texts])
    ours = min(seconds["foresail"])
    for name, (reference, text) in REFERENCES.items():
        least = min(seconds[text])
        yield Measurement(f"guard {log} {name}", ours, reference, least, len(workload), "job")
