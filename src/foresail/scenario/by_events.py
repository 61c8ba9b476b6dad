"""Scenarios carried out by the event engine, and the file of their log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import polars as pl

from foresail.control.loop import Controller
from foresail.control.plug_in_errors import nothing_started
from foresail.model.event import Event
from foresail.model.protocols import ProgressCallback
from foresail.model.whole_files import make_folder, require_replaceable, to_be_written
from foresail.record.log_text import JsonLinesLog
from foresail.record.records import EventLog, NullLog
from foresail.scenario.beginning import controller_of, manifest_of
from foresail.scenario.engines import EVENT_ENGINE
from foresail.scenario.scenario import Scenario
from foresail.simulator.engine import simulate_events
from foresail.traces.parquet import write_whole_parquet
from foresail.traces.schedule import Schedule, use_file


def run_logged(scenario: Scenario, watch: ProgressCallback | None = None) -> Schedule:
    """Run a scenario that is ready for it by the event engine, and write its log."""
    with _event_log(scenario) as log:
        controller = controller_of(scenario, log)
        schedule = run_by_events(scenario, controller, watch=watch, used=_use_beside(scenario))
        count = schedule.jobs.height
        if count and len(controller.pending) == count:
            raise nothing_started(controller.scheduler, count, controller.first_refusal)
        return schedule


def run_by_events(
    scenario: Scenario,
    controller: Controller,
    *,
    external_events: Callable[[], Iterable[Event]] = tuple,
    watch: ProgressCallback | None = None,
    used: Callable[[pl.DataFrame], object] | None = None,
) -> Schedule:
    """Run like ``run_logged``, under a controller that ``controller_of`` made, or another.

    ``used`` is given what the tasks of shared nodes used, as ``simulate_events`` has it.
    """
    schedule = simulate_events(
        scenario.jobs,
        controller,
        scenario.policy.label,
        enforce_limits=scenario.enforce_limits,
        conditions=scenario.conditions,
        external_events=external_events,
        watch=watch,
        used=used,
    )
    return replace(schedule, meta=replace(schedule.meta, engine=EVENT_ENGINE.name))


def _use_beside(scenario: Scenario) -> Callable[[pl.DataFrame], object] | None:
    """Return a writer of the use of shared nodes beside the event log, if there is one."""
    log = scenario.event_log
    if log is None or not scenario.conditions.share_nodes:
        return None
    return partial(write_whole_parquet, path=use_file(log))


@contextmanager
def _event_log(scenario: Scenario) -> Iterator[EventLog]:
    """The log of a scenario, whose file appears once it is whole; its folder is made if need be."""
    path = scenario.event_log
    if path is None:
        yield NullLog()
        return
    require_replaceable(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    make_folder(path.parent)
    try:
        with JsonLinesLog(unfinished, manifest_of(scenario)) as log:
            yield log
        with to_be_written(path):
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
