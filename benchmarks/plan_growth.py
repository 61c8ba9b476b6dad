"""``python -m benchmarks.plan_growth FOLDER``: how a cycle of planning ahead grows, drawn.

Processor time of one decision against the nodes, the jobs that wait, the slots of the window and
the partitions, one at a time; and what a plan loses when its budget cuts it short.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from benchmarks.plan_cycles import Watched
from foresail.control.policy import parse_policy
from foresail.distributions.histogram import Histogram
from foresail.model.decision import Placement
from foresail.model.registry import find
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.reports.curve_figure import Axis, Curve, curve_figure
from foresail.reports.figure import ImageError, write_images
from foresail.reports.style import named_styles
from foresail.schedulers._planning.core import PlanAhead
from foresail.traces.generating import generate
from foresail.traces.nodes import cluster_of

_TRIES: Final = 3
_NODES_PER_JOB: Final = 3
"""Jobs of E2E hold some seven nodes: of so many, enough run to fill a cluster."""
_BUDGETS: Final = (0.002, 0.005, 0.02, 0.1, 0.5)
_LONG: Final = 5.0


@dataclass(frozen=True)
class Scene:
    """What a decision is asked about: a crowd before a cluster that is nine tenths full."""

    nodes: int = 1024
    pending: int = 64
    window_slots: int = 24
    racks: int = 8


RANGES: Final[dict[str, Sequence[int]]] = {
    "nodes": (128, 512, 2048, 8192, 50_000),
    "pending": (16, 64, 256, 1024, 4096, 20_000),
    "window_slots": (6, 12, 24, 48, 96),
    "racks": (4, 8, 16, 32, 64),
}


def view_of(scene: Scene, seed: int = 1) -> ClusterView:
    """The crowd, whose jobs are those of E2E, and what the cluster runs meanwhile."""
    jobs_of = find("generator", "e2e")
    parameters = jobs_of.parameters(
        nodes=scene.nodes, racks=scene.racks, hours=1.0,
        jobs=2 * max(scene.pending, scene.nodes // _NODES_PER_JOB),
    )  # fmt: skip
    workload = generate("e2e", parameters, seed)
    assert workload.nodes is not None
    cluster = cluster_of(workload.nodes)
    random = np.random.default_rng(seed)
    truth = workload.truth()
    now = 3600.0
    names = [(node.name, each.name) for each in cluster.partitions for node in each.nodes]
    free_nodes = {node.name: node.total for each in cluster.partitions for node in each.nodes}
    free = {each.name: each.total for each in cluster.partitions}
    pending: list[PendingJob] = []
    running: list[RunningJob] = []
    for at, job in enumerate(workload.specifications()):
        spread = random.lognormal(0.0, 0.8, 60)
        belief = Histogram.from_values(truth[job.job_id] * spread)
        if job.tasks <= len(names) - scene.nodes // 10 and at % 2:
            taken, names = names[: job.tasks], names[job.tasks :]
            by_rack: dict[str, int] = {}
            for name, rack in taken:
                by_rack[rack] = by_rack.get(rack, 0) + 1
                free[rack] = free[rack] - free_nodes.pop(name)
            placement = Placement(tuple(by_rack.items()), tuple((name, 1) for name, _ in taken))
            end = now + belief.mean()
            running.append(RunningJob(job, now - 60.0, at, placement, belief, end))
        elif len(pending) < scene.pending:
            late = replace(job, submit_seconds=now)
            if job.deadline_seconds is not None:
                moved = job.deadline_seconds - job.submit_seconds + now
                late = replace(late, value=replace(job.value, deadline_seconds=moved))  # type: ignore[type-var]
            pending.append(PendingJob(late, at, belief, belief.quantile(1.0)))
    return ClusterView(now, cluster, free, tuple(pending), tuple(running), free_nodes=free_nodes)


def decision_seconds(scene: Scene) -> float:
    """Least processor time of a decision, by schedulers without a last plan."""
    view = view_of(scene)
    watched = [
        Watched(planner(f"3sigma(window_slots={scene.window_slots},cycle_seconds=4)"))
        for _ in range(_TRIES)
    ]
    for each in watched:
        each.decide(view)
    return min(each.processor_seconds[0] for each in watched)


def growth() -> pl.DataFrame:
    """A row for each range and size."""
    decision_seconds(Scene(64, 4))
    rows: list[dict[str, Any]] = []
    for name, sizes in RANGES.items():
        for size in sizes:
            seconds = decision_seconds(replace(Scene(), **{name: size}))
            rows.append({"grows": name, "size": size, "seconds": seconds})
            print(f"{name:14}{size:8,}{1e3 * seconds:10.1f} ms", flush=True)
    return pl.DataFrame(rows)


def slopes(table: pl.DataFrame) -> dict[str, float]:
    """Exponents: the slope of time against size on logarithmic axes."""
    return {
        str(name): float(
            np.polyfit(np.log(part["size"].to_numpy()), np.log(part["seconds"].to_numpy()), 1)[0]
        )
        for (name,), part in table.group_by("grows", maintain_order=True)
    }


def losses(crowds: int = 8) -> pl.DataFrame:
    """What plans lose under a budget of work against long solves of the same crowds."""
    views = [view_of(Scene(256, 40), seed) for seed in range(crowds)]
    best = [_value(view, _LONG) for view in views]
    rows = []
    for budget in _BUDGETS:
        values = [_value(view, budget) for view in views]
        lost = 1.0 - np.array(values) / np.maximum(best, values)
        rows.append({"budget_seconds": budget, "mean_loss": lost.mean(), "worst_loss": lost.max()})
        print(f"budget {budget:6.3f} s: loses {lost.mean():.2%}, at worst {lost.max():.2%}")
    return pl.DataFrame(rows)


def _value(view: ClusterView, seconds: float) -> float:
    text = f"relative_gap=0.001,cycle_seconds={seconds},solver_share=1"
    solver = planner(f"3sigma({text})")
    began = time.perf_counter()
    solver.decide(view)
    assert solver.last is not None
    assert time.perf_counter() - began < 20.0 * seconds + 60.0
    return solver.last.value


def planner(text: str) -> PlanAhead:
    """A scheduler that plans ahead, by its short form."""
    scheduler = parse_policy(text).scheduler.build()
    assert isinstance(scheduler, PlanAhead)
    return scheduler


def main(folder: Path) -> None:
    """Print both tables and draw the growth."""
    table = growth()
    slope = slopes(table)
    print(", ".join(f"{name}: slope {each:.2f}" for name, each in slope.items()))
    losses()
    styles = named_styles([f"{name} (slope {each:.2f})" for name, each in slope.items()])
    across, up = Axis("times the smallest", log=True), Axis("processor seconds", log=True)
    curves = [
        Curve(style, part["size"].to_numpy(), part["seconds"].to_numpy())
        for style, (_, part) in zip(
            styles, _relative(table).group_by("grows", maintain_order=True), strict=True
        )
    ]
    figure = curve_figure(
        "plan-growth", "How does a decision grow?", [], curves, across, up, table=table
    )
    folder.mkdir(parents=True, exist_ok=True)
    table.write_csv(folder / "plan-growth.csv")
    try:
        write_images([figure], folder)
    except ImageError as error:
        print(error, file=sys.stderr)


def _relative(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("size") / pl.col("size").min().over("grows"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
