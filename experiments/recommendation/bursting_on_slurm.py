"""Waiting policies between partitions of a real Slurm cluster: what they rent, and who waits.

    python bursting_on_slurm.py history               # as root, on the cluster of SLURM_CONF
    python bursting_on_slurm.py run FILE SEED POLICY...  # the same jobs under each policy
    python bursting_on_slurm.py judge FILE...

The cluster has a fixed partition ``main``, ``cloud`` of nodes that are started when needed, and
``tried`` of the same nodes with a limit of 3 minutes. Half of the jobs are short (medians of 6 to
12 s), half are long (60 to 120 s); t is 20 s, b is 90 s. What is judged is what accounting has.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean
from typing import Any

from foresail_slurm.bursting import Journal, read_burst
from foresail_slurm.commands import moment, number
from foresail_slurm.renting import costs_of, read_runs

MEDIANS = {"list": 6, "plot": 9, "test": 12, "solve": 60, "fit": 80, "train": 120}
JOBS, GAP_SECONDS, SHORT, WAIT_LIMIT = 60, 5.0, "20s", "90s"
PARTITIONS = "main", "cloud", "tried"
FORESAIL = [sys.executable, "-c", "from foresail.cli.main import main; main()", "slurm"]


def jobs_of(seed: int) -> list[tuple[float, list[str]]]:
    """Return the jobs of a seed: when each is submitted (seconds), and how."""
    draw, at, jobs = random.Random(seed), 0.0, []
    for _ in range(JOBS):
        at += draw.expovariate(1.0 / GAP_SECONDS)
        name = draw.choice([*MEDIANS])
        seconds = max(2.0, MEDIANS[name] * draw.lognormvariate(0.0, 0.2))
        words = ["sbatch", "-D", "/tmp", "-o", "/dev/null", "-J", name, "-t", "10"]
        words += ["-n", str(2 ** draw.randrange(3))]
        jobs.append((at, [*words, "--wrap", f"sleep {seconds:.2f}"]))
    return jobs


def history() -> None:
    """Run jobs of another seed on all nodes at once, for the policies to learn from."""
    for at, (_, words) in enumerate(jobs_of(100)):
        subprocess.run([*words, "-p", PARTITIONS[at % 2]], check=True, capture_output=True)
    wait_for_all()


def wait_for_all() -> None:
    """Wait until no job is left."""
    while any(row.StateCompact in ("PD", "CF", "R", "CG") for row in read_burst(*PARTITIONS)):
        time.sleep(1.0)
    time.sleep(10.0)  # until accounting knows it


def run(path: Path, seed: int, policies: list[str]) -> None:
    """Run the jobs of a seed under each policy; each leaves a line."""
    for policy in policies:
        state = path.with_suffix(f".{policy}")
        words = ["burst", str(state), "main", "cloud", "--tried", "tried", "--policy", policy]
        words += ["--short", SHORT, "--wait-limit", WAIT_LIMIT]
        with path.with_suffix(f".{policy}.log").open("w") as log:
            daemon = subprocess.Popen([*FORESAIL, *words], stderr=log)
        begin = time.time() + 5.0
        submitted = {}
        for at, job in jobs_of(seed):
            time.sleep(max(0.0, begin + at - time.time()))
            done = subprocess.run([*job, "--parsable"], check=True, capture_output=True, text=True)
            submitted[done.stdout.strip()] = time.time()
        wait_for_all()
        daemon.terminate()
        daemon.wait()
        runs = [each for each in read_runs(begin, *PARTITIONS) if each.JobID in submitted]
        costs = [*costs_of(runs, Journal(state).decisions, (1.0, 0.0), time.time())]
        seen = {
            "policy": policy,
            "seed": seed,
            "submitted": submitted,
            "runs": [each._asdict() for each in runs],
            "rented": 3_600.0 * sum(each.cost for each in costs),
            "foreseen": 3_600.0 * sum(each.cost_foreseen for each in costs),
        }
        with path.open("a") as file:
            file.write(json.dumps(seen) + "\n")


def judged(seen: dict[str, Any]) -> list[float]:
    """Return rented cpu seconds, those foreseen, jobs done away, and waits (mean and longest).

    The wait of a job lasts until its last attempt begins: a trial that was cut is part of it.
    """
    last = {}
    for row in seen["runs"]:
        begun, ended = moment(row["Start"]), moment(row["End"])
        assert begun is not None, row
        assert ended is not None, row
        if row["JobID"] not in last or begun > last[row["JobID"]][0]:
            last[row["JobID"]] = begun, row["Partition"]
    assert last.keys() == seen["submitted"].keys(), "a job was lost"
    waits = [max(0.0, begun - seen["submitted"][job]) for job, (begun, _) in last.items()]
    away = sum(place != "main" for _, place in last.values())
    work = sum(
        number(row["AllocCPUS"]) * (number(row["End"]) - number(row["Start"]))
        for row in seen["runs"]
        if row["Partition"] != "main"
    )
    return [work, seen["foreseen"], away, fmean(waits), max(waits)]


def judge(paths: list[Path]) -> None:
    """Print the figures of each policy and seed."""
    print("policy                seed  rented cpu s  foreseen  jobs away  mean wait  longest")
    for line in sorted(each for path in paths for each in path.read_text().splitlines()):
        seen = json.loads(line)
        figures = "{:12.0f} {:9.0f} {:10.0f} {:9.1f} s {:7.0f} s".format(*judged(seen))
        print(f"{seen['policy']:<22}{seen['seed']:>4}{figures}")


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "history":
        history()
    elif what == "judge":
        judge([Path(each) for each in rest])
    else:
        run(Path(rest[0]), int(rest[1]), rest[2:])
