"""The hardest cycles of a run, kept as files, and solved again: by our search and by the solver.

``python -m benchmarks.plan_hardest keep FOLDER RUN [NAME=VALUE ...]`` runs one of the workloads of
``plan_cycles`` and keeps the cycles that missed most. ``python -m benchmarks.plan_hardest solve
FOLDER`` asks each of them again, beside the solver with 20 seconds and our plan to begin with.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from benchmarks.plan_cycles import RUNS
from foresail.milp.solver import Limits, find_solver, relative_gap
from foresail.model.view import ClusterView
from foresail.schedulers._planning.core import PlanAhead
from foresail.schedulers._planning.pricing import program_of, values_of
from foresail.schedulers._planning.problem import PlanChoice, Problem, fitting
from foresail.schedulers._planning.solving import Effort, Hint, SolvedChoice, solve_problem
from foresail.schedulers._planning.triage import hint_from

_SECONDS: Final = 20.0
_MOST: Final = 40
_HINT: Final = "hint_"


@dataclass(frozen=True, slots=True, eq=False)
class KeptCycle:
    """What a cycle was asked, and how hard it tried."""

    name: str
    """The second of the run."""
    problem: Problem
    effort: Effort
    """The question."""
    hint: Hint | None
    """Where it began; None if nothing was handed on."""
    in_vain: float
    """What programs had looked for in vain before."""
    missing: float
    gap: float
    """What it told of its plan: by how much the best may be better, and that as a share."""

    def solved(self) -> SolvedChoice:
        """The answer of now, which is the same on every machine."""
        hint = self.hint
        begin = None if hint is None else lambda _: hint
        return solve_problem(self.problem, self.effort, begin, self.in_vain)

    def write(self, path: Path) -> None:
        """Keep it as arrays."""
        arrays: dict[str, Any] = {
            field.name: getattr(self.problem, field.name) for field in fields(Problem)
        }
        if self.hint is not None:
            choice = self.hint.choice
            arrays |= {
                f"{_HINT}group": choice.group,
                f"{_HINT}slot": choice.slot,
                f"{_HINT}stopped": choice.stopped,
                f"{_HINT}gap": self.hint.gap,
            }
            if self.hint.prices is not None:
                arrays[f"{_HINT}prices"] = self.hint.prices
        told = {
            "in_vain": self.in_vain,
            "missing": self.missing,
            "gap": self.gap,
            "effort": asdict(self.effort),
        }
        np.savez_compressed(path, told=json.dumps(told), **arrays)

    @classmethod
    def read(cls, path: Path) -> KeptCycle:
        """What was kept."""
        with np.load(path) as arrays:
            told = json.loads(str(arrays["told"]))
            problem = Problem(**{field.name: arrays[field.name] for field in fields(Problem)})
            hint = None
            if f"{_HINT}group" in arrays:
                parts = (arrays[f"{_HINT}{part}"] for part in ("group", "slot", "stopped"))
                prices = arrays.get(f"{_HINT}prices")
                hint = Hint(PlanChoice(*parts), prices, float(arrays[f"{_HINT}gap"]))
        effort = Effort(**told["effort"])
        in_vain = told.get("in_vain", 0.0)  # cycles of earlier versions have none
        return cls(path.stem, problem, effort, hint, in_vain, told["missing"], told["gap"])


class Hardest:
    """Keeps those cycles of a run that missed most: half of them by value, half by share."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, KeptCycle] = {}

    def __call__(self, scheduler: PlanAhead, view: ClusterView) -> None:
        """Look at the last decision of a scheduler, and what it saw."""
        last = scheduler.last
        assert last is not None
        missing = last.bound - last.value
        if relative_gap(last.value, last.bound) <= 0.0 or missing <= 0.0:
            return
        kept = list(self._kept.values())
        if len(kept) >= 2 * self._most and not any(
            missing > each.missing or last.gap > each.gap for each in kept
        ):
            return
        demands = scheduler.demands(view)
        carried = scheduler.carried(view.now)
        hint = None if carried is None else hint_from(carried, demands, fitting(demands.problem))
        in_vain = 0.0 if carried is None else carried.in_vain
        name = f"{view.now:.0f}"
        self._kept[name] = KeptCycle(
            name, demands.problem, scheduler.effort, hint, in_vain, missing, last.gap
        )
        if len(self._kept) > 2 * self._most:
            self._kept = {each.name: each for each in self.hardest()}

    def hardest(self) -> Sequence[KeptCycle]:
        """At most so many, in order of time."""
        kept = list(self._kept.values())
        by_value = sorted(kept, key=lambda each: -each.missing)[: self._most // 2]
        others = [each for each in kept if each not in by_value]
        by_share = sorted(others, key=lambda each: -each.gap)[: self._most - len(by_value)]
        return sorted(by_value + by_share, key=lambda each: float(each.name))


def keep(folder: Path, run: str, most: int, settings: dict[str, Any]) -> None:
    """Run a workload and write its hardest cycles."""
    hardest = Hardest(most)
    print(RUNS[run](keeper=hardest, **settings).sentence())
    folder.mkdir(parents=True, exist_ok=True)
    for each in hardest.hardest():
        each.write(folder / f"{each.name}.npz")


@dataclass(frozen=True, slots=True)
class Reference:
    """What the solver made of a whole question: the best it found, and its bound."""

    value: float
    bound: float


def reference(cycle: KeptCycle, ours: SolvedChoice, seconds: float) -> Reference:
    """The solver's best plan over every option, beginning with ours."""
    problem = fitting(cycle.problem)
    groups, slots = np.nonzero(problem.worth > 0.0)
    program = program_of(problem, groups, slots)
    start = values_of(problem, groups, slots, ours.choice)
    found = find_solver(cycle.effort.solver_name).solve(
        program, Limits(seconds, relative_gap=1e-4), start
    )
    return Reference(max(found.objective, ours.value), found.bound)


def _reference(path: Path, cycle: KeptCycle, ours: SolvedChoice, seconds: float) -> Reference:
    """The same, asked once: it is kept beside the cycle."""
    kept = path.with_suffix(f".{seconds:g}s.json")
    if not kept.exists():
        kept.write_text(json.dumps(asdict(reference(cycle, ours, seconds))))
    known = Reference(**json.loads(kept.read_text()))
    return Reference(max(known.value, ours.value), known.bound)


def compared(folder: Path, seconds: float) -> pl.DataFrame:
    """A row for each kept cycle: our value, the best known, and both bounds.

    ``of_best`` is our share of the best known; ``gap`` what we tell, ``true_gap`` what is left of
    it by the better of both bounds.
    """
    return pl.DataFrame(list(_rows(folder, seconds)))


def _rows(folder: Path, seconds: float) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.npz"), key=lambda each: float(each.stem)):
        cycle = KeptCycle.read(path)
        began = time.process_time()
        ours = cycle.solved()
        took = time.process_time() - began
        best = _reference(path, cycle, ours, seconds)
        yield {
            "cycle": cycle.name,
            "jobs": cycle.problem.jobs,
            "options": int(np.count_nonzero(cycle.problem.worth)),
            "value": ours.value,
            "best": best.value,
            "of_best": ours.value / best.value if best.value else 1.0,
            "gap": ours.gap,
            "true_gap": relative_gap(best.value, min(best.bound, ours.bound)),
            "seconds": took,
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep, or solve."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_hardest", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("keep", help="run a workload and keep its hardest cycles")
    keeping.add_argument("folder", type=Path)
    keeping.add_argument("run", choices=sorted(RUNS))
    keeping.add_argument("settings", nargs="*", metavar="NAME=VALUE", help="of the workload")
    keeping.add_argument("--most", type=int, default=_MOST, help="how many cycles")
    solving = commands.add_parser("solve", help="solve what was kept once more")
    solving.add_argument("folder", type=Path)
    solving.add_argument("--seconds", type=float, default=_SECONDS, help="for the solver")
    asked = parser.parse_args(arguments)
    if asked.command == "keep":
        pairs = (text.partition("=") for text in asked.settings)
        settings = {name: ast.literal_eval(value) for name, _, value in pairs}
        keep(asked.folder, asked.run, asked.most, settings)
        return 0
    table = compared(asked.folder, asked.seconds)
    if table.is_empty():
        print("no cycle was kept: none had told a gap")
        return 0
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True):
        print(table)
    share = table["of_best"]
    print(
        f"{len(table)} cycles: of the best known {share.mean():.4f} on average, {share.min():.4f} "
        f"at worst; gap told {table['gap'].mean():.2%} on average, at most "
        f"{table['gap'].max():.2%}; known to be left {table['true_gap'].mean():.2%}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
