"""Tasks that share machines: changes of use, and the decision which tasks to pack where."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.distributions.empirical import Empirical
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement, Start
from foresail.model.job import Job, Stage
from foresail.simulator.conditions import IDEAL
from foresail.simulator.simulated_cluster import SimulatedCluster
from foresail_studies.executions._real_use import RealUse
from foresail_studies.executions.shared_nodes import SharedMachines
from foresail_studies.schedulers._packing import Candidate, PackedMachines, choose, task_use
from foresail_studies.schedulers.kernels.packing import TaskUse

_CPUS = 8.0
_MEMORY = 64.0
_KINDS = 200


@benchmark("packing")
def measure() -> Iterator[Measurement]:
    """Use that changes 105,000 times on 70 machines; 700 jobs for 700 machines, and for 12,500.

    Against NumPy: sorting as many times, and adding up the use of the tasks of every machine once.
    In seconds of processor time.
    """
    yield _changes()
    for machines in (700, 12_500):
        yield _decision(machines)


def _changes() -> Measurement:
    machines, tasks, periods = 70, 700, 150
    random = np.random.default_rng(1)
    segments = np.column_stack(
        (
            random.uniform(60.0, 540.0, tasks * periods),
            np.minimum(random.lognormal(-0.3, 0.6, tasks * periods), _CPUS),
            random.uniform(1.0, 5.0, tasks * periods),
        )
    )
    bounds = {(str(i), ""): np.array([i, i + 1]) * periods for i in range(tasks)}
    job = Job("", 0.0, (Stage(1, Resources(1.0, 4.0)),))
    total = Resources(_CPUS, _MEMORY)
    nodes = tuple(Node(f"m{i}", total) for i in range(machines))
    cluster = Cluster((Partition("all", total * machines, nodes),))
    times = random.random(2 * segments.shape[0])

    def simulated() -> None:
        model = SharedMachines(RealUse(segments, bounds), lambda _: job, cluster, IDEAL)
        simulation = SimulatedCluster(cluster, model, lambda _: job)
        for number in range(tasks):
            place = Placement((("all", 1),), ((f"m{number % machines}", 1),))
            simulation.carry_out(Start(str(number), place), 0.0)
        while (now := simulation.next_seconds) < float("inf"):
            simulation.reports(now)

    seconds, reference = best_in_turns(
        3.0, simulated, lambda: np.sort(times, kind="stable"), clock=time.process_time
    )
    return Measurement("packing changes", seconds, "NumPy", reference, segments.shape[0], "change")


def _decision(count: int) -> Measurement:
    random = np.random.default_rng(2)
    machines = PackedMachines(np.tile([_CPUS, _MEMORY], (count, 1)), 64)
    uses = [_use(machines, random) for _ in range(_KINDS)]
    running: list[list[TaskUse]] = []
    for machine in range(count):
        running.append([])
        while machines.table[machine, 4] < 0.75 * _CPUS:
            use = uses[random.integers(_KINDS)]
            machines.add(machine, len(running[-1]), use)
            running[-1].append(use)
    jobs = [
        Candidate(
            uses[random.integers(_KINDS)],
            int(random.choice([1, 1, 1, 5, 15])),
            float(random.lognormal(5.0, 1.0)),
            *((1000.0, 300.0, 2000.0) if random.random() < 0.5 else (1.0, -5.0, 18_000.0)),
        )
        for _ in range(700)
    ]

    def added_up() -> None:
        for tasks in running:
            total = np.ones(1)
            for use in tasks:
                total = np.convolve(total, use.masses[0])[: machines.bins]

    def decided() -> None:
        choose(machines, jobs, (0.1, 0.05))

    seconds, reference = best_in_turns(2.0, decided, added_up, clock=time.process_time)
    return Measurement(f"packing {count} machines", seconds, "NumPy", reference, 700, "job")


def _use(machines: PackedMachines, random: np.random.Generator) -> TaskUse:
    cpus = random.lognormal(-1.0, 0.8) * np.exp(random.normal(0.0, 0.5, 30))
    memory = random.lognormal(0.5, 0.6) * np.exp(random.normal(0.0, 0.3, 30))
    return task_use(Empirical(cpus), Empirical(memory), 1.0, machines.steps, machines.bins)
