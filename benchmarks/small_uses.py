"""Small uses of everything that is compiled, as users use it: a few jobs, a few machines.

Each imports what it uses, so that one alone compiles no more than that.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from benchmarks import logs
from foresail.traces.workload import Workload

_JOBS: Final = 60


@cache
def _workload() -> Workload:
    return logs.generated(_JOBS)


def _policies() -> None:
    """Every scheduler and correction, and planning ahead by odds and in drawn futures."""
    from foresail.control.policy import parse_policy
    from foresail.model.registry import entries
    from foresail.scenario.running import run_scenario
    from foresail.scenario.scenario import Scenario

    starts_none = {"external"}
    texts = [each.name for each in entries("scheduler") if each.name not in starts_none]
    texts += [f"easy,recent,{entry.name}" for entry in entries("correction")]
    texts += [
        "easy(reservations=2)",
        "easy(queue=-wait)",
        "3sigma(end_to_end=yes),history,exponential_increment",
    ]
    for text in texts:
        run_scenario(Scenario(_workload(), parse_policy(text)))


def _partitions() -> None:
    """A log of two partitions that share nothing."""
    import polars as pl

    from foresail.control.policy import parse_policy
    from foresail.scenario.running import run_scenario
    from foresail.scenario.scenario import Scenario

    halves = pl.when(pl.int_range(_JOBS) % 2 == 0).then(pl.lit("A")).otherwise(pl.lit("B"))
    workload, size = _workload(), _workload().processors
    jobs = workload.jobs.with_columns(partition=halves)
    divided = replace(workload, jobs=jobs, partitions={"A": size, "B": size})
    run_scenario(Scenario(divided.with_meta(processors=2 * size), parse_policy("easy")))


def _predictors() -> None:
    """Every predictor that needs nothing to be set, replayed and evaluated."""
    from foresail.control.policy import parse_policy
    from foresail.evaluation.replaying import evaluate
    from foresail.model.registry import entries
    from foresail.scenario.running import run_scenario
    from foresail.scenario.scenario import Scenario

    for entry in entries("predictor"):
        if entry.name not in _WITH_FILES:
            run_scenario(Scenario(_workload(), parse_policy(f"easy,{entry.name}")))
            evaluate(_workload(), entry.name)
    forgets = "history(false_alarm_jobs=100)"
    run_scenario(Scenario(_workload(), parse_policy(f"easy,{forgets}")))
    for name in ("similar", forgets, "calibrated"):
        _learned_apart(name)


def _learned_apart(name: str) -> None:
    """Two predictors that learn by themselves, put together where that has a meaning."""
    from foresail.model.short_form import part_of
    from foresail.predictors.saving import merged
    from foresail.predictors.training import train

    part = part_of("predictor", name)
    parts = [part.build(), part.build()]
    for each in parts:
        train(_workload(), each)
        each.predict(next(_workload().specifications()), 0.0)
    if hasattr(parts[0], "absorb"):
        merged(parts, part.build())


_WITH_FILES: Final = frozenset({"saved"})


def _events() -> None:
    """By events with a log of reasons, queues seen for the first time, queues by beliefs."""
    from foresail.checks.rules import tiny_pending, tiny_view
    from foresail.control.policy import parse_policy
    from foresail.model.cluster import Cluster, Partition, Resources
    from foresail.record.log_text import MemoryLog
    from foresail.scenario.beginning import controller_of, manifest_of
    from foresail.scenario.by_events import run_by_events
    from foresail.scenario.scenario import Scenario

    policy = parse_policy("guarded,similar")
    scenario = Scenario(_workload(), policy)
    run_by_events(scenario, controller_of(scenario, MemoryLog(manifest_of(scenario))))
    crowd = [tiny_pending(str(number), 1, 10.0, arrival=number) for number in range(200)]
    view = tiny_view(crowd)
    policy.build()[0].decide(view)
    room = Resources(cpus=4.0)
    two = Cluster((Partition("all", room), Partition("other", room)))
    policy.build()[0].decide(replace(view, cluster=two, free={"all": room, "other": room}))


def _searching() -> None:
    """Plans improved by chance, where a solver is not quick enough."""
    from foresail.schedulers._planning.problem import PlanChoice, Problem
    from foresail.schedulers._planning.solving import search_plan

    question = Problem(
        first_group=np.array([0, 1, 2]),
        group_set=np.array([0, 0]),
        consumption=np.ones((2, 3)),
        worth=np.ones((2, 3)),
        cover=np.ones((1, 1)),
        capacity=np.ones((1, 3)),
        victim_cost=np.ones(1),
        victim_credit=np.ones((1, 1, 3)),
    )
    search_plan(question, PlanChoice.nothing(question), (0.0, np.inf, 10, 10, 2), 1)


def _metrics() -> None:
    """Fairness, use over time and a Gantt chart of a schedule."""
    from foresail.control.policy import parse_policy
    from foresail.metrics.summary import fairness
    from foresail.metrics.usage import gantt, lay_out, over_time, span
    from foresail.scenario.running import run_scenario
    from foresail.scenario.scenario import Scenario

    schedule = run_scenario(Scenario(_workload(), parse_policy("fcfs")))
    window = span([schedule])
    fairness(schedule)
    over_time(schedule, window, 10)
    gantt(lay_out(schedule), window, 10)


def _distributions() -> None:
    """Every distribution alone, and all of them packed."""
    from foresail.distributions.basic import Uniform
    from foresail.distributions.empirical import Empirical
    from foresail.distributions.histogram import Histogram
    from foresail.distributions.log_normal import LogNormal
    from foresail.distributions.operations import Atoms, reduced
    from foresail.distributions.packed import PackedDistributions
    from foresail.distributions.quantiles import Quantiles
    from foresail.distributions.summary import summarise
    from foresail.distributions.truncated_normal import TruncatedNormal

    reduced(Atoms(np.arange(99.0), np.full(99, 1.0 / 99.0)), 4)
    histogram = Histogram.from_values([1.0, 4.0, 4.0, 9.0], 3)
    several = [
        histogram,
        LogNormal(3.0, 1.0),
        TruncatedNormal(5.0, 2.0, 1.0),
        Empirical([1.0, 2.0]),
        Quantiles(np.array([0.0, 0.5, 1.0]), [1.0, 2.0, 4.0]),
        Uniform(1.0, 2.0),
    ]
    random = np.random.default_rng(0)
    for each in several:
        later = each.given(0.5)
        later.survival([0.0, 1.0, 3.0])
        later.quantile(0.5)
        later.mean()
        summarise(each)
        later.sample(random, 3)
    packed = PackedDistributions.pack(several)
    packed.survival_grid(np.full(len(several), 0.5), np.array([0.0, 1.0]))


def _texts() -> None:
    """A log in the Standard Workload Format, and a table in CSV."""
    from foresail.traces.delimited import last_record_end, split_records
    from foresail.traces.folder import load_workload
    from foresail.traces.swf_writer import write_swf

    with tempfile.TemporaryDirectory() as folder:
        write_swf(_workload(), Path(folder) / "log.swf")
        load_workload(Path(folder) / "log.swf")
    text = np.frombuffer(b"a,b\n1,2\n", dtype=np.uint8)
    split_records(text, ord(","), ord('"'))
    last_record_end(text, ord('"'))


def _beliefs() -> None:
    """Many beliefs at once, as plans look at them."""
    from foresail.distributions.basic import Uniform
    from foresail.schedulers._planning.valuing import RuntimeBeliefs

    RuntimeBeliefs([Uniform(1.0, 2.0)]).quantiles(np.array([[0.5]]))


def _variation() -> None:
    """How much similar jobs vary."""
    from foresail_studies.analyses.task_variability import window_variation

    times = np.arange(5.0)
    order = np.arange(5)
    window_variation(np.zeros(5, np.int64), times, times, order, times, order, 10.0, 1)


def _waiting() -> None:
    """Waiting policies of all kinds, told by oracles and models, and their totals."""
    from benchmarks.workloads.waiting import proportional_family
    from foresail.cloud.waiting.jobs import FixedMachines
    from foresail.cloud.waiting.simulating import (
        Beliefs,
        Foresight,
        linear_waits,
        simulate,
        wait_rows,
        waiting_policy,
    )
    from foresail_studies.generators.university import university_year
    from foresail_studies.waiting.formulas import blocking
    from foresail_studies.waiting.metrics import measured
    from foresail_studies.waiting.wait_models import predicted_waits

    jobs = university_year(jobs=200)
    fixed, family = FixedMachines(1, own_price_per_core_hour=0.01), proportional_family()
    compound = waiting_policy("compound", 3600.0, 180.0)
    strict = replace(waiting_policy("njw", 3600.0), queue="strict-fcfs")
    for policy in (compound, strict):
        beliefs = Beliefs.true_runtimes(jobs, Foresight())
        measured(simulate(jobs, fixed, family, policy, beliefs), fixed, policy)
    told = simulate(jobs, fixed, family, compound, Beliefs.true_runtimes(jobs), features_every=1)
    rows = wait_rows(told, compound)
    model = linear_waits(rows)
    predicted_waits(model, rows.features)
    simulate(jobs, fixed, family, compound, Beliefs.true_runtimes(jobs, model))
    blocking([3], [2.0])


def _carbon() -> None:
    """When jobs are to start so that their power is greenest."""
    from foresail.cloud.waiting.carbon import CarbonIntensity, green_starts
    from foresail_studies.generators.university import university_year

    jobs = university_year(jobs=10)
    carbon = CarbonIntensity(np.arange(24.0) % 7.0, 3600.0)
    starts = green_starts(jobs, carbon, jobs.runtime_seconds, 3600.0)
    carbon.grams(starts, jobs.runtime_seconds)


def _transient() -> None:
    """Transient machines: what is up, which to take more of, and clients that are served."""
    from foresail.cloud.transient.availability import capacity_masses, shortfall_after
    from foresail_studies.transient.kernels.service import Clients
    from foresail_studies.transient.service import serve_all

    units, up = np.array([1, 2]), np.array([0.9, 0.8])
    capacity_masses(units, up, 2)
    shortfall_after(units, np.array([1, 1]), up, 2, 1)
    serve_all(1, np.zeros((0, 3)), 1.0, Clients(2, 1), None, np.random.default_rng(0))


def _buying() -> None:
    """What to commit to for a log, in hindsight; schedules, and jobs on reserved machines."""
    from typer.testing import CliRunner

    from foresail.cli.cloud import app
    from foresail.cloud.waiting.kernels.placing import machines_of, timetable
    from foresail.traces.swf_writer import write_swf
    from foresail_studies.purchasing.kernels.reserved_placement import best_intervals, place_jobs

    workload = logs.generated(300)
    day = 86_400.0
    stretched = workload.jobs["submit_seconds"].to_numpy()
    stretched = stretched / stretched.max() * 56.0 * day
    jobs = workload.jobs.with_columns(submit_seconds=stretched)
    with tempfile.TemporaryDirectory() as folder:
        write_swf(replace(workload, jobs=jobs), Path(folder) / "log.swf")
        command = ["buy", str(Path(folder) / "log.swf"), "--format", "json"]
        result = CliRunner().invoke(app, command, catch_exceptions=False)
    if result.exit_code:
        raise RuntimeError(result.output)
    best_intervals(np.array([0, 1]), np.ones(2))
    machines = machines_of(np.array([4]), np.ones(1), np.ones(1))
    times, asked = np.array([[0.0], [1.0]]), np.ones((1, 2, 3))
    place_jobs(times, np.array([[1, 2]]), asked, machines, timetable(1))


def _packing() -> None:
    """Tasks that share machines, packed by what is believed of their use."""
    from foresail.control.policy import parse_policy
    from foresail.model.event import NodeChanged
    from foresail.scenario.running import run_scenario
    from foresail.scenario.scenario import Scenario
    from foresail.simulator.conditions import ClusterConditions
    from foresail.traces.generating import generate
    from foresail.traces.nodes import cluster_of
    from foresail_studies.generators.packing import PackingParameters

    parameters = PackingParameters(hours=0.25, jobs=24, machines=6, most_tasks=12, load=1.2)
    workload = generate("packing", parameters, 2)
    assert workload.nodes is not None
    node = cluster_of(workload.nodes).partitions[0].nodes[0]
    shrinks = NodeChanged(300.0, replace(node, total=node.total * 0.5))
    conditions = ClusterConditions(cycle_seconds=15.0, share_nodes=True, node_changes=(shrinks,))
    run_scenario(Scenario(workload, parse_policy("dist"), "nodes", conditions=conditions))


def _tasks() -> None:
    """Jobs of many tasks and stages, learned from pilots: replayed, and by events."""
    from foresail.control.policy import named_policies, parse_policy
    from foresail.model.registry import entries
    from foresail.scenario.running import run_scenario
    from foresail.scenario.scenario import Scenario
    from foresail.traces.generating import generate
    from foresail_studies.generators.slearn import SLearnDagParameters

    workload = generate("slearn_dag", SLearnDagParameters(dags=20), 1)
    texts = [entry.name for entry in entries("task_scheduler")]
    texts += [name for name in named_policies() if name.startswith("slearn-")]
    for text in texts:
        run_scenario(Scenario(workload, parse_policy(text)))
    brief = replace(workload, jobs=workload.jobs.with_columns(requested_seconds=1.0))
    for each in (workload, brief):  # jobs that are killed never start the rest of their tasks
        policy = parse_policy("slearn")
        run_scenario(Scenario(each, policy, enforce_limits=True, engine="event-engine"))


def _forecasts() -> None:
    """Futures of a few jobs that wait, by a replay, and by a list where one waits for another."""
    from foresail.control.loop import Controller
    from foresail.control.policy import parse_policy
    from foresail.explain.outlook import outlook_of
    from foresail.explain.start_forecaster import StartForecaster
    from foresail.model.cluster import Cluster
    from foresail.model.event import Submitted
    from foresail.model.job import Job

    controller = Controller(Cluster.of_processors(2), *parse_policy("easy").build())
    jobs = [Job.gang(str(number), 0.0, 2, 60.0) for number in range(3)]
    controller.step(0.0, [Submitted(0.0, job) for job in jobs])
    StartForecaster().forecast(outlook_of(controller), scenarios=2)
    after = replace(jobs[0], job_id="after", after=("1",))
    controller.step(1.0, [Submitted(1.0, after)])
    StartForecaster().forecast(outlook_of(controller), scenarios=2)


SMALL_USES: Final = MappingProxyType[str, Callable[[], None]](
    {
        "texts": _texts,
        "policies": _policies,
        "partitions": _partitions,
        "predictors": _predictors,
        "events": _events,
        "searching": _searching,
        "metrics": _metrics,
        "distributions": _distributions,
        "variation": _variation,
        "waiting": _waiting,
        "carbon": _carbon,
        "transient": _transient,
        "buying": _buying,
        "packing": _packing,
        "beliefs": _beliefs,
        "tasks": _tasks,
        "forecasts": _forecasts,
    }
)
"""By name."""
