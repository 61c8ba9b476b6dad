"""How the replay's time grows with the number of jobs: a table, and the slope on log-log axes."""

from __future__ import annotations

import numpy as np

from benchmarks import logs
from benchmarks.workloads.replay import POLICIES
from foresail.control.policy import parse_policy
from foresail.simulator.replay import replay_arrays

SIZES = (10_000, 30_000, 100_000, 300_000)


def growth_table() -> str:
    """Microseconds per job for generated logs at the same load; slope 1 is linear growth."""
    lines = ["  ".join(("policy".ljust(12), *(f"{size:>9,}" for size in SIZES), "slope"))]
    others = {"learned": "easy(order=shortest),regression,incremental"}
    for name, text in {**POLICIES, **others}.items():
        policy = parse_policy(text)
        best = []
        for size in SIZES:
            workload = logs.generated(size)
            runtime = workload.runtime_seconds
            runs = [replay_arrays(workload, runtime.copy(), policy).seconds for _ in range(4)]
            best.append(min(runs))
        slope = np.polyfit(np.log(SIZES), np.log(best), 1)[0]
        each = (f"{1e6 * s / n:6.2f} us" for s, n in zip(best, SIZES, strict=True))
        lines.append("  ".join((name.ljust(12), *each, f"{slope:.2f}")))
    return "\n".join(lines)
