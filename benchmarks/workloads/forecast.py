"""Forecasts: drawn futures of a long queue, against the event engine that decides each anew."""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.explain.outlook import Outlook, outlook_of
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.cluster import Cluster
from foresail.model.event import Submitted
from foresail.model.job import Job
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest
from foresail.simulator.driver import simulate_forward

_JOBS = 1_000
_CPUS = 128
_DAY_SECONDS = 86_400.0
_COME_A_DAY = 200


@benchmark("forecast")
def measure() -> Iterator[Measurement]:
    """Forecasts of 1,000 jobs that wait, with 200 a day to come; a future by the event engine."""
    yield from _measured("easy")
    yield from _measured("foresail")


def _measured(text: str) -> Iterator[Measurement]:
    random = np.random.default_rng(0)
    policy, cluster = parse_policy(text), Cluster.of_processors(_CPUS)
    log = MemoryLog(Manifest(text, cluster))
    controller = Controller(cluster, *policy.build(), log=log)
    sizes = zip(random.integers(1, 33, _JOBS), random.integers(600, 36_000, _JOBS), strict=True)
    controller.step(
        0.0,
        [
            Submitted(0.0, Job.gang(str(number), 0.0, int(cpus), float(seconds), f"u{number % 20}"))
            for number, (cpus, seconds) in enumerate(sizes)
        ],
    )
    outlook, forecaster = _with_a_day(controller), StartForecaster()
    jobs, running = outlook.waiting.jobs, [*controller.running.values()]
    drawn = forecaster.draw(jobs, running, controller.now, 1, 0)
    ids = [*jobs.places, *(each.job.job_id for each in running)]
    runtimes = dict(zip(ids, np.concatenate(drawn, axis=1)[0].tolist(), strict=True))

    def by_the_engine() -> None:
        scheduler, _, correction = policy.build()
        fork = controller.fork(scheduler, copy.deepcopy(controller.predictor), correction)
        deque(simulate_forward(fork, runtimes), maxlen=0)

    seconds, reference = best_in_turns(
        3.0, lambda: forecaster.forecast(outlook), by_the_engine, clock=time.process_time
    )
    name = f"forecast of 1,000 jobs {text}"
    yield Measurement(name, seconds, "one future by the event engine", reference, _JOBS, "job")


def _with_a_day(controller: Controller) -> Outlook:
    """The outlook, with some of its jobs as those that came within the last day."""
    outlook = outlook_of(controller, history=controller.state.history)
    seconds = np.linspace(-_DAY_SECONDS, 0.0, _COME_A_DAY, endpoint=False).tolist()
    recent = tuple(
        replace(each, submit_seconds=when)
        for each, when in zip(outlook.recent, seconds, strict=False)
    )
    return replace(outlook, recent=recent, begin_seconds=-_DAY_SECONDS)
