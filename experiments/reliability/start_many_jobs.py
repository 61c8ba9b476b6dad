"""Starts a second that a Slurm cluster takes from the adapter that decides, nodes named.

    python start_many_jobs.py JOBS    # as an operator, on an idle cluster of SLURM_CONF

Jobs of a cpu wait behind one that fills the cluster, and are held; then that is cancelled, and all
are instructed to start at once. Said is how long it takes until Slurm has taken the last order, and
until the last has begun by Slurm's own times (whole seconds).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from itertools import cycle
from pathlib import Path

from foresail.model.cluster import Placement
from foresail.model.decision import Start
from foresail.model.event import Began, Event, NotStarted, Submitted
from foresail_slurm.commands import moment, read_accounting, read_nodes
from foresail_slurm.deciding import DecidingAdapter, Owned
from foresail_slurm.state import size_of

PARTITION, LONGEST_SECONDS = "main", 300.0
COMMON = ["sbatch", "--parsable", "-p", PARTITION, "-D", "/tmp", "-o", "/dev/null", "-t", "60"]


def submit(*words: str) -> str:
    """Submit a job, and return its id."""
    done = subprocess.run([*COMMON, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def main(jobs: int) -> None:
    """Print what it takes to start so many jobs."""
    nodes = {row.NodeList: int(size_of(row).cpus) for row in read_nodes()}
    assert jobs <= sum(nodes.values()), "they are all to run at once"
    blocking = submit("--exclusive", "-N", str(len(nodes)), "--wrap", "sleep 3600")
    time.sleep(5.0)
    begin = time.time()
    submit("-n", "1", "--mem=1", "-a", f"1-{jobs}", "--wrap", "sleep 120")
    with tempfile.TemporaryDirectory() as folder:
        owned = Owned(frozenset({PARTITION}), frozenset())
        adapter = DecidingAdapter(Path(folder) / "slurm-seen", owned)
        events: list[Event] = [*adapter.resume((), (), time.time())]
        end = time.monotonic() + 30.0
        while time.monotonic() < end:
            events += adapter.reports(time.time())
            time.sleep(0.1)
        ids = [each.job.job_id for each in events if isinstance(each, Submitted)]
        ids = [each for each in ids if "_" in each]
        subprocess.run(["scancel", blocking], check=True)
        time.sleep(5.0)
        adapter.reports(time.time())
        account = adapter.cluster.partitions[0].name
        homes = cycle(nodes)
        first = time.time()
        for job_id in ids:
            placement = Placement(((account, 1),), ((next(homes), 1),))
            adapter.carry_out(Start(job_id, placement), time.time())
        begun, taken = set[str](), 0.0
        while len(begun) < len(ids) and time.time() - first < LONGEST_SECONDS:
            events = [*adapter.reports(time.time())]
            taken = taken or (0.0 if adapter._starts else time.time() - first)
            begun |= {each.job_id for each in events if isinstance(each, Began)}
            refused = [each for each in events if isinstance(each, NotStarted)]
            print(*refused, sep="\n", end="\n" * bool(refused))
    rows = read_accounting(begin).to_dicts()
    starts = [moment(row["Start"]) or 0.0 for row in rows if "_" in row["JobID"]]
    print(f"{len(ids)} starts taken in {taken:.1f} s, {len(ids) / taken:.0f} a second; ", end="")
    print(f"{len(begun)} begun, the last {max(starts) - first:.0f} s after the first instruction")
    subprocess.run(["scancel", f"--partition={PARTITION}"], check=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
