"""Three jobs that say in STRL where they may run, on two nodes with a gpu and two without."""

import polars as pl

from foresail.control.policy import parse_policy
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

NODES = pl.DataFrame(
    {
        "node": ["g1", "g2", "c1", "c2"],
        "partition": ["gpus", "gpus", "cpus", "cpus"],
        "count": [1] * 4,
        "cpus": [1.0] * 4,
        "memory_bytes": [0.0] * 4,
        "gpus": [1.0, 1.0, 0.0, 0.0],
        "model": [None] * 4,
    }
)
JOBS = jobs_table(
    {
        "job_id": ["train", "render", "mirror"],
        "submit_seconds": [0.0, 0.0, 0.0],
        "runtime_seconds": [20.0, 20.0, 10.0],
        "requested_seconds": [20.0, 20.0, 10.0],
        "tasks": [2, 2, 2],
        "strl": [
            "max(nCk(gpus, 2, 0, 20s, 4), nCk(all, 2, 0, 40s, 1))",
            "nCk(all - gpus, 2, 0, 20s, 3)",
            "min(nCk(gpus, 1, 0, 10s, 2), nCk(cpus, 1, 0, 10s, 2))",
        ],
    }
)
workload = Workload(JOBS, WorkloadMeta("three jobs", "hand", 4), NODES)
policy = parse_policy("tetrisched(slot_seconds=5),requested")
schedule = run_scenario(Scenario(workload, policy, "nodes"))
for row in schedule.jobs.sort("job_id").iter_rows(named=True):
    print(
        f"{row['job_id']}: {row['start_seconds']:g} to {row['end_seconds']:g} s, {row['placement']}"
    )
