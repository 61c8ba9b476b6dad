"""Simulating a scenario: by the compiled replay where that can, event by event otherwise."""

from __future__ import annotations

from dataclasses import replace

from foresail.model.watching import Watch
from foresail.scenario.engines import COMPILED_REPLAY, engine_of
from foresail.scenario.scenario import Scenario
from foresail.simulator.replay import replay
from foresail.traces.schedule import Schedule


def run_scenario(scenario: Scenario, watch: Watch | None = None) -> Schedule:
    """What would have happened; whichever engine is chosen, the schedule is the same, job by job.

    Real commands are not for it (``foresail.scenario.by_daemon``). ``watch`` is given a measure of
    the seconds of the log that are simulated.

    Raises
    ------
    InputError
        If the engine that was asked for cannot do what the scenario needs, a runtime is unknown or
        negative, a job is wider than the machine or prefers what no node has, the place is not
        known, or a file cannot be read or written.
    UnknownNameError
        If there is no engine of this name, or a predictor looks at a column that a history does
        not have.
    """
    if engine_of(scenario) is COMPILED_REPLAY:
        schedule = replay(
            scenario.jobs,
            scenario.policy,
            scenario.conventions,
            enforce_limits=scenario.enforce_limits,
            watch=watch,
        )
        meta = replace(schedule.meta, engine=COMPILED_REPLAY.name)
        return replace(schedule, meta=meta)
    from foresail.scenario.by_events import run_logged  # imported here: replays begin sooner

    return run_logged(scenario, watch)
