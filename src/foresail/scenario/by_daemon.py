"""Scenarios of real commands, carried out by the daemon of ``foresail.live``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from foresail.control.policy import parse_policy
from foresail.live.run_directory import RunDirectory
from foresail.live.session import BuildController, SessionResult, supervise
from foresail.live.source import LineInput, Observer
from foresail.model.cluster import Cluster
from foresail.record.records import Manifest
from foresail.scenario.beginning import controller_of, manifest_of
from foresail.scenario.learned_before import SavedState
from foresail.scenario.running import engine_of
from foresail.scenario.scenario import Scenario


def scenario_of_run(run: RunDirectory) -> Scenario:
    """Return the scenario of a run directory: the same for every session, and its repetition.

    Raises ``InputError`` if its settings cannot be read; ``UnknownNameError`` if a part of its
    policy is not known here.
    """
    before = SavedState(run.learned_before) if run.learned_before.exists() else None
    policy = parse_policy(run.settings().policy)
    return Scenario(None, policy, learned_before=before, commands=run)


def run_commands(
    run: RunDirectory, observer: Observer, lines: LineInput | None = None
) -> SessionResult:
    """Work on a run until it is done or interrupted: ``supervise``, and how it began.

    Raises ``InputError`` if an engine cannot do what the scenario needs, another supervisor is at
    work on the run, or what an earlier one left cannot be used.

    Parameters
    ----------
    run
        Its directory.
    observer
        Shows what happens.
    lines
        Where further commands come from in this session.
    """
    scenario = scenario_of_run(run)
    engine = engine_of(scenario)

    def begin(cluster: Cluster) -> tuple[Manifest, BuildController]:
        on_cluster = replace(scenario, place=cluster)
        return manifest_of(on_cluster), partial(controller_of, on_cluster)

    return supervise(run, begin, observer, lines, engine=engine.name)
