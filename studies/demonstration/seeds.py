"""The demonstration's log from other seeds: EASY against the recommended policy or another.

usage: python studies/demonstration/seeds.py [POLICY]
"""

from __future__ import annotations

import argparse

from foresail.control.policy import parse_policy
from foresail.metrics.summary import summary
from foresail.model.registry import find
from foresail.model.words import duration, number
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces.generating import generate
from foresail.traces.workload import Workload

SEEDS = range(1, 32)


def log(seed: int) -> Workload:
    """What ``scripts/demo`` generates, there with the first seed."""
    parameters = find("generator", "lublin").parameters(
        jobs=10_000, processors=338, widest=128, classes="batch", load=0.8
    )
    return generate("lublin", parameters, seed)


def measured(workload: Workload, policy: str) -> tuple[float, float]:
    """Average bounded slowdown, and the longest wait in seconds."""
    found = summary(run_scenario(Scenario(workload, parse_policy(policy))))
    return found.average_bounded_slowdown, found.max_wait_seconds


def main(policy: str) -> None:
    """Print a table in Markdown."""
    print(f"| seed | EASY | `{policy}` | longest wait under EASY | against EASY's |")
    print("|--:|--:|--:|--:|--:|")
    for seed in SEEDS:
        workload = log(seed)
        easy, easy_longest = measured(workload, "easy")
        ours, longest = measured(workload, policy)
        waits = f"{duration(easy_longest)} | {longest / easy_longest:.2f}"
        print(f"| {seed} | {number(easy)} | {number(ours)} | {waits} |")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="EASY against a policy on logs of 31 seeds.")
    arguments.add_argument("policy", nargs="?", default="foresail")
    main(arguments.parse_args().policy)
