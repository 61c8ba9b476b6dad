"""Forecasts of starts against those of ``squeue --start``: same jobs, same moments, a real cluster.

    python against_slurm.py record SEED FILE     # jobs of seconds, on the cluster of SLURM_CONF
    python against_slurm.py judge FILE...        # what both said, and what happened

Six applications of three users, each with its own median runtime (lognormal, sigma 0.25); each job
asks for 2 to 3 times what it takes, rounded up to the minute that Slurm counts in. The first half
of the jobs is history, which accounting knows; in the second half the queue, the nodes and Slurm's
own estimates are noted every few seconds. Forecasts use nothing later than their moment.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean

import polars as pl

from foresail.explain.outlook import external_outlook
from foresail.explain.start_forecaster import StartForecaster
from foresail_slurm.commands import (
    NodeRow,
    QueueRow,
    read_accounting,
    read_nodes,
    read_queue,
)
from foresail_slurm.state import history_of, state_of

MEDIANS = {"align": 22, "sort": 26, "fit": 32, "render": 40, "solve": 52, "train": 70}
USERS = ("games", "mail", "man")
JOBS, GAP_SECONDS, EVERY_SECONDS, WIDEST = 100, 5.0, 6.0, 8


def record(seed: int, path: Path) -> None:
    """Run the jobs of a seed, and write what was seen, line by line."""
    draw = random.Random(seed)
    jobs, at = [], 0.0
    for _ in range(JOBS):
        at += draw.expovariate(1.0 / GAP_SECONDS)
        name = draw.choice([*MEDIANS])
        seconds = max(15.0, MEDIANS[name] * draw.lognormvariate(0.0, 0.25))
        limit = math.ceil(draw.uniform(2.0, 3.0) * seconds / 60.0)
        user = USERS[[*MEDIANS].index(name) % len(USERS)]
        jobs.append((at, name, seconds, limit, min(WIDEST, 2 ** draw.randrange(4)), user))
    begin, asked = time.time(), 0.0
    with path.open("w") as file:
        while jobs or any(row.StateCompact != "CG" for row in read_queue()):
            while jobs and time.time() - begin >= jobs[0][0]:
                _, name, seconds, limit, cpus, user = jobs.pop(0)
                words = ["sbatch", f"--uid={user}", "-D", "/tmp", "-o", "/dev/null", "-J", name]
                words += ["-n", str(cpus), "-t", str(limit), "--wrap", f"sleep {seconds:.2f}"]
                subprocess.run(words, check=True, capture_output=True)
            if len(jobs) <= JOBS / 2 and time.time() - asked >= EVERY_SECONDS:
                asked = time.time()
                seen = {
                    "now": asked,
                    "queue": read_queue(),
                    "nodes": read_nodes(),
                }
                file.write(json.dumps(seen) + "\n")
            time.sleep(0.2)
        time.sleep(10.0)
        rows = read_accounting(begin - 1.0).to_dict(as_series=False)
        file.write(json.dumps({"begin": begin, "accounting": rows}) + "\n")


def judge(path: Path) -> list[tuple[float, float, float, float, float]]:
    """Return of each answer that Slurm has an estimate of too: truth, estimate and our range."""
    *seen, past = (json.loads(line) for line in path.read_text().splitlines())
    start, end = (pl.col(name).cast(pl.Float64, strict=False) for name in ("Start", "End"))
    rows = pl.DataFrame(past["accounting"]).filter(start >= past["begin"] - 1.0)
    began = dict(rows.select("JobID", start).iter_rows())
    answers = []
    for each in seen:
        now = each["now"]
        queue, nodes = map(QueueRow._make, each["queue"]), map(NodeRow._make, each["nodes"])
        state, forecaster = state_of([*queue], [*nodes], now), StartForecaster()
        forecaster.catch_up(history_of(rows.filter(end < now - 2.0)))
        for account, line in state.waiting.items():
            runs, room = state.running.get(account, ()), state.room[account]
            found = forecaster.forecast(external_outlook(now, account, room, runs, line))
            for job_id in found:
                start, estimate = found[job_id].start, state.estimates[job_id]
                if job_id in began and estimate is not None:
                    points = start.low, start.median, start.high
                    answers.append((began[job_id], max(estimate, now), *points))
    return answers


def show(name: str, answers: list[tuple[float, float, float, float, float]]) -> None:
    """Print mean absolute errors (seconds), and how often starts are within the 80 % range."""
    slurm = fmean(abs(estimate - truth) for truth, estimate, *_ in answers)
    ours = fmean(abs(middle - truth) for truth, _, _, middle, _ in answers)
    held = fmean(low <= truth <= high for truth, _, low, _, high in answers)
    print(f"{name}: {len(answers)} answers, mean absolute error {ours:.1f} s, squeue --start")
    print(f"    {slurm:.1f} s, ratio {ours / slurm:.3f}; within the range {100 * held:.1f} %")


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        of_all = []
        for each in map(Path, sys.argv[2:]):
            of_all += judge(each)
            show(each.name, judge(each))
        show("all", of_all)
