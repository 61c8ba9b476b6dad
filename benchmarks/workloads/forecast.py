"""Forecasts: drawn futures of a long queue, against the event engine that decides each anew."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator

import numpy as np

from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.explain.forecast import SCENARIOS, forecast_waiting
from foresail.explain.outlook import outlook_of
from foresail.model.cluster import Cluster
from foresail.model.event import Submitted
from foresail.model.job import Job
from foresail.simulator.driver import draw_runtimes, simulate_forward

_JOBS = 1_000
_CPUS = 128


@benchmark("forecast")
def measure() -> Iterator[Measurement]:
    """300 futures of 1,000 jobs that wait under `foresail`; one of them by the event engine."""
    random = np.random.default_rng(0)
    policy = parse_policy("foresail")
    controller = Controller(Cluster.of_processors(_CPUS), *policy.build())
    controller.step(
        0.0,
        [
            Submitted(0.0, Job.gang(str(number), 0.0, int(cpus), float(seconds), f"u{number % 20}"))
            for number, (cpus, seconds) in enumerate(
                zip(random.integers(1, 33, _JOBS), random.integers(600, 36_000, _JOBS), strict=True)
            )
        ],
    )

    def by_the_engine() -> None:
        running = controller.running.values()
        drawn = draw_runtimes(controller.pending, running, controller.now, 1, 0)
        scheduler, _, correction = policy.build()
        fork = controller.fork(scheduler, copy.deepcopy(controller.predictor), correction)
        runtimes = {job_id: float(values[0]) for job_id, values in drawn.items()}
        deque(simulate_forward(fork, runtimes), maxlen=0)

    seconds, reference = best_in_turns(
        2.0, lambda: forecast_waiting(outlook_of(controller)), by_the_engine
    )
    yield Measurement(
        "forecast of 1,000 jobs",
        seconds,
        "one future by the event engine",
        reference,
        SCENARIOS,
        "future",
    )
