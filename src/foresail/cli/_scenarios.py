"""The options of ``simulate`` and ``compare`` that say what is run, as scenarios."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from foresail.cli.formats import naming_options
from foresail.cli.log_options import LEARNABLE, LogOptions, load
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.registry import todays_name

if TYPE_CHECKING:
    from foresail.model.event import NodeChange
    from foresail.scenario.learned_before import LearnedBefore
    from foresail.scenario.scenario import Scenario
    from foresail.simulator.conditions import Outage
    from foresail.traces.workload import Workload


ConventionsName: TypeAlias = Annotated[
    str,
    typer.Option(
        "--conventions",
        callback=lambda word: todays_name("--conventions", word),
        help="Order of things at equal times: standard, predictsim.",
    ),
]
EnforceLimits: TypeAlias = Annotated[
    bool, typer.Option("--enforce-limits", help="End jobs at their requested time.")
]

_OPTIONS: Final = {
    "cycle_seconds": "--cycle",
    "start_delay_seconds": "--start-delay",
    "runtime_noise": "--noise",
    "engine": "--engine",
}
"""Options by the fields of scenarios that they set."""
_OUTAGES: Final = "two numbers of seconds above 0 such as 86400,1800"


@dataclass(frozen=True, kw_only=True)
class ScenarioOptions:
    """The options as given; None where they were not.

    Options:
        events FILE: Write the event log, for foresail explain; with several policies, FILE-1,
            FILE-2 ...
        on_nodes: Place tasks on the workload's own nodes.
        share_nodes: With --on-nodes: tasks share cpus and memory by what they really
            use over time (with foresail-studies).
        cycle SECONDS: Ask the scheduler once in so many seconds alone.
        start_delay SECONDS: What a job runs on is held so long, on average, before an attempt runs.
        noise SIGMA: Runtimes vary by a log-normal factor of mean 1 and this sigma.
        outages SECONDS,SECONDS: With --on-nodes: mean time a node is up between failures, and mean
            time to repair.
        node_changes FILE: With --on-nodes: nodes that come, change and go, as CSV with the columns
            seconds,change,node,partition,cpus (change: added, changed, removed), and
            known_from_seconds of maintenance that is known beforehand.
        conditions_seed (0..): Seed of delays, noise and outages [0]; the same for every policy.
        learn_from PATH: Predictors learn before the first job: from a log, the file of foresail
            predict train, or the directory or event log of an earlier run.
        engine NAME: compiled-replay or event-engine [the quickest that can do what is asked].
    """

    conventions: ConventionsName = "standard"
    enforce_limits: EnforceLimits = False
    events: Path | None = None
    on_nodes: bool = False
    share_nodes: bool = False
    cycle: float | None = None
    start_delay: float | None = None
    noise: float | None = None
    outages: str | None = None
    node_changes: Path | None = None
    conditions_seed: int | None = None
    learn_from: Path | None = None
    engine: str | None = None

    @naming_options(_OPTIONS)
    def scenarios(self, policies: Sequence[str]) -> list[Scenario]:
        """A scenario per policy, without its workload; refuses all that can be before it is read.

        Raises ``InputError`` if a value is out of range, options do not go together, or a file
        cannot be read; ``UnknownNameError`` if there are no such conventions, engine, or part of a
        policy.
        """
        from foresail.control.policy import parse_policy
        from foresail.model.event import CONVENTIONS
        from foresail.scenario.engines import engine_of
        from foresail.scenario.scenario import Scenario
        from foresail.simulator.conditions import ClusterConditions

        if self.conventions not in CONVENTIONS:
            raise UnknownNameError("conventions", self.conventions, CONVENTIONS)
        self._require_effect()
        conditions = ClusterConditions(
            cycle_seconds=self.cycle,
            start_delay_seconds=self.start_delay or 0.0,
            runtime_noise=self.noise or 0.0,
            node_changes=self._node_changes(),
            share_nodes=self.share_nodes,
            seed=self.conditions_seed or 0,
        )
        parsed = [parse_policy(text) for text in policies]
        for policy in parsed:
            policy.build()
        asked = [
            Scenario(
                workload=None,
                policy=policy,
                place="nodes" if self.on_nodes else "processors",
                conventions=CONVENTIONS[self.conventions],
                conditions=conditions,
                enforce_limits=self.enforce_limits,
                event_log=self._event_log(number, len(parsed)),
                learned_before=None,
                engine=self.engine,
            )
            for number, policy in enumerate(parsed, start=1)
        ]
        learned_before = None if self.learn_from is None else _learned_before(self.learn_from)
        scenarios = [replace(each, learned_before=learned_before) for each in asked]
        for each in scenarios:
            engine_of(each)
        return scenarios

    def with_workload(self, workload: Workload, scenario: Scenario) -> Scenario:
        """The scenario of a workload; outages go on until its last job is submitted.

        Raises ``InputError`` if there are to be outages, and the workload has no nodes, or changes
        that its nodes cannot go through.
        """
        if self.node_changes is not None:
            from foresail.scenario.scenario import nodes_of
            from foresail.traces.nodes import require_possible

            require_possible(self.node_changes, nodes_of(workload))
        return replace(
            scenario,
            workload=workload,
            conditions=replace(scenario.conditions, outages=self._outages(workload)),
        )

    def _require_effect(self) -> None:
        if self.share_nodes and not self.on_nodes:
            raise InputError("only with --on-nodes", field="--share-nodes")
        if self.outages is not None:
            _mean_times(self.outages)
            if not self.on_nodes:
                raise InputError("only with --on-nodes", field="--outages", value=self.outages)
        elif self.conditions_seed is not None and not (self.start_delay or self.noise):
            raise InputError(
                "there is nothing to draw",
                field="--conditions-seed",
                value=self.conditions_seed,
                expected="--start-delay, --noise or --outages with it",
            )

    def _node_changes(self) -> tuple[NodeChange, ...]:
        if self.node_changes is None:
            return ()
        if not self.on_nodes:
            problem = "only with --on-nodes"
            raise InputError(problem, field="--node-changes", value=self.node_changes)
        from foresail.traces.nodes import read_node_changes

        return read_node_changes(self.node_changes)

    def _event_log(self, number: int, policies: int) -> Path | None:
        if self.events is None or policies == 1:
            return self.events
        return self.events.with_stem(f"{self.events.stem}-{number}")

    def _outages(self, workload: Workload) -> tuple[Outage, ...]:
        if self.outages is None:
            return ()
        from foresail.scenario.scenario import nodes_of
        from foresail.simulator.conditions import random_outages

        last = workload.jobs["submit_seconds"]
        horizon = float(last[-1]) if len(last) else 0.0
        means = _mean_times(self.outages)
        return random_outages(nodes_of(workload), horizon, *means, self.conditions_seed or 0)


def _mean_times(text: str) -> tuple[float, float]:
    """Mean seconds up and down."""
    try:
        between, repair = (float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(
            "not a pair of numbers", field="--outages", value=text, expected=_OUTAGES
        ) from error
    if not (0.0 < between < float("inf") and 0.0 < repair < float("inf")):
        raise InputError("out of range", field="--outages", value=text, expected=_OUTAGES)
    return between, repair


def _learned_before(path: Path) -> LearnedBefore:
    from foresail.live.run_directory import RunDirectory
    from foresail.scenario.learned_before import EarlierRun, HistoryWorkload, SavedState

    if (path / "run.json").is_file():
        return EarlierRun(RunDirectory.open(path).events)
    if path.suffix == ".jsonl":
        return EarlierRun(path)
    if path.is_file() and zipfile.is_zipfile(path):
        return SavedState(path)
    return HistoryWorkload(load(path, LogOptions(), LEARNABLE))
