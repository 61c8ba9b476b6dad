"""Scenarios of real commands, carried out by the daemon of ``foresail.live``."""

from __future__ import annotations

import sys
import uuid
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

from foresail.control.policy import parse_policy
from foresail.live.cluster_plugin import cluster_of
from foresail.live.jobs_file import JobLines, read_jobs
from foresail.live.run_directory import RunDirectory, RunSettings, require_learnable
from foresail.live.session import BuildController, SessionResult, supervise
from foresail.live.source import LineInput, Observer
from foresail.model.cluster import Cluster
from foresail.model.documents import bytes_of
from foresail.model.free_resources import FreeResources
from foresail.record.records import Manifest
from foresail.scenario.beginning import controller_of, manifest_of
from foresail.scenario.engines import engine_of
from foresail.scenario.learned_before import SavedState
from foresail.scenario.own_requests import places_of_requests
from foresail.scenario.scenario import Scenario

_STANDARD_INPUT: Final = "-"


def scenario_of_run(run: RunDirectory) -> Scenario:
    """Return the scenario of a run directory: the same for every session, and its repetition.

    Raises ``InputError`` if its settings cannot be read; ``UnknownNameError`` if a part of its
    policy is not known here.
    """
    before = SavedState(run.learned_before) if run.learned_before.exists() else None
    policy = parse_policy(run.settings().policy)
    return Scenario(None, policy, learned_before=before, commands=run)


def begin_commands(
    jobs: str,
    *,
    policy: str,
    cluster: str,
    directory: Path,
    history: Path | None,
    learned: Path | None,
) -> tuple[RunDirectory, LineInput | None]:
    """Make the directory of a new run, and return where further jobs come from; nothing starts yet.

    ``jobs`` is a file of jobs, or ``-``: lines of standard input. Raises ``InputError`` if anything
    of it cannot be used.
    """
    scenario = Scenario(None, parse_policy(policy), commands=RunDirectory(directory))
    engine_of(scenario)
    found = cluster_of(cluster)
    from_input = jobs == _STANDARD_INPUT
    source = "standard input" if from_input else jobs
    settings = RunSettings(
        source=source,
        source_sha256=None if from_input else sha256(bytes_of(Path(jobs))).hexdigest(),
        policy=scenario.policy.text,
        cluster=cluster,
        history=None if history is None else str(history),
        learned=None if learned is None else str(learned),
        learned_as="" if learned is None else uuid.uuid4().hex,
    )
    if learned is not None:
        require_learnable(settings.policy, learned)
    places = places_of_requests(scenario.policy, found)
    room, here = FreeResources(found), Path.cwd()
    accepted = [] if from_input else read_jobs(Path(jobs), room, here, places)
    run = RunDirectory.create(directory.absolute(), settings, accepted)
    if not from_input:
        return run, None
    return run, LineInput(sys.stdin.fileno(), JobLines(room, here, source, places))


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
